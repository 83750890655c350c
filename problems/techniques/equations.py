"""Equations: linear systems, quadratics, Vieta, inequalities, absolute values, exponents and logarithms."""

from itertools import product
from math import gcd, isqrt, log10

from problems.family import Worked, family

DOMAIN = "equations"
VALUES = ((2, 5), (3, 7), (4, 6), (3, 8), (5, 9), (2, 9))
"""What a thing of the lower and of the higher kind is worth."""
POWERS = (
    (4, 2, 8, 3),
    (8, 3, 4, 2),
    (9, 2, 27, 3),
    (27, 3, 9, 2),
    (32, 5, 8, 3),
    (16, 4, 8, 3),
    (81, 4, 27, 3),
)
"""Two powers of one prime, each with its exponent."""


@family(
    DOMAIN,
    space=(
        (x + y, p * x + q * y, p, q) for (p, q), y in product(VALUES, range(7, 24)) for x in ((5 * y + 3 * p) % 17 + 4,)
    ),
    wordings=(
        "A box office sold {n} tickets and took {t} euros. A child's ticket costs {p} euros and an adult's ticket {q} "
        "euros. How many adult tickets were sold?",
        "{n} lorry loads brought {t} tonnes of sand to a building site. The small lorry carries {p} tonnes and the big "
        "one {q} tonnes, and both always came full. How often did the big lorry come?",
        "In a quiz an easy question is worth {p} points and a hard one {q} points. Rosa answered {n} questions, all of "
        "them correctly, and scored {t}. How many of her questions were hard?",
        "On a far planet crabs have {p} legs and beetles have {q}. A glass case there shows {n} animals of these two "
        "sorts with {t} legs altogether. Count the beetles.",
        "A film that lasts {t} seconds is put together from {n} scenes. Every scene takes either {p} or {q} seconds. "
        "What is the number of the longer scenes?",
        "The equations x + y = {n} and {p}x + {q}y = {t} hold at the same time. Find y.",
        "A florist ties bouquets, some with {p} roses and the rest with {q} roses. This morning {n} bouquets used up "
        "exactly {t} roses. How many of the bouquets were of the kind with {q}?",
        "Climbing a rope ladder, a monkey gets {t} rungs higher in {n} leaps. A short leap takes it up {p} rungs, a "
        "long leap {q}. It makes no other leaps and never drops back. State the number of long leaps.",
        "Scouts pitch {n} tents by a lake. Some of the tents shelter {p} campers each, the others {q} each, and with "
        "no sleeping place left empty {t} campers find room. How many of the larger tents did the scouts pitch?",
        "Write {t} as a sum of {n} summands, where {p} and {q} are the only values allowed for a summand. How many "
        "summands have the greater value?",
        "A busker empties her hat and finds {n} coins in it, each worth either {p} or {q} pence. Their worth adds up "
        "to {t} pence. How many coins of the more valuable sort did passers-by give her?",
        "Every stanza of a ballad speaks either of the sea, in {p} lines, or of the desert, in {q} lines. The poet has "
        "filled {t} lines with {n} stanzas. In how many stanzas does he speak of the desert?",
    ),
)
def two_kinds_one_total(n: int, t: int, p: int, q: int) -> Worked:
    """Pretend that all are of the lower kind and share out what is missing."""
    answer = (t - n * p) // (q - p)
    return Worked(
        answer,
        f"Pretend that all are of the lower kind: {n} * {p} = {n * p}. The total is {t} - {n * p} = {t - n * p} more. "
        f"Each one of the higher kind adds {q} - {p} = {q - p}, so divide: {t - n * p} / {q - p} = {answer}.",
    )


@family(
    DOMAIN,
    space=(
        (x + y, y + z, z + x)
        for x, k in product(range(11, 41), range(4))
        for y, z in (((7 * x + 5 * k) % 23 + 8, (5 * x + 11 * k) % 29 + 9),)
        if len({x, y, z}) == 3
    ),
    wordings=(
        "Ada and Ben together weigh {a} kg, Ben and Cleo {b} kg, Cleo and Ada {c} kg. How many kilograms does Ada "
        "weigh?",
        "A shop offers sets of two at normal prices: jam with honey for {a} crowns, honey with tea for {b} crowns, tea "
        "with jam for {c} crowns. What is the price of the jam alone?",
        "The circle inside a triangle with the sides {a}, {b} and {c} touches all three sides. How far is the corner "
        "where the sides {a} and {c} meet from each of the two nearest points of touch?",
        "A choir consists of sopranos, altos and basses. Leaving out the basses there are {a} singers, leaving out the "
        "sopranos {b}, leaving out the altos {c}. Find the number of sopranos.",
        "Determine x from the system x + y = {a}, y + z = {b}, z + x = {c}.",
        "A mine has a north, a middle and a south pump. North and middle running at once lift {a} litres a minute, "
        "middle and south {b}, south and north {c}. How much does the north pump lift in a minute, in litres?",
        "Three paths lead from a well, one to an inn, one to a mill and one to a chapel. Going by the well, it is {a} "
        "furlongs from inn to mill, {b} from mill to chapel and {c} from chapel to inn. How many furlongs long is the "
        "path to the inn?",
        "Round discs of gold, silver and copper lie flat so that each one touches both others at the rim. The centres "
        "of gold and silver are {a} mm apart, those of silver and copper {b} mm, those of copper and gold {c} mm. "
        "What radius in mm has the golden disc?",
        "A song is built of a verse, a refrain and a bridge. Playing verse and refrain lasts {a} seconds, refrain and "
        "bridge {b} seconds, bridge and verse {c} seconds. For how many seconds does the verse sound if it is played "
        "once?",
        "A magician has sealed one number in each of the envelopes P, Q and R. He reveals that the numbers in P and Q "
        "make {a} when added, those in Q and R {b}, and those in R and P {c}. Which number is sealed in P?",
        "Three faces of a brick share a corner. Half the perimeter of the first face is {a} mm, that of the second is "
        "{b} mm and that of the third is {c} mm. What length in mm has the edge between the first and the third face?",
        "When batteries are connected in series, their voltages add up. A blue battery in series with a green one "
        "delivers {a} volts, the green one in series with a black one {b} volts, and the black one in series with the "
        "blue one {c} volts. How many volts does the blue battery deliver by itself?",
    ),
)
def pairwise_sums(a: int, b: int, c: int) -> Worked:
    """Half of all sums is the total; take off the pair without the wanted one."""
    half = (a + b + c) // 2
    return Worked(
        half - b,
        "Add all the sums of pairs. Each unknown is in two of them, so half of this is the total of the three. Then "
        f"subtract the pair without the wanted one. ({a} + {b} + {c}) / 2 = {half}, and {half} - {b} = {half - b}.",
    )


