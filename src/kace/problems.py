"""Problems, the files they come in, and the data sets that are known by name.

The starter and technique sets ship with the package. Published sets are downloaded from
the Hugging Face hub, or read from a folder of the user's; their splits are fixed by
lists of hashes in `data/splits`.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import logging
import re
import tomllib
import unicodedata
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import TypeAdapter

from kace.answers.extract import last_boxed
from kace.config import nearest
from kace.errors import DataError, KaceError, UsageError, one_line, public_url
from kace.files import (
    DATA,
    Unavailable,
    fetch_from_hub,
    readable,
    write_atomic,
)

if TYPE_CHECKING:
    from kace.config import Config

log = logging.getLogger(__name__)
SPLITS = ("train", "validation", "test")
BUNDLED: Mapping[str, tuple[str, ...]] = {
    "starter": SPLITS,
    # What the bundled tree was learned from, and what it was measured on.
    "starter-1000": ("train", "test"),
    "techniques": (*SPLITS, "retest", "third", "fourth"),
}
"""Sets that come with the package, and their splits."""
PUBLISHED = ("aime25", "math-hard", "olymmath", "gsm8k")
"""Sets of others, described in `data/sets.toml`."""
NAMES = (*BUNDLED, *PUBLISHED)
ALL = "all"  # the split of a file, which has none
FIELDS: Mapping[str, tuple[str, ...]] = {
    "problem": ("problem", "question", "input", "text"),
    "answer": ("answer", "target", "expected_answer"),
    "id": ("id",),
    "domain": ("domain",),
    "family": ("family",),
    "solution": ("solution",),
}
"""The fields of a problem, and the names under which a file may have them."""
FOLDER_FIELDS = {
    "problem": "problem",
    "answer": "answer",
    "id": "id",
    "domain": "subject",
}
"""Fields of the JSONL files of a user's own folder of published sets."""
MAX_PROBLEM_CHARS = 100_000
MAX_LABEL = 200  # characters of an id
MAX_FILE_BYTES = 64_000_000  # many times the largest published file
VERDICTS = "verdicts.jsonl"  # of a run: what is known of served answers
PARQUET = b"PAR1"  # the first bytes of a Parquet file
SEQUENCE = 3  # words in the sequences by which problems are compared
SHARED = (
    0.7  # share of the sequences at which two problems count as one, reworded
)
_WORD = re.compile(r"[^\W\d_]+|\d+(?:[.,]\d+)*")


