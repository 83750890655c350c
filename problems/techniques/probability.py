"""Probability: complements, draws without replacement, conditions, waiting times and expected values."""

from fractions import Fraction
from itertools import product
from math import comb, gcd, perm

from problems.family import Worked, family

DOMAIN = "probability"
CHANCES = tuple((a, b) for b in range(3, 9) for a in range(1, b) if gcd(a, b) == 1)
"""Reduced fractions strictly between 0 and 1, as numerator and denominator."""


@family(
    DOMAIN,
    space=((a, b, n) for (a, b), n in product(CHANCES, (2, 3, 4)) if b**n <= 700),
    wordings=(
        "A machine breaks down on any given day with probability {a}/{b}, independently of other days. What is the "
        "probability that it breaks down at least once in {n} days? Give a fraction in lowest terms.",
        "{n} seeds are sown. Each sprouts with probability {a}/{b}, whatever the others do. Find the probability that "
        "anything sprouts at all, as a reduced fraction.",
        "An archer's arrows hit with chance {a}/{b} each, and one shot does not affect the next. She shoots {n} "
        "arrows. How likely is it that the target has a hole afterwards? Answer with a fraction in lowest terms.",
        "In a huge lottery {a} out of every {b} tickets win, so that single tickets count as independent. Nora buys "
        "{n}. With which probability does she not go home with blanks only? State a fully cancelled fraction.",
        "Let {n} independent events have probability {a}/{b} each. Compute the probability of their union as a "
        "fraction in lowest terms.",
        "Any one of {n} smoke detectors notices a fire with probability {a}/{b}, without help from the others. A "
        "single one is enough to start the alarm. What is the chance of an alarm, as a simplified fraction?",
        "A castaway throws {n} bottles into the sea, all with the same message. Each bottle is found with probability "
        "{a}/{b}, regardless of the fate of the others. What is the probability that his message is found? Give a "
        "fraction in lowest terms.",
        "A goalkeeper saves any penalty with chance {a}/{b}, independently of all earlier ones. On Sunday he faces "
        "{n} penalties. How likely is it that he saves at least one of them? Write a reduced fraction.",
        "A poet submits a sonnet to {n} magazines at once. Every editor accepts it with probability {a}/{b}, and no "
        "editor's decision depends on another's. Determine the probability, in lowest terms, that it appears in one or "
        "more of the magazines.",
        "On its nightly round a fox sniffs at {n} henhouses. Each of these has been left unbolted with chance {a}/{b}, "
        "independently of its neighbours. How probable is it that the fox finds any of them unbolted? Reduce the "
        "fraction.",
        "A courier has {n} mountain passes ahead of her, one beyond the other. Snow blocks each pass with probability "
        "{a}/{b}, independently of the rest. What is the probability, in lowest terms, that some pass on her route is "
        "blocked?",
        "A chain of {n} fairy lights goes dark as soon as any bulb in it is dead. During the summer each bulb dies "
        "with probability {a}/{b}, and the bulbs die independently. All bulbs were fine in spring; how probable is a "
        "dark chain in autumn? Give the answer as a reduced fraction.",
    ),
)
def at_least_one_success(a: int, b: int, n: int) -> Worked:
    """One minus the probability of none."""
    none = Fraction(b - a, b) ** n
    return Worked(
        1 - none,
        "At least one is the opposite of none, so subtract the probability of no success from 1. "
        f"One try fails with 1 - {a}/{b} = {Fraction(b - a, b)}, all {n} fail with {none}. 1 - {none} = {1 - none}.",
    )


@family(
    DOMAIN,
    space=((r, w) for r, w in product(range(3, 12), range(3, 12)) if (r + w) % 5 and r != w),
    wordings=(
        "Two socks are pulled blindly from a drawer with {r} grey and {w} brown socks, and none is put back. What is "
        "the probability that they differ in colour? Give a fraction in lowest terms.",
        "A club of {r} sailors and {w} rowers draws lots for a president and then, among the rest, for a deputy. How "
        "likely is it that one of the two sails and the other rows? Answer with a reduced fraction.",
        "Otto eats two biscuits at random from a tin of {r} plain and {w} filled ones. Find the probability that he "
        "has had one of either sort, as a fraction in lowest terms.",
        "Face down lie {r} vowel tiles and {w} consonant tiles. You turn over two of them. With which probability do "
        "a vowel and a consonant come to light? Use a fully cancelled fraction.",
        "From a set of {r} odd and {w} even integers two different members are picked at random. What is the chance, "
        "as a simplified fraction, that their sum is odd?",
        "{r} charged and {w} empty batteries got mixed up. Two go into a torch, chosen by accident. Compute the "
        "probability that precisely one of them is empty, in the form of an irreducible fraction.",
        "A vet examines two animals of a herd of {r} goats and {w} sheep. Any two animals are equally likely to be "
        "chosen. Find the probability, as a reduced fraction, that she examines a goat and a sheep.",
        "A playlist of {r} slow and {w} fast songs is shuffled, so that each song is played once. What is the chance "
        "that just one of the opening two songs is slow? Write a fraction in lowest terms.",
        "A graph has {r} vertices on its left and {w} vertices on its right, with an edge between two vertices exactly "
        "when they are on opposite sides. Two distinct vertices are selected uniformly. Determine, as a fraction in "
        "lowest terms, the probability that an edge connects them.",
        "The wind snatches two envelopes out of a postman's bag with {r} airmail envelopes and {w} ordinary ones, all "
        "pairs being equally probable. How probable is it that the bag has lost an envelope of each class? Reduce the "
        "fraction.",
        "{r} students and {w} pensioners apply for two attic rooms, and lots decide which two of them move in. How "
        "likely are a student and a pensioner to become neighbours up there? Give a fraction in lowest terms.",
        "Of the {r} glasses of wine and {w} glasses of beer on his tray, a clumsy waiter drops two, and any two are as "
        "likely to fall as any others. Find the probability that the fallen glasses did not contain the same drink, as "
        "a reduced fraction.",
    ),
)
def one_of_each(r: int, w: int) -> Worked:
    """Both orders count, and the second draw has one thing less."""
    n = r + w
    answer = Fraction(2 * r * w, n * (n - 1))
    return Worked(
        answer,
        "Without replacement the second draw has one thing less, and the two kinds can come in two orders. "
        f"2 * {r}/{n} * {w}/{n - 1} = {2 * r * w}/{n * (n - 1)}. In lowest terms this is {answer}.",
    )


