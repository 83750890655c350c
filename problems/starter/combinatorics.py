"""Combinatorics: counting, guarantees, chances and small games."""

from fractions import Fraction
from itertools import product
from math import comb

from problems.family import ROUND_COUNTS, Worked, family

DOMAIN = "combinatorics"


@family(
    DOMAIN,
    space=((n,) for n in ROUND_COUNTS),
    kinds=5,
    wordings=(
        "How many legs do {n} {kind:cats|dogs|cows|horses|goats} have in total?",
        "{n} {kind:tables|chairs|beds|desks|benches} stand in a room, and each {kind:table|chair|bed|desk|bench} has "
        "four legs. How many {kind:table|chair|bed|desk|bench} legs are there?",
        "What is the number of wheels on {n} {kind:cars|carts|vans|wagons|taxis} with four wheels each?",
    ),
)
def four_each(n: int) -> Worked:
    """Four of something on each."""
    return Worked(4 * n, f"Four on each: {n} * 4 = {4 * n}.")


@family(
    DOMAIN,
    space=((n,) for n in ROUND_COUNTS),
    kinds=5,
    wordings=(
        "How many {kind:fingers|toes|keys|buttons|apples} are on {n} {kind:hands|feet|rings|shirts|branches}, with "
        "five {kind:fingers|toes|keys|buttons|apples} on each {kind:hand|foot|ring|shirt|branch}?",
        "A {kind:starfish|paper star|lamp|coat rack|cactus} has five arms. What is the number of arms of {n} "
        "{kind:starfish|paper stars|lamps|coat racks|cactuses}?",
        "{n} teams of five {kind:players|dancers|singers|swimmers|pupils} enter a hall. "
        "How many {kind:players|dancers|singers|swimmers|pupils} enter?",
    ),
)
def five_each(n: int) -> Worked:
    """Five of something on each."""
    return Worked(5 * n, f"Five on each: {n} * 5 = {5 * n}.")


@family(
    DOMAIN,
    space=product(range(2, 11), range(2, 10)),
    wordings=(
        "Noa has {a} shirts and {b} skirts. How many different outfits of one shirt and one skirt can she put on?",
        "A café offers {a} soups and {b} desserts. A lunch is one soup and one dessert. "
        "How many different lunches are there?",
        "{a} roads lead from Arl to Bex, and {b} roads lead from Bex to Cray. In how many ways can you choose a route "
        "from Arl to Bex and on to Cray?",
    ),
)
def outfits(a: int, b: int) -> Worked:
    """Independent choices multiply."""
    return Worked(a * b, f"Independent choices multiply: {a} * {b} = {a * b}.")


@family(
    DOMAIN,
    space=product(range(2, 11), range(2, 10)),
    wordings=(
        "A hall has {r} rows of {c} chairs. How many chairs are there?",
        "An orchard has {r} rows with {c} apple trees in each row. How many apple trees does it have?",
        "Soldiers stand in {r} lines, {c} in each line. What is the number of soldiers?",
    ),
)
def seats_in_rows(r: int, c: int) -> Worked:
    """Rows times columns."""
    return Worked(r * c, f"Rows times places in a row: {r} * {c} = {r * c}.")


@family(
    DOMAIN,
    space=product(range(2, 11), (2, 3, 4, 5, 6, 8, 10, 20)),
    wordings=(
        "There are {n} boxes with {k} pencils in each box. How many pencils are there altogether?",
        "A shop sells {n} bags. Each bag holds {k} oranges. How many oranges does it sell?",
        "{n} vases contain {k} flowers each. What is the total number of flowers?",
    ),
)
def packed_boxes(n: int, k: int) -> Worked:
    """Equal groups."""
    return Worked(n * k, f"{n} groups of {k}: {n} * {k} = {n * k}.")


@family(
    DOMAIN,
    space=((n,) for n in (*range(4, 19), 20, 21)),
    kinds=4,
    wordings=(
        "{n} {kind:people|guests|children|farmers} meet and everybody shakes hands once with everybody else. How many "
        "handshakes are there?",
        "In a league of {n} {kind:teams|clubs|schools|towns} each {kind:team|club|school|town} plays each other "
        "{kind:team|club|school|town} exactly once. How many games are played?",
        "{n} {kind:points|dots|pins|nails} lie on a circle, and each two of them are joined by a straight line "
        "segment. How many segments are drawn?",
    ),
)
def handshakes(n: int) -> Worked:
    """Unordered pairs."""
    answer = comb(n, 2)
    return Worked(answer, f"Unordered pairs: {n} * {n - 1} / 2 = {answer}.")


@family(
    DOMAIN,
    space=product(range(2, 11), range(2, 11)),
    wordings=(
        "A bag holds {r} red balls and {w} white balls. One ball is drawn at random. "
        "What is the probability that it is red? Give a fraction in lowest terms.",
        "A pencil case contains {r} sharp pencils and {w} blunt ones. Eva takes one without looking. "
        "What is the chance that it is sharp, as a fraction in lowest terms?",
        "A wheel of fortune has {r} winning fields and {w} losing fields, all of the same size. With which probability "
        "does one spin win? Answer with a fraction in lowest terms.",
    ),
)
def bag_chance(r: int, w: int) -> Worked:
    """Favourable over all."""
    chance = Fraction(r, r + w)
    return Worked(
        chance,
        f"Favourable over all: {r} of {r + w}, and {r}/{r + w} in lowest terms is {chance}.",
    )


