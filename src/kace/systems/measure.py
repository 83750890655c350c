"""How many tokens a learned text has for the solver: counted where its model can count, else from its length."""

from __future__ import annotations

from typing import NamedTuple

from kace.models.base import ChatModel, Tokenizer
from kace.retrieval.retriever import CHARS_PER_TOKEN


class Size(NamedTuple):
    """The size of a text."""

    tokens: int
    estimated: bool
    """True when the model has no tokenizer we can ask, and `tokens` is characters over four."""


class Measure:
    """Measures texts for one model, each once."""

    def __init__(self, model: ChatModel) -> None:
        self.model = model
        self._sizes: dict[str, Size] = {}

    async def __call__(self, text: str) -> Size:
        """The size of a text."""
        if not text:
            return Size(0, False)
        if text not in self._sizes:
            counted = await self.model.count_tokens(text) if isinstance(self.model, Tokenizer) else None
            self._sizes[text] = Size(len(text) // CHARS_PER_TOKEN, True) if counted is None else Size(counted, False)
        return self._sizes[text]