@dataclass(frozen=True, slots=True)
class Problem:
    """A question with its expected answer, if it has one."""

    text: str
    answer: str | None = None
    label: str = ""  # its name in its source; for people, never for identity
    domain: str | None = None  # the gold domain. The solver never reads it.
    family: str | None = None
    solution: str | None = None  # only the teacher may read this
    id: str = field(init=False, compare=False)
    """The hash of the text: shuffling, relabelling or moving files changes nothing."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", _short_hash(self.text.strip()))

    @property
    def name(self) -> str:
        """Return the label, or the start of the id."""
        return self.label or self.id[:8]


@dataclass(frozen=True, slots=True)
class Dataset:
    """The problems of one split."""

    name: str
    split: str
    problems: tuple[Problem, ...]

    @property
    def hash(self) -> str:
        """Return the `set_hash`, the same for every copy of the same problems."""
        return set_hash(self.problems)


class HubFile(NamedTuple):
    """One file of a data set repository."""

    repo: str
    revision: str  # a commit, so that the file cannot change under its name
    path: str
    sha256: str  # empty where only the revision vouches for the bytes

    def is_valid(self, data: bytes) -> bool:
        """Whether these are its bytes; without a hash, whether they are Parquet.

        A proxy before the hub may reply with a page of its own.
        """
        if not self.sha256:
            return data.startswith(PARQUET)
        return hashlib.sha256(data).hexdigest() == self.sha256


class PublishedSplit(NamedTuple):
    """A split of a published set: where its problems are, and its size and hash."""

    size: int
    hash: str
    local: str  # the file in the user's own folder
    files: tuple[HubFile, ...]
    fields: Mapping[str, str]  # our field names to those of the published files


# Files


def load_problems(
    path: str | Path,
    fields: Mapping[str, str] | None = None,
    limit: int | None = None,
) -> tuple[Problem, ...]:
    """Read problems from JSONL, a JSON list, CSV (`.gz` too) or a run, the first `limit`.

    `fields` maps our names to the file's, such as `{"problem": "question"}`; the usual
    names are found without it. Raises `DataError` for the first bad or repeated row.
    """
    problems = []
    first: dict[str, int] = {}
    for number, row in islice(read_rows(Path(path)), limit):
        problem = problem_of(row, f"{path}:{number}", fields)
        names = {"problem text": problem.id, "id": problem.label}
        for what, name in names.items():
            line = first.setdefault(f"{what} {name}", number)
            if name and line != number:
                raise DataError(
                    f"{path}:{number}: the same {what} as line {line}",
                    fix="remove one of the two lines, or give another id",
                )
        problems.append(problem)
    if not problems:
        raise DataError(
            f"{path}: no problems",
            fix='add lines like {"problem": "...", "answer": "..."}; '
            "of a run, problems with an answer or a verdict",
        )
    return tuple(problems)


def problem_rows(problems: Iterable[Problem]) -> Iterator[str]:
    """Yield JSONL lines that `load_problems` reads back; empty fields are left out."""
    for problem in problems:
        row = {
            "id": problem.label,
            "problem": problem.text,
            "answer": problem.answer,
            "domain": problem.domain,
            "family": problem.family,
            "solution": problem.solution,
        }
        filled = {key: value for key, value in row.items() if value}
        yield json.dumps(filled, ensure_ascii=False)


def problems_hash(problems: Sequence[Problem]) -> str:
    """Return the hash of labelled problems in their order, as manifests hold it."""
    ids = [problem.id for problem in problems]
    answers = [problem.answer for problem in problems]
    return hashlib.sha256(json.dumps([ids, answers]).encode()).hexdigest()


def problem_of(
    row: Mapping[str, object],
    where: str,
    fields: Mapping[str, str] | None = None,
) -> Problem:
    """Return the problem of one row of a file; raise `DataError` for a bad one."""
    values = {}
    for name, usual in FIELDS.items():
        found = next((field for field in usual if field in row), name)
        field = (fields or {}).get(name, found)
        value = row.get(field)
        if type(value) not in (str, int, float, NoneType):
            raise DataError(
                f"{where}: field '{field}' is a {type(value).__name__}, not text",
                fix="write it as a string",
            )
        values[name] = None if value is None else str(value) or None
    text = values.pop("problem") or ""
    label = values.pop("id") or ""
    if not text.strip():
        raise DataError(
            f"{where}: no problem text (fields: {', '.join(row)[:200]})",
            fix="name it: --set fields.problem=NAME",
        )
    check_problem_text(text, where)
    if len(label) > MAX_LABEL:
        raise DataError(
            f"{where}: the id has more than {MAX_LABEL} characters",
            fix="name another field: --set fields.id=NAME",
        )
    return Problem(text, label=label, **values)


def check_problem_text(text: str, where: str = "problem") -> None:
    """Raise `DataError` for a text that is too long or cannot be encoded."""
    fix = "a problem is a text in UTF-8, not a file"
    if len(text) > MAX_PROBLEM_CHARS:
        limit = f"the limit of {MAX_PROBLEM_CHARS:,} characters"
        raise DataError(f"{where}: the problem is over {limit}", fix=fix)
    if re.search("[\ud800-\udfff]", text):
        raise DataError(f"{where}: the text has a lone surrogate", fix=fix)


def read_rows(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield the rows of a JSONL, JSON, CSV or Parquet file with their numbers.

    Of a run's folder, those with a known answer: their own, or that of a verdict.
    """
    if path.is_dir():
        yield from _known_rows(path)
        return
    if path.suffix == ".parquet":
        yield from enumerate(_read_parquet(path), 1)
        return
    text = read_text(path)
    if path.name.removesuffix(".gz").endswith(".csv"):
        yield from enumerate(csv.DictReader(io.StringIO(text)), 2)
        return
    for number, row in _json_rows(text, path):
        if not isinstance(row, dict):
            raise DataError(
                f"{path}:{number}: not a JSON object",
                fix='write {"problem": "..."}',
            )
        yield number, row


