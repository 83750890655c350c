"""Shards: one run per part of the problems, on any scheduler, and merging them.

A problem falls into a shard by the hash of its text. The order, the labels and the rest
of the file do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kace.errors import DataError, UsageError
from kace.files import inside
from kace.models.cache import read_calls
from kace.problems import Problem
from kace.runs.manifest import HELD, Manifest, differences
from kace.runs.run import Run
from kace.runs.table import Table

MAX_SHARDS = 100_000
SHARED = tuple(name for name in HELD if name != "shard")


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `index` of `of`, counted from one."""

    index: int
    of: int

    def __str__(self) -> str:
        return f"{self.index}/{self.of}"

    @classmethod
    def read(cls, text: str) -> Shard:
        """Read a shard as it is typed, such as 3/8."""
        with suppress(ValueError):
            index, of = map(int, text.split("/"))
            if 1 <= index <= of <= MAX_SHARDS:
                return cls(index, of)
        raise UsageError(
            f"--shard cannot be '{text[:40]}'",
            fix="write --shard 3/8 for the third of eight",
        )

    def take(self, problems: Sequence[Problem]) -> tuple[Problem, ...]:
        """Return the problems that fall into the shard."""
        found = []
        for problem in problems:
            if int(problem.id, 16) % self.of == self.index - 1:
                found.append(problem)
        return tuple(found)

    def folder(self, whole: Path) -> Path:
        """Return where its run goes, beside that of all problems."""
        return whole.with_name(f"{whole.name}-{self.index}of{self.of}")


def merge_shards(folders: Sequence[Path], out: Path) -> Table:
    """Merge the runs of shards into one run, which can be resumed like any other.

    Refuses runs that differ in more than the shard. After a kill, the same command
    continues.
    """
    manifests = [Manifest.read(folder / "run.json") for folder in folders]
    whole = manifests[0].part("shard")
    shared = {**manifests[0].content}
    shared.pop("shard", None)
    for folder, manifest in zip(folders, manifests, strict=True):
        part = manifest.part("shard")
        try:
            Shard.read(f"{part['index']}/{part['of']}")
        except (KeyError, UsageError):
            fix = "give runs made with --shard I/N"
            raise DataError(f"{folder} is no shard", fix=fix) from None
        others = differences(shared, manifest.content, SHARED)
        if part["of"] != whole["of"]:
            others.append("number of parts")
        if others:
            raise UsageError(
                f"{folder} is a shard with another {', another '.join(others)}",
                fix="merge shards of one command, the same but for --shard",
            )
    with Run(out, shared) as run:
        for folder in folders:
            table = Table.open(folder)
            for problem in table.problems():
                run.keep_text(problem)
            for call in read_calls(inside(folder, "calls")):
                if call.key not in run.calls:
                    run.calls.put(call)
            for solution in table.solutions(texts=False):
                if run.pending(solution.problem, solution.seed):
                    run.keep(solution)
        return run.table
