"""Counting: restricted arrangements, distributions, inclusion and exclusion, paths, selections and recursion."""

from itertools import product
from math import comb, factorial, lcm

from problems.family import Worked, family

DOMAIN = "counting"
OVERLAPPING = ((4, 6), (6, 9), (6, 10), (8, 12), (10, 15), (9, 12), (4, 10))
"""Pairs of divisors with a common factor."""
DERANGEMENTS = {3: 2, 4: 9, 5: 44, 6: 265}


def steps(n: int, m: int) -> list[int]:
    """How many ways there are to make 0, 1, ..., n from ones and m's in order."""
    ways: list[int] = []
    for k in range(n + 1):
        ways.append(1 if k < m else ways[k - 1] + ways[k - m])
    return ways


@family(
    DOMAIN,
    space=(
        (a, b, c)
        for a, b, c in product(range(2, 6), range(2, 6), range(2, 6))
        if factorial(a) * factorial(b) * factorial(c + 2) <= 200_000
    ),
    wordings=(
        "{a} different maths books, {b} different history books and {c} different novels stand in a row. The maths "
        "books must be side by side, and so must the history books. How many orders are possible?",
        "For a photo everyone lines up. The {a} members of one family stay next to each other, as do the {b} members "
        "of a second family, and {c} more guests take any positions. In how many ways can the line be formed?",
        "A playlist consists of {a} jazz tracks, {b} rock tracks and {c} folk tracks, all different. All the jazz is "
        "played without interruption, and all the rock too. How many playlists are there?",
        "{a} taxis, {b} vans and {c} private cars queue for a ferry. Count the queues in which nothing but a taxi "
        "stands between two taxis and nothing but a van between two vans. No two vehicles are alike.",
        "A museum hangs {a} portraits, {b} landscapes and {c} still lifes along one wall. The portraits form one "
        "unbroken group, the landscapes another. If all pictures are distinct, how many hangings can it choose from?",
        "In a permutation of {a} vowels, {b} consonants and {c} digits, no character occurs twice. Find how many such "
        "permutations keep the vowels in one block and the consonants in one block.",
        "{a} brass bands, {b} floats and {c} riders, every one of them different, move through the town in single "
        "file. The bands are never split up by anything else, nor are the floats. How many marching orders does the "
        "mayor have to choose from?",
        "One morning a dentist sees {a} nurses, {b} pilots and {c} students, one patient after the other. Once the "
        "first nurse is called in, the other nurses follow before anyone else does. The same goes for the pilots. The "
        "students need not follow one another. Find the number of possible sequences of patients.",
        "{a} scarves, {b} towels and {c} pillowcases, each with a pattern of its own, are pegged onto a washing line "
        "from left to right. The scarves must make one uninterrupted stretch, and likewise the towels. How many ways "
        "of filling the line are there?",
        "Tonight a telescope is pointed once at each of {a} comets, {b} galaxies and {c} planets. To save changes of "
        "filter, the comets are observed straight after each other, with no other target in between, and the galaxies "
        "too; for the planets there is no such demand. Count the schedules that the astronomer may use.",
        "A magician's show is built from {a} card tricks, {b} rope tricks and {c} coin tricks, all of them different "
        "and each performed once. Once begun, the card tricks come in one go, with no trick of another sort in their "
        "midst, and the same holds for the rope tricks. The coin tricks may come anywhere else. How many running "
        "orders can he announce?",
        "Passengers leave a spaceship through a hatch, one at a time: {a} Martians, {b} Venusians and {c} Earthlings, "
        "each a distinct person. The Martians insist on leaving as a closed party that no one else interrupts, and so "
        "do the Venusians, but the Earthlings do not care. Find the number of orders of exit.",
    ),
)
def two_blocks(a: int, b: int, c: int) -> Worked:
    """Treat each group as one item, then order inside the groups."""
    outer, answer = factorial(c + 2), factorial(a) * factorial(b) * factorial(c + 2)
    return Worked(
        answer,
        f"Treat each group that stays together as one item. {c} single items and 2 groups have {c + 2}! = {outer} "
        f"orders. Inside the groups there are {a}! = {factorial(a)} and {b}! = {factorial(b)} orders. "
        f"{outer} * {factorial(a)} * {factorial(b)} = {answer}.",
    )


@family(
    DOMAIN,
    space=((m, k) for m, k in product(range(4, 14), range(2, 7)) if k < m),
    wordings=(
        "{m} identical white beads and {k} identical black beads are laid in a row so that no two black beads touch. "
        "How many rows are possible?",
        "A gardener plants a line of {m} oaks and {k} birches. Trees of a kind look alike, and a birch must never "
        "have a birch as its neighbour. In how many ways can she plant the line?",
        "How many strings of {m} zeros and {k} ones contain no 11?",
        "Out of {m} workdays and {k} days off a roster is made, one day after the other, never with consecutive days "
        "off. How many rosters does the boss have to choose from?",
        "A goods train is put together from {m} equal flat wagons and {k} equal tank wagons. For safety, any two tank "
        "wagons need a flat wagon somewhere between them. Count the allowed trains.",
        "A tune has {m} long notes and {k} short notes, all at the same pitch. Short notes come one at a time, with a "
        "long note before the next short one. What is the number of different tunes?",
        "Along one side of a lane stand {m} stone huts and {k} straw huts. Because of fires, no straw hut is next "
        "door to another straw hut. Huts of the same material look the same. How many patterns of huts, read from "
        "left to right, could this be?",
        "A goalkeeper faced a series of penalties. She saved {m} of them and conceded the other {k}, but never "
        "conceded twice in succession. What number of sequences of saved and conceded penalties agrees with this?",
        "With a lamp a spy flashes red {k} times and green {m} times. Red flashes must never come directly after each "
        "other, and the message is nothing but the sequence of colours. How many messages can she transmit?",
        "A path in the coordinate plane leads from the origin to the point ({m}, {k}). It is made of unit steps to the "
        "right and unit steps upwards, but an upward step may not be followed at once by another upward step. "
        "Determine how many paths satisfy this.",
        "A cook pushes {m} cubes of cheese and {k} grapes onto a skewer that has a handle at one end. The cubes are "
        "alike, the grapes are alike, and no grape may sit directly beside a grape. How many skewers can be told "
        "apart?",
        "Consider the integers from 1 to {m} + {k}. How many sets of {k} of these integers contain no two that differ "
        "by exactly 1?",
    ),
)
def none_adjacent(m: int, k: int) -> Worked:
    """Put the others first and choose among the gaps."""
    answer = comb(m + 1, k)
    return Worked(
        answer,
        "Lay out the unrestricted items first and put the others into different gaps, the two ends included. "
        f"{m} items leave {m} + 1 = {m + 1} gaps, of which {k} are chosen: C({m + 1}, {k}) = {answer}.",
    )


