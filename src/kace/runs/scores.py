"""Read scores that other tools wrote: CSV files, and logs of inspect_ai.

Each becomes a table of the run's read model, so that `kace report` pairs and clusters it
like any run. Nothing in such a file is evaluated, and no path in it is opened.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kace.errors import DataError, UsageError, one_line
from kace.problems import MAX_LABEL, read_rows
from kace.runs.table import LIMIT, SolveRow, Table, name_apart

LOGS = (".eval", ".json")
COLUMNS = ("problem", "system", "score")
WORDS = {
    "C": 1.0,
    "I": 0.0,
    "N": 0.0,
    "P": 0.5,
    "TRUE": 1.0,
    "YES": 1.0,
    "FALSE": 0.0,
    "NO": 0.0,
}
"""What scores may be besides numbers: the letters of inspect_ai, and truth values."""


def open_results(
    paths: Sequence[Path],
    *,
    cluster: str | None = None,
    scorer: str | None = None,
    right_from: float | None = None,
) -> tuple[Table, ...]:
    """Open runs, CSV files of scores and logs of inspect_ai, each under its own name.

    `cluster` names the column, or the metadata, whose values become families; `scorer`
    one of several scorers of a log; and scores from `right_from` on count as right.
    """
    tables = []
    places = []
    for path in paths:
        if path.suffix == ".csv" and path.is_file():
            found = read_scores(path, cluster, right_from)
        elif path.suffix in LOGS and path.is_file():
            found = [read_log(path, cluster, scorer, right_from)]
        else:
            found = [Table.open(path)]
        tables += found
        places += [str(path)] * len(found)
    return name_apart(tables, places)


def read_scores(
    path: Path, cluster: str | None, right_from: float | None
) -> list[Table]:
    """Read a CSV file with a problem, a system and a score per row, and maybe a seed."""
    systems: dict[str, dict[tuple[str, int], SolveRow]] = {}
    for number, row in read_rows(path):
        where = f"{path}:{number}"
        texts = {name: str(value or "") for name, value in row.items()}
        for name in (*COLUMNS, cluster or "problem"):
            if name not in texts:
                raise DataError(
                    f"{where}: no column '{name}' (columns: {', '.join(texts)[:200]})",
                    fix=f"name the columns {', '.join(COLUMNS)}, seed, cluster",
                )
        seed = texts.get("seed") or "0"
        if not seed.isdecimal() or int(seed) >= LIMIT:
            raise DataError(
                f"{where}: the seed '{seed[:40]}' is no whole number",
                fix="number the repetitions from 0",
            )
        solves = systems.setdefault(one_line(texts["system"], 80), {})
        solve = _row(
            texts["problem"],
            int(seed),
            _is_right(texts["score"], right_from, where),
            family=texts.get(cluster or "cluster") or None,
        )
        if (solve.problem, solve.seed) in solves:
            raise DataError(
                f"{where}: the same problem, system and seed as a row before",
                fix="number repetitions in a column 'seed'",
            )
        solves[solve.problem, solve.seed] = solve
    if not systems:
        raise DataError(f"{path}: no rows", fix="give one row per score")
    tables = []
    for name, solves in systems.items():
        manifest = {"system": {"name": name}, "data": {"name": path.name}}
        tables.append(Table.of(solves.values(), name=name, manifest=manifest))
    return tables


def read_log(
    path: Path,
    cluster: str | None,
    scorer: str | None,
    right_from: float | None,
) -> Table:
    """Read a log of inspect_ai by its own reader. A sample is a problem, an epoch a seed.

    A sample that ended with an error and has no score counts as wrong.
    """
    try:
        from inspect_ai.log import read_eval_log
    except ImportError:
        raise UsageError(
            f"{path}: reading it needs inspect_ai",
            fix="pip install inspect_ai",
        ) from None
    left_out = {"messages", "events", "store", "attachments"}
    try:
        log = read_eval_log(str(path), exclude_fields=left_out)
    except Exception as error:
        raise DataError(
            f"{path}: no log of inspect_ai ({one_line(str(error), 80)})",
            fix="name a file that inspect wrote into its log folder",
        ) from None
    rows = []
    ids = set()
    for sample in log.samples or ():
        where = f"{path}: sample {one_line(str(sample.id), 40)}"
        score = _score_of(sample.scores or {}, scorer, where)
        right = False if sample.error else None
        if score is not None:
            right = _is_right(score, right_from, where)
        used = (sample.model_usage or {}).values()
        metadata = sample.metadata or {}
        if cluster not in (None, "problem", *metadata):
            raise UsageError(
                f"{where} has no metadata '{cluster}'",
                fix=f"--cluster problem, or one of {', '.join(metadata)}",
            )
        family = metadata.get(cluster or "family")
        row = _row(
            str(sample.id),
            sample.epoch - 1,
            right,
            family=None if family is None else str(family),
            failed=sample.error is not None,
            input=sum(usage.input_tokens for usage in used),
            output=sum(usage.output_tokens for usage in used),
            seconds=sample.total_time or 0.0,
        )
        rows.append(row)
        ids.add(row.problem)
    if not rows:
        raise DataError(
            f"{path}: no samples in the log", fix="let the evaluation finish"
        )
    steps = [step.solver for step in log.plan.steps]
    name = one_line(" + ".join(steps) or log.eval.task, 80)
    digest = hashlib.sha256(" ".join(sorted(ids)).encode()).hexdigest()
    manifest = {
        "system": {"name": name},
        "config": {"model": log.eval.model},
        "data": {"name": log.eval.task, "hash": digest},
    }
    return Table.of(rows, name=name, manifest=manifest)


def _score_of(scores: Mapping[str, Any], scorer: str | None, where: str) -> Any:
    """Return the value of a sample's score; `None` if it has none."""
    if not scores:
        return None
    if scorer is None and len(scores) > 1:
        raise UsageError(
            f"{where} has several scores", fix=f"--scorer {' or '.join(scores)}"
        )
    name = scorer or next(iter(scores))
    if name not in scores:
        raise UsageError(
            f"{where} has no score '{name[:40]}'",
            fix=f"--scorer {' or '.join(scores)}",
        )
    return scores[name].value