@family(
    DOMAIN,
    space=((s, p) for s, p in product(range(5, 15), range(2, 25, 2)) if 4 * p < s * s and p != s),
    wordings=(
        "The edges of two cubes add up to {s} cm, and the product of the two edge lengths is {p}. What is the total "
        "volume of the cubes in cubic centimetres?",
        "Let u and v be the solutions of x^2 - {s}x + {p} = 0. Find u^3 + v^3.",
        "A gem of w grams costs w * w * w crowns. Two gems weigh {s} grams together, and their weights in grams "
        "multiply to {p}. How many crowns must be paid for both?",
        "Two real numbers have the sum {s} and the product {p}. Add up their third powers.",
        "The power of a wind wheel in watts is the wind speed in metres per second, raised to the exponent three. "
        "Monday's speed plus Tuesday's speed is {s}, Monday's speed times Tuesday's speed is {p}. How many watts are "
        "the powers of the two days in all?",
        "A number t satisfies t({s} - t) = {p}. What is the value of t^3 + ({s} - t)^3?",
        "Length and width of a rectangular carpet, in feet, come to {s} when added. Its area is {p} square feet. "
        "Someone takes the length three times as a factor, and the width three times as a factor likewise. What do "
        "these two results make when added?",
        "A magic lantern at dial setting z burns z * z * z drops of oil an hour. Two such lanterns are lit. Their "
        "settings, which need not be whole, are {s} taken together, and one setting times the other is {p}. How many "
        "drops do both lanterns burn in an hour?",
        "On the curve y = x^3 lie two points. Their first coordinates total {s}, and these first coordinates have the "
        "product {p}. What do the second coordinates of the points total?",
        "A founder knows that a bell h feet high takes h * h * h pounds of bronze. He casts a pair of bells for a "
        "chapel; their heights in feet need not be integers. The heights sum to {s} feet, and one height in feet times "
        "the other makes {p}. How many pounds of bronze go into the pair?",
        "The entries of a two-by-two matrix M are real. M has the trace {s} and the determinant {p}. What is the trace "
        "of the matrix M · M · M?",
        "A snowman is one snowball on top of another. Whoever rolls a snowball of diameter d, measured in feet, uses "
        "up d · d · d handfuls of snow. Placed side by side, these two diameters make {s} feet; multiplying the one in "
        "feet by the other in feet yields {p}. How many handfuls of snow went into the snowman?",
    ),
)
def cubes_from_sum_and_product(s: int, p: int) -> Worked:
    """The cube of the sum without three times product and sum."""
    answer = s**3 - 3 * s * p
    return Worked(
        answer,
        f"Do not solve for the two numbers. With the sum s and the product p, the sum of the cubes is s^3 - 3ps. {s}^3 "
        f"= {s**3} and 3 * {p} * {s} = {3 * s * p}. {s**3} - {3 * s * p} = {answer}.",
    )


@family(
    DOMAIN,
    space=product(range(3, 15), range(2, 6)),
    wordings=(
        "A positive number and its reciprocal add up to {k}. Both are raised to the power {n}. What is the sum of the "
        "two results?",
        "Let x + 1/x = {k}. Find x^{n} + 1/x^{n}.",
        "Two exchange rates undo each other: using one and then the other leaves any amount as it was. The rates add "
        "up to {k}. From one coin Tim gets an amount by using the first rate {n} times in a row, and from another coin "
        "by using the second rate {n} times. How much has he then in all?",
        "For an acute angle w we know that tan(w) + cot(w) = {k}. Which value has the sum of tan(w) to the power {n} "
        "and cot(w) to the power {n}?",
        "The roots of the polynomial t^2 - {k}t + 1 are called p and q. Calculate p^{n} + q^{n}.",
        "A real exponent z fulfils e^z + e^(-z) = {k}. Determine e^({n}z) + e^(-{n}z).",
        "One button of a photo program multiplies all lengths by a factor. Another button multiplies them by a factor "
        "that exactly cancels this. The factors total {k}. Of two bars, each an inch long, one gets {n} clicks on the "
        "first button, the other {n} clicks on the second. How many inches do both bars measure together now?",
        "A rectangular window of exactly one square metre is w metres wide and h metres high. Its width and its "
        "height come to {k} metres when added. Work out w^{n} + h^{n}.",
        "A geometric sequence of positive terms runs without end in both directions, and one of its terms equals one. "
        "The terms just before and just after that term have the sum {k}. Find the sum of the term {n} places before "
        "it and the term {n} places after it.",
        "Two alchemists start with an ounce of gold each. Year after year Alma's gold is multiplied by a constant, "
        "while Bruno's gold is divided by the same constant. One year after the start they own {k} ounces between "
        "them. How many ounces do they own between them {n} years after the start?",
        "A real two-by-two matrix M has the trace {k}, and its determinant equals one. Which trace does the matrix "
        "M^{n} have?",
        "Any nibble at the red side of a mushroom makes Alice taller by one and the same factor; a nibble at the white "
        "side divides her height by this factor. If she is exactly a yard tall, then the height after a red nibble "
        "plus the height after a white nibble comes to {k} yards. Starting from a yard each time, what does her height "
        "after {n} red nibbles plus her height after {n} white nibbles come to, in yards?",
    ),
)
def powers_of_number_and_reciprocal(k: int, n: int) -> Worked:
    """The sums of powers follow a recurrence."""
    sums = [2, k]
    while len(sums) <= n:
        sums.append(k * sums[-1] - sums[-2])
    lines = ", ".join(f"S({i}) = {k} * {sums[i - 1]} - {sums[i - 2]} = {sums[i]}" for i in range(2, n + 1))
    return Worked(
        sums[n],
        f"Let S(n) be the sum of the n-th powers of the two. Their product is 1, so S(n) = {k} * S(n - 1) - S(n - 2), "
        f"with S(0) = 2 and S(1) = {k}. {lines}.",
    )


