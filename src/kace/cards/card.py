"""Cards: pieces of knowledge, with their place, their record and their measured lift.

The text of a card is a trigger header, a blank line, a body and worked examples. Cards
from outside are checked strictly when they are read, and trusted from then on.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import not_
from typing import Annotated, NamedTuple, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import from_json

from kace.errors import DataError, one_line

MAX_CARD_BYTES = 16_384
MAX_PAYLOAD = 8_000
MAX_LINE = 300
MAX_WORDINGS = 40
MAX_COUNT = 1 << 53
MAX_EXAMPLES = 4
EXAMPLE_LINES = 24  # non-blank lines of one example
TRIGGER_WORDS = 5
UNIVERSAL = "universal"  # the domain tag that passes any domain
PREFIXES = (
    "EXACT_",
    "RUBRIC_",
    "ALGO_RUBRIC_",
    "MICRO_",
    "READING_",
    "CASE_SPLIT_",
    "ANTI_",
)
TRUSTED = {"trusted": True}
"""Validation context for text whose hash shows that it has passed every rule."""

USEFUL = "Useful when:"
AVOID = "Do not apply if:"
BULLET = "- "
EXAMPLE = "Example:"
WORKED = "Worked:"
_BULLETS = rf"(?:\n{BULLET}[^\S\n]*\S[^\n]*)+"
_HEADER = re.compile(rf"{USEFUL}[ \t]*{_BULLETS}(?:\n{AVOID}[ \t]*{_BULLETS})?")

_BLANK_LINE = re.compile(r"\n[ \t]*(?:\n|$)")
_LONG_TRIGGER = re.compile(
    rf"^({BULLET}[ \t]*(?:\S+[ \t]+){{{TRIGGER_WORDS - 1}}}\S+).*$",
    re.MULTILINE,
)

# Control characters, line separators, direction overrides that make a card read as
# something else, and what shows nothing at all: a solver would read words that people
# cannot see. Newline and tab are not among them.
_STRAY = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u00ad\u034f\u061c\u115f\u1160"
    "\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff\ud800-\udfff]"
)
# What is left of a TeX command after its backslash and first letter were read as one
# escape. After a newline only remains that start no English line count.
_BROKEN = re.compile(
    r"[\f\x08][A-Za-z]"
    r"|\t(?:heta|ext|imes|an|au|o|op|riangle|frac|ilde|herefore|binom|ag)(?![a-z])"
    r"|\r(?:ho|ight|angle|ceil|floor|m|oot|vert)[a-z]*(?![A-Za-z])"
    r"|\n(?:abla|otin|ewline|subseteq|eq(?=\s*[\\\d{-]))(?![A-Za-z])"
)


# The text of a card


class TextError(ValueError):
    """A rule that the text of a card breaks, and the fix."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix


@dataclass(frozen=True, slots=True)
class Example:
    """A worked problem of a card's kind."""

    problem: str
    worked: str

    @property
    def text(self) -> str:
        """The example as a payload holds it."""
        return f"{EXAMPLE}\n{self.problem}\n{WORKED}\n{self.worked}"


class CardText(NamedTuple):
    """The parts of a payload."""

    header: str
    useful: tuple[str, ...]
    avoid: tuple[str, ...]
    body: str
    examples: tuple[Example, ...]


def line_count(text: str) -> int:
    """Return the number of non-blank lines."""
    return sum(bool(line.strip()) for line in text.split("\n"))


def split_examples(payload: str) -> tuple[str, tuple[Example, ...]]:
    """Split a payload into its rule and its examples.

    Where a part lacks its problem or its solution, nothing is split off.
    """
    rule, *parts = payload.split(f"\n\n{EXAMPLE}\n")
    try:
        return rule, tuple(map(read_example, parts))
    except TextError:
        return payload, ()


def read_example(text: str) -> Example:
    """Read a problem, a line `Worked:` and a solution. Raise `TextError`."""
    problem, _, worked = f"\n{text}".partition(f"\n{WORKED}\n")
    example = Example(problem.strip(), worked.strip())
    if not example.problem or not example.worked:
        raise TextError(
            "an example is a problem, a line `Worked:` and a solution",
            "write all three",
        )
    return example


def with_examples(payload: str, examples: Sequence[Example]) -> str:
    """Return a payload with these examples instead of its own."""
    rule = split_examples(payload)[0].rstrip("\n")
    return "\n\n".join([rule, *(example.text for example in examples)])


