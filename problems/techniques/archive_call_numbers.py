"""Conventions of an invented office: call numbers, shelves and loans of the Mossgate Archive.

The problems use the archivists' words without defining them. Each rule is stated only in its family's solution.
"""

from itertools import product

from problems.family import Worked, family

DOMAIN = "archive_call_numbers"
TAIL_FACTOR = 3
RUNG_BOXES = 12
SEAL_YEARS = 15
GIRTH_COVER = 4
LEASE_FIRST, LEASE_NEXT = 10, 3
SARN_STEP = 3


@family(
    DOMAIN,
    space=((a, b) for a, b in product(range(12, 90, 7), range(5, 50, 6)) if a != b),
    wordings=(
        "A deed in the Mossgate Archive stands in bay {a}, box {b}. What is the tail of its call number?",
        "The label printer asks for bay, box and tail. The clerk types {a} for the bay and {b} for the box. What does "
        "he type for the tail?",
        "Bay {a}, box {b}, tail torn off: which number was on the missing bit of the label?",
        "An old map lay in box {b} of bay {a} at Mossgate. Someone wants to write out its call number in full. Which "
        "tail has to be put at the end?",
        "To order a ledger, readers give its tail as well. The ledger is kept in bay {a}, and its box is number {b}. "
        "Which tail do they give?",
        "A charter returns from the binder to its place, box {b} in bay {a} of the archive. Find the tail under which "
        "the guard checks it in.",
        "An apprentice sits her examination. The master names bay {a} and box {b}, and she must say the tail straight "
        "away. With which answer does she pass?",
        "A thief sent a psalter back by post, without any label. According to the police report he had taken it out "
        "of box {b}, bay {a}, at Mossgate. State the tail that belongs to the psalter.",
        "Customs officers stop a papyrus on its way to an exhibition abroad, since the call number on its papers "
        "breaks off after bay {a} and box {b}. What tail must Mossgate supply?",
        'Two pen friends set each other riddles about Mossgate. "My bay is {a} and my box is {b}", writes one of them. '
        "Which tail should the other write back?",
        "A swallow has nested in bay {a} of the Mossgate Archive, right on top of box {b}. To have the nest moved, the "
        "warden must quote the call number of this box, tail and all. Which tail does he quote?",
        "Crossword clue: tail for whatever Mossgate keeps in box {b} of bay {a}. The squares are to be filled with the "
        "digits of a number. Which number fits?",
    ),
)
def tail_of_call_number(a: int, b: int) -> Worked:
    """A check number."""
    answer = TAIL_FACTOR * a + b
    return Worked(
        answer,
        f"At Mossgate the tail is {TAIL_FACTOR} times the bay plus the box: {TAIL_FACTOR} * {a} + {b} = "
        f"{TAIL_FACTOR * a} + {b} = {answer}.",
    )


@family(
    DOMAIN,
    space=((n,) for n in range(101, 700, 7)),
    wordings=(
        "Box {n} of the Mossgate Archive is wanted. On which rung does it stand?",
        "The boxes are put up in order of their numbers. Which rung has to be dusted to reach box number {n}?",
        "A water pipe leaks over the rung with box {n} in the archive cellar. What number does this rung bear?",
        "The porter brings up box {n}. Afterwards he must note from which rung he took it. What does he note?",
        "Mossgate plans for new boxes, the last of them number {n}. Up to which rung will the boxes reach?",
        "In the lists only the box of the parish letters is stated, it is {n}. Find the number of the rung for the "
        "finding aid.",
        "A driverless trolley fetches boxes at Mossgate. A rung must be keyed in before it rolls off. Tonight it "
        "should fetch box {n}. Which rung is keyed in?",
        "During a stocktaking the inspector calls out {n}, meaning a box. Her assistant walks to the rung that holds "
        "this box and reads the rung's number aloud. What does the inspector hear?",
        "A carpenter hears a crack and is told that the plank that carries box {n} at Mossgate has given way. Which "
        "rung does he mend?",
        "On the telephone a widow gives the number {n}, that of the box in which her husband's sketches are kept at "
        "Mossgate. To which rung does the archivist climb while she holds the line?",
        "Ivy has grown through a window at Mossgate and coils around a single box, number {n}. With his shears the "
        "gardener walks along the rungs. What number has the one at which he must stop?",
        "For the night of open doors every rung at Mossgate is lit by a candle of its own. A guest with a passion for "
        "box {n} wants to read by the proper candle. What is the number of the rung that this candle lights?",
    ),
)
def rung_of_box(n: int) -> Worked:
    """Full groups, rounded up."""
    before = (n - 1) // RUNG_BOXES
    return Worked(
        before + 1,
        f"A rung at Mossgate holds {RUNG_BOXES} boxes, and rung 1 begins with box 1. So divide by {RUNG_BOXES} and "
        f"round up: {n} / {RUNG_BOXES} is more than {before} and at most {before + 1}, so it is rung {before + 1}.",
    )


