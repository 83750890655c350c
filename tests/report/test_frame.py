from __future__ import annotations

import re
from pathlib import Path

import pytest

import kace
from kace.report.pages import html_at
from kace.report.render import FILE_POLICY, Links, Page, assets, document, environment, maths
from kace.report.workspace import Workspace
from tests.html_pages import parsed
from tests.report.samples import a_shelf_of_all

PAGE = Page("error.html", "A <title>", {"status": 200, "sentences": [maths("x^2")]}, ("tree", "oak"), refresh=3.0)
PLAIN = Page("error.html", "t", {"status": 200, "sentences": ['class="math"']})
SERVED, FILES = Links(), Links(frozenset({"/", "/run/first"}))


@pytest.mark.parametrize("links", [SERVED, FILES])
def test_a_page_has_a_language_a_title_landmarks_and_a_way_past_the_bar(links):
    text = document(PAGE, links)
    seen = parsed(text)
    assert text.startswith("<!doctype html>\n<html lang=")
    assert "<title>A &lt;title&gt; · kace</title>" in text
    assert len(seen.all("main")) == len(seen.all("header")) == len(seen.all("footer")) == 1
    first = next(attributes for tag, attributes in seen.elements if tag == "a")
    assert first["href"] == "#content" and seen.all("main")[0]["id"] == "content"


@pytest.mark.parametrize("links", [SERVED, FILES])
def test_nothing_in_the_frame_is_inline_or_comes_from_elsewhere(links):
    seen = parsed(document(PAGE, links))
    for name, attributes in seen.elements:
        assert not any(key == "style" or key.startswith("on") for key in attributes)
        assert name not in {"style", "base", "iframe", "object", "embed"}
        for key in ("src", "href"):
            assert not re.match(r"[a-z]+:|//", attributes.get(key) or "")
    assert all(script["src"] and "defer" in script for script in seen.all("script"))


def test_only_a_served_page_looks_for_news():
    assert 'data-refresh="3.0"' in document(PAGE, SERVED)
    assert "refresh" not in document(PAGE, FILES)
    assert "refresh" not in document(PLAIN, SERVED)


def test_only_a_file_carries_its_policy_with_it():
    policies = [each.get("content") for each in parsed(document(PAGE, FILES)).all("meta") if "http-equiv" in each]
    assert policies == [FILE_POLICY]
    assert "Content-Security-Policy" not in document(PAGE, SERVED)


def test_the_bar_leads_to_the_lists_of_the_first_page(tmp_path):
    a_shelf_of_all(tmp_path)
    text = html_at(Workspace([tmp_path]), "/", link=SERVED)[0]
    nav = parsed(text.partition("<nav")[2].partition("</nav>")[0])
    assert [link["href"] for link in nav.all("a")] == ["/", "/#tree", "/#run", "/#learner", "/#inbox"]
    assert [link.get("aria-current") for link in nav.all("a")] == ["page", None, None, None, None]


def test_every_file_that_a_page_asks_for_is_there():
    seen = parsed(document(PAGE, FILES))
    asked = [each["src"] for each in seen.all("script")] + [each["href"] for each in seen.all("link")]
    assert {str(name).removeprefix("assets/") for name in asked} <= set(assets())
    fonts = re.findall(rb"url\(([^)]+\.woff2)\)", assets()["katex/katex.min.css"])
    assert fonts and all(f"katex/{name.decode()}" in assets() for name in fonts)
    assert "katex/LICENSE" in assets()


# Templates


def test_every_value_is_escaped_and_stripped_of_what_nobody_sees():
    bad = "<b>\u202e\x00\u200b\"'&"
    made = environment().from_string('{{ bad }} <i title="{{ bad }}">{{ gone }}</i>').render(bad=bad, gone=None)
    assert made == '&lt;b&gt;&#34;&#39;&amp; <i title="&lt;b&gt;&#34;&#39;&amp;"></i>'


def test_no_template_or_page_lets_markup_through():
    """Markup is made where texts are, and by templates; nothing says of a text that it is safe."""
    package = Path(kace.__file__).parent / "report"
    makers = {"render.py", "evaluation.py"}
    for path in package.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\|\s*safe\b|autoescape", text), path.name
        # An attribute whose value is not in quotes could be left by what stands in it.
        assert not re.search(r"=\{\{", text), path.name
    for path in package.rglob("*.py"):
        if path.name not in makers:
            assert not re.search(r"\b(?:Markup|Html)\(", path.read_text(encoding="utf-8")), path.name
