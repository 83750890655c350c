"""The viewer in real Chromium: nothing that anybody wrote into a tree, a run or a request does anything there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from kace.report import pages
from kace.report.render import file_name
from kace.report.workspace import Workspace
from tests.recorded import recorded
from tests.report.browser import KINDS, chromium, chromium_missing, links_of, shape, site, watched, written
from tests.report.hostile import CORPUS, LINES, SIGN, hostile_folder, hostile_inbox
from tests.report.samples import a_run, a_shelf_of_all, a_solve

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

MISSING = chromium_missing()
pytestmark = [pytest.mark.skipif(bool(MISSING), reason=MISSING)]

EACH, ASKING = 6, 1
"""Pages of one kind that are opened, and those that also carry a question."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_folder(tmp_path_factory.mktemp("hostile") / "opened")


@pytest.fixture(scope="module")
def served(hostile: Path) -> Iterator[str]:
    with site(Workspace([hostile])) as address:
        yield address


@pytest.fixture(scope="module")
def files(hostile: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Every page that the folder has, as files: their folder, and the paths of the pages."""
    folder = tmp_path_factory.mktemp("files") / "export"
    return folder, written(Workspace([hostile]), folder)


@pytest.fixture(scope="module")
def learned() -> Iterator[str]:
    """What a real learner left."""
    with site(Workspace([recorded("learning_run")])) as address:
        yield address


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = a_shelf_of_all(tmp_path_factory.mktemp("plain"))
    a_run(folder / "long", [a_solve(f"{number:016x}") for number in range(120)])
    with site(Workspace([folder])) as address:
        yield address


POKE = """() => {
  for (const item of document.querySelectorAll("details")) item.open = true;
  for (const node of document.querySelectorAll("main *")) {
    for (const name of ["mouseover", "mouseenter", "focus"]) node.dispatchEvent(new Event(name));
  }
}"""
"""What a reader does: unfold everything, look at everything, and let every element feel the mouse."""


def settled(page: Page, url: str) -> None:
    """Open a page and wait for its maths."""
    page.goto(url, wait_until="load")
    page.wait_for_function("() => document.documentElement.dataset.maths === 'set' || !document.querySelector('.math')")


def crawl(page: Page, *starts: str) -> Iterator[str]:
    """Open the first pages and those that they lead to, a few of each kind; the address of each when it is open."""
    waiting, seen, opened = list(starts), set(starts), Counter[tuple[str, ...]]()
    while waiting:
        url = waiting.pop(0)
        if opened[shape(url)] >= (ASKING if "?" in url else EACH):
            continue
        opened[shape(url)] += 1
        settled(page, url)
        page.evaluate(POKE)
        yield url
        fresh = [link for link in links_of(page) if link not in seen]
        seen.update(fresh)
        waiting += fresh


@pytest.mark.slow
def test_hostile_texts_do_nothing_on_any_served_page(browser, served, files):
    showing = Counter[str]()
    with watched(browser, served, viewport={"width": 390, "height": 844}) as (page, watch):
        for url in crawl(page, *(served + path for path in files[1])):
            watch.check(page)
            assert_fits(page, 390)
            showing.update({kind: SIGN in page.inner_text("main") for kind in shape(url) if kind in KINDS})
    # The texts were really there: on every kind of page.
    assert {kind for kind, times in showing.items() if times} == KINDS


@pytest.mark.slow
def test_hostile_texts_do_nothing_in_files(browser, files):
    showing = Counter[str]()
    folder, paths = files
    home = folder.as_uri()
    with watched(browser, home) as (page, watch):
        for url in crawl(page, *(f"{home}/{file_name(path)}" for path in paths)):
            watch.check(page)
            showing.update({kind: SIGN in page.inner_text("main") for kind in shape(url) if kind in KINDS})
    assert {kind for kind, times in showing.items() if times} == KINDS


@pytest.mark.slow
def test_hostile_questions_do_nothing(browser, served):
    with watched(browser, served) as (page, watch):
        page.goto(served + "/")
        tree, run, inbox = (
            next(link for link in links_of(page) if f"/{kind}/" in link) for kind in ("tree", "run", "inbox")
        )
        asking = [f"{served}/?q=", f"{tree}?q=", f"{run}?text=", f"{run}?sort=", f"{run}?against=", f"{inbox}?page="]
        asking += [f"{served}/", f"{tree}/card/", f"{run}/problem/", f"{run}/against/", f"{inbox}/"]
        for start in asking:
            for text in CORPUS[:: 1 if start.startswith(tree) else 5]:
                page.goto(start + quote(text, safe=""), wait_until="load")
                watch.check(page)


def test_a_hostile_reply_does_nothing_when_it_comes_back(browser, tmp_path):
    hostile_inbox(tmp_path / "inbox")
    said = "\n".join(LINES)
    with site(Workspace([tmp_path])) as address, watched(browser, address) as (page, watch):
        page.goto(f"{address}/inbox/inbox/plain-1-aaaaaaaa")
        page.fill("textarea", said)
        with page.expect_navigation():
            page.click("form[method=post] button")
        watch.check(page)
        assert SIGN in page.content()
    assert (tmp_path / "inbox" / "plain-1-aaaaaaaa.reply.md").read_text(encoding="utf-8").strip() == said


def test_every_kind_of_page_is_told_apart():
    """A few pages of each kind are enough only as long as `shape` knows all kinds."""
    words = {part for path in pages.ROUTES for part in path.split("/") if part and part[0] != "{"}
    assert words == KINDS


def test_maths_is_set(browser, plain, tmp_path):
    with watched(browser, plain) as (page, _):
        settled(page, f"{plain}/tree/oak/card/EXACT_SUM_OF_SQUARES")
        assert page.locator(".math.set .katex-html").count() >= 1
        assert page.evaluate(
            "[...document.fonts].some((font) => font.family.startsWith('KaTeX') && font.status === 'loaded')"
        )
        assert page.locator(".math.set annotation").first.text_content() == "a^2+b^2=(a+b)^2-2ab"


def test_maths_that_cannot_be_set_stays_readable(browser, plain):
    with watched(browser, plain) as (page, _):
        page.goto(f"{plain}/tree/oak/card/EXACT_SUM_OF_SQUARES")
        for tex in (r"\frac{a", r"\def\a{\a\a}\a", "{" * 3000, "x" * 5000, r"\begin{align}a"):
            shown = page.evaluate(
                """(tex) => {
                  const main = document.createElement("main");
                  const span = document.createElement("span");
                  span.className = "math";
                  span.dataset.display = "false";
                  span.textContent = tex;
                  main.append(span);
                  document.body.append(main);
                  document.dispatchEvent(new CustomEvent("kace:changed", {detail: main}));
                  return [span.className, span.textContent];
                }""",
                tex,
            )
            assert shown == ["math unset", tex]


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])
def test_no_page_scrolls_sideways(browser, learned, scheme, width):
    size = {"width": width, "height": 844}
    with watched(browser, learned, viewport=size, color_scheme=scheme) as (page, _):
        for _url in crawl(page, learned + "/"):
            assert_fits(page, width)


def assert_fits(page: Page, width: int) -> None:
    """That nothing is wider than the window."""
    wide = page.evaluate("() => document.documentElement.scrollWidth")
    assert wide <= width, f"{page.url} is {wide} wide"


def test_text_stands_out_from_its_ground_in_both_schemes(browser, plain):
    for scheme in ("light", "dark"):
        with watched(browser, plain, color_scheme=scheme) as (page, _):
            page.goto(plain)
            for selector in ("body", ".note", ".top nav a", ".badge", ".muted"):
                assert contrast(page, selector) >= 4.5, (scheme, selector)


def contrast(page: Page, selector: str) -> float:
    """The contrast ratio of the first such element's text with what is behind it."""
    return page.evaluate(
        """(selector) => {
          const node = document.querySelector(selector);
          const linear = (part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
          const light = (css) => {
            const [r, g, b] = css.match(/[\\d.]+/g).map((part) => linear(part / 255));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          let ground = node;
          while (getComputedStyle(ground).backgroundColor === "rgba(0, 0, 0, 0)") ground = ground.parentElement;
          const [text, behind] = [getComputedStyle(node).color, getComputedStyle(ground).backgroundColor].map(light);
          const [a, b] = [Math.max(text, behind), Math.min(text, behind)];
          return (a + 0.05) / (b + 0.05);
        }""",
        selector,
    )


def test_a_person_can_walk_by_keys_alone(browser, plain):
    with watched(browser, plain) as (page, _):
        page.goto(plain)
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        assert page.evaluate("document.activeElement.getBoundingClientRect().top") >= 0
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content"
        page.keyboard.press("j")
        first = page.evaluate("document.activeElement.href")
        page.keyboard.press("j")
        assert page.evaluate("document.activeElement.href") != first
        assert page.evaluate("document.activeElement.matches(':focus-visible')")
        page.keyboard.press("k")
        assert page.evaluate("document.activeElement.href") == first
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert page.url == first
        with page.expect_navigation():
            page.keyboard.press("u")
        assert page.url == plain + "/"


def test_slash_goes_to_the_search_and_escape_leaves_it(browser, plain):
    with watched(browser, plain) as (page, _):
        page.goto(f"{plain}/run/long")
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.type") == "search"
        page.keyboard.type("j?k/")
        assert page.evaluate("document.activeElement.value") == "j?k/"
        page.keyboard.press("Escape")
        assert page.evaluate("document.activeElement === document.body")


def test_the_list_of_keys_opens_and_closes(browser, plain):
    with watched(browser, plain) as (page, _):
        page.goto(plain)
        page.keyboard.press("?")
        assert page.locator("dialog.keys[open] dt").count() >= 5
        page.keyboard.press("j")
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog.keys", state="detached")


def test_pages_work_without_script(browser, plain):
    with watched(browser, plain, java_script_enabled=False) as (page, _):
        page.goto(f"{plain}/tree/oak/card/EXACT_SUM_OF_SQUARES")
        assert "a^2+b^2=(a+b)^2-2ab" in page.inner_text("main")
        page.goto(f"{plain}/tree/oak")
        page.fill("input[type=search]", "chord")
        page.press("input[type=search]", "Enter")
        assert "RUBRIC_MIDPOINT_OF_CHORD" in page.inner_text("main")


def test_a_page_that_grows_is_renewed_without_losing_the_reader(browser, tmp_path):
    a_run(tmp_path / "first")
    with site(Workspace([tmp_path])) as address, watched(browser, address) as (page, _):
        page.goto(address)
        page.evaluate("window.__kept = true")
        page.focus("a.name")
        a_run(tmp_path / "second")
        page.wait_for_selector("text=second", timeout=20_000)
        assert page.evaluate("window.__kept")
        assert page.evaluate("document.activeElement.textContent") == "first"


def test_files_need_no_server(browser, tmp_path):
    folder = tmp_path / "export"
    workspace = Workspace([a_shelf_of_all(tmp_path / "opened")])
    written(workspace, folder)
    home = folder.as_uri()
    with watched(browser, home) as (page, watch):
        opened = set(crawl(page, f"{home}/index.html"))
        assert {shape(url) for url in opened} >= {("index.html",), ("tree",), ("run",), ("learner",), ("inbox",)}
        page.goto(next(url for url in opened if "EXACT_SUM_OF_SQUARES" in url))
        page.wait_for_selector(".math.set .katex-html")
        assert page.evaluate(
            "[...document.fonts].some((font) => font.family.startsWith('KaTeX') && font.status === 'loaded')"
        )
        assert all(url.startswith((home, "data:")) for url in watch.asked)
