"""Verbs that only show write nothing, not even where they could; and whoever stops reading ends a verb quietly."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

import kace
from kace.problems import problem_rows
from tests.command import commands, environment, run_kace
from tests.learning.world import World, problems

DICE = ("--model", "scripted/dice?sides=9")
TRAIN = ("learn", "--train", "train.jsonl", "--teacher", "scripted/steady", *DICE)
READING = (
    ("tree", "show", "tree"), ("tree", "show", "tree", "cards"), ("tree", "show", "starter"), ("tree", "log", "tree"),
    ("tree", "export", "tree"),
    ("report", "base", "other"), ("report", "base"), ("report", "base", "other", "--json"),
    ("learn", "report", "made/tree"), ("learn", "report", "made/tree", "--json"),
    (*TRAIN, "--out", "never", "--dry-run"),
    ("eval", "--system", "list"),

    ("models", "list"), ("doctor", *DICE),
)  # fmt: skip
JSON = {
    "solve": ("What is 1 + 1?", *DICE),
    "learn": (*TRAIN[1:], "--out", "never", "--dry-run"),
    "learn report": ("made/tree",),
    "tree show": ("tree",),
    "tree log": ("tree",),
    "eval": ("--data", "train.jsonl", *DICE, "--out", "base"),
    "lift": ("--skill", "train.jsonl", "--data", "train.jsonl", *DICE, "--dry-run"),
    "report": ("base", "other"),
    "models list": (),
    "doctor": DICE,
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tree, a learner's tree inside another folder, and two runs."""
    folder = tmp_path_factory.mktemp("place")
    known = [replace(each, solution=f"Work it out: {each.answer}.") for each in problems(3)]
    for name, rows in (("train", known[:-2]), ("held", known[-2:])):
        (folder / f"{name}.jsonl").write_text("\n".join(problem_rows(rows)) + "\n")
    evaluate = ("eval", "--data", "train.jsonl", *DICE)
    for arguments in (
        ("tree", "init", "tree", "starter"),
        (*evaluate, "--system", "tiered", "--out", "base"),
        (*evaluate, "--system", "kace", "--tree", "tree", "--out", "other"),
    ):
        done = run_kace(folder, *arguments)
        assert done.returncode == 0, done.stderr
    settings = {"wordings": 0, "max_harm": 0, "cache_dir": folder / "cache"}
    kace.learn(known[:12], folder / "made" / "tree", World().teacher(), DICE[1], quick=True, **settings)
    return folder


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file and folder, with when it was changed."""
    found = sorted(folder.rglob("*"))
    return {str(each): (each.stat().st_mtime_ns, each.read_bytes() if each.is_file() else b"") for each in found}


@pytest.fixture
def sealed(place: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy that nobody may write into, and that is found as it was."""
    folder = tmp_path / "sealed"
    shutil.copytree(place, folder, ignore=shutil.ignore_patterns("cache", "lock"))
    for each in (folder, *folder.rglob("*")):
        each.chmod(0o555 if each.is_dir() else 0o444)
    before = contents(folder)
    yield folder
    after = contents(folder)
    for each in (folder, *folder.rglob("*")):
        each.chmod(0o755)
    assert after == before


def started(folder: Path, *arguments: str, **more: Any) -> subprocess.Popen[str]:
    """`kace`, without the superuser's right to write anywhere."""
    drop = ("setpriv", "--bounding-set=-dac_override") if os.geteuid() == 0 and shutil.which("setpriv") else ()
    command = [*drop, sys.executable, "-m", "kace", *arguments]
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment(folder),
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        **more,
    )


def test_verbs_that_show_write_nothing(sealed: Path):
    may_fail = ("models", "doctor")  # no weights are here, and nothing may be written
    for arguments in READING:
        with started(sealed, *arguments, stdout=subprocess.PIPE) as ran:
            out, told = ran.communicate()
        assert ran.returncode == 0 or (ran.returncode == 1 and arguments[0] in may_fail), (arguments, told)
        assert (out or told) and "Traceback" not in told, arguments


def test_a_viewer_writes_nothing(sealed: Path):
    arguments = ("view", "tree", "base", "other", "made", "--port", "0", "--no-browser")
    with started(sealed, *arguments, stdout=subprocess.PIPE) as ran:
        assert ran.stdout is not None
        address = ran.stdout.readline().strip()
        try:
            pages = re.findall(r'href="/((?:run|tree|learner)/[^"]+)"', urlopen(address).read().decode())
            assert {page.partition("/")[0] for page in pages} == {"run", "tree", "learner"}
            assert {urlopen(f"{address}/{page}").status for page in pages} == {200}
        finally:
            ran.send_signal(signal.SIGINT)
        told = ran.communicate()[1]
    assert "Traceback" not in told


def test_whoever_stops_reading_json_ends_a_verb_quietly(place: Path):
    assert sorted(JSON) == sorted(
        name for name, each in commands() if any(param.name == "json" for param in each.params)
    )
    for verb, arguments in JSON.items():
        unread, written = os.pipe()
        os.close(unread)
        with started(place, *verb.split(), *arguments, "--json", stdout=written) as ran:
            os.close(written)
            told = ran.communicate()[1]
        assert ran.returncode in (0, 1), (verb, told)
        assert not any(word in told for word in ("Traceback", "Broken", "Exception")), (verb, told)
