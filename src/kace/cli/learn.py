"""`kace learn`: from a solver's failures on labelled problems to a frozen tree, or to what another method makes."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import click

from kace.baselines import select as selecting
from kace.baselines.ace import AceSettings, train_ace
from kace.baselines.fewshot import (
    FewshotPool,
    FewshotSettings,
    train_bootstrap,
    train_knn,
)
from kace.baselines.gepa import GepaSettings, require_gepa, train_gepa
from kace.baselines.reflections import train_reflections
from kace.baselines.training import MethodSettings, Training, TrainPlan, open_training
from kace.baselines.trial import Trial
from kace.cards.store import TreeStore, frozen_hash_of, open_tree
from kace.cards.tree import Batch, Edit
from kace.cli.data import load_data
from kace.cli.eval import finish_trial
from kace.cli.learn_show import (
    LearnProgress,
    SelectProgress,
    calibration_lines,
    forecast_line,
    forecast_lines,
    report_lines,
    selection_lines,
)
from kace.cli.models import ensure_weights, prepare
from kace.cli.options import CAPS, PATH, SOLVER, Commands, Options, takes
from kace.cli.report import comparison_lines
from kace.cli.terminal import escaped, note, print_lines, run_async, write_output
from kace.config import PROFILE_FILE, Config, load_config, profile_of
from kace.errors import UsageError
from kace.files import confine_files, inside, read_plain, write_atomic
from kace.ladder.prompt import template_hashes
from kace.learning.calibrate import LEAST, Calibration, keep_calibration, set_thresholds
from kace.learning.loop import learn as learn_tree
from kace.learning.propose import NO_CALLS, untaught_settings
from kace.learning.report import forecast, report_json, report_of
from kace.learning.screen import HeldOutHashes
from kace.learning.steps import StepName, StepResult
from kace.learning.study import (
    AUTHOR,
    QUICK,
    LearnPlan,
    Settings,
    check_training,
    open_study,
    open_workbench,
    refuse_overlap,
)
from kace.learning.teacher import SOLUTIONS, open_teacher
from kace.learning.wordings import find_wordings
from kace.models.budget import Ledger
from kace.models.scripted import Scripted, steady
from kace.problems import Dataset, Problem, load_bundled, load_problems, set_hash
from kace.report.evaluation import evaluation_of
from kace.report.evaluation_page import page as comparison_page
from kace.report.learner import page
from kace.runs.table import open_tables
from kace.words import counted

METHODS = (
    "kace",
    "ace",
    "domain-ace",
    "gepa",
    "reflections",
    "knn-fewshot",
    "bootstrap-fewshot",
)
HARD = ("through_ticket", "factorial_zeros")
EASY = ("equal_sides", "sum_of_tens", "twice")
"""Families of the demo: two that the published runs could learn, and three that need no card."""
OF_EACH = 2

TREE = click.argument("tree", type=PATH)


@click.group("learn", cls=Commands, invoke_without_command=True)
@click.option(
    "--train", type=PATH, help="JSONL with a problem and its answer per line."
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
    "--demo",
    "with_demo",
    is_flag=True,
    help="A small slice of the starter set: all steps, in minutes.",
)
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="kace",
    help="The method to learn with.",
)
@takes("json", *SOLVER, "ray", "teacher", "tree", "profile", "limit", "batch", *CAPS)
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
    "--dry-run", is_flag=True, help="Print what it would take, and spend nothing."
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
    with_demo: bool,
    method: str,
    epochs: int | None,
    quick: bool,
    dry_run: bool,
    out: Path | None,
) -> None:
    """Learn a tree of cards from labelled problems.

    kace learn --train FILE --teacher MODEL --out TREE. Without a key: --teacher
    solutions makes cards of the training set's worked solutions, and --demo shows it
    all.

    Other methods make what KACE is compared with: an ACE playbook, a GEPA prompt, the
    solver's own reflections, or few-shot demonstrations. For domain-ace and
    reflections, --tree names a tree whose domains are used.
    """
    if context.invoked_subcommand:
        return
    if with_demo:
        others = (train, held_out, dry_run, options.as_json, options.limit)
        if any(others) or method != "kace":
            raise UsageError(
                "--demo brings its own problems, and prints a report",
                fix="kace learn --demo, with --model, --teacher or --out if you like",
            )
        _learn_demo(options, out or Path("runs/learn-demo"), epochs)
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
    if config.teacher == SOLUTIONS:
        note(f"kace: {NO_CALLS}; cards are not rewritten, so refine is 0")
    problems, kept_out = _training_data(train, held_out, config, options.limit)
    if dry_run:
        rows = forecast(problems, config, settings)
        if options.as_json:
            print(json.dumps([asdict(row) for row in rows]))
        else:
            print_lines(forecast_lines(rows))
        return
    _wall_in(config, train, out)
    _learn(LearnPlan(problems, config, settings, out, HeldOutHashes.of(kept_out)))
    _show_report(out, _page_of(out), options.as_json)


def _settings(
    options: Options, config: Config, *, quick: bool, epochs: int | None
) -> Settings:
    """Return the learner's settings: profile < --quick < --set < --epochs."""
    base = dict(profile_of(config.profile).get("learning", {}))
    if quick:
        base |= QUICK
    settings = options.learning(Settings, base, epochs=epochs)
    return (
        untaught_settings(config, settings) if config.teacher == SOLUTIONS else settings
    )


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


