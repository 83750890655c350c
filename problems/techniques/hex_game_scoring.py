"""Conventions of an invented game: the scoring of Kelvane, which is played with stones on a board of hexagons.

The problems use the players' words without defining them. Each rule is stated only in its family's solution.
"""

from itertools import product

from problems.family import Worked, family

DOMAIN = "hex_game_scoring"
CORRAL_CELL = 4
KOMAR_POINTS = 7
SIDES = 6
DROUTH_TURNS = 3


@family(
    DOMAIN,
    space=((k, n) for k, n in product(range(2, 8), range(4, 14)) if k not in (n, n - 1)),
    wordings=(
        "At the end of a game of Kelvane Tia has {k} spurs of {n} stones each. How many points do they score?",
        "In a Kelvane match the referee finds {k} spurs, every one {n} stones long, and no other figures. What is "
        "written on the score sheet?",
        "How many points is it worth in Kelvane to own {k} separate spurs if each consists of {n} stones?",
        "A beginner lays nothing but spurs of {n} stones and completes {k} of them on the hexagons. Find her score.",
        "The old champion of Kelvane won a famous game with {k} equal spurs alone. Each of these had {n} stones. With "
        "how many points did he win it?",
        "Blue's stones on the hex board form {k} spurs with {n} stones apiece. Work out what Blue gets for them.",
        "A painting in the club house shows a finished game of Kelvane. One can make out {k} spurs, and into each of "
        "them the artist put {n} stones. Guests are asked what total these spurs would earn. Which answer is correct?",
        "Uncle Harm and his niece play Kelvane by post. Her latest card reads: I claim for my spurs, {k} in number, "
        "length of each {n} stones. How many points must he credit her with, if the card tells the truth?",
        "Two monks break their silence for Kelvane only. What Brother Aldo has to show this evening is spurs, all {n} "
        "stones in length, and he has {k} altogether. Which number of points may he chalk on the slate?",
        "Suppose that nothing but spurs makes up somebody's result in Kelvane. There are {k}, and in any one of them "
        "you would count {n} stones. Determine the points that result from this.",
        "In a prison yard Kelvane is played with bottle caps for stones. Before the whistle convict Dorn manages {k} "
        "spurs, with {n} caps used up for every spur. What should the warder credit him for the spurs?",
        "A programmer tests her Kelvane software on a board where there is nothing but spurs. The input says: quantity "
        "of spurs, {k}; stones in any spur, {n}. What output proves that the software scores correctly?",
    ),
)
def spurs_of_stones(k: int, n: int) -> Worked:
    """A figure that scores more than its size."""
    one = n * (n - 1)
    return Worked(
        k * one,
        f"In Kelvane a spur scores its number of stones times one less than that: {n} * {n - 1} = {one}. {k} * {one} "
        f"= {k * one}.",
    )


@family(
    DOMAIN,
    space=((e, s) for e, s in product(range(4, 16), range(6, 25, 3)) if 4 * e > s + 2 and 4 * e - s not in (e, s)),
    wordings=(
        "A corral on the Kelvane board has {e} empty cells inside and {s} stones around them. How many points is it "
        "worth?",
        "Jon closes a corral with his {s} stones. {e} cells in it are free. What does he score for it in Kelvane?",
        "What is the value of a corral in Kelvane, if {s} stones make its wall and {e} empty cells are shut in?",
        "After the last move one big corral remains: wall {s} stones, inside {e} vacant cells. Which score does the "
        "hex game's rule book give for it?",
        "Red used up {s} stones for a ring about {e} free hexagons, and the umpire calls it a corral. Find Red's "
        "points for the corral.",
        "Two friends argue over a corral in their game of Kelvane. They agree that it holds {e} open cells and took "
        "{s} stones to build. How many points must they count?",
        "A blind master of Kelvane plays by touch. She finds a corral, with {s} stones in its fence and {e} "
        "unoccupied cells within. How many points should she claim for this corral?",
        "Task for the Kelvane exam: sketch a corral. Leave {e} hexagons blank in its interior and draw {s} stones as "
        "the border. What does your sketch earn?",
        "A shepherd is teaching Kelvane to his daughter. Her very first corral consists of {s} stones and has {e} bare "
        "hexagons inside. By how many points does it raise her score?",
        "Row of a Kelvane database: figure, corral; enclosed cells without a stone, {e}; enclosing stones, {s}; value, "
        "missing. Fill in the missing entry.",
        "At a fair a hypnotist makes a volunteer dream of Kelvane. In the dream {s} stones close a corral, and {e} "
        "hexagons within stay empty. How many points does the dreamer shout for the corral?",
        "Chess is out of fashion at the embassy, and Kelvane is in. The ambassador's corral is bounded by {s} stones "
        "and encloses {e} cells with nothing on them. Calculate its worth.",
    ),
)
def value_of_corral(e: int, s: int) -> Worked:
    """The inside counts for, the wall against."""
    inside = CORRAL_CELL * e
    return Worked(
        inside - s,
        f"A corral scores {CORRAL_CELL} points for each empty cell inside, less 1 for each stone of its wall. "
        f"{CORRAL_CELL} * {e} = {inside}, and {inside} - {s} = {inside - s}.",
    )


