"""Problems by name (the starter set, published sets with fixed splits, any JSONL file), and those that appear twice."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import combinations, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kace.datasets.catalog import PUBLISHED, Published, named_domain
from kace.datasets.starter import SPLITS, Split, load_split
from kace.datasets.techniques import generate as techniques
from kace.errors import DataError, KaceError, UsageError
from kace.models.hub import Watch, fetch
from kace.problems import Problem, load_problems, problem_of

if TYPE_CHECKING:
    from kace.config import Config


class Bundled(NamedTuple):
    """A set that comes with the package."""

    splits: tuple[Split, ...]
    problems: Callable[[Split], tuple[Problem, ...]]


BUNDLED: Mapping[str, Bundled] = {
    "starter": Bundled(SPLITS, load_split),
    "techniques": Bundled(techniques.SPLITS, techniques.technique_problems),
}
NAMES = (*BUNDLED, *(published.name for published in PUBLISHED))
ALL = "all"  # the split of a file, which has none
MAX_ROWS = 100_000
WORDS = 3  # length of the word sequences that are compared
SHARED = 0.7  # part of a problem's sequences that another must share to count as the same problem reworded

_WORD = re.compile(r"[^\W\d_]+|\d+(?:[.,]\d+)*")
_LOCAL = {
    "problem": "problem",
    "answer": "answer",
    "id": "id",
    "domain": "subject",
}  # fields of a folder's JSONL files


@dataclass(frozen=True, slots=True)
class Dataset:
    """The problems of one split, and where they came from."""

    name: str
    split: str
    problems: tuple[Problem, ...]
    hash: str  # of the texts without white space, whatever their order: the same for every copy of the same problems
    source: str  # in words for people
    notes: tuple[
        str, ...
    ] = ()  # what is not as it was when the split was fixed; empty when all is


class ListedProblem(NamedTuple):
    """One problem in the list that fixes a split: never its text."""

    fingerprint: str
    label: str


Listing = Mapping[Split, tuple[ListedProblem, ...]]


def load(
    name_or_path: str | Path,
    split: str = "test",
    *,
    data_dir: Path | None = None,
    cache: Path,
    hub: str,
    fields: Mapping[str, str] | None = None,
    watch: Watch = lambda file: None,
) -> Dataset:
    """A split of a named data set, or all of a JSONL file, whose `fields` are those of `load_problems`.

    A published data set is read from `data_dir` when one is given, else from `cache`, fetched from `hub` first where
    it is not there. Raises `KaceError` when problems are missing; one in another wording is taken and noted.
    """
    name = canonical(str(name_or_path))
    if name is None:
        problems = load_problems(Path(name_or_path), fields)
        return Dataset(
            Path(name_or_path).name,
            ALL,
            problems,
            set_hash(problems),
            str(name_or_path),
        )
    if fields:
        raise UsageError(
            f"a field map is for files; '{name}' has its own", fix="leave it out"
        )
    splits = split_names(name)
    wanted = next((known for known in splits if known == split), None)
    if wanted is None:
        raise UsageError(
            f"{name} has no split '{split[:40]}'",
            fix=f"choose one of {', '.join(splits)}",
        )
    if name in BUNDLED:
        problems = BUNDLED[name].problems(wanted)
        return Dataset(name, wanted, problems, set_hash(problems), "bundled")
    published = next(known for known in PUBLISHED if known.name == name)
    if data_dir is not None:
        return from_folder(published, wanted, data_dir)
    return from_hub(published, wanted, cache=cache, hub=hub, watch=watch)


def load_configured(
    name: str | Path, split: str, config: Config, watch: Watch = lambda file: None
) -> Dataset:
    """The same, from where a configuration says it is."""
    fields = None if canonical(str(name)) else config.fields
    cache = config.cache_dir / "data"
    return load(
        name,
        split,
        data_dir=config.data_dir,
        cache=cache,
        hub=config.hub,
        fields=fields,
        watch=watch,
    )


def labelled(data: Dataset, limit: int | None = None) -> Dataset:
    """The first problems of a data set, or all, for an evaluation. Raises `UsageError` where one has no answer."""
    problems = data.problems[:limit]
    if bare := next((problem for problem in problems if problem.answer is None), None):
        raise UsageError(
            f"{data.name}: problem {bare.name!r} has no answer",
            fix="an evaluation needs labelled problems",
        )
    return replace(data, problems=problems, hash=set_hash(problems)) if limit else data


def from_folder(published: Published, split: Split, folder: Path) -> Dataset:
    """A split, out of a folder of the user's."""
    path = folder / published.parts[split].pool.local
    if not path.is_file():
        raise DataError(
            f"{folder} has no {path.name}",
            fix="put it there, or leave data_dir out to fetch the data",
        )
    return _split_of(
        published,
        split,
        [named_domain(row) for row in load_problems(path, _LOCAL)],
        str(path),
    )


