"""`kace reproduce`: the paper's table for a benchmark, on any model.

The table is a list of commands, each of which can be run by hand and resumes.
"""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import click

from kace.baselines.gepa import require_gepa
from kace.baselines.reflections import problems_behind
from kace.baselines.systems import SYSTEMS, Need, Spec, require_domains, spec_of
from kace.cards.store import frozen_hash_of, open_tree
from kace.cards.tree import EpistemicTree
from kace.cli.data import load_data
from kace.cli.options import PATH, Options, takes
from kace.cli.terminal import aligned, note, print_lines
from kace.config import Config
from kace.errors import KaceError, UsageError
from kace.files import write_atomic
from kace.ladder.retrieve import estimate
from kace.learning.study import Bill, bill_of, check_training, read_bill
from kace.models.base import Usage
from kace.models.budget import Ledger
from kace.problems import DATA, SPLITS, load_problems, problem_rows
from kace.report.evaluation import evaluation_of, page
from kace.runs.compare import compare_all
from kace.runs.table import Table, open_tables

PROFILE = ("--profile", "paper")
LADDER_CALLS = 5.4  # of the ladder per problem, as the paper has it
LEAST_USD = 1e-6  # the cap when nothing is left: only free calls fit
CONTROLS = ("kace-random", "kace-placebo", "kace-empty-prompt")
"""Controls that the paper lists as missing."""
REFLECTIONS = "kace-reflections"
PAPER = tomllib.loads((DATA / "paper.toml").read_text(encoding="utf-8"))
"""What the paper reports; see the file."""
COSTS = (
    *("part", "cache write", "cache read", "fresh input", "output"),
    *("usd", "usd without caches"),
)
TITLES = {
    "arms": "Beside the paper's figures (percent, 95 % intervals)",
    "comparisons": "KACE against the other arms (points, 95 % intervals)",
    "tree": "The size of the tree",
    "costs": "What learning cost by epoch and phase (tokens)",
}


@click.command("reproduce")
@click.argument("benchmark")
@click.option(
    "--model",
    "-m",
    required=True,
    metavar="NAME",
    help="The solver: local/NAME, openai/NAME.",
)
@takes("base_url", "teacher", "tree", "limit", "max_usd")
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
    model: str,
    arms: str | None,
    seeds: int,
    out: Path | None,
    go: bool,
) -> None:
    """Run the paper's table for a benchmark.

    BENCHMARK is aime25, math-hard or olymmath. Shows every command first, then runs
    them with --yes. With --tree, a frozen tree is read instead of learning one.
    --max-usd holds for all commands together.
    """
    if benchmark not in PAPER["accuracy"]:
        raise UsageError(
            f"unknown benchmark '{benchmark[:40]}'",
            fix=f"choose one of {', '.join(PAPER['accuracy'])}",
        )
    config = options.config(model=model, preset=benchmark, profile=PROFILE[1])
    urls = options.get("base_url")
    solver = {"--model": model, "--preset": benchmark}
    if urls:
        solver["--base-url"] = ",".join(urls)
    settings = []
    if options.get("config"):
        settings += ["--config", str(options.get("config"))]
    for pair in options.get("set") or ():
        settings += ["--set", pair]
    teacher = options.get("teacher")
    recipe = Recipe(
        benchmark=benchmark,
        arms=tuple(arms.split(",")) if arms else default_arms(benchmark),
        model=tuple(word for pair in solver.items() for word in pair),
        teacher=("--teacher", teacher) if teacher else (),
        settings=tuple(settings),
        out=out or Path("runs") / f"reproduce-{benchmark}",
        seeds=seeds,
        tree=options.get("tree"),
    )
    size = _write_splits(recipe, config, options.limit)
    if recipe.tree is not None:
        recipe = leave_out(recipe)
    check_recipe(recipe, config)
    commands = recipe.commands()
    for each in commands:
        print_lines((f"# {each.about}", f"kace {shlex.join(each.words)}"))
    print_lines(_outlook(recipe, size))
    if go:
        _run_all(commands, recipe.out, config)
        finish(recipe, config)


