"""`kace reproduce`: the paper's table for a benchmark, on any model."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import typer

from kace.baselines.gepa import require_gepa
from kace.baselines.parts import require_domains
from kace.baselines.recipes import BENCHMARKS, PROFILE, Command, Recipe, default_arms
from kace.baselines.registry import Need
from kace.cards.store import frozen_hash_of, open_tree
from kace.cli.data import load_data
from kace.cli.options import MODEL, OUTPUT, Typed, command, new_app, option
from kace.cli.streams import note, print_lines
from kace.config import Config
from kace.datasets.starter import SPLITS
from kace.doctor import model_looks
from kace.errors import KaceError, UsageError
from kace.files import write_atomic
from kace.learning.costs import bill_of
from kace.learning.study import check_training
from kace.models.budget import Ledger
from kace.problems import Problem, problem_rows

LEAST_USD = (
    1e-6  # what a command may spend when nothing is left: nothing but what is free
)
app = new_app()


@command(app, "base_url", "teacher", "tree", "limit", "max_usd")
def reproduce(
    typed: Typed,
    benchmark: str = typer.Argument(help="aime25, math-hard or olymmath."),
    model: str = option(
        MODEL, ..., "--model", "-m", help="The solver: local/NAME, openai/NAME."
    ),
    arms: str = option(
        MODEL, None, help="Only these systems, separated by commas: tiered,kace."
    ),
    seeds: int = option(
        MODEL, 3, min=1, max=100, help="Repetitions on the test split."
    ),
    out: Path = option(
        OUTPUT, None, help="Where everything goes; the same command resumes there."
    ),
    go: bool = option(
        OUTPUT,
        False,
        "--yes",
        help="Do it. Without it, the commands and their calls are shown only.",
    ),
) -> None:
    """Run the paper's table for a benchmark: shows every command first, then runs them with --yes.

    With --tree, a frozen tree is read instead of learning one. --max-usd holds for all commands together.
    """
    if benchmark not in BENCHMARKS:
        raise UsageError(
            f"unknown benchmark '{benchmark[:40]}'",
            fix=f"choose one of {', '.join(BENCHMARKS)}",
        )
    known = BENCHMARKS[benchmark]
    config = typed.config(model=model, preset=known.name, profile=PROFILE[1])
    place = out or Path("runs") / f"reproduce-{benchmark}"
    chosen = (
        tuple(name.strip() for name in arms.split(",")) if arms else default_arms(known)
    )
    urls = ",".join(typed.base_url) if typed.base_url else None
    solver = _options({"--model": model, "--base-url": urls, "--preset": known.name})
    teacher = _options({"--teacher": typed.teacher})
    settings = _options({"--config": typed.config_file}) + tuple(
        p for pair in typed.set_ for p in ("--set", pair)
    )
    splits: dict[str, tuple[Problem, ...]] = {}

    def load(split: str) -> None:
        splits[split] = load_data(benchmark, split, config, limit=typed.limit).problems
        if split == "train" and recipe.taught:
            check_training(splits[split])

    sizes: dict[str, int] = {}
    recipe = Recipe(
        known, chosen, solver, teacher, settings, place, seeds, sizes, typed.tree
    )
    missing = [
        *failed(partial(load, split) for split in SPLITS),
        *failed(looks(recipe, config)),
    ]
    if missing and (go or len(splits) < len(SPLITS)):
        said = "; ".join(
            dict.fromkeys(f"{error.message} ({error.fix})" for error in missing)
        )
        raise UsageError(
            f"not ready: {said}", fix="mend each as it says, then run the same command"
        )
    for (
        split,
        problems,
    ) in splits.items():  # each a file of its own, which the commands are given
        write_atomic(Path(recipe.data(split)), "\n".join(problem_rows(problems)) + "\n")
        sizes[split] = len(problems)
    todo = recipe.commands()
    print_lines(
        (*_shown(todo, recipe, config), *(f"# missing: {error}" for error in missing))
    )
    if go:
        _run(todo, place, config)


def looks(recipe: Recipe, config: Config) -> Iterator[Callable[[], object]]:
    """What must be there before the first call, beside the data: each raises with the fix where it is missing."""
    if "gepa" in recipe.trainers:
        yield require_gepa
    asked = (
        config
        if recipe.taught or config.synthesis
        else config.model_copy(update={"teacher": None})
    )
    if recipe.taught:
        yield config.for_teacher
    parts = ("engine", "key", "model")
    yield from (look for name, look in model_looks(asked) if name.split()[-1] in parts)
    ledger = Ledger(config.caps(), config.prices)
    yield from (
        partial(ledger.require_price, name)
        for name in (config.model, asked.teacher)
        if name
    )
    if recipe.tree is not None:
        yield partial(_check_tree, recipe.tree, recipe)


def failed(some: Iterable[Callable[[], object]]) -> Iterator[KaceError]:
    """The errors of those that raise one."""
    for look in some:
        try:
            look()
        except KaceError as error:
            yield error


def _check_tree(path: Path, recipe: Recipe) -> None:
    tree = open_tree(path)
    if frozen_hash_of(path) is None:
        raise UsageError(
            f"{path} is not frozen", fix=f"kace tree freeze {shlex.quote(str(path))}"
        )
    for spec in recipe.specs:
        if Need.TREE in spec.needs and not spec.trainer:
            require_domains(spec, tree)


def _run(todo: Sequence[Command], place: Path, config: Config) -> None:
    """Every command in a process of its own: the learner's may open no evaluation file, others must."""

    def spent() -> float:
        return bill_of(place.rglob("calls"), config).usd

    for number, each in enumerate(todo):
        note(f"kace: {each.about}")
        cap: tuple[str, ...] = ()
        if config.max_usd is not None and each.paid:
            cap = ("--max-usd", f"{max(config.max_usd - spent(), LEAST_USD):.6f}")
        if code := _call((*each.words, *cap)):
            before, after = (
                ", ".join(some.about for some in part)
                for part in (todo[:number], todo[number:])
            )
            said = f"'{each.about}' ended with exit code {code}"
            fix = "mend what it says, and run the same command: what is done is kept"
            if config.max_usd is not None:
                said += f", {spent():.4f} of {config.max_usd:.2f} USD spent"
                fix = "mend what it says (where it is the cap: a higher --max-usd), and run the same command"
            raise KaceError(
                f"{said}. Done: {before or 'nothing'}. Left: {after}", fix=fix
            )


