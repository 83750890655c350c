"""Number properties: divisors, common divisors and multiples, digits, primes and parity."""

from itertools import product
from math import gcd, isqrt, prod

from problems.family import Worked, family

DOMAIN = "number_properties"
COPRIME_PAIRS = ((2, 3), (3, 4), (2, 5), (3, 5), (4, 5), (2, 7), (3, 7), (5, 7), (5, 6))
COPRIME_PAIRS_BOTH_WAYS = (
    (2, 3),
    (3, 2),
    (2, 5),
    (5, 2),
    (3, 4),
    (4, 3),
    (3, 5),
    (5, 3),
    (7, 2),
    (5, 6),
)
SPACED = ((1, 3, 6), (2, 5, 7), (3, 4, 8), (2, 6, 9), (4, 9, 11))
"""Triples whose differences have no common divisor."""


def prime_powers(n: int) -> dict[int, int]:
    """The exponent of each prime factor."""
    powers: dict[int, int] = {}
    p = 2
    while n > 1:
        while n % p == 0:
            powers[p] = powers.get(p, 0) + 1
            n //= p
        p += 1
    return powers


def factored(n: int) -> str:
    """The number as a product of prime powers."""
    return " * ".join(f"{p}^{e}" if e > 1 else str(p) for p, e in prime_powers(n).items())


def divisors(n: int) -> int:
    """How many divisors the prime exponents give."""
    return prod(e + 1 for e in prime_powers(n).values())


def odd_part(n: int) -> int:
    """What is left when all factors 2 are taken out."""
    return n // (n & -n)


@family(
    DOMAIN,
    space=((n,) for n in range(60, 700) if (count := divisors(n)) > 12 or (count > 8 and n % 8 > 4)),
    wordings=(
        "How many positive whole numbers divide {n} without remainder?",
        "A sergeant lines up {n} recruits in equal rows. Any number of rows is allowed, even a single row or rows of "
        "one recruit. How many row counts can he choose from?",
        "A rope of {n} metres is cut into equal pieces, each a whole number of metres long. Leaving it uncut is "
        "allowed too. How many piece lengths can occur?",
        "Let t run through 1, 2, 3 and so on without end. For how many values of t is {n}/t an integer?",
        "A printer has to fill exactly {n} pages with booklets of one common page count. One thick booklet is fine, "
        "and so are leaflets of a single page. From how many page counts can the printer pick?",
        "For every whole hop length there is one frog. Each frog starts at point 0 of a number line and hops to the "
        "right again and again. How many of these frogs land on point {n}?",
        "A tune lasts {n} beats. The composer wants to write it in bars with equally many whole beats, the last bar "
        "complete as well. A bar may have just one beat, and one bar may take the entire tune. How many bar lengths "
        "are open to her?",
        "Two positive integers u and v have the product {n}. How many different values are possible for u?",
        "A prize of {n} dollars goes in equal shares to all winners of a contest, and everyone receives a whole "
        "number of dollars. There is at least one winner. How many different numbers of winners are possible?",
        "The curve y = {n}/x is drawn in a coordinate plane. Through how many points does it pass whose coordinates "
        "are both positive integers?",
        "A ratchet with k teeth turns by exactly one tooth at each click, always the same way, and k may be any whole "
        "number from one up. After {n} clicks the ratchet is in its starting position. How many different values can k "
        "have?",
        "For a positive integer k, let g be the greatest integer that goes into both k and {n}. How many values of k "
        "are equal to their g?",
    ),
)
def divisor_count(n: int) -> Worked:
    """Raise each exponent by one and multiply."""
    exponents = prime_powers(n).values()
    return Worked(
        prod(e + 1 for e in exponents),
        "To count divisors, factor into primes, add 1 to each exponent and multiply. "
        f"{n} = {factored(n)}, so {' * '.join(f'({e} + 1)' for e in exponents)} = {divisors(n)}.",
    )


@family(
    DOMAIN,
    space=((n,) for n in range(18, 300) if (count := divisors(odd_part(n))) > 4 or (count > 2 and n % 5 == 0)),
    wordings=(
        "In how many ways can {n} be written as a sum of two or more consecutive positive whole numbers?",
        "Cans are piled up in at least two layers. Each layer has exactly one can fewer than the layer under it. How "
        "many different piles use up {n} cans?",
        "Each day Ida reads one page more than the day before. She starts with at least one page and finishes a book "
        "of {n} pages after two days or later. How many page counts are possible for her first day?",
        "A theatre is planned for {n} seats. There will be at least two rows, and every row is one seat longer than "
        "the row in front of it. Find the number of possible seating plans.",
        "Choose integers p and q with 0 < p < q and add up everything from p to q, both included. For how many "
        "choices (p, q) is the total {n}?",
        "Houses in a lane are numbered one by one from 1 on. A postman serves an unbroken stretch of two or more "
        "houses whose numbers total {n}. How many stretches fit this description?",
        "From the age of one on, an ageless elf gets on each birthday as many acorns as he is years old. How many "
        "runs of two or more successive birthdays brought him exactly {n} acorns in total?",
        "A chemist owns one weight for each whole number of grams, from one gram upwards. She loads her scale with at "
        "least two weights, taking neighbouring values without skipping any, and it reads {n} grams. How many "
        "different loads give this reading?",
        "A triangular flag of unknown size has one patch in its top row, two in the next, three in the next, and so "
        "on down to its lowest row. A tailor cuts off the uppermost rows, however many, perhaps none. What is left "
        "has two or more rows and exactly {n} patches. How many shapes are possible for what is left?",
        "A magic tower clock strikes once in its first hour, twice in its second, three times in its third, and so "
        "forth for ever. A guest listened through two or more whole hours in a row and heard exactly {n} strokes. How "
        "many different stays agree with that?",
        "Let T(k) be 1 + 2 + ... + k for positive integers k, and let T(0) = 0. How many pairs (i, k) of non-negative "
        "integers satisfy T(k) - T(i) = {n}, if k has to exceed i by more than one?",
        "In two or more jumps a grasshopper crosses a plank that is {n} inches long, from its one end exactly to the "
        "other. The first jump measures a whole number of inches, no less than one inch, and each further jump is an "
        "inch longer than the jump before it. How many different crossings of this sort exist?",
    ),
)
def consecutive_sums(n: int) -> Worked:
    """Each odd divisor above 1 gives one run of consecutive numbers."""
    odd = odd_part(n)
    return Worked(
        divisors(odd) - 1,
        "Each odd divisor greater than 1 gives exactly one such sum. Take all factors 2 out, count the divisors of "
        f"the odd part, and leave out 1. The odd part of {n} is {odd}, with {divisors(odd)} divisors. "
        f"{divisors(odd)} - 1 = {divisors(odd) - 1}.",
    )


