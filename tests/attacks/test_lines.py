"""A few megabytes that unpack to one endless line, or to endless lines: told in one line, in bounded memory."""

from __future__ import annotations

import gzip
import json
import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from kace.cards.store import TreeStore
from kace.config import profile_of
from kace.errors import KaceError
from kace.files import Unreadable, read_plain, whole_lines
from kace.learning.study import read_bill, read_steps
from kace.models.cache import CallStore
from kace.problems import load_problems
from kace.report.workspace import Workspace
from kace.runs.manifest import Manifest
from kace.runs.run import Run
from kace.runs.table import Table
from tests.faults.children import forked

LIMIT = 3 << 30  # bytes of memory that a reader may ask for
SIZE = 6 << 30  # bytes that a reader would have to hold
Reader = Callable[[Path], object]


def view(at: Path) -> None:
    workspace = Workspace([at])
    workspace.table(workspace.items("run")[0].name)


def packed_problems(at: Path) -> object:
    return load_problems(at / "problems.jsonl.gz")


PLAIN: dict[str, Reader] = {
    "resume": lambda at: Run(at, json.loads((at / "run.json").read_text())),
    "report": Table.open,
    "problems of a run": lambda at: list(Table.open(at, allow_empty=True).problems()),
    "calls": CallStore,
    "tree": lambda at: TreeStore.open(at).load(),
    "steps": lambda at: list(read_steps(at / "traces.jsonl")),
    "manifest": lambda at: Manifest.read(at / "traces.jsonl"),
    "bill": lambda at: f"told {read_bill(at)}",
    "profile": lambda at: profile_of(None, at),
    "view of a run": view,
}
"""Who reads files as they are: here of holes, which take no room on the disk, and one line end."""
NAMES = ("traces.jsonl", "problems.jsonl", "one.jsonl", "cards.jsonl", "journal.jsonl", "bill.json", "profile.toml")


def told(at: Path, read: Reader) -> str:
    """What a reader says, in a process of its own that may ask for so much memory more and no more."""
    out = at / "said"

    def work() -> None:
        most = LIMIT + int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        try:
            found = read(at)
        except KaceError as error:
            found = f"told {error}"
        out.write_text(found if isinstance(found, str) else "")

    assert os.waitpid(forked(work), 0)[1] == 0
    return out.read_text()


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
    said = told(packed, packed_problems)
    assert said.startswith("told") and "\n" not in said


@pytest.mark.parametrize("read", PLAIN.values(), ids=PLAIN.keys())
def test_a_line_without_end_is_told_in_one_line(tmp_path: Path, read: Reader):
    (tmp_path / "run.json").write_text('{"v": 1, "config": {"retrieval": {}}, "prompts": {}, "tree": 0}')
    for name in NAMES:
        with (tmp_path / name).open("wb") as file:
            file.seek(SIZE)
            file.write(b"\n")
    said = told(tmp_path, read)
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
    said = told(tmp_path, packed_problems)
    assert said.startswith("told") and "\n" not in said
