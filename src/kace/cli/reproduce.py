"""`kace reproduce`: the paper's table for a benchmark, on any model.

The table is a list of commands, each of which can be run by hand and resumes.
"""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from kace.cards.store import frozen_hash_of, open_tree
from kace.cards.tree import EpistemicTree
from kace.cli.data import load_data
from kace.cli.options import PATH, Options, takes
from kace.cli.terminal import aligned, note, print_lines
from kace.config import Config
from kace.errors import UsageError
from kace.files import write_atomic
from kace.ladder.retrieve import estimate
from kace.learning.report import LADDER_ATTEMPTS
from kace.learning.study import Bill, bill_of, read_bill
from kace.problems import DATA, SPLITS, problem_rows
from kace.report.evaluation import Evaluation, evaluation_of, page
from kace.runs.table import open_tables

PROFILE = ("--profile", "paper")
LEAST_USD = 1e-6  # the cap when nothing is left: only free calls fit
CONTROLS = ("kace-random", "kace-placebo", "kace-empty-prompt")
"""Controls that the paper lists as missing."""
REFLECTIONS = "kace-reflections"
PAPER = tomllib.loads((DATA / "paper.toml").read_text(encoding="utf-8"))
"""What the paper reports; see the file."""
TITLES = {
    "arms": "Beside the paper's figures (percent, 95 % intervals)",
    "comparisons": "KACE against the other arms (points, 95 % intervals)",
    "tree": "The size of the tree",
    "costs": "What learning cost by epoch and phase (tokens)",
}
Row = dict[str, Any]


@click.command("reproduce")
@click.argument("benchmark", type=click.Choice(tuple(PAPER["accuracy"])))
@takes("model", "base_url", "teacher", "tree", "limit", "max_usd")
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
    "--out",
    type=PATH,
    help="Where everything goes; the same command resumes there.",
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
    out: Path | None,
    go: bool,
) -> None:
    """Run the paper's table for a benchmark.

    Shows every command first, then runs them with --yes. With --tree, a frozen tree is
    read instead of learning one. --max-usd holds for all commands together.
    """
    config = options.config(preset=benchmark, profile=PROFILE[1])
    solver = ["--model", config.model, "--preset", benchmark]
    for url in options.get("base_url") or ():
        solver += ["--base-url", url]
    if options.get("config"):
        solver += ["--config", str(options.get("config"))]
    for pair in options.get("set") or ():
        solver += ["--set", pair]
    teacher = options.get("teacher")
    tree = options.get("tree")
    recipe = Recipe(
        benchmark,
        tuple(arms.split(",")) if arms else default_arms(benchmark, tree),
        out or Path("runs") / f"reproduce-{benchmark}",
        seeds,
        tree,
        solver=tuple(solver),
        teacher=("--teacher", teacher) if teacher else (),
    )
    size = _write_splits(recipe, config, options.limit)
    check_recipe(recipe)
    commands = recipe.commands()
    print_lines(f"kace {shlex.join(words)}" for words in commands)
    solves = size * seeds
    calls = sum(each.attempts or LADDER_ATTEMPTS for each in recipe.specs)
    note(f"kace: evaluation takes about {calls * solves:,.0f} solver calls")
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
    teacher: tuple[str, ...] = ()

    @property
    def specs(self) -> list[Spec]:
        """The rows of the arms."""
        return [spec_of(arm) for arm in self.arms]

    @property
    def learns(self) -> bool:
        """Whether a tree is learned."""
        reads = any(spec.reads_tree for spec in self.specs)
        return reads and self.tree is None

    @property
    def read_tree(self) -> Path:
        """The tree that the arms read."""
        return self.tree or self.out / "chosen"

    def data(self, split: str) -> str:
        """Return the file of a split."""
        return str(self.out / "data" / f"{split}.jsonl")

    def commands(self) -> list[list[str]]:
        """Return everything to be done, in order, as words of the command line."""
        epochs = PAPER["epochs"][self.benchmark]
        learn = ["learn", "--train", self.data("train"), *PROFILE]
        learn += [*self.solver, *self.teacher]
        commands = []
        if self.learns:
            tree = str(self.out / "tree")
            chosen = str(self.read_tree)
            validation = self.data("validation")
            held_out = ["--held-out", validation]
            held_out += ["--held-out", self.data("test")]
            count = ["--epochs", str(epochs)]
            commands.append([*learn, *held_out, *count, "--out", tree])
            select = ["learn", "select", tree, "--validation", validation]
            commands.append([*select, *self.solver, "--out", chosen])
        trainings = {}
        for spec in self.specs:
            if spec.trainer:
                method, passes = _training(spec)
                words = ["--method", method, "--epochs", str(passes or epochs)]
                if method == "reflections":
                    words += ["--tree", str(self.read_tree)]
                made = self._made(spec)
                trainings[made] = [*learn, *words, "--out", made]
        commands += trainings.values()
        commands += [self._evaluation(spec) for spec in self.specs]
        return commands

    def _made(self, spec: Spec) -> str:
        """Return what an arm reads."""
        if not spec.trainer:
            return str(self.read_tree)
        method, epochs = _training(spec)
        return str(self.out / "trained" / f"{method}-{epochs}")

    def _evaluation(self, spec: Spec) -> list[str]:
        """Return the command that evaluates an arm on the test split."""
        words = ["eval", "--system", spec.name, "--data", self.data("test")]
        words += ["--seeds", str(self.seeds), *self.solver, *PROFILE]
        if spec.reads_tree:
            words += ["--tree", self._made(spec)]
        if spec.artefact == TRAINING:
            words += ["--artefact", self.data("train")]
        elif spec.artefact:
            words += ["--artefact", self._made(spec)]
        # Ladders make the same calls at ES, which are paid once.
        runs = self.out / "runs"
        ladders = [each.name for each in self.specs if not each.attempts]
        if spec.name in ladders[1:]:
            words += ["--reuse", str(runs / ladders[0])]
        return [*words, "--out", str(runs / spec.name)]


