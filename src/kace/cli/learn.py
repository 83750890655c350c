"""`kace learn`: from a solver's failures on labelled problems to a frozen tree, or to what another method makes."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from pathlib import Path

import typer

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
from kace.cards.store import TreeStore, frozen_hash_of, open_tree
from kace.cli import learn_demo as demo
from kace.cli.learn_gate import calibrate, wordings
from kace.cli.learn_show import (
    LearnProgress,
    SelectProgress,
    forecast_line,
    forecast_lines,
    outcome,
    report_lines,
    selection_lines,
)
from kace.cli.models import ensure_weights, prepare
from kace.cli.options import (
    CAPS,
    DATA,
    LEARNING,
    LIMITS,
    MODEL,
    OUTPUT,
    SOLVER,
    Typed,
    command,
    new_app,
    option,
    takes,
)
from kace.cli.streams import escaped, note, print_lines, run_async, write_output
from kace.config import PROFILE_FILE, Config, load_config, profile_of
from kace.errors import UsageError
from kace.files import inside, read_plain, write_atomic
from kace.learning import select as selecting
from kace.learning.costs import forecast
from kace.learning.leakage import ContaminationHashes
from kace.learning.loop import learn as learn_tree
from kace.learning.report import report_json, report_of
from kace.learning.settings import QUICK, Settings
from kace.learning.solutions import NO_CALLS, SOURCE, untaught
from kace.learning.steps import Kept, StepName
from kace.learning.study import LearnPlan, check_training, open_study, refuse_overlap
from kace.learning.wall import raise_wall
from kace.models.budget import Ledger
from kace.problems import Problem, load_problems
from kace.report.learner import page
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
app = new_app()


@app.callback(invoke_without_command=True)
@takes(*SOLVER, "ray", "teacher", "tree", "profile", "limit", "batch", *CAPS)
def learn(
    context: typer.Context,
    typed: Typed,
    as_json: bool,
    train: Path = option(
        DATA, None, help="JSONL with a problem and its answer a line."
    ),
    validation: Path = option(
        DATA,
        None,
        help="For --method gepa: problems that choose the prompt by score alone.",
    ),
    held_out: list[Path] = option(
        DATA,
        [],
        help="An evaluation split: refuse training problems that appear in it.",
    ),
    method: str = option(
        LEARNING, "kace", help=f"What to learn with: {', '.join(METHODS)}."
    ),
    epochs: int = option(
        LEARNING,
        None,
        min=1,
        help="Rounds of adding and refining, or passes over the problems.",
    ),
    quick: bool = option(
        LEARNING,
        False,
        "--quick",
        help="One short round that keeps every card: a first tree.",
    ),
    with_demo: bool = option(
        DATA,
        False,
        "--demo",
        help="A small slice of the starter set: all steps, in minutes.",
    ),
    dry_run: bool = option(
        LIMITS, False, "--dry-run", help="Say what it would take, and spend nothing."
    ),
    out: Path = option(
        OUTPUT,
        None,
        help="The tree to make, or another method's folder; the same command resumes it.",
    ),
) -> None:
    """Learn a tree from labelled problems: kace learn --train FILE --teacher MODEL --out TREE.

    Without a key: --teacher solutions makes cards of the training set's worked solutions, and --demo shows it all.

    Other methods make what KACE is compared with: an ACE playbook, a GEPA prompt, the solver's own reflections, or
    few-shot demonstrations. For domain-ace and reflections, --tree names a tree whose domains are used.
    """
    if context.invoked_subcommand:
        return
    if with_demo:
        if train or held_out or dry_run or as_json or typed.limit or method != "kace":
            said = "--demo brings its own problems, and prints a report"
            raise UsageError(
                said,
                fix="kace learn --demo, with --model, --teacher or --out if you like",
            )
        return _demo(typed, out or Path("runs/learn-demo"), epochs)
    if train is None or out is None:
        missing = "--train" if train is None else "--out"
        raise UsageError(
            f"{missing} is missing",
            fix="kace learn --train train.jsonl --teacher MODEL --out TREE",
        )
    if method not in METHODS:
        raise UsageError(
            f"unknown method '{method[:40]}'", fix=f"choose one of {', '.join(METHODS)}"
        )
    if method != "kace":
        if dry_run or quick:
            raise UsageError(
                f"--{'dry-run' if dry_run else 'quick'} does not know {method}",
                fix="cap it with --max-calls or --max-usd",
            )
        return _train(method, typed, train, out, validation, held_out, epochs)
    config = typed.config(*Settings.model_fields)
    base = profile_of(config.profile).get("learning", {})
    settings = typed.learning(
        Settings, {**base, **(QUICK if quick else {})}, epochs=epochs
    )
    if config.teacher == SOURCE:
        note(f"kace: {NO_CALLS}; nobody rewrites them, so refine is 0")
        settings = untaught(config, settings)
    problems, kept_out = _training_data(train, held_out, config, typed.limit)
    if dry_run:
        rows = forecast(problems, config, settings)
        return print_lines(
            [json.dumps([asdict(row) for row in rows])]
            if as_json
            else forecast_lines(rows)
        )
    _wall_in(config, train, out)
    _learn(LearnPlan(problems, config, settings, out, ContaminationHashes.of(kept_out)))
    _show_report(out, _kept_page(out), as_json)


def _learn(plan: LearnPlan) -> None:
    """Finish a tree: what it is expected to take, then a line for every step."""

    async def work() -> None:
        async with open_study(plan, observer=progress) as (study, progress.ledger):
            note(
                f"kace: {forecast_line(forecast(plan.train, plan.config, plan.settings))}"
            )
            await learn_tree(study)

    with LearnProgress(plan.settings.epochs) as progress:
        run_async(work(), resumable=True)


def _demo(typed: Typed, out: Path, epochs: int | None) -> None:
    """Learn from a slice of the starter set, and compare the ladder with and without what was learned."""
    config = typed.config(
        *Settings.model_fields, teacher=SOURCE, preset="starter", es_policy="skip"
    )
    settings = typed.learning(Settings, dict(QUICK), epochs=epochs)
    settings = untaught(config, settings) if config.teacher == SOURCE else settings
    train, held_out = demo.slices(config)
    print_lines(demo.intro(train, held_out, config))
    _wall_in(config, out)
    _learn(
        LearnPlan(
            train,
            config,
            settings,
            out / "tree",
            ContaminationHashes.of(held_out.problems),
        )
    )
    _show_report(out / "tree", _kept_page(out / "tree"), as_json=False)
    print_lines(demo.compared(held_out, config, out))


@command(app)
def report(
    as_json: bool,
    tree: Path = typer.Argument(help="The tree that kace learn made, finished or not."),
    html: Path = option(OUTPUT, None, help="Also write it here, as a page."),
) -> None:
    """Show what was learned: what each card earned, what was refused and why, and the cost."""
    inner = tree / "tree"  # where `kace learn --demo` puts it, beside its runs
    _show_report(inner if (inner / "learn").is_dir() else tree, html, as_json)


def _kept_page(tree: Path) -> Path:
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


@command(app, "model", "base_url", "seed", "limit", *CAPS)
def select(
    typed: Typed,
    as_json: bool,
    tree: Path = typer.Argument(
        metavar="TREE", help="The --out of kace learn.", show_default=False
    ),
    validation: Path = option(
        DATA, ..., help="JSONL with a validation problem and its answer a line."
    ),
    seeds: int = option(
        MODEL,
        1,
        min=1,
        max=20,
        help="Solve every problem on this many seeds, from --seed on.",
    ),
    out: Path = option(OUTPUT, None, help="Copy the chosen epoch's tree here, frozen."),
) -> None:
    """Choose an epoch of a learned tree on validation problems: kace learn select TREE --validation FILE.

    The solver and its settings are those that the tree was learned with, but for what is given.
    """
    learned = selecting.read_learned(tree)
    epochs = selecting.epochs_of(tree)
    ambient = load_config(file=typed.config_file)
    given = {
        **{name: typed.values[name] for name in ("model", "base_url", "seed", *CAPS)},
        **typed.settings,
    }
    config = load_config(
        selecting.solver_settings(learned, given, ambient), file=typed.config_file
    )
    problems = load_problems(validation, config.fields)[: typed.limit]
    selecting.check_validation(problems, learned)
    if out is not None and TreeStore(out).cards_path.exists():
        found = TreeStore.open(out).load()
        if found and all(
            found != epoch.tree for epoch in epochs
        ):  # it would be refused in the end, when all is paid
            raise UsageError(
                f"{out} already holds another tree", fix="choose another --out"
            )
    ensure_weights(config)
    asked = selecting.Validation(
        inside(tree, "learn", "select"), problems, config, seeds
    )
    if frozen_hash_of(tree) is None:
        note(
            f"kace: {tree} is not frozen, so the learner has not finished; the epochs there are so far are tried"
        )
    note(
        f"kace: none of the {len(problems)} validation problems has the text of a training problem; {tree} keeps no"
        " training texts, so one told in other words would not be noticed here (kace learn --held-out notices it)"
    )
    with SelectProgress(asked) as progress:
        arms = run_async(
            selecting.try_epochs(asked, epochs, observer=progress), resumable=True
        )
    selection = selecting.selection_of(asked, epochs, arms)
    place = tree / "learn" / "selection.json"
    write_atomic(place, selection.model_dump_json(indent=2) + "\n")
    print_lines(
        [escaped(selection.model_dump_json())]
        if as_json
        else selection_lines(selection)
    )
    note(f"selection    {place}")
    use = (
        f" --tree {shlex.quote(str(tree / selection.tree))}"
        if selection.tree
        else ", without --tree"
    )
    note(f"use          kace solve{use}")
    if out is not None:
        if (profile := tree / PROFILE_FILE).is_file():
            write_atomic(out / PROFILE_FILE, read_plain(profile))
        chosen = selecting.tree_to_keep(selection.epoch, epochs)
        digest = selecting.keep_tree(out, chosen, f"epoch {selection.epoch} of {tree}")
        what = (
            f"epoch {selection.epoch}"
            if selection.epoch
            else "its domains without a card, the ladder alone"
        )
        note(f"copied       {out}: {what}, frozen at {digest[:12]}")


def _train(
    method: str,
    typed: Typed,
    train: Path,
    out: Path,
    validation: Path | None,
    held: list[Path],
    epochs: int | None,
) -> None:
    """Train another method, and say what was made."""
    if validation is not None and method != "gepa":
        raise UsageError(
            f"--validation is not an option of {method}",
            fix="only gepa chooses by validation problems",
        )
    if typed.tree is not None and method not in ("domain-ace", "reflections"):
        raise UsageError(
            f"--tree is not an option of {method}",
            fix="only domain-ace and reflections use its domains",
        )
    if method == "gepa":
        require_gepa()
    kinds = {"gepa": GepaSettings, "reflections": MethodSettings}
    kind = (
        FewshotSettings
        if method.endswith("-fewshot")
        else kinds.get(method, AceSettings)
    )
    config = typed.config(*kind.model_fields)
    if config.ray:
        raise UsageError(
            f"--ray does not know {method}",
            fix="leave it out: only the runs of --method kace use Ray",
        )
    chosen = load_problems(validation, config.fields) if validation else ()
    problems = _training_data(train, held, config, typed.limit)[0]
    settings = typed.learning(kind, {}, epochs=epochs)
    domains = open_tree(config.tree).domains if config.tree else ()
    plan = TrainPlan(method, problems, config, settings, out, domains, chosen)
    if method == "knn-fewshot":
        return print_lines(
            [*_pool_lines(train_knn(plan), out), "calls        none: no model is asked"]
        )
    _wall_in(config, train, out)

    def tell(step: StepName, value: Kept, fresh: bool) -> None:
        if fresh:
            note(f"kace: {step}: {outcome(value)}")

    async def work() -> tuple[list[str], Ledger]:
        async with open_training(plan, tell=tell) as training:
            return await _made(training, out), training.session.ledger

    lines, ledger = run_async(work(), resumable=True)
    roles = ", ".join(
        f"{role} {spent.calls}" for role, spent in sorted(ledger.roles.items())
    )
    calls = f"calls        {roles or 'none: everything was kept'}"
    print_lines([*lines, calls, f"cost         {ledger.usd:.4f} USD"])


async def _made(training: Training, out: Path) -> list[str]:
    if training.plan.method == "gepa":
        prompt = await train_gepa(training)
        score = prompt.candidates[prompt.best].score
        first = prompt.candidates[0].score
        said = f"{score:.1%}, {first:.1%} with the prompt it began with; {len(prompt.candidates)} candidates"
        return [
            f"prompt       {out / 'prompt.json'}",
            f"score        {said}, {prompt.metric_calls} evaluations",
        ]
    if training.plan.method == "reflections":
        return [
            f"tree         {out}",
            f"cards        {len(await train_reflections(training))}",
        ]
    if training.plan.method == "bootstrap-fewshot":
        return _pool_lines(await train_bootstrap(training), out)
    books = await train_ace(training)
    held = ", ".join(
        f"{name} {len(playbook.bullets)}" for name, playbook in books.playbooks.items()
    )
    return [f"playbook     {out / 'playbook.json'}", f"bullets      {held}"]


def _pool_lines(pool: FewshotPool, out: Path) -> list[str]:
    told = f"{len(pool.tree)} of {counted(len(pool.problems), 'training problem')} worked, found by {pool.index}"
    return [f"fewshot      {out / 'demonstrations.json'}", f"problems     {told}"]


def _training_data(
    path: Path, held_out: list[Path], config: Config, limit: int | None
) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """The problems to learn from, and all those of the evaluation splits that are named, which hold none of them."""
    problems = load_problems(path, config.fields)[:limit]
    check_training(problems)
    splits = {split: load_problems(split, config.fields) for split in held_out}
    for split, found in splits.items():
        refuse_overlap(problems, found, str(split))
    return problems, tuple(problem for found in splits.values() for problem in found)


def _wall_in(config: Config, *given: Path) -> None:
    """Fetch weights, then let this process open the files and folders given, a teacher's folder, and no more."""
    prepare(config)
    if config.teacher and config.teacher.startswith("local/"):
        ensure_weights(config.for_teacher())
    models = (config.model, config.teacher or "")
    folders = [
        Path(name.partition("/")[2])
        for name in models
        if name.startswith(("exchange/", "replay/", "local/"))
    ]
    raise_wall([*given, config.cache_dir, *folders])


command(app, *SOLVER, "ray", "limit", *CAPS)(calibrate)
command(app, "teacher", *CAPS)(wordings)