@family(
    DOMAIN,
    space=product(range(4, 15), range(3, 7)),
    wordings=(
        "In how many ways can {n} identical coins be given to {k} children, if a child may also get none?",
        "{k} unknowns, each a whole number that is 0 or larger, add up to {n}. How many ordered solutions does this "
        "equation have?",
        "An ice-cream parlour has {k} flavours. A tub holds {n} scoops in any mixture, and only the number of scoops "
        "of each flavour matters. How many different tubs can be ordered?",
        "{n} parcels that look the same slide down {k} numbered chutes. Some chutes may stay empty. Count the "
        "possible final states.",
        "All {n} members of a club cast a secret vote for one of {k} candidates. How many different election results, "
        "as lists of vote totals, are conceivable?",
        "The sum of {k} variables is raised to the power {n}, multiplied out, and like terms are collected. How many "
        "terms remain?",
        "The hero of a computer game has {k} abilities, such as strength and stealth. A player must spend exactly {n} "
        "skill points on them, in full points. An ability may be left at zero. How many different heroes can be "
        "created?",
        "For each of {k} named hills a weather station writes down how often lightning struck it last year. The {k} "
        "entries have the total {n}, and it may be that a hill was never struck. Count the records that could have "
        "been written.",
        "Call a word tidy if no letter in it comes earlier in the alphabet than the letter before it; repeated letters "
        "are fine. The alphabet consists of {k} letters. How many tidy words of {n} letters exist?",
        "All {n} tops in a game are exact copies of one model, which has {k} sides and a different rune on every side. "
        "They are spun together, and each comes to rest showing one rune. If Inga notes only how often which rune is "
        "showing, how many different notes might she make?",
        "A bus starts with {n} passengers, calls at {k} stops and is empty after the last of them. Nobody gets on at "
        "any of these stops. For every stop the driver marks just the number of people getting off, which may be nil. "
        "How many lists of marks are possible?",
        "At a depot {n} equal tyres are piled up on {k} differently labelled pegs. A peg may be left bare, and any peg "
        "is tall enough for all the tyres. Two states of the depot are the same if each peg carries as many tyres in "
        "one as in the other. Find the number of states.",
    ),
)
def stars_and_bars(n: int, k: int) -> Worked:
    """Equal things into different places: place the dividing bars."""
    answer = comb(n + k - 1, k - 1)
    return Worked(
        answer,
        "Equal things for different takers: write the things as stars and separate the takers by bars. "
        f"{n} stars and {k} - 1 = {k - 1} bars fill {n + k - 1} places, so choose the places of the bars: "
        f"C({n + k - 1}, {k - 1}) = {answer}.",
    )


@family(
    DOMAIN,
    space=((k * m + x, k, m) for k, m, x in product((3, 4, 5), (2, 3, 4), range(3, 9)) if k * m + x <= 24),
    wordings=(
        "{n} identical sweets are shared out among {k} children, and each child gets at least {m}. In how many ways "
        "can this be done?",
        "A florist ties a bunch of {n} flowers of {k} kinds, with no fewer than {m} of every kind. Flowers of a kind "
        "are alike, and their places do not count. How many bunches can be tied?",
        "How many ordered lists of {k} integers, none of them below {m}, have the sum {n}?",
        "A ruler of {n} cm is broken at whole centimetres into {k} pieces, which stay in order from left to right. If "
        "no piece is shorter than {m} cm, how many outcomes are possible?",
        "A coach spreads {n} hours of training over {k} named weeks, in full hours. No week may have less than {m} of "
        "them. Count the training plans.",
        "The city buys {n} benches of one model for its {k} parks. By law every park receives {m} benches or more. "
        "Find the number of distributions that obey the law.",
        "A zoo moves all of its {n} goldfish, which nobody can tell apart, to {k} ponds of different shapes. No pond "
        "ends up with fewer than {m} goldfish. How many ways to stock the ponds are there?",
        "In a quiz the {k} finalists scored {n} points in total. Only full points are awarded, and the final scores "
        "all came to {m} or higher. How many score tables, saying who scored what, are conceivable?",
        "An editor divides a manuscript of {n} pages into {k} chapters and keeps the pages in their sequence. Each "
        "chapter begins on a new page, is {m} pages long or longer, and every page goes into a chapter. How many "
        "divisions can the editor consider?",
        "Let F be the power series in x in which x^e has the coefficient 1 for every exponent e from {m} upwards, "
        "while all lower powers are missing. Determine the coefficient of x^{n} in the power F^{k}.",
        "A traffic light runs through {k} phases in a fixed sequence, and a full cycle takes {n} seconds. The length "
        "of a phase is a whole number of seconds and never under {m}. In how many ways can the engineer set the "
        "lengths of all the phases?",
        "During {k} consecutive rounds a boxer landed {n} punches, {m} or more in each of the rounds. A reporter "
        "jotted down, round by round, how many it was. How many different rows of figures might her pad show?",
    ),
)
def shares_with_minimum(n: int, k: int, m: int) -> Worked:
    """Hand out the minimum first, then stars and bars."""
    rest = n - k * m
    answer = comb(rest + k - 1, k - 1)
    return Worked(
        answer,
        "Hand out the minimum first and distribute what is left freely with stars and bars. "
        f"{n} - {k} * {m} = {rest} are left for {k} takers: C({rest} + {k - 1}, {k - 1}) = "
        f"C({rest + k - 1}, {k - 1}) = {answer}.",
    )