def from_hub(
    published: Published,
    split: Split,
    *,
    cache: Path,
    hub: str,
    watch: Watch = lambda file: None,
) -> Dataset:
    """A split, as it is published; what the cache has is not fetched again."""
    pool = published.parts[split].pool
    paths = [fetch(file, cache=cache, hub=hub, watch=watch) for file in pool.files]
    readers = [
        _parquet if path.suffix == ".parquet" else load_problems for path in paths
    ]
    found = [
        pool.tidy(row)
        for path, read in zip(paths, readers, strict=True)
        for row in read(path, pool.fields)
    ]
    return _split_of(
        published, split, found, f"{pool.files[0].repo}@{pool.files[0].revision[:12]}"
    )


def canonical(name: str) -> str | None:
    """The name of a data set however it is spelt, or None for a file. Raises `UsageError` for what is neither."""
    plain = name.casefold().replace("_", "-")
    if plain in NAMES:
        return plain
    path = Path(name)
    if len(path.parts) > 1 or path.suffix or path.exists():
        return None
    near = get_close_matches(plain, NAMES, n=1)
    fix = (
        f"did you mean {near[0]}?"
        if near
        else f"use one of {', '.join(NAMES)}, or a JSONL file"
    )
    raise UsageError(f"no data set is called '{name[:60]}'", fix=fix)


def split_names(name: str) -> tuple[Split, ...]:
    """The splits of a data set."""
    return BUNDLED[name].splits if name in BUNDLED else SPLITS


def fingerprint(text: str) -> str:
    """The hash of a text without its white space and compatibility forms: copies differ in these and nothing else."""
    bare = "".join(unicodedata.normalize("NFKC", text).split())
    return hashlib.sha256(bare.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def set_hash(problems: Iterable[Problem]) -> str:
    """The hash of a set of problems, whatever their order."""
    fingerprints = sorted(fingerprint(problem.text) for problem in problems)
    return hashlib.sha256("\n".join(fingerprints).encode()).hexdigest()[:16]


def read_listing(path: Path) -> Listing:
    """The listed splits of a data set."""
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines if line and not line.startswith("#"))
    entries = [(split, ListedProblem(print_, label)) for split, print_, label in rows]
    found = (
        (name, tuple(entry for split, entry in entries if split == name))
        for name in SPLITS
    )
    return {name: listed for name, listed in found if listed}


def _split_of(
    published: Published, split: Split, found: Sequence[Problem], source: str
) -> Dataset:
    what = f"{published.name} {split}"
    part = published.parts[split]
    listing = read_listing(published.listing)
    reworded = list[str]()
    if split in listing:
        problems, reworded = _choose(found, listing[split], what)
    else:
        elsewhere = {
            entry.fingerprint for entries in listing.values() for entry in entries
        }
        problems = [
            problem for problem in found if fingerprint(problem.text) not in elsewhere
        ]
    if len(problems) != part.size:
        counts = f"{len(problems):,} problems in {source}, not {part.size:,}"
        raise DataError(f"{what}: {counts}", fix="is the source complete?")
    if bare := [problem.name for problem in problems if problem.answer is None]:
        raise DataError(
            f"{what}: no answer to {_some(bare)} in {source}",
            fix="is it the right file?",
        )
    if (
        split != "train"
    ):  # only a learner may see how a problem is solved, and only of what it learns from
        problems = [replace(problem, solution=None) for problem in problems]
    digest = set_hash(problems)
    which = _some(reworded) if reworded else "one problem or more"
    note = f"worded differently than when the split was fixed: {which} (set {digest}, was {part.hash})"
    return Dataset(
        published.name,
        split,
        tuple(problems),
        digest,
        source,
        () if digest == part.hash else (note,),
    )


