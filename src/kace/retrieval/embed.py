"""Ranking by meaning instead of words: static sentence embeddings that need no network, no GPU and no download.

An extra (`pip install 'kace[embeddings]'`); words are the default. The vectors ship inside `wordllama`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kace.errors import UsageError
from kace.retrieval.gate import advertised

if TYPE_CHECKING:
    from kace.tree.card import Card


def rank_by_meaning(problem: str, cards: Sequence[Card]) -> tuple[Card, ...]:
    """The cards, nearest in meaning first; equal ones stay in the order they came in."""
    if not cards:
        return ()
    model = _model()
    told = model.embed([problem], norm=True)[0]
    nearness = model.embed([advertised(card) for card in cards], norm=True) @ told
    return tuple(cards[place] for place in sorted(range(len(cards)), key=lambda place: -float(nearness[place])))


def require_embeddings() -> None:
    """Raise with the fix where the extra is not installed."""
    _model()


@cache
def _model() -> Any:
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    try:
        import wordllama
    except ImportError:
        raise UsageError("ranking by meaning needs an extra", fix="pip install 'kace[embeddings]'") from None
    # Being imported, it has everybody's log shown, a line for each call to a provider among it.
    root.setLevel(level)
    root.handlers[:] = handlers
    # Its own folder is named as the cache, so that it finds the files it ships and never looks for others.
    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
