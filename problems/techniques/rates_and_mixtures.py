"""Rates and mixtures: work, pipes, meeting and overtaking, average speed, dilution, alloys and compound change."""

from itertools import pairwise, product

from problems.family import Worked, family

DOMAIN = "rates_and_mixtures"
PERCENTS = ((2, 10), (2, 20), (2, 30), (2, 40), (2, 50), (3, 10), (3, 20), (3, 50))
"""How often something grows, and by how many percent."""


@family(
    DOMAIN,
    space=(
        (a, b, d)
        for a, b, d in product(range(10, 49, 2), range(9, 49, 3), range(3, 20))
        if d < a != b and (a - d) * b % (a + b) == 0 and (a - d) * b // (a + b) not in (1, 2, a, b, d) and b % 4 < 3
    ),
    wordings=(
        "A painter needs {a} days for a house front, and her colleague would need {b} days. She paints alone for {d} "
        "days, then the colleague joins in. How many days do they paint together until the front is done?",
        "Pump A dries a flooded cellar in {a} hours, pump B in {b} hours. A has been running for {d} hours when B is "
        "switched on as well. How long do the two run side by side, in hours, before the cellar is dry?",
        "Carla and Dev type up an old diary. Carla alone would take {a} evenings over it, Dev alone {b}. After "
        "Carla's first {d} evenings Dev comes to help every evening. On how many evenings do both of them type?",
        "A goat eats a meadow bare in {a} days, a sheep takes {b} days. The goat has the meadow to itself for {d} "
        "days, and only then the sheep is let in too. Nothing grows again. For how many days do they graze in company?",
        "Over the cable a file is sent in {a} seconds, over the radio link in {b} seconds. The link starts {d} "
        "seconds after the cable and sends other parts of the file. For how many seconds are both in use?",
        "Digging a trench takes the old machine {a} weeks and the new one {b} weeks. The old one begins, and the new "
        "one arrives {d} weeks later. Find the number of weeks of joint digging that finish the trench.",
        "A large order of gingerbread has to be iced. Olga on her own would ice it in {a} hours, Piet on his own in "
        "{b} hours. Olga starts, and when {d} hours are over Piet sits down beside her and ices too. From that "
        "moment, how many hours does the pair need for the rest of the order?",
        "Through the north gate alone a full stadium empties in {a} minutes, through the south gate alone in {b} "
        "minutes, each at its own steady rate. After the match only the north gate is open at first. The south gate "
        "opens {d} minutes later, and both stay open. How many minutes after the south gate opened has everybody left?",
        "A butler polishes all the silver of a palace in {a} hours if nobody helps him. The footman, unaided, does it "
        "in {b} hours. This morning the butler had already polished for {d} hours when the footman picked up a cloth "
        "too, and they kept at it until the last spoon shone. For how many hours did both of them polish?",
        "A quantity is 0 at first and rises evenly by 1/{a} each second. As soon as {d} seconds have passed, it rises "
        "each second by a further 1/{b} on top of that. How long after this change, in seconds, does it reach 1?",
        "With a fresh battery a torch shines for {a} hours if nothing else is connected to it, and a radio plays for "
        "{b} hours if nothing else is connected to it. Someone connects the torch to a fresh battery, and {d} hours "
        "later the radio to the same battery, without switching the torch off. For how many hours does the radio play "
        "until the battery is flat?",
        "It takes the red snowplough {a} hours to clear a mountain pass single-handed, and it takes the green one {b} "
        "hours. The green one sets to work {d} hours after the red one, at the far side of the pass. Counted from "
        "then, after how many hours are all parts of the pass clear?",
    ),
)
def joined_later(a: int, b: int, d: int) -> Worked:
    """Take off what one has done alone, then add the rates."""
    answer = (a - d) * b // (a + b)
    return Worked(
        answer,
        f"Rates add up, and a rate is 1 over the time. {d}/{a} is done alone, so {a - d}/{a} is left. Both rates "
        f"together are 1/{a} + 1/{b} = {a + b}/{a * b}. Divide what is left by the rate: {a - d} * {b} / {a + b} = "
        f"{answer}.",
    )


@family(
    DOMAIN,
    space=(
        (a, b)
        for a, b in product(range(4, 61), range(6, 91))
        if a < b and a * b % (b - a) == 0 and b != 2 * a and a * b // (b - a) <= 240
    ),
    wordings=(
        "A tap fills a tub in {a} minutes, and the drain empties a full tub in {b} minutes. The tub is empty, and "
        "both are opened. After how many minutes is it full?",
        "Farm carts would stock an empty granary in {a} days, and the mills would use up a full granary in {b} days. "
        "Carts and mills start on the same day at an empty granary. How many days does it take to get full?",
        "Off duty, a robot charges from zero to full in {a} minutes. At work without a cable, its full battery lasts "
        "{b} minutes. Today it works while it charges from zero. How many minutes pass until the battery is full?",
        "Two cyclists leave the same point of a circuit in the same direction. A lap takes one of them {a} seconds "
        "and the other {b} seconds. How many seconds later is the faster one exactly a lap ahead for the first time?",
        "In {a} hours a spider can weave a whole web. A steady wind tears a whole web to nothing in {b} hours. The "
        "spider begins in that wind and works on without a break. How many hours does the whole web cost it?",
        "An author writes a volume of stories in {a} months. A critic strikes out a volume's text in {b} months. Both "
        "are at it all the time from the first day. After how many months is there a volume?",
        "A snow cannon would lay the full cover on a bare ski slope in {a} hours. Mild air would melt a full cover "
        "away in {b} hours. Both act at a steady rate. The cannon is switched on at the bare slope in such mild air. "
        "How many hours go by before the slope has its full cover?",
        "Standing still on a down escalator, Rudi is carried from the top to the bottom in {b} seconds. When it is "
        "switched off, he climbs it in {a} seconds. Now it is running downwards, and he climbs its steps from the "
        "bottom at his usual pace. Find the number of seconds until he reaches the top.",
        "Grandmother covers a bare table with pancakes in {a} minutes while nobody eats. Her grandchildren clear a "
        "covered table in {b} minutes while nobody bakes. On Sunday the table is bare, she starts baking, they start "
        "eating at once, and everyone keeps to the usual speed. How many minutes later is the table covered?",
        "If she had no expenses, Mia's wages would make up the price of a horse in {a} weeks. If she had no wages, the "
        "price of a horse would meet her expenses for {b} weeks. She owns nothing today, and from now on she earns and "
        "spends evenly, week in, week out. In how many weeks can she buy the horse?",
        "Two planets circle a sun in the same direction, each at a constant speed, one in {a} months and the other in "
        "{b} months. Right now, seen from the sun, they are in exactly the same direction. How many months will go by "
        "until they are in the same direction again for the first time?",
        "An electric blower inflates a flat air mattress in {a} minutes as long as the mattress is sound. Through a "
        "slit that it has got, a firm mattress goes flat in {b} minutes when no air is blown in; both rates are "
        "constant. The mattress with the slit is flat, and the blower is turned on. How long does it take to become "
        "firm, in minutes?",
    ),
)
def filling_against_draining(a: int, b: int) -> Worked:
    """Opposed rates are subtracted."""
    answer = a * b // (b - a)
    return Worked(
        answer,
        f"Opposed rates are subtracted, and a rate is 1 over the time. 1/{a} - 1/{b} = ({b} - {a}) / ({a} * {b}) = "
        f"{b - a} / {a * b} is done per unit of time. The time is the reciprocal: {a * b} / {b - a} = {answer}.",
    )


