"""A trace read back: one JSON line per problem and seed, strictly, with every damaged line in its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from kace.errors import DataError
from kace.io import whole_lines
from kace.solver.records import Solution

TRACE_VERSION = 1


@dataclass(frozen=True, slots=True)
class Damage:
    """A line that could not be read."""

    line: int
    reason: str


class Line(NamedTuple):
    """One line of a trace and where it lies."""

    offset: int
    length: int
    content: Solution | Damage


def read_trace(path: Path) -> Iterator[Line]:
    """Every record of a trace, and every damaged line in its place. A torn last line is left out."""
    for number, offset, line in whole_lines(path):
        try:
            yield Line(offset, len(line), Solution.model_validate_json(line))
        except ValidationError as error:
            if newer := _newer_version(line):
                raise DataError(
                    f"{path}:{number}: written by a newer kace (trace version {newer}, this one reads {TRACE_VERSION})",
                    fix="upgrade kace",
                ) from None
            first = error.errors()[0]
            reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}".lstrip(": ")
            yield Line(offset, len(line), Damage(number, reason))


class _Version(BaseModel):
    v: int


def _newer_version(line: bytes) -> int | None:
    try:
        version = _Version.model_validate_json(line).v
    except ValidationError:
        return None
    return version if version > TRACE_VERSION else None
