"""The pages: what they print is what their commands print, with the replies of the real model recorded."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from kace.cli.demo import RECORDED, WITH, WITHOUT
from kace.models.local import CATALOG
from tests.command import environment, run_kace

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GOLDEN = ROOT / "tests" / "golden"
MODEL = f"local/{CATALOG[0].name}"
PAGES = {"quickstart.md": 10, "concepts.md": 1}
"""How many blocks of each page begin with a command after `$ `; the rest of such a block is what is printed."""


def steps(name: str) -> list[tuple[str, str]]:
    """The commands of a page, each with what the page says it prints."""
    page = (DOCS / name).read_text(encoding="utf-8")
    blocks = re.findall(r"^( *)```\n(\1\$ .*?)^\1```", page, re.DOTALL | re.MULTILINE)
    found = [textwrap.dedent(block).removeprefix("$ ").partition("\n") for _, block in blocks]
    assert len(found) == PAGES[name]
    return [(command, printed) for command, _, printed in found]


def typed(command: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """A command as a reader types it, in a folder that has the documents."""
    if not (folder / "bin").exists():
        (folder / "docs").symlink_to(DOCS)
        (folder / "bin").mkdir()
        (folder / "bin" / "kace").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kace "$@"\n')
        (folder / "bin" / "kace").chmod(0o755)
    if command.startswith("kace "):
        return run_kace(folder, *shlex.split(command)[1:], **env)
    known = environment(folder, **env)
    known["PATH"] = f"{folder / 'bin'}:{known['PATH']}"
    return subprocess.run(["bash", "-c", command], cwd=folder, env=known, capture_output=True, text=True, timeout=3600)


def timeless(text: str) -> str:
    """Text without seconds, and without what is told otherwise of recorded replies."""
    text = re.sub(r"\d+\.\d s\b", "_ s", re.sub(r"(seconds +)\d+", r"\1_", text))
    return re.sub(r" \(\d+ from cache\)", "", re.sub(r"(read +)(about )?\d+", r"\1_", text))


@pytest.mark.parametrize("name", PAGES)
def test_the_commands_of_a_page_print_what_it_shows(name: str, tmp_path: Path):
    (tmp_path / "calls").mkdir()
    demo = (RECORDED / run / "calls" / "recorded.jsonl" for run in (WITH, WITHOUT))
    for number, recorded in enumerate((*GOLDEN.glob("*.calls.jsonl"), *demo)):
        shutil.copy(recorded, tmp_path / "calls" / f"{number}.jsonl")
    for command, printed in steps(name):
        done = typed(command, tmp_path, KACE_MODEL="replay/calls", KACE_PRESET="starter")
        assert done.returncode == 0, done.stderr
        shown, end = timeless((done.stdout + done.stderr).replace("replay/calls", MODEL)), 0
        for part in re.split(r"^\.\.\.\n", timeless(printed), flags=re.MULTILINE):
            assert part in shown[end:], (command, shown)
            end = shown.index(part, end) + len(part)
        assert "..." in printed or end == len(shown), (command, shown)


def test_the_card_of_the_tutorial_is_its_example():
    card = (DOCS / "examples" / "average-speed.md").read_text(encoding="utf-8")
    assert f"```markdown\n{card}```" in (DOCS / "quickstart.md").read_text(encoding="utf-8")


def test_the_tutorial_shows_two_problems_that_the_card_repairs_and_one_that_it_does_not_fit():
    first, second, third = (printed for command, printed in steps("quickstart.md") if "tree try" in command)
    assert all("  with 1 card " in each and " right " in each for each in (first, second))
    assert "no card fits" in third
