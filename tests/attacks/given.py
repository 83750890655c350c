"""Folders that somebody may give us, what is done with each, and the files that opens."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from kace.cards.store import TreeStore, open_state, open_tree
from kace.cards.tree import Add
from kace.config import Price, profile_of
from kace.learning.report import report_of
from kace.learning.study import StepLog, read_bill
from kace.models.base import AttemptKey, Finish, Request, Sampling, chat
from kace.models.cache import CallRecord, CallStore, Replay
from kace.report.inbox import Inbox
from kace.report.workspace import Workspace
from kace.runs.run import Run
from kace.runs.table import Table
from tests.card_samples import DOMAINS, a_card
from tests.report.samples import a_solve, an_inbox

PRICE = Price(input=1.0, output=10.0, cached=0.1)
KEY = "canary/key+0123456789"
MANIFEST: dict[str, object] = {
    "v": 1,
    "config": {"retrieval": {}},
    "prompts": {},
    "tree": None,
    "settings": {},
    "train": {"ids": []},
}


def request(index: int = 0) -> Request:
    return Request(chat("s", "u"), Sampling(0.6, 100, index), AttemptKey("p", 0, "ES", index))


def a_call() -> str:
    said = {"key": "a" * 64, "model": "m", "problem": "p1", "tier": "ES", "text": "news", "finish": Finish.STOP, "v": 1}
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
        table = workspace.table(item.name)
        table.solution("p1", a_solve().seed)
    for item in workspace.items("tree"):
        workspace.tree(item.name)


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
    "tree show": (trees, open_tree, TREE[:1]),
    "tree log": (trees, lambda at: TreeStore.open(at).log(), TREE[1:]),
    "tree edit": (
        trees,
        lambda at: TreeStore.open(at).apply(Add(a_card("EXACT_NEW_CARD")), author="x"),
        (*TREE, "lock"),
    ),
    "tree freeze": (trees, lambda at: TreeStore.open(at).freeze(author="x"), (*TREE, "lock")),
    "tree snapshot": (
        trees,
        lambda at: TreeStore.open(at).snapshot("epoch-1"),
        (*TREE[:1], "lock", "snapshots/epoch-1.jsonl", "snapshots/"),
    ),
    "tree hash": (trees, lambda path: open_state(path).frozen, TREE[:1]),
    "tree profile": (trees, lambda at: profile_of(None, at), ("profile.toml",)),
    "tree view": (trees, viewed, TREE[:1]),
    "solve": (runs, resumed, ("run.json", "traces.jsonl", "problems.jsonl", "lock", "calls/one.jsonl", "calls/")),
    "report": (runs, Table.open, ("run.json", "traces.jsonl")),
    "problems": (runs, lambda at: list(Table.open(at).problems()), ("problems.jsonl",)),
    "reuse": (runs, lambda at: CallStore(at / "new", [at / "calls"]), ("calls/one.jsonl",)),
    "replay": (runs, Replay, ("calls/one.jsonl",)),
    "run view": (runs, viewed, ("run.json", "traces.jsonl", "calls/one.jsonl")),
    "learn": (learners, stepped, ("learn/learn.json", "learn/steps.jsonl", "learn/lock", "learn/calls/one.jsonl")),
    "learn report": (learners, report_of, ("learn/learn.json", "learn/steps.jsonl", "learn/")),
    "learn costs": (learners, lambda at: read_bill(at / "learn"), ("learn/bill.json",)),
    "inbox read": (an_inbox, lambda at: Inbox(at).read("propose-1"), ("propose-1.request.md",)),
    "inbox write": (
        an_inbox,
        lambda at: Inbox(at).write("propose-1", "x"),
        ("propose-1.request.md", "propose-1.reply.md"),
    ),
}
