"""`kace solve`: one problem, or a file of them; and how solves look in a terminal."""

from __future__ import annotations

import os
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import click

from kace.api import asolve_config, with_texts
from kace.cards.store import open_tree
from kace.cards.tree import EpistemicTree
from kace.cli.models import ensure_weights, prepare
from kace.cli.options import CAPS, PATH, SOLVER, Options, takes
from kace.cli.terminal import (
    RunProgress,
    aligned,
    columns,
    json_of,
    note,
    on_terminal,
    plain,
    run_async,
)
from kace.config import Config, RetrievalConfig
from kace.errors import KaceError, UsageError
from kace.ladder.record import Attempt, Outcome, RetrievedContext, Solution
from kace.ladder.relevance import Relevance
from kace.ladder.session import open_session
from kace.ladder.tiers import ExitPath, TierName
from kace.models.budget import Ledger
from kace.problems import Problem, check_problem_text, load_problems
from kace.runs.manifest import default_folder, manifest_of
from kace.runs.metrics import Totals
from kace.runs.run import Run, climb_with
from kace.runs.shards import Shard
from kace.words import counted

COLOURS = {"right": "green", "wrong": "red"}
SKIP_ES = "--set es_policy=skip"


@click.command("solve")
@click.argument("problem", required=False)
@click.option(
    "--file", "-f", help="JSONL with one problem per line; '-' is standard input."
)
@takes(
    "json",
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
@click.option(
    "--out",
    type=PATH,
    help="The run directory for --file; the same command resumes it.",
)
@click.option("--explain", is_flag=True, help="Show every attempt, the winner first.")
def command(
    options: Options,
    problem: str | None,
    file: str | None,
    out: Path | None,
    explain: bool,
) -> None:
    """Solve a problem, or every problem of a file.

    PROBLEM is the problem's text; '-' or a pipe reads it from standard input.
    """
    config = options.config()
    if file is not None:
        if problem is not None:
            raise UsageError(
                "both a problem and --file were given", fix="give one of them"
            )
        _solve_file(file, config, options, out, explain)
        return
    if config.batch:
        raise UsageError(
            "--batch is for many problems", fix="give them as --file, or leave it out"
        )
    if options.get("shard") is not None:
        raise UsageError(
            "--shard is for --file", fix="leave it out, or give a file of problems"
        )
    ensure_weights(config)
    _solve_one(_problem_text(problem), config, options.as_json, explain)


def _problem_text(given: str | None) -> str:
    """Return the problem that was typed, or read it from standard input."""
    interactive = sys.stdin is None or sys.stdin.isatty()
    if given == "-" or (given is None and not interactive):
        text = sys.stdin.read()
    else:  # what is typed is UTF-8 even if the locale is not
        text = os.fsencode(given or "").decode("utf-8", "replace")
    if text.strip():
        return text.strip()
    missing = given is None and interactive
    raise UsageError(
        "no problem was given" if missing else "the problem is empty",
        fix='kace solve "What is 6 times 7?", or --file problems.jsonl',
    )


def _solve_one(text: str, config: Config, as_json: bool, explain: bool) -> None:
    check_problem_text(text)
    problem = Problem(text)
    with RunProgress(1) as progress:
        solution = run_async(
            asolve_config(problem, config, observer=progress), resumable=config.cache
        )
    if as_json or explain:
        print(_details(solution, as_json, explain))
    if not as_json:
        _print_answer(problem, solution, config, explain)
    if solution.answer is None:
        outcomes = ", ".join(sorted({each.outcome.value for each in solution.made}))
        details = sorted(each.detail for each in solution.made if each.detail)
        reason = f" ({details[0]})" if details else ""
        raise KaceError(
            f"no answer: {len(solution.made)} attempts ended in {outcomes}{reason}",
            fix="--explain shows the attempts; a higher --set max_tokens=N or a "
            "stronger --model may help",
        )


def _details(solution: Solution, as_json: bool, explain: bool) -> str:
    """Return the record as a line of JSON, or every attempt as text."""
    if not as_json:
        return explanation(solution, lambda attempt: attempt.text)
    record = solution.model_dump(mode="json")
    record["working"] = solution.working
    if explain:
        record["texts"] = [attempt.text for attempt in solution.made]
    return json_of(record)


def _print_answer(
    problem: Problem, solution: Solution, config: Config, explain: bool
) -> None:
    if on_terminal() and not explain and solution.working:
        note(f"{solution.working}\n")
    if solution.answer is not None:
        print(plain(solution.answer))
    note(audit_line(solution))
    if config.tree and not solution.recalls:
        side_by_side = SideBySide(open_tree(config.tree), config.retrieval)
        hint = side_by_side.unread_card(problem)
        if hint:
            note(f"kace: {hint}")


def _solve_file(
    name: str, config: Config, options: Options, out: Path | None, explain: bool
) -> None:
    path = Path("/dev/stdin") if name == "-" else Path(name)
    as_json = options.as_json
    problems = load_problems(path, config.fields)[: options.limit]
    tree = open_tree(config.tree) if config.tree else None
    manifest = manifest_of(config, tree)
    ids = "".join(problem.id for problem in problems)
    folder = default_folder(path.stem, manifest, ids.encode())
    if options.get("shard") is not None:
        shard = Shard.read(options.get("shard"))
        manifest |= shard.facts(problems)
        problems = shard.take(problems)
        folder = shard.folder(folder)
    prepare(config)
    with Run(out or folder, manifest, texts=config.problem_texts) as run:

        def print_solution(solution: Solution) -> None:
            if as_json or explain:
                whole = with_texts(solution, run.calls)
                print(_details(whole, as_json, explain), flush=True)
            if not as_json:
                print(audit_line(solution), flush=True)

        for damage in run.damage:
            note(
                f"kace: {run.folder}/traces.jsonl:{damage.line}: {damage.reason}; "
                "that problem is solved again"
            )
        for line in _solve_all(problems, config, run, print_solution, tree):
            note(line)


def _solve_all(
    problems: Sequence[Problem],
    config: Config,
    run: Run,
    on_solved: Callable[[Solution], None],
    tree: EpistemicTree | None,
) -> Iterator[str]:
    """Finish a run, then yield its figures."""
    summary = Totals()
    began = time.monotonic()

    def add(solution: Solution) -> None:
        summary.add(solution)
        on_solved(solution)

    def add_recorded(solution: Solution) -> None:
        add(solution)
        progress.solved(solution)

    async def solve_on_cluster() -> None:
        from kace.runs.ray import open_pool, open_reader, solve_on_ray

        read = partial(open_reader, config, tree)
        async with open_pool(config, run.calls, run, observer=progress) as pool:
            await solve_on_ray(
                pool,
                run,
                problems,
                config.seed,
                read,
                on_solved=add,
                on_known=add_recorded,
            )

    async def solve_here() -> Ledger:
        async with open_session(
            config, calls=run.calls, tree=tree, observer=progress
        ) as session:
            await run.solve(
                problems,
                climb_with(session.kit),
                config.seed,
                session.window,
                on_solved=add,
                on_known=add_recorded,
            )
            return session.ledger

    ledger: Ledger | None = None
    with RunProgress(len(problems)) as progress:
        if config.ray:
            run_async(solve_on_cluster(), resumable=True)
        else:
            ledger = run_async(solve_here(), resumable=True)
    yield from summary_lines(summary, time.monotonic() - began)
    failed = sum(role.failed for role in ledger.roles.values()) if ledger else 0
    if ledger and failed:
        yield f"requests     {ledger.calls} sent, {failed} of them without a reply"
    yield f"run          {run.folder}"


def verdict_of(solution: Solution) -> str:
    """Return `right` or `wrong` if an answer is expected, else nothing."""
    if solution.correct is None:
        return ""
    return "right" if solution.correct else "wrong"


def votes_of(solution: Solution, limit: int = 4) -> str:
    """Return the answer classes, most supported first, such as `12 x3, 7 x2, none x1`."""
    classes = sorted(solution.classes, key=lambda c: (-len(c.positions), c.positions))
    parts = [f"{plain(c.answer, 18)} x{len(c.positions)}" for c in classes[:limit]]
    if len(classes) > limit:
        parts.append(f"{len(classes) - limit} more")
    silent = 0
    for attempt in solution.attempts:
        if attempt.answer is None and attempt.outcome is not Outcome.CANCELLED:
            silent += 1
    if silent:
        parts.append(f"none x{silent}")
    return ", ".join(parts)


def audit_line(solution: Solution) -> str:
    """Return one line that says how an answer came about."""
    calls = f"{solution.real_calls} calls"
    if solution.cached_calls:
        calls += f" ({solution.cached_calls} from cache)"
    if solution.real_calls != solution.paper_calls:
        calls += f" (paper {solution.paper_calls})"
    tokens = sum(attempt.input + attempt.output for attempt in solution.made)
    parts = [
        plain(solution.name),
        plain(solution.answer or "no answer", 40),
        verdict_of(solution),
        solution.exit_name,
        votes_of(solution),
        calls,
        ", ".join(map(_cards_read, solution.recalls)),
        _synthesis(solution),
        *solution.policies,
        f"{tokens:,} tokens",
        f"{solution.seconds:.1f} s",
    ]
    return "  ".join(part for part in parts if part)


def _cards_read(recall: RetrievedContext) -> str:
    """Return what a tier read, such as `MS:geometry shown 3 of 9 cards ~410 tokens`."""
    shown = len(recall.cards)
    cards = counted(max(recall.eligible, shown), "card")
    if 0 < shown < recall.eligible:
        cards = f"{shown} of {cards}"
    verb = "abstained from" if recall.abstained else "shown"
    size = ""
    if recall.tokens:
        size = f" {'~' if recall.estimated else ''}{recall.tokens} tokens"
    return (
        f"{recall.tier}:{'+'.join(recall.domains) or 'universal'} {verb} {cards}{size}"
    )


def _synthesis(solution: Solution) -> str:
    attempt = solution.synthesis
    if attempt is None:
        return ""
    return f"synthesis {plain(attempt.answer or attempt.outcome.value, 18)}"


def explanation(solution: Solution, text_of: Callable[[Attempt], str]) -> str:
    """Return every attempt of a solve with its text: the winner first, then tier by tier."""
    lines = []
    winner = solution.winner
    for attempt in sorted(solution.made, key=lambda each: each is not winner):
        lens = attempt.lens or "sampling only"
        if attempt is solution.synthesis:
            lens = "from common facts"
        answer = attempt.outcome.value
        if attempt.answer:
            answer = f"answer {plain(attempt.answer, 60)}"
        mark = ", the winner" if attempt is winner else ""
        size = f"({attempt.output} tokens, {attempt.seconds:.1f} s)"
        head = f"{attempt.tier} attempt {attempt.index + 1}, {lens}"
        lines.append(f"-- {head}: {answer} {size}{mark}")
        body = plain(text_of(attempt) or attempt.detail).strip()
        lines += [f"   {line}" for line in body.splitlines()]
        lines.append("")
    for recall in solution.recalls:
        what = "read no card"
        if recall.cards:
            what = f"read {', '.join(recall.cards)}"
        elif recall.abstained:
            what = f"abstained from {counted(recall.eligible, 'card')}"
        lines.append(f"-- {recall.tier} {what}")
    lines.append(f"-- {solution.exit_name}: {votes_of(solution, limit=10)}")
    if solution.synthesis:
        lines.append(f"-- {_synthesis(solution)}")
    return "\n".join(lines)


def summary_lines(summary: Totals, seconds: float) -> Iterator[str]:
    """Yield the figures of a run, one per line."""
    n = summary.problems or 1
    if summary.accuracy is not None:
        low, high = summary.interval
        share = f"{summary.correct} of {summary.labelled} = {summary.accuracy:.1%}"
        yield f"accuracy     {share}   (95 % interval {low:.1%} to {high:.1%})"
    exits = [
        f"{path.value} {summary.exits[path]}"
        for path in ExitPath
        if summary.exits[path]
    ]
    yield f"exits        {', '.join(exits)}"
    kept = ""
    if summary.cached_calls:
        kept = f" ({summary.cached_calls} of {summary.real_calls} read from disk)"
    yield (
        f"calls        {summary.paper_calls / n:.2f} per problem by the paper's count, "
        f"{summary.real_calls / n:.2f} really made{kept}"
    )
    if summary.finished:
        right = f", {summary.finished_right} right" if summary.labelled else ""
        yield f"synthesis    {summary.finished} problems answered from common facts{right}"
    usage = summary.usage
    yield f"tokens       {usage.input:,} in ({usage.cached:,} cached), {usage.output:,} out"
    if summary.fresh_output and seconds > 0:
        speed = summary.fresh_output / seconds
        yield f"speed        {speed:,.0f} output tokens/s over {seconds:.0f} s"
    stopped = summary.outcomes[Outcome.CANCELLED]
    if stopped:
        yield f"early stop   {stopped} attempts cancelled that could not change the outcome"
    silent = []
    for outcome in Outcome:
        count = summary.outcomes[outcome]
        if count and outcome not in (Outcome.ANSWERED, Outcome.CANCELLED):
            silent.append(f"{outcome.value} {count}")
    if silent:
        listed = ", ".join(silent)
        yield f"no answer    {listed} (attempts; they count and vote for nothing)"


class SideBySide:
    """Compares solves without and with a tree, for `kace demo` and `kace tree try`."""

    def __init__(self, tree: EpistemicTree, config: RetrievalConfig) -> None:
        self.tree = tree
        self.relevance = Relevance(tree, config)

    def lines(
        self, problem: Problem, without: Solution, using: Solution
    ) -> Iterator[str]:
        """Yield the problem, both answers, and the cards that were read or why none was."""
        width = max(columns(), 60)
        expected = "" if problem.answer is None else f"  Expected: {problem.answer}"
        yield from textwrap.wrap(plain(problem.text + expected), width)
        read = dict.fromkeys(name for recall in using.recalls for name in recall.cards)
        title = f"with {counted(len(read), 'card')}" if read else "with the tree"
        rows = [
            ("  without cards", *_result(without)),
            (f"  {title}", *_result(using)),
        ]
        yield from aligned(rows, left=4)
        for name in read:
            yield f"    {plain(f'{name}: {self.tree.card(name).body}', width - 4)}"
        if not read:
            reason = self._why_none(problem, using)
            indent = "    "
            yield from textwrap.wrap(
                reason, width, initial_indent=indent, subsequent_indent=indent
            )

    def unread_card(self, problem: Problem) -> str:
        """Return which card fits a problem that left at ES and how to read it, if one fits."""
        best, score = self._nearest(problem)
        if best and score >= self.relevance.skip_threshold:
            return f"{best} fits, and {SKIP_ES} would read it"
        return ""

    def _why_none(self, problem: Problem, solution: Solution) -> str:
        if not solution.recalls:
            left = f"both {TierName.ES} attempts agree, so no card is read"
            hint = self.unread_card(problem)
            return f"{left}; {hint}" if hint else left
        best, score = self._nearest(problem)
        threshold = self.relevance.threshold
        near = ""
        if best and score >= 2 / 3 * threshold:
            near = f" (nearest: {best} at {score:.2f}, shown from {threshold:.2f})"
        return f"no card fits, so nothing changes{near}"

    def _nearest(self, problem: Problem) -> tuple[str, float]:
        scores = self.relevance.scores(problem.text)
        return max(scores.items(), key=lambda item: item[1], default=("", 0.0))


def colour_of(line: str) -> str:
    """Return the colour of a line: that of its verdict."""
    for verdict, colour in COLOURS.items():
        if f"  {verdict}  " in f"{line}  ":
            return colour
    return ""


def _result(solution: Solution) -> tuple[str, str, str]:
    """Return the answer, its verdict, and the attempts of the last tier that gave it."""
    answer = plain(solution.answer, 24) if solution.answer else "no answer"
    last = solution.tiers[-1]
    votes = last.vote.leader.votes if last.vote.leader else 0
    agreed = f"{votes} of {len(last.attempts)} attempts agree at {last.tier.name}"
    if solution.exit is not last.tier.exit:
        agreed = f"no agreement in {len(solution.attempts)} attempts"
    return answer, verdict_of(solution), agreed
