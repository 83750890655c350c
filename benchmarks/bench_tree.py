"""A large tree: how long it takes to open, to read a block of and to change, and what a prompt carries of it.

    python benchmarks/bench_tree.py [--quick] [--plot FILE.svg]

The cards are made up, about 250 tokens each, spread over five domains and three difficulties. Active context is what
one MS solve reads after the cut to the budget, with tokens estimated as characters / 4; beside it stands what the
whole tree would cost in the prompt.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

from kace.cards.card import BODY_CAPS, UNIVERSAL, Card, Difficulty, Provenance
from kace.cards.store import TreeStore
from kace.cards.tree import Domain, Edit, EpistemicTree
from kace.files import write_atomic
from kace.ladder.selector import fit
from kace.ladder.tiers import TierName

SIZES = (132, 1_000, 10_000, 100_000)
BUDGET = 5_000
NAMES = ("algebra", "combinatorics", "geometry", "number_theory", "analysis")
WORDS = (
    *("sum", "square", "root", "prime", "factor", "angle", "circle", "count", "ratio", "remainder"),
    *("polynomial", "integer", "divisor", "triangle", "sequence", "limit", "function", "bound", "parity"),
    *("product", "chord", "tangent", "coefficient", "digit", "subset", "path", "colour", "graph", "mean", "vector"),
)
PROBLEM = "How many integer divisors of the product have an odd remainder when the digit sum is a prime square?"


def made_up(number: int, chance: random.Random) -> Card:
    """One card of about 1,000 characters."""
    difficulty = chance.choices(tuple(Difficulty), (45, 45, 10))[0]
    lines = BODY_CAPS[difficulty]
    triggers = "\n".join(f"- {' '.join(chance.choices(WORDS, k=3))}" for _ in range(3))
    body = "\n".join(f"{step}. {' '.join(chance.choices(WORDS, k=120 // lines))}" for step in range(1, lines + 1))
    domains = (UNIVERSAL,) if chance.random() < 0.05 else tuple(chance.sample(NAMES, k=1 + (chance.random() < 0.1)))
    return Card(
        card_id=f"RUBRIC_{chance.choice(WORDS).upper()}_N{number}",
        payload=f"Useful when:\n{triggers}\n\n{body}",
        routing_conditions=(f"prefer when the {chance.choice(WORDS)} is given",),
        difficulty_tag=difficulty,
        domain_tags=domains,
        helpfulness_score=round(chance.gauss(0, 1), 3),
        provenance=Provenance(source="synthetic", supporting_problems=(f"P{number:06}",)),
    )


def grown(size: int) -> EpistemicTree:
    """A tree of that many cards; smaller ones are parts of larger ones."""
    chance = random.Random(7)
    domains = [Domain(name=name, description=f"Problems of {name.replace('_', ' ')}", share=0.2) for name in NAMES]
    return EpistemicTree.of(domains, (made_up(number, chance) for number in range(size)))


def tokens(card: Card) -> int:
    """An estimate."""
    return len(card.payload) // 4


@dataclass(frozen=True, slots=True)
class Context:
    """What one solve reads."""

    cards: int
    block: int
    shown: int
    active: int
    whole: int


def context(tree: EpistemicTree) -> Context:
    """The block of one domain at MS, cut to the budget."""
    block = tree.project(TierName.MS, ["number_theory"])
    shown = fit(PROBLEM, block, BUDGET, tokens)
    return Context(len(tree), len(block), len(shown), sum(map(tokens, shown)), sum(map(tokens, tree)))


def timed(work: Callable[[], object]) -> float:
    """Milliseconds of one call."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


def spread(times: list[float], digits: int) -> str:
    """Median and 99th percentile, in words."""
    p99 = sorted(times)[int(len(times) * 0.99) - 1]
    return f"p50 {statistics.median(times):.{digits}f} ms, p99 {p99:.{digits}f} ms of {len(times)}"


