"""Which epoch to use: every snapshot, and the ladder alone, tried on problems that the learner never saw."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from kace.config import PAPER, Config
from kace.errors import DataError, UsageError
from kace.io import lock_folder
from kace.learner.selection import Outing, Selection, ValidationSet, decide, rows_of
from kace.models.base import ChatModel
from kace.models.cache import CallStore
from kace.problem import Problem
from kace.redact import public_url
from kace.solver.ladder import Observer
from kace.solver.run import Run, manifest_of, solve_all
from kace.solver.session import Session, open_library, open_session
from kace.solver.solution import Solution
from kace.solver.trace import SolveRecord
from kace.tree.store import TreeStore, open_tree
from kace.tree.tree import EpistemicTree

AUTHOR = "kace select"
URLS = ("base_url", "anthropic_base_url", "teacher_base_url")

_SNAPSHOT = re.compile(r"epoch-([1-9][0-9]*)\.jsonl")


class Train(BaseModel):
    """The training set, as the learner recorded it."""

    model_config = ConfigDict(frozen=True)

    problems: int
    ids: tuple[str, ...]


class Learned(BaseModel):
    """What a selection needs of the learner's own record."""

    model_config = ConfigDict(frozen=True)

    config: dict[str, JsonValue]
    train: Train


@dataclass(frozen=True, slots=True)
class Candidate:
    """An epoch and its tree; epoch 0 has none: it is the ladder alone."""

    epoch: int
    tree: EpistemicTree | None


@dataclass(frozen=True, slots=True)
class Contest:
    """What every candidate solves, and where the runs are kept."""

    folder: Path
    problems: tuple[Problem, ...]
    config: Config
    seeds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """One candidate's run on one seed."""

    candidate: Candidate
    seed: int

    @property
    def name(self) -> str:
        """The run's directory: the same for the same epoch and seed, however many seeds are asked for."""
        return f"epoch-{self.candidate.epoch}" + (f"-seed-{self.seed}" if self.seed else "")


class Spectator(Observer, Protocol):
    """Hears how the runs go."""

    def trying(self, trial: Trial, problems: int, done: Sequence[SolveRecord]) -> None:
        """A run begins, with some of its problems solved before."""

    def tried(self, trial: Trial, records: Sequence[SolveRecord]) -> None:
        """A run is complete."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What all runs share."""

    session: Session
    calls: CallStore
    spectator: Spectator | None


def read_learned(tree: Path) -> Learned:
    """The learner's record in a tree that `kace learn` made."""
    path = tree / "learn" / "learn.json"
    try:
        return Learned.model_validate_json(path.read_bytes())
    except OSError:
        raise UsageError(f"{tree} is no tree that kace learn made", fix="name the --out of kace learn") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise DataError(f"{path}: {where}: {first['msg'].lower()}", fix="was it edited? learn the tree again") from None


def candidates(tree: Path) -> tuple[Candidate, ...]:
    """The ladder alone, then every epoch there is a snapshot of."""
    matches = (_SNAPSHOT.fullmatch(path.name) for path in (tree / "snapshots").glob("epoch-*.jsonl"))
    epochs = sorted(int(match[1]) for match in matches if match)
    if not epochs:
        raise UsageError(f"{tree} has no snapshot of an epoch", fix="finish an epoch first: kace learn --out TREE")
    found = [Candidate(epoch, open_tree(tree / snapshot(epoch))) for epoch in epochs]
    return (Candidate(0, None), *found)


def snapshot(epoch: int) -> str:
    """Where an epoch's tree lies inside the learned one."""
    return f"snapshots/epoch-{epoch}.jsonl"


def solver_settings(learned: Learned, given: Mapping[str, object], ambient: Config) -> dict[str, object]:
    """The learner's settings of the solver, and over them those given now."""
    unknown = next((name for name in learned.config if name not in Config.model_fields), None)
    if unknown is not None:
        raise DataError(f"learn.json has the setting '{unknown}', which this kace does not know", fix="upgrade kace")
    kept: dict[str, object] = {**PAPER, **learned.config}  # what a manifest does not say, it is older than
    for name in URLS:
        # A manifest has no credentials: the same address where they are at hand is the better one.
        here = getattr(ambient, name)
        if here is not None and public_url(here) == kept.get(name):
            del kept[name]
    wanted = {name: value for name, value in given.items() if value is not None}
    if wanted.get("model", kept.get("model")) != kept.get("model"):
        kept.pop("base_url", None)  # another model is not asked at that one's server
    return {**kept, **wanted}


