"""ReflectAndReviseCards: what a curator would change about a domain's cards, checked before anything changes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from kace.errors import DataError
from kace.learner.blocks import BadBlock, Block, Grammar, read_blocks
from kace.learner.commit import Look
from kace.learner.failure import Failure
from kace.learner.propose import malformed, system
from kace.learner.teacher import Reading
from kace.learner.verdicts import Kept, Refused
from kace.learner.ward import Ward, failures_page, labels, ward_page
from kace.redact import one_line
from kace.retrieval.fence import neutral
from kace.retrieval.prompt import template
from kace.tree.card import Card, CardError, Difficulty, Status, card_of
from kace.tree.card_text import with_examples
from kace.tree.changes import Change, Deprecate, Edit, Relocate, applied
from kace.tree.tree import EpistemicTree

__all__ = ["Action", "Revision", "Revisions", "Ward", "changes", "refine", "removes_only", "revise"]

MOST_GAPS = 20
REASON_CHARS = 300

REVISION = Grammar(
    "revision",
    name="id",
    required=("id", "action", "reason"),
    optional=("difficulty", "domains", "routing", "payload"),
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
    gaps: tuple[str, ...] = ()
    """What no card could be edited to cover, for the next epoch's new cards."""
    refused: tuple[Refused, ...] = ()
    """Revisions that were not made. Their cards stay as they were."""


class _Unfit(Exception):
    """A revision that cannot be made."""

    def __init__(self, card_id: str, rule: str, reason: str) -> None:
        super().__init__(reason)
        self.refused = Refused(card_id=card_id, by="code", rule=rule, reason=reason)


async def revise(ward: Ward) -> Revisions:
    """Ask the curator about every card of a ward. No card: nothing is asked."""
    return await _ask(ward, system("revise"), ward_page(ward)) if ward.cards else Revisions()


async def refine(ward: Ward, before: Revisions, look: Look, still_wrong: tuple[Failure, ...]) -> Revisions:
    """Ask again, with what the rerun made of the last revisions in view. The reply replaces them."""
    if not ward.cards:
        return Revisions()
    user = "\n\n".join((ward_page(ward), _tried(before), _seen(look), failures_page("Wrong in the rerun", still_wrong)))
    return await _ask(ward, f"{system('revise')}\n\n{template('teacher/refine')}", user)


def changes(tree: EpistemicTree, revisions: Revisions) -> tuple[Change, ...]:
    """The revisions as changes to a tree. One that the tree does not bear, such as of a card now gone, is left out."""
    wanted = (_change(tree, revision) for revision in revisions.revisions if revision.card_id in tree)
    return tuple(change for change in wanted if change is not None and _borne(tree, change))


def removes_only(revisions: Revisions) -> bool:
    """Whether nothing is claimed but that some cards do no good."""
    return all(revision.action in (Action.KEEP, Action.DEPRECATE) for revision in revisions.revisions)


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
        kept = card.provenance.model_dump(mode="json", include={"source", "supporting_problems", "epoch_introduced"})
        payload = with_examples(revision.payload, card.examples)
        record |= {"payload": payload, "helpfulness_score": 0.0, "provenance": kept}
    return card_of(record)


async def _ask(ward: Ward, system: str, user: str) -> Revisions:
    unfit: dict[tuple[str, str], Refused] = {}
    teacher = ward.lesson.teacher
    reading = await teacher.ask(ward.lesson.name, system, user, lambda reply: _read(reply, ward, unfit))
    found = tuple(reading.found.values())
    return Revisions(
        revisions=tuple(thing for thing in found if isinstance(thing, Revision)),
        gaps=tuple(thing for thing in found if isinstance(thing, str))[:MOST_GAPS],
        refused=tuple(unfit.get((bad.name, bad.reason)) or malformed(bad) for bad in reading.bad),
    )


def _read(reply: str, ward: Ward, unfit: dict[tuple[str, str], Refused]) -> Reading[Revision | str]:
    """The revisions and gaps of a reply. Why code refused one is noted in `unfit`."""
    blocks, bad = read_blocks(reply, REVISION)
    gaps, bad_gaps = read_blocks(reply, GAP)
    cards = {card.card_id: card for card in ward.cards}
    found: dict[str, Revision | str] = {}
    refused = [*bad, *bad_gaps]
    for block in blocks:
        try:
            revision = _revision(block, cards, ward)
            found[revision.card_id] = revision
        except _Unfit as error:
            listed = BadBlock.of(block, block.fields["id"], error.refused.reason)
            unfit[listed.name, listed.reason] = error.refused
            refused.append(listed)
    for gap in gaps:
        text = one_line(gap.text, REASON_CHARS)
        found[f"gap: {text}"] = text
    return Reading(found, tuple(sorted(refused, key=lambda bad: bad.line)))


