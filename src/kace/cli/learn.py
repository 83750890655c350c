"""`kace learn`: from a solver's failures on labelled problems to a frozen tree, or to what another method makes."""

from __future__ import annotations

import textwrap
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from kace.baselines.ace import train_ace
from kace.baselines.evaluate import (
    EMPTY,
    Training,
    TrainPlan,
    Trial,
    open_training,
)
from kace.baselines.gepa import require_gepa, train_gepa
from kace.baselines.reflections import train_reflections
from kace.cards.card import Status, plain_points
from kace.cards.store import INDEX_FILE, TreeStore, open_tree
from kace.cards.tree import EpistemicTree
from kace.cli import learn_demo
from kace.cli.data import load_data
from kace.cli.eval import finish_trial
from kace.cli.models import ensure_weights, prepare
from kace.cli.options import CAPS, PATH, SOLVER, Commands, Options, takes
from kace.cli.report import comparison_lines, evaluation_record
from kace.cli.solve import forecast_lines
from kace.cli.terminal import (
    RunProgress,
    columns,
    note,
    plain,
    print_lines,
    run_async,
)
from kace.config import PROFILE_FILE, Config, profile_of
from kace.errors import DataError, UsageError, counted
from kace.files import inside, read_plain, write_atomic
from kace.ladder.relevance import TextTable, best_encoder
from kace.learning import StepResult
from kace.learning.calibrate import (
    Calibration,
    keep_calibration,
)
from kace.learning.calibrate import calibrate as calibrate_tree
from kace.learning.loop import learn as learn_tree
from kace.learning.report import (
    CardReport,
    LearningReport,
    forecast,
    report_json,
    report_of,
)
from kace.learning.screen import HeldOutHashes
from kace.learning.study import (
    QUICK,
    LearnManifest,
    LearnPlan,
    Settings,
    StepName,
    check_training,
    open_study,
    quick_settings,
    refuse_overlap,
)
from kace.models.base import ChatModel
from kace.models.budget import Ledger
from kace.problems import Problem, load_problems
from kace.report.evaluation import evaluation_of
from kace.report.trees import learner_document as page
from kace.runs.table import Table

TRAINERS: Mapping[str, Callable[[Training], Awaitable[object]]] = {
    "ace": train_ace,
    "domain-ace": train_ace,
    "gepa": train_gepa,
    "reflections": train_reflections,
}
METHODS = ("kace", *TRAINERS)
TREE = click.argument("tree", type=PATH)


@click.group("learn", cls=Commands, invoke_without_command=True)
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
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print what it would take, and spend nothing.",
)
@click.option(
    "--out",
    type=PATH,
    help="The tree to make, or another method's folder; the same command resumes it.",
)
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
    out: Path | None,
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
    if demo:
        brought = (train, validation, held_out, dry_run, options.limit)
        if any(brought) or options.as_json or method != "kace":
            raise UsageError(
                "--demo brings its own problems, and prints a report",
                fix="kace learn --demo, with --model, --teacher or --out if needed",
            )
        _run_demo(options, out or Path("runs/learn-demo"), epochs)
        return
    if train is None or out is None:
        missing = "--train" if train is None else "--out"
        raise UsageError(
            f"{missing} is missing",
            fix="kace learn --train train.jsonl --teacher MODEL --out TREE",
        )
    if method != "kace":
        if dry_run or quick:
            raise UsageError(
                f"--{'dry-run' if dry_run else 'quick'} does not know {method}",
                fix="cap it with --max-calls or --max-usd",
            )
        _train_method(method, options, train, out, validation, held_out, epochs)
        return
    config = options.config(*Settings.model_fields)
    settings = _settings(options, config, quick=quick, epochs=epochs)
    problems, kept_out = _training_data(train, held_out, config, options.limit)
    if dry_run:
        rows = forecast(problems, config, settings)
        options.show([asdict(row) for row in rows], forecast_lines(rows))
        note("kace: nothing was spent")
        return
    _fetch_weights(config)
    start = open_tree(config.tree) if config.tree else None
    config = config.model_copy(update={"tree": None})
    hashes = HeldOutHashes.of(kept_out)
    _learn(LearnPlan(problems, config, settings, out, hashes, start))
    _show_report(options, out, _page_of(out))


def _run_demo(options: Options, out: Path, epochs: int | None) -> None:
    """Learn from a slice of the starter set, and compare the ladder with and without cards."""
    config = options.config(
        *Settings.model_fields,
        teacher=learn_demo.TEACHER,
        preset="starter",
        es_policy="skip",
    )
    base = {**QUICK, **learn_demo.SETTINGS}
    settings = options.learning(Settings, base, epochs=epochs)
    teacher = None
    if config.teacher == learn_demo.TEACHER:
        teacher = learn_demo.RecordedTeacher()
    train, held_out = learn_demo.load_slices(config)
    print_lines(learn_demo.intro_lines(train, held_out, config))
    _fetch_weights(config)
    tree = out / "tree"
    kept_out = HeldOutHashes.of(held_out.problems)
    _learn(LearnPlan(train, config, settings, tree, kept_out), teacher)
    _show_report(options, tree, _page_of(tree))
    print_lines(learn_demo.compare_systems(held_out, config, out))


