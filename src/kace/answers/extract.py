r"""A final answer: what was boxed, its normal form, and its exact value where it has one.

The policies on notation are in `kace.answers.normalize`, those on meaning in `kace.answers.parse`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from kace.answers.exact import Number, Value
from kace.answers.normalize import MAX_CHARS, normal_form, unit
from kace.answers.parse import exact_value, unknown

MAX_ANSWER_CHARS = MAX_CHARS

_BOX = re.compile(
    r"\\(?:boxed|fbox)(?![A-Za-z])\s*(\{|[^\s{}\\$]+)?|\\.|[{}]", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. Two answers with the same `key` are the same answer, unless they state different things."""

    text: str  # what was boxed, stripped, as the model wrote it
    form: str  # the normal form of the text
    value: Value | None  # the exact value, where the text has one
    tolerance: float = (
        0.0  # two numbers no further apart than this part of the larger are one answer
    )
    stated: tuple[str, str] = (
        "",
        "",
    )  # the unknown that the value is said to be of, and its unit, where known

    @classmethod
    def of(cls, text: str) -> Answer:
        """Read an answer. Any text is one; a text over `MAX_ANSWER_CHARS` equals only itself."""
        form = normal_form(text)
        value = exact_value(form)
        return cls(
            text.strip(),
            form,
            value,
            stated=("" if value is None else unknown(form), unit(text)),
        )

    @property
    def exact(self) -> bool:
        """Whether the answer has an exact value and equals no other: nothing may be left out or differ."""
        return self.value is not None and not self.tolerance and not any(self.stated)

    @property
    def looseness(self) -> int:
        """0 where the answer is exact, 1 where it has an exact value all the same, 2 where it has none."""
        return 0 if self.exact else 1 if self.value is not None else 2

    @property
    def canonical(self) -> str:
        """One LaTeX spelling for all answers with the same key."""
        return self.form if self.value is None else str(self.value)

    @property
    def key(self) -> str:
        """The bucket of the answer: the same for equal values, or for equal forms where there is no value."""
        return ("~" if self.value is None else "=") + self.canonical

    def near(self, other: Answer) -> bool:
        """Whether both are numbers within the tolerance of each other."""
        one, two = (
            side.value.rational if isinstance(side.value, Number) else None
            for side in (self, other)
        )
        if one is None or two is None:
            return False
        return abs(one - two) <= Fraction(self.tolerance) * max(abs(one), abs(two))


def last_boxed(reply: str) -> str | None:
    r"""The content of the last closed `\boxed{...}` or `\fbox{...}` of a reply, also of `\boxed 5`.

    What is in `<think>...</think>` counts only when no box follows it. None when there is no box or it is empty.
    """
    thought, _, spoken = reply.rpartition("</think>")
    content = _last_box(spoken)
    return (_last_box(thought) if content is None else content) or None


def read_answer(reply: str) -> Answer | None:
    """The answer of a reply; None when nothing is boxed, or more than an answer can be long."""
    content = last_boxed(reply)
    return (
        None
        if content is None or len(content) > MAX_ANSWER_CHARS
        else Answer.of(content)
    )


def _last_box(text: str) -> str | None:
    """One pass with a stack of open braces, so that a reply full of unclosed boxes costs no more than another."""
    found: tuple[int, str] | None = None
    stack: list[int | None] = []
    for match in _BOX.finditer(text):
        token = match[0]
        if token == "{":
            stack.append(None)
        elif token == "}":
            opened = stack.pop() if stack else None
            if opened is not None and (found is None or opened > found[0]):
                found = opened, text[opened : match.start()]
        elif match[1] == "{":
            stack.append(match.end())
        elif match[1]:
            found = (
                match.end(),
                match[1].rstrip(".,;:!?*" if "(" in match[1] else ".,;:!?*)"),
            )
    return None if found is None else found[1].strip()
