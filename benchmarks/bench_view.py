"""The viewer on large items: how long a page takes to be made and to be seen, and how large it is.

    python benchmarks/bench_view.py [--quick] [--keep DIR]

A tree of 100,000 made-up cards and two runs of 100,000 made-up solves, served by `kace view` in a process of its own.
Of each page: the first answer (which may say that something is still being read), how long until it is whole, the
median of five more, its size, and the first paint in Chromium (median of five, each with an empty cache). Without
Chromium, everything but the paint.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench_evaluate import write_run
from bench_tree import grown

from kace.cards.store import TreeState, state_text
from kace.files import write_atomic

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TIMES = 5
PENDING = (b"solves read", b"The page comes by itself")
PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PAGES = (
    *("/", "/tree/oak", "/tree/oak/cell/algebra/medium", "/tree/oak/search?q=prime+sum", "/tree/oak/card/{card}"),
    *(
        "/run/one",
        "/run/one?page=900",
        "/run/one?right=no&sort=tokens",
        "/run/one?q=99",
        "/run/one?against=two&change=lost",
    ),
    *("/run/one/problem/{problem}/0", "/run/one/against/two"),
)


@dataclass(frozen=True, slots=True)
class Made:
    """What is looked at, and some names in it."""

    folder: Path
    card: str
    problem: str


def make(folder: Path, size: int) -> Made:
    """A tree of so many cards and two runs of so many solves, unless they are there already."""
    tree = grown(size)
    if not (folder / "oak").exists():
        state = TreeState(tree, generation=0, journal=0, frozen=None, trusted=True)
        write_atomic(folder / "oak" / "cards.jsonl", state_text(state))
        write_run(folder / "one", "one", size, 0.0)
        write_run(folder / "two", "two", size, 0.05)
    with (folder / "one" / "traces.jsonl").open(encoding="utf-8") as file:
        problem = file.readline().split('"problem":"')[1].split('"')[0]
    return Made(folder, next(iter(tree)).card_id, problem)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """`kace view` on the folder, which it has never read before; its address."""
    command = [sys.executable, "-m", "kace", "view", str(folder), "--port", "0", "--no-browser"]
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "KACE_CACHE_DIR": cache}  # noqa: TID251 - the environment of the other process
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[0].rstrip("/")
        finally:
            process.terminate()
            process.wait()


def fetched(url: str) -> tuple[float, bytes]:
    """Milliseconds until the whole answer is there, and the answer."""
    start = time.perf_counter()
    with urllib.request.urlopen(url) as answer:
        said = answer.read()
    return (time.perf_counter() - start) * 1000, said


def whole(url: str) -> float:
    """Milliseconds until a page is there that waits for nothing any more."""
    start = time.perf_counter()
    while any(words in fetched(url)[1] for words in PENDING):
        time.sleep(0.2)
    return (time.perf_counter() - start) * 1000


def painted(browser: Browser, url: str) -> float:
    """Milliseconds from asking for a page to its first content on the screen."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(url, wait_until="load")
    found = page.wait_for_function(PAINT).json_value()
    context.close()
    return float(found)


def measure(address: str, made: Made, browser: Browser | None) -> None:
    """A line a page."""
    print(f"{'page':36} {'first':>9} {'whole':>9} {'median':>9} {'size':>9} {'paint':>9}")
    for page in PAGES:
        url = address + page.format(card=made.card, problem=made.problem)
        first, _ = fetched(url)
        later = first + whole(url)
        again = [fetched(url) for _ in range(TIMES)]
        median, size = statistics.median(taken for taken, _ in again), len(again[-1][1])
        paint = f"{statistics.median(painted(browser, url) for _ in range(TIMES)):6.0f} ms" if browser else "-"
        print(f"{page:36} {first:6.0f} ms {later:6.0f} ms {median:6.0f} ms {size / 1000:6.0f} kB {paint:>9}")


def cold(folder: Path, browser: Browser | None, page: str) -> None:
    """The very first page that a server just started is asked for."""
    with served(folder) as address:
        if browser:
            print(f"first paint of {page} right after the start: {painted(browser, address + page):.0f} ms")
        else:
            print(f"{page} right after the start: {fetched(address + page)[0]:.0f} ms")


def look(made: Made, browser: Browser | None) -> None:
    """Everything that is measured."""
    for page in ("/", "/tree/oak", "/run/one"):
        cold(made.folder, browser, page)
    with served(made.folder) as address:
        seconds = sum(whole(f"{address}/run/{run}") for run in ("one", "two")) / 1000
        print(f"both runs read after {seconds:.1f} s, with a page asked for five times a second")
        measure(address, made, browser)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10,000 cards and solves")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="make the items here, and use them again next time")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.keep or Path(temporary)).resolve()
        made = make(folder, 10_000 if options.quick else 100_000)
        if CHROMIUM is None:
            look(made, None)
            return
        from playwright.sync_api import sync_playwright

        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            look(made, browser)
            browser.close()


if __name__ == "__main__":
    main()
