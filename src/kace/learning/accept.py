"""Decide what stays: which cards are validated or retired, and which revisions are kept.

Two rules decide. By default a card stays if it probably helps; by the paper's threshold a
revision stays if it gains enough, and no card is retired by code. The curator, a teacher
that rewrites, moves and retires a domain's cards, runs only with `refine`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeVar

from kace.cards.card import (
    UNIVERSAL,
    Card,
    CardError,
    Difficulty,
    LiftCounts,
    LiftMark,
    Provenance,
    Status,
    card_of,
    lift_line,
    plain_points,
    with_examples,
)
from kace.cards.tree import (
    Change,
    Deprecate,
    Edit,
    EpistemicTree,
    Relocate,
    applied,
)
from kace.errors import DataError, one_line
from kace.ladder.prompt import fenced, neutral, quoted_line, template
from kace.ladder.record import Solution
from kace.ladder.tiers import TierName
from kace.learning.measure import Fire, Impact, Lift, Posterior, posteriors
from kace.learning.steps import StepResult
from kace.learning.study import Settings
from kace.learning.teacher import (
    Block,
    CardRefusal,
    FailedProblem,
    Grammar,
    Reading,
    Screen,
    TeacherStep,
    format_problem,
    instructions,
    read_blocks,
    read_each,
)

COUNTED = ("n_uses", "n_wins", "n_losses")


class Comparison(StepResult):
    """A candidate tree compared with the base run, by problem and seed."""

    domain: str
    number: int
    n: int
    lift: float
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    accepted: bool
    reason: str

    @property
    def summary(self) -> str:
        """Return the decision and its reason."""
        return f"{'kept' if self.accepted else 'not kept'}: {self.reason}"


class AcceptanceRule(Protocol):
    """Decides about cards and revisions."""

    def credit(
        self, tree: EpistemicTree, impacts: Sequence[Impact], epoch: int
    ) -> tuple[Change, ...]:
        """Return edits that write what was measured on the cards."""

    def retire(
        self,
        before: EpistemicTree,
        tree: EpistemicTree,
        impacts: Sequence[Impact],
    ) -> tuple[Change, ...]:
        """Return deprecations, after the curator had a chance to rewrite."""

    def accepts(
        self, n: int, lift: float, won: int, lost: int
    ) -> tuple[bool, str]:
        """Whether a revision is kept, and the reason."""


class PosteriorRule:
    """Accept what probably helps, given all cards of the tree. The default."""

    def __init__(self, keep_above: float, retire_below: float) -> None:
        self.keep_above = keep_above
        self.retire_below = retire_below

    def credit(
        self, tree: EpistemicTree, impacts: Sequence[Impact], epoch: int
    ) -> tuple[Change, ...]:
        """Return edits with the newest figures and the posterior of all epochs.

        A card is validated if it helps with probability `keep_above`, deprecated if it
        harms with as much, else experimental. An unmeasured card is judged by its tree.
        """
        beliefs = posteriors(tree, impacts)
        changes: list[Change] = []
        for card in tree.shown if beliefs else ():
            belief = beliefs[card.card_id]
            fire, lift = impacts[-1].of(card)
            status = Status.EXPERIMENTAL
            if belief.helps >= self.keep_above:
                status = Status.VALIDATED
            elif belief.harms >= self.keep_above:
                status = Status.DEPRECATED
            won, lost = lift.wins if lift else (0, 0)
            counts = (fire.n_shown if fire else 0, won, lost)
            text = posterior_text(belief, lift, epoch)
            changes.append(_credited(card, status, text, belief.effect, counts))
        return tuple(changes)

    def retire(
        self,
        before: EpistemicTree,
        tree: EpistemicTree,
        impacts: Sequence[Impact],
    ) -> tuple[Change, ...]:
        """Return deprecations of cards unlikely to help that no curator has rewritten."""
        beliefs = posteriors(before, impacts)
        changes: list[Change] = []
        for card in tree.shown if beliefs else ():
            same = card.payload == before.card(card.card_id).payload
            if same and beliefs[card.card_id].helps <= self.retire_below:
                changes.append(Deprecate(card.card_id))
        return tuple(changes)

    def accepts(
        self, n: int, lift: float, won: int, lost: int
    ) -> tuple[bool, str]:
        """Whether a revision gains more problems than it loses, with `keep_above`."""
        better = gain_probability(won, lost)
        accepted = better >= self.keep_above
        enough = "at least" if accepted else "below"
        return accepted, (
            f"{_measured(n, lift)}, better with probability {better:.2f}, {enough} "
            f"{self.keep_above:g}"
        )


class ThresholdRule:
    """Accept a revision that gains the threshold. The paper's rule."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def credit(
        self, tree: EpistemicTree, impacts: Sequence[Impact], epoch: int
    ) -> tuple[Change, ...]:
        """Return edits with the newest figures, in order of id; no status changes."""
        changes: list[Change] = []
        for card in tree:
            fire, lift = impacts[-1].of(card)
            if not fire and not lift:
                continue
            text = card.provenance.validated_lift
            score = card.helpfulness_score
            if lift:
                text = lift_text(lift, epoch)
                # Rounded, since the last bits of a sum differ between machines.
                score = round(lift.effect, 4) + 0.0
            counts = (0, 0, 0)
            if fire:
                counts = (fire.n_shown, fire.shown_correct, fire.shown_wrong)
            changes.append(_credited(card, card.status, text, score, counts))
        return tuple(changes)

    def retire(
        self,
        before: EpistemicTree,
        tree: EpistemicTree,
        impacts: Sequence[Impact],
    ) -> tuple[Change, ...]:
        """Return nothing: only the curator retires cards."""
        return ()

    def accepts(
        self, n: int, lift: float, won: int, lost: int
    ) -> tuple[bool, str]:
        """Whether the lift of a revision reaches the threshold."""
        accepted = lift >= self.threshold
        enough = "at least" if accepted else "below"
        threshold = plain_points(self.threshold)
        return (
            accepted,
            f"{_measured(n, lift)}, {enough} the threshold of {threshold}",
        )


