"""`kace learn`: from a solver's failures on labelled problems to a frozen tree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kace.cli.streams import note, print_lines, write_output
from kace.cli.training import bad_option, training_data, wall_in
from kace.errors import UsageError

if TYPE_CHECKING:
    from kace.config import Config
    from kace.learner.opening import Plan
    from kace.learner.settings import Settings
    from kace.problem import Problem

learn_app = typer.Typer(help="Learn a tree from labelled problems.", rich_markup_mode=None)


@learn_app.callback(invoke_without_command=True)
def learn(
    context: typer.Context,
    train: Path = typer.Option(None, help="JSONL with a problem and its answer a line."),
    out: Path = typer.Option(None, help="The tree to make; the same command goes on in it."),
    teacher: str = typer.Option(None, help="anthropic/NAME, openai/NAME, exchange/DIR or replay/RUN."),
    teacher_base_url: str = typer.Option(None, help="An OpenAI-compatible server for an openai/NAME teacher."),
    teacher_max_tokens: int = typer.Option(None, help="Tokens of a teacher's reply at most (default 16,000)."),
    model: str = typer.Option(None, "--model", "-m", help="The solver: local/NAME, openai/NAME, replay/RUN."),
    base_url: str = typer.Option(None, help="An OpenAI-compatible server for an openai/NAME solver."),
    preset: str = typer.Option(None, help="aime25, math-hard, olymmath or starter."),
    seed: int = typer.Option(None, help="Draws other samples; the same seed repeats them."),
    limit: int = typer.Option(None, min=1, help="Only the first N problems of the file."),
    field: list[str] = typer.Option([], help="Where the file keeps a field: problem=question, answer=target, id=name."),
    held_out: list[Path] = typer.Option([], help="An evaluation split: refuse training problems that stand in it."),
    epochs: int = typer.Option(2, min=1, max=20, help="Rounds of adding and refining."),
    cards_per_problem: int = typer.Option(2, min=1, max=3, help="Cards the teacher may propose per failed problem."),
    add_runs: int = typer.Option(2, min=1, max=2, help="Runs an epoch's cards come from: one a tier, or 1 for both."),
    confident: bool = typer.Option(False, "--confident", help="Learn also from what ES got wrong with confidence."),
    refine: int = typer.Option(2, min=0, max=2, help="Looks at each domain's revision in an epoch; 0: measure only."),
    threshold: float = typer.Option(0.01, min=0.0, max=1.0, help="Accuracy a rewritten block must gain."),
    alpha: float = typer.Option(0.1, min=0.0, max=1.0, help="How often chance may keep anything; 1: no evidence."),
    impact: str = typer.Option("dropout", help="How cards are measured: dropout, leave_one_out or fires."),
    impact_runs: int = typer.Option(2, min=1, max=50, help="Dropout runs an epoch."),
    impact_calls: int = typer.Option(1_000, min=1, help="Solver calls an epoch for leave_one_out."),
    dropout_rate: float = typer.Option(0.5, help="How likely a card is hidden from an attempt."),
    keep: str = typer.Option("all", help="Cards the frozen tree shows: all not deprecated, or validated ones only."),
    examples: int = typer.Option(2, min=0, max=4, help="Worked examples the teacher writes for each card (paper: 0)."),
    imagine: bool = typer.Option(False, "--imagine", help="Also ask for cards that no failure called for."),
    synthesis: bool = typer.Option(None, "--synthesis", help="Let the teacher gather facts where HS fails its gate."),
    max_card_tokens: int = typer.Option(None, help="Cut a larger block to this many tokens (default 5,000)."),
    max_cards: int = typer.Option(None, help="Read at most so many cards: the best-ranked of the block."),
    min_relevance: float = typer.Option(None, help="Telling words a worked card must share (default 2; paper: 0)."),
    place_by: str = typer.Option(None, help="Who names a problem's domain: model (a call), words or cards (none)."),
    cards_at: str = typer.Option(None, help="Where cards stand: turns (default), instructions (the paper) or problem."),
    max_connections: int = typer.Option(None, help="Calls under way at once; left out, it adapts."),
    timeout: float = typer.Option(None, help="Seconds for one call."),
    max_calls: int = typer.Option(None, help="Stop before more calls than this are made, solver and teacher together."),
    max_usd: float = typer.Option(None, help="Stop before more money than this is spent."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Say what it would take, and spend nothing."),
    no_wait: bool = typer.Option(False, "--no-wait", help="With exchange/DIR: leave when only the teacher is missing."),
    as_json: bool = typer.Option(False, "--json", help="The report as JSON on standard output."),
    config_file: Path = typer.Option(None, "--config", help="A TOML file; kace.toml is read when it is there."),
) -> None:
    """Learn a tree: kace learn --train train.jsonl --teacher MODEL --model MODEL --out TREE."""
    if context.invoked_subcommand:
        return
    if train is None or out is None:
        missing = "--train" if train is None else "--out"
        raise UsageError(f"{missing} is missing", fix="kace learn --train train.jsonl --teacher MODEL --out TREE")
    from kace.config import load_config
    from kace.learner.guarded import Guarded
    from kace.learner.opening import Plan

    flags = {
        "model": model,
        "base_url": base_url,
        "teacher": teacher,
        "teacher_base_url": teacher_base_url,
        "teacher_max_tokens": teacher_max_tokens,
        "preset": preset,
        "seed": seed,
        "synthesis": synthesis or None,
        "max_card_tokens": max_card_tokens,
        "max_cards": max_cards,
        "min_relevance": min_relevance,
        "place_by": place_by,
        "cards_at": cards_at,
        "max_connections": max_connections,
        "timeout": timeout,
        "max_calls": max_calls,
        "max_usd": max_usd,
        "exchange_wait": False if no_wait else None,
    }
    settings = _settings(
        {
            "epochs": epochs,
            "cards_per_problem": cards_per_problem,
            "add_runs": add_runs,
            "confident": confident,
            "refine": refine,
            "threshold": threshold,
            "alpha": alpha,
            "impact": impact,
            "impact_runs": impact_runs,
            "impact_calls": impact_calls,
            "dropout_rate": dropout_rate,
            "keep": keep,
            "examples": examples,
            "imagine": imagine,
        }
    )
    config = load_config(flags, file=config_file)
    problems, kept_out = training_data(train, field, limit, held_out)
    if dry_run:
        _print_forecast(problems, config, settings, as_json=as_json)
    else:
        _learn(Plan(problems, config, settings, out, Guarded.of(kept_out)), train, as_json=as_json)


@learn_app.command()
def report(
    tree: Path = typer.Argument(help="The tree that kace learn made, finished or not."),
    html: Path = typer.Option(None, help="Write the page here instead of into the tree's folder."),
    as_json: bool = typer.Option(False, "--json", help="The report as JSON on standard output."),
) -> None:
    """Show what was learned: what each card earned, what was refused and why, and the cost."""
    _report(tree, html, as_json=as_json)


def _settings(values: dict[str, object]) -> Settings:
    from pydantic import ValidationError

    from kace.learner.settings import Settings

    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise bad_option(error, "learn") from None


def _learn(plan: Plan, train: Path, *, as_json: bool) -> None:
    from kace.cli.learn_live import LearnLines, LearnLive
    from kace.cli.live import terminal
    from kace.cli.running import run_async
    from kace.cli.weights import ensure_weights
    from kace.learner.loop import learn as learn_tree
    from kace.learner.opening import open_study

    ensure_weights(plan.config)
    wall_in(plan.config, train, plan.out)
    audience = LearnLive(plan.settings.epochs) if terminal() else LearnLines(plan.settings.epochs)

    async def work() -> None:
        async with open_study(plan, audience=audience) as (study, ledger):
            audience.ledger = ledger
            await learn_tree(study)

    with audience:
        run_async(work(), resumable=True)
    _report(plan.out, None, as_json=as_json)


def _report(tree: Path, html: Path | None, *, as_json: bool) -> None:
    from kace.cli.learn_show import report_lines
    from kace.io import write_atomic
    from kace.learner.page import page
    from kace.learner.report import report_json, report_of

    found = report_of(tree)
    place = html or tree / "learn" / "report.html"
    write_atomic(place, page(found))
    if as_json:
        write_output(report_json(found) + "\n", None)
    else:
        print_lines(report_lines(found))
    note(f"page         {place}")


def _print_forecast(problems: tuple[Problem, ...], config: Config, settings: Settings, *, as_json: bool) -> None:
    from dataclasses import asdict

    from kace.cli.learn_forecast import forecast_lines
    from kace.learner.forecast import forecast

    rows = forecast(problems, config, settings)
    if as_json:
        write_output(json.dumps([asdict(row) for row in rows]) + "\n", None)
        return
    print_lines(forecast_lines(rows))