@family(
    DOMAIN,
    space=((p, a, b) for p, a, b in product((9, 14, 20, 25), range(3, 9), range(4, 13, 2)) if a != b),
    wordings=(
        "Lou has {p} points in Kelvane. She makes a graft between her groups of {a} and {b} stones. How many points "
        "has she now?",
        "With {p} points on the sheet a player grafts {a} stones onto {b} stones. What is the new total in this hex "
        "game?",
        "Before the graft: {p} points, one group of {a} stones and one of {b}. What will the score be after the "
        "graft, by the rules of Kelvane?",
        "White's single move is a graft that joins {b} stones with {a} others, and White stood at {p}. Where does "
        "White stand after this move?",
        "The computer plays Kelvane and sees a graft of a group of {a} to a group of {b}. It has collected {p} points "
        "so far. Compute its points if it goes for the graft.",
        "A graft decided the final. Groups of {a} and {b} hexes became one, and to the {p} points of the winner the "
        "graft's points were added. Find the final score of the winner.",
        "On the night train Vera and Olaf play Kelvane. Olaf, at {p} points, unites his cluster of {a} stones and his "
        "cluster of {b} stones by a graft. Which total should Vera write down for him?",
        "In the closing scene of a film about Kelvane the heroine dares a graft. Until then her tally is {p}. The "
        "graft links her {a} stones on the left to her {b} stones on the right. What tally do we see before the "
        "curtain falls?",
        "A translator is at work on a novel about Kelvane and ponders this sentence: At {p} points the duchess put {a} "
        "stones together with {b} by way of a graft, and fell asleep content. How many points had the duchess when she "
        "fell asleep?",
        "During a strike the dockers play Kelvane on an upturned crate. Kuno possesses {p} points and, among other "
        "things, two neighbouring groups, the one of {b} stones, the other of {a}. He fills the gap, the graft is "
        "complete. To what do his points amount at present?",
        "In a museum a wax figure bends over a Kelvane board, about to make a graft. A plaque gives the figure's "
        "points up to then, {p}, and the sizes of the groups to be connected, {a} and {b}. Which points belong on a "
        "new plaque that describes the moment after the graft?",
        "While they wait for bail, two pickpockets have scratched a Kelvane board into the bench. One of them is at "
        "{p} points and now grafts his chain of {b} stones to his chain of {a}. State his points from this instant on.",
    ),
)
def points_for_graft(p: int, a: int, b: int) -> Worked:
    """Joining two groups scores their product."""
    return Worked(
        p + a * b,
        f"A graft scores the product of the sizes of the two groups that it joins: {a} * {b} = {a * b}. {p} + {a * b} "
        f"= {p + a * b}.",
    )


