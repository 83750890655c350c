"""Run a system, and train what some systems read.

A trial solves one data set with one system over several seeds, in a run directory that resumes. A training makes a
playbook, a prompt, demonstrations or a tree, and resumes as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from kace.baselines.controls import cards_by_family
from kace.baselines.systems import (
    FixedText,
    Inputs,
    System,
    open_system,
    spec_of,
)
from kace.cards.tree import EpistemicTree
from kace.config import Config
from kace.errors import DataError
from kace.files import inside, read_plain, readable
from kace.ladder.ladder import Observer
from kace.ladder.prompt import Context, template_hashes
from kace.ladder.record import Solution
from kace.ladder.session import open_session
from kace.learning import StepResult
from kace.learning.study import (
    SILENT_STEPS,
    StepObserver,
    Workbench,
    check_training,
    gather_all,
    open_workbench,
    require_answers,
)
from kace.models.base import ChatModel
from kace.problems import (
    Dataset,
    Problem,
    load_bundled,
    load_problems,
    problems_hash,
)
from kace.runs.manifest import default_folder, manifest_of, solver_prompts
from kace.runs.run import OnSolution, Run, ignore, work_through
from kace.runs.shards import Shard

# Trials


@dataclass(frozen=True)
class Trial:
    """What is evaluated; the artefact is what a trained system learned, if that is not a tree."""

    system: str
    data: Dataset
    config: Config
    seeds: int = 3
    tree: EpistemicTree | None = None
    artefact: Path | None = None
    shard: Shard | None = None

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All problems of the data, or those of the shard."""
        if self.shard is None:
            return self.data.problems
        return self.shard.take(self.data.problems)

    @cached_property
    def manifest(self) -> dict[str, object]:
        """Return what the run depends on."""
        data = self.data
        spec = spec_of(self.system)
        system = {
            "name": self.system,
            "artefact": _hash_artefact(self.artefact),
        }
        if "llm" in spec.selector:
            system |= template_hashes("systems")
        problems = {
            "name": data.name,
            "split": data.split,
            "problems": len(data.problems),
            "hash": data.hash,
        }
        manifest = manifest_of(self.config, self.tree)
        manifest |= {"system": system, "data": problems}
        right = self._right_cards()
        if right:
            manifest["right_cards"] = right
        if self.shard:
            manifest["shard"] = asdict(self.shard)
        return manifest

    def _right_cards(self) -> dict[str, list[str]]:
        """Return the cards from training problems of each family, where those are known."""
        families = {problem.family for problem in self.data.problems}
        if self.tree is None or families == {None}:
            return {}
        train = [*load_bundled("starter-1000", "train")]
        train += load_bundled("techniques", "train")
        if self.config.tree:
            for file in self.config.tree.glob("learn/*/problems.jsonl"):
                train += load_problems(file)
        cards = cards_by_family(self.tree, train)
        return {name: sorted(cards[name]) for name in cards if name in families}

    def folder(self) -> Path:
        """Return the default folder of the run."""
        manifest = self.manifest
        name = f"{self.system}-{self.data.name}-{self.data.split}"
        source = f"{manifest['system']}{manifest['data']}".encode()
        folder = default_folder(name, manifest, source)
        return self.shard.folder(folder) if self.shard else folder

    def open(
        self,
        folder: Path,
        reuse: Sequence[Path] = (),
    ) -> Run:
        """Open the run directory, which refuses another trial. Calls of the runs in `reuse` are not paid again."""
        texts = self.config.problem_texts
        return Run(folder, self.manifest, reuse=reuse, texts=texts)


