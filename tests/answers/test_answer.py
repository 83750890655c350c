"""Reading answers: what is boxed, one form for one notation, one key for one value."""

from __future__ import annotations

import gzip
import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kace.answers.extract import MAX_ANSWER_CHARS, Answer, last_boxed, read_answer
from kace.answers.normalize import MAX_CHARS, normal_form

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
ATTEMPTS = DATA / "attempts_qwen2.5-coder-1.5b_math_l45_train200.jsonl.gz"

ONE_ANSWER = [
    r"1/2|\frac12|\frac 1 2|\dfrac{1}{2}|\tfrac1{2}|0.5|.5|0.50|50\%|50%|50/100|½|０．５|2^{-1}|5\times10^{-1}",
    r"1/2|5E-1|0.5e0|5e-01|5.0e-1|0.05e+1",
    r"1/2|$\frac12$|\(\frac12\)|\left(\frac{1}{2}\right)|\boxed{\frac12}|1/2.|\frac{\frac12}{1}|\\frac{1}{2}|\mathbf{0.5}",
    "-5|\u22125|\u20135|- 5|\u200e-5\u200b|\u202e-5|-10/2",
    r"60|\angle ABC = 60^\circ|\text{Area} = 60|m\angle A=60|AB = 60|x_1=60",
    r"7/2|3\frac12|3 1/2|3½|3.5|\frac{7}{2}",
    r"-28/5|-5\frac35|-5.6",
    r"1234|1,234|1{,}234|1,\!234|1\,234|1 234|1234.0|\$1,234|١٢٣٤|１２３４|01234|1.234\times10^3",
    r"5|5\text{ cm}|5\text{ cm}^2|5^\circ|5^{\circ}|5°|\$5|5\mathrm{ m}|5 inches|5\text{ square units}|\approx 5|x = 5",
    r"5000000|5\text{ million}|5 million|5\text{ million dollars}|5\cdot10^6",
    r"2\sqrt{65}|\sqrt{260}|2 \sqrt{65}|\frac{130}{\sqrt{65}}|2√65|\sqrt{4\cdot 65}",
    r"4\sqrt2|4\sqrt{2}|4\sqrt(2)|\sqrt{32}|2^{2.5}",
    r"\frac{\sqrt3}{3}|\frac{1}{\sqrt3}|\sqrt{\frac13}|3^{-1/2}",
    r"\sqrt2-1|\frac{1}{1+\sqrt2}|-1+\sqrt{2}",
    r"\sqrt[3]{2}|2^{1/3}|\frac{2}{\sqrt[3]{4}}",
    r"100+75\pi|75π + 100|25(4+3\pi)",
    r"2i|\sqrt{-4}|2\cdot i|\frac{-2}{i}",
    r"120|5!|\binom{10}{3}|2^3\cdot 15",
    r"\frac13|0.\overline{3}|0.3\overline{3}",
    r"1, 2|2,1|\{1,2\}|1 \text{ and } 2|x=1 \text{ or } x=2|1 or 2|1;2|x\in\{1,2\}|\{2,1,2\}",
    r"5|\{5\}|10/2=5|a=b=5",
    r"\pm 3|3,-3|-3, 3",
    r"(1,2)|\left( 1 , 2 \right)|(x,y)=(1,2)|(1,\frac42)",
    r"(-\infty,3)|x<3|3>x|2x<6|-x>-3|x\in(-\infty,3)",
    r"(1,2]|1<x\le2|2\ge x>1|1 < x ≤ 2",
    r"(-\infty,1)\cup(4,\infty)|(4,\infty)\cup(-\infty,1)|x<1 \text{ or } x>4|x<1 or x>4",
    r"[1,3]|[1,2]\cup[2,3]|[1,2)\cup[\sqrt{3},3]",
    r"\begin{pmatrix}1\\2\end{pmatrix}|\begin{bmatrix} 1 \\ \frac42 \end{bmatrix}",
    r"A, C, D|\text{A, C, D}|\text{A, C and D}|\text{D}, \text{C}, \text{A}|A \text{ and } C, D",
    r"11111111100|11,\! 111,\! 111,\! 100|11,\!111,\!111,\!100",
    r"A|(A)|\text{A}|\text{(A)}|\textbf{(A)}|A.",
    r"\text{no solution}|No solution|\text{No Solution}|\mathrm{no solution}",
    r"x^2-1|x²-1|(x-1)(x+1)|-1+x^{2}",
    r"255|1103_6|1103_{6}",
]


@pytest.mark.parametrize("row", ONE_ANSWER)
def test_every_way_to_write_an_answer_has_one_key(row: str) -> None:
    keys = {Answer.of(text).key for text in row.split("|")}
    assert len(keys) == 1, keys


