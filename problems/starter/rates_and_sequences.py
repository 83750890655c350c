"""Rates and sequences: prices, speeds, units, percentages, steps and gaps."""

from itertools import product

from problems.family import ROUND_COUNTS, Worked, family

DOMAIN = "rates_and_sequences"


@family(
    DOMAIN,
    space=product((*range(4, 11), *range(20, 91, 10)), range(2, 7)),
    wordings=(
        "A car drives at {v} km/h for {t} hours. How many kilometres does it drive?",
        "A train moves at a steady {v} miles per hour. How many miles does it cover in {t} hours?",
        "A drone flies {v} metres every second. How many metres does it fly in {t} seconds?",
    ),
)
def distance_travelled(v: int, t: int) -> Worked:
    """Speed times time."""
    return Worked(v * t, f"Speed times time: {v} * {t} = {v * t}.")


@family(
    DOMAIN,
    space=product(range(2, 10), range(2, 11)),
    wordings=(
        "One ticket costs {c} euros. How many euros do {n} tickets cost?",
        "Kofi buys {n} notebooks at {c} dollars each. How many dollars does he pay?",
        "A worker earns {c} coins an hour. How many coins does she earn in {n} hours?",
    ),
)
def total_cost(n: int, c: int) -> Worked:
    """Number times price."""
    return Worked(n * c, f"Number times price: {n} * {c} = {n * c}.")


@family(
    DOMAIN,
    space=product((5, 10, 20, 30, 40, 50, 100, 200), range(2, 11)),
    wordings=(
        "Ben reads {p} pages every day. How many pages does he read in {d} days?",
        "Ida saves {p} euros each week. How many euros has she saved after {d} weeks?",
        "A tap gives {p} litres of water a minute. How many litres flow out in {d} minutes?",
    ),
)
def steady_rate(p: int, d: int) -> Worked:
    """Rate times time."""
    return Worked(p * d, f"Rate times time: {p} * {d} = {p * d}.")