async def run_trial(
    trial: Trial,
    run: Run,
    recalled: OnSolution = ignore,
    observer: Observer | None = None,
    model: ChatModel | None = None,
    system: System | None = None,
) -> None:
    """Solve every problem on every seed that the run does not hold yet; `recalled` gets those it holds.

    A system that is given replaces the trial's. Calls of a model that is given are not kept.
    Batches hold all seeds, other runs one seed at a time.
    """
    calls = run.calls if model is None else None
    abreast = trial.seeds if trial.config.batch else 1
    first = trial.config.seed
    async with open_session(
        trial.config, calls=calls, model=model, observer=observer
    ) as session:

        async def solve_seed(seed: int) -> None:
            inputs = Inputs(
                trial.tree,
                trial.artefact,
                trial.config,
                session.classifier,
                session.role("helper"),
                seed,
            )
            opened = system or open_system(trial.system, inputs)
            opened.check(trial.problems)
            solve = partial(opened.solve, kit=replace(session.kit, seed=seed))
            window = max(1, session.window // abreast)
            await run.solve(
                trial.problems, solve, seed, window, on_known=recalled
            )

        seeds = range(first, first + trial.seeds)
        await work_through(seeds, abreast, solve_seed)


def _hash_artefact(artefact: Path | None) -> str | None:
    """Return the hash of what was learned: the JSON that training wrote, not the record of the training."""
    if artefact is None:
        return None
    files = sorted(artefact.glob("*.json")) or [artefact]
    with readable(artefact, "name what kace learn --method wrote"):
        content = b"".join(map(read_plain, files))
    return hashlib.sha256(content).hexdigest()


# Training

EMPTY = EpistemicTree.of((), ())
PROMPTS = (
    "teacher",
    "ace",
    "reflections",
)  # folders of templates a training may use
RECORD = "train"  # the folder of a training's own record, inside its result

R = TypeVar("R", bound=StepResult)


@dataclass(frozen=True, slots=True)
class TrainPlan:
    """What is trained, on what, and where the result goes."""

    method: str  # as `kace learn --method` calls it
    train: tuple[Problem, ...]
    config: Config
    out: Path
    epochs: int = 1
    tree: EpistemicTree = EMPTY  # its domains, or the cards to replace
    validation: tuple[
        Problem, ...
    ] = ()  # choose by score; no teacher reads them
    failures: str = "tier"  # which problems count as failed: `final` or `tier`

    def manifest(self) -> dict[str, object]:
        """Return what a training depends on, free of secrets; epochs may grow."""
        prompts = solver_prompts()
        for part in PROMPTS:
            prompts |= template_hashes(part)
        return {
            **manifest_of(self.config),
            "teacher": self.config.teacher,
            "settings": {
                "what": self.method,
                "failures": self.failures,
                "tree": self.tree.content_hash(),
            },
            "prompts": prompts,
            "train": {
                "problems": problems_hash(self.train),
                "validation": problems_hash(self.validation),
            },
        }


class Score(StepResult):
    """How many attempts of a batch are right. A failed call counts like a wrong answer."""

    right: int
    of: int

    @property
    def summary(self) -> str:
        """How many are right."""
        return f"{self.right} of {self.of} right"


@dataclass(frozen=True, kw_only=True)
class Training(Workbench):
    """An open training: its plan, and what it works with."""

    plan: TrainPlan

    async def attempt(
        self, problems: Sequence[Problem], context: Context, seed: int
    ) -> list[Solution]:
        """Make one attempt per problem, which reads the context."""
        kit = replace(self.session.kit, seed=seed)
        system = System(self.plan.method, FixedText(context), attempts=1)
        solve = partial(system.solve, kit=kit)
        return await gather_all(map(solve, problems))


@asynccontextmanager
async def open_training(
    plan: TrainPlan,
    *,
    model: ChatModel | None = None,
    teacher: ChatModel | None = None,
    observer: StepObserver = SILENT_STEPS,
) -> AsyncIterator[Training]:
    """Open everything a training works with, under one ledger. Models that are given stay the caller's to close."""
    check_training(plan.train)
    require_answers(plan.validation, "validation")
    opening = open_workbench(
        inside(plan.out, RECORD),
        plan.config,
        plan.manifest(),
        model=model,
        teacher=teacher,
        taught=plan.method != "reflections",
        observer=observer,
    )
    async with opening as bench:
        yield Training(**vars(bench), plan=plan)


def read_artefact(
    path: Path,
    name: str,
    kind: type[R],
    what: str,
    method: str,
) -> R:
    """Read what a training of this method made, from its file or the folder that holds it."""
    file = path / name if path.is_dir() else path
    fix = f"name what kace learn --method {method} made"
    try:
        with readable(file, fix):
            found = kind.model_validate_json(read_plain(file))
    except ValidationError as error:
        reason = error.errors()[0]["msg"].lower()
        raise DataError(f"{file}: not a {what} ({reason})", fix=fix) from None
    made = getattr(found, "kind", method)
    if made != method:
        what = f"made by kace learn --method {made}"
        raise DataError(f"{file}: {what}", fix=fix)
    return found