@family(
    DOMAIN,
    space=(
        (n, d, k, m)
        for n, d, k, m in product(range(6, 41, 4), range(16, 41, 3), range(3, 10, 2), range(2, 16))
        if n * (d - k) % (n + m) == 0 and n * (d - k) // (n + m) not in (n, d, k, m, 1, 2)
    ),
    wordings=(
        "{n} workers were to build a wall in {d} days. After {k} days, {m} more workers are sent to help, all equally "
        "fast. How many more days does the wall take?",
        "A fort with {n} soldiers has food for {d} days. {k} days later {m} soldiers of the same appetite join the "
        "fort. For how many days from then on does the food last?",
        "The hay in a barn would feed {n} ponies for {d} weeks. When {k} weeks have gone by, the owner buys {m} "
        "ponies. How many weeks does the rest of the hay feed the larger herd?",
        "To bring in the grapes, a vineyard planned {d} days with {n} pickers. In fact {m} extra pickers turned up "
        "once {k} days were over. How many days did the enlarged team still have to pick?",
        "{n} identical printers finish an edition in {d} hours. The job has been running for {k} hours when {m} "
        "printers of that type are added. Find how many hours of printing remain.",
        "On a raft {n} castaways ration their water so that it will do for {d} days. After {k} days they save {m} "
        "others from the sea. With the ration per head unchanged, how many days' water is left for all?",
        "The air tanks of a moon base would serve its crew of {n} for {d} weeks. After {k} weeks a ship sets down {m} "
        "more people and flies off again. Everybody breathes equally much. From then on, how many weeks do the tanks "
        "hold out?",
        "A mill put {n} looms on a large order of cloth, which would have been complete after {d} weeks. All looms "
        "there weave at one speed. With {k} weeks behind them, {m} further looms were put on the order as well. What "
        "number of weeks lay between this change and the completion?",
        "The coal in the cellar of a hostel was bought to heat {n} stoves for {d} nights. Once {k} nights are past, "
        "the warden lights {m} additional stoves every night, each of which burns as much as any other. How many "
        "nights from this change on can all of them be heated?",
        "Copying a psalter would have kept {n} monks busy for {d} months. When the monks had written for {k} months, "
        "{m} novices sat down beside them, just as quick with the pen, and stayed. How many months did the whole group "
        "write until the last psalm was copied?",
        "With {n} boats, all alike in size and speed, the evacuation of an island would last {d} hours. These boats "
        "begin, and {k} hours later {m} boats of the same sort turn up and take part. How many hours after that is the "
        "evacuation finished?",
        "A fund bears no interest and suffices to pay {n} pensions for {d} years. All pensions are of one size. When "
        "it has paid these for {k} years, another {m} people retire, who get the same pension from the same fund. For "
        "how many further years can every pension be paid?",
    ),
)
def crew_grows(n: int, d: int, k: int, m: int) -> Worked:
    """Count the work in worker-days."""
    left = n * (d - k)
    return Worked(
        left // (n + m),
        f"Measure the whole as heads times time, which stays the same whoever does it. For {n} heads {d} - {k} = "
        f"{d - k} days are left, that is {n} * {d - k} = {left}. Now there are {n} + {m} = {n + m} heads: {left} / "
        f"{n + m} = {left // (n + m)}.",
    )


@family(
    DOMAIN,
    space=(
        (h * u + (u + v) * t, u, v, h)
        for u, v, h in product(range(4, 20), range(5, 22, 3), range(2, 5))
        for t in ((3 * u + v + 2 * h) % 11 + 2,)
    ),
    wordings=(
        "Ayle and Brock are {s} km apart. A hiker leaves Ayle for Brock at {u} km/h. {h} hours later a rider leaves "
        "Brock for Ayle at {v} km/h. How many kilometres from Ayle do they meet?",
        "Crews dig a tunnel of {s} metres from both ends. The north crew digs {u} metres a day and starts {h} days "
        "before the south crew, which digs {v}. How many metres of the tunnel are the work of the north crew?",
        "Ines translates a book of {s} pages from the front, {u} pages a day. When she has worked for {h} days, Karl "
        "begins at the back with {v} pages a day. How many pages has Ines done when no page is left?",
        "A rope of {s} cm burns from its left end at {u} cm a minute. After {h} minutes it is lit at the right end "
        "too and burns there at {v} cm a minute. How far from the left end do the flames touch, in cm?",
        "A wall of {s} bricks gets painted. Pia's roller does {u} bricks a minute from one end, and {h} minutes later "
        "Quin's does {v} a minute from the other end. What number of bricks are Pia's in the end?",
        "Point P leaves 0 in the positive direction, {u} units per second. Point Q leaves {s} in the negative "
        "direction, {v} units per second, but {h} seconds after P. At which coordinate do they coincide?",
        "A mine shaft is {s} metres deep. A cage rises from the bottom at {u} metres a second. When it has been "
        "rising for {h} seconds, a lamp is let down from the top at {v} metres a second. How high above the bottom, "
        "in metres, are cage and lamp level?",
        "A single long row has {s} chairs, and each is to get a programme. Zoe starts at the aisle and lays out {u} "
        "programmes a minute. Her brother starts {h} minutes after her at the window and lays out {v} a minute, "
        "coming towards her. How many programmes has Zoe laid out when every chair has one?",
        "A telegraph cable {s} miles long is to lie in a straight line between two islands. One ship sets out from the "
        "western island and lays {u} miles of it a day, towards the east. Another sets out from the eastern island {h} "
        "days after her and lays {v} miles a day, towards the west. How many miles has the western ship laid when the "
        "cable is complete?",
        "Tim and Amy share a noodle {s} mm in length, each with one end of it between the lips. Tim sucks in {u} mm of "
        "noodle per second. Amy hesitates, begins {h} seconds after Tim and then sucks in {v} mm per second. How many "
        "millimetres of noodle does Tim get?",
        "A green cistern is empty while a blue cistern contains {s} gallons. Rain fills the green one by {u} gallons a "
        "minute. The rain has lasted {h} minutes when a tap is opened through which the blue one loses {v} gallons a "
        "minute, and rain does not get into the blue one. How many gallons does the green one contain when both "
        "contain the same amount?",
        "A hedge {s} feet long has to be clipped. Lou begins at its south corner and clips {u} feet an hour; Mick "
        "begins {h} hours after Lou at the north corner and clips {v} feet an hour, working towards Lou. How many feet "
        "of the hedge has Lou clipped by the time it is finished?",
    ),
)
def meeting_after_head_start(s: int, u: int, v: int, h: int) -> Worked:
    """Take off the head start, then divide by the sum of the speeds."""
    gap = s - u * h
    time = gap // (u + v)
    return Worked(
        u * (h + time),
        f"The head start is {u} * {h} = {u * h}, and {s} - {u * h} = {gap} is left. They close in with the sum of the "
        f"speeds, {u} + {v} = {u + v}, in {gap} / {u + v} = {time}. The first has moved for {h} + {time} = "
        f"{h + time}: {u} * {h + time} = {u * (h + time)}.",
    )


