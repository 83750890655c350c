"""The paper's table for a benchmark as a list of commands, each of which can be run by hand and resumes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kace.baselines.systems import SYSTEMS, Need, Spec, spec_of

PROFILE = ("--profile", "paper")  # how the paper learns and reads a tree
LADDER_CALLS = (5.4, 10.0)  # expected and most calls of the ladder per problem
CONTROLS = ("kace-random", "kace-placebo", "kace-empty-prompt")
"""Controls that the paper lists as missing."""
EPOCHS = {"ace": 1, "domain-ace": 1, "gepa": 2}
"""Epochs of the other methods; reflections take as many as the tree."""


class Benchmark(NamedTuple):
    """A benchmark of the paper, named as its data set and preset."""

    name: str
    epochs: int
    reported: Mapping[
        str, float
    ]  # accuracy in percent by system, means over 3 seeds


_AIME = {
    "single": 42.5,
    "ace": 38.5,
    "gepa": 51.0,
    "domain-ace": 52.2,
    "best-of-5": 51.8,
    "tiered": 52.2,
    "tiered-ace": 54.5,
    "tiered-gepa": 56.6,
    "kace": 62.2,
    "kace-no-domain": 54.4,
    "kace-reflections": 59.3,
    "kace-monolithic": 51.6,
    "kace-router": 56.4,
    "kace-retriever": 56.2,
}
_MATH = {
    "best-of-5": 72.7,
    "tiered": 73.3,
    "tiered-ace": 70.0,
    "tiered-gepa": 72.0,
    "kace": 77.3,
}
_OLYMPIAD = {
    "best-of-5": 40.7,
    "tiered": 44.4,
    "tiered-ace": 40.7,
    "tiered-gepa": 44.4,
    "kace": 48.3,
}
BENCHMARKS: Mapping[str, Benchmark] = {
    "aime25": Benchmark("aime25", 2, _AIME),
    "math-hard": Benchmark("math-hard", 4, _MATH),
    "olymmath": Benchmark("olymmath", 2, _OLYMPIAD),
}


class Command(NamedTuple):
    """One command of a reproduction, with its expected and most solver calls if they are known."""

    about: str
    words: tuple[str, ...]
    calls: tuple[float, float] | None = None
    paid: bool = True  # whether it may call a model


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is reproduced, with which models and where."""

    benchmark: Benchmark
    arms: tuple[str, ...]
    model: tuple[str, ...]  # the options that name the solver
    teacher: tuple[str, ...]
    settings: tuple[str, ...]  # the options of every command
    out: Path
    seeds: int
    sizes: Mapping[str, int]  # problems of each split
    tree: Path | None = None  # a frozen tree; without one, a tree is learned

    @property
    def specs(self) -> tuple[Spec, ...]:
        """The rows of the arms."""
        return tuple(spec_of(arm) for arm in self.arms)

    @property
    def trainers(self) -> tuple[str, ...]:
        """The other methods that are trained."""
        trainers = {spec.trainer for spec in self.specs if spec.trainer}
        return tuple(sorted(trainers))

    @property
    def learns(self) -> bool:
        """Whether a tree is learned."""
        reads = any(
            Need.TREE in spec.needs and not spec.trainer for spec in self.specs
        )
        return reads and self.tree is None

    @property
    def taught(self) -> bool:
        """Whether anything is learned or trained."""
        return self.learns or bool(self.trainers)

    def commands(self) -> tuple[Command, ...]:
        """Return everything to be done, in order."""
        commands = self._learning() if self.learns else []
        commands += [self._training(name) for name in self.trainers]
        commands += [self._evaluation(arm) for arm in self.arms]
        runs = [str(self.out / "runs" / arm) for arm in self.arms]
        page = ("report", *runs, *self.settings, *self._out("report"))
        return (*commands, Command("the page", page, paid=False))

    def data(self, split: str) -> str:
        """Return the file of a split."""
        return str(self.out / "data" / f"{split}.jsonl")

    def _out(self, name: str) -> tuple[str, str]:
        return "--out", str(self.out / name)

    def _learning(self) -> list[Command]:
        """Return the commands that learn a tree and choose its epoch."""
        epochs = self.benchmark.epochs
        validation = self.data("validation")
        learn = (
            *("learn", "--train", self.data("train")),
            *("--held-out", validation, "--held-out", self.data("test")),
            *("--epochs", str(epochs), *PROFILE),
            *(*self.model, *self.teacher, *self.settings, *self._out("tree")),
        )
        tree = str(self.out / "tree")
        select = (
            *("learn", "select", tree, "--validation", validation),
            *(*self.settings, *self._out("chosen")),
        )
        solves = self.sizes["validation"] * (epochs + 1)
        about = f"learn a tree from {self.sizes['train']} problems (see its own --dry-run)"
        chosen = "choose the epoch on validation"
        return [
            Command(about, learn),
            Command(chosen, select, _ladder_calls(solves)),
        ]

    def _training(self, name: str) -> Command:
        """Return the command that trains another method."""
        epochs = EPOCHS.get(name, self.benchmark.epochs)
        train = (
            *("learn", "--method", name, "--train", self.data("train")),
            *("--epochs", str(epochs), *PROFILE),
            *(*self.model, *self.teacher, *self.settings),
            *self._out(f"trained/{name}"),
        )
        return Command(f"train {name}", train)

    def _evaluation(self, arm: str) -> Command:
        """Return the command that evaluates an arm on the test split."""
        spec = spec_of(arm)
        solves = self.sizes["test"] * self.seeds
        calls = _ladder_calls(solves)
        if spec.attempts:
            calls = (
                float(spec.attempts * solves),
                float(spec.attempts * solves),
            )
        words = (
            *("eval", "--system", arm),
            *("--data", self.data("test"), "--seeds", str(self.seeds)),
            *(*self.model, *self.settings, *PROFILE),
            *(
                *self._learned(spec),
                *self._shared(arm),
                *self._out(f"runs/{arm}"),
            ),
        )
        return Command(
            f"{arm} on {self.sizes['test']} test problems", words, calls
        )

    def _learned(self, spec: Spec) -> list[str]:
        """Return the options that name what an arm reads."""
        made = self.tree or self.out / "chosen"
        if spec.trainer:
            made = self.out / "trained" / spec.trainer
        words = []
        if Need.TREE in spec.needs:
            words += ["--tree", str(made)]
        elif Need.ARTEFACT in spec.needs:
            words += ["--artefact", str(made)]
        if Need.TRAINING_FILE in spec.needs:
            words += ["--artefact", self.data("train")]
        return words

    def _shared(self, arm: str) -> list[str]:
        """Return the option that reuses calls: ladders make the same ones at ES, which are paid once."""
        ladders = [each for each in self.arms if not spec_of(each).attempts]
        if arm not in ladders[1:]:
            return []
        return ["--reuse", str(self.out / "runs" / ladders[0])]


def default_arms(benchmark: Benchmark) -> tuple[str, ...]:
    """Return what the paper reports for the benchmark, and the controls, in the order of reports."""
    wanted = {*benchmark.reported, *CONTROLS}
    return tuple(name for name in SYSTEMS if name in wanted)


def _ladder_calls(solves: int) -> tuple[float, float]:
    expected, most = LADDER_CALLS
    return expected * solves, most * solves
