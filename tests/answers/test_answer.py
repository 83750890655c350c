"""Reading answers: what is boxed, what has a value, what is stated beside it."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kace.answers.equal import Verdict, settled
from kace.answers.extract import MAX_ANSWER_CHARS, Answer, last_boxed
from kace.answers.kinds import MATHEMATICS


@pytest.mark.parametrize(
    "text",
    [
        r"1/2\pi",  # (1/2)pi or 1/(2pi)?
        r"\sqrt12",  # the root of 12, or of 1?
        "1{2}",
        "5 121/144",
        "x=1, y=2, 3",
        "y=2x+3",
        "e^{2}",
        "f(x)",
        r"9^{9^{9}}",
        "10000000!",
        r"\frac{1}{0}",
        "0^0",
        "19_7",
        "",
        r"\text{}",
        "2e-1",
        "1, 2, 3, \\ldots",
    ],
)
def test_what_is_ambiguous_undefined_or_too_large_is_not_exact(text: str) -> None:
    assert not Answer.of(text).exact


def test_an_answer_keeps_what_the_model_wrote() -> None:
    answer = Answer.of("  \\dfrac12 ")
    assert (answer.text, answer.value) == (r"\dfrac12", Fraction(1, 2))


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("x=5", ("x", "")),
        (r"5\text{ cm}^2", ("", "cm 2")),
        (r"5\text{ square cm}", ("", "cm 2")),
        ("60 mph", ("", "mi / h")),
        (r"60\text{ miles per hour}", ("", "mi / h")),
        (r"\$5", ("", "dollar")),
        ("60°", ("", "deg")),
        (r"12\text{ square units}", ("", "")),
        ("y=1, x=2", ("(x, y)", "")),
        (r"\text{Area}=5", ("", "")),
    ],
)
def test_the_unknown_and_the_unit_are_kept_beside_the_value(text: str, stated: tuple[str, str]) -> None:
    assert Answer.of(text).stated == stated


def test_the_percent_sign_is_a_unit_where_the_problem_asks_for_a_percentage() -> None:
    asked, other = "What percent of 5 is 14?", "Increase 200 by 40 percent."
    read = MATHEMATICS.read
    assert read(r"280\%", asked).value == read("280", asked).value == read("280 percent", asked).value
    assert read(r"280\%", other).value == read("2.8", other).value != read("280", other).value
    assert settled(read(r"280\%", asked), read("2.8", asked)) is Verdict.DIFFERENT


@pytest.mark.parametrize(
    ("reply", "content"),
    [
        (r"so \boxed{5}.", "5"),
        (r"\boxed{1} then \boxed{ 2 }", "2"),
        (r"\fbox{7}", "7"),
        (r"the answer is $\boxed 42$.", "42"),
        (r"(it is \boxed 42)", "42"),
        (r"\boxed (1,2).", "(1,2)"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{\{1,2\}}", r"\{1,2\}"),
        (r"\boxed{\boxed{5}}", "5"),
        (r"\boxed{5} and then \boxed{6", "5"),
        (r"{ \boxed{5} and } } \boxed{6}", "6"),
        (r"\boxed{5", None),
        (r"\boxed{}", None),
        (r"\boxed{   }", None),
        ("no box at all", None),
        ("", None),
        (r"<think>\boxed{1}</think> so \boxed{2}", "2"),
        (r"<think>\boxed{1}</think> so it is one", "1"),
        (r"<think>\boxed{1} and on", "1"),
        (r"I cannot help with that. \boxed{3}", "3"),
        (r"\boxedanswer{5}", None),
        (r"The result is \\boxed{-3}", "-3"),
        (r"$\boxed{(2,2)}$ and $\boxed{(6,2)}$", "(2,2), (6,2)"),
        (r"\boxed{(2,2)} \text{ and } \boxed{(6,2)}", "(2,2), (6,2)"),
        (r"$\boxed{1}$, $\boxed{2}$, and $\boxed{3}$", "1, 2, 3"),
        (r"\boxed{1}, so in the end \boxed{2}", "2"),
        (r"\boxed{1} \boxed{2}", "2"),
    ],
)
def test_the_last_closed_box_is_the_answer(reply: str, content: str | None) -> None:
    assert last_boxed(reply) == content


def test_a_megabyte_of_unclosed_boxes_is_read_in_one_pass() -> None:
    assert last_boxed(r"\boxed{" * 150_000) is None
    assert last_boxed(r"\boxed{7} " + "{" * 1_000_000) == "7"


@pytest.mark.parametrize(
    "text",
    [
        r"\{" * 300 + "1" + r"\}" * 300,
        "(" * 300 + "1,2" + ")" * 300,
        "-" * 1_999 + "1",
        r"\sin" * 400 + "1",
        r"\sqrt{" * 300 + "2" + "}" * 300,
        "1" + " " * 1_990 + "1",
        "1," * 1_000,
        r"\text{" * 300,
        r"\frac" * 300,
        "^" * 2_000,
        "2^{" * 400 + "2" + "}" * 400,
        "+".join(rf"\sqrt{{{n}}}" for n in range(2, 120)),
        "".join(rf"(\sqrt{{{n}}}+1)" for n in range(2, 100)),
        "1/(" + "+".join(rf"\sqrt{{{n}}}" for n in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)) + ")",
        "9" * 2_000 + "^{" + "9" * 9 + "}",
        "0." + "1" * 900 + r"\overline{" + "1" * 900 + "}",
    ],
)
def test_hostile_notation_is_read_like_any_other(text: str) -> None:
    answer = Answer.of(text)
    assert answer.key == Answer.of(text).key


def test_a_box_longer_than_an_answer_is_no_answer() -> None:
    assert last_boxed(rf"\boxed{{{'1' * MAX_ANSWER_CHARS}}}") is not None
    assert last_boxed(rf"\boxed{{{'1' * (MAX_ANSWER_CHARS + 1)}}}") is None


PIECES = (
    r"1|2|12|123|,|{,}|\!|\,|.|{|}|(|)|[|]|\{|\}|\frac|\dfrac|\sqrt|^|_|\pi|i|x|e|+|-|=|/|*|\cdot|%|\%|\$|$|\text{|"
    r"\text{or}|\text{cm}|\left|\right|\boxed{|^\circ|\infty|\pm|!|\binom|\le|<|<=|;|and|or|cm|million|percent|½|²|√|−|"
    r"３|٣|\\|\begin{pmatrix}|\end{pmatrix}|&|A|(A)|\overline|\in|E|~|\sin|\cup|\ldots| |**|sqrt|pi|\choose|\quad|"
    r"\mathrm{|'|:|\pmod|mod|base|\not|\dot|\bar{3}|(3)|0.|...|_{16}|two|PM|y|≡|⁻|³|₂|£|\prime|\begin{cases}|array"
    '|"|\u0305|\u0338'
)
NOTATION = st.lists(st.sampled_from(PIECES.split("|")), max_size=16).map("".join)


@given(NOTATION | st.text(max_size=60))
def test_every_answer_is_itself_and_a_value_is_read_back(text: str) -> None:
    answer = Answer.of(text)
    assert settled(answer, Answer.of(f" {text} ")) is Verdict.SAME
    assert len(answer.key) <= 2 * MAX_ANSWER_CHARS
    if answer.exact and "text" not in str(answer.value):
        assert Answer.of(str(answer.value)).value == answer.value


@given(st.fractions(max_denominator=10**6), st.integers(1, 50), st.data())
def test_a_rational_has_one_key_however_it_is_written(value: Fraction, scale: int, data: st.DataObject) -> None:
    above, below = value.numerator * scale, value.denominator * scale
    sign, size = ("-" if above < 0 else ""), abs(above)
    ways = [
        f"{above}/{below}",
        rf"\frac{{{above}}}{{{below}}}",
        rf"{sign}\dfrac{{{size}}}{{{below}}}",
        rf"x = {sign}\frac{{{size}}}{{{below}}}",
        rf"\left({sign}\frac{{{size}}}{{{below}}}\right)",
        rf"\frac{{{100 * above}}}{{{below}}}\%",
        rf"{above}\cdot {below}^{{-1}}",
        f"−{size}/{below}" if sign else f"{size}/{below}",
    ]
    if size > below:
        ways.append(
            rf"{sign}{size // below}\frac{{{size % below}}}{{{below}}}" if size % below else f"{sign}{size // below:,}"
        )
    first, second = data.draw(st.sampled_from(ways)), data.draw(st.sampled_from(ways))
    assert Answer.of(first).key == Answer.of(second).key


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**9), max_value=10**9))
def test_a_decimal_is_the_fraction_it_says(value: object) -> None:
    fraction = Fraction(str(value))
    ways = {f"{value:f}", f"{value:f}00", f"{value:,f}", rf"\frac{{{fraction.numerator}}}{{{fraction.denominator}}}"}
    assert len({Answer.of(way).key for way in ways}) == 1
