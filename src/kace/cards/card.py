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

from kace.errors import DataError, one_line, points

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
LEGACY = ("scope", "tier_eligibility", "tag")
_EVERYWHERE = ("general", "global", "all", "any")
TRUSTED = {"trusted": True}
"""Validation context for text whose hash shows that it has passed every rule."""

USEFUL = "Useful when:"
AVOID = "Do not apply if:"
BULLET = "- "
EXAMPLE = "Example:"
WORKED = "Worked:"
_BULLETS = rf"(?:\n{BULLET}[^\n]*[^\s][^\n]*)+"
_HEADER = re.compile(rf"{USEFUL}[ \t]*{_BULLETS}(?:\n{AVOID}[ \t]*{_BULLETS})?")

_NAME = re.compile("[a-z][a-z0-9]*(_[a-z0-9]+)*")
# The teacher is asked for 3 to 6 words; other stores have longer ids.
_ID = re.compile("[A-Z0-9]+(_[A-Z0-9]+){2,}")
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

    useful: tuple[str, ...]
    avoid: tuple[str, ...]
    body: str
    examples: tuple[Example, ...]


def line_count(text: str) -> int:
    """Return the number of non-blank lines."""
    return sum(bool(line.strip()) for line in text.split("\n"))


def _split_rule(rule: str) -> tuple[str, str]:
    """Split a rule at its first blank line into header and body."""
    parts = re.split(r"\n[ \t]*(?:\n|$)", rule.strip("\n"), maxsplit=1)
    return parts[0], parts[1].strip("\n") if len(parts) > 1 else ""


def split_examples(payload: str) -> tuple[str, tuple[Example, ...]]:
    """Split a payload into its rule and its examples.

    Where a part lacks its problem or its solution, nothing is split off.
    """
    rule, *parts = payload.split(f"\n\n{EXAMPLE}\n")
    examples = []
    for part in parts:
        example = read_example(part)
        if example is None:
            return payload, ()
        examples.append(example)
    return rule, tuple(examples)


def read_example(text: str) -> Example | None:
    """Read a problem, a line `Worked:` and a solution."""
    problem, _, worked = f"\n{text}".partition(f"\n{WORKED}\n")
    example = Example(problem.strip(), worked.strip())
    return example if example.problem and example.worked else None


def with_examples(payload: str, examples: Sequence[Example]) -> str:
    """Return a payload with these examples instead of its own."""
    parts = [split_examples(payload)[0].rstrip("\n")]
    for example in examples:
        parts.append(example.text)
    return "\n\n".join(parts)


def read_payload(payload: str) -> CardText:
    """Split a payload into its parts, as far as possible."""
    rule, examples = split_examples(payload)
    header, body = _split_rule(rule)
    if not header.startswith(USEFUL):
        return CardText((), (), rule, examples)
    bullets: dict[str, list[str]] = {USEFUL: [], AVOID: []}
    section = []
    for line in header.split("\n"):
        if line.strip() in bullets:
            section = bullets[line.strip()]
        elif line.startswith(BULLET):
            section.append(line.removeprefix(BULLET).strip())
    return CardText(
        tuple(bullets[USEFUL]), tuple(bullets[AVOID]), body, examples
    )


def cut_triggers(payload: str) -> str:
    """Return a payload whose triggers have no more words than they may have."""
    header, gap, rest = payload.partition("\n\n")
    lines = []
    useful = False
    for line in header.split("\n"):
        if line.strip() in (USEFUL, AVOID):
            useful = line.strip() == USEFUL
        elif useful and line.startswith(BULLET):
            words = line.removeprefix(BULLET).split()
            line = BULLET + " ".join(words[:TRIGGER_WORDS])
        lines.append(line)
    return "\n".join(lines) + gap + rest