@family(
    DOMAIN,
    space=((n, a, b) for n, (a, b) in product(range(90, 320, 23), OVERLAPPING)),
    wordings=(
        "How many whole numbers from 1 to {n} are divisible by {a} or by {b} or by both?",
        "Along a trail of {n} km there is a bench after every {a} km and a bin after every {b} km, measured from the "
        "start, where there is neither. At how many points of the trail is there a bench, a bin or both?",
        "In {n} days, numbered in order from 1, a plant is watered on days that are multiples of {a} and fed on days "
        "that are multiples of {b}. On how many days does it get something?",
        "The seats of a stadium bear the numbers 1 to {n}. A ticket holder wins a scarf if {a} or {b} goes evenly "
        "into the seat number, but nobody wins two scarves. Find the number of scarves won.",
        "Strike out of the list 1, 2, ..., {n} each entry in the times table of {a}, and each entry in the times "
        "table of {b}. How many entries have been struck out?",
        "Two drummers play together for {n} beats, counted from 1. One strikes on each beat whose count is a multiple "
        "of {a}, the other on each whose count is a multiple of {b}. How many beats are not silent?",
        "A weaver makes a carpet of {n} rows and numbers them as she goes, starting with one. Gold thread goes into a "
        "row if its number is a multiple of {a}, silver thread if it is a multiple of {b}. How many rows contain "
        "gold, silver or both metals?",
        "Two kitchen timers are started at the same instant. The first beeps every {a} minutes, the second every {b} "
        "minutes, but not at the start. Both are stopped after {n} minutes; a beep due right then still sounds. Beeps "
        "that fall together are heard as one. How many beeps does the cook hear?",
        "Bottles leave a filling plant one behind another, {n} in a shift. An inspector tastes every {a}th bottle, a "
        "colleague weighs every {b}th, and each of them counts the first bottle of the shift as number one. How many "
        "bottles are examined by at least one of these two people?",
        "For how many positive integers t not exceeding {n} is the product sin(pi * t / {a}) * sin(pi * t / {b}) equal "
        "to zero? Angles are in radians.",
        "Two sisters leaf through an album whose pages run from 1 to {n}. Edith glues a sticker on each page whose "
        "number {a} divides, Flora on each page whose number {b} divides. How many pages get at least one sticker?",
        "On an island whose calendar begins with year 1, the volcano Akra erupts in all years that can be divided by "
        "{a} without remainder, and the volcano Bora in all years that can be divided by {b} without remainder. In how "
        "many years, from year 1 to year {n} inclusive, is there an eruption?",
    ),
)
def divisible_by_either(n: int, a: int, b: int) -> Worked:
    """Add both counts and take away the common multiples."""
    both = lcm(a, b)
    x, y, z = n // a, n // b, n // both
    return Worked(
        x + y - z,
        "Add the two counts and subtract what was counted twice, the multiples of the least common multiple. "
        f"{n} // {a} = {x}, {n} // {b} = {y}, lcm({a}, {b}) = {both} and {n} // {both} = {z}. "
        f"{x} + {y} - {z} = {x + y - z}.",
    )


@family(
    DOMAIN,
    space=(
        (x + y + both + z, x + both, y + both, z)
        for x, y, both, z in product((7, 9, 12, 14), (5, 8, 11, 15), (4, 6, 10), (3, 8, 13))
        if len({x, y, both, z}) == 4
    ),
    wordings=(
        "Of {n} pupils, {a} play chess, {b} play football and {z} do neither. How many play exactly one of the two?",
        "{n} households were asked about pets. {a} keep a cat, {b} keep a dog, and {z} have no such animal. In how "
        "many households is there a cat or a dog but not both?",
        "A library checked {n} old books. {a} had a torn cover, {b} had missing pages, and {z} were without these "
        "faults. How many books had just a single one of the faults?",
        "At a congress with {n} guests, {a} speak French and {b} speak Spanish, whereas {z} understand no word of "
        "either. Find the number of guests who speak one of these languages only.",
        "Outside the subsets A and B of a set with {n} elements lie {z} elements. A has {a} elements and B has {b}. "
        "What is the size of the union without the intersection?",
        "Among {n} pizzas sold one night, {a} came with olives and {b} with mushrooms, and {z} went out plain. How "
        "many carried olives without mushrooms or mushrooms without olives?",
        "Customs officers opened {n} suitcases. Liquids turned up in {a} of them and batteries in {b}, while {z} "
        "suitcases contained neither. What is the number of suitcases with liquids or batteries, yet not with the two "
        "together?",
        "Two cameras watched a shower of {n} meteors. The northern camera recorded {a} meteors, the southern camera "
        "{b}, and {z} escaped both. How many meteors are known from only one camera?",
        "Foresters inspected {n} pines. Beetles had attacked {a} of the pines and fungus {b}, and {z} pines were "
        "healthy, untouched by beetles and fungus. In how many pines was there a lone attacker, be it the beetles or "
        "the fungus?",
        "A program tests each of {n} records for the conditions P and Q. P is true for {a} records, Q is true for {b}, "
        "and P and Q are false together for {z}. For how many records do P and Q have different truth values?",
        "An expedition took {n} days. It rained on {a} of them, a gale blew on {b}, and {z} days saw neither rain nor "
        "gale. On how many days did the travellers have to bear either rain or gale, but not the pair of them?",
        "At a tournament {n} knights appeared. The herald noted a lance with {a} of them, a sword with {b}, and empty "
        "hands with {z}. Nobody carried any other weapon or two of a sort. How many knights came with a single weapon?",
    ),
)
def exactly_one_of_two(n: int, a: int, b: int, z: int) -> Worked:
    """Find the overlap first and take it off twice."""
    some, both = n - z, a + b - n + z
    return Worked(
        some - both,
        "Those with at least one are all except the ones with neither. The overlap is the sum of the two groups minus "
        f"those, and it must be left out. {n} - {z} = {some} have at least one, {a} + {b} - {some} = {both} have both. "
        f"{some} - {both} = {some - both}.",
    )


