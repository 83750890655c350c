"""Links, pipes, devices and folders in the place of our files: refused in one line, and nothing outside is touched.

Every action on a tree, a run, a learner's folder and an inbox, each file it opens, everything that can lie there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kace.config import profile_of
from kace.errors import KaceError
from kace.evaluation.arm import read_arm
from kace.learner.calibrate import thresholds_of
from kace.learner.costs import read_costs
from kace.learner.report import report_of
from kace.learner.select import epochs_of, read_learned
from kace.learner.steps import StepLog
from kace.models.cache import CallRecord, CallStore, Replay
from kace.solver.run import Run, kept_field, read_problems
from kace.tree.store import TreeStore, frozen_hash_of, open_tree
from kace.tree.tree import Add
from kace.web.replies import Inbox
from kace.web.workspace import Workspace
from tests.card_examples import DOMAINS, a_card
from tests.web.samples import a_solve, an_inbox

pytestmark = pytest.mark.timeout(300)  # against a pipe or a device that is read for ever

MANIFEST: dict[str, object] = {
    "v": 1,
    "config": {"retrieval": {}},
    "prompts": {},
    "tree": None,
    "settings": {},
    "train": {"ids": []},
}
VICTIM = b'alias ls="ls -F"\nexport LAST=line'  # without a newline at its end, which a writer of lines would cut


def a_call() -> str:
    said = {"key": "a" * 64, "model": "m", "problem": "p1", "tier": "ES", "text": "news", "finish": "stop"}
    used = {"seed": 0, "index": 0, "input": 1, "cached": 0, "output": 1, "seconds": 1.0}
    return CallRecord.model_validate({**said, **used}).model_dump_json() + "\n"


def trees(folder: Path) -> None:
    store = TreeStore.create(folder, DOMAINS, [a_card()])
    store.apply(Add(a_card("EXACT_SECOND_CARD")), author="ada")
    store.snapshot("epoch-1")
    (folder / "profile.toml").write_text("[retrieval]\n[learning]\n")
    (folder / "calibration.json").write_text("{}")


def runs(folder: Path) -> None:
    with Run(folder, MANIFEST) as run:
        run.keep(a_solve(problem="p1"))
    (folder / "problems.jsonl").write_text('{"problem": "1+1?", "source": "x"}\n')
    (folder / "calls").mkdir()
    (folder / "calls" / "one.jsonl").write_text(a_call())


def learners(folder: Path) -> None:
    trees(folder)
    learn = folder / "learn"
    runs(learn / "epoch-1-run")
    shutil.move(learn / "epoch-1-run" / "calls", learn / "calls")
    StepLog(learn, MANIFEST).__exit__()
    (learn / "bill.json").write_text("{}")


def viewed(folder: Path) -> None:
    workspace = Workspace([folder])
    for item in workspace.items("run"):
        index = workspace.run(item.name)
        index.wait()
        index.record("p1", a_solve().seed)
    for item in workspace.items("tree"):
        workspace.tree(item.name).whole(wait=True)


def resumed(folder: Path) -> None:
    with Run(folder, MANIFEST) as run:
        run.keep(a_solve(problem="p2"))
        run.calls.get("a" * 64)


def stepped(folder: Path) -> None:
    with StepLog(folder / "learn", MANIFEST):
        CallStore(folder / "learn" / "calls").close()


TREE = ("cards.jsonl", "journal.jsonl")
Attack = tuple[Callable[[Path], None], Callable[[Path], object], tuple[str, ...]]
ACTIONS: dict[str, Attack] = {
    "tree show": (trees, open_tree, TREE),
    "tree log": (trees, lambda at: TreeStore.open(at).log(), TREE[1:]),
    "tree edit": (
        trees,
        lambda at: TreeStore.open(at).apply(Add(a_card("EXACT_NEW_CARD")), author="x"),
        (*TREE, "lock"),
    ),
    "tree freeze": (trees, lambda at: TreeStore.open(at).freeze(author="x"), (*TREE, "lock")),
    "tree revert": (trees, lambda at: TreeStore.open(at).revert(0, author="x"), (*TREE, "lock")),
    "tree snapshot": (
        trees,
        lambda at: TreeStore.open(at).snapshot("epoch-1"),
        (*TREE, "lock", "snapshots/epoch-1.jsonl", "snapshots/"),
    ),
    "tree verify": (trees, lambda at: TreeStore.open(at).verify(), (*TREE, "snapshots/epoch-1.jsonl", "snapshots/")),
    "tree hash": (trees, frozen_hash_of, TREE),
    "tree profile": (trees, lambda at: profile_of(None, at), ("profile.toml",)),
    "tree thresholds": (trees, thresholds_of, ("calibration.json",)),
    "tree view": (trees, viewed, TREE),
    "epochs": (learners, epochs_of, ("snapshots/epoch-1.jsonl", "snapshots/")),
    "solve": (runs, resumed, ("run.json", "traces.jsonl", "problems.jsonl", "lock", "calls/one.jsonl", "calls/")),
    "report": (runs, read_arm, ("run.json", "traces.jsonl")),
    "problems": (runs, lambda at: list(read_problems(at)), ("problems.jsonl",)),
    "clusters": (runs, lambda at: list(kept_field(at, "source")), ("problems.jsonl",)),
    "reuse": (runs, lambda at: CallStore(at / "new", [at / "calls"]), ("calls/one.jsonl",)),
    "replay": (runs, Replay.open, ("calls/one.jsonl",)),
    "run view": (runs, viewed, ("run.json", "traces.jsonl", "calls/one.jsonl")),
    "learn": (learners, stepped, ("learn/learn.json", "learn/steps.jsonl", "learn/lock", "learn/calls/one.jsonl")),
    "learn report": (
        learners,
        report_of,
        ("learn/learn.json", "learn/steps.jsonl", "learn/epoch-1-run/traces.jsonl", "learn/"),
    ),
    "learn select": (learners, read_learned, ("learn/learn.json", "learn/")),
    "learn costs": (learners, lambda at: read_costs(at / "learn"), ("learn/bill.json",)),
    "inbox read": (an_inbox, lambda at: Inbox(at).request("propose-1"), ("propose-1.request.md",)),
    "inbox write": (
        an_inbox,
        lambda at: Inbox(at).write("propose-1", "x"),
        ("propose-1.request.md", "propose-1.reply.md"),
    ),
}


def put_a_victim(place: Path, outside: Path) -> None:
    """What lay there as a file elsewhere, so that all looks well; logs end like a victim's own file."""
    was = place.read_bytes() if place.is_file() else b""
    (outside / "victim").write_bytes(
        was if place.name.endswith((".json", ".toml", "cards.jsonl", "epoch-1.jsonl")) else was + VICTIM
    )
    place.unlink(missing_ok=True)