@family(
    DOMAIN,
    space=(
        (u, v, t)
        for u, v, t in product(
            (20, 30, 40, 45, 50, 60, 70, 80),
            (60, 75, 80, 90, 100, 120, 150),
            range(3, 16),
        )
        if u < v != 2 * u and u * t % (v - u) == 0 and (u + v + t) % 3
    ),
    wordings=(
        "Nils walks off along a path at {u} metres a minute. {t} minutes later his sister runs after him from the "
        "same spot at {v} metres a minute. How many metres from that spot does she catch up with him?",
        "Machine K stamps {u} lids a minute. Machine L is started {t} minutes after it and stamps {v} lids a minute. "
        "How many lids has each of them stamped when their counters are level?",
        "A tanker leaves port at {u} km a day, and {t} days after that a patrol ship takes up the chase with {v} km a "
        "day on the same course. At what distance from port, in kilometres, does it overtake the tanker?",
        "The elder brother has been saving {u} coins a week. The younger opens his money box {t} weeks after the "
        "elder opened his, but puts in {v} coins a week. What sum lies in each box when both hold the same?",
        "Lava creeps down a slope, {u} feet an hour. A faster stream leaves the same crater {t} hours behind it and "
        "makes {v} feet an hour. Find how many feet from the crater it reaches the tip of the slower one.",
        "Of an endless saga Tess reads {u} pages a day. Omar begins {t} days later and reads {v} pages a day. On what "
        "page are they when he has drawn even with her?",
        "A white balloon is let go on a lawn and rises {u} metres a minute. A red balloon is let go on the same lawn "
        "{t} minutes after the white one and rises {v} metres a minute. How high above the lawn, in metres, are the "
        "balloons when they are level in the air?",
        "From the moment it goes online, a film about cats gets {u} clicks every hour. A film about dogs goes online "
        "{t} hours after the cat film and from then on gets {v} clicks every hour. Which total of clicks do both "
        "films show at the time when their totals are equal?",
        "Two beanstalks sprout beside a fence, both from height zero, the second one {t} days after the first. Every "
        "day the first grows by {u} mm, the second by {v} mm. What height in millimetres do they have on being equally "
        "tall?",
        "A diver leaves a boat at the surface and sinks {u} cm each second. When {t} seconds have gone by, a lead "
        "weight is dropped from the boat, and it sinks {v} cm each second. At what depth, in centimetres, does the "
        "weight get past the diver?",
        "Two linear functions are given, f(x) = {u}x and g(x) = {v}(x - {t}). Their graphs have one point in common. "
        "What is the y-coordinate of that point?",
        "An observatory has two telescopes, each of which keeps a catalogue of its own. The old telescope enters {u} "
        "stars into its catalogue every night. The new one is put into service {t} nights after the old one and enters "
        "{v} stars every night. How many stars does each catalogue comprise when they are equally long?",
    ),
)
def place_of_catching_up(u: int, v: int, t: int) -> Worked:
    """Divide the lead by the difference of the speeds."""
    lead, gain = u * t, v - u
    time = lead // gain
    return Worked(
        v * time,
        f"The lead is {u} * {t} = {lead}. The second gains the difference of the speeds, {v} - {u} = {gain}, per unit "
        f"of time, so it needs {lead} / {gain} = {time}. In this time it covers {v} * {time} = {v * time}.",
    )


@family(
    DOMAIN,
    space=(
        (s, u, v, t)
        for s, u, v, t in product(range(90, 400, 70), range(11, 40, 9), range(14, 40, 7), range(25, 70, 13))
        if (u + v) * t % s > 15 and u != v and (u + v) * t // s > 3
    ),
    wordings=(
        "Two children on scooters start together on a round path of {s} metres and ride in opposite directions, one "
        "at {u} and one at {v} metres a minute. How often do they meet in the next {t} minutes, the start not counted?",
        "A ring road is {s} km long. At the same place a red bus sets off clockwise at {u} km/h and a blue bus "
        "anticlockwise at {v} km/h. How many times do the buses pass each other within {t} hours after setting off?",
        "On a circular toy rail of {s} cm two engines leave the station back to back. Their speeds are {u} and {v} cm "
        "a second. Beside each other again they whistle. How many whistles are heard in {t} seconds?",
        "From one spot on the rim of a plate an ant goes {u} mm a second one way and a beetle {v} mm a second the "
        "other way. The rim is {s} mm around. Count their encounters during the {t} seconds after they part.",
        "Around an island it is {s} miles by sea. Two guard boats leave the pier in contrary directions, {u} and {v} "
        "miles a day, and salute whenever they come across each other. How many salutes do {t} days at sea bring?",
        "Two points run on a circle with a circumference of {s}, one with speed {u}, the other with speed {v} against "
        "it. At time 0 they coincide. How many more times do they coincide up to time {t}?",
        "A circular orbit round an asteroid is {s} km long. Two probes are released at one point of it and fly along "
        "it in opposite senses, at {u} and {v} km an hour. Whenever they are at the same point again, a signal goes "
        "to Earth. How many signals does Earth get for the first {t} hours of flight?",
        "The walk on top of a round castle wall measures {s} paces. From one tower a sentry goes left at {u} paces a "
        "minute, and at the same time another goes right at {v}. Neither turns back. Each time they come face to face "
        "on the way they exchange the password. How often is it exchanged within {t} minutes?",
        "A line is painted all the way around an ice rink, {s} feet in total. Mara and Finn push off at one mark on "
        "it, at once, and skate along the line, Mara clockwise with {u} feet per second and Finn the opposite way with "
        "{v}. They slap hands every time they come past one another, but not at the push-off. How often do they slap "
        "hands in {t} seconds?",
        "Two conveyor belts of a sushi bar, one right above the other, form closed loops that are {s} cm long. The "
        "upper belt carries a bowl of eel, {u} cm per minute, and the lower belt a bowl of rice, {v} cm per minute in "
        "the contrary sense. At this moment the eel is exactly above the rice. How many further times is it exactly "
        "above the rice in the coming {t} minutes?",
        "The moat round a palace is a closed ring of water, and along its middle it is {s} ells long. Two swans are "
        "set free under the drawbridge and swim along this middle, {u} and {v} ells a minute, one to the left and one "
        "to the right. How many times are they beak to beak in the {t} minutes after they are set free?",
        "A neon tube is bent into a closed loop of {s} inches. Two glowing dots run along it in opposite directions "
        "without a stop, at {u} and at {v} inches a second, and a click is heard at each moment when the dots merge. "
        "They have just merged and clicked. How many further clicks follow in the next {t} seconds?",
    ),
)
def meetings_on_circuit(s: int, u: int, v: int, t: int) -> Worked:
    """From one meeting to the next both together make one round."""
    way = (u + v) * t
    return Worked(
        way // s,
        f"From one meeting to the next the two together cover exactly one round. Together they cover ({u} + {v}) * "
        f"{t} = {u + v} * {t} = {way}. The full rounds in it are the meetings: {way} // {s} = {way // s}.",
    )