def read_payload(payload: str) -> CardText:
    """Split a payload into its parts; without a header, all of the rule is body."""
    rule, examples = split_examples(payload)
    header, *rest = _BLANK_LINE.split(rule.lstrip("\n").rstrip(), maxsplit=1)
    if not header.startswith(USEFUL):
        return CardText("", (), (), rule, examples)
    useful, _, avoid = header.partition(f"\n{AVOID}")
    body = "".join(rest).strip("\n")
    return CardText(header, _bullets(useful), _bullets(avoid), body, examples)


def _bullets(text: str) -> tuple[str, ...]:
    lines = text.split("\n")[1:]
    return tuple(line.removeprefix(BULLET).strip() for line in lines)


def cut_triggers(payload: str) -> str:
    """Return a payload whose triggers have no more words than they may have."""
    header, gap, body = payload.partition("\n\n")
    useful, mark, avoid = header.partition(f"\n{AVOID}")
    useful = _LONG_TRIGGER.sub(r"\1", useful)
    return useful + mark + avoid + gap + body


def stray_character(text: str) -> TextError | None:
    """Return why a text is refused for one of its characters, or None."""
    if _BROKEN.search(text):
        return TextError(
            "holds LaTeX corrupted by JSON escapes",
            "double every backslash of LaTeX in JSON, and indent with spaces",
        )
    found = _STRAY.search(text)
    if not found:
        return None
    name = unicodedata.name(found[0], "unnamed").lower()
    return TextError(
        f"holds U+{ord(found[0]):04X} ({name}) at character {found.start() + 1}",
        "remove it",
    )


def _check_text(text: str) -> str:
    stray = stray_character(text)
    if stray:
        raise stray
    return text


def _check_line(text: str) -> str:
    if "\n" in text or "\t" in text:
        raise TextError("holds a newline or a tab", "write one line")
    return _check_text(text)


def _matching(pattern: str, fix: str) -> AfterValidator:
    """Return a check that a text has a form."""
    form = re.compile(pattern)

    def check(text: str) -> str:
        if not form.fullmatch(text):
            raise TextError(f"{text[:40]!r} has the wrong form", fix)
        return text

    return AfterValidator(check)


# The record


class Difficulty(StrEnum):
    """The difficulty coordinate of a card."""

    MEDIUM = "medium"
    HARD = "hard"
    UNIVERSAL = "universal"


class Status(StrEnum):
    """How far a card has come. A deprecated card stays in the tree and is never shown."""

    EXPERIMENTAL = "experimental"
    VALIDATED = "validated"
    DEPRECATED = "deprecated"


BODY_CAPS: Mapping[Difficulty, int] = {
    Difficulty.MEDIUM: 6,
    Difficulty.HARD: 12,
    Difficulty.UNIVERSAL: 4,
}
"""Non-blank lines that a body may have."""

VISIBLE: Mapping[str, frozenset[Difficulty]] = {
    "ES": frozenset(),
    "FLAT": frozenset(),
    "MS": frozenset({Difficulty.MEDIUM, Difficulty.UNIVERSAL}),
    "HS": frozenset({Difficulty.HARD, Difficulty.UNIVERSAL}),
}
"""The difficulties that each tier reads."""


class CardError(DataError):
    """A card that breaks a rule; the message names the card where its id is known."""


PLAIN = AfterValidator(_check_line)
"""Refuses more than one line, and characters that people cannot see."""
Line = Annotated[str, Field(max_length=MAX_LINE), PLAIN]
Name = Annotated[
    str,
    Field(max_length=64),
    _matching(
        "[a-z][a-z0-9]*(_[a-z0-9]+)*", "use snake_case, as in number_theory"
    ),
]
# The teacher writes 3 to 6 words; other stores have longer ids.
CardId = Annotated[
    str,
    Field(max_length=64),
    _matching(
        rf"(?={'|'.join(PREFIXES)})[A-Z0-9]+(_[A-Z0-9]+){{2,}}",
        "use 3 or more words of A-Z and 0-9, as in EXACT_SUM_OF_SQUARES; begin"
        f" with one of {' '.join(PREFIXES)}",
    ),
]
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]


