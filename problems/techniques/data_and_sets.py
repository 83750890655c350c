"""Data and sets: means and medians, overlapping groups, guarantees, tournaments and counts by logic."""

from itertools import product
from math import comb

from problems.family import Worked, family

DOMAIN = "data_and_sets"
REGIONS = ((7, 5, 9), (6, 11, 4), (8, 3, 10), (12, 9, 5), (4, 13, 8))
"""How many are in exactly one of three sets."""
STOCKS = (
    (2, 3, 9, 12),
    (4, 6, 7, 15),
    (1, 5, 8, 10),
    (3, 3, 11, 14),
    (5, 6, 6, 13),
    (2, 7, 9, 16),
    (4, 8, 10, 11),
)
"""How many there are of four kinds, few of some."""


@family(
    DOMAIN,
    space=(
        (n, m, e)
        for n, m, e in product((4, 5, 6, 7, 8, 9, 11), range(12, 60, 8), range(13, 66, 9))
        if e != m and 0 < (n + 1) * e - n * m < 90 and abs(e - m) > 1
    ),
    wordings=(
        "The mean of {n} numbers is {m}. When one more number is put in, the mean is {e}. What is this number?",
        "After {n} tests Rolf's average was {m} points, and with one further test it is {e} points. How many points "
        "did he get in that test?",
        "{n} parcels weigh {m} kg each on average. A last parcel arrives, and now the average weight is {e} kg. How "
        "many kilograms does the last one weigh?",
        "For {n} nights a hostel counted {m} guests a night on average. Add the night of the fair, and the average "
        "becomes {e}. Find the number of guests in the night of the fair.",
        "A skipper joins the {n} rowers of a boat. Before, the people in the boat were {m} years old on average, now "
        "it is {e}. How old is the skipper?",
        "A basketball player scored {m} points per game over {n} games. What must she score in the next game so that "
        "her average over all games is {e}?",
        "Petra took {n} phone calls this morning, which lasted {m} minutes on average. She takes a single call after "
        "lunch. Now the average length of all her calls today is {e} minutes. How long was the call after lunch, in "
        "minutes?",
        "Per hive, a beekeeper's {n} old hives yielded a mean of {m} jars of honey. If the harvest of his only new "
        "hive is included, the mean per hive comes to {e} jars. Find the harvest of the new hive in jars.",
        "The {n} bridges of a river have an average length of {m} m. Now a further bridge is opened, and the average "
        "length of the bridges becomes {e} m. How long in metres is the bridge that was opened?",
        "For {n} dresses Zora used a mean of {m} buttons apiece. Today she is sewing another dress. With how many "
        "buttons must she trim it if the mean for all her dresses, today's among them, is to be {e}?",
        "Divers sounded a lake at {n} spots and found a mean depth of {m} m. They sounded it at one more spot, and as "
        "a consequence the mean of all their soundings is {e} m. What depth in metres did they find at the additional "
        "spot?",
        "A writer's {n} earlier novels have {m} chapters on average. How many chapters are in her latest novel, if all "
        "her novels including this one have {e} chapters on average?",
    ),
)
def value_that_moved_the_mean(n: int, m: int, e: int) -> Worked:
    """Compare the totals."""
    answer = (n + 1) * e - n * m
    return Worked(
        answer,
        f"A mean times the number of values is the total. Before it was {n} * {m} = {n * m}, after it is {n + 1} * "
        f"{e} = {(n + 1) * e}. The new value is the difference: {(n + 1) * e} - {n * m} = {answer}.",
    )


@family(
    DOMAIN,
    space=(
        (a, x, b, y)
        for a, x, b, y in product(
            (6, 8, 9, 12, 15, 18),
            range(21, 60, 7),
            (10, 14, 16, 20, 24, 27),
            range(26, 80, 9),
        )
        if abs(x - y) > 8 and (a * x + b * y) % (a + b) == 0
    ),
    wordings=(
        "A class has {a} girls with an average of {x} points in a test and {b} boys with an average of {y} points. "
        "What is the average of the whole class?",
        "A farmer sells {a} geese at a mean price of {x} euros and {b} ducks at a mean price of {y} euros. What is "
        "the mean price in euros of all the birds?",
        "On {a} dry days a café had {x} customers a day, on {b} wet days it had {y} a day. How many customers a day "
        "is that over all these days?",
        "A truck is loaded with {a} crates that weigh {x} kg on average and {b} barrels that weigh {y} kg on average. "
        "Find the average weight of the pieces of this load in kilograms.",
        "Reading {a} short stories took Yara {x} minutes each on average, and {b} long ones took {y} minutes each. "
        "How many minutes did she spend per story, taking all stories together?",
        "Over {a} samples the sensor's mean is {x}; over the next {b} samples it is {y}. Compute the mean over both "
        "runs of samples.",
        "A taxi firm owns {a} electric cabs and {b} diesel cabs. Per cab, the electric ones drive {x} km daily on "
        "average and the diesel ones {y} km. What daily distance in km does a cab of the firm drive, averaged over "
        "the entire fleet?",
        "From a fishing village {a} small boats and {b} large boats went to sea. The small boats came home with a "
        "mean catch of {x} cod, the large boats with a mean catch of {y} cod. Determine the mean catch of cod per "
        "boat, counting all the boats.",
        "In a vineyard stand {a} old vines and {b} young vines. An old vine bears {x} bunches of grapes on average, a "
        "young vine {y}. How many bunches does a vine bear on average if no distinction of age is made?",
        "A mountain railway ran {a} trains uphill, with an average of {x} passengers on board, and {b} trains "
        "downhill, with an average of {y} passengers on board. Had the same passengers been spread evenly over all "
        "these trains, how many would have been on each train?",
        "In training Ali swam {a} lengths of crawl, for which he took {x} seconds on average, and {b} lengths of "
        "breaststroke, for which he took {y} seconds on average. How many seconds did a length take him on average in "
        "the training as a whole?",
        "All houses of a hamlet are built of timber or of stone. The {a} timber houses have a mean age of {x} years, "
        "the {b} stone houses a mean age of {y} years. What is the mean age in years of the hamlet's houses?",
    ),
)
def mean_of_two_groups(a: int, x: int, b: int, y: int) -> Worked:
    """Weight each mean with the size of its group."""
    total = a * x + b * y
    return Worked(
        total // (a + b),
        f"Do not average the two means; add the totals and divide by the number of all. {a} * {x} + {b} * {y} = "
        f"{a * x} + {b * y} = {total}, and {a} + {b} = {a + b}. {total} / {a + b} = {total // (a + b)}.",
    )


