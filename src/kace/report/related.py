"""What else is open that belongs to a run: others of the same problems, the one it is held against, its tree."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from kace.errors import KaceError
from kace.report.trees import TreeIndex
from kace.report.workspace import Item, Workspace
from kace.runs.solves import (
    RunIndex,
    RunManifest,
    bytes_in,
    setup_at,
    setup_of,
    trace_in,
)

BASE = "tiered"
# runs that are set beside one, and runs whose manifests are read to find them
MOST = 24
LOOKED_AT = 400
# bytes up to which either is read because of another run
SMALL_RUN = 8_000_000
SMALL_TREE = 20_000_000


class TreeRead(NamedTuple):
    """The open tree that a run read from, as far as that can be told."""

    name: str  # in the workspace
    exact: bool  # whether it is still what the run read; else it has changed since, or is only of the same name
    tree: (
        TreeIndex | None
    )  # `None` for one that is too large to be read for this, or cannot be


def related_runs(workspace: Workspace, name: str) -> dict[str, RunIndex]:
    """Runs of the same problems; small ones are opened for it, large ones only when somebody looked at them."""
    found = dict[str, RunIndex]()
    for other in same_problems(workspace, name)[:MOST]:
        trace = trace_in(other.path)
        if (
            other.name in workspace.runs()
            or trace is None
            or bytes_in(trace) <= SMALL_RUN
        ):
            with suppress(KaceError):
                found[other.name] = workspace.run(other.name)
                found[other.name].look(0, urgent=False)
    return found


def runs_of(workspace: Workspace, tree: str) -> list[tuple[str, RunManifest]]:
    """The runs that read the tree of a content, by name, those of the system itself before its variants."""
    found = [(item.name, _setup(item)) for item in workspace.items("run")[:LOOKED_AT]]
    return sorted(
        (run for run in found if run[1].tree_hash == tree),
        key=lambda run: run[1].system != "kace",
    )


def base_of(workspace: Workspace, name: str) -> str:
    """The run that one is held against unless somebody asks for another; empty where there is none."""
    here = _setup(workspace.item("run", name))
    first = same_problems(workspace, name)[:1]
    return "".join(item.name for item in first if is_base(_setup(item), here))


def same_problems(workspace: Workspace, name: str) -> list[Item]:
    """The other runs of the same problems, the plain ladder with the same model first, then those of the same folder.

    Steps of the same learner do not say what problems they are of.
    """
    item = workspace.item("run", name)
    found = list[tuple[bool, bool, Item]]()
    here = _setup(item)
    for other in workspace.items("run")[:LOOKED_AT]:
        there = _setup(other)
        near = item.path.parent == other.path.parent
        if other.name != name and (
            here.data_hash == there.data_hash
            if here.data_hash or there.data_hash
            else near
        ):
            found.append((not is_base(there, here), not near, other))
    return [other for *_, other in sorted(found, key=lambda each: each[:2])]


def is_base(there: RunManifest, here: RunManifest) -> bool:
    """Whether a run is the ladder without cards that another of the same model is held against unless one asks."""
    return there.system == BASE != here.system and there.model == here.model


def tree_of(workspace: Workspace, name: str) -> TreeRead | None:
    """The tree that a run read from: the one of its learner, the one of that content, or the only one there is."""
    run = workspace.item("run", name)
    trees = workspace.items("tree")
    wanted = _setup(run).tree_hash
    if not wanted or not trees:
        return None
    read: list[tuple[Item, TreeIndex | None]] = []
    for item in sorted(trees, key=lambda item: not run.path.is_relative_to(item.path)):
        found = None
        with suppress(KaceError):
            tree = workspace.tree(item.name)
            found = tree.whole() if tree.size <= SMALL_TREE else None
        if found is not None and found.facts.hash == wanted:
            return TreeRead(item.name, True, found)
        read.append((item, found))
    item, found = read[0]
    return (
        TreeRead(item.name, False, found)
        if run.path.is_relative_to(item.path) or len(read) == 1
        else None
    )


def _setup(item: Item) -> RunManifest:
    """What an item's manifest says; nothing where it cannot be read."""
    with suppress(KaceError):
        return setup_at(item.path / "run.json")
    return setup_of({})
