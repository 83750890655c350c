"""A model that a server can live with: what the operator must mend ends a run, but a server goes on and tries again."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from kace.errors import KaceError
from kace.models.base import ChatModel, Reply, Request, Wrapper

PAUSE = 5.0
"""Seconds after which a model that refused is opened anew: the provider may be up by then, or the key paid for."""


class Mending(Wrapper):
    """Opens its model again, some time after it failed in a way that every later call would fail, too."""

    def __init__(
        self, open_again: Callable[[], ChatModel], *, pause: float = PAUSE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(open_again())
        self._open_again = open_again
        self._pause = pause
        self._clock = clock
        self._broken_at: float | None = None
        self._calls: Counter[ChatModel] = Counter()
        """Calls under way: a model that was replaced is closed with the last of them."""

    async def complete(self, request: Request) -> Reply:
        """Answer one request with the model as it is now."""
        await self._mend()
        model = self.model
        self._calls[model] += 1
        try:
            return await model.complete(request)
        except KaceError:
            if model is self.model and self._broken_at is None:
                self._broken_at = self._clock()
            raise
        finally:
            self._calls[model] -= 1
            if not self._calls[model]:
                del self._calls[model]
                if model is not self.model:
                    await model.aclose()

    async def aclose(self) -> None:
        """Close every model that is still open."""
        for model in {self.model, *self._calls}:
            await model.aclose()

    async def _mend(self) -> None:
        if self._broken_at is None or self._clock() - self._broken_at < self._pause:
            return
        old, self.model, self._broken_at = self.model, self._open_again(), None
        if old not in self._calls:
            await old.aclose()
