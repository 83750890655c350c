"""Plane geometry: similar triangles, circles and tangents, polygons, areas and ratios."""

from itertools import product
from math import gcd, isqrt

from problems.family import Worked, family

DOMAIN = "plane_geometry"
RATIOS = ((1, 2), (2, 1), (3, 2), (1, 4), (3, 1), (2, 5))
TRIPLES = tuple(t for t in product(range(5, 40), range(12, 66), range(13, 70)) if t[0] ** 2 + t[1] ** 2 == t[2] ** 2)
"""Legs and hypotenuse of right triangles."""


def sixteen_squared(a: int, b: int, c: int) -> int:
    """Sixteen times the squared area of a triangle."""
    return (a + b + c) * (b + c - a) * (c + a - b) * (a + b - c)


def is_heronian(a: int, b: int, c: int) -> bool:
    """Whether the sides make a triangle with an integer area, and no right angle."""
    square = sixteen_squared(a, b, c) if a < b < c < a + b else 0
    return square > 0 and isqrt(square) ** 2 == square and isqrt(square) % 4 == 0 and a * a + b * b != c * c


def meets(h: int, t: int, d: int) -> bool:
    """Whether the distance to the common tip is an integer that is not among the given numbers."""
    return h * d % (t - h) == 0 and h * d // (t - h) not in (h, t, d)


def has_fourth(a: int, b: int, c: int) -> bool:
    """Whether the distance to the fourth corner is an integer that is not among the given ones."""
    square = a * a + c * c - b * b
    return a < c and square > 4 and isqrt(square) ** 2 == square and isqrt(square) not in (a, b, c)


@family(
    DOMAIN,
    space=((h, t, d) for h, t, d in product(range(3, 10), (12, 15, 18, 24), range(11, 40)) if meets(h, t, d)),
    wordings=(
        "A street lamp hangs {t} feet above the ground. A post {h} feet high stands {d} feet from the foot of the "
        "lamp. How many feet long is the shadow of the post on the level ground?",
        "The parallel sides of a trapezoid, {h} cm and {t} cm, are {d} cm apart. The other two sides are extended "
        "beyond the shorter one until they meet. How far from it do they meet, in centimetres?",
        "A straight ramp begins at ground level. At one place it is {h} m high, and {d} m further along the ground it "
        "is {t} m high. How many metres along the ground is the first place from the beginning?",
        "A paper cup is {d} mm deep, its bottom is {h} mm across and its rim {t} mm. Think of the cup as a cone whose "
        "tip was cut off. What height did the tip have, in millimetres?",
        "Lying on flat land, Zoe sees the tops of a bush and a tower exactly in line. The bush is {h} m high, the "
        "tower {t} m, and it stands {d} m behind the bush. Find Zoe's distance from the bush in metres.",
        "A and C lie on a ray that starts at O, and AC = {d} with C farther out. B and D lie on another ray from O. AB "
        "and CD are parallel, AB = {h} and CD = {t}. What is OA?",
        "The light of a projector comes from a single point. Its slide is {h} cm tall and parallel to the screen, {d} "
        "cm in front of it. The picture on the screen is {t} cm tall. How many centimetres is the slide away from the "
        "point of light?",
        "In a drawing the two straight edges of a road run up the page towards one vanishing point. Level stripes are "
        "drawn from edge to edge. One stripe is {t} mm long on the page. Another, {d} mm higher up the page, is {h} "
        "mm long. How many millimetres above the upper stripe is the vanishing point?",
        "A duck swims straight ahead, and two straight ripples spread backwards from its breast. Measured square to "
        "its course, they are {h} dm apart at a certain place and {t} dm apart at a place {d} dm farther behind. How "
        "many decimetres is the duck's breast ahead of the nearer place, along its course?",
        "In the coordinate plane a straight line passes through (u, {h}) and (u + {d}, {t}). It meets the x-axis where "
        "x = v. Compute u - v.",
        "The two straight legs of a stepladder meet at a hinge. They stand {t} inches apart on an even floor, and a "
        "taut horizontal chain, {d} inches above this floor, spans the {h} inches from leg to leg. How many inches is "
        "the chain below the hinge?",
        "A carrot gets thinner evenly until it ends in a point. At its head it is {t} mm thick, and {d} mm further "
        "down, measured along its axis, only {h} mm. How many millimetres of carrot, again along the axis, follow "
        "below that second spot?",
    ),
)
def up_to_the_common_tip(h: int, t: int, d: int) -> Worked:
    """Similar triangles from one tip."""
    answer = h * d // (t - h)
    return Worked(
        answer,
        f"The small and the large triangle from the common tip are similar: x : {h} = (x + {d}) : {t}. So {t}x = {h}x "
        f"+ {h} * {d}, and x = {h} * {d} / ({t} - {h}). x = {h * d} / {t - h} = {answer}.",
    )