def _wall_in(config: Config, *given: Path) -> None:
    """Fetch weights, then let this process open only the files and folders it needs."""
    prepare(config)
    teacher = config.teacher or ""
    if teacher.startswith("local/"):
        ensure_weights(config.for_teacher())
    folders = []
    for name in (config.model, teacher):
        if name.startswith(("exchange/", "replay/", "local/")):
            folders.append(Path(name.partition("/")[2]))
    confine_files([*given, config.cache_dir, *folders])


def _learn(plan: LearnPlan) -> None:
    """Finish a tree, with its forecast first and a line per step."""

    async def work() -> None:
        async with open_study(plan, observer=progress) as study:
            progress.ledger = study.session.ledger
            rows = forecast(plan.train, plan.config, plan.settings)
            note(f"kace: {forecast_line(rows)}")
            await learn_tree(study)

    with LearnProgress(plan.settings.epochs) as progress:
        run_async(work(), resumable=True)


@command.command()
@TREE
@click.option("--html", type=PATH, help="Also write it here, as a page.")
@takes("json")
def report(options: Options, tree: Path, html: Path | None) -> None:
    """Show what was learned: what each card is worth, what was refused and why, the cost.

    TREE is the tree that kace learn made, finished or not.
    """
    inner = tree / "tree"  # of `kace learn --demo`, beside its runs
    _show_report(inner if (inner / "learn").is_dir() else tree, html, options.as_json)


def _page_of(tree: Path) -> Path:
    return inside(tree, "learn") / "report.html"


def _show_report(tree: Path, html: Path | None, as_json: bool) -> None:
    found = report_of(tree)
    if html is not None:
        write_atomic(html, page(found))
        note(f"page         {html}")
    if as_json:
        write_output(escaped(report_json(found)) + "\n", None)
    else:
        print_lines(report_lines(found))


@command.command()
@TREE
@click.option(
    "--validation",
    type=PATH,
    required=True,
    help="JSONL with a validation problem and its answer per line.",
)
@takes("json", "model", "base_url", "seed", "limit", *CAPS)
@click.option(
    "--seeds",
    default=1,
    type=click.IntRange(1, 20),
    help="Solve every problem on this many seeds, from --seed on.",
)
@click.option("--out", type=PATH, help="Copy the chosen epoch's tree here, frozen.")
def select(
    options: Options, tree: Path, validation: Path, seeds: int, out: Path | None
) -> None:
    """Choose an epoch of a learned tree on validation problems.

    TREE is the --out of kace learn. The solver and its settings are those that the tree
    was learned with, but for what is given.
    """
    learned = selecting.read_learned(tree)
    epochs = selecting.epochs_of(tree)
    file = options.get("config")
    given: dict[str, object] = {}
    for name in ("model", "base_url", "seed", *CAPS):
        given[name] = options.get(name)
    given |= options.settings
    solver = selecting.solver_settings(learned, given, load_config(file=file))
    config = load_config(solver, file=file)
    problems = load_problems(validation, config.fields)[: options.limit]
    selecting.check_validation(problems, learned)
    if out is not None:
        _refuse_other_tree(out, epochs)
    ensure_weights(config)
    if frozen_hash_of(tree) is None:
        note(
            f"kace: {tree} is not frozen, so the learner has not finished; the epochs "
            "there are so far are tried"
        )
    note(
        f"kace: none of the {len(problems)} validation problems has the text of a "
        f"training problem; {tree} keeps no training texts, so a reworded one would not "
        "be noticed here (kace learn --held-out notices it)"
    )
    plan = selecting.Validation(
        inside(tree, "learn", "select"), problems, config, seeds
    )
    with SelectProgress(plan) as progress:
        work = selecting.try_epochs(plan, epochs, observer=progress)
        arms = run_async(work, resumable=True)
    selection = selecting.selection_of(plan, epochs, arms)
    record = selection.model_dump_json
    place = tree / "learn" / "selection.json"
    write_atomic(place, record(indent=2) + "\n")
    as_json = options.as_json
    print_lines([escaped(record())] if as_json else selection_lines(selection))
    note(f"selection    {place}")
    use = ", without --tree"
    if selection.tree:
        use = f" --tree {shlex.quote(str(tree / selection.tree))}"
    note(f"use          kace solve{use}")
    if out is not None:
        _copy_epoch(tree, out, selection.epoch, epochs)


