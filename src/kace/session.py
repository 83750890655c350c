"""Everything a solve needs, opened from a configuration and closed again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kace.budget import Ledger, Metered
from kace.config import Config
from kace.equivalence import Judge
from kace.ladder import Kit, Observer
from kace.models.base import ChatModel
from kace.models.cached import Cached, CallStore
from kace.models.provider import open_model

if TYPE_CHECKING:
    from kace.knowledge import Library
    from kace.tree import EpistemicTree


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
    tree: EpistemicTree | None = None,
    observer: Observer | None = None,
) -> AsyncIterator[Session]:
    """Open the model (or use the one given, which stays the caller's to close) behind the ledger and the cache.

    With a tree, MS and HS read from it, and the classifier is the same model under a role of its own.
    """
    opened = model or open_model(config)
    ledger = Ledger(config.caps(), config.price_table())
    ledger.require_price(opened.name)

    def role(name: str) -> ChatModel:
        metered = Metered(opened, ledger, name)
        return metered if calls is None else Cached(metered, calls)

    try:
        async with Judge() as judge:
            kit = Kit(
                model=role("solver"),
                judge=judge,
                sampling=config.tier_sampling(),
                seed=config.seed,
                early_stop=config.early_stop,
                library=None if tree is None else open_library(tree, role("classifier"), config),
                observer=observer,
            )
            yield Session(kit, ledger, window(config))
    finally:
        if model is None:
            await opened.aclose()


def open_library(tree: EpistemicTree, model: ChatModel, config: Config) -> Library:
    """The tree, opened for solving with the configured budget."""
    from kace.knowledge import Appetite, Library
    from kace.rank import rank

    ranking = rank
    if config.rank_by == "meaning":
        from kace.embed import rank_by_meaning, require_embeddings

        require_embeddings()
        ranking = rank_by_meaning
    appetite = Appetite(config.max_card_tokens, ranking, config.refine_domain)
    return Library(tree, model, seed=config.seed, appetite=appetite)


def window(config: Config) -> int:
    """Enough problems to keep every connection busy, and no more: what is open at once is what memory holds."""
    if config.model.startswith("local/"):
        from kace.models.local import SLOTS

        return config.slots or SLOTS
    return config.max_connections or 100
