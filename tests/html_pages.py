"""A page as a browser would see it."""

from __future__ import annotations

from html.parser import HTMLParser


class Markup(HTMLParser):
    """The tags and attributes of a page; every element is closed where it should be."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []

    def all(self, name: str) -> list[dict[str, str]]:
        """The attributes of every element of a name."""
        return [attributes for tag, attributes in self.elements if tag == name]

    def handle_starttag(self, name: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(name, attrs)
        if name not in ("meta", "link", "br"):
            self.open.append(name)

    def handle_startendtag(self, name: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(name)
        self.elements.append((name, {key: value or "" for key, value in attrs}))
        self.attributes += [(key, value or "") for key, value in attrs]

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name


def parsed(html: str) -> Markup:
    """The page, read to its end."""
    seen = Markup()
    seen.feed(html)
    seen.close()
    assert seen.open == []
    return seen
