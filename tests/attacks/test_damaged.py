"""Damaged files: every action on a folder with one ends well, or with one line."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kace.cards.store import TreeStore
from kace.cards.tree import Add
from kace.errors import DataError, KaceError
from kace.files import LineLog, write_atomic
from kace.runs.run import Run
from tests.attacks.given import ACTIONS, MANIFEST, runs
from tests.card_samples import DOMAINS, a_card

WHOLE: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda was: b"",
    "zeros": lambda was: b"\0" * len(was),
    "half of it": lambda was: was[: len(was) // 2],
    "its second half": lambda was: was[len(was) // 2 :],
    "a line end": lambda was: b"\n",
    "null": lambda was: b"null\n",
    "a number": lambda was: b"7\n",
    "a list": lambda was: b"[]\n",
    "an empty object": lambda was: b"{}\n",
    "a deep list": lambda was: b"[" * 100_000 + b"\n",
    "a deep object": lambda was: b'{"v":' * 100_000 + b"\n",
    "a long number": lambda was: b'{"v":' + b"9" * 10_000 + b"}\n",
    "no number": lambda was: b'{"v":NaN,"generation":Infinity}\n',
    "a later version": lambda was: b'{"v":99,"kace_tree":99}\n',
    "a lone surrogate": lambda was: rb'{"v":"\ud800","kace_tree":"\udfff"}' + b"\n",
    "no text": lambda was: b"\xff\xfe\x00" + was,
    "another encoding": lambda was: was.decode().encode("utf-16"),
    "twice": lambda was: was + was,
    "a tail": lambda was: was + b'{"torn',
    "a line of garbage": lambda was: was + b"\x80garbage\n",
    "flipped": lambda was: was[:40] + bytes([(was + b"x" * 50)[40] ^ 1]) + was[41:],
}
OTHER = (None, 10**30, "x" * 300, [{}])
CASES = [
    (action, name) for action, (_, _, names) in ACTIONS.items() for name in names if not name.endswith(("/", "lock"))
]


def changed(was: bytes) -> Iterator[bytes]:
    """The file with one field of one line missing or of another type."""
    lines = [] if b"[retrieval]" in was else was.splitlines()
    rows = [json.loads(was)] if lines[:1] == [b"{"] else [json.loads(line) for line in lines]
    for place, row in enumerate(rows):
        for name in row:
            less = {key: value for key, value in row.items() if key != name}
            for odd in (less, *({**row, name: value} for value in OTHER)):
                lines = (json.dumps(each, separators=(",", ":")) for each in (*rows[:place], odd, *rows[place + 1 :]))
                yield "\n".join([*lines, ""]).encode()


@pytest.mark.parametrize(("action", "name"), CASES)
def test_whatever_a_file_holds_is_no_more_than_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str, name: str
):
    monkeypatch.setenv("KACE_CACHE_DIR", str(tmp_path / "cache"))
    make, act, _ = ACTIONS[action]
    make(tmp_path / "good")
    was = (tmp_path / "good" / name).read_bytes() if (tmp_path / "good" / name).exists() else b"{}"
    odd = [] if name.endswith(".md") else changed(was)
    for number, content in enumerate([*(damage(was) for damage in WHOLE.values()), *odd]):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "good", folder)
        (folder / name).write_bytes(content)
        try:
            act(folder)
        except KaceError as error:
            assert "\n" not in str(error), content[:200]
        except BaseException as error:
            error.add_note(repr(content[:2000]))
            raise


@pytest.mark.parametrize("content", [b"", b"{", b"null", b"[]", b"\xff", b'{"v": 1'])
def test_a_run_whose_manifest_is_damaged_goes_on_once_that_is_removed(tmp_path: Path, content: bytes):
    runs(tmp_path / "run")
    (tmp_path / "run" / "run.json").write_bytes(content)
    with pytest.raises(DataError, match=r"run\.json: not .*Fix: restore it, or remove it and repeat the command"):
        Run(tmp_path / "run", MANIFEST)
    (tmp_path / "run" / "run.json").unlink()
    with Run(tmp_path / "run", MANIFEST) as run:
        assert [solve.problem for solve in run.table] == ["p1"]


def test_a_segment_that_is_a_folder_is_named(tmp_path: Path):
    runs(tmp_path / "run")
    (tmp_path / "run" / "calls" / "two.jsonl").mkdir()
    with pytest.raises(DataError, match=r"two\.jsonl: no plain file\. Fix: .* remove it"):
        Run(tmp_path / "run", MANIFEST)


def test_a_file_system_that_cannot_sync_folders_keeps_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def cannot(fd: int) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr("kace.files.os.fsync", cannot)
    write_atomic(tmp_path / "a", "text")
    with LineLog(tmp_path / "b") as log:
        log.append("line")
    store = TreeStore.create(tmp_path / "tree", DOMAINS, [a_card()])
    store.apply(Add(a_card("EXACT_SECOND_CARD")), author="ada")
    assert (tmp_path / "a").read_text() == "text" and (tmp_path / "b").read_text() == "line\n"
    assert len(TreeStore.open(tmp_path / "tree").load()) == 2


def test_a_disk_that_fails_to_sync_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fails(fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("kace.files.os.fsync", fails)
    with pytest.raises(KaceError, match=r"cannot write .*a: input/output error"):
        write_atomic(tmp_path / "a", "text")
