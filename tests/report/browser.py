"""Real Chromium for tests: a site or files opened as a person would, and everything watched that should not happen."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kace.report.pages import export
from kace.report.server import create_app, listening, serve
from kace.report.workspace import Workspace

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")

# Anything that could run, load or lead away if it were there, and whatever the policy had to stop.
AUDIT = r"""() => {
  const FORBIDDEN = /^(IFRAME|OBJECT|EMBED|BASE|STYLE|IMG|VIDEO|AUDIO|ANIMATE|SET|FOREIGNOBJECT|ANNOTATION-XML)$/i;
  const bad = [];
  for (const node of document.querySelectorAll("*")) {
    for (const {name, value} of node.attributes) {
      if (name.startsWith("on")) bad.push(`${node.tagName} ${name}`);
      if (["href", "src", "action", "formaction", "xlink:href", "srcdoc", "data"].includes(name)
          && !(node.tagName === "ANNOTATION") && (/^\s*[a-z][a-z0-9+.-]*:/i.test(value) || value.startsWith("//")))
        bad.push(`${node.tagName} ${name}=${value}`);
    }
    if (FORBIDDEN.test(node.tagName)) bad.push(node.tagName);
    if (node.tagName === "SCRIPT" && !/^(\/?assets\/)/.test(node.getAttribute("src") || "")) bad.push("SCRIPT");
    if (node.tagName === "META" && /refresh/i.test(node.httpEquiv)) bad.push("META refresh");
  }
  return bad;
}"""
INIT = """
window.__violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.__violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""


@cache
def chromium_path() -> str:
    """The browser: the machine's own, else the one that playwright installed; empty where there is none."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None and find_spec("playwright"):
        from playwright.sync_api import sync_playwright

        with sync_playwright() as play:
            found = play.chromium.executable_path
    return found if found and Path(found).exists() else ""


def chromium_missing() -> str:
    """Why there can be no browser tests here; empty where there can."""
    if not find_spec("playwright"):
        return "BROWSER TESTS SKIPPED: playwright is not installed (it is in the extra dev)"
    return "" if chromium_path() else "BROWSER TESTS SKIPPED: there is no chromium (apt-get install chromium)"


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def site(workspace: Workspace) -> Iterator[str]:
    """The viewer served on a port of its own, as `kace view` serves it; its address."""
    address: list[str] = []
    ready = threading.Event()
    loops: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serving() -> None:
        stop = asyncio.Event()
        loops.append((asyncio.get_running_loop(), stop))
        with listening() as port:
            await serve(create_app(workspace), port, ready=said, grace=0.1, stop=stop)

    def said(url: str) -> None:
        address.append(url)
        ready.set()

    thread = threading.Thread(target=lambda: asyncio.run(serving()))
    thread.start()
    try:
        assert ready.wait(600)
        yield address[0]
    finally:
        loop, stop = loops[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join()


def written(workspace: Workspace, folder: Path) -> list[str]:
    """The workspace as files, made beside the browser, which has this thread's event loop."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(export, workspace, folder).result()


@dataclass(slots=True)
class Watch:
    """What went on in a context that should not have."""

    home: str
    """What every address must begin with."""
    wrong: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def on(self, page: Page) -> None:
        """Watch a page."""
        page.on("dialog", lambda dialog: (self.wrong.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("console", lambda said: self._heard(said.type, said.text))
        page.on("pageerror", lambda error: self.wrong.append(f"script error {error}"))
        page.on("request", lambda request: self._request(request.url))
        page.on("popup", lambda popup: self.wrong.append(f"popup {popup.url}"))
        page.add_init_script(INIT)

    def check(self, page: Page) -> None:
        """Look at a page that has loaded."""
        where = page.url
        if page.evaluate("window.__pwned") is not None:
            self.wrong.append(f"{where}: script ran")
        self.wrong += [f"{where}: {found}" for found in page.evaluate(AUDIT)]
        self.wrong += [f"{where}: policy {found}" for found in page.evaluate("window.__violations")]
        if not page.url.startswith(self.home):
            self.wrong.append(f"led away to {where}")

    def _heard(self, kind: str, text: str) -> None:
        # A page that is not there is an error to the browser's console, and as it should be to us.
        if kind in {"error", "warning"} and "status of 404" not in text and "status of 400" not in text:
            self.wrong.append(f"console {kind}: {text}")

    def _request(self, url: str) -> None:
        self.asked.append(url)
        if not url.startswith((self.home, "data:")):
            self.wrong.append(f"asked {url}")


@contextmanager
def watched(browser: Browser, home: str, **options: object) -> Iterator[tuple[Page, Watch]]:
    """A page in a context of its own, watched. Nothing wrong may have been seen when it ends."""
    context: BrowserContext = browser.new_context(**options)  # type: ignore[arg-type]
    watch = Watch(home)
    page = context.new_page()
    watch.on(page)
    yield page, watch
    context.close()
    assert not watch.wrong, "\n".join(watch.wrong[:20])


def links_of(page: Page) -> list[str]:
    """The pages of ours that a page leads to, without their fragments; `Watch.check` sees the others."""
    found: list[str] = page.evaluate("[...document.querySelectorAll('a[href]')].map((link) => link.href.split('#')[0])")
    ours = page.url.split("/")[:3]
    return list(dict.fromkeys(link for link in found if link.split("/")[:3] == ours))


def shape(url: str) -> tuple[str, ...]:
    """What kind of page an address is of: its parts that are not names, and which questions it asks."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        words = Path(parts.path).name.split("-")
        return (words[0], *(word for word in words[2:] if word in KINDS))
    words = [part for part in parts.path.split("/") if part in KINDS]
    return (
        *words,
        str(parts.path.count("/")),
        *sorted(pair.partition("=")[0] for pair in parts.query.split("&") if pair),
    )


KINDS = frozenset({"tree", "run", "learner", "inbox", "card", "problem", "against", "proposals"})
