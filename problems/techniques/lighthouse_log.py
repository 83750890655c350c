"""Conventions of an invented office: the log and the service of the lighthouse on Tarn Skerry.

The problems use the keepers' words without defining them. Each rule is stated only in its family's solution.
"""

from itertools import product

from problems.family import Worked, family

DOMAIN = "lighthouse_log"
DRELL_PINTS = 14
SWALE_MINUTES = 4
KELTER_OF_STEAMER = 3
HADDER_NIGHTS = 6
FULL_CIRCLE = 360


@family(
    DOMAIN,
    space=((a, b) for a, b in product(range(3, 15), range(2, 13)) if a != b),
    wordings=(
        "The oil store of Tarn Skerry holds {a} drells and {b} pints. How many pints of oil is that?",
        "A supply boat lands {a} drells for the lamp, and {b} pints are still in the keeper's can. How much oil does "
        "he have, in pints?",
        "Through the dark months the great lens used up {a} drells of colza, and the kitchen lantern {b} pints. Write "
        "the sum as pints.",
        "The gauge of the cistern stands at {a} drells with {b} pints above the mark. The inspector wants the number "
        "of pints. What is the right reply?",
        "Two stores are emptied into one tank at the rock light. The first gives {a} drells exactly, the second {b} "
        "pints. Find the pints in the tank.",
        "For {a} drells of whale oil plus {b} odd pints the harbour board gets a bill by the pint. How many pints are "
        "on the bill?",
        "A leak below the lamp room cost the lighthouse {a} drells of oil before anyone noticed. While it was mended, "
        "a further {b} pints ran out. What is the whole loss, counted in pints?",
        "The oil merchant on the mainland measures in pints alone. His new order from the lighthouse reads: {a} "
        "drells for winter, and {b} pints extra for the door hinges. How many pints must he measure out?",
        "On Tarn Skerry lamp oil is drawn off into bottles that hold a pint each. A cask yields {a} drells, a jug "
        "yields another {b} pints, and every bottle is filled to the top. How many bottles are needed?",
        "Convert a volume of {a} drells {b} pints, given in the measures of the Tarn Skerry light, into pints only.",
        "A stowaway was caught behind the drums in the hold of the Tarn Skerry tender. The drums contained {a} drells "
        "of fuel, and a flask under his coat contained {b} pints more that he had siphoned off before. How many pints "
        "had come aboard, flask and drums together?",
        "A chemist at the college tests lamp fuel from Tarn Skerry. Of the sample sent to her, {a} drells pass the "
        "test, and the remaining {b} pints have to be thrown away. What was the size of the sample in pints?",
    ),
)
def drells_of_oil(a: int, b: int) -> Worked:
    """A unit of oil."""
    answer = a * DRELL_PINTS + b
    return Worked(
        answer,
        f"On Tarn Skerry a drell is {DRELL_PINTS} pints. {a} * {DRELL_PINTS} + {b} = {answer}.",
    )


