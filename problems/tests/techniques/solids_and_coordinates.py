"""Brute-force checks of the solids_and_coordinates families."""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from math import asin, degrees, dist, hypot, pi, sin, sqrt


def exact(value: float) -> int:
    """The integer that a float stands for."""
    assert abs(value - round(value)) < 1e-5, value
    return round(value)


def least(f: Callable[[float], float], low: float, high: float) -> float:
    """The least value of a convex function, by ternary search."""
    for _ in range(120):
        x, y = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, y) if f(x) < f(y) else (x, high)
    return f(low)


def from_faces(p: int, q: int, r: int) -> int:
    """Try all edges."""
    return next(a * (p // a) * (r // a) for a in range(1, p + 1) if p % a == r % a == 0 and (p // a) * (r // a) == q)


def surface(t: int, d: int) -> int:
    """Try all boxes with these edges; all of them must have one surface."""
    s = t // 4
    boxes = ((a, b, s - a - b) for a, b in product(range(1, s), repeat=2) if a + b < s)
    (area,) = {2 * (a * b + b * c + c * a) for a, b, c in boxes if a * a + b * b + c * c == d * d}
    return area


def lone_faces(a: int, b: int, c: int) -> int:
    """Count the outer faces of each small cube."""
    cells = product(range(a), range(b), range(c))
    return sum(sum((i == 0) + (i == n - 1) for i, n in zip(cell, (a, b, c), strict=True)) == 1 for cell in cells)


def enlarged(s: int, t: int, v: int) -> int:
    """Scale by the factor of the lengths, found as a float."""
    return exact(v * sqrt(t / s) ** 3)


def over_an_edge(a: int, b: int, c: int) -> int:
    """The best way over each kind of edge, found by search for the crossing point."""
    ways = permutations((a, b, c))
    return exact(min(least(lambda y, x=x, z=z, w=w: hypot(x, y) + hypot(w - y, z), 0, w) for x, w, z in ways))


@cache
def ball(r: int) -> float:
    """The volume of a ball divided by pi, from thin slices."""
    n = 2000
    return sum((r * r - (r * (2 * i + 1) / n - r) ** 2) * 2 * r / n for i in range(n))


def depth(n: int, r: int, w: int) -> int:
    """The depth from the sliced volume."""
    value = n * ball(r) / (w * w)
    assert abs(value - round(value)) < 1e-3, value
    return round(value)


def skin(a: int, b: int, c: int) -> int:
    """Count the free faces of the unit cubes."""
    cells = {(x, y, z) for x, y, z in product(range(a), repeat=3)}
    cells |= {(x, y, a + z) for x, y, z in product(range(b), repeat=3)}
    cells |= {(x, y, a + b + z) for x, y, z in product(range(c), repeat=3)}
    steps = [step for step in product((-1, 0, 1), repeat=3) if sum(map(abs, step)) == 1]
    return sum((x + i, y + j, z + k) not in cells for x, y, z in cells for i, j, k in steps)


def quadrilateral(a: int, b: int, c: int, d: int, e: int, f: int) -> int:
    """Two triangles by Heron; they lie on different sides of the diagonal."""
    o, p, q, r = (0, 0), (a, b), (c, d), (e, f)
    assert min(a * d - b * c, c * f - d * e, (c - a) * (f - d) - (d - b) * (e - c)) > 0, (p, q, r)

    def heron(*corners: tuple[int, int]) -> float:
        x, y, z = (dist(corners[i], corners[i - 1]) for i in range(3))
        s = (x + y + z) / 2
        return sqrt(s * (s - x) * (s - y) * (s - z))

    return exact(heron(o, p, q) + heron(o, q, r))


def nearest(a: int, b: int, c: int, p: int, q: int) -> int:
    """Search the line for its nearest point."""
    return exact(least(lambda x: hypot(x - p, (c - a * x) / b - q), -1000, 1000))


def opposite(a: int, b: int, c: int, d: int, e: int, f: int) -> int:
    """Search for the corner with the same midpoint of diagonals."""
    return next(x * y for x, y in product(range(100), repeat=2) if (c + x, d + y) == (a + e, b + f))


def rolled_out(r: int, s: int) -> int:
    """Lay the cone flat in thin triangles and add up their angles at the tip."""
    thin = 2 * r * sin(pi / 10_000)
    return round(10_000 * degrees(2 * asin(thin / 2 / s)))


CHECKS: dict[str, Callable[..., int | Fraction]] = {
    "space_diagonal": lambda a, b, c: exact(dist((0, 0, 0), (a, b, c))),
    "volume_from_faces": from_faces,
    "surface_from_edges_and_diagonal": surface,
    "one_painted_face": lone_faces,
    "volume_from_surfaces": enlarged,
    "rest_of_similar_solid": lambda v, m, n: v - sum(Fraction(v, n**3) for _ in product(range(m), repeat=3)),
    "shortest_way_on_a_box": over_an_edge,
    "balls_into_a_cylinder": depth,
    "tower_of_cubes": skin,
    "shoelace_area": quadrilateral,
    "reflected_path": lambda p, q, d: exact(least(lambda x: hypot(x, p) + hypot(d - x, q), 0, d)),
    "distance_to_line": nearest,
    "lattice_points_in_triangle": lambda a, b: sum(b * x + a * y < a * b for x in range(1, a) for y in range(1, b)),
    "fourth_vertex": opposite,
    "cone_rolled_out": rolled_out,
}
