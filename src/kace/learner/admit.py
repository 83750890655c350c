"""GateJudge: which proposed cards may enter the tree. Code first, then one teacher request for what is left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from kace.learner.blocks import BadBlock, Block, Grammar, read_blocks
from kace.learner.cell import Cell
from kace.learner.leak import Leaks, said_by
from kace.learner.phrases import benchmark_talk, is_vague, orders
from kace.learner.plain import visible
from kace.learner.propose import Lesson, place
from kace.learner.teacher import Reading
from kace.learner.verdicts import Proposals, Refused, Rulings
from kace.redact import one_line
from kace.retrieval.fence import fenced, neutral
from kace.retrieval.prompt import card_text, template
from kace.tree.card import BODY_CAPS, UNIVERSAL, Card, Difficulty
from kace.tree.card_text import line_count

MAX_REASON = 400
"""Characters that are kept of a reason."""
OPEN_RULES = (
    "wrong",
    "answer_leak",
    "instance_overfit",
    "benchmark_talk",
    "vague",
    "wrong_domain",
    "wrong_tier",
    "duplicate",
)
"""What the teacher may reject a card for."""

RULING = Grammar("ruling", name="id", required=("id", "verdict"), optional=("rule", "reason"))


@dataclass(frozen=True, slots=True)
class Desk:
    """What a card is held against."""

    leaks: Leaks
    domains: tuple[str, ...]
    """The registry's names."""
    lesson: Lesson


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the teacher decided about a card."""

    verdict: Literal["admit", "reject"]
    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Case:
    card: Card
    cell: Cell
    leaks: Leaks
    domains: Sequence[str]


def screen(card: Card, cell: Cell, leaks: Leaks, domains: Sequence[str]) -> Refused | None:
    """The first rule of code that a card breaks at a cell; None where it breaks none."""
    case = _Case(card, cell, leaks, domains)
    for rule, broken in RULES.items():
        if reason := broken(case):
            return Refused(card_id=card.card_id, by="code", rule=rule, reason=one_line(reason, MAX_REASON))
    if leak := leaks.find(card):
        return Refused(card_id=card.card_id, by="code", rule=leak.rule, reason=one_line(leak.reason, MAX_REASON))
    return None


async def admit(proposals: Proposals, cell: Cell, desk: Desk) -> Rulings:
    """The proposed cards that both code and the teacher let through, and the others with who refused them and why.

    No ruling can admit what code refused: the teacher is only asked about the rest, in one request, or none where
    nothing is left. A card without a ruling is refused. Blocks that were no cards are not listed again.
    """
    refused: list[Refused] = []
    open_cards: dict[str, Card] = {}
    for card in proposals.cards:
        found = screen(card, cell, desk.leaks, desk.domains) or _repeated(card, open_cards)
        if found:
            refused.append(found)
        else:
            open_cards.setdefault(card.card_id, card)
    if not open_cards:
        return Rulings(refused=tuple(refused))
    user = "\n\n".join((place(cell), *(fenced("card", card_text(card)) for card in open_cards.values())))
    lesson = desk.lesson
    reading = await lesson.teacher.ask(
        lesson.name, judge_system(), user, lambda reply: read_rulings(reply, tuple(open_cards))
    )
    admitted: list[Card] = []
    for name, card in open_cards.items():
        ruling = reading.found.get(name, _NO_RULING)
        if ruling.verdict == "admit":
            admitted.append(card)
        else:
            refused.append(Refused(card_id=name, by="teacher", rule=ruling.rule, reason=ruling.reason))
    return Rulings(admitted=tuple(admitted), refused=tuple(refused))


def judge_system() -> str:
    """What all requests for rulings share."""
    return "\n\n".join(template(f"teacher/{name}") for name in ("preface", "judge"))


def read_rulings(reply: str, names: Sequence[str]) -> Reading[Ruling]:
    """The rulings of a reply on cards of these names; a card without one is listed, so that it is asked for again."""
    blocks, bad = read_blocks(reply, RULING)
    found: dict[str, Ruling] = {}
    wrong = list(bad)
    for block in blocks:
        name = block.fields["id"]
        try:
            ruling = _ruling(block, names)
        except ValueError as error:
            wrong.append(BadBlock.of(block, name, str(error)))
        else:
            found[name] = ruling
    listed = {each.name for each in wrong}
    for name in listed & found.keys():  # two blocks on one card: neither counts
        del found[name]
    missing = [name for name in names if name not in found and name not in listed]
    wrong += [BadBlock("ruling", 0, name, "there is no ruling on this card", "") for name in missing]
    return Reading(found, tuple(wrong))


def _ruling(block: Block, names: Sequence[str]) -> Ruling:
    if block.fields["id"] not in names:
        raise ValueError("no card of that id was shown; copy the id between the square brackets")
    reason = one_line(neutral(block.fields.get("reason", "")), MAX_REASON)
    match block.fields["verdict"].lower():
        case "admit":
            return Ruling("admit", "", reason)
        case "reject":
            rule = block.fields.get("rule", "")
            if rule not in OPEN_RULES:
                raise ValueError(f"a rejection names one of the rules {', '.join(OPEN_RULES)}")
            if not reason:
                raise ValueError("a rejection gives its reason")
            return Ruling("reject", rule, reason)
    raise ValueError("the verdict is admit or reject")


_NO_RULING = Ruling("reject", "no_ruling", "the teacher gave no usable ruling on it")


def _repeated(card: Card, others: Mapping[str, Card]) -> Refused | None:
    if card.card_id not in others:
        return None
    reason = "another card proposed here has this id"
    return Refused(card_id=card.card_id, by="code", rule="repeated_id", reason=reason)


def _text(case: _Case) -> str:
    return visible("\n".join((said_by(case.card), *(example.text for example in case.card.examples))))


def _body_cap(case: _Case) -> str:
    lines = line_count(case.card.body)
    cap = BODY_CAPS[case.card.difficulty_tag]
    return f"its body has {lines} lines, {case.card.difficulty_tag.value} allows {cap}" if lines > cap else ""


def _wrong_domain(case: _Case) -> str:
    tags = case.card.domain_tags
    for tag in tags:
        if tag not in (UNIVERSAL, *case.domains):
            return f"there is no domain {tag!r}"
    at_home = case.cell.domain in tags or UNIVERSAL in tags
    return "" if at_home else f"it belongs to {', '.join(tags)}, and was proposed for {case.cell.domain}"


def _wrong_tier(case: _Case) -> str:
    own, given = case.cell.difficulty, case.card.difficulty_tag
    right = given in (own, Difficulty.UNIVERSAL)
    return (
        "" if right else f"its difficulty is {given.value}, and {case.cell.tier.value} reads {own.value} and universal"
    )


def _benchmark_talk(case: _Case) -> str:
    found = benchmark_talk(_text(case))
    return f"it speaks of {found!r}, which is about tests and not about mathematics" if found else ""


def _orders(case: _Case) -> str:
    found = orders(_text(case))
    return f"it orders its reader about: {found!r}" if found else ""


def _vague(case: _Case) -> str:
    return (
        "no sentence of its body can be acted on: no formula, number, object or rule"
        if is_vague(case.card.body)
        else ""
    )


RULES: Mapping[str, Callable[[_Case], str]] = MappingProxyType(
    {
        "body_cap": _body_cap,
        "wrong_domain": _wrong_domain,
        "wrong_tier": _wrong_tier,
        "benchmark_talk": _benchmark_talk,
        "orders": _orders,
        "vague": _vague,
    }
)
"""The rules that a card breaks by itself or by its place, in the order they are tried; then come those of `Leaks`."""
