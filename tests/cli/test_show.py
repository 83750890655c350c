"""What reaches the terminal is safe to print and says how an answer came about."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kace.answers.equal import Judge
from kace.cli.solve import audit_line, explanation, metrics_lines, votes_of
from kace.cli.terminal import RunProgress
from kace.config import load_config
from kace.errors import plain
from kace.ladder.ladder import Kit
from kace.ladder.ladder import solve as solve_on_ladder
from kace.ladder.record import Solution
from kace.ladder.tiers import LOCKED, Tier
from kace.models.scripted import Scripted
from kace.problems import Problem
from kace.runs.table import Table, row_of


def record(script, expected: str | None = "1", label: str = "p1", tiers: Sequence[Tier] = LOCKED) -> Solution:
    async def given(problem: Problem) -> Sequence[Tier]:
        return tiers

    async def work() -> Solution:
        async with Judge() as judge:
            kit = Kit(Scripted(script), judge, load_config(env={}).tier_sampling(), tiers=given)
            return await solve_on_ladder(Problem(f"How much is {label}?", expected, label), kit)

    return asyncio.run(work())


@pytest.mark.parametrize(
    "attack",
    ["\x1b[2J", "\x1b]8;;http://evil\x07x\x1b]8;;\x07", "\x1b]52;c;cm0gLXJm\x07", "\a\r", "\x9b2J", "\u202e", "\x00"],
)
def test_escape_sequences_never_reach_the_terminal(attack: str):
    shown = plain(f"a{attack}b")
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c == "\u202e" for c in shown)
    assert shown.startswith("a") and shown.endswith("b")


@given(st.text())
def test_plain_text_is_printable_and_plain_again(text: str):
    once = plain(text)
    assert plain(once) == once
    assert len(plain(text, 10)) <= 10


def test_a_hostile_answer_and_label_are_stripped_everywhere():
    evil = "\x1b[31m1\x1b]52;c;eA==\x07"
    solved = record(lambda _: f"\\boxed{{{evil}}}", label="p\x1b[2J1")
    texts = [audit_line(solved), votes_of(solved), explanation(solved)]
    assert all("\x1b" not in text and "\x07" not in text for text in texts)


def test_the_audit_line_says_exit_votes_calls_tokens_and_seconds():
    line = audit_line(record(lambda _: "\\boxed{1}"))
    for part in ("p1", "right", "es_unanimous", "1 x2", "2 calls", "tokens", " s"):
        assert part in line
    assert "\n" not in line


def test_missing_answers_are_in_the_votes():
    silent = record(lambda _: "none", label="")
    assert votes_of(silent) == "none x10"
    assert "no answer" in audit_line(silent)
    assert "wrong" in audit_line(silent)


def test_a_climb_that_began_above_es_is_told_as_it_went():
    above = record(lambda _: "none", tiers=LOCKED[1:])
    assert votes_of(above) == "none x8"
    assert "8 calls" in audit_line(above) and "paper" not in audit_line(above)


def test_the_figures_have_interval_exits_both_calls_and_tokens():
    solutions = [record(lambda _, answer=answer: answer, label=answer) for answer in ("\\boxed{1}", "no")]
    table = Table.of([row_of(solution) for solution in solutions], name="run")
    text = "\n".join(metrics_lines(table.metrics()))
    assert "50.0%" in text and "95 % interval 9.5% to 90.5%" in text
    assert "es_unanimous 1" in text and "fallback_last_hs 1" in text
    assert "6.00 per problem by the paper's count, 6.00 really made" in text
    assert re.search(r"tokens +\d+ in \(\d+ cached\), \d+ out", text)


def test_the_line_that_says_how_a_run_goes_counts_attempts_and_tokens():
    solution, progress = record(lambda request: r"It is \boxed{1}."), RunProgress(1)
    for attempt in solution.made:
        progress.attempted(Problem("How much?"), attempt)
    progress.solved(solution)
    tokens = sum(attempt.input + attempt.output for attempt in solution.made)
    assert tokens > 20
    assert progress.status().startswith(f"1 of 1 solved, 1 known to be right, 2 attempts, {tokens} tokens")


def test_progress_gives_the_time_left_from_what_was_made_now():
    solution, progress = record(lambda request: r"It is \boxed{1}."), RunProgress(10)
    for _ in range(4):
        progress.recalled(solution)
    assert "left" not in progress.status(), "nothing was made yet"
    progress.began -= 60
    progress.solved(solution)
    assert progress.status().endswith(", about 0:05:00 left")
