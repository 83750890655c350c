"""House conventions of an invented trade: freight broking on the Orrin Canal.

The problems use the trade's words as a clerk of the house would, without defining them. Each convention is stated
in its family's solution, which only the training split carries. Money is in pence.
"""

from itertools import product

from problems.family import Worked, family

DOMAIN = "house_conventions"

BRADE_SACKS = 20
PEG_STONE = 10
SLACK_FREE_HOURS = 3
TICKET_LOCKS = 2
HOLLOW_TIMES = 2
GLEANING_SACKS = 10
LANTERN_TIMES = 3
FROST_DAY_DAYS = 2
ELDER_EXTRA = 2


@family(
    DOMAIN,
    space=product(range(2, 11), range(2, 10)),
    wordings=(
        "A barge on the Orrin Canal carries {a} brades and {b} sacks of barley. How many sacks is that in all?",
        "The lock-keeper counts {a} full brades of oats on deck and {b} loose sacks beside them. "
        "How many sacks are on the barge?",
        "A miller orders {a} brades of wheat by canal and adds {b} single sacks at the quay. "
        "How many sacks must the broker ship?",
    ),
)
def brade_of_sacks(a: int, b: int) -> Worked:
    """A unit of the trade."""
    answer = a * BRADE_SACKS + b
    return Worked(
        answer,
        f"On the Orrin Canal a brade is {BRADE_SACKS} sacks. {a} * {BRADE_SACKS} + {b} = {answer}.",
    )


