"""A problem, known by its content, and the JSONL files problems come in."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import IO

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
    label: str = ""
    """The name its source gives it; for people, never for identity."""
    domain: str | None = None
    """The gold domain, where the data set has one. The solver never reads it."""
    family: str | None = None
    solution: str | None = None
    """Only the teacher may read this."""
    id: str = field(init=False, compare=False)
    """The hash of the text, so that shuffling, relabelling or moving files changes nothing."""

    def __post_init__(self) -> None:
        digest = hashlib.sha256(self.text.strip().encode("utf-8", "surrogatepass")).hexdigest()
        object.__setattr__(self, "id", digest[:16])

    @property
    def name(self) -> str:
        """What to call it in a table."""
        return self.label or self.id[:8]


def read_problems(path: Path, fields: Mapping[str, str] | None = None) -> Iterator[Problem]:
    """Read problems from a JSONL file, one at a time (`.gz` too).

    `fields` maps our names to the file's, such as `{"problem": "question"}`; the usual names are found without
    it. The first bad line raises `DataError` with file and line number, and so does a repeated problem.
    """
    seen: dict[str, int] = {}
    try:
        opened = gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # noqa: SIM115 - closed below
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError(f"{path}: {reason}", fix="give a JSONL file, one problem a line") from None
    with opened as stream:
        for number, row in _rows(stream, path):
            problem = problem_of(row, f"{path}:{number}", fields)
            if problem.id in seen:
                what = f"the same problem text as line {seen[problem.id]}"
                raise DataError(f"{path}:{number}: {what}", fix="remove one of the two lines")
            seen[problem.id] = number
            yield problem
    if not seen:
        raise DataError(f"{path}: no problems in the file", fix='add lines like {"problem": "...", "answer": "..."}')


def load_problems(path: Path, fields: Mapping[str, str] | None = None) -> tuple[Problem, ...]:
    """Read a whole JSONL file of problems."""
    return tuple(read_problems(path, fields))


def problem_rows(problems: Iterable[Problem]) -> Iterator[str]:
    """Problems as JSONL lines that `read_problems` reads back; empty fields are left out."""
    for problem in problems:
        row = {"id": problem.label, "problem": problem.text, "answer": problem.answer}
        row |= {"domain": problem.domain, "family": problem.family, "solution": problem.solution}
        yield json.dumps({key: value for key, value in row.items() if value}, ensure_ascii=False)


def problems_hash(problems: Sequence[Problem]) -> str:
    """The content hash of labelled problems in their order, as the manifests of learning and selection hold it."""
    content = [[problem.id for problem in problems], [problem.answer for problem in problems]]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _rows(stream: IO[bytes] | gzip.GzipFile, path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    for number in count(1):
        where = f"{path}:{number}"
        try:
            line = stream.readline(MAX_LINE_BYTES + 1)
        except (OSError, EOFError) as error:
            raise DataError(f"{where}: cannot read on: {error}", fix="is the file complete?") from None
        if not line:
            return
        if len(line) > MAX_LINE_BYTES:
            raise DataError(f"{where}: line is longer than {MAX_LINE_BYTES // 1_000_000} MB", fix="one problem a line")
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            if not text:
                continue
            row = json.loads(text)
        except UnicodeDecodeError:
            raise DataError(f"{where}: not UTF-8", fix="save the file as UTF-8") from None
        except (ValueError, RecursionError) as error:
            reason = str(error).split("\n")[0][:80] or type(error).__name__
            raise DataError(f"{where}: not JSON ({reason})", fix="one JSON object a line") from None
        if not isinstance(row, dict):
            raise DataError(f"{where}: a {type(row).__name__}, not an object", fix='write {"problem": "..."}')
        yield number, row


def problem_of(row: Mapping[str, object], where: str, fields: Mapping[str, str] | None = None) -> Problem:
    """A problem from one row of a file; `DataError` says what is wrong with it."""
    fields = fields or {}
    text_field = fields.get("problem") or next((name for name in TEXT_FIELDS if name in row), "problem")
    answer_field = fields.get("answer") or next((name for name in ANSWER_FIELDS if name in row), "answer")
    text = _text(row, text_field, where)
    if not text.strip():
        raise DataError(f"{where}: no problem text in field '{text_field}'", fix="name the field: --field problem=NAME")
    check_problem_text(text, where)
    return Problem(
        text=text,
        answer=_text(row, answer_field, where) or None,
        label=_text(row, fields.get("id", "id"), where),
        domain=_text(row, fields.get("domain", "domain"), where) or None,
        family=_text(row, "family", where) or None,
        solution=_text(row, fields.get("solution", "solution"), where) or None,
    )


def check_problem_text(text: str, where: str = "problem") -> None:
    """Refuse a text that no solver should be sent: too long, or not encodable."""
    if len(text) > MAX_PROBLEM_CHARS:
        what = f"the problem has {len(text):,} characters, over the limit of {MAX_PROBLEM_CHARS:,}"
        raise DataError(f"{where}: {what}", fix="is the field map right? a problem is a text, not a file")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError(f"{where}: the text has a lone surrogate", fix="save the file as UTF-8") from None


def _text(row: Mapping[str, object], name: str, where: str) -> str:
    value = row.get(name)
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"{where}: field '{name}' is a {type(value).__name__}, not text", fix="write it as a string")
    return str(value)
