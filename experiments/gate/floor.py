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

from kace.learner.calibrate import loosest

HERE = Path(__file__).resolve().parent
MAX_HARM = 0.5  # points of accuracy


def floor(*losses: str) -> float:
    """The loosest threshold by which the problems of all trees together lose little enough, over the kinds named."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((HERE / "calibrations").glob("*.json"))]
    problems, left_out = sum(each["problems"] for each in found), [each for tree in found for each in tree["left_out"]]
    return max(loosest([(each["score"], each[kind]) for each in left_out], problems, MAX_HARM)[0] for kind in losses)


if __name__ == "__main__":
    sys.stdout.write(f"{floor('loss', 'skip_loss'):.3f}\n")