@family(
    DOMAIN,
    space=((a, b, c, d) for a, b, c, d in product(range(2, 6), repeat=4) if a + b + c + d < 16 and (a - b) % 3),
    wordings=(
        "In a city of square blocks Ben walks to a café {a} blocks east and {b} blocks north of home and on to a "
        "school {c} blocks further east and {d} further north. He goes only east or north. How many routes can he "
        "take?",
        "An ant crawls along the lines of squared paper, always one unit right or one unit up. It starts at (0, 0), "
        "passes ({a}, {b}), and ends {c} units further right and {d} units further up. How many ways are there?",
        "A word is made of two parts. The first part has {a} letters A and {b} letters B in some order, the second "
        "part {c} letters A and {d} letters B in some order. How many words can arise?",
        "The score at half-time was {a} to {b}. After the break the home team shot {c} more goals and the visitors "
        "{d} more. In how many orders can home goals and visitors' goals have followed one another in the match?",
        "A robot moves one cell ahead or one cell to the right at a time. It must fetch a box {a} cells ahead and {b} "
        "to the right, then bring it {c} more cells ahead and {d} more to the right. Count its possible journeys.",
        "Before the hut a hiker passes {a} bridges and {b} tunnels, after the hut {c} bridges and {d} tunnels, but "
        "she forgot in which sequence. How many sequences of bridges and tunnels are possible for the whole tour?",
        "A lighthouse is built in horizontal layers. Below the balcony there are {a} grey and {b} white layers, above "
        "it {c} grey and {d} white ones. Layers of equal colour look the same. How many colour patterns, from bottom "
        "to top, can the lighthouse have?",
        "On Saturday a kiosk served {a} adults and {b} children, one by one, and on Sunday {c} adults and {d} "
        'children. For each customer in turn the log says just "adult" or "child". Find the number of different '
        "logs that the weekend could have produced.",
        "Ola knits a scarf row by row. Up to a marker thread she wants {a} plain rows and {b} ribbed rows, and after "
        "the marker thread {c} plain rows and {d} ribbed ones. Rows of one type are indistinguishable. How many "
        "different scarves might come off her needles?",
        "A coin was tossed in a first round and again in a second round. The first round brought heads {a} times and "
        "tails {b} times, the second round heads {c} times and tails {d} times. With how many toss-by-toss records of "
        "the two rounds do these totals agree?",
        "A dance band plays {a} waltzes and {b} tangos before midnight, then {c} waltzes and {d} tangos after "
        "midnight. Of every dance, an old lady remembers whether it was a waltz or a tango, but not which piece. How "
        "many different sequences of waltz and tango might she remember for the whole ball?",
        "A parcel is to have one row of stamps along its upper edge and another along its lower edge. For the upper "
        "row there are {a} stamps with a ship and {b} with a plane, for the lower row {c} with a ship and {d} with a "
        "plane, and all must be used. Stamps with the same motif are identical. Count the looks that the parcel can "
        "have.",
    ),
)
def paths_via_point(a: int, b: int, c: int, d: int) -> Worked:
    """Count each leg by a binomial and multiply."""
    first, second = comb(a + b, a), comb(c + d, c)
    return Worked(
        first * second,
        "A leg with given numbers of moves of two kinds can be ordered in C(all moves, moves of one kind) ways, and "
        f"the legs multiply. C({a + b}, {a}) = {first} and C({c + d}, {c}) = {second}. "
        f"{first} * {second} = {first * second}.",
    )


@family(
    DOMAIN,
    space=((m, w, k) for m, w, k in product(range(3, 9), range(3, 9), (3, 4, 5)) if m != w and (m + w + k) % 2),
    wordings=(
        "A committee of {k} is chosen from {m} men and {w} women. It must include at least one man and at least one "
        "woman. How many committees are possible?",
        "From a basket with {m} different apples and {w} different pears, Kai takes {k} fruits so that both kinds are "
        "among them. In how many ways can he do so?",
        "On one of two parallel lines {m} points are marked, and {w} points on the other. How many sets of {k} marked "
        "points do not lie on one line?",
        "A festival has received {m} Danish and {w} Dutch films. The jury sends {k} of them to the final, where "
        "neither country may be absent. Find the number of possible finals.",
        "How many {k}-element subsets of a set of {m} odd and {w} even integers have odd as well as even members?",
        "A cook owns {m} mild spices and {w} hot spices, no two the same. She blends {k} of them but rejects a blend "
        "that is purely mild or purely hot. How many blends does she accept?",
        "A safari park has {m} lions and {w} zebras, each with its own name. It lends {k} of these animals to another "
        "park. Lions alone would not do, and zebras alone would not do. How many groups can be lent?",
        "Ria owns {m} skirts and {w} blouses, every piece unlike the rest, and packs {k} of these pieces for a trip. "
        "Count the ways to pack that let her wear a packed skirt together with a packed blouse.",
        "A thief grabbed {k} medals from a showcase that held {m} gold and {w} silver ones, each with a different "
        "engraving. The police know that he took gold as well as silver. How many hauls fit what they know?",
        "In a graph each of {m} vertices on the left is joined to each of {w} vertices on the right, and the graph has "
        "no further vertices or edges. How many sets of {k} vertices contain both ends of some edge?",
        "A castle has {m} doors to the street and {w} doors to the garden, and exactly {k} of all these doors are "
        "unlocked tonight. A ghost that cannot pass through locked doors wants to come in from the street and go out "
        "into the garden. For how many sets of unlocked doors does its plan work?",
        "{m} letters for a new bridge and {w} letters against it have reached a newspaper, each by a different writer. "
        "There is space for {k} of these letters, and the editor lets both opinions have a say. How many selections "
        "can she print, if their order on the page is ignored?",
    ),
)
def both_groups_represented(m: int, w: int, k: int) -> Worked:
    """All selections without the one-sided ones."""
    every, left, right = comb(m + w, k), comb(m, k), comb(w, k)
    return Worked(
        every - left - right,
        "Count all selections and subtract those from one group only. "
        f"C({m + w}, {k}) = {every}, C({m}, {k}) = {left}, C({w}, {k}) = {right}. "
        f"{every} - {left} - {right} = {every - left - right}.",
    )


