"""Modular arithmetic and bases: remainders of powers, clocks, congruences, last digits and other bases."""

from itertools import count, product
from math import gcd, lcm

from problems.family import Worked, family

DOMAIN = "modular_and_bases"


def in_base(n: int, b: int) -> str:
    """The numeral of n in base b."""
    return (in_base(n // b, b) if n >= b else "") + str(n % b)


def cycle(a: int, m: int) -> list[int]:
    """The remainders of a, a^2, a^3 and so on, up to the first 1."""
    period = next(k for k in count(1) if a**k % m == 1)
    return [a**k % m for k in range(1, period + 1)]


def meeting(a: int, r: int, b: int, s: int) -> int:
    """The least number with the remainders r by a and s by b, for coprime a and b."""
    return (r * b * pow(b, -1, a) + s * a * pow(a, -1, b)) % (a * b)


@family(
    DOMAIN,
    space=(
        (a, n, m)
        for a, n, m in product(range(2, 10), range(23, 99, 7), (5, 7, 9, 11, 13))
        if gcd(a, m) == 1 and a < m and a**n % m not in (1, a) and (a + n) % 2
    ),
    wordings=(
        "What is the remainder when {a}^{n} is divided by {m}?",
        "A culture starts with a single cell and grows to {a} times its size every hour. After {n} hours a robot "
        "packs the cells into dishes, exactly {m} to a dish, as far as they go. How many cells stay unpacked?",
        "A dial shows 1 and knows only the numbers below {m}. It is multiplied by {a} altogether {n} times, and each "
        "result is reduced modulo {m}. Which number does the dial show at the end?",
        "{n} copies of the number {a} are multiplied together. By how much does the product exceed the largest "
        "multiple of {m} below it?",
        "A king pays {a} coins for the first castle and {a} times as much for each next one. The pay for castle "
        "number {n} is split among {m} captains in whole, equal shares, and the jester gets what cannot be split. How "
        "many coins are his?",
        "Find the integer r with 0 ≤ r < {m} that makes {a}^{n} - r a multiple of {m}.",
        "A password has {n} characters, each of them any one of the same {a} symbols, repeats allowed. A hacker "
        "prints every possible password once, {m} to a sheet, and starts a new sheet only when the old one is full. "
        "How many passwords are on the final sheet, which is not full?",
        "Somebody converts {a}^{n} to the number system with base {m}. What value, told in our decimal system, has "
        "the digit in the rightmost place?",
        "In each round of an imaginary swimming contest, all who are still in form heats of {a}, and only the winner "
        "of a heat stays in. Round {n} is a single heat, the final. The entrants came in vans for {m} swimmers each, "
        "all full except the last. How many swimmers sat in the last van?",
        "A colony on Mars has weeks of {m} days, numbered from zero within each week, and today is day zero. An "
        "oracle dates an event to exactly {a}^{n} days from today. What number will the day of the event have in its "
        "week?",
        "A tunnel in a cave forks into {a} tunnels, each of these forks into {a} again, and so on, until there have "
        "been {n} forkings in a row. One bat hangs at each end that has come about. At dusk the bats fly out in swarms "
        "of exactly {m} for as long as enough of them are there. How many bats are left in the cave?",
        "Let x = {a}^{n}. As long as x is not smaller than {m}, replace x by x - {m}. Which value of x is the final "
        "one?",
    ),
)
def power_remainder(a: int, n: int, m: int) -> Worked:
    """The remainders of the powers run in a cycle."""
    turn = cycle(a, m)
    k, place = len(turn), n % len(turn)
    return Worked(
        turn[place - 1],
        f"Remainders of powers repeat in a cycle. Modulo {m} the powers of {a} give {', '.join(map(str, turn))}, "
        f"and then the same again, so the period is {k}. {n} = {k} * {n // k} + {place}, so take entry number "
        f"{place or k} of the cycle: {turn[place - 1]}.",
    )


@family(
    DOMAIN,
    space=((a, n) for a, n in product(range(12, 99), range(21, 99, 5)) if a % 10 in (2, 3, 7, 8) and (a + n) % 3 == 0),
    wordings=(
        "What is the last digit of {a}^{n}?",
        "If the product of {n} factors, all of them equal to {a}, is written out, which digit stands furthest to the "
        "right?",
        "A chain letter goes to {a} people, and each of them sends it to {a} new people, and so on, so that {a} to "
        "the power {n} letters are posted in round {n}. What is the ones digit of this number of letters?",
        "A broken screen lights up only in the units place. It is meant to display {a} raised to the power {n}. Which "
        "digit can be seen?",
        "Count all sequences of {n} signs that can be written with an alphabet of {a} signs. In which digit does the "
        "count end?",
        "Let x = {a} · {a} · ... · {a} with {n} factors. Find the digit to which x is congruent modulo 10.",
        "The teacher has the huge value of {a}^{n} on the blackboard, in full and in our usual decimal figures. A "
        "pupil sponges it away from the left until a single figure remains. Which figure is it?",
        "In a fairy tale a giant owns {a}^{n} pearls. He threads them on strings of ten, makes as many full strings "
        "as he can, and leaves the rest loose. How many pearls are loose?",
        "A lamp glows in ten colours, numbered from zero to nine. Each flick of its switch brings the next colour, "
        "and after colour nine comes colour zero again. It shows colour zero and is then flicked {a}^{n} times. State "
        "the number of its final colour.",
        "A safe has {n} knobs with {a} positions each. A burglar tries every possible setting of the knobs exactly "
        "once, and after every ten tries he takes a nap. How many tries does he make after his last nap?",
        "Among the multiples of ten that are smaller than {a}^{n}, take the greatest. By how much does {a}^{n} exceed "
        "it?",
        "An ice cream parlour offers {a} flavours. A tower consists of {n} scoops, one on top of another, of any "
        "flavours, and the order of the scoops matters. A sign in the window states in full how many different towers "
        "exist, but its rightmost figure has fallen off. Which figure has fallen off?",
    ),
)
def units_digit_of_power(a: int, n: int) -> Worked:
    """The last digits of powers repeat after four."""
    unit, place = a % 10, n % 4 or 4
    digits = [unit**k % 10 for k in range(1, 5)]
    return Worked(
        digits[place - 1],
        "Only the last digit of the base matters, and last digits of powers repeat with period 4. "
        f"For {unit} they are {', '.join(map(str, digits))}. {n} leaves remainder {n % 4} by 4, so take entry number "
        f"{place} of the list: {digits[place - 1]}.",
    )


@family(
    DOMAIN,
    space=((a, n) for a, n in product(range(21, 100, 10), range(13, 80)) if a // 10 * n % 10 > 1 and (a + n) % 4 == 0),
    wordings=(
        "What is the tens digit of {a}^{n}?",
        "The number {a} is used as a factor {n} times. Which digit comes second from the right in the product?",
        "A game lasts {n} rounds, and each round can end in {a} ways. The possible courses of the whole game are "
        "counted. Which digit of the count stands in the tens place?",
        "Imagine {a} to the power {n} written in full, and cross out all but its last two digits. The right one of "
        "them is a 1. What is the left one?",
        "A trunk splits into {a} boughs, every bough into {a} branches, and so forth, with {n} splittings in a row. "
        "Tell the next-to-last digit of the number of tips.",
        "When {a}^{n} is divided by 100, the remainder is 10t + 1 for a digit t. Find t.",
        "A banquet has {n} courses, and for every course a guest picks exactly one out of {a} dishes. The cook notes, "
        "in ordinary figures, how many different banquets a guest could put together. What figure does he put "
        "directly left of the units figure?",
        "An absurdly rich man has {a}^{n} cents. He changes them into dollars of a hundred cents as far as possible, "
        "and what remains into dimes of ten cents as far as possible. How many dimes does he receive?",
        "The odometer of a rocket, with a wheel for every decimal place, stands at zero when the flight begins. The "
        "rocket covers {a}^{n} miles. What does the wheel that counts tens of miles show then?",
        "On a questionnaire exactly one of {a} boxes is to be ticked for each of {n} questions. A statistician reads "
        "aloud, figure by figure, the number of ways to fill it in. Which figure does she say just before the final "
        "one?",
        "Divide {a}^{n} by ten and round the quotient down to an integer. With which digit does this integer end?",
        "A flag consists of {n} stripes from top to bottom, and each stripe has one of {a} colours, where neighbouring "
        "stripes may be alike. A stadium scoreboard displays the number of all such flags, with one bulb panel for "
        "every figure. The panel at the right end shows a one. What does the panel next to it show?",
    ),
)
def tens_digit_of_power(a: int, n: int) -> Worked:
    """For a base ending in 1, the tens digit grows by the same step each time."""
    t = a // 10
    return Worked(
        t * n % 10,
        "For a base that ends in 1 with tens digit t, each further factor adds t to the tens digit, so the tens digit "
        f"of the power is the last digit of t times the exponent. {t} * {n} = {t * n}, which ends in {t * n % 10}.",
    )


@family(
    DOMAIN,
    space=(
        (h, n)
        for h, n in product(range(1, 24), range(30, 240, 7))
        if (h - n) % 24 not in (0, 23, h) and (h + n // 7) % 5 == 0
    ),
    wordings=(
        "A 24-hour clock shows {h}:00. Which full hour did it show {n} hours earlier?",
        "A ship drops anchor at hour {h} of the day after exactly {n} hours at sea. Ship hours run from 0 to 23, with "
        "no change of time zone. At which hour did the voyage begin?",
        "A cheese is lifted out of its salt bath at {h}:00 (24-hour time). It lay in the bath for {n} hours without a "
        "break. Name the hour at which it was put in.",
        "Start at label {h} on a ring of 24 points that are labelled 0 to 23 in order. Walk {n} points backwards. "
        "Which label do you reach?",
        "The lights came back at {h} o'clock, on a dial with hours 0 to 23. According to the meter the power cut had "
        "lasted {n} hours. When, to the hour, did the lights go out?",
        "Each line of a logbook bears the hour of the day as a number from 0 to 23, one line per hour. The bottom "
        "line bears {h}. Which number stands {n} lines above the bottom line?",
        "A zoo numbers the hours of a day from zero to twenty-three. A panda cub is now exactly {n} hours old, and "
        "the zoo clock reads hour {h} sharp. What hour did the clock read at the birth?",
        "Dancers in relay kept a waltz going for exactly {n} hours. The music stopped at hour {h} sharp, as read from "
        "a clock that jumps from twenty-three to zero at midnight. State the hour of the first step.",
        "A rocket is due to lift off at {h}:00 by a 24-hour clock, and its countdown takes {n} hours without a hold. "
        "By that clock, at what hour does the countdown have to start?",
        "The sum of {n} and an integer t with 0 ≤ t < 24 leaves remainder {h} on division by 24. What is t?",
        "The 24 gondolas of a Ferris wheel are numbered from 0 to 23 and pass the ticket booth in this order, again "
        "and again, gondola 0 right after gondola 23. Since the wheel was started, the gondola at the booth has been "
        "replaced by the next one {n} times, and gondola {h} is there now. Which gondola was at the booth when the "
        "wheel was started?",
        "At what hour did it begin to snow in the valley, if the snowfall went on for {n} hours and was over at {h}:00 "
        "sharp? The hours of a day are called 0 to 23 there, and the clocks were not adjusted meanwhile.",
    ),
)
def clock_backwards(h: int, n: int) -> Worked:
    """Whole days drop out, and a negative hour gets 24 more."""
    rest = n % 24
    answer = (h - n) % 24
    step = f"{h} - {rest} = {h - rest}" + (f", and {h - rest} + 24 = {answer}" if h < rest else "")
    return Worked(
        answer,
        "Whole days change nothing, so keep only the remainder of the hours by 24, go back that far, and add 24 if the "
        f"result is negative. {n} = 24 * {n // 24} + {rest}. {step}.",
    )


@family(
    DOMAIN,
    space=((n, b) for b, n in product(range(3, 9), range(29, 400, 11)) if b * b <= n < b**4),
    wordings=(
        "Write the decimal number {n} in base {b}.",
        "The people of an island have {b} fingers. They group things by {b}, then by {b} times {b}, and so on, and "
        "use digits as we do. How do they write the number that is {n} to us?",
        "Each wheel of a mileage counter has only {b} digits, the first being 0. A wheel that runs out of digits "
        "returns to 0 and turns its left neighbour on by one. New at zero, the car is driven {n} km. What is the "
        "reading?",
        "{b} eggs fill a box, {b} boxes a case, {b} cases a crate. Out of {n} eggs come as many crates as possible, "
        "then cases, then boxes. Join the counts of crates, cases, boxes and loose eggs to one numeral (no leading "
        "zeros). Which is it?",
        "Divide {n} by {b} and keep the remainder. Do the same with the quotient, again and again, down to quotient "
        "0. Read from last to first, which number do the remainders spell?",
        "A machine stores an integer by digits below {b}, whose places are worth 1, {b}, {b}² and so on from right to "
        "left. What does its memory show for {n}?",
        "A superstitious hotel gives its rooms ascending whole numbers, beginning with one, but skips every number "
        "that contains a digit equal to {b} or larger. All other numbers are used in turn. The hotel has {n} rooms. "
        "What is the highest room number?",
        "On a moon {b} hours make a day, {b} days a week and {b} weeks a month. Clerks note a time span by four "
        "digits, for months, weeks, days and hours, every digit below {b}, and omit zeros in front. What do they note "
        "for {n} hours?",
        "A herder records a number by knots in strings that hang side by side. A knot in the string at the far right "
        "means one, and in any other string {b} times as much as in the string to its right. No string gets {b} knots "
        "or more, and strings without knots at the left end are cut off. Which numeral do the numbers of knots form, "
        "from left to right, when {n} is recorded?",
        "There is exactly one way to write {n} as p + q · {b} + r · {b}² + s · {b}³ in which p, q, r and s are "
        "integers from 0 up to but not including {b}. The values of s, r, q and p are put side by side in this order, "
        "and a 0 at the front is dropped. What numeral results?",
        "In Ruritania there are coins worth one heller, {b} hellers, {b}² hellers and {b}³ hellers. A cashier pays out "
        "{n} hellers in as few coins as possible. How many coins of each worth are these? Put the four counts side by "
        "side from the most valuable coin down, skip zeros in front, and state the numeral.",
        "A depot has {b} halls, each hall {b} aisles, each aisle {b} racks and each rack {b} boxes. Halls, the aisles "
        "in a hall, the racks in an aisle and the boxes in a rack are numbered from zero, and the label of a box "
        "consists of these four figures in this order, but without zeros in front. The boxes stand in the order of "
        "their labels as numbers. Which label is on the box that has exactly {n} boxes before it?",
    ),
)
def to_base(n: int, b: int) -> Worked:
    """Divide again and again and read the remainders backwards."""
    steps, q = [], n
    while q:
        steps.append(f"{q} = {b} * {q // b} + {q % b}")
        q //= b
    return Worked(
        int(in_base(n, b)),
        "To write a number in another base, divide by the base again and again and read the remainders from last to "
        f"first. {', '.join(steps)}. The numeral is {in_base(n, b)}.",
    )


@family(
    DOMAIN,
    space=(
        (100 * x + 10 * y + z, b)
        for x, y, z, b in product(range(1, 7), range(7), range(7), range(4, 10))
        if max(x, y, z) == b - 2 and (x + 2 * y + z) % 3
    ),
    wordings=(
        "The numeral {t} is written in base {b}. What is its value in the decimal system?",
        "A visitor from space counts on {b} fingers and notes in that base that {t} ships have landed. How many ships "
        "is that in our notation?",
        "In a place-value system every place is worth {b} times as much as the place on its right, and the last place "
        "is worth one. Which ordinary number does {t} stand for?",
        "Take the first digit of {t}. Multiply it by {b} and add the second digit. Multiply the result by {b} again "
        "and add the third digit. What comes out?",
        "The three digits of {t} tell how many bags, rolls and single coins lie in a safe. A roll is {b} coins, and a "
        "bag is {b} rolls. Find the total in coins.",
        "A museum labels its exhibits in order from 1 on, but it uses only the first {b} digits, 0 included, and "
        "carries accordingly. The last exhibit bears the label {t}. How many exhibits are on show?",
        "In an army {b} soldiers form a squad and {b} squads a company. The general reads the report {t}, which "
        "gives, figure by figure, the complete companies, the further squads and the further soldiers. How many "
        "soldiers are reported in all?",
        "Each person advances a turnstile's counter by one. A wheel of the counter that would reach {b} drops to zero "
        "instead and moves the wheel to its left on by one. It read zero at dawn and reads {t} now. State the number "
        "of persons in decimal notation.",
        "In a stadium each block has {b} rows, and each row has {b} seats. Blocks, the rows of a block and the seats "
        "of a row are all numbered from zero, and a ticket shows these three numbers side by side, block first. Seats "
        "are filled block by block, row by row and in order of their numbers. How many seats are filled before the "
        "one with ticket {t}?",
        "Let p be the quadratic polynomial whose coefficients, from the square term down to the constant, are the "
        "digits of {t} from left to right. Evaluate p({b}).",
        "On an asteroid a week has {b} days and a day has {b} hours. A flight to it is announced as {t}; the digits "
        "are, in order, the whole weeks, the days beyond these and the hours beyond these. How many asteroid hours "
        "does the flight take?",
        "For a game of building there are small cubes, bars made of {b} small cubes in a row, and plates made of {b} "
        "bars side by side. Lea's parts are listed as {t}, where the left digit counts her plates, the middle digit "
        "her bars and the right digit her loose small cubes. Of how many small cubes do all these parts consist?",
    ),
)
def from_base(t: int, b: int) -> Worked:
    """Multiply each digit by the worth of its place."""
    x, y, z = map(int, str(t))
    answer = (x * b + y) * b + z
    return Worked(
        answer,
        "From right to left the places are worth 1, the base, and the base squared. "
        f"{x} * {b * b} + {y} * {b} + {z} = {x * b * b} + {y * b} + {z} = {answer}.",
    )


@family(
    DOMAIN,
    space=((n, b) for b, n in product(range(3, 10), range(47, 600, 17)) if b * b < n < b**4 and n % b),
    wordings=(
        "What is the sum of the digits of {n} when it is written in base {b}?",
        "Coins of 1, {b}, {b}² and {b}³ pence are in use. What is the smallest number of coins that pay {n} pence "
        "exactly?",
        "At a fair, {b} chips can be traded for a token, {b} tokens for a medal, and {b} medals for a cup. Rosa "
        "begins with {n} chips and trades until nothing more can be traded. How many objects does she hold then?",
        "The integer {n} is to be a sum of powers of {b}, where 1 counts as a power and repeats are allowed. How few "
        "terms will do?",
        "On a balance, {n} grams of saffron lie in one pan. Weights of 1 g, {b} g, {b}² g and {b}³ g, plenty of each, "
        "go only into the other. Balance the pans with as few weights as possible. How many do you take?",
        "A robot has to move exactly {n} squares forward. Its leaps cover 1, {b}, {b} · {b} or {b} · {b} · {b} "
        "squares, whichever it likes. Find the length, in leaps, of its quickest journey.",
        "A caterer needs exactly {n} lemons, with none to spare. The market has plenty of single lemons, nets of {b} "
        "lemons, crates of {b} nets and carts of {b} crates, none of which may be opened. A lemon, net, crate or cart "
        "bought as such is one item. At least how many items must be bought?",
        "In a phone game {b} gems of the same level melt into one gem of the next level, and there is no top level. "
        "Kim is given {n} gems of the lowest level and gets no others. She melts gems until it is impossible to go "
        "on. How many gems are on the screen then?",
        "A display shows zero. One key raises the shown value by one and costs a cent, and another key multiplies it "
        "by {b} and is free. What is the least cost, in cents, of making the display show {n}?",
        "Every wheel in the step counter of a wind-up bear has {b} figures, from zero upwards without gaps. A wheel "
        "at its highest figure goes back to zero on its next move and pushes the wheel to its left on by one. There "
        "are plenty of wheels, and all of them show zero until the bear takes {n} steps, each moving the rightmost "
        "wheel on by one. What is the sum of the figures that the wheels show now?",
        "A composer has to fill a silence of exactly {n} beats with rest signs. There are signs for rests of one beat, "
        "{b} beats, {b}² beats and {b}³ beats. What is the smallest number of signs that she can write?",
        "From {n} one is to get down to exactly zero by repeated subtraction. Whatever is subtracted in a step has to "
        "be a power of {b}; the power with exponent zero is permitted too, and the same power may be used many times. "
        "How many steps are needed at least?",
    ),
)
def fewest_powers(n: int, b: int) -> Worked:
    """The fewest powers of b that make n are counted by the digit sum in base b."""
    digits = in_base(n, b)
    answer = sum(map(int, digits))
    return Worked(
        answer,
        "Always take the largest power that still fits. The numbers of powers taken are the digits in that base, so "
        f"add these digits. {n} in base {b} is {digits}. {' + '.join(digits)} = {answer}.",
    )


@family(
    DOMAIN,
    space=(
        (100 + 10 * y + z, x * x + y * x + z)
        for x, y, z in product(range(6, 17), range(1, 9), range(9))
        if max(y, z) < x - 1 and (x + y + z) % 4 == 0
    ),
    wordings=(
        "In some base the numeral {t} stands for the decimal number {n}. What is the base?",
        "Where we write {n}, the merpeople write {t}. They count like us, only by the number of their fingers. How "
        "many fingers do they have?",
        "Use the digits of {t} in order as the coefficients of a quadratic polynomial, highest power first. For which "
        "positive integer does the polynomial take the value {n}?",
        "A storeman puts x jars on a tray and x trays on a shelf. His note {t} gives, digit by digit, the full "
        "shelves, the further trays and the single jars. Altogether there are {n} jars. Determine x.",
        "A code machine prints the number {n} as {t}. It uses ordinary place value, but its stock of different digits "
        "is not ten. How large is the stock?",
        "An old stone says that a city stood for {t} years. Scholars know it was {n} years in modern notation. By "
        "groups of what size did the builders of the city count?",
        "A stamp dealer puts equally many stamps on every page, and his albums have as many pages as a page has "
        "stamps. The entry {t} means, by its digits in order, complete albums, further complete pages and loose "
        "stamps. It comes to {n} stamps. How many fit on one page?",
        "A time traveller eats at an inn whose landlord uses place value, but perhaps not quite as we do. The bill "
        "says {t} coins, and the traveller correctly lays down what he himself would call {n} coins. Which number "
        "plays for the landlord the part that ten plays for us?",
        "A mosaic with an area of {n} square inches consists of three sorts of pieces: squares of x by x inches, "
        "strips of x inches by one inch and squares of one inch by one inch. The digits of {t}, from left to right, "
        "say how many pieces there are of each sort, in this order. How large is x?",
        "On a comet an hour has as many minutes as a day has hours. A storm that lasted {n} comet minutes is recorded "
        "there as {t}, whose figures mean, one by one, whole days, further whole hours and further minutes. How many "
        "hours has a day on the comet?",
        "At a fun park one token is worth as many chips as one medal is worth tokens. The digits of {t} tell how many "
        "medals, tokens and chips Pia has won, in this order. Exchanged for nothing but chips, all this would amount "
        "to {n} chips. How many chips is a token worth?",
        "All wheels of an odometer carry the same number of figures, from 0 upwards in the usual order. A wheel that "
        "returns to its 0 pushes the left neighbour on by one figure. The last wheel moves on by "
        "one figure per km. Having started with every wheel at 0, the odometer displays {t} after a distance that we "
        "call {n} km. How many figures does a wheel carry?",
    ),
)
def find_base(t: int, n: int) -> Worked:
    """Solve for the base near the square root."""
    y, z = t // 10 % 10, t % 10
    x = next(x for x in count(1) if x * x + y * x + z == n)
    return Worked(
        x,
        "Places are worth the powers of the unknown base x, so set up an equation and try numbers a little below the "
        f"square root. x^2 + {y}x + {z} = {n} means x(x + {y}) = {n - z} = {x} * {x + y}, so x = {x}.",
    )


@family(
    DOMAIN,
    space=(
        (a, r, b, s)
        for a, b in ((5, 7), (5, 8), (7, 9), (4, 9), (5, 11), (7, 8), (6, 11), (7, 10))
        for r, s in product(range(2, a), range(2, b))
        if meeting(a, r, b, s) > b and r != s and (r + 2 * s + a) % 3 == 0
    ),
    wordings=(
        "What is the smallest positive whole number that leaves remainder {r} when divided by {a} and remainder {s} "
        "when divided by {b}?",
        "A shepherd counts her sheep. In groups of {a} there are {r} left over, and in groups of {b} there are {s} "
        "left over. What is the smallest flock for which this is true?",
        "Plates stacked {a} high leave {r} plates without a stack, and {s} are left if they are stacked {b} high. How "
        "many plates are there, if there are as few as these facts allow?",
        "Two dials with {a} and {b} notches, numbered from 0, both start at notch 0 and advance by one notch each "
        "second. After how many seconds do they first show {r} and {s}, in this order, at the same moment?",
        "A comet was seen in year {r} of an era and has come back every {a} years. Another comet was seen in year {s} "
        "and returns every {b} years. In which year of the era do both appear for the first time?",
        "Find the least x > 0 with x ≡ {r} (mod {a}) and x ≡ {s} (mod {b}).",
        "A rope measures a whole number of metres. Pieces of {a} metres can be cut from it until just {r} metres are "
        "left. With pieces of {b} metres instead, just {s} metres would be left. Determine the shortest possible "
        "length of the rope in metres.",
        "A drum pattern of {a} beats and a bass pattern of {b} beats start together and are repeated without pause. "
        "All beats of the song are counted, and the opening beat is number one. Which number has the earliest beat "
        "that is beat {r} of the drum pattern and beat {s} of the bass pattern?",
        "The integers from 1 on fill a table with {a} columns, row after row and from left to right. In the same way "
        "they fill a second table with {b} columns. What is the smallest integer that stands in column {r} of the "
        "first table and in column {s} of the second?",
        "A spy has a list of {a} passwords and a list of {b} hiding places, and he goes through each list in order, "
        "over and over. Every day he uses the next password and the next hiding place, beginning on day one with the "
        "first of either list. On which day does he first use password number {r} together with hiding place number "
        "{s}?",
        "Hugo owes a whole number of dollars. If he paid as much of it as possible with {a}-dollar bills, there would "
        "be {r} dollars still to pay; if he did the same with {b}-dollar bills, there would be {s} dollars still to "
        "pay. What is the lowest possible debt in dollars?",
        "Climbing the stairs of a lighthouse {a} at a time, Mo finds that {r} stairs remain at the top for one shorter "
        "stride. Climbing them {b} at a time, he finds that {s} stairs remain. How many stairs must the lighthouse "
        "have at the very least?",
    ),
)
def two_remainders(a: int, r: int, b: int, s: int) -> Worked:
    """List the numbers with one remainder and test the other."""
    answer = meeting(a, r, b, s)
    tried = ", ".join(str(x) for x in range(s, answer + 1, b))
    return Worked(
        answer,
        "List the numbers with the right remainder by the larger divisor, and test each by the smaller one. "
        f"Remainder {s} by {b}: {tried}. The first of them with remainder {r} by {a} is {answer}.",
    )


@family(
    DOMAIN,
    space=(
        (a, m, c)
        for m, a, c in product((11, 13, 17, 19, 23), range(3, 10), range(2, 20))
        if c < m and c % a and c * pow(a, -1, m) % m not in (0, a, c) and (a + c + m) % 4 == 0
    ),
    wordings=(
        "What is the smallest positive whole number k for which {a}k leaves remainder {c} when divided by {m}?",
        "A flea sits on place 0 of a ring whose {m} places are numbered in order from 0. Every leap takes it {a} "
        "places clockwise. After how many leaps does it first sit on place {c}?",
        "Pens come in packs of {a}, and a school makes sets of {m} pens from them. When no further set can be made, "
        "exactly {c} pens remain. What is the least number of packs?",
        "Each member of a group needs a ticket for {a} dollars. The group pays with vouchers worth {m} dollars each "
        "and exactly {c} dollars in cash, and no change is given. How small can the group be?",
        "The year of a planet has {m} days, called 0, 1, 2 and so on. A feast on day 0 is followed by one feast every "
        "{a} days, year in, year out. How many feasts after that one does a feast first fall on a day called {c}?",
        "Solve {a}x ≡ {c} (mod {m}) with 0 < x < {m}.",
        "A bowl is empty. Each noon Finn drops {a} marbles into it, and each evening he takes out {m} marbles, "
        "provided that there are at least so many. How many noons must pass until the bowl holds exactly {c} marbles "
        "at midnight for the first time?",
        "Poems of {a} lines each are printed one after another, without any gaps, on sheets that hold {m} lines. All "
        "sheets are full except the final one, on which there are just {c} lines. At least how many poems does the "
        "book contain?",
        "There are {m} stamps on a roll. Each parcel takes {a} of them, and whenever a roll is used up, the clerk "
        "goes on with a new one, even in the middle of a parcel. After how many parcels have exactly {c} stamps of "
        "the current roll been used for the first time?",
        "Positive integers x and y satisfy {a}x = {m}y + {c}. How small can x be?",
        "The multiples {a}, 2 · {a}, 3 · {a} and so on are written in a list. At which place of the list is the first "
        "of them that is greater by {c} than some multiple of {m}?",
        "Coaches with {a} skiers each arrive at a cable car. Its cabin departs only with exactly {m} skiers on board, "
        "but departs every time that so many are there. At some moment after a coach has arrived and all possible "
        "departures are over, just {c} skiers are waiting. How many coaches have arrived by then, if this is the "
        "earliest such moment?",
    ),
)
def circle_jumps(a: int, m: int, c: int) -> Worked:
    """Add the modulus until the division comes out even."""
    k = c * pow(a, -1, m) % m
    return Worked(
        k,
        f"Add {m} to {c} until the result is divisible by {a}: "
        f"{', '.join(str(x) for x in range(c, a * k + 1, m))}. "
        f"{a * k} is the first multiple of {a}, and {a * k} / {a} = {k}.",
    )


@family(
    DOMAIN,
    space=(
        (a, b, c, k)
        for a, b, c, k in product(range(4, 11), range(5, 13), range(6, 16), range(2, 5))
        if k < a < b < c and gcd(b, c) > 1 and c < lcm(a, b, c) <= 180 and (a + b + c + k) % 3 == 0
    ),
    wordings=(
        "Adding {k} to a positive number makes it divisible by {a}, by {b} and by {c}. What is the smallest such "
        "number?",
        "A choir tries rows of {a}, rows of {b} and rows of {c}. Each time all rows are full except the last, in "
        "which {k} singers are missing. How many singers does the choir have at least?",
        "Three trams leave a depot every {a}, {b} and {c} minutes. All leave at noon. Paul wants to be there {k} "
        "minutes before the next time that all leave together. How many minutes after noon should he arrive?",
        "Find the least n > 0 for which n + {k} is a common multiple of {a}, {b} and {c}.",
        "Whether he boxes his buns by {a}, by {b} or by {c}, a baker could just fill the last box if he had {k} buns "
        "more. He has as few as that permits. What is his stock of buns?",
        "Pia's savings come out even in {a}-dollar, in {b}-dollar and in {c}-dollar notes, if {k} dollars are added "
        "to them first. What is the lowest amount above zero, in dollars, that she may have saved?",
        "For an outing a camp can hire boats with {a} seats, boats with {b} seats or boats with {c} seats, always of "
        "a single size. Whichever size it hires, one boat has exactly {k} free seats and the others are full. State "
        "the smallest possible number of campers.",
        "Three storage systems keep files in blocks of {a}, of {b} and of {c} bytes. If the final block of a file is "
        "not full, it is padded until it is. One file, which is not empty, receives exactly {k} bytes of padding in "
        "every system. How short can this file be, in bytes?",
        "A knitter may decorate a hat with foxes that are {a} stitches wide, with stars that are {b} stitches wide or "
        "with fir trees that are {c} stitches wide. If the round of the hat had {k} stitches more, any one of these "
        "motifs would go round it a whole number of times. What is the smallest number of stitches that the round can "
        "have?",
        "Along a ski trail red flags stand every {a} metres, blue flags every {b} metres and white flags every {c} "
        "metres, measured from the start. The first point after the start with a flag of every colour is the finish, "
        "and Jo falls {k} metres in front of it. How many metres has she skied by then?",
        "Let n be a positive integer. Divided by {a} it leaves the remainder {a} - {k}, divided by {b} the remainder "
        "{b} - {k}, and divided by {c} the remainder {c} - {k}. How small can n be?",
        "A printed diary may be bound in booklets of {a} pages, of {b} pages or of {c} pages. Whichever of these is "
        "taken, all booklets are printed to the last page, apart from the final booklet, in which precisely {k} pages "
        "stay blank. What is the smallest possible number of printed pages?",
    ),
)
def common_shortfall(a: int, b: int, c: int, k: int) -> Worked:
    """The common multiple less what is missing."""
    common = lcm(a, b, c)
    return Worked(
        common - k,
        "If the same amount is missing for every divisor, then the number plus that amount is a common multiple. "
        f"lcm({a}, {b}, {c}) = {common}, and {common} - {k} = {common - k}.",
    )


@family(
    DOMAIN,
    space=(
        (m, r, k, c)
        for m, r, k, c in product((7, 9, 11, 13), range(3, 12), range(4, 9), range(5, 30, 6))
        if r < m and (k * r + c) % m not in (0, m, r, k, c) and (m + r + k + c) % 4 == 0
    ),
    wordings=(
        "A number leaves remainder {r} when divided by {m}. What remainder does {k} times that number plus {c} leave "
        "when divided by {m}?",
        "One jar of marbles, dealt out evenly to {m} children, leaves {r} over. Now {k} jars like it and {c} extra "
        "marbles are tipped together and dealt out evenly to the {m} children. How many are left over, too few for "
        "another round?",
        "Given n ≡ {r} (mod {m}), to which smallest non-negative integer is {k}n + {c} congruent modulo {m}?",
        "A bolt of cloth gives some full curtains of {m} feet and a remnant of {r} feet. A tailor joins {k} such "
        "bolts and {c} more feet of cloth end to end and cuts all the curtains of {m} feet she can. How many feet "
        "remain?",
        "Every lorry brings some full pallets of {m} bricks and {r} single ones. When {k} equal lorries have unloaded "
        "beside {c} bricks in the yard, everything goes on pallets. How many bricks do not make a full pallet?",
        "A dial with {m} positions, numbered from zero, turns equally far in every shift. One shift turns it from "
        "zero to {r}. Reset to zero, it runs for {k} shifts and then for {c} single steps. At which position does it "
        "stop?",
        "The pattern of a scarf repeats every {m} rows. A ball of wool is enough for some complete patterns and {r} "
        "rows of another. Anna uses up {k} such balls and then adds {c} rows in scrap wool, always continuing the "
        "pattern. How many rows of an unfinished pattern does her scarf end with?",
        "Zoe's secret is a whole number that lies {r} above some multiple of {m}. She multiplies it by {k} and "
        "increases the result by {c}. At least how much must she now subtract to arrive at a multiple of {m}?",
        "On a distant planet a week has {m} days, and every year consists of whole weeks and {r} days more. A treaty "
        "is valid for {k} years and {c} days. If as many weeks as possible are taken out of this time, how many days "
        "of it remain?",
        "Written in base {m}, a whole number N ends in a digit worth {r}. The number {k}N + {c} is written in base "
        "{m} as well. What is its final digit worth, when all numerals in this text are decimal?",
        "The typesetter of a saga puts {m} lines on a page. A chapter fills a number of pages and {r} lines of one "
        "more page, and this is so for each of its {k} chapters. He sets the {k} chapters one right after another, "
        "followed by an epilogue of {c} lines, with no line left empty in between. How many lines are on the last "
        "page, which does not get full?",
        "In an old currency a shilling was {m} pence. A barrel of tar cost several shillings and {r} pence. Somebody "
        "bought {k} such barrels, had to pay the carter {c} pence as well, and put down the whole sum in shillings as "
        "far as possible. How many single pence did he put down with them?",
    ),
)
def remainder_of_combination(m: int, r: int, k: int, c: int) -> Worked:
    """Calculate with the remainders instead of the numbers."""
    total = k * r + c
    return Worked(
        total % m,
        "Sums and products may be worked with remainders in place of the numbers. "
        f"{k} * {r} + {c} = {total}, and {total} = {m} * {total // m} + {total % m}, so the remainder is {total % m}.",
    )


@family(
    DOMAIN,
    space=(
        (a, q, k)
        for q, a, k in product((7, 13, 27, 37, 41), range(2, 12), range(20, 100, 9))
        if a < q and a * 10**k // q % 10 != a and (a + k + q) % 3 == 0
    ),
    wordings=(
        "When {a}/{q} is written as a decimal, which digit stands in place {k} after the decimal point?",
        "Ben divides {a} by {q} by long division and never stops. Behind the point he writes digit after digit. Which "
        "digit is number {k} of these?",
        "{a} litres of syrup are poured in equal parts into {q} jugs. A perfect gauge gives the litres in one jug "
        "with endlessly many decimals. What is decimal number {k}?",
        "Multiply {a}/{q} by 10 to the power {k} and drop the fractional part. In which digit does the integer that "
        "is left end?",
        "A printer puts the decimals of the quotient {a} : {q} on separate pages, the tenths on the first page, the "
        "hundredths on the second, and so on. What is printed on page {k}?",
        "The expansion of {a}/{q} as an endless decimal is played on a piano, one key for each decimal place from the "
        "tenths on. To which digit does stroke number {k} belong?",
        "A runner covers {a} kilometres in {q} equal laps. Her trainer notes the length of a lap in kilometres, as a "
        "decimal fraction that is exact and therefore never ends. Which figure does he put {k} places to the right of "
        "the point?",
        "An alchemist weighs out exactly {a}/{q} of an ounce. He has weights of a tenth of an ounce, a hundredth, a "
        "thousandth and so on without end, and uses at most nine of a kind. How many weights of one ounce divided by "
        "ten to the power {k} does he use?",
        "Start with the number {a}. In each step, multiply the current number by ten, divide by {q}, note the whole "
        "quotient and go on with the remainder as the new current number. Which quotient is noted in step {k}?",
        "A treasure lies exactly {a}/{q} of the way along a straight road from a mill to a chapel. A searcher splits "
        "the road into ten equal sections, numbered from zero to nine towards the chapel, and picks the one with the "
        "treasure. He splits that section in the same manner, and so on without end. What is the number of the "
        "section that he picks at split {k}?",
        "A long queue of pupils recites the decimals of {a}/{q}. The pupil at the head of the queue says the tenths "
        "digit, the pupil behind says the hundredths digit, and everyone further back says the digit that follows. "
        "Which digit is said by pupil number {k}, if the pupil at the head is number one?",
        "Let x = {a}/{q}, and let [z] stand for the greatest integer that does not exceed z. Compute [10^{k} · x] - 10 "
        "· [10^({k} - 1) · x].",
    ),
)
def decimal_cycle_digit(a: int, q: int, k: int) -> Worked:
    """The decimals of a fraction repeat."""
    period = len(cycle(10, q))
    block = f"{a * 10**period // q:0{period}}"
    place = k % period or period
    return Worked(
        int(block[place - 1]),
        f"The decimals of a fraction repeat in a block. {a}/{q} has the block {block} of length {period}. "
        f"{k} leaves remainder {k % period} by {period}, so digit number {place} of the block is wanted: "
        f"{block[place - 1]}.",
    )


@family(
    DOMAIN,
    space=(
        (10 * p + q, 10 * r + s, b)
        for b, p, q, r, s in product(range(4, 10), range(1, 9), range(1, 9), range(1, 9), range(1, 9))
        if max(p, q, r, s) < b and q + s >= b and p < r and (p + 2 * q + 3 * r + 5 * s + b) % 11 == 0
    ),
    wordings=(
        "Compute {x} + {y} in base {b}. Both numerals and the result are in base {b}.",
        "On the planet Oon all numbers are written in base {b}. A trader there buys {x} shells in the morning and {y} "
        "shells in the evening, in Oon notation. What does she write for the total?",
        "A stock code is a digit for boxes and a digit for loose candles, {b} candles to a box. The stocks {x} and "
        "{y} are merged and repacked. If there are {b} boxes they become a crate, whose digit goes in front. What is "
        "the new code?",
        "Add the numerals {x} and {y} column by column, but carry whenever a column reaches {b} instead of ten. What "
        "is the answer line?",
        "A click counter whose wheels have only {b} digits each, 0 being the first, reads {x}. It is clicked on by "
        "the amount that an identical counter shows as {y}. Give the new reading without zeros in front.",
        "In a lesson on strange numerals the pupils have only {b} digits, zero among them, with place values to "
        "match. Ole works out {x} + {y} correctly in this way. What is his result, in the strange numerals?",
        "Dwarfs use place value with groups of {b} where we have groups of ten. Two mines deliver {x} and {y} "
        "nuggets, as dwarfs write it. Which dwarf numeral for all the nuggets together belongs on the king's scroll?",
        "A carpenter notes lengths by digits side by side: spans (left out if there are none), thumbs, lines. {b} "
        "lines are a thumb, {b} thumbs are a span, and every digit is kept below {b}. Boards that he notes as {x} and "
        "{y} are glued end to end. What does he note for the long board?",
        "An elf radio writes the length of a song as a figure for minutes and a figure for blinks, where {b} blinks "
        "are a minute and {b} minutes an hour. Songs of length {x} and {y} are played back to back. How does the "
        "radio write the length of both together, if all figures are less than {b} and a figure for hours is put in "
        "front only when it is not zero?",
        "Two abacuses show {x} and {y}, the first figure being the number of beads on the left wire and the second "
        "that on the right wire. All beads are moved to the same wires of a third abacus, which was empty and has "
        "further wires on the left. Then {b} beads on a wire are replaced by one bead on the next wire to the left, "
        "as long as this can be done. Which numeral, without zeros in front, do the wires finally show?",
        "A pirate crew with {b} fingers per pirate has built its whole place-value notation on this number. The log "
        "says, in that notation, that the iron chest holds {x} pearls and the oak chest {y}. What should the log say, "
        "in the same notation, for the pearls of both chests combined?",
        "In a kingdom {b} pennies make a groat and {b} groats make a crown. A purse is described by its groats and "
        "then its pennies, two figures side by side. The purses {x} and {y} are emptied onto one heap, and the heap is "
        "changed into as few coins as possible. Give the figures for crowns (unless there are none), groats and "
        "pennies side by side.",
    ),
)
def base_addition(x: int, y: int, b: int) -> Worked:
    """Carry when a column reaches the base."""
    (p, q), (r, s) = map(int, str(x)), map(int, str(y))
    tens = p + r + 1
    answer = int(in_base(tens, b) + str(q + s - b))
    return Worked(
        answer,
        "Add column by column and carry 1 whenever a column reaches the base. "
        f"Right column: {q} + {s} = {q + s} = {b} + {q + s - b}, write {q + s - b} and carry 1. "
        f"Left column: {p} + {r} + 1 = {tens}, in base {b} written {in_base(tens, b)}. The result is {answer}.",
    )


@family(
    DOMAIN,
    space=((n, m) for n, (m, zero) in product(range(25, 100, 3), ((3, 4), (4, 6), (7, 8), (8, 6))) if n % zero),
    wordings=(
        "The Fibonacci numbers begin with 1 and 1, and each further one is the sum of the two before. What remainder "
        "does Fibonacci number {n} leave when it is divided by {m}?",
        "A warren has a single pair of rabbits in the first month and in the second. From then on there are each "
        "month as many pairs as in the two months before together. In month {n} they are put into hutches of {m} "
        "pairs. How many pairs are left over?",
        "Tom writes a row of digits. The first two are ones. Then he always writes the sum of the last two digits, "
        "but takes {m} off whenever the sum is {m} or more. Which digit stands in place {n}?",
        "A club pays one euro into its chest in week one and one euro in week two, and later each week as much as in "
        "the two weeks before together. The payment of week {n} is made in notes of {m} euros and as few single euros "
        "as possible. How many single euros?",
        "A tiler lays one tile in the first row, one in the second, and in each further row as many as in the last "
        "two rows together. Tiles come in boxes of {m}. Row {n} uses up a number of full boxes and some tiles of one "
        "more. How many tiles of that one?",
        "Let f(1) = f(2) = 1 and f(k + 2) = f(k + 1) + f(k). If f({n}) is written in base {m}, which digit comes last?",
        "A single meteor falls on the first night and again a single one on the second. Each later night brings as "
        "many meteors as the previous two nights combined. An astronomer marks the meteors of night {n} on cards, {m} "
        "on every card except the last, which is not full. How many meteors does the last card show?",
        "A bell is rung once on day one and once on day two, and on any later day as often as on the preceding two "
        "days in total. On day {n} monks numbered from one to {m} take turns, one ring each, beginning with monk one. "
        "What is the number of the monk who rings last?",
        "Square sheets of paper hang along a wall. The first and the second have sides of one inch, and from the "
        "third on each side is as long as the sides of the two sheets before it together. A rod of {m} inches is laid "
        "off along a side of sheet {n} as often as it fits. How many inches of that side are left over?",
        "Two poets add stanzas to an epic by turns. The first stanza and the second have a single line each, and "
        "every other has as many lines as the two stanzas just before it combined. Stanza {n} is to be divided among "
        "{m} actors, all with equally many lines. At least how many of its lines have to be struck out?",
        "A staircase has one step fewer than {n}. Mia can climb it by going up one step or two steps at a time, in any "
        "mixture, and two climbs differ if she treads on different steps. She notes each possible climb on a slip of "
        "paper and ties the slips in bundles of {m} while she has enough. How many slips remain?",
        "A screen shows a zero on the left and a one on the right. At every beep, the right number moves over to the "
        "left, and the sum of the two numbers that were shown so far appears on the right. After {n} beeps the number "
        "on the left is divided by {m}. What is the remainder?",
    ),
    test_only=True,
)
def fibonacci_remainder(n: int, m: int) -> Worked:
    """The remainders of the Fibonacci numbers run in a cycle."""
    cycle = [1, 1]
    while (cycle[-1], after := sum(cycle[-2:]) % m) != (0, 1):
        cycle.append(after)
    place = (n - 1) % len(cycle) + 1
    return Worked(
        cycle[place - 1],
        f"Only the remainders of the two numbers before matter, so the remainders repeat. By {m} they are "
        f"{', '.join(map(str, cycle))}, and then the same {len(cycle)} again. {n} leaves {n % len(cycle)} by "
        f"{len(cycle)}, so it is number {place} of the cycle: {cycle[place - 1]}.",
    )


FAMILIES = (
    power_remainder,
    units_digit_of_power,
    tens_digit_of_power,
    clock_backwards,
    to_base,
    from_base,
    fewest_powers,
    find_base,
    two_remainders,
    circle_jumps,
    common_shortfall,
    remainder_of_combination,
    decimal_cycle_digit,
    base_addition,
    fibonacci_remainder,
)