def _choose(
    problems: Sequence[Problem], entries: Sequence[ListedProblem], what: str
) -> tuple[list[Problem], list[str]]:
    """The problems that a list names, in its order and under its labels; and the labels of reworded ones.

    A reworded problem is known by its label. One that cannot be found is an error: a split is never silently smaller.
    """
    by_text = {fingerprint(problem.text): problem for problem in reversed(problems)}
    wanted = {entry.fingerprint for entry in entries}
    by_label = {
        p.label: p for p in problems if p.label and fingerprint(p.text) not in wanted
    }
    found = {
        entry.label: by_text.get(entry.fingerprint) or by_label.get(entry.label)
        for entry in entries
    }
    if missing := [label for label, problem in found.items() if problem is None]:
        gone = f"{len(missing)} of {len(entries)} problems are not in the source: {_some(missing)}"
        fix = "is the source complete? else name a folder that has the data (--set data_dir=DIR)"
        raise DataError(f"{what}: {gone}", fix=fix)
    chosen = [
        replace(problem, label=label) for label, problem in found.items() if problem
    ]
    return chosen, [
        entry.label for entry in entries if entry.fingerprint not in by_text
    ]


def _some(labels: Sequence[str]) -> str:
    return ", ".join(labels[:5]) + (
        f" and {len(labels) - 5} more" if len(labels) > 5 else ""
    )


def _parquet(path: Path, fields: Mapping[str, str]) -> Sequence[Problem]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        fix = "pip install 'kace[data]', or --set data_dir=DIR"
        raise KaceError(
            f"{path.name} is a Parquet file, which needs pyarrow", fix=fix
        ) from None
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            what = (
                f"more than {MAX_ROWS:,} rows"
                if file.metadata.num_rows > MAX_ROWS
                else ""
            )
            if absent := [name for name in fields.values() if name not in names]:
                what = f"no column {', '.join(absent)}; it has {', '.join(names)}"
            if what:
                raise DataError(f"{path}: {what}", fix="is it the right file?")
            rows: list[Mapping[str, object]] = file.read(
                columns=list(fields.values())
            ).to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).split("\n")[0][:120]
        raise DataError(
            f"{path}: cannot be read as Parquet ({reason})",
            fix="remove it, then fetch it again",
        ) from None
    return [
        problem_of(row, f"{path}: row {number}", fields)
        for number, row in enumerate(rows)
    ]


class Finding(NamedTuple):
    """Two problems that are one, and the sets they appear in."""

    sets: tuple[str, str]
    ours: Problem
    theirs: Problem


def overlaps(
    ours: Iterable[Problem], theirs: Iterable[Problem]
) -> list[tuple[Problem, Problem]]:
    """Every problem of ours that theirs holds too. Problems of one family with other numbers are different problems."""
    index: defaultdict[tuple[str, ...], list[tuple[Problem, frozenset[str]]]] = (
        defaultdict(list)
    )
    for problem in theirs:
        numbers, sequences = _shape(problem)
        index[numbers].append((problem, sequences))
    found = []
    for problem in ours:
        numbers, mine = _shape(problem)
        alike = (
            twin
            for twin, its in index[numbers]
            if len(mine & its) >= SHARED * min(len(mine), len(its))
        )
        found += [(problem, twin) for twin in islice(alike, 1)]
    return found


def find_doubles(sets: Mapping[str, Sequence[Problem]]) -> list[Finding]:
    """Every problem that appears twice in one set, or in two sets."""
    found = [
        Finding((name, name), *pair)
        for name, problems in sets.items()
        for pair in duplicates(problems)
    ]
    for one, other in combinations(sets, 2):
        found += [
            Finding((one, other), *pair) for pair in overlaps(sets[one], sets[other])
        ]
    return found


def duplicates(problems: Sequence[Problem]) -> list[tuple[Problem, Problem]]:
    """Each problem that a later one repeats, with that one."""
    groups: defaultdict[tuple[str, ...], list[Problem]] = defaultdict(list)
    for problem in problems:  # only problems with the same numbers can be one
        groups[_shape(problem)[0]].append(problem)
    placed = (
        (group, place) for group in groups.values() for place in range(len(group))
    )
    return [
        pair
        for group, place in placed
        for pair in overlaps([group[place]], group[place + 1 :])
    ]


def _shape(problem: Problem) -> tuple[tuple[str, ...], frozenset[str]]:
    words = _WORD.findall(problem.text.casefold())
    numbers = tuple(sorted(word for word in words if word[0].isdigit()))
    last = max(1, len(words) - WORDS + 1)
    return numbers, frozenset(" ".join(words[i : i + WORDS]) for i in range(last))
