"""Static sentence embeddings: nearness in meaning without a network, a GPU or a download. They ship in `wordllama`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np

Vectors: TypeAlias = "np.ndarray[tuple[int, int], np.dtype[np.float32]]"


def vectors(texts: Sequence[str]) -> Vectors:
    """One vector of length 1 a text."""
    found: Vectors = _model().embed(list(texts), norm=True)
    return found


@cache
def _model() -> Any:
    root = logging.getLogger()
    level = root.level
    handlers = root.handlers[:]
    import wordllama

    # Being imported, it has everybody's log shown, a line for each call to a provider among it.
    root.setLevel(level)
    root.handlers[:] = handlers
    # Its own folder is named as the cache, so that it finds the files it ships and never looks for others.
    return wordllama.WordLlama.load(
        cache_dir=Path(wordllama.__file__).parent, disable_download=True
    )