def check_validation(problems: Sequence[Problem], learned: Learned) -> None:
    """Refuse problems that cannot be graded, and any that the tree was learned from."""
    bare = next((problem for problem in problems if problem.answer is None), None)
    if bare is not None:
        raise DataError(f"validation problem {bare.name!r} has no answer", fix="every one needs its answer")
    trained = frozenset(learned.train.ids)
    shared = [problem.name for problem in problems if problem.id in trained]
    if shared:
        raise DataError(
            f"{len(shared)} of {len(problems)} validation problems stand in the training set, such as {shared[0]!r}",
            fix="remove them: a tree looks better on what it was learned from",
        )


async def hold(
    contest: Contest,
    entered: Sequence[Candidate],
    *,
    model: ChatModel | None = None,
    spectator: Spectator | None = None,
) -> tuple[Outing, ...]:
    """Every candidate's records. What was solved before is read, and no call is paid for twice."""
    with ExitStack() as held:
        held.callback(os.close, lock_folder(contest.folder))
        calls = CallStore(contest.folder / "calls")
        held.callback(calls.close)
        async with open_session(contest.config, calls=calls, model=model, observer=spectator) as session:
            stage = Stage(session, calls, spectator)
            outings = []
            for candidate in entered:
                records: list[SolveRecord] = []
                for seed in contest.seeds:
                    records += await _run(Trial(candidate, seed), contest, stage)
                outings.append(Outing(candidate.epoch, candidate.tree, tuple(records)))
    return tuple(outings)


async def _run(trial: Trial, contest: Contest, stage: Stage) -> tuple[SolveRecord, ...]:
    """The records of a trial, in the order of the problems."""
    session, spectator = stage.session, stage.spectator
    config = contest.config.model_copy(update={"seed": trial.seed})
    tree, problems = trial.candidate.tree, contest.problems
    library = None if tree is None else open_library(tree, session.classifier, config)
    kit = replace(session.kit, seed=trial.seed, library=library)
    with _opened(contest.folder / trial.name, manifest_of(config, tree), stage.calls) as run:
        done = {problem.id: run.finished(problem, trial.seed) for problem in problems}
        todo = [problem for problem in problems if done[problem.id] is None]
        if spectator:
            spectator.trying(trial, len(problems), [record for record in done.values() if record])

        def keep(solution: Solution) -> None:
            run.keep(solution)

        await solve_all(todo, kit, session.window, keep)
        last = {record.problem: record for record in run.records() if record.seed == trial.seed}
        records = tuple(last[problem.id] for problem in problems)
    if spectator:
        spectator.tried(trial, records)
    return records


def _opened(folder: Path, manifest: dict[str, object], calls: CallStore) -> Run:
    try:
        return Run(folder, manifest, calls=calls)
    except UsageError as error:
        raise UsageError(
            error.message, fix=f"repeat those settings, or remove {folder.parent} to select with others"
        ) from None


def selection_of(contest: Contest, outings: Sequence[Outing]) -> Selection:
    """The decision that the records bear out."""
    rows = rows_of(outings)
    verdict = decide(rows, len(contest.problems))
    return Selection(
        epoch=verdict.epoch,
        tree=snapshot(verdict.epoch) if verdict.epoch else None,
        p=verdict.p,
        said=verdict.said,
        rows=rows,
        seeds=contest.seeds,
        validation=ValidationSet(
            problems=len(contest.problems),
            hash=_set_hash(contest.problems),
            ids=tuple(problem.id for problem in contest.problems),
        ),
        config=json.loads(json.dumps(manifest_of(contest.config)["config"])),
    )


def keep_tree(out: Path, tree: EpistemicTree | None, note: str) -> str:
    """Put a tree into a store of its own, frozen, and return its content hash. Doing it again changes nothing.

    No tree becomes an empty one without domains, which solves as the ladder alone does.
    """
    wanted = EpistemicTree.of((), ()) if tree is None else tree
    if not TreeStore(out).cards_path.exists():
        TreeStore.create(out, wanted.domains, wanted, author=AUTHOR, note=note)
    store = TreeStore.open(out)
    if store.load() != wanted:
        raise UsageError(f"{out} already holds another tree", fix="choose another --out")
    return store.freeze(author=AUTHOR)


def _set_hash(problems: Sequence[Problem]) -> str:
    """The content hash of a set of labelled problems, in their order."""
    content = [[problem.id for problem in problems], [problem.answer for problem in problems]]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