@family(
    DOMAIN,
    space=((k, m) for k, m in product(range(3, 10), range(2, 7)) if k * (m - 1) <= 30),
    kinds=3,
    wordings=(
        "A drawer holds plenty of {kind:socks|buttons|ribbons} in each of {k} colours. In the dark, how many "
        "{kind:socks|buttons|ribbons} must you take out to be certain of {m} {kind:socks|buttons|ribbons} "
        "of the same colour?",
        "A shop sells {k} kinds of {kind:soup|cake|tea}. What is the smallest number of customers, each buying one "
        "{kind:soup|cake|tea}, that makes it certain that at least {m} of them buy the same kind?",
        "Children pick one card each from {k} large heaps, one heap for each {kind:animal|flower|country}. How many "
        "children are needed to guarantee that some {kind:animal|flower|country} is held by at least {m} of them?",
    ),
)
def same_colour_guarantee(k: int, m: int) -> Worked:
    """The pigeonhole principle in the worst case."""
    answer = k * (m - 1) + 1
    return Worked(
        answer,
        f"Worst case: {m - 1} of each of the {k} kinds, which is {k * (m - 1)}, and still no {m} alike. "
        f"One more decides: {k} * {m - 1} + 1 = {answer}.",
    )


DERANGEMENTS = (1, 0, 1, 2, 9)


@family(
    DOMAIN,
    space=((n, n - wrong) for wrong, most in ((2, 12), (3, 9), (4, 5)) for n in range(max(3, wrong), most + 1)),
    kinds=4,
    wordings=(
        "{n} {kind:letters|cards|bills|invitations} go into {n} addressed envelopes, one in each. In how many ways "
        "can this be done so that the number of {kind:letters|cards|bills|invitations} in the right envelope is "
        "exactly {k}?",
        "{n} guests take the {n} {kind:hats|coats|umbrellas|bags} at the door, one each. In how many ways can they do "
        "so, if the number of guests with their own {kind:hat|coat|umbrella|bag} is to be exactly {k}?",
        "The numbers 1 to {n} stand in a row. A number is {kind:settled|happy|fixed|loyal} when it stands in the "
        "place of its own value. How many arrangements have exactly {k} {kind:settled|happy|fixed|loyal} numbers?",
    ),
)
def mixed_up_letters(n: int, k: int) -> Worked:
    """Choose the right ones, derange the rest."""
    wrong = n - k
    answer = comb(n, k) * DERANGEMENTS[wrong]
    return Worked(
        answer,
        f"Choose the {k} that are right: C({n}, {k}) = {comb(n, k)}. The other {wrong} must all be wrong: derangements "
        f"D(2), D(3), D(4) are 1, 2, 9, so D({wrong}) = {DERANGEMENTS[wrong]}. "
        f"{comb(n, k)} * {DERANGEMENTS[wrong]} = {answer}.",
    )


@family(
    DOMAIN,
    test_only=True,
    space=((a, b) for a, b in product(range(2, 10), range(3, 11))),
    wordings=(
        "A chocolate bar of {a} by {b} squares is broken along its lines into single squares. Each break splits one "
        "piece into two. How many breaks are needed?",
        "A sheet of {a} rows of {b} stamps is torn into single stamps, one piece at a time along a perforation. "
        "How many tears does it take?",
        "A field of {a} by {b} plots is divided by fences. Each fence cuts one area into two, "
        "until every plot is an area of its own. How many fences are put up?",
    ),
)
def chocolate_breaks(a: int, b: int) -> Worked:
    """Each break adds one piece."""
    answer = a * b - 1
    return Worked(
        answer,
        f"Each break adds exactly one piece: from 1 to {a * b} pieces takes {answer} breaks.",
    )


@family(
    DOMAIN,
    test_only=True,
    space=((n, k) for n, k in product(range(11, 50), (4, 9)) if n % (k + 1)),
    wordings=(
        "Two players take turns to remove 1 to {k} stones from a heap of {n}. Whoever takes the last stone wins. "
        "How many stones must the first player take at first to be sure to win?",
        "Ann and Bo count up from 0, each in turn adding a whole number from 1 to {k}. Whoever says {n} wins. "
        "Ann starts. Which number must she say first to force a win?",
        "A counter stands {n} steps from the goal. Two players in turn move it 1 to {k} steps nearer; reaching the "
        "goal wins. By how many steps must the first player move it at the start to be certain of winning?",
    ),
)
def subtraction_game(n: int, k: int) -> Worked:
    """Leave a multiple of k + 1."""
    return Worked(
        n % (k + 1),
        f"Leave a multiple of {k} + 1 = {k + 1}, and answer each move up to {k + 1}. {n} = {k + 1} * {n // (k + 1)} + "
        f"{n % (k + 1)}, so start with {n % (k + 1)}.",
    )


FAMILIES = (
    four_each,
    five_each,
    outfits,
    seats_in_rows,
    packed_boxes,
    handshakes,
    bag_chance,
    same_colour_guarantee,
    mixed_up_letters,
    chocolate_breaks,
    subtraction_game,
)