@family(
    DOMAIN,
    space=((n, r) for n, r in product(range(5, 20), range(3, 7)) if r < n and comb(n, r) * factorial(r - 1) <= 30_000),
    wordings=(
        "From {n} people, {r} are chosen and seated at a round table with {r} chairs. Seatings that differ only by a "
        "rotation are the same, but mirror images are different. How many seatings are there?",
        "A jeweller has {n} different stones and sets {r} of them at equal distances around the rim of a brooch. The "
        "brooch may be turned, but never flipped over. How many different brooches can she make?",
        "{r} of {n} dancers join hands in a ring, all facing the middle. What matters is only who is at whose left "
        "hand. In how many ways can the ring be formed?",
        "A delivery round goes through {r} of {n} villages and ends where it began. It has no fixed first village, "
        "but the direction of travel makes a difference. How many rounds can be planned?",
        "On a carousel with {r} places just alike, {r} out of {n} waiting children ride, one per place. Two ways to "
        "fill it are equal if turning the carousel changes one into the other. Count the ways.",
        "A cyclic word of {r} different letters is read clockwise, and it has no beginning. Letters come from an "
        "alphabet of {n}. What is the number of cyclic words?",
        "In a laboratory with {n} computers a technician wires {r} of them into a single closed loop. Data runs "
        "through the loop one way only, so each computer in it sends to one and receives from one. Loops are told "
        "apart only by which computer sends to which. How many loops could he wire?",
        "Evenly spaced along the edge of a plain round cake stand {r} candles, no two of one colour. The box offered "
        "{n} colours. The cake is on a turntable, so patterns that a turn makes equal count once. A pattern and its "
        "reflection count separately. Find the number of patterns.",
        "How many permutations of a set with {n} elements move exactly {r} of the elements, and move these in one "
        "single cycle?",
        "A beacon repeats a cycle of {r} flashes for ever, at a steady pace. Within the cycle all flashes differ in "
        "hue, and the hues are taken from a supply of {n}. Programs that only start at different flashes of the same "
        "cycle are regarded as one program, but running a cycle backwards gives another program. How many programs are "
        "available?",
        "A circular fountain has {r} identical niches at equal intervals. A sculptor owns {n} different statues and "
        "puts one into each niche. Designs that become equal when the fountain is rotated are the same design, whereas "
        "a design and its mirror image are two. How many designs are there?",
        "Out of {n} conspirators, {r} are picked to be a ring of informers. Everybody in the ring reports to exactly "
        "one other informer, and whoever follows the reports from any informer comes past all the others in the ring "
        "before returning to the start. A ring is fully described by who reports to whom. How many rings are possible?",
    ),
)
def chosen_for_a_circle(n: int, r: int) -> Worked:
    """Choose, then fix one against rotation."""
    choices, orders = comb(n, r), factorial(r - 1)
    return Worked(
        choices * orders,
        "Choose who takes part, then fix one of them against rotation and order the others: (r - 1)! circles. "
        f"C({n}, {r}) = {choices} and {r - 1}! = {orders}. {choices} * {orders} = {choices * orders}.",
    )


@family(
    DOMAIN,
    space=((a, b, c) for a, b, c in product(range(2, 7), range(2, 6), range(2, 5)) if a + b + c <= 11),
    wordings=(
        "How many different words, with or without meaning, use exactly {a} letters A, {b} letters B and {c} letters "
        "C?",
        "{a} red, {b} blue and {c} green flags are hoisted one above the other on a mast. Flags of the same colour "
        "cannot be told apart. How many signals can be given?",
        "A nurse gives {a} doses of one drug, {b} doses of a second and {c} doses of a third, a single dose per hour. "
        "In how many orders of the drugs can she do that?",
        "Our season brought {a} wins, {b} draws and {c} losses. Count the sequences in which these results may have "
        "come.",
        "Three boats have {a}, {b} and {c} seats, and a school class fills them exactly. If only the boat matters and "
        "not the seat, in how many ways can the pupils be assigned?",
        "A walk in space makes {a} unit steps along the x-axis, {b} along the y-axis and {c} along the z-axis, each "
        "of them forward. What is the number of such walks?",
        "From the gate to the door a mason lays a single line of paving stones: {a} round, {b} square and {c} "
        "hexagonal ones. Stones of one shape are identical. How many different lines can he lay?",
        "An urn holds {a} ballots for Ash, {b} for Birk and {c} for Cole. A clerk takes out all ballots, one at a "
        "time, and reads each name aloud. What number of different sequences of names might the hall hear?",
        "The power (x + y + z)^N is expanded and like terms are collected, where N is the exponent for which the "
        "monomial x^{a} y^{b} z^{c} turns up. Determine the coefficient of this monomial.",
        "A caravan of {a} camels, {b} mules and {c} donkeys squeezes through a gorge, each animal behind another. From "
        "the cliff a scout can recognise the species of an animal but nothing more. How many different processions "
        "might the scout describe?",
        "A totem pole is carved as a stack of {a} bears, {b} ravens and {c} frogs. Carvings of the same animal do not "
        "differ in any way. How many designs of the pole, from foot to tip, are there?",
        "Every one of {a} + {b} + {c} numbered lockers gets a coat of paint: {a} of them yellow, {b} violet and {c} "
        "brown. In how many ways can the janitor decide which locker gets which paint?",
    ),
)
def repeated_letters(a: int, b: int, c: int) -> Worked:
    """Divide by the orders of equal things."""
    n = a + b + c
    answer = comb(n, a) * comb(b + c, b)
    return Worked(
        answer,
        "Orders of things of which some are equal: the factorial of the number of all, divided by the factorial of "
        f"each group of equals. {n}! / ({a}! * {b}! * {c}!) = "
        f"{factorial(n)} / ({factorial(a)} * {factorial(b)} * {factorial(c)}) = {answer}.",
    )