def _revision(block: Block, cards: Mapping[str, Card], ward: Ward) -> Revision:
    fields = block.fields
    name = one_line(fields["id"], 64)
    card = cards.get(name)
    if card is None:
        raise _Unfit(name, "not_here", "no card of this id is in the request; only those can be revised")
    revision = Revision(
        action=_action(name, fields["action"]),
        card_id=name,
        reason=one_line(fields["reason"], REASON_CHARS),
        payload=block.text,
        routing=_routing(fields.get("routing", "")),
        difficulty=_difficulty(name, fields.get("difficulty", "")),
        domains=tuple(fields.get("domains", "").replace(",", " ").split()),
    )
    if revision.action is Action.DEPRECATE:
        _check_harm(card, ward)
    return _bare(revision) if revision.action in (Action.KEEP, Action.DEPRECATE) else _checked(card, revision, ward)


def _checked(card: Card, revision: Revision, ward: Ward) -> Revision:
    """An EDIT or RELOCATE that can be made. One that writes down what is there already is a KEEP."""
    if revision.action is Action.EDIT and not revision.payload and revision.routing is None:
        raise _Unfit(card.card_id, "wrong_action", "an EDIT needs the whole new text under payload, or new routing")
    if revision.action is Action.RELOCATE and revision.difficulty is None and not revision.domains:
        raise _Unfit(card.card_id, "wrong_action", "a RELOCATE needs the new difficulty, or the new domains")
    try:
        after = revised(card, revision)
    except CardError as error:
        what = error.message.removeprefix(f"card {card.card_id!r}: ")
        raise _Unfit(card.card_id, "card_rule", f"{what}; {error.fix}") from None
    if after == card:
        return _bare(revision, Action.KEEP)
    moved = (after.difficulty_tag, after.domain_tags) != (card.difficulty_tag, card.domain_tags)
    if moved is not (revision.action is Action.RELOCATE):
        told = "moves the card: say RELOCATE" if moved else "leaves the card where it is: say EDIT"
        raise _Unfit(card.card_id, "wrong_action", f"{revision.action.value} {told}, or change what you wrote")
    if refused := ward.screen(after):
        raise _Unfit(card.card_id, refused.rule, refused.reason)
    return revision


def _check_harm(card: Card, ward: Ward) -> None:
    """A card that was proved to help goes only where it was measured to do harm. Counts of solves prove neither."""
    harmful = any(lift.card_id == card.card_id and lift.high < 0 for lift in ward.impact.lifts)
    if card.status is Status.VALIDATED and not harmful:
        raise _Unfit(card.card_id, "validated", "the card has a validated lift, and no measurement says that it harms")


def _bare(revision: Revision, action: Action | None = None) -> Revision:
    return Revision(action=action or revision.action, card_id=revision.card_id, reason=revision.reason)


def _action(name: str, text: str) -> Action:
    try:
        return Action(text.strip(" .`*").upper())
    except ValueError:
        known = ", ".join(action.value for action in Action)
        raise _Unfit(name, "unknown_action", f"{one_line(text, 40)!r} is no action; use one of {known}") from None


def _difficulty(name: str, text: str) -> Difficulty | None:
    try:
        return Difficulty(text.lower()) if text else None
    except ValueError:
        known = ", ".join(difficulty.value for difficulty in Difficulty)
        raise _Unfit(name, "card_rule", f"{one_line(text, 40)!r} is no difficulty; use one of {known}") from None


def _routing(text: str) -> tuple[str, ...] | None:
    if not text:
        return None
    return () if text.lower() == "none" else tuple(part.strip() for part in text.split(";") if part.strip())


def _change(tree: EpistemicTree, revision: Revision) -> Change | None:
    card = tree.card(revision.card_id)
    if revision.action is Action.KEEP or card.status is Status.DEPRECATED:
        return None
    if revision.action is Action.DEPRECATE:
        return Deprecate(card.card_id)
    try:
        after = revised(card, revision)
    except CardError:
        return None
    placed = Relocate(card.card_id, after.difficulty_tag, after.domain_tags)
    rewritten = (after.payload, after.routing_conditions) != (card.payload, card.routing_conditions)
    return Edit(after) if rewritten else placed


def _borne(tree: EpistemicTree, change: Change) -> bool:
    try:
        return applied(tree, change) != tree
    except DataError:
        return False


def _tried(before: Revisions) -> str:
    lines = [f"- {r.card_id}: {r.action.value}. {neutral(r.reason)}" for r in before.revisions]
    refused = [f"- {neutral(r.card_id)}: not made. {neutral(r.reason)}" for r in before.refused]
    texts = [f"{r.card_id} was tried as:\n{neutral(r.payload)}" for r in before.revisions if r.payload]
    return "\n\n".join(("\n".join(("# Your last revisions", *lines, *refused)), *texts))


def _seen(look: Look) -> str:
    return "\n".join(
        (
            "# The rerun",
            f"Solves compared: {look.n}. Lift: {100 * look.lift:+.1f} points, p {look.p:.3f}.",
            f"Right only with your revisions: {labels(look.gained)}.",
            f"Wrong only with your revisions: {labels(look.lost)}.",
            f"Not committed: {neutral(look.reason)}.",
        )
    )
