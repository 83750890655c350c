"""Conventions of an invented trade: the bakers' guild of Ostrey.

The problems use the guild's words without defining them. Each rule is stated only in its family's solution.
"""

from itertools import product

from problems.family import Worked, family

DOMAIN = "guild_of_bakers"
COSSEL_LOAVES = 16
SALLOW_PENCE = 3
TOLLEN_BASE, TOLLEN_YEAR = 5, 2
FREE_PLACES = 2


@family(
    DOMAIN,
    space=((a, p) for a, p in product(range(2, 12), range(2, 12)) if a != p),
    wordings=(
        "An Ostrey baker sells {a} cossels of rye bread at {p} pence a loaf. How many pence does he take?",
        "The hospital orders {a} cossels from the guild. Every loaf costs it {p} pence. What does the order cost in "
        "pence?",
        "With loaves at {p} pence, what are {a} cossels of white bread worth, in pence?",
        "A regiment passing through the town eats {a} cossels for breakfast. The guild bills {p} pence per loaf. Find "
        "the bill in pence.",
        "{a} cossels went mouldy in a damp cellar, a loss of {p} pence on each loaf. How many pence were lost?",
        "Market tax in Ostrey is {p} pence for one loaf. A cart with {a} cossels stops at the gate. How much tax, in "
        "pence, must the carter pay?",
        "Before the caravan leaves Ostrey its cook has {a} cossels tied on the mules. If a loaf stands at {p} pence, "
        "how many pence does the caravan's purse lose for them?",
        "Thieves broke into a barn at Ostrey and carried off {a} cossels. The judge rules that they make good {p} "
        "pence for any loaf taken. State the whole sum in pence.",
        "For a picnic of orphans a widow of the guild gives away {a} cossels of milk bread. At a price of {p} pence "
        "the loaf, how many pence could she have earned by selling them instead?",
        "During the bishop's visit to Ostrey his household uses up {a} cossels. The steward settles with the bakers "
        "at {p} pence for every loaf. Name the sum he settles, in pence.",
        "To win a wager, a juggler in Ostrey has to toss every loaf of {a} cossels into the air and catch it. A "
        "spectator throws him {p} pence per loaf. What number of pence does the juggler collect?",
        "The insurance policy of an Ostrey bakery puts bread at {p} pence a loaf. Last night's flood swept away {a} "
        "cossels. Compute the claim in pence.",
    ),
)
def cossels_of_loaves(a: int, p: int) -> Worked:
    """A unit of loaves."""
    loaves = a * COSSEL_LOAVES
    return Worked(
        loaves * p,
        f"In Ostrey a cossel is {COSSEL_LOAVES} loaves. {a} * {COSSEL_LOAVES} = {loaves} loaves, and {loaves} * {p} = "
        f"{loaves * p}.",
    )


@family(
    DOMAIN,
    space=((k, d) for k, d in product(range(3, 14), range(16, 65, 8)) if k * 7 != d),
    wordings=(
        "{k} loaves are made in Ostrey, from {d} ounces of dough each. Reckoned by thrum, how many ounces of bread is "
        "that?",
        "A guild master shapes {k} pieces of dough of {d} ounces. What do they weigh together out of the oven, by "
        "thrum, in ounces?",
        "By thrum, how much bread in ounces may the inspector expect from {k} tins that were filled with {d} ounces "
        "of dough apiece?",
        "The prison needs to know the weight of its bread. Dough for {k} prisoners was portioned at {d} ounces per "
        "head, and thrum applies. How many ounces of bread are served?",
        "Each of {k} apprentices brings a test loaf of {d} ounces of raw dough. The judges write down the thrum "
        "weight of all loaves. Which number of ounces do they write?",
        "An order for the fair says {k} plaits, dough {d} ounces to the plait, to be charged by thrum. Find the "
        "ounces to be charged.",
        "A monastery bakes {k} lumps of dough, with {d} ounces in every lump. Going by thrum, what weight of bread, "
        "in ounces, does the cellarer enter in his accounts?",
        "The harbour crane lifts a net full of bread: {k} cobs, and {d} ounces of dough went into each cob. Its "
        "papers give the weight of the bread by thrum. Which figure, in ounces, stands in the papers?",
        "To provision a lifeboat the guild of Ostrey kneads {k} batches of biscuit, using {d} ounces of dough for a "
        "batch. Under thrum, how many ounces of biscuit are stowed on board?",
        "On the eve of a school's sports day in Ostrey {k} pans hold {d} ounces of dough each. If thrum is observed, "
        "what will the finished bread total in ounces?",
        "Before a village dance {k} wreaths are rolled, and the recipe takes {d} ounces of dough for a wreath. The "
        "hostess from Ostrey asks for the thrum weight of the whole lot, baked. How many ounces is she told?",
        "On an Ostrey tombstone is carved that the dead man left {k} sons, and to each of them a trough with {d} "
        "ounces of dough. All of it was baked on the same evening. Under thrum, state the ounces of bread in the "
        "entire inheritance.",
    ),
)
def weight_by_thrum(k: int, d: int) -> Worked:
    """A part is lost in baking."""
    each = d - d // 8
    return Worked(
        k * each,
        f"By thrum dough loses an eighth of its weight in the oven. {d} - {d} / 8 = {d} - {d // 8} = {each} ounces "
        f"are left of each. {k} * {each} = {k * each}.",
    )


