"""Number theory: round numbers, digits, divisors, remainders and representations."""

from itertools import product
from math import gcd

from problems.family import Worked, family

DOMAIN = "number_theory"

DOUBLED_WITHOUT_CARRY = tuple(10 * tens + units for tens, units in product(range(1, 5), range(1, 5)))
"""Two-digit numbers that are doubled digit by digit."""


@family(
    DOMAIN,
    space=(
        (n,)
        for n in (
            *range(3, 11),
            *DOUBLED_WITHOUT_CARRY,
            *range(20, 101, 10),
            *(10 * n for n in DOUBLED_WITHOUT_CARRY),
            *range(200, 1001, 100),
            *range(2000, 10_000, 1000),
        )
    ),
    wordings=(
        "What is twice {n}?",
        "Which number do you get when you double {n}?",
        "Ann has {n} stamps, and Bo has two times as many. How many stamps does Bo have?",
    ),
)
def twice(n: int) -> Worked:
    """Double a number."""
    return Worked(2 * n, f"2 * {n} = {2 * n}.")


@family(
    DOMAIN,
    space=((a * unit, b * unit) for unit, a, b in product((10, 100), range(1, 10), range(1, 10)) if a + b <= 10),
    wordings=(
        "What is {a} + {b}?",
        "Find the sum of {a} and {b}.",
        "Which number is {a} more than {b}?",
    ),
)
def sum_of_tens(a: int, b: int) -> Worked:
    """Tens and hundreds are added like units."""
    return Worked(a + b, f"{a} + {b} = {a + b}.")


@family(
    DOMAIN,
    space=((a * unit, b * unit) for unit, a, b in product((10, 100), range(3, 11), range(1, 10)) if a > b),
    wordings=(
        "What is {a} - {b}?",
        "Find the difference between {a} and {b}.",
        "Which number is {b} less than {a}?",
    ),
)
def difference_of_tens(a: int, b: int) -> Worked:
    """Tens and hundreds are taken away like units."""
    return Worked(a - b, f"{a} - {b} = {a - b}.")


@family(
    DOMAIN,
    space=(
        (n,)
        for n in (
            *range(2, 31),
            *range(35, 101, 5),
            *range(110, 201, 10),
            *range(300, 1001, 100),
            *range(2000, 10_000, 1000),
        )
    ),
    wordings=(
        "What is {n} times 100?",
        "Which number do you get when you multiply {n} by one hundred?",
        "A bank note is worth 100 crowns. How many crowns are {n} such notes worth?",
    ),
)
def hundreds(n: int) -> Worked:
    """Two zeros more."""
    return Worked(100 * n, f"{n} * 100 = {100 * n}.")


@family(
    DOMAIN,
    space=((n,) for n in range(101, 1000) if n % 10),
    wordings=(
        "What is the sum of the digits of {n}?",
        "Mara adds up all the digits of the number {n}. What total does she get?",
        "A bicycle lock is set to {n}. What do you get when you add the digits on the lock together?",
    ),
)
def digit_sum(n: int) -> Worked:
    """The sum of the digits, once."""
    total = sum(map(int, str(n)))
    return Worked(total, f"{' + '.join(str(n))} = {total}.")


@family(
    DOMAIN,
    space=product((*range(2, 10), 11, 12), range(2, 10)),
    wordings=(
        "What is the units digit of {a} × {b}?",
        "Multiply {a} by {b}. Which digit stands in the ones place of the product?",
        "A crate holds {a} trays of {b} eggs. What is the last digit of the number of eggs in the crate?",
    ),
)
def units_digit_of_product(a: int, b: int) -> Worked:
    """The last digit of a small product."""
    return Worked(a * b % 10, f"{a} * {b} = {a * b}, and its last digit is {a * b % 10}.")


@family(
    DOMAIN,
    space=(
        (g * x, g * y)
        for g, x, y in product(range(2, 11), range(2, 7), range(3, 8))
        if x < y and gcd(x, y) == 1 and g * y <= 50
    ),
    wordings=(
        "What is the greatest common divisor of {a} and {b}?",
        "Mia has {a} roses and {b} tulips. She makes identical bouquets and uses every flower. "
        "What is the largest number of bouquets she can make?",
        "Two ribbons, {a} cm and {b} cm long, are cut into pieces that all have the same whole number of centimetres, "
        "with nothing left over. How many centimetres long is the longest possible piece?",
    ),
)
def common_divisor(a: int, b: int) -> Worked:
    """The greatest common divisor of two small numbers."""
    return Worked(gcd(a, b), f"The greatest common divisor of {a} and {b} is {gcd(a, b)}.")


@family(
    DOMAIN,
    space=((n, d) for n, d in product(range(11, 60), (3, 4, 5, 10)) if n % d and n < 10 * d),
    wordings=(
        "What is the remainder when {n} is divided by {d}?",
        "A baker packs {n} rolls into bags of {d}. He fills as many bags as he can. How many rolls are left over?",
        "There are {n} children. They form teams of {d} until too few are left for another team. "
        "How many children have no team?",
    ),
)
def small_remainder(n: int, d: int) -> Worked:
    """What is left after division."""
    return Worked(
        n % d,
        f"Divide with remainder: {n} = {d} * {n // d} + {n % d}, so {n % d} is left.",
    )