@family(
    DOMAIN,
    space=((m, s, k) for m, s, k in product(range(5, 11), range(2, 6), (3, 4)) if s < m - 1),
    wordings=(
        "A code has {k} places, each filled with any of {m} symbols. {s} of the {m} symbols are special. How many "
        "codes contain at least one special symbol?",
        "A wheel with {m} different pictures, of which {s} show a fruit, is spun {k} times, and the pictures are "
        "written down in order. How many records mention a fruit?",
        "Each of {k} guests orders one dish from a menu of {m}. {s} of the dishes are vegetarian, the others are "
        "meat. Counting who orders what, in how many ways can it happen that not everybody eats meat?",
        "On {k} evenings in a row Lu picks one of her {m} hats, perhaps the same as before. {s} hats are red. Count "
        "the ways to pick in which a red hat appears on some evening.",
        "Over an alphabet of {m} letters, {s} of them vowels, how many strings of length {k} are not free of vowels? "
        "Letters may be repeated.",
        "A function sends each of {k} inputs to one of {m} values, and {s} of these values are marked. Find the "
        "number of functions that take a marked value somewhere.",
        "{k} named tourists each go to one of {m} beaches, and several may meet at the same beach. There are "
        "jellyfish at {s} of the {m} beaches. Counting who goes where, how many possibilities bring at least one "
        "tourist to the jellyfish?",
        "A toy piano has {m} keys, {s} of them black and the rest white. A child strikes {k} notes, one after "
        "another, and may strike a key again. How many sequences of keys are not made up of white keys alone?",
        "A chapel has {k} windows, each of another shape. The glazier fills every window with one of {m} sorts of "
        "glass, and the same sort may serve for several windows. {s} of the sorts are bluish. How many glazings let "
        "some bluish light into the chapel?",
        "The elements of a set are {m} different integers, exactly {s} of which are even. One chooses an ordered list "
        "of {k} factors from the set, where the same integer may be chosen repeatedly. For how many lists is the "
        "product even?",
        "A night watchman goes out {k} times. Each time he leaves through any one of {m} gates, possibly through one "
        "that he has used before, and {s} of the gates squeak. How many lists of gates, in order of use, mean at least "
        "one squeak during the night?",
        "In each of {k} different villages a candidate tells one of her {m} jokes, and she does not mind telling a "
        "joke repeatedly. {s} of the jokes are rude. Count the ways to match a joke with every village in which some "
        "village or other hears a rude one.",
    ),
)
def at_least_one_special(m: int, s: int, k: int) -> Worked:
    """All sequences without those that avoid the special ones."""
    return Worked(
        m**k - (m - s) ** k,
        "At least one is the opposite of none: count all sequences and subtract those without a special one. "
        f"{m}^{k} = {m**k}, and with {m} - {s} = {m - s} ordinary choices {m - s}^{k} = {(m - s) ** k}. "
        f"{m**k} - {(m - s) ** k} = {m**k - (m - s) ** k}.",
    )


@family(
    DOMAIN,
    space=product(range(3, 7), range(2, 15)),
    wordings=(
        "{a} friends swap their {a} jackets so that everybody gets one but nobody gets their own. Then one of {c} "
        "songs is picked. In how many ways can jackets and song turn out?",
        "{a} tests are handed back to the {a} pupils who wrote them, one to each and to every pupil a wrong one. The "
        "teacher then tells one of {c} jokes. How many combinations of distribution and joke are there?",
        "How many pairs (f, x) are there, where f is a permutation of {a} objects that fixes none of them, and x is "
        "one of {c} colours?",
        "Each of {a} dogs has a kennel. Tonight every dog sleeps alone in a kennel of another dog, and one of {c} "
        "cats sleeps on the roof. Find the number of possible arrangements for the night.",
        "For a gift exchange {a} colleagues put their names in a hat, and each draws one. It counts only if no one "
        "has drawn themselves. The party is held at one of {c} cafés. Count the valid plans for draw and café.",
        "Each of {a} keys has its own hook on a board with {a} hooks. All keys hang there, one per hook, and every "
        "one of them hangs wrong. The board is painted in one of {c} shades. What is the number of possible looks?",
        "During a food festival {a} chefs, each with a restaurant of their own, change places. Every one of the {a} "
        "restaurants receives one of these chefs, but never its owner. The festival bears one of {c} mottos. In how "
        "many ways can places and motto be settled?",
        "{a} different teapots came with one lid each. A toddler has put all {a} lids back, a single lid on every "
        "teapot, yet no lid is where it belongs. The toddler has also hidden one of {c} different spoons. What is the "
        "number of possible outcomes?",
        "As a rule {a} pilots fly one plane each, always the same. Today these {a} planes are again flown by these "
        "pilots, one in every cockpit, but nobody has the usual plane. The tower works on one of {c} frequencies "
        "today. How many states of affairs, in terms of pilots, planes and frequency, could there be?",
        "Place {a} identical rooks on a board of {a} by {a} squares such that no two share a row or a column and the "
        "diagonal from the top left to the bottom right square stays empty. Then label the position with one of {c} "
        "letters. Positions that are turned or mirrored count as different. How many labelled positions exist?",
        "{a} ghosts haunt {a} castles, one ghost to a castle. On Halloween they move house: each castle again has "
        "exactly one of them, but no ghost haunts the castle of before. The news is spread by one of {c} owls. In how "
        "many ways can the new homes and the owl be chosen?",
        "On Monday {a} rowers filled the {a} seats of a boat. On Tuesday the same rowers fill the same seats, yet no "
        "rower keeps the Monday seat, and the boat is steered by one of {c} coxswains, none of whom rows. How many "
        "line-ups, seats and coxswain considered, could Tuesday see?",
    ),
)
def derangement_and_choice(a: int, c: int) -> Worked:
    """Derangements times an independent choice."""
    answer = DERANGEMENTS[a] * c
    return Worked(
        answer,
        "Arrangements with nothing in its own place are derangements. Their numbers follow D(n) = (n - 1) * "
        "(D(n - 1) + D(n - 2)): D(2) = 1, D(3) = 2, D(4) = 9, D(5) = 44, D(6) = 265. An independent choice multiplies. "
        f"D({a}) * {c} = {DERANGEMENTS[a]} * {c} = {answer}.",
    )