@family(
    DOMAIN,
    space=((n,) for n in range(18, 240) if divisors(n) >= 6 and len(prime_powers(n)) > 1),
    wordings=(
        "What do all positive divisors of {n} add up to, the number {n} itself included?",
        "In turn k = 1, k = 2 and so on up to k = {n}, a bell is struck k times if k goes evenly into {n}, and not at "
        "all otherwise. How many strokes are heard altogether?",
        "Milo makes one card for each whole number that fits exactly into {n}, from one up to {n}, and writes the "
        "number on it. Which sum do his cards show?",
        "There are several ways to pack {n} sweets into equal bags with none left over, from a single bag to {n} "
        "bags. For each way a shop notes how many bags it takes. What is the total of the notes?",
        "Call a positive integer b a builder of {n} if some whole multiple of b equals {n}. Compute the sum of all "
        "the builders.",
        "Planks are sold in every whole length up to {n} feet. A carpenter takes one plank of each length that, "
        "repeated end to end, covers {n} feet exactly. How many feet of plank does she take?",
        "For each whole number from one to {n} there is a lamp, and it draws as many watts as its number. Only the "
        "lamps whose numbers are divisors of {n} are switched on. What power do they draw together, in watts?",
        "Otto divides {n} on a calculator by every integer from one to {n} in turn. Whenever the result is an "
        "integer, he enters this result in a notebook. Add up the notebook entries. What comes out?",
        "Ines cuts out paper rectangles with an area of {n} square centimetres whose widths and heights are whole "
        "numbers of centimetres, one rectangle for each possible width, be it more or less than the height. She lays "
        "all of them in a row, each with its width along the row, without gaps or overlaps. How long is the row in "
        "centimetres?",
        "There are {n} beekeepers, numbered from one on. Beekeeper number k comes to the market on day k and on every "
        "k-th day after that, and always brings k jars of honey. How many jars are brought to the market on day {n}?",
        "While k takes every positive integer as its value, gcd(k, {n}) takes only a limited number of values. What is "
        "the sum of these values, each of them added just once?",
        "The {n} members of a sports club could train in teams of equal size in several ways, from teams of a single "
        "member up to one team of everybody. For each possible team size the secretary buys one net with as many balls "
        "in it as a team of this size has members. How many balls does she buy?",
    ),
)
def divisor_sum(n: int) -> Worked:
    """Multiply the sums 1 + p + p^2 + ... of the prime powers."""
    sums = [sum(p**i for i in range(e + 1)) for p, e in prime_powers(n).items()]
    return Worked(
        prod(sums),
        "The sum of all divisors is the product, over the primes p with exponent e, of 1 + p + ... + p^e. "
        f"{n} = {factored(n)}, so the factors are {', '.join(map(str, sums))}. "
        f"{' * '.join(map(str, sums))} = {prod(sums)}.",
    )


@family(
    DOMAIN,
    space=(
        (n,)
        for n in range(12, 500)
        if len(odd := [p for p, e in prime_powers(n).items() if e % 2]) > 1 and prod(odd) < n
    ),
    wordings=(
        "By which smallest positive whole number must {n} be multiplied to give a perfect square?",
        "A florist plants seedlings from full trays of {n}. The bed must have as many rows as columns, and every "
        "opened tray is used up. What is the least number of trays?",
        "The product of {n} and an unknown positive integer has a whole-number square root. How small can the unknown "
        "integer be?",
        "Positive integers x and y satisfy {n}x = y · y. Find the minimum of x.",
        "Several bands of {n} players each form one parade block with equally many ranks and files. How few bands can "
        "take part?",
        "A square plot with a side of a whole number of metres is divided into strips of {n} square metres. At least "
        "how many strips are there?",
        "A rectangle is {n} mm long and a whole number of mm wide. Some square has the same area, and its side is a "
        "whole number of mm too. What is the smallest possible width of the rectangle, in mm?",
        "A photo, {n} mm in width, is reduced twice, both times by the same factor. After the first reduction and "
        "after the second the width in mm is an integer. Find the least final width in mm.",
        "Every vase at an auction is sold for {n} dollars. A dealer buys vases, at least one, and her bill in dollars "
        "turns out to be the square of an integer. What is the least number of vases that she can have bought?",
        "The geometric mean of {n} and a positive integer z is itself an integer. Determine the smallest such z.",
        "For some positive integers z the square root of the fraction {n}/z is a rational number. Find the smallest "
        "such z.",
        "The bell of a lighthouse rings {n} times on every day. Starting with his first day of service, a keeper keeps "
        "a count of all its rings up to the present. At the end of which day of service is this count for the first "
        "time a whole number multiplied by itself?",
    ),
)
def square_multiplier(n: int) -> Worked:
    """Supply one more of each prime with an odd exponent."""
    odd = [p for p, e in prime_powers(n).items() if e % 2]
    return Worked(
        prod(odd),
        "In a square every prime has an even exponent, so multiply once by each prime whose exponent is odd. "
        f"{n} = {factored(n)}. Primes with an odd exponent: {', '.join(map(str, odd))}. "
        f"{' * '.join(map(str, odd))} = {prod(odd)}.",
    )


