r"""Whether two answers are the same: normal form, then exact value, then math-verify in a killable process.

Two exact values are compared exactly, and that is final. math-verify is asked only where a side has no exact value, and
in both directions: `SAME` needs two yeses, which makes a verdict symmetric.
"""

from __future__ import annotations

import math
import re
from enum import StrEnum

from kace.answers.calculator import MAX_DEPTH, apart
from kace.answers.child import Child, Children, NoWorker
from kace.answers.exact import Number, Word
from kace.answers.extract import MAX_ANSWER_CHARS, Answer
from kace.answers.normalize import depth
from kace.answers.parse import equation

MAX_DIGITS = 256
MAX_MEMORY = 10_000  # remembered verdicts
_NO_VALUE = re.compile(
    r"\\ldots|\\text|\\emptyset|\\not|\\pmod|\d[_ ]\W*\d|:.*:|/\d+(?:\\pi|[A-Za-z(])|'[^=]*$"
)
_UNSEEN = re.compile(r"'|\\pmod\{\w*\}|\\not|\\text\{[^{}]*\}")
_NO_NUMBER = re.compile(r"\\cup|\\cap|[<>]|\\[lg]eq|\\neq|matrix\}")
_COSTLY = re.compile(
    rf"\d{{{MAX_DIGITS + 1}}}"
    r"|[\d)}]\^\{[^{}]*[\d)}]!?\^|\^\{[^{}]*\d{5}"  # towers, and big powers
    r"|(?:\d{4}|\}|\)\))!|\([^()]*(?:\d{4}|[\^!])[^()]*\)!|!!"
    r"|\\binom[^A-Za-z]*\d{4}|\\binom\{[^{}]*[\^!]"
)


class Verdict(StrEnum):
    """What is known of two answers. Only `SAME` merges them."""

    SAME = "same"
    DIFFERENT = "different"
    TIMEOUT = "timeout"
    REFUSED = "refused"  # too large to try, or the process that tried broke


def settled(left: Answer, right: Answer) -> Verdict | None:
    """The verdict that needs no algebra; None where a side has no exact value and algebra might equate them."""
    if any(
        one and two and one != two
        for one, two in zip(left.stated, right.stated, strict=True)
    ):
        return Verdict.DIFFERENT
    if left.key == right.key:
        return Verdict.SAME
    if left.tolerance:
        return Verdict.SAME if left.near(right) else Verdict.DIFFERENT
    if left.value is not None and right.value is not None:
        return Verdict.DIFFERENT
    if (value := left.value or right.value) is not None:
        form = right.form if left.value is not None else left.form
        # Words, an open list and the empty set equal no exact value; a number is no union, relation or matrix.
        a_number = isinstance(value, Number)
        if (
            isinstance(value, Word)
            or _NO_VALUE.search(form)
            or (a_number and _NO_NUMBER.search(form))
        ):
            return Verdict.DIFFERENT
    elif r"\ldots" in left.form + right.form or _marks(left, right) != _marks(
        right, left
    ):
        return Verdict.DIFFERENT
    first = equation(left.form)
    second = equation(right.form)
    if first is not None and second is not None:
        return Verdict.SAME if first == second else Verdict.DIFFERENT
    return Verdict.DIFFERENT if apart(left.form, right.form) else None


def _marks(answer: Answer, other: Answer) -> list[str]:
    """What algebra reads over; not in the name of what is equated where the other answer has no name."""
    named = "=" in answer.form and "=" not in other.form
    return _UNSEEN.findall(answer.form.partition("=")[2] if named else answer.form)


def too_large(latex: str) -> bool:
    """Whether an answer could cost more than its worth: by length, depth, digits, towers of powers, factorials."""
    return (
        len(latex) > MAX_ANSWER_CHARS
        or depth(latex) > MAX_DEPTH
        or _COSTLY.search(latex) is not None
    )


class Judge(Children):
    """Compares answers within one event loop. A call never raises and never hangs; workers start on first need."""

    def __init__(
        self, *, workers: int = 2, seconds: float = 2.0, memory_mb: int = 1024
    ) -> None:
        super().__init__(workers, memory_mb, math.ceil(seconds) + 2, seconds=seconds)
        self._verdicts: dict[tuple[str, str], Verdict] = {}

    async def __call__(self, left: Answer, right: Answer) -> Verdict:
        """The verdict on two answers, the same in either order."""
        verdict = settled(left, right)
        if verdict is not None:
            return verdict
        first, second = sorted((left, right), key=lambda answer: answer.key)
        pair = (first.key, second.key)
        if pair in self._verdicts:
            return self._verdicts[pair]
        if any(
            len(side.text) > MAX_ANSWER_CHARS or too_large(side.canonical)
            for side in (left, right)
        ):
            return Verdict.REFUSED
        try:
            async with self.one() as child:
                verdict = await _compared(child, first.canonical, second.canonical)
        except NoWorker:
            return Verdict.REFUSED
        if len(self._verdicts) == MAX_MEMORY:
            del self._verdicts[next(iter(self._verdicts))]
        self._verdicts[pair] = verdict
        return verdict


async def _compared(child: Child, left: str, right: str) -> Verdict:
    """The child's verdict. Raises `NoWorker` where there was no child to be had."""
    try:
        same = (await child.ask({"left": left, "right": right})).get("same")
    except TimeoutError:
        return Verdict.TIMEOUT
    except (OSError, ValueError):
        return Verdict.REFUSED
    if not isinstance(same, bool):
        child.end()
        return Verdict.REFUSED
    return Verdict.SAME if same else Verdict.DIFFERENT
