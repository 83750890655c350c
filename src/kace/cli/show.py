"""How solves look in a terminal. Text that came from outside is stripped of control characters first."""

from __future__ import annotations

import re
from collections.abc import Callable

from kace.solver.attempt import Outcome
from kace.solver.summary import Summary
from kace.solver.tiers import LOCKED, ExitPath
from kace.solver.trace import AttemptRecord, SolveRecord

ESCAPES = re.compile(r"\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)|\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])")
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


def plain(text: str, limit: int | None = None) -> str:
    """Text safe to print: no escape sequences, no overwriting, no reordering; cut to `limit` characters."""
    text = CONTROLS.sub("", ESCAPES.sub("", text))
    if limit is not None:
        text = " ".join(text.split())
        if len(text) > limit:
            text = text[: limit - 1] + "…"
    return text


def path_of(record: SolveRecord) -> str:
    """The tiers climbed, such as `ES>MS`."""
    tiers = [tier.name.value for tier in LOCKED if any(a.tier is tier.name for a in record.attempts)]
    return ">".join(tiers) + ("!" if record.exit_name.startswith("fallback") else "")


def votes_of(record: SolveRecord, limit: int = 4) -> str:
    """The answer classes with their support, most supported first, such as `12 x3, 7 x2, none x1`."""
    classes = sorted(record.classes, key=lambda c: (-len(c.positions), c.positions[0]))
    parts = [f"{plain(c.answer, 18)} x{len(c.positions)}" for c in classes[:limit]]
    if len(classes) > limit:
        parts.append(f"{len(classes) - limit} more")
    silent = sum(a.answer is None and a.outcome is not Outcome.CANCELLED for a in record.attempts)
    if silent:
        parts.append(f"none x{silent}")
    return ", ".join(parts)


def verdict_of(record: SolveRecord) -> str:
    """`right`, `wrong`, or nothing where no answer is expected."""
    if record.correct is None:
        return ""
    return "right" if record.correct else "wrong"


def recalls_of(record: SolveRecord) -> str:
    """The blocks read, with cards and tokens, such as `MS:geometry 3 of 9 cards ~410 tokens`."""
    parts = []
    for recall in record.recalls:
        domains = "+".join(recall.domains) or "universal only"
        shown, mark = len(recall.cards), "~" if recall.estimated else ""
        cards = f"{shown} of {recall.eligible} cards" if shown < recall.eligible else f"{shown} cards"
        parts.append(f"{recall.tier}:{domains} {cards} {mark}{recall.tokens} tokens")
    return ", ".join(parts)


def synthesis_of(record: SolveRecord) -> str:
    """What came of the attempt from common facts, where one was made."""
    attempt = record.synthesis
    if attempt is None:
        return ""
    return f"synthesis {plain(attempt.answer, 18) if attempt.answer else attempt.outcome.value}"


def audit_line(record: SolveRecord) -> str:
    """One line that says how an answer came about."""
    tokens = sum(a.input + a.output for a in record.made)
    kept = sum(a.from_cache for a in record.made)
    calls = f"{record.real_calls} calls" + (f" ({kept} from cache)" if kept else "")
    if record.real_calls != record.paper_calls:
        calls += f" (paper {record.paper_calls})"
    parts = [
        plain(record.label or record.problem[:8]),
        plain(record.answer, 40) if record.answer else "no answer",
        verdict_of(record),
        record.exit_name,
        votes_of(record),
        calls,
        recalls_of(record),
        synthesis_of(record),
        f"{tokens:,} tokens",
        f"{record.seconds:.1f} s",
    ]
    return "  ".join(part for part in parts if part)


def explanation(record: SolveRecord, text_of: Callable[[AttemptRecord], str]) -> str:
    """Every attempt of a solve, tier by tier, with its text."""
    lines = []
    for attempt in record.made:
        lens = "from common facts" if attempt is record.synthesis else attempt.lens or "sampling only"
        answer = f"answer {plain(attempt.answer, 60)}" if attempt.answer else attempt.outcome.value
        lines.append(
            f"-- {attempt.tier} attempt {attempt.index + 1}, {lens}: {answer}"
            f" ({attempt.output} tokens, {attempt.seconds:.1f} s)"
        )
        body = text_of(attempt) or attempt.detail
        lines += [f"   {line}" for line in plain(body).strip().splitlines()]
        lines.append("")
    for recall in record.recalls:
        lines.append(f"-- {recall.tier} read {', '.join(recall.cards) or 'no card'}")
    lines.append(f"-- {record.exit_name}: {votes_of(record, limit=10)}")
    if record.synthesis:
        lines.append(f"-- {synthesis_of(record)}")
    return "\n".join(lines)


def summary_lines(summary: Summary, seconds: float) -> list[str]:
    """The figures of a run, one a line."""
    n = summary.problems or 1
    lines = []
    if summary.accuracy is not None:
        low, high = summary.interval
        lines.append(
            f"accuracy     {summary.correct} of {summary.labelled} = {summary.accuracy:.1%}"
            f"   (95 % interval {low:.1%} to {high:.1%})"
        )
    exits = ", ".join(f"{path.value} {summary.exits[path]}" for path in ExitPath if summary.exits[path])
    lines.append(f"exits        {exits}")
    lines.append(
        f"calls        {summary.paper_calls / n:.2f} a problem by the paper's count,"
        f" {summary.real_calls / n:.2f} really made"
        + (f" ({summary.cached_calls} of {summary.real_calls} read from disk)" if summary.cached_calls else "")
    )
    if summary.finished:
        right = f", {summary.finished_right} right" if summary.labelled else ""
        lines.append(f"synthesis    {summary.finished} problems answered from common facts{right}")
    usage = summary.usage
    lines.append(f"tokens       {usage.input:,} in ({usage.cached:,} cached), {usage.output:,} out")
    if summary.fresh_output and seconds > 0:
        lines.append(f"speed        {summary.fresh_output / seconds:,.0f} output tokens/s over {seconds:.0f} s")
    if stopped := summary.outcomes[Outcome.CANCELLED]:
        lines.append(f"early stop   {stopped} attempts cancelled that could not change the outcome")
    silent = [o for o in Outcome if o not in (Outcome.ANSWERED, Outcome.CANCELLED)]
    failures = {outcome: summary.outcomes[outcome] for outcome in silent if summary.outcomes[outcome]}
    if failures:
        listed = ", ".join(f"{outcome.value} {count}" for outcome, count in failures.items())
        lines.append(f"no answer    {listed} (attempts; they count and vote for nothing)")
    return lines
