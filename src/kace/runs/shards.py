"""Shards: one run per part of the problems, on any scheduler, and merging them.

A problem falls into a shard by the hash of its text. The order, the labels and the rest
of the file do not matter.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from kace.errors import DataError, UsageError
from kace.files import (
    cannot_write,
    inside,
    lock_folder,
    open_plain,
    sync,
    whole_lines,
    write_atomic,
)
from kace.problems import Problem
from kace.runs.manifest import HELD, Manifest, differences
from kace.runs.table import PROBLEMS, TRACE, Table

MAX_SHARDS = 100_000


@dataclass(
    frozen=True,
    order=True,
    slots=True,
)
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

    def holds(self, problem: str) -> bool:
        """Whether the problem of this id falls into the shard."""
        return int(problem, 16) % self.of == self.index - 1

    def take(self, problems: Sequence[Problem]) -> tuple[Problem, ...]:
        """Return the problems that fall into the shard."""
        return tuple(problem for problem in problems if self.holds(problem.id))

    def facts(self, problems: Sequence[Problem]) -> dict[str, object]:
        """Return what the manifest of its run records."""
        ids = "".join(sorted(problem.id for problem in problems))
        among = hashlib.sha256(ids.encode()).hexdigest()
        count = len(self.take(problems))
        return {"shard": {**asdict(self), "problems": count, "among": among}}

    def folder(self, whole: Path) -> Path:
        """Return where its run goes, beside that of all problems."""
        return whole.with_name(f"{whole.name}-{self.index}of{self.of}")


class MergedRun(NamedTuple):
    """The merged run, and what it lacks in sentences."""

    folder: Path
    problems: int
    solves: int
    gaps: tuple[str, ...]


class _Part(NamedTuple):
    shard: Shard
    problems: int  # that fall into it
    among: str  # the hash of all problems, those of the other shards too
    table: Table
    folder: Path


def merge_shards(folders: Sequence[Path], out: Path) -> MergedRun:
    """Merge the runs of shards into one run, which can be resumed like any other.

    Refuses runs that differ in more than the shard, a shard given twice, and solves that
    belong to another shard. The trace is put in place last, so a kill leaves no run.
    """
    manifest, parts = _check_parts(folders)
    lock = lock_folder(out)
    try:
        if (out / TRACE).exists():
            raise UsageError(
                f"{out} holds a run already",
                fix="name a new folder for the merged run",
            )
        _copy_lines(parts, TRACE, out / "traces.part")
        _copy_lines(parts, PROBLEMS, out / "problems.part")
        for part in parts:
            _copy_calls(inside(part.folder, "calls"), inside(out, "calls"))
        (out / "problems.part").replace(out / PROBLEMS)
        text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
        write_atomic(out / "run.json", text)
        (out / "traces.part").replace(out / TRACE)
    except OSError as error:
        raise cannot_write(out, error) from None
    finally:
        os.close(lock)
    counts = [part.table.counts() for part in parts]
    problems = sum(each.problems for each in counts)
    solves = sum(each.solves for each in counts)
    return MergedRun(out, problems, solves, tuple(_gaps(parts)))


def _check_parts(
    folders: Sequence[Path],
) -> tuple[Mapping[str, object], list[_Part]]:
    """Return the manifest that shards share, and the shards in their order."""
    parts: dict[Shard, _Part] = {}
    shared: Mapping[str, object] = {}
    for folder in folders:
        manifest = Manifest.read(folder / "run.json")
        part = _read_part(folder, manifest)
        rest = dict(manifest.content)
        del rest["shard"]
        shared = shared or rest
        others = differences(shared, rest, HELD)
        if others:
            raise UsageError(
                f"{folder} is a shard with another {', another '.join(others)}",
                fix="merge shards of one command, the same but for --shard",
            )
        first = next(iter(parts.values()), part)
        shard = part.shard
        if (first.shard.of, first.among) != (shard.of, part.among):
            what = f"{folder} is a shard {shard} of other problems than"
            raise UsageError(
                f"{what} {first.folder}, shard {first.shard}",
                fix="merge shards of one division of one file",
            )
        if shard in parts:
            raise UsageError(
                f"{folder} and {parts[shard].folder} are both shard {shard}",
                fix="name each shard once",
            )
        parts[shard] = part
    for part in parts.values():
        _check_solves(part)
    return shared, [parts[shard] for shard in sorted(parts)]


def _read_part(folder: Path, manifest: Manifest) -> _Part:
    named = manifest.part("shard")
    try:
        shard = Shard.read(f"{named['index']}/{named['of']}")
        problems = int(str(named["problems"]))
        among = str(named["among"])
    except (KeyError, ValueError):
        fix = "give runs made with --shard I/N"
        raise DataError(f"{folder} is no shard", fix=fix) from None
    return _Part(shard, problems, among, Table.open(folder), folder)


def _check_solves(part: _Part) -> None:
    """Refuse a shard with a solve of a problem that belongs to another."""
    for (problem,) in part.table.select("SELECT DISTINCT problem FROM solves"):
        with suppress(ValueError):
            if part.shard.holds(problem):
                continue
        shard = f"shard {part.shard}"
        raise DataError(
            f"{part.folder}: problem {problem[:16]} does not belong to {shard}",
            fix="was another run copied into it? solve the shard anew",
        )


def _copy_lines(
    parts: Sequence[_Part],
    name: str,
    target: Path,
) -> None:
    """Write the complete lines of a file of every part, damaged ones as they are."""
    target.unlink(missing_ok=True)  # a link would lead elsewhere
    with target.open("xb") as file:
        for part in parts:
            source = part.folder / name
            if source.exists():
                for _, _, line in whole_lines(source):
                    file.write(line + b"\n")
        file.flush()
        sync(file.fileno())


def _copy_calls(source: Path, target: Path) -> None:
    """Copy the segments of finished calls, whose names are unique."""
    for segment in sorted(source.glob("*.jsonl")):
        target.mkdir(exist_ok=True)
        copied = target / segment.name
        copied.unlink(missing_ok=True)  # a link would lead elsewhere
        with (
            open_plain(segment) as old,
            copied.open("xb") as new,
        ):
            shutil.copyfileobj(old, new)


def _gaps(parts: Sequence[_Part]) -> Iterator[str]:
    """Yield what is missing: shards, and solves on seeds that some shard has."""
    of = parts[0].shard.of
    here = {part.shard for part in parts}
    every = [Shard(index, of) for index in range(1, of + 1)]
    missing = [str(shard) for shard in every if shard not in here]
    if missing:
        yield f"shards missing: {', '.join(missing)}"
    seeds: set[int] = set()
    for part in parts:
        seeds.update(part.table.counts().seeds)
    for part in parts:
        wanted = part.problems * max(1, len(seeds))
        lacking = wanted - part.table.counts().solves
        if lacking > 0:
            yield f"shard {part.shard}: {lacking:,} of {wanted:,} solves missing"
