"""A recorded model: gives back the replies of an earlier run and never makes a call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kace.errors import DataError, KaceError
from kace.models.base import Reply, Request
from kace.models.cache import CallRecord, read_calls

TEACHER = "TEACHER"
"""The tier under which a teacher's calls are kept beside the solver's."""


class Replay:
    """Answers from records; a request that was never recorded stops the run, since a guess would be a false result."""

    def __init__(self, records: Sequence[CallRecord], source: str) -> None:
        if not records:
            raise DataError(f"{source}: no recorded calls", fix="name the calls folder of a run")
        self.source = source
        self.name = f"replay/{source}"
        self._replies = {record.key: record for record in records}
        self._models = tuple(dict.fromkeys(record.model for record in records))
        self.identity = self._models[0]  # the recorded model's: requests hash to the keys they were recorded under

    @classmethod
    def open(cls, path: Path, *, teacher: bool = False) -> Replay:
        """Read one segment, or every segment of a calls folder (a run directory works too); `.gz` is read as well.

        Only what the teacher said is replayed to a learner's teacher, and only the rest to everyone else.
        """
        folder = path / "calls" if (path / "calls").is_dir() else path
        files = sorted(folder.glob("*.jsonl*")) if folder.is_dir() else [folder]
        records = (record for file in files for record in read_calls(file))
        return cls([record for record in records if (record.tier == TEACHER) is teacher], str(path))

    async def complete(self, request: Request) -> Reply:
        """The recorded reply."""
        for model in self._models:
            if record := self._replies.get(request.digest(model)):
                return record.reply()
        at = request.attempt
        raise KaceError(
            f"{self.source}: no recording of problem {at.problem} {at.tier} attempt {at.index} seed {at.seed}",
            fix="replay with the problems, seed, preset, settings and kace version of the recorded run",
        )

    async def aclose(self) -> None:
        """Nothing is held."""