@family(
    DOMAIN,
    space=(
        (2 * k - 1, k, a, b, c)
        for k, a, b, c in product((3, 4, 5, 6), range(11, 40, 4), range(18, 60, 5), range(15, 50, 5))
        if a < c < b and 9 < k * (a + b) - (2 * k - 1) * c < 90 and (a + b + c) % 3
    ),
    wordings=(
        "The mean of {n} numbers is {c}. The first {k} of them have the mean {a}, the last {k} the mean {b}. What is "
        "the number in the middle of the list?",
        "In a row of {n} houses there are {c} people per house. In the {k} houses on the left end it is {a} per "
        "house, in the {k} houses on the right end {b}. How many people live in the house that belongs to both parts?",
        "A shop was open {n} days and sold {c} lamps a day on average: {a} a day over the opening {k} days and {b} a "
        "day over the closing {k} days. How many lamps did it sell on the middle day?",
        "{n} climbers on one rope weigh {c} kg on average. From the leader to the centre climber, {k} people, it is "
        "{a} kg; from the centre climber to the rear, again {k}, it is {b} kg. Find the centre climber's weight.",
        "A relay of {n} legs took {c} minutes per leg. Legs 1 to {k} took {a} minutes per leg. Counting from leg {k} "
        "to the end, also {k} legs, it was {b} per leg. How many minutes did leg {k} take?",
        "Out of {n} books by height, the {k} shortest have {a} pages on average and the {k} tallest {b} pages. All "
        "{n} have {c} pages on average. How many pages has the book of middle height?",
        "Nils read the thermometer once a day, {n} days running. His readings average {c} degrees. The earliest {k} "
        "readings average {a} degrees, the latest {k} average {b} degrees. Exactly one reading belongs to both "
        "groups. How many degrees did it show?",
        "Along a pier stand {n} stalls. Each made a profit or a loss, and the mean result of all stalls is a profit "
        "of {c} coins. For the {k} stalls nearest to land the mean is a profit of {a} coins, for the {k} farthest out "
        "{b} coins. What profit in coins did the central stall make?",
        "A necklace consists of {n} pearls on a thread, and a pearl weighs {c} mg on average. From the left clasp up "
        "to and including the central pearl there are {k} pearls, with an average of {a} mg; from the central pearl, "
        "again included, to the right clasp there are also {k}, with an average of {b} mg. What does the central pearl "
        "weigh in mg?",
        "An office tower of {n} floors has a mean of {c} windows per floor. Taking only the bottom {k} floors the mean "
        "is {a} windows per floor, and taking only the top {k} floors it is {b}. One floor is counted among the bottom "
        "floors as well as among the top floors. Find its number of windows.",
        "A goods train has {n} wagons with a mean load of {c} tonnes. The {k} wagons at the front carry {a} tonnes on "
        "average, the {k} wagons at the rear carry {b} tonnes on average, and one wagon belongs to the front wagons as "
        "well as to the rear wagons. What is its load in tonnes?",
        "The {n} episodes of a podcast have an average of {c} jokes. The oldest {k} episodes have {a} jokes on average "
        "and the newest {k} episodes {b} jokes, so that the episode halfway through is among the oldest as well as "
        "among the newest. How many jokes are in this episode?",
    ),
)
def middle_of_overlapping_means(n: int, k: int, a: int, b: int, c: int) -> Worked:
    """The middle one is counted twice."""
    answer = k * (a + b) - n * c
    return Worked(
        answer,
        f"Both parts contain the middle one, so their totals together exceed the whole total by just that value. {k} "
        f"* {a} + {k} * {b} = {k * (a + b)} and {n} * {c} = {n * c}. {k * (a + b)} - {n * c} = {answer}.",
    )


@family(
    DOMAIN,
    space=((n, m, d) for n, m, d in product((5, 7), range(10, 20), range(7, 14)) if m != d),
    wordings=(
        "{n} different positive whole numbers have the mean {m} and the median {d}. What is the largest value that "
        "can occur among them?",
        "{n} children have {m} marbles each on average. All have different numbers of marbles and each has at least "
        "one, and the median is {d}. At most how many marbles can the richest child have?",
        "A team of {n} played a quiz. Everybody's score was a whole number above 0, no two scores agreed, their "
        "average was {m} and their median {d}. How high can the best score have been?",
        "From {n} trees a gardener picks baskets of pears, from each tree another number of baskets and from none of "
        "them nothing. Mean {m}, median {d}: what is the greatest possible number of baskets from one tree?",
        "{n} ropes are cut in whole metres, no two equally long. Their median length is {d} m and their mean length "
        "is {m} m. Find the maximum length in metres of the longest rope.",
        "On {n} days a clinic had different numbers of patients, never zero. The middle number in order of size was "
        "{d}, the average {m}. How many patients could it have had on the busiest day, at the utmost?",
        "On Sunday a ferry made {n} trips. It carried at least one car on every trip, and never the same number of "
        "cars twice. Per trip the mean was {m} cars and the median was {d} cars. What is the maximum number of cars "
        "that a single trip can have carried?",
        "The {n} chapters of a cookbook all differ in their count of recipes, and no chapter is empty. Sorted by this "
        "count, the central chapter has {d} recipes. A chapter has {m} recipes on average. How large can the count "
        "for the fullest chapter possibly be?",
        "{n} choirs sing at a festival, each with at least one singer, and no two of the choirs are of the same size. "
        "With the choirs sorted by size, {d} singers belong to the choir in the centre; the mean size of a choir is "
        "{m}. What is the greatest size that a choir at the festival could have?",
        "A shop sells {n} sorts of candle. Each sort burns for its own positive whole number of hours, different from "
        "that of all other sorts. The median of these burning times is {d} hours, their average {m} hours. For how "
        "many hours, at the outside, might the most durable sort burn?",
        "No two of {n} villages own equally many wells, and no village is without a well. Exactly half of the villages "
        "other than Elm own fewer wells than Elm, which owns {d}. A village owns {m} wells on average. How many wells "
        "can there be at most in the village that owns the most?",
        "Each of {n} detectives solved a case last year or several, and all of them solved different numbers of cases. "
        "These numbers have the median {d}, and their arithmetic mean is {m}. Determine the highest number of cases "
        "that the most successful detective could have solved.",
    ),
)
def largest_for_mean_and_median(n: int, m: int, d: int) -> Worked:
    """Make all the others as small as allowed."""
    half = n // 2
    low, high = half * (half + 1) // 2, sum(range(d, d + half))
    return Worked(
        n * m - low - high,
        f"The total is fixed: {n} * {m} = {n * m}. Make the others as small as allowed: the {half} below the median "
        f"are 1 to {half}, with the sum {low}, and from the median up {half} consecutive numbers {d} to "
        f"{d + half - 1}, with the sum {high}. {n * m} - {low} - {high} = {n * m - low - high}.",
    )