def _check_payload(payload: str) -> None:
    """Check the form of a payload. Raise `TextError`."""
    rule, examples = split_examples(payload)
    header, body = _split_rule(rule)
    if not _HEADER.fullmatch(header):
        raise TextError(
            f"does not begin with a trigger header ({_cut(header)})",
            f"begin with '{USEFUL}' and bullets '{BULLET}...', then optionally"
            f" '{AVOID}' and bullets, then a blank line and the body",
        )
    for trigger in read_payload(payload).useful:
        words = len(trigger.split())
        if words > TRIGGER_WORDS:
            raise TextError(
                f"has a trigger of {words} words ({_cut(trigger)})",
                f"use at most {TRIGGER_WORDS} words",
            )
    if not body.strip() or body.lstrip().startswith((USEFUL, AVOID)):
        raise TextError(
            "has no body after its header",
            "put one blank line after the whole header, then the body",
        )
    if len(examples) > MAX_EXAMPLES:
        raise TextError(
            f"has {len(examples)} examples", f"keep at most {MAX_EXAMPLES}"
        )
    for example in examples:
        lines = line_count(example.text) - 2
        if lines > EXAMPLE_LINES:
            raise TextError(
                f"has an example of {lines} non-blank lines",
                f"use at most {EXAMPLE_LINES}",
            )


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


def _check_id(text: str) -> str:
    if not _ID.fullmatch(text):
        raise TextError(
            f"{_cut(text)} is not 3 or more words of A-Z and 0-9 joined by '_'",
            "use an id such as EXACT_SUM_OF_SQUARES",
        )
    if not text.startswith(PREFIXES):
        raise TextError(
            f"{_cut(text)} is an id without a known prefix",
            f"begin the id with one of {' '.join(PREFIXES)}",
        )
    return text


def _check_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise TextError(
            f"{_cut(text)} is not snake_case",
            "use a name such as number_theory",
        )
    return text


def _cut(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:37]}...")


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
Name = Annotated[str, Field(max_length=64), AfterValidator(_check_name)]
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

    card_id: Annotated[str, Field(max_length=64), AfterValidator(_check_id)]
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
        Field(max_length=MAX_WORDINGS, exclude_if=lambda lines: not lines),
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
    def header(self) -> str:
        """The payload before its first blank line."""
        return _split_rule(self.rule)[0]

    @property
    def body(self) -> str:
        """The payload after its first blank line, up to its examples."""
        return _split_rule(self.rule)[1]

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

    def at(self, difficulty: Difficulty, domains: Sequence[str]) -> Card:
        """Return the card at another place, where its body must respect the cap."""
        return self._replace(
            difficulty_tag=difficulty, domain_tags=tuple(domains)
        )

    def with_status(self, status: Status) -> Card:
        """Return the card with another promotion status."""
        record = dict(self.provenance) | {"promotion_status": status}
        return self._replace(provenance=record)

    def with_payload(self, payload: str) -> Card:
        """Return the card with another payload."""
        return self._replace(payload=payload)

    def illustrated(self, examples: Sequence[Example]) -> Card:
        """Return the card with these examples instead of its own."""
        return self.with_payload(with_examples(self.payload, examples))

    def worded(self, wordings: Sequence[str]) -> Card:
        """Return the card with these wordings instead of its own."""
        return self._replace(wordings=tuple(wordings))

    def _replace(self, **fields: object) -> Card:
        try:
            return Card.model_validate(dict(self) | fields)
        except ValidationError as error:
            raise _card_error(self.card_id, error) from None


def _check(card: Card) -> None:
    """Check the rules that pydantic cannot express. Raise `TextError`."""
    _check_payload(card.payload)
    lines = line_count(card.body)
    difficulty = card.difficulty_tag
    cap = BODY_CAPS[difficulty]
    if lines > cap:
        raise TextError(
            f"has a body of {lines} non-blank lines, {difficulty.value} allows {cap}",
            "shorten the body, or split the card",
        )
    if len(set(card.domain_tags)) < len(card.domain_tags):
        raise TextError(
            "repeats a domain tag",
            "name each domain once",
        )
    if len(card_line(card).encode()) > MAX_CARD_BYTES:
        raise TextError(
            f"is larger than {MAX_CARD_BYTES:,} bytes as JSON", "keep it short"
        )


# Reading