def figures(tree: EpistemicTree, folder: Path) -> None:
    """Open, project and edit, printed."""
    store = TreeStore.create(folder / "tree", tree.domains, tree)
    megabytes = store.cards_path.stat().st_size / 1e6
    opened = [timed(lambda: TreeStore.open(store.folder).load()) for _ in range(3)]
    print(f"{len(tree):,} cards, {megabytes:.0f} MB on disk")
    print(f"  open                    median {statistics.median(opened) / 1e3:.2f} s of {len(opened)}, aim: under 2 s")

    branches = [(), *((name,) for name in NAMES), *pairwise(NAMES)]
    asked = [(tier, names) for tier in TierName for names in branches]
    fresh = [tree.with_domains(tree.domains) for _ in range(5)]
    first = [timed(partial(t.project, *ask)) for t in fresh for ask in asked]
    again = [timed(partial(tree.project, *ask)) for _ in range(100) for ask in asked]
    for name, times in (("first reading", first), ("again", again)):
        print(f"  project, {name:14} {spread(times, 3)}, aim: p99 under 5 ms")

    store.load()
    chosen = random.Random(3).sample(list(tree), 100)
    changes = [Edit(card.with_payload(f"{card.payload} twice")) for card in chosen]
    edits = [timed(partial(store.apply, change, author="bench")) for change in changes]
    print(f"  one edit                {spread(edits, 1)}, aim: under 50 ms")
    reopened = timed(lambda: TreeStore.open(store.folder).load())
    print(f"  open after 100 edits    {reopened / 1e3:.2f} s")


def table(rows: list[Context]) -> None:
    print(f"active context of one MS solve, budget {BUDGET:,} tokens (estimates)")
    print(f"  {'cards':>8} {'block':>8} {'shown':>6} {'active tokens':>14} {'whole tree':>12}")
    for row in rows:
        print(f"  {row.cards:>8,} {row.block:>8,} {row.shown:>6} {row.active:>14,} {row.whole:>12,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to 10,000 cards")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw active context against tree size")
    options = parser.parse_args()
    trees = [grown(size) for size in (SIZES[:-1] if options.quick else SIZES)]
    with tempfile.TemporaryDirectory() as folder:
        figures(trees[-1], Path(folder))
    rows = [context(tree) for tree in trees]
    table(rows)
    if options.plot:
        write_atomic(options.plot, plot(rows))
        print(f"drawn: {options.plot}")


def plot(rows: list[Context]) -> str:
    """Tokens against cards, both on logarithmic axes, as SVG."""
    left, top, width, height = 100, 40, 480, 260
    powers = range(2, 6), range(3, 9)

    def x(cards: float) -> float:
        return left + width * (math.log10(cards) - 2) / 3

    def y(count: float) -> float:
        return top + height * (8 - math.log10(count)) / 5

    def line(points: list[tuple[float, float]], colour: str) -> str:
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        dots = "".join(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5" fill="{colour}"/>' for a, b in points)
        return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>{dots}'

    grid = [
        *(_rule(x(10**p), top, x(10**p), top + height) for p in powers[0]),
        *(_rule(left, y(10**p), left + width, y(10**p)) for p in powers[1]),
        *(_label(x(10**p), top + height + 18, f"{10**p:,}", "middle") for p in powers[0]),
        *(_label(left - 8, y(10**p) + 4, f"{10**p:,}", "end") for p in powers[1]),
    ]
    marks = [
        line([(x(row.cards), y(row.whole)) for row in rows], "#b5542b"),
        line([(x(row.cards), y(row.active)) for row in rows], "#2b6cb5"),
        _label(x(rows[-1].cards) - 12, y(rows[-1].whole) - 8, "whole tree", "end"),
        _label(x(rows[-1].cards) - 12, y(rows[-1].active) - 8, "active context", "end"),
        _label(left + width / 2, top + height + 40, "cards in the tree", "middle"),
        _label(left - 60, top - 16, "tokens in the prompt (estimated)", "start"),
    ]
    body = "\n".join([*grid, *marks])
    space, font = 'xmlns="http://www.w3.org/2000/svg"', 'font-family="sans-serif" font-size="12"'
    size = f'width="{left + width + 40}" height="{top + height + 60}"'
    paper = '<rect width="100%" height="100%" fill="white"/>'
    return f"<svg {space} {size} {font}>\n{paper}\n{body}\n</svg>\n"


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#ddd"/>'


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#333">{text}</text>'


if __name__ == "__main__":
    main()