@family(
    DOMAIN,
    space=(
        (n, n - x, n - y, n - z)
        for n, x, y, z in product((40, 50, 60, 75, 80, 90), (7, 9, 12), (5, 8, 14), (6, 10, 11))
        if x + y + z < n
    ),
    wordings=(
        "Of {n} pupils {a} can swim, {b} can skate and {c} can ride a bike. At least how many of them can do all "
        "three?",
        "{n} houses burnt for a film. {a} lost the roof, {b} lost the windows and {c} lost the stairs. What is the "
        "smallest possible number of houses that lost all of these?",
        "In a box of {n} buttons, {a} are round, {b} are black, and {c} have four holes. How many round black buttons "
        "with four holes are there for certain?",
        "A survey of {n} sailors found {a} with a beard, {b} with a tattoo and {c} with an earring. How few sailors "
        "can there be who have a beard, a tattoo and an earring?",
        "Three subsets of a set with {n} elements have {a}, {b} and {c} elements. Find the minimum size of what is "
        "common to the three.",
        "At a feast for {n} guests, {a} ate soup, {b} ate fish and {c} ate cake. The cook claims that some number of "
        "guests ate every course. Which number can he prove at most?",
        "A watchman notes for {n} offices: the lamp is off in {a}, the window is shut in {b}, and the door is locked "
        "in {c}. An office is in order if its lamp is off, its window shut and its door locked. What is the lowest "
        "number of offices in order that fits his notes?",
        "{n} horses walk in a parade. Bells hang on {a} horses, ribbons on {b} and plumes on {c}. Nobody remembers "
        "which horse got what. At the very least, how many horses must be wearing bells, ribbons and plumes together?",
        "An astronomer has a catalogue of {n} planets. It says that {a} of them have moons, {b} have rings and {c} "
        "have an atmosphere, but not which ones. She wants to promise that at least N planets combine moons, rings and "
        "an atmosphere. What is the greatest N for which her promise is safe?",
        "In a referendum {n} citizens answered three questions. Yes to the tunnel was said by {a}, yes to the tram by "
        "{b}, and yes to the park by {c}. How many citizens must have said yes three times, even if the votes were "
        "distributed so that this happened as rarely as possible?",
        "A band has recorded {n} songs. Drums can be heard in {a} of them, a guitar in {b} and a flute in {c}. How "
        "many songs with drums, guitar and flute must the band have recorded at the very least?",
        "A voyage took {n} days. The ship's log counts {a} days with wind, {b} days with rain and {c} days with fog, "
        "but says nothing on how these fell together. On at least how many days of the voyage did the crew meet wind, "
        "rain and fog on one day?",
    ),
)
def least_common_to_three(n: int, a: int, b: int, c: int) -> Worked:
    """Spread the misses over different members."""
    x, y, z = n - a, n - b, n - c
    return Worked(
        n - x - y - z,
        f"Count those who lack something. {n} - {a} = {x}, {n} - {b} = {y} and {n} - {c} = {z} lack the first, the "
        f"second and the third. In the worst case these are all different, {x} + {y} + {z} = {x + y + z} in total. "
        f"The others have all three: {n} - {x + y + z} = {n - x - y - z}.",
    )


@family(
    DOMAIN,
    space=(
        (n, p + x + z + t, q + x + y + t, r + y + z + t, x + t, y + t, z + t, t)
        for (p, q, r), (x, y, z), t, o in product(REGIONS, ((2, 6, 3), (5, 1, 4), (3, 8, 2)), (2, 3, 5), (17, 26))
        for n in (p + q + r + x + y + z + t + o + (5 * p + 7 * x + 3 * t) % 17,)
    ),
    wordings=(
        "Of {n} students {a} learn Greek, {b} Latin and {c} Welsh; {x} learn Greek and Latin, {y} Latin and Welsh, "
        "{z} Greek and Welsh, and {t} all three. How many learn none of them?",
        "{n} cars were checked: {a} had bad brakes, {b} bad tyres, {c} bad lights. Brakes and tyres were bad in {x}, "
        "tyres and lights in {y}, brakes and lights in {z}, everything in {t}. How many cars were free of faults?",
        "Among {n} whole numbers {a} are even, {b} are multiples of 3 and {c} of 5. Further, {x} are multiples of 6, "
        "{y} of 15, {z} of 10 and {t} of 30. How many are divisible by none of 2, 3 and 5?",
        "From {n} plots, {a} grow wheat, {b} beans, {c} hops. Wheat and beans are both on {x}, beans and hops on {y}, "
        "wheat and hops on {z}, and all are on {t}. On how many plots does nothing of this grow?",
        "Sets A, B, C within a universe of {n} have sizes {a}, {b}, {c}. A and B share {x}, B and C share {y}, A and "
        "C share {z}, and {t} lie in every set. How many elements lie outside all sets?",
        "At an inn with {n} guests, {a} took breakfast, {b} lunch, {c} supper. {x} took at least the first two, {y} "
        "the last two, {z} the first and the last, {t} took each meal. What number took no meal?",
        "A vet examined {n} sheep and found ticks on {a}, a cough in {b} and a limp in {c}. Ticks together with a "
        "cough occurred {x} times, cough together with limp {y} times, ticks together with limp {z} times; each of "
        "these counts includes the {t} sheep with the three troubles. How many sheep had none of them?",
        "A theatre has {n} subscribers. The opera was seen by {a}, the ballet by {b}, the comedy by {c}. Opera plus "
        "ballet were seen by {x}, ballet plus comedy by {y}, opera plus comedy by {z}, whether or not they saw the "
        "remaining show. {t} subscribers saw every show. What number of subscribers saw no show?",
        "A broker offers {n} flats. A balcony belongs to {a} of them, a garage to {b}, a fireplace to {c}. Balcony and "
        "garage come together in {x} flats, garage and fireplace in {y}, balcony and fireplace in {z}, each time "
        "including the {t} flats that boast all of this. In how many flats must a tenant manage without balcony, "
        "garage and fireplace?",
        "Paint is visible on {a} out of {n} shards from an old well, letters are visible on {b} and fingerprints on "
        "{c}. Paint as well as letters can be seen on {x}, letters as well as fingerprints on {y}, paint as well as "
        "fingerprints on {z}. The three things at once appear on {t} shards, which are contained in all these counts. "
        "How many shards show nothing of the kind?",
        "A geologist tested {n} rocks for iron, copper and zinc. Iron was present in {a} rocks, copper in {b}, zinc in "
        "{c}. Counting also the {t} rocks in which she detected the three metals, there were {x} rocks with iron and "
        "copper, {y} with copper and zinc, {z} with iron and zinc. In how many rocks did she detect none of the "
        "metals?",
        "A city has {n} streets: {a} with a tram, {b} with a bus line, {c} with a cycle lane. Tram and bus share {x} "
        "streets, bus and cycle lane {y}, tram and cycle lane {z}, no matter whether the street has the third of these "
        "things too; {t} streets have it all. How many streets have neither a tram nor a bus line nor a cycle lane?",
    ),
)
def none_of_three(n: int, a: int, b: int, c: int, x: int, y: int, z: int, t: int) -> Worked:
    """Inclusion and exclusion for three sets, then the complement."""
    union = a + b + c - x - y - z + t
    return Worked(
        n - union,
        f"For at least one of three: add the single sets, subtract the pairs, add what is in all three. {a} + {b} + "
        f"{c} - {x} - {y} - {z} + {t} = {union}. None of them: {n} - {union} = {n - union}.",
    )


