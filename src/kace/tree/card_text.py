"""What a card says: a trigger header, a blank line, a body, worked examples. Pure text, and the ways it goes wrong."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

USEFUL = "Useful when:"
AVOID = "Do not apply if:"
BULLET = "- "
EXAMPLE = "Example:"
WORKED = "Worked:"
MAX_EXAMPLES = 4
EXAMPLE_LINES = 24
"""Non-blank lines that one example may have."""
TRIGGER_WORDS = 5

# Control characters, line separators a terminal or an editor would break at, and direction overrides that make a card
# read differently from what it is. Written for both Python's and pydantic's regular expressions.
_UNSEEN = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069"
TEXT = rf"^[^{_UNSEEN}]*$"
"""Several lines: newline and tab are the only control characters."""
LINE = rf"^[^{_UNSEEN}\t\n]*$"
"""One line: none at all."""

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
    """A rule that a card's text breaks, and how to mend it."""

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
        """As it stands in a payload."""
        return f"{EXAMPLE}\n{self.problem}\n{WORKED}\n{self.worked}"


@dataclass(frozen=True, slots=True)
class CardText:
    """A payload taken apart."""

    useful: tuple[str, ...]
    avoid: tuple[str, ...]
    header: str
    body: str
    examples: tuple[Example, ...] = ()

    @property
    def body_lines(self) -> int:
        """Non-blank lines of the body, which the caps count."""
        return line_count(self.body)


def line_count(text: str) -> int:
    """Non-blank lines."""
    return sum(1 for line in text.split("\n") if line.strip())


def split_payload(payload: str) -> tuple[str, str]:
    """Header and body: what stands before and after the first blank line, without the examples."""
    lines = split_examples(payload)[0].strip("\n").split("\n")
    blank = next((i for i, line in enumerate(lines) if not line.strip()), len(lines))
    return "\n".join(lines[:blank]), "\n".join(lines[blank + 1 :]).strip("\n")


def split_examples(payload: str) -> tuple[str, tuple[Example, ...]]:
    """The rule of a payload, and the examples that end it. A part that lacks its problem or solution is no example."""
    rule, *parts = payload.split(f"\n\n{EXAMPLE}\n")
    examples = tuple(map(read_example, parts))
    whole = tuple(example for example in examples if example)
    return (rule, whole) if len(whole) == len(parts) else (payload, ())


def read_example(text: str) -> Example | None:
    """The example that a text tells: a problem, a line `Worked:`, a solution."""
    problem, mark, worked = f"\n{text}".partition(f"\n{WORKED}\n")
    example = Example(problem.strip(), worked.strip())
    return example if mark and example.problem and example.worked else None


def with_examples(payload: str, examples: tuple[Example, ...]) -> str:
    """The payload with these examples instead of its own."""
    return "\n\n".join((split_examples(payload)[0].rstrip("\n"), *(example.text for example in examples)))


def triggers_of(payload: str) -> tuple[str, ...]:
    """The bullets under `Useful when:`."""
    header, _ = split_payload(payload)
    useful = header.split(f"\n{AVOID}", 1)[0]
    return tuple(line[len(BULLET) :].strip() for line in useful.split("\n") if line.startswith(BULLET))


def read_payload(payload: str) -> CardText:
    """Take a payload apart, or raise `TextError` for the first rule it breaks."""
    header, body = split_payload(payload)
    useful: list[str] = []
    avoid: list[str] = []
    bullets: list[str] | None = None
    for line in header.split("\n"):
        label = line.strip()
        if label == USEFUL and bullets is None:
            bullets = useful
        elif label == AVOID and bullets is useful:
            bullets = avoid
        elif bullets is not None and line.startswith(BULLET) and line[len(BULLET) :].strip():
            bullets.append(line[len(BULLET) :].strip())
        else:
            raise TextError(f"does not begin with a trigger header ({_cut(line)} is no part of one)", _SHAPE)
    _check_bullets(useful, avoid if bullets is avoid else None)
    if not body.strip():
        raise TextError("has no body", "put a blank line after the header, then the body")
    if body.lstrip().startswith((USEFUL, AVOID)):
        raise TextError("has a blank line inside its header", f"remove the blank line before '{AVOID}'")
    examples = split_examples(payload)[1]
    _check_examples(examples)
    return CardText(tuple(useful), tuple(avoid), header, body, examples)


_SHAPE = f"begin with '{USEFUL}' and bullets '{BULLET}...', then optionally '{AVOID}' and bullets, then a blank line"


def _check_examples(examples: tuple[Example, ...]) -> None:
    if len(examples) > MAX_EXAMPLES:
        raise TextError(f"has {len(examples)} examples", f"keep at most {MAX_EXAMPLES}")
    longest = max((line_count(example.text) - 2 for example in examples), default=0)
    if longest > EXAMPLE_LINES:
        raise TextError(f"has an example of {longest} non-blank lines", f"use at most {EXAMPLE_LINES}")


def _check_bullets(useful: list[str], avoid: list[str] | None) -> None:
    if not useful:
        raise TextError(f"has no bullet under '{USEFUL}'", f"add a line '{BULLET}...' of at most {TRIGGER_WORDS} words")
    if avoid == []:
        raise TextError(f"has no bullet under '{AVOID}'", f"add a line '{BULLET}...', or remove '{AVOID}'")
    for bullet in useful:
        words = len(bullet.split())
        if words > TRIGGER_WORDS:
            raise TextError(f"has a trigger of {words} words ({_cut(bullet)})", f"use at most {TRIGGER_WORDS} words")


def stray_character(text: str, *, one_line: bool = False) -> TextError | None:
    """The reason to refuse a text for a character it must not hold, naming LaTeX eaten by JSON escapes as such."""
    if broken := broken_tex(text):
        return broken
    found = _STRAY.search(text) or (re.search(r"[\t\n]", text) if one_line else None)
    if found is None:
        return None
    char = found.group()
    name = unicodedata.name(char, "lone surrogate" if "\ud800" <= char <= "\udfff" else "control character").lower()
    where = f"U+{ord(char):04X} ({name}) at character {found.start() + 1}"
    rule = "keep the field on one line" if char in "\t\n" else "remove it"
    return TextError(f"holds {where}", f"{rule}; only newlines and tabs may stand in a payload, neither elsewhere")


def broken_tex(text: str) -> TextError | None:
    r"""The reason to refuse LaTeX that JSON escapes corrupted, such as a form feed before `rac`."""
    found = _REMAINS.search(text)
    if found is None:
        return None
    char, rest = found.group()[0], found.group()[1:]
    escape = _ESCAPES[char]
    return TextError(
        f"holds LaTeX corrupted by JSON escapes: \\{escape}{rest[:20]} became U+{ord(char):04X} and '{rest[:20]}'",
        "double every backslash of LaTeX in JSON" + (", and indent with spaces" if char == "\t" else ""),
    )


def _cut(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:37]}...")
