"""Beyond the majority, on MATH levels 4 and 5: confident votes, an audited ES, and attempts that compute.

    python experiments/math-hard/policies.py data/ work/ --server http://127.0.0.1:8000/v1

`data/` holds calibration.jsonl and validation.jsonl (300 problems each of MATH's training half, levels 4 and 5),
test.jsonl (the 262 problems of MATH-500 at these levels), gsm8k.jsonl (300 of its test), gsm8k-calibration.jsonl (300
of its training set), starter.jsonl (`kace data starter --split test --n 300 --seed 2`) and starter-calibration.jsonl
(`--split train --n 200 --seed 1`). Rows of public sets are drawn by `random.Random(17).shuffle`, MATH's without those
that the source marks as repeated.

What is chosen is fixed here before a test problem is solved: the programs, the vote and the ES exit with the highest
accuracy on validation, each by itself, majority and no program where it is a tie. The test then has Tiered, each policy
alone, and the three chosen ones together, with three seeds; on MATH also Best-of-10.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from commands import Commands, parser_of

from kace.runs.arm import read_arm

ALONE = {
    "vote": ("vote=confidence",),
    "es-exit": ("es_exit=confident",),
    "programs-ms": ("programs=ms",),
    "programs-ms-hs": ("programs=ms+hs",),
}
CALIBRATION = {name: f"{name}-calibration" for name in ("gsm8k", "starter")}  # others have `calibration`


class Policies:
    """One solver's study in one folder."""

    def __init__(self, data: Path, work: Path, commands: Commands) -> None:
        self.data, self.work, self.commands = data, work, commands

    def arm(self, split: str, name: str, policies: Sequence[str], seeds: int) -> Sequence[object]:
        """The command of one arm. Every arm of the ladder asks for log-probabilities, so that all can share calls."""
        system = "best-of-10" if name == "best-of-10" else "tiered"
        asked_for = policies if name == "best-of-10" else ("logprobs=true", *policies)
        said = [word for each in asked_for for word in ("--set", each)]
        if any("confiden" in each for each in policies):
            calibration = self.work / "runs" / CALIBRATION.get(split, "calibration") / "tiered"
            said += ["--set", f"confidence_from={calibration}"]
        runs, preset = self.work / "runs" / split, "starter" if split.startswith("starter") else "math-hard"
        reuse = () if name in ("tiered", "best-of-10") else ("--reuse", runs / "tiered")
        asked = ("eval", "--data", self.data / f"{split}.jsonl", "--preset", preset, "--seeds", seeds)
        return (*asked, "--system", system, *said, *reuse, "--out", runs / name)

    def accuracy(self, name: str) -> float:
        """On validation."""
        rows = read_arm(self.work / "runs" / "validation" / name).rows
        return sum(bool(row.correct) for row in rows) / len(rows)

    def choose(self) -> tuple[str, ...]:
        """The policies that are used together, from validation alone."""
        self.commands.all(self.arm(split, "tiered", (), 1) for split in ("calibration", "validation"))
        self.commands.all(self.arm("validation", name, policies, 1) for name, policies in ALONE.items())
        base, chosen = self.accuracy("tiered"), []
        for names in (("programs-ms", "programs-ms-hs"), ("vote",), ("es-exit",)):
            best = max(names, key=self.accuracy)
            if self.accuracy(best) > base:
                chosen += ALONE[best]
        found = {"chosen": chosen, "accuracy": {name: self.accuracy(name) for name in ("tiered", *ALONE)}}
        (self.work / "chosen.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(json.dumps(found), flush=True)
        return tuple(chosen)

    def test(self, chosen: Sequence[str]) -> None:
        """The test, GSM8K and the starter set, once."""
        self.commands.all(self.arm(split, "tiered", (), 1) for split in CALIBRATION.values())
        splits, arms = ("test", *CALIBRATION), {**ALONE, "together": tuple(chosen)}
        self.commands.all(self.arm(split, "tiered", (), 3) for split in splits)
        self.commands.all(self.arm(split, name, policies, 3) for split in splits for name, policies in arms.items())
        self.commands.one(self.arm("test", "best-of-10", (), 3))


def main() -> None:
    """Choose, then test."""
    asked = parser_of(__doc__).parse_args()
    study = Policies(asked.data, asked.work, Commands(asked.server, side_by_side=4, seconds=1500))
    study.test(study.choose())


if __name__ == "__main__":
    main()