def _refuse_other_tree(out: Path, epochs: Sequence[selecting.EpochTree]) -> None:
    """Refuse a folder with another tree now, not when everything has been paid."""
    if not TreeStore(out).cards_path.exists():
        return
    found = TreeStore.open(out).load()
    if found and all(found != epoch.tree for epoch in epochs):
        raise UsageError(
            f"{out} already holds another tree", fix="choose another --out"
        )


def _copy_epoch(
    tree: Path, out: Path, epoch: int, epochs: Sequence[selecting.EpochTree]
) -> None:
    profile = tree / PROFILE_FILE
    if profile.is_file():
        write_atomic(out / PROFILE_FILE, read_plain(profile))
    chosen = selecting.tree_to_keep(epoch, epochs)
    digest = selecting.keep_tree(out, chosen, f"epoch {epoch} of {tree}")
    what = f"epoch {epoch}" if epoch else "its domains without a card, the ladder alone"
    note(f"copied       {out}: {what}, frozen at {digest[:12]}")


@command.command()
@TREE
@click.option(
    "--train",
    type=PATH,
    required=True,
    help="JSONL with a training problem and its answer per line.",
)
@takes("json", *SOLVER, "ray", "limit", *CAPS)
def calibrate(options: Options, tree: Path, train: Path) -> None:
    """Set a tree's relevance thresholds from training problems alone.

    Each problem to which a card of another technique is relevant is solved with that
    card and without: what is lost is the harm of showing a card where it does not fit.
    `kace learn` does this for the trees it makes.
    """
    profile = profile_of(None, tree).get("learning", {})
    config = options.config(*Settings.model_fields, tree=tree)
    retrieval = config.retrieval.model_copy(update={"relevance_threshold": LEAST})
    config = config.model_copy(update={"retrieval": retrieval, "tree": None})
    settings = options.learning(Settings, {})
    problems = load_problems(train, config.fields)[: options.limit]
    check_training(problems)
    prepare(config)
    manifest = LearnPlan(problems, config, settings, tree).manifest()

    async def work() -> Calibration:
        async with open_workbench(
            tree / "calibrate", config, manifest, observer=progress
        ) as resources:
            progress.ledger = resources.session.ledger
            cards = open_tree(tree)
            return await set_thresholds(cards, problems, resources, settings)

    with LearnProgress(1) as progress:
        found = run_async(work(), resumable=True)
    keep_calibration(tree, found, retrieval, profile)
    if options.as_json:
        print(escaped(found.model_dump_json()))
    else:
        print_lines(calibration_lines(found))


