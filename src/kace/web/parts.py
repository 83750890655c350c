"""The parts that every page of a report is made of: the document itself, tables, tiles, legends and badges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.resources import files

from kace.web.markup import Html, tag

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
FEW = 12
"""Rows up to which a table is open when the page is."""


def document(title: str, *sections: Html) -> str:
    """A page that needs nothing else: no script, no font, no network."""
    style = files("kace.web").joinpath("page.css").read_text(encoding="utf-8")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        tag("style", Html(style)),
    )
    body = tag("body", tag("main", *sections))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, right: frozenset[str] = frozenset()) -> Html:
    """A table that a phone shows as a list of its rows. Columns named in `right` hold figures."""
    top = tag("tr", *(tag("th", head, scope="col", class_="right" if head in right else None) for head in heads))
    body = [
        tag(
            "tr",
            *(
                tag("td", cell, data_label=head, class_="right num" if head in right else None)
                for head, cell in zip(heads, row, strict=True)
            ),
        )
        for row in rows
    ]
    return tag("table", tag("thead", top), tag("tbody", *body), class_="rows")


def folded(title: str, content: Html, rows: int, *, open_up_to: int = FEW) -> Html:
    """Content under a heading, open from the start where it is short."""
    return tag("details", tag("summary", f"{title} ({rows:,})"), content, open="" if rows <= open_up_to else None)


def tile(value: str, about: str) -> Html:
    """A large figure and what it is."""
    return tag("div", tag("b", value), tag("span", about), class_="tile")


def legend(items: Iterable[tuple[str, str, str]]) -> Html:
    """What the marks of a chart mean: colour, shape and words of each."""
    return tag(
        "ul",
        *(tag("li", tag("i", class_=shape), tag("span", words), class_=colour) for colour, shape, words in items),
        class_="legend",
    )


def badge(words: str, colour: str) -> Html:
    """A word in a coloured pill."""
    return tag("span", words, class_=f"badge {colour}")
