"""Give the published technique tree an index and thresholds of the present version: tree b."""

import json
from pathlib import Path
from kace.cards.store import INDEX_FILE, TreeStore, open_tree
from kace.config import RetrievalConfig
from kace.ladder.record import Solution
from kace.ladder.tiers import ExitPath
from kace.learning.calibrate import calibrate, keep_calibration, write_index
from kace.learning.study import Settings
from kace.problems import Problem

here = Path(__file__).parent
out = here.parent / "tree-b"
old = open_tree(here / "tree")
TreeStore.create(
    out,
    old.domains,
    list(old),
    author="study",
    note="the published technique tree",
)
TreeStore.open(out).freeze(author="study")
tree = open_tree(out)
rows = [json.loads(line) for line in (here / "train.jsonl").open()]
train = [Problem(r["problem"], r["answer"], r["id"]) for r in rows]
records = [json.loads(line) for line in (here / "alone.jsonl").open()]
alone = [
    Solution.model_construct(
        problem=r["problem"], exit=ExitPath(r["exit"]), correct=r["correct"]
    )
    for r in records
]
assert {p.id for p in train} == {r["problem"] for r in records}
write_index(tree, train, out / INDEX_FILE)
found = calibrate(tree, train, alone, 0.5)
print(found)
keep_calibration(
    out, found, RetrievalConfig(), Settings().model_dump(mode="json")
)
