"""Brute-force checks of the plane_geometry families: the figures are laid out in coordinates."""

import cmath
from collections.abc import Callable
from fractions import Fraction
from itertools import count
from math import atan, cos, hypot, pi, radians, sqrt, tan


def exact(value: float) -> int:
    """The integer that a float stands for."""
    assert abs(value - round(value)) < 1e-6, value
    return round(value)


def shoelace(*corners: tuple[float, float]) -> float:
    """The area of a polygon with the given corners."""
    turned = (*corners[1:], corners[0])
    return abs(sum(x * v - u * y for (x, y), (u, v) in zip(corners, turned, strict=True))) / 2


def apex(a: float, b: float, c: float) -> complex:
    """The point at distance b from 0 and at distance c from a."""
    x = (a * a + b * b - c * c) / (2 * a)
    return complex(x, sqrt(b * b - x * x))


def cut_off(s: int, x: Fraction, y: Fraction) -> Fraction:
    """What is left of a triangle when a corner is cut off at two shares of its sides."""
    return Fraction(shoelace((2 * s * x, Fraction(0)), (Fraction(2 * s), Fraction(0)), (0, 1), (0, y)))


def crossing(a: int, b: int) -> int:
    """The angle between two chords, from the directions of their ends."""
    first, second, third, fourth = (cmath.exp(1j * radians(w)) for w in (0, a, a + 47, a + 47 + b))
    return exact(abs(cmath.phase((second - fourth) / (first - third))) * 180 / pi)


def around(p: int, r: int) -> int:
    """The isosceles triangle with this perimeter around the circle, found by bisection."""

    def perimeter(half: float) -> float:
        return 2 * half + 2 * half / cos(2 * atan(r / half))

    low, high = sqrt(3) * r, float(p)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if perimeter(middle) < p else (low, middle)
    return exact(low * low * tan(2 * atan(r / low)))


def grazing(p: int, q: int) -> int:
    """A circle through the ends of the chord, and the tangent from 0 by Pythagoras."""
    centre = complex(p + q / 2, 1.7)
    return exact(sqrt(abs(centre) ** 2 - abs(centre - p) ** 2))


def bisected(a: int, b: int, c: int) -> int:
    """Try the points of the side for equal angles."""
    top = apex(a, b, c)
    return next(
        x for x in range(1, a) if abs(cmath.phase(-top / (x - top)) - cmath.phase((x - top) / (a - top))) < 1e-9
    )


def other_diagonal(a: int, b: int, d: int) -> int:
    """Lay out the triangle of two sides and a diagonal and complete it."""
    return exact(abs(a + apex(a, b, d)) ** 2)


def fourth(a: int, b: int, c: int) -> int:
    """Lay out one such rectangle around the point."""
    down = sqrt((max(0, b * b - c * c) + min(a * a, b * b)) / 2)
    left, right = sqrt(a * a - down * down), sqrt(b * b - down * down)
    up = sqrt(c * c - right * right)
    assert min(down, left, right, up) > 0
    return exact(hypot(left, up))


def trapezoid(s: int, t: int) -> int:
    """Put the crossing of the diagonals at 0."""
    x, ratio = sqrt(s), sqrt(t / s)
    (ax, ay), (bx, by) = (0.3, -2 * x), (0.3 + x, -2 * x)
    assert exact(shoelace((0, 0), (ax, ay), (bx, by))) == s
    return exact(shoelace((ax, ay), (bx, by), (-ratio * ax, -ratio * ay), (-ratio * bx, -ratio * by)))


def inscribed(a: int, b: int) -> int:
    """Try each centre on the bisector of the right angle for its distance from the third side."""
    return next(r for r in count(1) if abs(abs(b * r + a * r - a * b) / hypot(a, b) - r) < 1e-9)


CHECKS: dict[str, Callable[..., int | Fraction]] = {
    "up_to_the_common_tip": lambda h, t, d: next(x for x in count(1) if Fraction(h, x) == Fraction(t, x + d)),
    "rest_of_similar_figure": lambda s, m, n: cut_off(s, Fraction(m, m + n), Fraction(m, m + n)),
    "missing_polygon_angle": lambda s: next(x for x in range(1, 180) if (s + x) % 180 == 0),
    "angle_between_chords": crossing,
    "heron_area": lambda a, b, c: exact(a * apex(a, b, c).imag / 2),
    "area_around_a_circle": around,
    "tangent_and_secant": grazing,
    "outer_tangent": lambda r, s, d: next(x for x in count(1) if abs(hypot(x, r - s) - d) < 1e-9),
    "pieces_by_bisector": bisected,
    "parallelogram_law": other_diagonal,
    "fourth_corner_distance": fourth,
    "ring_from_chord": lambda c: exact(abs(complex(c / 2, 2.3)) ** 2 - 2.3**2),
    "trapezoid_by_diagonals": trapezoid,
    "areas_with_common_angle": lambda s, a, b, c, d: cut_off(s, Fraction(a, a + b), Fraction(c, c + d)),
    "circle_in_right_triangle": inscribed,
}