@family(
    DOMAIN,
    space=(
        (k * (m + n) ** 2, m, n)
        for k, m, n in product((2, 3, 5, 6, 7), (1, 2, 3, 4), (1, 2, 3, 5))
        if gcd(m, n) == 1 and k not in (m, n)
    ),
    wordings=(
        "A seam runs parallel to the lower edge of a triangular sail of {s} square feet. Its distances from the top "
        "corner and from the lower edge are as {m} to {n}. How many square feet are below the seam?",
        "The area of a round target is {s} square inches. The radius of its inner circle and the width of the ring "
        "around this circle are in the ratio {m} : {n}. What is the area of the ring in square inches?",
        "In triangle PQR with area {s}, X lies on PQ and Y on PR so that PX : XQ = PY : YR = {m} : {n}. Determine the "
        "area of the quadrilateral XQRY.",
        "A square plot of {s} square metres has a square pool in one corner. On two edges of the plot the lengths with "
        "and without pool are as {m} is to {n}. How many square metres are not pool?",
        "A convex polygon of area {s} is shrunk towards one of its corners until each length is {m} / ({m} + {n}) of "
        "what it was. How much of its former area is no longer covered?",
        "From a heart-shaped cake with {s} square centimetres of icing a smaller heart of the same shape is cut out. "
        "Its width and the rest of the width are as {m} to {n}. How much icing, in square centimetres, is left?",
        "A map covers {s} square inches of paper. A reduced copy, true to shape, is printed. The height of the copy "
        "and the amount by which it is lower than the original are as {m} to {n}. By how many square inches is the "
        "copy smaller than the original?",
        "While it dries, a puddle of {s} square decimetres keeps its shape exactly. This evening the length that it "
        "still has and the length that it has lost stand in the ratio {m} : {n}. How many square decimetres have "
        "fallen dry?",
        "A mosaic star consists of {s} square decimetres of tiles. Its blue tiles make up a smaller star of the same "
        "form, and all others are yellow. The span of the blue star and the excess of the whole star's span over it "
        "are in the proportion {m} : {n}. What surface, in square decimetres, is yellow?",
        "Divers find that a coral reef has grown without any change in the form of its outline. Every distance across "
        "the old reef is to the increase of that distance as {m} to {n}. Seen from above, the reef now takes up {s} "
        "ares. By how many ares has it grown?",
        "A felt letter for a costume covers {s} square centimetres. In the wash it shrinks, but its outline stays "
        "similar to what it was. Its height after the wash is to the height lost in the wash as {m} to {n}. By how "
        "many square centimetres has the felt shrunk?",
        "An ellipse of area {s} contains a second ellipse, which is the first one scaled down about their common "
        "midpoint. On every ray from this midpoint, the section within the second ellipse and the section between the "
        "two ellipses have the ratio {m} : {n}. Calculate the area between the two ellipses.",
    ),
)
def rest_of_similar_figure(s: int, m: int, n: int) -> Worked:
    """Areas grow with the square of lengths."""
    small = s * m * m // (m + n) ** 2
    return Worked(
        s - small,
        f"Areas of similar figures are as the squares of their lengths. The lengths are as {m} to {m} + {n} = {m + n}, "
        f"so the small figure has {s} * {m}^2 / {m + n}^2 = {s} * {m * m} / {(m + n) ** 2} = {small}. The rest is {s} "
        f"- {small} = {s - small}.",
    )


