"""Domain revision: what a curator is shown of a domain's cards, what it would change, and what code says to that."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import NamedTuple, TypeVar

from kace.cards.card import (
    UNIVERSAL,
    Card,
    CardError,
    Difficulty,
    Status,
    card_of,
    with_examples,
)
from kace.cards.tree import Change, Deprecate, Edit, EpistemicTree, Relocate, applied
from kace.errors import DataError, one_line
from kace.ladder.prompt import fenced, neutral, quoted_line, template
from kace.ladder.tiers import TierName
from kace.learning.blocks import Block, CardRefusal, Grammar, read_blocks
from kace.learning.commit import InterimAnalysis
from kace.learning.effects import Fire, Impact, Lift
from kace.learning.propose import AdmissionContext, FailedProblem, Screen, numbered
from kace.learning.steps import Kept
from kace.learning.teacher import Reading, instructions, read_each

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


class Revision(Kept):
    """What the curator decided about one card. What is left out stays as it is."""

    action: Action
    card_id: str
    reason: str
    payload: str = ""
    routing: tuple[str, ...] | None = None
    difficulty: Difficulty | None = None
    domains: tuple[str, ...] = ()


class Revisions(Kept):
    """A curator's reply. Cards without a revision are kept."""

    revisions: tuple[Revision, ...] = ()
    gaps: tuple[
        str, ...
    ] = ()  # what no card could be edited to cover, for the next epoch's new cards
    refused: tuple[
        CardRefusal, ...
    ] = ()  # revisions that were not made; their cards stay as they were


class DomainRevision(NamedTuple):
    """The cards of a domain under one curator, with everything known about them."""

    domain: str  # `universal` for the cards that every domain reads
    cards: tuple[Card, ...]
    impact: Impact
    failed: tuple[FailedProblem, ...]


class LastTry(NamedTuple):
    """Revisions that a rerun did not bear out."""

    revisions: Revisions
    found: InterimAnalysis
    still_wrong: tuple[FailedProblem, ...]


async def revise(
    domain: DomainRevision, last: LastTry | None, context: AdmissionContext
) -> Revisions:
    """Ask the curator about every card of a domain. No card: nothing is asked.

    After a last try, what the rerun made of it is in view, and the reply replaces it. The screen of the context is what
    code holds against a card with another text or another place.
    """
    if not domain.cards:
        return Revisions()
    worked = ("revise_worked",) if any(card.examples for card in domain.cards) else ()
    system = instructions("cards", "revise", *worked)
    user = _page(domain, context.epoch)
    if last:
        system = f"{system}\n\n{template('teacher/refine')}"
        user = "\n\n".join(
            (user, *_tried(last), _failures("Wrong in the rerun", last.still_wrong))
        )
    reading = await context.teacher.ask(
        context.name, system, user, lambda reply: _read(reply, domain, context.screen)
    )
    found = tuple(reading.found.values())
    return Revisions(
        revisions=tuple(thing for thing in found if isinstance(thing, Revision)),
        gaps=tuple(thing for thing in found if isinstance(thing, str))[:MOST_GAPS],
        refused=tuple(bad.refusal() for bad in reading.bad),
    )


def changes(tree: EpistemicTree, revisions: Revisions) -> tuple[Change, ...]:
    """The revisions as changes to a tree. One that the tree does not bear, such as of a card now gone, is left out."""
    wanted: list[Change] = []
    for revision in revisions.revisions:
        try:
            change = (
                _change(tree.card(revision.card_id), revision)
                if revision.card_id in tree
                else None
            )
            wanted += [change] if change and applied(tree, change) != tree else []
        except DataError:  # also of a card that would break a rule
            continue
    return tuple(wanted)


def rewritten(tree: EpistemicTree, change: Change) -> Card | None:
    """The card after it was edited or moved; None for any other change."""
    if isinstance(change, Relocate):
        return applied(tree, change).card(change.card_id)
    return change.card if isinstance(change, Edit) else None


def removes_only(revisions: Revisions) -> bool:
    """Whether nothing is claimed but that some cards do no good."""
    return all(
        revision.action in (Action.KEEP, Action.DEPRECATE)
        for revision in revisions.revisions
    )


