"""Compare the ladder with and without a tree: python examples/compare.py DATA.jsonl TREE [FOLDER]."""

import sys
from pathlib import Path

import kace

data, tree, *rest = sys.argv[1:]
folder = Path(rest[0] if rest else "runs")
alone = kace.evaluate("tiered", data, seeds=3, out=folder / "tiered")
cards = kace.evaluate(
    "kace",
    data,
    tree=tree,
    seeds=3,
    out=folder / "kace",
    reuse=[folder / "tiered"],
)
print(kace.compare(alone, cards).sentence)
