"""HTML built from parts. Text is escaped unless it is markup already, so nothing from outside becomes markup."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from markupsafe import Markup

# Controls, lone surrogates, and marks that hide or reorder what stands on the page. Newline and tab stay.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_OPEN = frozenset({"meta", "link", "br", "hr", "input"})
_CLOSED = frozenset({"line", "rect", "circle", "path"})


class Html(Markup):
    """Text that is markup already."""

    __slots__ = ()


def seen(value: str) -> str:
    """The text without what nobody would see of it."""
    return _UNSEEN.sub("", value)


def join(parts: Iterable[str]) -> Html:
    """Parts one after the other: a text is shown whatever it says, and does nothing else."""
    return Html(
        "".join(
            part if isinstance(part, Markup) else html.escape(seen(part))
            for part in parts
        )
    )


def tag(name: str, /, *parts: str, **attributes: str | float | None) -> Html:
    """An element. `class_` is class, `stroke_width` is stroke-width; an attribute of `None` is left out."""
    given = {
        key.rstrip("_").replace("_", "-"): value
        for key, value in attributes.items()
        if value is not None
    }
    # An attribute's value is escaped even where it is markup: there it can only be text.
    pairs = "".join(
        f' {key}="{html.escape(seen(str(value)))}"'
        for key, value in given.items()
    )
    if name in _OPEN | _CLOSED and not parts:
        return Html(
            f"<{name}{pairs}>" if name in _OPEN else f"<{name}{pairs}/>"
        )
    return Html(f"<{name}{pairs}>{join(parts)}</{name}>")