def _settings(
    options: Options, config: Config, *, quick: bool, epochs: int | None
) -> Settings:
    """Return the learner's settings: profile < --quick < --set < --epochs."""
    base = dict(profile_of(config.profile).get("learning", {}))
    if quick:
        base |= quick_settings(config.teacher)
    return options.learning(Settings, base, epochs=epochs)


def _training_data(
    path: Path, held_out: Sequence[Path], config: Config, limit: int | None
) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """Return the training problems, and those held out, which contain none of them."""
    problems = load_problems(path, config.fields)[:limit]
    check_training(problems)
    kept_out: list[Problem] = []
    for split in held_out:
        found = load_problems(split, config.fields)
        refuse_overlap(problems, found, str(split))
        kept_out += found
    return problems, tuple(kept_out)


def _fetch_weights(config: Config) -> None:
    """Fetch the weights of embedded models."""
    prepare(config)
    if (config.teacher or "").startswith("local/"):
        ensure_weights(config.for_teacher())


def _learn(plan: LearnPlan, teacher: ChatModel | None = None) -> None:
    """Finish a tree, with its forecast first and a line per step."""

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
        run_async(work(), resumable=True)


@command.command()
@TREE
@click.option("--html", type=PATH, help="Also write it here, as a page.")
@takes("json")
def report(options: Options, tree: Path, html: Path | None) -> None:
    """Show what was learned: what each card is worth, what was refused and why, the cost.

    TREE is the tree that kace learn made, finished or not.
    """
    inner = tree / "tree"  # where `kace learn --demo` puts it, beside its runs
    found = inner if (inner / "learn").is_dir() else tree
    _show_report(options, found, html)


def _page_of(tree: Path) -> Path:
    return inside(tree, "learn") / "report.html"


def _show_report(options: Options, tree: Path, html: Path | None) -> None:
    found = report_of(tree)
    if html is not None:
        write_atomic(html, page(found))
        note(f"page         {html}")
    options.show(report_json(found), report_lines(found))


@command.command()
@TREE
@click.option(
    "--validation",
    required=True,
    help="A file of problems that neither trained nor will test.",
)
@takes("json", *SOLVER, "limit", *CAPS)
@click.option(
    "--seeds",
    default=1,
    type=click.IntRange(1, 20),
    help="Solve every problem on this many seeds, from --seed on.",
)
@click.option(
    "--out", type=PATH, help="Copy the chosen epoch's tree here, frozen."
)
def select(
    options: Options, tree: Path, validation: str, seeds: int, out: Path | None
) -> None:
    """Choose an epoch of a learned tree on validation problems.

    TREE is the --out of kace learn. Evaluates the ladder without cards and with the tree
    of each epoch, by the solver that it was learned with unless another is named.
    """
    learned = LearnManifest.read(inside(tree, "learn"))
    solver = {}
    if options.get("model") is None:
        solver = {name: learned.config.get(name) for name in SOLVER[:3]}
    config = options.config(**solver, tree=tree)
    data = load_data(validation, "validation", config, limit=options.limit)
    trained = learned.train.ids or ()
    shared = [each.name for each in data.problems if each.id in trained]
    if shared:
        raise DataError(
            f"{len(shared)} of {len(data.problems)} validation problems appear in the "
            f"training set, such as {shared[0]!r}",
            fix="remove them: a tree looks better on what it was learned from",
        )
    alone = config.model_copy(update={"tree": None})
    trials = {"no-tree": Trial("tiered", data, alone, seeds)}
    for path in snapshots_of(tree):
        reading = config.model_copy(update={"tree": path})
        epoch = Trial("kace", data, reading, seeds, open_tree(path))
        trials[path.stem] = epoch
    folder = inside(tree, "learn", "select", data.hash)
    runs: list[Path] = []
    for name, trial in trials.items():
        finish_trial(trial, folder / name, runs[:1])
        runs.append(folder / name)
    tables = [Table.open(run).named(run.name) for run in runs]
    found = evaluation_of(tables, prices=config.prices)
    options.show(evaluation_record(found), comparison_lines(found))
    best = max(found.arms, key=lambda arm: arm.accuracy or 0.0)
    chosen = trials[best.name]
    note(f"best         {chosen.config.tree or 'no tree: solve without cards'}")
    if out is not None:
        empty = EpistemicTree.of(open_tree(tree).domains, ())
        _copy_tree(chosen.tree or empty, tree, out)
        note(f"copied       {out}, frozen")


