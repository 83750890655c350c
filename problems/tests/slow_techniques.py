"""Brute-force checks of the technique families, by domain."""

import cmath
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache
from itertools import combinations, count, islice, pairwise, permutations, product
from math import asin, atan, cos, degrees, dist, fsum, gcd, hypot, isqrt, lcm, pi, radians, sin, sqrt, tan
from statistics import median


def rung(n: int) -> int:
    """Put up box after box."""
    number, room = 1, 12
    for _ in range(n - 1):
        room -= 1
        if room == 0:
            number, room = number + 1, 12
    return number


def twin(n: int) -> int:
    """Take the digits from the end."""
    result = 0
    while n:
        n, digit = divmod(n, 10)
        result = 10 * result + digit
    return result


def sarn(k: int, s: int) -> int:
    """Fill the places in order."""
    places = [name for volume in range(1, k + 1) for name in (volume, 0, 0)]
    return s + places.index(k)


@cache
def blocked(left: tuple[int, int, int], last: int) -> int:
    """Orders of what is left of two groups that must not be broken up and of the others, place by place."""
    if not sum(left):
        return 1
    if last < 2 and left[last]:
        return left[last] * blocked(less(left, last), last)
    return sum(left[kind] * blocked(less(left, kind), kind) for kind in range(3) if left[kind])


def less(left: tuple[int, int, int], kind: int) -> tuple[int, int, int]:
    """One thing of a kind is used up."""
    a, b, c = (amount - (place == kind) for place, amount in enumerate(left))
    return a, b, c


@cache
def shares(n: int, k: int, least: int) -> int:
    """Ways to share out n, taker by taker."""
    if k == 0:
        return int(n == 0)
    return sum(shares(n - own, k - 1, least) for own in range(least, n + 1))


@cache
def words(*left: int) -> int:
    """Orders of equal letters, letter by letter."""
    if not sum(left):
        return 1
    return sum(words(*(m - (i == j) for j, m in enumerate(left))) for i, m in enumerate(left) if m)


@cache
def climbs(n: int, m: int) -> int:
    """Ways by the first stride."""
    return 1 if n == 0 else sum(climbs(n - step, m) for step in (1, m) if step <= n)


def one_of_two(n: int, a: int, b: int, z: int) -> int:
    """Lay the second group over the first until the number outside is right."""
    for start in range(n):
        first, second = set(range(a)), set(range(start, start + b))
        if start + b <= n and n - len(first | second) == z:
            return len(first ^ second)
    raise AssertionError


def apart(m: int, k: int) -> int:
    """Choices of places with no neighbours."""
    return sum(all(y - x > 1 for x, y in pairwise(p)) for p in combinations(range(m + k), k))


def mixed(m: int, w: int, k: int) -> int:
    """Selections with something from both sides of m."""
    return sum(min(chosen) < m <= max(chosen) for chosen in combinations(range(m + w), k))


def marked(m: int, s: int, k: int) -> int:
    """Sequences in which a value below s occurs."""
    return sum(min(values) < s for values in product(range(m), repeat=k))


def rectangles(a: int, b: int) -> int:
    """Rectangles by their opposite corners."""
    return sum(x < u and y < v for x, u in product(range(a + 1), repeat=2) for y, v in product(range(b + 1), repeat=2))


@cache
def words_using(n: int, unused: int, used: int, k: int) -> int:
    """Words of n more letters, letter by letter, that have used k letters in the end."""
    if n == 0:
        return int(used == k)
    again = used * words_using(n - 1, unused, used, k) if used else 0
    return again + (unused * words_using(n - 1, unused - 1, used + 1, k) if unused else 0)


def pieces(n: int, k: int) -> int:
    """Draw the lines y = sx + c one by one: each cuts one piece more than it has crossings with the earlier ones."""
    lines = [(0, 3**i) for i in range(k)] + [(i, 7**i) for i in range(1, n - k + 1)]
    found: set[tuple[Fraction, Fraction]] = set()
    count = 1
    for i, (s, c) in enumerate(lines):
        xs = [Fraction(c - d, t - s) for t, d in lines[:i] if t != s]
        points = {(x, s * x + c) for x in xs}
        assert len(points) == len(xs) and not points & found
        found |= points
        count += 1 + len(points)
    return count