@family(
    DOMAIN,
    space=((r, w) for r, w in product(range(3, 12), range(2, 10)) if (r + 2 * w) % 4),
    wordings=(
        "Two cards are dealt at random from a pack of {r} aces and {w} kings. You learn that at least one of them is "
        "an ace. Given this, what is the probability that both are aces? Give a fraction in lowest terms.",
        "A teacher picks two pupils by lot from {r} girls and {w} boys and reveals only that they are not both boys. "
        "How likely is it then that they are both girls? Answer with a reduced fraction.",
        "Out of a crate with {r} ripe and {w} unripe melons two are taken by chance, and the number of ripe ones "
        "taken is known not to be zero. Find the probability that it is two, as a fraction in lowest terms.",
        "A hat holds {r} winning tickets and {w} blanks. Two tickets are drawn. Asked whether any of them wins, a "
        "truthful witness says yes. With which probability do the two win under this condition? Cancel the fraction "
        "fully.",
        "Two different members of a set with {r} primes and {w} composites are chosen at random. Let A be the event "
        "that some prime is chosen, B that only primes are chosen. Compute P(B | A) as an irreducible fraction.",
        "Two buses, drawn by lot from {r} electric and {w} diesel buses, leave the depot. The dispatcher rules out "
        "that they are two diesel buses. What chance remains, as a simplified fraction, of two electric ones?",
        "A net brings up two fish at random from a pond with {r} trout and {w} carp. All that is known is that the "
        "catch is not carp alone. With which probability is it trout alone? Use a reduced fraction.",
        "An inn lets a family have two of its free rooms by lot. {r} free rooms face the sea, {w} face the yard. "
        "Compute the conditional probability that both their rooms face the sea, given that one or both do. Write an "
        "irreducible fraction.",
        "A jeweller's tray contains {r} genuine and {w} fake rings. A burglar grabs two of them blindly, and the "
        "jeweller finds out that he did not get away with fakes only. Knowing no more than this, how probable is it "
        "that he got no fake at all? Express it as a fraction in lowest terms.",
        "Across a river there are {r} stone bridges and {w} wooden bridges. Lots decide which two of them are closed "
        "for repair. Assuming that the number of closed stone bridges is not zero, determine the probability that "
        "every wooden bridge stays open, as a reduced fraction.",
        "A crew of two for a moon flight is drawn by lot from {r} pilots and {w} engineers, nobody being both. A "
        "leaked memo says that the crew does not consist of engineers only, and it says no more. On that basis, how "
        "likely is a crew of pilots only? Give the fraction in lowest terms.",
        "From {r} sopranos and {w} altos two voices are chosen by lot for a duet. The programme promises merely that "
        "the duet will not be without a soprano, which is true. Knowing this and nothing else, what is the probability "
        "that it will be without an alto? State a reduced fraction.",
    ),
)
def given_at_least_one(r: int, w: int) -> Worked:
    """Count the pairs of the condition, then the favourable ones among them."""
    both, some = comb(r, 2), comb(r, 2) + r * w
    return Worked(
        Fraction(both, some),
        "A condition leaves only the cases in which it holds, so divide the favourable pairs by the pairs that remain. "
        f"C({r}, 2) = {both} pairs are favourable, and {r} * {w} = {r * w} pairs have just one, so {some} remain. "
        f"{both}/{some} in lowest terms is {Fraction(both, some)}.",
    )


