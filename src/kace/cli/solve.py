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

from kace.cli.streams import note
from kace.errors import KaceError, UsageError

if TYPE_CHECKING:
    from kace.config import Config
    from kace.problem import Problem
    from kace.solver.run import Run
    from kace.solver.summary import Summary
    from kace.solver.trace import AttemptRecord, SolveRecord
    from kace.tree.tree import EpistemicTree

    TextOf = Callable[[AttemptRecord], str]


def solve(
    problem: str = typer.Argument(None, help="The problem's text; '-' or a pipe reads it from standard input."),
    file: str = typer.Option(None, "--file", "-f", help="JSONL with a problem a line; '-' is standard input."),
    model: str = typer.Option(None, "--model", "-m", help="local/NAME, local/PATH.gguf, openai/NAME, replay/RUN."),
    base_url: str = typer.Option(None, help="An OpenAI-compatible server for openai/NAME."),
    preset: str = typer.Option(None, help="aime25, math-hard, olymmath or starter."),
    seed: int = typer.Option(None, help="Draws other samples; the same seed repeats them."),
    tree: Path = typer.Option(None, help="An epistemic tree: MS and HS read the block of their tier and domain."),
    max_card_tokens: int = typer.Option(None, help="Cut a larger block to this many tokens (default 5,000)."),
    max_cards: int = typer.Option(None, help="Read at most so many cards: the best-ranked of the block."),
    min_relevance: float = typer.Option(None, help="Telling words a worked card must share (default 2; paper: 0)."),
    place_by: str = typer.Option(None, help="Who names a problem's domain: model (a call), words or cards (none)."),
    cards_at: str = typer.Option(None, help="Where cards stand: turns (default), instructions (the paper) or problem."),
    direct: bool = typer.Option(None, "--direct", help="Beyond the paper: begin at MS where a card speaks of it."),
    rank_by: str = typer.Option(None, help="Rank such a block by words (BM25) or by meaning (embeddings, an extra)."),
    refine_domain: bool = typer.Option(None, "--refine-domain", help="Classify again after a failed MS."),
    out: Path = typer.Option(None, help="The run directory for --file; the same command goes on in it."),
    limit: int = typer.Option(None, min=1, help="Only the first N problems of the file."),
    field: list[str] = typer.Option([], help="Where the file keeps a field: problem=question, answer=target, id=name."),
    as_json: bool = typer.Option(False, "--json", help="One JSON record a problem on standard output."),
    explain: bool = typer.Option(False, "--explain", help="Show every attempt."),
    synthesis: bool = typer.Option(None, "--synthesis", help="Where HS fails its gate, finish from common facts."),
    teacher: str = typer.Option(None, help="The model that gathers those facts."),
    teacher_max_tokens: int = typer.Option(None, help="Tokens of a teacher's reply at most (default 16,000)."),
    early_stop: bool = typer.Option(None, "--early-stop", help="Cancel attempts that cannot change the outcome."),
    temperature: float = typer.Option(None, help="Override the temperature of every tier."),
    max_tokens: int = typer.Option(None, help="Override the token cap of every tier."),
    max_connections: int = typer.Option(None, help="Calls under way at once; left out, it adapts."),
    timeout: float = typer.Option(None, help="Seconds for one call."),
    max_calls: int = typer.Option(None, help="Stop before more calls than this are made."),
    max_usd: float = typer.Option(None, help="Stop before more money than this is spent."),
    no_cache: bool = typer.Option(False, "--no-cache", help="For one problem: neither read nor keep calls."),
    config_file: Path = typer.Option(None, "--config", help="A TOML file; kace.toml is read when it is there."),
) -> None:
    """Solve a problem, or every problem of a file, on the locked ladder."""
    from kace.cli.weights import ensure_weights
    from kace.config import load_config

    flags = {
        "model": model,
        "base_url": base_url,
        "preset": preset,
        "seed": seed,
        "tree": tree,
        "max_card_tokens": max_card_tokens,
        "max_cards": max_cards,
        "min_relevance": min_relevance,
        "place_by": place_by,
        "cards_at": cards_at,
        "direct": direct or None,
        "rank_by": rank_by,
        "refine_domain": refine_domain or None,
        "synthesis": synthesis or None,
        "teacher": teacher,
        "teacher_max_tokens": teacher_max_tokens,
        "early_stop": early_stop or None,
        "temperature": temperature,
        "max_tokens": max_tokens,
        "max_connections": max_connections,
        "timeout": timeout,
        "max_calls": max_calls,
        "max_usd": max_usd,
        "cache": False if no_cache else None,
    }
    config = load_config(flags, file=config_file)
    for named in (config.for_teacher(), config) if config.synthesis else (config,):
        ensure_weights(named)
    output = Output(as_json=as_json, explain=explain)
    if file is not None:
        if problem is not None:
            raise UsageError("both a problem and --file were given", fix="give one of them")
        _solve_file(file, field_map(field), limit, out, config, output)
    else:
        _solve_one(_problem_text(problem), config, output)