@family(
    DOMAIN,
    space=((n, m) for n, m in product(range(21, 60, 3), range(3, 16, 2)) if n - 2 * m > 3 and n != 3 * m),
    wordings=(
        "A Kelvane player ends with {n} stones on the board, {m} of them in the mire. What do her stones score?",
        "Count the stones of Green: {n}, including {m} that are mired. How many points do they bring in Kelvane?",
        "Of his {n} stones Piet let {m} get into the mire. In the hex game he plays, what is left to him as stone "
        "points?",
        "Stone points are added up last. There are {n} stones for Amber; the mire has caught {m} of these. Which "
        "number is Amber given?",
        "The mire lies along the edge of the hexagon board. If {m} out of your {n} stones are mired when the game "
        "stops, how many points do you have from stones?",
        "A Kelvane puzzle shows {n} black stones and asks for Black's stone points. As one can see, {m} of the stones "
        "are in the mire. What is the solution?",
        "A cat jumps onto the table just as a game of Kelvane is over. Luckily a photo was taken: Ilse had {n} stones "
        "lying there altogether, and {m} among them were in the mire. How many stone points are hers?",
        "In the Kelvane corner of a newspaper the reader is told: Silver, total of stones {n}, mired {m}. Work out "
        "the stone points that Silver should receive.",
        "At low tide children scratch a Kelvane board into the sand. By the last turn Bo has put down {n} pebbles as "
        "his stones, and the mire turns out to hold {m} of this number. What do they all earn him in stone points?",
        "Let a side in Kelvane have {m} stones in the mire and, with those counted in, {n} stones overall. Determine "
        "the stone points of this side.",
        "Frost has glued the stones to a garden table, so the end of a Kelvane game can be studied at leisure. Tuva "
        "owns {n} of the frozen stones, and {m} of hers sit in the mire. Which stone points should she enter?",
        "The duke of a small country rewards Kelvane with a ducat for each stone point. Master Quill finishes with {m} "
        "mired stones; his stones in total, the mired ones among them, number {n}. How many ducats does he earn?",
    ),
)
def stones_in_the_mire(n: int, m: int) -> Worked:
    """Some count against their owner."""
    good = n - m
    return Worked(
        good - m,
        f"Each stone scores 1 point, but a stone in the mire costs its owner 1 point. {n} - {m} = {good} stones count "
        f"for the player and {m} against: {good} - {m} = {good - m}.",
    )


@family(
    DOMAIN,
    space=((a, b) for a, b in product(range(24, 61, 4), range(25, 64, 3)) if a - 6 < b < a + 25 and b + 7 - a > 1),
    wordings=(
        "In Kelvane with komar, the first player made {a} points on the board and the second player {b}. By how many "
        "points does the second player win?",
        "Ruth moved first and has {a}, Sven moved second and has {b}. They play Kelvane under komar. How large is "
        "Sven's winning margin?",
        "Board points: opener {a}, replier {b}. Komar is in force. With what lead does the replier take this game of "
        "Kelvane?",
        "A cup tie on the hex board ended {a} for the side that began and {b} for the other side, before komar. The "
        "other side went through. By what margin?",
        "Komar applies to every ranked game of Kelvane. Orange, who had the first stone, gathers {a}; Violet gathers "
        "{b} and is the winner. Find the difference that is put into the ranking.",
        "If the player with the first turn gets {a} and the one with the second turn {b}, how many points ahead is "
        "the latter in a Kelvane game with komar?",
        "Grandfather places the opening stone, and Edda answers. When the hexagons are counted, he has {a} and she "
        "has {b}, but komar is not yet considered. Once it is, Edda is the winner. What gap in points lies between "
        "the two then?",
        "Radio report from the Kelvane league, where komar is used: the guests have beaten their hosts! The hosts "
        "opened the game and collected {a} on the board, the guests replied and collected {b}. State the size of the "
        "guests' victory in points.",
        "On a cruise ship Kelvane is always played with komar. The steward let the cook begin; the cook reached {a} on "
        "the board, the steward {b}, and the steward was declared the winner. How many points apart did they finish?",
        "Let {a} be the board points of whoever makes the opening move in Kelvane and {b} the board points of the "
        "opponent. After the adjustment for komar the opponent is in front. Determine the difference of the adjusted "
        "scores.",
        "Two surgeons relax over Kelvane with komar. Dr Falk, who laid the very first stone, made {a} points on the "
        "board; Dr Oyen, who moved after her, made {b} and won. How many points lie between the two results, komar "
        "being counted?",
        "A bookmaker pays a crown for every point by which the winner is ahead in Kelvane, and komar is always "
        "applied. Today the side that started has {a} on the board, its rival has {b}, and the rival is the victor. "
        "How many crowns does the bookmaker pay for this game?",
    ),
)
def margin_with_komar(a: int, b: int) -> Worked:
    """Points for moving second."""
    total = b + KOMAR_POINTS
    return Worked(
        total - a,
        f"With komar the second player is given {KOMAR_POINTS} points for moving second. {b} + {KOMAR_POINTS} = "
        f"{total}, and {total} - {a} = {total - a}.",
    )


