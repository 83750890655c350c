"""Links, pipes, devices and folders in the place of our files: refused in one line, and nothing outside is touched.

Every action on a tree, a run, a learner's folder and an inbox, each file it opens, everything that can lie there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kace.errors import KaceError
from tests.attacks.given import ACTIONS

pytestmark = pytest.mark.timeout(300)  # against a pipe or a device that is read for ever

VICTIM = b'alias ls="ls -F"\nexport LAST=line'  # without a newline at its end, which a writer of lines would cut


def move_out(place: Path, outside: Path) -> None:
    """Put what lay there as a file elsewhere, so that all looks well; logs end like a victim's own file."""
    was = place.read_bytes() if place.is_file() else b""
    (outside / "victim").write_bytes(
        was if place.name.endswith((".json", ".toml", "cards.jsonl", "epoch-1.jsonl")) else was + VICTIM
    )
    place.unlink(missing_ok=True)


def a_link(place: Path, outside: Path) -> None:
    place.symlink_to(outside / "victim")


def a_dangling_link(place: Path, outside: Path) -> None:
    place.symlink_to(outside / "new")


def a_hard_link(place: Path, outside: Path) -> None:
    place.hardlink_to(outside / "victim")


def a_pipe(place: Path, outside: Path) -> None:
    os.mkfifo(place)


def a_device(place: Path, outside: Path) -> None:
    place.symlink_to("/dev/zero")


def a_folder(place: Path, outside: Path) -> None:
    place.mkdir()


def a_linked_folder(place: Path, outside: Path) -> None:
    shutil.move(place, outside / "folder")
    place.symlink_to(outside / "folder")


IN_ITS_PLACE = (a_link, a_dangling_link, a_hard_link, a_pipe, a_device, a_folder)
# Pages show what else there is, and costs are those that can be read.
LEFT_OUT = {("learn report", "learn/learn.json"), ("run view", "calls/one.jsonl"), ("learn costs", "learn/bill.json")}
LOGS = ("journal.jsonl", "traces.jsonl", "problems.jsonl", "steps.jsonl")
APPENDING = {"tree edit", "tree freeze", "solve", "learn"}
CASES = [
    (action, name, kind)
    for action, (_, _, names) in ACTIONS.items()
    for name in names
    for kind in ((a_linked_folder,) if name.endswith("/") else IN_ITS_PLACE)
]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def must_refuse(action: str, name: str, kind: Callable[[Path, Path], None]) -> bool:
    """Whether the action would have to open what lies there. Whole files are written under a new name, then renamed."""
    if (action, name) in LEFT_OUT:
        return False
    if name == "profile.toml":  # what is no file is no profile
        return kind is a_link
    if kind in (a_dangling_link, a_hard_link):
        appended = action in APPENDING and name.endswith(LOGS)
        return appended or (kind is a_dangling_link and name.endswith(("lock", ".request.md")))
    return True


@pytest.mark.parametrize(("action", "name", "kind"), CASES, ids=lambda part: getattr(part, "__name__", part))
def test_nothing_outside_a_folder_is_read_or_written_through_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str, name: str, kind: Callable[[Path, Path], None]
):
    monkeypatch.setenv("KACE_CACHE_DIR", str(tmp_path / "cache"))
    make, act, _ = ACTIONS[action]
    folder, outside = tmp_path / "given", tmp_path / "outside"
    make(folder)
    outside.mkdir()
    place = folder / name.rstrip("/")
    if not name.endswith("/"):
        move_out(place, outside)
    kind(place, outside)
    before = contents(outside)
    refused = ""
    try:
        act(folder)
    except KaceError as error:  # any other error is a traceback on the terminal
        refused = str(error)
    assert contents(outside) == before
    assert "\n" not in refused
    assert refused or not must_refuse(action, name, kind)


@pytest.mark.parametrize("action", ACTIONS)
def test_the_same_is_done_where_all_are_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str):
    monkeypatch.setenv("KACE_CACHE_DIR", str(tmp_path / "cache"))
    make, act, _ = ACTIONS[action]
    make(tmp_path / "given")
    (tmp_path / "link").symlink_to(tmp_path / "given")  # the folder itself is the user's choice, and may be a link
    act(tmp_path / "link")
