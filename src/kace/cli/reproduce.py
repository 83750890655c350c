"""`kace reproduce`: the paper's table for a benchmark, on any model."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import click

from kace.baselines.gepa import require_gepa
from kace.baselines.reproduce import (
    BENCHMARKS,
    PROFILE,
    Command,
    Recipe,
    default_arms,
)
from kace.baselines.systems import Need, require_domains
from kace.cards.store import frozen_hash_of, open_tree
from kace.cli.data import load_data
from kace.cli.doctor import model_probes
from kace.cli.options import PATH, Options, takes
from kace.cli.terminal import note, print_lines
from kace.config import Config
from kace.errors import KaceError, UsageError
from kace.files import write_atomic
from kace.learning.study import bill_of, check_training
from kace.models.budget import Ledger
from kace.problems import SPLITS, Problem, problem_rows

LEAST_USD = 1e-6  # the cap when nothing is left: only free calls fit


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
    help="Run the commands. Without it, they and their calls are only shown.",
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
    if benchmark not in BENCHMARKS:
        raise UsageError(
            f"unknown benchmark '{benchmark[:40]}'",
            fix=f"choose one of {', '.join(BENCHMARKS)}",
        )
    known = BENCHMARKS[benchmark]
    config = options.config(model=model, preset=known.name, profile=PROFILE[1])
    place = out or Path("runs") / f"reproduce-{benchmark}"
    chosen = default_arms(known)
    if arms:
        chosen = tuple(name.strip() for name in arms.split(","))
    sizes: dict[str, int] = {}
    recipe = Recipe(
        known,
        chosen,
        _solver_options(options, model, known.name),
        _flags({"--teacher": options.get("teacher")}),
        _setting_options(options),
        place,
        seeds,
        sizes,
        options.get("tree"),
    )
    splits, missing = _load_splits(recipe, config, options.limit)
    missing += failures(requirements(recipe, config))
    if missing and (go or len(splits) < len(SPLITS)):
        reasons = dict.fromkeys(
            f"{each.message} ({each.fix})" for each in missing
        )
        raise UsageError(
            f"not ready: {'; '.join(reasons)}",
            fix="mend each as it says, then run the same command",
        )
    for split, problems in splits.items():
        rows = "\n".join(problem_rows(problems))
        write_atomic(Path(recipe.data(split)), f"{rows}\n")
        sizes[split] = len(problems)
    commands = recipe.commands()
    print_lines(_command_lines(commands, recipe, config))
    print_lines(f"# missing: {error}" for error in missing)
    if go:
        _run_all(commands, place, config)


def _solver_options(
    options: Options, model: str, preset: str
) -> tuple[str, ...]:
    urls = options.get("base_url")
    joined = ",".join(urls) if urls else None
    return _flags({"--model": model, "--base-url": joined, "--preset": preset})


def _setting_options(options: Options) -> tuple[str, ...]:
    words = list(_flags({"--config": options.get("config")}))
    for pair in options.get("set") or ():
        words += ["--set", pair]
    return tuple(words)


def _flags(values: dict[str, object]) -> tuple[str, ...]:
    words = []
    for name, value in values.items():
        if value is not None:
            words += [name, str(value)]
    return tuple(words)


def _load_splits(
    recipe: Recipe, config: Config, limit: int | None
) -> tuple[dict[str, tuple[Problem, ...]], list[KaceError]]:
    """Return the splits that can be loaded, and what is wrong with splits."""
    splits: dict[str, tuple[Problem, ...]] = {}
    missing = []
    for split in SPLITS:
        try:
            data = load_data(recipe.benchmark.name, split, config, limit=limit)
            splits[split] = data.problems
            if split == "train" and recipe.taught:
                check_training(data.problems)
        except KaceError as error:
            missing.append(error)
    return splits, missing


def requirements(
    recipe: Recipe, config: Config
) -> Iterator[Callable[[], object]]:
    """Yield what must hold before the first call: each raises with the fix if it does not."""
    if "gepa" in recipe.trainers:
        yield require_gepa
    if recipe.taught:
        yield config.for_teacher
    elif not config.synthesis:
        config = config.model_copy(update={"teacher": None})
    for name, probe in model_probes(config):
        if name.split()[-1] in ("engine", "key", "model"):
            yield probe
    ledger = Ledger(config.caps(), config.prices)
    for model in (config.model, config.teacher):
        if model:
            yield partial(ledger.require_price, model)
    if recipe.tree is not None:
        yield partial(_check_tree, recipe.tree, recipe)


def failures(checks: Iterable[Callable[[], object]]) -> list[KaceError]:
    """Return the errors of the checks that raise one."""
    errors = []
    for check in checks:
        try:
            check()
        except KaceError as error:
            errors.append(error)
    return errors


def _check_tree(path: Path, recipe: Recipe) -> None:
    tree = open_tree(path)
    if frozen_hash_of(path) is None:
        raise UsageError(
            f"{path} is not frozen",
            fix=f"kace tree freeze {shlex.quote(str(path))}",
        )
    for spec in recipe.specs:
        if Need.TREE in spec.needs and not spec.trainer:
            require_domains(spec, tree)


def _command_lines(
    commands: Sequence[Command], recipe: Recipe, config: Config
) -> Iterator[str]:
    expected = 0.0
    most = 0.0
    for each in commands:
        calls = ""
        if each.calls:
            expected += each.calls[0]
            most += each.calls[1]
            calls = f", {each.calls[0]:.0f} to {each.calls[1]:.0f} calls"
        yield f"# {each.about}{calls}"
        yield f"kace {shlex.join(each.words)}"
    yield (
        f"# evaluation takes {expected:.0f} to {most:.0f} solver calls; learning and "
        "training print theirs"
    )
    if config.max_usd is not None:
        cap = f"{config.max_usd:.2f} USD"
        yield f"# each command is given --max-usd with what is left of {cap}"
    reported = recipe.benchmark.reported
    figures = [
        f"{arm} {reported[arm]}" for arm in recipe.arms if arm in reported
    ]
    yield f"# the paper reports, in percent: {', '.join(figures)}"


def _run_all(commands: Sequence[Command], folder: Path, config: Config) -> None:
    """Run each command in a process of its own: the learner's may open no evaluation file."""

    def spent() -> float:
        return bill_of(folder.rglob("calls"), config).usd

    for place, each in enumerate(commands):
        note(f"kace: {each.about}")
        cap: tuple[str, ...] = ()
        if config.max_usd is not None and each.paid:
            left = max(config.max_usd - spent(), LEAST_USD)
            cap = ("--max-usd", f"{left:.6f}")
        code = _call((*each.words, *cap))
        if code:
            done = (
                ", ".join(some.about for some in commands[:place]) or "nothing"
            )
            rest = ", ".join(some.about for some in commands[place:])
            failure = f"'{each.about}' ended with exit code {code}"
            fix = "mend what it says, and run the same command: what is done is kept"
            if config.max_usd is not None:
                failure += f", {spent():.4f} of {config.max_usd:.2f} USD spent"
                fix = (
                    "mend what it says (if it is the cap: a higher --max-usd), and run "
                    "the same command"
                )
            raise KaceError(f"{failure}. Done: {done}. Left: {rest}", fix=fix)


def _call(words: Sequence[str]) -> int:
    """Run a command and return its exit code. Forwards SIGTERM to it."""
    with subprocess.Popen([sys.executable, "-m", "kace", *words]) as child:
        before = signal.signal(signal.SIGTERM, lambda *_: child.terminate())
        code = child.wait()
    signal.signal(signal.SIGTERM, before)
    return code