@command.command()
@TREE
@takes("json", "teacher", *CAPS)
@click.option(
    "--held-out",
    type=PATH,
    multiple=True,
    help="An evaluation split: leave out wordings that retell its problems.",
)
def wordings(options: Options, tree: Path, held_out: tuple[Path, ...]) -> None:
    """Let the teacher write other wordings of each card's problems, to find it by.

    kace learn wordings TREE --teacher MODEL. 16 per card (--set wordings=N). Problems
    are then compared with them too; no solver reads them. Set the thresholds anew
    afterwards: kace learn calibrate.
    """
    store = TreeStore.open(tree)
    config = options.config(*Settings.model_fields)
    settings = options.learning(Settings, {})
    if not settings.wordings:
        raise UsageError(
            "wordings=0 asks for none", fix="--set wordings=16, or leave it out"
        )
    problems: list[Problem] = []
    for path in held_out:
        problems += load_problems(path, config.fields)
    hashes = HeldOutHashes.of(problems)
    retells = partial(hashes.retells, max_overlap=settings.max_overlap)
    before = store.load()
    manifest: dict[str, object] = {
        "teacher": config.teacher,
        "wordings": settings.wordings,
        "prompt": template_hashes("teacher")["teacher/wordings"],
    }

    async def work() -> tuple[Edit, ...]:
        folder = tree / "wordings" / before.content_hash()[:12]
        solver = Scripted(steady)  # the solver is not called
        async with (
            aclosing(open_teacher(config)) as teacher,
            open_workbench(
                folder,
                config,
                manifest,
                model=solver,
                teacher=teacher,
                observer=progress,
            ) as resources,
        ):
            progress.ledger = resources.session.ledger
            return await find_wordings(
                before, settings.wordings, resources.teacher, resources.log, retells
            )

    with LearnProgress(1) as progress:
        edits = run_async(work(), resumable=True)
    if edits:
        _apply_wordings(store, edits)
    made = {edit.card.card_id: len(edit.card.wordings) for edit in edits}
    if options.as_json:
        print(json.dumps(made))
        return
    print(f"wordings     {sum(made.values()):,} for {counted(len(made), 'card')}")
    bare = 0
    for card in before.shown:
        bare += not card.wordings and card.card_id not in made
    if bare:
        cards = counted(bare, "card")
        print(f"without      {cards}: the teacher wrote none that could be used")
    again = f"kace learn calibrate {shlex.quote(str(tree))} --train FILE"
    print(f"then         {again}: its thresholds are of the tree before")


def _apply_wordings(store: TreeStore, edits: tuple[Edit, ...]) -> None:
    frozen = store.frozen_hash
    if frozen:
        store.thaw(author=AUTHOR)
    store.apply(Batch(edits), author=AUTHOR, note="wordings")
    if frozen:
        store.freeze(author=AUTHOR)


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
    """Train another method and print what was made."""
    if validation is not None and method != "gepa":
        raise UsageError(
            f"--validation is not an option of {method}",
            fix="only gepa chooses by validation problems",
        )
    if options.get("tree") is not None and method not in ("domain-ace", "reflections"):
        raise UsageError(
            f"--tree is not an option of {method}",
            fix="only domain-ace and reflections use its domains",
        )
    if method == "gepa":
        require_gepa()
    kind = _settings_kind(method)
    config = options.config(*kind.model_fields)
    if config.ray:
        raise UsageError(
            f"--ray does not know {method}",
            fix="leave it out: only the runs of --method kace use Ray",
        )
    chosen = load_problems(validation, config.fields) if validation else ()
    problems, _ = _training_data(train, held_out, config, options.limit)
    settings = options.learning(kind, {}, epochs=epochs)
    domains = open_tree(config.tree).domains if config.tree else ()
    plan = TrainPlan(method, problems, config, settings, out, domains, chosen)
    if method == "knn-fewshot":
        print_lines(_pool_lines(train_knn(plan), out))
        print("calls        none: no model is called")
        return
    _wall_in(config, train, out)

    def note_step(step: StepName, value: StepResult, fresh: bool) -> None:
        if fresh:
            note(f"kace: {step}: {value.summary}")

    async def work() -> tuple[list[str], Ledger]:
        async with open_training(plan, on_step=note_step) as training:
            return await _run_training(training, out), training.session.ledger

    lines, ledger = run_async(work(), resumable=True)
    roles = [f"{role} {spent.calls}" for role, spent in sorted(ledger.roles.items())]
    print_lines(lines)
    print(f"calls        {', '.join(roles) or 'none: everything was kept'}")
    print(f"cost         {ledger.usd:.4f} USD")


