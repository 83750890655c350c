"""What makes two copies of a problem the same text, whoever published them."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable

from kace.problem import Problem


def fingerprint(text: str) -> str:
    """The hash of a text without its white space and compatibility forms: copies differ in these and nothing else."""
    bare = "".join(unicodedata.normalize("NFKC", text).split())
    return hashlib.sha256(bare.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def set_hash(problems: Iterable[Problem]) -> str:
    """The hash of a set of problems, whatever their order."""
    return joint_hash(fingerprint(problem.text) for problem in problems)


def joint_hash(fingerprints: Iterable[str]) -> str:
    """The hash of a set of fingerprints, whatever their order."""
    return hashlib.sha256("\n".join(sorted(fingerprints)).encode()).hexdigest()[:16]