@family(
    DOMAIN,
    space=(
        (b, p, q)
        for v, p, k in product((5, 10, 12, 15, 20, 25), range(7, 16, 2), range(8, 30, 6))
        for b, q in ((v * k, p + k),)
    ),
    wordings=(
        "A train passes a signal post in {p} seconds. To cross a bridge of {b} metres, from the front entering to the "
        "rear leaving, it takes {q} seconds at the same speed. How many metres long is the train?",
        "A procession needs {p} minutes to walk past a lamp post. Its way over a square is {b} steps, and {q} minutes "
        "pass from the first clown entering to the last drummer leaving. How long is the procession in steps?",
        "A caterpillar crawls over a line on a leaf in {p} seconds, head to tail. For a whole leaf of {b} mm, from "
        "its head coming onto it to its tail going off, it takes {q} seconds. What is its length in millimetres?",
        "For {p} minutes a herd streams past a lone tree at an even pace. A canyon of {b} yards has cattle in it for "
        "{q} minutes, from the leader coming in to the last calf going out. Find the herd's length in yards.",
        "To glide past a pebble an eel needs {p} blinks of an eye. From its nose going into a pipe of {b} cm to its "
        "tail coming out at the other end it needs {q} blinks. How many centimetres does the eel measure?",
        "A laser gate needs {p} ms to see a bar go by at constant speed from tip to end. A tunnel {b} mm in length "
        "has some of the bar inside it for {q} ms. How many millimetres long is the bar?",
        "The shadow of a cloud moves across a plain, always equally fast. A flagpole stands in the shadow for {p} "
        "minutes. A straight runway of {b} metres, which lies along the direction of motion, is at least partly in "
        "the shadow for {q} minutes. How many metres does the shadow measure along that direction?",
        "At an unchanging speed a canal boat slides by an angler on the bank, and from bow to stern this lasts {p} "
        "seconds. Between its bow reaching an aqueduct of {b} feet and its stern clearing the far side of the "
        "aqueduct, {q} seconds go by. Work out the boat's length in feet.",
        "An even current drives an oil slick, which keeps its shape, down a straight channel. A buoy has oil around it "
        "for {p} hours. A reserve takes up {b} furlongs of the shore, and for {q} hours there is oil off some part of "
        "the reserve. What does the slick measure, in furlongs, from its foremost to its hindmost point?",
        "A line of text crawls from right to left over an advertising board that is {b} inches wide, without ever "
        "changing its pace. Any given bulb of the board has the text running over it for {p} seconds, from the first "
        "letter to the last. From the first letter showing at the right edge until the last letter vanishes at the "
        "left edge, {q} seconds pass. How wide is the line of text, in inches?",
        "A sheet of wallpaper runs through a printing works at a uniform speed. It takes {p} seconds to run past the "
        "edge of a roller. From its front edge going into a drying oven that is {b} inches in length to its rear edge "
        "coming out of the oven, {q} seconds elapse. How many inches of wallpaper are on the sheet, from front edge to "
        "rear edge?",
        "Measured from the nose of the first husky to the end of the sledge, a dog team takes {p} seconds to cross "
        "the finishing line. Before that, going just as fast, it had to get over a frozen lake of {b} feet, and {q} "
        "seconds passed between the first nose coming above the ice and the end of the sledge being off it. What is "
        "the team's whole length, sledge included, in feet?",
    ),
)
def length_from_two_passings(b: int, p: int, q: int) -> Worked:
    """The extra time is the time for the bridge alone."""
    speed = b // (q - p)
    return Worked(
        speed * p,
        f"Past a point it moves its own length; across something long, that length and its own. So the extra time {q} "
        f"- {p} = {q - p} is for {b} alone, and the speed is {b} / {q - p} = {speed}. Own length is speed times time "
        f"past the point: {speed} * {p} = {speed * p}.",
    )


@family(
    DOMAIN,
    space=(
        (u, w)
        for u, w in product(range(6, 121), range(6, 121))
        if u != w and w < 2 * u and w * u % (2 * u - w) == 0 and w * u // (2 * u - w) <= 180 and (u + w) % 3
    ),
    wordings=(
        "A driver wants an average of {w} km/h over a whole trip. On the first half of the way she makes only {u} "
        "km/h on average. What average speed in km/h does she need on the second half of the way?",
        "Up the hill the mail coach goes at {u} furlongs an hour. How fast, in furlongs an hour, must it come down "
        "the same road so that there and back the mean speed is {w}?",
        "Half of a sack of letters is stamped at {u} letters a minute. At which pace, in letters a minute, must the "
        "other half be stamped for an overall pace of {w} letters a minute?",
        "A rower's plan for the regatta says {w} metres a minute on average from start to finish. At the midpoint of "
        "the course his average is {u}. Which number of metres a minute does the remaining stretch demand?",
        "A disk is copied in two equally large portions. The copying rate of the whole is {w} MB per second. The "
        "portion done first was copied at {u} MB per second. Find the rate of the other portion.",
        "The harmonic mean of two numbers is {w}, and one of them is {u}. Determine the other.",
        "Jill knits a blanket. For the first half of its rows her rate is {u} rows a day. For the blanket as a whole "
        "it comes to {w} rows a day. How many rows a day does she knit during the second half of the rows?",
        "A trader buys silver twice and spends the same sum of money each time. The first time silver is at {u} "
        "crowns an ounce. Taking all her silver together, she has paid {w} crowns an ounce on average. What was the "
        "price of an ounce, in crowns, the second time?",
        "Two resistors of {w} ohms each are connected in parallel to a battery. They are exchanged for one of {u} ohms "
        "and an unknown one, also in parallel, and the total current drawn from the battery stays what it was. How "
        "many ohms has the unknown resistor?",
        "A car does {u} miles to the gallon from Ayton to Beeford. It comes home along exactly the same route. For "
        "both journeys together its petrol consumption is one gallon for every {w} miles driven. How many miles to the "
        "gallon did the car do on its way home?",
        "The reciprocal of {u} and the reciprocal of an unknown number have the arithmetic mean 1/{w}. What is the "
        "unknown number?",
        "A swimming bath was filled to exactly one half of its volume with a hose that gave {u} hectolitres an hour. "
        "Then a different hose was used until the bath was full. Divided by the total time, the volume of the bath "
        "comes to {w} hectolitres an hour. How many hectolitres an hour did the different hose give?",
    ),
)
def speed_for_target_average(u: int, w: int) -> Worked:
    """Over equal ways the times add up, so work with reciprocals."""
    answer = w * u // (2 * u - w)
    return Worked(
        answer,
        f"Over two equal parts the times add up, not the speeds: 2/w = 1/u + 1/x for the average w. So 1/x = 2/{w} - "
        f"1/{u} = (2 * {u} - {w}) / ({w} * {u}) = {2 * u - w} / {w * u}. The reciprocal is x = {w * u} / {2 * u - w} "
        f"= {answer}.",
    )