@family(
    DOMAIN,
    space=(
        (p + q + r + x + y + z + t, p + x + z + t, q + x + y + t, r + y + z + t, t)
        for (p, q, r), t, x in product(REGIONS, (2, 4, 5, 6), range(3, 14, 2))
        for y, z in ((t * x % 9 + 2, p * x % 7 + 1),)
    ),
    wordings=(
        "Each of {n} tourists saw the castle, the zoo or the harbour. {a} saw the castle, {b} the zoo, {c} the "
        "harbour, and {t} saw all three. How many saw exactly two of them?",
        "All {n} cakes in a shop contain nuts, raisins or honey: {a} contain nuts, {b} raisins, {c} honey. {t} "
        "contain everything. How many have two of the three ingredients and lack the third?",
        "In an orchestra of {n} everybody plays strings, wind or drums. There are {a} for strings, {b} for wind and "
        "{c} for drums, {t} of whom play all of it. How many play precisely two kinds?",
        "Three newspapers share {n} readers. The first is read by {a}, the second by {b} and the third by {c}; {t} "
        "people read the three of them. Find how many people read two papers, no more and no fewer.",
        "Three carpets cover a floor of {n} tiles completely. They cover {a}, {b} and {c} tiles, and on {t} tiles "
        "three layers lie. On how many tiles do two layers lie?",
        "A lock has {n} pins, and each is moved by at least one of three keys. The keys move {a}, {b} and {c} pins; "
        "{t} pins are moved by every key. Count the pins moved by two keys but not by all.",
        "Each farm in a valley of {n} farms receives at least one of the radio masts North, East and West. North "
        "reaches {a} farms, East {b}, West {c}. At {t} farms all masts are received. How many farms receive exactly "
        "two of the masts?",
        "Frogs, newts or toads were noticed in every one of {n} ponds. Frogs were noticed in {a} ponds, newts in {b}, "
        "toads in {c}. In {t} ponds frogs as well as newts as well as toads were noticed. In how many ponds did just "
        "a single one of these species go unnoticed?",
        "Every one of {n} spies carries a forged passport of Avia, of Brell or of Corda, or several of these. Avian "
        "passports are carried by {a} spies, Brellian passports by {b} and Cordan passports by {c}, while {t} spies "
        "carry one of each country. How many spies carry passports of just two countries?",
        "A dyer has a red, a yellow and a blue vat and dips {n} shirts, none of which stays undyed. Into the red vat "
        "go {a} shirts, into the yellow vat {b}, into the blue vat {c}; {t} shirts go into one vat after another until "
        "they have been in all of them. How many shirts have been in two vats but not in the remaining one?",
        "The union of the sets A, B and C has {n} elements. The sets themselves have {a}, {b} and {c} elements, in "
        "this order, and their intersection A ∩ B ∩ C has {t} elements. How many elements belong to exactly two of the "
        "sets?",
        "A city has {n} bus stops, and each is served by the Red, the Green or the Blue Line or by several of them. "
        "The Red Line serves {a} stops, the Green Line {b} and the Blue Line {c}, and there are {t} stops that the "
        "three lines all serve. At how many stops can one change between two of the lines, but not to the third?",
    ),
)
def exactly_two_of_three(n: int, a: int, b: int, c: int, t: int) -> Worked:
    """Those in two sets are counted twice, those in three thrice."""
    total = a + b + c
    return Worked(
        total - n - 2 * t,
        "Adding up the sets counts members of exactly two sets once too often and members of all three twice too "
        f"often. {a} + {b} + {c} = {total}, which is {total} - {n} = {total - n} too much. Of this 2 * {t} = {2 * t} "
        f"is due to all three: {total - n} - {2 * t} = {total - n - 2 * t}.",
    )


@family(
    DOMAIN,
    space=((n, k, w) for n, k, w in product(range(11, 60, 3), (2, 3, 4), (0, 1, 2)) if w < k and (n + k + w) % 3),
    wordings=(
        "{n} chess players hold a tournament. Whoever has lost {k} games is out. Games go on until one player is "
        "left, and this player has lost {w}. There are no draws. How many games are played?",
        "In a sack race with duels, {n} children each have {k} lives, and the loser of a duel loses a life. At the "
        "end one child has lives, having lost {w} of them. How many duels were there?",
        "{n} robots wrestle in pairs. A robot breaks down at its defeat number {k}. The last one running was beaten "
        "{w} times. Every fight has a loser. What is the number of fights?",
        "A tavern's arm-wrestling night has {n} entrants. Each bout has a winner and a loser, {k} losses send you "
        "home, and the champion went through the night with {w} losses. Count the bouts.",
        "{n} knights joust, two at a time, and one of the two always falls. After {k} falls a knight withdraws. The "
        "king crowns the only one who has not withdrawn; he fell {w} times. How many jousts did the king see?",
        "In a card league every match costs the loser one of his {k} tokens. All {n} members begin with full tokens, "
        "and without a token one is eliminated. The sole survivor has given up {w} tokens. Find the number of matches.",
        "Kites fight one against one, and every fight cuts the string of exactly one of the two. {n} kites take part. "
        "A kite whose string has been cut {k} times retires. The contest stops when a single kite has not retired; "
        "its own number of cuts is {w}. How many fights did the spectators watch?",
        "On each turn of a singing contest two of the {n} singers go on stage, and the audience boos exactly one of "
        "them. A singer with {k} boos must stop. The contest is over when all but the winner have had to stop, and "
        "the winner's count of boos is then {w}. What was the number of turns?",
        "In each round of a spelling bee two of the {n} contestants face each other, and exactly one of these two "
        "makes a mistake. Mistake number {k} ends the evening for a contestant. When there is just one contestant "
        "still in the bee, whose tally of mistakes is {w}, the bee is over. How many rounds has it had?",
        "A toymaker tests {n} spinning tops. Again and again two of the tops are set spinning together, and the one "
        "that topples first, which is never in doubt, receives a black mark. A top with {k} black marks is thrown away "
        "at once. The test ends as soon as a single top has not been thrown away, and the number of black marks on it "
        "is {w}. How often were two tops set spinning?",
        "Whenever two of the {n} crows in a park quarrel over the bench, exactly one of the two loses the quarrel. On "
        "losing quarrel number {k} of its own, a crow flies off for good. There are quarrels until a single crow "
        "remains, and the number of quarrels that this crow has lost is {w}. How many quarrels were there?",
        "There are {n} trolls who ask each other riddles, two trolls at a time, and every such riddle duel is failed "
        "by one troll and passed by the other. A troll turns to stone at once with failure number {k}. The duels cease "
        "when only one troll has not turned to stone, and the count of his failures is {w}. How many riddle duels took "
        "place?",
    ),
)
def games_until_champion(n: int, k: int, w: int) -> Worked:
    """Count the losses instead of the games."""
    answer = k * (n - 1) + w
    return Worked(
        answer,
        f"Each game has exactly one loser, so count the losses. The {n} - 1 = {n - 1} who are out lost {k} each, and "
        f"the winner lost {w}: {n - 1} * {k} + {w} = {answer}.",
    )