# The commands


class Command(NamedTuple):
    """One command of a reproduction."""

    about: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is reproduced, with which models and where."""

    benchmark: str
    arms: tuple[str, ...]
    model: tuple[str, ...]  # the options that name the solver
    teacher: tuple[str, ...]
    settings: tuple[str, ...]  # the options of every command
    out: Path
    seeds: int
    tree: Path | None = None  # a frozen tree; without one, a tree is learned

    @property
    def specs(self) -> tuple[Spec, ...]:
        """The rows of the arms."""
        return tuple(map(spec_of, self.arms))

    @property
    def read_tree(self) -> Path:
        """The tree that the arms read."""
        return self.tree or self.out / "chosen"

    @property
    def learns(self) -> bool:
        """Whether a tree is learned."""
        reads = any(Need.TREE in spec.needs for spec in self.specs)
        return reads and self.tree is None

    @property
    def taught(self) -> bool:
        """Whether a teacher is asked for anything."""
        return self.learns or any(arm in PAPER["trained"] for arm in self.arms)

    def commands(self) -> list[Command]:
        """Return everything to be done, in order."""
        commands = self._learning() if self.learns else []
        trained = {made_by(spec): spec for spec in self.specs if spec.trainer}
        commands += [self._training(*each) for each in trained]
        commands += [self._evaluation(spec) for spec in self.specs]
        return commands

    def data(self, split: str) -> str:
        """Return the file of a split."""
        return str(self.out / "data" / f"{split}.jsonl")

    def _out(self, name: str) -> tuple[str, str]:
        return "--out", str(self.out / name)

    def _learning(self) -> list[Command]:
        """Return the commands that learn a tree and choose its epoch."""
        validation = self.data("validation")
        learn = (
            *("learn", "--train", self.data("train")),
            *("--held-out", validation, "--held-out", self.data("test")),
            *("--epochs", str(PAPER["epochs"][self.benchmark]), *PROFILE),
            *(*self.model, *self.teacher, *self.settings, *self._out("tree")),
        )
        tree = str(self.out / "tree")
        select = (
            *("learn", "select", tree, "--validation", validation),
            *(*self.settings, *self._out("chosen")),
        )
        return [
            Command("learn a tree (see its own --dry-run)", learn),
            Command("choose the epoch on validation", select),
        ]

    def _training(self, method: str, epochs: int) -> Command:
        """Return the command that trains another method."""
        tree: tuple[str, ...] = ()
        if method == "reflections":
            tree = ("--tree", str(self.read_tree))
        train = (
            *("learn", "--method", method, "--train", self.data("train")),
            *("--epochs", str(epochs or PAPER["epochs"][self.benchmark])),
            *(*PROFILE, *tree, *self.model, *self.teacher, *self.settings),
            *self._out(f"trained/{method}-{epochs}"),
        )
        return Command(f"train {method}", train)

    def _evaluation(self, spec: Spec) -> Command:
        """Return the command that evaluates an arm on the test split."""
        words = [
            *("eval", "--system", spec.name),
            *("--data", self.data("test"), "--seeds", str(self.seeds)),
            *(*self.model, *self.settings, *PROFILE),
            *self._out(f"runs/{spec.name}"),
        ]
        made = self.read_tree
        if spec.trainer:
            method, epochs = made_by(spec)
            made = self.out / "trained" / f"{method}-{epochs}"
        if Need.TREE in spec.needs:
            words += ["--tree", str(made)]
        if Need.TRAINING_FILE in spec.needs:
            words += ["--artefact", self.data("train")]
        elif Need.ARTEFACT in spec.needs:
            words += ["--artefact", str(made)]
        # Ladders make the same calls at ES, which are paid once.
        ladders = [each.name for each in self.specs if not each.attempts]
        if spec.name in ladders[1:]:
            words += ["--reuse", str(self.out / "runs" / ladders[0])]
        return Command(f"evaluate {spec.name}", tuple(words))


def made_by(spec: Spec) -> tuple[str, int]:
    """Return the method and the epochs that make what a system reads; 0 is the tree's."""
    method, epochs = PAPER["trained"].get(spec.name, (spec.trainer, 0))
    return method, epochs


