"""A page read as a browser would: its text, its links and fields, and everything in it that could do something."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

FILE = re.compile(r"[A-Za-z0-9._-]+\.html(#[A-Za-z0-9._~-]+)?")
ALLOWED = re.compile(
    "html|head|meta|title|link|script|body|a|header|nav|[uo]l|li|main|footer|section|aside|p|h[1-6]|b|small|span|div|"
    "code|pre|kbd|em|strong|blockquote|hr|br|wbr|table|thead|tbody|t[rhd]|details|summary|d[ltd]|form|input|textarea|"
    "label|button|select|option|figure|figcaption|svg|g|line|rect|circle|text|path|progress|time|i|ins|del|"
    "noscript|article"
)


@dataclass
class Audit(HTMLParser):
    """What stands on a page."""

    html: str
    text: str = ""
    links: list[str] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)
    """Hidden inputs and text areas by their names."""
    strange: list[str] = field(default_factory=list)
    """Elements and attributes that no page of ours has."""

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._area: str | None = None
        self.feed(self.html)
        self.text = re.sub(r"\s+", " ", self.text)

    def __hash__(self) -> int:
        return id(self)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if not ALLOWED.fullmatch(tag):
            self.strange.append(tag)
        for name, value in given.items():
            leads = name in ("href", "src", "action", "formaction") and not value.startswith(("/", "#", "?", "assets/"))
            if name.startswith("on") or name == "style" or (leads and not FILE.fullmatch(value)):
                self.strange.append(f"{tag} {name}={value}")
        if tag == "script" and not given.get("src", "").startswith(("/assets/", "assets/")):
            self.strange.append("script")
        if "href" in given and tag == "a":
            self.links.append(given["href"])
        if tag == "input":
            self.fields[given.get("name", "")] = given.get("value", "")
        if tag == "textarea":
            self._area = given["name"]
            self.fields[self._area] = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._area = None

    def handle_data(self, data: str) -> None:
        if self._area is not None:
            self.fields[self._area] += data
        self.text += data + " "

    @property
    def written(self) -> str:
        """What a browser would show in the text area: the first line break is dropped."""
        return self.fields["text"].removeprefix("\n")


def body_of(html: str) -> str:
    """The page without its head, bar and foot."""
    return html.split("<main", 1)[1].split("</main>")[0]
