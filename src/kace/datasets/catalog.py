"""The published data sets kace knows by name: where each lies, and how its files are read.

Each is published on a hub at a fixed commit; the same problems may lie in a folder of the user's, as JSONL files with
the names given here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from kace.answers.extract import last_boxed
from kace.datasets.hub import HubFile
from kace.datasets.listing import listing_path
from kace.datasets.reading import Columns, Tidy
from kace.datasets.starter import Split
from kace.problem import Problem

LOCAL = Columns(domain="subject", solution="solution")
"""The columns of the JSONL files of a folder."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Problems published together, which splits are taken from."""

    local: str
    """The file that holds them in the user's folder."""
    files: tuple[HubFile, ...]
    columns: Columns
    """Of the published files."""
    tidy: Tidy


@dataclass(frozen=True, slots=True)
class Part:
    """A split: the problems of a pool that its list names, or, without a list, those no other list names."""

    pool: Pool
    size: int
    hash: str
    """Of the texts the split was fixed with, by `set_hash`."""


@dataclass(frozen=True, slots=True)
class Published:
    """A data set with its splits."""

    name: str
    about: str
    licence: str
    """As its publishers state it; contest problems stay their organisers' property."""
    parts: Mapping[Split, Part]
    listing: Path
    """The list that fixes the splits."""

    @property
    def files(self) -> tuple[HubFile, ...]:
        """Every published file, each once."""
        return tuple(dict.fromkeys(file for part in self.parts.values() for file in part.pool.files))


def in_words(subject: str) -> str:
    """A subject as a domain is written: `Counting & Probability` is `counting_and_probability`."""
    return "_".join(subject.lower().replace("&", "and").split())


def named_domain(problem: Problem) -> Problem:
    """The domain in our spelling."""
    return replace(problem, domain=in_words(problem.domain) if problem.domain else None)


def _prior_aime(problem: Problem) -> Problem:
    """The published rows are numbered; the address of each says which problem it is."""
    found = re.search(r"/(\d{4})_AIME_(I{1,2})_Problems/Problem_(\d{1,2})$", problem.label)
    label = f"aime-{found[1]}-{found[2]}-{int(found[3]):02}" if found else problem.label
    return replace(problem, label=label)


def _aime_2025(problem: Problem) -> Problem:
    number = int(problem.label) if problem.label.isdecimal() else 0
    if not 1 <= number <= 30:
        return problem
    return replace(problem, label=f"aime-2025-{'I' if number <= 15 else 'II'}-{(number - 1) % 15 + 1:02}")


def _math_test(problem: Problem) -> Problem:
    """`test/algebra/24.json` is the file of the original."""
    return named_domain(
        replace(problem, label=f"math500-{problem.label.removesuffix('.json').replace('/', '-')}", solution=None)
    )


def _math_train(problem: Problem) -> Problem:
    """The answer is what the solution boxes."""
    return named_domain(replace(problem, answer=last_boxed(problem.solution or "")))


def _gsm8k(problem: Problem) -> Problem:
    """The answer follows `####` at the end of the solution."""
    solution, _, answer = (problem.answer or "").rpartition("####")
    return replace(problem, answer=answer.strip().replace(",", "") or None, solution=solution.strip() or None)