@family(
    DOMAIN,
    space=((g * x, g * y) for g, (x, y) in product((12, 16, 18, 20, 24, 30, 36, 48, 60), COPRIME_PAIRS)),
    wordings=(
        "How many positive whole numbers divide both {a} and {b}?",
        "{a} apples and {b} pears are packed into baskets. All baskets have the same contents, and no fruit is left "
        "over. How many different numbers of baskets are possible, one basket included?",
        "Slabs of one whole-foot length are to pave, uncut and end to end, a corridor of {a} feet and also a corridor "
        "of {b} feet. How many slab lengths would do?",
        "The fraction {a}/{b} can be cancelled by k when k goes into its top and its bottom. How many positive "
        "integers k are there, counting k = 1?",
        "A beacon flashes at time zero and then every k seconds, where k is a whole number. It was seen to flash at "
        "second {a} and at second {b}. How many values of k agree with that?",
        "One scout troop has {a} members and another has {b}. Each troop splits up by itself, but all patrols of both "
        "troops get the same size, perhaps only one scout. In how many ways can this size be set?",
        "A duke mints coins of a single value, a whole number of cents. With such coins alone, a bill of {a} cents "
        "can be paid exactly, and so can a bill of {b} cents. How many coin values are possible, one cent being among "
        "them?",
        "A round dial has evenly spaced marks, perhaps just a single mark. Moving its pointer on by {a} marks brings "
        "it back to where it was. Moving it on by {b} marks does so too. What is the number of mark counts that fit?",
        "A rectangular tray of {a} mm by {b} mm is covered with equal square stickers that neither overlap nor stick "
        "out nor leave gaps. The side of a sticker is a whole number of mm. For how many side lengths does this work?",
        "One serial runs for {a} minutes and another for {b} minutes. An editor cuts both into episodes, and all "
        "episodes of the two serials are to be equally long, a whole number of minutes. How many episode lengths are "
        "available to him?",
        "A positive integer d has the property that {a}x + {b}y is a multiple of d for any choice of integers x and y. "
        "How many such d exist?",
        "A fence with the shape of an L has one arm of {a} yards and another of {b} yards. There is a post at the "
        "corner, a post at either end, and the distance from post to post along the fence is always the same whole "
        "number of yards. How many distances are possible?",
    ),
)
def common_divisor_count(a: int, b: int) -> Worked:
    """The common divisors are the divisors of the gcd."""
    g = gcd(a, b)
    return Worked(
        divisors(g),
        "The common divisors of two numbers are the divisors of their greatest common divisor. "
        f"gcd({a}, {b}) = {g} = {factored(g)}. Add 1 to each exponent and multiply: "
        f"{' * '.join(str(e + 1) for e in prime_powers(g).values())} = {divisors(g)}.",
    )


@family(
    DOMAIN,
    space=((d * x + r, d * y + r, d * z + r) for d, r, (x, y, z) in product(range(6, 18), (2, 5), SPACED)),
    wordings=(
        "What is the largest whole number that leaves the same remainder when it divides {a}, {b} and {c}?",
        "Three sacks hold {a}, {b} and {c} beans. Each is emptied into cups of one size, all filled to the brim, and "
        "each time equally many beans stay behind, too few for a cup. How many beans can a cup hold at most?",
        "A child counts the n horses of a merry-go-round as they pass, 1, 2, 3 and on, without ever starting again. "
        "The counts {a}, {b} and {c} fall on the same horse. What is the greatest possible n?",
        "The entries {a}, {b} and {c} occur in a list of integers that grows by one constant step. Find the largest "
        "step that such a list can have.",
        "Ferries leave a harbour at a fixed interval of a whole number of minutes. The log shows departures in "
        "minutes {a}, {b} and {c} after midnight. How long, in minutes, can the interval be at most?",
        "Determine the greatest modulus m for which {a} ≡ {b} ≡ {c} (mod m).",
        "In a lost kingdom all weeks were equally long, and every day of the week had its own name. Days {a}, {b} and "
        "{c} of a queen's reign had one and the same name. What is the longest week, in days, for which this is true?",
        "A long text is typed in lines of equal length, every character taking up one position. The characters number "
        "{a}, {b} and {c} of the text stand in the same column. At most how many characters fit on a line?",
        "The slats of a fence are painted in colours that come in a fixed order, over and over, and no colour occurs "
        "twice within a round. Slats {a}, {b} and {c}, counted from the gate, are painted alike. At most how many "
        "colours are there?",
        "What is the largest base in which the decimal numbers {a}, {b} and {c}, once converted to it, all end in one "
        "and the same digit?",
        "For some integer t the three differences {a} - t, {b} - t and {c} - t are all multiples of d. What is the "
        "largest integer that d can be?",
        "Someone has dripped paint on the rim of a cart wheel, so that it leaves one spot on the straight road at each "
        "turn. There are spots {a}, {b} and {c} inches from a milestone, all on the same side of it, and the "
        "circumference of the wheel is a whole number of inches. At most how many inches is the circumference?",
    ),
)
def same_remainder_divisor(a: int, b: int, c: int) -> Worked:
    """The divisor must divide the differences."""
    g = gcd(b - a, c - b)
    return Worked(
        g,
        "Numbers with the same remainder have differences that the divisor divides, so take the greatest common "
        f"divisor of the differences. {b} - {a} = {b - a} and {c} - {b} = {c - b}. gcd({b - a}, {c - b}) = {g}.",
    )