def rule_of(settings: Settings) -> AcceptanceRule:
    """Return the acceptance rule of the settings."""
    if settings.evidence == "threshold":
        return ThresholdRule(settings.threshold)
    return PosteriorRule(settings.keep_above, settings.retire_below)


def drop_unvalidated(tree: EpistemicTree) -> tuple[Change, ...]:
    """Return deprecations that leave only validated cards to be shown."""
    changes: list[Change] = []
    for card in tree:
        if card.status is Status.EXPERIMENTAL:
            changes.append(Deprecate(card.card_id))
    return tuple(changes)


def lift_text(lift: Lift, epoch: int) -> str:
    """Return a lift in words, as its card holds it."""
    mark = LiftMark(lift.effect, lift.low, lift.high)
    return lift_line(mark, _counts(lift), epoch)


def posterior_text(belief: Posterior, lift: Lift | None, epoch: int) -> str:
    """Return a posterior in words, as its card holds it."""
    mark = LiftMark(belief.effect, belief.low, belief.high)
    line = lift_line(mark, _counts(lift) if lift else None, epoch)
    return f"{line}; helps with probability {belief.helps:.2f}"


def _counts(lift: Lift) -> LiftCounts:
    method = lift.method.replace("_", "-")
    return LiftCounts(lift.shown, lift.hidden, lift.problems, method)


def _credited(
    card: Card, status: Status, text: str, score: float, counts: Iterable[int]
) -> Edit:
    """Return an edit with status and figures; counts are added to those before."""
    known = dict(card.provenance)
    known["promotion_status"] = status
    known["validated_lift"] = text
    for name, more in zip(COUNTED, counts, strict=True):
        known[name] += more
    provenance = Provenance.model_validate(known)
    update = {"provenance": provenance, "helpfulness_score": score}
    return Edit(card.model_copy(update=update))


