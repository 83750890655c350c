"""How sure a model was of what it wrote: a few figures of a reply, from the log-probabilities of its tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from math import fsum

TOP = 5  # tokens at each place whose log-probabilities are asked for
LOGPROBS = {
    "logprobs": True,
    "top_logprobs": TOP,
}  # what a request for a chat completion says then
WINDOW = 128  # tokens of the tail, and of the window in which confidence is lowest
UNTOLD = -1000.0
FLOOR = -30.0
"""Servers write -9999 or less for a token too unlikely to be told; it counts as the floor."""
ROUNDING = 1e-3  # a probability of one may come out as slightly more


@dataclass(frozen=True, slots=True)
class Confidence:
    """Of one reply. A token's confidence is minus the mean log-probability of the five likeliest at its place."""

    logprob: float  # of the tokens that were drawn, the mean log-probability
    overall: float  # token confidence, the mean of all tokens
    tail: float  # the mean of the last `WINDOW` tokens
    worst: float  # the mean in the window of `WINDOW` tokens where it is lowest


def confidence_of(tokens: object) -> Confidence | None:
    """From the `logprobs.content` of a chat completion. `None` where it has none that can be used.

    Some providers leave the likeliest tokens out, and some write 0 or -9999 everywhere.
    """
    drawn = list[float]()
    sure = list[float]()
    told = False
    for token in tokens if isinstance(tokens, list) else ():
        top = [*_numbers(token.get("top_logprobs"))] if isinstance(token, dict) else []
        own = next(_numbers([token]), None)
        if top and own is not None:
            top = sorted(top, reverse=True)[:TOP]
            told = told or any(UNTOLD < value < 0 for value in (own, *top))
            likely = [value if value > UNTOLD else FLOOR for value in (own, *top)]
            drawn.append(likely[0])
            sure.append(-fsum(likely[1:]) / len(top))
    if not told:
        return None
    sums = [0.0, *accumulate(sure)]
    width = min(WINDOW, len(sure))
    windows = [
        (sums[end] - sums[end - width]) / width for end in range(width, len(sums))
    ]
    figures = (
        fsum(drawn) / len(drawn),
        sums[-1] / len(sure),
        windows[-1],
        min(windows),
    )
    return Confidence(*(round(figure, 5) for figure in figures))


def _numbers(entries: object) -> Iterator[float]:
    """The log-probabilities of entries, as far as they are some."""
    for entry in entries if isinstance(entries, list) else ():
        value = entry.get("logprob") if isinstance(entry, dict) else None
        if isinstance(value, (int, float)) and value <= ROUNDING:
            yield min(0.0, float(value))