@family(
    DOMAIN,
    space=((y, g) for y, g in product(range(1803, 1960, 11), range(2, 8)) if (y + g) % 2),
    wordings=(
        "A file was closed in {y} and put under seal {g} at the Mossgate Archive. In which year may it be opened?",
        "Under seal {g} lie the letters of a general, locked away in {y}. What is the first year in which a reader "
        "may see them?",
        "The court records of {y} got seal {g} in that same year. When, as a year, does the seal end?",
        "A historian waits for papers which the archive shut up in {y}. They carry seal {g}. Which year does she wait "
        "for?",
        "What opening year does a Mossgate clerk write on a chest that was sealed in {y}, the grade of the seal being "
        "{g}?",
        "In {y} a bishop left his diary to the archive on the condition of seal {g}. Find the year that sets the "
        "diary free.",
        "A mayor's love poems received seal {g} in {y}. His town plans a feast for the very year in which Mossgate "
        "lifts the seal. For which year is the feast planned?",
        "Journalists keep a calendar of coming disclosures. One line concerns spy reports: sealed at Mossgate, grade "
        "{g}, year of sealing {y}. Complete the line with the year of release.",
        "The recipe of a liqueur was put under seal {g} in {y}, at Mossgate. A distillery wants to brew it as soon as "
        "the seal has run out. Which year can it name as the start?",
        "Red wax on a crate of weather tables says: grade of seal {g}, sealed at Mossgate in {y}. In what year may the "
        "wax be broken?",
        "A composer forbade the performance of his last opera and had it placed under seal {g} at Mossgate, in {y}. "
        "Singers will get the score in the year when the seal ends. Name that year.",
        "Astrologers had their prophecy sealed at Mossgate in {y} and demanded grade {g}. Sceptics will read it at the "
        "earliest lawful moment. In what year will they find out whether it came true?",
    ),
)
def end_of_seal(y: int, g: int) -> Worked:
    """A term of years by grade."""
    years = SEAL_YEARS * g
    return Worked(
        y + years,
        f"A seal at Mossgate lasts {SEAL_YEARS} years for each grade: {g} * {SEAL_YEARS} = {years} years. {y} + "
        f"{years} = {y + years}.",
    )


@family(
    DOMAIN,
    space=((f, p) for f, p in product(range(20, 100, 9), range(6, 30, 4))),
    wordings=(
        "A volume in the Mossgate Archive has {f} folios and {p} plates. What is its girth?",
        "The shelf plan needs the girth of each book. For an atlas with {p} plates and {f} folios, which girth goes "
        "into the plan?",
        "By girth the binder works out his glue. How large is the girth of a register of {f} folios in which {p} "
        "plates were sewn?",
        "A damaged herbal is measured: folios {f}, plates {p}. Find the girth that the archivist has to report.",
        "Nothing but the girth is printed on the spine of a Mossgate book. What is printed if the book was made up "
        "from {f} folios and {p} plates?",
        "Someone added {p} plates to a chronicle that consists of {f} folios. Its girth is to be entered again. Enter "
        "it as a number.",
        "Before he builds a crate for a hymnal, a joiner asks the archivists about its girth. The hymnal contains {p} "
        "plates as well as {f} folios. Which girth is he told?",
        "Count the folios: {f}. Count the plates: {p}. With these an intern fills in the form for a donated cookbook, "
        "girth included. State the correct girth.",
        "The freight for a fencing manual depends on its girth. Mossgate sends one with {p} plates bound in among its "
        "{f} folios. Which girth is used for the freight?",
        '"{f} folios and {p} plates, all intact!" cries the auctioneer, and Mossgate buys the missal. Work out the '
        "girth under which it is registered.",
        "A ropemaker twists a cord for tying up a psalm book at Mossgate and wants to be told nothing but the girth. "
        "Turning the leaves, the verger finds {f} folios and {p} plates. What should his answer be?",
        "Let a book of the Mossgate Archive have {p} plates and {f} folios. Determine its girth.",
    ),
)
def girth_of_volume(f: int, p: int) -> Worked:
    """A weighted sum with a fixed extra."""
    answer = 2 * f + p + GIRTH_COVER
    return Worked(
        answer,
        f"The girth counts 2 for each folio, 1 for each plate and {GIRTH_COVER} for the covers. 2 * {f} + {p} + "
        f"{GIRTH_COVER} = {2 * f} + {p} + {GIRTH_COVER} = {answer}.",
    )


