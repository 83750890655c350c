"""Solids and coordinates: volumes, surfaces, diagonals, scaling, distances, reflections, lattice points and areas."""

from fractions import Fraction
from itertools import product
from math import gcd, isqrt

from problems.family import Worked, family

DOMAIN = "solids_and_coordinates"
BOXES = tuple(
    box
    for box in product(range(2, 31), repeat=3)
    if box[0] < box[1] < box[2] and isqrt(sum(x * x for x in box)) ** 2 == sum(x * x for x in box)
)
"""Boxes with a space diagonal of integer length."""
RIGHT = tuple(t for t in product(range(5, 41), range(9, 64), range(13, 70)) if t[0] ** 2 + t[1] ** 2 == t[2] ** 2)
"""Legs and hypotenuse of right triangles."""


@family(
    DOMAIN,
    space=((b, c, a) for a, b, c in BOXES),
    wordings=(
        "The inside of a trunk measures {a} dm by {b} dm by {c} dm. How many decimetres long is the longest thin stick "
        "that fits into it?",
        "What is the distance between the points (0, 0, 0) and ({a}, {b}, {c})?",
        "A diver swims {a} m north, then {b} m east and then {c} m straight down. How many metres is she now from "
        "where she began, measured in a straight line?",
        "A block with edges of {a} cm, {b} cm and {c} cm just fits into a ball, so that all its corners touch the ball "
        "from inside. What is the diameter of the ball in centimetres?",
        "Three forces of {a}, {b} and {c} newtons act on one point, each at right angles to both others. Find the size "
        "of their resultant in newtons.",
        "In a hall {a} feet long, {b} feet wide and {c} feet high, a bat flies in a straight line from a corner of the "
        "floor to the corner of the ceiling farthest from it. How many feet does it fly?",
        "Three square fields have sides of {a}, {b} and {c} rods. A farmer swaps them for a single square field that "
        "is exactly as large as all three taken together. How many rods does one side of it measure?",
        "A window is {c} m above a point in the flat street. A hook in the street is {a} m south and {b} m west of "
        "this point. A taut wire joins hook and window. Give the length of the wire in metres.",
        "In every second of its flight, a drone gets {a} metres further to the east, {b} metres further to the north "
        "and {c} metres higher. At what speed along its straight course does it fly, in metres a second?",
        "A program treats each colour as a point in space whose coordinates are its values for red, green and blue. "
        "The contrast between two colours is defined as the length of the line segment between their points. Two "
        "colours differ by {a} in red, by {b} in green and by {c} in blue. How large is their contrast?",
        "The legs of a right triangle are {a} and {b}. Its hypotenuse serves as a leg of a second right triangle, the "
        "other leg of which is {c}. How long is the hypotenuse of the second triangle?",
        "A laboratory finds three faults in a scale: {a}, {b} and {c} milligrams. Its rule book says that the total "
        "fault is the positive number whose square equals the sum of the squares of the single faults. Work out the "
        "total fault in milligrams.",
    ),
)
def space_diagonal(a: int, b: int, c: int) -> Worked:
    """Pythagoras with three squares."""
    square = a * a + b * b + c * c
    return Worked(
        isqrt(square),
        f"In space the square of the diagonal is the sum of the squares of all three edges. {a}^2 + {b}^2 + {c}^2 = "
        f"{a * a} + {b * b} + {c * c} = {square}. The root of {square} is {isqrt(square)}.",
    )


@family(
    DOMAIN,
    space=(
        (a * b, b * c, c * a)
        for a, b, c in product((2, 5, 6, 9, 11), (3, 4, 7, 8), (4, 5, 9, 12))
        if len({a, b, c}) == 3
    ),
    wordings=(
        "Three faces of a box that meet in one corner have the areas {p}, {q} and {r}. What is the volume of the box?",
        "A brick is pressed into clay with three different sides. The prints have {p}, {q} and {r} square inches. How "
        "many cubic inches has the brick?",
        "Positive numbers satisfy xy = {p}, yz = {q} and zx = {r}. Find xyz.",
        "The bottom of a fish tank takes {p} square decimetres of glass, its front {q} and its left side {r}. All "
        "panes are rectangles. How many litres fill it to the brim?",
        "In a room with right angles everywhere the floor has {p} square metres, one wall {q} and the next wall {r}. "
        "How many cubic metres of air does it contain?",
        "A crate throws rectangular shadows of {p}, {q} and {r} square feet when it is lit straight from above, "
        "straight from the front and straight from the side. Find its volume in cubic feet.",
        "A bar of butter with right angles everywhere is wrapped in foil. The top takes {p} square centimetres of "
        "foil, the east side {q} and the south side {r}, without overlap. How many cubic centimetres of butter is "
        "that?",
        "Equal dice are packed without gaps into a full cuboid. Looking at it from above one counts {p} dice, looking "
        "from the front {q} and looking from the right {r}. How many dice does the pack consist of?",
        "A menu lists starters, mains and desserts. There are {p} possible choices of a starter with a main, {q} "
        "possible choices of a main with a dessert, and {r} possible choices of a dessert with a starter. How many "
        "possible choices are there of a starter with a main and a dessert?",
        "A block of halva is a cuboid. A knife can be drawn straight through it parallel to its sides in three "
        "directions, and depending on the direction the slice it lays open has {p}, {q} or {r} square millimetres. "
        "Find the volume of the halva in cubic millimetres.",
        "A pedestal is a cuboid. Its upper side, its north side and its east side are each pasted over exactly with "
        "one poster, and the posters have {p}, {q} and {r} square palms. How many cubic palms of space does the "
        "pedestal fill?",
        "A wardrobe with right angles everywhere needs {p} square feet of ground when it is upright, {q} when it lies "
        "on its back and {r} when it lies on its left side. How many cubic feet does it need in the removal van?",
    ),
)
def volume_from_faces(p: int, q: int, r: int) -> Worked:
    """The product of the three faces is the square of the volume."""
    square = p * q * r
    return Worked(
        isqrt(square),
        f"Every edge occurs in two of the three areas, so their product is the square of the product of the edges. {p} "
        f"* {q} * {r} = {square}. The root of {square} is {isqrt(square)}.",
    )


