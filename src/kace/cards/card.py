"""A card: one piece of knowledge, where it lives, and where it came from. Strict at the border, trusted inside."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, NoReturn, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import ErrorDetails

from kace.cards import card_text
from kace.cards.card_text import BULLET, LINE, TEXT, Example, TextError
from kace.errors import DataError
from kace.ladder.tiers import TierName

MAX_CARD_BYTES = 16_384
MAX_PAYLOAD = 8_000
MAX_LINE = 300
MAX_WORDINGS = 40
MAX_COUNT = 1 << 53
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
TRUSTED = {
    "trusted": True
}  # validation context for text whose hash says that it passed every rule already

SNAKE = r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$"
ID = r"^[A-Z0-9]+(_[A-Z0-9]+){2,5}$"
_FIXES = {
    "missing": "add the field",
    "extra_forbidden": "remove the field",
    "too_long": "remove some",
    "too_short": "give at least one",
    "string_too_long": "shorten it",
    "finite_number": "use a finite number",
}
_SHAPES = {
    "card_id": (
        "is not 3 to 6 words of A-Z and 0-9 joined by '_'",
        "use an id such as EXACT_SUM_OF_SQUARES",
    ),
    "domain_tags": ("is not snake_case", "use a name such as number_theory"),
    "name": ("is not snake_case", "use a name such as number_theory"),
}
_EVERYWHERE = ("general", "global", "all", "any")


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

VISIBLE: Mapping[TierName, frozenset[Difficulty]] = {
    TierName.ES: frozenset(),
    TierName.FLAT: frozenset(),
    TierName.MS: frozenset({Difficulty.MEDIUM, Difficulty.UNIVERSAL}),
    TierName.HS: frozenset({Difficulty.HARD, Difficulty.UNIVERSAL}),
}
"""What each tier may read. Strict: a tier never reads what another tier's difficulty holds."""


class CardError(DataError):
    """A card that breaks a rule; the message names the card where its id is known."""


Line = Annotated[str, StringConstraints(pattern=LINE, max_length=MAX_LINE)]
Name = Annotated[str, StringConstraints(pattern=SNAKE, max_length=64)]
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]


class StrictRecord(BaseModel):
    """A value that takes no other types, no other fields and no changes."""

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
    """One card. Build it in Python with the constructor, from outside with `read_card`."""

    card_id: Annotated[str, StringConstraints(pattern=ID, max_length=64)]
    payload: Annotated[str, StringConstraints(pattern=TEXT, max_length=MAX_PAYLOAD)]
    routing_conditions: Annotated[tuple[Line, ...], Field(max_length=12)]
    difficulty_tag: Difficulty
    domain_tags: Annotated[tuple[Name, ...], Field(min_length=1, max_length=16)]
    helpfulness_score: Annotated[float, Field(allow_inf_nan=False)]
    provenance: Provenance
    # Problems of its kind in other stories, by which it is found (document expansion); no solver reads them.
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

    def _repr_html_(self) -> str:
        from kace.markup import join, tag

        return join([tag("p", tag("b", self.card_id)), tag("pre", self.payload)])

    @property
    def triggers(self) -> tuple[str, ...]:
        """The `Useful when:` bullets."""
        useful = self.header.split(f"\n{card_text.AVOID}", 1)[0].split("\n")
        return tuple(
            line.removeprefix(BULLET).strip()
            for line in useful
            if line.startswith(BULLET)
        )

    @property
    def header(self) -> str:
        """The payload before its first blank line."""
        return card_text.split_payload(self.payload)[0]

    @property
    def body(self) -> str:
        """The payload after its first blank line, up to its examples."""
        return card_text.split_payload(self.payload)[1]

    @property
    def rule(self) -> str:
        """The payload without its examples."""
        return card_text.split_examples(self.payload)[0].strip()

    @property
    def examples(self) -> tuple[Example, ...]:
        """Problems of the card's kind, worked."""
        return card_text.split_examples(self.payload)[1]

    @property
    def status(self) -> Status:
        """How far the card has come."""
        return self.provenance.promotion_status

    def at(self, difficulty: Difficulty, domains: Sequence[str]) -> Card:
        """The card at another place. Its body must respect the cap there."""
        return self._with(difficulty_tag=difficulty, domain_tags=tuple(domains))

    def with_status(self, status: Status) -> Card:
        """The card with another promotion status."""
        return self._with(
            provenance={**dict(self.provenance), "promotion_status": status}
        )

    def with_payload(self, payload: str) -> Card:
        """The card saying something else."""
        return self._with(payload=payload)

    def illustrated(self, examples: Sequence[Example]) -> Card:
        """The card with these examples instead of its own."""
        return self.with_payload(card_text.with_examples(self.payload, tuple(examples)))

    def worded(self, wordings: Sequence[str]) -> Card:
        """The card, found by these wordings instead of its own."""
        return self._with(wordings=tuple(wordings))

    def _with(self, **fields: object) -> Card:
        try:
            return Card.model_validate({**dict(self), **fields})
        except ValidationError as error:
            raise _error(self.card_id, *refusal(error)) from None


