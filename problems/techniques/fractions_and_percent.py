"""Fractions and percent: parts of the rest, reversed changes, telescoping, ratios and shares."""

from fractions import Fraction
from itertools import product
from math import gcd

from problems.family import Worked, family

DOMAIN = "fractions_and_percent"
PARTS = ((1, 4), (2, 3), (2, 5), (3, 4), (3, 5), (3, 7))
"""Fractions that are taken of a rest."""
CHANGES = (
    (10, 20),
    (10, 50),
    (20, 10),
    (20, 25),
    (20, 40),
    (25, 60),
    (25, 40),
    (30, 10),
    (40, 25),
    (50, 20),
    (60, 50),
)
"""A percentage up, then another down."""
SALES = ((10, 99), (20, 12), (25, 15), (40, 21), (50, 9), (60, 8))
"""A percentage of gain and loss, and what the selling price must be a multiple of."""
RATIOS = ((5, 2), (4, 1), (7, 3), (5, 3))
FRACTIONS = ((4, 5), (1, 2), (5, 6), (2, 5), (1, 4))
BOUNDS = (
    (1, 4, 2, 3),
    (1, 5, 1, 2),
    (1, 3, 4, 5),
    (2, 7, 3, 4),
    (1, 6, 3, 5),
    (2, 5, 5, 6),
)
"""Two fractions, the smaller first."""


@family(
    DOMAIN,
    space=(
        (a, b, c, (a - 1) * (c - b) * k) for a, (b, c), k in product((3, 4, 5, 6, 8), PARTS, (4, 7, 9, 11)) if a != c
    ),
    wordings=(
        "Mara spends 1/{a} of her money on a coat and {b}/{c} of the rest on shoes. She has {r} euros left. How many "
        "euros did she have at first?",
        "On day one a hiker covers 1/{a} of a trail, and on day two {b}/{c} of what remains. Day three brings the "
        "last {r} km. How long is the trail in kilometres?",
        "Mice stole 1/{a} of the nuts in a shed. Squirrels then stole {b}/{c} of the remaining nuts, and {r} nuts "
        "were found untouched. What was the original number of nuts?",
        "At the first stop 1/{a} of the passengers get off, at the second stop {b}/{c} of those still on board, and "
        "{r} ride on. Nobody gets on. How many passengers set out?",
        "A will gives 1/{a} of an estate to a museum. Of what is then left a niece inherits {b}/{c} and a nephew the "
        "final {r} crowns. Find the value of the estate in crowns.",
        "A number is made smaller by 1/{a} of itself, and the result is made smaller by {b}/{c} of itself. This gives "
        "{r}. Which number was it?",
        "A gardener has a full barrel of water. She pours 1/{a} of it over the roses. Then she fills a trough, using "
        "{b}/{c} of the water still in the barrel. The barrel now contains {r} litres. How many litres did the full "
        "barrel contain?",
        "In a cooking contest 1/{a} of the candidates were sent home in round one. Round two sent home {b}/{c} of the "
        "candidates who were still in the contest. The final was cooked by the {r} others. Find how many candidates "
        "had entered the contest.",
        "A baker shapes 1/{a} of her dough into loaves. From the dough not yet used she takes {b}/{c} for pretzels, "
        "and the {r} grams that she has not touched by now go into the freezer. How many grams of dough did she make?",
        "When Tariq opens his inbox he answers 1/{a} of the messages in it. Later he deletes {b}/{c} of the unanswered "
        "ones. This leaves {r} messages that are neither answered nor deleted, and no new ones have come in. What was "
        "the number of messages when he opened the inbox?",
        "From a roll of wire Klara takes 1/{a} for a fence. Of the wire then left on the roll, {b}/{c} is needed for a "
        "cage. After that {r} metres are still on the roll. How many metres were on it to begin with?",
        "During 1/{a} of a flight Noa watches a comedy. Then she falls asleep and sleeps for {b}/{c} of the flying "
        "time that is still to come. When she wakes up, it is {r} minutes until landing. What is the duration of the "
        "flight in minutes?",
    ),
)
def whole_from_last_rest(a: int, b: int, c: int, r: int) -> Worked:
    """Work backwards through the rests."""
    before = r * c // (c - b)
    answer = before * a // (a - 1)
    return Worked(
        answer,
        f"Work backwards; each fraction is of the rest at that time. The last {r} is {c - b}/{c} of the rest before, "
        f"which was {r} * {c} / {c - b} = {before}. That is {a - 1}/{a} of the whole: {before} * {a} / {a - 1} = "
        f"{answer}.",
    )


