"""Read scores that other tools wrote: CSV files, and logs of inspect_ai.

Each becomes a table of the run's read model, so that `kace report` pairs and clusters it
like any run. Nothing in such a file is evaluated, and no path in it is opened.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kace.errors import DataError, UsageError, one_line
from kace.models.base import Usage, total
from kace.problems import MAX_LABEL, read_rows
from kace.runs.table import LIMIT, SolveRow, Table

LOGS = (".eval", ".json")
COLUMNS = {"problem", "system", "score"}
WORDS = {"C": "1", "TRUE": "1", "P": "0.5", "I": "0", "N": "0", "FALSE": "0"}
"""What scores may be besides numbers: the letters of inspect_ai, and truth values."""
ANSWERED = {"messages", "events", "store", "attachments"}
"""Parts of a log's samples that are not read."""


@dataclass(frozen=True, slots=True)
class ScoreReader:
    """Reads the scores of other tools."""

    cluster: str | None = (
        None  # the column, or metadata, that becomes the family
    )
    scorer: str | None = None  # which of a log's scorers counts
    right_from: float | None = None  # scores from here on are right

    def open(self, paths: Sequence[Path]) -> tuple[Table, ...]:
        """Open runs, CSV files and logs of inspect_ai.

        Each is named after its system, or by its path where two share a name.
        """
        found: list[tuple[Table, str]] = []
        for path in paths:
            if path.is_dir() or not path.exists():
                found.append((Table.open(path), str(path)))
                continue
            is_log = path.suffix in LOGS
            read = [self.read_log(path)] if is_log else self.read_file(path)
            found += [(table, f"{path} {table.name}") for table in read]
        times = Counter(table.name for table, _ in found)
        tables = {}
        for table, place in found:
            name = table.name if times[table.name] == 1 else place
            tables[name] = table.named(name)
        if len(tables) < len(found):
            raise DataError("a run is given twice", fix="name every run once")
        return tuple(tables.values())

    def read_file(self, path: Path) -> list[Table]:
        """Read a file with a problem, a system and a score per row, and maybe a seed."""
        systems: dict[str, list[SolveRow]] = {}
        for number, row in read_rows(path):
            where = f"{path}:{number}"
            missing = ", ".join(COLUMNS - row.keys())
            if missing:
                raise DataError(
                    f"{where}: no column {missing} (columns: {', '.join(row)[:200]})",
                    fix="name the columns problem, system, score, seed, cluster",
                )
            texts = {name: str(value or "") for name, value in row.items()}
            seed = texts.get("seed") or "0"
            if not seed.isdecimal() or int(seed) >= LIMIT:
                raise DataError(
                    f"{where}: the seed '{seed[:40]}' is no whole number",
                    fix="number the repetitions from 0",
                )
            solve = _row(
                texts["problem"],
                int(seed),
                texts.get(self.cluster or "cluster"),
                self.is_right(row["score"], where),
            )
            systems.setdefault(one_line(texts["system"], 80), []).append(solve)
        tables = []
        for name, solves in systems.items():
            manifest = {"data": {"name": path.name}}
            table = Table.of(solves, name=name, manifest=manifest)
            if table.retried:
                raise DataError(
                    f"{path}: two scores of one problem, system '{name}' and seed",
                    fix="number repetitions in a column 'seed'",
                )
            tables.append(table)
        return tables

    def read_log(self, path: Path) -> Table:
        """Read a log of inspect_ai by its own reader. A sample is a problem, an epoch a seed.

        A sample that ended with an error and has no score counts as wrong.
        """
        try:
            from inspect_ai.log import read_eval_log
        except ImportError:
            fix = "pip install inspect_ai"
            raise UsageError(
                f"{path}: reading it needs inspect_ai", fix=fix
            ) from None
        try:
            log = read_eval_log(str(path), exclude_fields=ANSWERED)
        except Exception as error:
            raise DataError(
                f"{path}: no log of inspect_ai ({one_line(str(error), 80)})",
                fix="name a file that inspect wrote into its log folder",
            ) from None
        rows = [self._row(sample, str(path)) for sample in log.samples or ()]
        steps = [step.solver for step in log.plan.steps]
        name = one_line(f"{' + '.join(steps)} {log.eval.model}", 80)
        manifest = {
            "config": {"model": log.eval.model},
            "data": {"name": log.eval.task},
        }
        return Table.of(rows, name=name, manifest=manifest)

    def _row(self, sample: Any, path: str) -> SolveRow:
        """Return the row of a sample of inspect_ai."""
        where = f"{path}: sample {one_line(str(sample.id), MAX_LABEL)}"
        scores = sample.scores or {}
        correct = False if sample.error else None
        chosen = self.scorer or "".join(scores)
        if chosen in scores:
            correct = self.is_right(scores[chosen].value, where)
        elif scores:
            raise UsageError(
                f"{where} has the scores {', '.join(scores)}",
                fix="name one of them: --scorer NAME",
            )
        family = (sample.metadata or {}).get(self.cluster or "family")
        used = []
        for usage in (sample.model_usage or {}).values():
            used.append(Usage(usage.input_tokens, 0, usage.output_tokens))
        row = _row(str(sample.id), sample.epoch - 1, family, correct)
        failed = sample.error is not None
        return replace(row, failed=failed, usage=total(used))

    def is_right(self, value: object, where: str) -> bool | None:
        """Whether a score is right; `None` for none. Raise for one in between."""
        text = "" if value is None else str(value).strip()
        try:
            number = float(WORDS.get(text.upper(), text or math.nan))
        except ValueError:
            number = math.inf
        if math.isnan(number):
            return None
        if self.right_from is not None and number < math.inf:
            return number >= self.right_from
        if number not in (0.0, 1.0):
            raise DataError(
                f"{where}: the score '{text[:40]}' is neither right (1, C) nor wrong (0, I)",
                fix="--right-from 0.5 counts numbers from 0.5 on as right",
            )
        return number == 1.0


def _row(
    problem: str, seed: int, family: object, correct: bool | None
) -> SolveRow:
    """Return the row of a score; a problem is known by its name alone."""
    return SolveRow(
        problem=hashlib.sha256(problem.encode()).hexdigest()[:16],
        label=one_line(problem, MAX_LABEL),
        family=str(family) if family else None,
        domain=None,
        seed=seed,
        correct=correct,
    )
