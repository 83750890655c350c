"""Have the teacher write on admitted cards: demonstrations, wordings and revisions.

A demonstration is a worked example that the solver reads as a turn. A wording is a
problem of the card's kind in another story, by which the card is found; no solver reads
it. The curator, a teacher that rewrites, moves and retires a domain's cards, runs only
with `refine`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from kace.answers.extract import last_boxed
from kace.cards.card import (
    EXAMPLE,
    Card,
    Difficulty,
    Provenance,
    Status,
    read_example,
    with_examples,
)
from kace.cards.tree import Deprecate, Edit
from kace.errors import counted, one_line
from kace.ladder.prompt import (
    card_text,
    fenced,
    neutral,
    quoted_line,
    shortened,
)
from kace.learning import StepResult
from kace.learning.measure import Comparison, Impact
from kace.learning.propose import (
    Proposals,
    format_failure,
    read_clauses,
    read_names,
)
from kace.learning.teacher import (
    Block,
    CardRefusal,
    FailedProblem,
    Grammar,
    Reading,
    Screen,
    TeacherStep,
    instructions,
    read_blocks,
    read_by_card,
)
from kace.problems import Problem

MAX_SHOWN = 2  # problems a card came from, shown to the teacher with it
MAX_PROBLEM_CHARS = 1_000
EXAMPLES = Grammar("example", name="id", required=("id", "text"), text="text")
WORDINGS = Grammar("wordings", "id", ("id", "text"), text="text")
WORDINGS_AT_ONCE = 320  # a reply of 16,000 tokens has room for so many


class Writing(NamedTuple):
    """Something that the teacher writes for each card of a request."""

    kind: str  # the name of its instructions
    grammar: Grammar
    wanted: str
    problems: Callable[[Card], Iterable[str]]  # shown with a card
    add: Callable[[Card, Block], Card | CardRefusal]  # or `ValueError`


async def write(
    cards: Sequence[Card], writing: Writing, context: TeacherStep
) -> Proposals:
    """Ask for something for each card, in one request."""
    parts = []
    for card in cards:
        parts.append(fenced("card", card_text(card)))
        for text in writing.problems(card):
            parts[-1] += "\n" + fenced("problem", neutral(text))
    parts.append(f"Write {writing.wanted} for each of these cards.")
    reading = await context.teacher.ask(
        context.name,
        instructions(writing.kind),
        parts,
        lambda reply: read_by_card(reply, writing.grammar, cards, writing.add),
    )
    return Proposals(cards=tuple(reading.found.values()), refused=reading.bad)


def demonstrations(
    count: int, problems: Mapping[str, Problem], screen: Screen
) -> Writing:
    """Return how so many examples are written.

    `problems` are the training problems by the names that cards know them by.
    """

    def sources(card: Card) -> list[str]:
        found = map(problems.get, card.provenance.supporting_problems)
        known = list(filter(None, found))[:MAX_SHOWN]
        return [shortened(each.text, MAX_PROBLEM_CHARS) for each in known]

    def add(card: Card, block: Block) -> Card | CardRefusal:
        parts = f"\n{block['text']}\n".split(f"\n{EXAMPLE}\n")
        found = [read_example(part) for part in parts if part.strip()]
        if len(found) != count:
            raise ValueError(
                f"it holds {len(found)} examples, and {count} are asked for"
            )
        if not all(last_boxed(example.worked) for example in found):
            raise ValueError(
                r"the solution does not end with its answer in \boxed{}"
            )
        shown = card.illustrated(found)
        return screen(shown) or shown

    wanted = f"{counted(count, 'example')}, each with a story of its own,"
    return Writing("illustrate", EXAMPLES, wanted, sources, add)


def wordings(count: int, retells: Callable[[str], bool]) -> Writing:
    """Return how so many wordings are written, without those that retell a problem.

    A card with fewer than half of them is in the second round again.
    """

    def add(card: Card, block: Block) -> Card:
        lines = filter(None, map(str.strip, block["text"].split("\n")))
        found = tuple(dict.fromkeys(lines))[:count]
        if 2 * len(found) < count:
            raise ValueError(
                f"it holds {len(found)} wordings, and {count} are asked for"
            )
        kept = tuple(line for line in found if not retells(line))
        return card.revised(wordings=kept)

    return Writing(
        "wordings",
        WORDINGS,
        f"{count} wordings",
        lambda card: [example.problem for example in card.examples],
        add,
    )


# The curator: what it is shown of a domain's cards, and what code checks of its reply.

MOST_GAPS = 20
REASON_CHARS = 300
MOST_PROBLEMS = 30  # problems shown in full; the rest are counted
MOST_ATTEMPTS = 2
TAIL_CHARS = 600
MOST_LABELS = 12

REVISION = Grammar(
    "revision",
    "id",
    ("id", "action", "reason"),
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
    """The curator's decision about one card."""

    action: Action
    card_id: str
    reason: str
    card: Card | None = None  # after an EDIT or RELOCATE


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
    """Ask the curator about every card of a domain.

    After a last try its rerun is in view, and the reply replaces it.
    """
    kinds = ["cards", "revise"]
    if any(card.examples for card in domain.cards):
        kinds.append("revise_worked")
    shown = [_format_domain(domain, context.epoch)]
    if last:
        kinds.append("refine")
        shown.append(_format_last_try(last))
        shown.append(_format_failures("Wrong in the rerun", last.still_wrong))
    gaps: dict[str, None] = {}

    def read(reply: str) -> Reading[Revision]:
        for gap in read_blocks(reply, GAP).found.values():
            gaps[one_line(gap["text"], REASON_CHARS)] = None
        return read_revisions(reply, domain, context.screen)

    reading = await context.teacher.ask(
        context.name, instructions(*kinds), shown, read
    )
    return Revisions(
        revisions=tuple(reading.found.values()),
        gaps=tuple(gaps)[:MOST_GAPS],
        refused=reading.bad,
    )


