"""Programs of replies: which one is run, what its output says, and the Fraction that they find."""

from __future__ import annotations

import asyncio
import fractions
import math
import operator
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kace.answers.extract import Answer
from kace.answers.fraction import Fraction
from kace.answers.program import ProgramOutcome, Sandbox, printed_answer, program_of

LOOP = asyncio.Runner()


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    opened = LOOP.run(Sandbox(seconds=60, workers=1).__aenter__())
    yield opened
    LOOP.run(opened.aclose())


@pytest.mark.parametrize(
    ("reply", "source"),
    [
        ("```python\nprint(1)\n```", "print(1)"),
        ("First:\n```py\nx = 1\n```\nthen\n```Python\nprint(2)\n```\nDone.", "print(2)"),
        ("```python\nprint(1)\n```\nIt prints:\n```\n1\n```", "print(1)"),
        ("```\nx = 1\n```", "x = 1"),
        ("``` python3\nprint(1)\n  ```", "print(1)"),
        ("```python\nprint(1)", "print(1)"),
        ("```python\r\nprint(1)\r\n```".replace("\r\n", "\n"), "print(1)"),
        ("x = 6\nprint(x * 7)", "x = 6\nprint(x * 7)"),
        ("The answer is \\boxed{5}.", None),
        ("Call print(5) to see \\boxed{5}.", None),
        ("print(5) would give\n\\boxed{5}", None),
        ("I cannot tell.", None),
        ("```python\n```", None),
        ("", None),
    ],
)
def test_the_program_of_a_reply(reply: str, source: str | None):
    assert program_of(reply) == source


@given(st.text(alphabet="`python \nx=1()\\boxed{}"))
def test_any_reply_has_one_program_or_none(reply: str):
    source = program_of(reply)
    assert source is None or source in reply


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ("42\n", "42"),
        ("n = 3 works\n42\n\n", "42"),
        ("The answer is 42", "42"),
        ("Answer: 42.", "42"),
        ("The sum of the roots is: 7/2", "7/2"),
        ("x = 5", "5"),
        ("ratio: 3 : 4", "3 : 4"),
        ("f(2) = 9", "9"),
        ("f(2)  :  9", "9"),
        ("x <= 5", "x<=5"),
        ("\\boxed{7}", "7"),
        ("so $\\boxed{\\frac{1}{2}}$ at last\n3", "1/2"),
        ("8.0", "8"),
        ("1e-05", "1/100000"),
        ("0.30000000000000004", "3/10"),
        ("-0.3333333333333333", "-1/3"),
        ("2.9999999999999996", "3"),
        ("4.242640687119285", "3\\sqrt{2}"),
        ("-1.4142135623730951", "-\\sqrt{2}"),
        ("0.8660254037844386", "\\frac{\\sqrt{3}}{2}"),
        ("12.566370614359172", "4\\pi"),
        ("1.0471975511965976", "\\frac{\\pi}{3}"),
        ("(0.5, 0.3333333333333333)", "(1/2, 1/3)"),
        ("3*sqrt(2)", "3\\sqrt{2}"),
        ("2*pi/3", "\\frac{2\\pi}{3}"),
        ("2**10", "1024"),
        ("x**2 + 1", "x^2+1"),
        ("(3+4j)", "3+4i"),
        ("[1, 2]", "1, 2"),
        ("(3, 4)", "(3, 4)"),
        ("50\\%", "50\\%"),
        ("11\\sqrt{2}", "11\\sqrt{2}"),
    ],
)
def test_what_a_program_printed_is_read_as_an_answer(output: str, answer: str):
    read = printed_answer(output)
    assert read is not None
    assert Answer.of(read).key == Answer.of(answer).key


@pytest.mark.parametrize("output", ["", "\n \n", "None", "nan", "-inf", "x" * 3000])
def test_what_says_nothing_is_no_answer(output: str):
    assert printed_answer(output) is None


@pytest.mark.parametrize("output", ["0.123456789123456", "2.718281828459045", "3.14", "0.333", "123456.7890123456"])
def test_a_float_that_is_no_simple_value_stays_one(output: str):
    assert printed_answer(output) == output


@given(st.text(max_size=200))
def test_any_output_can_be_read(output: str):
    read = printed_answer(output)
    assert read is None or Answer.of(read).text is not None


@given(st.integers(-400, 400), st.integers(1, 60))
def test_a_fraction_comes_back_from_its_float(above: int, below: int):
    value = fractions.Fraction(above, below)
    read = printed_answer(str(above / below))
    assert read is not None
    assert Answer.of(read).key == Answer.of(str(value)).key


# Fraction

RATIOS = st.fractions(min_value=-50, max_value=50, max_denominator=40)
MIXED = RATIOS | st.integers(-20, 20)


def ours(value: fractions.Fraction | int) -> Fraction | int:
    return value if isinstance(value, int) else Fraction(value.numerator, value.denominator)


def outcome(compute: Callable[[], object]) -> str:
    try:
        return str(compute())
    except ZeroDivisionError:
        return "no"