def _training(spec: Spec) -> tuple[str, int]:
    """Return the method and the epochs that make what an arm reads; 0 is the tree's."""
    method, epochs = PAPER["trained"].get(spec.name, (spec.trainer, 0))
    return method, epochs


def default_arms(benchmark: str, tree: Path | None = None) -> tuple[str, ...]:
    """Return what the paper reports for the benchmark, and the controls.

    A tree that is given need not come from problems to reflect on.
    """
    wanted = {*PAPER["accuracy"][benchmark], *CONTROLS}
    if tree:
        wanted.discard(REFLECTIONS)
    return tuple(name for name in SYSTEMS if name in wanted)


def _write_splits(recipe: Recipe, config: Config, limit: int | None) -> int:
    """Write the problems of every split; return the number of test problems."""
    size = 0
    for split in SPLITS:
        data = load_data(recipe.benchmark, split, config, limit=limit)
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
    if frozen_hash_of(recipe.tree) is None:
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
        spent = bill_of(folder.rglob("calls"), config).usd or 0.0
        cap = ["--max-usd", f"{max(config.max_usd - spent, LEAST_USD):.6f}"]
    note(f"kace: {shlex.join(words)}")
    app.main([*words, *cap], prog_name="kace", standalone_mode=False)


# The tables


def finish(recipe: Recipe, config: Config) -> None:
    """Write the tables as JSON and the page, and print them."""
    tables = open_tables([recipe.out / "runs" / arm for arm in recipe.arms])
    base = "kace" if "kace" in recipe.arms else None
    evaluation = evaluation_of(tables, base=base, prices=config.prices)
    found = paper_tables(recipe, evaluation)
    write_atomic(recipe.out / "paper.json", json.dumps(found, indent=1))
    sections = {}
    for name, rows in found.items():
        if rows:
            sections[TITLES[name]] = _cells(rows)
            print_lines(["", TITLES[name], *aligned(_cells(rows))])
    evaluation = replace(evaluation, title=f"The paper's {recipe.benchmark}")
    path = recipe.out / "report" / "index.html"
    write_atomic(path, page(evaluation, sections))
    note(f"report       {path}")


