"""The wording of problems and cards: content words, runs of words, and the names of persons and places."""

from __future__ import annotations

import re
from collections.abc import Iterator

RUNS = ((8, 4), (12, 2))
"""That many words in a row, numbers aside, with so many content words, are a copy; with fewer a phrase of the trade."""
SHORT_RUN = 5
"""So are fewer words, where they hold a telling number or a name."""
NUMBER = "#"

_COMMON = """
    about above after again also always another answer because been before being below between both called cannot
    compute contain could does done down each either equal ever every exactly expressed false find first following
    form from give given gives have having hence here integer into just kind last least less like many more most
    must need next note number once only other otherwise over part positive possible problem question rather same
    second should show since some such suppose than that their them then there these they thing third this those
    three thus together total true twice under until upon using value very want what when where whether which while
    whole whose will with within without would write your
"""
_STOP = frozenset(_COMMON.split())
_TOKEN = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?|\d+(?:,\d{3})*(?:\.\d+)?")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_NAME_INSIDE = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}\b")
_CAPITALISED = re.compile(r"\b[A-Z][a-z]{2,}\b")

_KNOWN = """
    Abel Apollonius April Archimedean Archimedes Arithmetico August Bayes Bernoulli Bezout Binet Bonferroni Boolean
    Brahmagupta Brocard Burnside Cardano Carmichael Cartesian Cassini Catalan Cauchy Cayley Celsius Ceva Chebyshev
    Chinese Clairaut Cramer December Descartes Diophantine Diophantus Dirichlet Egyptian Eisenstein Engel English
    Eratosthenes Euclid Euclidean Euler Eulerian Fahrenheit February Fermat Ferrers Feuerbach Fibonacci Friday
    Frobenius Gauss Gaussian Gergonne Greek Hall Hamilton Hamiltonian Hankel Hermite Heron Hilbert Holder Horner
    Jacobi January Jensen Josephus July June Kelvin Kronecker Lagrange Laplace Latin Legendre Leibniz Liouville
    Lucas Maclaurin March Markov Menelaus Mersenne Miquel Mobius Monday Morley Nagel Napoleon Newton November
    October Pappus Pascal Pell Pick Platonic Poisson Pollard Ptolemy Pythagoras Pythagorean Ramsey Riemann Rolle
    Roman Rouche Saturday Schur Schwarz September Simon Simson Snell Sophie Stewart Stirling Sturm Sunday Taylor
    Thales Thursday Titu Tuesday Turan Useful Vandermonde Varignon Venn Vieta Viviani Wallis Wednesday Weierstrass
    Wilson Zeckendorf
"""
KNOWN_NAMES = frozenset(_KNOWN.split())
"""Capitalised words that belong to mathematics, the calendar or measures, and to no single problem."""


def tokens(text: str) -> list[str]:
    """The words and numbers of a text in lower case, LaTeX commands aside."""
    return [token.lower() for token in _TOKEN.findall(_COMMAND.sub(" ", text))]


def stem(word: str) -> str:
    """A word without its plural ending."""
    if word.endswith("ies") and len(word) > 5:
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def content_words(text: str) -> frozenset[str]:
    """The words that say what a text is about."""
    return frozenset(stem(token) for token in tokens(text) if _has_content(token))


def long_runs(text: str) -> Iterator[str]:
    """Every run of words that is long enough for a copy, all numbers alike."""
    words = [NUMBER if token[0].isdigit() else token for token in tokens(text)]
    for length, content in RUNS:
        for start in range(len(words) - length + 1):
            run = words[start : start + length]
            if sum(map(_has_content, run)) >= content:
                yield " ".join(run)


def short_runs(text: str) -> Iterator[tuple[str, ...]]:
    """Every run of `SHORT_RUN` words with a number and some content, numbers as they are."""
    words = tokens(text)
    for start in range(len(words) - SHORT_RUN + 1):
        run = tuple(words[start : start + SHORT_RUN])
        if any(word[0].isdigit() for word in run) and any(map(_has_content, run)):
            yield run


def names_inside(text: str) -> frozenset[str]:
    """Capitalised words inside sentences, which are names, but for those of mathematics."""
    return frozenset(_NAME_INSIDE.findall(text)) - KNOWN_NAMES


def capitalised(text: str) -> tuple[str, ...]:
    """Every capitalised word, in order, each once, but for the names of mathematics."""
    return tuple(dict.fromkeys(word for word in _CAPITALISED.findall(text) if word not in KNOWN_NAMES))


def _has_content(token: str) -> bool:
    return len(token) > 3 and not token[0].isdigit() and stem(token) not in _STOP
