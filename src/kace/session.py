"""Everything a solve needs, opened from a configuration and closed again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from kace.budget import Ledger, Metered
from kace.config import Config
from kace.equivalence import Judge
from kace.ladder import Kit, Observer
from kace.models.base import ChatModel
from kace.models.cached import Cached, CallStore
from kace.models.provider import open_model


@dataclass(frozen=True, slots=True)
class Session:
    """An open model with its judge, its ledger and the number of problems worth climbing at once."""

    kit: Kit
    ledger: Ledger
    window: int


@asynccontextmanager
async def open_session(
    config: Config,
    *,
    calls: CallStore | None = None,
    model: ChatModel | None = None,
    observer: Observer | None = None,
) -> AsyncIterator[Session]:
    """Open the model (or use the one given, which stays the caller's to close) behind the ledger and the cache."""
    opened = model or open_model(config)
    ledger = Ledger(config.caps(), config.price_table())
    ledger.require_price(opened.name)
    solver: ChatModel = Metered(opened, ledger, "solver")
    if calls is not None:
        solver = Cached(solver, calls)
    try:
        async with Judge() as judge:
            kit = Kit(solver, judge, config.tier_sampling(), config.seed, config.early_stop, observer)
            yield Session(kit, ledger, window(config))
    finally:
        if model is None:
            await opened.aclose()


def window(config: Config) -> int:
    """Enough problems to keep every connection busy, and no more: what is open at once is what memory holds."""
    if config.model.startswith("local/"):
        from kace.models.local import SLOTS

        return config.slots or SLOTS
    return config.max_connections or 100
