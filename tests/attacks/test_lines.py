"""A few megabytes that unpack to one endless line, or to endless lines: told in one line, in bounded memory."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kace.files import Unreadable, read_plain, whole_lines

LIMIT = 3 << 30  # bytes of memory that a reader may ask for
SIZE = 6 << 30  # bytes that a reader would have to hold

PACKED = "from kace.problems import load_problems; load_problems(at / 'problems.jsonl.gz')"
PLAIN = {
    "resume": "from kace.runs.run import Run; Run(at, eval((at / 'run.json').read_text()))",
    "report": "from kace.runs.table import Table; Table.open(at)",
    "problems of a run": "from kace.runs.table import Table; list(Table.open(at, allow_empty=True).problems())",
    "calls": "from kace.models.cache import CallStore; CallStore(at)",
    "tree": "from kace.cards.store import TreeStore; TreeStore.open(at).load()",
    "steps": "from kace.learning.study import read_steps; list(read_steps(at / 'traces.jsonl'))",
    "manifest": "from kace.runs.manifest import Manifest; Manifest.read(at / 'traces.jsonl')",
    "bill": "from kace.learning.study import read_bill; print('told', read_bill(at))",
    "profile": "from kace.config import profile_of; profile_of(None, at)",
    "view of a run": "from kace.report.workspace import Workspace as W; w = W([at]); w.table(w.items('run')[0].name)",
}
"""Who reads files as they are: here of holes, which take no room on the disk, and one line end."""
SCRIPT = """
import resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}))
from kace.errors import KaceError
at = Path(sys.argv[1])
try:
    {read}
except KaceError as error:
    print("told", error)
"""
NAMES = ("traces.jsonl", "problems.jsonl", "one.jsonl", "cards.jsonl", "journal.jsonl", "bill.json", "profile.toml")


def told(at: Path, read: str) -> str:
    """What a reader says, in a process of its own that has so much memory and no more."""
    command = [sys.executable, "-c", SCRIPT.format(limit=LIMIT, read=read), str(at)]
    few = {"OPENBLAS_NUM_THREADS": "1", "KACE_CACHE_DIR": str(at / "cache")}
    done = subprocess.run(command, env={**os.environ, **few}, capture_output=True, text=True, timeout=600)  # noqa: TID251
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def a_run(at: Path) -> Path:
    at.mkdir(exist_ok=True)
    (at / "run.json").write_text('{"v": 1, "config": {"retrieval": {}}, "prompts": {}, "tree": 0}')
    return at


@pytest.fixture(scope="module", params=[b"x", b"x\n"], ids=["one line", "many lines"])
def packed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with compressed problems that never end."""
    at = tmp_path_factory.mktemp("packed")
    some = gzip.compress(request.param * ((64 << 20) // len(request.param)))
    with (at / "problems.jsonl.gz").open("wb") as file:
        for _ in range(SIZE // (64 << 20)):
            file.write(some)  # a compressed file may be many, one after the other
    return at


def test_a_file_that_unpacks_without_end_is_told_in_one_line(packed: Path):
    said = told(packed, PACKED)
    assert said.startswith("told") and "\n" not in said


@pytest.mark.parametrize("read", PLAIN.values(), ids=PLAIN.keys())
def test_a_line_without_end_is_told_in_one_line(tmp_path: Path, read: str):
    at = a_run(tmp_path)
    for name in NAMES:
        with (at / name).open("wb") as file:
            file.seek(SIZE)
            file.write(b"\n")
    said = told(at, read)
    assert said.startswith("told") and "\n" not in said


@pytest.mark.parametrize(("size", "whole"), [(9, True), (10, True), (11, False)])
@pytest.mark.parametrize("ending", ["\n", "\nnext\n", ""])
def test_a_line_is_read_up_to_the_limit_and_not_beyond(tmp_path: Path, size: int, whole: bool, ending: str):
    path = tmp_path / "a.jsonl"
    text = ("first\n" + "x" * (size - len(ending[:1])) + ending).encode()
    path.write_bytes(text)
    if whole:
        found = [
            (number, text[start : start + len(line)] == line) for number, start, line in whole_lines(path, most=10)
        ]
        assert found == [(number + 1, True) for number in range(text.count(b"\n"))]
    else:
        with pytest.raises(Unreadable, match=r"a\.jsonl:2: the line is longer than 10 bytes"):
            list(whole_lines(path, most=10))


def test_a_file_is_read_up_to_the_limit_and_not_beyond(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"x" * 10)
    assert read_plain(tmp_path / "a", 10) == b"x" * 10
    with pytest.raises(Unreadable, match="larger than 9 bytes"):
        read_plain(tmp_path / "a", 9)


CUTS: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda data: data[:-20],
    "damaged within": lambda data: data[: len(data) // 2] + b"\0" * 8 + data[len(data) // 2 + 8 :],
    "not compressed": lambda data: b"text\n" * 100,
    "empty": lambda data: b"",
}


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS.keys())
def test_a_compressed_file_that_is_damaged_is_told_in_one_line(tmp_path: Path, cut: Callable[[bytes], bytes]):
    line = b'{"v": 1, "problem": "%d"}\n'
    good = gzip.compress(b"".join(line % number for number in range(100)))
    (tmp_path / "problems.jsonl.gz").write_bytes(cut(good))
    said = told(tmp_path, PACKED)
    assert said.startswith("told") and "\n" not in said
