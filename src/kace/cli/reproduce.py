"""`kace reproduce`: the paper's table for a benchmark, on any model.

The table is a list of commands, each of which can be run by hand and resumes.
"""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import click

from kace.baselines.gepa import require_gepa
from kace.baselines.systems import (
    SYSTEMS,
    TRAINING,
    Spec,
    require_domains,
    spec_of,
)
from kace.cards.store import open_state, open_tree
from kace.cli.options import Options, takes
from kace.cli.terminal import aligned, cells_of, note, print_lines
from kace.cli.tree import tree_sizes
from kace.config import Config
from kace.errors import UsageError
from kace.files import DATA, write_atomic
from kace.learning.report import LADDER_ATTEMPTS
from kace.learning.study import bill_of, read_bill
from kace.models.cache import read_calls
from kace.problems import (
    SPLITS,
    labelled,
    load_dataset,
    problem_rows,
)
from kace.report.evaluation import Evaluation, evaluation_of, page
from kace.runs.scores import ScoreReader

PROFILE = ("--profile", "paper")
LEAST_USD = 1e-6  # the cap when nothing is left: only free calls fit
CONTROLS = ("kace-random", "kace-placebo", "kace-empty-prompt")
"""Controls that the paper lists as missing."""
REFLECTIONS = "kace-reflections"
PAPER = tomllib.loads((DATA / "paper.toml").read_text(encoding="utf-8"))
"""What the paper reports; see the file."""
TITLES = {
    "arms": "Beside the paper's figures (percent, 95 % intervals)",
    "tree": "The size of the tree",
    "costs": "What learning cost by epoch and phase (tokens)",
}
Row = dict[str, Any]


@click.command("reproduce")
@click.argument("benchmark", type=click.Choice(tuple(PAPER["accuracy"])))
@takes("model", "base_url", "teacher", "tree", "limit", "max_usd", "out")
@click.option(
    "--arms", help="Only these systems, separated by commas: tiered,kace."
)
@click.option(
    "--seeds",
    default=3,
    type=click.IntRange(1, 100),
    help="Repetitions on the test split.",
)
@click.option(
    "--yes",
    "go",
    is_flag=True,
    help="Run the commands. Without it they are only shown.",
)
def command(
    options: Options,
    benchmark: str,
    arms: str | None,
    seeds: int,
    go: bool,
) -> None:
    """Run the paper's table for a benchmark.

    Shows every command first, then runs them with --yes. With --tree, a frozen tree is
    read instead of learning one. --max-usd holds for all commands together.
    """
    config = options.config(preset=benchmark, profile=PROFILE[1])
    solver = ["--model", config.model, "--preset", benchmark]
    if options.get("config"):
        solver += ["--config", str(options.get("config"))]
    for name in ("base-url", "set"):
        for value in options.get(name.replace("-", "_")) or ():
            solver += [f"--{name}", value]
    tree = options.get("tree")
    recipe = Recipe(
        benchmark,
        tuple(arms.split(",")) if arms else default_arms(benchmark, tree),
        options.get("out") or Path("runs") / f"reproduce-{benchmark}",
        seeds,
        tree,
        tuple(solver),
        options.get("teacher"),
    )
    size = _write_splits(recipe, config, options.get("limit"))
    check_recipe(recipe)
    commands = recipe.commands()
    print_lines(f"kace {shlex.join(words)}" for words in commands)
    calls = sum(each.attempts or LADDER_ATTEMPTS for each in recipe.specs)
    calls *= size * seeds
    note(f"kace: evaluation takes about {calls:,.0f} solver calls")
    if go:
        for words in commands:
            _run(words, recipe.out, config)
        finish(recipe, config)