class StrictRecord(BaseModel):
    """A record without coercion of types, unknown fields or changes."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class Provenance(StrictRecord):
    """Where a card came from and how it has fared."""

    source: Line
    supporting_problems: tuple[Line, ...] = ()
    validated_lift: Line = ""
    promotion_status: Status = Status.EXPERIMENTAL
    n_uses: Count = 0
    n_wins: Count = 0
    n_losses: Count = 0
    epoch_introduced: Count = 0


class Card(StrictRecord):
    """One card. `read_card` reads one from outside."""

    card_id: CardId
    payload: Annotated[
        str, Field(max_length=MAX_PAYLOAD), AfterValidator(_check_text)
    ]
    routing_conditions: Annotated[tuple[Line, ...], Field(max_length=12)]
    difficulty_tag: Difficulty
    domain_tags: Annotated[tuple[Name, ...], Field(min_length=1, max_length=16)]
    helpfulness_score: Annotated[float, Field(allow_inf_nan=False)]
    provenance: Provenance
    # Problems of its kind in other stories, used to find it. No solver reads them.
    wordings: Annotated[
        tuple[Line, ...],
        Field(max_length=MAX_WORDINGS, exclude_if=not_),
    ] = ()

    @model_validator(mode="after")
    def _rules(self, info: ValidationInfo) -> Self:
        if info.context is not TRUSTED:
            _check(self)
        return self

    def __repr__(self) -> str:
        return f"<Card {self.card_id}: {', '.join(self.triggers)}>"

    __str__ = __repr__

    @property
    def triggers(self) -> tuple[str, ...]:
        """The `Useful when:` bullets."""
        return read_payload(self.payload).useful

    @property
    def body(self) -> str:
        """The payload after its first blank line, up to its examples."""
        return read_payload(self.payload).body

    @property
    def rule(self) -> str:
        """The payload without its examples."""
        return split_examples(self.payload)[0].strip()

    @property
    def examples(self) -> tuple[Example, ...]:
        """Worked problems of the card's kind."""
        return split_examples(self.payload)[1]

    @property
    def status(self) -> Status:
        """How far the card has come."""
        return self.provenance.promotion_status

    def with_status(self, status: Status) -> Card:
        """Return the card with another promotion status."""
        record = dict(self.provenance) | {"promotion_status": status}
        return self.revised(provenance=record)

    def illustrated(self, examples: Sequence[Example]) -> Card:
        """Return the card with these examples instead of its own."""
        return self.revised(payload=with_examples(self.payload, examples))

    def revised(self, **fields: object) -> Card:
        """Return the card with other values of these fields, checked."""
        try:
            return Card.model_validate(dict(self) | fields)
        except ValidationError as error:
            raise _card_error(self.card_id, error) from None


def _check(card: Card) -> None:
    """Check the rules that pydantic cannot express. Raise `TextError`."""
    text = read_payload(card.payload)
    if not _HEADER.fullmatch(text.header):
        raise TextError(
            "does not begin with a trigger header",
            f"begin with '{USEFUL}' and bullets '{BULLET}...', then optionally"
            f" '{AVOID}' and bullets, then a blank line and the body",
        )
    if not text.body.strip() or text.body.lstrip().startswith((USEFUL, AVOID)):
        raise TextError(
            "has no body after its header",
            "put one blank line after the whole header, then the body",
        )
    if len(set(card.domain_tags)) < len(card.domain_tags):
        raise TextError("repeats a domain tag", "name each domain once")
    for trigger in text.useful:
        words = len(trigger.split())
        _limit(words, TRIGGER_WORDS, f"a trigger of {words} words")
    found = len(text.examples)
    _limit(found, MAX_EXAMPLES, f"{found} examples")
    for example in text.examples:
        lines = line_count(example.text) - 2
        _limit(lines, EXAMPLE_LINES, f"an example of {lines} non-blank lines")
    lines = line_count(text.body)
    cap = BODY_CAPS[card.difficulty_tag]
    what = f"a body of {lines} non-blank lines, {card.difficulty_tag.value}"
    _limit(lines, cap, f"{what} allows {cap}")
    size = len(card_line(card).encode())
    _limit(size, MAX_CARD_BYTES, f"{size:,} bytes as JSON")


def _limit(count: int, most: int, what: str) -> None:
    if count > most:
        raise TextError(f"has {what}", f"keep at most {most:,}")


# Reading


def read_card(raw: str | bytes) -> Card:
    """Read one card from JSON that anyone may have written."""
    return card_of(read_json(raw))