@family(
    DOMAIN,
    space=((180 * k - x,) for k, i in product(range(3, 15), range(5)) for x in ((pow(7, k, 149) + 29 * i) % 148 + 24,)),
    wordings=(
        "All interior angles of a convex polygon except one add up to {s} degrees. How many degrees has the last one?",
        "Tom adds the inner angles of a polygon whose corners all point outwards, but he forgets one. His calculator "
        "shows {s} degrees. By how many degrees is this too low?",
        "A field has straight borders and no inward bend. One corner is under water, and a surveyor finds the sum {s} "
        "degrees for the angles inside the field at the others. How many degrees has the corner under water?",
        "On a floor plan a stain covers the angle in one corner of a convex room. The readable angles come to {s} "
        "degrees in all. Which number of degrees does the stain hide?",
        "A convex n-gon has the corners P_1, ..., P_n. Inside it, the angles at P_1, ..., P_(n-1) come to {s} degrees "
        "in total. Determine the angle at P_n.",
        "To cut a convex pane with several edges, a glazier has every angle but one, {s} degrees taken together. What "
        "must the remaining angle of the pane measure in degrees?",
        "The flat top of a gem is convex and bounded by straight edges. A jeweller notes the inner angle at each "
        "corner of it. One note gets lost, and the others have the sum {s} degrees. What number of degrees stood on "
        "the lost note?",
        "On a star chart, straight lines link the outermost stars of a cluster into a closed convex loop. Leaving out "
        "the star Mira, an astronomer totals the angles within the loop at its stars and obtains {s} degrees. How "
        "wide, in degrees, is the angle of the loop at Mira?",
        "The ramparts of a fortress are straight and close into a convex ring, with one tower wherever two of them "
        "join. An engraver has recorded the angle on the courtyard side at every tower except the gate tower. His "
        "records sum to {s} degrees. What should he write for the gate tower, in degrees?",
        "A rubber band is stretched tightly around a set of thin nails in a board. At each nail where the band bends, "
        "Ruth reads off the angle on its inner side, and only the rusty nail is still to come. So far her readings "
        "make {s} degrees together. Which reading, in degrees, does the bend at the rusty nail give?",
        "A metal strip is bent into a convex cookie cutter whose sides are all straight. At all its bends except one, "
        "the angles inside the cutter total {s} degrees. How many degrees does the cutter have at that one bend?",
        "Straight ski lanes, joined end to end, close into a convex circuit. At each joint a sign gives the angle "
        "between the two lanes that join there, taken within the circuit, but one sign is snowed in. The signs that "
        "can be seen give {s} degrees altogether. What does the snowed-in sign give, in degrees?",
    ),
)
def missing_polygon_angle(s: int) -> Worked:
    """The angle sum is a multiple of 180 degrees."""
    total = 180 * (s // 180 + 1)
    return Worked(
        total - s,
        "The interior angles of an n-gon add up to (n - 2) * 180, a multiple of 180. The missing angle lies between 0 "
        f"and 180, so the sum is the next multiple of 180 after {s}: {s // 180 + 1} * 180 = {total}. {total} - {s} = "
        f"{total - s}.",
    )


@family(
    DOMAIN,
    space=((a, b) for a, b in product(range(34, 160, 13), range(21, 120, 11)) if (a + b) % 2 == 0 and a != b),
    wordings=(
        "Two chords AC and BD of a circle cross at X. The arc AB, away from C and D, measures {a} degrees, and the arc "
        "CD, away from A and B, measures {b} degrees. What is the angle AXB in degrees?",
        "A pizza is cut by two straight cuts that cross, but not in the middle. Of the 360 degrees of crust, one slice "
        "gets {a} degrees and the slice opposite gets {b}. How many degrees has the tip of each of these two slices?",
        "Two straight paths cross in a round park. Of the 360 degrees of its rim, {a} lie between two neighbouring "
        "ends of the paths and {b} between the two other ends. At what angle, facing these parts, do the paths cross?",
        "Beacons P, Q, R, S stand in this order on the shore of a circular lake. From P to Q the shore makes an arc of "
        "{a} degrees, from R to S one of {b}. Find the angle, on the side of P and Q, between the sight lines PR and "
        "QS.",
        "Inside a round hall two light beams cross. The spots where they hit the wall are {a} degrees of arc apart, "
        "the lamps on the wall from which they come {b} degrees. By how many degrees do their directions differ?",
        "Vertical angles with their tip inside a circle, though not at its centre, cut arcs of {a} and {b} degrees out "
        "of it. How large, in degrees, is each of the two angles?",
        "A red and a blue thread are stretched straight across a round embroidery hoop and cross each other. Going "
        "once around, their ends split the hoop into the arcs w, x, y and z, in this order. Here w has {a} degrees "
        "and y has {b} degrees. Calculate, in degrees, the angle at the crossing that opens towards w.",
        "A round mirror has two straight cracks, each reaching from frame to frame. They cross and thus make four "
        "pieces of glass: left, top, right and bottom. The left piece takes {a} degrees of the circular frame, the "
        "right piece {b} degrees. How wide is the left piece's corner at the crossing, in degrees?",
        "The vertices of a quadrilateral KLMN split its circumscribed circle into the four arcs KL, LM, MN and NK. Of "
        "these, KL has {a} degrees and MN has {b} degrees. Under which angle, in degrees, is the side KL seen from the "
        "common point of the diagonals?",
        "E, F, G and H are gates in the fence of a circular ice rink, in this order along it. The fence bends through "
        "{a} degrees on the way from E to F and through {b} degrees on the way from G to H. Skaters leave straight "
        "tracks from E to G and from F to H. Standing where the tracks meet, by how many degrees must one turn from "
        "facing E to facing F?",
        "Two straight lead bars run from rim to rim of a round stained-glass window and intersect away from its "
        "middle. Red glass fills one of the four fields between them, and green glass the field vertically opposite. "
        "The rim of the window has {a} degrees along the red field and {b} degrees along the green field. What is the "
        "angle, in degrees, at the red field's inner corner?",
        "A Martian colony lies under a circular dome with airlocks N, O, P and Q, named as they follow one another "
        "around its wall. One dead straight monorail connects N with P, another O with Q. The section of wall from N "
        "to O bends through {a} degrees and the section from P to Q through {b} degrees. Where the monorails "
        "intersect, what angle in degrees opens towards the section from N to O?",
    ),
)
def angle_between_chords(a: int, b: int) -> Worked:
    """Half the sum of the two arcs."""
    return Worked(
        (a + b) // 2,
        f"The angle between two chords that cross inside a circle is half the sum of the two arcs it faces. ({a} + "
        f"{b}) / 2 = {a + b} / 2 = {(a + b) // 2}.",
    )


@family(
    DOMAIN,
    space=(sides for sides in product(range(4, 54), repeat=3) if is_heronian(*sides)),
    wordings=(
        "What is the area of a triangle whose sides measure {a}, {b} and {c}?",
        "A sail has three straight edges of {a}, {b} and {c} dm. How many square decimetres of cloth does it contain?",
        "A wire is bent into a triangle with edges of {a} cm, {b} cm and {c} cm and dipped into soapy water. How many "
        "square centimetres has the flat film of soap inside?",
        "A meadow between three straight fences of {a} m, {b} m and {c} m is sold at one crown per square metre. How "
        "many crowns does it cost?",
        "The distances between three points are PQ = {a}, QR = {b} and RP = {c}. Determine the area of PQR.",
        "A plane flies {a} miles, {b} miles and {c} miles, each leg dead straight, and is back where it started. How "
        "many square miles did it fly around?",
        "Three thin bars, {a}, {b} and {c} inches long, are welded together at their ends as the frame of a skylight. "
        "How much glass, in square inches, fills this frame completely?",
        "A closed rope has three knots, which divide it into parts of {a} ft, {b} ft and {c} ft. Three scouts each "
        "hold a knot and pull until every part is straight. What number of square feet of lawn lies within the rope?",
        "A pendant of sheet silver has three straight rims, {a} mm, {b} mm and {c} mm in length. Only its front is "
        "gilded. What number of square millimetres of gold leaf covers it exactly?",
        "Laser posts guard a statue in a museum. There are three of them, and level beams of {a} dm, {b} dm and {c} dm "
        "run from post to post. Calculate the floor space, in square decimetres, that the beams shut in.",
        "In the plane, the vectors v and w have the lengths {a} and {b}, and v - w has the length {c}. What is half of "
        "the area of the parallelogram that v and w span?",
        "A cook rolls out marzipan and trims it with three straight cuts, so that the flat piece left over has edges "
        "of {a}, {b} and {c} cm and no others. Its upper side is dusted with one gram of cocoa for each square "
        "centimetre. How many grams of cocoa does that take?",
    ),
)
def heron_area(a: int, b: int, c: int) -> Worked:
    """Heron's formula with half the perimeter."""
    s = (a + b + c) // 2
    square = s * (s - a) * (s - b) * (s - c)
    return Worked(
        isqrt(square),
        f"Heron: with half the perimeter s, the area is the root of s(s - a)(s - b)(s - c). s = ({a} + {b} + {c}) / 2 "
        f"= {s}, and {s} * {s - a} * {s - b} * {s - c} = {square}. The root of {square} is {isqrt(square)}.",
    )


@family(
    DOMAIN,
    space=((p, r) for p, r in product(range(46, 150, 7), range(3, 9)) if p > 11 * r and p * r % 2 == 0),
    wordings=(
        "A circle of radius {r} lies inside a convex polygon and touches every side. The perimeter of the polygon is "
        "{p}. What is its area?",
        "In a garden with straight edges there is a round pond which just reaches each edge. The pond's radius is {r} "
        "m, and the fence along all the edges is {p} m long. How many square metres has the garden, pond included?",
        "The largest disc that fits on a triangular road sign has a radius of {r} inches. Once around the sign it is "
        "{p} inches. How large is the sign in square inches?",
        "There is a spot in a convex room with flat walls that is {r} feet from each wall. The lengths of all the "
        "walls have the sum {p} feet. Find the floor area in square feet.",
        "A paper strip of {p} mm is folded into a pentagon around a coin, so that all five sides touch the coin, which "
        "has a radius of {r} mm. How many square millimetres does the pentagon enclose?",
        "A quadrilateral ABCD has an inscribed circle with radius {r}, and AB + BC + CD + DA = {p}. Determine the area "
        "of ABCD.",
        "A round pie sits in a convex box with six flat upright walls and touches each of them. It measures {r} cm "
        "from its middle to its rim. A ribbon once along all six walls needs {p} cm. How many square centimetres does "
        "the bottom of the box have?",
        "A spotlight throws a circle of light onto a convex dance floor with straight borders. Every border is "
        "tangent to the circle, whose radius is {r} yards. Dancing once along all the borders, Mia covers {p} yards. "
        "What is the size of the dance floor, lit and unlit, in square yards?",
        "A goat is tied to a stake on a convex pasture with straight hedges all round. When its tether is taut, it can "
        "just graze up to a single point of each hedge, {r} m away from the stake. All hedges taken together are {p} m "
        "long. How many square metres does the pasture have?",
        "The bisectors of all interior angles of a convex polygon go through one common point, and the distance of "
        "this point from one of the sides is {r}. The sides add up to {p}. Compute the area of the polygon.",
        "The bottom of an upright tin is convex and has several straight edges, from each of which a flat wall goes "
        "straight up. A ball with a radius of {r} mm rests on the bottom and touches every wall at once. The edges of "
        "the bottom have a total length of {p} mm. How many square millimetres does the bottom measure?",
        "The round dial of an old watch is set into an eight-cornered convex gold plate, and just reaches each of its "
        "eight edges. An engraver follows these edges with his needle, {p} lines in total. From the middle of the dial "
        "to its rim there are {r} lines. If a line is a unit of length, how many square lines has the plate with the "
        "dial?",
    ),
)
def area_around_a_circle(p: int, r: int) -> Worked:
    """Half the perimeter times the radius of the inscribed circle."""
    return Worked(
        p * r // 2,
        "Join the centre of the circle to all corners. Each triangle has a side as base and the radius as height, so "
        f"the area is half of perimeter times radius. {p} * {r} / 2 = {p * r} / 2 = {p * r // 2}.",
    )


@family(
    DOMAIN,
    space=(
        (k * m * m, k * (n * n - m * m))
        for k, m, n in product((1, 2, 3, 4, 5, 7), range(1, 6), range(2, 9))
        if m < n and gcd(m, n) == 1 and k * m * m > 1 and k * n * n < 240
    ),
    wordings=(
        "P, A and B lie on a line in this order, PA = {p} and AB = {q}. A circle passes through A and B, and the line "
        "PT touches it at T. Find the length PT.",
        "A spacecraft hovers {p} km above a small moon, a perfect ball with a diameter of {q} km. How many kilometres "
        "is it from the craft to a point on the moon's horizon?",
        "From a boat a straight line of sight reaches a round island after {p} miles and leaves it on the far side {q} "
        "miles later. How many miles away is the point where a line of sight only grazes the island?",
        "A level beam goes {p} cm from a lamp to a round glass column and {q} cm through it without bending. Another "
        "level beam just touches the column. How many centimetres is the touching point from the lamp?",
        "On side PB of a triangle PTB there is a point A with PA = {p} and AB = {q}. The angles PTA and PBT are equal. "
        "How long is PT?",
        "A rope pulled tight from a peg meets the wall of a round silo at right angles to the radius there. A straight "
        "walk from the peg reaches the silo after {p} feet and leaves it after {q} more. Find the rope's length in "
        "feet.",
        "A beetle on a floor is {p} cm from the nearest point of a round mat, which is {q} cm in diameter. It runs "
        "straight to a point of the mat's rim. Even if prolonged, the line of its run would meet the rim nowhere "
        "else. How many centimetres does the beetle run?",
        "A straight canal from Dorn crosses the circular border of a county after {p} leagues and crosses it again "
        "{q} leagues later. A straight road from Dorn runs past the county and grazes its border only at Kell. What "
        "is the distance from Dorn to Kell in leagues?",
        "Straight across a level fairground it is {p} yards from the ticket booth to the nearest spot of a round "
        "circus tent, and the tent is {q} yards across. A string of lamps hangs taut from the booth to the one spot "
        "where its line brushes the tent. How many yards of string does that take?",
        "A point Z lies outside a circle of diameter {q}, and the least distance from Z to this circle is {p}. Another "
        "circle, with centre Z, cuts the given one at right angles. What is the radius of the other circle?",
        "A circle passes through the points (0, {p}) and (0, {p} + {q}) and is tangent to the x-axis at a point whose "
        "x-coordinate is positive. Determine this x-coordinate.",
        "On a tabletop with a thin round lid lying on it, a spider spins two straight threads from one speck. The "
        "first comes to the edge of the lid after {p} mm and runs under the lid for another {q} mm until it comes out. "
        "The second ends at the edge of the lid, and would not run under the lid even if it were spun on. What is the "
        "length of the second thread in mm?",
    ),
)
def tangent_and_secant(p: int, q: int) -> Worked:
    """The square of the tangent is the outer part times the whole secant."""
    root = isqrt(p * (p + q))
    return Worked(
        root,
        f"The square of the tangent is the outer part of the secant times the whole secant. The whole is {p} + {q} = "
        f"{p + q}, and {p} * {p + q} = {p * (p + q)}. The root of {p * (p + q)} is {root}.",
    )


@family(
    DOMAIN,
    space=(
        (s + x, s, d) for (x, y, d), s in product(TRIPLES, (2, 3, 5, 8, 9)) if 2 * s + x < d and y not in (s + x, s)
    ),
    wordings=(
        "Two wheels have radii of {r} cm and {s} cm, and their axles are {d} cm apart. A belt runs around both without "
        "crossing itself. How long is each straight piece of it, in centimetres?",
        "The centres of two circles with radii {r} and {s} are {d} apart. A line touches both circles and has them on "
        "the same side. What is the distance between its two points of touch?",
        "A right trapezoid has parallel sides {r} and {s}, and its slanted side measures {d}. How long is the side at "
        "right angles to the parallel ones?",
        "The tops of two upright masts, {r} m and {s} m high, are joined by a tight straight cable of {d} m. How many "
        "metres apart do the masts stand on level ground?",
        "Parallel pipes lie on a flat floor. From the end they look like discs with radii of {r} and {s} inches and "
        "midpoints {d} inches apart. How many inches apart are the lines where they rest on the floor?",
        "Along the south of two round towers runs a straight wall that grazes them. It is {r} feet from the middle of "
        "one and {s} feet from the middle of the other. These middles are {d} feet apart. How many feet of wall lie "
        "between the grazed spots?",
        "One diver is {r} m below the flat surface of the sea, another {s} m below it. The straight tight cord "
        "between them is {d} m long. Exactly above each diver floats a buoy. Find the distance between the buoys in "
        "metres.",
        "Two round cheeses lie flat in a box, both pushed against the same straight side wall. Their radii are {r} cm "
        "and {s} cm. From centre to centre they are {d} cm apart. Each cheese leaves a mark where it meets the wall. "
        "How many centimetres of wall are between the marks?",
        "Two points in a coordinate plane have the y-coordinates {r} and {s}, and the segment between them has the "
        "length {d}. By how much do their x-coordinates differ?",
        "Driveways of {r} and {s} furlongs lead off the same side of a dead straight country lane, both at right "
        "angles to it, each up to a farmhouse door. A crow needs to fly {d} furlongs from door to door. How many "
        "furlongs must the postman ride on the lane from one driveway to the other?",
        "Two lamps hang on plumb cords, {r} dm and {s} dm long, from hooks in an even horizontal ceiling. A garland of "
        "{d} dm is stretched straight from the lower end of one cord to the lower end of the other. How many "
        "decimetres is it from hook to hook?",
        "A penny-farthing stands on a level street. Its front wheel has a radius of {r} thumbs, its rear wheel one of "
        "{s} thumbs, and from hub to hub it is {d} thumbs. If a thumb is a unit of length, how many thumbs of street "
        "lie between the places where the wheels touch it?",
    ),
)
def outer_tangent(r: int, s: int, d: int) -> Worked:
    """A right triangle with the difference of the radii."""
    root = isqrt(d * d - (r - s) ** 2)
    return Worked(
        root,
        "Shift the wanted line until it ends at the top of the shorter parallel: this gives a right triangle with "
        f"hypotenuse {d} and one leg {r} - {s} = {r - s}. The other leg is wanted: {d}^2 - {r - s}^2 = {d * d} - "
        f"{(r - s) ** 2} = {root * root}, and its root is {root}.",
    )


@family(
    DOMAIN,
    space=(
        (k * (m + n), g * m, g * n)
        for g, k, m, n in product((4, 5, 6, 8), (2, 3, 4, 5, 7), (1, 2, 3, 4, 5), (2, 3, 4, 5, 7))
        if m != n and gcd(m, n) == 1 and g * abs(m - n) < k * (m + n) < g * (m + n) and k * m not in (g * m, g * n)
    ),
    wordings=(
        "In triangle ABC, AB = {b}, AC = {c} and BC = {a}. The bisector of the angle at A meets BC at D. How long is "
        "BD?",
        "From a village a straight road of {b} km leads to Elm and one of {c} km to Fir. A straight motorway of {a} km "
        "joins Elm and Fir. A track halves the angle between the roads. How many kilometres from Elm does it cross the "
        "motorway?",
        "On the edge of length {a} of a triangular plate, find the point that is equally far from the other two edges. "
        "Their lengths are {b} and {c}. How far is it from the end where the edge of length {b} begins?",
        "A triangular cake has edges of {b} cm and {c} cm at its front corner and a back edge of {a} cm. A straight "
        "cut makes two equal angles at the front. What length of the back edge goes with the edge of {b} cm?",
        "Ropes of {b} feet and {c} feet run from a mast top to hooks {a} feet apart. A third one, midway in angle "
        "between them, runs to the straight line of the hooks. Find its distance there from the hook of the first "
        "rope.",
        "A ray from a lamp L hits a straight rail MN of {a} inches at T. LM is {b} inches and LN is {c} inches long, "
        "and the angles MLT and TLN are the same. Calculate MT in inches.",
        "An archer stands {b} m from an oak and {c} m from an ash, and the trees are {a} m apart. She shoots between "
        "them, so that the arrow's direction makes equal angles with her directions to the two trees. How far from "
        "the oak, in metres, does the arrow pass the straight line from tree to tree?",
        "A paper triangle UVW has UV = {b} cm, UW = {c} cm and VW = {a} cm. Folding it lays the edge UV along the "
        "edge UW, with the crease through U. The crease hits VW somewhere. Determine how many centimetres this place "
        "is away from V.",
        "Before a free kick the ball lies {b} dm from the foot of the left goalpost and {c} dm from that of the right "
        "one. The goal is {a} dm wide between the posts. The keeper stands on the goal line and, seen from the ball, "
        "is at the same angle from either post. How many decimetres are there between the keeper and the left post?",
        "Light runs {b} cm from a point G to a point M of a flat mirror, is reflected there, and runs {c} cm on to a "
        "point H. G and H are {a} cm apart. The perpendicular to the mirror at M intersects the segment GH at K. "
        "Determine GK in centimetres.",
        "A rhombus lies in triangle XYZ so that X is one of its corners, two of its sides run along XY and XZ, and its "
        "corner opposite X is a point T of the side YZ. Given XY = {b}, XZ = {c} and YZ = {a}, determine YT.",
        "A surveyor is {b} chains from a chimney and {c} chains from a steeple, which are {a} chains away from each "
        "other. On the straight line between these two, her assistant puts a pole in such a place that, looking from "
        "the pole to either of them, the surveyor has to turn by the same angle. How many chains lie between the pole "
        "and the chimney?",
    ),
)
def pieces_by_bisector(a: int, b: int, c: int) -> Worked:
    """The bisector divides the opposite side like the adjacent sides."""
    return Worked(
        a * b // (b + c),
        f"The bisector of an angle divides the opposite side in the ratio of the two sides next to the angle, here {b} "
        f": {c}. So the piece is {b} / ({b} + {c}) of {a}. {a} * {b} / {b + c} = {a * b} / {b + c} = "
        f"{a * b // (b + c)}.",
    )


@family(
    DOMAIN,
    space=(
        (a, b, d)
        for a, b, d in product(range(5, 12), range(6, 15, 2), (8, 10, 13))
        if abs(a - b) < d < a + b and len({a, b, d}) == 3
    ),
    wordings=(
        "A parallelogram has sides {a} and {b}, and one of its diagonals is {d}. What is the square of the other "
        "diagonal?",
        "Two rods of {a} dm and two of {b} dm are hinged into a frame, equal rods opposite each other. Two opposite "
        "hinges are {d} dm apart, the two other hinges x dm. What is the value of x^2?",
        "In a triangle with sides {a}, {b} and {d}, let m be the median that ends in the middle of the side of length "
        "{d}. Calculate 4m^2.",
        "A drone flies {a} km straight, then {b} km in a new direction, and is {d} km from its start. With the second "
        "leg in exactly the opposite direction it would be q km from its start. Find q^2.",
        "The complex numbers z and w have the absolute values {a} and {b}, and |z + w| = {d}. How large is |z - w|^2?",
        "Two tugs pull at a ship with forces of {a} and {b} units. If one of them pulled the opposite way, the joint "
        "force would be {d} units. As it is, the joint force is f units. What is f^2?",
        "Flying at {a} m/s through the air, in a wind of {b} m/s, a swan moves at {d} m/s over the ground. Suppose "
        "the wind blew equally strongly the opposite way, and the swan kept its heading and its speed through the "
        "air. What would be the square of its speed over the ground, taken in m/s?",
        "Both halves of a straight pole are {a} cm long. In a straight line, a fly is {b} cm from the middle of the "
        "pole and {d} cm from its red end. Square the number of centimetres between the fly and the blue end. What "
        "results?",
        "The vectors u and v have the lengths {a} and {b}, and their difference u - v has the length {d}. What is the "
        "dot product of u + v with itself?",
        "On a merry-go-round a white horse and a black horse are mounted exactly opposite each other, both {a} ft from "
        "the axis. A father waits {b} ft from the axis, and at this moment the white horse is {d} ft from him, "
        "everything measured horizontally. Let x ft be his distance from the black horse at the same moment. What is "
        "the square of x?",
        "Two trains left Oxby together on a dead straight track, one eastwards and one westwards, and each is {a} "
        "miles from Oxby by now. A windmill is {b} miles from Oxby and {d} miles from the eastbound train, as the crow "
        "flies over flat land. Find the square of the windmill's distance, in miles, from the westbound train.",
        "In triangle ABC, AB = {a}, AC = {b} and BC = {d}. The side BA is prolonged beyond A by its own length, up to "
        "a point E. What is the value of CE * CE?",
    ),
)
def parallelogram_law(a: int, b: int, d: int) -> Worked:
    """The squares of the diagonals add up to the squares of all four sides."""
    sides = 2 * a * a + 2 * b * b
    return Worked(
        sides - d * d,
        "In a parallelogram the squares of both diagonals together equal the squares of all four sides. The four "
        f"sides give 2 * {a * a} + 2 * {b * b} = {sides}, the known diagonal gives {d}^2 = {d * d}. {sides} - {d * d} "
        f"= {sides - d * d}.",
    )


@family(
    DOMAIN,
    space=(known for known in product(range(3, 26), repeat=3) if has_fourth(*known)),
    wordings=(
        "A tree stands inside a rectangular garden ABCD. It is {a} m from A, {b} m from B and {c} m from C. How many "
        "metres is it from D?",
        "From a point in a rectangle, the distances to three of the corners, taken in order round the rectangle, are "
        "{a}, {b} and {c}. What is the distance to the fourth corner?",
        "Four tight ropes run over level ground from a peg to the corner posts of a rectangular meadow. Going round, "
        "the first three are {a}, {b} and {c} yards long. How many yards long is the last?",
        "A spider sits on a window pane, {a} inches from the top left corner, {b} from the top right one and {c} from "
        "the bottom right one. How many inches does it crawl straight to the bottom left corner?",
        "Signals from a phone in a flat rectangular yard take {a} ns to the antenna in the north-west corner, {b} ns "
        "to the north-east and {c} ns to the south-east. How many ns do they take to the south-west corner?",
        "Real numbers satisfy x^2 + y^2 = {a}^2, x^2 + z^2 = {b}^2 and z^2 + w^2 = {c}^2. Find the positive root of "
        "y^2 + w^2.",
        "A toy balloon hovers in a room with a rectangular floor. Measured in straight lines, its knot is {a} ft away "
        "from one corner of the floor, {b} ft from the next corner clockwise and {c} ft from the one after that. What "
        "does the measurement to the remaining corner give, in feet?",
        "On a rectangular billiard table, pockets E, F, G and H are at the corners, in order around the table. The "
        "white ball must roll {a} dm to reach E, {b} dm to reach F and {c} dm to reach G, always straight. How many "
        "decimetres must it roll straight to H?",
        "A swimmer floats in a rectangular pool with lifeguards at all four corners: Kurt, Lily, Milo and Nell, in "
        "this order along the edge. In a straight line she has {a} m to Kurt, {b} m to Lily and {c} m to Milo. What "
        "distance, in metres, separates her from Nell?",
        "The base of a pyramid is a rectangle. Of the edges that run up to the apex, three consecutive ones are, in "
        "this order, {a}, {b} and {c} long. Find the length of the one that is left.",
        "A kite flies above a rectangular beach. Flags stand at the four ends of the beach, clockwise a red, a white, "
        "a blue and a green one. As the crow flies, the kite is {a} fathoms from the foot of the red flag, {b} fathoms "
        "from that of the white and {c} fathoms from that of the blue flag. How many fathoms is it from the foot of "
        "the green flag?",
        "The vectors e and f are perpendicular. A vector x satisfies |x| = {a}, |x - e| = {b} and |x - e - f| = {c}. "
        "How large is |x - f|?",
    ),
)
def fourth_corner_distance(a: int, b: int, c: int) -> Worked:
    """Squares of distances to opposite corners have equal sums."""
    square = a * a + c * c - b * b
    return Worked(
        isqrt(square),
        "For a point in a rectangle, the squares of the distances to two opposite corners have the same sum as those "
        f"to the other two. {a}^2 + {c}^2 - {b}^2 = {a * a} + {c * c} - {b * b} = {square}. The root of {square} is "
        f"{isqrt(square)}.",
    )


@family(
    DOMAIN,
    space=((c,) for c in range(6, 104, 2)),
    wordings=(
        "Two circles have the same centre. A chord of the larger one touches the smaller one and is {c} long. The area "
        "of the ring between the circles is k times pi. What is k?",
        "A rod of length {c} always touches a fixed circle with its midpoint and slides once all the way round it. The "
        "area that it sweeps over is divided by pi. Which number results?",
        "A ruler is laid across a metal washer so that it just touches the edge of the hole. Between the two points on "
        "the outer rim it shows {c} mm. How many times pi is the area of the washer in square millimetres?",
        "The line y = r meets the circle x^2 + y^2 = R^2 in two points that are {c} apart. Find R^2 - r^2.",
        "A corridor runs around a round hall and has the same width everywhere. The longest straight line that one can "
        "draw on its floor measures {c} feet. Its floor has n * pi square feet. Determine n.",
        "A moat surrounds a circular castle. Swimming in a straight line from one point of the outer bank to another "
        "and only brushing the castle wall, a guard covers {c} m. By what must pi be multiplied to get the surface of "
        "the moat in square metres?",
        "In the centre of a circular arena stands a round stage, and everything between stage and fence is sand. "
        "Stage and arena have a common midpoint. A straight rope of {c} yards is stretched from fence to fence and is "
        "tangent to the stage. The sand fills p * pi square yards. Calculate p.",
        "A sawn tree trunk shows a round dark core and around it pale wood up to the bark, a circle with the same "
        "middle. A straight chalk line from bark to bark, {c} cm long, meets the core in just one point. Divide the "
        "area of pale wood, in square centimetres, by pi. What is the quotient?",
        "The groove of a vinyl record fills everything between the round label and the outer rim, which have a common "
        "centre. A straight scratch leads from rim to rim, is {c} mm long and meets the label at exactly one point. "
        "The grooved part has g * pi square millimetres. What is the value of g?",
        "All sides of a regular polygon are {c} units long. Subtracting the area of its inscribed circle from that of "
        "its circumscribed circle leaves w * pi. Which number is w?",
        "A bead is a wooden ball with a cylindrical hole drilled right through it, and the axis of the hole goes "
        "through the centre of the ball. Measured on the wall of the hole, the hole is {c} mm long. At half of this "
        "length the bead is sawn apart at right angles to the hole, which lays bare a flat face of wood. How many "
        "times pi is the area of this face, in square millimetres?",
        "A photograph of an annular eclipse shows the dark moon precisely in the middle of the bright sun, both as "
        "discs. Someone draws a straight stroke across, from one border of the sun to another, which only just reaches "
        "the moon's border and is {c} units long. What multiple of pi, in square units, is the bright part of the sun?",
    ),
)
def ring_from_chord(c: int) -> Worked:
    """The ring has the area of the circle over half the chord."""
    half = c // 2
    return Worked(
        half * half,
        "Half the chord, the small radius r and the large radius R form a right triangle, so R^2 - r^2 is the square "
        f"of half the chord. The ring has the area pi * (R^2 - r^2). {c} / 2 = {half}, and {half}^2 = {half * half}.",
    )


@family(
    DOMAIN,
    space=(
        (k * m * m, k * n * n)
        for k, m, n in product((1, 2, 3, 5, 6), range(1, 7), range(2, 9))
        if gcd(m, n) == 1 and 4 < k * m * m < 100 and 4 < k * n * n < 150 and m != n
    ),
    wordings=(
        "The two diagonals cut a trapezoid into four triangles. Those on the parallel sides have the areas {s} and "
        "{t}. What is the area of the trapezoid?",
        "Two straight paths, each from a corner to the opposite one, divide a field with two parallel borders. The "
        "parts along these borders have {s} and {t} hectares. How many hectares has the field?",
        "In a quadrilateral ABCD, AB is parallel to CD, and AC and BD meet at O. Triangle ABO has area {s}, triangle "
        "CDO has area {t}. Find the area of ABCD.",
        "The top and bottom edges of a four-sided window are level but not equally long. Bars from corner to corner "
        "split it into panes. The top pane has {s}, the bottom pane {t} square inches. How much glass is it in all?",
        "Exactly two of a flag's four edges are parallel. Seams from corner to corner part it into red, blue and twice "
        "white. Red, at one of the parallel edges, fills {s} square feet, blue, at the other, {t}. How large is the "
        "flag?",
        "A trapezoid cake is cut from corner to opposite corner, twice. Ann takes the piece at one parallel side, with "
        "a top of {s} square centimetres, Bo the one at the other, with {t}. What was the area of the whole top?",
        "The flat face of a dam has four corners. Its crest and its foot are level, with different lengths. Two "
        "straight painted lines connect opposite corners. Of the four parts, the one at the crest measures {s} square "
        "metres, the one at the foot {t}. How many square metres is the whole face?",
        "One pair of opposite sides of a four-sided rug runs parallel, the other pair does not. Gold threads are sewn "
        "along both diagonals. A weaver finds {s} square feet in the triangle at one parallel side and {t} in the "
        "triangle at the other. How much floor does the rug cover, in square feet?",
        "The leather front of a handbag has four corners, and its upper and lower hems are parallel, one being longer. "
        "Stitches run dead straight between each pair of opposite corners. Together with the upper hem they enclose "
        "{s} square centimetres of leather, together with the lower hem {t}. What is the size of the front, in square "
        "centimetres?",
        "Only two of the four straight sides of a hotel pool are parallel. Float lines, stretched from each corner to "
        "the one opposite, mark off four zones. The children's zone lies along one of the parallel sides and has {s} "
        "square yards, the divers' zone along the other has {t}. How many square yards of water does the pool have in "
        "total?",
        "Ridge and eaves of a flat roof slope are parallel, its two other edges are not. Under it, one straight beam "
        "goes from the left end of the ridge to the right end of the eaves, and another from the right end of the "
        "ridge to the left end of the eaves. Of the slope, {s} square yards lie between the beams and the ridge and "
        "{t} between the beams and the eaves. How many square yards does the entire slope have?",
        "A flat hourglass figure consists of two triangles with nothing but one vertex in common. Their sides opposite "
        "this vertex are parallel, and each of the other sides of one triangle is continued in a straight line by a "
        "side of the other. The triangles have the areas {s} and {t}. An elastic band is put tightly round the whole "
        "figure; what area does it enclose?",
    ),
)
def trapezoid_by_diagonals(s: int, t: int) -> Worked:
    """Each side triangle is the geometric mean of the other two."""
    root = isqrt(s * t)
    return Worked(
        s + t + 2 * root,
        "The triangles on the parallel sides are similar. Each of the other two triangles is the root of the product "
        f"of their areas: {s} * {t} = {s * t}, with root {root}. {s} + {t} + 2 * {root} = {s + t + 2 * root}.",
    )


@family(
    DOMAIN,
    space=(
        (k * (a + b) * (c + d), a, b, c, d)
        for k, (a, b), (c, d) in product((2, 3, 5), RATIOS, RATIOS)
        if (a, b) != (c, d) and k * (a + b) * (c + d) < 150
    ),
    wordings=(
        "Triangle ABC has the area {s}. D divides AB so that AD : DB = {a} : {b}, and E divides AC so that AE : EC = "
        "{c} : {d}. What is the area of the quadrilateral DBCE?",
        "A straight cut removes one corner of a flat triangular cheese of {s} dag. Counted from this corner, it "
        "divides one edge in the ratio {a} : {b} and the other in the ratio {c} : {d}. How many dag does the rest "
        "weigh?",
        "At the gate of a triangular park of {s} ares two borders begin. A straight path cuts across. From the gate, "
        "it divides the one border into parts as {a} : {b}, the other as {c} : {d}. How many ares lie beyond the path?",
        "The vectors u and v span a triangle of area {s}. By how much does its area exceed that of the triangle "
        "spanned by {a} / ({a} + {b}) * u and {c} / ({c} + {d}) * v?",
        "A triangular banner of {s} square decimetres is gold from its top corner down to a straight line. On its left "
        "edge gold and other colour are as {a} to {b}, on its right edge as {c} to {d}. How much is not gold?",
        "A sheet PQR with three edges and {s} square inches gets a crease from M on PQ to N on PR. PM and MQ are as "
        "{a} : {b}, PN and NR as {c} : {d}. How many square inches are on the side of the crease away from P?",
        "A shadow with a straight rim covers one corner of a triangular solar panel of {s} square feet. Of one side "
        "at this corner, the shaded length and the sunny length are as {a} to {b}, of the other side at it as {c} to "
        "{d}. How many square feet of the panel are in the sun?",
        "A kingdom with three straight frontiers has {s} square leagues. Rebels hold the corner at Ulm as far as a "
        "straight front line. The rebel and the loyal stretch are in the ratio {a} : {b} on one frontier from Ulm and "
        "{c} : {d} on the other frontier from Ulm. What area, in square leagues, is still loyal?",
        "A glass tabletop of {s} square inches has three straight edges. Hail cracks it along a straight line, and one "
        "of its corners falls off. On one damaged edge the lost and the remaining lengths are as {a} to {b}, on the "
        "other damaged edge as {c} to {d}. What area, in square inches, does the rest of the tabletop have?",
        "A delta kite is a flat triangle of {s} square decimetres, made of nylon at the nose and of silk behind a "
        "straight seam that runs from the left wing edge to the right one. From the nose backwards, the seam parts the "
        "left wing edge in the ratio {a} : {b} and the right one in the ratio {c} : {d}. How many square decimetres of "
        "silk are in the kite?",
        "On one ray from O lie K and, farther out, M, with OK : KM = {a} : {b}. On another ray from O, not along the "
        "same line, lie L and, farther out, N, with OL : LN = {c} : {d}. Triangle OMN has area {s}. Compute the area "
        "of KMNL.",
        "A triangular moor of {s} hectares has been on fire in its western corner, as far as a straight ditch. Of one "
        "moor edge that begins in this corner, the burnt and the green length are in the ratio {a} : {b}, and of the "
        "other edge that begins there, in the ratio {c} : {d}. How many hectares are still green?",
    ),
)
def areas_with_common_angle(s: int, a: int, b: int, c: int, d: int) -> Worked:
    """With a common angle, areas are as the products of the sides."""
    small = s * a * c // ((a + b) * (c + d))
    return Worked(
        s - small,
        "Triangles with a common angle have areas in the ratio of the products of the sides at that angle. The sides "
        f"are {a}/{a + b} and {c}/{c + d} of the whole ones, so the small triangle has {s} * {a}/{a + b} * {c}/{c + d} "
        f"= {small}. {s} - {small} = {s - small}.",
    )


@family(
    DOMAIN,
    space=(
        (a, b) for a, b in product(range(5, 61), range(6, 100)) if a < b and isqrt(a * a + b * b) ** 2 == a * a + b * b
    ),
    wordings=(
        "The legs of a right triangle measure {a} and {b}. What is the radius of the circle that touches all three "
        "sides from inside?",
        "Two walls of {a} ft and {b} ft meet at a right angle, and a straight hedge joins their far ends. How many "
        "feet is the radius of the largest round pool that fits into this yard?",
        "A tin offcut has three corners. Two of its edges, {a} mm and {b} mm long, are perpendicular. A disc as large "
        "as possible is punched out of it. Find the radius of the disc in millimetres.",
        "In triangle ABC the angle at C has 90 degrees, CA = {a} and CB = {b}. How far is the common point of the "
        "three angle bisectors from the side AB?",
        "Three straight roads join Arl, Bly and Cope. Those to Arl and to Bly leave Cope at a right angle and are {a} "
        "km and {b} km long. A farm between the roads is equally far from all three. How many kilometres is it from "
        "each road?",
        "A flag of {a} cm by {b} cm is divided by its diagonal. On one half a sun is sewn, a circle as large as that "
        "half can hold. How many centimetres are there from the middle of the sun to its rim?",
        "Under a lean-to roof, an upright wall rises {a} dm from one end of a level floor {b} dm wide. A straight "
        "rafter goes from the top of the wall to the other end of the floor. Below the rafter, a round pipe runs "
        "along the building and touches wall, floor and rafter. What is its radius in decimetres?",
        "A picture frame has three inner edges. The two shorter ones, {a} cm and {b} cm, are perpendicular. A thin "
        "round medal lies inside the frame and meets each inner edge in one point. How many centimetres is the centre "
        "of the medal away from its own rim?",
        "The coordinate axes and the line x/{a} + y/{b} = 1 bound a triangle. Inside it lies a circle to which both "
        "axes and the line are tangent. What is the x-coordinate of the centre of this circle?",
        "A corner shelf is screwed to two perpendicular walls, along {a} inches of one and {b} inches of the other, "
        "and its front edge is straight. Grandma wants to put a round plate flat on it, as big as possible, with "
        "nothing jutting out. Which radius in inches may the plate have at most?",
        "Triangle OUV has a right angle at O, and OU = {a}, OV = {b}. The incircle of the triangle touches the side OU "
        "at the point W. Determine OW.",
        "Canvas is stretched between an upright mast and a horizontal boom. It runs {a} spans up the mast and {b} "
        "spans out along the boom from where they join, and its third border is a straight line. The captain has the "
        "largest possible circular emblem painted on it. How many spans does this emblem measure from centre to edge?",
    ),
    test_only=True,
)
def circle_in_right_triangle(a: int, b: int) -> Worked:
    """Half of what both legs have more than the hypotenuse."""
    c = isqrt(a * a + b * b)
    return Worked(
        (a + b - c) // 2,
        f"From each corner the two pieces up to the circle are equal, and at the right angle they are the radius. So "
        f"the legs together are the hypotenuse and two radii. The hypotenuse is the root of {a}^2 + {b}^2 = {c * c}, "
        f"which is {c}. ({a} + {b} - {c}) / 2 = {(a + b - c) // 2}.",
    )


FAMILIES = (
    up_to_the_common_tip,
    rest_of_similar_figure,
    missing_polygon_angle,
    angle_between_chords,
    heron_area,
    area_around_a_circle,
    tangent_and_secant,
    outer_tangent,
    pieces_by_bisector,
    parallelogram_law,
    fourth_corner_distance,
    ring_from_chord,
    trapezoid_by_diagonals,
    areas_with_common_angle,
    circle_in_right_triangle,
)