@family(
    DOMAIN,
    space=((n,) for n in range(29, 1000) if n > 100 or n // 10 + n % 10 > 9),
    wordings=(
        "Add the digits of {n}. If the result has more than one digit, add its digits again, and so on "
        "until a single digit is left. Which digit is it?",
        "A machine replaces a number by the sum of its digits, again and again, and stops at a one-digit number. "
        "It is fed {n}. At which number does it stop?",
        "Tom writes {n}. Under each number of two or more digits he writes the sum of its digits. "
        "What is the last number he writes?",
    ),
)
def digital_root(n: int) -> Worked:
    """Adding digits to the end gives the remainder by 9, with 9 for 0."""
    answer = (n - 1) % 9 + 1
    total = sum(map(int, str(n)))
    return Worked(
        answer,
        "The repeated digit sum is the remainder on division by 9 (9 where the remainder is 0). "
        f"The digits of {n} add up to {total}; repeated until one digit is left this gives {answer}.",
    )


@family(
    DOMAIN,
    space=((n,) for n in range(10, 76)),
    wordings=(
        "How many zeros are at the end of {n}! (the product of all whole numbers from 1 to {n})?",
        "The product 1 × 2 × 3 × ... × {n} is written out in full. With how many zeros does it end?",
        "How many times in a row can {n}! be divided by 10 before the result is no longer a whole number?",
    ),
)
def factorial_zeros(n: int) -> Worked:
    """Zeros at the end of a factorial come from factors 5."""
    fives, more = n // 5, n // 25
    return Worked(
        fives + more,
        "Each zero needs a factor 5 (factors 2 abound), so count factors 5 in n!: multiples of 5, and multiples of 25 "
        f"once more. {n} // 5 = {fives} and {n} // 25 = {more}, together {fives + more}.",
    )


@family(
    DOMAIN,
    space=(
        (a, b) for a, b in product(range(3, 9), range(4, 31)) if a < b and gcd(a, b) == 1 and (a - 1) * (b - 1) <= 60
    ),
    kinds=2,
    wordings=(
        "A post office sells only {a}-{kind:cent|penny} and {b}-{kind:cent|penny} stamps. What is the largest whole "
        "number of {kind:cents|pence} that cannot be made exactly with these stamps?",
        "{kind:Dumplings|Muffins} are sold only in boxes of {a} and boxes of {b}. What is the largest number of "
        "{kind:dumplings|muffins} that nobody can buy exactly?",
        "In a game every {kind:hit|throw} scores either {a} or {b} points. What is the largest total score that is "
        "impossible?",
    ),
)
def two_stamps(a: int, b: int) -> Worked:
    """The largest total out of reach of two coprime values."""
    answer = (a - 1) * (b - 1) - 1
    return Worked(
        answer,
        "For two values a and b without a common factor the largest total that cannot be made is "
        f"(a - 1) * (b - 1) - 1: {a - 1} * {b - 1} - 1 = {answer}.",
    )


@family(
    DOMAIN,
    space=((n,) for n in range(12, 89) if n not in (13, 21, 34, 55)),
    wordings=(
        "The Fibonacci numbers are 1, 2, and from then on always the sum of the two before. Write {n} as a sum of "
        "Fibonacci numbers, no two of them neighbours in the list. What is the second largest number in the sum?",
        "Coins are worth 1 florin, 2 florins, and then each as much as the two next smaller coins together. Ida pays "
        "{n} florins with different coins, no two of them neighbours in size. What is her second best coin worth?",
        "In the list of Fibonacci numbers, which starts 1, 2, 3, some entries are marked, never two in a row, "
        "and the marked entries add up to {n}. What is the second largest marked entry?",
    ),
)
def zeckendorf_second(n: int) -> Worked:
    """Zeckendorf's sum is found greedily."""
    terms = zeckendorf(n)
    return Worked(
        terms[1],
        "Such a sum is unique (Zeckendorf) and is found greedily: take the largest Fibonacci number that fits, "
        f"then go on with the rest. {n} = {' + '.join(map(str, terms))}, so the second largest is {terms[1]}.",
    )


def zeckendorf(n: int) -> list[int]:
    """The Fibonacci numbers, largest first, no two neighbours, that add up to n."""
    terms = []
    for number in (55, 34, 21, 13, 8, 5, 3, 2, 1):
        if number <= n:
            terms.append(number)
            n -= number
    return terms


@family(
    DOMAIN,
    test_only=True,
    space=((a * b, b) for a, b in product(range(2, 11), range(2, 11)) if a != b),
    wordings=(
        "What is {n} divided by {d}?",
        "Which number do you have to multiply by {d} to get {n}?",
        "{n} marbles are shared equally among {d} children. How many marbles does each child get?",
    ),
)
def exact_quotient(n: int, d: int) -> Worked:
    """Division that comes out even."""
    return Worked(n // d, f"{n} / {d} = {n // d}.")


FAMILIES = (
    twice,
    sum_of_tens,
    difference_of_tens,
    hundreds,
    digit_sum,
    units_digit_of_product,
    common_divisor,
    small_remainder,
    digital_root,
    factorial_zeros,
    two_stamps,
    zeckendorf_second,
    exact_quotient,
)
