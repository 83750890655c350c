"""`kace solve`: one problem, or a file of them; and how solves look in a terminal."""

from __future__ import annotations

import math
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from kace.api import solve_cached, solve_into, tree_of
from kace.cards.tree import EpistemicTree
from kace.cli.models import prepare
from kace.cli.options import CAPS, SOLVER, Options, takes
from kace.cli.terminal import (
    RunProgress,
    aligned,
    json_of,
    note,
    on_terminal,
    run_async,
)
from kace.config import Config
from kace.errors import KaceError, UsageError, counted, plain
from kace.ladder.policies import FALLBACKS
from kace.ladder.record import RetrievedContext, Solution
from kace.learning.report import RoleForecast
from kace.models.base import Messages
from kace.problems import Problem, check_problem_text, load_problems
from kace.runs.manifest import default_folder, manifest_of
from kace.runs.metrics import Metrics
from kace.runs.run import Run
from kace.runs.table import Table, with_texts


@click.command("solve")
@click.argument("problem", required=False)
@click.option(
    "--file",
    "-f",
    help="JSONL with one problem per line; '-' is standard input.",
)
@takes(
    "json", *SOLVER, "ray", "tree", "profile", "limit", "batch", *CAPS, "out"
)
@click.option(
    "--explain",
    is_flag=True,
    help="Show every attempt, the winner first, and what was sent.",
)
def command(
    options: Options,
    problem: str | None,
    file: str | None,
    explain: bool,
) -> None:
    """Solve a problem, or every problem of a file.

    PROBLEM is the problem's text; '-' or a pipe reads it from standard input.
    """
    if file is not None:
        if problem is not None:
            raise UsageError(
                "--file and a problem were given", fix="give one of them"
            )
        _solve_file(file, options, explain)
        return
    config = options.config()
    if config.batch:
        raise UsageError(
            "--batch is for many problems", fix="give a --file, or leave it out"
        )
    asked = Problem(_problem_text(problem))
    check_problem_text(asked.text)
    prepare(config)
    _solve_one(asked, config, options.as_json, explain)


def _problem_text(given: str | None) -> str:
    """Return the problem that was typed, or read it from standard input."""
    if given is None and sys.stdin and not sys.stdin.isatty():
        given = "-"
    # What is typed is UTF-8 even if the locale is not.
    text = os.fsencode(given or "").decode("utf-8", "replace")
    if text == "-":
        text = sys.stdin.read()
    if text.strip():
        return text.strip()
    raise UsageError(
        "no problem was given",
        fix='kace solve "What is 6 times 7?", or --file problems.jsonl',
    )


def sent_lines(solution: Solution) -> Iterator[str]:
    """Yield what was sent, each prompt once, and the cards that each tier read."""
    sent: dict[Messages, list[str]] = {}
    for attempt in solution.made:
        name = f"{attempt.tier} {attempt.index + 1}"
        sent.setdefault(attempt.messages, []).append(name)
    for messages, names in sent.items():
        if messages:
            yield f"-- sent to {', '.join(names)}"
            for message in messages:
                text = f"-- {message.role}\n{plain(message.content)}"
                yield textwrap.indent(text, "   ")
            yield ""
    for recall in solution.recalls:
        yield f"-- {recall.tier} {', '.join(recall.cards) or _read_text(recall)}"


def _solve_one(
    problem: Problem, config: Config, as_json: bool, explain: bool
) -> None:
    with RunProgress(1) as progress:
        work = solve_cached([problem], config, observer=progress)
        (solution,) = run_async(work)
    if as_json or explain:
        print(_details(solution, as_json, explain))
    if not as_json:
        if on_terminal() and not explain and solution.working:
            note(f"{solution.working}\n")
        if solution.answer is not None:
            print(plain(solution.answer))
        note(audit_line(solution))
    if solution.answer is None:
        last = solution.made[-1]
        raise KaceError(
            f"no answer: the last of {len(solution.made)} attempts ended in "
            f"{last.detail or last.outcome.value}",
            fix="--explain shows the attempts; a higher --set max_tokens=N or a "
            "stronger --model may help",
        )


