"""The loosest threshold that any tree may be calibrated to, from the training problems of three published trees.

    python experiments/gate/floor.py

One tree has too few training problems for the bound of conformal risk control: 400 are needed to lose a single problem
under half a point. Together the three have 618. Each was calibrated down to a score of 0.35; a gain by a wrong card is
luck and counts as no loss.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MAX_HARM = 0.5  # points of accuracy


def floor(*losses: str) -> float:
    """The highest score at which the losses summed from above are more than the bound allows, over the kinds named."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((HERE / "calibrations").glob("*.json"))]
    problems = sum(each["problems"] for each in found)
    allowed = MAX_HARM / 100 * (problems + 1) - 1
    left_out = [problem for each in found for problem in each["left_out"]]
    highest = 0.0
    for kind in losses:
        lost = 0.0
        for problem in sorted(left_out, key=lambda each: -each["score"]):
            lost += max(0.0, problem[kind])
            if lost > allowed:
                highest = max(highest, problem["score"])
                break
    return highest


if __name__ == "__main__":
    sys.stdout.write(f"above {floor('loss', 'skip_loss'):.3f}\n")