@family(
    DOMAIN,
    space=(
        (n, 3 * comb(n, 2) - 5 * i - n % 5) for n, i in product(range(7, 16), range(1, 9)) if 5 * i < comb(n, 2) - 5
    ),
    wordings=(
        "In a league of {n} teams everybody plays everybody once. A win gives 3 points, a draw 1 point to each side, "
        "a loss 0. All points add up to {t}. How many games were draws?",
        "{n} poets meet, and any two of them compete once. The better poem earns 3 coins; if the two are equally "
        "good, each poet gets 1 coin. {t} coins are given out. How often were two poems equally good?",
        "Between any two of {n} islands one race was rowed. The winning island received 3 goats, and for a dead heat "
        "either island received 1 goat. {t} goats changed hands. How many dead heats were there?",
        "Every pair among {n} robots plays a single game of checkers, for 3 credits to the winner or, if it is tied, "
        "1 credit to each of the pair. The robots end with {t} credits in sum. Find the number of ties.",
        "{n} debaters hold one debate for each pair. The judges award 3 stars to a clear winner, or else a star "
        "apiece. By the end {t} stars have been awarded. How many debates had no clear winner?",
        "For each two of {n} cooks there is a cook-off. Its prize is 3 spoons, but when it is undecided both cooks "
        "take 1 spoon. The organisers needed {t} spoons. What number of cook-offs was undecided?",
        "A jury compares each two of {n} gardens exactly once. The nicer garden is given 3 roses. Where the jury sees "
        "no difference, it gives one rose to each of the two. {t} roses are used up. In how many comparisons did the "
        "jury see no difference?",
        "{n} villages meet for tug of war. Each village pulls against each other village exactly once. The stronger "
        "side takes home 3 barrels of cider; if the rope does not move, the sides take home one barrel each. "
        "Altogether {t} barrels are taken home. Find how many times the rope did not move.",
        "Among {n} wizards every possible pair fights a duel, once only. The victor of a duel collects 3 feathers; if "
        "the duel stays without a victor, both wizards collect 1 feather. All in all {t} feathers are collected. How "
        "many duels stayed without a victor?",
        "In a complete graph on {n} vertices some of the edges are given a direction and the rest are left undirected. "
        "A directed edge adds 3 to the weight of the vertex that it points to, an undirected edge adds 1 to the "
        "weights of both its ends, and all weights were zero initially. The weights now have the sum {t}. How many "
        "edges are undirected?",
        "Dice are thrown by {n} gamblers: for every two of them there is exactly one round, in which each of the two "
        "throws a die. The bank pays 3 chips for the higher throw; for equal throws it pays 1 chip to each of the two. "
        "In all the rounds together it pays {t} chips. In how many rounds were the throws equal?",
        "By a pond {n} frogs have a jumping day, on which any frog jumps once against any other. Whoever jumps farther "
        "gets 3 flies, the one beaten gets nothing, and frogs that jump equally far get 1 fly each. At nightfall {t} "
        "flies have been eaten in this way. How often did two frogs jump equally far?",
    ),
)
def drawn_games(n: int, t: int) -> Worked:
    """Each draw gives away one point less."""
    games = comb(n, 2)
    return Worked(
        3 * games - t,
        f"There are {n} * {n - 1} / 2 = {games} games. If all were won, 3 * {games} = {3 * games} points would be "
        f"given. A draw gives 2 instead of 3, one point less each. {3 * games} - {t} = {3 * games - t} draws.",
    )


@family(
    DOMAIN,
    space=((a, b, c) for a, b, c in product(range(4, 18, 2), range(5, 20, 3), range(3, 20, 4)) if len({a, b, c}) == 3),
    wordings=(
        "A bag holds {a} red, {b} blue and {c} green balls. How many must be drawn without looking to be certain of "
        "having all three colours?",
        "{a} cats, {b} dogs and {c} goats sleep in a dark barn. What is the least number of animals the farmer must "
        "lead out so that each kind is surely among them?",
        "In a deck there are {a} sun cards, {b} moon cards and {c} star cards, shuffled. How many cards do you have "
        "to turn over in order to be sure of seeing sun, moon and star?",
        "A shelf has unlabelled tins: {a} of peas, {b} of corn, {c} of plums. How many tins must be opened in the "
        "worst case before every one of the three contents has turned up?",
        "Soldiers from three valleys, {a}, {b} and {c} of them, stand in the fog. The captain calls some of them out "
        "unseen. How many must he call to guarantee that no valley is missing?",
        "Files of {a}, {b} and {c} pages got mixed into one pile. Pages are taken from the pile blindly. Which number "
        "of pages is just enough to have at least one page of each file in any case?",
        "Rosa has a sack of flower bulbs that nobody can tell apart: {a} tulips, {b} irises and {c} crocuses. Each "
        "bulb that she plants will bloom. How many bulbs has she to plant, at the minimum, so that her garden will "
        "without fail show at least one flower of each sort?",
        "A jukebox is loaded with {a} waltzes, {b} tangos and {c} polkas. It plays them in random order, never "
        "repeating a piece. What is the smallest number N such that the first N pieces played include a waltz, a "
        "tango and a polka, whatever the order?",
        "A tub is filled with {a} oval biscuits, {b} square biscuits and {c} biscuits in the form of a crescent. "
        "Blindfolded Emil removes N biscuits. Find the smallest N for which it is impossible that any of the three "
        "shapes is absent from what he removes.",
        "A lottery without blanks sells sealed tickets: {a} tickets win a kite, {b} win a comb and {c} win a whistle. "
        "Finn dreams of taking home at least one kite, at least one comb and at least one whistle. How many tickets "
        "does he have to buy, no more than needed, if he wants to leave nothing to chance?",
        "A word consists of {a} letters A, {b} letters B and {c} letters C in an unknown order. What is the smallest N "
        "such that the first N letters of the word contain A, B and C, whichever word it is?",
        "In a mail bag there are {a} letters to Arden, {b} letters to Bree and {c} letters to Colm. The postman pulls "
        "out letters without reading the addresses. How many letters must he pull out, at the least, to know "
        "beforehand that he will have mail for all three towns in his hands?",
    ),
)
def guarantee_of_every_kind(a: int, b: int, c: int) -> Worked:
    """In the worst case the rarest kind comes last."""
    first, second, rare = sorted((a, b, c), reverse=True)
    return Worked(
        first + second + 1,
        f"In the worst case all of the two more frequent kinds come first, and the rarest kind, here the {rare}, "
        f"comes last. One more than the two larger numbers is enough: {first} + {second} + 1 = {first + second + 1}.",
    )