@family(
    DOMAIN,
    space=(
        (a, 100 - a, p, q)
        for a, p, q in product((20, 30, 40, 60, 70, 80), (2, 3, 5, 6, 9), (1, 4, 7, 8))
        if (a // 10 + p + q) % 2
    ),
    wordings=(
        "Machine A makes {a}% of all screws, machine B the other {b}%. {p}% of A's screws and {q}% of B's screws are "
        "faulty. A random screw is faulty. What is the probability that A made it? Give a fraction in lowest terms.",
        "The mail to a firm is {a} percent advertising and {b} percent letters. A filter flags {p} percent of the "
        "advertising and {q} percent of the letters. How likely is a flagged piece to be advertising? Use a reduced "
        "fraction.",
        "A resort has {a}% locals and {b}% visitors. {p}% of the locals and {q}% of the visitors own a boat. Somebody "
        "met there by chance owns one. Find the probability, as a fraction in lowest terms, of having met a local.",
        "Among 100 patients {a} have flu and {b} a cold. A rash shows in {p} of 100 flu cases and {q} of 100 colds. A "
        "patient comes in with a rash. With which probability is it flu? State a fully cancelled fraction.",
        "Exactly one of the events F and G occurs, with P(F) = {a}/100 and P(G) = {b}/100. Moreover P(E | F) = "
        "{p}/100 and P(E | G) = {q}/100. Compute P(F | E) as an irreducible fraction.",
        "Mona cycles to work on {a}% of days and takes the bus on the other {b}%. She is late on {p}% of cycling days "
        "and {q}% of bus days. Today she is late. What is the chance, as a simplified fraction, that she cycled?",
        "On a farm {a}% of the eggs come from brown hens and {b}% from white hens. {p}% of the brown hens' eggs and "
        "{q}% of the white hens' eggs have a double yolk. Your egg, taken at random, has one. How likely is it to be "
        "from a brown hen? Answer with a reduced fraction.",
        "At an alpine hut {a}% of days are sunny, the remaining {b}% cloudy. A marmot appears on {p}% of sunny days "
        "and on {q}% of cloudy days. Given that the marmot appeared on a randomly picked day, compute the probability "
        "of sun on that day, as a fraction in lowest terms.",
        "Ruiz writes {a}% of a newspaper's articles and Sato the remaining {b}%. There is a misprint in {p}% of the "
        "articles by Ruiz and in {q}% of those by Sato. An article selected at random contains a misprint. Determine "
        "the probability that it is by Ruiz, as a reduced fraction.",
        "In a shop that hires out violins, {a}% of the stock is antique and {b}% modern. {p}% of the antique and {q}% "
        "of the modern instruments have a warped neck. Somebody grabs an instrument blindly, and its neck is warped. "
        "How probable is it, in lowest terms, that the instrument is antique?",
        "Of the calls that reach a fire station, {a}% come from the old town and {b}% from the port. The share of "
        "false alarms is {p}% in calls from the old town and {q}% in calls from the port. One call, singled out at "
        "random, proves to be a false alarm. What is the probability, as a fraction in lowest terms, that it came from "
        "the old town?",
        "In a buried hoard {a}% of the coins were struck in Rome, {b}% in Gaul. Damage to the rim is found on {p}% of "
        "the coins from Rome and on {q}% of the coins from Gaul. A coin picked at random from the hoard has a damaged "
        "rim; how probable is it that Rome is its origin? Write a reduced fraction.",
    ),
)
def bayes_two_sources(a: int, b: int, p: int, q: int) -> Worked:
    """Weigh each source by its share times its rate."""
    x, y = a * p, b * q
    answer = Fraction(x, x + y)
    return Worked(
        answer,
        "Each source contributes its share times its rate, and the wanted probability is its part of the total. "
        f"{a} * {p} = {x} and {b} * {q} = {y}, together {x + y}. {x}/{x + y} in lowest terms is {answer}.",
    )


@family(
    DOMAIN,
    space=((a, b, n) for (a, b), n in product(CHANCES, (2, 3, 4)) if b**n <= 700),
    wordings=(
        "A biased coin lands heads with probability {a}/{b}. What is the probability that heads comes for the first "
        "time on toss number {n}? Give a fraction in lowest terms.",
        "At every cast an angler gets a bite with chance {a}/{b}, no matter what happened before. How likely is it "
        "that cast number {n} is the first to bring a bite? Answer with a reduced fraction.",
        "Each job jams a copier with probability {a}/{b}, independently. Find the probability that all jobs before "
        "job {n} run smoothly and job {n} jams, as a fraction in lowest terms.",
        "To enter the board, a player must roll one of the {a} lucky faces of a fair die with {b} faces, with one "
        "roll per turn. With which probability does the player enter in turn {n} and not earlier? Cancel the fraction "
        "fully.",
        "For independent trials with success probability {a}/{b}, let X be the number of the trial that first "
        "succeeds. Compute P(X = {n}) as an irreducible fraction.",
        "A radio host dials random numbers. A call is answered with chance {a}/{b}, each independent of the rest, and "
        "he stops at the first answer. What is the chance, as a simplified fraction, that he dials {n} times in all?",
        "At a border each car is searched with probability {a}/{b}, independently of the other cars. Cars pass in "
        "single file. Find the probability, as a reduced fraction, that car number {n} of the morning is searched "
        "while none ahead of it was.",
        "Over an observatory any night is clear with chance {a}/{b}, and nights do not influence one another. An "
        "astronomer leaves right after her first clear night. How likely is a stay of exactly {n} nights? Write a "
        "fraction in lowest terms.",
        "A beekeeper inspects hives one after another. Each hive has mites with probability {a}/{b}, whatever the "
        "state of the others. Determine the probability that hive number {n} is the earliest in which she discovers "
        "mites, as a reduced fraction.",
        "Inside a geode there are crystals with chance {a}/{b}, independently for every geode. A collector splits "
        "geodes until crystals sparkle in one, then puts down the hammer. How probable is it that he ends up having "
        "split exactly {n} of them? Express it as a fraction in lowest terms.",
        "Every night a mouse tiptoes past a cat. The cat wakes up with probability {a}/{b} each time, irrespective of "
        "all other nights. Counting nights from the beginning, what is the probability that night number {n} is the "
        "first on which the cat wakes up? Give a fraction in lowest terms.",
        "Week after week a newspaper receives a poem by the same unknown woman and prints it with probability {a}/{b}, "
        "regardless of what became of her other poems. Determine, as a reduced fraction, the probability that her "
        "debut in print falls in week number {n}.",
    ),
)
def first_success_at(a: int, b: int, n: int) -> Worked:
    """Failures first, then a success."""
    answer = Fraction(b - a, b) ** (n - 1) * Fraction(a, b)
    return Worked(
        answer,
        "The first success at a given try means failures at all tries before it and then a success, so multiply. "
        f"A failure has probability {Fraction(b - a, b)}, and {n - 1} come first. "
        f"({Fraction(b - a, b)})^{n - 1} * {a}/{b} = {answer}.",
    )


@family(
    DOMAIN,
    space=(
        (a, b, c)
        for (a, b), c in product(CHANCES, range(2, 16))
        if c * b % a == 0 and b <= 7 and (b + c) % 2 and a + b < 12
    ),
    wordings=(
        "Each try at a slot game costs {c} coins and wins with probability {a}/{b}, independently. You play until "
        "your first win. How many coins do you spend on average?",
        "An engine starts with chance {a}/{b} at each ignition, and each ignition burns {c} g of fuel. Ignitions go "
        "on until it starts. What is the expected amount of fuel burnt, in grams, the last ignition included?",
        "A seller needs {c} minutes per house and sells something at any house with probability {a}/{b}, whatever "
        "happened before. Find the expected number of minutes up to the end of the visit with his first sale.",
        "{a} of the {b} faces of a fair die are gold. A player rolls until gold comes up and moves {c} fields for "
        "every roll, also for the golden one. How many fields is that in the long-run mean?",
        "X counts independent trials up to and including the first success, where a trial succeeds with probability "
        "{a}/{b}. Compute the expected value of {c}X.",
        "Crossing two plants gives a blue flower with probability {a}/{b} and uses up {c} seeds. A breeder repeats "
        "the crossing as often as it takes to see blue. What is the mean consumption of seeds?",
        "A learner passes the driving test with probability {a}/{b} at any attempt, independently of earlier "
        "attempts. The fee is {c} crowns per attempt, passed or not. He goes on until he passes. What total of fees, "
        "in crowns, must he reckon with on average?",
        "Every borehole is {c} metres deep and strikes water with chance {a}/{b}, independently of the others. New "
        "holes are drilled, one at a time, as long as there is no water. Find the expected number of metres drilled, "
        "successful hole included.",
        "A founder pours {c} kg of fresh bronze for every bell that she casts. A bell turns out flawless with "
        "probability {a}/{b}, whatever became of the others, and she repeats the casting until it does. How many "
        "kilograms does she pour on average, the flawless bell included?",
        "A salmon leaps at a weir again and again until it is over. Each leap takes it {c} seconds, with no pause "
        "between leaps, and carries it over with chance {a}/{b}, independently of the rest. Determine the mean "
        "duration of its leaping in seconds, final leap included.",
        "Each attempt to lure a donkey across a bridge takes {c} carrots, which the donkey eats in any case. An "
        "attempt works with probability {a}/{b}, no matter how many have failed, and the attempts go on until one "
        "works. What is the mean number of carrots eaten, those of the working attempt among them?",
        "A space probe radios a picture of {c} megabytes to Earth again and again until it has arrived intact. Every "
        "transmission is complete and arrives intact with chance {a}/{b}, independently of the others. Determine the "
        "expected number of megabytes radioed, the intact transmission included.",
    ),
)
def expected_cost_until_success(a: int, b: int, c: int) -> Worked:
    """The mean number of tries is the reciprocal of the probability."""
    return Worked(
        c * b // a,
        "The expected number of tries up to the first success is 1 divided by the success probability, here "
        f"{Fraction(b, a)}. Multiply by what one try takes: {c} * {b} / {a} = {c * b // a}.",
    )


@family(
    DOMAIN,
    space=((m, w) for m, w in product(range(3, 46), range(3, 46)) if m != w and 2 * m * w % (m + w) == 0),
    wordings=(
        "{m} black and {w} white counters are laid in a row in random order. What is the expected number of "
        "neighbouring pairs that show two colours?",
        "{m} girls and {w} boys queue in an order fixed by lot. A gap between two people in succession is mixed if it "
        "separates a girl and a boy. How many mixed gaps are there on average?",
        "A deck of {m} red and {w} blue cards is shuffled and dealt face up, one by one. Find the mean number of "
        "times that the colour changes from one card to the next.",
        "All strings of {m} zeros and {w} ones are equally likely. Compute the expected number of places where a "
        "digit is followed by the other digit.",
        "{m} tulip bulbs and {w} lily bulbs get mixed up and are planted blindly in a line. A bee visits the flowers "
        "along the line. How often, in expectation, does it fly from a tulip to a lily or the reverse?",
        "A teacher calls up {m} juniors and {w} seniors, each once, every sequence having the same chance. A switch "
        "is a call to the other age group than the call before. How many switches are there in the long-run mean?",
        "A pastry cook sets {m} plum tarts and {w} cheese tarts side by side on a long tray, every arrangement having "
        "an equal chance. He sticks a paper flag between two adjacent tarts whenever they are unlike. How many flags "
        "does he need on average?",
        "A festival shows {m} silent films and {w} sound films on a single screen, one by one, in a sequence drawn by "
        "lot. Between two films the loudspeakers must be turned on or off if the next film is of the other type. How "
        "often is this done on average?",
        "A lattice path takes {m} unit steps to the east and {w} unit steps to the north, all such paths being equally "
        "probable. What is the expected number of turns, that is, of lattice points where the path alters its "
        "direction?",
        "{m} freight wagons and {w} passenger coaches are coupled into one train, and chance alone settles their "
        "sequence. Hooks between a wagon and a coach are painted orange, all further hooks are left plain. How many "
        "orange hooks does such a train have on average? (The engine is not counted.)",
        "{m} passengers with a full fare and {w} passengers with a reduced fare board a bus singly, all orders of "
        "boarding being equally likely. The driver presses a key whenever the fare differs from that of the passenger "
        "just before; for the passenger who boards first the machine is already set. How often is the key pressed on "
        "average?",
        "{m} speakers support a motion and {w} speakers oppose it. Each of them talks once, in an order drawn at "
        "random, and a gong sounds whenever a speaker takes the opposite side to the speaker immediately before. Find "
        "the expected number of gong sounds.",
    ),
)
def expected_changes(m: int, w: int) -> Worked:
    """Expected values add up over the neighbouring pairs."""
    n = m + w
    answer = 2 * m * w // n
    return Worked(
        answer,
        "Expected values add up, even for dependent events. Each neighbouring pair is mixed with probability "
        f"2 * {m} * {w} / ({n} * {n - 1}), and there are {n - 1} such pairs. "
        f"So the expected number is 2 * {m} * {w} / {n} = {answer}.",
    )


@family(
    DOMAIN,
    space=((r, w, k) for r, w, k in product(range(4, 13), range(3, 12), range(3, 8)) if k < r and (r + w - k) % 5 == 0),
    wordings=(
        "{r} winning and {w} losing tickets are drawn one after another without replacement, and nobody looks before "
        "the end. What is the probability that ticket number {k} drawn wins? Give a fraction in lowest terms.",
        "From a box with {r} good and {w} broken bulbs, bulbs are taken at random and laid aside untested. How likely "
        "is it that bulb number {k} to leave the box is good? Answer with a reduced fraction.",
        "{r} short straws and {w} long straws go round, and all who draw keep theirs hidden. You are drawer number "
        "{k}. Find the probability that yours is short, as a fraction in lowest terms.",
        "A pack of {r} hearts and {w} spades is well shuffled. With which probability is the card at position {k} "
        "from the top a heart? State a fully cancelled fraction.",
        "In a random ordering of {r} vowels and {w} consonants, what is the chance that place {k} belongs to a vowel? "
        "Simplify the fraction.",
        "{r} veterans and {w} rookies run onto the field in random order. Compute the probability, as an irreducible "
        "fraction, that runner number {k} is a veteran.",
        "The doors of a calendar are numbered from one upwards. Behind them {r} chocolates and {w} nuts are hidden at "
        "random, one thing behind every door. No door has been opened yet. How likely is a chocolate behind door {k}? "
        "Write a reduced fraction.",
        "The luggage of a small plane, {r} suitcases and {w} backpacks, comes onto the belt piece by piece in purely "
        "random order. Before it starts, what is the probability that piece number {k} will be a suitcase? Give a "
        "fraction in lowest terms.",
        "The gondolas of a Ferris wheel bear the numbers from one to {r} + {w}. Chance decides which {r} of them are "
        "painted red, every selection being equally probable, and the rest become blue. Determine the probability that "
        "gondola number {k} becomes red, in lowest terms.",
        "Somebody fills the column of a vending machine blindly with {r} cans of cola and {w} cans of lemonade. It "
        "releases them from bottom to top. Before the first one is sold, how probable is it that the buyer of can "
        "number {k} gets cola? Reduce the fraction.",
        "{r} dukes and {w} thieves arrive at a masked ball, one at a time and in purely random order, and no mask has "
        "been lifted yet. What is the probability that the guest who arrived as number {k} is a duke? Give a fraction "
        "in lowest terms.",
        "A bookbinder's apprentice glues {r} lined and {w} blank sheets into a pad, every arrangement being equally "
        "likely. Nobody has looked into the pad so far. How likely is it that sheet number {k} from the front is "
        "lined? Answer with a reduced fraction.",
    ),
)
def any_draw_is_like_the_first(r: int, w: int, k: int) -> Worked:
    """Unseen earlier draws change nothing."""
    answer = Fraction(r, r + w)
    return Worked(
        answer,
        "As long as the earlier draws are unknown, every position is as likely as the first to hold any given thing. "
        f"So position {k} has the same probability as position 1: {r} of {r + w}, which in lowest terms is {answer}.",
    )


@family(
    DOMAIN,
    space=((n, k) for n in range(4, 12) for k in range(2, n)),
    wordings=(
        "A fair coin is tossed {n} times. What is the probability of exactly {k} heads? Give a fraction in lowest "
        "terms.",
        "Each of {n} kittens is male or female with equal chances, independently. How likely is a litter with {k} "
        "males and no other number of males? Answer with a reduced fraction.",
        "Ravi guesses blindly on all {n} questions of a true-or-false test. Find the probability that {k} guesses, no "
        "more and no fewer, are right. Write it as a fraction in lowest terms.",
        "On its way through {n} rows of pegs a ball bounces left or right at each row, both equally likely. With "
        "which probability does it bounce right precisely {k} times? State a fully cancelled fraction.",
        "One of all subsets of a set with {n} elements is picked, each with the same chance. Compute the probability "
        "that it has {k} elements, as an irreducible fraction.",
        "Two equally strong players play {n} rounds without draws. What is the chance, as a simplified fraction, that "
        "the younger one has won {k} rounds when all are over?",
        "A house front has {n} shutters. Each is open or closed with the same chance, independently of the rest. Find "
        "the probability, as a reduced fraction, that the number of open shutters is {k}.",
        "All {n} guests order either soup or salad. Both are equally likely for every guest, and nobody is influenced "
        "by anybody. How likely is it that the cook must prepare exactly {k} soups? Write a fraction in lowest terms.",
        "A binary word of {n} digits is selected uniformly from all words of that length, leading zeros allowed. "
        "Determine, in lowest terms, the probability that the digit one occurs in it exactly {k} times.",
        "{n} moles pass the same fork in a tunnel. Every mole takes the western or the eastern branch with even odds, "
        "uninfluenced by the other moles. How probable is it that exactly {k} of them take the western branch? Express "
        "it as a reduced fraction.",
        "At sunrise each of {n} cocks crows or keeps silent, with equal chances and without regard to the other cocks. "
        "What is the probability that the farmer can hear {k} different cocks, no fewer and no more? Give a fraction "
        "in lowest terms.",
        "Let S be the sum of {n} independent random variables, which take the values 0 and 1 with probability 1/2 "
        "each. Compute P(S = {k}) as a reduced fraction.",
    ),
)
def exactly_so_many_heads(n: int, k: int) -> Worked:
    """Choose which tosses succeed, over all outcomes."""
    ways = comb(n, k)
    answer = Fraction(ways, 2**n)
    return Worked(
        answer,
        "All sequences of equal halves are equally likely, so choose which tries succeed and divide by the number of "
        f"sequences. C({n}, {k}) = {ways} and 2^{n} = {2**n}. {ways}/{2**n} in lowest terms is {answer}.",
    )


@family(
    DOMAIN,
    space=((s, n, m) for s, n in product((5, 6, 8, 9, 10, 12), (2, 3)) for m in range(2, s)),
    wordings=(
        "{n} fair dice with faces numbered 1 to {s} are thrown. What is the probability that the highest number shown "
        "is {m}? Give a fraction in lowest terms.",
        "A spinner stops at each number from 1 to {s} with the same chance. It is spun {n} times and the best result "
        "is kept. How likely is it that {m} is kept? Answer with a reduced fraction.",
        "{n} strangers enter a lift, and each gets out at one of the floors 1 to {s}, at random and independently. "
        "Find the probability that the lift has to go up to floor {m} and no higher, as a fraction in lowest terms.",
        "Numbers are drawn {n} times from 1, ..., {s}, with replacement. With which probability is {m} among them and "
        "nothing larger? State a fully cancelled fraction.",
        "Each of {n} judges awards 1 to {s} points, all point values equally likely, without knowing the others. What "
        "is the chance, as a simplified fraction, that the most generous award is {m}?",
        "Let X be the maximum of {n} independent variables, each uniform on the integers 1 to {s}. Compute P(X = {m}) "
        "as an irreducible fraction.",
        "{n} candles are lit together in a cellar without other light. Each burns for a whole number of hours from 1 "
        "to {s}, all equally likely, independently of the others. Find the probability that the cellar turns dark "
        "after exactly {m} hours, as a reduced fraction.",
        "Each of {n} children builds a tower of 1 to {s} blocks. Every size has the same chance, and the children act "
        "independently. How likely is it that the tallest tower, or each of them in a tie, has exactly {m} blocks? "
        "Write a fraction in lowest terms.",
        "{n} cousins travel separately to a reunion. Each arrives on one of the days from 1 to {s} of the month, all "
        "equally probable, independently, and stays on. The feast starts on the earliest day on which everybody is "
        "there. Determine the probability that it starts on day {m}, in lowest terms.",
        "In a sealed auction {n} bidders independently write down a whole amount of ducats between 1 and {s}, both "
        "included, any amount being as probable as any other. The painting is sold for the top amount written. How "
        "probable is a price of {m} ducats? Reduce the fraction.",
        "Near a volcano {n} gauges work independently. Each of them reads a whole number from 1 to {s}, all of these "
        "with the same chance, and the alert level of the day equals the largest reading. What is the probability that "
        "the alert level is {m}? Give a fraction in lowest terms.",
        "{n} pearls are fished. Pearls come in the sizes 1 to {s}, every size being equally likely for every pearl, "
        "independently. Cases are made in the same sizes and hold pearls of up to their own size, and the diver buys "
        "{n} cases of one size, the smallest in which every one of her pearls fits. How likely is it that this size is "
        "{m}? Write a reduced fraction.",
    ),
)
def largest_of_several(s: int, n: int, m: int) -> Worked:
    """At most m, without at most m - 1."""
    good = m**n - (m - 1) ** n
    answer = Fraction(good, s**n)
    return Worked(
        answer,
        "The largest is exactly m when all are at most m, but not all are at most m - 1. "
        f"{m}^{n} - {m - 1}^{n} = {good} of {s}^{n} = {s**n} outcomes. {good}/{s**n} in lowest terms is {answer}.",
    )


@family(
    DOMAIN,
    space=product(range(3, 11), range(3, 11)),
    wordings=(
        "Ines and Raj throw at a can in turns, Ines first. Ines hits with probability 1/{a} per throw, Raj with "
        "1/{b}. The first hit wins. What is the probability that Ines wins? Give a fraction in lowest terms.",
        "Two frogs jump by turns for a lily pad, green before brown. A jump of the green frog succeeds with chance "
        "1/{a}, one of the brown frog with 1/{b}. How likely is green to be there first? Answer with a reduced "
        "fraction.",
        "Programs X and Y attack a password alternately, starting with X. An attack by X works with probability "
        "1/{a}, one by Y with 1/{b}. Find the probability that X is the one to crack it, as a fraction in lowest "
        "terms.",
        "In a water-pistol duel the sheriff fires, then the bandit, and so on until somebody is wet. The sheriff hits "
        "one time in {a}, the bandit one time in {b}. With which probability does the bandit get wet? Cancel the "
        "fraction fully.",
        "Lea rolls a die with {a} faces, then Tom one with {b} faces, then Lea, and so on, all dice fair. Whoever "
        "first rolls a one gets the cake. What is the chance, as a simplified fraction, that Lea gets it?",
        "Odd-numbered trials succeed with probability 1/{a} and even-numbered trials with probability 1/{b}, "
        "independently. Compute the probability, as an irreducible fraction, that the first success has an odd "
        "number.",
        "A grandmother and her grandson try by turns to open a jar, and she begins. Each of her tries succeeds with a "
        "chance of one in {a}, each of his with one in {b}, whatever went before. They go on until it is open. Find "
        "the probability, as a reduced fraction, that she opens it.",
        "In a mine the day crew and the night crew dig in alternate shifts, the day crew first. A day shift strikes "
        "gold with a chance of one in {a}, a night shift with one in {b}, all independently. How likely is the "
        "earliest gold to be struck by the day crew? Write a fraction in lowest terms.",
        "Big and small waves roll alternately against a sandcastle, and the next wave is a big one. Any big wave has "
        "one chance in {a} of flattening it, any small wave one chance in {b}, independently, and they roll on until "
        "it is flat. Determine the probability, as a reduced fraction, that a big wave flattens it.",
        "Ivo and Ute share a fishing rod and cast alternately, beginning with Ivo, until there is a pike on the hook. "
        "Each of his casts has a chance of one in {a} to hook a pike, each of hers a chance of one in {b}, all "
        "independently. How probable is it that the pike is his? Express it in lowest terms.",
        "Two lawyers, Ms Kahl and Mr Voss, question a witness by turns, one question each, until the witness weeps; Ms "
        "Kahl begins. Any question of hers makes the witness weep with probability 1/{a}, any question of his with "
        "probability 1/{b}, independently of what came before. What is the probability, in lowest terms, that a "
        "question of Ms Kahl's does it?",
        "A piece of cheese lies on a windowsill. A crow has a go at it every morning and a magpie every evening until "
        "one of them carries it off, and the first to have a go is the crow. The crow's goes succeed with one chance "
        "in {a}, the magpie's with one chance in {b}, all independently. How probable is it that the crow gets the "
        "cheese? Reduce the fraction.",
    ),
)
def taking_turns(a: int, b: int) -> Worked:
    """After a round without success all is as at the start."""
    miss = Fraction(a - 1, a) * Fraction(b - 1, b)
    answer = Fraction(1, a) / (1 - miss)
    return Worked(
        answer,
        "After a round in which both fail everything is as at the start, so divide the first player's probability by "
        f"that of a round with some success. Both fail with {Fraction(a - 1, a)} * {Fraction(b - 1, b)} = {miss}. "
        f"1/{a} divided by 1 - {miss} = {1 - miss} is {answer}.",
    )


@family(
    DOMAIN,
    space=((n, j) for n in range(5, 13) for j in range(2, n - 1)),
    wordings=(
        "Every packet of cereal holds one of {n} pictures, all equally likely. Kim owns {j} of them. What is the "
        "expected number of further packets until she has two new pictures? Give a fraction in lowest terms or an "
        "integer.",
        "A fair die with {n} faces has shown {j} different faces so far. How many more rolls does it take on average "
        "until two further faces have been seen? Answer with a reduced fraction or a whole number.",
        "Each day a heron visits one of {n} ponds at random. It has been at {j} of them. Find the mean number of days "
        "from now until it has been at two others as well, as a fraction in lowest terms or an integer.",
        "Raindrops fall one by one on {n} tiles, each tile being hit with the same chance. {j} tiles are wet already. "
        "After how many more drops, in expectation, are there two wet tiles more? Write any fraction fully cancelled.",
        "Numbers from 1 to {n} are drawn with replacement, and {j} distinct ones have come up. Let T be the number of "
        "additional draws until two unseen ones have come. Compute E(T) as an irreducible fraction or an integer.",
        "At each lesson one of {n} pupils is called up by lot, and {j} of them have had a turn by now. What is the "
        "expected count of calls from now up to the one that gives a second newcomer a turn? Simplify any fraction.",
        "For each coin a machine at the fair prints one of {n} sayings, all equally likely every time. Emil already "
        "knows {j} of the sayings. How many more coins will he need on average until he knows two sayings more than "
        "now? Write a reduced fraction or a whole number.",
        "Every midnight a ghost haunts one room of a castle with {n} rooms, each room with the same chance, whatever "
        "came before. Up to now it has haunted {j} different rooms. How many further midnights does it need on "
        "average until it has haunted two of the other rooms too? Cancel any fraction fully.",
        "A jukebox on shuffle always selects from the same {n} tracks, uniformly and with repeats. So far a customer "
        "has heard {j} different tracks from it. Determine the expected count of plays still to come until his "
        "collection of heard tracks has grown by two, as a reduced fraction or an integer.",
        "For supper Gwen pulls a random recipe out of a box of {n} recipes, cooks it and puts it back. The box "
        "contains {j} recipes that she has cooked before, and she has never tried the others. After how many more "
        "suppers, on average, will she have tried two of those others? Give an integer or a fraction in lowest terms.",
        "Each Sunday a vicar draws one of {n} psalms for the choir, all of them being equally likely every time. Up to "
        "now the choir has sung {j} of them. How many further Sundays does it take, on average, until the choir has "
        "sung two psalms that it has not sung yet? Give an integer or a fraction in lowest terms.",
        "For breakfast a child picks one of {n} differently painted cups, each with the same chance, and by the next "
        "morning all cups are back on the shelf. It has already drunk from {j} of the cups. Determine the expected "
        "number of breakfasts from now until it has drunk from two cups more, as a reduced fraction or an integer.",
    ),
)
def two_new_kinds(n: int, j: int) -> Worked:
    """The waits for new kinds add up."""
    first, second = Fraction(n, n - j), Fraction(n, n - j - 1)
    return Worked(
        first + second,
        "A new kind comes with probability (missing kinds)/(all kinds), and the mean wait is the reciprocal. The waits "
        f"add up. First {n - j} of {n} are missing, a mean wait of {first}, then {n - j - 1}, a mean wait of {second}. "
        f"{first} + {second} = {first + second}.",
    )


@family(
    DOMAIN,
    space=((r, (r + 1) * t) for r, t in product(range(2, 10), range(2, 11)) if t + 1 != r and (r + 1) * t <= 60),
    wordings=(
        "A pack of {r} aces and {w} other cards is shuffled and turned over card by card. At which position does the "
        "first ace appear on average?",
        "{r} keys of a large bunch open the door, the other {w} do not. Keys are tried at random, none twice. How "
        "many tries are expected, counting the one that succeeds?",
        "From a box with {r} gold beads and {w} silver beads, beads are drawn without replacement until the first "
        "gold one. Find the expected number of draws.",
        "A reporter walks along a queue of {w} tourists and {r} locals, who stand in random order, and talks to each "
        "in turn until she has met a local. How many talks is that in the long-run mean?",
        "All orders of {r} vowels and {w} consonants have the same chance. Let X be the place of the leftmost vowel. "
        "Compute E(X).",
        "Under {r} of the cups on a long table there is a pea, and {w} cups are empty. A player lifts one cup after "
        "another by pure chance and stops at a pea. What is the mean number of cups lifted?",
        "A cook opens oysters in random order. There is a pearl in {r} of them and none in the other {w}. He stops as "
        "soon as he holds a pearl. What is the average number of oysters that he opens?",
        "A folder holds {r} signed and {w} unsigned letters, thoroughly mixed. An archivist numbers them from front "
        "to back, beginning with one. Find the expected value of the lowest number on a signed letter.",
        "Without a booking, a tourist telephones the hotels of a town in random order, each once at most. {r} of them "
        "have a room left, {w} are full. She hangs up for good after the earliest call that finds a room. Determine "
        "the expected number of calls, that one included.",
        "Of the integers from 1 to {r} + {w}, a random set of {r} is coloured green, all such sets being equally "
        "probable. What is the expected value of the smallest green integer?",
        "Of the records in a jukebox fan's cellar {r} are scratched and {w} are not. She plays them in random order, "
        "none twice, and loses patience at the first scratched one. What is the expected number of records that she "
        "puts on, the scratched one included?",
        "In front of a tunnel {r} lorries and {w} cars wait in one lane, all orders being equally likely. The vehicles "
        "are let in one by one, and right after the first lorry a barrier comes down. How many vehicles get in on "
        "average, that lorry included?",
    ),
)
def first_special_position(r: int, w: int) -> Worked:
    """The special things cut the others into equal parts on average."""
    part = w // (r + 1)
    return Worked(
        part + 1,
        "The special things cut the others into one more part than there are special things, and all parts have "
        f"the same mean length. {w} / ({r} + 1) = {part} others come before the first special one. "
        f"It is at position {part} + 1 = {part + 1}.",
    )


@family(
    DOMAIN,
    space=((n, k) for n, k in product(range(4, 32), (3, 4, 5)) if k <= n and n**k <= 33_000),
    wordings=(
        "{k} people each think of a number from 1 to {n} at random. What is the probability that at least two think "
        "of the same number? Give a fraction in lowest terms.",
        "{k} letters are thrown into {n} mailboxes, each independently into a random one. How likely is it that some "
        "mailbox receives more than one letter? Answer with a reduced fraction.",
        "A fair die with {n} sides is rolled {k} times. Find the probability that any side comes up repeatedly, as a "
        "fraction in lowest terms.",
        "By pure chance each of {k} travellers books one of {n} hotels. With which probability do they not all sleep "
        "in different hotels? State a fully cancelled fraction.",
        "A function from a set with {k} elements to a set with {n} elements is chosen, all functions being equally "
        "likely. Compute the probability that it is not injective, as an irreducible fraction.",
        "In a tree with {n} branches, {k} birds settle without regard to each other, every branch being equally "
        "likely for each. What is the chance, as a simplified fraction, that a branch is shared?",
        "At an ice cream stand with {n} flavours, each of {k} friends asks for a single scoop of a random flavour, "
        "independently of the others. Find the probability, as a reduced fraction, that two or more of the scoops "
        "taste alike.",
        "A spy sends {k} messages. For every message the cipher key is drawn anew from the same {n} keys, all equally "
        "likely. He is found out if, and only if, he uses a key again. How likely is he to be found out? Write a "
        "fraction in lowest terms.",
        "A festival lasts {n} days. Each of {k} critics attends on a single day, selected uniformly and without asking "
        "the others. Determine the probability that there is a day with two or more critics, in lowest terms.",
        "A word is formed from {k} letters of an alphabet of {n} letters, every letter of the word being selected "
        "uniformly and independently. How probable is it that the word contains a repeated letter? Express it as a "
        "reduced fraction.",
        "{k} painters each use a single tint out of the same {n}, picked uniformly and in ignorance of one another. "
        "The exhibition is a failure unless the tints of all the painters are different. How likely is a failure? Give "
        "a fraction in lowest terms.",
        "A locksmith sets up {k} safes. Each gets a code from a list of {n} codes, all equally likely, and the choice "
        "for one safe has no influence on that for another. Determine the probability, as a reduced fraction, that "
        "there are two safes or more with the same code.",
    ),
)
def some_match(n: int, k: int) -> Worked:
    """One minus the probability that all differ."""
    differ = Fraction(perm(n, k), n**k)
    return Worked(
        1 - differ,
        "Some match is the opposite of all different. "
        f"All differ with {' * '.join(str(n - i) for i in range(k))} = {perm(n, k)} out of {n}^{k} = {n**k} outcomes, "
        f"a probability of {differ}. 1 - {differ} = {1 - differ}.",
    )


@family(
    DOMAIN,
    space=((k, m) for k, m in product(range(3, 12), repeat=2) if k != m),
    wordings=(
        "Ada has {k} coins and Ben has {m}. They toss a fair coin again and again, and every time the loser of the "
        "toss gives the other a coin, until one of them has none. What is the expected number of tosses?",
        "A point starts at 0 on the number line and moves by one to the left or to the right with equal chances, "
        "until it is at -{k} or at {m}. How many moves does it make on average?",
        "A sleepwalker is on a pier, {k} steps from the water and {m} steps from the land. Each step goes towards "
        "either with probability 1/2. What is the mean number of steps until the walk ends in water or on land?",
        "Two equally strong teams pull a cart on rails, and each round moves it one metre towards the winner of the "
        "round. Team Red wins with the cart {k} metres on its side, team Blue with it {m} metres on its side. How "
        "many rounds are expected?",
        "A share goes up by one euro or down by one euro every day, with the same probability. Its owner sells when "
        "it has gained {m} euros or lost {k} euros since she bought it. After how many days does she sell on average?",
        "A token stands on a strip, {k} squares away from the left end square and {m} squares away from the right "
        "one. A die decides: after an odd throw it goes one square left, otherwise one right. How many throws are "
        "expected until it is on an end square?",
        "A snail sits on an upright pole, {k} centimetres above the ground and {m} centimetres below the tip. Every "
        "hour it creeps one centimetre up or down, both equally likely. How many hours does it take on average to "
        "arrive at the ground or the tip, whichever comes first?",
        "There are {k} litres of water in a tank, with room for exactly {m} litres more. Each minute, by a fair "
        "random choice, either a litre flows in or a litre flows out. Find the expected time in minutes until the "
        "tank is full or empty.",
        "Once an hour the temperature in a greenhouse rises or drops by exactly one degree, with even odds. At present "
        "it is {k} degrees above the value that sets off the frost alarm and {m} degrees below the value that sets off "
        "the heat alarm. Determine the mean number of hours until one of the alarms goes off.",
        "Two fencers are evenly matched, so that every hit is scored by either of them with the same chance, whatever "
        "came before. Because of a handicap, the bout ends as soon as the older fencer leads by {k} hits or the "
        "younger one leads by {m} hits. What number of hits does a bout have in expectation?",
        "A haunted lift stands {k} floors above the cellar and {m} floors below the attic. Each ride takes it to the "
        "next floor up or to the next floor down, both equally likely, and as soon as it is in the cellar or in the "
        "attic it stays there for ever. What is the mean number of rides?",
        "A detective follows a suspect. Every minute the distance between them shrinks by a metre or grows by a metre, "
        "either with probability 1/2. The pursuit is over when the distance is {k} metres less than at the beginning, "
        "which means an arrest, or {m} metres more, which means that the suspect is lost. Find the expected length of "
        "the pursuit in minutes.",
    ),
    test_only=True,
)
def fair_game_length(k: int, m: int) -> Worked:
    """The mean length of a fair walk is the product of the distances to both ends."""
    return Worked(
        k * m,
        f"A fair walk that goes one step either way ends on average after as many steps as the product of its "
        f"distances to the two ends. {k} * {m} = {k * m}.",
    )


FAMILIES = (
    at_least_one_success,
    one_of_each,
    given_at_least_one,
    bayes_two_sources,
    first_success_at,
    expected_cost_until_success,
    expected_changes,
    any_draw_is_like_the_first,
    exactly_so_many_heads,
    largest_of_several,
    taking_turns,
    two_new_kinds,
    first_special_position,
    some_match,
    fair_game_length,
)