def _solve_file(name: str, options: Options, explain: bool) -> None:
    config = options.config()
    path = Path("/dev/stdin") if name == "-" else Path(name)
    problems = load_problems(path, config.fields, options.get("limit"))
    tree = tree_of(config)
    manifest = manifest_of(config, tree)
    ids = "".join(problem.id for problem in problems)
    folder = options.get("out") or default_folder(
        path.stem, manifest, ids.encode()
    )
    prepare(config)
    as_json = options.as_json
    with Run(folder, manifest, texts=config.problem_texts) as run:

        def show(solution: Solution) -> None:
            if as_json or explain:
                whole = with_texts(solution, run.calls)
                print(_details(whole, as_json, explain), flush=True)
            if not as_json:
                print(audit_line(solution), flush=True)

        def show_known(solution: Solution) -> None:
            show(solution)
            progress.recalled(solution)

        with RunProgress(len(problems)) as progress:
            work = solve_into(
                run,
                problems,
                config,
                tree,
                show,
                on_known=show_known,
                observer=progress,
            )
            run_async(work)
    price = config.prices.get(config.model)
    for line in metrics_lines(Table.open(folder).metrics(price)):
        note(line)
    note(f"run          {folder}")


def _details(solution: Solution, as_json: bool, explain: bool) -> str:
    """Return the record as a line of JSON, or every attempt as text."""
    if not as_json:
        return explanation(solution)
    record = solution.model_dump(mode="json")
    record["working"] = solution.working
    if explain:
        record["texts"] = [attempt.text for attempt in solution.made]
        record["messages"] = [
            list(map(asdict, each.messages)) for each in solution.made
        ]
    return json_of(record)


def verdict_of(solution: Solution) -> str:
    """Return `right` or `wrong` if an answer is expected, else nothing."""
    return {None: "", True: "right", False: "wrong"}[solution.correct]


def votes_of(solution: Solution) -> str:
    """Return the answer classes, most supported first, such as `12 x3, 7 x2, none x1`."""
    parts = []
    for found in sorted(solution.classes, key=lambda c: -len(c.positions)):
        parts.append(f"{plain(found.answer, 18)} x{len(found.positions)}")
    answers = [attempt.answer for attempt in solution.attempts]
    if None in answers:
        parts.append(f"none x{answers.count(None)}")
    return ", ".join(parts)


def audit_line(solution: Solution) -> str:
    """Return one line that says how an answer came about."""
    calls = f"{solution.real_calls} calls"
    if solution.cached_calls:
        calls += f" ({solution.cached_calls} from cache)"
    if solution.real_calls != solution.paper_calls:
        calls += f" (paper {solution.paper_calls})"
    reads = []
    for recall in solution.recalls:
        domains = "+".join(recall.domains) or "universal"
        reads.append(f"{recall.tier}:{domains} {_read_text(recall)}")
    usage = solution.usage
    parts = [
        plain(solution.name),
        plain(solution.answer or "no answer", 40),
        verdict_of(solution),
        solution.exit_name,
        votes_of(solution),
        calls,
        ", ".join(reads),
        *solution.policies,
    ]
    if solution.synthesis:
        answer = solution.synthesis.answer or solution.synthesis.outcome.value
        parts.append(f"synthesis {plain(answer, 18)}")
    parts.append(f"{usage.input + usage.output:,} tokens")
    parts.append(f"{solution.seconds:.1f} s")
    return "  ".join(filter(None, parts))


def _read_text(recall: RetrievedContext) -> str:
    """Return what became of the cards that a tier could read."""
    cards = counted(max(recall.eligible, len(recall.cards)), "card")
    if recall.abstained:
        return f"abstained from {cards}"
    return f"shown {len(recall.cards)} of {cards}"


