"""Small facts in a row: what each is, and its value."""

from __future__ import annotations

from collections.abc import Mapping

from kace.web.markup import Html, tag


def facts(found: Mapping[str, str]) -> Html:
    """The facts that have a value."""
    drawn = (tag("li", f"{name} ", tag("b", value)) for name, value in found.items() if value)
    return tag("ul", *drawn, class_="facts")
