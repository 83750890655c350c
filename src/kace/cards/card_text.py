"""What a card says: a trigger header, a blank line, a body, worked examples. Pure text, and the ways it goes wrong."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

USEFUL = "Useful when:"
AVOID = "Do not apply if:"
BULLET = "- "
EXAMPLE = "Example:"
WORKED = "Worked:"
MAX_EXAMPLES = 4
EXAMPLE_LINES = 24  # non-blank lines that one example may have
TRIGGER_WORDS = 5

# Control characters, line separators a terminal or an editor would break at, direction overrides that make a card read
# differently from what it is, and what shows nothing at all: hidden words would reach the solver unseen by a reader.
# Written for both Python's and pydantic's regular expressions.
_UNSEEN = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff"
)
TEXT = rf"^[^{_UNSEEN}]*$"  # several lines: newline and tab are the only control characters
LINE = rf"^[^{_UNSEEN}\t\n]*$"  # one line: none at all

_STRAY = re.compile(f"[{_UNSEEN}\ud800-\udfff]")
_ESCAPES = {"\f": "f", "\b": "b", "\a": "a", "\v": "v", "\t": "t", "\r": "r", "\n": "n"}
# What is left of a TeX command after its backslash and first letter were read as one escape. After a newline only
# the remains that start no English line count.
_REMAINS = re.compile(
    r"[\f\x08][A-Za-z]+"
    r"|\a(?:lpha|ngle|pprox|rc|st|bs)[a-z]*|\v(?:ar|ec|ert|ee)[a-z]*"
    r"|\t(?:heta|ext|imes|an|au|o|op|riangle|frac|ilde|herefore|binom|ag)(?![a-z])"
    r"|\r(?:ho|ight|angle|ceil|floor|m|oot|vert)[a-z]*(?![A-Za-z])"
    r"|\n(?:abla|otin|ewline|subseteq|eq(?=\s*[\\\d{-]))(?![A-Za-z])"
)


class TextError(ValueError):
    """A rule that a card's text breaks, and the fix."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix


@dataclass(frozen=True, slots=True)
class Example:
    """A problem of a card's kind, and its solution as the solver should write its own."""

    problem: str
    worked: str

    @property
    def text(self) -> str:
        """As a payload holds it."""
        return f"{EXAMPLE}\n{self.problem}\n{WORKED}\n{self.worked}"


class CardText(NamedTuple):
    """A payload taken apart."""

    useful: tuple[str, ...]
    avoid: tuple[str, ...]
    body: str
    examples: tuple[Example, ...] = ()


def line_count(text: str) -> int:
    """Non-blank lines."""
    return sum(1 for line in text.split("\n") if line.strip())


def split_payload(payload: str) -> tuple[str, str]:
    """Header and body: what comes before and after the first blank line, without the examples."""
    lines = split_examples(payload)[0].strip("\n").split("\n")
    blank = next((i for i, line in enumerate(lines) if not line.strip()), len(lines))
    return "\n".join(lines[:blank]), "\n".join(lines[blank + 1 :]).strip("\n")


def split_examples(payload: str) -> tuple[str, tuple[Example, ...]]:
    """The rule of a payload, and the examples that end it. A part that lacks its problem or solution is no example."""
    rule, *parts = payload.split(f"\n\n{EXAMPLE}\n")
    whole = tuple(example for example in map(read_example, parts) if example)
    return (rule, whole) if len(whole) == len(parts) else (payload, ())


def read_example(text: str) -> Example | None:
    """The example that a text holds: a problem, a line `Worked:`, a solution."""
    problem, mark, worked = f"\n{text}".partition(f"\n{WORKED}\n")
    example = Example(problem.strip(), worked.strip())
    return example if mark and example.problem and example.worked else None


def with_examples(payload: str, examples: tuple[Example, ...]) -> str:
    """The payload with these examples instead of its own."""
    return "\n\n".join(
        (
            split_examples(payload)[0].rstrip("\n"),
            *(example.text for example in examples),
        )
    )


