"""Ask the teacher for texts of admitted cards: demonstrations, and wordings.

A demonstration is a worked example that the solver reads as a turn. A wording is a
problem of the card's kind in another story, by which the card is found: words alone do
not recognise a technique in another story. No solver reads wordings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise

from kace.answers.exact import Number, exact_value
from kace.answers.extract import last_boxed
from kace.answers.normalize import normal_form
from kace.cards.card import EXAMPLE, MAX_LINE, Card, Example, read_example
from kace.cards.tree import Edit, EpistemicTree
from kace.errors import one_line
from kace.ladder.prompt import card_text, fenced, neutral, shortened
from kace.learning.propose import EXAMPLE_ID, NOT_SHOWN
from kace.learning.steps import StepLog, StepName, StepResult, gather_all
from kace.learning.teacher import (
    Block,
    CardRefusal,
    Grammar,
    Reading,
    Teacher,
    TeacherStep,
    instructions,
    read_each,
)
from kace.problems import Problem
from kace.words import counted

MAX_SHOWN = 2  # problems a card came from, shown to the teacher with it
MAX_PROBLEM_CHARS = 1_000
EXAMPLES = Grammar("example", name="id", required=("id", "text"), text="text")
WORDINGS = Grammar("wordings", "id", ("id", "text"), text="text")
WORDINGS_AT_ONCE = 320  # a reply of 16,000 tokens has room for so many


class Demonstrations(StepResult):
    """Cards after their examples were asked for, and the examples not usable."""

    cards: tuple[Card, ...] = ()
    refused: tuple[CardRefusal, ...] = ()

    @property
    def summary(self) -> str:
        """Return the number of cards with examples."""
        shown = sum(bool(card.examples) for card in self.cards)
        return f"{shown} of {len(self.cards)} with examples"


async def demonstrate(
    cards: Sequence[Card],
    count: int,
    problems: Mapping[str, Problem],
    context: TeacherStep,
) -> Demonstrations:
    """Ask for `count` examples of each card in one request.

    A card whose examples code refuses stays without. `problems` are the training
    problems by the names that cards know them by.
    """
    if not cards:
        return Demonstrations()
    shown: list[str] = []
    for card in cards:
        lines = [fenced("card", card_text(card))]
        support = filter(
            None, map(problems.get, card.provenance.supporting_problems)
        )
        for problem in list(support)[:MAX_SHOWN]:
            text = neutral(shortened(problem.text, MAX_PROBLEM_CHARS))
            lines.append(fenced("problem", text))
        shown.append("\n".join(lines))
    known = {card.card_id: card for card in cards}
    each = f"{count} examples, each with a story of its own,"
    if count == 1:
        each = "one example"
    shown.append(f"Write {each} for each of these cards.")
    reading = await context.teacher.ask(
        context.name,
        instructions("illustrate"),
        "\n\n".join(shown),
        lambda reply: read_examples(reply, known, count, context),
    )
    return Demonstrations(
        cards=tuple(reading.found.get(card.card_id, card) for card in cards),
        refused=tuple(bad.refusal() for bad in reading.bad),
    )


def read_examples(
    reply: str, known: Mapping[str, Card], count: int, context: TeacherStep
) -> Reading[Card]:
    """Return the cards of a reply with their examples; list those without any."""

    def make(block: Block) -> Card | CardRefusal:
        name = _shown_id(block, known)
        parts = f"\n{block.text}\n".split(f"\n{EXAMPLE}\n")
        texts = list(filter(str.strip, parts))
        if len(texts) != count:
            raise ValueError(
                f"it holds {len(texts)} examples, and {count} are asked for"
            )
        card = known[name].illustrated(list(map(_read_example, texts)))
        return context.screen(card) or card

    reading = read_each(reply, EXAMPLES, make)
    return reading.expecting(known, "there is no example for this card")


def _shown_id(block: Block, known: Mapping[str, Card]) -> str:
    name = block.fields["id"]
    if name == EXAMPLE_ID or name not in known:
        raise ValueError(NOT_SHOWN)
    return name


def _read_example(text: str) -> Example:
    example = read_example(text)
    if example is None:
        raise ValueError(
            "an example is a problem, a line `Worked:` and a solution"
        )
    if not last_boxed(example.worked):
        raise ValueError(
            r"the solution does not end with its answer in \boxed{}"
        )
    wrong = false_equation(example.worked)
    if wrong:
        raise ValueError(f"it writes {one_line(wrong, 60)!r}, which is false")
    return example


# Code recomputes chains of equal expressions in nothing but numbers.
_EQUATION = re.compile(
    r"(?<![^\s:,;=])-?[\d(][\d ()+*/^.-]*(?:= *[\d(-][\d ()+*/^.-]*)+"
    r"(?![\w%{\\]| ?[-+*/^(])"
)
_UNITS = ("remainder", "percent", "per cent", "%")
_DECIMAL = re.compile(r"-?\d*\.(\d{2,})\Z")
_ENDS = re.compile(r"[\d)]$")


def false_equation(worked: str) -> str | None:
    """Return the first equation between numbers that does not hold."""
    for found in _EQUATION.finditer(worked):
        sides = [side.strip(" .") for side in found[0].split("=")]
        after = worked[found.end() :].lstrip(" ").lower()
        # A number that a unit or a variable belongs to, or a division with remainder.
        whole = all(map(_ENDS.search, sides)) and not after.startswith(_UNITS)
        calculated = re.search(r"[-+*/^]", sides[0])
        if (
            not whole
            or not calculated
            or _continues_left(worked, found.start())
        ):
            continue
        for left, right in pairwise(sides):
            if _differ(left, right):
                return " = ".join(sides)
    return None


def _continues_left(worked: str, start: int) -> bool:
    """Whether an expression goes on to the left of a place."""
    before = worked[:start].rstrip(" ")
    if re.search(r"[-+*/^(|]\Z", before):
        return True
    return worked[start] == "-" and re.search(r"[\w)]\Z", before) is not None


def _differ(left: str, right: str) -> bool:
    """Whether two sides differ by more than the last decimal written."""
    one = exact_value(normal_form(left))
    other = exact_value(normal_form(right))
    if one is None or other is None or one == other:
        return False
    places = [
        len(found[1]) for found in map(_DECIMAL.search, (left, right)) if found
    ]
    if (
        not places
        or not isinstance(one, Number)
        or not isinstance(other, Number)
    ):
        return True
    apart = (one - other).rational
    return apart is None or abs(apart) * 10 ** min(places) > 1


class CardWordings(StepResult):
    """The wordings of each card of a request, by its id."""

    wordings: dict[str, tuple[str, ...]]
    refused: int = 0  # wordings that retell a problem held out

    @property
    def summary(self) -> str:
        """Return the number of wordings."""
        count = sum(map(len, self.wordings.values()))
        return f"{count} wordings for {counted(len(self.wordings), 'card')}"


async def find_wordings(
    tree: EpistemicTree,
    count: int,
    teacher: Teacher,
    log: StepLog,
    retells: Callable[[str], bool],
) -> tuple[Edit, ...]:
    """Return edits that give every shown card without wordings its own.

    A wording that retells a problem held out is left out.
    """
    cards = [card for card in tree.shown if not card.wordings]
    at_once = WORDINGS_AT_ONCE // count
    requests = []
    for domain in sorted({card.domain_tags[0] for card in cards}):
        own = [card for card in cards if card.domain_tags[0] == domain]
        for number, start in enumerate(range(0, len(own), at_once)):
            step = StepName("close", "wordings", place=domain, number=number)
            some = own[start : start + at_once]
            ask = partial(
                _ask_wordings, some, count, teacher, str(step), retells
            )
            requests.append(log.once(step, CardWordings, ask))
    found: dict[str, tuple[str, ...]] = {}
    for each in await gather_all(requests):
        found.update(each.wordings)
    edits = []
    for card in cards:
        if found.get(card.card_id):
            edits.append(Edit(card.worded(found[card.card_id])))
    return tuple(edits)


async def _ask_wordings(
    cards: Sequence[Card],
    count: int,
    teacher: Teacher,
    name: str,
    retells: Callable[[str], bool],
) -> CardWordings:
    known = {card.card_id: card for card in cards}
    shown = []
    for card in cards:
        lines = [fenced("card", card_text(card))]
        for example in card.examples:
            lines.append(fenced("problem", neutral(example.problem)))
        shown.append("\n".join(lines))
    shown.append(f"Write {count} wordings for each of these cards.")
    reading = await teacher.ask(
        name,
        instructions("wordings"),
        "\n\n".join(shown),
        lambda reply: read_wordings(reply, known, count),
    )
    found = {}
    refused = 0
    for card_id, lines_of in reading.found.items():
        kept = tuple(line for line in lines_of if not retells(line))
        found[card_id] = kept
        refused += len(lines_of) - len(kept)
    return CardWordings(wordings=found, refused=refused)


def read_wordings(
    reply: str, known: Mapping[str, Card], count: int
) -> Reading[tuple[str, ...]]:
    """Return the wordings of a reply by card.

    A card with fewer than half of those asked for is asked for again.
    """

    def make(block: Block) -> tuple[str, ...]:
        name = _shown_id(block, known)
        lines = filter(None, map(str.strip, block.text.split("\n")))
        found = tuple(dict.fromkeys(lines))[:count]
        for line in found:
            if len(line) > MAX_LINE:
                raise ValueError(
                    f"the wording {line[:40]!r} is longer than {MAX_LINE} characters"
                )
        if 2 * len(found) < count:
            raise ValueError(
                f"it holds {len(found)} wordings, and {count} are asked for"
            )
        known[name].worded(found)  # raises if a line cannot be part of a card
        return found

    reading = read_each(reply, WORDINGS, make)
    return reading.expecting(known, "there are no wordings for this card")
