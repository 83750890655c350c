"""The published data sets kace knows by name: where each lies, and how its files are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kace.answers.extract import last_boxed
from kace.datasets.starter import SPLITS, Split
from kace.models.hub import HubFile
from kace.problems import Problem

Tidy = Callable[
    [Problem], Problem
]  # into our form: a final answer out of a worked one, a label out of an address


@dataclass(frozen=True, slots=True)
class ProblemPool:
    """Problems published together, which splits are taken from."""

    local: str  # the file that holds them in the user's folder
    files: tuple[HubFile, ...]
    fields: Mapping[
        str, str
    ]  # our names of a problem's parts to those of the published files, all that are read
    tidy: Tidy


@dataclass(frozen=True, slots=True)
class PublishedSplit:
    """The problems of a pool that the split's list names, or, without a list, those no other list names."""

    pool: ProblemPool
    size: int
    hash: str  # of the texts the split was fixed with, by `set_hash`


@dataclass(frozen=True, slots=True)
class Published:
    """A data set with its splits."""

    name: str
    about: str
    licence: str  # as its publishers state it; contest problems stay their organisers' property
    parts: Mapping[Split, PublishedSplit]
    listing: Path  # the list that fixes the splits

    @property
    def files(self) -> tuple[HubFile, ...]:
        """Every published file, each once."""
        return tuple(
            dict.fromkeys(
                file for part in self.parts.values() for file in part.pool.files
            )
        )


def named_domain(problem: Problem) -> Problem:
    """The domain in our spelling: `Counting & Probability` is `counting_and_probability`."""
    words = (problem.domain or "").lower().replace("&", "and").split()
    return replace(problem, domain="_".join(words) or None)


def _prior_aime(problem: Problem) -> Problem:
    """The published rows are numbered; the address of each says which problem it is."""
    found = re.search(
        r"/(\d{4})_AIME_(I{1,2})_Problems/Problem_(\d{1,2})$", problem.label
    )
    return (
        replace(problem, label=f"aime-{found[1]}-{found[2]}-{int(found[3]):02}")
        if found
        else problem
    )


def _aime_2025(problem: Problem) -> Problem:
    number = int(problem.label) if problem.label.isdecimal() else 0
    if not 1 <= number <= 30:
        return problem
    return replace(
        problem,
        label=f"aime-2025-{'I' if number <= 15 else 'II'}-{(number - 1) % 15 + 1:02}",
    )


def _math_500(problem: Problem) -> Problem:
    return replace(
        named_domain(problem),
        label=f"math500-{problem.label.removesuffix('.json').replace('/', '-')}",
    )


def _gsm8k(problem: Problem) -> Problem:
    """The answer follows `####` at the end of the solution."""
    solution, _, answer = (problem.answer or "").rpartition("####")
    return replace(
        problem,
        answer=answer.strip().replace(",", "") or None,
        solution=solution.strip() or None,
    )


def _pool(
    local: str,
    repo: str,
    files: Mapping[str, str | None],
    fields: Mapping[str, str],
    tidy: Tidy,
) -> ProblemPool:
    name, _, revision = repo.partition("@")
    return ProblemPool(
        local,
        tuple(HubFile(name, revision, *file) for file in files.items()),
        fields,
        tidy,
    )