@family(
    DOMAIN,
    space=((p, n) for p, n in product(range(11, 51, 3), range(3, 8)) if (p + n) % 4),
    wordings=(
        "Nell stands at {p} points in Kelvane and then makes a lurch of {n} captures. What is her score after it?",
        "A lurch of {n} captures turned the game on the hex board. Its player had {p} points before. How many had he "
        "afterwards?",
        "Starting from {p} points, to which number does a lurch with {n} captures raise you in Kelvane?",
        "In one turn Grey captured {n} times in a lurch. The scoreboard had said {p} for Grey. What must it say next?",
        "The rules of Kelvane reward a lurch. Suppose you hold {p} points and your lurch consists of {n} captures. "
        "Find your new points.",
        "Commentator: a lurch, and a long one, {n} captures! To the {p} points that Yellow had, how do the judges now "
        "change the total? Give the new total.",
        "A robot for Kelvane is being tested. Its score counter reads {p} when it starts a lurch, and the lurch is "
        "over when {n} captures have been made. Which reading is correct at that moment?",
        "The lighthouse keeper's diary tells of Kelvane by lamplight: {p} points in hand, then a lurch, in which he "
        "counted {n} captures. With how many points did the lurch leave him?",
        "A scene of the puppet show is about Kelvane. The wolf, with {p} points to his name, sweeps across the board "
        "in a lurch, and the children shout the captures with him, from the first to the last, which is number {n}. "
        "What does the wolf's score become?",
        "Take {p} points, add what is earned in Kelvane by a lurch made up of {n} captures, and state the sum.",
        "In a dentist's waiting room two strangers play Kelvane. The one in the red coat, so far on {p} points, pulls "
        "off a lurch that comprises {n} captures. How many points are hers when she is called in?",
        "The parrot of the Kelvane club recites results. It squawks {p}, the tally before a lurch, then {n}, the count "
        "of captures in this lurch, but it has forgotten the tally afterwards. Supply that tally.",
    ),
)
def lurch_of_captures(p: int, n: int) -> Worked:
    """Each one scores twice the one before."""
    gain = 2**n - 1
    terms = " + ".join(str(2**i) for i in range(n))
    return Worked(
        p + gain,
        f"In a lurch the first capture scores 1 point and each next one twice as much as the one before. {terms} = "
        f"{gain}, and {p} + {gain} = {p + gain}.",
    )