def snapshots_of(tree: Path) -> list[Path]:
    """Return the tree of every epoch in order; each is in a file."""
    found = {}
    for path in inside(tree, "snapshots").glob("epoch-*.jsonl"):
        number = path.stem.removeprefix("epoch-")
        if number.isdecimal():
            found[int(number)] = path
    if not found:
        raise UsageError(
            f"{tree} has no snapshot of an epoch",
            fix="name the --out of kace learn, with an epoch finished",
        )
    return [found[number] for number in sorted(found)]


def _copy_tree(chosen: EpistemicTree, learned: Path, out: Path) -> None:
    """Write a tree to a store of its own, frozen; repeating it changes nothing."""
    author = "kace learn select"
    if not TreeStore(out).cards_path.exists():
        TreeStore.create(out, chosen.domains, chosen, author=author)
    store = TreeStore.open(out)
    if store.load() != chosen:
        raise UsageError(
            f"{out} already holds another tree", fix="choose another --out"
        )
    if (learned / PROFILE_FILE).is_file():
        write_atomic(out / PROFILE_FILE, read_plain(learned / PROFILE_FILE))
    store.freeze(author=author)


@command.command()
@TREE
@click.option(
    "--train",
    required=True,
    help="A file of training problems with their answers.",
)
@takes("json", *SOLVER, "ray", "limit", *CAPS)
def calibrate(options: Options, tree: Path, train: str) -> None:
    """Set a tree's relevance thresholds from training problems alone.

    Each problem is scored as if training had never seen its technique, and solved
    without cards: at worst a wrong card breaks what the ladder alone gets right.
    `kace learn` does this for the trees it makes.
    """
    learned = profile_of(None, tree).get("learning", {})
    config = options.config(*Settings.model_fields, tree=tree)
    settings = options.learning(Settings, {})
    cards = open_tree(tree)
    data = load_data(train, "train", config, limit=options.limit)
    check_training(data.problems)
    alone = config.model_copy(update={"tree": None})
    folder = inside(tree, "calibrate")
    finish_trial(Trial("tiered", data, alone, 1), folder)
    table = TextTable(cards, data.problems, best_encoder())
    table.index().save(tree / INDEX_FILE)
    solutions = list(Table.open(folder).solutions(texts=False))
    found = calibrate_tree(table, data.problems, solutions, settings.max_harm)
    keep_calibration(tree, found, config.retrieval, learned)
    options.show(found.model_dump_json(), calibration_lines(found))


# Other methods


def _train_method(
    method: str,
    options: Options,
    train: Path,
    out: Path,
    validation: Path | None,
    held_out: Sequence[Path],
    epochs: int | None,
) -> None:
    """Train another method and print what it took."""
    reads_tree = method in ("domain-ace", "reflections")
    if validation is not None and method != "gepa":
        raise UsageError(
            f"--validation is not an option of {method}",
            fix="only gepa chooses by validation problems",
        )
    if options.get("tree") is not None and not reads_tree:
        raise UsageError(
            f"--tree is not an option of {method}",
            fix="only domain-ace and reflections read one",
        )
    if method == "gepa":
        require_gepa()
    config = options.config()
    if method == "reflections" and config.tree is None:
        raise UsageError(
            "reflections replace the cards of a tree, and none is named",
            fix="name the tree: --tree TREE",
        )
    chosen = load_problems(validation, config.fields) if validation else ()
    problems, _ = _training_data(train, held_out, config, options.limit)
    learning = profile_of(config.profile).get("learning", {})
    plan = TrainPlan(
        method,
        problems,
        config,
        out,
        epochs or (2 if method == "gepa" else 1),
        open_tree(config.tree) if config.tree else EMPTY,
        chosen,
        str(learning.get("failures", "tier")),
    )
    _fetch_weights(config)

    def note_step(step: StepName, value: StepResult, fresh: bool) -> None:
        if fresh:
            note(f"kace: {step}: {value.summary}")

    async def work() -> Ledger:
        async with open_training(plan, on_step=note_step) as training:
            await TRAINERS[method](training)
            return training.session.ledger

    ledger = run_async(work(), resumable=True)
    print(f"made         {out}")
    print(f"calls        {_calls_text(ledger)}")


# Showing


class LearnProgress(RunProgress):
    """Prints a line for each step and run, and below them the position."""

    step = "plan"

    def run_started(self, step: StepName, problems: int, done: int) -> None:
        """Note that a run begins. Reruns of several domains go side by side."""
        self.step = str(step)
        self.total += problems
        self.done += done
        self.before += done
        before = f", {done} done before" if done else ""
        note(f"kace: {step}: {problems} problems{before}")

    def step_done(self, step: StepName, value: StepResult, fresh: bool) -> None:
        """Note a step that was done now, not in an earlier run of the command."""
        if fresh:
            note(f"kace: {step}: {value.summary}")

    def status(self) -> str:
        """Return the position."""
        return f"{self.step}: {super().status()}"


