"""A problem, known by its content, and the JSONL files problems come in."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kace.errors import DataError

MAX_PROBLEM_CHARS = 100_000
MAX_LINE_BYTES = 4_000_000
TEXT_FIELDS = ("problem", "question", "input", "text")
ANSWER_FIELDS = ("answer", "target", "expected_answer")


@dataclass(frozen=True, slots=True)
class Problem:
    """A question with, where it is labelled, its expected answer."""

    text: str
    answer: str | None = None
    label: str = ""  # the name its source gives it; for people, never for identity
    domain: str | None = (
        None  # the gold domain, where the data set has one. The solver never reads it.
    )
    family: str | None = None
    solution: str | None = None  # only the teacher may read this
    id: str = field(init=False, compare=False)
    """The hash of the text, so that shuffling, relabelling or moving files changes nothing."""

    def __post_init__(self) -> None:
        digest = hashlib.sha256(
            self.text.strip().encode("utf-8", "surrogatepass")
        ).hexdigest()
        object.__setattr__(self, "id", digest[:16])

    @property
    def name(self) -> str:
        """What to call it in a table."""
        return self.label or self.id[:8]


def load_problems(
    path: str | Path, fields: Mapping[str, str] | None = None
) -> tuple[Problem, ...]:
    """Read a whole JSONL file of problems (`.gz` too). The first bad or repeated one raises `DataError`.

    `fields` maps our names to the file's, such as `{"problem": "question"}`; the usual names are found without it.
    """
    problems = list[Problem]()
    lines = dict[str, int]()
    for number, row in _rows(Path(path)):
        problem = problem_of(row, f"{path}:{number}", fields)
        if problem.id in lines:
            what = f"the same problem text as line {lines[problem.id]}"
            raise DataError(
                f"{path}:{number}: {what}", fix="remove one of the two lines"
            )
        lines[problem.id] = number
        problems.append(problem)
    if not problems:
        raise DataError(
            f"{path}: no problems in the file",
            fix='add lines like {"problem": "...", "answer": "..."}',
        )
    return tuple(problems)


def problem_rows(problems: Iterable[Problem]) -> Iterator[str]:
    """Problems as JSONL lines that `load_problems` reads back; empty fields are left out."""
    for problem in problems:
        row = {"id": problem.label, "problem": problem.text, "answer": problem.answer}
        row |= {
            "domain": problem.domain,
            "family": problem.family,
            "solution": problem.solution,
        }
        yield json.dumps(
            {key: value for key, value in row.items() if value}, ensure_ascii=False
        )


def problems_hash(problems: Sequence[Problem]) -> str:
    """The content hash of labelled problems in their order, as the manifests of learning and selection hold it."""
    content = [
        [problem.id for problem in problems],
        [problem.answer for problem in problems],
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _rows(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    number = 0
    try:
        with (
            gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream
        ):
            for number, line in enumerate(
                iter(lambda: stream.readline(MAX_LINE_BYTES + 1), b""), 1
            ):
                if line.strip(b" \t\r\n\xef\xbb\xbf"):
                    yield number, _row(line, f"{path}:{number}")
    except (OSError, EOFError, zlib.error) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        where = f"{path}:{number + 1}: cannot read on" if number else f"{path}"
        raise DataError(
            f"{where}: {reason}", fix="give a complete JSONL file, one problem a line"
        ) from None


def _row(line: bytes, where: str) -> dict[str, object]:
    if len(line) > MAX_LINE_BYTES:
        raise DataError(
            f"{where}: line is longer than {MAX_LINE_BYTES // 1_000_000} MB",
            fix="one problem a line",
        )
    try:
        row = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise DataError(f"{where}: not UTF-8", fix="save the file as UTF-8") from None
    except (ValueError, RecursionError) as error:
        reason = str(error).split("\n")[0][:80] or type(error).__name__
        raise DataError(
            f"{where}: not JSON ({reason})", fix="one JSON object a line"
        ) from None
    if not isinstance(row, dict):
        raise DataError(
            f"{where}: a {type(row).__name__}, not an object",
            fix='write {"problem": "..."}',
        )
    return row


def problem_of(
    row: Mapping[str, object], where: str, fields: Mapping[str, str] | None = None
) -> Problem:
    """A problem from one row of a file; `DataError` says what is wrong with it."""
    names = {name: name for name in ("id", "domain", "family", "solution")}
    for name, usual in (("problem", TEXT_FIELDS), ("answer", ANSWER_FIELDS)):
        names[name] = next((found for found in usual if found in row), name)
    names |= fields or {}
    found = {name: _text(row, field, where) for name, field in names.items()}
    if not found["problem"].strip():
        what = f"no problem text in field '{names['problem']}'"
        raise DataError(f"{where}: {what}", fix="name it: --set fields.problem=NAME")
    check_problem_text(found["problem"], where)
    rest = {
        name: found[name] or None for name in ("answer", "domain", "family", "solution")
    }
    return Problem(found["problem"], label=found["id"], **rest)


def check_problem_text(text: str, where: str = "problem") -> None:
    """Refuse a text that no solver should be sent: too long, or not encodable."""
    if len(text) > MAX_PROBLEM_CHARS:
        what = f"the problem has {len(text):,} characters, over the limit of {MAX_PROBLEM_CHARS:,}"
        raise DataError(
            f"{where}: {what}",
            fix="is the field map right? a problem is a text, not a file",
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError(
            f"{where}: the text has a lone surrogate", fix="save the file as UTF-8"
        ) from None


def _text(row: Mapping[str, object], name: str, where: str) -> str:
    value = row.get(name)
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(
            f"{where}: field '{name}' is a {type(value).__name__}, not text",
            fix="write it as a string",
        )
    return str(value)