@family(
    DOMAIN,
    space=((n, p, d) for n, p, d in product((6, 8, 11, 14, 20), range(13, 25, 2), (2, 3, 4)) if (n + p + d) % 5),
    wordings=(
        "{n} loaves have lain in an Ostrey shop for {d} days. Fresh they cost {p} pence each. What do they cost "
        "together at the sallow price, in pence?",
        "A poor woman asks for sallow bread, {n} loaves. The bread is {d} days old and was {p} pence a loaf when new. "
        "How many pence does she pay?",
        "Guild rule: what is not fresh goes at sallow. The pie price is {p} pence. Find the price in pence of {n} "
        "pies that came out of the oven {d} days ago.",
        "The innkeeper buys only sallow rolls. From a batch of {d} days ago, marked {p} pence per roll, he takes {n}. "
        "What does he owe in pence?",
        "Of a wedding order {n} cakes were not fetched until {d} days later. At {p} pence a cake when fresh, and "
        "sallow now, how many pence can the baker ask for them?",
        "How many pence do {n} buns bring in at sallow if one bun fetched {p} pence on the day it was baked, {d} days "
        "back?",
        "A travelling circus feeds its bear on bread from {d} days ago. It picks up {n} loaves, which were {p} pence "
        "apiece when newly baked, and sallow holds. How much money, in pence, changes hands?",
        "Snow stopped a sledge that carried {n} tarts, and they were {d} days old when they reached Ostrey. A fresh "
        "tart is {p} pence. All of the tarts were then sold at sallow. Find the takings in pence.",
        "As props for a comedy an Ostrey theatre picks up {n} pretzels at the sallow price. They were baked {d} days "
        "ago, and a pretzel just baked is {p} pence. How many pence does the theatre spend?",
        "Pigs are not choosy, so a swineherd orders {n} barley flats that left the guild's oven {d} days before. On "
        "that first day each would have been {p} pence. Work out in pence what he must hand over now, under sallow.",
        "An angler needs bait and does not mind {n} bagels that have been lying about for {d} days. On baking day the "
        "Ostrey stall charged {p} pence for a bagel. What does sallow make of his bill, in pence?",
        "Notice in a window of the guild: rye rings, today's, {p} pence apiece. Behind the counter lie {n} more rye "
        "rings, aged {d} days, and sallow is the law. For how much in pence does this older heap go?",
    ),
)
def sallow_price(n: int, p: int, d: int) -> Worked:
    """A price that falls by the day."""
    each = p - SALLOW_PENCE * d
    return Worked(
        n * each,
        f"The sallow price is the fresh price less {SALLOW_PENCE} pence for each day of age. {p} - {SALLOW_PENCE} * "
        f"{d} = {each} pence apiece, and {n} * {each} = {n * each} pence.",
    )