def a_link(place: Path, outside: Path) -> None:
    put_a_victim(place, outside)
    place.symlink_to(outside / "victim")


def a_dangling_link(place: Path, outside: Path) -> None:
    place.unlink(missing_ok=True)
    place.symlink_to(outside / "new")


def a_hard_link(place: Path, outside: Path) -> None:
    put_a_victim(place, outside)
    place.hardlink_to(outside / "victim")


def a_pipe(place: Path, outside: Path) -> None:
    place.unlink(missing_ok=True)
    os.mkfifo(place)


def a_device(place: Path, outside: Path) -> None:
    place.unlink(missing_ok=True)
    place.symlink_to("/dev/zero")


def a_folder(place: Path, outside: Path) -> None:
    place.unlink(missing_ok=True)
    place.mkdir()


def a_linked_folder(place: Path, outside: Path) -> None:
    shutil.move(place, outside / "folder")
    place.symlink_to(outside / "folder")


IN_ITS_PLACE = (a_link, a_dangling_link, a_hard_link, a_pipe, a_device, a_folder)
SAID = {"tree verify", "tree thresholds", "learn costs"}  # tell in what they return, or say there is none
LEFT_OUT = {("learn report", "learn/learn.json"), ("run view", "calls/one.jsonl")}  # pages show what else there is
LOGS = ("journal.jsonl", "traces.jsonl", "problems.jsonl", "steps.jsonl")
APPENDING = {"tree edit", "tree freeze", "tree revert", "solve", "learn"}
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
    if action in SAID or (action, name) in LEFT_OUT:
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
    kind(folder / name.rstrip("/"), outside)
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
