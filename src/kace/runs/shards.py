"""Shards: one run per part of the problems, on any scheduler, and the one run they add up to.

A problem falls into a shard by the hash of its text. Order, labels and the rest of the file do not matter.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

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
from kace.ladder.record import TRACES, trace_of
from kace.problems import Problem
from kace.runs.manifest import HELD, differences, manifest_part, read_manifest

MAX_SHARDS = 100_000


@dataclass(frozen=True, order=True, slots=True)
class Shard:
    """Part `index` of `of`, counted from one."""

    index: int
    of: int

    def __str__(self) -> str:
        return f"{self.index}/{self.of}"

    @classmethod
    def read(cls, text: str) -> Shard:
        """A shard as it is typed, such as 3/8."""
        with suppress(ValueError):
            index, of = map(int, text.split("/"))
            shard = cls(index, of)
            if 1 <= shard.index <= shard.of <= MAX_SHARDS:
                return shard
        raise UsageError(
            f"--shard cannot be '{text[:40]}'",
            fix="write --shard 3/8 for the third of eight",
        )

    def holds(self, problem: str) -> bool:
        """Whether the problem of this id falls into it."""
        return int(problem, 16) % self.of == self.index - 1

    def take(self, problems: Sequence[Problem]) -> tuple[Problem, ...]:
        """Those of the problems that fall into it."""
        return tuple(problem for problem in problems if self.holds(problem.id))

    def facts(self, problems: Sequence[Problem]) -> dict[str, object]:
        """What the manifest of its run says of it."""
        among = hashlib.sha256(
            "".join(sorted(problem.id for problem in problems)).encode()
        ).hexdigest()
        return {
            "shard": {
                **asdict(self),
                "problems": len(self.take(problems)),
                "among": among,
            }
        }

    def folder(self, whole: Path) -> Path:
        """Where its run goes, beside that of all problems."""
        return whole.with_name(f"{whole.name}-{self.index}of{self.of}")


class MergedRun(NamedTuple):
    """What became of shards: problems and solves in the merged run, and what is missing in sentences."""

    folder: Path
    problems: int
    solves: int
    gaps: tuple[str, ...]


class _Head(BaseModel):
    """As much of a solve as merging needs."""

    problem: str
    seed: int


class _Part(NamedTuple):
    shard: Shard
    problems: int  # that fall into it
    among: str  # the hash of all problems, those of the other shards too
    folder: Path


def merge_shards(folders: Sequence[Path], out: Path) -> MergedRun:
    """Join the runs of shards into one that reads, and goes on, like any run.

    Refused are runs that differ in more than the shard, a shard given twice, and a solve that belongs to another one.
    A kill leaves no run: the trace comes last. One shard's solves are held at a time, by name.
    """
    manifest, parts = _agreed(folders)
    lock = lock_folder(out)
    try:
        if any((out / name).exists() for name in TRACES):
            raise UsageError(
                f"{out} holds a run already", fix="name a new folder for the merged run"
            )
        solved: dict[Shard, Counter[int]] = {}
        problems = 0
        with (
            (out / "traces.part").open("wb") as traces,
            (out / "problems.part").open("wb") as texts,
        ):
            for part in parts:
                found: set[tuple[int, int]] = set()
                for line in _lines(trace_of(part.folder), part.shard, found):
                    traces.write(line + b"\n")
                solved[part.shard] = Counter(seed for _, seed in found)
                problems += len({problem for problem, _ in found})
                kept = part.folder / "problems.jsonl"
                for _, _, line in whole_lines(kept) if kept.exists() else ():
                    texts.write(line + b"\n")
                _copy_calls(inside(part.folder, "calls"), inside(out, "calls"))
            for file in (traces, texts):
                file.flush()
                sync(file.fileno())
        (out / "problems.part").replace(out / "problems.jsonl")
        write_atomic(
            out / "run.json", json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
        )
        (out / "traces.part").replace(out / "traces.jsonl")
    except OSError as error:
        raise cannot_write(out, error) from None
    finally:
        os.close(lock)
    return MergedRun(
        out,
        problems,
        sum(each.total() for each in solved.values()),
        tuple(_gaps(parts, solved)),
    )


def _agreed(folders: Sequence[Path]) -> tuple[dict[str, object], list[_Part]]:
    """The manifest that shards share, and the shards in their order."""
    parts: dict[Shard, _Part] = {}
    shared: dict[str, object] = {}
    for folder in folders:
        manifest = dict(read_manifest(folder / "run.json"))
        named = manifest_part(manifest, "shard")
        manifest.pop("shard", None)
        try:
            shard = Shard.read(f"{named['index']}/{named['of']}")
            problems = int(str(named["problems"]))
            part = _Part(shard, problems, str(named["among"]), folder)
        except (KeyError, ValueError):
            raise DataError(
                f"{folder} is no shard", fix="give runs made with --shard I/N"
            ) from None
        shared = shared or manifest
        if told := differences(shared, manifest, HELD):
            what = f"{folder} is a shard with another {', another '.join(told)}"
            raise UsageError(
                what, fix="merge shards of one command, the same but for --shard"
            )
        first = next(iter(parts.values()), part)
        if (first.shard.of, first.among) != (shard.of, part.among):
            differ = f"{shard}, {first.folder} shard {first.shard}"
            other = "of other problems" if shard.of == first.shard.of else differ
            raise UsageError(
                f"{folder} is a shard {other}",
                fix="merge shards of one division of one file",
            )
        if same := parts.get(shard):
            raise UsageError(
                f"{folder} and {same.folder} are both shard {shard}",
                fix="name each shard once",
            )
        parts[shard] = part
    return shared, [parts[shard] for shard in sorted(parts)]


def _lines(path: Path, shard: Shard, found: set[tuple[int, int]]) -> Iterator[bytes]:
    """Every line of a shard's trace, as it is; what it solves is added to `found`. A damaged line stays one."""
    for number, _, line in whole_lines(path):
        with suppress(ValidationError, ValueError):
            head = _Head.model_validate_json(line)
            if not shard.holds(head.problem):
                what = f"{path}:{number}: problem {head.problem[:16]} does not belong to shard {shard}"
                raise DataError(
                    what, fix="was another run copied into it? solve the shard anew"
                )
            found.add((int(head.problem, 16), head.seed))
        yield line


def _copy_calls(source: Path, target: Path) -> None:
    """Copy the segments of finished calls; the name of each is its own."""
    for segment in sorted(source.glob("*.jsonl")):
        target.mkdir(exist_ok=True)
        with open_plain(segment) as old, (target / segment.name).open("wb") as new:
            shutil.copyfileobj(old, new)


def _gaps(parts: Sequence[_Part], solved: dict[Shard, Counter[int]]) -> Iterator[str]:
    """What is missing: shards, and the solves that a shard lacks on a seed that some shard has."""
    seeds = sorted({seed for each in solved.values() for seed in each})
    of = parts[0].shard.of
    here = {part.shard.index for part in parts}
    if missing := [f"{index}/{of}" for index in range(1, of + 1) if index not in here]:
        more = f" and {len(missing) - 12:,} more" if len(missing) > 12 else ""
        yield f"shards missing: {', '.join(missing[:12])}{more}"
    for part in parts:
        for seed in seeds or [0]:
            if (lacking := part.problems - solved[part.shard][seed]) > 0:
                yield f"shard {part.shard}: {lacking:,} of {part.problems:,} problems not solved on seed {seed}"
