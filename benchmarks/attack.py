"""Rerun the attacks on our promises: kills, faults and payloads, counted, and written to results/attacks.md.

    python benchmarks/attack.py [--kills N] [--workers N] [--out FILE]

Kills of `kace eval` at random moments are those of `bench_kill.py`, which count what is paid for again. All else is in
the tests, which this runs once and counts: a test that tries many kills, edits or payloads says how many. Exits with 1
if anything fell.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[1]
GROUPS = {
    "kill -9 of a run, then the same command": ("faults/test_kill",),
    "kill -9 at every step of a batch": ("faults/test_batch_kill",),
    "kill -9 before and after every step of the learner": ("faults/test_learn_kill",),
    "kill -9, full disks and eight writers at once on one tree": ("faults/test_store_faults",),
    "faults of providers, proxies and TLS": (
        *("faults/test_provider_faults", "models/test_http", "models/test_limits", "models/test_endpoints"),
        *("models/test_openai", "models/test_batch"),
    ),
    "odd bills and caps": ("attacks/test_calls", "models/test_budget"),
    "links, pipes, devices and folders in the place of files": ("attacks/test_links", "runs/test_shards"),
    "damaged, endless and packed files": ("attacks/test_damaged", "attacks/test_lines"),
    "odd bytes for every reader": ("attacks/test_fuzz", "learning/test_blocks"),
    "answers that crash, stall or inflate algebra": ("faults/test_equivalence_faults",),
    "texts that hide, or drive a terminal": ("attacks/test_invisible", "attacks/test_terminal"),
    "clients of `serve` and `mcp`": ("serve/test_serve_bodies", "serve/test_serve_keys", "serve/test_mcp"),
    "clients of the viewer": ("report/test_guard", "report/test_web_server"),
    "keys in replies, errors and files": ("test_redact",),
    "promises that fell once": ("attacks/test_promises",),
}


# The plugin: what a test tried is a property of it


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: Any) -> Iterator[None]:
    """Count the examples that a property is tried on."""
    handle = getattr(getattr(item, "obj", None), "hypothesis", None)
    if handle is None:
        yield
        return
    inner = handle.inner_test
    tries = 0

    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal tries
        tries += 1
        return inner(*args, **kwargs)

    handle.inner_test = counted
    yield
    handle.inner_test = inner
    item.user_properties.append(("tries", tries))


# The counts


class Count(NamedTuple):
    """What one kind of attack came to."""

    name: str
    tests: int = 0
    tries: int = 0
    fell: int = 0  # tests that failed
    skipped: int = 0


def run_tests(workers: int) -> list[Count]:
    """Run the tests of all groups once, and count them by group."""
    files = [f"tests/{name}.py" for names in GROUPS.values() for name in names]
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.xml"
        options = ["-q", "-p", "benchmarks.attack", "-n", str(workers)]
        options += [f"--junitxml={result}", "-o", "junit_family=xunit1"]  # the form that holds properties
        subprocess.run([sys.executable, "-m", "pytest", *options, *files], cwd=ROOT, check=False)
        cases = list(ElementTree.parse(result).getroot().iter("testcase"))
    return [count_group(group, cases) for group in GROUPS]


def count_group(group: str, cases: Sequence[ElementTree.Element]) -> Count:
    """Count the tests of a group, and what each tried: one thing, unless it says how many."""
    modules = {f"tests.{name.replace('/', '.')}" for name in GROUPS[group]}
    tests = tries = fell = skipped = 0
    for case in cases:
        if case.get("classname") not in modules:
            continue
        if case.find("skipped") is not None:
            skipped += 1
            continue
        tests += 1
        found = case.find("properties/property[@name='tries']")
        tries += 1 if found is None else int(found.get("value", "1"))
        fell += any(case.find(kind) is not None for kind in ("failure", "error"))
    return Count(group, tests, tries, fell, skipped)


def run_kills(kills: int) -> str:
    """Kill `kace eval` at random moments; return the sentence that counts what was paid for again."""
    command = [sys.executable, str(ROOT / "benchmarks" / "bench_kill.py"), "--kills", str(kills), "--problems", "200"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return " ".join(done.stdout.splitlines()[-2:])


def page(counts: Sequence[Count], kills: str) -> str:
    """Return the table as Markdown."""
    total = Count(
        "all",
        sum(each.tests for each in counts),
        sum(each.tries for each in counts),
        sum(each.fell for each in counts),
        sum(each.skipped for each in counts),
    )
    lines = [
        "# Attacks, rerun",
        "",
        "`python benchmarks/attack.py`, which exits with 1 if anything fell. A try is a kill, fault, payload, edit or",
        "case; a test falls if any of its tries does.",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {os.cpu_count()} cores.",
        "",
        "| attack | tests | tries | tests that fell | skipped |",
        "|---|---|---|---|---|",
    ]
    for each in (*counts, total):
        lines.append(f"| {each.name} | {each.tests:,} | {each.tries:,} | {each.fell} | {each.skipped} |")
    lines += [
        "",
        f"`kace eval` killed at random moments (`bench_kill.py`): {kills}.",
        "Its calls run over 64 connections. What it repeats was under way, or answered and not yet on disk; the tests",
        "of kills count every call whose reply is on disk, and none is made again.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=20, help="of kace eval, at random moments")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "attacks.md")
    options = parser.parse_args()
    counts = run_tests(options.workers)
    text = page(counts, run_kills(options.kills))
    options.out.write_text(text, encoding="utf-8")
    print(text)
    sys.exit(any(each.fell or not each.tests for each in counts))


if __name__ == "__main__":
    main()