@family(
    DOMAIN,
    space=(
        (a, b)
        for a, b in product(range(3, 61), range(5, 91))
        if a < b and 2 * a * b % (b - a) == 0 and 2 * a * b // (b - a) <= 300 and b not in (2 * a, 3 * a)
    ),
    wordings=(
        "A steamer goes from Upton down the river to Lowton in {a} hours and back up in {b} hours, always with the "
        "same engine power. How many hours does a raft drift from Upton to Lowton?",
        "On a moving walkway Ida walks from end to end in {a} seconds. Against its motion the same walk takes her {b} "
        "seconds. In how many seconds would the walkway carry her along if she stood still?",
        "A pigeon flies the route between two towers in {a} minutes with a steady wind at its back and returns in {b} "
        "minutes against it. For how many minutes does a soap bubble travel from tower to tower?",
        "An otter swims downstream past a wood in {a} minutes, and upstream past it in {b} minutes, with equal effort "
        "in both cases. How many minutes does a fallen leaf take to float past the wood?",
        "A paddler covers a stretch with the current in {a} minutes and against it in {b} minutes. Her cap falls into "
        "the water at the upper end of the stretch. After how many minutes is it at the lower end?",
        "Let x + y be 1/{a} and x - y be 1/{b}. What is the reciprocal of y?",
        "When Jo and Kim carry firewood into an empty shed, it is full after {a} hours. One day Kim carries wood out "
        "as fast as she normally carries it in. Jo works as ever, and the empty shed gets full after {b} hours. How "
        "many hours would Kim need to fill the empty shed without Jo?",
        "A round stage turns steadily. An actor walks along its edge, always at the same pace on the boards and "
        "faster than the edge moves. Seen from the hall, he makes a full round in {a} seconds with the turning and in "
        "{b} seconds against it. Find the seconds that one turn of the stage lasts.",
        "Una always climbs the same number of steps per second. On an escalator that runs upwards she gets from the "
        "ground floor to the gallery in {a} seconds. When it runs downwards instead, at unchanged speed, she still "
        "gets from the ground floor to the gallery, in {b} seconds. How many seconds does this escalator need to bring "
        "a suitcase from floor to floor?",
        "A debt bears no interest. If Rosa and her uncle each pay off their fixed monthly sum, it is gone after {a} "
        "months. If Rosa pays off hers, but the uncle borrows his every month, which increases the debt, it is gone "
        "after {b} months. After how many months is it gone if the uncle pays off his sum every month and Rosa does "
        "nothing?",
        "A monkey climbs a rope, and relative to the rope it is always equally quick. While the rope is being hauled "
        "up by a winch, the monkey gets from the deck to the crow's nest in {a} seconds. While the rope is being let "
        "down by the winch at the same speed, the monkey still gets from the deck to the crow's nest, but in {b} "
        "seconds. How many seconds would the ascent last if the monkey merely clung to the rope while the winch hauled "
        "it up?",
        "The main pump and the small pump of a waterworks together take {a} hours to fill a dry reservoir. If the "
        "small pump is connected the wrong way round, so that it draws out just as much as it otherwise sends in, "
        "filling the dry reservoir takes {b} hours. In how many hours could the small pump, connected properly, fill "
        "the dry reservoir while the main pump is off?",
    ),
)
def drifting_time(a: int, b: int) -> Worked:
    """The current is half the difference of the two rates."""
    answer = 2 * a * b // (b - a)
    return Worked(
        answer,
        "With the current the rates are added, against it subtracted, so the current alone is half the difference of "
        f"the two rates. (1/{a} - 1/{b}) / 2 = ({b} - {a}) / (2 * {a} * {b}) = {b - a} / {2 * a * b}. The time is the "
        f"reciprocal: {2 * a * b} / {b - a} = {answer}.",
    )


@family(
    DOMAIN,
    space=(
        (v, p, q)
        for v, p, q in product(range(25, 201, 25), range(12, 73, 12), range(4, 49, 4))
        if q < p != 2 * q and v * p % 100 == 0 and v * (p - q) % q == 0 and v * (p - q) // q not in (p, q)
    ),
    wordings=(
        "A cook has {v} litres of brine with {p}% salt and wants it at {q}%. How many litres of water must she add?",
        "{v} grams of a copper and tin alloy are {p}% tin. Pure copper is melted in until the tin is only {q}% of the "
        "whole. How many grams of copper does this take?",
        "At a meeting with {v} people {p} percent are doctors. Then only people who are not doctors come in, until "
        "the doctors are {q} percent of all. How many people come in?",
        "In a flock of {v} sheep {p}% are black. The shepherd buys nothing but white sheep to bring the black ones "
        "down to {q}% of the flock. What number of sheep does he buy?",
        "A player has won {p}% of her {v} games. From now on she loses every game. After how many losses stands her "
        "share of wins at exactly {q}%?",
        "{p}% of the {v} ounces in a jug of squash are syrup. Soda without any syrup is poured in, and afterwards "
        "syrup makes up {q}% of the jug. Find the ounces of soda.",
        "A radio station has a list of {v} songs, and {p}% of them are jazz. The new manager keeps them all and puts "
        "rock songs on the list as well, so that jazz is now {q}% of it. How many rock songs did the manager put on?",
        "Forest covers {p}% of the {v} acres that a countess owns. She buys open fields without any forest from her "
        "neighbours. In the end {q}% of her land is forest, though no tree was felled or planted. What is the area of "
        "the fields in acres?",
        "A convent library owns {v} volumes, {p}% of which are in Latin. A bequest adds volumes to it, none of them in "
        "Latin, and Latin now accounts for {q}% of the library. How many volumes came with the bequest?",
        "Of the {v} characters in a string, {p}% are digits. Nothing but letters is appended to the string until "
        "exactly {q}% of its characters are digits. How many letters are appended?",
        "A bricklayer has {v} kg of mortar, of which {p}% is cement. He shovels in sand, which contains no cement at "
        "all, until cement is just {q}% of the mortar. How many kilograms of sand does he shovel in?",
        "A fortune of {v} thousand dollars is invested, {p}% of it in gold. The owner then invests fresh money, solely "
        "in bonds, and the value of everything bought earlier stays as it was. Gold is {q}% of the fortune after this. "
        "How many thousand dollars went into the bonds?",
    ),
)
def thinning_out(v: int, p: int, q: int) -> Worked:
    """The amount of the one part stays, the total changes."""
    total = v * p // q
    return Worked(
        total - v,
        f"The amount of the one part does not change when only the other is added: it is {p}% of {v} and in the end "
        f"{q}% of the new total. So the new total is {v} * {p} / {q} = {total}. What was added is {total} - {v} = "
        f"{total - v}.",
    )


