"""Sequences and sums: arithmetic, geometric, telescoping, recurrences, powers and figurate numbers."""

from itertools import pairwise, product
from math import isqrt, lcm

from problems.family import Worked, family

DOMAIN = "sequences_and_sums"
RATIOS = ((1, 3), (2, 3), (1, 4), (3, 4), (2, 5), (3, 5), (4, 5), (5, 6), (2, 7))
"""Fractions below one."""


def triangular(n: int) -> int:
    """1 + 2 + ... + n."""
    return n * (n + 1) // 2


def pyramid(n: int) -> int:
    """1 + 4 + 9 + ... + n^2."""
    return n * (n + 1) * (2 * n + 1) // 6


@family(
    DOMAIN,
    space=(
        (k, a, b) for k, a, b in product((3, 4, 6, 7, 8, 9), range(20, 60, 9), range(100, 190, 23)) if a % k and b % k
    ),
    wordings=(
        "What is the sum of all multiples of {k} that lie between {a} and {b}?",
        "Raffle tickets bear the numbers {a} to {b}. A ticket wins as many cents as its number says, provided that {k} "
        "divides the number. How many cents must be paid out for all the tickets?",
        "A well is opened only on days whose number is divisible by {k}, and on day d it gives d litres. How many "
        "litres are drawn from day {a} to day {b}?",
        "A computer adds i to a counter, which starts at zero, whenever i mod {k} is 0. It does so for i = {a}, ..., "
        "{b}. Which value has the counter at the end?",
        "There is one rod for every whole length from {a} cm to {b} cm. Take those that can be sawn into pieces of {k} "
        "cm without waste and lay them end to end. How many centimetres long is the line?",
        "A collector buys every stamp in the times table of {k} out of a series with the face values {a} crowns up to "
        "{b} crowns in steps of one crown. Find the total face value of her stamps.",
        "A coach passes all the milestones numbered {a} through {b}. At each milestone whose number leaves no "
        "remainder on division by {k}, the driver pays a toll of as many pennies as the number on the stone. What is "
        "the whole toll in pennies?",
        "In a district there is exactly one school of every size from {a} pupils to {b} pupils. On sports day a "
        "school takes part only if it can be split into teams of {k} with nobody left over. How many pupils take part?",
        "For a fair, a florist ties a single bunch of each size, from {a} roses up to {b} roses. A mother takes away "
        "every bunch whose roses she can deal out equally to her {k} daughters with none to spare. How many roses does "
        "she take away?",
        "The parcel lift of a skyscraper halts only on floors whose number is a whole number times {k}. Wherever it "
        "halts, it delivers exactly as many parcels as the number of the floor. It rides from floor {a} up to floor "
        "{b}. How many parcels does it deliver on this ride?",
        "Going through the integers greater than {a} and less than {b}, a pupil crosses out each one of which {k} is "
        "not a factor. What total do the integers that are left make?",
        "A frog leaves 0 on a number line and hops to the right, {k} units with every hop. Wherever it lands beyond "
        "{a} but short of {b}, it snaps up as many flies as the number of the landing place. Give its catch of flies.",
    ),
)
def sum_of_multiples(k: int, a: int, b: int) -> Worked:
    """Number of terms times the mean of the first and the last."""
    low, high = -(-a // k), b // k
    n, ends = high - low + 1, k * (low + high)
    return Worked(
        n * ends // 2,
        "The sum of evenly spaced terms is their number times first plus last, divided by 2. The first multiple is "
        f"{k} * {low} = {k * low}, the last is {k} * {high} = {k * high}, and there are {high} - {low} + 1 = {n}. {n} "
        f"* ({k * low} + {k * high}) / 2 = {n * ends // 2}.",
    )


@family(
    DOMAIN,
    space=(
        (p, s + d * p, q, s + d * q, r)
        for p, q, r, d in product((3, 5, 8), (11, 14), (20, 27, 33, 41), (4, 6, 7, 9))
        for s in ((p + q + r + d) % 23 + 6,)
    ),
    wordings=(
        "In an arithmetic sequence term number {p} is {u} and term number {q} is {v}. What is term number {r}?",
        "{p} cups pushed into one another make a stack {u} mm high, and {q} such cups a stack {v} mm high. How many "
        "millimetres high is a stack of {r} cups?",
        "A taxi charges a basic fee plus a fixed amount per kilometre. {p} km cost {u} crowns, {q} km cost {v} crowns. "
        "How many crowns are due for {r} km?",
        "Each row of a theatre has a certain number of seats more than the row in front of it, always the same number. "
        "There are {u} seats in row {p} and {v} in row {q}. Find the number of seats in row {r}.",
        "A straight line passes through the points ({p}, {u}) and ({q}, {v}). Which y belongs to x = {r} on this line?",
        "Water runs evenly into a basin. The gauge reads {u} litres at minute {p}, then {v} litres at minute {q}. What "
        "will it read at minute {r}?",
        "A spring gets longer by the same length for each gram that hangs from it. It measures {u} mm under a load of "
        "{p} grams and {v} mm under a load of {q} grams. How long is it under {r} grams, in millimetres?",
        "All wagons of a railway weigh equally much. The same locomotive with {p} wagons weighs {u} tons, and with "
        "{q} wagons {v} tons. Find the weight in tons of this locomotive together with {r} wagons.",
        "A foreign thermometer has an even scale of its own. At {p} degrees Celsius it shows {u}, and at {q} degrees "
        "Celsius it shows {v}. What does it show at {r} degrees Celsius?",
        "A rocket rises without changing its speed for as long as it is observed. The stopwatch says {p} s when the "
        "rocket is {u} km up, and it says {q} s when the rocket is {v} km up. How many km up is the rocket when the "
        "stopwatch says {r} s?",
        "Every year a guild raises the annual fee of its members by one unchanging sum. In year {p} of the guild a "
        "member owed {u} ducats, in year {q} already {v} ducats. What does a member owe in year {r}, in ducats?",
        "A function g grows by one constant amount whenever its argument grows by 1. Given g({p}) = {u} and g({q}) = "
        "{v}, evaluate g({r}).",
    ),
)
def term_from_two_terms(p: int, u: int, q: int, v: int, r: int) -> Worked:
    """The step is the change divided by the number of steps."""
    d = (v - u) // (q - p)
    return Worked(
        v + d * (r - q),
        f"The step is the change of the value divided by the number of steps: ({v} - {u}) / ({q} - {p}) = {v - u} / "
        f"{q - p} = {d}. From number {q} to number {r} there are {r - q} steps: {v} + {r - q} * {d} = "
        f"{v + d * (r - q)}.",
    )


@family(
    DOMAIN,
    space=((a, r, n) for a, r, n in product(range(2, 10), (2, 3, 4, 5), (4, 5, 6, 7, 8)) if a * r**n < 20_000),
    wordings=(
        "On the first night a stranger asks for {a} cents, and on each of the following nights for {r} times as much "
        "as the night before. How many cents does he get in {n} nights?",
        "Add up the first {n} terms of the geometric sequence with first term {a} and ratio {r}.",
        "The top floor of a tower has {a} windows, and each lower floor has {r} times as many as the floor right above "
        "it. There are {n} floors. How many windows does the tower have?",
        "A tale speaks of {a} kings. Each king has {r} castles, each castle {r} gates, and so it goes on, always {r}. "
        "The tale names {n} kinds of things, kings included. Count all the things in it.",
        "All {n} versions of a file are kept on a disk. Version 1 takes up {a} kB, and every other version is {r} "
        "times as large as the one before. What disk space, in kB, do they need together?",
        "A virus infected {a} computers in week one. Each week brought {r} times as many new infections as the last. "
        "Find the number of computers infected within {n} weeks.",
        "A quiz has {n} questions. The opening question is worth {a} points, and each later question is worth {r} "
        "times as much as its predecessor. What is the score of a contestant who answers everything correctly, if "
        "points are simply added?",
        "Autumn comes to an old maple. On day one it sheds {a} leaves, and then day after day {r} times the number of "
        "leaves shed on the previous day. How many leaves has it shed altogether when day {n} is over?",
        "In round one of a chain letter, Eva writes to {a} friends. In every further round, everyone who was written "
        "to in the round before writes to {r} people who have never been written to. Eva herself is never written to. "
        "How many people have been written to when {n} rounds are complete?",
        "There are {n} jars in a pharmacy. The smallest holds {a} ml, and any other jar holds {r} times as much as the "
        "jar that comes next below it in size. All of them are filled to the brim and emptied into a dry barrel. How "
        "many ml are in the barrel?",
        "A squirrel hides acorns in {n} hollows along a brook. The hollow at the spring gets {a} acorns, and going "
        "downstream, any hollow gets {r} times what the neighbouring hollow upstream got. What is the squirrel's whole "
        "stock of acorns?",
        "All {n} coefficients of a polynomial of degree {n} - 1, the constant one included, are equal to {a}. Which "
        "value does the polynomial take at {r}?",
    ),
)
def geometric_total(a: int, r: int, n: int) -> Worked:
    """First term times (ratio to the n, minus 1) over (ratio minus 1)."""
    answer = a * (r**n - 1) // (r - 1)
    return Worked(
        answer,
        f"With a constant factor the sum is the first term times (factor^n - 1) / (factor - 1). {r}^{n} - 1 = "
        f"{r**n - 1} and {r} - 1 = {r - 1}. {a} * {r**n - 1} / {r - 1} = {answer}.",
    )


@family(
    DOMAIN,
    space=((m * (q - p), p, q) for m, (p, q) in product(range(6, 40, 3), RATIOS)),
    wordings=(
        "A pendulum covers {a} cm on its first swing and on each later swing {p}/{q} of the swing before. If it never "
        "stopped, how many centimetres would it cover in all?",
        "Find the sum of the infinite geometric series with first term {a} and common ratio {p}/{q}.",
        "A patient takes {a} mg of a drug every day. After a day {p}/{q} of all the drug in the body is still there. "
        "Which amount, in mg, does the body's content right after taking the drug approach in the long run?",
        "A snail's trail consists of straight pieces. The first is {a} mm long, and any other is {p}/{q} as long as "
        "its forerunner. Towards which total length in millimetres does the trail grow?",
        "A city spends {a} coins. Whoever receives coins spends {p}/{q} of them again, and so on without end. What is "
        "the sum of everything spent, the city's own coins included?",
        "Let b(0) = {a} and b(k + 1) = b(k) * {p} / {q}. What number do the sums b(0) + b(1) + ... + b(k) tend to?",
        "An artist imagines an unending row of squares, none of which overlap. The leftmost has an area of {a} square "
        "inches, and each further square has {p}/{q} of the area of its left neighbour. What area, in square inches, "
        "do all the squares cover?",
        "An oil well that never runs dry yields {a} barrels in its opening year and, in every year after that, "
        "{p}/{q} of the previous year's yield. Its total output so far never reaches a certain number of barrels, yet "
        "comes as close to that number as you like. Which number is meant?",
        "A hen is {a} yards in front of a fox. While the fox runs to where the hen was, she flees straight on by "
        "{p}/{q} of that distance. While he runs this new stretch, she flees by the same fraction of it, and so on for "
        "ever. Taking all the stretches of the fox together, how many yards does he run?",
        "A glassworks turns {a} tonnes of fresh glass into bottles and sells them. Of all glass sold at a time, "
        "{p}/{q} is returned, melted without loss and sold as bottles once more, and this cycle has no end. To how "
        "many tonnes do all these sales amount?",
        "Infinitely many panes of tinted glass are piled up and lit from above. The uppermost pane absorbs {a} joules, "
        "and every pane below it absorbs {p}/{q} of what the pane directly above it absorbs. How many joules does the "
        "whole pile absorb?",
        "Cell 1 of a spreadsheet column shows {a}. Every further cell takes {p}/{q} of the content of the cell above "
        "it and adds the content of cell 1. To what value do the cells settle as one scrolls down without limit?",
    ),
)
def endless_sum(a: int, p: int, q: int) -> Worked:
    """First term over one minus the ratio."""
    answer = a * q // (q - p)
    return Worked(
        answer,
        f"An endless geometric sum is the first term divided by 1 minus the ratio. 1 - {p}/{q} = {q - p}/{q}. Dividing "
        f"by this is multiplying by {q}/{q - p}: {a} * {q} / {q - p} = {answer}.",
    )


@family(
    DOMAIN,
    space=((m * a, a, b) for m, a, b in product((2, 3, 5, 7, 8, 11), (3, 4, 6, 7, 9), (15, 18, 22, 28)) if m != a),
    wordings=(
        "A fund of {v} coins grows by 1/{a} of itself in its first year. From year to year the denominator goes up by "
        "one, until the fund grows by 1/{b} of itself in its last year. How many coins are in it then?",
        "Compute {v} * (1 + 1/{a}) * ... * (1 + 1/{b}), where the denominators run through all integers from {a} to "
        "{b}.",
        "In month k of its life a club gains one new member for every k members. At the start of month {a} it has {v} "
        "members. How many are there at the end of month {b}?",
        "A photo {v} pixels wide is enlarged in the ratio k : (k + 1), first with k = {a}, then with the next k, and "
        "so on up to k = {b}. What is its final width in pixels?",
        "The number {v} stands on a board. For each integer k from {a} to {b} in turn, it is replaced by itself times "
        "k + 1, divided by k. Which number is left on the board?",
        "Every day a coral weighing {v} grams at first puts on a fraction of its weight: 1/{a} on the first day, then "
        "a unit fraction with the next larger denominator each day, 1/{b} on the last. Find its weight in grams after "
        "that.",
        "A giant grows while he sleeps. In night number k he gains exactly his height of that evening divided by k. "
        "Before night {a} he is {v} feet tall. How many feet tall is he when he wakes up from night {b}, having slept "
        "every night?",
        "A merchant visits the towns number {a} to {b} in order, skipping none, and trades all his salt in each. For "
        "every k sacks of his, town number k gives him k + 1 sacks in return, and fractions at the same rate. He "
        "starts with {v} sacks. With how many does he leave the last town?",
        "In a clockwork, pairs of cogwheels hand the motion on from shaft to shaft. In pair number k the driving wheel "
        "has k + 1 teeth and the driven wheel has k teeth. The motion goes through the pairs {a} to {b}, one after the "
        "other, and the shaft before pair {a} turns {v} times an hour. How often does the shaft behind pair {b} turn "
        "in an hour?",
        "A sequence satisfies k * x(k + 1) = (k + 1) * x(k) for all positive integers k. Moreover, x({a}) = {v}. What "
        "is x({b} + 1)?",
        "Going up from overtone number k of a string to overtone number k + 1 multiplies the frequency by k + 1 and "
        "divides it by k. A musician begins with overtone {a}, which sounds at {v} hertz, and goes up one overtone at "
        "a time as far as the one directly after overtone {b}. At how many hertz does that one sound?",
        "A rug passes through the hands of several dealers, and the first of them paid {v} shekels for it. He sells it "
        "at a profit of one part in {a} of what he paid, the second dealer at a profit of one part in {a} + 1 of what "
        "that dealer paid, and so on down to the last dealer, whose profit is just one part in {b}. What does the "
        "final customer pay, in shekels?",
    ),
)
def telescoping_product(v: int, a: int, b: int) -> Worked:
    """Numerators cancel with the next denominators."""
    answer = v * (b + 1) // a
    return Worked(
        answer,
        "Growing by 1/k is multiplying by (k + 1)/k. In the product each numerator cancels with the next denominator, "
        f"so only the last numerator {b} + 1 = {b + 1} and the first denominator {a} are left. {v} * {b + 1} / {a} = "
        f"{answer}.",
    )


@family(
    DOMAIN,
    space=((m * lcm(a, b + 1), a, b) for m, a, b in product((1, 2, 3, 5), (2, 3, 4, 5, 6), (9, 11, 14, 17, 19, 23))),
    wordings=(
        "In minute k of a leak {n} / (k(k + 1)) litres are lost. How many litres are lost from minute {a} to minute "
        "{b}, both included?",
        "Multiply each integer from {a} to {b} by its successor, divide {n} by each of these products, and add up the "
        "quotients. What is the total?",
        "Heir number k receives {n} crowns divided by k and then divided by k + 1. How much do the heirs number {a} to "
        "{b} receive together, in crowns?",
        "A snail tires: on day d it crawls only {n} / (d * (d + 1)) cm. Find the distance it covers in the days {a}, "
        "..., {b}, in centimetres.",
        "Let f(x) = {n} / (x^2 + x). Evaluate f({a}) + f({a} + 1) + ... + f({b}).",
        "Wool is cut so that piece number j measures {n} mm over the product of j and the number after j. Pieces {a} "
        "through {b} are knotted into one thread. How many millimetres does it measure, knots not counted?",
        "A block of ice melts ever more slowly. In hour number h it gets thinner by {n} mm, divided by h and then "
        "again by the whole number following h. How many millimetres of thickness does it lose between the beginning "
        "of hour {a} and the end of hour {b}?",
        "On shelf number s of a cellar there are {n} / (s * s + s) kg of nuts. Mice empty the shelves from number {a} "
        "up to and including number {b}. What weight of nuts, in kg, do they eat?",
        "In a chart, bar number x is a rectangle {n}/x cm high and 1/(x + 1) cm wide. No two bars overlap. Those from "
        "number {a} to number {b} inclusive are shaded. How many square centimetres are shaded?",
        "Knock number k on an enchanted cask makes {n} / (k(k + 1)) ml of mead flow out. A dwarf misses the first few "
        "knocks, but he catches all the mead of knock {a}, of knock {b}, and of every knock in between. How many ml "
        "does he catch?",
        "In season k of her career, a sprinter improves her best time by {n} / (k(k + 1)) milliseconds. By how many "
        "milliseconds altogether does her best time improve in the seasons {a}, {a} + 1 and so on, season {b} being "
        "the last that counts?",
        "For each whole number j that is at least {a} and at most {b}, a miller divides {n} pounds of flour evenly "
        "into j * (j + 1) bags and keeps one of these bags as his fee. How many pounds of flour does he keep in total?",
    ),
)
def telescoping_sum(n: int, a: int, b: int) -> Worked:
    """Write each part as a difference of neighbours."""
    x, y = n // a, n // (b + 1)
    return Worked(
        x - y,
        f"1/(k(k + 1)) is 1/k - 1/(k + 1). In the sum all inner parts cancel, so what is left is {n}/{a} - {n}/({b} + "
        f"1) = {n}/{a} - {n}/{b + 1}. {x} - {y} = {x - y}.",
    )


@family(
    DOMAIN,
    space=product(range(3, 9), range(10, 22)),
    wordings=(
        "Balls are piled up in square layers. The top layer has {a} by {a} balls, every layer below has one more in "
        "each direction, and the bottom has {n} by {n}. How many balls are in the pile?",
        "Calculate the sum of the squares of all integers from {a} to {n}.",
        "On day k of a campaign k offices send out k letters each. How many letters go out from day {a} to day {n}, "
        "both included?",
        "A program sets a counter to 0. For k from {a} to {n} it runs a loop of k rounds, and in each round another "
        "loop of k rounds that adds 1 to the counter every time. What does the counter show in the end?",
        "A smith cuts steel plates in the shape of squares. Their sides measure {a} cm, the next whole number of "
        "centimetres, and so on up to {n} cm. Find the area of all the plates in square centimetres.",
        "Quilt after quilt is sewn from equal patches, as wide as long. The smallest is {a} patches wide, the largest "
        "{n}, and each width between occurs once. What is the number of patches used?",
        "Two chess clubs meet once a week. In week k each club brings k players, and everybody plays one game against "
        "every player of the other club. How many games are played in the weeks {a} through {n}?",
        "Regiments march past a queen, every one in a full block with as many ranks as there are soldiers in a rank. "
        "The first regiment has {a} ranks, each regiment after it one rank more than the regiment ahead, and the last "
        "has {n} ranks. Find the number of marching soldiers.",
        "In week k of her job Tilda works k hours and is paid k crowns per hour. How many crowns is she paid for the "
        "weeks from week {a} to week {n} inclusive?",
        "On a light horizontal bar, a weight of k grams hangs k cm to the right of the pivot for every whole number k "
        "from {a} to {n}. The turning effect of a weight is its grams times its centimetres. How large is the turning "
        "effect of all these weights together?",
        "A toy firm makes pairs of dice, each consisting of a red die and a green die. For every whole number k from "
        "{a} to {n} there is one pair whose two dice have k faces each. For every pair somebody lists all possible "
        "throws, telling apart which face comes up on the red die and which on the green die. How many throws are "
        "listed altogether?",
        "Each integer from {a} to {n} is written on as many cards as its own value says, one integer per card. All "
        "these cards are put into a hat. What do the numbers in the hat add up to?",
    ),
)
def squares_from_to(a: int, n: int) -> Worked:
    """The formula for the squares from 1, twice."""
    return Worked(
        pyramid(n) - pyramid(a - 1),
        f"The squares from 1 to n add up to n(n + 1)(2n + 1) / 6. Up to {n}: {n} * {n + 1} * {2 * n + 1} / 6 = "
        f"{pyramid(n)}. The squares below {a} are not wanted: {a - 1} * {a} * {2 * a - 1} / 6 = {pyramid(a - 1)}. "
        f"{pyramid(n)} - {pyramid(a - 1)} = {pyramid(n) - pyramid(a - 1)}.",
    )


@family(
    DOMAIN,
    space=product(range(3, 9), range(9, 19)),
    wordings=(
        "A set of wooden cubes has one cube of each edge length in whole centimetres from {a} cm to {n} cm. How many "
        "cubic centimetres of wood are in the set?",
        "What do the third powers of the integers from {a} to {n} add up to?",
        "In year k a country founds k towns, each with k streets of k houses. How many houses does it build in the "
        "years {a} to {n}?",
        "For each k from {a} to {n}, a locksmith prints a list of all codes of three signs from an alphabet with k "
        "signs, repeated signs allowed. How many codes stand on all the lists?",
        "Evaluate x_{a} + ... + x_{n}, a sum over consecutive indices, where x_k = k * k * k.",
        "Round k of a contest has k players, and each of them throws k darts at each of k boards. Count the darts "
        "thrown from round {a} up to and including round {n}.",
        "Ship number k of a fleet carries k chests. In every chest there are k bags, and in every bag k pearls. "
        "Pirates capture the ships with the numbers {a} through {n}. What is their booty in pearls?",
        "The menu of a restaurant offers k soups, k main dishes and k desserts in week k. For each of the weeks {a} "
        "to {n}, a critic writes down every possible meal of one soup, one main dish and one dessert. How many meals "
        "does he write down in total?",
        "In test k of a laboratory, exactly k bulbs of k watts apiece glow for k hours. The tests {a} to {n} are "
        "carried out, the first and the last of these included. How many watt-hours do all the bulbs consume?",
        "On evening k of a festival there are k choirs with k singers each, and every choir sings k songs. A duke "
        "rewards each singer with one coin for each song that this singer has sung. How many coins does he hand out "
        "from evening {a} to evening {n} inclusive?",
        "By old custom an amber bead that is k mm thick costs k * k * k groats. A bracelet has a single bead of each "
        "thickness in whole millimetres, the thinnest {a} mm and the thickest {n} mm. How many groats do its beads "
        "cost?",
        "During an hour of steady wind at v metres per second, a windmill yields v^3 units of energy. In a storm, the "
        "wind blew for one hour at {a} metres per second, for the next hour at one metre per second more, and so on in "
        "hourly steps of this kind, until an hour at {n} metres per second ended it. How many units of energy did the "
        "windmill yield?",
    ),
)
def cubes_from_to(a: int, n: int) -> Worked:
    """The cubes from 1 add up to the square of the plain sum."""
    x, y = triangular(n), triangular(a - 1)
    return Worked(
        x * x - y * y,
        f"The cubes from 1 to n add up to the square of 1 + 2 + ... + n = n(n + 1) / 2. Up to {n}: {n} * {n + 1} / 2 = "
        f"{x}, and {x}^2 = {x * x}. The cubes below {a} are not wanted: {a - 1} * {a} / 2 = {y}, and {y}^2 = {y * y}. "
        f"{x * x} - {y * y} = {x * x - y * y}.",
    )


@family(
    DOMAIN,
    space=(
        (x, p, c * (p - 1), n)
        for x, p, c, n in product((3, 4, 6), (2, 3, 4), (2, 3, 5), (4, 5, 6))
        if p**n * (x + c) < 10_000
    ),
    wordings=(
        "A sequence has a(0) = {x} and a(k + 1) = {p} * a(k) + {q}. Find a({n}).",
        "There are {x} fish in a pond. Every year their number becomes {p} times as large, and after that {q} more are "
        "put in. How many fish are there after {n} years?",
        "A magic purse holds {x} coins. Each midnight the coins in it turn into {p} times as many, and each morning a "
        "fairy drops in {q} others. What does it hold after {n} such nights and mornings?",
        "A machine multiplies what it is fed by {p} and adds {q}. It is fed {x}, then with its own output again and "
        "again. What comes out of pass number {n}?",
        "On finishing a level a player's score is first multiplied by {p}, then raised by a bonus of {q}. Kim enters "
        "level 1 with a score of {x}. What is the score after level {n}?",
        "A copying mishap: in each run every sheet of a stack is replaced by {p} sheets, and {q} cover sheets are laid "
        "on top, which count as sheets from then on. The stack had {x} sheets. How thick is it, in sheets, after {n} "
        "runs?",
        "A dragon with {x} heads fights a knight. At every blow of the knight, the heads first become {p} times as "
        "many, and then {q} further heads sprout. How many heads does the dragon have after {n} blows?",
        "Jon owed a library {x} cents. Whenever he ignored a reminder, his debt was multiplied by {p}, and a fee of "
        "{q} cents was then charged on top of it. He ignored {n} reminders and paid nothing. Find his debt after "
        "that, in cents.",
        "The beard of a wizard is {x} inches long and never trimmed. At every full moon it first grows to {p} times "
        "its length, and a tonic then makes it grow {q} inches more. What length in inches does the beard have after "
        "{n} full moons?",
        "An orchard's opening harvest came to {x} crates. In each later year the harvest was {q} crates more than {p} "
        "times the harvest of the previous year. How many crates did the orchard yield {n} years after the opening "
        "harvest?",
        "Let h(t) = {p}t + {q}. Calculate h(h(...h({x})...)), where the letter h is written {n} times.",
        "A vine starts out with {x} shoots. Every spring each shoot forks so that {p} shoots take its place, and later "
        "that spring the gardener grafts {q} extra shoots onto the stem. How many shoots does the vine have once {n} "
        "springs have gone by?",
    ),
)
def multiply_and_add(x: int, p: int, q: int, n: int) -> Worked:
    """Shift by the constant that turns the rule into plain multiplication."""
    c = q // (p - 1)
    answer = p**n * (x + c) - c
    return Worked(
        answer,
        f"Add the constant c = {q} / ({p} - 1) = {c} to every term: then each step is only a multiplication by {p}. "
        f"The start becomes {x} + {c} = {x + c}, after {n} steps {p}^{n} * {x + c} = {p**n * (x + c)}. Take the "
        f"constant off again: {p**n * (x + c)} - {c} = {answer}.",
    )


@family(
    DOMAIN,
    space=product((2, 3, 5, 6, 8), range(2, 8), (3, 4, 5)),
    wordings=(
        "A girl with a basket of apples passes {n} gates. At each gate she gives away half of her apples and then {k} "
        "more. She comes home with {r}. How many apples did she have at first?",
        "Starting with some number, Omar does the following {n} times in a row: he halves the number and subtracts "
        "{k}. He ends at {r}. Which number did he start with?",
        "A train calls at {n} stations, and nobody gets on. At each station half of the passengers get off, followed "
        "by {k} others. {r} passengers ride to the terminus. How many were in the train before the first station?",
        "Every day of a trek the group uses half of the water it has and then loses {k} litres through a crack. After "
        "{n} days {r} litres are left. How many litres did the group set out with?",
        "In each of {n} weekly clearances a bookshop sells one half of the remaining atlases and donates {k} of the "
        "rest to schools. It then owns {r}. Find the original number of atlases.",
        "A king loses half of his soldiers in each of {n} battles, and after each battle {k} of the survivors desert. "
        "What was the size of his army, if {r} soldiers return with him?",
        "Snow lies on a hillside. On each of {n} mild days half of its depth melts by noon, and in the afternoon the "
        "wind carries off another {k} cm. No new snow falls. In the end it is {r} cm deep. What was its depth in "
        "centimetres before those days?",
        "A singing contest goes through {n} rounds. In every round the jury sends half of the remaining singers home, "
        "and right afterwards {k} of the others withdraw. After the last round {r} singers are left. How many entered "
        "the contest?",
        "A draper serves {n} customers, one at a time. For each he cuts half of the silk off his roll, and then "
        "another {k} yards as a present. When the last of them has been served, there are {r} yards on the roll. How "
        "many yards were on it when the draper began to serve?",
        "Nora plays cards. In each of her {n} turns she lays half of the cards in her hand on the table, and directly "
        "after that {k} of those still in her hand. She never picks any up, and when her turns are over she holds {r} "
        "cards. With how many cards in her hand did she begin?",
        "At each of {n} visits to the bank, Petra pays back half of what she owes at that time, and on top of that {k} "
        "ducats. No interest is charged, and she borrows nothing more. When she has made all these visits, she still "
        "owes {r} ducats. How many ducats had she borrowed?",
        "Let t(j) = t(j - 1) / 2 - {k} for j = 1, ..., {n}, and let t({n}) = {r}. Determine t(0).",
    ),
)
def undo_the_halving(r: int, k: int, n: int) -> Worked:
    """Work backwards: add, then double."""
    values = [r]
    for _ in range(n):
        values.append(2 * (values[-1] + k))
    return Worked(
        values[-1],
        f"Work backwards and undo the steps in the opposite order: add {k}, then double. "
        + " ".join(f"2 * ({x} + {k}) = {y}." for x, y in pairwise(values)),
    )


@family(
    DOMAIN,
    space=(
        (a, a + d, a + 2 * d + e, n)
        for d, e, n in product((3, 5, 6, 8), (1, 2, 3, 4, 5), (8, 10, 13, 15))
        for a in ((d * e + n) % 8 + 3,)
    ),
    wordings=(
        "A sequence begins {a}, {b}, {c}, and the difference between neighbours grows by the same amount each time. "
        "What is term number {n}?",
        "Figure 1 of a pattern has {a} dots, figure 2 has {b} and figure 3 has {c}. The number of dots added from one "
        "figure to the next rises by a fixed amount. How many dots are in figure {n}?",
        "A cart with constant acceleration rolls down a ramp. Its distance from the top is {a} cm at second 1, {b} cm "
        "at second 2 and {c} cm at second 3. How far from the top is it at second {n}, in centimetres?",
        "Let f be a quadratic polynomial with f(1) = {a}, f(2) = {b} and f(3) = {c}. Evaluate f({n}).",
        "A tower with one floor costs {a} million, with two floors {b} million, with three {c} million. From the third "
        "floor on, every floor is dearer than the floor below it by one and the same sum. What is the cost of {n} "
        "floors, in millions?",
        "The number of bees in a hive was {a} on Monday, {b} a day later, {c} another day later. The daily gain itself "
        "goes up by an equal number every day. With Monday as day 1, find the number of bees on day {n}.",
        "Miners sink a shaft. It is {a} m deep after one week, {b} m after two weeks and {c} m after three. From the "
        "third week on, the length dug in a week exceeds that of the week before by one fixed amount. What is the "
        "depth of the shaft after {n} weeks, in metres?",
        "Lamps stand along a straight pier. From the shore it is {a} yards to the first lamp, {b} to the second and "
        "{c} to the third. Going outwards, every gap between neighbouring lamps exceeds the previous gap between "
        "lamps by one constant length. How many yards is lamp number {n} from the shore?",
        "A crazy clock strikes {a} times in hour 1, {b} times in hour 2 and {c} times in hour 3. Each hour it strikes "
        "more often than in the hour before, and this surplus always increases by one constant number. How often does "
        "it strike in hour {n}?",
        "Picture frames come in sizes 1, 2, 3 and upwards. Size 1 costs {a} florins, size 2 costs {b} florins and size "
        "3 costs {c} florins. The surcharge for choosing the next larger size instead is a constant sum higher at each "
        "size than at the size below. How many florins does size {n} cost?",
        "The total fine for a film brought back late is {a} pence after one day, {b} pence after two days and {c} "
        "pence after three days. From the third day on, every day adds more to the fine than the day just before it "
        "did, and always by the same sum more. What is the total fine, in pence, after {n} days?",
        "For numbers u_1, u_2, u_3, ... the value of u_(k + 2) - 2 * u_(k + 1) + u_k does not depend on k. It is known "
        "that u_1 = {a}, u_2 = {b} and u_3 = {c}. Determine u_{n}.",
    ),
)
def second_differences(a: int, b: int, c: int, n: int) -> Worked:
    """First term, plus first differences, plus pairs of second differences."""
    d, e, pairs = b - a, c - 2 * b + a, triangular(n - 2)
    answer = a + (n - 1) * d + pairs * e
    return Worked(
        answer,
        f"The first difference is {b} - {a} = {d}, the next is {c} - {b} = {c - b}, so the differences grow by {e}. "
        f"Term n is the first term + (n - 1) * first difference + (n - 1)(n - 2) / 2 * growth: {a} + {n - 1} * {d} + "
        f"{pairs} * {e} = {answer}.",
    )


@family(
    DOMAIN,
    space=product((3, 4, 5, 6, 7, 8, 9), range(6, 16)),
    wordings=(
        "A mosaic has one tile in the middle. The first ring around it has {k} tiles, and every further ring has {k} "
        "tiles more than the ring inside it. How many tiles does a mosaic with {n} rings have?",
        "A crystal starts as a single atom. On day d it takes up d times {k} atoms. Of how many atoms does it consist "
        "after {n} days?",
        "A firm has one president and {n} ranks below. There are {k} people in the rank next to the president, and "
        "each lower rank has {k} people more than the rank above. How large is the firm?",
        "How much is 1 + {k} + 2 * {k} + 3 * {k} + ... + {n} * {k}?",
        "For a light show one drone hovers at the centre, and drones form circles with the numbers 1 to {n}. Circle "
        "number j is made of j groups of {k}. Find the number of drones in the air.",
        "A rope maker lays wires in layers around one core wire. Layer by layer he needs {k} wires more than for the "
        "last, beginning with {k}. What is the number of wires, core included, in a rope of {n} layers?",
        "Before the bells begin, a monk lights one candle. At bell number j he lights j more candles in each of {k} "
        "chapels. No candle goes out. How many candles are burning after bell number {n}?",
        "A paper snowflake has one bead at its heart and {k} equal arms. On every arm there are {n} rows of beads. "
        "The innermost row of an arm is a single bead, and each row has one bead more than the row before it. Count "
        "the beads of the snowflake.",
        "In a study there are {k} bookcases with {n} shelves each. The top shelf of a bookcase holds just one book, "
        "and any shelf below it holds one book more than the shelf above. A last book lies open on the desk. How many "
        "books does the study contain?",
        "At midnight only Anna knows a secret. In the hour after midnight {k} others learn it, and in every further "
        "hour the number of those who newly learn it is greater by {k} than in the previous hour. Nobody forgets it. "
        "How many people, including Anna, know the secret {n} hours after midnight?",
        "The title page of an album shows a single stamp. After it come {n} numbered pages, and on page j there are "
        "{k} lines of j stamps each. How many stamps does the album show?",
        "A tally begins at 1. Its first rise is {k}, and any later rise exceeds the rise before it by {k}. At what "
        "number does the tally stand after {n} rises?",
    ),
)
def rings_around_a_centre(k: int, n: int) -> Worked:
    """Centred figurate numbers: one plus a multiple of a triangular number."""
    answer = 1 + k * triangular(n)
    return Worked(
        answer,
        f"The parts are {k} times 1, 2, 3, ..., {n}, and 1 + 2 + ... + n = n(n + 1) / 2. {n} * {n + 1} / 2 = "
        f"{triangular(n)}. With the single one in the middle: 1 + {k} * {triangular(n)} = {answer}.",
    )


@family(
    DOMAIN,
    space=(
        (triangular(n) + x,)
        for n, i in product(range(13, 43), (0, 1))
        for x in ((pow(7, n, 101) + 11 * i) % (n - 1) + 1,)
    ),
    wordings=(
        "Nils added up the page numbers of a booklet, 1, 2, 3 and so on to the last page, and got {s}. But he had "
        "added one page number twice. Which one?",
        "Coins are laid in rows: one coin in row 1, two in row 2, three in row 3 and so on. From {s} coins as many "
        "full rows as possible are laid. How many coins remain?",
        "The sequence 1, 2, 2, 3, 3, 3, 4, 4, 4, 4, ... contains each k exactly k times. It is broken off after {s} "
        "entries. How often does the largest of these entries occur among them?",
        "A clown counts 1, then 1, 2, then 1, 2, 3, then 1, 2, 3, 4, always one further and then from the start again. "
        "Which number does he say when he says his number {s} in all?",
        "Ida puts k cents into a jar on day k of the year, from day 1 on. Tonight there are {s} cents, because on one "
        "of the days she did it a second time by mistake. How many cents did she put in by mistake?",
        "What is the difference between {s} and the largest triangular number that is smaller than it?",
        "A drummer beats once and pauses, beats twice and pauses, beats three times and pauses, each time with one "
        "beat more before the pause. He has just made beat number {s}, counted from the very beginning. How many "
        "beats has he made since his latest pause?",
        "A cable car carries a single tourist on trip one, two on trip two, three on trip three, always one more, as "
        "long as enough tourists are waiting. Only {s} tourists come, all before trip one. The final trip is not "
        "full. How many tourists ride on it?",
        "A pointed shawl starts with a row of one stitch, and each new row is one stitch longer than the row before. "
        "The wool is used up after {s} stitches in all, and the row on the needles is not complete. How many stitches "
        "does that incomplete row have?",
        "Guests come to an empty hall, and each newcomer shakes hands once with everybody already there before anyone "
        "else comes in. By now there have been {s} handshakes, and the latest newcomer still has some hands to shake. "
        "How many hands has this newcomer shaken?",
        "The pairs (x, y) of integers with 1 <= y <= x are listed by increasing x, and for equal x by increasing y. "
        "What is y in the pair at place {s} of the list?",
        "Playing against a sharper, Leo loses one florin in the first game, two florins in the second, three in the "
        "third, and so forth. He sat down with {s} florins, never wins, and stops as soon as he cannot cover the loss "
        "of the next game. With how many florins does he go home?",
    ),
)
def beyond_triangular(s: int) -> Worked:
    """Take off the largest triangular number."""
    n = (isqrt(8 * s - 7) - 1) // 2
    return Worked(
        s - triangular(n),
        f"1 + 2 + ... + n = n(n + 1) / 2, and n is near the root of twice the number: the root of 2 * {s} = {2 * s} is "
        f"about {isqrt(2 * s)}. {n} * {n + 1} / 2 = {triangular(n)} is the last such sum below {s}, since the next is "
        f"{triangular(n + 1)}. {s} - {triangular(n)} = {s - triangular(n)}.",
    )


@family(
    DOMAIN,
    space=product((2, 3, 4, 5), (3, 6, 7, 10), (9, 12, 15, 16, 20)),
    wordings=(
        "For every n the first n terms of a sequence add up to {a}n^2 + {b}n. What is term number {m}?",
        "A road crew has built {a}d^2 + {b}d metres in total by the end of day d, whatever d is. How many metres does "
        "it build on day {m} alone?",
        "The top r rows of a wall, taken together, contain {a}r^2 + {b}r bricks. This holds for each r. How many "
        "bricks are in row {m}?",
        "A sledge has slid {a}t^2 + {b}t feet when t seconds have passed. Find the number of feet it slides during "
        "second {m}, that is, within the last of its first {m} seconds.",
        "No matter where you stop reading a certain novel: if you stop after chapter c, you have read {a}c^2 + {b}c "
        "pages. How long is chapter {m}, in pages?",
        "Since it opened, a shop's sales of lamps up to the end of week w have come to {a}w^2 + {b}w. Give the sales "
        "of week {m} only.",
        "For any k, the opening k scenes of a play last {a}k^2 + {b}k seconds altogether. How many seconds does scene "
        "number {m} last?",
        "A printer asks {a}x^2 + {b}x cents for an order of x posters. Ron has ordered {m} posters. By how many cents "
        "would his bill have been lower if he had ordered one poster less?",
        "Counted from the clasp, the first j pearls of a necklace weigh {a}j^2 + {b}j milligrams, whichever j one "
        "takes. What does pearl number {m} weigh, in milligrams?",
        "Round hedges grow one inside the other and are numbered from the innermost outwards. For every h, the whole "
        "area inside hedge h is {a}h^2 + {b}h square metres. How many square metres lie between hedge {m} and its "
        "inner neighbour?",
        "In a garden folly the upper surface of stair number e lies {a}e^2 + {b}e mm above the ground, for each whole "
        "e from 1 up. How many millimetres higher than the stair right below it is stair number {m}?",
        "Put S(z) = {a}z^2 + {b}z. By how much is S({m}) greater than S({m} - 1)?",
    ),
)
def term_from_totals(a: int, b: int, m: int) -> Worked:
    """A term is the difference of two totals."""
    now, before = a * m * m + b * m, a * (m - 1) ** 2 + b * (m - 1)
    return Worked(
        now - before,
        f"One term is the total up to it minus the total up to the one before. The total up to {m} is {a} * {m * m} + "
        f"{b} * {m} = {now}. The total up to {m - 1} is {a} * {(m - 1) ** 2} + {b} * {m - 1} = {before}. {now} - "
        f"{before} = {now - before}.",
    )


@family(
    DOMAIN,
    space=product(range(6, 22), (2, 3, 4, 5)),
    wordings=(
        "Add (-1)^({n} - j) * ({k}j)^2 for all whole j from 1 to {n}. What is the sum?",
        "{n} square mats lie on each other with a common centre. The smallest is {k} cm wide, each further one {k} cm "
        "wider than the one before. The largest is black, the next white, and so on in turn. How many square "
        "centimetres of black can be seen?",
        "In month j a shop's result was {k}j * {k}j euros. It was a gain in month {n}, a loss in the month before, a "
        "gain in the one before that, and so on back to month 1. How many euros did it make in these {n} months "
        "together?",
        "A lift moves up and down in turn, and on trip j it covers {k}j * {k}j centimetres. After trip {n}, which led "
        "upwards, how many centimetres is it above its first position?",
        "{n} square walls stand one inside the other around a common middle. Their sides are {k} m, 2 * {k} m, 3 * "
        "{k} m and so on. The strip inside the outermost wall is paved, the next one is lawn, and so they change "
        "inwards; the innermost square goes on with the pattern. How many square metres are paved?",
        "A list holds the squares of {k}, 2 * {k}, 3 * {k} and so on up to {n} * {k}. Beginning with the largest, Lea "
        "adds the first, subtracts the second, adds the third and so on to the end of the list. What does she get?",
        "Ada and Ben share {n} square sheets of gold foil. Sorted by size, the narrowest is {k} inches wide, and each "
        "further sheet is {k} inches wider than the sheet before. Ada picks the widest, Ben the widest that remains, "
        "then Ada again, until no sheet remains. By how many square inches does Ada's foil exceed Ben's?",
        "Town number j of a republic has {k}j streets with {k}j voters each, and there are {n} towns, numbered "
        "upwards from one. Everyone in town {n} votes Yes, everyone in the town with the next lower number votes No, "
        "and so on alternately down to the lowest. Yes wins. How large is its majority over No?",
        "An archery target shows {n} circles with one midpoint. The radius of the smallest is {k} cm, and the radius "
        "of any other circle is {k} cm longer than that of the circle next inside it. Going inwards from the largest "
        "circle, the zones are coloured red, blue, red, blue and so on, down to the disc in the smallest circle. The "
        "red area is pi times how many square centimetres?",
        "Crates numbered 1 to {n} wait beside a balance, and crate j weighs {k}j * {k}j grams. The heaviest is set on "
        "the left pan, the second heaviest on the right pan, the third heaviest on the left pan, and so forth until "
        "all crates are on the balance. By how many grams does the left pan outweigh the right one?",
        "Along one straight line {n} forces act on a hook, and force number j has {k}j * {k}j newtons. Force {n} pulls "
        "forwards, the force with the next smaller number pulls backwards, and the direction goes on changing like "
        "this down to force number 1. Together they pull the hook forwards. How many newtons has the resultant force?",
        "The first {n} positive multiples of {k} are dealt into two groups from the top: the greatest goes to group A, "
        "the second greatest to group B, the third greatest to group A, and so on down to {k} itself. Then every "
        "number is squared. What is the total of the squares in group A minus the total of those in group B?",
    ),
    test_only=True,
)
def alternating_squares(n: int, k: int) -> Worked:
    """Differences of neighbouring squares add up to a triangular number."""
    half = n * (n + 1) // 2
    return Worked(
        k * k * half,
        f"The difference of neighbouring squares j^2 - (j - 1)^2 is j + (j - 1), so n^2 - (n - 1)^2 + ... becomes n + "
        f"(n - 1) + ... + 1 = n * (n + 1) / 2. Here that is {n} * {n + 1} / 2 = {half}, times {k}^2 = {k * k}. {half} "
        f"* {k * k} = {k * k * half}.",
    )


FAMILIES = (
    sum_of_multiples,
    term_from_two_terms,
    geometric_total,
    endless_sum,
    telescoping_product,
    telescoping_sum,
    squares_from_to,
    cubes_from_to,
    multiply_and_add,
    undo_the_halving,
    second_differences,
    rings_around_a_centre,
    beyond_triangular,
    term_from_totals,
    alternating_squares,
)