def compare(
    base: Sequence[Solution],
    rerun: Sequence[Solution],
    *,
    domain: str,
    number: int,
    rule: AcceptanceRule,
    removes_only: bool,
) -> Comparison:
    """Compare a rerun with the base run, pair by pair, and decide by the rule.

    A candidate that only removes cards claims nothing: it passes if nothing is lost.
    """
    again = {(record.problem, record.seed): record for record in rerun}
    net: defaultdict[str, int] = defaultdict(int)
    gained: dict[str, None] = {}
    lost: dict[str, None] = {}
    n = 0
    for before in base:
        after = again.get((before.problem, before.seed))
        if (
            before.correct is None
            or before.failed
            or after is None
            or after.failed
        ):
            continue
        n += 1
        change = bool(after.correct) - bool(before.correct)
        net[before.problem] += change
        if change > 0:
            gained[before.name] = None
        elif change < 0:
            lost[before.name] = None
    lift = sum(net.values()) / n if n else 0.0
    changes = list(net.values())
    won = sum(change > 0 for change in changes)
    worse = sum(change < 0 for change in changes)
    if not n:
        accepted = False
        reason = "no problem could be compared"
    elif removes_only:
        accepted = lift >= 0
        reason = f"{_measured(n, lift)}; a removal must not lose"
    else:
        accepted, reason = rule.accepts(n, lift, won, worse)
    return Comparison(
        domain=domain,
        number=number,
        n=n,
        lift=lift,
        gained=tuple(gained),
        lost=tuple(lost),
        accepted=accepted,
        reason=reason,
    )


def gain_probability(won: int, lost: int) -> float:
    """Return the probability that a change gains more problems than it loses.

    It begins from two problems of each kind.
    """
    total = won + lost + 3
    ways = 0
    for k in range(won + 2):
        ways += math.comb(total, k)
    return ways / (1 << total)


def _measured(n: int, lift: float) -> str:
    return f"lift {plain_points(lift)} points on {n} solves"


# The curator: what it is shown of a domain's cards, and what code checks of its reply.

MOST_GAPS = 20
REASON_CHARS = 300
MOST_PROBLEMS = 30  # problems shown in full; the rest are counted
MOST_ATTEMPTS = 2
PROBLEM_CHARS = 2_000
TAIL_CHARS = 600
MOST_LABELS = 12

E = TypeVar("E", bound=StrEnum)

REVISION = Grammar(
    "revision",
    "id",
    ("id", "action", "reason"),
    ("difficulty", "domains", "routing", "payload"),
    text="payload",
)
GAP = Grammar("gap", name="", required=("text",), text="text")


class Action(StrEnum):
    """What happens to a card."""

    KEEP = "KEEP"
    EDIT = "EDIT"
    RELOCATE = "RELOCATE"
    DEPRECATE = "DEPRECATE"


class Revision(StepResult):
    """The curator's decision about one card. What is left out stays as it is."""

    action: Action
    card_id: str
    reason: str
    payload: str = ""
    routing: tuple[str, ...] | None = None
    difficulty: Difficulty | None = None
    domains: tuple[str, ...] = ()


class Revisions(StepResult):
    """A curator's reply. Cards without a revision are kept."""

    revisions: tuple[Revision, ...] = ()
    gaps: tuple[str, ...] = ()  # what no card could be edited to cover
    refused: tuple[CardRefusal, ...] = ()  # their cards stay as they were


class DomainCards(NamedTuple):
    """The cards of a domain under one curator, with everything known about them."""

    domain: str  # `universal` for the cards that every domain reads
    cards: tuple[Card, ...]
    impact: Impact
    failed: tuple[FailedProblem, ...]


class LastTry(NamedTuple):
    """Revisions that a rerun did not confirm."""

    revisions: Revisions
    comparison: Comparison
    still_wrong: tuple[FailedProblem, ...]


