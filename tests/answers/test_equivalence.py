"""Verdicts: what is the same, what is not, in either order, and nothing chains."""

from __future__ import annotations

import asyncio
import gzip
import json
import math
import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kace.answers.equal import Judge, Verdict, settled, too_large
from kace.answers.extract import Answer, last_boxed
from kace.ladder.tiers import group

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
ATTEMPTS = DATA / "attempts_qwen2.5-coder-1.5b_math_l45_train200.jsonl.gz"
EXPECTED = DATA / "math_l45_train.jsonl"
DISAGREEMENTS = DATA / "judge_disagreements.tsv"

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


LOOP = asyncio.Runner()
JUDGE = Judge(workers=1, seconds=60)


@pytest.fixture(scope="module", autouse=True)
def close_judge() -> Iterator[None]:
    yield
    LOOP.run(JUDGE.aclose())
    LOOP.close()


def judged(pairs: Iterable[tuple[str, str]]) -> list[Verdict]:
    async def run() -> list[Verdict]:
        async with Judge(seconds=20) as judge:
            return [await judge(Answer.of(left), Answer.of(right)) for left, right in pairs]

    return asyncio.run(run())


def test_what_is_too_large_is_refused() -> None:
    pairs = [pair.split("|") for pair in REFUSED]
    both = [(left, right) for left, right in pairs] + [(right, left) for left, right in pairs]
    assert set(judged(both)) <= {Verdict.REFUSED, Verdict.DIFFERENT}


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
        @given(ANSWERS, ANSWERS)
        def judge_both(left: str, right: str) -> None:
            one, two = Answer.of(left), Answer.of(right)
            assert loop.run(there(one, one)) is loop.run(back(two, two)) is Verdict.SAME
            assert loop.run(there(one, two)) is loop.run(back(two, one))

        judge_both()
        for judge in (there, back):
            loop.run(judge.aclose())


# What each makes of a number is another answer, whatever the number is.
CHANGES = [
    "0 <= x <= %s", "%s <= x <= 1000", "x > %s", r"x=0 \quad y=%s", r"x=0 \\ y=%s", "x=0 & y=%s", "x=0 y=%s",
    r"x=0 \Rightarrow y=%s", r"x=0 \land y=%s", r"x=0\text{ if }y=%s", "0=1=%s", "x=0=%s", "x+y=%s", "%s, %s",
    "0,%s", "0%%%s", "1{%s}", r"\mathbf{1}%s", "{%s}1", r"\boxed{0}\boxed{%s}", "-%s", "%s!", "%s'", "(%s, 0)",
    r"%s\text{ pi}", r"%s\text{ lakh}", r"%s\text{ dozen}", r"%s\text{ or more}", r"%s\text{ July}", "%s pct",
    r"\sqrt{%s}", "|x|=%s", "%s_{x}", "x_{%s}", "[0, %s]", r"\begin{pmatrix}1\\%s\end{pmatrix}", "%s x", "x%s",
    "x=y, y=%s", r"x=0 \text{ when } y=%s", r"x=0 \lor y=%s", "1!%s", r"x \equiv y=%s", r"0 \mid x \mid %s",
    r"\infty=%s", "%s..0", r"%s\text{ M}", r"%s\text{ hours and }1\text{ minute}", "%sth", "2020-06-%s",
    r"\text{at least }%s", r"\frac{%s}{0}", r"\overline{%s}", r"%s\pmod{2}", r"\binom{%s}{2}x", "1 %s/1000",
]  # fmt: skip
UNKNOWN_WORDS = st.text("bdfjpqvxz", min_size=2, max_size=9)


@settings(deadline=None)
@given(st.integers(3, 999), st.sampled_from(CHANGES))
def test_what_changes_an_answer_never_equals_it(number: int, change: str) -> None:
    text = change % tuple([number] * change.count("%s"))
    verdict = LOOP.run(JUDGE(Answer.of(text), Answer.of(str(number))))
    assert verdict is not Verdict.SAME


@given(st.integers(0, 999), UNKNOWN_WORDS)
def test_an_unknown_word_is_no_unit(number: int, word: str) -> None:
    dressed = Answer.of(rf"{number}\text{{ {word}}}")
    assert settled(dressed, Answer.of(str(number))) is Verdict.DIFFERENT


@given(st.integers(-999, 999), st.integers(-999, 999), st.sampled_from(DRESSES))
def test_other_numbers_dressed_alike_are_different(one: int, two: int, dress: str) -> None:
    verdict = settled(Answer.of(dress % one), Answer.of(dress % two))
    assert (verdict is Verdict.SAME) == (one == two)


STATED = ["5", "x=5", "y=5", "5 cm", "5 km", "x=5 cm", "y=5 km", "5=x", "2y=10", "10/2=5", r"\{5\}", "1,3", "x=1, y=3"]
STATED += ["x=3, y=1", "y=3, x=1", "(1,3)", "(3,1)", "x_1=1, x_2=3", "3,1", r"x^2-1", "(x-1)(x+1)", "y=x^2-1"]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from(STATED), max_size=10), st.randoms())
def test_the_order_of_arrival_makes_no_other_classes(texts: list[str], random: Random) -> None:
    def classes(order: list[str]) -> set[tuple[str, ...]]:
        found = LOOP.run(group([Answer.of(text) for text in order], same))
        return {tuple(sorted(order[place] for place in each.positions)) for each in found}

    async def same(left: Answer, right: Answer) -> bool:
        return await JUDGE(left, right) is Verdict.SAME

    other = texts[:]
    random.shuffle(other)
    assert classes(texts) == classes(other)


