"""What a server solves, kept as a run: `kace view` and `kace report` read it, and its problems can be learned from."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kace.cards.tree import EpistemicTree
from kace.config import Config
from kace.errors import KaceError, redact, without_secrets
from kace.files import inside
from kace.ladder.record import Solution
from kace.models.cache import CallRecord, CallStore
from kace.problems import Problem
from kace.runs.manifest import manifest_of
from kace.runs.run import Run

log = logging.getLogger(__name__)


class Record:
    """An open run that grows by what is asked. A disk that fails costs the record, never an answer."""

    def __init__(
        self, folder: Path, config: Config, tree: EpistemicTree | None
    ) -> None:
        self._failed = False
        self.calls = _Calls(inside(folder, "calls"), self)
        manifest = {**manifest_of(config, tree), "data": {"name": "served"}}
        self._run = Run(folder, manifest, calls=self.calls, texts=config.problem_texts)

    def asked(self, problem: Problem) -> Problem:
        """Keep the text of a problem that is about to be solved: once, and as it is returned, without keys of ours."""
        problem = Problem(without_secrets(problem.text))
        with self.writing():
            self._run.keep_text(problem)
        return problem

    def solved(self, solution: Solution) -> None:
        """Keep a solve. The first of a problem and seed counts, and one that its provider failed is replaced."""
        with self.writing():
            if self._run.pending(solution.problem, solution.seed):
                self._run.keep(solution)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Go on where the disk fails, and say so once."""
        try:
            yield
        except (KaceError, OSError) as error:
            if not self._failed:
                self._failed = True
                log.warning(
                    "%s; the server goes on, and records what it can",
                    redact(str(error)),
                )

    def __enter__(self) -> Record:
        return self

    def __exit__(self, *_: object) -> None:
        for part in (self.calls, self._run):
            with self.writing():
                part.close()


class _Calls(CallStore):
    """The calls of a record."""

    def __init__(self, folder: Path, record: Record) -> None:
        super().__init__(folder)
        self._record = record

    def record(self, key: str) -> CallRecord | None:
        """The call kept under a key, if it can be read."""
        with self._record.writing():
            return super().record(key)
        return None

    def put_line(self, key: str, line: str) -> None:
        """Keep a call, if it can be written."""
        with self._record.writing():
            super().put_line(key, line)