@family(
    DOMAIN,
    space=((w, r) for w, r in product(range(11, 50), range(2, 6)) if w % PEG_STONE),
    wordings=(
        "Freight is {r} pence per stone of pegged weight. A crate for the Orrin barge weighs {w} stone. "
        "How many pence is its freight?",
        "A canal broker bills an anvil of {w} stone by its pegged weight, at {r} pence a stone. "
        "What does the bill come to in pence?",
        "The scale at the quay shows {w} stone for a load of slate. The barge master charges {r} pence for each stone, "
        "pegged. How many pence does he charge?",
    ),
)
def pegged_weight(w: int, r: int) -> Worked:
    """A rounding rule."""
    pegged = -(-w // PEG_STONE) * PEG_STONE
    return Worked(
        pegged * r,
        f"Pegged weight is the weight rounded up to the next multiple of {PEG_STONE} stone: {w} becomes {pegged}. "
        f"{pegged} * {r} = {pegged * r} pence.",
    )


@family(
    DOMAIN,
    space=product(range(5, 14), range(2, 10)),
    wordings=(
        "A barge waited {h} hours at Hobb's Lock. Slackage on the canal is {r} pence an hour. "
        "How many pence of slackage are due?",
        "The consignee kept the boat {h} hours at his quay before unloading. At {r} pence per hour, "
        "how much slackage, in pence, does the broker claim?",
        "Ice at the lock gate held up a grain barge for {h} hours. The contract allows slackage at {r} pence hourly. "
        "How many pence is the slackage?",
    ),
)
def slackage(h: int, r: int) -> Worked:
    """Waiting time with free hours."""
    answer = (h - SLACK_FREE_HOURS) * r
    return Worked(
        answer,
        f"Slackage is paid for waiting, but the first {SLACK_FREE_HOURS} hours are free: {h} - {SLACK_FREE_HOURS} = "
        f"{h - SLACK_FREE_HOURS} hours count, and {h - SLACK_FREE_HOURS} * {r} = {answer} pence.",
    )


@family(
    DOMAIN,
    space=product(range(4, 21, 2), range(2, 11)),
    wordings=(
        "A barge passes {n} locks of the Orrin Canal on a through-ticket. Lockage is {t} pence a lock. "
        "How many pence of lockage does it pay?",
        "From Orrin Head to the sea there are {n} locks, each with a lockage of {t} pence. The skipper holds a "
        "through-ticket. What does he pay in pence for the whole way?",
        "The broker buys a through-ticket for a coal boat that has {n} locks before it. At {t} pence lockage per lock, "
        "how many pence does she owe the canal company?",
    ),
)
def through_ticket(n: int, t: int) -> Worked:
    """A fee with a free unit in each group."""
    paid = n // TICKET_LOCKS
    return Worked(
        paid * t,
        f"On a through-ticket every second lock is free: {n} / {TICKET_LOCKS} = {paid} locks are paid, and "
        f"{paid} * {t} = {paid * t} pence.",
    )


@family(
    DOMAIN,
    space=product((2, 3, 4, 5, 6, 8, 10, 20, 30), range(2, 10)),
    wordings=(
        "A broker hires a barge for a hollow run to a quay {m} miles away, at {r} pence a mile. "
        "What does the run cost in pence?",
        "The quay at Sedge is {m} miles down the canal. The mileage rate is {r} pence. "
        "How many pence are charged for a hollow run to Sedge?",
        "At {r} pence per mile, a boatman delivers lime {m} miles up the Orrin Canal as a hollow run. "
        "How many pence does he bill?",
    ),
)
def hollow_run(m: int, r: int) -> Worked:
    """A return leg that is paid too."""
    miles = HOLLOW_TIMES * m
    return Worked(
        miles * r,
        "A hollow run is out loaded and back empty, and the miles of both ways are paid: "
        f"{HOLLOW_TIMES} * {m} = {miles} miles, and {miles} * {r} = {miles * r} pence.",
    )


@family(
    DOMAIN,
    space=((n,) for n in range(21, 100)),
    wordings=(
        "A barge takes on {n} sacks of rye under gleaning. How many sacks does the skipper get?",
        "{n} sacks of malt go down the Orrin Canal, and the freight is settled by gleaning. "
        "How many sacks stay with the carrier?",
        "A farmer ships {n} sacks of beans by canal. No money changes hands, the boatman has gleaning instead. "
        "What number of sacks does he keep?",
    ),
)
def gleaning(n: int) -> Worked:
    """Payment in kind from each full group."""
    kept = n // GLEANING_SACKS
    return Worked(
        kept,
        f"Under gleaning the carrier keeps 1 sack of every full {GLEANING_SACKS}, and nothing of the rest: "
        f"{n} holds {kept} full tens, so he keeps {kept}.",
    )


@family(
    DOMAIN,
    space=product((2, 3, 10, 20, 30, 100, 200, 300), range(2, 11)),
    wordings=(
        "The day toll of the Orrin tunnel is {t} pence a barge. {b} barges go through under lantern. "
        "How many pence of toll do they pay together?",
        "{b} boats of one broker pass the canal bridge under lantern; by day each would pay {t} pence. "
        "What is the toll for all of them in pence?",
        "A lock charges {t} pence per barge in daylight. A convoy of {b} barges comes under lantern. "
        "What does the keeper collect, in pence?",
    ),
)
def under_lantern(t: int, b: int) -> Worked:
    """A night rate."""
    each = LANTERN_TIMES * t
    return Worked(
        b * each,
        f"Under lantern (by night) each barge pays {LANTERN_TIMES} times the day toll: "
        f"{LANTERN_TIMES} * {t} = {each}, and {b} * {each} = {b * each} pence.",
    )


@family(
    DOMAIN,
    test_only=True,
    space=product(range(4, 8), (2, 3), range(2, 10)),
    wordings=(
        "A barge was on hire for {d} days, {f} of them frost days, at {r} pence a day by canal custom. "
        "How many pence is the hire?",
        "The hire of a tow-horse is {r} pence a day. The broker had it {d} days in all, {f} of which were entered as "
        "frost days. What does he pay in pence?",
        "Of the {d} days of a charter on the Orrin Canal, {f} were frost days. The charter rate is {r} pence a day. "
        "How many pence does the charterer owe?",
    ),
)
def frost_days(d: int, f: int, r: int) -> Worked:
    """Days that count for more."""
    counted = d + f * (FROST_DAY_DAYS - 1)
    return Worked(
        counted * r,
        f"A frost day is reckoned as {FROST_DAY_DAYS} days of hire, so the {f} frost days are counted once more: "
        f"{d} + {f} = {counted} days, and {counted} * {r} = {counted * r} pence.",
    )


@family(
    DOMAIN,
    test_only=True,
    space=((t,) for t in (*range(6, 41, 2), 60, 80, 100, 200)),
    kinds=3,
    wordings=(
        "Two {kind:shippers|farmers|traders} share a barge and its towage of {t} pence by elder's penny. "
        "How many pence does the elder of the two pay?",
        "Towage on the Orrin Canal came to {t} pence and was split between two {kind:houses|firms|mills} by elder's "
        "penny. What is the elder {kind:house|firm|mill}'s part in pence?",
        "By elder's penny, an old and a young {kind:miller|brewer|mason} settle {t} pence of towage for one boat. "
        "How many pence fall to the elder?",
    ),
)
def elders_penny(t: int) -> Worked:
    """An uneven split."""
    answer = t // 2 + ELDER_EXTRA // 2
    return Worked(
        answer,
        f"By elder's penny the elder party pays {ELDER_EXTRA} pence more than the younger, so half and "
        f"{ELDER_EXTRA // 2} more: {t} / 2 + {ELDER_EXTRA // 2} = {answer} pence.",
    )


FAMILIES = (
    brade_of_sacks,
    pegged_weight,
    slackage,
    through_ticket,
    hollow_run,
    gleaning,
    under_lantern,
    frost_days,
    elders_penny,
)
