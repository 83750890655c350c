"""`kace learn`: from a solver's failures on labelled problems to a frozen tree, or to what another method makes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from textwrap import wrap

import click

from kace.api import tree_of
from kace.baselines.ace import train_ace
from kace.baselines.evaluate import (
    EMPTY,
    Training,
    TrainPlan,
    open_training,
)
from kace.baselines.gepa import require_gepa, train_gepa
from kace.baselines.reflections import train_reflections
from kace.cli import learn_demo
from kace.cli.eval import DRY_RUN
from kace.cli.models import prepare
from kace.cli.options import CAPS, PATH, SOLVER, Options, takes
from kace.cli.solve import forecast_lines
from kace.cli.terminal import (
    RunProgress,
    aligned,
    cells_of,
    note,
    print_lines,
    run_async,
)
from kace.config import profile_of
from kace.errors import UsageError, plain
from kace.learning import StepResult
from kace.learning.loop import learn as learn_tree
from kace.learning.report import (
    LearningReport,
    forecast,
    report_json,
    report_of,
)
from kace.learning.screen import HeldOutHashes
from kace.learning.study import (
    QUICK,
    LearnPlan,
    Settings,
    StepName,
    check_training,
    open_study,
    refuse_overlap,
)
from kace.models.base import ChatModel
from kace.models.budget import Ledger
from kace.models.scripted import Scripted
from kace.problems import Problem, load_problems

TRAINERS: Mapping[str, Callable[[Training], Awaitable[object]]] = {
    "ace": train_ace,
    "domain-ace": train_ace,
    "gepa": train_gepa,
    "reflections": train_reflections,
}
METHODS = ("kace", *TRAINERS)
USED_BY = {
    "validation": ("gepa",),
    "tree": ("kace", "domain-ace", "reflections"),
    "quick": ("kace",),
    "dry-run": ("kace",),
}
"""The methods that an option is for; the others are for every method."""
TREE = click.argument("tree", type=PATH)


@click.group("learn", invoke_without_command=True)
@click.option(
    "--train",
    type=PATH,
    help="A file of problems with their answers, or a run of kace serve --record.",
)
@click.option(
    "--validation",
    type=PATH,
    help="For --method gepa: problems that choose the prompt by score alone.",
)
@click.option(
    "--held-out",
    type=PATH,
    multiple=True,
    help="An evaluation split: refuse training problems that appear in it.",
)
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="kace",
    help="The method to learn with.",
)
@takes(
    "json",
    *SOLVER,
    "ray",
    "teacher",
    "tree",
    "profile",
    "limit",
    "batch",
    *CAPS,
    "out",
)
@click.option(
    "--epochs",
    type=click.IntRange(min=1),
    help="Rounds of adding and refining, or passes over the problems.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="One short round that keeps every card: a first tree.",
)
@click.option(
    "--demo",
    is_flag=True,
    help="A small slice of the starter set: all steps, in minutes.",
)
@DRY_RUN
@click.pass_context
def command(
    context: click.Context,
    options: Options,
    train: Path | None,
    validation: Path | None,
    held_out: tuple[Path, ...],
    method: str,
    epochs: int | None,
    quick: bool,
    demo: bool,
    dry_run: bool,
) -> None:
    """Learn a tree of cards from labelled problems.

    kace learn --train FILE --teacher MODEL --out TREE. Without a key, --demo runs the
    whole loop on ten problems, with a teacher whose replies are recorded.

    With --tree, what is learned is added to the cards of that tree.

    Other methods make what KACE is compared with: an ACE playbook, a GEPA prompt, or
    the solver's own reflections. For domain-ace and reflections, --tree names a tree
    whose domains are used.
    """
    if context.invoked_subcommand:
        return
    out = options.get("out")
    if demo:
        brought = (train, validation, held_out, dry_run, options.get("limit"))
        if any(brought) or options.as_json or method != "kace":
            raise UsageError(
                "--demo brings its own problems, and prints a report",
                fix="kace learn --demo, with --model, --teacher or --out if needed",
            )
        _run_demo(context, options, out or Path("runs/learn-demo"), epochs)
        return
    if train is None or out is None:
        missing = "--train" if train is None else "--out"
        raise UsageError(
            f"{missing} is missing",
            fix="kace learn --train train.jsonl --teacher MODEL --out TREE",
        )
    typed = (validation, options.get("tree"), quick, dry_run)
    for (name, methods), value in zip(USED_BY.items(), typed, strict=True):
        if value and method not in methods:
            raise UsageError(
                f"--{name} is not an option of --method {method}",
                fix=f"leave it out; it is for {', '.join(methods)}",
            )
    learning = () if method != "kace" else Settings.model_fields
    config = options.config(*learning)
    problems = load_problems(train, config.fields, options.get("limit"))
    check_training(problems)
    kept_out: list[Problem] = []
    for split in held_out:
        found = load_problems(split, config.fields)
        refuse_overlap(problems, found, str(split))
        kept_out += found
    start = tree_of(config)
    profile = dict(profile_of(config.profile).get("learning", {}))
    if method != "kace":
        chosen = load_problems(validation, config.fields) if validation else ()
        plan = TrainPlan(
            method,
            problems,
            config,
            out,
            epochs or (2 if method == "gepa" else 1),
            start or EMPTY,
            chosen,
            str(profile.get("failures", "tier")),
        )
        _train_method(plan)
        return
    if quick:
        profile |= QUICK
    settings = options.learning(profile, epochs)
    if dry_run:
        rows = forecast(problems, config, settings)
        options.show([asdict(row) for row in rows], forecast_lines(rows))
        note("kace: nothing was spent")
        return
    config = config.model_copy(update={"tree": None})
    hashes = HeldOutHashes.of(kept_out)
    _learn(LearnPlan(problems, config, settings, out, hashes, start))
    context.invoke(report, tree=out)


def _run_demo(
    context: click.Context, options: Options, out: Path, epochs: int | None
) -> None:
    """Learn from a slice of the starter set, and compare the ladder with and without cards."""
    config = options.config(
        *Settings.model_fields,
        teacher=learn_demo.TEACHER,
        preset="starter",
        es_policy="skip",
    )
    settings = options.learning({**QUICK, **learn_demo.SETTINGS}, epochs)
    teacher = None
    if config.teacher == learn_demo.TEACHER:
        teacher = Scripted(learn_demo.recorded_reply, name="recorded")
    train = learn_demo.load_slice("train").problems
    held_out = learn_demo.load_slice("validation")
    print_lines([learn_demo.INTRO.format(model=config.model)])
    tree = out / "tree"
    kept_out = HeldOutHashes.of(held_out.problems)
    _learn(LearnPlan(train, config, settings, tree, kept_out), teacher)
    context.invoke(report, tree=tree)
    print_lines(learn_demo.compare_systems(held_out, config, out))


def _learn(plan: LearnPlan, teacher: ChatModel | None = None) -> None:
    """Finish a tree, with its forecast first and a line per step."""
    prepare(plan.config, teaches=True)

    async def work() -> None:
        opening = open_study(plan, teacher=teacher, observer=progress)
        async with opening as study:
            rows = forecast(plan.train, plan.config, plan.settings)
            for line in forecast_lines(rows):
                note(f"kace: {line}")
            try:
                await learn_tree(study)
            finally:
                note(f"kace: calls: {_calls_text(study.session.ledger)}")

    with LearnProgress(0) as progress:
        run_async(work())


def _train_method(plan: TrainPlan) -> None:
    """Train another method and print what it took."""
    if plan.method == "gepa":
        require_gepa()
    if plan.method == "reflections" and plan.config.tree is None:
        raise UsageError(
            "reflections replace the cards of a tree, and none is named",
            fix="name the tree: --tree TREE",
        )
    prepare(plan.config, teaches=True)

    async def work() -> Ledger:
        async with open_training(plan, observer=progress) as training:
            await TRAINERS[plan.method](training)
            return training.session.ledger

    with LearnProgress(0) as progress:
        ledger = run_async(work())
    print(f"made         {plan.out}")
    print(f"calls        {_calls_text(ledger)}")


@command.command()
@TREE
@takes("json")
def report(options: Options, tree: Path) -> None:
    """Show how learning went: what was proposed, refused and kept, and the cost.

    TREE is the tree that kace learn made, finished or not. `kace view TREE` shows every
    card with its lift, and who refused what and why; so does --json.
    """
    found = report_of(tree)
    options.show(report_json(found), report_lines(found))


# Showing


class LearnProgress(RunProgress):
    """Prints a line for each step and run, and below them the position."""

    def run_started(self, step: StepName, problems: int) -> None:
        """Note that a run begins. Reruns of several domains go side by side."""
        self.total += problems
        note(f"kace: {step}: {problems} problems")

    def step_done(self, step: StepName, value: StepResult) -> None:
        """Note a step that was done."""
        note(f"kace: {step}: {value.summary}")


def _calls_text(ledger: Ledger) -> str:
    """Return the calls of each role, and what they cost if a price is known."""
    roles = []
    for role, spent in sorted(ledger.roles.items()):
        roles.append(f"{role} {spent.calls}")
    cost = f"; {ledger.usd:.4f} USD" if ledger.usd else ""
    return f"{', '.join(roles) or 'none: everything was kept'}{cost}"


def report_lines(report: LearningReport) -> Iterator[str]:
    """Yield what became of the proposals, the runs on the training problems, and the cost."""
    text = plain(f"{report.name}: {report.summary} {report.progress}")
    yield from wrap(text, 80)
    for name, count in report.funnel.items():
        yield f"{name:12} {count:,}"
    yield f"frozen       {report.frozen or 'not yet'}"
    for score in report.scores:
        low, high = score.interval
        right = f"{score.totals.correct} of {score.totals.problems} right"
        share = f"{score.accuracy:.1%} [{low:.1%}, {high:.1%}]"
        yield f"epoch {score.step.epoch}      {score.title}: {right}, {share}"
    yield ""
    bill = report.bill
    roles = (*bill.roles, *bill.parts, *bill.steps)
    yield from aligned(cells_of([role.model_dump() for role in roles]))
    if bill.roles and bill.usd is not None:
        yield f"together     {bill.usd:,.2f} USD"
