"""What a validation error says, in one line: which field, what is wrong with it, and the fix."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from kace.tree.card_text import TextError, stray_character

_FIXES = {
    "missing": "add the field",
    "extra_forbidden": "remove the field",
    "too_long": "remove some",
    "too_short": "give at least one",
    "string_too_long": "shorten it",
    "finite_number": "use a finite number",
}
_SHAPES = {
    "card_id": ("is not 3 to 6 words of A-Z and 0-9 joined by '_'", "use an id such as EXACT_SUM_OF_SQUARES"),
    "domain_tags": ("is not snake_case", "use a name such as number_theory"),
    "name": ("is not snake_case", "use a name such as number_theory"),
}


class Refusal(NamedTuple):
    """Why a value is not accepted."""

    what: str
    fix: str


def refusal(error: ValidationError) -> Refusal:
    """The first thing a validation error holds against a value, in plain words."""
    details = error.errors(include_url=False)
    first = next((d for d in details if d["type"] == "extra_forbidden"), details[0])
    place = "".join(map(_step, first["loc"])).lstrip(".")
    cause = _cause(first)
    return Refusal(f"{place} {cause.what}" if place else cause.what, cause.fix)


def _step(part: int | str) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    return f".{part}" if part.isidentifier() and len(part) <= 40 else f".{part[:40]!r}"  # a stranger's key


def _cause(detail: ErrorDetails) -> Refusal:
    kind, given, context = detail["type"], detail.get("input"), detail.get("ctx", {})
    raised = context.get("error")
    if isinstance(raised, TextError):
        return Refusal(raised.what, raised.fix)
    fields = [part for part in detail["loc"] if isinstance(part, str)]
    field = fields[-1] if fields else ""
    if kind in ("string_pattern_mismatch", "string_unicode"):
        stray = stray_character(given, one_line=field != "payload") if isinstance(given, str) else None
        if field in _SHAPES and isinstance(given, str):
            what, fix = _SHAPES[field]
            return Refusal(f"{given[:40]!r} {what}", fix)
        if stray is not None:
            return Refusal(stray.what, stray.fix)
        return Refusal("holds a lone surrogate, which no text file can keep", "remove it")
    if kind == "json_invalid":
        return Refusal(f"is not valid JSON: {context.get('error', '')}", "check quotes, escapes and characters there")
    message = detail["msg"][0].lower() + detail["msg"][1:]
    shown = f" (got {given!r:.40})" if isinstance(given, (str, int, float, bool)) and "type" in kind else ""
    return Refusal(f"is refused: {message}{shown}", _FIXES.get(kind, "see the card's fields in docs/cards.md"))