async def revise(
    domain: DomainCards, last: LastTry | None, context: TeacherStep
) -> Revisions:
    """Ask the curator about every card of a domain; without cards, ask nothing.

    After a last try its rerun is in view, and the reply replaces it.
    """
    if not domain.cards:
        return Revisions()
    parts = ["cards", "revise"]
    if any(card.examples for card in domain.cards):
        parts.append("revise_worked")
    system = instructions(*parts)
    shown = [_format_domain(domain, context.epoch)]
    if last:
        system = f"{system}\n\n{template('teacher/refine')}"
        shown += _format_last_try(last)
        shown.append(_format_failures("Wrong in the rerun", last.still_wrong))
    reading = await context.teacher.ask(
        context.name,
        system,
        "\n\n".join(shown),
        lambda reply: read_revisions(reply, domain, context.screen),
    )
    revisions = []
    gaps = []
    for found in reading.found.values():
        if isinstance(found, Revision):
            revisions.append(found)
        else:
            gaps.append(found)
    return Revisions(
        revisions=tuple(revisions),
        gaps=tuple(gaps[:MOST_GAPS]),
        refused=tuple(bad.refusal() for bad in reading.bad),
    )


def revision_changes(
    tree: EpistemicTree, revisions: Revisions
) -> tuple[Change, ...]:
    """Return the revisions as changes to a tree, without those that it cannot take."""
    wanted: list[Change] = []
    for revision in revisions.revisions:
        if revision.card_id not in tree:
            continue
        try:
            change = _change(tree.card(revision.card_id), revision)
            if change and applied(tree, change) != tree:
                wanted.append(change)
        except DataError:  # a card that would break a rule
            continue
    return tuple(wanted)


def changed_card(tree: EpistemicTree, change: Change) -> Card | None:
    """Return the card after it was edited or moved; `None` for any other change."""
    if isinstance(change, Relocate):
        return applied(tree, change).card(change.card_id)
    return change.card if isinstance(change, Edit) else None


def removes_only(revisions: Revisions) -> bool:
    """Whether the revisions only claim that some cards do no good."""
    allowed = (Action.KEEP, Action.DEPRECATE)
    return all(revision.action in allowed for revision in revisions.revisions)


def revised_card(card: Card, revision: Revision) -> Card:
    """Return the card after an EDIT or RELOCATE; raises `CardError` if it is invalid.

    A card with another text has proved nothing yet: its figures and its status begin
    anew. The curator is shown the rule alone, so the examples stay.
    """
    record = card.model_dump(mode="json")
    if revision.difficulty is not None:
        record["difficulty_tag"] = revision.difficulty.value
    if revision.domains:
        record["domain_tags"] = list(revision.domains)
    if revision.routing is not None:
        record["routing_conditions"] = list(revision.routing)
    if revision.payload and revision.payload.strip() != card.rule:
        kept = {"source", "supporting_problems", "epoch_introduced"}
        record["payload"] = with_examples(revision.payload, card.examples)
        record["helpfulness_score"] = 0.0
        record["provenance"] = card.provenance.model_dump(
            mode="json", include=kept
        )
    return card_of(record)


def _change(card: Card, revision: Revision) -> Change | None:
    if revision.action is Action.KEEP or card.status is Status.DEPRECATED:
        return None
    if revision.action is Action.DEPRECATE:
        return Deprecate(card.card_id)
    after = revised_card(card, revision)
    same_text = after.payload == card.payload
    if same_text and after.routing_conditions == card.routing_conditions:
        return Relocate(card.card_id, after.difficulty_tag, after.domain_tags)
    return Edit(after)


def read_revisions(
    reply: str, domain: DomainCards, screen: Screen
) -> Reading[Revision | str]:
    """Return the revisions and gaps of a reply."""

    def make(block: Block) -> Revision | CardRefusal:
        return _read_revision(block, domain, screen)

    reading = read_each(reply, REVISION, make)
    found: dict[str, Revision | str] = dict(reading.found)
    gaps, bad_gaps = read_blocks(reply, GAP)
    for gap in gaps:
        text = one_line(gap.text, REASON_CHARS)
        found[f"gap: {text}"] = text
    bad = sorted((*reading.bad, *bad_gaps), key=lambda each: each.line)
    return Reading(found, tuple(bad))


class _Refused(Exception):
    """A rule that a revision breaks, and the reason."""