def revised(card: Card, revision: Revision) -> Card:
    """The card after an EDIT or RELOCATE; raises `CardError` where it would break a rule of cards.

    A card that says something else has proved nothing yet: its figures and its status begin anew. The curator is shown
    the rule alone, so the examples stay.
    """
    record = card.model_dump(mode="json")
    if revision.difficulty is not None:
        record["difficulty_tag"] = revision.difficulty.value
    if revision.domains:
        record["domain_tags"] = list(revision.domains)
    if revision.routing is not None:
        record["routing_conditions"] = list(revision.routing)
    if revision.payload and revision.payload.strip() != card.rule:
        kept = card.provenance.model_dump(
            mode="json", include={"source", "supporting_problems", "epoch_introduced"}
        )
        payload = with_examples(revision.payload, card.examples)
        record |= {"payload": payload, "helpfulness_score": 0.0, "provenance": kept}
    return card_of(record)


def _change(card: Card, revision: Revision) -> Change | None:
    if revision.action is Action.KEEP or card.status is Status.DEPRECATED:
        return None
    if revision.action is Action.DEPRECATE:
        return Deprecate(card.card_id)
    after = revised(card, revision)
    rewritten = (after.payload, after.routing_conditions) != (
        card.payload,
        card.routing_conditions,
    )
    return (
        Edit(after)
        if rewritten
        else Relocate(card.card_id, after.difficulty_tag, after.domain_tags)
    )


def _read(
    reply: str, domain: DomainRevision, screen: Screen
) -> Reading[Revision | str]:
    """The revisions and gaps of a reply."""
    reading = read_each(reply, REVISION, lambda block: _revision(block, domain, screen))
    gaps, bad_gaps = read_blocks(reply, GAP)
    texts = [one_line(gap.text, REASON_CHARS) for gap in gaps]
    found: dict[str, Revision | str] = {
        **reading.found,
        **{f"gap: {text}": text for text in texts},
    }
    return Reading(
        found, tuple(sorted((*reading.bad, *bad_gaps), key=lambda bad: bad.line))
    )


def _revision(
    block: Block, domain: DomainRevision, screen: Screen
) -> Revision | CardRefusal:
    """What a block decides, or the first thing that speaks against it.

    An EDIT or RELOCATE that writes down what is there already is a KEEP.
    """
    fields = block.fields
    name = block.fields["id"]
    refused = partial(CardRefusal.by_code, name)
    card = next((card for card in domain.cards if card.card_id == name), None)
    if card is None:
        return refused(
            "not_here",
            "no card of this id is in the request; only those can be revised",
        )
    asked = fields["action"].strip(" .`*")
    given = fields.get("difficulty", "")
    routing = fields.get("routing", "")
    action = _choice(Action, asked)
    difficulty = _choice(Difficulty, given)
    if action is None:
        return refused("unknown_action", _no_choice(Action, asked))
    if given and difficulty is None:
        return refused("card_rule", _no_choice(Difficulty, given))
    bare = Revision(
        action=action, card_id=name, reason=one_line(fields["reason"], REASON_CHARS)
    )
    if action is Action.KEEP:
        return bare
    if action is Action.DEPRECATE:
        # A card that was proved to help goes only where it was measured to do harm. Counts of solves prove neither.
        harmful = any(
            lift.card_id == name and lift.high < 0 for lift in domain.impact.lifts
        )
        if card.status is Status.VALIDATED and not harmful:
            return refused(
                "validated",
                "the card has a validated lift, and no measurement says that it harms",
            )
        return bare
    parts = (
        ()
        if routing.lower() == "none"
        else tuple(part.strip() for part in routing.split(";") if part.strip())
    )
    told = {
        "payload": block.text,
        "routing": parts if routing else None,
        "difficulty": difficulty,
    }
    domains = tuple(fields.get("domains", "").replace(",", " ").split())
    revision = bare.model_copy(update={**told, "domains": domains})
    if action is Action.EDIT and not revision.payload and revision.routing is None:
        return refused(
            "wrong_action",
            "an EDIT needs the whole new text under payload, or new routing",
        )
    if action is Action.RELOCATE and difficulty is None and not domains:
        return refused(
            "wrong_action", "a RELOCATE needs the new difficulty, or the new domains"
        )
    try:
        after = revised(card, revision)
    except CardError as error:
        return refused(
            "card_rule",
            f"{error.message.removeprefix(f'card {name!r}: ')}; {error.fix}",
        )
    if after == card:
        return bare.model_copy(update={"action": Action.KEEP})
    moved = (after.difficulty_tag, after.domain_tags) != (
        card.difficulty_tag,
        card.domain_tags,
    )
    if moved is not (action is Action.RELOCATE):
        meant = (
            "moves the card: say RELOCATE"
            if moved
            else "leaves the card where it is: say EDIT"
        )
        return refused(
            "wrong_action", f"{action.value} {meant}, or change what you wrote"
        )
    return screen(after) or revision