@family(
    DOMAIN,
    space=product(range(2, 10), range(12, 61, 4)),
    wordings=(
        "Fog came over Tarn Skerry {f} times, for {m} minutes each time, and the bell was rung by the swale. How many "
        "strokes were rung?",
        "The young keeper must ring by the swale. Her log shows {f} fogs of {m} minutes. What number of bell strokes "
        "did she have to give?",
        "All ringing at the light goes by the swale. Count the strokes for {f} separate mists, every one of them {m} "
        "minutes long.",
        "A mechanical striker set to the swale ran on {f} mornings, {m} minutes per morning. How many blows did its "
        "hammer make altogether?",
        "Sailors off the reef heard the lighthouse bell, which follows the swale, through {f} spells of haze. If each "
        "spell lasted {m} minutes, how many strokes could they hear?",
        "{f} snow squalls, {m} minutes apiece, hid the lamp, so the swale was kept on the bell rope. Find the total "
        "of pulls on the rope.",
        "Smoke from burning heath drifted across the skerry on {f} separate days. It stayed for {m} minutes on each "
        "of them, and ringing went by the swale. How often did the clapper strike in all?",
        "An old ringer who keeps the swale drops a pebble into an empty bucket at each stroke of the bell. He rings "
        "through {f} separate fog banks, each {m} minutes in length. Give the final number of pebbles in the bucket.",
        "Question for apprentices at the Tarn Skerry light: thick weather closes in {f} times during a week, and each "
        "time it lifts after {m} minutes. Ringing by the swale, what is the week's sum of strokes?",
        "In memory of {f} drowned fishermen the lighthouse tolls its bell by the swale, {m} minutes for each man and "
        "each man on a day of his own. How many tolls ring out in memory of all the men?",
        "Last year dust from a distant volcano veiled the Tarn Skerry light on {f} dates, for {m} minutes on each "
        "date. The swale was observed every time. How many clangs of the bell does that make for the year?",
        "A composer writes a symphony with {f} passages in which the lighthouse bell is heard by the swale. Each "
        "passage goes on for {m} minutes and needs a note of its own for any single stroke. How many bell notes does "
        "the score contain?",
    ),
)
def rung_by_the_swale(f: int, m: int) -> Worked:
    """Strokes at both ends of a stretch of time."""
    each = m // SWALE_MINUTES + 1
    return Worked(
        f * each,
        f"By the swale the bell is struck when the fog begins and then every {SWALE_MINUTES} minutes up to its end. "
        f"One fog has {m} / {SWALE_MINUTES} + 1 = {each} strokes. {f} * {each} = {f * each}.",
    )


@family(
    DOMAIN,
    space=((a, b) for a, b in product(range(4, 20, 2), range(3, 16)) if a != b),
    wordings=(
        "{a} sails and {b} steamers passed Tarn Skerry today. What kelter does the keeper enter?",
        "The log of the light has a column for the kelter. On Monday {a} sailing ships and {b} steamships went by. "
        "Which number stands in the column?",
        "From the gallery a boy counts {b} steamers and {a} sails before sunset. What is the kelter of that watch?",
        "Traffic at the skerry in the first week of May: sail {a}, steam {b}. Work out the kelter for the week.",
        "How large is the kelter if {a} schooners under sail come past the lighthouse and {b} paddle steamers after "
        "them?",
        "A clerk of the lights checks an old page. It lists {b} vessels by steam, {a} by sail and a smudge where the "
        "kelter was. What must the smudge have said?",
        "During the regatta the assistant saw {a} sailing yachts and {b} steam launches round the rock. He chalked "
        "their kelter on the tower door. What did he chalk there?",
        "An insurer asks the lighthouse for last night's kelter. Under the beam had gone {b} steamers and {a} sails, "
        "and nothing else. State the figure to be sent by telegraph.",
        "A schoolmistress takes her class up the stairs of the Tarn Skerry light. The children spot {a} sailing boats "
        "and {b} steamboats. To what kelter does this amount?",
        "Determine the kelter of a convoy in which {b} ships are driven by steam and the other {a} by sail, as it "
        "would be logged at the light.",
        "Market women on the quay gamble on the kelter that Tarn Skerry will publish tonight. Since dawn {b} steam "
        "tugs have gone by the rock, and so have {a} luggers with no engine, only canvas. Which guess wins?",
        "A jigsaw puzzle for sailors' children is printed with the sea around a lighthouse. Its pieces fit together to "
        "{a} ships under sail and {b} ships under steam, all on their way past the tower. Give the kelter of the "
        "picture.",
    ),
)
def kelter_of_ships(a: int, b: int) -> Worked:
    """A weighted count."""
    answer = a + KELTER_OF_STEAMER * b
    return Worked(
        answer,
        f"In the kelter a sailing ship counts 1 and a steamer counts {KELTER_OF_STEAMER}. {a} + {KELTER_OF_STEAMER} * "
        f"{b} = {answer}.",
    )