def _read_revision(
    block: Block, domain: DomainCards, screen: Screen
) -> Revision | CardRefusal:
    """Return what a block decides, or the first thing that speaks against it.

    An EDIT or RELOCATE that changes nothing is a KEEP.
    """
    name = block.fields["id"]
    try:
        card = _card_named(name, domain)
        revision = _parse_revision(block)
        if revision.action is Action.KEEP:
            return revision
        if revision.action is Action.DEPRECATE:
            _check_deprecation(card, domain)
            return revision
        after = _check_change(card, revision)
    except _Refused as refused:
        return CardRefusal.by_code(name, *refused.args)
    if after == card:
        reason = revision.reason
        return Revision(action=Action.KEEP, card_id=name, reason=reason)
    return screen(after) or revision


def _card_named(name: str, domain: DomainCards) -> Card:
    for card in domain.cards:
        if card.card_id == name:
            return card
    raise _Refused(
        "not_here",
        "no card of this id is in the request; only those can be revised",
    )


def _parse_revision(block: Block) -> Revision:
    fields = block.fields
    action = _choice(Action, fields["action"].strip(" .`*"), "unknown_action")
    revision = Revision(
        action=action,
        card_id=fields["id"],
        reason=one_line(fields["reason"], REASON_CHARS),
    )
    if action in (Action.KEEP, Action.DEPRECATE):
        return revision
    update: dict[str, object] = {"payload": block.text}
    routing = fields.get("routing", "")
    if routing:
        clauses = map(str.strip, routing.split(";"))
        none = routing.lower() == "none"
        update["routing"] = () if none else tuple(filter(None, clauses))
    if fields.get("difficulty"):
        update["difficulty"] = _choice(
            Difficulty, fields["difficulty"], "card_rule"
        )
    update["domains"] = tuple(
        fields.get("domains", "").replace(",", " ").split()
    )
    return revision.model_copy(update=update)


def _check_deprecation(card: Card, domain: DomainCards) -> None:
    """Refuse to retire a validated card that was not measured to harm."""
    _, lift = domain.impact.of(card)
    harms = lift is not None and lift.high < 0
    if card.status is Status.VALIDATED and not harms:
        raise _Refused(
            "validated",
            "the card has a validated lift, and was not measured to harm",
        )


def _check_change(card: Card, revision: Revision) -> Card:
    """Return the card after a change; refuse one that is invalid or misnamed."""
    action = revision.action
    edits = revision.payload or revision.routing is not None
    moves = revision.difficulty is not None or revision.domains
    if action is Action.EDIT and not edits:
        raise _Refused(
            "wrong_action",
            "an EDIT needs the whole new text under payload, or new routing",
        )
    if action is Action.RELOCATE and not moves:
        raise _Refused(
            "wrong_action",
            "a RELOCATE needs the new difficulty, or the new domains",
        )
    try:
        after = revised_card(card, revision)
    except CardError as error:
        message = error.message.removeprefix(f"card {card.card_id!r}: ")
        raise _Refused("card_rule", f"{message}; {error.fix}") from None
    place = (card.difficulty_tag, card.domain_tags)
    moved = (after.difficulty_tag, after.domain_tags) != place
    if after != card and moved is not (action is Action.RELOCATE):
        meant = "leaves the card where it is: write EDIT"
        if moved:
            meant = "moves the card: write RELOCATE"
        raise _Refused(
            "wrong_action", f"{action.value} {meant}, or change what you wrote"
        )
    return after


def _choice(kind: type[E], given: str, rule: str) -> E:
    for each in kind:
        if each.value.lower() == given.lower():
            return each
    use = ", ".join(kind)
    what = f"{one_line(given, 40)!r} is no {kind.__name__.lower()}"
    raise _Refused(rule, f"{what}; use one of {use}")


def _format_domain(of: DomainCards, epoch: int) -> str:
    """Return the cards with their figures, then the problems still wrong."""
    where = "every domain" if of.domain == UNIVERSAL else neutral(of.domain)
    parts = [f"Domain: {where}\nThis epoch: {epoch}\nCards: {len(of.cards)}"]
    for card in of.cards:
        parts.append(_format_card(card, *of.impact.of(card)))
    parts.append(_format_failures("Problems still wrong", of.failed))
    return "\n\n".join(parts)


