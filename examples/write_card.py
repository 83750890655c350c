"""Write a card and solve a problem with it: python examples/write_card.py [TREE]."""

import sys
from pathlib import Path

import kace

CARD = Path(__file__).parents[1] / "docs" / "examples" / "average-speed.md"
PROBLEM = (
    "A van drives to a market at 20 km/h and back at 60 km/h. "
    "What is its average speed for the round trip, in km/h?"
)

tree = kace.Tree.create(sys.argv[1] if len(sys.argv) > 1 else "my-tree")
tree.add(CARD.read_text(encoding="utf-8"))
print("without cards", kace.solve(PROBLEM).answer)
print("with the card", kace.solve(PROBLEM, tree=tree).answer)