@family(
    DOMAIN,
    space=((p, k * (p + 2 * j), k) for p, j, k in product((8, 11, 14, 17, 20), (2, 3, 5, 6), (2, 3, 4, 5))),
    wordings=(
        "A café sells {q} cakes a day at {p} euros each. Every euro added to the price means {k} fewer cakes sold. "
        "Prices are whole euros. What is the largest daily income it can have, in euros?",
        "With {p} trees on a plot each tree bears {q} kg of pears. Each further tree planted there makes every tree "
        "bear {k} kg less. How many kilograms can the whole plot yield at best?",
        "What is the greatest value of ({p} + x)({q} - {k}x) for real x?",
        "A group of {p} persons pays {q} dollars per person for a coach trip. For each person above {p} the fare of "
        "everyone falls by {k} dollars. Find the highest takings the coach company can have.",
        "A rectangle on a screen is {p} mm wide and {q} mm high. Turning a knob makes it wider, and for each added "
        "millimetre of width it loses {k} mm of height. How many square millimetres is its area at most?",
        "At {p} degrees a machine makes {q} parts an hour, and a part brings as many cents as there are degrees. Each "
        "degree of extra heat costs {k} parts an hour. How many cents can an hour bring at the best heat?",
        "In a cramped office {p} typists write {q} letters each per day. Every typist taken on in addition slows down "
        "all of them, the new ones too, by {k} letters a day. How many letters a day can the office write at most if "
        "it takes on the right number of typists?",
        "At {p} volts a solar panel delivers {q} milliamperes. Whenever the voltage is raised by one volt, the "
        "current drops by {k} milliamperes. Volts times milliamperes are milliwatts. Find the top power of the panel "
        "in milliwatts.",
        "Traffic engineers find {p} cars on every kilometre of a motorway, all rolling at {q} km/h. Whenever the "
        "density goes up by one car per kilometre, everybody drives {k} km/h slower. Density times speed is the flow "
        "in cars per hour. What is the largest possible flow?",
        "A toy has two counters, which show {p} and {q}. At each click of its lever the former goes up by one while "
        "the latter goes down by {k}. Nils clicks as often as he likes, then multiplies the two readings. Which is the "
        "highest result within his reach?",
        "Towing {p} barges, a tugboat moves at {q} metres a minute. It gets slower by {k} metres a minute for each "
        "barge that is hitched on in addition. A day's towing is paid by the number of barges, multiplied by the speed "
        "in metres a minute. What is the largest number that this multiplication can give?",
        "A straight line with the slope -{k} goes through the point ({p}, {q}) of a coordinate plane. For each point "
        "on the line, multiply its x-coordinate by its y-coordinate. Find the maximum of these values.",
    ),
)
def best_product(p: int, q: int, k: int) -> Worked:
    """The maximum of a quadratic lies midway between its zeros."""
    zero = q // k
    x = (zero - p) // 2
    return Worked(
        (p + x) * (q - k * x),
        f"The product ({p} + x)({q} - {k}x) is zero at x = -{p} and at x = {q} / {k} = {zero}. Its largest value lies "
        f"in the middle: x = ({zero} - {p}) / 2 = {x}. ({p} + {x}) * ({q} - {k} * {x}) = {p + x} * {q - k * x} = "
        f"{(p + x) * (q - k * x)}.",
    )