_PRIOR_AIME = Pool(
    local="aime_2022_2024.jsonl",
    files=(
        HubFile(
            "AI-MO/aimo-validation-aime",
            "13f9e12f613e720c2a2b2f345dd04b998a29494d",
            "data/train-00000-of-00001.parquet",
            "025484a99fea498e7d0c3b0ee42afcbec0176405c19c5dbf557b9f6ca6445675",
        ),
    ),
    columns=Columns(id="url", solution="solution"),
    tidy=_prior_aime,
)
_AIME_2025 = Pool(
    local="aime_2025.jsonl",
    files=(
        HubFile(
            "MathArena/aime_2025",
            "c94da77eb22bbd6439e62a323bec18493a421302",
            "data/train-00000-of-00001.parquet",
            "9f9066ff48ad2e31f9bf1b1ac6d5e80693195f987985f2859f89dd25ffa51c2d",
        ),
    ),
    columns=Columns(id="problem_idx"),
    tidy=_aime_2025,
)
_MATH_SUBJECTS = (
    *("algebra", "counting_and_probability", "geometry", "intermediate_algebra"),
    *("number_theory", "prealgebra", "precalculus"),
)
_MATH_TRAIN = Pool(
    local="math_l45_train.jsonl",
    files=tuple(
        HubFile(
            "EleutherAI/hendrycks_math",
            "21a5633873b6a120296cce3e2df9d5550074f4a3",
            f"{subject}/train-00000-of-00001.parquet",
        )
        for subject in _MATH_SUBJECTS
    ),
    columns=Columns(answer="", id="", domain="type", solution="solution"),
    tidy=_math_train,
)
_MATH_500 = Pool(
    local="math500.jsonl",
    files=(
        HubFile(
            "HuggingFaceH4/MATH-500",
            "6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be",
            "test.jsonl",
            "35dc41080a3680858b27fa7e0533d2d547825316fc5dafe5d316f4ccc5a06132",
        ),
    ),
    columns=Columns(id="unique_id", domain="subject"),
    tidy=_math_test,
)
_OLYMMATH = Pool(
    local="olymmath_en_integer97.jsonl",
    files=tuple(
        HubFile(
            "RUC-AIBOX/OlymMATH",
            "2c6532ea2cf929ac1c421532af5951553eaee727",
            f"data/OlymMATH-EN-{level}.jsonl",
            sha256,
        )
        for level, sha256 in (
            ("EASY", "1d96903b3017abd80388005ca9ad68c8074540ad6f41ee7cd92ac79cbcf5bc0a"),
            ("HARD", "f43b48f5569a5e6d3068e110f8ce6c5ec641ba4d6ba06d9a91a1c944526b7be4"),
        )
    ),
    columns=Columns(id="unique_id", domain="subject"),
    tidy=named_domain,
)
_GSM8K_TRAIN, _GSM8K_TEST = (
    Pool(
        local=f"gsm8k_{split}.jsonl",
        files=(
            HubFile(
                "openai/gsm8k",
                "740312add88f781978c0658806c59bc2815b9866",
                f"main/{split}-00000-of-00001.parquet",
                sha256,
            ),
        ),
        columns=Columns(problem="question", id=""),
        tidy=_gsm8k,
    )
    for split, sha256 in (
        ("train", "ea82612ea9582142387730c793eb67d3b12849002bc0b7fa6f8efafa7351419d"),
        ("test", "ee7b8da9e381df27b9e3f7758a159ab2bdaa4dbaa910546cbbc47e0cb44e4f59"),
    )
)


def _parts(**parts: Part) -> Mapping[Split, Part]:
    return MappingProxyType({"train": parts["train"], "validation": parts["validation"], "test": parts["test"]})


PUBLISHED: tuple[Published, ...] = (
    Published(
        "aime25",
        "AIME 2022-2024 to learn from, AIME 2025 to test",
        "Apache-2.0 (2022-2024), CC BY-NC-SA 4.0 (2025)",
        _parts(
            train=Part(_PRIOR_AIME, 45, "7747c86eb493dfe9"),
            validation=Part(_PRIOR_AIME, 45, "42635674aa2e2482"),
            test=Part(_AIME_2025, 30, "a82f4284e7c24c86"),
        ),
        listing_path("aime25"),
    ),
    Published(
        "math_hard",
        "MATH levels 4-5, spread over the seven subjects",
        "MIT",
        _parts(
            train=Part(_MATH_TRAIN, 50, "c639ebe563c5afdb"),
            validation=Part(_MATH_TRAIN, 50, "9fe52041b7a44ac0"),
            test=Part(_MATH_500, 50, "d374b43b57a0a076"),
        ),
        listing_path("math_hard"),
    ),
    Published(
        "olymmath",
        "OlymMATH-EN problems with an integer as answer",
        "MIT",
        _parts(
            train=Part(_OLYMMATH, 30, "b13c3e2c6dc1aa28"),
            validation=Part(_OLYMMATH, 40, "a583a141ef63424e"),
            test=Part(_OLYMMATH, 27, "2d879cb730020959"),
        ),
        listing_path("olymmath"),
    ),
    Published(
        "gsm8k",
        "grade-school word problems",
        "MIT",
        _parts(
            train=Part(_GSM8K_TRAIN, 6973, "70e5900c8e04cb80"),
            validation=Part(_GSM8K_TRAIN, 500, "d33fe2bbc20b0abc"),
            test=Part(_GSM8K_TEST, 1319, "f7f873e9666aff11"),
        ),
        listing_path("gsm8k"),
    ),
)