_PARQUET = "train-00000-of-00001.parquet"
_USUAL = {
    "problem": "problem",
    "answer": "answer",
    "id": "unique_id",
    "domain": "subject",
}
_PRIOR_AIME = _pool(
    "aime_2022_2024.jsonl",
    "AI-MO/aimo-validation-aime@13f9e12f613e720c2a2b2f345dd04b998a29494d",
    {
        f"data/{_PARQUET}": "025484a99fea498e7d0c3b0ee42afcbec0176405c19c5dbf557b9f6ca6445675"
    },
    {"problem": "problem", "answer": "answer", "id": "url", "solution": "solution"},
    _prior_aime,
)
_AIME_2025 = _pool(
    "aime_2025.jsonl",
    "MathArena/aime_2025@c94da77eb22bbd6439e62a323bec18493a421302",
    {
        f"data/{_PARQUET}": "9f9066ff48ad2e31f9bf1b1ac6d5e80693195f987985f2859f89dd25ffa51c2d"
    },
    {"problem": "problem", "answer": "answer", "id": "problem_idx"},
    _aime_2025,
)
_MATH_SUBJECTS = "algebra counting_and_probability geometry intermediate_algebra number_theory prealgebra precalculus"
_MATH_TRAIN = _pool(
    "math_l45_train.jsonl",
    "EleutherAI/hendrycks_math@21a5633873b6a120296cce3e2df9d5550074f4a3",
    {f"{subject}/{_PARQUET}": None for subject in _MATH_SUBJECTS.split()},
    {"problem": "problem", "domain": "type", "solution": "solution"},
    lambda problem: replace(
        named_domain(problem), answer=last_boxed(problem.solution or "")
    ),
)
_MATH_500 = _pool(
    "math500.jsonl",
    "HuggingFaceH4/MATH-500@6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be",
    {"test.jsonl": "35dc41080a3680858b27fa7e0533d2d547825316fc5dafe5d316f4ccc5a06132"},
    _USUAL,
    _math_500,
)
_OLYMMATH = _pool(
    "olymmath_en_integer97.jsonl",
    "RUC-AIBOX/OlymMATH@2c6532ea2cf929ac1c421532af5951553eaee727",
    {
        "data/OlymMATH-EN-EASY.jsonl": "1d96903b3017abd80388005ca9ad68c8074540ad6f41ee7cd92ac79cbcf5bc0a",
        "data/OlymMATH-EN-HARD.jsonl": "f43b48f5569a5e6d3068e110f8ce6c5ec641ba4d6ba06d9a91a1c944526b7be4",
    },
    _USUAL,
    named_domain,
)
_GSM8K_TRAIN, _GSM8K_TEST = (
    _pool(
        f"gsm8k_{split}.jsonl",
        "openai/gsm8k@740312add88f781978c0658806c59bc2815b9866",
        {f"main/{split}-00000-of-00001.parquet": sha256},
        {"problem": "question", "answer": "answer"},
        _gsm8k,
    )
    for split, sha256 in (
        ("train", "ea82612ea9582142387730c793eb67d3b12849002bc0b7fa6f8efafa7351419d"),
        ("test", "ee7b8da9e381df27b9e3f7758a159ab2bdaa4dbaa910546cbbc47e0cb44e4f59"),
    )
)


def _published(
    name: str, about: str, licence: str, *parts: tuple[ProblemPool, int, str]
) -> Published:
    splits = {
        split: PublishedSplit(*part) for split, part in zip(SPLITS, parts, strict=True)
    }
    return Published(
        name, about, licence, splits, Path(__file__).parent / "splits" / f"{name}.tsv"
    )


PUBLISHED: tuple[Published, ...] = (
    _published(
        "aime25",
        "AIME 2022-2024 to learn from, AIME 2025 to test",
        "Apache-2.0 (2022-2024), CC BY-NC-SA 4.0 (2025)",
        (_PRIOR_AIME, 45, "7747c86eb493dfe9"),
        (_PRIOR_AIME, 45, "42635674aa2e2482"),
        (_AIME_2025, 30, "a82f4284e7c24c86"),
    ),
    _published(
        "math-hard",
        "MATH levels 4-5, spread over the seven subjects",
        "MIT",
        (_MATH_TRAIN, 50, "c639ebe563c5afdb"),
        (_MATH_TRAIN, 50, "9fe52041b7a44ac0"),
        (_MATH_500, 50, "d374b43b57a0a076"),
    ),
    _published(
        "olymmath",
        "OlymMATH-EN problems with an integer as answer",
        "MIT",
        (_OLYMMATH, 30, "b13c3e2c6dc1aa28"),
        (_OLYMMATH, 40, "a583a141ef63424e"),
        (_OLYMMATH, 27, "2d879cb730020959"),
    ),
    _published(
        "gsm8k",
        "grade-school word problems",
        "MIT",
        (_GSM8K_TRAIN, 6973, "70e5900c8e04cb80"),
        (_GSM8K_TRAIN, 500, "d33fe2bbc20b0abc"),
        (_GSM8K_TEST, 1319, "f7f873e9666aff11"),
    ),
)
"""Every set with its train, validation and test split."""
