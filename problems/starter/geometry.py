"""Geometry: lengths, areas, angles, solids, and points of the unit grid."""

from itertools import product
from math import gcd

from problems.family import ROUND_COUNTS, Worked, family

DOMAIN = "geometry"


@family(
    DOMAIN,
    space=((a, b) for a, b in product(range(3, 11), range(2, 10)) if a > b),
    kinds=2,
    wordings=(
        "A rectangle is {a} {kind:cm|m} long and {b} {kind:cm|m} wide. "
        "What is its area in square {kind:centimetres|metres}?",
        "A {kind:carpet|mat} measures {a} m by {b} m. How many square metres of floor does it cover?",
        "A rectangular {kind:wall|panel} is {a} tiles long and {b} tiles high. How many tiles cover it?",
    ),
)
def rectangle_area(a: int, b: int) -> Worked:
    """Length times width."""
    return Worked(a * b, f"Length times width: {a} * {b} = {a * b}.")


@family(
    DOMAIN,
    space=((s,) for s in ROUND_COUNTS),
    kinds=5,
    wordings=(
        "What is the area of a square with side {s} {kind:cm|m|mm|dm|km}, "
        "in square {kind:centimetres|metres|millimetres|decimetres|kilometres}?",
        "A square {kind:room|hall|shop|barn|cellar} is {s} m long and {s} m wide. How many square metres is its floor?",
        "A {kind:chess board|wooden board|paper board|plastic board|big board} for a game has {s} rows of {s} fields. "
        "How many fields does the board have?",
    ),
)
def square_area(s: int) -> Worked:
    """Side times side."""
    return Worked(s * s, f"Side times side: {s} * {s} = {s * s}.")


@family(
    DOMAIN,
    space=((k, s) for k, s in product(range(3, 10), (2, 3, 4, 5, 10, 20)) if k != s),
    kinds=2,
    wordings=(
        "A polygon has {k} equal sides of {s} {kind:cm|m} each. What is its perimeter in {kind:centimetres|metres}?",
        "A {kind:pool|stage} has {k} edges, and each edge is {s} m long. How many metres is it around the "
        "{kind:pool|stage}?",
        "{kind:Wire|Cord} is bent into a shape with {k} sides, every side {s} dm. "
        "How many decimetres of {kind:wire|cord} are used?",
    ),
)
def equal_sides(k: int, s: int) -> Worked:
    """Number of sides times side."""
    return Worked(k * s, f"{k} equal sides: {k} * {s} = {k * s}.")


@family(
    DOMAIN,
    space=((a, b) for a, b in product((*range(3, 11), 15, 20, 30, 40), (*range(2, 10), 10, 20)) if a > b),
    wordings=(
        "A rectangle is {a} cm long and {b} cm wide. What is its perimeter in centimetres?",
        "A farmer puts a fence all around a rectangular field of {a} m by {b} m. "
        "How many metres of fence does he need?",
        "An ant walks once around the edge of a rectangular table that is {a} dm long and {b} dm wide. "
        "How many decimetres does it walk?",
    ),
)
def rectangle_perimeter(a: int, b: int) -> Worked:
    """Twice the sum of the sides."""
    return Worked(2 * (a + b), f"Twice the sum of the sides: 2 * ({a} + {b}) = {2 * (a + b)}.")


@family(
    DOMAIN,
    space=((s,) for s in ROUND_COUNTS),
    kinds=5,
    wordings=(
        "What is the perimeter of a square with side {s} {kind:cm|m|mm|dm|km}, "
        "in {kind:centimetres|metres|millimetres|decimetres|kilometres}?",
        "A square {kind:garden|yard|park|meadow|playground} has sides of {s} m. How many metres of fence go around it?",
        "Each of the four edges of a square {kind:picture|mirror|window|table|carpet} is {s} dm long. How long are "
        "the four edges together, in decimetres?",
    ),
)
def square_perimeter(s: int) -> Worked:
    """Four equal sides."""
    return Worked(4 * s, f"Four equal sides: 4 * {s} = {4 * s}.")