@family(
    DOMAIN,
    space=((*stock, m) for stock, m in product(STOCKS, range(4, 11)) if stock[0] < m <= stock[3]),
    wordings=(
        "A drawer has {a} white, {b} grey, {c} brown and {d} black gloves. How many gloves must be taken out in the "
        "dark to be sure of {m} gloves of one colour?",
        "{a} Danes, {b} Poles, {c} Greeks and {d} Turks leave a ship one by one in an unknown order. After how many "
        "people is it certain that {m} from the same country have left?",
        "A baker has {a} plum, {b} apple, {c} cherry and {d} peach pies, all looking alike. What is the least number "
        "of pies to buy that always includes {m} with the same filling?",
        "Seeds are mixed in a packet: {a} of poppy, {b} of daisy, {c} of lupin and {d} of aster. How many do you have "
        "to sow at random to count on {m} plants of the same flower, if every seed comes up?",
        "A jury has {a} letters from the north, {b} from the east, {c} from the south and {d} from the west and opens "
        "them unseen. Find the smallest number of letters that makes {m} from one direction unavoidable.",
        "Of four kinds of stamps a sheet contains {a}, {b}, {c} and {d}. Torn off blindly one at a time, how many "
        "stamps guarantee a set of {m} identical ones?",
        "In a river swim {a} carp, {b} tench, {c} perch and {d} bream. An angler keeps everything that bites, and he "
        "cannot choose what bites. How many fish has he to land, at the minimum, so that he is bound to own {m} of a "
        "single species?",
        "The questions of a TV show are drawn by lot, and none is drawn twice. The supply is {a} about history, {b} "
        "about sport, {c} about music and {d} about nature. The host wants some subject to be drawn {m} times, "
        "whatever luck brings. What is the smallest number of draws that ensures this?",
        "A chest is full of closed pouches that feel the same, and in every pouch there is one gem. The list on the "
        "lid reads: ruby {a}, opal {b}, topaz {c}, jade {d}. What is the minimum number of pouches with which a robber "
        "can run away and be certain of {m} gems of equal type?",
        "A vending machine drops one toy animal for each coin, in an order that cannot be foreseen. It was filled with "
        "exactly the following toys: bears {a}, foxes {b}, owls {c}, hares {d}. Lotte wants {m} toys that show the "
        "same animal. How many coins does she need if she is to succeed in any event?",
        "Slips of paper in a hat bear the names of the seasons: spring is on {a}, summer on {b}, autumn on {c} and "
        "winter on {d} of them. Slips are drawn blindly and not put back. How many must be drawn, and no more than "
        "needed, so that some season is certain to have been drawn {m} times?",
        "In a finite multiset the element p has the multiplicity {a}, q has {b}, r has {c} and s has {d}, and there "
        "are no further elements. Find the smallest N for which every choice of N members, counted with multiplicity, "
        "includes some element at least {m} times.",
    ),
)
def guarantee_with_short_stock(a: int, b: int, c: int, d: int, m: int) -> Worked:
    """A kind that is too small gives all it has."""
    worst = [min(x, m - 1) for x in (a, b, c, d)]
    return Worked(
        sum(worst) + 1,
        f"In the worst case one takes {m} - 1 = {m - 1} of every kind, or all of a kind that has fewer, and still has "
        f"no {m} alike: {' + '.join(map(str, worst))} = {sum(worst)}. One more decides: {sum(worst)} + 1 = "
        f"{sum(worst) + 1}.",
    )


@family(
    DOMAIN,
    space=(
        (s + p + q + r, s, s + p + q, s + p + q + r + t, s + p)
        for s, q, r in product((11, 23, 37, 42, 56), (3, 5, 8, 12, 17), (2, 6, 11, 13))
        for p, t in (((s + q) % 7 + 1, s * r % 5 + 2),)
    ),
    wordings=(
        "A list of seven whole numbers contains {a}, {b}, {c}, {d} and {e}; the other two are unknown and may be "
        "anything. How many different values can the median of the list have?",
        "Five of seven sisters weigh {a}, {b}, {c}, {d} and {e} kg. The other two weights, in whole kilograms, are "
        "secret. How many possibilities are there for the weight that comes fourth in order?",
        "A clerk lost two of seven whole numbers. Left are {a}, {b}, {c}, {d}, {e}. He wants to state the median all "
        "the same. Among how many candidates for it must he choose?",
        "The marks of seven papers are integers, five of them being {a}, {b}, {c}, {d} and {e}. Depending on the two "
        "papers not yet marked, how many integers can be the median mark?",
        "Seven hens laid whole numbers of eggs this year. Five laid {a}, {b}, {c}, {d} and {e}; nothing is known of "
        "two hens, which may also tie with others. Count the possible medians of the seven.",
        "Five towers measure {a}, {b}, {c}, {d} and {e} m. Two more will be built, each of any whole height in "
        "metres. How many heights can the middle one of the seven towers have, when sorted by height?",
        "Seven buses left a depot. Five drivers report {a}, {b}, {c}, {d} and {e} passengers. Two drivers forgot to "
        "count, and their buses may have carried any number of passengers. For the median of the seven passenger "
        "numbers, how many results are conceivable?",
        "Seven wells have depths in whole metres. Engineers measured {a}, {b}, {c}, {d} and {e} m in five of them. "
        "The remaining wells can be as shallow or as deep as you like, equal depths allowed. The wells are lined up "
        "from shallow to deep. How many depths are possible for the well in the centre of the line?",
        "The running times of seven films are whole numbers of minutes. Five of the films are finished and run for "
        "{a}, {b}, {c}, {d} and {e} minutes. The last two are still being cut and may end up with any running times, "
        "the same as those of other films included. When each film is ready, the median running time will be "
        "announced. How many announcements are possible?",
        "For a curious auction seven sealed bids, all of them whole sums of ducats, are laid out from low to high, and "
        "the bid with three others to its left and three others to its right wins. Five envelopes have been opened and "
        "contain {a}, {b}, {c}, {d} and {e} ducats; the two closed ones may contain whatever sums, equal bids being "
        "allowed. How many sums could win?",
        "In a skating contest seven judges award whole numbers of points, and the skater's result is the number in the "
        "middle when the seven are sorted by size. Five judges have awarded {a}, {b}, {c}, {d} and {e} points. The two "
        "who have not decided yet may award any points they like, also the same as somebody else. How many results are "
        "still possible?",
        "Five of seven turtles in a zoo are {a}, {b}, {c}, {d} and {e} years old. The other two are of unknown age, "
        "perhaps younger or older than all of these or exactly as old as some of them, and ages are given in whole "
        "years. If the seven turtles queue up from young to old, how many different ages could the turtle in fourth "
        "place have?",
    ),
)
def possible_medians(a: int, b: int, c: int, d: int, e: int) -> Worked:
    """Two unknown values move the median by one place each way at most."""
    order = sorted((a, b, c, d, e))
    low, high = order[1], order[3]
    return Worked(
        high - low + 1,
        f"Sort the known ones: {', '.join(map(str, order))}. With two very small unknowns the median of seven is the "
        f"second known value {low}, with two very large ones the fourth, {high}. All whole numbers between are "
        f"possible too. {high} - {low} + 1 = {high - low + 1}.",
    )