def revision_changes(revisions: Revisions) -> tuple[Edit | Deprecate, ...]:
    """Return the revisions as changes to a tree."""
    wanted: list[Edit | Deprecate] = []
    for revision in revisions.revisions:
        if revision.action is Action.DEPRECATE:
            wanted.append(Deprecate(revision.card_id))
        elif revision.card:
            wanted.append(Edit(revision.card))
    return tuple(wanted)


def read_revisions(
    reply: str, domain: DomainCards, screen: Screen
) -> Reading[Revision]:
    """Return the revisions of a reply. A change that changes nothing is a KEEP."""

    def make(card: Card, block: Block) -> Revision | CardRefusal:
        action = Action(block["action"].strip(" .`*").upper())
        after = card
        if action is Action.DEPRECATE:
            lift = domain.impact.lifts.get(card.card_id)
            harms = lift is not None and lift.high < 0
            if card.status is Status.VALIDATED and not harms:
                raise ValueError(
                    "the card has a validated lift, and was not measured to harm"
                )
        elif action is not Action.KEEP:
            after = revised_card(card, block)
            if after == card:
                action = Action.KEEP
        changed = None if after == card else after
        refusal = screen(changed) if changed else None
        return refusal or Revision(
            action=action,
            card_id=card.card_id,
            reason=one_line(block["reason"], REASON_CHARS),
            card=changed,
        )

    return read_by_card(reply, REVISION, domain.cards, make, every=False)


def revised_card(card: Card, block: Block) -> Card:
    """Return the card after an EDIT or RELOCATE; raises `CardError` if it is invalid.

    A card with another text has proved nothing yet: its figures and its status begin
    anew. The curator is shown the rule alone, so the examples stay.
    """
    fields: dict[str, object] = {}
    difficulty = block.get("difficulty")
    if difficulty:
        fields["difficulty_tag"] = Difficulty(difficulty.lower())
    domains = block.get("domains")
    if domains:
        fields["domain_tags"] = read_names(domains)
    routing = block.get("routing")
    if routing:
        none = routing.lower() == "none"
        fields["routing_conditions"] = () if none else read_clauses(routing)
    rule = block["payload"]
    if rule not in ("", card.rule):
        known = card.provenance
        fields["payload"] = with_examples(rule, card.examples)
        fields["helpfulness_score"] = 0.0
        fields["provenance"] = Provenance(
            source=known.source,
            supporting_problems=known.supporting_problems,
            epoch_introduced=known.epoch_introduced,
        )
    return card.revised(**fields)


def _format_domain(of: DomainCards, epoch: int) -> str:
    """Return the cards with their figures, then the problems still wrong."""
    parts = [
        f"Domain: {neutral(of.domain)}\nThis epoch: {epoch}\nCards: {len(of.cards)}"
    ]
    for card in of.cards:
        parts.append(_format_card(card, of.impact))
    parts.append(_format_failures("Problems still wrong", of.failed))
    return "\n\n".join(parts)


def _format_card(card: Card, impact: Impact) -> str:
    fire = impact.fires.get(card.card_id)
    introduced = f"introduced in epoch {card.provenance.epoch_introduced}"
    head = (
        f"id: {card.card_id}",
        f"difficulty: {card.difficulty_tag.value}",
        f"domains: {' '.join(card.domain_tags)}",
        f"routing: {'; '.join(card.routing_conditions) or 'none'}",
        f"status: {card.status.value}, {introduced}",
        f"lift: {card.provenance.validated_lift or 'not measured'}",
        f"payload:\n{card.payload}",
    )
    fired = "Fired: never."
    if fire:
        tiers = ", ".join(f"{tier} {n}" for tier, n in fire.tiers.items())
        fired = (
            f"Fired: n_shown {fire.n_shown}, shown_correct {fire.shown_correct}, "
            f"shown_wrong {fire.shown_wrong} ({tiers}). "
            f"Problems: {_format_labels(fire.problems)}."
        )
    return "\n".join((fenced("card", "\n".join(head)), fired))


def _format_failures(title: str, failed: Sequence[FailedProblem]) -> str:
    """Return the number of problems that no tier delivered, and the first ones."""
    parts = [f"# {title}: {len(failed)}"]
    for number, failure in enumerate(failed[:MOST_PROBLEMS], 1):
        label = f", {_format_labels([failure.problem.name])}"
        few = failure._replace(attempts=failure.attempts[:MOST_ATTEMPTS])
        parts.append(format_failure(number, few, label, TAIL_CHARS))
        answer = quoted_line(failure.record.answer or "none")
        parts.append(f"Final answer: {answer}")
    return "\n\n".join(parts)


def _format_last_try(last: LastTry) -> str:
    """Return the last revisions, the texts that were tried, and the rerun's result."""
    found = last.comparison
    lines = ["# Your last revisions"]
    for revision in last.revisions.revisions:
        reason = neutral(revision.reason)
        lines.append(f"- {revision.card_id}: {revision.action.value}. {reason}")
        if revision.card:
            lines.append(f"It was tried as:\n{neutral(revision.card.rule)}")
    lines += (
        "\n# The rerun",
        f"Right only with your revisions: {_format_labels(found.gained)}.",
        f"Wrong only with your revisions: {_format_labels(found.lost)}.",
        f"Not committed: {neutral(found.reason)}.",
    )
    return "\n".join(lines)


def _format_labels(names: Sequence[str]) -> str:
    shown = [neutral(one_line(name, 60)) for name in names[:MOST_LABELS]]
    return ", ".join(shown) or "none"