def _format_card(card: Card, fire: Fire | None, lift: Lift | None) -> str:
    introduced = f"introduced in epoch {card.provenance.epoch_introduced}"
    head = (
        f"id: {card.card_id}",
        f"difficulty: {card.difficulty_tag.value}",
        f"domains: {' '.join(card.domain_tags)}",
        f"routing: {'; '.join(card.routing_conditions) or 'none'}",
        f"status: {card.status.value}, {introduced}",
        f"payload:\n{card.payload}",
    )
    fired = "Fired: never."
    measured = "Lift: not measured."
    if fire and fire.n_shown:
        tiers = []
        for tier in TierName:
            if tier in fire.tiers:
                tiers.append(f"{tier.value} {fire.tiers[tier]}")
        fired = (
            f"Fired: n_shown {fire.n_shown}, shown_correct {fire.shown_correct}, "
            f"shown_wrong {fire.shown_wrong} ({', '.join(tiers)}). "
            f"Problems: {_format_labels(fire.problems)}."
        )
    if lift:
        low = f"{100 * lift.low:+.1f}"
        high = f"{100 * lift.high:+.1f}"
        measured = (
            f"Lift: {100 * lift.effect:+.1f} points [{low}, {high}] of right attempts, "
            f"{lift.shown} with the card, {lift.hidden} without, {lift.problems} "
            "problems."
        )
    return "\n".join((fenced("card", "\n".join(head)), fired, measured))


def _format_failures(title: str, failed: tuple[FailedProblem, ...]) -> str:
    """Return problems that no tier delivered, the first ones in full."""
    lines = [f"# {title}: {len(failed)}"]
    for number, failure in enumerate(failed[:MOST_PROBLEMS], 1):
        label = f", {_format_labels((failure.problem.name,))}"
        problem = format_problem(
            number, failure.problem, PROBLEM_CHARS, label, "none"
        )
        parts = [problem, failure.outcome]
        for attempt in failure.attempts[:MOST_ATTEMPTS]:
            answer = quoted_line(attempt.answer or "none")
            tier = attempt.tier.value
            parts.append(f"Wrong attempt at {tier}, answer {answer}. It ends:")
            parts.append(
                fenced("attempt", attempt.tail[-TAIL_CHARS:] or "(no text)")
            )
        lines.append("\n".join(parts))
    if len(failed) > MOST_PROBLEMS:
        lines.append(f"And {len(failed) - MOST_PROBLEMS} more.")
    return "\n\n".join(lines)


def _format_last_try(last: LastTry) -> list[str]:
    """Return the last revisions, the texts that were tried, and the rerun's result."""
    found = last.comparison
    lines = ["# Your last revisions"]
    texts = []
    for revision in last.revisions.revisions:
        reason = neutral(revision.reason)
        lines.append(f"- {revision.card_id}: {revision.action.value}. {reason}")
        if revision.payload:
            payload = neutral(revision.payload)
            texts.append(f"{revision.card_id} was tried as:\n{payload}")
    for refused in last.revisions.refused:
        name = neutral(refused.card_id)
        lines.append(f"- {name}: not made. {neutral(refused.reason)}")
    seen = (
        "# The rerun",
        f"Solves compared: {found.n}. Lift: {100 * found.lift:+.1f} points.",
        f"Right only with your revisions: {_format_labels(found.gained)}.",
        f"Wrong only with your revisions: {_format_labels(found.lost)}.",
        f"Not committed: {neutral(found.reason)}.",
    )
    return ["\n".join(lines), *texts, "\n".join(seen)]


def _format_labels(names: tuple[str, ...]) -> str:
    shown = [neutral(one_line(name, 60)) for name in names[:MOST_LABELS]]
    if len(names) > MOST_LABELS:
        shown.append(f"{len(names) - MOST_LABELS} more")
    return ", ".join(shown) or "none"