def default_arms(benchmark: str) -> tuple[str, ...]:
    """Return what the paper reports for the benchmark, and the controls."""
    wanted = {*PAPER["accuracy"][benchmark], *CONTROLS}
    return tuple(name for name in SYSTEMS if name in wanted)


def _write_splits(recipe: Recipe, config: Config, limit: int | None) -> int:
    """Write the problems of every split; return the number of test problems."""
    size = 0
    for split in SPLITS:
        data = load_data(recipe.benchmark, split, config, limit=limit)
        if split == "train" and recipe.taught:
            check_training(data.problems)
        rows = "\n".join(problem_rows(data.problems))
        write_atomic(Path(recipe.data(split)), f"{rows}\n")
        size = len(data.problems)
    return size


def leave_out(recipe: Recipe) -> Recipe:
    """Return the recipe without reflections if no card names a training problem."""
    assert recipe.tree is not None
    train = load_problems(Path(recipe.data("train")))
    if REFLECTIONS not in recipe.arms:
        return recipe
    if problems_behind(open_tree(recipe.tree), train):
        return recipe
    note(
        f"kace: no card of {recipe.tree} names a training problem that it was written "
        f"from, so {REFLECTIONS} is left out"
    )
    arms = tuple(arm for arm in recipe.arms if arm != REFLECTIONS)
    return replace(recipe, arms=arms)


def check_recipe(recipe: Recipe, config: Config) -> None:
    """Raise for what would stop a later command, before anything is paid for."""
    if any(method == "gepa" for method, _ in map(made_by, recipe.specs)):
        require_gepa()
    ledger = Ledger(config.caps(), config.prices)
    ledger.require_price(config.model)
    if recipe.taught:
        config.for_teacher()
        ledger.require_price(config.teacher or "")
    if recipe.tree is not None:
        tree = open_tree(recipe.tree)
        if frozen_hash_of(recipe.tree) is None:
            raise UsageError(
                f"{recipe.tree} is not frozen",
                fix=f"kace tree freeze {shlex.quote(str(recipe.tree))}",
            )
        for spec in recipe.specs:
            require_domains(spec, tree)


def _outlook(recipe: Recipe, size: int) -> Iterator[str]:
    """Yield what evaluation takes, and what the paper measured."""
    calls = 0.0
    for spec in recipe.specs:
        calls += (spec.attempts or LADDER_CALLS) * size * recipe.seeds
    yield (
        f"# evaluation takes about {calls:,.0f} solver calls; learning and training"
        " print theirs"
    )
    paper = PAPER["accuracy"][recipe.benchmark]
    known = [f"{arm} {paper[arm]}" for arm in recipe.arms if arm in paper]
    if known:
        yield f"# the paper: {', '.join(known)}"


def _run_all(commands: Sequence[Command], folder: Path, config: Config) -> None:
    """Run each command in its own process: the learner's may open no evaluation file."""
    for each in commands:
        note(f"kace: {each.about}")
        cap: tuple[str, ...] = ()
        if config.max_usd is not None:
            spent = bill_of(folder.rglob("calls"), config).usd
            left = max(config.max_usd - spent, LEAST_USD)
            cap = ("--max-usd", f"{left:.6f}")
        code = _call((*each.words, *cap))
        if code:
            raise KaceError(
                f"'{each.about}' ended with exit code {code}",
                fix="mend it (a reached cap: a higher --max-usd), then run the same"
                " command: what is done is kept",
            )


def _call(words: Sequence[str]) -> int:
    """Run a command and return its exit code. Forwards SIGTERM to it."""
    with subprocess.Popen([sys.executable, "-m", "kace", *words]) as child:
        before = signal.signal(signal.SIGTERM, lambda *_: child.terminate())
        code = child.wait()
    signal.signal(signal.SIGTERM, before)
    return code