@family(
    DOMAIN,
    space=((g * x, g, g * x * y) for g, (x, y) in product((3, 4, 5, 6, 8, 9, 12), COPRIME_PAIRS_BOTH_WAYS)),
    wordings=(
        "Two numbers have the greatest common divisor {g} and the least common multiple {m}. One of them is {a}. What "
        "is the other?",
        "Of two meshing cogwheels one has {a} teeth. The largest number that divides both tooth counts is {g}, and "
        "the wheels first stand as at the start after {m} teeth have passed. How many teeth does the second wheel "
        "have?",
        "A bus leaves every {a} minutes and a tram every x minutes. They start together and next leave together {m} "
        "minutes later. The longest time that fits evenly into both intervals is {g} minutes. What is x?",
        "For a positive integer y we have gcd(y, {a}) = {g} and lcm(y, {a}) = {m}. Determine y.",
        "Red rods are {a} cm long. The shortest line that can be laid with red rods only and also with blue rods only "
        "is {m} cm. The longest stick that measures both rods exactly is {g} cm. How many cm long is a blue rod?",
        "I think of a number. The smallest positive number in its times table that is also in the times table of {a} "
        "is {m}. No number above {g} goes into mine and into {a}, but {g} does. Which number do I think of?",
        "One wallpaper repeats its motif every {a} cm, another every x cm, x being a whole number. Hung from a common "
        "line, both begin their motif at equal height again for the first time {m} cm below. The largest whole number "
        "that divides {a} and x is {g}. Find x.",
        "A pupil adds one over {a} and one over z, where z is a positive integer. The lowest common denominator of "
        "these fractions is {m}. In the fraction {a}/z, the greatest number by which top and bottom can be cancelled "
        "is {g}. Determine z.",
        "A club has {a} women and x men. It can be divided into {g} teams that all have the same number of women and "
        "the same number of men, but not into more such teams. The smallest positive number of coins that could be "
        "dealt out evenly to the women alone, and just as well to the men alone, is {m}. Find x.",
        "Lea rows round a lake in {a} minutes, and Mia takes some other whole number of minutes for a round. They set "
        "out together and go on without a rest, and after {m} minutes they are back at the pier at the same moment "
        "for the first time. Counted in minutes, the two times for a round are both multiples of {g}, and no greater "
        "whole number has them both as multiples. How many minutes does Mia need for a round?",
        "A rectangle is {a} mm wide and x mm high, where x is an integer. The largest squares with sides of a whole "
        "number of mm that can tile it have sides of {g} mm. Copies of the rectangle, none of them rotated, can be "
        "laid together to form a square, and the smallest such square has sides of {m} mm. What is x?",
        "In a ballet he repeats a figure of {a} steps without end while she repeats a figure of some other number of "
        "steps, and they make each step at the same moment. Having begun their figures together, they first end them "
        "together after {m} steps. The largest section, in steps, that divides both figures evenly is {g} steps. How "
        "many steps are there in her figure?",
    ),
)
def partner_from_gcd_and_lcm(a: int, g: int, m: int) -> Worked:
    """The product of two numbers is gcd times lcm."""
    return Worked(
        g * m // a,
        "The product of two numbers equals their greatest common divisor times their least common multiple. "
        f"So the other number is {g} * {m} / {a} = {g * m // a}.",
    )


