"""`kace solve`: one problem, or a file of them."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kace.cli.options import CAPS, DATA, OUTPUT, READING, SOLVER, Typed, option, takes
from kace.cli.streams import note
from kace.errors import KaceError, UsageError

if TYPE_CHECKING:
    from kace.config import Config
    from kace.problem import Problem
    from kace.solver.records import Attempt, Solution
    from kace.solver.run import Run
    from kace.tree.tree import EpistemicTree

    TextOf = Callable[[Attempt], str]
    Told = Callable[[Solution], None]


@takes(*SOLVER, *READING, "skip_es", "field", "limit", *CAPS, "no_texts", "as_json", "config_file")
def solve(
    typed: Typed,
    problem: str = typer.Argument(None, help="The problem's text; '-' or a pipe reads it from standard input."),
    file: str = option(DATA, None, "--file", "-f", help="JSONL with a problem a line; '-' is standard input."),
    out: Path = option(OUTPUT, None, help="The run directory for --file; the same command resumes it."),
    explain: bool = option(OUTPUT, False, "--explain", help="Show every attempt."),
    no_cache: bool = option(OUTPUT, False, "--no-cache", help="For one problem: neither read nor keep calls."),
) -> None:
    """Solve a problem, or every problem of a file."""
    from kace.cli.models import ensure_weights

    config = typed.config(cache=False if no_cache else None)
    for named in (config.for_teacher(), config) if config.synthesis else (config,):
        ensure_weights(named)
    if file is None:
        _solve_one(_problem_text(problem), config, typed.as_json, explain)
    elif problem is not None:
        raise UsageError("both a problem and --file were given", fix="give one of them")
    else:
        _solve_file(file, typed, out, config, explain)


def _shown(record: Solution, as_json: bool, explain: bool, text_of: TextOf) -> Iterator[str]:
    """A solved problem on standard output: its record as a line of JSON, or every attempt, where that is asked for."""
    from kace.cli.terminal import explanation

    if as_json:
        # With --explain, each attempt carries its text.
        texts = {"texts": [text_of(attempt) for attempt in record.made]} if explain else {}
        yield json.dumps({**record.model_dump(mode="json"), **texts}, ensure_ascii=False)
    elif explain:
        yield explanation(record, text_of)


def _solve_one(text: str, config: Config, as_json: bool, explain: bool) -> None:
    from kace.api import asolve_config
    from kace.cli.streams import run_async
    from kace.cli.terminal import LiveTable, audit_line, plain, terminal
    from kace.problem import Problem, check_problem_text

    check_problem_text(text)
    with LiveTable(1) if terminal() else nullcontext() as table:
        solution = run_async(asolve_config(Problem(text), config, observer=table), resumable=config.cache)
    for line in _shown(solution, as_json, explain, lambda attempt: attempt.text):
        print(line)
    if not as_json:
        if solution.answer is not None:
            print(plain(solution.answer))
        note(audit_line(solution))
    if solution.answer is None:
        outcomes = sorted({attempt.outcome.value for attempt in solution.made})
        reasons = sorted({attempt.detail for attempt in solution.made if attempt.detail})
        raise KaceError(
            f"no answer: {len(solution.made)} attempts ended in {', '.join(outcomes)}"
            + (f" ({reasons[0]})" if reasons else ""),
            fix="--explain shows the attempts; a higher --set max_tokens=N or a stronger --model may help",
        )


def _solve_file(name: str, typed: Typed, out: Path | None, config: Config, explain: bool) -> None:
    from kace.cli.terminal import audit_line, summary_lines
    from kace.problem import load_problems
    from kace.solver.manifest import default_folder, manifest_of
    from kace.solver.run import Run
    from kace.solver.summary import Summary
    from kace.tree.store import open_tree

    path = Path("/dev/stdin") if name == "-" else Path(name)
    problems = load_problems(path, typed.fields)[: typed.limit]
    tree = open_tree(config.tree) if config.tree else None
    manifest = manifest_of(config, tree)
    folder = out or default_folder(path.stem, manifest, "".join(p.id for p in problems).encode())
    summary, began = Summary(), time.monotonic()
    with Run(folder, manifest, texts=config.problem_texts) as run:

        def text_of(attempt: Attempt) -> str:
            reply = run.calls.get(attempt.call) if attempt.call else None
            return reply.text if reply else ""

        def finish(record: Solution) -> None:
            summary.add(record)
            shown = _shown(record, typed.as_json, explain, text_of)
            print(*shown, *([] if typed.as_json else [audit_line(record)]), sep="\n", flush=True)

        for damage in run.damage:
            note(f"kace: {folder}/traces.jsonl:{damage.line}: {damage.reason}; that problem is solved again")
        _run_problems(problems, config, tree, run, finish)
    for line in (*summary_lines(summary, time.monotonic() - began), f"run          {folder}"):
        note(line)


def _run_problems(
    problems: tuple[Problem, ...],
    config: Config,
    tree: EpistemicTree | None,
    run: Run,
    finish: Callable[[Solution], None],
) -> None:
    from kace.cli.streams import run_async
    from kace.cli.terminal import LiveTable, terminal
    from kace.solver.session import open_session

    table = LiveTable(len(problems)) if terminal() else None

    def known(record: Solution) -> None:
        finish(record)
        if table:
            table.add(record)

    async def work() -> None:
        async with open_session(config, calls=run.calls, tree=tree, observer=table) as session:
            await run.solve(problems, session.kit, session.window, kept=finish, known=known)

    with table or nullcontext():
        run_async(work(), resumable=True)


def _problem_text(given: str | None) -> str:
    piped = given == "-" or (given is None and sys.stdin is not None and not sys.stdin.isatty())
    # What is typed is UTF-8 even where the locale says otherwise.
    text = sys.stdin.read() if piped else os.fsencode(given or "").decode("utf-8", "replace")
    if not text.strip():
        wrong = "the problem is empty" if piped or given is not None else "no problem was given"
        raise UsageError(wrong, fix='kace solve "What is 6 times 7?", or --file problems.jsonl')
    return text.strip()
