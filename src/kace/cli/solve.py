"""`kace solve`: one problem, or a file of them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import typer

from kace.api import asolve_config, with_texts
from kace.cards.store import open_tree
from kace.cards.tree import EpistemicTree
from kace.cli.models import ensure_weights, prepare
from kace.cli.options import CAPS, DATA, OUTPUT, SOLVER, Typed, command, new_app, option
from kace.cli.side_by_side import SideBySide
from kace.cli.streams import json_of, note, on_terminal, plain, run_async
from kace.cli.terminal import RunProgress, audit_line, explanation, summary_lines
from kace.config import Config
from kace.errors import KaceError, UsageError
from kace.ladder.record import Solution
from kace.ladder.session import open_session
from kace.models.budget import Ledger
from kace.problems import Problem, check_problem_text, load_problems
from kace.runs.manifest import default_folder, manifest_of
from kace.runs.metrics import Totals
from kace.runs.run import Run, climb_with
from kace.runs.shards import Shard

app = new_app()


@command(
    app,
    *SOLVER,
    "service_tier",
    "ray",
    "tree",
    "profile",
    "limit",
    "shard",
    "batch",
    *CAPS,
)
def solve(
    typed: Typed,
    as_json: bool,
    problem: str = typer.Argument(
        None, help="The problem's text; '-' or a pipe reads it from standard input."
    ),
    file: str = option(
        DATA,
        None,
        "--file",
        "-f",
        help="JSONL with a problem a line; '-' is standard input.",
    ),
    out: Path = option(
        OUTPUT, None, help="The run directory for --file; the same command resumes it."
    ),
    explain: bool = option(
        OUTPUT, False, "--explain", help="Show every attempt, the winner first."
    ),
) -> None:
    """Solve a problem, or every problem of a file."""
    config = typed.config()
    if file is None:
        if config.batch:
            raise UsageError(
                "--batch is for many problems",
                fix="give them as --file, or leave it out",
            )
        if typed.shard is not None:
            raise UsageError(
                "--shard is for --file", fix="leave it out, or give a file of problems"
            )
        ensure_weights(config)
        _solve_one(_problem_text(problem), config, as_json, explain)
    elif problem is not None:
        raise UsageError("both a problem and --file were given", fix="give one of them")
    else:
        _solve_file(file, config, typed, out, explain)


def _shown(record: Solution, as_json: bool, explain: bool) -> Iterator[str]:
    """A solved problem on standard output: its record as a line of JSON, or every attempt, where that is asked for."""
    if as_json:
        # With --explain, each attempt carries its text.
        texts = {"texts": [attempt.text for attempt in record.made]} if explain else {}
        told = {**record.model_dump(mode="json"), "working": record.working, **texts}
        yield json_of(told)
    elif explain:
        yield explanation(record, lambda attempt: attempt.text)


def _solve_one(text: str, config: Config, as_json: bool, explain: bool) -> None:
    check_problem_text(text)
    problem = Problem(text)
    with RunProgress(1) as table:
        solution = run_async(
            asolve_config(problem, config, observer=table), resumable=config.cache
        )
    for line in _shown(solution, as_json, explain):
        print(line)
    if not as_json:
        if on_terminal() and not explain and solution.working:
            note(f"{solution.working}\n")
        if solution.answer is not None:
            print(plain(solution.answer))
        note(audit_line(solution))
        unread = (
            open_tree(config.tree) if config.tree and not solution.recalls else None
        )
        if unread and (
            card := SideBySide(unread, config.retrieval).passed_over(problem)
        ):
            note(f"kace: {card}")
    if solution.answer is None:
        outcomes = ", ".join(
            sorted({attempt.outcome.value for attempt in solution.made})
        )
        reason = min(
            (f" ({attempt.detail})" for attempt in solution.made if attempt.detail),
            default="",
        )
        raise KaceError(
            f"no answer: {len(solution.made)} attempts ended in {outcomes}{reason}",
            fix="--explain shows the attempts; a higher --set max_tokens=N or a stronger --model may help",
        )


def _solve_file(
    name: str, config: Config, typed: Typed, out: Path | None, explain: bool
) -> None:
    path = Path("/dev/stdin") if name == "-" else Path(name)
    as_json = typed.as_json
    problems = load_problems(path, config.fields)[: typed.limit]
    tree = open_tree(config.tree) if config.tree else None
    manifest = manifest_of(config, tree)
    folder = default_folder(
        path.stem, manifest, "".join(p.id for p in problems).encode()
    )
    if typed.shard is not None:
        shard = Shard.read(typed.shard)
        manifest |= shard.facts(problems)
        problems = shard.take(problems)
        folder = shard.folder(folder)
    folder = out or folder
    prepare(config)
    with Run(folder, manifest, texts=config.problem_texts) as run:

        def finish(record: Solution) -> None:
            shown = _shown(
                with_texts(record, run.calls) if as_json or explain else record,
                as_json,
                explain,
            )
            print(
                *shown, *([] if as_json else [audit_line(record)]), sep="\n", flush=True
            )

        for damage in run.damage:
            note(
                f"kace: {folder}/traces.jsonl:{damage.line}: {damage.reason}; that problem is solved again"
            )
        for line in _solve_all(problems, config, run, finish, tree):
            note(line)


def _solve_all(
    problems: Sequence[Problem],
    config: Config,
    run: Run,
    tell: Callable[[Solution], None],
    tree: EpistemicTree | None,
) -> Iterator[str]:
    """Finish a run, each problem told as it is solved; then the run's figures."""
    summary = Totals()
    began = time.monotonic()

    def kept(record: Solution) -> None:
        summary.add(record)
        tell(record)

    def known(record: Solution) -> None:
        kept(record)
        progress.solved(record)

    async def work() -> Ledger | None:
        if config.ray:
            from kace.runs.ray import open_pool, open_reader, solve_on_ray

            async with open_pool(config, run.calls, run, observer=progress) as pool:
                await solve_on_ray(
                    pool,
                    run,
                    problems,
                    config.seed,
                    partial(open_reader, config, tree),
                    on_solved=kept,
                    on_known=known,
                )
            return None
        async with open_session(
            config, calls=run.calls, tree=tree, observer=progress
        ) as session:
            await run.solve(
                problems,
                climb_with(session.kit),
                config.seed,
                session.window,
                on_solved=kept,
                on_known=known,
            )
            return session.ledger

    with RunProgress(len(problems)) as progress:
        ledger = run_async(work(), resumable=True)
    yield from summary_lines(summary, time.monotonic() - began)
    if ledger and (failed := sum(role.failed for role in ledger.roles.values())):
        yield f"requests     {ledger.calls} sent, {failed} of them without a reply"
    yield f"run          {run.folder}"


def _problem_text(given: str | None) -> str:
    piped = given == "-" or (
        given is None and sys.stdin is not None and not sys.stdin.isatty()
    )
    # What is typed is UTF-8 even where the locale says otherwise.
    text = (
        sys.stdin.read()
        if piped
        else os.fsencode(given or "").decode("utf-8", "replace")
    )
    if not text.strip():
        wrong = (
            "the problem is empty"
            if piped or given is not None
            else "no problem was given"
        )
        raise UsageError(
            wrong, fix='kace solve "What is 6 times 7?", or --file problems.jsonl'
        )
    return text.strip()