# The commands


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is reproduced, with which models and where."""

    benchmark: str
    arms: tuple[str, ...]
    out: Path
    seeds: int = 3
    tree: Path | None = None  # a frozen tree; without one, a tree is learned
    solver: tuple[str, ...] = ()  # its options, and all settings
    teacher: str | None = None

    @property
    def specs(self) -> list[Spec]:
        """The systems of the arms."""
        return list(map(spec_of, self.arms))

    @property
    def reads_tree(self) -> bool:
        """Whether some arm reads a tree."""
        return any(spec.reads_tree for spec in self.specs)

    @property
    def read_tree(self) -> Path:
        """The tree that the arms read."""
        return self.tree or self.out / "tree"

    def data(self, split: str) -> str:
        """Return the file of a split."""
        return str(self.out / "data" / f"{split}.jsonl")

    def commands(self) -> list[list[str]]:
        """Return everything to be done, in order, as words of the command line."""
        learn = ["learn", "--train", self.data("train"), *PROFILE, *self.solver]
        if self.teacher:
            learn += ["--teacher", self.teacher]
        commands = []
        if self.reads_tree and self.tree is None:
            epochs = str(PAPER["epochs"][self.benchmark])
            words = ["--epochs", epochs, "--out", str(self.read_tree)]
            for split in ("validation", "test"):
                words += ["--held-out", self.data(split)]
            commands.append([*learn, *words])
        for spec in self.specs:
            if spec.trainer:
                method, epochs = self._training(spec)
                words = [*learn, "--method", method, "--epochs", epochs]
                words += ["--out", self._made(spec)]
                if method == "reflections":
                    words += ["--tree", str(self.read_tree)]
                if words not in commands:
                    commands.append(words)
        ladders = [spec.name for spec in self.specs if not spec.attempts]
        for spec in self.specs:
            words = [*self._evaluation(spec), "--out", self._run(spec.name)]
            if spec.name in ladders[1:]:
                # Ladders make the same calls at ES, which are paid once.
                words += ["--reuse", self._run(ladders[0])]
            commands.append(words)
        return commands

    def _training(self, spec: Spec) -> tuple[str, str]:
        """Return the method and the epochs that make what an arm reads."""
        default = (spec.trainer, PAPER["epochs"][self.benchmark])
        method, epochs = PAPER["trained"].get(spec.name, default)
        return method, str(epochs)

    def _made(self, spec: Spec) -> str:
        """Return what an arm reads."""
        if not spec.trainer:
            return str(self.read_tree)
        return str(self.out / "trained" / "-".join(self._training(spec)))

    def _run(self, arm: str) -> str:
        return str(self.out / "runs" / arm)

    def _evaluation(self, spec: Spec) -> list[str]:
        """Return the command that evaluates an arm on the test split."""
        words = ["eval", "--system", spec.name, "--data", self.data("test")]
        words += ["--seeds", str(self.seeds), *self.solver, *PROFILE]
        if spec.reads_tree:
            words += ["--tree", self._made(spec)]
        if spec.artefact:
            training = spec.artefact == TRAINING
            made = self.data("train") if training else self._made(spec)
            words += ["--artefact", made]
        return words


def default_arms(benchmark: str, tree: Path | None = None) -> tuple[str, ...]:
    """Return what the paper reports for the benchmark, and the controls.

    A tree that is given need not come from problems to reflect on.
    """
    wanted = {*PAPER["accuracy"][benchmark], *CONTROLS}
    if tree:
        wanted.discard(REFLECTIONS)
    return tuple(filter(wanted.__contains__, SYSTEMS))


def _write_splits(recipe: Recipe, config: Config, limit: int | None) -> int:
    """Write the problems of every split; return the number of test problems."""
    size = 0
    for split in SPLITS:
        data = labelled(load_dataset(recipe.benchmark, split, config), limit)
        rows = "\n".join(problem_rows(data.problems))
        write_atomic(Path(recipe.data(split)), f"{rows}\n")
        size = len(data.problems)
    return size


def check_recipe(recipe: Recipe) -> None:
    """Raise for what would stop a later command, before anything is paid for."""
    if any(spec.trainer == "gepa" for spec in recipe.specs):
        require_gepa()
    if recipe.tree is None:
        return
    tree = open_tree(recipe.tree)
    if open_state(recipe.tree).frozen is None:
        raise UsageError(
            f"{recipe.tree} is not frozen",
            fix=f"kace tree freeze {shlex.quote(str(recipe.tree))}",
        )
    for spec in recipe.specs:
        require_domains(spec, tree)


def _run(words: Sequence[str], folder: Path, config: Config) -> None:
    """Run a command, within what is left of the cap."""
    from kace.cli import app

    cap = []
    if config.max_usd is not None:
        stores = folder.rglob("calls")
        calls = chain.from_iterable(map(read_calls, stores))
        spent = bill_of(calls, config).usd or 0.0
        cap = ["--max-usd", f"{max(config.max_usd - spent, LEAST_USD):.6f}"]
    note(f"kace: {shlex.join(words)}")
    app.main([*words, *cap], prog_name="kace", standalone_mode=False)


# The tables


def finish(recipe: Recipe, config: Config) -> None:
    """Write the tables as JSON and the page, and print them."""
    tables = ScoreReader().open(
        [recipe.out / "runs" / arm for arm in recipe.arms]
    )
    base = "kace" if "kace" in recipe.arms else None
    evaluation = evaluation_of(tables, base=base, prices=config.prices)
    found = {
        "arms": arm_rows(recipe.benchmark, evaluation),
        "tree": [],
        "costs": [],
    }
    if recipe.reads_tree:
        tree = open_tree(recipe.read_tree)
        found["tree"] = tree_sizes(tree)
        found["tree"].append(PAPER["trees"][recipe.benchmark])
        if recipe.tree is None:
            bill = read_bill(recipe.read_tree / "learn")
            found["costs"] = [part.model_dump() for part in bill.parts]
            found["costs"] += PAPER["costs"]
    write_atomic(recipe.out / "paper.json", json.dumps(found, indent=1))
    sections = {}
    for name, rows in found.items():
        if rows:
            sections[TITLES[name]] = cells = cells_of(rows)
            print_lines(["", TITLES[name], *aligned(cells)])
    evaluation = replace(evaluation, title=f"The paper's {recipe.benchmark}")
    path = recipe.out / "report" / "index.html"
    write_atomic(path, page(evaluation, sections))
    note(f"report       {path}")


def arm_rows(benchmark: str, found: Evaluation) -> list[Row]:
    """Return the paper's figures beside ours."""
    rows: list[Row] = []
    for arm in found.arms:
        # The problems of a benchmark have answers.
        low, high = arm.wilson or (0.0, 1.0)
        row = {
            "arm": arm.name,
            "paper": PAPER["accuracy"][benchmark].get(arm.name),
            "here": round(100 * (arm.accuracy or 0.0), 1),
            "low": round(100 * low, 1),
            "high": round(100 * high, 1),
            "paper's calls": PAPER["calls"][benchmark].get(arm.name),
            "calls": round(arm.paper_calls, 2),
        }
        rows.append(row)
    return rows
