"""MATH levels 4 and 5 again, from its training half: a tree learned with a blind teacher, and few-shot demonstrations.

    python experiments/math-hard/again.py data/ work/ --server http://127.0.0.1:8000/v1

`data/` holds train.jsonl (400 problems of the training half, `random.Random(23).shuffle`, none of the policy study's),
pool.jsonl (1,200 others in that order) and test.jsonl (the 262 problems of MATH-500 at these levels). `work/letters`
holds the teacher's letters; the learning run waits for those that are missing, and goes on when it is started again.

Nothing is chosen: the tree is what the default profile keeps, with its calibrated gate. `not-retired` reads what the
learner had before it dropped the cards that it could not show to help. The training half has no worked solutions, so
demonstrations are the solver's own right attempts, and its problems have no families, so that there is no right card to
tell.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from commands import Commands, parser_of

FEWSHOT = ("bootstrap-fewshot", "bootstrap-fewshot-skip-es", "bootstrap-fewshot-gated")


def main() -> None:
    """Learn, gather demonstrations, then solve the test once."""
    asked = parser_of(__doc__).parse_args()
    commands = Commands(asked.server, side_by_side=4, seconds=1500)
    data, work, preset = asked.data, asked.work, ("--preset", "math-hard")
    taught = ("--held-out", data / "test.jsonl", "--teacher", f"exchange/{work / 'letters'}")
    pool = ("learn", "--method", "bootstrap-fewshot", "--epochs", 1, "--train", data / "pool.jsonl", *preset)
    test, runs = ("eval", "--data", data / "test.jsonl", "--seeds", 3, *preset), work / "runs"
    commands.all(
        [
            ("learn", "--train", data / "train.jsonl", *taught, *preset, "--out", work / "tree"),
            (*pool, "--out", work / "bootstrap"),
            (*test, "--system", "tiered", "--out", runs / "tiered"),
        ]
    )
    trees = {"kace": work / "tree", "not-retired": work / "tree" / "snapshots" / "epoch-1.jsonl"}
    policies = ("", "-skip-es")
    arms = [(f"{name}{each}", f"kace{each}", "--tree", tree) for name, tree in trees.items() for each in policies]
    arms += [(arm, arm, "--artefact", work / "bootstrap") for arm in FEWSHOT]
    commands.all(
        (*test, "--system", system, *read, "--reuse", runs / "tiered", "--out", runs / arm)
        for arm, system, *read in arms
    )


if __name__ == "__main__":
    main()
