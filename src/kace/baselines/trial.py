"""A trial: one system on one data set with one solver, over several seeds, in a run directory that resumes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kace.baselines.registry import Bench, open_system, spec_of
from kace.cards.tree import EpistemicTree
from kace.config import Config
from kace.errors import DataError
from kace.files import read_plain
from kace.ladder.ladder import Observer
from kace.ladder.record import Solution
from kace.ladder.session import Session, open_session
from kace.models.base import ChatModel
from kace.problems import Dataset, Problem
from kace.runs.manifest import default_folder, manifest_of
from kace.runs.run import Run, Solve, work_through
from kace.runs.shards import Shard

if TYPE_CHECKING:
    from kace.baselines.parts import System


@dataclass(frozen=True, slots=True)
class Trial:
    """What is evaluated; the artefact is what a trained system learned, where it is not a tree."""

    system: str
    data: Dataset
    config: Config
    seeds: int = 3
    tree: EpistemicTree | None = None
    artefact: Path | None = None
    k: int | None = (
        None  # cards or demonstrations read by systems that pick single ones; left out, the row's own
    )
    shard: Shard | None = None

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What this run solves: all problems of the data, or those of its shard."""
        return self.shard.take(self.data.problems) if self.shard else self.data.problems

    def manifest(self) -> dict[str, object]:
        """What the run depends on."""
        data = self.data
        spec = spec_of(self.system)
        return {
            **manifest_of(self.config, self.tree),
            "system": {
                "name": self.system,
                "artefact": _hash(self.artefact),
                **spec.facts(self.k or spec.k),
            },
            "data": {
                "name": data.name,
                "split": data.split,
                "problems": len(data.problems),
                "hash": data.hash,
            },
            **(self.shard.facts(data.problems) if self.shard else {}),
        }

    def folder(self) -> Path:
        """Where the run goes when nobody says."""
        manifest = self.manifest()
        source = f"{manifest['system']}{manifest['data']}".encode()
        folder = default_folder(
            f"{self.system}-{self.data.name}-{self.data.split}", manifest, source
        )
        return self.shard.folder(folder) if self.shard else folder

    def open(self, folder: Path, reuse: Sequence[Path] = ()) -> Run:
        """The run directory, which refuses another trial. Calls that runs in `reuse` made are not paid again."""
        return Run(
            folder, self.manifest(), reuse=reuse, texts=self.config.problem_texts
        )


Recalled = Callable[[Solution], None]  # hears of a solve that the run holds already


async def run_trial(
    trial: Trial,
    run: Run,
    recalled: Recalled = lambda record: None,
    observer: Observer | None = None,
    model: ChatModel | None = None,
) -> None:
    """Solve every problem on every seed that the run does not hold yet. Calls of a model given open are not kept."""
    calls = run.calls if model is None else None
    async with open_session(
        trial.config, calls=calls, model=model, observer=observer
    ) as session:
        await solve_trial(trial, run, session, recalled)


async def solve_trial(
    trial: Trial, run: Run, session: Session, recalled: Recalled = lambda record: None
) -> None:
    """The same in an open session, whose budget several trials may share. Through batches, all seeds go together."""
    abreast = trial.seeds if trial.config.batch else 1

    async def solve_seed(seed: int) -> None:
        system = _open(trial, session, seed)
        kit = replace(session.kit, seed=seed)
        system.check(trial.problems)
        window = max(1, session.window // abreast)
        await run.solve(
            trial.problems,
            partial(system.solve, kit=kit),
            seed,
            window,
            on_known=recalled,
        )

    first = trial.config.seed
    await work_through(range(first, first + trial.seeds), abreast, solve_seed)


def solver_of(trial: Trial, session: Session, seed: int) -> Solve:
    """How the trial's system solves in a session; a problem that it cannot take raises."""
    system = _open(trial, session, seed)
    kit = replace(session.kit, seed=seed)

    async def solve(problem: Problem) -> Solution:
        system.check((problem,))
        return await system.solve(problem, kit)

    return solve


def _open(trial: Trial, session: Session, seed: int) -> System:
    models = (session.classifier, session.role("helper"))
    k = trial.k or spec_of(trial.system).k
    return open_system(
        trial.system, Bench(trial.tree, trial.artefact, trial.config, *models, seed, k)
    )


def _hash(artefact: Path | None) -> str | None:
    """What was learned, by content: the JSON that training wrote, not the record of how it was trained."""
    if artefact is None:
        return None
    digest = hashlib.sha256()
    for file in sorted(artefact.glob("*.json")) if artefact.is_dir() else [artefact]:
        try:
            digest.update(read_plain(file))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise DataError(
                f"{file}: {reason}", fix="name what kace learn --method wrote"
            ) from None
    return digest.hexdigest()