@family(
    DOMAIN,
    space=((a, b) for a, b in product(range(20, 111, 10), range(20, 111, 10)) if a + b < 170),
    wordings=(
        "Two angles of a triangle are {a}° and {b}°. How many degrees is the third angle?",
        "Find angle C, in degrees, of a triangle ABC with A = {a}° and B = {b}°.",
        "A triangular sail has corners of {a}° and {b}°. How many degrees does its remaining corner have?",
    ),
)
def third_angle(a: int, b: int) -> Worked:
    """The angles of a triangle add up to 180 degrees."""
    answer = 180 - a - b
    return Worked(
        answer,
        f"The angles of a triangle add up to 180 degrees: 180 - {a} - {b} = {answer}.",
    )


@family(
    DOMAIN,
    space=((n,) for n in (*range(5, 19), 20, 21, 23)),
    kinds=4,
    wordings=(
        "How many diagonals does a convex polygon with {n} {kind:sides|corners|vertices|edges} have?",
        "A {kind:table|frame|board|tray} has {n} corners. Strings are stretched between every two corners that are not "
        "neighbours. How many strings are there?",
        "{n} {kind:people|children|guests|players} sit in a circle. Each two who do not sit side by side shake hands "
        "once. How many handshakes is that?",
    ),
)
def polygon_diagonals(n: int) -> Worked:
    """Pairs of corners that are not neighbours."""
    answer = n * (n - 3) // 2
    return Worked(
        answer,
        f"Each of {n} corners meets {n} - 3 others that are not neighbours: {n} * {n - 3} / 2 = {answer}.",
    )


SLOPES = ((1, 2), (2, 1), (1, 3), (3, 1), (2, 3), (3, 2))


@family(
    DOMAIN,
    space=((x, y, x + g * u, y + g * v) for x, y, g, (u, v) in product(range(6), range(6), (2, 3, 4, 5, 10), SLOPES)),
    wordings=(
        "How many points with two whole-number coordinates lie on the straight segment from ({a}, {b}) to ({c}, {d}), "
        "its two end points counted?",
        "Trees stand at all points of the plane with whole-number coordinates. A straight rope is stretched from the "
        "tree at ({a}, {b}) to the tree at ({c}, {d}). How many trees does it touch, both ends included?",
        "A laser beam runs straight from grid point ({a}, {b}) to grid point ({c}, {d}) of a unit grid. "
        "Counting both ends, how many grid points does it pass?",
    ),
)
def lattice_segment(a: int, b: int, c: int, d: int) -> Worked:
    """A segment has gcd + 1 grid points."""
    across, up = c - a, d - b
    answer = gcd(across, up) + 1
    return Worked(
        answer,
        f"The differences are {across} and {up}; a segment between grid points has gcd + 1 of them on it: "
        f"gcd({across}, {up}) + 1 = {answer - 1} + 1 = {answer}.",
    )


@family(
    DOMAIN,
    space=((i, b) for i, b in product((*range(2, 11), 20, 30), (4, 6, 8, 10, 12, 20, 30)) if i != b),
    wordings=(
        "All corners of a simple polygon are points of a unit grid. {i} grid points lie inside it and {b} lie on its "
        "boundary. What is its area?",
        "A rubber band is stretched around nails on a board with nails one unit apart, in a shape without crossings. "
        "It touches {b} nails and encloses {i} more. How many square units does it enclose?",
        "A field has straight sides and its corners are posts of a square grid of posts, 1 m apart. {b} posts are "
        "on the border and {i} posts strictly inside. How many square metres is the field?",
    ),
)
def grid_polygon_area(i: int, b: int) -> Worked:
    """Pick's theorem."""
    answer = i + b // 2 - 1
    return Worked(
        answer,
        f"Pick: area = inside points + boundary points / 2 - 1 = {i} + {b} / 2 - 1 = {i} + {b // 2} - 1 = {answer}.",
    )