def middle(n: int, k: int, a: int, b: int, c: int) -> int:
    """Give the middle one each value and fill up both sides to the right totals."""
    assert n == 2 * k - 1
    return next(x for x in range(200) if (k * a - x) + x + (k * b - x) == n * c)


def largest(n: int, m: int, d: int) -> int:
    """Try all lists; above the median only values near it can leave much for the largest."""
    half, best = n // 2, 0
    for below, above in product(combinations(range(1, d), half), combinations(range(d + 1, d + half + 3), half - 1)):
        top = n * m - sum(below) - sum(above) - d
        if top > max(above):
            best = max(best, top)
    return best


def least(n: int, a: int, b: int, c: int) -> int:
    """Deal out the misses one after the other to different members."""
    misses = [0] * n
    for place in range(3 * n - a - b - c):
        misses[place % n] += 1
    return misses.count(0)


def none(n: int, a: int, b: int, c: int, x: int, y: int, z: int, t: int) -> int:
    """Build the regions and count what is outside."""
    regions = (a - x - z + t, b - x - y + t, c - y - z + t, x - t, y - t, z - t, t)
    assert min(regions) >= 0
    return len(range(sum(regions), n))


def two(n: int, a: int, b: int, c: int, t: int) -> int:
    """Try all numbers of members in exactly two sets."""
    return next(p for p in range(n) if (one := n - t - p) >= 0 and one + 2 * p + 3 * t == a + b + c)


def tournament(n: int, k: int, w: int) -> int:
    """Play until one is left, who loses as often as told."""
    losses, games = [0] * n, 0
    while (alive := [i for i in range(n) if losses[i] < k])[1:]:
        loser = 0 if losses[0] < w else alive[-1 - games % (len(alive) - 1)]
        losses[loser] += 1
        games += 1
    assert losses[0] == w
    return games


def draws(n: int, t: int) -> int:
    """Try all numbers of draws."""
    games = len(list(combinations(range(n), 2)))
    return next(d for d in range(games + 1) if 2 * d + 3 * (games - d) == t)


def certain(stock: tuple[int, ...], fails: Callable[[tuple[int, ...]], bool]) -> int:
    """One more than the largest draw that fails."""
    return 1 + max(sum(drawn) for drawn in product(*(range(x + 1) for x in stock)) if fails(drawn))


def medians(*known: int) -> int:
    """Try many pairs of unknowns."""
    span = range(min(known) - 2, max(known) + 3)
    return len({median((*known, x, y)) for x, y in product(span, repeat=2)})


def first_kind(n: int, a: int, b: int) -> int:
    """The numbers of the first kind that meet both conditions."""
    (only,) = (x for x in range(n + 1) if n - x < a and x < b)
    return only


def joined(a: int, p: int, b: int, q: int) -> int:
    """Join the one with most free ends to those that come next, until no end is free."""
    free, links = [p] * a + [q] * b, 0
    while any(free := sorted(free, reverse=True)):
        most, *others = free
        assert len(others) >= most and all(others[:most])
        links += most
        free = [ends - (place < most) for place, ends in enumerate(others)]
    return links


def cubes(s: int, p: int) -> int:
    """Solve for the two numbers and cube them."""
    u = (s + sqrt(s * s - 4 * p)) / 2
    return round(u**3 + (s - u) ** 3)


def both_powers(k: int, n: int) -> int:
    """Solve for the number and raise it and its reciprocal."""
    x = (k + sqrt(k * k - 4)) / 2
    return round(x**n + x**-n)


def start(value: Fraction | int, *factors: Fraction) -> int:
    """The whole number that becomes the value when it is multiplied by the factors."""
    scale = Fraction(1)
    for factor in factors:
        scale *= factor
    return next(x for x in count(1) if x * scale == value)


def unit_growth(v: int, a: int, b: int, n: int) -> Fraction:
    """Grow step by step."""
    assert b == a + 1
    value = Fraction(v)
    for k in range(a, n + 1):
        value += value / k
    return value


def moved(a: int, b: int, k: int, c: int, d: int) -> int:
    """Try all pairs in the first ratio."""
    return next(a * m for m in count(1) if (a * m - k) * d == (b * m + k) * c and a * m > k)