@family(
    DOMAIN,
    space=((t, a, b) for t, a, b in product(range(7, 21), (1, 2, 3), (1, 2, 3)) if a + b < 5),
    wordings=(
        "The stake in a game of Kelvane is {t}. A hub has {a} of its owner's stones and {b} enemy stones beside it. "
        "How many points does the hub pay?",
        "Mo owns a hub. Next to it lie {a} stones of his and {b} of his rival's, and the stake stands at {t}. What is "
        "he paid for the hub?",
        "With a stake of {t} points, find what a Kelvane hub pays that touches {a} friendly and {b} hostile stones.",
        "Around the hub in the hex game there are {b} stones of the opponent and {a} of your own. The stake was set "
        "to {t}. How much does your hub bring you?",
        "Before the bell Pink counts on one hub to win. Its neighbours: own stones {a}, foreign stones {b}. Stake: "
        "{t}. How many points can Pink expect from it?",
        "A hub is worth more when the stake is high. Tonight it is {t}, and the hub in question is touched by {a} "
        "stones of the same colour and {b} of the other colour. What does it pay?",
        "In a harbour tavern sailors play Kelvane at a stake of {t}. Stones that border on the cook's hub: from his "
        "own bag {a}, from the captain's bag {b}. What sum is due to the cook for that hub?",
        "Exercise from a Kelvane handbook. Diagram: a white hub. Adjacent white stones: {a}. Adjacent black stones: "
        "{b}. Agreed stake: {t}. Compute the payment that White receives for the hub.",
        "Snowed in at a mountain hut, a guide teaches a guest Kelvane. They settle on {t} as the stake. The guide's "
        "hub has for its neighbours {a} of the guide's stones and {b} of the guest's; apart from these nothing adjoins "
        "it. To how many points is the guide entitled for this hub?",
        "Let P be the pay for a hub in Kelvane. Given are the stake, {t}, the count of stones of the owner in contact "
        "with the hub, {a}, and the count of stones of the adversary in contact with it, {b}. Determine P.",
        "A fairy tale has the queen play Kelvane against the dragon, with {t} for the stake. Beside her hub the tally "
        "of her own stones is {a} and the tally of the dragon's stones is {b}. How many points must the dragon allow "
        "her for the hub?",
        "Between two races the jockeys sit over Kelvane, and {t} is today's stake. On the cells around the hub of the "
        "elder jockey one sees, of his stones, {a}, and of the younger one's, {b}, while the remaining cells around it "
        "are unoccupied. What payment does the elder jockey's hub earn?",
    ),
)
def pay_of_a_hub(t: int, a: int, b: int) -> Worked:
    """Only free sides are paid."""
    free = SIDES - a - b
    return Worked(
        t * free,
        f"A hub pays the stake for each free side. A hexagon has {SIDES} sides, so {SIDES} - {a} - {b} = {free} are "
        f"free. {t} * {free} = {t * free}.",
    )


@family(
    DOMAIN,
    space=((p, n) for p, n in product(range(31, 80, 4), range(7, 30, 3)) if p - n // 3 != n),
    wordings=(
        "A Kelvane player with {p} points goes through a drouth of {n} turns. How many points are left?",
        "After a drouth that lasted {n} turns, what remains of the {p} points Ursula had in the hex game?",
        "Brown leads with {p} and then falls into a drouth for {n} turns in a row. To what number does Brown's score "
        "sink?",
        "The timekeeper notes a drouth, {n} turns, against the player on {p} points. Which score does the Kelvane "
        "rule leave this player?",
        "A drouth is every player's fear. Mine came at {p} points and was over {n} turns later. How many points did I "
        "still have?",
        "Score before the drouth {p}, length of the drouth {n} turns. Find the score after it by the rules of Kelvane.",
        "One rainy Sunday my aunt's luck at Kelvane deserted her. She owned {p} points when a drouth set in, and it "
        "did not end until {n} turns had gone by. How many points could she then call her own?",
        "Online Kelvane, automatic message: account Maroon, balance {p} points; event, drouth; duration, {n} turns. "
        "Calculate the balance that the server must display next.",
        "Shipwrecked, the crew plays Kelvane with shells. A drouth of the bosun has taken {n} turns, and just before "
        "it he was on {p} points. Which score should now be carved on the palm tree for him?",
        "Take a Kelvane score of {p} and deduct what a drouth costs whose duration is {n} turns. Give the difference.",
        "A caravan rests in the desert, and its guides unroll a Kelvane board. Omar, who is on {p} points, is struck "
        "by a drouth, and {n} turns pass until it lifts. At how many points does he resume?",
        '"I had {p} points, then I had a drouth, and it has taken {n} turns," sighs the old man in a cartoon about '
        'Kelvane. "Ask me not what I have now." Ask nevertheless, and reply in his place.',
    ),
)
def points_after_drouth(p: int, n: int) -> Worked:
    """A loss for each full group of turns."""
    lost = n // DROUTH_TURNS
    return Worked(
        p - lost,
        f"A drouth costs 1 point for every full {DROUTH_TURNS} turns, and turns beyond that cost nothing. {n} turns "
        f"hold {lost} full threes. {p} - {lost} = {p - lost}.",
    )


FAMILIES = (
    spurs_of_stones,
    value_of_corral,
    points_for_graft,
    stones_in_the_mire,
    margin_with_komar,
    lurch_of_captures,
    pay_of_a_hub,
    points_after_drouth,
)