@family(
    DOMAIN,
    space=((k, y) for k, y in product(range(2, 13), range(3, 12)) if k != y),
    wordings=(
        "{k} apprentices who have served {y} years each enter the guild of Ostrey. How many pence of tollen do they "
        "pay altogether?",
        "The tollen is due from everyone made journeyman. This spring there are {k}, all after {y} years of service. "
        "What sum in pence comes in?",
        "After {y} years at the trough {k} cousins want to become members. How much must they bring for tollen, in "
        "pence?",
        "The guild chest was empty until {k} helpers paid their tollen. They had worked {y} years apiece. Find the "
        "pence in the chest now.",
        "A rich aunt offers to pay the tollen for her {k} nephews, each of them {y} years with his master. How many "
        "pence does this cost her?",
        "For {y} years of service, what tollen in pence is collected from a group of {k} bakers' boys?",
        "On the clerk's roll in Ostrey stand {k} names, and beside every name he notes {y} years served. He adds up "
        "the tollen for the whole roll. Which total, in pence, does he write at the foot?",
        "Widow Hale taught {k} girls the trade, and all of them stayed {y} years. Now the guild admits them, and she "
        "lends them the full tollen. How large is the loan in pence?",
        "On midsummer night {k} candidates swear the oath of the bakers' guild. Each of them has served for {y} "
        "years. How many pence of tollen does the beadle gather?",
        "A new harbour bakery in Ostrey hires {k} hands straight from an apprenticeship that lasted {y} years for "
        "each. It advances their tollen and keeps it back from their wages. In pence, how much is kept back in total?",
        "A flood has ruined the register, so the guild of Ostrey reckons the tollen of one class anew. In that class "
        "there were {k} learners, and every learner had {y} years behind him. State the tollen of the class in pence.",
        "Strolling players put on a farce in which {k} clowns turn into Ostrey bakers, each at the end of {y} years of "
        "training. A make-believe treasurer demands the proper tollen from them. Which grand total, in pence, does he "
        "shout?",
    ),
)
def tollen_of_apprentices(k: int, y: int) -> Worked:
    """A fixed fee and a part by the year."""
    each = TOLLEN_BASE + TOLLEN_YEAR * y
    return Worked(
        k * each,
        f"The tollen of one person is {TOLLEN_BASE} pence and {TOLLEN_YEAR} more for each year served. {TOLLEN_BASE} "
        f"+ {TOLLEN_YEAR} * {y} = {each}, and {k} * {each} = {k * each} pence.",
    )


