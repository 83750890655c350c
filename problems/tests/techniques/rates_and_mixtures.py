"""Brute-force checks of the rates_and_mixtures families."""

from collections.abc import Callable
from fractions import Fraction
from itertools import count


def joined(a: int, b: int, d: int) -> int:
    """Do the work unit by unit of time."""
    done, time = Fraction(d, a), 0
    while done < 1:
        done += Fraction(1, a) + Fraction(1, b)
        time += 1
    assert done == 1
    return time


def filled(a: int, b: int) -> int:
    """Watch the level rise."""
    level = Fraction(0)
    for time in count(1):
        level += Fraction(1, a) - Fraction(1, b)
        if level >= 1:
            assert level == 1
            return time
    raise AssertionError


def stock(n: int, d: int, k: int, m: int) -> int:
    """Use up the rations day by day."""
    rations, day = n * d - n * k, 0
    while rations > 0:
        rations, day = rations - n - m, day + 1
    assert rations == 0
    return day


def meet(s: int, u: int, v: int, h: int) -> int:
    """Move both until they are at one place."""
    first, second = 0, s
    for time in count(1):
        first, second = first + u, second - v * (time > h)
        if first >= second:
            assert first == second
            return first
    raise AssertionError


def caught(u: int, v: int, t: int) -> int:
    """Move both until the second is level."""
    first, second = u * t, 0
    while second < first:
        first, second = first + u, second + v
    assert first == second
    return first


def meetings(s: int, u: int, v: int, t: int) -> int:
    """Compare the places of the two at all times on a fine enough grid."""
    return sum((u * i + v * i) % (s * (u + v)) == 0 for i in range(1, t * (u + v) + 1))


def replaced(v: int, k: int, n: int) -> Fraction:
    """Draw off and refill in turn."""
    pure = Fraction(v)
    for _ in range(n):
        pure -= pure / v * k
    return pure


def grown(v: int, p: int, n: int) -> Fraction:
    """Add the percentage of the current value in turn."""
    value = Fraction(v)
    for _ in range(n):
        value += value * p / 100
    return value


def grazers(a: int, p: int, b: int, q: int, t: int) -> int:
    """Try each growth and each stock that fit both cases, and then each herd day by day."""

    def bare_after(stock: int, growth: int, herd: int) -> int:
        return next((day for day in range(1, 99) if stock + day * (growth - herd) <= 0), 0)

    fits = (
        (stock, growth)
        for growth in range(a)
        for stock in (p * (a - growth),)
        if stock == q * (b - growth) and bare_after(stock, growth, a) == p and bare_after(stock, growth, b) == q
    )
    ((stock, growth),) = fits
    return next(herd for herd in count(1) if bare_after(stock, growth, herd) == t)


def shuttled(d: int, u: int, v: int, w: int) -> int:
    """Add up leg after leg until the two have met."""
    gap, way, ahead, behind = float(d), 0.0, v, u
    while gap > 1e-9:
        time = gap / (w + ahead)
        way, gap, ahead, behind = way + w * time, gap - (u + v) * time, behind, ahead
    return round(way)


CHECKS: dict[str, Callable[..., int | Fraction]] = {
    "joined_later": joined,
    "filling_against_draining": filled,
    "crew_grows": stock,
    "meeting_after_head_start": meet,
    "place_of_catching_up": caught,
    "meetings_on_circuit": meetings,
    "length_from_two_passings": lambda b, p, q: next(x for x in count(1) if x * q == (x + b) * p),
    "speed_for_target_average": lambda u, w: next(
        x for x in count(1) if Fraction(2, w) == Fraction(1, u) + Fraction(1, x)
    ),
    "drifting_time": lambda a, b: next(
        t for t in count(1) if Fraction(1, a) - Fraction(1, t) == Fraction(1, b) + Fraction(1, t)
    ),
    "thinning_out": lambda v, p, q: next(x for x in count(1) if v * p == (v + x) * q),
    "balancing_a_mixture": lambda v, r, p, q: next(x for x in count(1) if v * r + x * p == (v + x) * q),
    "repeated_replacement": replaced,
    "drying_out": lambda m, w, z: next(x for x in count(1) if Fraction(m * (100 - w), 100) == x - Fraction(x * z, 100)),
    "compound_growth": grown,
    "stock_that_grows": grazers,
    "to_and_fro": shuttled,
}
