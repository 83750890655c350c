"""How the split lists were made.

    python -m problems.splits FOLDER

writes them again from the published problems in a folder.

Where no published split exists, problems are drawn by the hash of a seed and their text, so that a draw depends on
neither the order of a file nor a random number generator.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kace.files import DATA, write_atomic
from kace.problems import fingerprint

SEED = "kace-1"


class ListedProblem(NamedTuple):
    """One problem of a list: never its text."""

    fingerprint: str
    label: str


Listing = Mapping[str, tuple[ListedProblem, ...]]


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a draw may depend on."""

    entry: ListedProblem
    stratum: str
    level: int
    given: str
    """The split its publishers put it in, where they did."""
    marked: bool
    """Whether the data holds it twice, or it is an AIME problem inside MATH."""


def draw_all(folder: Path) -> Mapping[str, str]:
    """Return the list of every data set, as its file holds it."""
    makers = {"aime25": _aime, "math-hard": _math, "olymmath": _olymmath, "gsm8k": _gsm8k}
    return {name: maker(folder) for name, maker in makers.items()}


def listing_text(listing: Listing, why: Sequence[str]) -> str:
    """Return a list as its file holds it, under the lines that say how it was made."""
    rows = ("\t".join((split, *entry)) for split, entries in listing.items() for entry in entries)
    return "".join(f"{line}\n" for line in (*(f"# {line}" for line in why), *rows))


def _aime(folder: Path) -> str:
    prior = _candidates(folder / "aime_2022_2024.jsonl")
    test = _candidates(folder / "aime_2025.jsonl")
    listing: Listing = {
        "train": tuple(c.entry for c in prior if c.given == "train"),
        "validation": tuple(c.entry for c in prior if c.given == "val"),
        "test": tuple(c.entry for c in test),
    }
    why = (
        "AIME 2022-2024 in the halves that GEPA's published example shuffles it into (random.Random(0) over the rows",
        "of AI-MO/aimo-validation-aime); the test split is AIME 2025, all of it.",
    )
    return listing_text(listing, why)


def _math(folder: Path) -> str:
    train = [c for c in _candidates(folder / "math_l45_train.jsonl") if not c.marked]
    test = [c for c in _candidates(folder / "math500.jsonl") if c.level >= 4]
    first, second = _drawn(train, (50, 50), _evenly)
    (third,) = _drawn(test, (50,), _evenly)
    why = (
        "Levels 4-5 of MATH, evenly over the seven subjects (the one left over goes to the subject with most of them),",
        f"each subject in the order of sha256('{SEED}:' + fingerprint). Train and validation are from MATH's training",
        "half without AIME problems and doubles, the test split is from MATH-500.",
    )
    return listing_text({"train": first, "validation": second, "test": third}, why)


def _olymmath(folder: Path) -> str:
    rows = _candidates(folder / "olymmath_en_integer97.jsonl")
    train, validation, test = _drawn(rows, (30, 40, 27), _in_proportion)
    why = (
        "The 97 problems of OlymMATH-EN whose answer is an integer; easy and hard ones in proportion,",
        f"each in the order of sha256('{SEED}:' + fingerprint).",
    )
    return listing_text({"train": train, "validation": validation, "test": test}, why)


def _gsm8k(folder: Path) -> str:
    (validation,) = _drawn(_candidates(folder / "gsm8k_train.jsonl"), (500,), _in_proportion)
    why = (
        f"500 of the published training half, the first in the order of sha256('{SEED}:' + fingerprint).",
        "The training split is the rest of that half, the test split is the published one.",
    )
    return listing_text({"validation": validation}, why)


Shares = Callable[[Mapping[str, int], int], Mapping[str, int]]
"""How many of each stratum make up a split of a given size."""


def _evenly(pool: Mapping[str, int], size: int) -> Mapping[str, int]:
    largest_first = sorted(pool, key=lambda name: (-pool[name], name))
    each, over = divmod(size, len(pool))
    return {name: each + (place < over) for place, name in enumerate(largest_first)}


def _in_proportion(pool: Mapping[str, int], size: int) -> Mapping[str, int]:
    """Share by largest remainder; a tie goes to the first by name."""
    total = sum(pool.values())
    shares = {name: divmod(count * size, total) for name, count in pool.items()}
    over = size - sum(whole for whole, _ in shares.values())
    first = sorted(shares, key=lambda name: (-shares[name][1], name))[:over]
    return {name: whole + (name in first) for name, (whole, _) in shares.items()}


def _drawn(candidates: Iterable[Candidate], sizes: Sequence[int], shares: Shares) -> list[tuple[ListedProblem, ...]]:
    """Return disjoint splits of these sizes, one after the other from what is left."""
    queues: defaultdict[str, list[Candidate]] = defaultdict(list)
    for candidate in sorted(candidates, key=_order):
        queues[candidate.stratum].append(candidate)
    drawn = []
    for size in sizes:
        share = shares({name: len(queue) for name, queue in sorted(queues.items())}, size)
        taken = [queues[name].pop(0).entry for name, count in share.items() for _ in range(count)]
        drawn.append(tuple(sorted(taken, key=lambda entry: entry.label)))
    return drawn


def _order(candidate: Candidate) -> str:
    return hashlib.sha256(f"{SEED}:{candidate.entry.fingerprint}".encode()).hexdigest()


def _candidates(path: Path) -> list[Candidate]:
    rows = (json.loads(line) for line in path.read_bytes().splitlines())
    return [
        Candidate(
            ListedProblem(fingerprint(row["problem"]), row["id"]),
            stratum=str(row["level"]) if path.name.startswith("olymmath") else row.get("subject", ""),
            level=row["level"] if isinstance(row.get("level"), int) else 0,
            given=row.get("gepa_split", ""),
            marked=bool(row.get("aime_id") or row.get("dup_of")),
        )
        for row in rows
    ]


if __name__ == "__main__":
    drawn = draw_all(Path(sys.argv[1]))
    for name, text in drawn.items():
        write_atomic(DATA / "splits" / f"{name}.tsv", text)