def read_payload(payload: str) -> CardText:
    """Take a payload apart, or raise `TextError` for the first rule it breaks."""
    text, faults = examined(payload)
    for fault in faults:
        raise fault
    return text


def examined(payload: str) -> tuple[CardText, list[TextError]]:
    """A payload taken apart as far as it goes, and every rule that it breaks."""
    header, body = split_payload(payload)
    sections: list[list[str]] = []
    faults = []
    for line in header.split("\n"):
        if len(sections) < 2 and line.strip() == (USEFUL, AVOID)[len(sections)]:
            sections.append([])
        elif sections and line.startswith(BULLET) and line[len(BULLET) :].strip():
            sections[-1].append(line[len(BULLET) :].strip())
        else:
            faults.append(
                TextError(
                    f"does not begin with a trigger header ({_cut(line)} is no part of one)",
                    _SHAPE,
                )
            )
            break
    useful, *avoid = sections or [[]]
    text = CardText(tuple(useful), tuple(*avoid), body, split_examples(payload)[1])
    faults += [
        TextError(what, fix)
        for broken, what, fix in _rules(text, avoid=bool(avoid))
        if broken
    ]
    return text, faults


_SHAPE = f"begin with '{USEFUL}' and bullets '{BULLET}...', then optionally '{AVOID}' and bullets, then a blank line"


def _rules(text: CardText, *, avoid: bool) -> Iterator[tuple[bool, str, str]]:
    """Whether each rule is broken, what to say then, and the fix."""
    add = f"add a line '{BULLET}...'"
    few = f"at most {TRIGGER_WORDS} words"
    yield not text.useful, f"has no bullet under '{USEFUL}'", f"{add} of {few}"
    yield (
        avoid and not text.avoid,
        f"has no bullet under '{AVOID}'",
        f"{add}, or remove '{AVOID}'",
    )
    for bullet in text.useful:
        words = len(bullet.split())
        yield (
            words > TRIGGER_WORDS,
            f"has a trigger of {words} words ({_cut(bullet)})",
            f"use {few}",
        )
    yield (
        not text.body.strip(),
        "has no body",
        "put a blank line after the header, then the body",
    )
    headed = text.body.lstrip().startswith((USEFUL, AVOID))
    yield (
        headed,
        "has a blank line inside its header",
        f"remove the blank line before '{AVOID}'",
    )
    count = len(text.examples)
    longest = max(
        (line_count(example.text) - 2 for example in text.examples), default=0
    )
    yield count > MAX_EXAMPLES, f"has {count} examples", f"keep at most {MAX_EXAMPLES}"
    yield (
        longest > EXAMPLE_LINES,
        f"has an example of {longest} non-blank lines",
        f"use at most {EXAMPLE_LINES}",
    )


def stray_character(text: str, *, one_line: bool = False) -> TextError | None:
    """The reason to refuse a text for a character it must not hold, naming LaTeX eaten by JSON escapes as such."""
    if broken := broken_tex(text):
        return broken
    found = _STRAY.search(text) or (re.search(r"[\t\n]", text) if one_line else None)
    if found is None:
        return None
    char = found.group()
    name = unicodedata.name(
        char, "lone surrogate" if "\ud800" <= char <= "\udfff" else "control character"
    ).lower()
    where = f"U+{ord(char):04X} ({name}) at character {found.start() + 1}"
    rule = "keep the field on one line" if char in "\t\n" else "remove it"
    return TextError(
        f"holds {where}",
        f"{rule}; a payload may hold newlines and tabs, other fields neither",
    )


def broken_tex(text: str) -> TextError | None:
    r"""The reason to refuse LaTeX that JSON escapes corrupted, such as a form feed before `rac`."""
    found = _REMAINS.search(text)
    if found is None:
        return None
    char = found.group()[0]
    rest = found.group()[1:21]
    return TextError(
        f"holds LaTeX corrupted by JSON escapes: \\{_ESCAPES[char]}{rest} became U+{ord(char):04X} and '{rest}'",
        "double every backslash of LaTeX in JSON"
        + (", and indent with spaces" if char == "\t" else ""),
    )


def _cut(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:37]}...")