@family(
    DOMAIN,
    space=((n, m) for n, m in product(range(7, 22), range(2, 6)) if n > 2 * m and steps(n, m)[n] <= 1000),
    wordings=(
        "A staircase has {n} steps. With each stride Eli takes either 1 step or {m} steps. In how many ways can he "
        "get to the top?",
        "A strip of {n} unit squares is to be covered by single squares and by bars of {m} squares. How many "
        "coverings are there?",
        "How many ordered sums have the value {n}, if every summand is 1 or {m}?",
        "A ticket machine takes 1-euro coins and {m}-euro coins. For a fare of {n} euros, paid exactly, count the "
        "orders in which the coins may go in. Coins of the same value are alike.",
        "A rhythm of {n} beats consists of short notes, which last one beat, and long notes, which last {m} beats. "
        "Find the number of possible rhythms.",
        "Bikes take up 1 metre of a kerb and vans {m} metres. The kerb of {n} metres is parked full without gaps. "
        "Seen from afar, all bikes look alike and all vans too. How many different views can there be?",
        "A television channel fills a break of {n} minutes exactly, using just two adverts. One lasts a minute, the "
        "other {m} minutes. Either may be shown any number of times or not at all. How many different running orders "
        "can fill the break?",
        "Flat toy blocks are one inch high, tall toy blocks {m} inches, and those of equal height are identical. A "
        "child stacks blocks into a single tower, perhaps of just one sort. Count the different towers, from bottom "
        "to top, with a total height of {n} inches.",
        "A garden bed is cultivated for {n} weeks without a pause. Cress occupies it for one week at a time, spinach "
        "for {m} weeks, and any crop may come after any, itself included; a plan with just cress or just spinach is "
        "fine if it works out. How many sequences of crops use up the time exactly?",
        "From every integer t two arrows lead away, one to t + 1 and one to t + {m}. By how many different chains of "
        "arrows can a traveller go from 0 to {n}?",
        "{n} skiers wait in a queue and always keep their order. A gondola goes up with either one skier or {m} skiers "
        "from the front of the queue, one gondola after another, until nobody is left. How many sequences of gondola "
        "loads are possible?",
        "Olga reads a novel of {n} chapters from start to finish without skipping any. On each evening of her reading "
        "she gets through either a single chapter or {m} successive chapters. In how many ways can the novel be split "
        "up into evenings?",
    ),
)
def steps_of_one_or_more(n: int, m: int) -> Worked:
    """Recursion by the last step."""
    ways = steps(n, m)
    return Worked(
        ways[n],
        f"Look at the last part: it is 1 or {m}, so W(n) = W(n - 1) + W(n - {m}), with W(0) to W({m - 1}) equal to 1. "
        f"From W({m}) on this gives {', '.join(map(str, ways[m:]))}. So W({n}) = {ways[n]}.",
    )


@family(
    DOMAIN,
    space=product(range(2, 10), range(3, 10)),
    wordings=(
        "A grid has {a} rows and {b} columns of small squares. How many rectangles of any size, squares included, are "
        "formed by its lines?",
        "A big window is made of {a} by {b} panes. A cleaner wipes a rectangular patch of whole panes, from a single "
        "pane up to the entire window. How many patches could this be?",
        "A theatre with {a} rows of {b} seats sells seats in blocks. A block is some rows in succession and, in each, "
        "the same seats in succession. One seat is a block, and so is the whole house. How many blocks exist?",
        "In a table with {a} lines and {b} columns, a region is given by its first and last line and its first and "
        "last column, where first and last may coincide. Count the regions.",
        "{a} parallel strips lie side by side. They cross {b} other parallel strips, also side by side, at right "
        "angles. How many rectangles have all four sides on borders of strips?",
        "A school plan has {a} days with {b} lessons each. A project takes the same unbroken run of lessons on one "
        "day or on several days in a row. Find the number of ways to place a project.",
        "A digital photo is {a} pixels high and {b} pixels wide. Cropping keeps an upright rectangle of full pixels, "
        "at least one pixel and at most the complete photo. Crops count as different if they differ in size or "
        "position. How many crops can be made?",
        "Water use was metered on all {a} floors of an office block during {b} months. A report covers one floor or "
        "several adjacent floors, possibly all, over one month or several consecutive months, possibly all. Find how "
        "many reports with different coverage could be written.",
        "Determine the number of quadruples (p, q, r, s) of positive integers that satisfy p <= q <= {a} and r <= s <= "
        "{b}.",
        "Strings divide an excavation site into square plots, {a} from north to south and {b} from west to east. A "
        "team of archaeologists may be granted any rectangle that is made up of undivided plots, be it a lone plot or "
        "the total site. Grants of equal shape in different places are different. Among how many grants can the "
        "director choose?",
        "A bar of chocolate is scored into {a} rows of {b} pieces. On the wrapper Dieter outlines his share, a "
        "rectangle whose sides follow the scores or the rim; it could be as small as one piece or as big as the bar. "
        "How many outlines, in all sizes and positions, are there to choose from?",
        "Let I be a nonempty set of consecutive integers between 1 and {a}, and let J be a nonempty set of consecutive "
        "integers between 1 and {b}. The limits may belong to the sets, and a set with a single integer is permitted. "
        "How many pairs (I, J) exist?",
    ),
)
def rectangles_in_grid(a: int, b: int) -> Worked:
    """Choose two lines in each direction."""
    x, y = comb(a + 1, 2), comb(b + 1, 2)
    return Worked(
        x * y,
        "A rectangle is fixed by two different lines in each direction, and there is one line more than gaps. "
        f"C({a + 1}, 2) = {x} and C({b + 1}, 2) = {y}. {x} * {y} = {x * y}.",
    )