@family(
    DOMAIN,
    space=((p, q, (k + p // 10) * (100 + p) * (100 - q) // 100) for (p, q), k in product(CHANGES, range(3, 40, 4))),
    wordings=(
        "A shop puts the price of a bike up by {p}%. Later it takes {q}% off the new price, and the bike costs {x} "
        "euros. How many euros did it cost in the beginning?",
        "Within a year a town's population grew by {p} percent, and in the following year it shrank by {q} percent to "
        "{x}. What was the population before these two years?",
        "Rain raises the water in a reservoir by {p}%, then the farmers use {q}% of it. {x} cubic metres are in it "
        "now. How many were in it before the rain?",
        "A choir took in so many new singers that it was {p}% larger. After a quarrel {q}% of all left, and {x} sing "
        "on. Find the number of singers before anyone joined.",
        "The first draft of a novel had too few words, so the author wrote {p}% more. The editor cut {q}% of that and "
        "printed {x} words. How many words had the first draft?",
        "With what number do you have to start if adding {p}% of it, and then removing {q}% of what you have, ends in "
        "{x}?",
        "A lump of dry clay soaks up water and becomes {p}% heavier. In the kiln it loses {q}% of its wet weight. "
        "Afterwards it weighs {x} grams. What was the weight in grams of the dry lump before soaking?",
        "An engine runs at a steady speed. The driver increases the speed by {p} percent, then reduces this higher "
        "speed by {q} percent. The dial now reads {x} turns per minute. At how many turns per minute did the engine "
        "run originally?",
        "A rebuilding gave a stadium {p}% more seats. Later, safety rules closed {q}% of the seats that it had by "
        "then, so that {x} seats are in use today. Calculate the number of seats before the rebuilding.",
        "An airship climbs until its altitude is {p}% greater than at the start of the climb. There it turns, gives up "
        "{q}% of the altitude reached and hovers at {x} m. At what altitude in metres did the climb start?",
        "An amplifier makes a signal {p}% stronger, and a long cable behind it swallows {q}% of what the amplifier "
        "sends. At the far end of the cable {x} microvolts arrive. How many microvolts did the signal have before the "
        "amplifier?",
        "When Ivo pulled at a rubber band, it got {p}% longer. When he slackened his grip, the band contracted by {q}% "
        "of its stretched length, which makes it {x} mm long now. What length in mm did the band have before Ivo "
        "pulled?",
    ),
)
def before_two_changes(p: int, q: int, x: int) -> Worked:
    """Divide by the factors instead of undoing the percentages."""
    middle = x * 100 // (100 - q)
    answer = middle * 100 // (100 + p)
    return Worked(
        answer,
        f"A change by percent multiplies, so undo it by dividing, last change first. {x} is {100 - q}% of the value "
        f"before: {x} * 100 / {100 - q} = {middle}. That is {100 + p}% of the first value: {middle} * 100 / {100 + p} "
        f"= {answer}.",
    )


@family(
    DOMAIN,
    space=(
        (p, q)
        for p, q in product((4, 8, 10, 12, 15, 16, 20, 24, 25, 30, 32, 40), range(6, 61))
        if q > p and 100 * (q - p) % p == 0 and 100 * (q - p) // p not in (p, q, 100)
    ),
    wordings=(
        "A party's share of the votes rose from {p}% to {q}%. By what percent of its old share has its share grown? "
        "Do not answer in percentage points.",
        "Last year {p} out of 100 letters arrived late, this year {q} out of 100. How many percent more late letters "
        "per hundred is that?",
        "The interest rate of a loan goes from {p}% up to {q}%. By how many percent does the yearly interest for the "
        "same loan increase?",
        "In old bronze {p}% was tin, in the new kind {q}% is. If an equal weight is cast of each, how many percent "
        "more tin goes into the new kind?",
        "A battery that lost {p}% of its charge per day now loses {q}% of the full charge per day. Give the relative "
        "increase of this daily loss in percent.",
        "A quota of {p}% of 1000 seats for guests is changed to {q}% of these seats. The number of guest seats "
        "becomes larger by how many percent?",
        "The recipe of a drink is changed: fruit made up {p}% of a bottle and now makes up {q}%, while the bottle "
        "holds as much as ever. Compared with the former amount, how many percent more fruit is in a bottle?",
        "A century ago forest covered {p}% of an island. Today it covers {q}% of the island, whose size is unchanged. "
        "The forest has expanded by what percentage of the area that it covered a century ago?",
        "A school has equally many pupils in every season. In spring {p} of every hundred pupils came by bicycle, in "
        "autumn {q} of every hundred did. By what percentage was the number of cyclists in autumn higher than in "
        "spring?",
        "A conveyor belt rising at a slope of {p} percent is replaced by a steeper one with a slope of {q} percent, "
        "which spans the same horizontal distance. How many percent more height than the former belt does the steeper "
        "one gain?",
        "A solar cell of the old type turns {p}% of the sunlight into current; a cell of the new type, equally large, "
        "turns {q}% of the sunlight into current. How many percent more current does the new type yield under the same "
        "sun?",
        "On a radio station {p}% of the airtime used to be music. Its new boss sets the music to {q}% of the airtime, "
        "and there are as many hours of airtime as before. By what percentage of its earlier duration does the music "
        "get longer?",
    ),
)
def growth_of_a_share(p: int, q: int) -> Worked:
    """Percentage points are not percent."""
    answer = 100 * (q - p) // p
    return Worked(
        answer,
        "Relative growth is the difference divided by the old value, even if the values are percentages themselves. "
        f"The difference is {q} - {p} = {q - p} points, and {q - p} / {p} * 100 = {answer} percent.",
    )


@family(
    DOMAIN,
    space=(
        (a * k, a, a + 1, n)
        for a, k, n in product((2, 3, 4, 5, 6), (3, 7, 8, 11), (9, 12, 14, 16, 20))
        if k not in (n, a)
    ),
    wordings=(
        "A pond has {v} lilies. One day their number grows by 1/{a} of itself, the next day by 1/{b} of itself, and "
        "so on with a denominator one larger every day, last by 1/{n}. How many lilies are there then?",
        "Multiply {v} by 1 + 1/{a}, then by 1 + 1/{b}, and go on with all denominators in order up to 1 + 1/{n}. What "
        "is the product?",
        "A firm of {v} people hires 1/{a} of its size in spring, then 1/{b} of its new size, and continues through "
        "all unit fractions in order down to 1/{n}. How many people work there at the end?",
        "The first throw of a game raises your {v} points by a 1/{a} part, the second throw raises what you have by a "
        "1/{b} part. Each later denominator is the next whole number, and the last is {n}. Find the final points.",
        "Beginning with a wall of {v} bricks, a mason makes it higher by one {a}th of its bricks, afterwards by one "
        "{b}th of all bricks, and so forth in order until one {n}th. Of how many bricks is the wall in the end?",
        "Interest on {v} crowns is paid as fractions of the balance: 1/{a}, then 1/{b}, then the following unit "
        "fractions one after the other, with 1/{n} as the last. How many crowns does the account hold finally?",
        "A scarf has {v} rows. Each evening Gerda knits on, and the new rows are a fraction of the rows that the "
        "scarf has so far: 1/{a} on the first evening, 1/{b} on the second. The denominator rises by one from evening "
        "to evening, until 1/{n} on the final evening. How many rows has the finished scarf?",
        "A wizard casts spells on his beard, which is {v} cm long. The opening spell lengthens it by 1/{a} of its "
        "length, the following spell by 1/{b} of its length at that time. Every further spell uses the next whole "
        "denominator in this way; the closing spell uses 1/{n}. What is the length in cm after the closing spell?",
        "A caravan of {v} camels crosses a desert. At the first oasis it is joined by 1/{a} as many camels as it has, "
        "at the second oasis by 1/{b} as many as it has by then. The denominator goes on rising by one per oasis, up "
        "to 1/{n} at the last oasis, and no camel ever leaves. How many camels come out of the desert?",
        "The value of x is {v}. Replace x by x + x/{a}, then the new x by x + x/{b}, and repeat this with the divisor "
        "increased by one each time. Stop as soon as x + x/{n} has been carried out. Which value has x now?",
        "A stream carries {v} litres a second as it leaves the mountains. The uppermost tributary adds 1/{a} of the "
        "water that the stream carries there, the next tributary adds 1/{b} of what the stream carries by then, and "
        "the denominators go up by one from tributary to tributary. The lowest tributary adds 1/{n}. How many litres a "
        "second reach the sea?",
        "The earliest edition of a dictionary had {v} pages. The edition after it was longer than its predecessor by "
        "1/{a} of the predecessor's pages, the one after that by 1/{b} of its own predecessor's pages. With each new "
        "edition the denominator was larger by one, and it was {n} for the latest edition. How many pages has the "
        "latest edition?",
    ),
)
def growing_by_unit_fractions(v: int, a: int, b: int, n: int) -> Worked:
    """Neighbouring factors cancel."""
    answer = v * (n + 1) // a
    return Worked(
        answer,
        f"1 + 1/k is (k + 1)/k, so in the product {b}/{a} * {b + 1}/{b} * ... * {n + 1}/{n} everything cancels except "
        f"the last numerator and the first denominator: {n + 1}/{a}. {v} * {n + 1} / {a} = {answer}.",
    )


@family(
    DOMAIN,
    space=((v, a, n) for a, n, k in product((2, 3, 4, 5, 6), range(8, 21), (3, 7, 10)) for v in (a * (n + 1) * k,)),
    wordings=(
        "On day number k a tank loses {v}/(k(k + 1)) litres. How many litres does it lose on the days {a} to {n} "
        "together?",
        "Add up the numbers {v}/(k * (k + 1)) for all whole k from {a} to {n}. What do you get?",
        "A snail climbs {v} mm divided by k times k + 1 in its k-th hour. How many millimetres higher is it at the "
        "end of hour {n} than at the beginning of hour {a}?",
        "Guest number k at a feast may take the part 1/(k(k + 1)) of {v} grapes. Grapes can be cut. How many grapes "
        "go to the guests number {a} up to number {n} in all?",
        "The k-th row of a mosaic covers {v} square cm divided by the product of k and k + 1. Find the area in square "
        "cm of the rows from the {a}th to the {n}th, both of them included.",
        "A debt of {v} crowns is paid in rates. The rate of month k is the debt over k, minus the debt over k + 1. "
        "What sum has been paid in months {a} through {n}?",
        "A heavy hammer drives a pole into the ground. Stroke number k pushes the pole {v}/(k(k + 1)) cm deeper. By "
        "how many cm does the pole sink through the strokes from number {a} to number {n}, these two strokes included?",
        "The lamps along a street are numbered with k = one, two, three and so on. To get the power of lamp k in "
        "watts, divide {v} by k and divide the result by k + 1. Which power in watts do the lamps from {a} up to and "
        "including {n} need altogether?",
        "In a strange symphony the duration of bar k, in seconds, is {v} divided by k(k + 1). For how many seconds "
        "does an orchestra play from the beginning of bar {a} to the end of bar {n}?",
        "The terms of a sequence are t_k = {v}/(k^2 + k), where k runs through the positive integers. Evaluate the sum "
        "of its terms from t_{a} to t_{n}, ends included.",
        "A raffle pays out {v}/(k(k + 1)) euros on ticket number k, for each positive integer k. Mona has bought all "
        "tickets whose numbers are neither smaller than {a} nor greater than {n}. How many euros do her tickets win "
        "together?",
        "The stairs in a crooked tower have steps of unequal height: for step k, multiply k by k + 1 and divide {v} by "
        "the product to get its height in mm. Sofia stands just below step {a} and climbs until she stands on top of "
        "step {n}. By how many mm has she come up?",
    ),
)
def telescoping_parts(v: int, a: int, n: int) -> Worked:
    """A part over k(k + 1) is a difference."""
    x, y = v // a, v // (n + 1)
    return Worked(
        x - y,
        "1/(k(k + 1)) = 1/k - 1/(k + 1), so in the sum all inner terms cancel and only the first and the last stay: "
        f"{v}/{a} - {v}/{n + 1} = {x} - {y} = {x - y}.",
    )


@family(
    DOMAIN,
    space=(
        (a, b, t * a // (a + b) - t * c // (c + d), c, d)
        for (a, b), (c, d), t in product(RATIOS, ((2, 3), (4, 5), (3, 4), (1, 2)), range(60, 700, 10))
        if t % (a + b) == 0 == t % (c + d)
    ),
    wordings=(
        "Two bins hold apples in the ratio {a} : {b}. When {k} apples are moved from the first to the second, the "
        "ratio is {c} : {d}. How many apples did the first bin hold at first?",
        "Ann had {a} stickers to every {b} of Bo's. She gave him {k} of hers, and now she has {c} to every {d} of "
        "his. With how many stickers did Ann begin?",
        "Of two villages the upper one had {a}/{b} times as many people as the lower one. {k} people moved down, and "
        "then it had {c}/{d} times as many. What was the upper village's old population?",
        "In a lake the pike stood to the perch as {a} to {b}. A wizard turned {k} pike into perch, which made it {c} "
        "to {d}. Find the number of pike before the spell.",
        "Seats of a hall are blue and grey, {a} blue for each {b} grey. Painting {k} blue seats grey results in {c} "
        "blue for each {d} grey. How many blue seats were there originally?",
        "x : y = {a} : {b} and (x - {k}) : (y + {k}) = {c} : {d}. Determine x.",
        "The milk in the east tank and the milk in the west tank of a dairy are in the proportion {a} : {b}. After "
        "{k} litres have been pumped from the east tank into the west tank, the proportion east to west is {c} : {d}. "
        "What amount in litres was in the east tank before pumping?",
        "Before a debate, supporters and opponents of a plan were in the ratio {a} to {b}. During the debate {k} "
        "supporters became opponents, and nobody else changed their mind. The debate closed with supporters and "
        "opponents in the ratio {c} to {d}. How many supporters had the plan before the debate?",
        "At a hospital the nurses on day duty and the nurses on night duty were in the proportion {a} to {b}. Then {k} "
        "nurses changed from day duty to night duty, and the proportion of day duty to night duty became {c} to {d}. "
        "How many nurses were on day duty before the change?",
        "On an estate the areas of ploughland and meadow are as {a} is to {b}. The owner sows grass on {k} hectares of "
        "ploughland, which turns them into meadow. Now the two areas are as {c} is to {d}. How many hectares of "
        "ploughland did the estate have before the sowing?",
        "Every disc on a game board lies with its white side up or with its black side up, and the counts of white and "
        "black have the ratio {a} : {b}. In one grand move a player flips {k} of the white discs. Then white and black "
        "have the ratio {c} : {d}. How many discs lay with the white side up before the move?",
        "In an hourglass the weights of the sand above the neck and the sand below it are as {a} to {b}. As soon as "
        "another {k} grams have trickled down, these weights are as {c} to {d}. How many grams of sand were above the "
        "neck in the former situation?",
    ),
)
def ratio_after_transfer(a: int, b: int, k: int, c: int, d: int) -> Worked:
    """The total stays, so compare the shares of the total."""
    share, whole = a * (c + d) - c * (a + b), (a + b) * (c + d)
    total = k * whole // share
    return Worked(
        total * a // (a + b),
        f"The total does not change, so write both as shares of the total: {a}/{a + b} before and {c}/{c + d} after. "
        f"The difference {a}/{a + b} - {c}/{c + d} = {share}/{whole} is {k}, so the total is {k} * {whole} / {share} "
        f"= {total}. Before: {total} * {a} / {a + b} = {total * a // (a + b)}.",
    )


@family(
    DOMAIN,
    space=(
        (a, b, c, d, k * (a * c + b * c + b * d))
        for a, b, c, d, k in product((2, 3, 5), (3, 4, 7), (2, 5), (3, 7, 9), (3, 8, 11))
        if gcd(a, b) == gcd(c, d) == 1 and b != c
    ),
    wordings=(
        "In a paint, red to blue is {a} : {b} and blue to white is {c} : {d}. A can holds {n} ml of these three "
        "colours. How many millilitres are white?",
        "A zoo keeps {n} animals. For every {a} birds there are {b} fish, and for every {c} fish there are {d} "
        "reptiles. There is nothing else. How many reptiles live in the zoo?",
        "Gold, silver and bronze coins lie in a chest, {n} in all. The gold ones are to the silver ones as {a} to "
        "{b}, the silver ones to the bronze ones as {c} to {d}. Count the bronze coins.",
        "Lia, Max and Noor split {n} euros. Lia's part is {a}/{b} of Max's part, and Max's part is {c}/{d} of Noor's. "
        "What does Noor get, in euros?",
        "The sides x, y, z of a triangle satisfy x : y = {a} : {b} and y : z = {c} : {d}, whether or not it can be "
        "drawn, and their sum is {n}. Find z.",
        "{n} soldiers march as archers, riders and pikemen. Whenever {a} archers are counted, {b} riders are, and "
        "with {c} riders go {d} pikemen. How many pikemen march?",
        "A florist orders {n} stems: roses, lilies and ferns only. The numbers of lilies and roses are in the "
        "proportion {b} : {a}, those of ferns and lilies in the proportion {d} : {c}. How many of the stems are ferns?",
        "A radio programme of {n} minutes consists of news, talk and music without gaps. The time for news relates to "
        "the time for talk like {a} to {b}. The time for talk relates to the time for music like {c} to {d}. "
        "Determine how many minutes of music are broadcast.",
        "Olga finished a triathlon in {n} minutes and lost no time between its three parts. Her swimming time and her "
        "cycling time are in the ratio {a} : {b}, her cycling time and her running time in the ratio {c} : {d}. For "
        "how many minutes was she running?",
        "A power grid draws {n} megawatts from coal, wind and water, and from no other source. The coal power divided "
        "by the wind power is {a}/{b}, and the wind power divided by the water power is {c}/{d}. How many megawatts "
        "come from water?",
        "An island of {n} hectares is nothing but forest, moor and rock. If the moor were cut into {b} equal parcels, "
        "{a} such parcels would be as large as the forest. If it were cut into {c} equal parcels, {d} of those would "
        "be as large as the rock. How many hectares of rock are there?",
        "A freighter carries {n} tonnes of grain, ore and timber and no further cargo. By weight, grain compares to "
        "ore as {a} : {b}, while ore compares to timber as {c} : {d}. What weight in tonnes does the timber have?",
    ),
)
def chained_ratios(a: int, b: int, c: int, d: int, n: int) -> Worked:
    """Make the common term equal."""
    parts = a * c + b * c + b * d
    answer = n // parts * b * d
    return Worked(
        answer,
        f"Make the shared term equal in both ratios: {a} : {b} becomes {a * c} : {b * c}, and {c} : {d} becomes "
        f"{b * c} : {b * d}. So it is {a * c} : {b * c} : {b * d}, together {parts} parts. One part is {n} / {parts} "
        f"= {n // parts}, and the last has {b * d} * {n // parts} = {answer}.",
    )


@family(
    DOMAIN,
    space=(
        (a, b, c, d, k * (b * c + a * d))
        for (a, b), (c, d), k in product(((2, 3), (3, 4), (3, 7), (3, 5), (1, 3)), FRACTIONS, (4, 7, 9))
    ),
    wordings=(
        "{a}/{b} of the boys at a school are as many as {c}/{d} of the girls. There are {n} boys and girls. How many "
        "boys are there?",
        "Two candles measure {n} mm together. When the red one has burnt to {a}/{b} and the blue one to {c}/{d} of "
        "its length, they are level. How many millimetres was the red one in the beginning?",
        "Kim and Lee own {n} marbles between them. Kim lost {a}/{b} of his and Lee lost {c}/{d} of hers, and it was "
        "the same number. With how many marbles did Kim come?",
        "A cup filled to {a}/{b} and a mug filled to {c}/{d} contain equal amounts. Cup and mug, both full, hold {n} "
        "ml. What does the full cup hold in millilitres?",
        "Find x from x + y = {n} and ({a}/{b})x = ({c}/{d})y.",
        "From the old barn {a}/{b} of its bales were sold, from the new barn {c}/{d} of its bales, and neither sold "
        "more than the other. Before that the barns had {n} bales. How many of them were in the old barn?",
        "Sven is reading a booklet on owls and a booklet on bats, which have {n} pages in total. He has finished "
        "{a}/{b} of the owl booklet and {c}/{d} of the bat booklet. Both times this is the same count of pages. How "
        "many pages does the owl booklet have?",
        "Ida and Jon buy a model boat, and each pays exactly half of its price. For this Ida spends {a}/{b} of her "
        "savings, Jon {c}/{d} of his. Before the purchase their savings added up to {n} euros. What were Ida's "
        "savings in euros?",
        "Two slats of wood, a brown and a white one, are glued into a longer slat, an end of the one lying on an end "
        "of the other. The overlap is {a}/{b} of the length of the brown slat and {c}/{d} of the length of the white "
        "slat. Laid end to end without overlap they would reach {n} cm. What is the length of the brown slat in cm?",
        "On board the Hope {a}/{b} of the sailors have a fever, and on board the Star {c}/{d} of the sailors do. Each "
        "ship has exactly as many feverish sailors as the other. The crews of the two ships number {n} sailors in "
        "total. How large is the crew of the Hope?",
        "Some people belong to a rowing club and at the same time to a ski club. They make up {a}/{b} of the rowing "
        "club and {c}/{d} of the ski club. The two membership lists have {n} lines altogether, so whoever belongs to "
        "both clubs takes up two of these lines. How many members has the rowing club?",
        "The lengths of a python and a boa sum to {n} cm. Stripes cover {a}/{b} of the python's length and {c}/{d} of "
        "the boa's length, and the striped stretch of the python is exactly as long as that of the boa. What is the "
        "python's length in cm?",
    ),
)
def equal_parts_of_two(a: int, b: int, c: int, d: int, n: int) -> Worked:
    """Equal parts give the ratio crosswise."""
    x, y = b * c, a * d
    answer = n // (x + y) * x
    return Worked(
        answer,
        f"If {a}/{b} of the first equals {c}/{d} of the second, then first : second = {c}/{d} : {a}/{b} = {c} * {b} : "
        f"{a} * {d} = {x} : {y}. That makes {x} + {y} = {x + y} parts of {n} / {x + y} = {n // (x + y)}. The first is "
        f"{x} * {n // (x + y)} = {answer}.",
    )


@family(
    DOMAIN,
    space=((s, p) for (p, m), k in product(SALES, range(2, 20, 2)) for s in (m * k,)),
    wordings=(
        "A dealer sells two clocks for {s} euros each. On one he gains {p}% of what he paid for it, on the other he "
        "loses {p}% of what he paid. How many euros does he lose in all?",
        "Two flats are now worth {s} thousand crowns each. Since they were bought, the one has gone up by {p}% and "
        "the other has gone down by {p}%. By how many thousand crowns has their joint value fallen?",
        "Two trees are {s} cm tall. In the last year one of them has grown by {p}%, and storms have shortened the "
        "other by {p}%. How many centimetres taller were both together a year ago than they are now?",
        "Each of two websites had {s} visitors in May. For one site this is {p}% more than in April, for the other it "
        "is {p}% less than in April. How many visitors more than in May did they have in April, taken together?",
        "{s} is obtained from x by adding {p}% of x, and also from y by taking off {p}% of y. How much larger than 2 "
        "times {s} is x + y?",
        "A farmer got {s} sacks from each of two fields. That was a {p}% rise on last year for the first field and a "
        "{p}% drop on last year for the second. How many sacks fewer than last year is the total?",
        "The repair of either of two bridges cost {s} thousand dollars. At the first bridge this was {p}% more than "
        "planned for it, at the second bridge {p}% less than planned for it. By how many thousand dollars did the "
        "planned sum for the two bridges exceed the actual sum?",
        "This season Oda ran {s} km, and so did Per. Compared with her own distance of the previous season, Oda ran "
        "{p}% more. Compared with his own, Per ran {p}% less. Add their distances in each season. How many km shorter "
        "is the sum for this season?",
        "A new survey gives two lakes the same area, {s} hectares each. That is {p}% more than the old survey gave for "
        "the northern lake, and {p}% less than it gave for the southern lake. By how many hectares is the area of the "
        "two lakes, taken as one, smaller in the new survey than in the old?",
        "Two video files were converted, and now either of them has {s} megabytes. The conversion made one file larger "
        "by {p}% of its original size and the other file smaller by {p}% of its original size. How many megabytes of "
        "disk space did converting the pair set free?",
        "A theatre pays its two ushers the same since New Year, {s} crowns a month to each. The reform meant {p}% more "
        "than before for one usher, {p}% less than before for the other. How many crowns a month does the theatre "
        "spare on the two by the reform?",
        "Both cheeses in a cellar weigh {s} grams today. In the cellar the round cheese has taken up moisture, {p}% of "
        "the weight with which it was brought in, and the flat cheese has lost {p}% of the weight with which it was "
        "brought in. How many grams lighter is the pair of cheeses today than on arrival?",
    ),
)
def equal_results_of_gain_and_loss(s: int, p: int) -> Worked:
    """The percentages are of different bases."""
    x, y = s * 100 // (100 + p), s * 100 // (100 - p)
    return Worked(
        x + y - 2 * s,
        f"The percentages are taken of the old values, which differ. Old values: {s} * 100 / {100 + p} = {x} and {s} "
        f"* 100 / {100 - p} = {y}, together {x + y}. Now it is 2 * {s} = {2 * s}. {x + y} - {2 * s} = {x + y - 2 * s}.",
    )


@family(
    DOMAIN,
    space=((*bounds, n) for bounds, n in product(BOUNDS, range(30, 120, 4))),
    wordings=(
        "How many fractions with denominator {n} and a whole numerator lie strictly between {a}/{b} and {c}/{d}? They "
        "need not be in lowest terms.",
        "A rod is marked off into {n} equal parts. How many marks are farther than {a}/{b} of the rod from its left "
        "end, but nearer than {c}/{d} of the rod?",
        "A vote by {n} members passes if more than {a}/{b} and fewer than {c}/{d} of them say yes. With how many "
        "different numbers of yes votes does it pass?",
        "For how many integers k does {a}/{b} < k/{n} < {c}/{d} hold?",
        "A wheel has {n} teeth. The engineer wants to paint some of them red, above {a}/{b} of the teeth and below "
        "{c}/{d}. How many choices does he have for the number of red teeth?",
        "A quiz of {n} equal questions gives a bronze medal for a score of over {a}/{b} but under {c}/{d} of the "
        "points. How many different scores win bronze?",
        "A car park has {n} spaces. Its sign is yellow whenever more than {a}/{b} and less than {c}/{d} of the spaces "
        "are occupied. How many different numbers of occupied spaces turn the sign yellow?",
        "The {n} steps of a staircase are numbered upwards, starting with one. A cat sits on a step whose number is "
        "greater than {a}/{b} of {n} and smaller than {c}/{d} of {n}. On how many steps can the cat be sitting?",
        "A clerk deals a pack of {n} cards onto a pile, one card after another. After every card he compares the pile "
        "with the full pack. How often does he find that the pile has more than {a}/{b} and at the same time less than "
        "{c}/{d} of the cards of the full pack?",
        "Points with integer y-coordinates are drawn on the vertical line x = {n} of a coordinate plane. How many of "
        "these points are above the line y = ({a}/{b})x and also below the line y = ({c}/{d})x? Points on one of these "
        "two lines do not count.",
        "A dimmer raises a lamp from dark to full brightness in {n} clicks, each of which adds the same amount of "
        "light. Nina can read if the lamp gives more than {a}/{b} and less than {c}/{d} of its full brightness. At how "
        "many positions of the dimmer can she read?",
        "Of the {n} travellers on a night train some are asleep. A conductor remembers only that the sleepers exceed "
        "{a}/{b} of all travellers and fall short of {c}/{d} of them. How many possibilities does this leave for the "
        "number of sleepers?",
    ),
)
def fractions_between(a: int, b: int, c: int, d: int, n: int) -> Worked:
    """Scale both bounds and count whole numbers strictly between."""
    low, high = a * n // b + 1, (c * n - 1) // d
    return Worked(
        high - low + 1,
        f"Multiply both bounds by {n} and count the whole numbers strictly between. {a} * {n} / {b} = {a * n}/{b}, so "
        f"the first is {low}. {c} * {n} / {d} = {c * n}/{d}, so the last is {high}. {high} - {low} + 1 = "
        f"{high - low + 1}.",
    )


@family(
    DOMAIN,
    space=(
        (a, b, c, d)
        for a, b, (c, d) in product(
            range(5, 30, 4),
            range(22, 80, 9),
            ((1, 2), (2, 3), (3, 4), (3, 5), (4, 5), (5, 6)),
        )
        if (x := (c * b - a * d)) > 0 and x % (d - c) == 0 and x // (d - c) not in (a, b) and a < b
    ),
    wordings=(
        "The same whole number is added to the numerator and the denominator of {a}/{b}. The result is worth {c}/{d}. "
        "Which number was added?",
        "Mira is {a} years old and her father {b}. In how many years is her age {c}/{d} of his?",
        "A team has won {a} of {b} games. How many wins in a row does it need from now on to have won exactly {c}/{d} "
        "of all its games?",
        "Of the {b} balls in a box {a} are red. Only red balls are put in until {c}/{d} of the balls are red. What "
        "number of balls is put in?",
        "Two candles are {a} and {b} cm tall. Equal pieces are melted onto both of them, and the small one then has "
        "{c}/{d} of the height of the tall one. How many centimetres is such a piece?",
        "Solve (x + {a}) / (x + {b}) = {c}/{d} for x.",
        "Lea has saved {a} euros and Tom {b} euros. Grandmother gives a present of money, the same sum to each child. "
        "Lea then owns {c}/{d} of what Tom owns. How many euros does each child receive from Grandmother?",
        "A blue balloon floats {a} m above a lake and a yellow balloon {b} m above it. Both rise by the same "
        "distance. After that the blue one's height above the lake is exactly {c}/{d} of the yellow one's height. By "
        "what distance in metres did the balloons rise?",
        "Since their last service a scooter has covered {a} km and a van {b} km. The two set out on a tour along the "
        "same route. When they return, the scooter's distance since its service is exactly {c}/{d} of the van's. How "
        "many km long was the tour?",
        "A goldsmith melts an alloy that weighs {b} grams, of which {a} grams are gold. He stirs in pure gold until "
        "gold makes up exactly {c}/{d} of the weight of the alloy. How many grams of pure gold does he stir in?",
        "A rectangular garden is {a} m wide and {b} m long. It is enlarged to another rectangle by making width and "
        "length longer by the same distance, after which the width is {c}/{d} of the length. By what distance, in "
        "metres, was each of them made longer?",
        "At an airport {a} people are queuing at gate X and {b} people at gate Y. Then newcomers from a shuttle bus "
        "split up evenly between the two queues, and nobody leaves. Now the queue at X is {c}/{d} as large as the "
        "queue at Y. How many newcomers joined the queue at X?",
    ),
)
def same_added_to_both(a: int, b: int, c: int, d: int) -> Worked:
    """The difference stays, so one part of it is known."""
    part = Fraction(b - a, d - c)
    return Worked(
        int(part * d - b),
        f"Adding the same to both leaves the difference {b} - {a} = {b - a} as it is. In the ratio {c} : {d} the "
        f"difference counts {d - c}, so the larger becomes {d} * {b - a} / {d - c} = {part * d}. {part * d} - {b} = "
        f"{part * d - b} was added.",
    )


@family(
    DOMAIN,
    space=((a, b) for a, b in product(range(5, 96, 5), repeat=2) if a < b and a * b % 100 == 0),
    wordings=(
        "A coat is reduced by {a}%, and at the till another {b}% is taken off the reduced price. Which single "
        "reduction in percent would give the same price?",
        "A dark glass stops {a} percent of the light that falls on it, a second one behind it stops {b} percent of "
        "the light that reaches it. How many percent of the light do the two stop together?",
        "{a}% of the salmon do not get past the first weir, and {b}% of those that do fail at the second. What "
        "percentage of the salmon never gets past both?",
        "An archive lost {a}% of its maps in a flood. Moths then ruined {b}% of the maps that had been saved. Find "
        "the percentage of the maps lost to the one or the other.",
        "Of a team's plans the boss rejects {a}%, and of the plans she lets pass the board rejects {b}%. How many "
        "percent of the plans fail in the end?",
        "A quantity is lowered by {a}% and the result by {b}%. It is now lower than at the beginning by how many "
        "percent?",
        "A filter blocks {a}% of the messages sent to Greta. Of the messages that come through she deletes {b}% "
        "unread, and she reads all others. What percentage of the messages sent to Greta does she not read?",
        "By noon a block of ice has melted so far that {a}% of its mass is gone. Until evening {b}% of the mass still "
        "there at noon melts too. Compared with its mass before any melting, how many percent lighter is the block in "
        "the evening?",
        "Ulla pays {a}% of her wages as tax. From the money that she keeps after tax, {b}% goes to her landlord. Tax "
        "and rent use up which percentage of her wages?",
        "The length of a rectangle is shortened by {a}% and its width by {b}%. By how many percent does the area of "
        "the rectangle decrease?",
        "A programmer has two ideas for making a slow program faster. The first one saves {a}% of its running time, "
        "and the second one saves {b}% of the running time that is still needed with the first. What percentage of the "
        "original running time do the two ideas save together?",
        "With a probability of {a}% a burglar is caught by the dog. If the dog does not catch him, the alarm does so "
        "with a probability of {b}%; nothing else can catch him. With what probability, in percent, is he caught?",
    ),
)
def two_reductions_in_one(a: int, b: int) -> Worked:
    """Multiply what remains."""
    left = (100 - a) * (100 - b) // 100
    return Worked(
        100 - left,
        f"Multiply what remains; do not add the percentages. {100 - a}% of {100 - b}% is {100 - a} * {100 - b} / 100 "
        f"= {left}%. Taken away is 100 - {left} = {100 - left} percent.",
    )


@family(
    DOMAIN,
    space=((a, b) for b in range(5, 15) for a in range(1, b) if gcd(a, b) == 1),
    wordings=(
        "A number is reduced by {a}/{b} of itself. By which fraction of the new number must that be increased to give "
        "the old number again? Answer in lowest terms.",
        "A shop takes {a}/{b} off the price of a lamp. By which fraction of the sale price must it go up to cost as "
        "much as before? Give a fraction in lowest terms or an integer.",
        "{a}/{b} of the people of a town moved away. Newcomers shall bring it back to its old size. Which fraction of "
        "the people who stayed must their number be? Give it in lowest terms.",
        "The price of flour has fallen by {a}/{b}. For the same money one gets more flour than before. By which "
        "fraction of the former amount is it more? Give a fraction in lowest terms or an integer.",
        "New trains cut the travel time between two cities by {a}/{b}, while the track is as long as it was. By which "
        "fraction of the old average speed has the average speed grown? Give a fraction in lowest terms or an "
        "integer.",
        "In the wash a scarf shrank by {a}/{b} of its length. To be as long as it used to be it must be stretched. By "
        "which fraction of its present length? Give a fraction in lowest terms or an integer.",
        "A worn pump delivers {a}/{b} less water per minute than it did when it was new. So it needs longer to fill "
        "the same pool. By which fraction of the time needed when new is the time longer? Write an integer or a "
        "fraction in lowest terms.",
        "Thieves carried off {a}/{b} of a dragon's gold. The dragon wants to own exactly its former amount of gold "
        "and goes hunting for more. Which fraction of the gold still in its cave must the hunt bring in? State an "
        "integer or a fraction in lowest terms.",
        "A rectangle is made narrower by {a}/{b} of its width, yet its area must not change. By which fraction of its "
        "original length does its length have to grow? Give a fraction in lowest terms or an integer.",
        "In a workshop where everybody does the same amount of work, {a}/{b} of the staff are off sick. The healthy "
        "ones take over the work of the sick in even shares, so that the workshop achieves as much as usual. By which "
        "fraction of the usual amount does the work of a healthy person increase? Reply with an integer or a fraction "
        "in lowest terms.",
        "Measured in dollars, the peso has become cheaper by {a}/{b}. A machine from abroad costs as many dollars as "
        "ever, so more pesos have to be paid for it. By which fraction of the earlier number of pesos is it more? Give "
        "a fraction in lowest terms or an integer.",
        "On a bicycle tour Pia already has {a}/{b} of the route behind her. The distance that she has covered is which "
        "fraction of the distance that is still ahead of her? Answer with an integer or a fraction in lowest terms.",
    ),
    test_only=True,
)
def fraction_back(a: int, b: int) -> Worked:
    """The way back is a part of what is left."""
    back = Fraction(a, b - a)
    return Worked(
        back,
        f"What is left is 1 - {a}/{b} = {b - a}/{b}. The missing {a}/{b} must be compared with that and not with the "
        f"whole: {a}/{b} divided by {b - a}/{b} is {back}.",
    )


@family(
    DOMAIN,
    space=((n,) for n in range(12, 99) if n % 11),
    wordings=(
        "In the decimal 0.{n}{n}{n}... the digits {n} repeat without end. Write it as a fraction in lowest terms.",
        "An endless display shows a zero, a point, and then {n} again and again. Which fraction in lowest terms is "
        "this?",
        "A snail crawls {n} hundredths of a metre in the first minute, and in each later minute one hundredth of its "
        "way in the minute before. How many metres is the point away that it comes ever closer to? Give a fraction in "
        "lowest terms.",
        "If the decimal point of x is moved two places to the right, x becomes larger by {n}. What is x, as a "
        "fraction in lowest terms?",
        "Of a cake {n} hundredths are given away, then {n} hundredths of a hundredth of it, then {n} hundredths of a "
        "hundredth of a hundredth, and so on for ever. Which part of the cake is given away in all? Answer with a "
        "fraction in lowest terms.",
        "A scale from 0 to 1 is cut into a hundred equal parts, numbered from 0. A mark lies in part {n}. Cut this "
        "part into a hundred, numbered alike, and the mark lies in part {n} again; and so it does at every further "
        "cut. At which fraction, in lowest terms, is the mark?",
        "A bag of flour weighs exactly {n} hundredths of a kilogram plus one hundredth of the bag's own weight. What "
        "is the weight of the bag in kilograms? State a fraction in lowest terms.",
        "Ruth divides a whole number by another one on paper. Her quotient is smaller than one. Behind the decimal "
        "point come the figures {n}, then {n} once more, and this goes on for ever. Which fraction in lowest terms "
        "equals her quotient?",
        "A wheel of fortune has a hundred equal sectors. If it stops on one of {n} green sectors, Vera wins. If it "
        "stops on the only grey sector, she spins again under the same rules. Otherwise she loses. How probable is it "
        "that she wins in the end? Give a fraction in lowest terms.",
        "One hundredth of the area of a poster is a small picture of the entire poster, which therefore holds a still "
        "smaller picture of it, and so on without limit. Outside the small picture, {n} hundredths of the area of the "
        "poster are red. No other red is there, except inside the pictures. Which part of the area of the poster is "
        "red, with all pictures considered? Reply with a fraction in lowest terms.",
        "At which x-coordinate do the straight lines y = x and y = (x + {n})/100 cross? Give a fraction in lowest "
        "terms.",
        "Fresh water enters a fountain at {n} hundredths of a litre per second. A pump also leads one hundredth of all "
        "the water that runs through the fountain back into its inlet, and the rest flows off. How many litres per "
        "second run through the fountain, returned water included, once the flow is steady? State a fraction in lowest "
        "terms.",
    ),
    test_only=True,
)
def repeating_block(n: int) -> Worked:
    """A block of two digits that repeats is so many 99ths."""
    value = Fraction(n, 99)
    return Worked(
        value,
        f"Call the number x. Moving the point by one block of two digits gives 100x = {n} + x, since the rest "
        f"repeats. So 99x = {n}, and x is {n} over 99. In lowest terms this is {value}.",
    )


FAMILIES = (
    whole_from_last_rest,
    before_two_changes,
    growth_of_a_share,
    growing_by_unit_fractions,
    telescoping_parts,
    ratio_after_transfer,
    chained_ratios,
    equal_parts_of_two,
    equal_results_of_gain_and_loss,
    fractions_between,
    same_added_to_both,
    two_reductions_in_one,
    fraction_back,
    repeating_block,
)