@family(
    DOMAIN,
    space=(
        (k * y // gcd(x, y), k * x // gcd(x, y), x * y)
        for x, y, k in product((4, 6, 9, 10, 15), (3, 5, 8, 12, 14), (1, 2, 3))
        if 1 not in (k * y // gcd(x, y), k * x // gcd(x, y))
    ),
    wordings=(
        "A rectangular stall covers {n} square metres. A metre of its width costs {a} euros of rent, a metre of its "
        "depth {b} euros. What is the lowest possible rent in euros?",
        "Positive numbers x and y have the product {n}. Find the least value of {a}x + {b}y.",
        "A shop needs {n} boxes a year and orders them in equal lots. Its yearly cost in coins is {a} times the number "
        "of boxes in a lot plus {b} times the number of lots. How many coins does it spend when it orders as cleverly "
        "as possible?",
        "A journey of {n} km is made at one steady speed. Wear costs {a} cents for each km/h of speed, and wages cost "
        "{b} cents for each hour. How few cents can the journey cost?",
        "For t > 0, how small can {a}t + {b} * {n} / t become?",
        "{n} pages are to be copied by hand. A scribe copies one page an hour. Each scribe hired gets {a} silver "
        "pieces however long it takes, and the room costs {b} silver pieces an hour. All scribes hired write all the "
        "time. What is the smallest bill?",
        "{n} soldiers parade in a full rectangle of rows and columns. Each row carries a flag that costs {a} ducats, "
        "each column a drum that costs {b} ducats. The general chooses the rectangle. What is the least he has to "
        "spend on flags and drums, in ducats?",
        "A force pushes at right angles on the end of a lever. The force in newtons multiplied by the length of the "
        "lever in metres must give {n}. Every newton adds {a} pence to the price, every metre of lever {b} pence. How "
        "cheap can the device be, in pence?",
        "To kill germs in a cistern, the dose of chlorine in grams times the waiting time in minutes has to equal {n}. "
        "Every gram of chlorine adds {a} cents to the bill, every minute of waiting {b} cents. How many cents does the "
        "cheapest treatment come to?",
        "For a certain positive c the straight line {a}x + {b}y = c is a tangent of the hyperbola xy = {n}. Determine "
        "c.",
        "To print {n} labels, a printer engraves the picture several times on one plate. Each engraving of the picture "
        "costs {a} francs. Then the plate goes through the press again and again, each pass costs {b} francs and "
        "prints every engraved picture once, and no label too many is printed. What is the lowest sum in francs for "
        "which the labels can be made?",
        "A keyboard with {n} keys is wired as a grid: there is one key wherever a lengthwise wire crosses a crosswise "
        "wire, and nowhere else. The maker pays {a} cents for each lengthwise wire and {b} cents for each crosswise "
        "wire. He may pick how many wires of either sort there are. At how many cents does he get the wires if he "
        "picks well?",
    ),
)
def least_sum_for_fixed_product(a: int, b: int, n: int) -> Worked:
    """Both parts of the sum are equal at the minimum."""
    root = isqrt(a * b * n)
    return Worked(
        2 * root,
        f"A sum of two positive parts with a fixed product is least when the parts are equal. The parts {a}x and {b}y "
        f"have the product {a} * {b} * {n} = {a * b * n}, so each is the square root {root}. 2 * {root} = {2 * root}.",
    )


@family(
    DOMAIN,
    space=((a, b, c) for a, b, c in product((3, 4, 6, 7), range(110, 260, 29), range(10, 70, 17))),
    wordings=(
        "How many integers x satisfy |{a}x - {b}| <= {c}?",
        "A roll weighs {a} g. A bag of rolls passes inspection if its weight differs from {b} g by no more than {c} g. "
        "How many different numbers of rolls can there be in a bag that passes?",
        "A lighthouse flashes {a} seconds after the start of the watch and then every {a} seconds. A camera films from "
        "{c} seconds before second {b} of the watch to {c} seconds after it, ends included. How many flashes are on "
        "the film?",
        "Bricks {a} cm high are piled up without gaps. The pillar may miss the planned {b} cm by {c} cm in either "
        "direction, but not by more. Count the heights the mason can choose from.",
        "Admission is {a} crowns. A club wants the takings to be at most {c} crowns away from its costs of {b} crowns, "
        "above or below. For how many numbers of visitors is the wish fulfilled?",
        "Mark on the number line all multiples of {a} whose distance from {b} is {c} or smaller. What is the number of "
        "marks?",
        "An empty horse trough is filled with a bucket of {a} litres, always brim-full. It should get {b} litres. Too "
        "much or too little by {c} litres is still all right, a greater error is not. How many choices does the groom "
        "have for the number of buckets?",
        "A weaver makes ribbons whose pattern repeats every {a} inches, and every ribbon consists of whole patterns. "
        "A customer asks for {b} inches but accepts up to {c} inches more or fewer, {c} itself allowed. How many "
        "different lengths may his ribbon have?",
        "A swimming coach sets a training goal of {b} lengths. Her pupils swim in rounds of {a} lengths and never "
        "break off a round. A pupil's final count of lengths may stray from the goal, upwards or downwards, by any "
        "amount up to and including {c}. How many different final counts does the coach accept?",
        "Some points of the straight line y = {a}x - {b} have integers as both coordinates. How many of these points "
        "have a y-coordinate from -{c} to {c}, both limits allowed?",
        "A rover leaves its base on a straight track, halts after every {a} m and drives on until it is far beyond a "
        "radio mast that stands beside the track, {b} m along from the base. The signal of the mast reaches {c} m "
        "along the track in both directions, the two end points included. At how many of its halts is the rover within "
        "reach of the signal?",
        "Dipping a candle into hot wax once makes it {a} grams heavier, and the wick that it starts from weighs "
        "practically nothing. A finished candle may be sold only if its weight is neither more than {c} grams below "
        "nor more than {c} grams above {b} grams. How many different weights occur among candles that may be sold?",
    ),
)
def integers_within_tolerance(a: int, b: int, c: int) -> Worked:
    """Turn the absolute value into two bounds and round inwards."""
    low, high = -((c - b) // a), (b + c) // a
    return Worked(
        high - low + 1,
        f"A distance of at most {c} from {b} means {b} - {c} <= {a}x <= {b} + {c}, so {b - c} <= {a}x <= {b + c}. "
        f"Divide by {a} and round inwards: x goes from {low} to {high}. Both ends count: {high} - {low} + 1 = "
        f"{high - low + 1}.",
    )


@family(
    DOMAIN,
    space=(
        places
        for i in range(1, 95)
        for places in (
            (
                pow(7, i, 71),
                pow(3, i, 79),
                pow(5, i, 73),
                pow(11, i, 67),
                pow(6, i, 61),
            ),
        )
        if len(set(places)) == 5
    ),
    wordings=(
        "Five friends live on a straight road, at kilometres {a}, {b}, {c}, {d} and {e}. They meet at the point of the "
        "road that makes the sum of their five ways least. How many kilometres is this sum?",
        "What is the minimum of |x - {a}| + |x - {b}| + |x - {c}| + |x - {d}| + |x - {e}| over all real x?",
        "Towers of {a}, {b}, {c}, {d} and {e} bricks stand side by side. A move puts one spare brick on a tower or "
        "takes one off. How few moves give all the towers the same height?",
        "The cards {a}, {b}, {c}, {d} and {e} lie open. You name a number and pay, for every card, as many coins as "
        "your number differs from it. Find the least you can pay in total.",
        "A crane carries crates from the metre marks {a}, {b}, {c}, {d} and {e} of its rail, one at a time, all to the "
        "same mark. For the best mark, what is the total length of its five trips with a crate, in metres?",
        "Machines stand {a}, {b}, {c}, {d} and {e} feet from the door of a corridor. From each, a cable of its own "
        "runs along the corridor to a common switch. How many feet of cable does the cheapest plan need?",
        "The water in five tanks has {a}, {b}, {c}, {d} and {e} degrees. Heating or cooling one tank by one degree "
        "takes a penny. All of them must be brought to one common temperature, which may be chosen freely. What is "
        "the smallest expense in pennies?",
        "Five farmers wish the fair to be on day {a}, day {b}, day {c}, day {d} and day {e} of the year. Once it is "
        "fixed, each farmer sighs once for every day by which the fair is earlier or later than he wished. The mayor "
        "wants few sighs. How many sighs in all are unavoidable?",
        "Five sisters live on floors {a}, {b}, {c}, {d} and {e} of a tower block, where neighbouring floors are one "
        "flight of stairs apart. All use the stairs to dine together on a floor picked so that the flights walked "
        "there by all sisters have the least sum. State this sum of flights.",
        "Five sluice gates of a canal are open by {a}, {b}, {c}, {d} and {e} cm. One turn of a crank raises or lowers "
        "a single gate by a centimetre. An order arrives that every gate has to be open equally wide, no matter how "
        "wide. What is the minimum number of turns for obeying it?",
        "For an old violin, five experts suggest the prices {a}, {b}, {c}, {d} and {e}, in thousands of crowns. A "
        "judge has to fix the price. She wants the differences between her price and each of the five suggestions, all "
        "counted as positive, to add up to as little as possible. To how many thousand crowns do they add up at best?",
        "In a coordinate plane there are five points whose first coordinates are {a}, {b}, {c}, {d} and {e}; nothing "
        "is said about their second coordinates. A vertical line is to be drawn wherever its distances from the five "
        "points have the smallest possible total. Give this total.",
    ),
)
def least_total_distance(a: int, b: int, c: int, d: int, e: int) -> Worked:
    """The median has the least sum of distances."""
    places = sorted((a, b, c, d, e))
    middle = places[2]
    parts = [abs(x - middle) for x in places]
    return Worked(
        sum(parts),
        "The sum of distances to several points is least at their median. In order they are "
        f"{', '.join(map(str, places))}, so the median is {middle}. The distances add up: "
        f"{' + '.join(map(str, parts))} = {sum(parts)}.",
    )


@family(
    DOMAIN,
    space=(
        (a, c)
        for a, c in product(range(6, 61), range(4, 50))
        if c < a and a * c % (a - c) == 0 and a != 2 * c and a * c // (a - c) <= 180
    ),
    wordings=(
        "One pipe alone fills a pool in {a} hours. When a second pipe runs too, it takes only {c} hours. How many "
        "hours does the second pipe need alone?",
        "Two skaters circle a rink in opposite directions. The first needs {a} seconds for a lap, and they meet every "
        "{c} seconds. How many seconds does the second skater need for a lap?",
        "Mia would fold the laundry in {a} minutes by herself. With Jon's help, each at a steady pace, it is done in "
        "{c} minutes. In how many minutes would Jon manage it without her?",
        "For which x is 1/{a} + 1/x = 1/{c}?",
        "A heap of hay lasts a horse {a} days. If a donkey eats from it as well, it lasts {c} days. Find the number of "
        "days it would last the donkey on its own.",
        "The reciprocals of two resistances in parallel add up to the reciprocal of the total resistance. A resistor "
        "of {a} ohms and another one in parallel make {c} ohms. What is the resistance of the other, in ohms?",
        "An old snow plough clears a mountain road in {a} minutes. If a new plough starts at the same moment from the "
        "other end, both at steady speed, the whole road is clear after {c} minutes. How long, in minutes, would the "
        "new plough take to clear the road if the old one broke down?",
        "Standing still on a moving escalator, Ivo is at the top after {a} seconds. Walking up while it moves, he is "
        "there after {c} seconds. One day it is switched off, and he walks up at his usual pace. How many seconds is "
        "he on the stairs?",
        "Two masts stand upright on level ground. A straight rope is stretched from the tip of each mast to the foot "
        "of the other, and the ropes cross {c} m above the ground. One mast is {a} m high. What is the height of the "
        "other mast in metres?",
        "For a thin lens, one over the focal length equals one over the object distance plus one over the image "
        "distance. A lens of focal length {c} cm throws a sharp image of a candle that is {a} cm from the lens. What "
        "is the image distance in centimetres?",
        "A square lies inside a right triangle, with one corner at the right angle, two sides along the legs and the "
        "opposite corner on the hypotenuse. The sides of the square are {c} mm long, and one leg of the triangle "
        "measures {a} mm. What is the length of the remaining leg in mm?",
        "For the road from a castle to an abbey, a herald on horseback takes {a} hours. One morning, as she leaves the "
        "castle, a monk leaves the abbey for the castle along this road. They come face to face after {c} hours, each "
        "at an unchanging speed. What is the number of hours that the monk takes for the road from end to end?",
    ),
)
def rate_of_the_other(a: int, c: int) -> Worked:
    """Rates are reciprocals of times, and they add up."""
    return Worked(
        a * c // (a - c),
        f"Rates add up, not times, and a rate is 1 over the time. So the other rate is 1/{c} - 1/{a} = ({a} - {c}) / "
        f"({a} * {c}) = {a - c} / {a * c}. The time is its reciprocal: {a * c} / {a - c} = {a * c // (a - c)}.",
    )


@family(
    DOMAIN,
    space=(
        (a, d + k, a + k * n + r, d)
        for n, k in product(range(9, 31), (3, 4, 6))
        for a, d, r in ((5 * (n % 7) + 10, (n + k) % 5 + 2, n * k % 3),)
    ),
    wordings=(
        "Gym A asks for a joining fee of {a} euros and {b} euros per visit. Gym B asks for a fee of {c} euros and {d} "
        "euros per visit. What is the smallest number of visits for which gym B costs less than gym A?",
        "Find the least positive integer n with {c} + {d}n < {a} + {b}n.",
        "A pine is {a} cm tall and grows {b} cm a year. A yew is {c} cm tall and grows {d} cm a year. They are "
        "measured once a year from today on. After how many years is the pine taller for the first time?",
        "A hound is at metre {a} of a lane and runs {b} metres a second, and a hare at metre {c} runs {d} metres a "
        "second the same way. After how many full seconds is the hound in front for the first time?",
        "Lena leads with {c} points to Uwe's {a}. From now on Lena scores {d} and Uwe {b} points in each round. How "
        "many rounds must be played until the lead has passed to Uwe?",
        "Two barrels hold {a} and {c} litres. At the end of each minute {b} litres are tipped into the first and {d} "
        "litres into the second, in one splash. How many splashes does the first barrel get until it holds more than "
        "the second?",
        "Oakham owns {a} street lamps and Elmton owns {c}. Each spring Oakham puts up {b} new ones and Elmton {d}. "
        "How many springs does it take for Oakham to own more lamps than Elmton?",
        "Nora has got to page {a} of a novel, her brother already to page {c}. From tonight on she reads {b} more "
        "pages every evening and he {d}. They compare at bedtime. After how many evenings of reading do they find "
        "Nora on the later page for the first time?",
        "A chess club counts {a} members and a bridge club {c}. On the last day of every month, {b} new people join "
        "the chess club and {d} the bridge club; nobody ever leaves. After how many such days do the chess players "
        "outnumber the bridge players for the first time?",
        "Two endless arithmetic sequences are written in two lines, each term of the upper line directly above one of "
        "the lower line. The upper sequence starts with {a} and has the common difference {b}, the lower starts with "
        "{c} and has the common difference {d}. How many terms of the upper line are not greater than the term "
        "directly below?",
        "A red lantern hovers {a} m above a bay and a white lantern {c} m above it. Every minute the red lantern rises "
        "by {b} m and the white one by {d} m. From now on, a photo is taken at the end of each minute, and the photos "
        "are numbered from one. What is the number of the earliest photo on which the red lantern is the higher one?",
        "A singer may sign one of two contracts for a tour. The blue contract guarantees her {c} crowns and another "
        "{d} crowns for each concert, the green contract {a} crowns and another {b} crowns for each concert. What is "
        "the least number of concerts that makes the green contract the more profitable one for her?",
    ),
)
def first_time_ahead(a: int, b: int, c: int, d: int) -> Worked:
    """Divide the head start by the gain per step and go strictly beyond."""
    lead, gain = c - a, b - d
    return Worked(
        lead // gain + 1,
        f"The head start is {c} - {a} = {lead}, and the gain per step is {b} - {d} = {gain}. The gain must be strictly "
        f"more than the head start: {gain}n > {lead}. {lead} / {gain} has the whole part {lead // gain}, where the "
        f"gain is not yet more. So n = {lead // gain} + 1 = {lead // gain + 1}.",
    )


@family(
    DOMAIN,
    space=((d * (2 * x - d), d) for x, d in product(range(11, 43, 2), (2, 3, 4, 5, 7))),
    wordings=(
        "Two rooms are square. One is {d} m longer than the other, and its floor is {n} square metres larger. How many "
        "metres long is the larger room?",
        "The hypotenuse of a right triangle is {d} longer than one leg. The square over the other leg has the area "
        "{n}. What is the length of the hypotenuse?",
        "Which x solves x^2 = (x - {d})^2 + {n}?",
        "Coins lie in rows that form a full square. With {n} coins more they would form a full square with {d} more "
        "rows. How many rows would this have?",
        "Two natural numbers differ by {d}, their squares by {n}. Find the larger number.",
        "From a corner of a square sheet a smaller square is cut out. What remains is an L, which is {d} inches wide "
        "everywhere and has {n} square inches. How many inches did the side of the sheet measure?",
        "A round pond is ringed by a path {d} m wide. The path alone has an area of {n} times pi square metres. How "
        "far is it from the middle of the pond to the outer edge of the path, in metres?",
        "In a computer game a knight of level L has L times L life points. By climbing {d} levels Gero's knight has "
        "won {n} life points. Which level has he reached?",
        "During the first t seconds after its release a marble rolls t * t millimetres down a slope, whatever t is. In "
        "the final {d} seconds before it hits a wall it covers {n} millimetres. How many seconds after the release "
        "does it hit the wall?",
        "The price of a sapphire in crowns is its weight in carats, multiplied by this same weight. When a sapphire "
        "was polished, {d} carats were ground away and its price fell by {n} crowns. How many carats did it weigh "
        "before the polishing?",
        "The line x - y = {d} and the hyperbola x^2 - y^2 = {n} have exactly one point in common. Calculate the "
        "x-coordinate of this point.",
        "At a speed of v metres per second a toy train has an energy of v · v units. On a patch of sand its speed "
        "drops by {d} metres per second, and the train loses {n} units of energy. With what speed, in metres per "
        "second, did it enter the patch?",
    ),
)
def difference_of_two_squares(n: int, d: int) -> Worked:
    """Difference times sum is the difference of the squares."""
    total = n // d
    return Worked(
        (total + d) // 2,
        f"The difference of two squares is the difference times the sum of the two numbers. So the sum is {n} / {d} = "
        f"{total}. The larger number is half of sum plus difference: ({total} + {d}) / 2 = {(total + d) // 2}.",
    )


@family(
    DOMAIN,
    space=((u, e, v) for (u, i, v, j), e in product(POWERS, range(6, 40)) if e * i % j == 0),
    wordings=(
        "Which exponent x makes {v}^x equal to {u}^{e}?",
        "An old code has {e} places with {u} possible signs each. A new code uses an alphabet of {v} signs. How many "
        "places must it have to give exactly as many code words?",
        "In one dish bacteria become {u} times as many every day, in another {v} times as many. Both start with one "
        "cell. After how many days does the second dish have as many cells as the first one had after {e} days?",
        "Determine the logarithm to the base {v} of {u} to the power {e}.",
        "In a tree diagram every node splits into {u} branches, down to level {e}. In another every node splits into "
        "{v}. Its last level has the same number of ends. What is the number of its last level, if both start with one "
        "node at level zero?",
        "A lottery spins {e} wheels with {u} pictures on each. Its rival has wheels with {v} pictures. How many wheels "
        "does the rival have to spin so that the chance of any one result is the same?",
        "Light passes {e} lenses one behind the other, and each of them enlarges the picture {u} times. Other lenses "
        "enlarge it {v} times each. How many of those, placed in a row, are needed for the very same total "
        "enlargement?",
        "Each rinse in an old washing machine divides the soap left in a shirt by {u}, each rinse in a new machine by "
        "{v}. Two shirts hold equal amounts of soap. One is rinsed {e} times in the old machine. How many rinses in "
        "the new machine leave just as little soap in the other shirt?",
        "A walk through the east garden passes {e} crossroads, and at each of them the visitor picks one of {u} ways "
        "to go on. A walk through the west garden offers {v} ways to go on at each of its crossroads. The number of "
        "different walks is the same in either garden. How many crossroads does a walk through the west garden pass?",
        "A product has {e} factors, each of them being {u}. The same number is to be written as a product in which "
        "each factor is {v}. How many factors does this take?",
        "Two geometric sequences have the same first term, which is one. In the first sequence each term is {u} times "
        "the term before it, in the second sequence {v} times. Whatever comes {e} places after the first term of the "
        "first sequence also occurs in the second sequence. How many places after the first term does it occur there?",
        "Ola tears a sheet of paper into {u} scraps, in the next round tears every scrap into {u}, and continues like "
        "that until {e} rounds are over. With a sheet of her own, Pia does the same, except that in each round she "
        "tears everything into {v}. After which round does Pia have exactly as many scraps as Ola has at the end?",
    ),
)
def equal_powers(u: int, e: int, v: int) -> Worked:
    """Write both as powers of one prime and compare exponents."""
    (base, i, j) = next((g, i, j) for g, i, j in product((2, 3), range(1, 7), range(1, 7)) if (g**i, g**j) == (u, v))
    return Worked(
        e * i // j,
        f"Write both bases as powers of one prime and compare the exponents. {u} = {base}^{i} and {v} = {base}^{j}, so "
        f"{i} * {e} = {j}x. x = {i * e} / {j} = {e * i // j}.",
    )


@family(
    DOMAIN,
    space=((a, n) for a, n in product((2, 3, 5, 6, 7, 9), range(11, 70, 6)) if 0.02 < n * log10(a) % 1 < 0.98),
    wordings=(
        "How many digits does {a}^{n} have when it is written out in the decimal system?",
        "A password has {n} characters from an alphabet of {a} characters. The number of possible passwords is printed "
        "in full. How many figures are printed?",
        "A calculator with a very wide display shows 1. The keys for 'times {a}' are pressed {n} times. How long is "
        "the number on the display, in digits?",
        "A jeweller engraves the value of a product of {n} equal factors {a} and charges one crown per digit. How many "
        "crowns does the engraving cost?",
        "Find the smallest integer k for which {a}^{n} is less than 10^k.",
        "One grain lies on the first field of a board, and every further field has {a} times as many grains as the "
        "field before. How many places has the number of grains on the field that comes {n} fields after the first?",
        "Each of {n} doors in a lane can be painted in any of {a} colours. On a wall the painter writes how many "
        "different colourings of the lane there are. He uses ordinary figures, each a foot wide, without gaps or "
        "commas. How many feet wide is the inscription?",
        "A sheet of paper is torn into {a} scraps. In the next round every scrap is again torn into {a}, and so on, "
        "for {n} rounds in all with the first. Somebody types the final count of scraps as a decimal number. How "
        "often is a digit key hit?",
        "At a banquet of {n} courses every guest picks one of {a} dishes for each course. The cook works out how many "
        "different menus a guest can put together, and lays this number in decimal notation on the table, using one "
        "biscuit per numeral. How many biscuits are laid?",
        "Some powers of ten are greater than {a}^{n}. The smallest of them is printed in full, as a one followed by "
        "zeros. How many zeros are there?",
        "Take the number {a}^{n}. Divide it by ten and throw away any fractional part, then treat the result in the "
        "same manner, and so on. How many divisions are necessary to arrive at zero?",
        "A legendary queen had {a} daughters, each of these had {a} daughters too, and so on down the line. The "
        "daughters of the queen are generation one. A herald reads aloud how many women there were in generation {n}, "
        "naming the figures of the number one after another. How many figures does he name?",
    ),
)
def digits_of_power(a: int, n: int) -> Worked:
    """Round the decimal logarithm down and add one."""
    whole = int(n * log10(a))
    return Worked(
        whole + 1,
        f"A number has one digit more than the whole part of its logarithm to base 10. log({a}) = {log10(a):.4f}, and "
        f"{n} * {log10(a):.4f} = {n * round(log10(a), 4):.2f}. {whole} + 1 = {whole + 1}.",
    )


@family(
    DOMAIN,
    space=((k, r * r - k * r) for r, k in product(range(8, 31), (2, 3, 5))),
    wordings=(
        "From a flock of geese {k} times the square root of their number flew away, and {m} stayed. How many geese had "
        "there been?",
        "Solve x - {k} * sqrt(x) = {m} for x.",
        "A marching band stood in a full square. After {k} complete rows had left, {m} musicians remained. How many "
        "musicians were there at first?",
        "The area of a square in square centimetres exceeds {k} times its side length in centimetres by {m}. Find the "
        "area.",
        "A dealer had as many bags as there were coins in each bag. He paid with {k} full bags and kept {m} coins. "
        "What was the number of his coins before that?",
        "A certain number is {m} larger than the {k}-fold of its own square root. Which number is it?",
        "Every guest at a feast brings as many sweets as there are guests. All that {k} of the guests brought is "
        "stolen, and {m} sweets are left. How many sweets had been brought?",
        "The age of an oak in years is a perfect square. Take {k} times the root of this age away from the age "
        "itself, and {m} years are left. What is the age of the oak?",
        "A monastery has as many cells on each of its floors as it has floors. On {k} floors all the cells are empty. "
        "On the other floors every cell is taken by a single monk, which makes {m} monks. How many cells does the "
        "monastery have, empty ones included?",
        "From a square photo a strip {k} pixels wide is cropped along the full length of one edge. What is kept "
        "contains {m} pixels. How many pixels did the photo contain before it was cropped?",
        "Radek meant to learn equally many Spanish words on every day of his holidays, namely as many as the holidays "
        "have days. For {k} days he was ill and learned none, but on all the other days he kept to his plan. He came "
        "home with {m} new words. How many words would it have been without the illness?",
        "At just one point with a positive x-coordinate the line y = {k}x + {m} crosses the parabola y = x^2. Which "
        "y-coordinate does this point have?",
    ),
)
def number_and_its_root(k: int, m: int) -> Worked:
    """Substitute the root and complete the square."""
    full = k * k + 4 * m
    r = (k + isqrt(full)) // 2
    return Worked(
        r * r,
        f"Call the square root r. Then r^2 - {k}r = {m}. Complete the square, times 4: (2r - {k})^2 = 4 * {m} + {k}^2 "
        f"= {full}, and the root of {full} is {isqrt(full)}. r = ({isqrt(full)} + {k}) / 2 = {r}, and the number is "
        f"{r}^2 = {r * r}.",
    )


@family(
    DOMAIN,
    space=(
        (a, b, n)
        for a, b, n in product(range(4, 10), range(2, 6), range(5, 40))
        if a > b + 1 and n * (b - 1) % (a - b) == 0 and n * (b - 1) // (a - b) not in (a, b, n)
    ),
    wordings=(
        "A father is {a} times as old as his daughter. In {n} years he will be {b} times as old as she is then. How "
        "old is the daughter now?",
        "The cellar tank holds {a} times as much water as the roof tank. After {n} more litres have run into each of "
        "the two, it holds {b} times as much. How many litres did the roof tank hold at first?",
        "Two numbers satisfy y = {a}x and y + {n} = {b}(x + {n}). Find x.",
        "Kim has read {a} times as many books as Lou. If each of them reads another {n}, Kim will be at only {b} "
        "times as many. How many books has Lou read so far?",
        "A church tower is {a} times as high as the statue beside it. Both stand on a hill that rises {n} m above a "
        "lake. Measured from the lake, the top of the tower is {b} times as high as the top of the statue. How many "
        "metres high is the statue?",
        "Before a bonus of {n} euros was paid to each of two clerks, one had {a} times the savings of the other. With "
        "the bonus it was {b} times. How many euros had the poorer clerk saved before?",
        "A big pumpkin has {a} times the weight of a small one. Each is laid into a basket that weighs {n} pounds "
        "itself. Basket and big pumpkin now weigh {b} times as much as basket and small pumpkin. What is the weight "
        "of the small pumpkin in pounds?",
        "There are {a} times as many sheep as goats on a pasture. Then {n} sheep and {n} goats join them, and now the "
        "sheep are exactly {b} times as many as the goats. Find the number of goats that were there before.",
        "By coach the trip to the sea usually lasts {a} times as long as by rail. Today a strike delays coach and "
        "train by {n} minutes each, so that the coach takes exactly {b} times as long as the train. How many minutes "
        "does the trip by rail usually last?",
        "The value of a fraction is {a}. When {n} is added to its numerator and also to its denominator, the value "
        "turns into {b}. Which denominator did the fraction have at first?",
        "A straight road runs from a city gate past a mill to an inn. Measured from the gate, the inn is {a} times as "
        "far off as the mill. Measured from a well, which lies on the same straight line {n} yards before the gate, "
        "the inn is {b} times as far off as the mill. How many yards is it from the gate to the mill?",
        "At the noon count of an election the mayor led with {a} times the votes of her rival. In the afternoon {n} "
        "more votes arrived for the mayor and equally many for the rival, and with all votes counted the mayor had {b} "
        "times the votes of her rival. What was the rival's number of votes at noon?",
    ),
    test_only=True,
)
def multiple_shrinks_by_equal_gain(a: int, b: int, n: int) -> Worked:
    """The difference stays while both grow by the same."""
    x = n * (b - 1) // (a - b)
    return Worked(
        x,
        f"Call the smaller one x. Then {a}x + {n} = {b} * (x + {n}), so {a - b}x = {b} * {n} - {n} = {b * n - n}. "
        f"{b * n - n} / {a - b} = {x}.",
    )


FAMILIES = (
    two_kinds_one_total,
    pairwise_sums,
    cubes_from_sum_and_product,
    powers_of_number_and_reciprocal,
    best_product,
    least_sum_for_fixed_product,
    integers_within_tolerance,
    least_total_distance,
    rate_of_the_other,
    first_time_ahead,
    difference_of_two_squares,
    equal_powers,
    digits_of_power,
    number_and_its_root,
    multiple_shrinks_by_equal_gain,
)