def back(a: int, b: int) -> Fraction:
    """Try all fractions of the rest, by growing denominators."""
    rest = 1 - Fraction(a, b)
    return next(Fraction(x, y) for y in count(1) for x in range(1, 20 * y) if rest + rest * x / y == 1)


@cache
def by_decimals() -> dict[str, Fraction]:
    """The fractions below one with small denominators by their first decimals, found by long division."""
    return {
        "".join(str(10**k * p // q % 10) for k in range(1, 9)): Fraction(p, q) for q in range(2, 100) for p in range(q)
    }


def ovenings(n: int, c: int) -> int:
    """Bake until nothing is left."""
    fires = 0
    while n > 0:
        n, fires = n - (c - 2), fires + 1
    return fires


def ferment(s: int, d: int) -> int:
    """The dough after some days, from the day before."""
    return s if d == 0 else (before := ferment(s, d - 1)) + before - 1


def ambry(t: int, n: int) -> int:
    """Deal out one by one, the last place being the poor box."""
    shares = [0] * (n + 1)
    for place in range(t):
        shares[place % (n + 1)] += 1
    assert len(set(shares)) == 1
    return shares[0]


def lurch(p: int, n: int) -> int:
    """Capture by capture."""
    worth = 1
    for _ in range(n):
        p, worth = p + worth, worth + worth
    return p


def drouth(p: int, n: int) -> int:
    """Turn by turn."""
    for turn in range(1, n + 1):
        p -= turn % 3 == 0
    return p


def turned(a: int, b: int) -> int:
    """Turn from the first bearing degree by degree."""
    for _ in range(b):
        a = 0 if a == 359 else a + 1
    return a


def dealt(n: int, k: int) -> int:
    """Deal out in rounds of five: one to the Light; then what is left, one by one."""
    left = sum(place % 5 != 0 for place in range(n))
    shares = [0] * k
    for place in range(left):
        shares[place % k] += 1
    assert len(set(shares)) == 1
    return shares[0]


def numerals(b: int) -> list[str]:
    """All numerals of up to four digits in base b, in counting order and without zeros in front."""
    return ["".join(map(str, digits)).lstrip("0") or "0" for digits in product(range(b), repeat=4)]


def backwards(h: int, n: int) -> int:
    """Turn the clock back hour by hour."""
    for _ in range(n):
        h = 23 if h == 0 else h - 1
    return h


def fewest(n: int, b: int) -> int:
    """The least number of coins, found for every amount up to n."""
    least = [0]
    for amount in range(1, n + 1):
        least.append(1 + min(least[amount - coin] for coin in (1, b, b**2, b**3) if coin <= amount))
    return least[n]


def combination(m: int, r: int, k: int, c: int) -> int:
    """The one remainder that all numbers with remainder r give."""
    (found,) = {(k * n + c) % m for n in range(r, 50 * m, m)}
    return found


def decimals(a: int, q: int) -> list[int]:
    """Long division, digit by digit."""
    digits = []
    for _ in range(120):
        digits.append(10 * a // q)
        a = 10 * a % q
    return digits


def fibonacci(n: int) -> int:
    """The number itself, by plain addition."""
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def only(found: list[int]) -> int:
    """The single solution."""
    assert len(found) == 1, found
    return found[0]


def is_prime(n: int) -> bool:
    """Trial division."""
    return n > 1 and all(n % d for d in range(2, isqrt(n) + 1))


def first(good: Callable[[int], bool]) -> int:
    """The least positive number that is good."""
    n = 1
    while not good(n):
        n += 1
    return n


@cache
def open_doors(most: int) -> list[int]:
    """The doors that are open after everybody has turned the multiples of their own number."""
    is_open = [False] * (most + 1)
    for k in range(1, most + 1):
        for door in range(k, most + 1, k):
            is_open[door] ^= True
    return [door for door, state in enumerate(is_open) if state]


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


def share(cases: Iterable[bool]) -> Fraction:
    """The part of equally likely cases that are good."""
    listed = list(cases)
    return Fraction(sum(listed), len(listed))


def exact_probability(value: float) -> Fraction:
    """The simple fraction that a long sum comes down to."""
    found = Fraction(value).limit_denominator(2000)
    assert abs(found - value) < 1e-9, value
    return found


def both_given_some(r: int, w: int) -> Fraction:
    """Both of a pair lie below r, among the pairs in which one does."""
    return share(max(pair) < r for pair in combinations(range(r + w), 2) if min(pair) < r)


def bayes(a: int, b: int, p: int, q: int) -> Fraction:
    """Count marked things among 100 * 100, source by source."""
    sources = [0] * a + [1] * b
    marked = [source for source in sources for x in range(100) if x < (p, q)[source]]
    return share(source == 0 for source in marked)


def mean_cost(a: int, b: int, c: int) -> Fraction:
    """The long sum over the number of tries."""
    return exact_probability(fsum(c * k * (1 - a / b) ** (k - 1) * a / b for k in range(1, 1500)))


@cache
def changes(m: int, w: int, last: int = -1) -> Fraction:
    """The mean number of changes still to come, thing by thing."""
    mean = Fraction(0)
    if m:
        mean += Fraction(m, m + w) * ((last == 1) + changes(m - 1, w, 0))
    if w:
        mean += Fraction(w, m + w) * ((last == 0) + changes(m, w - 1, 1))
    return mean


@cache
def draw_is_red(r: int, w: int, k: int) -> Fraction:
    """The probability that draw k is red, draw by draw."""
    if k == 1 or not r * w:
        return Fraction(r, r + w)
    return Fraction(r, r + w) * draw_is_red(r - 1, w, k - 1) + Fraction(w, r + w) * draw_is_red(r, w - 1, k - 1)


def starter_wins(a: int, b: int) -> Fraction:
    """The long sum over the rounds."""
    return exact_probability(fsum((1 - 1 / a) ** k * (1 - 1 / b) ** k / a for k in range(1000)))


def wait_for_two(n: int, j: int) -> Fraction:
    """Follow the probabilities of none, one and two new kinds, draw by draw."""
    none, one, mean = 1.0, 0.0, []
    for _ in range(1200):
        mean.append(none + one)
        none, one = none * j / n, none * (n - j) / n + one * (j + 1) / n
    return exact_probability(fsum(mean))


def first_place(r: int, w: int) -> Fraction:
    """The mean place of the first special thing, draw by draw."""
    mean, unseen = Fraction(0), Fraction(1)
    for drawn in range(w + 1):
        mean += unseen
        unseen *= Fraction(w - drawn, r + w - drawn)
    return mean


def walk(k: int, m: int) -> int:
    """Go on until hardly any walk is still under way, and add up the shares of those that are."""
    shares, steps = [0.0] * (k + m + 1), 0.0
    shares[k] = 1.0
    while (under_way := sum(shares[1:-1])) > 1e-9:
        steps += under_way
        inner = [0.0, *shares[1:-1], 0.0]
        shares = [0.0, *((inner[i - 1] + inner[i + 1]) / 2 for i in range(1, k + m)), 0.0]
    return round(steps)


def joined_rates(a: int, b: int, d: int) -> int:
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


def on_line(p: int, u: int, q: int, v: int, r: int) -> int:
    """Try every whole step that leads from one given term to the other and walk on."""
    step = next(d for d in range(100) if u + sum(d for _ in range(p, q)) == v)
    return u + sum(step for _ in range(p, r))


def grown_sequences(v: int, a: int, b: int) -> Fraction:
    """Grow step by step."""
    value = Fraction(v)
    for k in range(a, b + 1):
        value += value / k
    return value


def fed_back(x: int, p: int, q: int, n: int) -> int:
    """Run the rule."""
    for _ in range(n):
        x = p * x + q
    return x


def start_of(r: int, k: int, n: int) -> int:
    """Try all starts forwards."""

    def end(x: Fraction) -> Fraction:
        for _ in range(n):
            x = x / 2 - k
        return x

    return next(x for x in count(1) if end(Fraction(x)) == r)


def extended(a: int, b: int, c: int, n: int) -> int:
    """Extend the table of differences."""
    terms, step = [a, b, c], c - b
    while len(terms) < n:
        step += (c - b) - (b - a)
        terms.append(terms[-1] + step)
    return terms[n - 1]


def rows_laid(s: int) -> int:
    """Take off rows of growing length while some coins would be left."""
    row = 1
    while s > row:
        s, row = s - row, row + 1
    return s


def last_term(a: int, b: int, m: int) -> int:
    """Find one term after the other so that all the totals come out right."""
    terms: list[int] = []
    for n in range(1, m + 1):
        terms.append(a * n * n + b * n - sum(terms))
    return terms[-1]


def exact_solids(value: float) -> int:
    """The integer that a float stands for."""
    assert abs(value - round(value)) < 1e-5, value
    return round(value)


def least_solids(f: Callable[[float], float], low: float, high: float) -> float:
    """The least_solids value of a convex function, by ternary search."""
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
    return exact_solids(v * sqrt(t / s) ** 3)


def over_an_edge(a: int, b: int, c: int) -> int:
    """The best way over each kind of edge, found by search for the crossing point."""
    ways = permutations((a, b, c))
    return exact_solids(
        min(least_solids(lambda y, x=x, z=z, w=w: hypot(x, y) + hypot(w - y, z), 0, w) for x, w, z in ways)
    )


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

    return exact_solids(heron(o, p, q) + heron(o, q, r))


def nearest(a: int, b: int, c: int, p: int, q: int) -> int:
    """Search the line for its nearest point."""
    return exact_solids(least_solids(lambda x: hypot(x - p, (c - a * x) / b - q), -1000, 1000))


def opposite(a: int, b: int, c: int, d: int, e: int, f: int) -> int:
    """Search for the corner with the same midpoint of diagonals."""
    return next(x * y for x, y in product(range(100), repeat=2) if (c + x, d + y) == (a + e, b + f))


def rolled_out(r: int, s: int) -> int:
    """Lay the cone flat in thin triangles and add up their angles at the tip."""
    thin = 2 * r * sin(pi / 10_000)
    return round(10_000 * degrees(2 * asin(thin / 2 / s)))


CHECKS: dict[str, Callable[..., int | Fraction]] = {
    # archive call numbers
    "tail_of_call_number": lambda a, b: sum([a, a, a, b]),
    "rung_of_box": rung,
    "end_of_seal": lambda y, g: y + sum(15 for _ in range(g)),
    "girth_of_volume": lambda f, p: sum([2] * f + [1] * p + [4]),
    "number_of_twin": twin,
    "end_of_lease": lambda d, v: d + sum(10 if volume == 0 else 3 for volume in range(v)),
    "items_in_blind_run": lambda a, b: sum(not str(number).endswith("0") for number in range(a, b + 1)),
    "place_in_sarn": sarn,
    # counting
    "two_blocks": lambda a, b, c: blocked((a, b, c), 2),
    "none_adjacent": apart,
    "stars_and_bars": lambda n, k: shares(n, k, 0),
    "shares_with_minimum": shares,
    "divisible_by_either": lambda n, a, b: sum(x % a == 0 or x % b == 0 for x in range(1, n + 1)),
    "exactly_one_of_two": one_of_two,
    "paths_via_point": lambda a, b, c, d: words(a, b) * words(c, d),
    "both_groups_represented": mixed,
    "chosen_for_a_circle": lambda n, r: sum(order[0] == min(order) for order in permutations(range(n), r)),
    "repeated_letters": words,
    "at_least_one_special": marked,
    "derangement_and_choice": lambda a, c: (
        c * sum(all(x != i for i, x in enumerate(order)) for order in permutations(range(a)))
    ),
    "steps_of_one_or_more": climbs,
    "rectangles_in_grid": rectangles,
    "exactly_so_many_used": lambda n, m, k: words_using(n, m, 0, k),
    "pieces_by_lines": pieces,
    # data and sets
    "value_that_moved_the_mean": lambda n, m, e: next(x for x in range(200) if sum([m] * n + [x]) == e * (n + 1)),
    "mean_of_two_groups": lambda a, x, b, y: Fraction(sum([x] * a + [y] * b), len([x] * a + [y] * b)),
    "middle_of_overlapping_means": middle,
    "largest_for_mean_and_median": largest,
    "least_common_to_three": least,
    "none_of_three": none,
    "exactly_two_of_three": two,
    "games_until_champion": tournament,
    "drawn_games": draws,
    "guarantee_of_every_kind": lambda *stock: certain(stock, lambda drawn: min(drawn) == 0),
    "guarantee_with_short_stock": lambda *stock: certain(stock[:-1], lambda drawn: max(drawn) < stock[-1]),
    "possible_medians": medians,
    "any_group_contains": first_kind,
    "pairs_from_both_sides": lambda n, a, b: next(x for x in range(1, n) if x * a == (n - x) * b),
    "links_from_degrees": joined,
    "shortest_first": lambda *times: min(sum(map(sum, (p[: i + 1] for i in range(4)))) for p in permutations(times)),
    # equations
    "two_kinds_one_total": lambda n, t, p, q: next(y for y in range(n + 1) if p * (n - y) + q * y == t),
    "pairwise_sums": lambda a, b, c: next(x for x in range(a) if (a - x) + (c - x) == b),
    "cubes_from_sum_and_product": cubes,
    "powers_of_number_and_reciprocal": both_powers,
    "best_product": lambda p, q, k: max((p + Fraction(i, 4)) * (q - k * Fraction(i, 4)) for i in range(-4 * p, 4 * q)),
    "least_sum_for_fixed_product": lambda a, b, n: min(
        a * Fraction(i, 4) + Fraction(4 * b * n, i) for i in range(1, 100)
    ),
    "integers_within_tolerance": lambda a, b, c: sum(abs(a * x - b) <= c for x in range(-b, b + c)),
    "least_total_distance": lambda *places: min(sum(abs(x - place) for place in places) for x in range(80)),
    "rate_of_the_other": lambda a, c: next(x for x in count(1) if Fraction(1, a) + Fraction(1, x) == Fraction(1, c)),
    "first_time_ahead": lambda a, b, c, d: next(n for n in count(1) if a + b * n > c + d * n),
    "difference_of_two_squares": lambda n, d: next(x for x in count(d) if x * x - (x - d) ** 2 == n),
    "equal_powers": lambda u, e, v: next(x for x in count(1) if v**x == u**e),
    "digits_of_power": lambda a, n: len(str(a**n)),
    "number_and_its_root": lambda k, m: next(r * r for r in count(1) if r * r - k * r == m),
    "multiple_shrinks_by_equal_gain": lambda a, b, n: next(x for x in count(1) if a * x + n == b * (x + n)),
    # fractions and percent
    "whole_from_last_rest": lambda a, b, c, r: start(r, 1 - Fraction(1, a), 1 - Fraction(b, c)),
    "before_two_changes": lambda p, q, x: start(x, 1 + Fraction(p, 100), 1 - Fraction(q, 100)),
    "growth_of_a_share": lambda p, q: next(x for x in count(1) if p + Fraction(p * x, 100) == q),
    "growing_by_unit_fractions": unit_growth,
    "telescoping_parts": lambda v, a, n: sum(Fraction(v, k * (k + 1)) for k in range(a, n + 1)),
    "ratio_after_transfer": moved,
    "chained_ratios": lambda a, b, c, d, n: next(
        z for z in range(1, n) if (y := Fraction(z * c, d)) + y * a / b + z == n
    ),
    "equal_parts_of_two": lambda a, b, c, d, n: next(
        x for x in range(n) if Fraction(a * x, b) == Fraction(c * (n - x), d)
    ),
    "equal_results_of_gain_and_loss": lambda s, p: (
        start(s, 1 + Fraction(p, 100)) + start(s, 1 - Fraction(p, 100)) - s - s
    ),
    "fractions_between": lambda a, b, c, d, n: sum(
        Fraction(a, b) < Fraction(k, n) < Fraction(c, d) for k in range(n + 1)
    ),
    "same_added_to_both": lambda a, b, c, d: next(x for x in count(1) if Fraction(a + x, b + x) == Fraction(c, d)),
    "two_reductions_in_one": lambda a, b: sum(i < a or j < b for i in range(100) for j in range(100)) // 100,
    "fraction_back": back,
    "repeating_block": lambda n: by_decimals()[str(n) * 4],
    # guild of bakers
    "cossels_of_loaves": lambda a, p: sum(p for _ in range(a) for _ in range(16)),
    "weight_by_thrum": lambda k, d: sum(Fraction(7 * d, 8) for _ in range(k)),
    "sallow_price": lambda n, p, d: sum(p - sum(3 for _ in range(d)) for _ in range(n)),
    "tollen_of_apprentices": lambda k, y: sum(5 + sum(2 for _ in range(y)) for _ in range(k)),
    "number_of_ovenings": ovenings,
    "kept_in_gimmel": ferment,
    "quern_for_short_weight": lambda n, f: sum(f for _ in range(n) for _ in range(f)),
    "parted_by_ambry": ambry,
    # hex game scoring
    "spurs_of_stones": lambda k, n: k * len(list(permutations(range(n), 2))),
    "value_of_corral": lambda e, s: sum([4] * e + [-1] * s),
    "points_for_graft": lambda p, a, b: p + len(list(product(range(a), range(b)))),
    "stones_in_the_mire": lambda n, m: sum(-1 if stone < m else 1 for stone in range(n)),
    "margin_with_komar": lambda a, b: len(range(a, b + 7)),
    "lurch_of_captures": lurch,
    "pay_of_a_hub": lambda t, a, b: sum(t for side in range(6) if side >= a + b),
    "points_after_drouth": drouth,
    # lighthouse log
    "drells_of_oil": lambda a, b: sum([14] * a + [1] * b),
    "rung_by_the_swale": lambda f, m: sum(minute % 4 == 0 for _ in range(f) for minute in range(m + 1)),
    "kelter_of_ships": lambda a, b: sum([1] * a + [3] * b),
    "paid_on_hadder": lambda n, r: sum(r if night <= 6 else r + r for night in range(1, n + 1)),
    "brailed_height": lambda h, s: next(x for x in range(h) if 2 * (h - x) == s),
    "plimmer_of_bearings": turned,
    "parted_by_murrish": dealt,
    "flashes_in_tholes": lambda g, r: sum(len(range(group)) for _ in range(r) for group in range(1, g + 1)),
    # modular and bases
    "power_remainder": lambda a, n, m: a**n % m,
    "units_digit_of_power": lambda a, n: int(str(a**n)[-1]),
    "tens_digit_of_power": lambda a, n: int(str(a**n)[-2]),
    "clock_backwards": backwards,
    "to_base": lambda n, b: int(numerals(b)[n]),
    "from_base": lambda t, b: numerals(b).index(str(t)),
    "fewest_powers": fewest,
    "find_base": lambda t, n: next(x for x in range(max(map(int, str(t))) + 1, 40) if int(str(t), min(x, 36)) == n),
    "two_remainders": lambda a, r, b, s: next(x for x in count(1) if x % a == r and x % b == s),
    "circle_jumps": lambda a, m, c: next(k for k in count(1) if a * k % m == c),
    "common_shortfall": lambda a, b, c, k: next(n for n in count(1) if all((n + k) % d == 0 for d in (a, b, c))),
    "remainder_of_combination": combination,
    "decimal_cycle_digit": lambda a, q, k: next(islice(decimals(a, q), k - 1, None)),
    "base_addition": lambda x, y, b: int(numerals(b)[numerals(b).index(str(x)) + numerals(b).index(str(y))]),
    "fibonacci_remainder": lambda n, m: fibonacci(n) % m,
    # number properties
    "divisor_count": lambda n: sum(n % d == 0 for d in range(1, n + 1)),
    "consecutive_sums": lambda n: sum(sum(range(p, q + 1)) == n for p in range(1, n) for q in range(p + 1, p + 40)),
    "divisor_sum": lambda n: sum(d for d in range(1, n + 1) if n % d == 0),
    "square_multiplier": lambda n: first(lambda k: isqrt(n * k) ** 2 == n * k),
    "common_divisor_count": lambda a, b: sum(a % d == b % d == 0 for d in range(1, a + 1)),
    "same_remainder_divisor": lambda a, b, c: max(d for d in range(1, c + 1) if a % d == b % d == c % d),
    "partner_from_gcd_and_lcm": lambda a, g, m: only([b for b in range(1, m + 1) if gcd(a, b) == g and lcm(a, b) == m]),
    "largest_square_tiles": lambda a, b: min(a * b // d**2 for d in range(1, a + 1) if a % d == b % d == 0),
    "coprime_count": lambda n: sum(gcd(k, n) == 1 for k in range(1, n + 1)),
    "missing_digit_for_eleven": lambda a, b, c: only([x for x in range(10) if int(f"{a}{b}{x}{c}") % 11 == 0]),
    "page_digits": lambda n: len("".join(map(str, range(1, n + 1)))),
    "digits_below_power_of_ten": lambda n, k: sum(map(int, str(10**n - k))),
    "primes_with_odd_sum": lambda n: only(
        [p * (n - p) for p in range(2, n // 2 + 1) if is_prime(p) and is_prime(n - p)]
    ),
    "reversed_digits": lambda m, s, d: only(
        [n for n in range(100, 1000) if (str(n)[1], int(str(n)[0]) + n % 10, int(str(n)[::-1]) - n) == (str(m), s, d)]
    ),
    "unit_fraction_pairs": lambda n: sum(n * x % (x - n) == 0 for x in range(n + 1, n * n + n + 1)),
    "odd_number_of_divisors": lambda a, b: sum(door >= a for door in open_doors(b)),
    # plane geometry
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
    # probability
    "at_least_one_success": lambda a, b, n: share(min(tries) < a for tries in product(range(b), repeat=n)),
    "one_of_each": lambda r, w: share((x < r) != (y < r) for x, y in permutations(range(r + w), 2)),
    "given_at_least_one": both_given_some,
    "bayes_two_sources": bayes,
    "first_success_at": lambda a, b, n: share(
        t[-1] < a and all(x >= a for x in t[:-1]) for t in product(range(b), repeat=n)
    ),
    "expected_cost_until_success": mean_cost,
    "expected_changes": changes,
    "any_draw_is_like_the_first": draw_is_red,
    "exactly_so_many_heads": lambda n, k: share(sum(tosses) == k for tosses in product((0, 1), repeat=n)),
    "largest_of_several": lambda s, n, m: share(max(rolls) == m for rolls in product(range(1, s + 1), repeat=n)),
    "taking_turns": starter_wins,
    "two_new_kinds": wait_for_two,
    "first_special_position": first_place,
    "some_match": lambda n, k: share(len(set(picks)) < k for picks in product(range(n), repeat=k)),
    "fair_game_length": walk,
    # rates and mixtures
    "joined_later": joined_rates,
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
    # sequences and sums
    "sum_of_multiples": lambda k, a, b: sum(x for x in range(a, b + 1) if x % k == 0),
    "term_from_two_terms": on_line,
    "geometric_total": lambda a, r, n: sum(a * r**i for i in range(n)),
    "endless_sum": lambda a, p, q: Fraction(round(fsum(a * (p / q) ** i for i in range(500)), 6)),
    "telescoping_product": grown_sequences,
    "telescoping_sum": lambda n, a, b: sum(Fraction(n, k * (k + 1)) for k in range(a, b + 1)),
    "squares_from_to": lambda a, n: sum(1 for k in range(a, n + 1) for _ in product(range(k), repeat=2)),
    "cubes_from_to": lambda a, n: sum(k * k * k for k in range(a, n + 1)),
    "multiply_and_add": fed_back,
    "undo_the_halving": start_of,
    "second_differences": extended,
    "rings_around_a_centre": lambda k, n: 1 + sum(k * ring for ring in range(1, n + 1)),
    "beyond_triangular": rows_laid,
    "term_from_totals": last_term,
    "alternating_squares": lambda n, k: sum((-1) ** (n - j) * (k * j) ** 2 for j in range(1, n + 1)),
    # solids and coordinates
    "space_diagonal": lambda a, b, c: exact_solids(dist((0, 0, 0), (a, b, c))),
    "volume_from_faces": from_faces,
    "surface_from_edges_and_diagonal": surface,
    "one_painted_face": lone_faces,
    "volume_from_surfaces": enlarged,
    "rest_of_similar_solid": lambda v, m, n: v - sum(Fraction(v, n**3) for _ in product(range(m), repeat=3)),
    "shortest_way_on_a_box": over_an_edge,
    "balls_into_a_cylinder": depth,
    "tower_of_cubes": skin,
    "shoelace_area": quadrilateral,
    "reflected_path": lambda p, q, d: exact_solids(least_solids(lambda x: hypot(x, p) + hypot(d - x, q), 0, d)),
    "distance_to_line": nearest,
    "lattice_points_in_triangle": lambda a, b: sum(b * x + a * y < a * b for x in range(1, a) for y in range(1, b)),
    "fourth_vertex": opposite,
    "cone_rolled_out": rolled_out,
}