MANY_ANSWERS = [
    r"0.5|50|5",  # percent is a hundredth, so 50\% never links 0.5 and 50
    r"(1,2)|(2,1)|\{1,2\}|[1,2]|[1,2)|12",  # ordered, unordered, closed, half-open
    r"1,234|1, 234|(1,234)|1.234",  # thousands, a list, a pair, a decimal
    r"1/2^{99}|1/2^{98}|0",
    r"99999999999|100000000000",
    r"0.333|\frac13",  # decimals are exact
    r"4|4\sqrt2",
    r"2h|2t|2|2m",  # a letter without \text is an unknown, not a unit
    r"x|X|5",
    r"\text{yes}|\text{no}|\text{not enough information}",
    r"[1,2)\cup(2,3]|[1,3]",
    r"x<3|x\le3|x>3",
    r"5\text{ AM}|5\text{ PM}|5",
    r"3|3!|3\%|-3",
    r"2^{10}|2^{1}0|20",
    r"\sqrt{2}+\sqrt{3}|\sqrt{5}|\sqrt6",
]


@pytest.mark.parametrize("row", MANY_ANSWERS)
def test_different_answers_have_different_keys(row: str) -> None:
    texts = row.split("|")
    assert len({Answer.of(text).key for text in texts}) == len(texts)


@pytest.mark.parametrize(
    "text",
    [
        r"1/2\pi",  # (1/2)pi or 1/(2pi)?
        r"\sqrt12",  # the root of 12, or of 1?
        "x=1, y=2",
        "y=2x+3",
        "e^{2}",
        r"f(x)",
        r"\sqrt{3+2\sqrt2}",
        r"9^{9^{9}}",
        r"10000000!",
        r"\frac{1}{0}",
        r"0^0",
        "19_7",
        "(-8)^{1/3}",
        "",
        r"\text{}",
        "3:4",
        "2e-1",
        "1, 2, 3, \\ldots",
    ],
)
def test_what_is_ambiguous_undefined_or_too_large_has_no_exact_value(text: str) -> None:
    assert not Answer.of(text).exact


def test_an_answer_keeps_what_the_model_wrote() -> None:
    answer = Answer.of("  \\dfrac12 ")
    assert (answer.text, answer.form, str(answer.value)) == (r"\dfrac12", r"\frac{1}{2}", r"\frac{1}{2}")


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
    assert read_answer(rf"\boxed{{{'1' * MAX_ANSWER_CHARS}}}") is not None
    assert read_answer(rf"\boxed{{{'1' * (MAX_ANSWER_CHARS + 1)}}}") is None


def test_long_texts_are_told_apart_by_a_bounded_form() -> None:
    first, second = Answer.of("x" * 5_000), Answer.of("x" * 5_001)
    assert first.key != second.key
    assert len(first.form) < 100


PIECES = (
    r"1|2|12|123|,|{,}|\!|\,|.|{|}|(|)|[|]|\{|\}|\frac|\dfrac|\sqrt|^|_|\pi|i|x|e|+|-|=|/|*|\cdot|%|\%|\$|$|\text{|"
    r"\text{or}|\text{cm}|\left|\right|\boxed{|^\circ|\infty|\pm|!|\binom|\le|<|;|and|or|cm|million|percent|½|²|√|−|３|"
    r"٣|\\|\begin{pmatrix}|\end{pmatrix}|&|A|(A)|\overline|\in|E|~|\sin|\cup|\ldots| |"
    r"\mathrm{|'|:|\pmod|mod|base|\not|\dot|\bar{3}|(3)|0.|...|0x|_{16}|two|dozen|PM|y|≡|⁻|³|₂|£|\prime"
    '|"|\u0305|\u0338'
)
NOTATION = st.lists(st.sampled_from(PIECES.split("|")), max_size=16).map("".join)


@given(NOTATION | st.text(max_size=60))
def test_the_normal_form_of_a_normal_form_is_itself(text: str) -> None:
    form = normal_form(text)
    assert normal_form(form) == form
    assert len(form) <= 2 * MAX_CHARS


@given(NOTATION)
def test_a_value_is_read_back_from_how_it_is_written(text: str) -> None:
    value = Answer.of(text).value
    if value is not None and "text" not in str(value):
        assert Answer.of(str(value)).value == value


@given(st.text())
def test_reading_never_raises(reply: str) -> None:
    read_answer(reply)
    read_answer(rf"\boxed{{{reply}}}")


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


def test_extraction_agrees_with_two_thousand_recorded_replies() -> None:
    if not ATTEMPTS.exists():
        pytest.skip(f"recorded attempts are not at {ATTEMPTS}")
    with gzip.open(ATTEMPTS, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    assert len(rows) == 2_000
    assert all(last_boxed(row["text"]) == ((row["boxed"] or "").strip() or None) for row in rows)
