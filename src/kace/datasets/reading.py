"""Read problems out of a published file, JSONL or Parquet, by the names of its columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kace.errors import DataError, KaceError
from kace.problem import Problem, check_problem_text, load_problems

MAX_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Columns:
    """What the columns of a file are called; an empty name is a column it does not have."""

    problem: str = "problem"
    answer: str = "answer"
    id: str = "id"
    domain: str = ""
    solution: str = ""

    @property
    def used(self) -> tuple[str, ...]:
        """Every column that is read, each once."""
        return tuple(dict.fromkeys(filter(None, (self.problem, self.answer, self.id, self.domain, self.solution))))


Tidy = Callable[[Problem], Problem]
"""Turns what a file says into our form: a final answer out of a worked one, a label out of an address."""


def as_it_is(problem: Problem) -> Problem:
    """Change nothing."""
    return problem


def read(paths: Sequence[Path], columns: Columns, tidy: Tidy = as_it_is) -> tuple[Problem, ...]:
    """All problems of some files, in order."""
    return tuple(tidy(problem) for path in paths for problem in _read(path, columns))


def _read(path: Path, columns: Columns) -> Sequence[Problem]:
    if path.suffix == ".parquet":
        return _parquet(path, columns)
    fields = {"problem": columns.problem, "answer": columns.answer, "id": columns.id, "domain": columns.domain}
    return load_problems(path, {ours: theirs for ours, theirs in fields.items() if theirs})


def _parquet(path: Path, columns: Columns) -> Sequence[Problem]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise KaceError(
            f"{path.name} is a Parquet file, which needs pyarrow", fix="pip install 'kace[data]', or give --data-dir"
        ) from None
    try:
        with parquet.ParquetFile(path) as file:
            names = tuple(file.schema_arrow.names)
            if absent := [name for name in columns.used if name not in names]:
                raise DataError(
                    f"{path}: no column {', '.join(absent)}; it has {', '.join(names)}", fix="is it the right file?"
                )
            if file.metadata.num_rows > MAX_ROWS:
                raise DataError(f"{path}: more than {MAX_ROWS:,} rows", fix="is it the right file?")
            rows: list[Mapping[str, object]] = file.read(columns=list(columns.used)).to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).split("\n")[0][:120]
        raise DataError(f"{path}: cannot be read as Parquet ({reason})", fix="remove it, then fetch it again") from None
    return [_problem(row, columns, f"{path}: row {number}") for number, row in enumerate(rows)]


def _problem(row: Mapping[str, object], columns: Columns, where: str) -> Problem:
    def text(name: str) -> str:
        value = row.get(name) if name else None
        return "" if value is None else str(value)

    check_problem_text(text(columns.problem), where)
    if not text(columns.problem).strip():
        raise DataError(f"{where}: no problem text in column '{columns.problem}'", fix="is it the right file?")
    return Problem(
        text=text(columns.problem),
        answer=text(columns.answer) or None,
        label=text(columns.id),
        domain=text(columns.domain) or None,
        solution=text(columns.solution) or None,
    )