@family(
    DOMAIN,
    space=(
        (v, r, p, q)
        for v, r, p, q in product(range(10, 51, 10), range(12, 41, 7), range(45, 95, 7), range(20, 80, 6))
        if r < q < p and v * (q - r) % (p - q) == 0 and v * (q - r) // (p - q) not in (v, r, p, q)
    ),
    wordings=(
        "How many litres of {p}% acid must be mixed with {v} litres of {r}% acid to get {q}% acid?",
        "A goldsmith has {v} grams of an alloy with {r}% gold. He melts it together with an alloy of {p}% gold, and "
        "the result is {q}% gold. How many grams of the richer alloy did he take?",
        "Plain tea costs {r} pence an ounce and fine tea {p} pence. To {v} ounces of the plain one a merchant adds so "
        "much of the fine one that the blend is worth {q} pence an ounce. How many ounces of fine tea are in it?",
        "{v} buckets of water at {r} degrees are in a bath. With how many buckets at {p} degrees does the bath come "
        "to {q} degrees, if no heat is lost?",
        "A class of {v} pupils got {r} points on average in a test, and the class next door {p} points. Taken "
        "together the average is {q}. How many pupils are next door?",
        "A weight of {v} kg hangs at position {r} of a light beam. What weight in kilograms must hang at position {p} "
        "if the beam is to balance on a support at position {q}?",
        "A goods train rolls at {r} km/h for {v} minutes, and from then on at {p} km/h. For how many minutes must it "
        "keep up the higher speed until its average speed since the beginning is {q} km/h?",
        "In a crate lie {v} small eggs of {r} grams apiece. A packer puts large eggs of {p} grams apiece on top of "
        "them. Now the mean weight of an egg in the crate is {q} grams. Find the number of large eggs.",
        "A hotel has {v} rooms, for which it charges {r} crowns a night each, and some suites, for which it charges "
        "{p} crowns a night each. On a night when every room and every suite was let to a single guest, these guests "
        "paid {q} crowns each on average. How many suites has the hotel?",
        "In a list of numbers, {v} entries are equal to {r}, and each of the remaining entries is equal to {p}. The "
        "arithmetic mean of all the entries is {q}. Determine how many entries are equal to {p}.",
        "A farmer reaps {r} sacks of barley a hectare from {v} hectares of sandy soil, and {p} sacks a hectare from "
        "his clay soil. For all of his soil it comes to {q} sacks a hectare. How many hectares of clay soil does he "
        "farm?",
        "In a dairy there are {v} churns of milk with {r} grams of fat in each litre. Cream with {p} grams of fat in "
        "each litre is stirred in until there are {q} grams of fat in each litre. All churns hold the same amount; how "
        "many churns of cream does this take?",
    ),
)
def balancing_a_mixture(v: int, r: int, p: int, q: int) -> Worked:
    """What is missing on one side equals what is too much on the other."""
    answer = v * (q - r) // (p - q)
    return Worked(
        answer,
        "What the weaker part lacks must equal what the stronger part has too much. Each unit of the weaker lacks "
        f"{q} - {r} = {q - r}, and {v} units lack {v} * {q - r} = {v * (q - r)}. Each unit of the stronger has {p} - "
        f"{q} = {p - q} too much. {v * (q - r)} / {p - q} = {answer}.",
    )