@family(
    DOMAIN,
    space=((n, r) for n, r in product(range(8, 21), range(3, 15)) if (n + r) % 2),
    wordings=(
        "A relief keeper serves {n} nights on hadder at Tarn Skerry. The rate is {r} pence a night. How many pence "
        "does he get?",
        "On hadder, with {r} pence for a night, what do {n} nights in a row at the lamp pay in pence?",
        "The widow of a keeper claims the wages for his last stay, {n} nights on hadder. His rate was {r} pence. What "
        "sum in pence is due to her?",
        "The board hires a lens cleaner on hadder for {n} nights. In his contract stands {r} pence nightly. Find the "
        "cost to the board in pence.",
        "Storm kept the second mate of the lighthouse tender on the rock for {n} nights, and he was paid on hadder, "
        "{r} pence being the night's rate. How many pence was he paid?",
        "{r} pence is what one night at the light earns. Someone took over the watch on hadder and left after {n} "
        "nights. How much money in pence went with him?",
        "A painter who wants to study the sea asks the board for a place on hadder. She tends the lamp {n} nights "
        "running, at {r} pence each. Which amount in pence does the board owe her?",
        "Accounts of the rock light. Post: bell hand, on hadder. Nightly rate: {r} pence. Served without a break: {n} "
        "nights. The total at the foot is torn off. Restore it, in pence.",
        "While the keeper of Tarn Skerry lay sick, a shepherd minded the lamp for him, on hadder. He stayed {n} nights "
        "without a gap, and {r} pence per night had been agreed. With how many pence did he row home?",
        "A judge hears a quarrel about wages and finds: engaged on hadder at a lighthouse, nightly pay {r} pence, {n} "
        "consecutive nights worked, nothing paid yet. To how many pence is the plaintiff entitled?",
        "Two brothers play at lighthouse in an attic and keep to the customs of Tarn Skerry. The younger is engaged on "
        "hadder: {n} uninterrupted nights, {r} pence for each. What amount, in pence, must the elder count into his "
        "palm?",
        "To escape his debts, a retired boxer signs on at the light, on hadder and at a rate of {r} pence the night. "
        "His creditors seize everything that he has earned there in {n} successive nights. How many pence do they "
        "seize?",
    ),
)
def paid_on_hadder(n: int, r: int) -> Worked:
    """A rate that doubles after some nights."""
    extra = n - HADDER_NIGHTS
    counted = HADDER_NIGHTS + 2 * extra
    return Worked(
        counted * r,
        f"On hadder the first {HADDER_NIGHTS} nights are paid once and each later night double. {n} - {HADDER_NIGHTS} "
        f"= {extra} nights are later, so {HADDER_NIGHTS} + 2 * {extra} = {counted} nights are paid. {counted} * {r} = "
        f"{counted * r} pence.",
    )