def _is_right(
    value: object, right_from: float | None, where: str
) -> bool | None:
    """Whether a score is right; `None` for none. Raise for one that is in between."""
    number = math.nan
    if isinstance(value, str):
        value = value.strip()
        value = WORDS.get(value.upper(), value or math.nan)
    if isinstance(value, str | int | float):
        try:
            number = float(value)
        except ValueError:
            value = None
    if not isinstance(value, str | int | float):
        raise DataError(
            f"{where}: the score is no number and no C, I, P or N",
            fix="write 1 for right and 0 for wrong",
        )
    if math.isnan(number):
        return None
    if right_from is not None:
        return number >= right_from
    if number not in (0.0, 1.0):
        raise UsageError(
            f"{where}: the score {number:g} is neither right nor wrong",
            fix="--right-from 0.5 counts scores from 0.5 on as right",
        )
    return number == 1.0


def _row(
    problem: str,
    seed: int,
    correct: bool | None,
    *,
    family: str | None,
    failed: bool = False,
    input: int = 0,
    output: int = 0,
    seconds: float = 0.0,
) -> SolveRow:
    """Return a row of which only the result is known. Its calls are unknown: 0."""
    return SolveRow(
        problem=hashlib.sha256(problem.encode()).hexdigest()[:16],
        label=one_line(problem, MAX_LABEL),
        family=family,
        domain=None,
        seed=seed,
        correct=correct,
        failed=failed,
        exit=None,
        paper_calls=0,
        real_calls=0,
        attempts=0,
        right_attempts=0,
        input=input,
        cached=0,
        output=output,
        classifier_calls=0,
        classifier_input=0,
        classifier_cached=0,
        classifier_output=0,
        card_tokens=0,
        read_tokens=0,
        estimated=False,
        cards=(),
        abstained=False,
        seconds=seconds,
    )
