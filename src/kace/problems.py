"""Problems, the JSONL files they come in, and the data sets that are known by name.

The starter and technique sets ship with the package. Published sets are downloaded from
the Hugging Face hub, or read from a folder of the user's; their splits are fixed by
lists of hashes in `data/splits`.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import tomllib
import unicodedata
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from kace.errors import DataError, KaceError, UsageError, one_line, public_url
from kace.files import write_atomic

if TYPE_CHECKING:
    from kace.config import Config

DATA = Path(__file__).parent / "data"
SPLITS = ("train", "validation", "test")
BUNDLED: Mapping[str, tuple[str, ...]] = {
    "starter": SPLITS,
    "starter-1000": (
        "test",
    ),  # the sample that published figures are measured on
    "techniques": (*SPLITS, "retest"),
}
"""Sets that come with the package, and their splits."""
PUBLISHED = ("aime25", "math-hard", "olymmath", "gsm8k")
"""Sets of others, described in `data/sets.toml`."""
NAMES = (*BUNDLED, *PUBLISHED)
ALL = "all"  # the split of a file, which has none
TEXT_FIELDS = ("problem", "question", "input", "text")
ANSWER_FIELDS = ("answer", "target", "expected_answer")
FOLDER_FIELDS = {
    "problem": "problem",
    "answer": "answer",
    "id": "id",
    "domain": "subject",
}
"""Fields of the JSONL files of a user's own folder of published sets."""
MAX_PROBLEM_CHARS = 100_000
MAX_LINE_BYTES = 4_000_000
MAX_FILE_BYTES = 64_000_000  # many times the largest published file
MAX_ROWS = 100_000
PARQUET = b"PAR1"  # the first and last bytes of a Parquet file
SEQUENCE = 3  # words in the sequences by which problems are compared
SHARED = (
    0.7  # share of the sequences at which two problems count as one, reworded
)
_BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])\s*(\{|[^\s{}\\$]+)")
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
        text = self.text.strip().encode("utf-8", "surrogatepass")
        object.__setattr__(self, "id", hashlib.sha256(text).hexdigest()[:16])

    @property
    def name(self) -> str:
        """Return the label, or the start of the id."""
        return self.label or self.id[:8]


@dataclass(frozen=True, slots=True)
class Dataset:
    """The problems of one split, and where they came from."""

    name: str
    split: str
    problems: tuple[Problem, ...]
    hash: str  # `set_hash`: the same for every copy of the same problems
    source: str  # in words for people
    notes: tuple[str, ...] = ()  # differences from when the split was fixed


class HubFile(NamedTuple):
    """One file of a data set repository."""

    repo: str
    revision: str  # a commit, so that the file cannot change under its name
    path: str
    sha256: str  # empty where only the revision vouches for the bytes


class Source(NamedTuple):
    """Problems that are published together; splits are taken from them."""

    name: str
    local: str  # the file that holds them in the user's folder
    files: tuple[HubFile, ...]
    fields: Mapping[str, str]  # our field names to those of the published files


class PublishedSplit(NamedTuple):
    """A split of a published set, as it was fixed."""

    source: Source
    size: int
    hash: str


class PublishedSet(NamedTuple):
    """A published data set."""

    name: str
    about: str
    licence: str  # as its publishers state it
    splits: Mapping[str, PublishedSplit]
    listing: Path  # the problems of each split

    @property
    def files(self) -> tuple[HubFile, ...]:
        """Return every published file once."""
        found = dict.fromkeys(
            file
            for split in self.splits.values()
            for file in split.source.files
        )
        return tuple(found)


Listing = Mapping[str, Mapping[str, str]]  # split to fingerprint to label
Watch = Callable[[HubFile], None]  # called before a file is downloaded


# JSONL files


def load_problems(
    path: str | Path, fields: Mapping[str, str] | None = None
) -> tuple[Problem, ...]:
    """Read a JSONL file of problems (`.gz` too).

    `fields` maps our names to the file's, such as `{"problem": "question"}`; the usual
    names are found without it. Raises `DataError` for the first bad or repeated line.
    """
    problems: list[Problem] = []
    lines: dict[str, int] = {}
    for number, row in _read_rows(Path(path)):
        problem = problem_of(row, f"{path}:{number}", fields)
        if problem.id in lines:
            raise DataError(
                f"{path}:{number}: the same problem text as line {lines[problem.id]}",
                fix="remove one of the two lines",
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
    names = {
        "id": "id",
        "domain": "domain",
        "family": "family",
        "solution": "solution",
    }
    names["problem"] = _first_name(row, TEXT_FIELDS)
    names["answer"] = _first_name(row, ANSWER_FIELDS)
    names.update(fields or {})
    found = {
        name: _read_text(row, name_there, where)
        for name, name_there in names.items()
    }
    if not found["problem"].strip():
        raise DataError(
            f"{where}: no problem text in field '{names['problem']}'",
            fix="name it: --set fields.problem=NAME",
        )
    check_problem_text(found["problem"], where)
    return Problem(
        found["problem"],
        answer=found["answer"] or None,
        label=found["id"],
        domain=found["domain"] or None,
        family=found["family"] or None,
        solution=found["solution"] or None,
    )


def check_problem_text(text: str, where: str = "problem") -> None:
    """Raise `DataError` for a text that is too long or cannot be encoded."""
    if len(text) > MAX_PROBLEM_CHARS:
        limit = f"over the limit of {MAX_PROBLEM_CHARS:,}"
        raise DataError(
            f"{where}: the problem has {len(text):,} characters, {limit}",
            fix="is the field map right? a problem is a text, not a file",
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError(
            f"{where}: the text has a lone surrogate",
            fix="save the file as UTF-8",
        ) from None


def _first_name(row: Mapping[str, object], names: Sequence[str]) -> str:
    return next((name for name in names if name in row), names[0])


def _read_text(row: Mapping[str, object], name: str, where: str) -> str:
    value = row.get(name)
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(
            f"{where}: field '{name}' is a {type(value).__name__}, not text",
            fix="write it as a string",
        )
    return str(value)


def _read_rows(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    number = 0
    try:
        with (
            gzip.open(path, "rb")
            if path.suffix == ".gz"
            else path.open("rb") as stream
        ):
            while line := stream.readline(MAX_LINE_BYTES + 1):
                number += 1
                if line.strip(b" \t\r\n\xef\xbb\xbf"):
                    yield number, _read_row(line, f"{path}:{number}")
    except (OSError, EOFError, zlib.error) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        where = f"{path}:{number + 1}: cannot read on" if number else f"{path}"
        raise DataError(
            f"{where}: {reason}",
            fix="give a complete JSONL file, one problem a line",
        ) from None


def _read_row(line: bytes, where: str) -> dict[str, object]:
    if len(line) > MAX_LINE_BYTES:
        raise DataError(
            f"{where}: line is longer than {MAX_LINE_BYTES // 1_000_000} MB",
            fix="one problem a line",
        )
    try:
        row = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise DataError(
            f"{where}: not UTF-8", fix="save the file as UTF-8"
        ) from None
    except (ValueError, RecursionError) as error:
        reason = str(error).split("\n")[0][:80] or type(error).__name__
        raise DataError(
            f"{where}: not JSON ({reason})", fix="one JSON object a line"
        ) from None
    if not isinstance(row, dict):
        kind = "single value"
        if isinstance(row, list | str):
            kind = "list" if isinstance(row, list) else "string"
        raise DataError(
            f"{where}: a {kind}, not an object",
            fix='write {"problem": "..."}',
        )
    return row


# Data sets by name


def load_dataset(
    name: str | Path, split: str, config: Config, watch: Watch | None = None
) -> Dataset:
    """Return a split of a named data set, or all of a JSONL file.

    A published set is read from `config.data_dir`, or from the cache, downloaded first.
    Raises `KaceError` for missing problems; a reworded one is accepted and noted.
    """
    known = canonical(str(name))
    if known is None:
        problems = load_problems(name, config.fields)
        file = Path(name)
        return Dataset(file.name, ALL, problems, set_hash(problems), str(name))
    if split not in split_names(known):
        raise UsageError(
            f"{known} has no split '{split[:40]}'",
            fix=f"choose one of {', '.join(split_names(known))}",
        )
    if known in BUNDLED:
        problems = load_bundled(known, split)
        return Dataset(known, split, problems, set_hash(problems), "bundled")
    published = published_sets()[known]
    if config.data_dir is not None:
        return read_folder(published, split, config.data_dir)
    cache_dir = config.cache_dir / "data"
    return read_hub(
        published, split, cache_dir=cache_dir, hub=config.hub, watch=watch
    )


def load_bundled(name: str, split: str) -> tuple[Problem, ...]:
    """Return a split of a set that ships with the package."""
    if split not in BUNDLED[name]:
        raise UsageError(
            f"no {name} split '{split}'",
            fix=f"choose one of {', '.join(BUNDLED[name])}",
        )
    return load_problems(DATA / f"{name}-{split}.jsonl.gz")


def labelled(data: Dataset, limit: int | None = None) -> Dataset:
    """Return the first problems of a data set for an evaluation, or all.

    Raises `UsageError` for a problem without an answer.
    """
    problems = data.problems[:limit]
    for problem in problems:
        if problem.answer is None:
            raise UsageError(
                f"{data.name}: problem {problem.name!r} has no answer",
                fix="an evaluation needs labelled problems",
            )
    if limit is None:
        return data
    return replace(data, problems=problems, hash=set_hash(problems))


def canonical(name: str) -> str | None:
    """Return the name of a data set however it is spelt, or None for a file.

    Raises `UsageError` for a name that is neither.
    """
    plain = name.casefold().replace("_", "-")
    if plain in NAMES:
        return plain
    path = Path(name)
    if len(path.parts) > 1 or path.suffix or path.exists():
        return None
    near = get_close_matches(plain, NAMES, n=1)
    fix = f"use one of {', '.join(NAMES)}, or a JSONL file"
    if near:
        fix = f"did you mean {near[0]}?"
    raise UsageError(f"no data set is called '{name[:60]}'", fix=fix)


def split_names(name: str) -> tuple[str, ...]:
    """Return the splits of a data set."""
    return BUNDLED.get(name, SPLITS)


def fingerprint(text: str) -> str:
    """Return the hash of a text without white space and compatibility forms.

    Copies of a problem differ in these and nothing else.
    """
    bare = "".join(unicodedata.normalize("NFKC", text).split())
    return hashlib.sha256(bare.encode("utf-8", "surrogatepass")).hexdigest()[
        :16
    ]


def set_hash(problems: Iterable[Problem]) -> str:
    """Return the hash of a set of problems, whatever their order."""
    fingerprints = sorted(fingerprint(problem.text) for problem in problems)
    return hashlib.sha256("\n".join(fingerprints).encode()).hexdigest()[:16]


# Published sets


@cache
def published_sets() -> Mapping[str, PublishedSet]:
    """Return the published data sets by name."""
    content = tomllib.loads((DATA / "sets.toml").read_text(encoding="utf-8"))
    sources = {}
    for name, row in content["sources"].items():
        files = [
            HubFile(row["repo"], row["revision"], path, sha256)
            for path, sha256 in row["files"].items()
        ]
        sources[name] = Source(name, row["local"], tuple(files), row["fields"])
    sets = {}
    for name, row in content["sets"].items():
        splits = {
            split: PublishedSplit(
                sources[part["source"]], part["size"], part["hash"]
            )
            for split, part in row["splits"].items()
        }
        listing = DATA / "splits" / f"{name}.tsv"
        sets[name] = PublishedSet(
            name, row["about"], row["licence"], splits, listing
        )
    return sets


def read_folder(published: PublishedSet, split: str, folder: Path) -> Dataset:
    """Return a split of a published set from a folder of the user's."""
    path = folder / published.splits[split].source.local
    if not path.is_file():
        raise DataError(
            f"{folder} has no {path.name}",
            fix="put it there, or leave data_dir out to download the data",
        )
    problems = [
        name_domain(problem) for problem in load_problems(path, FOLDER_FIELDS)
    ]
    return _take_split(published, split, problems, str(path))


def read_hub(
    published: PublishedSet,
    split: str,
    *,
    cache_dir: Path,
    hub: str,
    watch: Watch | None = None,
) -> Dataset:
    """Return a split as it is published; files in the cache are not downloaded again."""
    source = published.splits[split].source
    problems: list[Problem] = []
    for file in source.files:
        path = fetch(file, cache_dir=cache_dir, hub=hub, watch=watch)
        if path.suffix == ".parquet":
            problems += _read_parquet(path, source.fields)
        else:
            problems += load_problems(path, source.fields)
    tidied = [tidy(problem, source.name) for problem in problems]
    first = source.files[0]
    where = f"{first.repo}@{first.revision[:12]}"
    return _take_split(published, split, tidied, where)


def read_listing(path: Path) -> Listing:
    """Return the listed splits of a data set. A list never holds the problems' texts."""
    found: dict[str, dict[str, str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            split, print_, label = line.split("\t")
            found.setdefault(split, {})[print_] = label
    return found


def name_domain(problem: Problem) -> Problem:
    """Spell the domain our way: `Counting & Probability` as `counting_and_probability`."""
    words = (problem.domain or "").lower().replace("&", "and").split()
    return replace(problem, domain="_".join(words) or None)


def tidy(problem: Problem, source: str) -> Problem:
    """Bring a published row into our form: its label, domain and final answer."""
    problem = name_domain(problem)
    label = problem.label
    if source == "aime-2022-2024":  # the address names the problem
        pattern = r"/(\d{4})_AIME_(I{1,2})_Problems/Problem_(\d{1,2})$"
        if found := re.search(pattern, label):
            label = f"aime-{found[1]}-{found[2]}-{int(found[3]):02}"
    elif source == "aime-2025":
        number = int(label) if label.isdecimal() else 0
        if 1 <= number <= 30:
            contest = "I" if number <= 15 else "II"
            label = f"aime-2025-{contest}-{(number - 1) % 15 + 1:02}"
    elif source == "math-500":
        label = f"math500-{label.removesuffix('.json').replace('/', '-')}"
    elif source == "math-train":
        return replace(problem, answer=_last_boxed(problem.solution or ""))
    elif source.startswith("gsm8k"):  # the answer follows #### in the solution
        solution, _, answer = (problem.answer or "").rpartition("####")
        answer = answer.strip().replace(",", "")
        return replace(
            problem, answer=answer or None, solution=solution.strip() or None
        )
    return replace(problem, label=label)


def _last_boxed(solution: str) -> str | None:
    r"""Return the content of the last `\boxed{...}` of a published solution.

    `\fbox{...}` and `\boxed 5` count too.
    """
    boxes = list(_BOX.finditer(solution))
    if not boxes:
        return None
    last = boxes[-1]
    if last[1] != "{":
        return last[1].rstrip(".,;:!?*)") or None
    depth = 1
    for brace in re.finditer(r"\\.|[{}]", solution[last.end() :], re.DOTALL):
        depth += (brace[0] == "{") - (brace[0] == "}")
        if depth == 0:
            content = solution[last.end() :][: brace.start()]
            return content.strip() or None
    return None


def _take_split(
    published: PublishedSet, split: str, found: Sequence[Problem], source: str
) -> Dataset:
    """Take a split out of the problems of a source, and check that it is whole."""
    what = f"{published.name} {split}"
    part = published.splits[split]
    listing = read_listing(published.listing)
    reworded: list[str] = []
    if split in listing:
        problems, reworded = _choose(found, listing[split], what)
    else:  # what no other list names
        listed = {print_ for entries in listing.values() for print_ in entries}
        problems = [
            each for each in found if fingerprint(each.text) not in listed
        ]
    if len(problems) != part.size:
        raise DataError(
            f"{what}: {len(problems):,} problems in {source}, not {part.size:,}",
            fix="is the source complete?",
        )
    bare = [problem.name for problem in problems if problem.answer is None]
    if bare:
        raise DataError(
            f"{what}: no answer to {_some(bare)} in {source}",
            fix="is it the right file?",
        )
    if (
        split != "train"
    ):  # only a learner may read solutions, of training problems
        problems = [replace(problem, solution=None) for problem in problems]
    digest = set_hash(problems)
    notes = []
    if digest != part.hash:
        which = _some(reworded) if reworded else "one problem or more"
        change = f"(set {digest}, was {part.hash})"
        notes.append(
            f"worded differently than when the split was fixed: {which} {change}"
        )
    name = published.name
    return Dataset(name, split, tuple(problems), digest, source, tuple(notes))


def _choose(
    problems: Sequence[Problem], listed: Mapping[str, str], what: str
) -> tuple[list[Problem], list[str]]:
    """Return the listed problems in the list's order, and the labels of reworded ones.

    A reworded problem is found by its label. A missing one raises `DataError`: a split
    is never silently smaller.
    """
    by_text: dict[str, Problem] = {}
    by_label: dict[str, Problem] = {}
    for problem in problems:
        print_ = fingerprint(problem.text)
        by_text.setdefault(print_, problem)
        if problem.label and print_ not in listed:
            by_label[problem.label] = problem
    chosen: list[Problem] = []
    reworded: list[str] = []
    missing: list[str] = []
    for print_, label in listed.items():
        if print_ not in by_text:
            reworded.append(label)
        match = by_text.get(print_) or by_label.get(label)
        if match is None:
            missing.append(label)
        else:
            chosen.append(replace(match, label=label))
    if missing:
        count = f"{len(missing)} of {len(listed)} problems"
        raise DataError(
            f"{what}: {count} are not in the source: {_some(missing)}",
            fix="is the source complete? else name a folder that has the data "
            "(--set data_dir=DIR)",
        )
    return chosen, reworded


def _some(labels: Sequence[str]) -> str:
    shown = ", ".join(labels[:5])
    return f"{shown} and {len(labels) - 5} more" if len(labels) > 5 else shown


def _read_parquet(path: Path, fields: Mapping[str, str]) -> list[Problem]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise KaceError(
            f"{path.name} is a Parquet file, which needs pyarrow",
            fix="pip install 'kace[data]', or --set data_dir=DIR",
        ) from None
    columns = list(fields.values())
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            absent = [name for name in columns if name not in names]
            if absent:
                there = f"it has {', '.join(names)}"
                what = f"no column {', '.join(absent)}; {there}"
                raise DataError(f"{path}: {what}", fix="is it the right file?")
            if file.metadata.num_rows > MAX_ROWS:
                what = f"more than {MAX_ROWS:,} rows"
                raise DataError(f"{path}: {what}", fix="is it the right file?")
            rows = file.read(columns=columns).to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).split("\n")[0][:120]
        raise DataError(
            f"{path}: cannot be read as Parquet ({reason})",
            fix="remove it, then download it again",
        ) from None
    return [
        problem_of(row, f"{path}: row {number}", fields)
        for number, row in enumerate(rows)
    ]


# Downloads


def cached_path(file: HubFile, cache_dir: Path) -> Path:
    """Return where a published file lies in the cache, downloaded or not."""
    return cache_dir / file.repo.replace("/", "--") / file.revision / file.path


def is_cached(file: HubFile, cache_dir: Path) -> bool:
    """Whether the cache holds a file with the bytes it should have."""
    try:
        with cached_path(file, cache_dir).open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return False
    return file.sha256 in ("", digest)


def fetch(
    file: HubFile, *, cache_dir: Path, hub: str, watch: Watch | None = None
) -> Path:
    """Return the path of a file in the cache, downloaded first where it is missing.

    The file appears whole and checked, or not at all.
    """
    target = cached_path(file, cache_dir)
    if is_cached(file, cache_dir):
        return target
    if watch:
        watch(file)
    write_atomic(target, _download(file, hub))
    return target


def _download(file: HubFile, hub: str) -> bytes:
    from kace.download import Unavailable, fetch_from_hub

    try:
        with TemporaryDirectory() as folder:
            path = Path(folder, "part")
            fetch_from_hub(
                file.repo,
                file.path,
                path,
                hub=hub,
                most=MAX_FILE_BYTES,
                kind="dataset",
                revision=file.revision,
            )
            data = path.read_bytes()
        fault = _find_fault(file, data)
        if fault:
            raise Unavailable(f"refused: {fault}")
    except (Unavailable, OSError) as error:
        url = f"{hub.rstrip('/')}/datasets/{file.repo}/resolve/{file.revision}/{file.path}"
        raise KaceError(
            f"could not get {public_url(url)}: {one_line(str(error))}",
            fix="check the connection, set HF_ENDPOINT to a mirror, or name a folder "
            "with the data: --set data_dir=DIR",
        ) from None
    return data


def _find_fault(file: HubFile, data: bytes) -> str:
    """Return how the bytes differ from the published ones, or an empty text."""
    digest = hashlib.sha256(data).hexdigest()
    if file.sha256 not in ("", digest):
        return f"sha256 is {digest[:12]}..., not {file.sha256[:12]}..."
    whole = data.startswith(PARQUET) and data.endswith(PARQUET)
    # A proxy before the hub may reply with a page of its own.
    if file.path.endswith(".parquet") and not whole:
        return "not a Parquet file"
    return ""


# Problems that appear twice


class Finding(NamedTuple):
    """Two problems that are one, and the sets they appear in."""

    sets: tuple[str, str]
    ours: Problem
    theirs: Problem


class _Shape(NamedTuple):
    """What two wordings of one problem have in common."""

    numbers: tuple[str, ...]
    sequences: frozenset[str]

    @classmethod
    def of(cls, problem: Problem) -> _Shape:
        words = _WORD.findall(problem.text.casefold())
        numbers = sorted(word for word in words if word[0].isdigit())
        last = max(1, len(words) - SEQUENCE + 1)
        starts = range(last)
        sequences = frozenset(" ".join(words[i : i + SEQUENCE]) for i in starts)
        return cls(tuple(numbers), sequences)

    def matches(self, other: _Shape) -> bool:
        """Whether the sequences are nearly the same; numbers must be equal already."""
        least = min(len(self.sequences), len(other.sequences))
        return len(self.sequences & other.sequences) >= SHARED * least


def overlaps(
    ours: Iterable[Problem], theirs: Iterable[Problem]
) -> list[tuple[Problem, Problem]]:
    """Return every problem of ours that theirs holds too, with that one.

    Problems of one family with other numbers are different problems.
    """
    index: defaultdict[tuple[str, ...], list[tuple[Problem, _Shape]]] = (
        defaultdict(list)
    )
    for problem in theirs:
        shape = _Shape.of(problem)
        index[shape.numbers].append((problem, shape))
    found = []
    for problem in ours:
        shape = _Shape.of(problem)
        for twin, other in index[shape.numbers]:
            if shape.matches(other):
                found.append((problem, twin))
                break
    return found


def duplicates(problems: Sequence[Problem]) -> list[tuple[Problem, Problem]]:
    """Return each problem that a later one repeats, with that one."""
    groups: defaultdict[tuple[str, ...], list[Problem]] = defaultdict(list)
    for problem in problems:  # only problems with the same numbers can be one
        groups[_Shape.of(problem).numbers].append(problem)
    found = []
    for group in groups.values():
        for place, problem in enumerate(group):
            found += overlaps([problem], group[place + 1 :])
    return found


def find_doubles(sets: Mapping[str, Sequence[Problem]]) -> list[Finding]:
    """Return every problem that appears twice in one set, or in two sets."""
    found = []
    for name, problems in sets.items():
        for pair in duplicates(problems):
            found.append(Finding((name, name), *pair))
    for one, other in combinations(sets, 2):
        for pair in overlaps(sets[one], sets[other]):
            found.append(Finding((one, other), *pair))
    return found
