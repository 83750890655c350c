"""A run: a directory that holds what was asked, what was answered, and enough to go on after a kill.

RUN/run.json       what produced it: versions, configuration, prompt hashes, problems
RUN/traces.jsonl   one line per problem and seed, appended as they finish
RUN/calls/         every finished call, so that the same command pays for nothing twice
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import platform
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from kace.config import PAPER, Config
from kace.errors import KaceError, UsageError
from kace.io import LineLog, lock_folder, write_atomic
from kace.models.cache import CallStore
from kace.problem import Problem
from kace.redact import public_url
from kace.retrieval.prompt import template_hashes
from kace.solver.ladder import Kit, climb
from kace.solver.solution import Solution
from kace.solver.trace import Damage, SolveRecord, read_trace

if TYPE_CHECKING:
    from kace.tree.tree import EpistemicTree

RUN_VERSION = 1


class Place(NamedTuple):
    """Where a record lies in the trace, so that a run of any size is held as offsets only."""

    offset: int
    length: int
    failed: bool


class Run:
    """An open run directory. Opening it takes its lock; the same settings go on where it stopped."""

    def __init__(
        self,
        folder: Path,
        manifest: dict[str, object],
        *,
        calls: CallStore | None = None,
        reuse: Sequence[Path] = (),
        held: tuple[str, ...] = ("v", "config", "prompts", "tree"),
    ) -> None:
        """With a call store given, which stays the caller's to close, several runs pay once for what they share.

        What runs in `reuse` asked and heard is not asked again either, and their folders stay as they are.

        `held` are the parts of the manifest that must be the same whenever the run is opened.
        """
        self.folder = folder
        self._lock = lock_folder(folder)
        try:
            hold_to(folder / "run.json", manifest, held)
            self._traces = LineLog(folder / "traces.jsonl")
        except BaseException:
            os.close(self._lock)
            raise
        self.damage: list[Damage] = []
        self._done: dict[tuple[str, int], Place] = {}
        self._index()
        self._shared = calls is not None
        self.calls = CallStore(folder / "calls", [each / "calls" for each in reuse]) if calls is None else calls

    def __len__(self) -> int:
        return len(self._done)

    def finished(self, problem: Problem, seed: int) -> SolveRecord | None:
        """The record of a problem already solved here, unless its provider failed and it is worth another try."""
        place = self._done.get((problem.id, seed))
        return None if place is None or place.failed else self._read(place)

    def records(self) -> Iterator[SolveRecord]:
        """The last word on every problem and seed."""
        return map(self._read, self._done.values())

    def keep(self, solution: Solution) -> SolveRecord:
        """Append a solution."""
        record = SolveRecord.of(solution)
        line = record.model_dump_json()
        offset = self._traces.append(line)
        self._done[record.problem, record.seed] = Place(offset, len(line.encode()), record.failed)
        return record

    def close(self) -> None:
        """Make everything durable and release the lock."""
        self._traces.close()
        if not self._shared:
            self.calls.close()
        os.close(self._lock)

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _index(self) -> None:
        for offset, length, item in read_trace(self._traces.path):
            if isinstance(item, Damage):
                self.damage.append(item)
            else:
                self._done[item.problem, item.seed] = Place(offset, length, item.failed)

    def _read(self, place: Place) -> SolveRecord:
        return SolveRecord.model_validate_json(self._traces.read(place.offset, place.length))


def hold_to(path: Path, manifest: dict[str, object], names: tuple[str, ...]) -> None:
    """Write a manifest where there is none; refuse one that differs in what the named parts hold."""
    if not path.exists():
        write_atomic(path, json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
        return
    before = json.loads(path.read_text(encoding="utf-8"))
    differences = []
    for name in names:
        was, now = before.get(name), manifest[name]
        if name == "config" and isinstance(was, dict) and isinstance(now, dict):
            # A setting that came after the run was made stood at its default; one that no longer counts is let go.
            was = {key: was.get(key, _unsaid(key)) for key in {*now, *was} - PACE}
        if was != now:
            differences.append(_difference(name, was, now))
    if differences:
        raise UsageError(
            f"{path.parent} holds a run with another {', another '.join(differences)}",
            fix="choose another --out, or repeat the settings of that run",
        )


PACE = frozenset({"timeout", "max_connections"})
"""How fast a run goes, not what it finds."""


def _unsaid(name: str) -> object:
    """What a setting stood at in a manifest that was written before there was such a setting."""
    if name in PAPER:
        return PAPER[name]
    field = Config.model_fields.get(name)
    return None if field is None else field.get_default()


def manifest_of(config: Config, tree: EpistemicTree | None = None) -> dict[str, object]:
    """What a run depends on, free of secrets. A tree counts by its content, wherever it lies."""
    url = {"base_url": public_url(config.base_url)} if config.base_url else {}
    return {
        "v": RUN_VERSION,
        "kace": version("kace"),
        "python": platform.python_version(),
        "config": {
            **config.model_dump(
                mode="json", exclude_none=True, exclude={"max_calls", "max_usd", "prices", "tree", *PACE}
            ),
            **url,
            **(_teacher(config) if config.synthesis else {}),
            "sampling": {
                tier.value: {"temperature": draw.temperature, "max_tokens": draw.max_tokens}
                for tier, draw in config.tier_sampling().items()
            },
        },
        "tree": {"hash": tree.content_hash(), "cards": len(tree)} if tree else None,
        "sources": dict(config.sources),
        "prompts": template_hashes(),
    }


def default_folder(name: str, manifest: dict[str, object], source: bytes) -> Path:
    """Where a run goes when nobody says: a name that the same command finds again."""
    settings = json.dumps([manifest["config"], manifest["prompts"], manifest["tree"]], sort_keys=True).encode()
    return Path("runs") / f"{name}-{hashlib.sha256(settings + source).hexdigest()[:10]}"


Solve = Callable[[Problem, Kit], Awaitable[Solution]]


async def solve_all(
    problems: Iterable[Problem], kit: Kit, window: int, keep: Callable[[Solution], None], solve: Solve = climb
) -> None:
    """Solve a stream of problems, at most `window` at a time, keeping each as it finishes.

    What the operator must mend stops new problems; those under way finish, so nothing paid for is lost.
    """
    stream = iter(problems)
    stopped: list[KaceError] = []

    async def worker() -> None:
        while not stopped and (problem := next(stream, None)) is not None:
            try:
                keep(await solve(problem, kit))
            except KaceError as error:
                stopped.append(error)

    async with asyncio.TaskGroup() as workers:
        for _ in range(window):
            workers.create_task(worker())
    if stopped:
        raise stopped[0]


def _teacher(config: Config) -> dict[str, object]:
    """The teacher's settings, which a solve depends on only where the teacher takes part in it."""
    url = {"teacher_base_url": public_url(config.teacher_base_url)} if config.teacher_base_url else {}
    return {"teacher": config.teacher, **url, "teacher_max_tokens": config.teacher_max_tokens}


def _difference(name: str, before: object, now: object) -> str:
    if isinstance(before, dict) and isinstance(now, dict):
        other = [key for key in sorted({*before, *now}) if before.get(key) != now.get(key)]
        named = other if name in ("config", "settings") else other[:1]  # the rest is hashes, and lists of them
        told = (f"'{key}' ({before.get(key)!r}, now {now.get(key)!r})" for key in named)
        return f"{name.rstrip('s')} {', '.join(told)}"
    return name
