from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from kace.view.links import Links
from kace.view.page import Crumb, Page
from kace.view.prose import maths
from kace.view.shelf import open_shelf
from kace.view.shell import FILE_POLICY, asset, assets, assets_mark, document, nav_of
from kace.web.markup import Html, join, tag
from tests.view.samples import a_run, a_shelf_of_all

PAGE = Page(
    "A <title>", join([tag("h1", "Here"), maths("x^2")]), (Crumb("Home", "/"), Crumb("oak", "/tree/oak")), refresh=3.0
)
SERVED, FILES = Links(), Links(static=True)


class Seen(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == name]


@pytest.mark.parametrize("links", [SERVED, FILES])
def test_a_page_has_a_language_a_title_landmarks_and_a_way_past_the_bar(links):
    text = document(PAGE, links, nav=Html("<nav></nav>"))
    seen = Seen(text)
    assert text.startswith("<!doctype html>\n<html lang=")
    assert "<title>A &lt;title&gt; · kace</title>" in text
    assert len(seen.all("main")) == len(seen.all("header")) == len(seen.all("footer")) == 1
    first = next(attributes for tag, attributes in seen.tags if tag == "a")
    assert first["href"] == "#content" and seen.all("main")[0]["id"] == "content"


@pytest.mark.parametrize("links", [SERVED, FILES])
def test_nothing_in_the_frame_is_inline_or_comes_from_elsewhere(links):
    seen = Seen(document(PAGE, links))
    for name, attributes in seen.tags:
        assert not any(key == "style" or key.startswith("on") for key in attributes)
        assert name not in {"style", "base", "iframe", "object", "embed"}
        for key in ("src", "href"):
            assert not re.match(r"[a-z]+:|//", attributes.get(key) or "")
    assert all(script["src"] and "defer" in script for script in seen.all("script"))


def test_the_way_to_a_page_is_shown():
    text = document(PAGE, SERVED)
    assert (
        '<li><a href="/">Home</a></li><li><a href="/tree/oak">oak</a></li><li aria-current="page">A &lt;title&gt;'
        in text
    )


def test_only_a_served_page_looks_for_news():
    assert 'data-refresh="3.0"' in document(PAGE, SERVED)
    assert "refresh" not in document(PAGE, FILES)
    assert "refresh" not in document(Page("t", Html("")), SERVED)


def test_only_a_file_carries_its_policy_with_it():
    policies = [each.get("content") for each in Seen(document(PAGE, FILES)).all("meta") if "http-equiv" in each]
    assert policies == [FILE_POLICY]
    assert "Content-Security-Policy" not in document(PAGE, SERVED)


def test_the_policy_of_a_file_allows_no_inline_script_and_no_host():
    assert FILE_POLICY.startswith("default-src 'none'; ")
    assert not re.search(r"unsafe|https?:|\*|connect-src|frame-src", FILE_POLICY)


def test_the_bar_leads_to_a_single_item_at_once_and_to_several_by_the_list(tmp_path):
    a_shelf_of_all(tmp_path)
    shelf = open_shelf([tmp_path])
    nav = Seen(nav_of(shelf, SERVED, "/"))
    assert [link["href"] for link in nav.all("a")] == ["/", "/tree/oak", "/#run", "/learner/oak", "/inbox/letters"]
    assert [link.get("aria-current") for link in nav.all("a")] == ["page", None, None, None, None]


def test_the_bar_says_where_one_is(tmp_path):
    shelf = open_shelf([a_run(tmp_path / "first")])
    assert '<a href="/run/first" aria-current="page">Runs</a>' in nav_of(shelf, SERVED, "/run/first")
    assert '<a href="/run/first" aria-current="true">Runs</a>' in nav_of(shelf, SERVED, "/run/first/problem/x/0")
    assert '<a href="run-first-' in nav_of(shelf, FILES, "/")


def test_a_served_asset_carries_the_mark_of_its_content():
    assert asset(SERVED, "kace.css") == f"/assets/{assets_mark()}/kace.css"
    assert asset(FILES, "kace.css") == "assets/kace.css"


def test_every_file_that_a_page_asks_for_is_there():
    seen = Seen(document(PAGE, FILES))
    asked = [each["src"] for each in seen.all("script")] + [each["href"] for each in seen.all("link")]
    assert {str(name).removeprefix("assets/") for name in asked} <= set(assets())
    fonts = re.findall(rb"url\(([^)]+\.woff2)\)", assets()["katex/katex.min.css"])
    assert fonts and all(f"katex/{name.decode()}" in assets() for name in fonts)
    assert "katex/LICENSE" in assets()


def test_only_a_page_with_maths_loads_what_sets_it():
    assert "katex.min.js" in document(PAGE, SERVED)
    assert "katex" not in document(Page("t", tag("p", 'class="math"')), SERVED)
