"""The starter set's registry: its five domains, described from the training split."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kace.tree.tree import Domain


class _Entry(NamedTuple):
    name: str
    description: str
    share: float
    """Of the training problems."""
    signals: tuple[str, ...]


_ENTRIES = (
    _Entry(
        "combinatorics",
        "counting things: choices, pairs, arrangements, equal groups in rows or boxes, guarantees and chances",
        0.18,
        (
            "How many different outfits of one shirt and one skirt are there?",
            "How many legs do 7 goats have in total?",
            "How many ribbons must you take out to be certain of 2 of the same colour?",
            "5 boxes hold 3 pencils each. How many pencils are there altogether?",
            "Everybody shakes hands once with everybody else. How many handshakes are there?",
            "One ball is drawn at random. What is the probability that it is red?",
        ),
    ),
    _Entry(
        "geometry",
        "shapes: triangles, rectangles, polygons, grids, their sides, angles, perimeters and areas",
        0.20,
        (
            "A rectangle is 4 m long and 3 m wide. What is its area?",
            "What is the perimeter of a square with side 3 cm?",
            "Two angles of a triangle are 50° and 60°. How many degrees is the third?",
            "How many diagonals does a convex polygon have?",
            "How many grid points lie on the straight segment from (1, 2) to (5, 6)?",
            "Two sides of a triangle are 3 and 5. Which whole numbers can the third side be?",
        ),
    ),
    _Entry(
        "house_conventions",
        "barges on a canal: locks, quays, tolls, freight, skippers and sacks, in the words of that trade",
        0.16,
        (
            "A barge passes 5 locks of the canal. How many pence of lockage does it pay?",
            "A barge waited 4 hours at the lock. How many pence of slackage are due?",
            "A barge carries 3 brades of barley. How many sacks is that?",
            "How many pence is the freight of a crate of pegged weight?",
            "A barge takes on sacks under gleaning. How many does the skipper get?",
            "A broker hires a barge for a hollow run to a quay. What does it cost in pence?",
        ),
    ),
    _Entry(
        "number_theory",
        "bare numbers: sums, products, digits, remainders, divisors, factorials",
        0.24,
        (
            "What is the remainder when 17 is divided by 5?",
            "What is the sum of the digits of 45?",
            "What is 20 + 50?",
            "How many zeros are at the end of 30!?",
            "What is the greatest common divisor of 12 and 18?",
            "What is 7 times 100?",
        ),
    ),
    _Entry(
        "rates_and_sequences",
        "a quantity for each hour, day, kilometre or piece: speed, time, price, percent, change of unit",
        0.22,
        (
            "A car drives at 60 km/h for 4 hours. How many kilometres does it drive?",
            "One ticket costs 5 euros. How many euros do 6 tickets cost?",
            "A price of 200 euros is raised by 10%. What is the new price?",
            "How many minutes are there in 3 hours?",
            "Ben reads 10 pages every day. How many pages does he read in 4 days?",
            "A bell rings 5 times, 2 seconds apart. How many seconds pass from first to last?",
        ),
    ),
)


def starter_domains() -> tuple[Domain, ...]:
    """The registry a tree of the starter set begins with."""
    from kace.tree.tree import Domain

    return tuple(Domain(**entry._asdict()) for entry in _ENTRIES)