@family(
    DOMAIN,
    space=((a + b - 2, a, b) for a, b in product(range(8, 32), range(6, 40)) if abs(a - b) > 1 and (a * b) % 7 == 3),
    wordings=(
        "A basket holds {n} mushrooms, all brown or white. Among any {a} of them there is a brown one, and among any "
        "{b} there is a white one. How many are brown?",
        "Of {n} islanders each is a knight or a knave. However you pick {a} of them, you get at least one knight, and "
        "however you pick {b}, at least one knave. How many knights live there?",
        "{n} switches are on or off. Every group of {a} switches includes one that is on. Every group of {b} includes "
        "one that is off. What is the number of switches that are on?",
        "On a fleet of {n} ships with sails or with engines, no {a} ships are without a sailing ship among them, and "
        "no {b} ships are without an engine ship. Find the number of sailing ships.",
        "A hotel with {n} rooms knows: whichever {a} rooms you inspect, one has a sea view, and whichever {b} you "
        "inspect, one does not. How many rooms have a sea view?",
        "A binary string has {n} digits. Any choice of {a} positions hits a 1, and any choice of {b} positions hits a "
        "0. How many ones are in the string?",
        "A tin contains {n} candies, and each is either sour or sweet. Somebody who eats {a} of them is bound to "
        "taste something sour, while somebody who eats {b} of them is bound to taste something sweet. How many sour "
        "candies does the tin contain?",
        "In a case lie {n} pens; some write, the others are dry. It is impossible to take {a} pens that are all dry. "
        "It is just as impossible to take {b} pens that all write. Determine how many of the pens write.",
        "A kennel houses {n} dogs, each of which either barks at strangers or stays silent. As a burglar has found "
        "out, there is a barking dog in every group of {a} of the dogs, and there is a silent dog in every group of "
        "{b}. How many of the dogs bark?",
        "M is a set of {n} integers. Each subset of M with {a} elements has a prime as an element, and each subset of "
        "M with {b} elements has a non-prime as an element. Determine the number of primes in M.",
        "A storm cannot uproot {a} of the {n} trees in an orchard without hitting an apple tree, and it cannot uproot "
        "{b} of them without hitting a tree that is no apple tree, whichever trees it chooses. What is the number of "
        "apple trees in the orchard?",
        "On a table lie {n} coins, each with heads or tails on top. Whoever covers any {a} coins with a cloth has "
        "always covered a coin that shows heads, and whoever covers any {b} has always covered one that shows tails. "
        "How many coins on the table show heads?",
    ),
)
def any_group_contains(n: int, a: int, b: int) -> Worked:
    """Fewer of the other kind than the group has members."""
    return Worked(
        b - 1,
        f"If any {a} include one of the first kind, there are at most {a} - 1 = {a - 1} of the second kind. In the "
        f"same way there are at most {b} - 1 = {b - 1} of the first kind. {a - 1} + {b - 1} = {n} is all of them, so "
        f"both are reached: of the first kind there are {b - 1}.",
    )


@family(
    DOMAIN,
    space=((k * (a + b), a, b) for a, b, k in product((2, 3, 4, 5, 7), (3, 4, 5, 6, 8, 9), (3, 4, 6, 7)) if a != b),
    wordings=(
        "At a ball with {n} dancers every man danced with exactly {a} women, and every woman with exactly {b} men. "
        "How many men were there?",
        "{n} people are teachers or pupils. Each teacher has {a} pupils, and each pupil is taught by {b} of the "
        "teachers. What is the number of teachers?",
        "Each of {n} cards bears a question or an answer. Threads tie every question card to {a} answer cards and "
        "every answer card to {b} question cards. How many question cards are there?",
        "In a trade hall with {n} firms, each seller has signed with {a} buyers and each buyer with {b} sellers. "
        "Nobody both sells and buys. Find the number of sellers.",
        "A garden counts {n} bees and flowers. Every bee has been on {a} of the flowers today, while every flower has "
        "had visits from {b} of the bees. How many bees are in the garden?",
        "A graph with {n} vertices has its vertices coloured black or white, and edges join only black to white. All "
        "black vertices have degree {a}, all white ones degree {b}. How many vertices are black?",
        "An index has {n} entries, and each entry is a film or an actor. Each film in the index stars exactly {a} of "
        "the listed actors, and each actor in it appears in exactly {b} of the listed films. How many films does the "
        "index list?",
        "On a map {n} sites are drawn, and a site is either a mine or a smelter. Any mine sends ore to precisely {a} "
        "smelters on the map; any smelter receives ore from precisely {b} mines on the map. What number of mines does "
        "the map show?",
        "For a finite set S some subsets of S are listed. Each element of S belongs to exactly {a} of the listed "
        "subsets, and each listed subset consists of exactly {b} elements. Adding the number of elements of S and the "
        "number of listed subsets gives {n}. How many elements does S have?",
        "If you count the singers of a town and the choirs of the town together, you arrive at {n}. Every singer is a "
        "member of {a} choirs, and every choir is made up of {b} singers. How many singers are there in the town?",
        "In a saga there are knights and dragons, {n} in number if both are counted. Every knight has fought against "
        "{a} different dragons, and every dragon has fought against {b} different knights. How many knights are there "
        "in the saga?",
        "On the plan of an underground railway each line has {a} stations, and each station is on {b} lines. Lines "
        "plus stations make {n}. How many lines are on the plan?",
    ),
)
def pairs_from_both_sides(n: int, a: int, b: int) -> Worked:
    """Count the pairs from either side."""
    answer = n * b // (a + b)
    return Worked(
        answer,
        f"Count the pairs from both sides: first * {a} = second * {b}, so first : second = {b} : {a}. Of {n} things "
        f"in all the first are {b} parts of {a} + {b} = {a + b}: {n} * {b} / {a + b} = {answer}.",
    )