def card_of(value: object) -> Card:
    """Return the card that a decoded JSON value describes."""
    if not isinstance(value, dict):
        raise CardError(
            "a card must be a JSON object",
            fix="give the fields card_id, payload and so on",
        )
    name = value.get("card_id")
    card_id = name if isinstance(name, str) else ""
    data = json.dumps(value, ensure_ascii=False)
    try:
        return Card.model_validate_json(data.encode("utf-8", "surrogatepass"))
    except ValidationError as error:
        raise _card_error(card_id, error) from None


def card_line(card: Card) -> str:
    """Return the card as canonical JSON on one line: fixed order, no spaces."""
    return card.model_dump_json()


def read_json(raw: str | bytes) -> object:
    """Decode JSON. Refuse NaN, infinities and very deep nesting."""
    try:
        return from_json(text_of(raw), allow_inf_nan=False)
    except ValueError as error:
        raise CardError(
            f"not valid JSON: {error}",
            fix="check commas, quotes and brackets there; double every backslash"
            " of LaTeX",
        ) from None


def text_of(raw: str | bytes) -> str:
    """Decode the text of a file."""
    try:
        return raw.decode("utf-8-sig") if isinstance(raw, bytes) else raw
    except UnicodeDecodeError as error:
        raise CardError(
            f"not UTF-8 text (byte {error.start})", fix="save the file as UTF-8"
        ) from None


def _card_error(card_id: str, error: ValidationError) -> CardError:
    what, fix = refusal(error)
    name = f"card {card_id[:64]!r}" if card_id else "a card without an id"
    return CardError(f"{name}: {what}", fix=fix)


def refusal(error: ValidationError) -> tuple[str, str]:
    """Return the first thing wrong with a value, in plain words, and its fix."""
    detail = error.errors(include_url=False)[0]
    place = one_line(".".join(map(str, detail["loc"])), 80)
    raised = detail.get("ctx", {}).get("error")
    if isinstance(raised, TextError):
        return f"{place} {raised.what}".strip(), raised.fix
    return (
        f"{place} is refused: {detail['msg']}",
        "see the card's fields in docs/concepts.md",
    )


# The measured lift, kept in `validated_lift`


class LiftMark(NamedTuple):
    """The change in the share of right attempts by a card, with its 95 % interval."""

    effect: float
    low: float
    high: float

    @property
    def tone(self) -> str:
        """Whether the interval is above zero ("good"), below ("bad") or "open"."""
        if self.low > 0:
            return "good"
        return "bad" if self.high < 0 else "open"

    @property
    def vague(self) -> bool:
        """Whether too few problems were tried to conclude anything."""
        return self.high - self.low >= 1.0


class CardLift(NamedTuple):
    """The lift noted on a card, and what it was measured on."""

    mark: LiftMark
    shown: int  # attempts with the card
    hidden: int  # attempts without it
    problems: int
    method: str
    epoch: int

    @property
    def line(self) -> str:
        """The lift in words, as `validated_lift` of a card holds it."""
        effect, low, high = map(plain_points, self.mark)
        return (
            f"{effect} points [{low}, {high}], {self.shown} attempts with,"
            f" {self.hidden} without, {self.problems} problems, {self.method},"
            f" epoch {self.epoch}"
        )


_FIGURE = r"([+-]?\d+(?:\.\d+)?)"
_LIFT = re.compile(
    rf"""{_FIGURE}\ points\ \[{_FIGURE},\ {_FIGURE}\]
    ,\ (\d+)\ attempts\ with,\ (\d+)\ without,\ (\d+)\ problems,\ ([\w-]+)
    ,\ epoch\ (\d+)""",
    re.VERBOSE,
)


def lift_of(card: Card) -> CardLift | None:
    """Read the lift of a card; None where the field is empty or in other words."""
    found = _LIFT.match(card.provenance.validated_lift)
    if not found:
        return None
    shown, hidden, problems = map(int, found.group(4, 5, 6))
    shares = [float(figure) / 100 for figure in found.group(1, 2, 3)]
    mark = LiftMark(*shares)
    return CardLift(mark, shown, hidden, problems, found[7], int(found[8]))


def plain_points(share: float) -> str:
    """Return a share in percentage points with its sign, in ASCII."""
    # Adding zero turns -0.0 into 0.0.
    return f"{round(100 * share, 1) + 0.0:+.1f}"