def read_card(raw: str | bytes, read: Callable[[object], Card] | None = None) -> Card:
    """Read one card from JSON given by anyone: at most 16 KiB, every rule checked, old stores' fields migrated.

    `read` makes the card of the decoded value, where that is not `card_of`.
    """
    size = (
        len(raw)
        if isinstance(raw, bytes)
        else len(raw.encode("utf-8", "surrogatepass"))
    )
    if size > MAX_CARD_BYTES:
        what = f"the card is {size:,} bytes, more than {MAX_CARD_BYTES:,}"
        raise CardError(what, fix="give one card, and keep it short")
    return (read or card_of)(read_json(raw))


def card_of(value: object) -> Card:
    """The card that a decoded JSON value describes, under the rules of `read_card`."""
    if not isinstance(value, dict):
        raise CardError(
            "a card must be a JSON object",
            fix="give the fields card_id, payload and so on",
        )
    card_id = name if isinstance(name := value.get("card_id"), str) else ""
    try:
        text = json.dumps(_migrated(value), ensure_ascii=False).encode(
            "utf-8", "surrogatepass"
        )
        if len(text) > MAX_CARD_BYTES * 2:
            raise _error(
                card_id, f"is larger than {MAX_CARD_BYTES:,} bytes", "keep it short"
            )
        return Card.model_validate_json(text)
    except ValidationError as error:
        raise _error(card_id, *refusal(error)) from None


def card_line(card: Card) -> str:
    """The card as canonical JSON on one line: the fields in fixed order, no spaces, no newline at the end."""
    return card.model_dump_json()


def read_json(raw: str | bytes) -> object:
    """Decode JSON, refusing repeated keys, numbers that are none, and nesting no card needs."""
    try:
        text = raw.decode("utf-8-sig") if isinstance(raw, bytes) else raw
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise CardError(
            f"not UTF-8 text (byte {error.start})", fix="save the file as UTF-8"
        ) from None
    except json.JSONDecodeError as error:
        what = error.msg.lower()
        where = f"line {error.lineno} column {error.colno}"
        escape = "escape" in what
        fix = (
            "double every backslash of LaTeX in JSON"
            if escape
            else "check commas, quotes and brackets there"
        )
        raise CardError(f"not valid JSON: {what} ({where})", fix=fix) from None
    except RecursionError:
        raise CardError(
            "the JSON is nested too deeply",
            fix="a card holds lists of text and one object",
        ) from None
    except ValueError as error:  # a number of thousands of digits
        raise CardError(
            f"not valid JSON: {str(error).split(';')[0].lower()}",
            fix="use an ordinary number",
        ) from None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise CardError(
            f"the key {twice[:64]!r} appears twice in one JSON object",
            fix="keep one of the two",
        )
    return found


def _no_number(name: str) -> NoReturn:
    raise CardError(f"{name} is no number", fix="use a finite number")


