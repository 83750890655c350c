"""Embed each text once: the worlds of these tests share most of theirs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from kace.ladder.relevance import ENCODERS, Encoder, Floats


def remembering(encode: Encoder) -> Encoder:
    """Return an encoder that computes a text's vector once."""
    known: dict[str, Floats] = {}

    def embed(texts: Sequence[str]) -> Floats:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known.update(zip(new, encode(new), strict=True))
        return np.stack([known[text] for text in texts])

    return embed


@pytest.fixture(autouse=True, scope="session")
def encoders() -> Iterator[None]:
    """Remember vectors while these tests run."""
    with pytest.MonkeyPatch.context() as patched:
        for name, encode in list(ENCODERS.items()):
            patched.setitem(ENCODERS, name, remembering(encode))
        yield
