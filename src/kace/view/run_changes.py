"""What a run gained and lost against another, solve by solve."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import NamedTuple

from kace.view.run_index import Key, RunIndex

KEPT = 8
"""Comparisons that are kept: every page of the same table asks for the same one."""


class Changes(NamedTuple):
    """Solves that are right in one run and wrong in the other."""

    gained: frozenset[Key]
    lost: frozenset[Key]


_kept: OrderedDict[Hashable, Changes] = OrderedDict()
_guard = threading.Lock()
"""Over `_kept`."""


def changes_of(run: RunIndex, base: RunIndex) -> Changes:
    """What `run` gained and lost against `base`, of the solves that both have read."""
    version = (run.version, base.version)
    with _guard:
        found = _kept.get(version)
    if found is None:
        there = {(row.problem, row.seed): row.correct for row in base.rows}
        pairs = [(key, row.correct, there.get(key)) for row in run.rows if (key := (row.problem, row.seed))]
        found = Changes(
            frozenset(key for key, right, was in pairs if right is True and was is False),
            frozenset(key for key, right, was in pairs if right is False and was is True),
        )
        with _guard:
            _kept[version] = found
            while len(_kept) > KEPT:
                _kept.popitem(last=False)
    return found