def _call(words: Sequence[str]) -> int:
    """The exit code of a command; where this process is told to end, that one is told too and not left at work."""
    with subprocess.Popen([sys.executable, "-m", "kace", *words]) as child:
        before = signal.signal(signal.SIGTERM, lambda *_: child.terminate())
        code = child.wait()
    signal.signal(signal.SIGTERM, before)
    return code


def _options(values: dict[str, object]) -> tuple[str, ...]:
    return tuple(
        part
        for name, value in values.items()
        if value is not None
        for part in (name, str(value))
    )


def _shown(todo: Sequence[Command], recipe: Recipe, config: Config) -> Iterator[str]:
    for each in todo:
        yield f"# {each.about}" + (
            f", {each.calls[0]:.0f} to {each.calls[1]:.0f} calls" if each.calls else ""
        )
        yield "kace " + shlex.join(each.words)
    expected, most = (
        sum(each.calls[end] for each in todo if each.calls) for end in (0, 1)
    )
    yield f"# evaluation takes {expected:.0f} to {most:.0f} solver calls; learning and training say theirs"
    if config.max_usd is not None:
        yield f"# each command is given --max-usd with what is left of {config.max_usd:.2f} USD"
    reported = recipe.benchmark.reported
    yield f"# the paper reports, in percent: {', '.join(f'{a} {reported[a]}' for a in recipe.arms if a in reported)}"
