"""GateJudge: which proposed cards may enter the tree, and their worked examples. Code first, then the teacher."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from kace.answers.exact import Number
from kace.answers.extract import last_boxed
from kace.answers.normalize import normal_form
from kace.answers.parse import exact_value
from kace.cards.card import (
    BODY_CAPS,
    EXAMPLE,
    UNIVERSAL,
    Card,
    Difficulty,
    Example,
    line_count,
    read_example,
)
from kace.errors import one_line
from kace.ladder.prompt import card_text, fenced, neutral, shortened
from kace.learning.blocks import MAX_REASON, Block, CardRefusal, Grammar
from kace.learning.leakage import Leaks, said_by
from kace.learning.propose import (
    EXAMPLE_ID,
    AdmissionContext,
    Proposals,
    TreeCell,
    place,
)
from kace.learning.steps import Kept
from kace.learning.teacher import Reading, instructions, read_each
from kace.learning.text import banned_phrases, is_vague, visible
from kace.problems import Problem

_RULES = "wrong answer_leak instance_overfit benchmark_talk vague wrong_domain wrong_tier duplicate"
_RULES += " wrong_example other_rule"  # of the demonstrations
_EQUATION = re.compile(
    r"(?<![^\s:,;=])-?[\d(][\d ()+*/^.-]*(?:= *[\d(-][\d ()+*/^.-]*)+(?![\w%{\\]| ?[-+*/^(])"
)
"""A chain of equal expressions in nothing but numbers; the first also finds the numbers at the end of a longer one."""
_UNITS = ("remainder", "percent", "per cent", "%")
_DECIMAL = re.compile(r"-?\d*\.(\d{2,})\Z")
_ENDS = re.compile(r"[\d)]$")
OPEN_RULES = tuple(_RULES.split())  # what the teacher may reject a card for
MAX_SHOWN = 2  # problems that a card came from, as the teacher sees them when it writes examples
MAX_PROBLEM_CHARS = 1_000

RULING = Grammar(
    "ruling", name="id", required=("id", "verdict"), optional=("rule", "reason")
)
EXAMPLES = Grammar("example", name="id", required=("id", "text"), text="text")
NOT_SHOWN = "no card of that id was shown; copy the id between the square brackets"


class Rulings(Kept):
    """Cards that may enter the tree, and those that may not."""

    admitted: tuple[Card, ...] = ()
    refused: tuple[CardRefusal, ...] = ()


class Demonstrations(Kept):
    """Cards after their examples were asked for, and the examples that could not be used."""

    cards: tuple[Card, ...] = ()
    refused: tuple[CardRefusal, ...] = ()


def screen(
    card: Card, cell: TreeCell, leaks: Leaks, domains: Sequence[str]
) -> CardRefusal | None:
    """The first rule of code that a card breaks at a cell; None where it breaks none."""
    broken = next(_broken_rules(card, cell, domains), None)
    return CardRefusal.by_code(card.card_id, *broken) if broken else leaks.find(card)


async def admit(
    proposals: Proposals, cell: TreeCell, context: AdmissionContext
) -> Rulings:
    """The proposed cards that both code and the teacher let through, and the others with who refused them and why.

    No ruling can admit what code refused: the teacher is only asked about the rest, in one request, or none where
    nothing is left. A card without a ruling is refused. Blocks that were no cards are not listed again.
    """
    refused: list[CardRefusal] = []
    waiting: dict[str, Card] = {}
    for card in proposals.cards:
        if found := context.screen(card):
            refused.append(found)
        elif card.card_id in waiting:
            refused.append(
                CardRefusal.by_code(
                    card.card_id,
                    "repeated_id",
                    "another card proposed here has this id",
                )
            )
        else:
            waiting[card.card_id] = card
    if not waiting:
        return Rulings(refused=tuple(refused))
    worked = (
        ("judge_worked",) if any(card.examples for card in waiting.values()) else ()
    )
    shown = (
        "\n".join((card_text(card), *(neutral(e.text) for e in card.examples)))
        for card in waiting.values()
    )
    user = "\n\n".join((place(cell), *(fenced("card", text) for text in shown)))
    reading = await context.teacher.ask(
        context.name,
        instructions("judge", *worked),
        user,
        lambda reply: read_rulings(reply, tuple(waiting)),
    )
    admitted: list[Card] = []
    for name, card in waiting.items():
        rule, reason = reading.found.get(
            name, ("no_ruling", "the teacher gave no usable ruling on it")
        )
        if rule:
            refused.append(
                CardRefusal(card_id=name, by="teacher", rule=rule, reason=reason)
            )
        else:
            admitted.append(card)
    return Rulings(admitted=tuple(admitted), refused=tuple(refused))


def read_rulings(reply: str, names: Sequence[str]) -> Reading[tuple[str, str]]:
    """The rule and reason of each rejection, no rule where a card is admitted.

    A card of these names without a ruling is listed, so that it is asked for again.
    """

    def make(block: Block) -> tuple[str, str]:
        verdict = block.fields["verdict"].lower()
        rule = block.fields.get("rule", "")
        reason = one_line(neutral(block.fields.get("reason", "")), MAX_REASON)
        if block.fields["id"] not in names:
            raise ValueError(NOT_SHOWN)
        if verdict == "admit":
            return "", reason
        if verdict != "reject":
            raise ValueError("the verdict is admit or reject")
        if rule not in OPEN_RULES:
            raise ValueError(
                f"a rejection names one of the rules {', '.join(OPEN_RULES)}"
            )
        if not reason:
            raise ValueError("a rejection gives its reason")
        return rule, reason

    reading = read_each(reply, RULING, make)
    twice = {bad.name for bad in reading.bad}  # two blocks on one card: neither counts
    found = {
        name: ruling for name, ruling in reading.found.items() if name not in twice
    }
    return replace(reading, found=found).expecting(
        names, "there is no ruling on this card"
    )


def _broken_rules(
    card: Card, cell: TreeCell, domains: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """The rules that a card breaks by itself or by its place, with the reasons."""
    given = card.difficulty_tag
    tags = card.domain_tags
    lines = line_count(card.body)
    cap = BODY_CAPS[given]
    if lines > cap:
        yield "body_cap", f"its body has {lines} lines, {given.value} allows {cap}"
    for tag in tags:
        if tag not in (UNIVERSAL, *domains):
            yield "wrong_domain", f"there is no domain {tag!r}"
    if cell.domain not in tags and UNIVERSAL not in tags:
        yield (
            "wrong_domain",
            f"it belongs to {', '.join(tags)}, and was proposed for {cell.domain}",
        )
    if given not in (cell.difficulty, Difficulty.UNIVERSAL):
        reads = f"{cell.tier.value} reads {cell.difficulty.value} and universal"
        yield "wrong_tier", f"its difficulty is {given.value}, and {reads}"
    text = visible(
        "\n".join((said_by(card), *(example.text for example in card.examples)))
    )
    yield from banned_phrases(text)
    if is_vague(card.body):
        yield (
            "vague",
            "no sentence of its body can be acted on: no formula, number, object or rule",
        )


async def demonstrate(
    cards: Sequence[Card],
    count: int,
    problems: Mapping[str, Problem],
    context: AdmissionContext,
) -> Demonstrations:
    """Ask for `count` examples of each card in one request. A card whose examples code refuses stays without.

    `problems` are the training problems by the names that cards know them by.
    """
    if not cards:
        return Demonstrations()
    shown: list[str] = []
    for card in cards:
        support = [
            problems[name]
            for name in card.provenance.supporting_problems
            if name in problems
        ][:MAX_SHOWN]
        told = (
            neutral(shortened(problem.text, MAX_PROBLEM_CHARS)) for problem in support
        )
        shown.append(
            "\n".join(
                (
                    fenced("card", card_text(card)),
                    *(fenced("problem", text) for text in told),
                )
            )
        )
    known = {card.card_id: card for card in cards}
    each = (
        "one example"
        if count == 1
        else f"{count} examples, each with a story of its own,"
    )
    user = "\n\n".join((*shown, f"Write {each} for each of these cards."))
    reading = await context.teacher.ask(
        context.name,
        instructions("illustrate"),
        user,
        lambda reply: read_examples(reply, known, count, context),
    )
    return Demonstrations(
        cards=tuple(reading.found.get(card.card_id, card) for card in cards),
        refused=tuple(bad.refusal(quote=True) for bad in reading.bad),
    )


def read_examples(
    reply: str, known: Mapping[str, Card], count: int, context: AdmissionContext
) -> Reading[Card]:
    """The cards of a reply with their examples; a card without any is listed, so that it is asked for again."""

    def make(block: Block) -> Card | CardRefusal:
        name = block.fields["id"]
        if name == EXAMPLE_ID or name not in known:
            raise ValueError(NOT_SHOWN)
        parts = [
            part for part in f"\n{block.text}\n".split(f"\n{EXAMPLE}\n") if part.strip()
        ]
        if len(parts) != count:
            raise ValueError(
                f"it holds {len(parts)} examples, and {count} are asked for"
            )
        card = known[name].illustrated([_example(part) for part in parts])
        return context.screen(card) or card

    reading = read_each(reply, EXAMPLES, make)
    return reading.expecting(known, "there is no example for this card")


def _example(text: str) -> Example:
    example = read_example(text)
    if example is None:
        raise ValueError("an example is a problem, a line `Worked:` and a solution")
    if not last_boxed(example.worked):
        raise ValueError(r"the solution does not end with its answer in \boxed{}")
    if wrong := false_equation(example.worked):
        raise ValueError(f"it writes {one_line(wrong, 60)!r}, which is false")
    return example


def false_equation(worked: str) -> str | None:
    """Return the first equation between numbers that does not hold, of those that code can recompute."""
    for found in _EQUATION.finditer(worked):
        sides = [side.strip(" .") for side in found[0].split("=")]
        after = worked[found.end() :].lstrip(" ").lower()
        if (
            not re.search(r"[-+*/^]", sides[0])
            or not all(map(_ENDS.search, sides))
            or after.startswith(_UNITS)
        ):
            continue  # a number that a unit or a variable belongs to, or a division with remainder
        if _inside(worked, found.start()):
            continue
        if any(_differ(left, right) for left, right in pairwise(sides)):
            return " = ".join(sides)
    return None


def _inside(worked: str, start: int) -> bool:
    """Whether an expression goes on to the left of a place: by an operator, or by what the minus there takes from."""
    before = worked[:start].rstrip(" ")
    return bool(
        re.search(r"[-+*/^(|]\Z", before)
        or (worked[start] == "-" and re.search(r"[\w)]\Z", before))
    )


def _differ(left: str, right: str) -> bool:
    """Whether the values of two sides are known and differ by more than the last decimal written."""
    one, other = (exact_value(normal_form(side)) for side in (left, right))
    if one is None or other is None or one == other:
        return False
    apart = (
        (one - other).rational
        if isinstance(one, Number) and isinstance(other, Number)
        else None
    )
    places = min(
        (len(found[1]) for side in (left, right) if (found := _DECIMAL.search(side))),
        default=0,
    )
    return not (places and apart is not None and abs(apart) * 10**places <= 1)