def _json_rows(text: str, path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the items of a JSON list, or of each line that is not blank."""
    if text.lstrip().startswith("["):
        yield from enumerate(_parse(text, str(path)), 1)
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, _parse(line, f"{path}:{number}")


def _known_rows(run: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield the problems of a run that have an answer; the last verdict counts."""
    answers = {}
    verdicts = run / VERDICTS
    for _, row in read_rows(verdicts) if verdicts.exists() else ():
        problem = str(row.get("problem"))
        answer = row.get("answer")
        if row.get("right") is not False:
            answers[problem] = answer
        elif answers.get(problem) == answer:
            del answers[problem]
    for number, row in read_rows(run / "problems.jsonl"):
        known = Problem(str(row.get("problem"))).id
        answer = answers.get(known, row.get("answer"))
        if answer is not None:
            yield number, {**row, "answer": answer}


def read_text(path: Path) -> str:
    """Return the text of a file of at most `MAX_FILE_BYTES`; raise `DataError`."""
    fix = "give a complete file of problems: JSONL, JSON or CSV"
    try:
        opener = gzip.open if path.suffix == ".gz" else open
        with readable(path, fix), opener(path, "rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except (EOFError, zlib.error) as error:
        raise DataError(f"{path}: {error}".lower(), fix=fix) from None
    if len(data) > MAX_FILE_BYTES:
        raise DataError(
            f"{path}: longer than {MAX_FILE_BYTES // 1_000_000} MB",
            fix="split the file",
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}:{line}: not UTF-8", fix="save the file as UTF-8"
        ) from None


def _parse(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{where}: not JSON ({error})", fix="one JSON object a line"
        ) from None


# Data sets by name


def load_dataset(name: str | Path, split: str, config: Config) -> Dataset:
    """Return a split of a named data set, or a file.

    A published set is read from `config.data_dir`, or from the cache, downloaded first.
    Raises `KaceError` for missing problems.
    """
    path = Path(name)
    known = str(name)
    if known not in NAMES:
        if len(path.parts) == 1 and not (path.suffix or path.exists()):
            raise UsageError(
                f"no data set is called '{known[:60]}'{nearest(known, NAMES)}",
                fix="use one of these, or a file",
            )
        return Dataset(path.name, ALL, load_problems(path, config.fields))
    splits = BUNDLED.get(known) or published_sets()[known]
    if split not in splits:
        raise UsageError(
            f"{known} has no split '{split[:40]}'",
            fix=f"choose one of {', '.join(splits)}",
        )
    if known in BUNDLED:
        return Dataset(known, split, load_bundled(known, split))
    return load_published(known, split, published_sets()[known][split], config)


def load_bundled(name: str, split: str) -> tuple[Problem, ...]:
    """Return a split of a set that ships with the package."""
    return load_problems(DATA / f"{name}-{split}.jsonl.gz")


def labelled(data: Dataset, limit: int | None = None) -> Dataset:
    """Return the first problems of a data set for an evaluation, or all.

    Raises `UsageError` for no problem, or one without an answer.
    """
    problems = data.problems[:limit]
    if not problems:
        raise UsageError(
            "no problems were given",
            fix="give a data set, a file, or a list of problems",
        )
    for problem in problems:
        if problem.answer is None:
            raise UsageError(
                f"{data.name}: problem {problem.name!r} has no answer",
                fix="give one to every problem; if the file has them, name "
                "their field: --set fields.answer=NAME",
            )
    return replace(data, problems=problems)


def fingerprint(text: str) -> str:
    """Return the hash of a text without white space and compatibility forms.

    Copies of a problem differ in these and nothing else.
    """
    bare = "".join(unicodedata.normalize("NFKC", text).split())
    return _short_hash(bare)


def set_hash(problems: Iterable[Problem]) -> str:
    """Return the hash of a set of problems, whatever their order."""
    fingerprints = sorted(fingerprint(problem.text) for problem in problems)
    return _short_hash("\n".join(fingerprints))


def _short_hash(text: str) -> str:
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[:16]


# Published sets


@cache
def published_sets() -> Mapping[str, Mapping[str, PublishedSplit]]:
    """Return the splits of the published data sets by name."""
    content = tomllib.loads((DATA / "sets.toml").read_text(encoding="utf-8"))
    for splits in content["sets"].values():
        for part in splits.values():
            part |= content["sources"][part.pop("source")]
    kind = TypeAdapter(Mapping[str, Mapping[str, PublishedSplit]])
    return kind.validate_python(content["sets"])


def load_published(
    name: str, split: str, part: PublishedSplit, config: Config
) -> Dataset:
    """Return a split of a set from the user's folder, or as it is on the hub."""
    fields = part.fields
    if config.data_dir is not None:
        fields = FOLDER_FIELDS
        paths = [config.data_dir / part.local]
    else:
        paths = [fetch(file, config) for file in part.files]
    problems = []
    for path in paths:
        for number, row in read_rows(path):
            problems.append(problem_of(row, f"{path}:{number}", fields))
    complete = _take_split(read_listing(name), split, problems)
    data = Dataset(name, split, tuple(complete))
    if len(complete) != part.size:
        raise DataError(
            f"{name} {split}: {len(complete):,} problems with an answer"
            f" in {part.local}, not {part.size:,}",
            fix="is the source complete? else name a folder that has the data "
            "(--set data_dir=DIR)",
        )
    if data.hash != part.hash:
        log.warning(
            "kace: %s %s is not worded as when the split was fixed (%s)",
            name,
            split,
            part.hash,
        )
    return data


def read_listing(name: str) -> Mapping[str, Mapping[str, str]]:
    """Return split to fingerprint to label. A list never holds the problems' texts."""
    path = DATA / "splits" / f"{name}.tsv"
    found: dict[str, dict[str, str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            split, print_, label = line.split("\t")
            found.setdefault(split, {})[print_] = label
    return found


def tidy(problem: Problem) -> Problem:
    """Bring a published row into our form: its domain and its final answer."""
    words = (problem.domain or "").lower().replace("&", "and").split()
    answer = problem.answer
    solution = problem.solution
    if answer is None:
        answer = last_boxed(solution or "")
    elif "####" in answer:  # as GSM8K marks it, after the solution
        solution, _, answer = answer.rpartition("####")
        answer = answer.strip().replace(",", "")
    return replace(
        problem,
        domain="_".join(words) or None,
        answer=answer or None,
        solution=(solution or "").strip() or None,
    )


def _take_split(
    listing: Mapping[str, Mapping[str, str]],
    split: str,
    problems: Sequence[Problem],
) -> list[Problem]:
    """Take a split out of the problems of a source, which must hold all of it.

    The lists know a problem by its text, or by its label if it is worded otherwise.
    """
    found = {fingerprint(problem.text): problem for problem in problems}
    names = {problem.label: problem for problem in problems}
    wanted = listing.get(split)
    if wanted is None:  # what no list names
        rest = found.keys() - set().union(*listing.values())
        wanted = {key: found[key].label for key in found if key in rest}
    complete = []
    for key, label in wanted.items():
        match = found.get(key) or names.get(label)
        if match is not None:
            match = tidy(replace(match, label=label))
            if split != "train":  # only a learner may read solutions
                match = replace(match, solution=None)
            if match.answer is not None:
                complete.append(match)
    return complete


def _read_parquet(path: Path) -> list[dict[str, object]]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise KaceError(
            f"{path.name} is a Parquet file, which needs pyarrow",
            fix="pip install 'kace[data]', or --set data_dir=DIR",
        ) from None
    try:
        rows: list[dict[str, object]] = parquet.read_table(path).to_pylist()
    except (ArrowException, OSError) as error:
        raise DataError(
            f"{path}: cannot be read as Parquet ({one_line(str(error), 120)})",
            fix="remove it, then download it again",
        ) from None
    return rows


# Downloads


def fetch(file: HubFile, config: Config) -> Path:
    """Return the path of a file in the cache, downloaded first where it is missing.

    The file appears whole and checked, or not at all.
    """
    place = config.cache_dir / "data" / file.repo.replace("/", "--")
    target = place / file.revision / file.path
    if target.is_file() and file.is_valid(target.read_bytes()):
        return target
    try:
        with TemporaryDirectory() as folder:
            part = Path(folder, "part")
            fetch_from_hub(
                f"datasets/{file.repo}",
                file.path,
                part,
                hub=config.hub,
                most=MAX_FILE_BYTES,
                revision=file.revision,
            )
            data = part.read_bytes()
        if not file.is_valid(data):
            raise Unavailable("refused: not the published file")
    except (Unavailable, OSError) as error:
        raise KaceError(
            f"could not get {file.repo}/{file.path} from "
            f"{public_url(config.hub)}: {one_line(str(error))}",
            fix="check the connection, set HF_ENDPOINT to a mirror, or name a folder "
            "with the data: --set data_dir=DIR",
        ) from None
    write_atomic(target, data)
    return target


# Problems that appear twice


def overlaps(
    ours: Iterable[Problem], theirs: Iterable[Problem]
) -> list[tuple[Problem, Problem]]:
    """Return every problem of ours that theirs holds too, with that one.

    Two problems are one, reworded, if their numbers are equal and they share most
    word sequences. Problems of one family with other numbers are different problems.
    """
    index = defaultdict(list)
    for problem in theirs:
        numbers, sequences = _shape(problem)
        index[numbers].append((problem, sequences))
    found = []
    for problem in ours:
        numbers, sequences = _shape(problem)
        for twin, others in index[numbers]:
            least = min(len(sequences), len(others))
            if len(sequences & others) >= SHARED * least:
                found.append((problem, twin))
                break
    return found


def _shape(problem: Problem) -> tuple[str, set[str]]:
    """Return the numbers of a problem, and its sequences of words."""
    words = _WORD.findall(problem.text.casefold())
    numbers = sorted(word for word in words if word[0].isdigit())
    starts = range(max(1, len(words) - SEQUENCE + 1))
    sequences = {" ".join(words[at : at + SEQUENCE]) for at in starts}
    return " ".join(numbers), sequences


def split_problems(
    problems: Sequence[Problem], shares: tuple[float, float]
) -> dict[str, list[Problem]]:
    """Return a draw of problems for `SPLITS`; `shares` are of the first two.

    The draw follows the hash of the texts, so that it repeats. Problems of one family,
    and those that are one, reworded, are drawn together.
    """
    groups = defaultdict(list)
    for problem, first in overlaps(problems, problems):
        groups[problem.family or first.id].append(problem)
    drawn: dict[str, list[Problem]] = {name: [] for name in SPLITS}
    ends = (shares[0] * len(problems), sum(shares) * len(problems))
    done = 0
    for name in sorted(groups, key=_short_hash):
        group = groups[name]
        drawn[SPLITS[sum(done >= end for end in ends)]] += group
        done += len(group)
    return drawn