@family(
    DOMAIN,
    space=((h, s) for h, s in product(range(31, 99, 6), range(6, 31, 4)) if h - s // 2 != s),
    wordings=(
        "The tide staff at Tarn Skerry shows {h} inches in a swell of {s} inches. What is the brailed height in "
        "inches?",
        "A keeper reads {h} inches of tide while the swell runs {s} inches. Only brailed heights go into the log. "
        "Which height does he put down?",
        "What brailed height, in inches, belongs to a swell of {s} inches and a reading of {h} inches at the landing "
        "steps?",
        "Before the boat may land, the brailed height is signalled. The staff stands at {h} and the swell at {s}, "
        "both in inches. Give the signalled number.",
        "At noon the light's tide gauge had {h} inches. An open sea with {s} inches of swell came in from the west. "
        "Find the noon tide, brailed, in inches.",
        "A chart maker copies tides from the lighthouse, brailed as is proper. His source for today: mark {h} inches, "
        "swell {s} inches. How many inches does he copy?",
        "A diver asks for the brailed height before going down to mend the moorings. Swell: {s} inches. Gauge: {h} "
        "inches. What answer, in inches, do the keepers shout to him?",
        "A brass plate recalls the tide, brailed, of the day when the lighthouse tower was finished. Notes of that "
        "day say {h} inches of tide, with {s} inches of swell. Which number of inches is engraved?",
        "For a bet the cook of the rock light has to name the brailed height in inches. He is told that the tide staff "
        "reads {h} inches and that the swell measures {s} inches. What must he say to win?",
        "A bride's father lets the wedding party be rowed across to the lighthouse only if he likes the brailed "
        "height. With {s} inches of swell, the water reaches {h} inches on the staff. Of what brailed height, in "
        "inches, is he told?",
        "An opera is set on Tarn Skerry, and in its storm scene the tenor has to sing out the brailed height. "
        "According to the libretto the sea stands at {h} inches on the scale and heaves with {s} inches of swell. "
        "Which number of inches does he sing?",
        "Eels may be trapped off the skerry only at certain brailed heights. Tonight's swell amounts to {s} inches; "
        "tonight's tide, as the eel catcher sees it on a post, amounts to {h} inches. Compute the brailed height for "
        "him, in inches.",
    ),
)
def brailed_height(h: int, s: int) -> Worked:
    """A reading corrected by half of something."""
    return Worked(
        h - s // 2,
        f"A brailed height is the reading less half the swell: {s} / 2 = {s // 2}, and {h} - {s // 2} = {h - s // 2}.",
    )


@family(
    DOMAIN,
    space=((a, b) for a, b in product(range(95, 350, 23), range(140, 355, 31)) if (a + b) % 4 < 3),
    wordings=(
        "From Tarn Skerry the church bears {a} degrees and the mill {b} degrees. What is the plimmer of the two "
        "bearings, in degrees?",
        "A keeper sights a wreck at {a} degrees and a buoy at {b} degrees. He notes their plimmer. What does he note?",
        "The plimmer is asked for in the log. Bearing of the brig: {a}. Bearing of the cutter: {b}. Which figure is "
        "entered, in degrees?",
        "Two lights are seen from the gallery, one in the direction of {a} degrees, the other of {b}. Work out their "
        "plimmer in degrees.",
        "To set the shutter of the lamp, one needs the plimmer of {a} degrees and {b} degrees. To how many degrees is "
        "the shutter set?",
        "An examiner of keepers gives the bearings {a} and {b} and wants to hear the plimmer. What should the pupil "
        "say?",
        "Geese leave the skerry on a bearing of {a} degrees, terns on a bearing of {b} degrees. A bird watcher "
        "records the plimmer. How many degrees stand in her notebook?",
        "Cannon smoke was made out from the lighthouse twice, first bearing {a} degrees, later bearing {b} degrees. "
        "State the plimmer, in degrees, that goes into the report to the navy.",
        "A pilot rules two pencil lines from Tarn Skerry across his map, one at {a} degrees and one at {b} degrees. In "
        "the margin he writes the plimmer of these bearings. What number of degrees is that?",
        "On a frosty night the star Capella rises at {a} degrees and the moon sets at {b} degrees, as observed through "
        "the telescope of the lighthouse. Calculate the plimmer of the pair in degrees.",
        "The dial lock of the rum cupboard at Tarn Skerry opens at the plimmer of two bearings. That of the boathouse "
        "is {a} degrees, and that of the well is {b} degrees. At what number of degrees does the lock open?",
        "Somewhere on the seabed lies a treasure, says a ballad about the lighthouse. Take the bearing of {a} degrees "
        "and the bearing of {b} degrees, it goes on, and row along their plimmer. On which course, in degrees, does "
        "the ballad send its hero?",
    ),
)
def plimmer_of_bearings(a: int, b: int) -> Worked:
    """A sum on the compass."""
    total = a + b
    answer = total % FULL_CIRCLE
    less = (
        f"{total} - {FULL_CIRCLE} = {answer}" if total >= FULL_CIRCLE else f"{total} is below it, so it stays {answer}"
    )
    return Worked(
        answer,
        f"The plimmer is the sum of the two bearings, less {FULL_CIRCLE} if it reaches {FULL_CIRCLE}. {a} + {b} = "
        f"{total}; {less}.",
    )


@family(
    DOMAIN,
    space=((n, k) for n, k in product(range(20, 301, 10), range(2, 9)) if 4 * n % (5 * k) == 0 and n > 10 * k),
    wordings=(
        "{n} planks drift ashore at Tarn Skerry, and the {k} keepers part them by murrish. How many planks does each "
        "keeper get?",
        "By murrish, what is one man's lot when {k} men of the light save {n} casks from the sea?",
        "A wreck gave up {n} coins. The lighthouse crew of {k} divided this find in murrish. How many coins came to "
        "every one of them?",
        "The log says: oranges washed up, {n}; hands at the light, {k}; shared by murrish. Find the oranges per hand.",
        "Because {k} keepers were on the rock when {n} yards of canvas floated in, murrish was applied. How many "
        "yards could a keeper call his own?",
        "Murrish settles who owns flotsam on the skerry. Suppose {n} candles are fished out and {k} people live "
        "there. What number of candles may each of them take?",
        "A chest with {n} tins of tea strands below the lighthouse. Its {k} inhabitants follow murrish. Tell how many "
        "tins end up on the shelf of each.",
        "An abandoned net drifts up to Tarn Skerry with {n} crabs in it. The catch is handed out by murrish to a "
        "staff of {k}. How many crabs does a single member of the staff receive?",
        "On the spring tide {n} coconuts ride in, and the {k} keepers of the Tarn Skerry light deal with them by "
        "murrish. One of the keepers grates his entire portion for a cake. How many coconuts does he grate?",
        "Let {n} bottles of rum, found on the rocks below a lighthouse, be distributed by murrish among its crew of "
        "{k}. Calculate the bottles per head.",
        "A raft with {n} ivory buttons aboard runs aground under the lighthouse, whose keepers number {k}. That "
        "evening murrish is done on the kitchen table. What count of buttons does any one keeper put in his pocket?",
        "The ebb uncovers {n} roof slates that a barge once lost near Tarn Skerry. They fall under murrish, and {k} "
        "keepers man the light. Compute one keeper's allotment of slates.",
    ),
)
def parted_by_murrish(n: int, k: int) -> Worked:
    """A part is set aside before the sharing."""
    rest = n - n // 5
    return Worked(
        rest // k,
        f"By murrish a fifth of the find first goes to the Light, and the keepers share the rest evenly. {n} - "
        f"{n // 5} = {rest}, and {rest} / {k} = {rest // k} for each.",
    )


@family(
    DOMAIN,
    space=((g, r) for g, r in product(range(3, 12), range(2, 10)) if g != r),
    wordings=(
        "The lamp of Tarn Skerry runs {g} tholes, and it runs them {r} times in a night. How many flashes does it "
        "show?",
        "A new lens is tested with {g} tholes. The test is done {r} times over. What number of flashes does the "
        "tester see?",
        "For the king's birthday the light gave {g} tholes, repeated until they had been given {r} times. Find the "
        "flashes that were given.",
        "A ship's boy counts every flash of a lighthouse that is set to {g} tholes. He falls asleep after {r} "
        "complete runs. Up to which number did he count?",
        "The shutter wears out by one grain per flash. How many grains do {r} runs of {g} tholes cost it?",
        "In signal practice the keepers send {r} rounds, and a round consists of {g} tholes. How many times does the "
        "beam flash?",
        "Each winding of the clockwork drives the great lamp through {g} tholes. It was wound {r} times, and it "
        "always ran down fully. What is the total of flashes?",
        "A photographer on the mainland leaves his camera open during {r} full runs of the light, which is set to {g} "
        "tholes. Every flash burns a spot of its own into the plate. Count the spots.",
        "Smugglers agree to land as soon as the Tarn Skerry light has finished {r} runs, with the light set to {g} "
        "tholes. How many flashes do they have to sit through before they land?",
        "Setting of the light: {g} tholes. Complete runs since dusk: {r}. Calculate the flashes since dusk.",
        "A deaf watchman follows the light of Tarn Skerry in a mirror and draws a dash for each flash. He goes on "
        "drawing through {r} repetitions of {g} tholes. How many dashes are on his paper?",
        "The Tarn Skerry museum sells a toy lantern with a crank. Whenever the crank is turned as far as the stop, the "
        "lantern gives {g} tholes. A visitor turns it as far as the stop {r} times; how many flashes come out?",
    ),
)
def flashes_in_tholes(g: int, r: int) -> Worked:
    """Groups that grow by one."""
    one = g * (g + 1) // 2
    return Worked(
        one * r,
        f"In tholes the first group has 1 flash, the second 2, and so on, each one more. {g} tholes are 1 + ... + {g} "
        f"= {g} * {g + 1} / 2 = {one} flashes. {r} * {one} = {one * r}.",
    )


FAMILIES = (
    drells_of_oil,
    rung_by_the_swale,
    kelter_of_ships,
    paid_on_hadder,
    brailed_height,
    plimmer_of_bearings,
    parted_by_murrish,
    flashes_in_tholes,
)
