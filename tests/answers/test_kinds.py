"""Answers that are no mathematics: a text, the letter of an option, a number."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kace.answers.equal import Verdict, settled
from kace.answers.kinds import Subject, options_of, plain_text
from kace.config import AnswerKind

KINDS: tuple[AnswerKind, ...] = ("text", "choice", "number")
FRUIT = "Which is a fruit, by vitamin A. or B. alone?\nA) A carrot\nB) An apple\nC) Vitamin C\nD) Beef"
HOSTILE = st.text(max_size=60) | st.text(alphabet="\\{}[]()$_^.,%0123456789abABxe- \n\ud800\u202e√½", max_size=80)


def same(kind: AnswerKind, left: str, right: str, problem: str = "", tolerance: float = 1e-6) -> bool:
    one, two = (Subject("any", kind, tolerance).read(text, problem) for text in (left, right))
    verdict = settled(one, two)
    assert verdict in (Verdict.SAME, Verdict.DIFFERENT), "no kind but mathematics needs a worker"
    return verdict is Verdict.SAME


def test_letters_commute_in_no_text() -> None:
    assert not same("text", "cat", "act")


@pytest.mark.parametrize(
    "row",
    [
        "New York|new  york|\\text{New York}|\u201cNew York\u201d|New York.|$\\text{New York}$|(new york)|**New York**",
        "H2O|h2o|H_2O|\\text{H}_2\\text{O}|H_{2}O",
        "Straße|STRASSE|strasse",
        "sodium (Na)|(sodium (Na))|[Sodium (Na)]|((sodium (Na)))",
    ],
)
def test_a_text_is_the_same_however_it_is_dressed(row: str) -> None:
    assert len({Subject("any", "text").read(text).key for text in row.split("|")}) == 1


@pytest.mark.parametrize(
    ("left", "right"),
    [("C++", "C"), ("-5", "5"), ("10^2", "102"), ("f(x)", "fx"), ("foo_bar", "foobar"), ("?", "!"), ("(a)(b)", "a)(b")],
)
def test_what_belongs_to_a_text_stays(left: str, right: str) -> None:
    assert not same("text", left, right)


@pytest.mark.parametrize(
    "text",
    ["B", "b", "(B)", "B.", "B) An apple", "(b) an apple", "option b", "The answer is B", r"\text{(B)}", "An apple."],
)
def test_a_choice_is_its_letter(text: str) -> None:
    assert same("choice", text, "B", FRUIT)
    assert not same("choice", text, "A", FRUIT)


@pytest.mark.parametrize("text", ["(A) and (C)", "A, C", "A or B", "neither", "apple"])
def test_no_letter_is_read_where_none_is_chosen(text: str) -> None:
    assert not any(same("choice", text, letter, FRUIT) for letter in "ABCD")


def test_an_option_may_hold_a_letter_or_begin_with_an_article() -> None:
    assert same("choice", "Vitamin C", "C", FRUIT)
    assert same("choice", "C) Vitamin C", "C", FRUIT)
    assert same("choice", "A carrot", "A", FRUIT)
    assert options_of("Pick: (A) red (B) blue (C) green") == {"A": "red", "B": "blue", "C": "green"}
    assert options_of("Vitamin A. and no list") == {}


@pytest.mark.parametrize(
    "row",
    [
        r"9.81|9.81 m/s^2|9.81\,\text{m/s}^2|about 9.81|\approx 9.81|981/100|9.81000001",
        r"1234.5|1,234.5|1234.5 kg|$1,234.50|\$1234.5|1.2345e3|1.2345\times 10^3 J",
        r"45|45%|45\%|45 percent|45.0",
        r"-3.2|−3.2 °C|-3.2|-16/5",
        r"6.283185307|2\pi",
    ],
)
def test_a_number_is_the_same_with_and_without_its_unit(row: str) -> None:
    first, *others = row.split("|")
    assert all(same("number", first, other) for other in others)


@pytest.mark.parametrize(
    ("left", "right"), [("5", "5.1"), ("5 or 6", "5"), ("5 apples and 3 pears", "5"), ("0", "1e-9"), ("cat", "act")]
)
def test_other_numbers_and_what_is_none_are_different(left: str, right: str) -> None:
    assert not same("number", left, right)


def test_the_tolerance_is_relative_and_only_that_wide() -> None:
    assert same("number", "1000", "1009", tolerance=0.01)
    assert not same("number", "1000", "1011", tolerance=0.01)
    assert not same("number", "1000", "1000.0001", tolerance=0)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None)
@given(left=HOSTILE, right=HOSTILE)
def test_every_kind_is_symmetric_reflexive_and_never_raises(kind: AnswerKind, left: str, right: str) -> None:
    assert same(kind, left, left, right)
    assert same(kind, left, right, FRUIT) == same(kind, right, left, FRUIT)


@settings(deadline=None)
@given(HOSTILE)
def test_the_plain_text_is_its_own(text: str) -> None:
    assert plain_text(plain_text(text)) == plain_text(text)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("piece", ["\\text{", "(", "1,", "A) ", "$", "9e9^", "{_", "x 10^{"])
def test_a_long_answer_equals_only_itself(kind: AnswerKind, piece: str) -> None:
    long = piece * 20_000
    assert same(kind, long, long)
    assert not same(kind, long, long + "7")


@settings(deadline=None)
@given(
    st.floats(min_value=-1e9, max_value=1e9, allow_subnormal=False),
    st.sampled_from(["", " m", " kg/m^3", r"\text{ s}", "%"]),
)
def test_a_float_is_read_back(value: float, unit: str) -> None:
    assert same("number", repr(value) + unit, f"{value:.12g}")