FIRST = {"": 1, "2": 2, "3!": 6, r"\binom{4}{2}": 6}
FACTORS = {"(3)": 3, r"(\frac{1}{2})": Fraction(1, 2), r"\binom{5}{2}": 10, r"\lfloor3.5\rfloor": 3, r"\sqrt[3]{8}": 2}


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(sorted(FIRST)), st.lists(st.sampled_from(sorted(FACTORS)), min_size=1, max_size=3))
def test_factors_side_by_side_are_multiplied(first: str, others: list[str]) -> None:
    value = FIRST[first] * math.prod(FACTORS[other] for other in others)
    root = r"\sqrt{2}"
    text = first + "".join(others) + root
    assert LOOP.run(JUDGE(Answer.of(text), Answer.of(f"({value})" + root))) is Verdict.SAME
    assert LOOP.run(JUDGE(Answer.of(text), Answer.of(f"({value + 1})" + root))) is Verdict.DIFFERENT


def test_a_unit_or_a_name_may_be_left_out_and_two_must_agree() -> None:
    bare, hours, minutes, x, y = (Answer.of(text) for text in ("5", "5 hours", "5 minutes", "x=5", "y=5"))
    assert all(settled(bare, stated) is Verdict.SAME for stated in (hours, minutes, x, y))
    assert settled(hours, minutes) is settled(x, y) is Verdict.DIFFERENT
    assert settled(hours, x) is Verdict.SAME  # they speak of different things


@pytest.mark.parametrize("space", [" ", "\n", "~", r"\,", r"\ ", "$"])
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
            assert len(judge._processes) <= 2
            return [task.result() for task in tasks]

    expected = [Verdict.SAME if left == right else Verdict.DIFFERENT for left, right in product(powers, powers)]
    assert asyncio.run(run()) == expected


@pytest.mark.parametrize(
    "latex", [r"x^{2005}", r"\binom{n}{2}", r"n!", r"e^{x^{2}}", "7" * 256, r"\frac{4002}{3^{503}}"]
)
def test_ordinary_answers_are_not_too_large(latex: str) -> None:
    assert not too_large(latex)


def disagreements() -> list[tuple[str, str, str]]:
    """Return prediction, gold and verdict of what other projects' tests found wrong."""
    if not DISAGREEMENTS.exists():
        pytest.skip(f"the disagreements with other suites are not at {DISAGREEMENTS}")
    rows = [line.split("\t") for line in DISAGREEMENTS.read_text(encoding="utf-8").splitlines()[1:]]
    return [(written(row[3]), written(row[4]), row[7]) for row in rows]


def written(text: str) -> str:
    """Return what is boxed in a reply, or set between its last dollars."""
    boxed = last_boxed(text)
    if boxed is None:
        formulas = re.findall(r"\$([^$]+)\$", text)
        boxed = formulas[-1] if formulas else text
    return boxed


def test_what_other_suites_found_wrong_is_right() -> None:
    rows = disagreements()
    found = judged(pair for left, right, _ in rows for pair in ((left, right), (right, left)))
    wrong = []
    for place, row in enumerate(rows):
        # A rounded decimal is another number: the last two rows are kept apart on purpose.
        rounded = re.fullmatch(r"242801\.617498324|9\.99999999999999", row[1])
        expected = "different" if rounded else row[2]
        if {expected} != {verdict.value for verdict in found[2 * place : 2 * place + 2]}:
            wrong.append(row)
    assert wrong == []


def test_boxes_and_verdicts_agree_with_the_recorded_ones_on_real_answers() -> None:
    """Every one of the 1,908 recorded verdicts of plain math-verify against the expected answer, without exception."""
    if not ATTEMPTS.exists() or not EXPECTED.exists():
        pytest.skip(f"recorded attempts are not in {DATA}")
    with EXPECTED.open(encoding="utf-8") as lines:
        expected = {row["id"]: row["answer"] for row in map(json.loads, lines)}
    with gzip.open(ATTEMPTS, "rt", encoding="utf-8") as lines:
        rows = list(map(json.loads, lines))
    assert len(rows) == 2_000
    assert all(last_boxed(row["text"]) == ((row["boxed"] or "").strip() or None) for row in rows)
    rows = [row for row in rows if row["boxed"]]
    found = judged((expected[row["problem_id"]], row["boxed"]) for row in rows)
    assert len(found) == 1_908
    disagreements = [
        (expected[row["problem_id"]], row["boxed"], verdict.value)
        for row, verdict in zip(rows, found, strict=True)
        if verdict is not (Verdict.SAME if row["correct"] else Verdict.DIFFERENT)
    ]
    assert disagreements == []
