"""The words of a text as texts are compared, and how much each says: its weight against a background of problems.

The background is a table that ships with the package: in how many of 11,450 everyday problems (the training splits of
GSM8K and of MATH, levels 4 and 5) a word occurs. So a word's weight does not depend on the tree it is looked up in.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path

BACKGROUND = Path(__file__).with_name("background.txt")
KNOWN_TEXTS = 10_000  # problems whose words are kept: each is compared with many cards

_WORD = re.compile(r"[^\W\d_]{2,}")
_COMMON = frozenset(
    _WORD.findall(
        "an and any are as at be been by can do does for from has have if in into is it its let many may must no not of"
        " on or out so such than that the their them then there these they this to was we were what when where which"
        " will with you your"
    )
)
"""Words of any sentence. In a block of short headers they would be rare, and count for more than they say."""


def words(text: str) -> list[str]:
    r"""The words of a text as they are compared: lower case, no plural s, `\binom` as `binom`.

    Numbers do not count: in a problem they are only its values. Single letters are variables and say as little.
    """
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in _COMMON]


@lru_cache(maxsize=KNOWN_TEXTS)
def vocabulary(text: str) -> tuple[str, ...]:
    """The words of a text, each once. Sorted: a sum of floats depends on its order."""
    return tuple(sorted(set(words(text))))


def weight(word: str) -> float:
    """What a shared word says: 1 where no background problem has it, 0 where all have."""
    return _weights().get(word, 1.0)


def rarity(texts: int, having: int) -> float:
    """The weight of a word that so many of the texts have: BM25's inverse document frequency."""
    return math.log(1 + (texts - having + 0.5) / (having + 0.5))


@cache
def _weights() -> Mapping[str, float]:
    head, *lines = BACKGROUND.read_text(encoding="utf-8").splitlines()
    most = math.log(int(head.split()[0]) + 1)
    counts = (line.split() for line in lines)
    return {word: 1 - math.log(int(count) + 1) / most for word, count in counts}


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] != "s" else word
