"""A trial: one system on one data set with one solver, over several seeds, in a run directory that resumes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kace.config import Config
from kace.datasets.registry import Dataset
from kace.errors import DataError
from kace.models.base import ChatModel
from kace.problem import Problem
from kace.solver.ladder import Observer
from kace.solver.run import Run, default_folder, manifest_of, solve_all
from kace.solver.session import open_session
from kace.solver.solution import Solution
from kace.solver.trace import SolveRecord
from kace.systems.base import DEFAULT_K, Bench, open_system, spec_of
from kace.tree.tree import EpistemicTree

HELD = ("v", "config", "prompts", "tree", "system", "data")
"""What must not change while a run goes on. More seeds may be added to it."""

Told = Callable[[SolveRecord], None]


@dataclass(frozen=True, slots=True)
class Trial:
    """What is evaluated."""

    system: str
    data: Dataset
    config: Config
    seeds: int = 3
    tree: EpistemicTree | None = None
    artefact: Path | None = None
    """What a trained system learned, where it is not a tree."""
    k: int = DEFAULT_K
    """Cards read by systems that pick single cards."""

    @property
    def name(self) -> str:
        """What to call it in a table."""
        return self.system

    def seed(self, number: int) -> int:
        """The seed of a repetition."""
        return self.config.seed + number

    def manifest(self) -> dict[str, object]:
        """What the run depends on."""
        data = self.data
        return {
            **manifest_of(self.config, self.tree),
            "system": {"name": self.system, "artefact": _hash(self.artefact), **spec_of(self.system).facts(self.k)},
            "data": {"name": data.name, "split": data.split, "problems": len(data.problems), "hash": data.hash},
        }

    def folder(self) -> Path:
        """Where the run goes when nobody says."""
        manifest = self.manifest()
        source = f"{manifest['system']}{manifest['data']}".encode()
        return default_folder(f"{self.system}-{self.data.name}-{self.data.split}", manifest, source)

    def open(self, folder: Path, reuse: Sequence[Path] = ()) -> Run:
        """The run directory, which refuses another trial. Calls that runs in `reuse` made are not paid again."""
        return Run(folder, self.manifest(), reuse=reuse, held=HELD)


async def run_trial(
    trial: Trial,
    run: Run,
    *,
    recalled: Told = lambda record: None,
    observer: Observer | None = None,
    model: ChatModel | None = None,
) -> None:
    """Solve every problem on every seed that the run does not hold yet; `recalled` hears of those that it does."""

    def keep(solution: Solution) -> None:
        run.keep(solution)

    def still_to_do(seed: int) -> Iterator[Problem]:
        for problem in trial.data.problems:
            if record := run.finished(problem, seed):
                recalled(record)
            else:
                yield problem

    async with open_session(trial.config, calls=run.calls, model=model, observer=observer) as session:
        for number in range(trial.seeds):
            seed = trial.seed(number)
            bench = Bench(
                tree=trial.tree,
                artefact=trial.artefact,
                config=trial.config,
                classifier=session.classifier,
                helper=session.role("helper"),
                seed=seed,
                k=trial.k,
            )
            system = open_system(trial.system, bench)
            kit = replace(session.kit, seed=seed)
            await solve_all(still_to_do(seed), kit, session.window, keep, system.solve)


def _hash(artefact: Path | None) -> str | None:
    """What was learned, by content: the JSON that training wrote, not the record of how it was trained."""
    if artefact is None:
        return None
    files = sorted(artefact.glob("*.json")) if artefact.is_dir() else [artefact]
    digest = hashlib.sha256()
    for file in files:
        try:
            digest.update(file.read_bytes())
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise DataError(f"{file}: {reason}", fix="name what kace train wrote") from None
    return digest.hexdigest()
