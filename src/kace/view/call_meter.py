"""What a learner has used so far, summed from its calls as they come: its bill is written only when it stops."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from kace.learner.findings import Cost
from kace.models.budget import free_price
from kace.models.replay import TEACHER
from kace.retrieval.router import FIRST, REFINED
from kace.solver.synthesis import TEACHER_TIER

ROLES = {TEACHER: "teacher", TEACHER_TIER: "synthesis", FIRST: "classifier", REFINED: "classifier"}
"""Who made the calls of a tier; those of any other are the solver's."""
SUMS = ("input", "cached", "written", "output")


class CallMeter:
    """Reads a folder of calls, each line once. For one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, int] = {}
        self._sums: dict[str, Counter[str]] = {}

    def costs(self, models: dict[str, str]) -> tuple[Cost, ...]:
        """What each role used up to now. Prices are no part of the record: only what is free is known to be."""
        for path in sorted(self._folder.glob("*.jsonl")):
            self._follow(path)
        return tuple(
            Cost(
                role=role,
                calls=used["calls"],
                failed=None,
                input=used["input"],
                cached=used["cached"],
                written=used["written"],
                output=used["output"],
                usd=0.0 if free_price(models.get(role, "")) else None,
            )
            for role, used in sorted(self._sums.items())
        )

    def _follow(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                file.seek(self._read.get(path.name, 0))
                for line in file:
                    if not line.endswith(b"\n"):
                        break  # it is being written
                    self._read[path.name] = self._read.get(path.name, 0) + len(line)
                    self._add(line)
        except OSError:
            return

    def _add(self, line: bytes) -> None:
        try:
            call = json.loads(line)
            tier = str(call["tier"])
            used = {name: int(call.get(name, 0)) for name in SUMS}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return  # a damaged line costs itself only
        self._sums.setdefault(ROLES.get(tier, "solver"), Counter()).update(calls=1, **used)