@family(
    DOMAIN,
    space=((v, v * t) for v, t in product((5, 10, 20, 30, 40, 50, 60, 80, 100), range(2, 10)) if v != t),
    wordings=(
        "A bus drives at {v} km/h. How many hours does it need for {d} km?",
        "Pump number one moves {v} litres a minute. In how many minutes does it move {d} litres?",
        "Sara types {v} words every minute. How long does she take for {d} words, in minutes?",
    ),
)
def time_needed(v: int, d: int) -> Worked:
    """Amount divided by rate."""
    return Worked(d // v, f"Amount divided by rate: {d} / {v} = {d // v}.")


@family(
    DOMAIN,
    space=(
        (n,)
        for n in (
            *range(4, 29, 2),
            *(tens + units for tens, units in product((40, 60, 80), range(0, 9, 2))),
            *range(50, 91, 20),
            *range(100, 481, 20),
            *(hundreds + tens for hundreds, tens in product((600, 800), range(0, 81, 20))),
            *range(500, 901, 200),
            1000,
        )
    ),
    wordings=(
        "What is 50% of {n}?",
        "A coat costs {n} euros and is sold for half the price. For how many euros is it sold?",
        "There are {n} seats on a boat, and 50 percent of them are free. How many seats are free?",
    ),
)
def fifty_percent(n: int) -> Worked:
    """Fifty percent is a half."""
    return Worked(n // 2, f"50 percent is a half: {n} / 2 = {n // 2}.")


@family(
    DOMAIN,
    space=((n,) for n in ROUND_COUNTS),
    kinds=5,
    wordings=(
        "How many minutes are there in {n} hours of {kind:music|work|sleep|rain|travel}?",
        "A {kind:flight|voyage|drive|hike|repair} takes {n} hours. One hour has 60 minutes. "
        "How long is the {kind:flight|voyage|drive|hike|repair} in minutes?",
        "Convert {n} minutes of {kind:film|speech|radio|video|silence} to seconds. What is the number of seconds?",
    ),
)
def sixty_each(n: int) -> Worked:
    """Sixty minutes in an hour, sixty seconds in a minute."""
    return Worked(60 * n, f"An hour has 60 minutes and a minute 60 seconds: {n} * 60 = {60 * n}.")


@family(
    DOMAIN,
    space=((n,) for n in ROUND_COUNTS),
    kinds=5,
    wordings=(
        "How many grams are {n} kilograms of {kind:flour|rice|sand|salt|apples}?",
        "A {kind:lake|road|river|valley|beach} is {n} kilometres long. What is its length in metres?",
        "One litre is a thousand millilitres. How many millilitres are {n} litres of "
        "{kind:water|milk|oil|juice|paint}?",
    ),
)
def thousand_each(n: int) -> Worked:
    """A thousand of the small unit in the large one."""
    return Worked(
        1000 * n,
        f"1000 of the small unit make one of the large: {n} * 1000 = {1000 * n}.",
    )


@family(
    DOMAIN,
    space=((k, p) for k, p in product((*range(100, 1001, 100), *range(2000, 5001, 1000)), (10, 20, 30, 40, 50))),
    wordings=(
        "A price of {k} euros is raised by {p}% and later the new price is lowered by {p}%. "
        "How many euros is the final price?",
        "A flock of {k} birds grows by {p} percent in one year and shrinks by {p} percent in the next. "
        "How many birds are there in the end?",
        "A shop with {k} visitors a day first loses {p}% of them; then the number it has left rises by {p}%. "
        "How many visitors a day does it have then?",
    ),
)
def up_and_down_percent(k: int, p: int) -> Worked:
    """Equal percentages up and down do not cancel."""
    answer = k - k * p * p // 10_000
    return Worked(
        answer,
        f"The second change is taken of the changed value, so the two do not cancel: {k} * (100 + {p})/100 * "
        f"(100 - {p})/100 = {answer}, in either order.",
    )


@family(
    DOMAIN,
    space=(
        (u, v) for u, v in product((*range(2, 13), *range(20, 121, 10)), repeat=2) if u < v and 2 * u * v % (u + v) == 0
    ),
    kinds=3,
    wordings=(
        "A {kind:bus|truck|car} drives up to a pass at {u} km/h and back down the same road at {v} km/h. "
        "What is its average speed over the whole trip in km/h?",
        "A {kind:boat|ferry|ship} goes to an island at {u} miles per hour and returns the same way at {v} miles per "
        "hour. How many miles per hour does it make on average over both ways?",
        "A {kind:runner|hare|robot} runs the first half of the distance at {u} metres per minute and the second half "
        "at {v} metres per minute. What is the average speed, in metres per minute, over the full distance?",
    ),
)
def round_trip_speed(u: int, v: int) -> Worked:
    """Over equal distances the mean speed is the harmonic mean."""
    answer = 2 * u * v // (u + v)
    return Worked(
        answer,
        "Over equal distances the average speed is the harmonic mean 2uv/(u + v), not (u + v)/2: "
        f"2 * {u} * {v} / ({u} + {v}) = {2 * u * v} / {u + v} = {answer}.",
    )


@family(
    DOMAIN,
    space=product((*range(4, 12), 21, 31), (2, 3, 4, 5, 6, 10, 20)),
    wordings=(
        "A bell rings {n} times, with {g} seconds from one stroke to the next. "
        "How many seconds pass between the first and the last stroke?",
        "A log is sawn into {n} pieces, one cut at a time. Each cut takes {g} minutes. How many minutes is that?",
        "{n} lamps stand in a straight row, {g} metres apart. How many metres is it from lamp one to the lamp "
        "at the other end?",
    ),
)
def gaps_not_posts(n: int, g: int) -> Worked:
    """Count the gaps, which are one fewer."""
    return Worked(
        (n - 1) * g,
        f"Count the gaps (or cuts), which are one fewer than the things: {n} - 1 = {n - 1}, "
        f"and {n - 1} * {g} = {(n - 1) * g}.",
    )


@family(
    DOMAIN,
    test_only=True,
    space=((n, c, m) for n, c, m in product((2, 3, 4), range(2, 11), (10, 20, 30, 50)) if m - n * c > 1),
    wordings=(
        "Pia buys {n} pens at {c} euros each and pays with {m} euros. How many euros does she get back?",
        "A roll of {m} metres of cloth loses {n} pieces of {c} metres each. How many metres are left on the roll?",
        "{m} apples are in a basket. {n} children take {c} apples each. How many apples remain?",
    ),
)
def change_due(n: int, c: int, m: int) -> Worked:
    """Multiply, then take away."""
    return Worked(m - n * c, f"{n} * {c} = {n * c}, and {m} - {n * c} = {m - n * c}.")


@family(
    DOMAIN,
    test_only=True,
    space=((a, a + d, a + 2 * d, n) for a, d, n in product(range(1, 11), (2, 3, 4, 5, 10), (6, 11))),
    wordings=(
        "A sequence goes {a}, {b}, {c}, ... and always grows by the same amount. What is term number {n}, "
        "if {a} is term number 1?",
        "A tower of blocks has {a} blocks after the first hour, {b} after the second and {c} after the third, "
        "growing steadily. How many blocks has it after hour {n}?",
        "House numbers on one side of a street are {a}, {b}, {c} and so on in equal steps. "
        "What is the number of house {n} in this row?",
    ),
)
def later_term(a: int, b: int, c: int, n: int) -> Worked:
    """First term plus n - 1 steps."""
    answer = a + (n - 1) * (b - a)
    return Worked(
        answer,
        f"From term 1 to term {n} there are {n - 1} steps: {a} + {n - 1} * {b - a} = {answer}.",
    )


FAMILIES = (
    distance_travelled,
    total_cost,
    steady_rate,
    time_needed,
    fifty_percent,
    sixty_each,
    thousand_each,
    up_and_down_percent,
    round_trip_speed,
    gaps_not_posts,
    change_due,
    later_term,
)