def _calls_text(ledger: Ledger) -> str:
    """Return the calls of each role, and what they cost if a price is known."""
    roles = []
    for role, spent in sorted(ledger.roles.items()):
        roles.append(f"{role} {spent.calls}")
    cost = f"; {ledger.usd:.4f} USD" if ledger.usd else ""
    return f"{', '.join(roles) or 'none: everything was kept'}{cost}"


def report_lines(report: LearningReport) -> list[str]:
    """Return what was learned, the cards, the refusals and the cost."""
    width = columns()
    lines: list[str] = []
    for part in (_head, _runs, _cards, _costs):
        rows = list(part(report))
        if rows and lines:
            lines.append("")
        for row in rows:
            wrapped = textwrap.wrap(plain(row), width, subsequent_indent="    ")
            lines += wrapped or [""]
    return lines


def _head(report: LearningReport) -> Iterator[str]:
    yield report.name
    yield report.summary
    if report.progress:
        yield report.progress
    found = report.funnel
    waiting = f" ({found.waiting} wait for a ruling)" if found.waiting else ""
    merged = f"{found.merged} merged with a card that says the same"
    frozen = (
        f"frozen at {report.frozen[:12]}" if report.frozen else "not frozen"
    )
    kept = (
        f"{found.kept} ({found.validated} validated), {found.retired} retired"
    )
    yield f"proposed     {found.proposed}{waiting}"
    yield f"refused      {found.refused}"
    yield f"admitted     {found.admitted} ({merged})"
    yield f"kept         {kept}"
    if report.unmeasured:
        yield f"not measured {counted(report.unmeasured, 'card')}: no solve showed them"
    yield f"tree         ~{found.tokens:,} tokens, {frozen}"
    if report.unread:
        steps = counted(len(report.unread), "step")
        yield f"unread       {steps} of another version: {'; '.join(report.unread)}"


def _runs(report: LearningReport) -> Iterator[str]:
    """Yield the runs on the training problems."""
    for score in report.scores:
        low, high = score.interval
        name = f"epoch {score.step.epoch}  {plain(score.title, 28):28}"
        right = f"{score.totals.correct} of {score.totals.problems}"
        share = f"{score.accuracy:.1%}"
        yield f"  {name} {right:>12} {share:>7}  {low:.1%} to {high:.1%}"


def _cards(report: LearningReport) -> Iterator[str]:
    for card in report.cards:
        status = card.card.status
        name = "retired" if status is Status.DEPRECATED else status.value
        yield f"  {card.card.card_id}: {name}, {card.place}; {_card_text(card)}"


def _card_text(card: CardReport) -> str:
    shown = "never shown"
    if card.fire:
        fire = card.fire
        right = f"{fire.shown_correct} right, {fire.shown_wrong} wrong"
        shown = f"shown in {fire.n_shown}: {right}"
    if not card.lift:
        return f"{shown}; not measured"
    earlier = ", of its earlier text" if card.outdated else ""
    low = plain_points(card.lift.low)
    high = plain_points(card.lift.high)
    lift = f"{plain_points(card.lift.effect)} [{low}, {high}]"
    return f"{shown}; lift {lift}{earlier}"


def _costs(report: LearningReport) -> Iterator[str]:
    bill = report.bill
    for cost in (*bill.roles, *bill.steps, *bill.parts):
        usd = "price not known" if cost.usd is None else f"{cost.usd:,.2f} USD"
        calls = f"{cost.calls:,} calls"
        if cost.repairs:
            calls += f" ({cost.repairs:,} second rounds)"
        read = f"{cost.input:,} tokens in"
        if cost.cached or cost.written:
            read += f" ({cost.cached:,} cached, {cost.written:,} written)"
        indent = "" if cost in bill.roles else "  "
        yield f"{indent}{plain(cost.role, 30):12} {calls}, {read}, {cost.output:,} out, {usd}"
    if bill.roles and bill.usd is not None:
        yield f"together     {bill.usd:,.2f} USD"


def calibration_lines(found: Calibration) -> Iterator[str]:
    """Yield the thresholds, and the losses that they come from."""
    yield (
        f"thresholds   a card is shown from {found.threshold:.3f} on, and skips ES from "
        f"{found.skip_threshold:.3f} on"
    )
    yield (
        f"harm         at most {found.bound:.2f} points shown, {found.skip_bound:.2f} "
        "skipping ES, in expectation, on problems of techniques that the tree lacks"
    )
    problems = counted(found.problems, "training problem")
    yield f"             from {problems}, of which {found.shown} would read a wrong card"