def read_card(raw: str | bytes) -> Card:
    """Read one card from JSON that anyone may have written.

    At most 16 KiB; every rule is checked and the fields of old stores are migrated.
    """
    data = raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else raw
    if len(data) > MAX_CARD_BYTES:
        raise CardError(
            f"the card is {len(data):,} bytes, more than {MAX_CARD_BYTES:,}",
            fix="give one card, and keep it short",
        )
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
    data = json.dumps(_migrate(value), ensure_ascii=False)
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
        text = raw.decode("utf-8-sig") if isinstance(raw, bytes) else raw
        return from_json(text, allow_inf_nan=False)
    except UnicodeDecodeError as error:
        raise CardError(
            f"not UTF-8 text (byte {error.start})", fix="save the file as UTF-8"
        ) from None
    except ValueError as error:
        raise CardError(
            f"not valid JSON: {error}",
            fix="check commas, quotes and brackets there; double every backslash"
            " of LaTeX",
        ) from None


def _migrate(value: Mapping[str, object]) -> dict[str, object]:
    """Drop the fields of old stores; the names in `scope` become domain tags."""
    record = dict(value)
    for name in LEGACY:
        record.pop(name, None)
    scope = value.get("scope")
    names = [scope] if isinstance(scope, str) else scope
    tags = record.get("domain_tags", [])
    if isinstance(names, list) and isinstance(tags, list):
        for name in map(str, names):
            tag = "_".join(name.lower().replace("-", " ").split())
            tag = UNIVERSAL if tag in _EVERYWHERE else tag
            if tag not in tags:
                tags = [*tags, tag]
        record["domain_tags"] = tags
    return record


def _card_error(card_id: str, error: ValidationError) -> CardError:
    what, fix = refusal(error)
    name = f"card {card_id[:64]!r}" if card_id else "a card without an id"
    return CardError(f"{name}: {what}", fix=fix)


def refusal(error: ValidationError) -> tuple[str, str]:
    """Return the first thing wrong with a value, in plain words, and its fix."""
    detail = error.errors(include_url=False)[0]
    place = ""
    for part in detail["loc"]:
        place += f"[{part}]" if isinstance(part, int) else f".{part[:40]}"
    place = one_line(place.removeprefix("."))
    raised = detail.get("ctx", {}).get("error")
    if isinstance(raised, TextError):
        return f"{place} {raised.what}".strip(), raised.fix
    return (
        f"{place} is refused: {detail['msg'][0].lower()}{detail['msg'][1:]}",
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

    @property
    def words(self) -> str:
        """The figures, in points."""
        return (
            f"{points(self.effect)} [{points(self.low)}, {points(self.high)}]"
        )


class LiftCounts(NamedTuple):
    """What a lift was measured on."""

    shown: int  # attempts with the card
    hidden: int  # attempts without it
    problems: int
    method: str


class CardLift(NamedTuple):
    """The lift noted on a card; without counts where only its tree was measured."""

    mark: LiftMark
    counts: LiftCounts | None
    epoch: int | None


_FIGURE = r"([+-]?\d+(?:\.\d+)?)"
_LIFT = re.compile(
    rf"""{_FIGURE}\ points\ \[{_FIGURE},\ {_FIGURE}\]
    (?:,\ (\d+)\ attempts\ with,\ (\d+)\ without,\ (\d+)\ problems,\ ([\w-]+)
    (?:,\ epoch\ (\d+))?)?""",
    re.VERBOSE,
)


def lift_line(
    mark: LiftMark,
    counts: LiftCounts | None,
    epoch: int,
) -> str:
    """Return a lift in words, as `validated_lift` of a card holds it."""
    measured = "judged by its tree alone"
    if counts:
        shown, hidden, problems, method = counts
        measured = f"{shown} attempts with, {hidden} without, {problems} problems, {method}"
    effect, low, high = map(plain_points, mark)
    return f"{effect} points [{low}, {high}], {measured}, epoch {epoch}"


def lift_of(card: Card) -> CardLift | None:
    """Read the lift of a card; None where the field is empty or in other words."""
    found = _LIFT.match(card.provenance.validated_lift)
    if not found:
        return None
    effect, low, high, shown, hidden, problems, method, epoch = found.groups()
    mark = LiftMark(float(effect) / 100, float(low) / 100, float(high) / 100)
    counts = None
    if method:
        counts = LiftCounts(int(shown), int(hidden), int(problems), method)
    return CardLift(mark, counts, int(epoch) if epoch else None)


def plain_points(share: float) -> str:
    """Return a share in percentage points with its sign, in ASCII."""
    return (
        f"{round(100 * share, 1) + 0.0:+.1f}"  # adding zero turns -0.0 into 0.0
    )
