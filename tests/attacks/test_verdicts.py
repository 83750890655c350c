"""The verdict table: pairs of answers, what the judge must say of each in either order, and why."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from kace.answers.equal import Judge, Verdict
from kace.answers.extract import Answer


class Row(NamedTuple):
    answer: str
    other: str
    verdict: str
    reason: str


TABLE = Path(__file__).with_name("verdicts.tsv").read_text(encoding="utf-8")
ROWS = [Row(*line.split("\t")) for line in TABLE.strip("\n").split("\n")]


def test_the_table_is_large_says_why_and_repeats_nothing() -> None:
    assert len(ROWS) >= 600
    assert {row.verdict for row in ROWS} == {"same", "different"}
    assert all(row.reason for row in ROWS)
    twice = Counter(frozenset(row[:2]) for row in ROWS)
    assert [pair for pair, times in twice.items() if times > 1 or len(pair) < 2] == []


def test_every_pair_gets_its_verdict_in_either_order() -> None:
    async def judged() -> list[tuple[Verdict, Verdict]]:
        async with Judge(workers=1, seconds=60) as judge:
            pairs = [(Answer.of(row.answer), Answer.of(row.other)) for row in ROWS]
            return [(await judge(one, two), await judge(two, one)) for one, two in pairs]

    found = asyncio.run(judged())
    wrong = [(*row, *both) for row, both in zip(ROWS, found, strict=True) if {row.verdict} != set(both)]
    assert wrong == []
