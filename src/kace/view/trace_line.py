"""One line of a trace, read without an exception: a record, or why there is none."""

from __future__ import annotations

import json

from pydantic import ValidationError

from kace.errors import DataError, KaceError
from kace.solver.trace import TRACE_VERSION, SolveRecord


def solve_in(line: bytes) -> SolveRecord | str | KaceError:
    """The record in a line; the reason in words where it is damaged; an error where nothing after it can be read."""
    try:
        return SolveRecord.model_validate_json(line)
    except ValidationError as error:
        if newer := _newer_version(line):
            return DataError(
                f"the trace is written by a newer kace (version {newer}, this one reads {TRACE_VERSION})",
                fix="upgrade kace",
            )
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}".lstrip(": ")


def _newer_version(line: bytes) -> int | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    version = found.get("v") if isinstance(found, dict) else None
    return version if isinstance(version, int) and version > TRACE_VERSION else None
