"""The paper's table for a benchmark as a list of commands, each of which can be run by hand and resumes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from kace.baselines.registry import SYSTEMS, Need, Spec, spec_of

PROFILE = ("--profile", "paper")  # how the paper learns and reads a tree
LADDER_CALLS = (5.4, 10.0)  # expected and most calls of the ladder a problem
CONTROLS = (
    "kace-random",
    "kace-placebo",
    "kace-empty-prompt",
)  # those that the paper lists as missing
EPOCHS = {
    "ace": 1,
    "domain-ace": 1,
    "gepa": 2,
}  # of the other methods; reflections take as many as the tree


class Benchmark(NamedTuple):
    """A benchmark of the paper, named as its data set and preset, with the percentages reported for it."""

    name: str
    epochs: int
    reported: Mapping[str, float]  # accuracy by system, means over three seeds


_AIME = {
    "single": 42.5,
    "ace": 38.5,
    "gepa": 51.0,
    "domain-ace": 52.2,
    "best-of-5": 51.8,
    "tiered": 52.2,
}
_AIME |= {
    "tiered-ace": 54.5,
    "tiered-gepa": 56.6,
    "kace": 62.2,
    "kace-no-domain": 54.4,
    "kace-reflections": 59.3,
}
_AIME |= {"kace-monolithic": 51.6, "kace-router": 56.4, "kace-retriever": 56.2}
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
_ALL = (
    Benchmark("aime25", 2, _AIME),
    Benchmark("math-hard", 4, _MATH),
    Benchmark("olymmath", 2, _OLYMPIAD),
)
BENCHMARKS: Mapping[str, Benchmark] = {each.name: each for each in _ALL}


class Command(NamedTuple):
    """One command of a reproduction, with expected and most solver calls where they can be said beforehand."""

    about: str
    words: tuple[str, ...]
    calls: tuple[float, float] | None = None
    paid: bool = True  # whether it may ask a model


class Recipe(NamedTuple):
    """What is reproduced, with which models and where."""

    benchmark: Benchmark
    arms: tuple[str, ...]
    model: tuple[str, ...]  # the options that name the solver
    teacher: tuple[str, ...]
    settings: tuple[str, ...]  # the options that every command takes
    out: Path
    seeds: int
    sizes: Mapping[str, int]  # problems of each split
    tree: Path | None = (
        None  # a frozen tree to read; without one, a tree is learned and its epoch chosen
    )

    @property
    def specs(self) -> tuple[Spec, ...]:
        """The rows of the arms."""
        return tuple(map(spec_of, self.arms))

    @property
    def trainers(self) -> tuple[str, ...]:
        """The other methods that are trained."""
        return tuple(sorted({spec.trainer for spec in self.specs} - {""}))

    @property
    def learns(self) -> bool:
        """Whether a tree is learned."""
        return self.tree is None and any(
            Need.TREE in spec.needs and not spec.trainer for spec in self.specs
        )

    @property
    def taught(self) -> bool:
        """Whether anything is learned or trained."""
        return self.learns or bool(self.trainers)

    def commands(self) -> tuple[Command, ...]:
        """Everything to be done, in order."""
        todo = self._learning() if self.learns else []
        for name in self.trainers:
            epochs = ("--epochs", str(EPOCHS.get(name, self.benchmark.epochs)))
            taught = (
                *epochs,
                *PROFILE,
                *self._models,
                "--out",
                str(self.out / "trained" / name),
            )
            todo.append(
                Command(
                    f"train {name}",
                    ("learn", "--method", name, "--train", self.data("train"), *taught),
                )
            )
        todo += [self._evaluation(arm) for arm in self.arms]
        runs = [str(self.out / "runs" / arm) for arm in self.arms]
        page = ("report", *runs, *self.settings, "--out", str(self.out / "report"))
        return (*todo, Command("the page", page, paid=False))

    def data(self, split: str) -> str:
        """The file of a split."""
        return str(self.out / "data" / f"{split}.jsonl")

    @property
    def _models(self) -> tuple[str, ...]:
        return *self.model, *self.teacher, *self.settings

    def _learning(self) -> list[Command]:
        tree = str(self.out / "tree")
        epochs = self.benchmark.epochs
        held = ("--held-out", self.data("validation"), "--held-out", self.data("test"))
        dials = ("--epochs", str(epochs), *PROFILE)
        learn = (
            "learn",
            "--train",
            self.data("train"),
            *held,
            *dials,
            *self._models,
            "--out",
            tree,
        )
        chosen = (*self.settings, "--out", str(self.out / "chosen"))
        select = (
            "learn",
            "select",
            tree,
            "--validation",
            self.data("validation"),
            *chosen,
        )
        calls = _times(LADDER_CALLS, self.sizes["validation"] * (epochs + 1))
        about = (
            f"learn a tree from {self.sizes['train']} problems (see its own --dry-run)"
        )
        return [
            Command(about, learn),
            Command("choose the epoch on validation", select, calls),
        ]

    def _evaluation(self, arm: str) -> Command:
        spec = spec_of(arm)
        option = "--tree" if Need.TREE in spec.needs else "--artefact"
        made = (
            self.out / "trained" / spec.trainer
            if spec.trainer
            else self.tree or self.out / "chosen"
        )
        learned: tuple[str, ...] = (
            (option, str(made)) if spec.needs & {Need.TREE, Need.ARTEFACT} else ()
        )
        learned += (
            ("--artefact", self.data("train"))
            if Need.TRAINING_FILE in spec.needs
            else ()
        )
        # Ladders ask the same at ES: paid once, and what differs between them is what they read.
        ladders = [each for each in self.arms if not spec_of(each).attempts]
        shared = (
            ("--reuse", str(self.out / "runs" / ladders[0]))
            if arm in ladders[1:]
            else ()
        )
        data = ("--data", self.data("test"), "--seeds", str(self.seeds))
        asked = (
            *data,
            *self.model,
            *self.settings,
            *PROFILE,
            *learned,
            *shared,
            "--out",
            str(self.out / "runs" / arm),
        )
        each = (
            (float(spec.attempts), float(spec.attempts))
            if spec.attempts
            else LADDER_CALLS
        )
        calls = _times(each, self.sizes["test"] * self.seeds)
        return Command(
            f"{arm} on {self.sizes['test']} test problems",
            ("eval", "--system", arm, *asked),
            calls,
        )


def default_arms(benchmark: Benchmark) -> tuple[str, ...]:
    """What the paper reports for the benchmark, then the controls, in the order of reports."""
    return tuple(
        name for name in SYSTEMS if name in benchmark.reported or name in CONTROLS
    )


def _times(calls: tuple[float, float], number: int) -> tuple[float, float]:
    return calls[0] * number, calls[1] * number
