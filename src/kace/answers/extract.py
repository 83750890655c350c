r"""Read the final answer of a reply: the boxed text, its normal form, its exact value.

`kace.answers.normalize` decides on notation, `kace.answers.exact` on meaning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from kace.answers.exact import Number, Value, exact_value, stated_unknown
from kace.answers.normalize import MAX_CHARS, normal_form, unit

MAX_ANSWER_CHARS = MAX_CHARS

_BOX = re.compile(
    r"\\(?:boxed|fbox)(?![A-Za-z])\s*(\{|[^\s{}\\$]+)?|\\.|[{}]", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. Answers with one key are the same unless they state different things."""

    text: str
    """The boxed text, stripped, as the model wrote it."""
    form: str
    """The normal form of the text."""
    value: Value | None
    """The exact value, where the text has one."""
    tolerance: float = 0.0
    """The largest difference of equal numbers, as a share of the larger."""
    stated: tuple[str, str] = ("", "")
    """The unknown that the value belongs to, and its unit, where given."""

    @classmethod
    def of(cls, text: str) -> Answer:
        """Read a text as mathematics. A text over `MAX_ANSWER_CHARS` equals only itself."""
        form = normal_form(text)
        value = exact_value(form)
        name = "" if value is None else stated_unknown(form)
        return cls(text.strip(), form, value, stated=(name, unit(text)))

    @property
    def exact(self) -> bool:
        """Whether its value and nothing else decides what it equals."""
        return (
            self.value is not None
            and not self.tolerance
            and not any(self.stated)
        )

    @property
    def looseness(self) -> int:
        """0 for an exact answer, 1 for another with an exact value, else 2."""
        if self.exact:
            return 0
        return 2 if self.value is None else 1

    @property
    def canonical(self) -> str:
        """One LaTeX spelling for all answers with the same key."""
        return self.form if self.value is None else str(self.value)

    @property
    def key(self) -> str:
        """The same text for equal values, or for equal forms where there is no value."""
        return ("~" if self.value is None else "=") + self.canonical

    def near(self, other: Answer) -> bool:
        """Whether both are numbers within the tolerance of each other."""
        if not isinstance(self.value, Number) or not isinstance(
            other.value, Number
        ):
            return False
        left = self.value.rational
        right = other.value.rational
        if left is None or right is None:
            return False
        return abs(left - right) <= Fraction(self.tolerance) * max(
            abs(left), abs(right)
        )


def last_boxed(reply: str) -> str | None:
    r"""Return the content of the last closed `\boxed{...}` or `\fbox{...}` of a reply.

    `\boxed 5` counts too; a box within `<think>...</think>` only when none follows.
    Return None without a box, or with an empty one.
    """
    thought, _, rest = reply.rpartition("</think>")
    content = _last_box(rest)
    if content is None:
        content = _last_box(thought)
    return content or None


def read_answer(reply: str) -> Answer | None:
    """Return the answer of a reply; None without a box, or with too long a one."""
    content = last_boxed(reply)
    if content is None or len(content) > MAX_ANSWER_CHARS:
        return None
    return Answer.of(content)


def _last_box(text: str) -> str | None:
    """Find the last box in one pass, so that many unclosed boxes cost no more."""
    content: str | None = None
    place = -1
    stack: list[
        int
    ] = []  # where a box begins behind each open brace; -1 for no box
    for match in _BOX.finditer(text):
        if match[0] == "{":
            stack.append(-1)
        elif match[0] == "}":
            start = stack.pop() if stack else -1
            if start > place:
                place = start
                content = text[start : match.start()]
        elif match[1] == "{":
            stack.append(match.end())
        elif match[1]:
            place = match.end()
            content = match[1].rstrip(
                ".,;:!?*" if "(" in match[1] else ".,;:!?*)"
            )
    return None if content is None else content.strip()