@family(
    DOMAIN,
    space=(
        (v, v // f, n)
        for (f, n), k in product(
            ((3, 2), (3, 3), (4, 2), (4, 3), (5, 2), (5, 3), (6, 2), (10, 2)),
            range(2, 10),
        )
        for v in (k * f**n,)
        if v <= 600
    ),
    wordings=(
        "A vat holds {v} litres of wine. {k} litres are drawn off and replaced by water, and the vat is stirred. This "
        "is done {n} times in all. How many litres of wine are in the vat then?",
        "A tank contains {v} gallons of pure petrol. A careless hand takes out {k} gallons, tops the tank up with "
        "oil, mixes it, and repeats this until it has happened {n} times. How many gallons of petrol are left?",
        "In a lake live {v} carp. Each year {k} fish are caught at random from the lake, and as many trout are put "
        "in, so that each catch has just the lake's share of carp. How many carp are left after {n} years?",
        "A hall with {v} cubic feet of stale air is aired {n} times. Each airing swaps {k} cubic feet of the "
        "well-mixed air for fresh air. Find the cubic feet of stale air that stay.",
        "From a flask with {v} ml of dye a chemist pours out {k} ml, fills up with clear water and shakes. What "
        "amount of dye in ml is in the flask when she has carried out this routine {n} times?",
        "A purse holds {v} silver coins. Someone swaps {k} of the coins for copper ones, each time in exact "
        "proportion to what the purse holds. After {n} such swaps, how many silver coins does it hold?",
        "A sandpit is filled with {v} kg of yellow sand. Every evening {k} kg of the evenly mixed sand are carted "
        "off, then {k} kg of white sand are tipped in and raked under until all is even. How many kilograms of yellow "
        "sand does the pit have after {n} evenings?",
        "A regiment starts out with {v} founders. Each winter {k} of its members go home, founders and later members "
        "exactly in proportion to their numbers. Then {k} new members take their places. What number of founders "
        "still serve when {n} winters are over?",
        "A pot is full to the brim with {v} ml of black tea. {n} guests come by, one after another. Each guest drinks "
        "{k} ml out of the pot, whereupon the host makes up the loss with hot milk and mixes everything thoroughly. "
        "How many millilitres of tea does the pot contain in the end?",
        "The jar of a bakery contains {v} grams of old sourdough. On each baking day the baker kneads the contents of "
        "the jar well, takes {k} grams for the bread, and gives the jar just as many grams of new dough. How many "
        "grams of the old sourdough does the jar contain after {n} baking days?",
        "An aquarium contains {v} quarts of sea water and nothing else. Every Sunday the keeper scoops out {k} quarts "
        "of what is in it, well stirred, and makes it up with {k} quarts of river water. After {n} Sundays, how many "
        "quarts of sea water are in the aquarium?",
        "Let x_0 = {v}, and for each positive integer j let x_j = x_(j - 1) - x_(j - 1) * {k}/{v}. Compute x_{n}.",
    ),
)
def repeated_replacement(v: int, k: int, n: int) -> Worked:
    """Each replacement leaves the same fraction."""
    f = v // k
    answer = v * (f - 1) ** n // f**n
    return Worked(
        answer,
        f"Each time the same fraction is taken away, here {k}/{v} = 1/{f}, so each time {f - 1}/{f} of what was there "
        f"stays. After {n} times it is {v} * ({f - 1}/{f})^{n} = {v} * {(f - 1) ** n} / {f**n} = {answer}.",
    )


@family(
    DOMAIN,
    space=(
        (m, w, z)
        for m, w, z in product(range(50, 601, 50), (84, 88, 90, 94, 98), range(13, 97, 3))
        if z < w and m * w % 100 == 0 and m * (100 - w) % (100 - z) == 0 and m * (100 - w) // (100 - z) > 5
    ),
    wordings=(
        "Fresh mushrooms are {w}% water, and dried ones {z}% water. How many kilograms of dried mushrooms do {m} kg "
        "of fresh ones give?",
        "{m} pounds of cucumbers that consist of {w} percent water lie in the sun until water is only {z} percent of "
        "their weight. How many pounds do they weigh then?",
        "Of the {m} people in a room {w}% are men. Some men go out, and nobody else, after which {z}% of those in the "
        "room are men. How many people are in the room now?",
        "A salt pan is filled with {m} tonnes of sea water, {w}% of it water and the rest salt. Sun and wind take "
        "away water until what lies there has a water content of {z}%. What does it weigh in tonnes?",
        "In a box of {m} beads {w}% are white. White beads are taken out one by one. When the share of white has "
        "fallen to {z}%, how many beads does the box contain?",
        "{w}% of an archive of {m} gigabytes are needless copies. A clean-up deletes only copies and brings them down "
        "to {z}% of what is kept. Find the size of the archive in gigabytes after the clean-up.",
        "A wood has {m} trees, and {w}% of these are spruces. A storm fells a number of spruces but no other tree. Of "
        "the trees that still stand, {z}% are spruces. How many trees still stand?",
        "An editor gets the draft of a yearbook. It has {m} pages, and {w} percent of the pages are adverts. She "
        "throws out advert pages and nothing besides, until adverts make up {z} percent of the yearbook. To what "
        "number of pages has the yearbook shrunk?",
        "Bots are behind {w}% of the {m} accounts in a chat group. The moderator bans bots, one at a time, and no real "
        "person's account. He stops when exactly {z}% of the remaining accounts are bots. How many accounts does the "
        "group have at that point?",
        "Dripping wet, a bath sponge weighs {m} grams, and {w}% of this weight is water. Someone wrings it, which "
        "presses out water alone. At last {z}% of what the sponge weighs is water. How heavy is the wrung sponge, in "
        "grams?",
        "A farm boils down {m} litres of maple sap. Water makes up {w}% of the sap's volume, and nothing but water "
        "escapes as steam. Boiling stops when water makes up {z}% of the volume; volumes of water and of the rest just "
        "add up. How many litres of syrup does the farm get?",
        "Late in the evening {m} cars stand in a car park, {w}% of them with an electric motor. From then on electric "
        "cars drive off, and no other car leaves or arrives, until {z}% of the cars that stand there have an electric "
        "motor. How many cars stand there at this time?",
    ),
)
def drying_out(m: int, w: int, z: int) -> Worked:
    """The dry part stays the same."""
    answer = m * (100 - w) // (100 - z)
    return Worked(
        answer,
        f"The other part stays as it is; only its share changes. It is 100 - {w} = {100 - w}% of {m} at first and 100 "
        f"- {z} = {100 - z}% of what is left. So what is left is {m} * {100 - w} / {100 - z} = {m * (100 - w)} / "
        f"{100 - z} = {answer}.",
    )


@family(
    DOMAIN,
    space=(
        (v, p, n)
        for (n, p), v in product(
            PERCENTS,
            (200, 300, 400, 500, 700, 800, 900, 1000, 1200, 1500, 2000, 3000, 4000),
        )
        if v * (100 + p) ** n % 100**n == 0
    ),
    wordings=(
        "A deposit of {v} euros earns {p}% interest a year, which is added to the deposit every year. How many euros "
        "is it worth after {n} years?",
        "A colony of {v} bees becomes {p} percent larger in each month. How many bees does it have when {n} months "
        "have passed?",
        "A printed page is {v} dots wide. A copier enlarges by {p}%, and the copy is copied again in the same way, "
        "until {n} copying steps are done. How many dots wide is the last copy?",
        "The rent of a hall was {v} crowns. The landlord raised it {n} times, each time by {p}% of the rent then in "
        "force. What is the rent now?",
        "An engine turns {v} times a minute in first gear, and in each higher gear {p} percent faster than in the "
        "gear below. How many turns a minute does it make {n} gears above first gear?",
        "A glacier lake covers {v} square metres and swells by {p}% of its current area each summer. Find its area in "
        "square metres {n} summers on.",
        "On Sunday evening {v} people know a rumour. On every evening after that, the number who know it is {p} "
        "percent higher than on the evening before. How many people know the rumour {n} evenings after Sunday evening?",
        "Lena swims {v} metres in her first week of training. In every further week she swims the distance of the "
        "previous week and {p}% of that distance on top. Which distance in metres does she swim in the week that "
        "comes {n} weeks after the first?",
        "At an auction of a painting the opening bid is {v} florins. After it {n} more bids are made, each of them "
        "{p}% above the preceding bid. For how many florins is the painting sold to the final bidder?",
        "Let f(x) be the number that exceeds x by {p}% of x. Put {v} into f, put the outcome into f again, and go on "
        "like this until f has been used {n} times altogether. Which number comes out last?",
        "Each model of a telescope collects {p}% more light than the model before it. The earliest model collects {v} "
        "photons a second. How many photons a second does the model collect that was brought out {n} models after the "
        "earliest?",
        "A factory opens with {v} robots at the start of year 1. At the close of each year it has {p}% more robots "
        "than it had at the start of that year, and nothing changes between the close of a year and the start of the "
        "next. How many robots does it have at the close of year {n}?",
    ),
)
def compound_growth(v: int, p: int, n: int) -> Worked:
    """Each step multiplies by the same factor."""
    answer = v * (100 + p) ** n // 100**n
    steps = [v * (100 + p) ** k / 100**k for k in range(n + 1)]
    chain = ", then ".join(f"{x:g} + {p}% = {y:g}" for x, y in pairwise(steps))
    return Worked(
        answer,
        f"Each percentage is taken of the new value, so do not add up the percentages but repeat the step {n} times. "
        f"{chain}. The result is {answer}.",
    )


@family(
    DOMAIN,
    space=(
        (g + s // p, p, g + s // q, q, t)
        for g, s, (p, q, t) in product(
            range(2, 9),
            (120, 240),
            ((20, 12, 8), (15, 10, 6), (24, 15, 10), (30, 20, 12)),
        )
        if g + s // t not in (p, q, t)
    ),
    wordings=(
        "The grass of a meadow grows evenly. {a} cows would eat it bare in {p} days, and {b} cows in {q} days. How "
        "many cows would eat it bare in {t} days?",
        "Water seeps into a boat at a steady rate, and some is in it already. {a} sailors can bail it out in {p} "
        "minutes, {b} sailors in {q} minutes, all equally fast. How many sailors could do it in {t} minutes?",
        "A queue stands outside a museum, and people go on arriving evenly. With {a} tills open the queue is gone "
        "after {p} minutes, with {b} tills after {q} minutes. How many tills make it vanish after {t} minutes?",
        "An office has a heap of old files, and the same number of new ones comes in every week. {a} clerks would be "
        "done with everything in {p} weeks, {b} clerks in {q} weeks. How many clerks would it take to be done in {t} "
        "weeks?",
        "A lake is fed by a brook that always brings the same. {a} pumps of one kind run the full lake dry in {p} "
        "days, and {b} such pumps in {q} days. How many of these pumps run it dry in {t} days?",
        "Leaves lie on a lawn and more keep falling, hour by hour the same amount. A team of {a} gardeners would have "
        "the lawn clear after {p} hours, a team of {b} after {q} hours, and each rakes at the same speed. Which size "
        "of team has it clear after {t} hours?",
        "Dirty plates are piled up in a canteen kitchen, and waiters bring further plates at a constant rate. All "
        "dishwashers have the same speed. A crew of {a} dishwashers would have no dirty plate left after {p} minutes, "
        "a crew of {b} after {q} minutes. Which size must a crew have to reach this after exactly {t} minutes?",
        "Aphids sit on a rose bed, and equally many new ones fly in every day. All ladybirds have the same appetite. "
        "With {a} ladybirds on the bed, the last aphid would be eaten at the end of {p} days, with {b} ladybirds at "
        "the end of {q} days. Find the number of ladybirds for which this would last {t} days.",
        "An inn has debts that bear no interest, and a fixed sum of fresh debts is added every month. The landlord's "
        "cousins are willing to pay, each of them an equal sum a month. If {a} cousins pay, all debts are cleared "
        "after {p} months; if {b} cousins pay, after {q} months. How many cousins must pay so that all debts are "
        "cleared after {t} months?",
        "Smoke fills a theatre, and a broken machine lets in still more of it without variation. Fans of one make are "
        "available, each of which sucks out a constant volume. {a} fans would rid the theatre of smoke in {p} minutes, "
        "and {b} fans would need {q} minutes. What number of fans rids it of smoke in {t} minutes?",
        "The numbers S and x satisfy S + {p}x = {a} * {p} and S + {q}x = {b} * {q}. For which number N does S + {t}x = "
        "N * {t} hold?",
        "A runway lies under snow, and snow goes on falling on it without getting heavier or lighter. The airport's "
        "ploughs all do the same. If {a} ploughs are sent out, the runway is bare {p} minutes later; if {b} are sent "
        "out, it is bare {q} minutes later. How many have to be sent out so that it is bare {t} minutes later?",
    ),
    test_only=True,
)
def stock_that_grows(a: int, p: int, b: int, q: int, t: int) -> Worked:
    """Find the growth from two cases, then the stock."""
    g = (p * a - q * b) // (p - q)
    stock = p * (a - g)
    return Worked(
        g + stock // t,
        f"Measure in what one does in a unit of time. In {p} units {p} * {a} = {p * a} is done, in {q} units {q} * "
        f"{b} = {q * b}. So {p} - {q} = {p - q} units more bring {p * a} - {q * b} = {p * a - q * b}, which is {g} "
        f"each. The stock is {p * a} - {p} * {g} = {stock}. For {t} units there must be {g} for what comes and "
        f"{stock} / {t} = {stock // t} for the stock: {g} + {stock // t} = {g + stock // t}.",
    )


@family(
    DOMAIN,
    space=(
        (h * (u + v), u, v, w)
        for u, v, h, w in product(range(3, 7), range(4, 9), (2, 3, 5), (12, 16, 18))
        if u < v and h * w not in (h * (u + v), u, v, w)
    ),
    wordings=(
        "Two cyclists {d} km apart ride towards each other at {u} km/h and {v} km/h. From the start until they meet, "
        "a fly goes back and forth between them at {w} km/h. How many kilometres does it fly?",
        "The two halves of a gate are {d} cm apart and close at {u} and {v} cm per second. A toy car drives to and "
        "fro between them at {w} cm per second until they shut. How many centimetres does it drive?",
        "A brother and a sister leave two huts on one trail, {d} km apart, for each other. He walks {u} km/h and she "
        "{v} km/h. Their dog runs all the time from one to the other and back, {w} km in an hour. How far has it run "
        "when they meet, in kilometres?",
        "A fuse of {d} cm is lit at both ends. One flame eats {u} cm a minute and the other {v} cm. An ant runs on it "
        "from flame to flame at {w} cm a minute and jumps off when they meet. How many centimetres has it run?",
        "Two ships steam at each other, one at {u} and one at {v} knots, and are {d} nautical miles apart. A drone "
        "shuttles between their bows at {w} knots without a pause until the ships are side by side. What is the "
        "length of its flight in nautical miles?",
        "P and Q start at the two ends of a segment of length {d} and move inwards with the speeds {u} and {v}. R "
        "starts with P, runs to Q, turns, runs to P, turns, and so on with the speed {w}. Find the total way of R up "
        "to the moment when P and Q coincide.",
        "Two ice floes with {d} metres of water between them drift straight together, one at {u} and one at {v} "
        "metres a minute. All this time, until the floes touch, a seal swims from floe to floe and back again at {w} "
        "metres a minute. How many metres does the seal swim?",
        "Two kings travel on one road, each towards the other. At dawn {d} leagues lie between their coaches, which "
        "make {u} and {v} leagues an hour. From dawn a herald rides from coach to coach and back with letters, {w} "
        "leagues an hour, and stops once the coaches stand face to face. Find the leagues of his whole ride.",
        "On a cliff a climber is {d} metres straight below a rescuer. The climber comes up by {u} metres a minute "
        "while the rescuer is lowered by {v} metres a minute. Until the two are level, a lizard scurries up and down "
        "the rock from one to the other at {w} metres a minute, never resting. How many metres does the lizard scurry "
        "in all?",
        "Two rows of dancers face each other across {d} paces of ballroom floor. When the music begins, the rows "
        "advance, one by {u} and the other by {v} paces a minute, until they stand nose to nose. During all that time "
        "a page hurries from row to row with flowers, there and back without a stop, covering {w} paces a minute. What "
        "distance in paces does the page cover?",
        "Two parallel flat mirrors are {d} units apart and approach each other, one with a speed of {u} and the other "
        "with a speed of {v} units a second. A pulse of light in a sluggish medium sets out from one of them, is "
        "thrown back and forth between them at right angles, always at {w} units a second, and dies when they touch. "
        "How many units long is the whole path of the pulse?",
        "On a rink, two ice hockey players {d} m apart glide straight towards one another at {u} and {v} metres a "
        "second. Until they meet, they keep striking a puck back and forth between them, and it slides at {w} metres a "
        "second all the time, without any delay at the sticks. What distance, in metres, does the puck slide?",
    ),
    test_only=True,
)
def to_and_fro(d: int, u: int, v: int, w: int) -> Worked:
    """Time until the meeting times the speed of the shuttle."""
    t = d // (u + v)
    return Worked(
        w * t,
        f"Do not add up the single legs: the shuttle moves all the time until the two meet. They meet after {d} / "
        f"({u} + {v}) = {t}. In that time it covers {w} * {t} = {w * t}.",
    )


FAMILIES = (
    joined_later,
    filling_against_draining,
    crew_grows,
    meeting_after_head_start,
    place_of_catching_up,
    meetings_on_circuit,
    length_from_two_passings,
    speed_for_target_average,
    drifting_time,
    thinning_out,
    balancing_a_mixture,
    repeated_replacement,
    drying_out,
    compound_growth,
    stock_that_grows,
    to_and_fro,
)