def _migrated(value: Mapping[str, object]) -> dict[str, object]:
    """The record without the fields of old stores; what `scope` named becomes domain tags."""
    record = {name: content for name, content in value.items() if name not in LEGACY}
    scope = value.get("scope")
    named = [scope] if isinstance(scope, str) else scope
    tags = record.get("domain_tags", [])
    if (
        isinstance(named, list)
        and all(isinstance(name, str) for name in named)
        and isinstance(tags, list)
    ):
        snake = ("_".join(name.lower().replace("-", " ").split()) for name in named)
        scopes = dict.fromkeys(
            UNIVERSAL if name in _EVERYWHERE else name for name in snake
        )
        record["domain_tags"] = [
            *tags,
            *(tag for tag in scopes if tag and tag not in tags),
        ]
    return record


def _check(card: Card) -> None:
    """The rules that pydantic cannot say. Raises `TextError`."""
    if not card.card_id.startswith(PREFIXES):
        raise TextError(
            "has an id without a known prefix",
            f"begin the id with one of {' '.join(PREFIXES)}",
        )
    if broken := card_text.broken_tex(
        "\x1f".join((card.payload, *card.routing_conditions, *card.wordings))
    ):
        raise broken
    lines = card_text.line_count(card_text.read_payload(card.payload).body)
    cap = BODY_CAPS[card.difficulty_tag]
    if lines > cap:
        what = f"has a body of {lines} non-blank lines, {card.difficulty_tag.value} allows {cap}"
        raise TextError(what, "shorten the body, or split the card")
    if len(set(card.domain_tags)) < len(card.domain_tags):
        raise TextError("repeats a domain tag", "name each domain once")
    if len(card.model_dump_json().encode()) > MAX_CARD_BYTES:
        raise TextError(
            f"is larger than {MAX_CARD_BYTES:,} bytes as JSON", "keep it short"
        )


def _error(card_id: str, what: str, fix: str) -> CardError:
    known = f"card {card_id[:64]!r}" if card_id else "a card without an id"
    return CardError(f"{known}: {what}", fix=fix)


def refusal(error: ValidationError) -> tuple[str, str]:
    """What a validation error holds against a value first, in plain words, and the fix."""
    details = error.errors(include_url=False)
    first = next((d for d in details if d["type"] == "extra_forbidden"), details[0])
    place = ""
    for part in first["loc"]:
        known = isinstance(part, int) or (
            part.isidentifier() and len(part) <= 40
        )  # else a stranger's key
        place += (
            f"[{part}]"
            if isinstance(part, int)
            else f".{part}"
            if known
            else f".{part[:40]!r}"
        )
    what, fix = _cause(first)
    return f"{place} {what}".lstrip(".") if place else what, fix


def _cause(detail: ErrorDetails) -> tuple[str, str]:
    kind = detail["type"]
    given = detail.get("input")
    context = detail.get("ctx", {})
    raised = context.get("error")
    if isinstance(raised, TextError):
        return raised.what, raised.fix
    if kind in ("string_pattern_mismatch", "string_unicode"):
        field = next(
            (part for part in reversed(detail["loc"]) if isinstance(part, str)), ""
        )
        if field in _SHAPES and isinstance(given, str):
            return f"{given[:40]!r} {_SHAPES[field][0]}", _SHAPES[field][1]
        stray = (
            card_text.stray_character(given, one_line=field != "payload")
            if isinstance(given, str)
            else None
        )
        lone = "holds a lone surrogate, which no text file can keep", "remove it"
        return (stray.what, stray.fix) if stray else lone
    if kind == "json_invalid":
        return (
            f"is not valid JSON: {context.get('error', '')}",
            "check quotes, escapes and characters there",
        )
    message = detail["msg"][0].lower() + detail["msg"][1:]
    shown = (
        f" (got {given!r:.40})"
        if isinstance(given, (str, int, float, bool)) and "type" in kind
        else ""
    )
    return f"is refused: {message}{shown}", _FIXES.get(
        kind, "see the card's fields in docs/concepts.md"
    )