@family(
    DOMAIN,
    space=((g * x, g * y) for g, (x, y) in product(range(4, 13), COPRIME_PAIRS) if g not in (x, y)),
    wordings=(
        "A floor of {a} by {b} decimetres is covered with equal square tiles, none of them cut and all as large as "
        "possible. How many tiles are laid?",
        "What is the smallest number of congruent squares into which a rectangle with sides {a} and {b} can be "
        "divided?",
        "A quilt measures {a} inches one way and {b} inches the other. It is sewn from identical square patches, and "
        "Greta wants as few seams as she can have. How many patches does she need?",
        "A field {b} yards long and {a} yards wide is split completely into square allotments of one size. If the "
        "allotments are as big as they can be, how many families get one?",
        "Square sheets of the same size, placed edge to edge, must exactly fill a poster frame {a} cm wide and {b} cm "
        "high. The copy shop uses the fewest sheets it can. How many is that?",
        "The cells of an image, {a} rows by {b} columns, are grouped in blocks of k rows and k columns, with no block "
        "cut off at a border. For the largest suitable k, how many blocks arise?",
        "A slab of gingerbread, {a} cm by {b} cm, is cut into equal squares with no waste. The side of the squares is "
        "chosen as long as it can be. How many pieces of gingerbread are there?",
        "A church window {a} inches wide and {b} inches high is filled with square panes, all equal, without gaps or "
        "overlaps. Every pane costs one dollar, whatever its size. What is the lowest possible cost in dollars?",
        "A rectangular nature reserve stretches {a} km from north to south and {b} km from east to west. It is mapped "
        "on sheets that show square regions, all of one size, which do not overlap, miss no spot and contain nothing "
        "outside the reserve. What is the smallest number of sheets for such a map?",
        "Solar panels, all of them squares of the same size, are mounted side by side on a flat roof of {a} by {b} "
        "feet, so that they cover it and do not stick out. An electrician runs one cable to each panel, and no other "
        "panel size would require fewer cables. How many cables are there?",
        "Astronauts roof a hall of {a} by {b} metres with identical square plates, edge to edge, without cutting any "
        "and without an overhang. A rocket can bring only one plate per flight, however big or small it is. With the "
        "best choice of plate, how many flights are necessary?",
        "A ballroom wall, {a} inches long and {b} inches high, is to disappear completely behind mirrors. The mirrors "
        "have to be square and of equal size, must not overlap, and none may extend beyond the wall. Each of them "
        "hangs on a hook of its own. How many hooks does the decorator need at least?",
    ),
)
def largest_square_tiles(a: int, b: int) -> Worked:
    """The side of the largest square is the gcd."""
    g = gcd(a, b)
    answer = (a // g) * (b // g)
    return Worked(
        answer,
        "The side of the largest square that fits both ways is the greatest common divisor of the two lengths. "
        f"gcd({a}, {b}) = {g}, so there are {a} / {g} = {a // g} squares one way and {b} / {g} = {b // g} the other. "
        f"{a // g} * {b // g} = {answer}.",
    )


@family(
    DOMAIN,
    space=((n,) for n in range(20, 180) if len(prime_powers(n)) > 1),
    wordings=(
        "How many of the numbers from 1 to {n} have no common divisor with {n} except 1?",
        "How many fractions strictly between zero and one, written with the denominator {n}, cannot be reduced?",
        "For how many k among the positive integers below {n} does some multiple of k leave remainder 1 when it is "
        "divided by {n}?",
        "Let x be one of 1, 2, ..., {n}. Find the number of x for which the least common multiple of x and {n} is "
        "their product.",
        "A box holds cards that are numbered from 1 to {n}. Each card that shares a prime factor with {n} is thrown "
        "out. What number of cards stays in the box?",
        "{n} children sit in a ring. A ball is always thrown s seats onward, with one and the same s from 1 up to but "
        "not including {n}. How many values of s let the ball reach everyone?",
        "Very thin trees stand at all points of the plane with integer coordinates, except at the origin, where an "
        "owl sits. A tree hides every tree straight behind it. How many of the trees (k, {n}), with k from one to "
        "{n}, can the owl see?",
        "A secret script has {n} signs, numbered from zero on. A key k, which is a positive integer below {n}, turns "
        "sign s into the sign whose number is the remainder of k times s on division by {n}. How many keys never turn "
        "two different signs into the same sign?",
        "At every drum beat a spotlight turns by k/{n} of a full circle, always the same way. For how many of the "
        "whole numbers k from one to {n} does it take {n} beats, and no fewer, before the light points in its first "
        "direction again?",
        "A customer and a shop both have notes of {n} dollars and notes of k dollars in unlimited number, and no "
        "other money. For how many whole numbers k from one up to {n} can the customer pay exactly one dollar, with "
        "change given if necessary?",
        "Certain complex numbers z satisfy z^{n} = 1, although z^m differs from 1 for every positive integer m smaller "
        "than {n}. How many are they?",
        "A cogwheel with {n} teeth drives another cogwheel, which has k gaps for these teeth. While they keep turning, "
        "every tooth is to enter every gap sooner or later. For how many of the whole numbers k from one to {n} is "
        "that the case?",
    ),
)
def coprime_count(n: int) -> Worked:
    """Euler's totient: take off the share of each prime."""
    answer = prod(p ** (e - 1) * (p - 1) for p, e in prime_powers(n).items())
    factors = " * ".join(f"(1 - 1/{p})" for p in prime_powers(n))
    return Worked(
        answer,
        "The numbers up to n without a common factor with n are counted by Euler's phi: multiply n by (1 - 1/p) for "
        f"each prime p that divides n. {n} = {factored(n)}, so {n} * {factors} = {answer}.",
    )


@family(
    DOMAIN,
    space=(
        (a, b, c)
        for a, b, c in product(range(1, 10), range(10), range(1, 10))
        if (b + c - a) % 11 not in (0, 1, 10, a, b, c) and (a + b + c) % 3 == 0
    ),
    wordings=(
        "The four-digit number {a}{b}x{c} is divisible by 11. Which digit is x?",
        "Ink covers one digit of a bill for {a}{b}▮{c} crowns. Eleven friends paid it in equal whole amounts. What "
        "digit is under the ink?",
        "By which digit must the star in {a}{b}*{c} be replaced so that a multiple of eleven arises?",
        "Nils remembers his four-digit locker code as {a}, then {b}, then something, then {c}. He also knows that "
        "dividing it by eleven leaves nothing over. Which digit has he forgotten?",
        "On a faulty display the tens digit is dark. The thousands digit reads {a}, the hundreds digit {b}, the units "
        "digit {c}, and the full number is eleven times some integer. What should the dark place show?",
        "Find the digit t for which 1000·{a} + 100·{b} + 10·t + {c} lies in the times table of 11.",
        "The number of players at a tournament was printed as {a}{b}_{c}, with a gap for a figure that failed to "
        "print. All the players formed full teams of eleven, with nobody over. Which figure belongs in the gap?",
        "A raffle ticket is valid if it bears a multiple of eleven. Lena's valid ticket has four figures. The front "
        "two are {a}{b}, and the rearmost is {c}. Name the figure between them.",
        "A rusty signpost tells pilgrims how many miles are ahead of them, in four figures. Only {a}{b} at the "
        "beginning and {c} at the end are still legible. The way is walked in stages of exactly eleven miles each, "
        "and the last stage is as long as the others. Which figure has the rust destroyed?",
        "Ravi wants to type a four-digit multiple of eleven, but the key for its third digit does not respond, and "
        "just {a}{b}{c} appears. Which digit is on that key?",
        "Four cards with a digit on each lie side by side, so that they show a four-digit number, and this number is a "
        "multiple of eleven. The card at the left end shows {a}, the second one {b}, and the card at the right end "
        "{c}. The third card lies face down. What digit is hidden on it?",
        "In some empire, games were held in precisely those years whose number can be divided by eleven without "
        "remainder. A chronicle describes such games, but a moth has been at the four-digit year: its first two "
        "figures are {a}{b}, the next one is eaten, and the last figure is {c}. Which figure has the moth eaten?",
    ),
)
def missing_digit_for_eleven(a: int, b: int, c: int) -> Worked:
    """The alternating digit sum decides about 11."""
    answer = (b + c - a) % 11
    return Worked(
        answer,
        "A number is divisible by 11 when its alternating digit sum is a multiple of 11. "
        f"With the missing digit x it is {a} - {b} + x - {c} = x + ({a - b - c}). "
        f"This must be a multiple of 11 with x from 0 to 9, so x = {answer}.",
    )


@family(
    DOMAIN,
    space=((n,) for n in range(103, 1000, 8)),
    wordings=(
        "The pages of a book are numbered from 1 to {n}. How many digits do these page numbers have altogether?",
        "The numbers 1, 2, 3, ..., {n} are written one after the other without gaps. How long is the string of digits?",
        "A sign painter is paid one coin for every digit. She paints the room numbers 1 to {n} on the doors of a huge "
        "hotel. What does she earn in coins?",
        "All runners of a marathon wear bibs, and the bibs go from 1 through {n}. Each figure on a bib is a separate "
        "patch. How many patches have to be ironed on?",
        "Sam types every integer from 1 up to {n}, in order, with a space after each. How often does he press a digit "
        "key?",
        "Into the slabs of a path a mason has cut the first {n} positive integers, one per slab. Count the single "
        "numerals that he cut.",
        "Playing hide and seek, a robot counts aloud from one to {n} and pronounces each number digit by digit. Every "
        "digit takes it one second, and it makes no pauses. For how many seconds does the robot speak?",
        "A telegraph office charges by the digit. A prankster wires the complete list of whole numbers that starts at "
        "one and stops at {n}. State the number of digits for which he is charged.",
        "A very old town held a feast on every one of its birthdays, from the first up to number {n}. Each time a "
        "cake bore the number of the birthday in candles, a new candle for each digit. How many candles were used in "
        "all?",
        "For a positive integer k let L(k) be the number of its decimal digits. Evaluate L(1) + L(2) + ... + L({n}).",
        "From day 1 to day {n} of his sentence a prisoner scratches the number of the day into the wall of his cell. "
        "Scratching a figure takes him one minute. How many minutes has he spent on this by the end of day {n}?",
        "Behind the point, the decimal 0.123456789101112... lists the positive integers in order. It breaks off after "
        "the integer {n} has been listed completely. How many decimal places does it have?",
    ),
)
def page_digits(n: int) -> Worked:
    """Count one-digit, two-digit and three-digit numbers apart."""
    return Worked(
        189 + 3 * (n - 99),
        "Count by length: 9 numbers have one digit, 90 have two, and the rest from 100 on have three. "
        f"9 * 1 + 90 * 2 = 189, and {n} - 99 = {n - 99} numbers give 3 * {n - 99} = {3 * (n - 99)}. "
        f"189 + {3 * (n - 99)} = {189 + 3 * (n - 99)}.",
    )


@family(
    DOMAIN,
    space=product(range(6, 21), (73, 16, 38, 52, 64, 85, 127, 246)),
    wordings=(
        "What is the sum of the digits of 10^{n} - {k}?",
        "A counter shows a 1 followed by {n} zeros and is then turned back by {k}. What do the digits that it shows "
        "now add up to?",
        "Which digit sum does the number have that lies {k} below ten to the power {n}?",
        "A vault held 10^{n} toy coins, and {k} were taken out. The number of coins left is engraved on a plate, and "
        "engraving a digit d costs d dollars. How many dollars does the engraving cost?",
        "Let N be the largest number with exactly {n} digits. Find the digit sum of N + 1 - {k}.",
        "An unknown number becomes 10^{n} when {k} is added to it. All its digits are entered into an adding machine, "
        "one by one. Which total appears?",
        "A beach had ten to the power {n} grains of sand until a crab carried off {k} of them. A gull writes the "
        "number of remaining grains in full and adds up all its digits. What is the gull's result?",
        "The pinball record is a one with {n} zeros after it. Tess misses the record by {k} points. For each digit d "
        "of her score, every place counted, she wins d free balls. How many free balls does she win altogether?",
        "An abacus has one wire for each decimal place, and a digit d is shown by d raised beads. The value 10^{n} is "
        "set on it, and then {k} is subtracted. How many beads are raised in the end?",
        "A star is exactly 10^{n} km away from a base. A probe that flies straight from the base to the star has {k} "
        "km left to go. It signals the distance covered so far in decimal notation, sending d beeps for a digit d. "
        "How many beeps is that?",
        "A fair expects visitor number 10^{n} some day, and {k} people have visited it so far. A board displays how "
        "many more visitors have to come until that one is inside, and each digit d on the board is held by d nails. "
        "How many nails hold all its digits?",
        "There is exactly one way to write 10^{n} - {k} as c_0 + c_1 · 10 + c_2 · 10² + ... with integer coefficients "
        "from 0 to 9. Find c_0 + c_1 + c_2 + ... for it.",
    ),
)
def digits_below_power_of_ten(n: int, k: int) -> Worked:
    """Nines in front, and the small rest behind."""
    length = len(str(k))
    rest = 10**length - k
    tail = sum(map(int, str(rest)))
    answer = 9 * (n - length) + tail
    return Worked(
        answer,
        f"Below a power of ten the leading digits are nines. {k} has {length} digits, so {n} - {length} = "
        f"{n - length} nines come first, and the end is 10^{length} - {k} = {rest}, with digit sum {tail}. "
        f"9 * {n - length} + {tail} = {answer}.",
    )


@family(
    DOMAIN,
    space=((p + 2,) for p in range(11, 270) if divisors(p) == 2),
    wordings=(
        "Two prime numbers add up to {n}. What is their product?",
        "The sides of a rectangle are primes when measured in centimetres, and half the perimeter is {n} cm. What is "
        "the area in square centimetres?",
        "There are {n} eggs in two nests, and each nest has a prime number of eggs. Multiply the one number by the "
        "other. What do you get?",
        "The equation x² - {n}x + c = 0 has two solutions, both of them primes. Find c.",
        "A film of {n} minutes has one interval. The part before it and the part after it both last a prime number of "
        "minutes. How large is the first length times the second?",
        "Split {n} into two summands greater than one that have no divisors but one and themselves. Report the number "
        "that the summands give when multiplied.",
        "All {n} votes in an election went to two candidates, and both vote counts turned out to be prime. A "
        "newspaper printed the product of the counts. Which number did it print?",
        "A choir consists of altos and basses, {n} singers in all. The altos are prime in number, and so are the "
        "basses. Every alto sings one duet with every bass. How many duets are sung?",
        "A bar of chocolate has a prime number of rows and a prime number of columns. If the rows are counted and "
        "then the columns, the two results add up to {n}. Of how many squares does the bar consist?",
        "Ole buys pencils of one kind. The number of pencils is prime, and so is the price of one pencil in cents. "
        "Number and price come to {n} when they are added. How many cents does he pay for all the pencils?",
        "Two lamps begin to blink at the same moment. One of them blinks every p seconds and the other every q "
        "seconds, where p and q are primes with p + q = {n}. After how many seconds do the lamps blink at the same "
        "moment again for the first time?",
        "The menu of a canteen has {n} lines, each of which names either a soup or a pudding. The number of soups is "
        "prime, and so is the number of puddings. A lunch is one soup with one pudding. How many different lunches can "
        "be ordered?",
    ),
)
def primes_with_odd_sum(n: int) -> Worked:
    """An odd sum needs the even prime 2."""
    return Worked(
        2 * (n - 2),
        "An odd sum needs one even and one odd summand, and the only even prime is 2. "
        f"So the other prime is {n} - 2 = {n - 2}. 2 * {n - 2} = {2 * (n - 2)}.",
    )


@family(
    DOMAIN,
    space=(
        (m, a + c, 99 * (c - a))
        for a, c, m in product(range(1, 9), range(2, 10), range(10))
        if a < c and (a + 2 * c + m) % 3 == 0
    ),
    wordings=(
        "A three-digit number has the middle digit {m}, and its outer digits add up to {s}. Written backwards it is "
        "larger by {d}. What is the number?",
        "Read from right to left, a house number grows by {d}. It has three digits. The tens digit is {m} and the "
        "other two make {s} together. Which house number is it?",
        "Let N = 100a + 10·{m} + c, where the digits a and c have the sum {s}. Exchanging a and c turns N into N + "
        "{d}. Find N.",
        "By swapping the first and last figure of a three-figure price, a clerk charged {d} dollars too much. Between "
        "them stood the figure {m}, and the swapped figures total {s}. What was the correct price in dollars?",
        "Uma types her three-digit PIN from back to front. Taken as numbers, the wrong entry beats the right one by "
        "{d}. The second digit is {m}, and the first plus the third is {s}. What is the PIN?",
        "The three wheels of a gauge were mounted in reverse order, so that it reads {d} litres too high. The central "
        "wheel shows {m}, while the end wheels show digits of sum {s}. How many litres are there really?",
        "Three tiles, each with a digit, show how many visitors a zoo had. A child puts the tiles in the opposite "
        "order, and the number shown, still of three digits, rises by {d}. The tile in the centre has {m}, and the "
        "remaining tiles have values with the sum {s}. How many visitors were there?",
        "Two islands have populations of three figures, the same figures in opposite order. One island has {d} people "
        "more than its neighbour. In either population the central figure is {m}, while first figure plus last figure "
        "makes {s}. How many people live on the less populated island?",
        "A guidebook gives the height of a hill, a three-figure number of metres, with its figures from last to "
        "first, and so makes the hill {d} metres taller than it is. The second figure is {m}, and the two others come "
        "to {s} when they are added. How tall is the hill in metres?",
        "At breakfast the trip meter of a motorbike had a three-digit reading. Its tens digit was {m}, and its "
        "hundreds digit and its units digit made {s} together. Exactly {d} km later the meter showed the same digits "
        "in reverse order. What was the reading at breakfast?",
        "The frequency of a control tower is a three-digit number of kHz. A pilot sets the digits on her radio in the "
        "wrong direction, last one first, and so ends up {d} kHz too high. The digit in the middle is {m}; the digits "
        "on either side of it have the sum {s}. What is the frequency of the tower in kHz?",
        "An apprentice who is used to a script that runs from right to left misreads how many nails are in stock. He "
        "believes that there are {d} nails more than there really are. The true number is written with three figures, "
        "of which the second is {m}, while the remaining two amount to {s}. How many nails are in stock?",
    ),
)
def reversed_digits(m: int, s: int, d: int) -> Worked:
    """Reversing three digits changes the number by 99 times the difference of the outer ones."""
    gap = d // 99
    a, c = (s - gap) // 2, (s + gap) // 2
    answer = 100 * a + 10 * m + c
    return Worked(
        answer,
        "Reversing three digits changes the number by 99 times the difference of the outer digits. "
        f"{d} / 99 = {gap}, and their sum is {s}, so the last digit is ({s} + {gap}) / 2 = {c} and the first is "
        f"{s} - {c} = {a}. With {m} between them the number is {answer}.",
    )


@family(
    DOMAIN,
    space=((n,) for n in range(6, 100) if divisors(n * n) > 8),
    wordings=(
        "How many pairs (x, y) of positive integers satisfy 1/x + 1/y = 1/{n}? Where x and y differ, (x, y) and (y, "
        "x) are two pairs.",
        "A left and a right resistor are joined in parallel, so the reciprocals of their resistances add up. Both "
        "have whole numbers of ohms, and together they act like one of {n} ohms. How many choices of left and right "
        "are there?",
        "A red tap alone fills a trough in a whole number of minutes, and so does a blue tap. When both run, they "
        "need {n} minutes. How many different pairs of times, the red one first, are possible?",
        "For how many whole numbers x greater than {n} is {n}x divisible by x - {n}?",
        "A lens with a focal length of {n} mm gives a sharp image if 1/g + 1/b = 1/{n}, where the object is g mm and "
        "the image b mm away from it. For how many whole numbers g is b a positive whole number as well?",
        "A plot of land is x metres wide and y metres deep, both whole numbers. Its area in square metres is exactly "
        "{n} times the sum x + y. How many plots (x, y) are there, if (x, y) and (y, x) with different sides count as "
        "two?",
        "A probe flies to a moon at a constant speed and returns along the same path at a constant speed, both whole "
        "numbers of km/s. Its average speed over the whole journey is twice {n} km/s. In how many ways can outward "
        "and return speed be chosen? Swapping unequal speeds counts as another way.",
        "In a coordinate plane, draw every straight line through the point ({n}, {n}) that crosses the horizontal "
        "axis at a positive integer and also the vertical axis at a positive integer. How many lines are drawn?",
        "One mast, x metres high, and another, y metres high, stand upright on level ground, where x and y are whole "
        "numbers. From the top of each mast a straight wire runs to the foot of the other, and the wires cross {n} "
        "metres above the ground. How many pairs (x, y) are possible, if (x, y) and (y, x) count separately whenever "
        "x and y differ?",
        "A right triangle has a horizontal leg and a vertical leg, both of whole-number length. A square with sides "
        "of length {n} fits into it with one corner at the right angle and the opposite corner on the hypotenuse. How "
        "many choices are there for the horizontal and the vertical length, if exchanging unequal lengths gives "
        "another choice?",
        "The base and the top of a quadrilateral are parallel, and their lengths x and y in cm are whole numbers. A "
        "parallel to them through the point where the diagonals cross meets the two other sides, each at a distance of "
        "{n} cm from that point. How many pairs (x, y) can occur? For x and y that differ, (x, y) and (y, x) are "
        "different pairs.",
        "On two neighbouring circular tracks toy trains run in opposite directions, a red train with a lap time of x "
        "seconds and a blue train with a lap time of y seconds, both whole numbers. From one passing to the next "
        "passing it is always {n} seconds. How many different combinations (x, y) are there, where the red time is "
        "stated first?",
    ),
    test_only=True,
)
def unit_fraction_pairs(n: int) -> Worked:
    """The divisors of the square, one for each pair."""
    count = divisors(n * n)
    return Worked(
        count,
        f"Clear the fractions: (x - {n}) * (y - {n}) = {n}^2, so each divisor of {n}^2 gives one pair. {n * n} = "
        f"{factored(n * n)}. Raise each exponent by one and multiply: the number of divisors is {count}.",
    )


@family(
    DOMAIN,
    space=product(range(20, 500, 47), range(900, 5000, 430)),
    wordings=(
        "How many whole numbers from {a} to {b} have an odd number of positive divisors?",
        "Doors 1 to {b} are closed. Porter number k, for k = 1, 2 and so on up to {b}, opens or closes every door "
        "whose number is a multiple of k, the other way than he finds it. How many of the doors from {a} on are open "
        "in the end?",
        "Pebbles are laid in full rectangles, and 2 rows of 3 differ from 3 rows of 2. A heap is odd if the number of "
        "its rectangles is odd, single lines included. How many of the heaps of {a}, {a} + 1, ..., {b} pebbles are "
        "odd?",
        "A number is called well paired if its divisors can be put in pairs, each divisor in one pair and every pair "
        "with that number as its product. How many numbers from {a} to {b} are not well paired?",
        "A clerk stamps form number n once for each whole number that divides n, with red and black ink in turn and "
        "red first. On how many of the forms {a} to {b} is the last stamp red?",
        "Let t(n) say in how many ways n = u * v with positive integers u and v, where the order matters. How many of "
        "the values t({a}), t({a} + 1), ..., t({b}) are odd?",
        "To ball number n come all positive divisors of n as guests. Any two guests may dance together, and as many "
        "couples as possible dance at once. At how many of the balls {a} to {b}, both included, must a guest sit out?",
        "For every positive integer k there is a trader who calls at an oasis on day k and on every k-th day after "
        "that. How many of the days {a} to {b}, first and last included, see an odd number of traders at the oasis?",
        "On card number n a librarian lists all whole numbers that divide n, from the smallest to the largest. How "
        "many of the cards {a} to {b}, including these two, have an entry exactly in the middle, with as many entries "
        "before it as after it?",
        "For how many integers n with {a} ≤ n ≤ {b} does the curve xy = n pass through an odd number of points whose "
        "coordinates are both positive integers?",
        "The positive integers that divide n are to be coloured, exactly half of them red and the other half green. "
        "For how many integers n with {a} ≤ n ≤ {b} is this impossible?",
        "On a table there is a coin for each whole number from {a} to {b}, both included, and all coins show heads. "
        "The coin for n is then turned over once for every way of dealing n cards into piles of equal size, where a "
        "single pile and piles of one card are ways as well. How many coins show tails afterwards?",
    ),
    test_only=True,
)
def odd_number_of_divisors(a: int, b: int) -> Worked:
    """Only squares have an odd number of divisors."""
    low, high = isqrt(a - 1), isqrt(b)
    return Worked(
        high - low,
        f"Divisors come in pairs d and n/d. Only where these are equal, in a square, is their number odd, so count "
        f"the squares. Up to {b} there are {high}, since {high}^2 = {high**2}, and below {a} there are {low}. {high} "
        f"- {low} = {high - low}.",
    )


FAMILIES = (
    divisor_count,
    consecutive_sums,
    divisor_sum,
    square_multiplier,
    common_divisor_count,
    same_remainder_divisor,
    partner_from_gcd_and_lcm,
    largest_square_tiles,
    coprime_count,
    missing_digit_for_eleven,
    page_digits,
    digits_below_power_of_ten,
    primes_with_odd_sum,
    reversed_digits,
    unit_fraction_pairs,
    odd_number_of_divisors,
)
