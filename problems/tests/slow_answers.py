"""Slow computations of every starter answer, each from the definition, none by the formula the family uses."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, count, pairwise, product
from math import factorial

Number = int | Fraction


def pile(groups: int, size: int) -> int:
    """Count equal groups one by one."""
    return sum(1 for _ in range(groups) for _ in range(size))


def sheared_area(b: int, h: int) -> Fraction:
    """The shoelace area of a parallelogram that leans by one."""
    return polygon_area([(0, 0), (b, 0), (b + 1, h), (1, h)])


def polygon_area(corners: list[tuple[int, int]]) -> Fraction:
    pairs = zip(corners, corners[1:] + corners[:1], strict=True)
    return abs(sum((Fraction(x * t - z * y, 2) for (x, y), (z, t) in pairs), Fraction(0)))


def divisors(n: int) -> set[int]:
    return {d for d in range(1, n + 1) if n % d == 0}


def largest_unreachable(a: int, b: int) -> int:
    reached = {x * a + y * b for x in range(b + 1) for y in range(a + 1)}
    return max(set(range(a * b)) - reached)


def fibonacci(n: int) -> list[int]:
    numbers = [1, 1]
    while len(numbers) < n:
        numbers.append(numbers[-1] + numbers[-2])
    return numbers


def second_of_unique_sparse_sum(n: int) -> int:
    numbers = [f for f in fibonacci(14)[1:] if f <= n]
    sums = [
        [numbers[place] for place in places]
        for size in range(1, 7)
        for places in combinations(range(len(numbers)), size)
        if all(right - left > 1 for left, right in pairwise(places))
    ]
    (terms,) = [terms for terms in sums if sum(terms) == n]
    return sorted(terms)[-2]


def repeated_digit_sum(n: int) -> int:
    while n > 9:
        n = sum(int(digit) for digit in str(n))
    return n


def worst_case_then_one(k: int, m: int) -> int:
    """Draw adversarially, always the colour held least, until one colour is held m times."""
    held = [0] * k
    while max(held) < m:
        held[held.index(min(held))] += 1
    return sum(held)


def rencontres(n: int, k: int) -> int:
    """Permutations of n with k fixed points: insert n as a fixed point or into a cycle of the rest."""
    rows = [[1]]
    for size in range(1, n + 1):
        last = [*rows[-1], 0, 0]
        rows.append(
            [(last[j - 1] if j else 0) + (size - 1 - j) * last[j] + (j + 1) * last[j + 1] for j in range(size + 1)]
        )
    return rows[n][k]


def break_up(a: int, b: int) -> int:
    pieces, breaks = [(a, b)], 0
    while pieces:
        x, y = pieces.pop()
        if x * y > 1:
            breaks += 1
            pieces += [(1, y), (x - 1, y)] if x > 1 else [(1, 1), (1, y - 1)]
    return breaks


def winning_first_move(n: int, k: int) -> int:
    lost = {0}
    for heap in range(1, n):
        if not any(heap - take in lost for take in range(1, k + 1)):
            lost.add(heap)
    (move,) = [take for take in range(1, k + 1) if n - take in lost]
    return move


def grid_points_between(a: int, b: int, c: int, d: int) -> int:
    on_line = ((x - a) * (d - b) == (y - b) * (c - a) for x in range(a, c + 1) for y in range(b, d + 1))
    return sum(on_line)


def shoelace_area(i: int, b: int) -> Fraction:
    """The area of a polygon in three rows of the grid, made to have i points inside and b on the boundary.

    Row 0 holds the inside points between (0, 0) and (i + 1, 0); the other b - 2 boundary points lie in rows -1 and 1.
    """
    low = (b - 2) // 2
    high = b - 2 - low
    return polygon_area([(0, -1), (low - 1, -1), (i + 1, 0), (high - 1, 1), (0, 1), (0, 0)])


def faces_by_drawing(v: int, e: int) -> int:
    """Draw the edges in the plane: a closed ring bounds two regions, and each further edge splits one in two."""
    regions, edges = 2, v
    while edges < e:
        regions, edges = regions + 1, edges + 1
    return regions


def counted_hire(d: int, f: int, r: int) -> int:
    return sum(r + r if day < f else r for day in range(d))


def elder_part(t: int) -> int:
    return next(elder for elder in range(t) if elder - (t - elder) == 2)


SLOW: dict[str, Callable[..., Number]] = {
    "small_remainder": lambda n, d: next(left for left in range(d) if (n - left) in range(0, n + 1, d)),
    "units_digit_of_product": lambda a, b: int(str(sum(a for _ in range(b)))[-1]),
    "digit_sum": lambda n: n // 100 + n // 10 % 10 + n % 10,
    "common_divisor": lambda a, b: max(divisors(a) & divisors(b)),
    "digital_root": repeated_digit_sum,
    "factorial_zeros": lambda n: len(str(factorial(n))) - len(str(factorial(n)).rstrip("0")),
    "two_stamps": largest_unreachable,
    "zeckendorf_second": second_of_unique_sparse_sum,
    "outfits": lambda a, b: len(list(product(range(a), range(b)))),
    "bag_chance": lambda r, w: Fraction(sum(ball < r for ball in range(r + w)), r + w),
    "handshakes": lambda n: len(list(combinations(range(n), 2))),
    "same_colour_guarantee": worst_case_then_one,
    "mixed_up_letters": rencontres,
    "chocolate_breaks": break_up,
    "subtraction_game": winning_first_move,
    "rectangle_area": lambda a, b: sum(1 for _ in product(range(a), range(b))),
    "rectangle_perimeter": lambda a, b: a + b + a + b,
    "third_angle": lambda a, b: next(c for c in range(1, 180) if a + b + c == 180),
    "polygon_diagonals": lambda n: sum((j - i) % n not in (1, n - 1) for i, j in combinations(range(n), 2)),
    "lattice_segment": grid_points_between,
    "grid_polygon_area": shoelace_area,
    "third_side_count": lambda a, b: sum(a + b > c and a + c > b and b + c > a for c in range(1, 100)),
    "triangle_area": lambda b, h: Fraction(b * h, 2),
    "solid_faces": faces_by_drawing,
    "total_cost": lambda n, c: sum(c for _ in range(n)),
    "distance_travelled": lambda v, t: sum(v for _ in range(t)),
    "up_and_down_percent": lambda k, p: k * (1 + Fraction(p, 100)) * (1 - Fraction(p, 100)),
    "round_trip_speed": lambda u, v: Fraction(2) / (Fraction(1, u) + Fraction(1, v)),
    "gaps_not_posts": lambda n, g: [g * stroke for stroke in range(n)][-1],
    "change_due": lambda n, c, m: m - sum(c for _ in range(n)),
    "later_term": lambda a, b, c, n: range(a, 10_000, c - b)[n - 1],
    "brade_of_sacks": lambda a, b: b + sum(20 for _ in range(a)),
    "pegged_weight": lambda w, r: next(peg for peg in count(w) if peg % 10 == 0) * r,
    "slackage": lambda h, r: sum(r for hour in range(1, h + 1) if hour > 3),
    "through_ticket": lambda n, t: sum(t for lock in range(1, n + 1) if lock % 2),
    "hollow_run": lambda m, r: sum(r for _ in range(m)) + sum(r for _ in range(m)),
    "gleaning": lambda n: sum(sack % 10 == 0 for sack in range(1, n + 1)),
    "under_lantern": lambda t, b: sum(t + t + t for _ in range(b)),
    "frost_days": counted_hire,
    "elders_penny": elder_part,
    "twice": lambda n: n + n,
    "sum_of_tens": lambda a, b: len([*range(a), *range(b)]),
    "difference_of_tens": lambda a, b: len(range(b, a)),
    "hundreds": lambda n: int(f"{n}00"),
    "exact_quotient": lambda n, d: len(range(0, n, d)),
    "seats_in_rows": pile,
    "packed_boxes": pile,
    "four_each": lambda n: pile(n, 4),
    "five_each": lambda n: pile(n, 5),
    "square_perimeter": lambda s: s + s + s + s,
    "square_area": lambda s: sum(1 for _ in product(range(s), range(s))),
    "equal_sides": pile,
    "parallelogram_area": sheared_area,
    "steady_rate": pile,
    "sixty_each": lambda n: pile(n, 60),
    "thousand_each": lambda n: pile(n, 1000),
    "fifty_percent": lambda n: Fraction(50, 100) * n,
    "time_needed": lambda v, d: len(range(0, d, v)),
}