# The tables

Row = dict[str, Any]


def finish(recipe: Recipe, config: Config) -> None:
    """Write the tables as JSON and the page, and print them."""
    tables = open_tables([recipe.out / "runs" / arm for arm in recipe.arms])
    found = paper_tables(recipe, tables, config)
    write_atomic(recipe.out / "paper.json", json.dumps(found, indent=1))
    sections = {}
    for name, rows in found.items():
        if rows:
            sections[TITLES[name]] = _cells(rows)
    base = "kace" if "kace" in recipe.arms else None
    evaluation = evaluation_of(tables, base=base, prices=config.prices)
    evaluation = replace(evaluation, title=f"The paper's {recipe.benchmark}")
    path = recipe.out / "report" / "index.html"
    write_atomic(path, page(evaluation, sections))
    for title, cells in sections.items():
        print_lines(["", title, *aligned(cells)])
    note(f"report       {path}")


def paper_tables(
    recipe: Recipe, tables: Sequence[Table], config: Config
) -> dict[str, list[Row]]:
    """Return the paper's figures beside ours: arms, comparisons, tree and costs."""
    paper = PAPER["accuracy"][recipe.benchmark]
    calls = PAPER["calls"][recipe.benchmark]
    arms = []
    for table in tables:
        found = table.metrics()
        if found.accuracy is not None and found.wilson is not None:
            name = table.name
            arm: Row = {"arm": name, "paper": paper.get(name)}
            arm |= {"here": round(100 * found.accuracy, 1)}
            arm |= _interval(found.wilson)
            arm["paper's calls"] = calls.get(name)
            arms.append({**arm, "calls": round(found.paper_calls, 2)})
    comparisons = []
    others = {table.name: table for table in tables}
    kace = others.pop("kace", None)
    if kace is not None:
        for each in compare_all(kace, list(others.values())):
            low, high = each.interval
            gain: Row = {"kace against": each.other, "paper": None}
            if each.other in paper:
                gain["paper"] = round(paper["kace"] - paper[each.other], 1)
            gain["difference"] = round(-100 * each.difference, 1) + 0.0
            gain |= _interval((-high, -low))
            comparisons.append({**gain, "p (Holm)": round(each.adjusted, 4)})
    sizes = []
    if any(Need.TREE in spec.needs for spec in recipe.specs):
        sizes = tree_sizes(open_tree(recipe.read_tree))
        cards = ("the paper's", "", *PAPER["trees"][recipe.benchmark])
        sizes.append(dict(zip(sizes[0], cards, strict=True)))
    costs = []
    if recipe.learns:
        costs = cost_rows(read_bill(recipe.out / "tree" / "learn"), config)
    return {
        "arms": arms,
        "comparisons": comparisons,
        "tree": sizes,
        "costs": costs,
    }


def _interval(ends: tuple[float, float]) -> dict[str, float]:
    low, high = ends
    # Adding zero removes the sign of a negative one.
    return {
        "low": round(100 * low, 1) + 0.0,
        "high": round(100 * high, 1) + 0.0,
    }


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


def cost_rows(bill: Bill, config: Config) -> list[Row]:
    """Return what each role used by epoch and phase, as the paper's two tables have it."""
    prices = Ledger(prices=config.prices)
    rows = []
    for part in bill.parts:
        teaches = part.role.endswith("teacher")
        price = prices.price((teaches and config.teacher) or config.model)
        fresh = part.input - part.cached - part.written
        used = (part.written, part.cached, fresh, part.output)
        plain = None
        if price is not None:
            plain = round(price.cost(Usage(part.input, 0, part.output)), 4)
        usd = None if part.usd is None else round(part.usd, 4)
        rows.append((part.role, *used, usd, plain))
    found = [dict(zip(COSTS, row, strict=True)) for row in rows]
    for given in PAPER["costs"]:
        found.append({name: given.get(name) for name in COSTS})
    return found


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