def explanation(solution: Solution) -> str:
    """Return every attempt of a solve with its text: the winner first, then tier by tier.

    What was sent follows, each prompt once.
    """
    lines = []
    winner = solution.winner
    for attempt in sorted(solution.made, key=lambda each: each is not winner):
        lens = attempt.lens or "sampling only"
        if attempt is solution.synthesis:
            lens = "from common facts"
        answer = attempt.outcome.value
        if attempt.answer:
            answer = f"answer {plain(attempt.answer, 60)}"
        lines.append(
            f"-- {attempt.tier} attempt {attempt.index + 1}, {lens}: {answer} "
            f"({attempt.output} tokens, {attempt.seconds:.1f} s)"
        )
        if attempt is winner:
            lines[-1] += ", the winner"
        body = plain(attempt.text or attempt.detail).strip()
        lines.append(textwrap.indent(body, "   ") + "\n")
    lines += sent_lines(solution)
    lines.append(f"-- {solution.exit_name}: {votes_of(solution)}")
    return "\n".join(lines)


def metrics_lines(m: Metrics) -> Iterator[str]:
    """Yield the figures of a run, one per line."""
    yield f"{m.name}: {m.problems} problems, {m.solves} solves, {m.model}"
    if m.accuracy is not None and m.wilson:
        low, high = m.wilson
        yield (
            f"accuracy     {m.accuracy:.1%}   (95 % interval {low:.1%} to {high:.1%}, "
            f"over {counted(m.clusters, m.cluster)})"
        )
    if m.failed:
        yield f"failed       {m.failed} solves lost a call and count as they are"
    yield (
        f"calls        {m.paper_calls:.2f} per problem by the paper's count, "
        f"{m.real_calls:.2f} really made"
    )
    yield (
        f"tokens       {m.input:.0f} in ({m.cached:.0f} cached), "
        f"{m.output:.0f} out, per solve"
    )
    if m.shown or m.abstained:
        yield f"cards        shown on {m.shown:,}, abstained on {m.abstained:,}"
    exits = [f"{path.value} {count}" for path, count in m.exits.items()]
    yield f"exits        {'  '.join(exits)}"
    usd = "unknown" if m.cost.usd is None else f"{m.cost.usd:.4f} USD"
    yield f"cost         {usd}"


def forecast_lines(rows: Sequence[RoleForecast]) -> Iterator[str]:
    """Yield what a run is expected to take, without prefix caches."""
    for row in rows:
        usd = f'price unknown: add [prices."{row.model}"] to kace.toml'
        if row.usd is not None:
            usd = f"{row.usd:.2f} USD"
        tokens = f"{row.input:,.0f} tokens in and {row.output:,.0f} out"
        yield f"{row.role:11} {row.calls:,.0f} calls, {tokens}, {usd}"
    minutes = sum(row.seconds for row in rows) / 60
    yield f"time        about {counted(math.ceil(minutes), 'minute')}"


def side_by_side(
    tree: EpistemicTree, problem: Problem, without: Solution, using: Solution
) -> Iterator[str]:
    """Yield a problem, its answers without and with a tree, and the cards that were read."""
    width = max(shutil.get_terminal_size().columns, 60)
    text = problem.text
    if problem.answer is not None:
        text += f"  Expected: {problem.answer}"
    yield from textwrap.wrap(plain(text), width)
    read: dict[str, None] = {}
    for recall in using.recalls:
        read |= dict.fromkeys(recall.cards)
    title = f"  with {counted(len(read), 'card') if read else 'the tree'}"
    rows = [("  without cards", *_result(without)), (title, *_result(using))]
    yield from aligned(rows, left=4)
    for name in read:
        yield f"    {plain(f'{name}: {tree.card(name).body}', width - 4)}"
    if not using.recalls:
        yield "    both ES attempts agree, so no card is read"
    elif not read:
        yield "    no card fits, so nothing changes"


def _result(solution: Solution) -> tuple[str, str, str]:
    """Return the answer, its verdict, and the attempts of the last tier that gave it."""
    answer = plain(solution.answer or "no answer", 24)
    tiers = [attempt.tier for attempt in solution.attempts]
    agreed = f"no agreement in {len(tiers)} attempts"
    if solution.exit not in FALLBACKS:
        votes = f"{len(solution.agreeing)} of {tiers.count(tiers[-1])}"
        agreed = f"{votes} attempts agree at {tiers[-1]}"
    return answer, verdict_of(solution), agreed