@family(
    DOMAIN,
    space=((a, b) for a, b in product(range(3, 11), range(4, 17)) if a < b),
    wordings=(
        "Two sides of a triangle are {a} and {b}. The third side is a whole number. "
        "How many values can the third side have?",
        "Rods come in every whole number of centimetres. Lea has a rod of {a} cm and one of {b} cm. With how many "
        "different lengths of a third rod can she close a proper triangle?",
        "The distance from Ash to Birch is {a} km and from Ash to Cedar {b} km; the villages are not in one line. "
        "How many whole numbers of kilometres are possible from Birch to Cedar?",
    ),
)
def third_side_count(a: int, b: int) -> Worked:
    """The triangle inequality bounds the third side strictly on both ends."""
    answer = 2 * a - 1
    return Worked(
        answer,
        f"The third side lies strictly between {b} - {a} = {b - a} and {a} + {b} = {a + b}: from {b - a + 1} to "
        f"{a + b - 1}, which is 2 * {a} - 1 = {answer} values.",
    )


@family(
    DOMAIN,
    test_only=True,
    space=((b, h) for b, h in product(range(2, 11), range(2, 11)) if b != h),
    wordings=(
        "A parallelogram has a base of {b} cm and a height of {h} cm. What is its area in square centimetres?",
        "How many square metres does a parallelogram with base {b} m and height {h} m cover?",
        "A slanted field with two pairs of parallel sides has one side of {b} km, and the opposite side is {h} km "
        "away. How many square kilometres is the field?",
    ),
)
def parallelogram_area(b: int, h: int) -> Worked:
    """Base times height."""
    return Worked(b * h, f"Base times height: {b} * {h} = {b * h}.")


@family(
    DOMAIN,
    test_only=True,
    space=((b, h) for b, h in product((*range(2, 13), 20), (*range(2, 11), 20)) if b * h % 2 == 0 and b != h),
    wordings=(
        "A triangle has a base of {b} cm and a height of {h} cm. What is its area in square centimetres?",
        "A triangular flower bed has one side of {b} m, and the opposite corner is {h} m away from that side, "
        "measured at a right angle. How many square metres is the bed?",
        "A rectangle of {b} cm by {h} cm is cut along a diagonal. What is the area of one part in square centimetres?",
    ),
)
def triangle_area(b: int, h: int) -> Worked:
    """Half of base times height."""
    return Worked(b * h // 2, f"Half of base times height: {b} * {h} / 2 = {b * h // 2}.")


@family(
    DOMAIN,
    test_only=True,
    space=((v, e) for v, e in product(range(5, 11), range(8, 21)) if 3 * v <= 2 * e and e <= 3 * v - 6),
    kinds=2,
    wordings=(
        "A convex solid with flat faces has {v} {kind:corners|vertices} and {e} edges. How many faces does it have?",
        "A {kind:gem|crystal} is cut so that it bulges outward everywhere. It has {e} straight edges that meet in {v} "
        "corners. How many flat facets has it?",
        "Paper polygons are glued together, edge to edge, into a closed convex solid. It has {e} edges and {v} "
        "{kind:tips|corners}. How many polygons were used?",
    ),
)
def solid_faces(v: int, e: int) -> Worked:
    """Euler's formula."""
    answer = e - v + 2
    return Worked(
        answer,
        f"Euler: corners - edges + faces = 2, so faces = {e} - {v} + 2 = {answer}.",
    )


FAMILIES = (
    rectangle_area,
    square_area,
    equal_sides,
    rectangle_perimeter,
    square_perimeter,
    third_angle,
    polygon_diagonals,
    lattice_segment,
    grid_polygon_area,
    third_side_count,
    parallelogram_area,
    triangle_area,
    solid_faces,
)
