"""Verdicts: what is the same, what is not, in either order, and nothing chains."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterable
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kace.answers.equal import Judge, Verdict, settled, too_large
from kace.answers.extract import Answer

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
ATTEMPTS = DATA / "attempts_qwen2.5-coder-1.5b_math_l45_train200.jsonl.gz"
EXPECTED = DATA / "math_l45_train.jsonl"

SAME = [
    r"x=3, y=4|(3,4)",
    r"\cos^2 t|1-\sin^2 t",
    r"\frac{1}{1+\tan^2 t}|\cos^2 t",
    r"\sqrt{3+2\sqrt2}|1+\sqrt2",
    r"\sin 30^\circ|\frac12",
    r"\log_2 8|3",
    r"42x\sqrt{5x}|42\sqrt5x^{3/2}",
    r"y=2x+3|2x-y+3=0",
    r"y=2x+3|2x+3",  # an explicit equation is also read as its right side
    r"2x+4y=6|x+2y=3",
    r"xy=1|y=\frac1x",
    r"s^2 \le 8r^2|8r^2 \ge s^2",
    r"3:4|\frac34",
    r"x<3|(-\infty,3)",
    r"A|A",
]
DIFFERENT = [
    r"1/2^99|1/2^98",
    r"3x-y+13=0|3x+4y+14=0",
    r"3*x-1*y+13=0|3x+4y+14=0",
    r"4|4\sqrt(2)",
    r"99999999999|100000000000",
    r"50\%|50",
    r"2h|2",
    r"e|E",
    r"\ln 2|0.693147",
    r"\sin 30|\sin 30^\circ",
    r"e^{-1000}|e^{-2000}",
    r"e^{-1000}|0",
    r"1/2^{9000}|1/2^{8999}",
    r"x^2+y^2=-1|x^2+y^2=-2",  # equally without real solutions, still not one equation
    r"x^2+1=x^2+2|1=3",
    r"x^2<-1|x^2<-2",
    r"s^2 \le 8r^2|s^2 \ge 8r^2",
    r"x+i|x-i",
    r"5\text{ AM}|5\text{ PM}",
    r"1,2,\ldots|1,2",
    r"(1,2)|\{1,2\}",
    r"(1,2)|\begin{pmatrix}1\\2\end{pmatrix}",
    r"\emptyset|0",
    r"\text{no solution}|0",
    r"e^{i\pi}|-1",  # math-verify cannot see it; we do not claim it
    r"\sqrt{1/n}|1/\sqrt{n}",  # equal for positive n only
    r"1/2\pi|\frac{\pi}{2}",  # two readings: never merged with either
]
REFUSED = [
    r"1/2004!|1/2006!",
    r"9^{9^{9}}|9^{9^{8}}",
    r"2^{10^{10}}|1",
    r"(10^7)!|1",
    r"10000000!|1",
    r"\binom{10000000}{5000000}|1",
    "x" + "(" * 30 + "1" + ")" * 30 + "|1",
    r"\log " + "7" * 300 + "|1",
    "x" * 2_001 + "|1",
]


def judged(pairs: Iterable[tuple[str, str]]) -> list[Verdict]:
    async def run() -> list[Verdict]:
        async with Judge(seconds=20) as judge:
            return [await judge(Answer.of(left), Answer.of(right)) for left, right in pairs]

    return asyncio.run(run())


def test_the_ladder_says_what_we_say() -> None:
    cases = [(pair, verdict) for verdict, pairs in VERDICTS.items() for pair in pairs]
    pairs = [tuple(pair.split("|")) for pair, _ in cases]
    both = [(left, right) for left, right in pairs] + [(right, left) for left, right in pairs]
    found = judged(both)
    expected = [verdict for _, verdict in cases] * 2
    assert [case for case in zip(both, found, expected, strict=True) if case[1] is not case[2]] == []


VERDICTS = {Verdict.SAME: SAME, Verdict.DIFFERENT: DIFFERENT, Verdict.REFUSED: REFUSED}


def test_half_fifty_percent_and_fifty_never_chain() -> None:
    answers = [Answer.of(text) for text in ("0.5", r"50\%", "1/2", "50")]
    assert [settled(answers[0], other) for other in answers] == [Verdict.SAME] * 3 + [Verdict.DIFFERENT]
    assert [settled(answers[3], other) for other in answers] == [Verdict.DIFFERENT] * 3 + [Verdict.SAME]


TEXTS = st.sampled_from(
    [pair_side for pairs in (SAME, DIFFERENT) for pair in pairs for pair_side in pair.split("|")]
    + ["0.5", r"\frac12", r"50\%", "1,2", "2, 1", r"\{1,2\}", "x<3", "A", "(A)"]
)


@given(TEXTS, TEXTS, TEXTS)
def test_keys_are_an_equivalence_and_settled_verdicts_respect_them(a: str, b: str, c: str) -> None:
    x, y, z = Answer.of(a), Answer.of(b), Answer.of(c)
    assert settled(x, x) is Verdict.SAME
    assert settled(x, y) is settled(y, x)
    if x.exact and y.exact and z.exact and settled(x, y) is settled(y, z) is Verdict.SAME:
        assert settled(x, z) is Verdict.SAME


VALUES = st.builds(
    str.format,
    st.sampled_from(
        ["{0}", "-{0}", "0.{0}", "{0}/{1}", r"\frac{{{0}}}{{{1}}}", r"\sqrt{{{0}}}", "{0}e", r"{0}\pi", "{0}+{1}i"]
    ),
    st.integers(1, 99),
    st.integers(1, 99),
)
LISTS = st.lists(VALUES, min_size=1, max_size=3).map(",".join)
STRUCTURES = st.recursive(
    VALUES,
    lambda inner: st.builds(
        str.format,
        st.sampled_from([r"\{{{0}, {1}\}}", "({0}, {1})", "[{0}, {1})", "{0}, {1}", r"\{{{0}\}}", "{0}, {0}, {1}"]),
        inner,
        inner,
    ),
    max_leaves=5,
)
DRESSES = [
    r"\text{%s}",
    r"\mathrm{%s}",
    r"\boxed{%s}",
    "$%s$",
    "x=%s",
    "y=%s",
    r"%s\text{ hours}",
    r"%s\text{ minutes}",
]
DRESSES += [r"\$%s", "£%s", r"%s^\circ", r"%s\%%", r"%s\pmod 7", "f'(%s)", "x<%s", r"\not=%s", "%s...", "%s"]
ANSWERS = st.builds(lambda dress, text: dress % text, st.sampled_from(DRESSES), STRUCTURES | LISTS)


@settings(deadline=None)
@given(ANSWERS, ANSWERS)
def test_what_needs_no_algebra_is_symmetric_and_every_answer_is_itself(left: str, right: str) -> None:
    one, two = Answer.of(left), Answer.of(right)
    assert settled(one, Answer.of(left)) is Verdict.SAME
    assert settled(one, two) is settled(two, one)


def test_the_judge_is_symmetric_and_every_answer_is_itself() -> None:
    """With algebra: a new judge for each order, so that nothing is remembered of the other."""
    with asyncio.Runner() as loop:
        there, back = Judge(workers=1, seconds=60), Judge(workers=1, seconds=60)

        @settings(deadline=None, max_examples=60)
        @given(ANSWERS | TEXTS, ANSWERS | TEXTS)
        def judge_both(left: str, right: str) -> None:
            one, two = Answer.of(left), Answer.of(right)
            assert loop.run(there(one, one)) is loop.run(back(two, two)) is Verdict.SAME
            assert loop.run(there(one, two)) is loop.run(back(two, one))

        judge_both()
        for judge in (there, back):
            loop.run(judge.aclose())


@given(st.integers(-999, 999), st.integers(-999, 999), st.sampled_from(DRESSES))
def test_other_numbers_dressed_alike_are_different(one: int, two: int, dress: str) -> None:
    verdict = settled(Answer.of(dress % one), Answer.of(dress % two))
    if "pmod" in dress:
        assert (verdict is Verdict.SAME) == ((one - two) % 7 == 0)
    else:
        assert (verdict is Verdict.SAME) == (one == two)


def test_a_unit_or_a_name_may_be_left_out_and_two_must_agree() -> None:
    bare, hours, minutes, x, y = (Answer.of(text) for text in ("5", "5 hours", "5 minutes", "x=5", "y=5"))
    assert all(settled(bare, stated) is Verdict.SAME for stated in (hours, minutes, x, y))
    assert settled(hours, minutes) is settled(x, y) is Verdict.DIFFERENT
    assert settled(hours, x) is Verdict.SAME  # they speak of different things


@pytest.mark.parametrize("space", [" ", "\n", "~", r"\,", r"\ ", r"\quad ", "$"])
def test_a_box_full_of_spaces_is_read_as_one_space(space: str) -> None:
    many = 1_900 // len(space)
    assert Answer.of(f"3{space * many}1/2").key == Answer.of("3 1/2").key
    assert Answer.of(rf"\text{{no{space * many}solution}}").key == Answer.of("no solution").key


def test_verdicts_are_remembered_for_a_pair_in_either_order() -> None:
    async def run() -> None:
        async with Judge(seconds=20) as judge:
            left, right = Answer.of(r"\cos^2 t"), Answer.of(r"1-\sin^2 t")
            assert await judge(left, right) is Verdict.SAME
            await judge.aclose()  # whatever is answered now was remembered
            assert await judge(right, left) is Verdict.SAME
            assert await judge(left, Answer.of(r"\log_2 8")) is Verdict.REFUSED

    asyncio.run(run())


def test_many_comparisons_at_once_share_few_workers() -> None:
    powers = (1, 2, 3, 4, 5, 6)

    async def run() -> list[Verdict]:
        async with Judge(workers=2, seconds=20) as judge:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(judge(Answer.of(rf"\log_2 {2**left}"), Answer.of(str(right))))
                    for left, right in product(powers, powers)
                ]
            assert len({worker._process for worker in judge._workers if worker._process}) <= 2
            return [task.result() for task in tasks]

    expected = [Verdict.SAME if left == right else Verdict.DIFFERENT for left, right in product(powers, powers)]
    assert asyncio.run(run()) == expected


@pytest.mark.parametrize(
    "latex", [r"x^{2005}", r"\binom{n}{2}", r"n!", r"e^{x^{2}}", "7" * 256, r"\frac{4002}{3^{503}}"]
)
def test_ordinary_answers_are_not_too_large(latex: str) -> None:
    assert not too_large(latex)


def test_our_verdicts_agree_with_the_recorded_ones_on_real_answers() -> None:
    """Every one of the 1,908 recorded verdicts of plain math-verify against the expected answer, without exception."""
    if not ATTEMPTS.exists() or not EXPECTED.exists():
        pytest.skip(f"recorded attempts are not in {DATA}")
    with EXPECTED.open(encoding="utf-8") as lines:
        expected = {row["id"]: row["answer"] for row in map(json.loads, lines)}
    with gzip.open(ATTEMPTS, "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["boxed"]]
    found = judged((expected[row["problem_id"]], row["boxed"]) for row in rows)
    assert len(found) == 1_908
    disagreements = [
        (expected[row["problem_id"]], row["boxed"], verdict.value)
        for row, verdict in zip(rows, found, strict=True)
        if verdict is not (Verdict.SAME if row["correct"] else Verdict.DIFFERENT)
    ]
    assert disagreements == []