class Output:
    """Results on standard output, everything else on standard error, so that pipes get data only."""

    def __init__(self, *, as_json: bool, explain: bool) -> None:
        self.as_json = as_json
        self.explain = explain

    def result(self, record: SolveRecord, text_of: TextOf) -> None:
        """Print a solved problem: its record with `--json`, else its audit line, after its attempts if asked for."""
        from kace.cli.show import audit_line

        if self.as_json:
            self.row(record, text_of)
            return
        if self.explain:
            self.explanation(record, text_of)
        print(audit_line(record), flush=True)

    def row(self, record: SolveRecord, text_of: TextOf) -> None:
        """Print the record as one line of JSON; with `--explain`, each attempt carries its text."""
        row: dict[str, object] = record.model_dump(mode="json")
        if self.explain:
            row["texts"] = [text_of(attempt) for attempt in record.made]
        print(json.dumps(row, ensure_ascii=False), flush=True)

    def explanation(self, record: SolveRecord, text_of: TextOf) -> None:
        """Print every attempt."""
        from kace.cli.show import explanation

        print(explanation(record, text_of))


def _solve_one(text: str, config: Config, output: Output) -> None:
    from kace.api import asolve_config
    from kace.cli.live import LiveTable, terminal
    from kace.cli.running import run_async
    from kace.cli.show import audit_line, plain
    from kace.problem import Problem, check_problem_text
    from kace.solver.trace import SolveRecord

    check_problem_text(text)
    with LiveTable(1) if terminal() else nullcontext() as table:
        solution = run_async(asolve_config(Problem(text), config, observer=table), resumable=config.cache)
    record = SolveRecord.of(solution)
    texts = {(a.key.tier, a.key.index): a.reply.text for a in solution.made if a.reply}

    def text_of(attempt: AttemptRecord) -> str:
        return texts.get((attempt.tier, attempt.index), "")

    if output.as_json:
        output.row(record, text_of)
    else:
        if output.explain:
            output.explanation(record, text_of)
        if record.answer is not None:
            print(plain(record.answer))
        note(audit_line(record))
    if record.answer is None:
        raise _no_answer(record)


def _solve_file(
    name: str, fields: dict[str, str], limit: int | None, out: Path | None, config: Config, output: Output
) -> None:
    from kace.problem import load_problems
    from kace.solver.run import Run, default_folder, manifest_of
    from kace.tree.store import open_tree

    path = Path("/dev/stdin") if name == "-" else Path(name)
    problems = load_problems(path, fields)[:limit]
    tree = open_tree(config.tree) if config.tree else None
    manifest = manifest_of(config, tree)
    folder = out or default_folder(path.stem, manifest, "".join(p.id for p in problems).encode())
    with Run(folder, manifest) as run:
        for damage in run.damage:
            note(f"kace: {folder}/traces.jsonl:{damage.line}: {damage.reason}; that problem is solved again")
        summary, seconds = _run_problems(problems, config, tree, run, output)
    _print_summary(summary, seconds, folder)


def _run_problems(
    problems: tuple[Problem, ...], config: Config, tree: EpistemicTree | None, run: Run, output: Output
) -> tuple[Summary, float]:
    from kace.cli.live import LiveTable, terminal
    from kace.cli.running import run_async
    from kace.solver.run import solve_all
    from kace.solver.session import open_session
    from kace.solver.solution import Solution
    from kace.solver.summary import Summary

    table = LiveTable(len(problems)) if terminal() else None
    summary = Summary()

    def text_of(attempt: AttemptRecord) -> str:
        reply = run.calls.get(attempt.call) if attempt.call else None
        return reply.text if reply else ""

    def finish(record: SolveRecord) -> None:
        summary.add(record)
        output.result(record, text_of)

    def keep(solution: Solution) -> None:
        finish(run.keep(solution))

    def still_to_do() -> Iterator[Problem]:
        for problem in problems:
            if record := run.finished(problem, config.seed):
                finish(record)
                if table:
                    table.add(record)
            else:
                yield problem

    async def work() -> None:
        async with open_session(config, calls=run.calls, tree=tree, observer=table) as session:
            await solve_all(still_to_do(), session.kit, session.window, keep)

    began = time.monotonic()
    with table or nullcontext():
        run_async(work(), resumable=True)
    return summary, time.monotonic() - began


def _print_summary(summary: Summary, seconds: float, folder: Path) -> None:
    from kace.cli.show import summary_lines

    for line in summary_lines(summary, seconds):
        note(line)
    note(f"run          {folder}")


def _problem_text(given: str | None) -> str:
    if given is not None and given != "-":
        text = os.fsencode(given).decode("utf-8", "replace")  # typed as UTF-8 even where the locale says otherwise
    elif given == "-" or (sys.stdin is not None and not sys.stdin.isatty()):
        text = sys.stdin.read()
    else:
        raise UsageError("no problem was given", fix='kace solve "What is 6 times 7?", or --file problems.jsonl')
    if not text.strip():
        raise UsageError("the problem is empty", fix='kace solve "What is 6 times 7?", or --file problems.jsonl')
    return text.strip()


def field_map(pairs: list[str]) -> dict[str, str]:
    """What `--field` says of a file: our names to the file's."""
    fields = {}
    for pair in pairs:
        ours, _, theirs = pair.partition("=")
        if ours not in ("problem", "answer", "id", "domain") or not theirs:
            raise UsageError(f"--field {pair} is not a field map", fix="write --field problem=question")
        fields[ours] = theirs
    return fields


def _no_answer(record: SolveRecord) -> KaceError:
    outcomes = sorted({attempt.outcome.value for attempt in record.made})
    reasons = {attempt.detail for attempt in record.made if attempt.detail}
    return KaceError(
        f"no answer: {len(record.made)} attempts ended in {', '.join(outcomes)}"
        + (f" ({sorted(reasons)[0]})" if reasons else ""),
        fix="--explain shows the attempts; a higher --max-tokens or a stronger --model may help",
    )