@given(RATIOS, MIXED, st.sampled_from(["add", "sub", "mul", "truediv", "floordiv", "mod", "eq", "ne"]))
def test_fractions_compute_as_those_of_the_standard_library(left: fractions.Fraction, right: object, name: str):
    does = getattr(operator, name)
    assert outcome(lambda: does(ours(left), ours(right))) == outcome(lambda: does(left, right))  # type: ignore[arg-type]
    assert outcome(lambda: does(ours(right), ours(left))) == outcome(lambda: does(right, left))  # type: ignore[arg-type]


@given(RATIOS, st.integers(-6, 6), st.integers(-2, 3))
def test_powers_parts_and_roundings_too(value: fractions.Fraction, power: int, digits: int):
    mine = ours(value)
    assert outcome(lambda: mine**power) == outcome(lambda: value**power)  # type: ignore[operator]
    assert str(round(mine, digits)) == str(round(value, digits)) or digits == 0  # type: ignore[arg-type]
    assert round(mine) == round(value)
    for part in (math.floor, math.ceil, math.trunc, int, float, abs, operator.neg):
        assert str(part(mine)) == str(part(value))  # type: ignore[operator]
    assert str(mine.limit_denominator(7)) == str(value.limit_denominator(7))  # type: ignore[union-attr]


@pytest.mark.parametrize("text", ["3/4", "-3/4", "0.25", "-1.50", "7", " 6/4 "])
def test_a_fraction_is_read_from_text(text: str):
    assert str(Fraction(text)) == str(fractions.Fraction(text))


def test_what_is_no_number_is_no_fraction():
    with pytest.raises(ZeroDivisionError):
        Fraction(1, 0)
    with pytest.raises(TypeError):
        Fraction([1])
    with pytest.raises(ValueError, match="invalid literal"):
        Fraction("half")


PROGRAMS = {
    "from fractions import Fraction\nprint(Fraction(1, 2) + Fraction(1, 3))": "5/6",
    "import fractions\nprint(fractions.Fraction(6, 4))": "3/2",
    "print(sum(Fraction(1, k) for k in range(1, 5)))": "25/12",
    "print(1 - Fraction('0.25'))": "3/4",
    "print(2 / Fraction(4, 3), Fraction(1, 2) ** 3)": "3/2 1/8",
    "print(Fraction(7, 2) // 1, Fraction(7, 2) % 1, -Fraction(1, 2), abs(Fraction(-1, 2)))": "3 1/2 -1/2 1/2",
    "print(Fraction(4, 2) == 2, Fraction(1, 2) == 0.5, Fraction(2) in [2])": "True True True",
    "print(Fraction(3, 7).numerator, Fraction(3, 7).denominator, float(Fraction(1, 4)))": "3 7 0.25",
    "print(sorted([Fraction(1, 2), Fraction(1, 3)], key=float), {Fraction(1, 2): 1}[Fraction(2, 4)])": "[1/3, 1/2] 1",
    "print(Fraction(0.1).limit_denominator(), Fraction(math.pi).limit_denominator(10))": "1/10 22/7",
    "print(math.floor(Fraction(7, 2)), round(Fraction(7, 3), 2), int(Fraction(-7, 2)))": "3 233/100 -3",
    "print(f'{Fraction(1, 2)} {float(Fraction(1, 3)):.3f}')": "1/2 0.333",
    "print(gcd(12, 18), comb(5, 2), isqrt(17), len(list(combinations(range(4), 2))))": "6 10 4 6",
    "from math import *\nprint(floor(sqrt(10)), factorial(5))": "3 120",
    "@lru_cache(None)\ndef f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)\nprint(f(60))": "1548008755920",
    "from decimal import Decimal\nprint(Decimal(1) / Decimal(8))": "0.125",
    "import re\nprint(re.findall('[0-9]+', 'a12b3'))": "['12', '3']",
    "if __name__ == '__main__':\n    print(1)": "1",
}


@pytest.mark.parametrize(("source", "output"), PROGRAMS.items())
def test_programs_find_what_the_prompt_names(source: str, output: str, sandbox: Sandbox):
    run = LOOP.run(sandbox.run(source))
    assert (run.outcome, run.output.strip()) == (ProgramOutcome.RAN, output)


def test_an_error_names_the_line_of_the_program(sandbox: Sandbox):
    run = LOOP.run(sandbox.run("x = 0\nprint(Fraction(1, x))"))
    assert run.error == "ZeroDivisionError: Fraction(1, 0) in the line `print(Fraction(1, x))`"


def test_the_prompts_own_examples_run(sandbox: Sandbox):
    from kace.ladder.prompt import solver_prompt
    from kace.ladder.tiers import Lens

    shown = [program_of(message.content) for message in solver_prompt("1?", Lens.PROGRAM).messages[2:-1:2]]
    answers = [LOOP.run(sandbox.run(source or "")).answer for source in shown]
    assert answers == ["3/10", "11", "52"]