@family(
    DOMAIN,
    space=((n, c) for n, c in product(range(50, 330, 13), range(8, 21, 3)) if -(-n // (c - 2)) not in (c, -(-n // c))),
    wordings=(
        "An Ostrey oven has {c} places for loaves. How many ovenings does a guild baker need for {n} loaves?",
        "{n} pretzels are wanted for the feast. The bakehouse has room for {c} at a time. In how many ovenings can "
        "the guild deliver?",
        "The fire must be lit anew for each ovening. How often is it lit to bake {n} buns where {c} buns fit?",
        "Find the least number of ovenings for {n} flat cakes, given a stone oven in the town that takes {c} flat "
        "cakes.",
        "A miller's daughter rents the common oven, {c} places wide, and pays by the ovening. She has {n} rolls to "
        "bake. For how many ovenings does she pay?",
        "With {c} tins in the oven, how many ovenings pass before all {n} tins of a guild order are done?",
        "Pilgrims have asked the guild for {n} wafers. There is one oven, and it holds {c} wafers. What is the "
        "smallest number of ovenings that will serve them?",
        "Old Peer of Ostrey chalks a stroke on the wall for every ovening. His oven is built for {c} gingerbread men, "
        "and he wants {n} of them with no more ovenings than necessary. How many strokes will he chalk?",
        "The bakers' guild of Ostrey must supply {n} pasties for a royal banquet, and the palace oven offers {c} "
        "places. Every ovening lasts one hour. After how many hours of baking, at the earliest, is the last pasty "
        "done?",
        "One sack of charcoal is burnt at each ovening. A guild master means to bake {n} oatcakes, and {c} oatcakes "
        "fit in his oven. With how few sacks of charcoal can he manage?",
        "During a siege the women of Ostrey must turn out {n} hardtacks. Only a field oven has survived, and it has "
        "{c} places. Provided that guild law is kept, what is the minimum number of ovenings?",
        "A tin cockerel on the roof of an Ostrey bakery spins round once per ovening. The guild baker below needs {n} "
        "scones as fast as possible, and {c} scones is what the oven can hold. How many spins does the cockerel make?",
    ),
)
def number_of_ovenings(n: int, c: int) -> Worked:
    """Some places stay empty, and the last batch need not be full."""
    room = c - FREE_PLACES
    answer = -(-n // room)
    return Worked(
        answer,
        f"In an ovening {FREE_PLACES} places are kept free by guild rule, so {c} - {FREE_PLACES} = {room} are used. A "
        f"part of an ovening counts as a whole one, so round {n} / {room} up: {answer}.",
    )


@family(
    DOMAIN,
    space=((s, d) for s, d in product(range(4, 21), (2, 3, 4, 5))),
    wordings=(
        "A crock with {s} ounces of sour dough is kept in gimmel for {d} days. How many ounces does it hold then?",
        "An Ostrey baker goes away and leaves {s} ounces of leaven in gimmel. When she is back after {d} days, what "
        "does the leaven weigh in ounces?",
        "By gimmel, {d} days, from {s} ounces of mother dough: find the final weight in ounces.",
        "The guild gives each new master {s} ounces of starter. One of them holds it in gimmel through {d} days. How "
        "much starter, in ounces, has he at the end?",
        "A recipe says: take {s} ounces of barm and put it in gimmel {d} days before the feast. How many ounces are "
        "ready for the feast?",
        "In the cellar a tub of ferment stands in gimmel. It started at {s} ounces. What is its weight in ounces once "
        "{d} days are over?",
        "A bride in Ostrey gets {s} ounces of sponge from her grandmother. It stays in gimmel for the {d} days up to "
        "the wedding. How heavy, in ounces, is the sponge that she takes along on that day?",
        "After the great fire only {s} ounces of the old yeast could be saved. The guild put it in gimmel at once. To "
        "how many ounces had it come {d} days later?",
        "A soldier who marches off entrusts {s} ounces of rye paste to the guild of Ostrey, and it lies in gimmel "
        "until he returns {d} days later. How many ounces will be handed back to him?",
        "Question for would-be masters: some batter, {s} ounces to begin with, has now spent {d} days in gimmel. "
        "State its present weight in ounces.",
        "Two neighbours in Ostrey bet on the growth of a paste. It weighed {s} ounces on the evening when it was laid "
        "in gimmel, and {d} days afterwards it is put on the scales again. Which number of ounces settles the bet?",
        "A painting of the guild's cellar is signed with a riddle. It asks what {s} ounces of raised dough turn into, "
        "under the rules of gimmel, in {d} days. Solve the riddle in ounces.",
    ),
)
def kept_in_gimmel(s: int, d: int) -> Worked:
    """A step repeated day by day."""
    values = [s]
    for _ in range(d):
        values.append(2 * values[-1] - 1)
    days = ", ".join(f"2 * {x} - 1 = {2 * x - 1}" for x in values[:-1])
    return Worked(
        values[-1],
        f"In gimmel the dough is doubled each day and then 1 ounce is taken away. Day by day: {days}.",
    )


@family(
    DOMAIN,
    space=((n, f) for n, f in product(range(3, 21), range(3, 9)) if n != f),
    wordings=(
        "{n} loaves of an Ostrey baker are found {f} ounces too light each. How many pence is his quern?",
        "The weigh-master lays on the quern for {n} short loaves, each of them lacking {f} ounces. What must be paid "
        "in pence?",
        "For bread that misses its weight by {f} ounces the guild takes the quern. Find it in pence for {n} such "
        "breads.",
        "A baker's {n} rolls for the orphanage were {f} ounces under weight, every single one. To how many pence does "
        "the quern amount?",
        "How many pence of quern are owed when a check of the stalls brings up {n} cakes, all with {f} ounces missing?",
        "The thief of flour was a journeyman: {n} tins got {f} ounces less than they should. His master had to pay "
        "the quern on them. How much was it in pence?",
        "A ferryman complained that each of his {n} bannocks weighed {f} ounces less than promised. The guild agreed "
        "and set the quern. State its amount in pence.",
        "Mice had gnawed {f} ounces off each of {n} nut breads before a buyer in Ostrey weighed them. The seller was "
        "held to the quern all the same. To what sum, in pence, did it come?",
        "With a pocket scale a schoolboy proved that {n} rusks from an Ostrey shop were {f} ounces short apiece. What "
        "quern, in pence, does the shopkeeper face?",
        "At the castle gate {n} barley rings for the garrison fail on the beam balance, because every ring is {f} "
        "ounces below the mark. Work out the quern that the guild's treasurer books for them, in pence.",
        "At the Ostrey assizes a baker confesses: there were {n} batons, and from each of them he held back {f} "
        "ounces. The court passes the case to the guild, which demands the quern. How many pence is that?",
        "Ledger of the guild's weigh-house. Deficit of a flan: {f} ounces. Flans with exactly this deficit: {n}. The "
        "line for the quern is blank; fill it in with the right number of pence.",
    ),
)
def quern_for_short_weight(n: int, f: int) -> Worked:
    """A fine that grows as the square."""
    return Worked(
        n * f * f,
        f"The quern on one loaf is the missing ounces times themselves, in pence: {f} * {f} = {f * f}. {n} * {f * f} "
        f"= {n * f * f} pence.",
    )


@family(
    DOMAIN,
    space=((q * (n + 1), n) for q, n in product(range(9, 40), range(3, 9)) if (q + n) % 3 == 0),
    wordings=(
        "{n} bakers of Ostrey part {t} pence by ambry. How many pence does each baker get?",
        "A feast left a gain of {t} pence. The guild's {n} masters took it in ambry. What was one master's part in "
        "pence?",
        "By ambry, how are {t} eggs handed out among {n} bakehouses? Give the number for one bakehouse.",
        "The lord sends {t} sacks of wheat as a gift for the {n} members, and ambry is the rule. How many sacks may a "
        "member carry home?",
        "In ambry the fines of the year, {t} pence, go back to the {n} honest bakers. Find what one of them receives, "
        "in pence.",
        "Last winter's wood, {t} logs, was split up by ambry. The guild had {n} ovens, each with its own owner. How "
        "many logs did an owner have from it?",
        "A wreck leaves {t} jars of honey on the beach. The {n} bakers of the nearby town divide them by ambry. How "
        "many jars fall to a single baker?",
        "Old Marta willed her {t} cake moulds to the {n} bakers who had once learned from her, to be shared in ambry. "
        "Say how many moulds any one of these bakers inherits.",
        "A present from the king, {t} barrels of salt, arrives in Ostrey. The {n} bakers there apply ambry to it. How "
        "many barrels roll into the yard of each?",
        "The guild's meadow yields {t} bundles of hay this summer, and {n} Ostrey bakers who keep donkeys settle it "
        "in ambry. Find the number of bundles that end up in one baker's stable.",
        "A balloon comes down in a field near Ostrey. Its pilot rewards the {n} bakers who cut him loose with {t} "
        "silver buttons, to be split by ambry. How many buttons does each of the rescuers pocket?",
        "In ambry, a committee of {n} Ostrey bakers disposes of {t} tickets for the opera. No other bakers are "
        "involved. Find how many tickets any one of the committee can use.",
    ),
)
def parted_by_ambry(t: int, n: int) -> Worked:
    """One share more than there are people."""
    answer = t // (n + 1)
    return Worked(
        answer,
        f"By ambry there is one share more than there are bakers; the extra share is for the poor. {n} + 1 = {n + 1} "
        f"shares, and {t} / {n + 1} = {answer}.",
    )


FAMILIES = (
    cossels_of_loaves,
    weight_by_thrum,
    sallow_price,
    tollen_of_apprentices,
    number_of_ovenings,
    kept_in_gimmel,
    quern_for_short_weight,
    parted_by_ambry,
)
