"""Exact numbers: one form for one value, closed operations, bounded sizes."""

from __future__ import annotations

from fractions import Fraction
from math import comb, factorial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kace.answers.exact import MAX_BITS, Collection, NoExactValue, Number, Word, union

UNIT, PI = Number.letter("i"), Number.letter(r"\pi")


def number(value: int | str) -> Number:
    return Number.of(Fraction(value))


def sqrt(value: int | str) -> Number:
    return number(value).root(2)


rationals = st.fractions(min_value=-50, max_value=50, max_denominator=30)
radicands = st.sampled_from([1, 2, 3, 5, 6, 8, 12, 15, -1, -2])


@st.composite
def numbers(draw: st.DrawFn) -> Number:
    total = Number.of(draw(rationals))
    for _ in range(draw(st.integers(0, 2))):
        total = total + Number.of(draw(rationals)) * sqrt(draw(radicands))
    return total


@given(numbers(), numbers(), numbers())
def test_numbers_form_a_ring(a: Number, b: Number, c: Number) -> None:
    assert a + b == b + a
    assert a * b == b * a
    assert (a + b) * c == a * c + b * c
    assert a - a == number(0)
    assert hash(a + b) == hash(b + a)


@given(numbers())
def test_what_is_not_zero_has_an_inverse(a: Number) -> None:
    if a == number(0):
        with pytest.raises(NoExactValue):
            a.inverse()
    else:
        assert a * a.inverse() == number(1)


@given(st.integers(0, 10**9), st.integers(2, 5))
def test_a_root_raised_again_is_the_number(value: int, degree: int) -> None:
    assert number(value).root(degree) ** degree == number(value)


@given(st.integers(1, 10**5 - 1), st.integers(1, 10**5 - 1))
def test_roots_multiply(a: int, b: int) -> None:
    assert sqrt(a) * sqrt(b) == sqrt(a * b)


def test_roots_of_negative_numbers_are_the_usual_ones() -> None:
    assert sqrt(-4) == number(2) * UNIT
    assert number(-8).root(3) == number(-2)
    with pytest.raises(NoExactValue):
        number(-16).root(4)


def test_pi_has_powers_and_roots_but_no_value() -> None:
    assert (PI * PI).root(2) == PI
    assert PI.root(2) * PI.root(2) == PI
    assert number("355/113") != PI
    with pytest.raises(NoExactValue):
        (PI + number(1)).inverse()


def test_polynomials_are_expanded() -> None:
    x = Number.letter("x")
    assert (x - number(1)) * (x + number(1)) == x**2 - number(1)
    assert str((x + number(2)) / (number(2) * x)) == r"\frac{1}{2}+x^{-1}"
    assert not x.constant
    assert (x - x).constant


@pytest.mark.parametrize("n", [0, 1, 5, 100])
def test_small_factorials_and_binomials_are_exact(n: int) -> None:
    assert number(n).factorial().rational == factorial(n)
    assert number(n).choose(number(n // 3)).rational == comb(n, n // 3)


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: number(2) ** (MAX_BITS + 1),
        lambda: number(10) ** (10**30),
        lambda: number(2_004).factorial(),
        lambda: number("1/2").factorial(),
        lambda: number(10**7).choose(number(5)),
        lambda: Number.of(10**MAX_BITS),
        lambda: number(2**127 - 1).root(2),
        lambda: number(2).root(13),
        lambda: (sqrt(2) + sqrt(3)).root(2),
        lambda: number(2).power(sqrt(2)),
        lambda: number(0) ** 0,
        lambda: (Number.letter("x") + number(1)) ** 5_000,
        lambda: (Number.letter("x") + number(1)).inverse(),
    ],
)
def test_what_is_too_large_or_outside_is_refused_at_once(attempt: object) -> None:
    with pytest.raises(NoExactValue):
        attempt()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("value", "digits"),
    [
        (number(3) + number(2) * sqrt(2), 5.828427124746190),
        (PI * PI / number(7), 1.409943485869908),
        (number(-2).root(3), -1.259921049894873),
        (number(0), 0.0),
    ],
)
def test_a_real_number_is_approximated(value: Number, digits: float) -> None:
    assert value.approximate() == pytest.approx(digits, rel=1e-14)


def test_what_is_not_real_or_too_close_to_zero_is_not_approximated() -> None:
    for value in (UNIT, Number.letter("x"), PI - number("3.14159265358979")):
        with pytest.raises(NoExactValue):
            value.approximate()


def test_a_big_square_needs_no_factoring() -> None:
    assert sqrt((2**127 - 1) ** 2) == number(2**127 - 1)


def test_collections_have_one_form() -> None:
    one, two = number(1), number(2)
    assert Collection.of("{}", [two, one, two]) == Collection.of("{}", [one, two])
    assert Collection.of("()", [two, one]) != Collection.of("()", [one, two])
    assert str(Collection.of("{}", [Word("a b"), one])) == r"\{1, \text{a b}\}"


def interval(delimiters: str, low: Number, high: Number) -> Collection:
    return Collection.of(delimiters, [low, high])


def test_unions_are_ordered_and_merged_by_exact_comparison() -> None:
    merged = union([interval("[]", sqrt(2), PI), interval("[)", number(1), number("142/100"))])
    assert merged == interval("[]", number(1), PI)
    gap = union([interval("[)", number(1), sqrt(2)), interval("(]", sqrt(2), number(2))])
    assert str(gap) == r"[1, \sqrt{2})\cup (\sqrt{2}, 2]"
    assert union([interval("()", number(1), number(2)), interval("()", number(3), number(2))]) == interval(
        "()", number(1), number(2)
    )


def test_a_union_of_what_has_no_order_has_no_value() -> None:
    with pytest.raises(NoExactValue):
        union([interval("()", Number.letter("a"), Number.letter("b"))])
    with pytest.raises(NoExactValue):
        union([interval("()", UNIT, number(1))])