def _choice(kind: type[E], given: str) -> E | None:
    return next((each for each in kind if each.value.lower() == given.lower()), None)


def _no_choice(kind: type[E], given: str) -> str:
    use = ", ".join(each.value for each in kind)
    return f"{one_line(given, 40)!r} is no {kind.__name__.lower()}; use one of {use}"


def _page(of: DomainRevision, epoch: int) -> str:
    """The cards with their figures, then the problems still wrong."""
    fires, lifts = of.impact.by_card
    where = "every domain" if of.domain == UNIVERSAL else neutral(of.domain)
    head = f"Domain: {where}\nThis epoch: {epoch}\nCards: {len(of.cards)}"
    cards = (
        _card(card, fires.get(card.card_id), lifts.get(card.card_id))
        for card in of.cards
    )
    return "\n\n".join((head, *cards, _failures("Problems still wrong", of.failed)))


def _card(card: Card, fire: Fire | None, lift: Lift | None) -> str:
    head = (
        f"id: {card.card_id}",
        f"difficulty: {card.difficulty_tag.value}",
        f"domains: {' '.join(card.domain_tags)}",
        f"routing: {'; '.join(card.routing_conditions) or 'none'}",
        f"status: {card.status.value}, introduced in epoch {card.provenance.epoch_introduced}",
        f"payload:\n{card.payload}",
    )
    fired = "Fired: never."
    measured = "Lift: not measured."
    if fire and fire.n_shown:
        tiers = ", ".join(
            f"{tier.value} {fire.tiers[tier]}"
            for tier in TierName
            if tier in fire.tiers
        )
        counts = f"n_shown {fire.n_shown}, shown_correct {fire.shown_correct}, shown_wrong {fire.shown_wrong}"
        fired = f"Fired: {counts} ({tiers}). Problems: {_labels(fire.problems)}."
    if lift:
        interval = f"{100 * lift.effect:+.1f} points [{100 * lift.low:+.1f}, {100 * lift.high:+.1f}]"
        counts = f"{lift.shown} with the card, {lift.hidden} without, {lift.problems} problems"
        measured = f"Lift: {interval} of right attempts, {counts}."
    return "\n".join((fenced("card", "\n".join(head)), fired, measured))


def _failures(title: str, failed: tuple[FailedProblem, ...]) -> str:
    """Problems that no tier delivered, the first ones in full."""
    lines = [f"# {title}: {len(failed)}"]
    for number, failure in enumerate(failed[:MOST_PROBLEMS], 1):
        label = f", {_labels((failure.problem.name,))}"
        parts = [
            numbered(number, failure.problem, PROBLEM_CHARS, label, "none"),
            failure.outcome,
        ]
        for attempt in failure.attempts[:MOST_ATTEMPTS]:
            answer = quoted_line(attempt.answer or "none")
            parts.append(
                f"Wrong attempt at {attempt.tier.value}, answer {answer}. It ends:"
            )
            parts.append(fenced("attempt", attempt.tail[-TAIL_CHARS:] or "(no text)"))
        lines.append("\n".join(parts))
    if len(failed) > MOST_PROBLEMS:
        lines.append(f"And {len(failed) - MOST_PROBLEMS} more.")
    return "\n\n".join(lines)


def _tried(last: LastTry) -> tuple[str, ...]:
    """The last revisions, the texts that were tried, and what the rerun made of them."""
    before = last.revisions
    found = last.found
    lines = [
        f"- {r.card_id}: {r.action.value}. {neutral(r.reason)}"
        for r in before.revisions
    ]
    lines += [
        f"- {neutral(r.card_id)}: not made. {neutral(r.reason)}" for r in before.refused
    ]
    texts = [
        f"{r.card_id} was tried as:\n{neutral(r.payload)}"
        for r in before.revisions
        if r.payload
    ]
    seen = (
        "# The rerun",
        f"Solves compared: {found.n}. Lift: {100 * found.lift:+.1f} points, p {found.p:.3f}.",
        f"Right only with your revisions: {_labels(found.gained)}.",
        f"Wrong only with your revisions: {_labels(found.lost)}.",
        f"Not committed: {neutral(found.reason)}.",
    )
    return "\n".join(("# Your last revisions", *lines)), *texts, "\n".join(seen)


def _labels(names: tuple[str, ...]) -> str:
    shown = [neutral(one_line(name, 60)) for name in names[:MOST_LABELS]]
    return (
        ", ".join(
            (*shown, f"{len(names) - MOST_LABELS} more")
            if len(names) > MOST_LABELS
            else shown
        )
        or "none"
    )