@family(
    DOMAIN,
    space=(
        (a, p, b, q)
        for a, p, b, q in product(range(4, 10), (2, 3, 4), range(6, 10), (5, 6, 7))
        if a * p % 2 == b * q % 2 and b > q
    ),
    wordings=(
        "In a country there are {a} towns with {p} roads each and {b} towns with {q} roads each, and no others. Every "
        "road joins two towns. How many roads are there?",
        "At a party {a} guests shook hands with {p} people each, and the other {b} guests with {q} people each. How "
        "many handshakes were there at this party?",
        "{a} computers of a network have {p} cables plugged in each, the remaining {b} have {q} each. Both ends of "
        "each cable are in computers of the network. How many cables is that?",
        "A graph has {a} vertices of degree {p} and {b} vertices of degree {q}, and that is all of them. How many "
        "edges does it have?",
        "In the last month {a} members of a chess club played {p} games each and all its other members, {b} of them, "
        "played {q} games each, always against members. How many games did the club see?",
        "Children build a frame of sticks and balls of clay, with a ball at both ends of every stick. {p} sticks go "
        "into each of {a} balls, and {q} sticks into each of the {b} others. Find the number of sticks.",
        "A museum consists of {a} rooms that have {p} doors each and {b} rooms that have {q} doors each. A door "
        "always leads from one room of the museum into another; no door leads outside. What is the total number of "
        "doors in the museum?",
        "In a writing circle all pen friendships are mutual and between members. {a} members have {p} pen friends "
        "each in the circle, and the rest, {b} members, have {q} each. How many pairs of pen friends does the circle "
        "contain?",
        "On a continent {a} kingdoms have signed {p} treaties each, and the remaining {b} kingdoms have signed {q} "
        "treaties each. Beneath every treaty are the seals of exactly two kingdoms of the continent. How many treaties "
        "have been signed?",
        "A symmetric square matrix has only the entries 0 and 1, and all entries on its main diagonal are 0. In {a} of "
        "its rows the sum of the entries is {p}, and in the {b} rows that remain the sum is {q}. How many entries 1 "
        "stand above the main diagonal?",
        "A molecule is built from {a} atoms that form {p} bonds each and {b} atoms that form {q} bonds each. A bond is "
        "always between two atoms of the molecule. How many bonds hold the molecule together?",
        "On Friday {a} clerks of an office took part in {p} phone calls each, and the {b} other clerks took part in "
        "{q} calls each. All these calls were between two clerks of the office. How many calls were made on Friday?",
    ),
    test_only=True,
)
def links_from_degrees(a: int, p: int, b: int, q: int) -> Worked:
    """Add up all ends and halve."""
    ends = a * p + b * q
    return Worked(
        ends // 2,
        f"Each link has two ends, so add up the ends and halve. {a} * {p} + {b} * {q} = {ends}, and {ends} / 2 = "
        f"{ends // 2}.",
    )


@family(
    DOMAIN,
    space=(
        (a, b, c, d)
        for a, k in product(range(3, 15), range(6))
        for b, c, d in (((5 * a + 3 * k) % 13 + 2, (7 * a + k) % 11 + 6, (3 * a + 5 * k) % 9 + 3),)
        if len({a, b, c, d}) == 4
    ),
    wordings=(
        "Four customers come to a counter at the same moment. To serve them takes {a}, {b}, {c} and {d} minutes, one "
        "after the other. Add up the times from coming in to being done over all four. What is the least possible sum "
        "in minutes?",
        "Four girls want to fill their cans at the only tap of a camp, which takes {a}, {b}, {c} and {d} seconds. "
        "Each leaves with her full can. In the best order, how many seconds do the four spend at the tap altogether, "
        "waiting included?",
        "A printer is sent four documents at once, of {a}, {b}, {c} and {d} pages, and prints a page a minute. Each "
        "document has a finishing time in minutes from now. What is the smallest sum of the four finishing times?",
        "The numbers {a}, {b}, {c} and {d} are to be put for w, x, y and z, each once, so that 4w + 3x + 2y + z is as "
        "small as possible. What is this smallest value?",
        "Four ships lie in a harbour with a single crane. It needs {a}, {b}, {c} and {d} hours to unload them. A ship "
        "pays one coin for each hour until it is empty. How many coins is the lowest total that the four can pay?",
        "A piano teacher hears four pupils one by one, for {a}, {b}, {c} and {d} minutes. All of them are there from "
        "the beginning, and each may go home right after playing. How many minutes of their time must the four give "
        "in all, if the order is chosen wisely?",
        "Four prisoners sit in separate cells. A lone rescuer opens the cells one at a time; the locks take {a}, {b}, "
        "{c} and {d} minutes. A prisoner is free as soon as the lock of that cell is open. For each prisoner, take "
        "the minutes from the start of the rescue until freedom. What is the minimum of their total?",
        "Four broken pipes lose one litre of water an hour each, until the repair of the pipe is complete. The "
        "repairs need {a}, {b}, {c} and {d} hours. One plumber starts now, repairs pipe by pipe without a break and "
        "chooses the order that saves the most water. How many litres are lost from now on?",
        "Four electric cars reach the sole charging post of a valley together. Their batteries require {a}, {b}, {c} "
        "and {d} minutes at the post, where just one car can be connected. For each car the owner pays one cent per "
        "minute between its arrival and the moment when its battery is full. With the most favourable sequence, how "
        "many cents do the four owners pay together?",
        "Write {a}, {b}, {c} and {d} in a row, in any order. From left to right form the running totals, starting with "
        "the first number alone and finishing with the sum of the whole row. How small can the sum of these four "
        "running totals become?",
        "Four guests sit down in a pizzeria at the same time and order at once. The oven has room for one pizza only, "
        "and the pizzas ordered must bake for {a}, {b}, {c} and {d} minutes. Every guest waits until the pizza ordered "
        "by that guest is baked. If the cook picks the best order and loses no time, how many minutes do the four wait "
        "in total?",
        "Four lamps with weights of {a}, {b}, {c} and {d} kg are to hang one below another. The top lamp hangs on a "
        "chain from the ceiling and every other lamp on a chain from the lamp above it, so each chain bears all the "
        "lamps that are below it; the chains weigh nothing. Add up what the four chains bear. How few kg can this sum "
        "be if the lamps are put in the best order?",
    ),
    test_only=True,
)
def shortest_first(a: int, b: int, c: int, d: int) -> Worked:
    """The shortest comes first, because all the others wait for it."""
    first, second, third, last = sorted((a, b, c, d))
    total = 4 * first + 3 * second + 2 * third + last
    return Worked(
        total,
        f"Everybody waits for the first one, all but one for the second, and so on, so the shortest must come first. "
        f"The times count 4, 3, 2 and 1 times: 4 * {first} + 3 * {second} + 2 * {third} + {last} = {total}.",
    )


FAMILIES = (
    value_that_moved_the_mean,
    mean_of_two_groups,
    middle_of_overlapping_means,
    largest_for_mean_and_median,
    least_common_to_three,
    none_of_three,
    exactly_two_of_three,
    games_until_champion,
    drawn_games,
    guarantee_of_every_kind,
    guarantee_with_short_stock,
    possible_medians,
    any_group_contains,
    pairs_from_both_sides,
    links_from_degrees,
    shortest_first,
)