@family(
    DOMAIN,
    space=sorted({(4 * (a + b + c), isqrt(a * a + b * b + c * c)) for a, b, c in BOXES}),
    wordings=(
        "All the edges of a cuboid together measure {t} cm, and its space diagonal measures {d} cm. What is its "
        "surface area in square centimetres?",
        "{t} feet of light strip run along each edge of a hall shaped like a box. A laser from a floor corner to the "
        "farthest ceiling corner is {d} feet long. How many square feet are floor, ceiling and walls in all?",
        "The numbers x, y and z fulfil 4(x + y + z) = {t} and x^2 + y^2 + z^2 = {d}^2. Find 2(xy + yz + zx).",
        "A wire frame in the form of a box was made from {t} inches of wire. A thread of {d} inches is stretched "
        "inside from one corner to the opposite one. How many square inches of paper cover all six sides?",
        "A closed glass case with rectangular panes needs {t} dm of metal strip, once for every edge. The longest rod "
        "that fits in has {d} dm. Determine the area of the glass in square decimetres.",
        "The eight corners of a marble block with right angles lie on a sphere of diameter {d}. Its twelve edges have "
        "the total length {t}. How large are its faces when their areas are added?",
        "Along each edge of a parcel with rectangular sides runs one strip of tape, {t} cm of tape in total. A "
        "knitting needle that reaches through the inside from a corner to the farthest corner is {d} cm long. How "
        "many square centimetres of cardboard form the parcel, flaps not counted?",
        "A market booth is a cuboid. Poles stand or lie along every edge, {t} metres of pole altogether. A taut rope "
        "of {d} metres joins a ground corner to the top corner diagonally across. Canvas covers roof, ground and the "
        "four sides. What is the area of the canvas, in square metres?",
        "An office tower has six rectangular faces, counting its floor slab and its roof. Somebody adds up the lengths "
        "of all twelve lines along which two of these faces meet, and gets {t} metres. The longest straight line of "
        "sight through the empty tower is {d} metres. What do the six faces measure together, in square metres?",
        "Brass beading covers every edge of a rectangular chest exactly once and is {t} inches long altogether. Two "
        "corners of the chest that are as far apart as possible have a distance of {d} inches. The chest is varnished "
        "on the outside, lid and bottom included. How many square inches are varnished?",
        "The edges of a cuboid canary cage are made of rod, {t} inches of it all told, one rod per edge. No perch "
        "longer than {d} inches would fit into the cage in a straight line, and one of {d} inches just does. How many "
        "square inches of netting close the cage on all six sides?",
        "One corner of a cuboid lies at the origin, and three of its edges lie on the positive coordinate axes. The "
        "corner with no zero coordinate is {d} units away from the origin, and four times the sum of its coordinates "
        "is {t}. Find the area of the cuboid's entire boundary in square units.",
    ),
)
def surface_from_edges_and_diagonal(t: int, d: int) -> Worked:
    """The square of the sum is the squares plus the surface."""
    s = t // 4
    return Worked(
        s * s - d * d,
        f"Each of three edge lengths occurs four times, so their sum is {t} / 4 = {s}. The square of this sum is the "
        f"squares of the edges, which make the square of the diagonal, plus the surface. {s}^2 - {d}^2 = {s * s} - "
        f"{d * d} = {s * s - d * d}.",
    )


@family(
    DOMAIN,
    space=((a, b, c) for a, b, c in product(range(3, 10), repeat=3) if a < b <= c),
    wordings=(
        "A block of {a} by {b} by {c} small cubes is painted on the outside and then taken apart. How many of the "
        "small cubes have exactly one painted face?",
        "A cheese of {a} cm by {b} cm by {c} cm has rind on all six sides. It is cut into cubes of 1 cm. How many of "
        "them have rind on just a single side?",
        "Equal cubic boxes fill a container in {a} layers of {b} rows with {c} boxes each. How many boxes touch the "
        "container, that is, its floor, ceiling or walls, with one side and no more?",
        "How many integer points (x, y, z) with 1 <= x <= {a}, 1 <= y <= {b} and 1 <= z <= {c} have precisely one "
        "coordinate at an end of its range?",
        "A space station is a cuboid of {a} x {b} x {c} cubic cells without gaps. Find the number of cells from which "
        "one can look out into space in one direction only, straight through a wall.",
        "Lumps of sugar, cubes of one size, are stacked {a} wide, {b} deep and {c} high. All around, also from below, "
        "the stack gets damp by the thickness of a hair. Count the lumps with one damp side and five dry ones.",
        "The atoms of a crystal form a grid of {a} by {b} by {c} atoms. Each atom is bound to the next atom left, "
        "right, before, behind, above and below, where there is one. How many atoms are bound to exactly five others?",
        "A puzzle is a solid cuboid of cubic pieces, {a} pieces long, {b} wide and {c} high. Wherever a side of a "
        "piece shows on the outside, top and underside included, it bears a sticker. Find the number of pieces that "
        "bear a single sticker.",
        "A brick is modelled as a solid cuboid of {a} x {b} x {c} voxels. A program draws each face of a voxel that is "
        "not shared with another voxel. Of how many voxels does it draw one face exactly?",
        "Drones hover in a full rectangular grid, {a} from front to back, {b} from left to right and {c} from the "
        "lowest to the highest level. The camera of a drone can turn forwards, backwards, left, right, up and down, "
        "and its view is blocked in a direction if another drone hovers that way on the same grid line. How many "
        "drones have an unblocked view in exactly one of these directions?",
        "A code consists of three letters: the left one from an ordered alphabet of {a} letters, the middle one from "
        "an ordered alphabet of {b} letters, the right one from an ordered alphabet of {c} letters. A letter is called "
        "outer if it comes first or last in its own alphabet. How many of all these codes contain exactly one outer "
        "letter?",
        "Deep in a lake floats an underwater hotel, {a} storeys of {b} by {c} cubic rooms, with no gaps between them. "
        "A room has one porthole in every wall, floor or ceiling behind which there is water, and none elsewhere. In "
        "how many rooms is there just one porthole?",
    ),
)
def one_painted_face(a: int, b: int, c: int) -> Worked:
    """Take the rim off each face."""
    x, y, z = a - 2, b - 2, c - 2
    answer = 2 * (x * y + y * z + z * x)
    return Worked(
        answer,
        f"Such cubes lie inside a face, away from its rim, so each edge loses 2: {x}, {y} and {z}. There are two faces "
        f"of each kind. 2 * ({x} * {y} + {y} * {z} + {z} * {x}) = 2 * {x * y + y * z + z * x} = {answer}.",
    )