@family(
    DOMAIN,
    space=((n,) for n in range(113, 1000, 8) if n % 10 and n % 10 != n // 100),
    wordings=(
        "A manuscript in the Mossgate Archive has the number {n}. What number does its twin have?",
        "When {n} is out on loan, a reader is offered the twin. Under which number is the twin found?",
        "For every original there is a twin in the safe. The original bears {n}. Which number must the safe keeper "
        "look for?",
        "The copyist has finished the twin of item {n}. She paints the right number on its back. What does she paint?",
        "Fire destroyed item {n} of the archive, but luckily not its twin. Find the number of the item that is left.",
        "Asked for the twin of {n}, the oldest clerk at Mossgate answers without looking it up. What is his answer?",
        "In the foyer hang item {n} and its twin. The little brass plate with the twin's number has fallen down and "
        "is lost. What should stand on a new plate?",
        "An insurer's table gives every item and its twin, by number. The item in the first column is {n}. State the "
        "entry that belongs in the second.",
        "A restorer has {n} on her bench and would like to compare it with its twin. Which number does she request "
        "from the stacks of Mossgate?",
        "At the Mossgate summer party, items hang from red hooks and their twins from blue hooks. Somebody holds up "
        "{n}, taken from a red hook. Name the number on the blue hook that goes with it.",
        "Two porters at Mossgate bet on who will be faster at finding a twin. The umpire has called out the original, "
        "{n}. With what number does the winner come running back?",
        "The lock of a display case at Mossgate is set to the number of a twin. All that a forgetful curator remembers "
        "is the number of its original, {n}. Which combination opens the lock?",
    ),
)
def number_of_twin(n: int) -> Worked:
    """The digits in reverse order."""
    answer = int(str(n)[::-1])
    return Worked(
        answer,
        f"At Mossgate a twin has the digits of the original in reverse order. {n} has the digits {', '.join(str(n))}, "
        f"so read from the end it is {answer}.",
    )


@family(
    DOMAIN,
    space=((d, v) for d, v in product(range(21, 200, 17), range(3, 14, 2))),
    wordings=(
        "On day {d} of the year a reader takes {v} volumes from the Mossgate Archive on lease. On which day of the "
        "year is the lease over?",
        "A lease of {v} volumes starts on day {d}. What day number is stamped on the slip as its end?",
        "The school borrows {v} volumes by lease. If they are handed out on day {d}, by which day does the archive "
        "want them back?",
        "Find the last day of a Mossgate lease that covers {v} volumes and has run since day {d}.",
        "Day {d}: a scholar signs a lease and leaves with {v} volumes on a cart. On what day, numbered in the same "
        "way, does his lease run out?",
        "The archive's reminder goes out when a lease ends. {v} volumes were leased together, on day {d}. Which day "
        "is that of the reminder?",
        "A film crew gets {v} volumes as props. Their lease begins on day {d} of the year, and at its expiry the "
        "props must be back. Which day of the year is the expiry?",
        "Travelling monks note a new lease in their log: begun day {d}, volumes {v}. Beside it they add the day of "
        "the year on which it expires. State the number that they add.",
        "A choir rehearses from {v} volumes of chorales, all of them under one Mossgate lease from day {d} of the "
        "year. On what day of the year does that lease lapse?",
        "On a screen at Mossgate, leases are drawn as bars above the numbered days of the year. A new bar starts at "
        "day {d} and stands for {v} volumes. At which day does it stop?",
        "The town's candle makers want to study old recipes and sign for {v} volumes from Mossgate, one lease for all. "
        "Day {d} of the year is the date of the signature. Which day of the year, by number, sees the end of the "
        "lease?",
        "A ferry sinks with {v} volumes from Mossgate on board, insured until the end of their lease. The lease, "
        "common to all these volumes, had been running since day {d} of the year. Up to which day of the year are they "
        "insured?",
    ),
)
def end_of_lease(d: int, v: int) -> Worked:
    """A term for the first, and more for each other."""
    days = LEASE_FIRST + LEASE_NEXT * (v - 1)
    return Worked(
        d + days,
        f"A lease is {LEASE_FIRST} days for the first volume and {LEASE_NEXT} more for each further one, counted on "
        f"from the day it starts. {LEASE_FIRST} + {LEASE_NEXT} * {v - 1} = {days} days. {d} + {days} = {d + days}.",
    )


@family(
    DOMAIN,
    space=((a, a + k) for a, k in product(range(13, 100, 9), range(24, 95, 4)) if a % 10 and (a + k) % 10),
    wordings=(
        "A blind run at the Mossgate Archive goes from number {a} to number {b}. How many items are in it?",
        "The seals of a lost abbey were numbered as a blind run, the first {a} and the last {b}. How many seals are "
        "there?",
        "Count the photographs of a series that the archive lists as blind run {a} to {b}.",
        "How many labels must be printed for coins that get the numbers {a} up to {b} in a blind run?",
        "The catalogue says of the drawings: blind run, begins with {a}, ends with {b}. A visitor asks for their "
        "number. What is it?",
        "{a} and {b} are the lowest and the highest number of a blind run of letters in Mossgate. Find how many "
        "letters that makes.",
        "Beetles are pinned in a drawer at Mossgate and numbered as a blind run. The run opens with {a} and closes "
        "with {b}. How many beetles does the drawer hold?",
        "A sponsor promises one dollar for each gramophone record in a blind run. The run extends from {a} to {b}, "
        "both included. What sum, in dollars, has the sponsor promised?",
        "Umbrellas that visitors forgot hang in the cloakroom of Mossgate, tagged as a blind run from {a} through {b}. "
        "How many umbrellas have been forgotten?",
        "A watchmaker services one clock of the archive per day, each clock once. The clocks form a blind run whose "
        "first number is {a} and whose last is {b}. For how many days do they keep her busy?",
        "Hats of former directors are kept at Mossgate as a blind run. It starts at number {a} and finishes at number "
        "{b}. If every hat goes into a case of its own, how many cases are required?",
        "A robot arm at Mossgate scans the postcards of a blind run in order: first card {a}, final card {b}. It makes "
        "a single scan of each card. What is the total of scans?",
    ),
)
def items_in_blind_run(a: int, b: int) -> Worked:
    """Some numbers are never given."""
    total, tens = b - a + 1, b // 10 - (a - 1) // 10
    return Worked(
        total - tens,
        f"In a blind run no number that ends in 0 is given. From {a} to {b} there are {b} - {a} + 1 = {total} "
        f"numbers, and {tens} of them end in 0. {total} - {tens} = {total - tens}.",
    )


@family(
    DOMAIN,
    space=((k, s) for k, s in product(range(4, 25, 3), range(11, 100, 7)) if k != s),
    wordings=(
        "Two sets of volumes are shelved in sarn, beginning at place {s}. At which place does volume {k} of the first "
        "set stand?",
        "In sarn from place {s} on, the archive puts the laws, as first set, and the comments, as second set. Where "
        "is volume {k} of the laws? Give the place.",
        "A reader needs part {k} of the first of two works that Mossgate keeps in sarn. The two works start at place "
        "{s}. To which place does he go?",
        "The new clerk arranges a pair of journals in sarn. Volume 1 of the leading journal comes to place {s}. Which "
        "place is right for its volume {k}?",
        "Sarn order was used for the diaries of a poet and his wife, with the poet's first, and it opens at place "
        "{s}. Find the place of the poet's diary number {k}.",
        "If place {s} is where a sarn of two series begins, on which place must one look for number {k} of the series "
        "that goes first?",
        "A theatre gives Mossgate its plays and its songs, to be kept in sarn with the plays first. The sarn starts "
        "at place {s}. Volume {k} of the plays is out for cleaning. Which place has it left empty?",
        "By torchlight a guard walks along two encyclopedias in sarn. The older one leads, and its opening part has "
        "place {s}. State the place where he passes part {k} of the older one.",
        "Mossgate sets out a dictionary and a grammar, each in many parts, in sarn. The dictionary takes the lead and "
        "has its earliest part at place {s}. Where does its part {k} belong?",
        '"Sarn, hearings before verdicts, from place {s}" is chalked on a shelf of the archive. Which place is due to '
        "volume {k} of the hearings?",
        "Cookery books and gardening books are lined up at Mossgate in sarn, and cookery is the set that comes first. "
        "The line has its beginning at place {s}. A hungry visitor asks for cookery volume {k}; to what place is he "
        "sent?",
        "Painted tiles mark the places along a wall at Mossgate. A sarn of sea atlases and star atlases starts above "
        "tile {s}, the sea atlases being the first set. Above which tile do we find volume {k} of the sea atlases?",
    ),
)
def place_in_sarn(k: int, s: int) -> Worked:
    """Places in a repeated pattern."""
    steps = SARN_STEP * (k - 1)
    return Worked(
        s + steps,
        "In sarn each volume of the first set is followed by two of the second, so the first set takes every third "
        f"place. From volume 1 to volume {k} it is {SARN_STEP} * {k - 1} = {steps} places on. {s} + {steps} = "
        f"{s + steps}.",
    )


FAMILIES = (
    tail_of_call_number,
    rung_of_box,
    end_of_seal,
    girth_of_volume,
    number_of_twin,
    end_of_lease,
    items_in_blind_run,
    place_in_sarn,
)