def paper_tables(recipe: Recipe, found: Evaluation) -> dict[str, list[Row]]:
    """Return the paper's figures beside ours: arms, comparisons, tree and costs."""
    paper = PAPER["accuracy"][recipe.benchmark]
    calls = PAPER["calls"][recipe.benchmark]
    arms = []
    for arm in found.arms:
        if arm.accuracy is not None and arm.wilson is not None:
            row: Row = {"arm": arm.name, "paper": paper.get(arm.name)}
            row |= {"here": _percent(arm.accuracy), **_ends(*arm.wilson)}
            row["paper's calls"] = calls.get(arm.name)
            arms.append({**row, "calls": round(arm.paper_calls, 2)})
    comparisons = []
    for each in found.comparisons:
        if found.base == "kace":
            row = {"kace against": each.other, "paper": None}
            if each.other in paper:
                row["paper"] = round(paper["kace"] - paper[each.other], 1)
            low, high = each.interval
            row |= {"difference": _percent(-each.difference)}
            row |= _ends(-high, -low)
            comparisons.append({**row, "p (Holm)": round(each.adjusted, 4)})
    sizes = []
    if any(spec.reads_tree for spec in recipe.specs):
        sizes = tree_sizes(open_tree(recipe.read_tree))
        cards = ("the paper's", "", *PAPER["trees"][recipe.benchmark])
        sizes.append(dict(zip(sizes[0], cards, strict=True)))
    costs = []
    if recipe.learns:
        costs = cost_rows(read_bill(recipe.out / "tree" / "learn"))
    return {
        "arms": arms,
        "comparisons": comparisons,
        "tree": sizes,
        "costs": costs,
    }


def _percent(share: float) -> float:
    # Adding zero removes the sign of a negative one.
    return round(100 * share, 1) + 0.0


def _ends(low: float, high: float) -> Row:
    return {"low": _percent(low), "high": _percent(high)}


def tree_sizes(tree: EpistemicTree) -> list[Row]:
    """Return the cards and tokens of every cell, and of the whole tree."""
    cells: dict[tuple[str, str], list[int]] = {}
    for card in tree.shown:
        for domain in card.domain_tags:
            cell = (card.difficulty_tag.value, domain)
            cells.setdefault(cell, []).append(estimate(card))
    cells["all", ""] = [estimate(card) for card in tree.shown]
    sizes = []
    for (difficulty, domain), tokens in cells.items():
        size: Row = {"difficulty": difficulty, "domain": domain}
        size |= {"cards": len(tokens), "tokens": sum(tokens)}
        size["tokens per card"] = round(sum(tokens) / (len(tokens) or 1))
        sizes.append(size)
    return sizes


def cost_rows(bill: Bill) -> list[Row]:
    """Return what each role used by epoch and phase, then what the paper reports."""
    rows: list[Row] = []
    for part in bill.parts:
        row: Row = {"part": part.role}
        row |= {"cache write": part.written, "cache read": part.cached}
        row["fresh input"] = part.input - part.cached - part.written
        row |= {"output": part.output, "usd": part.usd}
        rows.append(row)
    for given in PAPER["costs"] if rows else ():
        rows.append({name: given.get(name) for name in rows[0]})
    return rows


def _cells(rows: Sequence[Row]) -> list[list[str]]:
    """Return a table as text, its heads first."""
    cells = [list(rows[0])]
    for row in rows:
        line = []
        for value in row.values():
            if value is None:
                line.append("")
            else:
                line.append(f"{value:,}" if type(value) is int else str(value))
        cells.append(line)
    return cells