@family(
    DOMAIN,
    space=(
        (k * m * m, k * n * n, j * m**3)
        for k, j, m, n in product((3, 7), range(2, 9), (1, 2, 3, 4), (2, 3, 4, 5))
        if gcd(m, n) == 1 and m < n
    ),
    wordings=(
        "Two solid bronze statues have exactly the same shape. Their surfaces are {s} and {t} square decimetres, and "
        "the smaller one weighs {v} kg. How many kilograms does the larger one weigh?",
        "Two pyramids are similar. Their bases have the areas {s} and {t}. The first pyramid has the volume {v}. What "
        "is the volume of the second?",
        "The outside of a model ship takes {s} ml of paint, that of an exact enlargement {t} ml, equally thick. {v} "
        "litres of water fill the model to the rim. How many litres fill the enlargement?",
        "The peel of a round melon has {s} square inches, that of a bigger round melon {t}. Peel counts as thin as "
        "air. If there are {v} ounces of flesh in the first, how many are there in the second?",
        "Crystals of equal shape but two sizes need {s} and {t} square millimetres of foil to be wrapped tightly. A "
        "small one has {v} cubic millimetres. Find the cubic millimetres of a big one.",
        "A photo enlarges everything alike. A bottle label of {s} square centimetres becomes one of {t}. If bottles "
        "were enlarged in the same way in space, how much would a bottle of {v} cl hold afterwards, in cl?",
        "A perfectly round balloon is sewn from {s} square yards of silk, a larger round balloon from {t}. The silk "
        "does not stretch. {v} bottles of gas fill the former. How many such bottles fill the latter?",
        "A young shark and its mother agree in all proportions. The skin of the young one measures {s} square feet, "
        "the skin of the mother {t}. Diving right under in a full pool, the young one pushes {v} gallons over the "
        "edge. How many gallons does the mother push over it?",
        "A toymaker sews teddies after one pattern on two scales. A little teddy is covered with {s} square palms of "
        "plush, a huge one with {t} square palms, and all of them are stuffed with wool to the same density. Stuffing "
        "the little teddy takes {v} handfuls of wool. How many handfuls does the huge one take?",
        "Two church towers carry onion domes of one form, the second dome on a grander scale. Gilding took {s} sheets "
        "of gold leaf for the first dome and {t} sheets for the second, without overlap. The space under the first "
        "dome is {v} cubic metres. How many cubic metres is the space under the second?",
        "A carver makes two chess kings of the same wood, and apart from their scale nobody could tell them apart. The "
        "coat of lacquer, of the same thickness for both, takes {s} drops for the short king and {t} drops for the "
        "tall one. The short king weighs {v} carats, lacquer not counted. What is the weight of the tall one in "
        "carats, again without lacquer?",
        "A plane through a solid of volume {v} cuts it in a figure of area {s}. Everything is then enlarged in space "
        "from one fixed point, and the figure goes over into a figure of area {t}. Which volume does the enlarged "
        "solid have?",
    ),
)
def volume_from_surfaces(s: int, t: int, v: int) -> Worked:
    """The root of the area ratio, cubed."""
    g = gcd(s, t)
    m, n = isqrt(s // g), isqrt(t // g)
    return Worked(
        v * n**3 // m**3,
        f"Areas grow with the square of the lengths, volumes with the cube. {t} : {s} = {n * n} : {m * m}, so lengths "
        f"are as {n} : {m} and volumes as {n**3} : {m**3}. {v} * {n**3} / {m**3} = {v * n**3 // m**3}.",
    )


@family(
    DOMAIN,
    space=(
        (k * n**3, m, n)
        for k, m, n in product(range(2, 14), range(1, 5), (2, 3, 4, 5))
        if m < n and gcd(m, n) == 1 and k * n**3 < 1000
    ),
    wordings=(
        "A cone of {v} cubic inches is cut parallel to its base. The cut is at {m}/{n} of the height, measured from "
        "the tip. How many cubic inches has the part with the base?",
        "An ice cube of {v} cubic centimetres melts evenly until every edge has {m}/{n} of its first length. How many "
        "cubic centimetres have melted?",
        "A funnel that comes to a point at its lower end holds {v} ml when full. It is filled to {m}/{n} of its depth. "
        "How many more millilitres fit in?",
        "From a pyramid with {v} cubic metres of stone the top was carried off, a smaller pyramid with {m}/{n} of the "
        "full height. How many cubic metres of stone still stand?",
        "A balloon in the form of a ball contains {v} litres of air. It shrinks to a ball of {m}/{n} of the old "
        "diameter, while the air stays equally dense. How many litres have escaped?",
        "Inside a ball there is a hollow ball with the same centre. The radius of the hollow is {m}/{n} of the outer "
        "radius. Without the hollow the volume would be {v}. What is the volume of the shell?",
        "A child licks a solid chocolate egg that weighed {v} grams. The egg keeps exactly its shape and is now "
        "{m}/{n} as long as before. How many grams of chocolate are gone?",
        "A sculptor needs {v} litres of plaster to cast a solid lion. Instead he casts a true copy of it in which all "
        "lengths are {m}/{n} of the original ones. How many litres of plaster does he save?",
        "The stone of a plum is shaped exactly like the whole plum, only {m}/{n} as long. Together with its stone the "
        "plum takes up {v} cubic millimetres. Everything around the stone counts as flesh. How many cubic millimetres "
        "of flesh does the plum have?",
        "Grain is heaped up in a barn as a cone of {v} bushels. Carts carry grain off until the heap is again a cone, "
        "just as steep, but only {m}/{n} as high as before. How many bushels did the carts carry off?",
        "A meteor of {v} tonnes is equally dense throughout. On its way through the air it burns away on all sides in "
        "such a manner that it keeps its form, and the lump that hits the ground measures {m}/{n} of the meteor in "
        "every direction. How many tonnes have burnt?",
        "On each of the three edges that leave the vertex K of a tetrahedron, a point is marked at {m}/{n} of the way "
        "from K to the far end of the edge. A plane through the three marks separates the vertex K from the others. If "
        "the tetrahedron has volume {v}, which volume lies on the side of the plane away from K?",
    ),
)
def rest_of_similar_solid(v: int, m: int, n: int) -> Worked:
    """Volumes grow with the cube of lengths."""
    small = v * m**3 // n**3
    return Worked(
        v - small,
        f"Volumes of similar solids are as the cubes of their lengths. The small solid has {m}^3/{n}^3 = {m**3}/{n**3} "
        f"of {v}, which is {small}. The rest is {v} - {small} = {v - small}.",
    )


@family(
    DOMAIN,
    space=(
        (a, c, x - a) for (x, c, _), a in product(RIGHT, (2, 3, 4, 6, 7, 9)) if 1 < x - a <= c and 2 * a < x and c < 41
    ),
    wordings=(
        "A closed box has edges of {a} cm, {b} cm and {c} cm. An ant on its surface wants to get from one corner to "
        "the opposite corner of the box. How many centimetres long is the shortest way?",
        "A cable is laid along walls, floor or ceiling of a room, {a} m by {b} m by {c} m, from a corner at the bottom "
        "to the farthest corner at the top. How many metres of cable are enough at best?",
        "What is the least length of a line on the surface of a cuboid {a} x {b} x {c} that joins two corners without "
        "a common face?",
        "A block of ice, {a} feet deep, {b} feet wide and {c} feet high, floats in space. How few feet must a climber "
        "go on its sides from the front lower left corner to the back upper right one?",
        "A thread is glued to the outside of a wooden cuboid with edges of {a}, {b} and {c} inches. Its ends are at "
        "two corners that have the centre midway between them. Find its smallest possible length in inches.",
        "On the walls of a closed shaft with flat sides and measures {a}, {b} and {c} dm, a crack leads from a corner "
        "to the one diagonally across through the middle. How many decimetres must it have at least?",
        "A magnetic toy car sticks to the outside of a closed steel safe, {a} by {b} by {c} inches, and can drive on "
        "all six faces. It is to go from a corner to the farthest corner. What is the shortest drive, in inches?",
        "A straw bale, {a} by {b} by {c} feet, hangs free in the air and is lit at a corner. Fire creeps over its "
        "outside only, one foot a minute in every direction. After how many minutes does the fire arrive at the "
        "corner that is straight across through the middle of the bale?",
        "From the hook of a crane dangles a container, {a} by {b} by {c} yards. A gecko sits at one corner of it, and "
        "its nest is at the corner most distant from there. The gecko can run on every side, the underside too, but "
        "cannot get inside. How many yards does its quickest route to the nest measure?",
        "A copper track may run on any of the six faces of a ceramic cuboid, {a} mm by {b} mm by {c} mm, but not "
        "through the ceramic. It is to connect a terminal at one vertex with a terminal at the vertex farthest from it "
        "in space. What is the minimum length of the track in mm?",
        "On the boundary of the solid 0 <= x <= {a}, 0 <= y <= {b}, 0 <= z <= {c}, curves are drawn from the origin to "
        "the point ({a}, {b}, {c}). How long is the shortest of all such curves?",
        "A stone cuboid, {a} by {b} by {c} spans, is hung up in a greenhouse so that nothing else touches it. Ivy "
        "grows at one vertex, and its tendrils can creep over all the sides of the stone but have no hold elsewhere. "
        "How many spans of tendril, at the very least, reach the vertex that shares no side with the first?",
    ),
)
def shortest_way_on_a_box(a: int, b: int, c: int) -> Worked:
    """Unfold two faces and add the two shorter edges."""
    x, y, z = sorted((a, b, c))
    square = (x + y) ** 2 + z * z
    return Worked(
        isqrt(square),
        "Unfold two faces into one rectangle. The way is its diagonal, and it is shortest when the two shorter edges "
        f"are joined to one side: {x} + {y} = {x + y}. {x + y}^2 + {z}^2 = {(x + y) ** 2} + {z * z} = {square}. The "
        f"root of {square} is {isqrt(square)}.",
    )


@family(
    DOMAIN,
    space=(
        (n, r, w)
        for n, r, w in product((4, 5, 6, 8, 9, 12, 15, 18, 20, 25, 27, 32), range(2, 7), range(3, 13))
        if r < w and 4 * n * r**3 % (3 * w * w) == 0 and 4 * n * r**3 // (3 * w * w) not in (n, r, w) and r**3 * n > 99
    ),
    wordings=(
        "{n} wax balls with a radius of {r} cm are melted and poured into a mould with the form of a cylinder of "
        "radius {w} cm. How many centimetres high does the wax stand in it?",
        "An upright glass tube has an inner radius of {w} mm. Into its water sink {n} steel balls of radius {r} mm "
        "until water covers all of them, and none is spilt. By how many millimetres does the water rise?",
        "From one round rod with a radius of {w} inches a smith wants to cast {n} solid globes with a radius of {r} "
        "inches. How many inches of the rod does he have to melt down?",
        "Which height has a cylinder with base radius {w} if its volume equals that of {n} spheres with radius {r}?",
        "{n} full tanks, each a sphere with a radius of {r} feet, are pumped empty into one upright drum with a radius "
        "of {w} feet that held nothing before. What depth in feet does the liquid reach?",
        "Scoops of ice cream, {n} perfect balls of radius {r} units, melt in a straight-walled round cup of radius {w} "
        "units and become just as much liquid. How many units deep is the cup filled then?",
        "A baker kneads {n} balls of marzipan, each with a radius of {r} cm, into a single piece, as round as a drum "
        "and {w} cm in radius everywhere. All the marzipan is used. How many centimetres is it from one flat end of "
        "the piece to the other?",
        "In a spaceship {n} drops of water float about as exact spheres of {r} mm radius. A straight round syringe, "
        "{w} mm in inner radius, sucks them all in, and no air. What length of the syringe do they take up, in mm?",
        "A dairy squeezes {n} balls of mozzarella, all {r} cm in radius, into a tin with a level bottom and an upright "
        "round wall, {w} cm in inner radius. The cheese keeps its volume, leaves no gaps and is smoothed level. How "
        "many centimetres thick is the layer of cheese?",
        "In an upright sealed test tube, {w} mm in radius inside, {n} spherical gas bubbles of radius {r} mm float up "
        "to the level stopper. There they merge into one pocket of gas that spans the whole bore and has the same "
        "volume as all the bubbles together. How tall is this pocket, in mm?",
        "A mint founds {n} silver bullets, each a ball {r} lines in radius, into a single blank. The blank is a right "
        "circular cylinder with a radius of {w} lines, and no silver is lost or added. If a line is a unit of length, "
        "how many lines does the blank measure between its two circular faces?",
        "An apothecary grinds {n} solid round pills, spherical and {r} mm in radius, into powder without changing "
        "their total volume. She fills it into an upright vial, which is cylindrical inside with a radius of {w} mm "
        "and was clean before, and taps until the top of the powder is even. Give the depth of the powder in mm.",
    ),
)
def balls_into_a_cylinder(n: int, r: int, w: int) -> Worked:
    """Equal volumes; pi cancels."""
    answer = 4 * n * r**3 // (3 * w * w)
    return Worked(
        answer,
        f"A ball has the volume 4/3 * pi * r^3, a cylinder pi * R^2 * h. Pi cancels: R^2 * h = number * 4/3 * r^3. {n} "
        f"* 4/3 * {r**3} = {Fraction(4 * n * r**3, 3)}, and R^2 = {w * w}. h = {Fraction(4 * n * r**3, 3)} / {w * w} = "
        f"{answer}.",
    )


@family(
    DOMAIN,
    space=((a, b, c) for a, b, c in product(range(4, 12), range(3, 9), range(2, 6)) if a > b > c),
    wordings=(
        "Three cubes with edges of {a} cm, {b} cm and {c} cm are glued into a tower, the largest at the bottom and the "
        "smallest on top. What is the surface of the tower in square centimetres, with the underside?",
        "A toy rocket is made of wooden cubes in a line, face on face: first {a}, then {b}, then {c} inches wide. It "
        "is dipped in paint until it is covered everywhere. How many square inches are painted?",
        "A solid is the union of the cube with 0 <= x, y, z <= {a}, a cube of edge {b} standing on its upper face, and "
        "a cube of edge {c} standing on the upper face of that one. No cube juts out. Find the area of its boundary.",
        "An artist welds a cube {a} dm wide to one of {b} dm, and this one to another of {c} dm on the far side, each "
        "time with a full face of the smaller cube. How many dm^2 of gold leaf cover the whole outside?",
        "Three blocks of stone, cubes of {a}, {b} and {c} feet, hang in a bath of dye, stuck together in a column that "
        "gets narrower from block to block. How many square feet of stone does the dye reach?",
        "Count the unit squares on the skin of a stepped pillar. From below, its steps are {a} x {a} x {a}, {b} x {b} "
        "x {b} and {c} x {c} x {c} unit cubes, each wholly on the one before. The bottom belongs to the skin.",
        "A wedding cake has three tiers, cubes with edges of {a}, {b} and {c} inches from bottom to top. No tier juts "
        "out over the one below. The finished cake is iced all over, even underneath. How many square inches of icing "
        "is that?",
        "Cubic modules of a satellite, {a} m, {b} m and {c} m wide, are docked in a straight row in this order. Where "
        "two of them meet, the whole side of the smaller module rests against the larger one. What area of foil, in "
        "square metres, wraps all that is left open to space?",
        "A trophy consists of three brass cubes, soldered on top of one another, with edges of {a} mm, {b} mm and {c} "
        "mm from the foot upwards. The underside of each cube rests completely on the cube beneath it. The whole "
        "trophy is plated with chrome, its foot from below as well. How many square millimetres of chrome plating does "
        "it have?",
        "Three salt crystals, perfect cubes with edges of {a}, {b} and {c} units, have grown together. One face of the "
        "middle-sized cube is entirely attached to the largest cube, and its opposite face bears the smallest cube, "
        "which is attached to it with an entire face. How many square units of the crystals remain exposed?",
        "A paper lantern is made up of three closed cubes with edges of {a}, {b} and {c} spans, one hanging under the "
        "other, each smaller one attached by the whole of its top to the underside of the larger one above it. The "
        "parts that cover each other are hidden, and everything else can be seen from some side, from above or from "
        "below. How many square spans of paper can be seen?",
        "Divers raise three iron dice from a wreck, with edges of {a}, {b} and {c} inches. They were welded in a stack "
        "of decreasing size, where each die has one entire side on the next larger die. Wherever iron is not pressed "
        "to iron it is rusty, on the lowest side as well. Find the total rusty area in square inches.",
    ),
)
def tower_of_cubes(a: int, b: int, c: int) -> Worked:
    """Side faces of all cubes, and top and bottom as large as the largest."""
    sides = a * a + b * b + c * c
    return Worked(
        4 * sides + 2 * a * a,
        "Each cube shows its four side faces. Seen from above, the visible parts make up one full face of the largest "
        f"cube, and its underside is another. 4 * ({a * a} + {b * b} + {c * c}) + 2 * {a * a} = {4 * sides} + "
        f"{2 * a * a} = {4 * sides + 2 * a * a}.",
    )


@family(
    DOMAIN,
    space=(
        (a, b, c, d, e, f)
        for a, b, c, d, e in product((7, 9, 12), (1, 2, 3), (8, 10, 13), (7, 9), (2, 3, 5))
        for f in ((a + 2 * b + c + d + e) % 4 + 6,)
        if (a * d - b * c + c * f - d * e) % 2 == 0 and (c - a) * (f - d) > (d - b) * (e - c)
    ),
    wordings=(
        "What is the area of the quadrilateral with the corners (0, 0), ({a}, {b}), ({c}, {d}) and ({e}, {f}), in this "
        "order?",
        "On a map with a grid of 1 km, straight borders of a nature reserve lead from (0, 0) to ({a}, {b}), to ({c}, "
        "{d}), to ({e}, {f}) and back. How many square kilometres does it cover?",
        "A robot mower drives straight from its charging point, the origin, to ({a}, {b}), ({c}, {d}) and ({e}, {f}), "
        "then home. Coordinates are in metres. How many square metres of lawn lie inside its track?",
        "A rubber band goes round four pins in a board with inch squares, one at the zero point, then one each at "
        "({a}, {b}), ({c}, {d}) and ({e}, {f}). Find the area it encloses in square inches.",
        "A computer fills a polygon on the screen. Its vertex list reads 0,0 then {a},{b} then {c},{d} then {e},{f}. "
        "By exact area, not by pixels touched, how many unit squares is it worth?",
        "The vectors OP = ({a}, {b}), OQ = ({c}, {d}) and OR = ({e}, {f}) lead from O to the other vertices of OPQR. "
        "Determine the area of this four-sided figure.",
        "A regatta goes in straight legs from the harbour, the origin of the chart, round buoys at ({a}, {b}), ({c}, "
        "{d}) and ({e}, {f}) one after the other, and back to the harbour. A unit of the chart is a sea mile. How "
        "many square sea miles of water are within the course?",
        "A dig has four posts. One is at the camp. Measured from the camp, the next is {a} yards east and {b} north, "
        "the third {c} east and {d} north, the last {e} east and {f} north. A cord runs straight from post to post in "
        "this order and returns to the camp. How many square yards does it surround?",
        "A sailmaker marks his canvas with nails at (0, 0), ({a}, {b}), ({c}, {d}) and ({e}, {f}), measured in feet "
        "from two edges of the floor. He cuts straight from each nail to the next in the order given, and from the "
        "last nail to the first. How many square feet has the sail that he cuts out?",
        "A laser beam draws a closed figure on a wall. It starts at the origin of the wall's coordinates, moves on "
        "straight lines to ({a}, {b}), next to ({c}, {d}), next to ({e}, {f}), and finally to where it started. One "
        "unit is a decimetre. Find the size of the figure in square decimetres.",
        "In the complex plane let z have real part {a} and imaginary part {b}, let w have real part {c} and imaginary "
        "part {d}, and let t have real part {e} and imaginary part {f}. Straight segments connect 0 with z, z with w, "
        "w with t, and t with 0. How large is the region they enclose?",
        "A fox marks the limits of its territory by trotting straight from its den to an oak, on to a rock, on to a "
        "spring and back into the den. A forester's map with one furlong per unit has the den at (0, 0), the oak at "
        "({a}, {b}), the rock at ({c}, {d}) and the spring at ({e}, {f}). How many square furlongs are in the fox's "
        "territory?",
    ),
)
def shoelace_area(a: int, b: int, c: int, d: int, e: int, f: int) -> Worked:
    """The shoelace formula."""
    x, y = a * d - b * c, c * f - d * e
    return Worked(
        (x + y) // 2,
        f"Shoelace: go round and add x * next y - y * next x, then halve. Pairs with (0, 0) give nothing. {a} * {d} - "
        f"{b} * {c} = {x} and {c} * {f} - {d} * {e} = {y}. ({x} + {y}) / 2 = {(x + y) // 2}.",
    )


@family(
    DOMAIN,
    space=(
        (p, x - p, y) for (x, y, _), p in product(RIGHT, (3, 4, 7, 9, 11)) if 1 < x - p < y and x != 2 * p and y < 49
    ),
    wordings=(
        "A rider is {p} km from a straight river, her camp {q} km from it on the same side. Their nearest points on "
        "the river are {d} km apart. She rides to the river for water and on to camp. What is the shortest ride in km?",
        "For A = (0, {p}) and B = ({d}, {q}), a point P moves on the x-axis. Find the smallest value of AP + PB.",
        "A ball is {p} inches from a cushion of a billiard table and the target {q} inches. Measured along the cushion "
        "they are {d} inches apart. How many inches does the ball roll if it goes to the target with one bounce there?",
        "A flat mirror covers a wall. A lamp is {p} dm in front of it, an eye {q} dm, and {d} dm is their distance "
        "measured parallel to the wall, at equal height. How long is the light ray that reaches the eye by the mirror, "
        "in dm?",
        "How small can the sum of the square roots of x^2 + {p}^2 and of ({d} - x)^2 + {q}^2 become for real x?",
        "Two farms lie {p} and {q} furlongs north of a straight water main that runs east, one {d} furlongs further "
        "east than the other. A pipe goes to each from one outlet on the main. What is the least total length of pipe "
        "in furlongs?",
        "Two masts, {p} and {q} feet tall, stand {d} feet apart on flat ground. A swallow flies from the top of one "
        "mast down to a grain on the ground and up to the top of the other mast. If the grain is where the flight "
        "becomes shortest, how many feet does the swallow fly?",
        "Two ships are anchored {p} and {q} sea miles off a straight shore, and {d} sea miles apart as measured along "
        "it. A launch leaves one ship, sets a passenger ashore at a place of the captain's choice, and joins the "
        "other ship. What is the length of the shortest course, in sea miles?",
        "A buffet takes up the whole of a long wall in a ballroom. A waiter stands {p} paces from this wall and his "
        "guest sits {q} paces from it, and in the direction of the wall {d} paces separate them. The waiter fetches "
        "something from the buffet, at any place he likes, and brings it to the guest. What is the least number of "
        "paces he can do it in?",
        "Over a level seabed a submarine sends out a sound {p} fathoms above the bottom. A microphone hangs {q} "
        "fathoms above the bottom, {d} fathoms away in the horizontal. How many fathoms has the echo from the seabed "
        "travelled, from the submarine onwards, on arriving at the microphone?",
        "Two points lie {p} and {q} units above the x-axis, and their x-coordinates differ by {d}. An ellipse that has "
        "them as its foci is tangent to the x-axis. How long is the major axis of this ellipse, from end to end?",
        "In a school race every child sets off at a red post {p} m from a long straight fence, has to tap the fence "
        "wherever he or she likes, and finishes at a yellow post {q} m from the fence on the same side. Parallel to "
        "the fence, the posts are {d} m apart. Which distance in metres does a child run who chooses best?",
    ),
)
def reflected_path(p: int, q: int, d: int) -> Worked:
    """Reflect one end in the line and go straight."""
    square = d * d + (p + q) ** 2
    return Worked(
        isqrt(square),
        f"Reflect one end in the line: the way becomes straight. It is the hypotenuse over {d} and {p} + {q} = "
        f"{p + q}. {d}^2 + {p + q}^2 = {d * d} + {(p + q) ** 2} = {square}. The root of {square} is {isqrt(square)}.",
    )


@family(
    DOMAIN,
    space=(
        (a, b, a * p + b * q - k * isqrt(a * a + b * b), p, q)
        for (a, b), k in product(((3, 4), (4, 3), (5, 12), (8, 6), (12, 5)), range(4, 19))
        for p, q in (((7 * k + a) % 11 + 13, (5 * k + b) % 9 + 12),)
        if a * p + b * q > k * isqrt(a * a + b * b) and k not in (p, q)
    ),
    wordings=(
        "How far is the point ({p}, {q}) from the line {a}x + {b}y = {c}?",
        "On a chart in sea miles, a straight coast follows {a}x + {b}y = {c}, and a raft drifts at ({p}, {q}). How "
        "many sea miles is it from the raft to the nearest point of the coast?",
        "A circle around ({p}, {q}) touches the line with the equation {a}x + {b}y - {c} = 0. What is its radius?",
        "A drone keeps to the course {a}x + {b}y = {c} over a plan in metres. A tower stands at x = {p}, y = {q}. How "
        "close, in metres of the plan, does the drone get to the tower?",
        "One side of a triangle lies on the straight line {a}x + {b}y = {c}, the opposite corner at ({p}, {q}). "
        "Calculate the height on that side.",
        "In yards, the points of a power line satisfy {a}x + {b}y = {c}. Seen from above, what is the shortest cable "
        "that can connect a house at ({p}, {q}) to it, in yards?",
        "A goat is tied to a stake at ({p}, {q}) in a meadow. A hedge runs straight along {a}x + {b}y = {c}, all in "
        "feet. What length of rope, in feet, lets the goat just get to the hedge?",
        "A geologist's map, drawn in miles, has a straight fault {a}x + {b}y = {c}. A tremor begins at ({p}, {q}) and "
        "spreads in all directions by one mile a second. How many seconds later does it first hit the fault?",
        "Two parallel lines bound a strip of the plane. One of them is given by {a}x + {b}y = {c}, and the other "
        "contains ({p}, {q}). What is the width of the strip?",
        "On a garden plan, whose unit is one pace, the edge of a long straight terrace follows {a}x + {b}y = {c}. A "
        "sprinkler at ({p}, {q}) waters a full disc. How many paces is the radius of the disc if its rim just grazes "
        "the edge of the terrace?",
        "Real numbers x and y obey {a}x + {b}y = {c}. What is the least possible value of the square root of (x - "
        "{p})^2 + (y - {q})^2?",
        "The boards along one side of an ice hockey rink follow the equation {a}x + {b}y = {c}, where coordinates are "
        "in metres and the boards are long enough. A puck rests at ({p}, {q}) and is regarded as a point. At least how "
        "many metres must it slide to hit these boards?",
    ),
)
def distance_to_line(a: int, b: int, c: int, p: int, q: int) -> Worked:
    """Put the point in and divide by the length of the normal."""
    root, value = isqrt(a * a + b * b), a * p + b * q - c
    return Worked(
        value // root,
        "Put the point into the equation, with all on one side, and divide by the root of the squares of the two "
        f"coefficients. {a} * {p} + {b} * {q} - {c} = {value}. The root of {a * a} + {b * b} = {a * a + b * b} is "
        f"{root}. {value} / {root} = {value // root}.",
    )


@family(
    DOMAIN,
    space=((a, b) for a, b in product(range(6, 22), range(5, 16)) if a > b and (gcd(a, b) > 1 or (a + b) % 3 == 0)),
    wordings=(
        "How many points with integer coordinates lie strictly inside the triangle with the corners (0, 0), ({a}, 0) "
        "and (0, {b})?",
        "Find the number of pairs of positive integers x and y with x/{a} + y/{b} < 1.",
        "A field is a right triangle with legs of {a} m and {b} m. A grid of 1 m is laid along the legs from the right "
        "angle. Each crossing inside the field, but none on its border, gets a tree. How many trees is that?",
        "A pen costs {b} cents and a pad {a} cents. In how many ways can one buy at least one pen and at least one pad "
        "for less than {a} * {b} cents?",
        "A floor has {a} columns and {b} rows of square tiles. Someone chalks a diagonal from corner to corner. Count "
        "the spots below it, within the floor, where four tiles meet. Spots on the diagonal do not count.",
        "A sum of {b}i + {a}j is formed for all i, j = 1, 2, 3, ... How many of the pairs (i, j) give a sum smaller "
        "than the product of {a} and {b}?",
        "A lift does not move if the load is {a} * {b} kg or more. Each sack weighs {b} kg, each barrel {a} kg. How "
        "many loads with at least one sack and at least one barrel does it move? Loads differ only by the numbers of "
        "sacks and barrels.",
        "City streets run north and east, always a block apart. A straight tunnel joins the crossing {a} blocks east "
        "of the town hall crossing to the crossing {b} blocks north of it. Of the crossings further east and also "
        "further north than the town hall, how many are on its side of the tunnel, not right over it?",
        "For each positive integer k below {a}, count the positive integers below {b}k/{a}. Add up all these counts. "
        "What is the result?",
        "The holes of a pegboard form a square pattern, one inch from each hole to the next. An elastic is stretched "
        "around three pegs: one in the bottom left hole, one {a} inches to the right of that hole and one {b} inches "
        "straight above that hole. How many holes does the elastic surround without touching or covering them?",
        "One measuring glass of a litre is divided by marks into {a} equal parts, another glass of a litre into {b} "
        "equal parts. Ella fills each glass up to one of its marks, at least one part high, and empties both into a "
        "dry bottle of a litre. For how many of the possible choices of the two marks is the bottle then less than "
        "full?",
        "From a triangular board with a right angle between edges of {a} and {b} inches, a joiner is to saw a "
        "rectangle. One corner of it is the right angle of the board, its length along the first edge and its width "
        "along the second are whole numbers of inches, and its corner opposite the right angle must not reach the "
        "third edge of the board. How many combinations of length and width can he choose from?",
    ),
)
def lattice_points_in_triangle(a: int, b: int) -> Worked:
    """Half of the inner points of the rectangle without those on the diagonal."""
    inner, line = (a - 1) * (b - 1), gcd(a, b) - 1
    return Worked(
        (inner - line) // 2,
        f"The rectangle has ({a} - 1) * ({b} - 1) = {inner} inner points. On its diagonal are gcd({a}, {b}) - 1 = "
        f"{line} of them, and the rest is shared equally by the two triangles. ({inner} - {line}) / 2 = "
        f"{(inner - line) // 2}.",
    )


@family(
    DOMAIN,
    space=(
        (a, b, c, d, e, f)
        for a, b, e in product((3, 5, 8), (11, 14, 16, 19), (17, 20, 22, 26))
        for c, d, f in (((a + b + e) % 5 + 9, (a * b + e) % 7 + 2, (b * e + a) % 6 + 5),)
        if a + e > c and b + f > d
    ),
    wordings=(
        "A parallelogram ABCD has the corners A = ({a}, {b}), B = ({c}, {d}) and C = ({e}, {f}). What is the product "
        "of the two coordinates of D?",
        "Two sticks on a grid cross exactly in their middles. One reaches from ({a}, {b}) to ({e}, {f}), the other "
        "starts at ({c}, {d}) and ends at (x, y). What is xy?",
        "A ship sails from ({c}, {d}) straight to ({a}, {b}). At the same time another ship starts at ({e}, {f}) and "
        "sails equally far in the same direction. It arrives at (x, y). Calculate x times y.",
        "The point ({c}, {d}) is turned by 180 degrees about the midpoint between ({a}, {b}) and ({e}, {f}). Multiply "
        "the coordinates of its image with each other. What do you get?",
        "On a design a pattern is shifted, without turning, so that a flower at ({c}, {d}) comes to ({a}, {b}). A leaf "
        "was at ({e}, {f}) before the shift. Find the product of the leaf's new coordinates.",
        "Walking round a plaza with two pairs of parallel sides, one passes lamps in its corners at ({a}, {b}), at "
        "({c}, {d}), at ({e}, {f}) and last at (u, v). Determine u * v.",
        "A tray is marked with a grid. Two equal cups at ({a}, {b}) and ({e}, {f}) have the same centre of gravity as "
        "two equal cups at ({c}, {d}) and (x, y) would have. How much is x * y?",
        "Seen from its master, a trained dog always keeps the same distance and the same compass direction. When the "
        "master stood at ({c}, {d}), the dog stood at ({a}, {b}). By now the master has gone to ({e}, {f}). Multiply "
        "the two present coordinates of the dog. Which number results?",
        "The vectors ({c}, {d}) and (x, y) have the same sum as the vectors ({a}, {b}) and ({e}, {f}). Find the value "
        "of xy.",
        "One basket contains {a} red and {b} green apples, another basket {e} red and {f} green apples. All these "
        "apples are repacked into a crate and a sack. The crate receives {c} red and {d} green apples, and the sack "
        "receives all the others. What is the number of red apples in the sack times the number of green apples in the "
        "sack?",
        "In a spreadsheet, a formula in column number {c} and row number {d} points to the cell in column number {a} "
        "and row number {b}. When the formula is copied elsewhere, the cell it points to moves by as many columns and "
        "rows as the formula itself. Copied into column number {e} and row number {f}, the formula points to the cell "
        "in column number x and row number y. Find x times y.",
        "Two pucks of equal mass glide on ice with velocities ({a}, {b}) and ({e}, {f}), collide and move apart. The "
        "collision does not change the sum of their velocities, and one puck has the velocity ({c}, {d}) after it. "
        "What do you get on multiplying the two components of the other puck's velocity after it?",
    ),
)
def fourth_vertex(a: int, b: int, c: int, d: int, e: int, f: int) -> Worked:
    """Add the neighbours and subtract the opposite corner."""
    x, y = a + e - c, b + f - d
    return Worked(
        x * y,
        "The diagonals of a parallelogram have the same midpoint, so the missing corner is the sum of its two "
        f"neighbours minus the opposite corner. x = {a} + {e} - {c} = {x} and y = {b} + {f} - {d} = {y}. {x} * {y} = "
        f"{x * y}.",
    )


@family(
    DOMAIN,
    space=((r, s) for s in (8, 9, 10, 12, 15, 18, 20, 24, 30, 36) for r in range(3, s) if 360 * r % s == 0),
    wordings=(
        "A cone has a base radius of {r} and a slant height of {s}. Its curved surface is cut along a line from the "
        "tip to the rim and laid flat. How many degrees has the sector that results?",
        "A paper hat is to have a round opening with a radius of {r} cm and to measure {s} cm along the paper from "
        "the rim to the tip. It is rolled from a sector of a disc without overlap. Which angle must the sector have, "
        "in degrees?",
        "A turret has a pointed round roof. The eaves are a circle of radius {r} m, and every rafter from the eaves "
        "to the top is {s} m long. The roof is covered by one piece of felt, cut flat. What angle in degrees has the "
        "felt at its corner for the top?",
        "Someone bends a part of a disc with radius {s} into a funnel with a closed tip, edge to edge. The mouth of "
        "the funnel has the radius {r}. How many of the 360 degrees of the disc were used?",
        "A cone lies on a table and rolls around its tip, which stays in place. Its base has a radius of {r} cm, and "
        "from the tip to the rim of the base it is {s} cm. When each line of its mantle has touched the table once, "
        "by how many degrees has it gone around the tip?",
        "The paper around a pointed bag of sweets covers it once, from the point up to the brim {s} cm away. The brim "
        "is a circle {r} cm in radius. The paper is taken off and smoothed out. How many degrees lie between its two "
        "straight edges, measured through the paper?",
        "The canvas of a round pointed tent meets the ground in a circle of {r} feet radius. From the ground straight "
        "up the canvas to the peak it is {s} feet. The canvas has no overlap and no gap. Unstitched along one such "
        "line, it is spread on a meadow. How many degrees does it span at the peak?",
        "A tinsmith bends a flat piece of metal into a pointed candle snuffer, and its two straight edges just meet. "
        "The round mouth has a radius of {r} mm, and every point of the mouth is {s} mm from the tip. What angle, in "
        "degrees, did the edges form in the flat piece, measured across the metal?",
        "A warm flat wafer, shaped like a slice of pizza, is curled into an ice cream cornet until its two straight "
        "sides exactly meet. The opening of the cornet is {r} cm in radius, and straight down its outside it is {s} cm "
        "from the opening to the point. How many degrees did the slice span at its point?",
        "A mountainous island rises evenly to a sharp summit from a coast that is a perfect circle, {r} miles in "
        "radius. Every direct path up the mountainside from the coast to the summit is {s} miles long. A cartographer "
        "makes a true model of the mountainside, slits it along one of these paths and flattens it without distortion. "
        "How many degrees does the flat sheet span at the summit?",
        "All points of a circle with radius {r} have the distance {s} from a point P in space. The segments from P to "
        "the points of the circle form a surface, which is slit along one of them and unrolled into a plane without "
        "being stretched. How many degrees wide is the unrolled surface at P?",
        "Gravel is piled up as a heap that runs evenly up to a peak above a circle of {r} yards radius, and it is {s} "
        "yards straight up its slope from the ground to the peak. A tarpaulin covers the slope without a wrinkle, and "
        "its two straight hems just meet. Which angle, in degrees, do the hems form when the tarpaulin is laid out on "
        "a level court, measured through the tarpaulin?",
    ),
    test_only=True,
)
def cone_rolled_out(r: int, s: int) -> Worked:
    """The arc of the sector is the rim of the base."""
    answer = 360 * r // s
    return Worked(
        answer,
        f"The arc of the flat sector is as long as the rim of the cone, and its radius is the slant height. So it is "
        f"the part {r}/{s} of a full circle with that radius. 360 * {r} / {s} = {answer}.",
    )


FAMILIES = (
    space_diagonal,
    volume_from_faces,
    surface_from_edges_and_diagonal,
    one_painted_face,
    volume_from_surfaces,
    rest_of_similar_solid,
    shortest_way_on_a_box,
    balls_into_a_cylinder,
    tower_of_cubes,
    shoelace_area,
    reflected_path,
    distance_to_line,
    lattice_points_in_triangle,
    fourth_vertex,
    cone_rolled_out,
)