def _settings_kind(method: str) -> type[MethodSettings]:
    if method == "gepa":
        return GepaSettings
    if method == "reflections":
        return MethodSettings
    return FewshotSettings if method.endswith("-fewshot") else AceSettings


async def _run_training(training: Training, out: Path) -> list[str]:
    method = training.plan.method
    if method == "gepa":
        prompt = await train_gepa(training)
        score = prompt.candidates[prompt.best].score
        first = prompt.candidates[0].score
        return [
            f"prompt       {out / 'prompt.json'}",
            f"score        {score:.1%}, {first:.1%} with the prompt it began with; "
            f"{len(prompt.candidates)} candidates, {prompt.metric_calls} evaluations",
        ]
    if method == "reflections":
        cards = await train_reflections(training)
        return [f"tree         {out}", f"cards        {len(cards)}"]
    if method == "bootstrap-fewshot":
        return _pool_lines(await train_bootstrap(training), out)
    books = (await train_ace(training)).playbooks
    sizes = [f"{name} {len(playbook.bullets)}" for name, playbook in books.items()]
    return [
        f"playbook     {out / 'playbook.json'}",
        f"bullets      {', '.join(sizes)}",
    ]


def _pool_lines(pool: FewshotPool, out: Path) -> list[str]:
    problems = counted(len(pool.problems), "training problem")
    return [
        f"fewshot      {out / 'demonstrations.json'}",
        f"problems     {len(pool.tree)} of {problems} worked, found by {pool.index}",
    ]


# The demo


def _learn_demo(options: Options, out: Path, epochs: int | None) -> None:
    """Learn from a slice of the starter set, and compare the ladder without and with the tree."""
    config = options.config(
        *Settings.model_fields, teacher=SOLUTIONS, preset="starter", es_policy="skip"
    )
    settings = options.learning(Settings, QUICK, epochs=epochs)
    if config.teacher == SOLUTIONS:
        settings = untaught_settings(config, settings)
    train = _few_of_each(load_bundled("starter", "train"))
    data = load_data("starter", "validation", config)
    problems = _few_of_each(data.problems)
    held_out = replace(data, problems=problems, hash=set_hash(problems))
    print_lines(_demo_intro(train, held_out, config))
    _wall_in(config, out)
    tree = out / "tree"
    hashes = HeldOutHashes.of(problems)
    _learn(LearnPlan(train, config, settings, tree, hashes))
    _show_report(tree, _page_of(tree), as_json=False)
    _compare_demo(held_out, config, out)


def _few_of_each(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    chosen: list[Problem] = []
    for family in (*HARD, *EASY):
        chosen += [each for each in problems if each.family == family][:OF_EACH]
    return tuple(chosen)


def _demo_intro(
    train: Sequence[Problem], held_out: Dataset, config: Config
) -> Iterator[str]:
    hard = sum(problem.family in HARD for problem in train)
    yield (
        f"1. {config.model} solves {len(train)} problems, {hard} of them of two kinds "
        "that a small model gets wrong."
    )
    yield (
        f"2. Its failures become cards (teacher: {config.teacher}). Reruns that hide "
        "cards at random measure them."
    )
    yield (
        "3. Tiered (the ladder alone) and KACE (with the cards) solve "
        f"{len(held_out.problems)} problems held out."
    )
    yield "About ten minutes on two cores. Stop it at any time: the same command resumes.\n"


def _compare_demo(held_out: Dataset, config: Config, out: Path) -> None:
    """Evaluate both systems, write the page, and print the comparison."""
    tree = open_tree(out / "tree")
    alone = out / "tiered"
    using = out / "kace"
    n = len(held_out.problems)
    note(f"kace: tiered: {n} problems held out")
    finish_trial(Trial("tiered", held_out, config, 1), alone)
    note(f"kace: kace: the same {n} problems")
    finish_trial(Trial("kace", held_out, config, 1, tree), using, [alone])
    found = evaluation_of(open_tables([alone, using]), tree=tree, prices=config.prices)
    write_atomic(out / "report.html", comparison_page(found))
    print_lines(["", *comparison_lines(found), ""])
    print(
        f"{n} problems are few, and were chosen to show how it works: two kinds that can "
        "be\nlearned, three that need no card. What it is worth: docs/results.md, on "
        "1,000 problems."
    )
    note(f"report       {out / 'report.html'}")