@family(
    DOMAIN,
    space=product(range(4, 9), range(4, 9), (2, 3)),
    wordings=(
        "{n} different letters are put into {m} different boxes so that exactly {k} of the boxes get any. In how many "
        "ways can this be done?",
        "How many words of length {n} over an alphabet of {m} letters contain exactly {k} different letters?",
        "Each of {n} children picks one of {m} kinds of ice cream. In the end just {k} kinds have been picked by "
        "anyone. In how many ways can the children have chosen?",
        "A spinner with {m} fields is spun {n} times, and the fields are noted in order. Count the lists in which {k} "
        "of the fields occur and the others do not.",
        "{n} hikers reach a village with {m} inns, and each of them takes a bed in one of the inns. That night "
        "precisely {k} inns have hikers in them. In how many ways can the hikers, all different people, have spread?",
        "A painter has one sealed tin each of {m} colours. She paints {n} numbered fence posts, every post in a "
        "single colour, and opens {k} tins in doing so. How many looks of the fence are possible?",
        "{n} swallows, each with a numbered ring, fly south, and each spends the winter in one of {m} countries. It "
        "turns out that exactly {k} of the countries have received any of these swallows. Counting which bird went "
        "where, how many possibilities fit this?",
        "On each of {n} trips a driver listened to one of {m} radio stations. Her log gives the station for every "
        "trip in order, and there are exactly {k} different stations in it. What is the number of logs like that?",
        "How many functions from a set with {n} elements into a set with {m} elements have an image of exactly {k} "
        "elements?",
        "{n} people enter a lift on the ground floor, and everyone gets off at one of the {m} floors above. The lift "
        "halts at exactly {k} of these floors, and it halts only where somebody gets off. How many possibilities are "
        "there for who gets off where?",
        "An electrician connects {n} different lamps, each of them to one of {m} numbered fuses. A fuse can bear any "
        "number of lamps. When she is through, there are exactly {k} fuses with something connected to them. In how "
        "many ways can she have connected the lamps?",
        "Each of {n} named planets is claimed by one of {m} rival empires. How many star maps, showing whose planet is "
        "whose, are there on which {k} empires, neither more nor fewer, hold at least one planet?",
    ),
    test_only=True,
)
def exactly_so_many_used(n: int, m: int, k: int) -> Worked:
    """Choose which are used, then take off the ways that leave one out."""
    onto = 2**n - 2 if k == 2 else 3**n - 3 * 2**n + 3
    way = f"2^{n} - 2 = {onto}" if k == 2 else f"3^{n} - 3 * 2^{n} + 3 = {onto}"
    return Worked(
        comb(m, k) * onto,
        f"First choose which {k} are used: C({m}, {k}) = {comb(m, k)}. To use all of them, take all ways and subtract "
        f"those that leave one out, adding back those that leave out two: {way}. {comb(m, k)} * {onto} = "
        f"{comb(m, k) * onto}.",
    )


@family(
    DOMAIN,
    space=((n, k) for n in range(5, 15) for k in range(2, n - 1)),
    wordings=(
        "{n} straight lines are drawn in the plane. {k} of them are parallel to one another, no other two are "
        "parallel, and no three pass through one point. Into how many regions do they divide the plane?",
        "A round cake gets {n} straight cuts from edge to edge. {k} of these do not meet one another, but all other "
        "pairs of cuts cross inside the cake, and never do three cross in one point. How many pieces are there?",
        "{n} endless straight roads lead through a desert. {k} of them run due north, the others in directions that "
        "occur only once, and at no crossroads do more than two meet. How many areas do the roads separate?",
        "Over a square field {n} strings are stretched tight from border to border. Any two cross, except for {k} "
        "strings that keep clear of one another. Nowhere do three cross. What is the number of parts of the field?",
        "A pane of glass has {n} straight cracks that all go from rim to rim. {k} of the cracks have no point in "
        "common with one another. All other pairs do cross on the pane, each pair at a place of its own. How many "
        "splinters is that?",
        "In a flat picture of the sky {n} vapour trails run straight across from frame to frame. Among them are {k} "
        "side by side that never touch each other, while every other two intersect, no three at once. Find the number "
        "of patches of sky.",
        "Across a circular island run {n} straight borders, each from coast to coast. A certain {k} of the borders "
        "never meet one another. Every other pair of borders crosses inside the island, and no place lies on more "
        "than two borders. How many territories do they mark off on the island?",
        "A sheet of paper, folded several times and opened again, shows {n} straight creases from edge to edge. {k} "
        "of the creases are parallel to one another. Any two that are not both among these intersect within the "
        "sheet, and all intersection points are distinct. Count the faces into which the creases divide the sheet.",
        "Skaters have left {n} straight tracks on a circular rink, each running from one side of it to the other. "
        "There is a group of {k} tracks in which no track touches another. All remaining pairs of tracks cross on the "
        "ice, and no spot of it belongs to three tracks. How many zones of ice do the tracks separate?",
        "The graphs of {n} different linear functions of x are plotted in a coordinate system. {k} of the functions "
        "share the same slope, each of the others has a slope that no other function has, and no three graphs have a "
        "common point. If all points of the graphs are removed from the plane, how many connected components remain?",
        "Seen from above, {n} laser beams run straight from wall to wall across a round dance floor. A certain {k} of "
        "the beams never cross each other. All pairs of beams that are not formed from those {k} do cross above the "
        "floor, and nowhere in this view do three beams meet. Into how many sections do the beams divide the floor?",
        "A tailor draws {n} straight chalk lines on an oval cloth, each reaching from border to border. No two lines "
        "of a particular set of {k} meet anywhere on the cloth. Every other pair of lines does meet inside it, and no "
        "two pairs meet at one point. He then cuts along all the lines; how many scraps does he get?",
    ),
    test_only=True,
)
def pieces_by_lines(n: int, k: int) -> Worked:
    """One piece, one more for each line and one more for each crossing."""
    crossings = comb(n, 2) - comb(k, 2)
    return Worked(
        1 + n + crossings,
        f"Each line adds one piece, and each crossing adds one more. All pairs of lines cross but those of the {k}: "
        f"C({n}, 2) - C({k}, 2) = {comb(n, 2)} - {comb(k, 2)} = {crossings} crossings. 1 + {n} + {crossings} = "
        f"{1 + n + crossings}.",
    )


FAMILIES = (
    two_blocks,
    none_adjacent,
    stars_and_bars,
    shares_with_minimum,
    divisible_by_either,
    exactly_one_of_two,
    paths_via_point,
    both_groups_represented,
    chosen_for_a_circle,
    repeated_letters,
    at_least_one_special,
    derangement_and_choice,
    steps_of_one_or_more,
    rectangles_in_grid,
    exactly_so_many_used,
    pieces_by_lines,
)
