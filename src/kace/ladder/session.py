"""Everything a solve needs, opened from a configuration and closed again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from kace.answers.equal import Judge
from kace.config import Config
from kace.errors import UsageError
from kace.ladder.confidence import open_policy
from kace.ladder.ladder import Kit, Observer
from kace.ladder.prompt import subject_of
from kace.ladder.retriever import EsPolicy, Retriever
from kace.models import open_model
from kace.models.base import ChatModel
from kace.models.budget import Ledger, Metered
from kace.models.cache import Cached, CallStore

if TYPE_CHECKING:
    from kace.cards.tree import EpistemicTree


BATCH_WINDOW = 10_000  # problems open at once, at about 20 kB each


@dataclass(frozen=True, slots=True)
class Session:
    """An open model with its judge, its ledger and the number of problems worth climbing at once."""

    kit: Kit
    role: Callable[[str], ChatModel]  # the same model under another name in the ledger
    ledger: Ledger
    window: int

    @property
    def classifier(self) -> ChatModel:
        """The model that places problems."""
        return self.role("classifier")

    def reading(self, tree: EpistemicTree, config: Config) -> Kit:
        """The kit with a tree to read from, as the configuration says."""
        source = Retriever(
            tree,
            self.classifier,
            config.retrieval,
            seed=config.seed,
            subject=subject_of(config),
        )
        return replace(self.kit, source=source, tiers=EsPolicy(source))


@asynccontextmanager
async def open_session(
    config: Config,
    *,
    calls: CallStore | None = None,
    model: ChatModel | None = None,
    tree: EpistemicTree | None = None,
    observer: Observer | None = None,
    ledger: Ledger | None = None,
) -> AsyncIterator[Session]:
    """Open the model (or use the one given, the caller's to close) behind ledger and cache, and what else is asked."""
    ledger = ledger or Ledger(config.caps(), config.prices)
    async with AsyncExitStack() as opened_here:
        opened = model or _open(config, opened_here, calls, ledger)
        ledger.require_price(opened.name)
        role = partial(in_role, model=opened, ledger=ledger, calls=calls)
        synthesis = None
        if config.synthesis:
            teacher = _open(config.for_teacher(), opened_here)
            ledger.require_price(teacher.name)
            from kace.ladder.synthesis import Synthesis

            synthesis = Synthesis(
                in_role("synthesis", teacher, ledger, calls),
                config.teacher_max_tokens,
            )
        kit = Kit(
            model=role("solver"),
            judge=await opened_here.enter_async_context(Judge()),
            sampling=config.tier_sampling(),
            subject=subject_of(config),
            seed=config.seed,
            early_stop=config.early_stop,
            synthesis=synthesis,
            prompts=config.retrieval.prompts,
            observer=observer,
            logprobs=config.asks_logprobs,
            confidence=open_policy(config),
        )
        session = Session(kit, role, ledger, window(config))
        yield (
            session
            if tree is None
            else replace(session, kit=session.reading(tree, config))
        )


def in_role(
    role: str,
    model: ChatModel,
    ledger: Ledger,
    calls: CallStore | None,
) -> ChatModel:
    """The model as one role of a run uses it: entered in the ledger, and never paid twice where calls are kept."""
    model = Metered(model, ledger, role)
    return model if calls is None else Cached(model, calls)


def window(config: Config) -> int:
    """Enough problems to keep every connection busy, and no more: what is open at once is what memory holds."""
    if config.batch:
        return BATCH_WINDOW
    if config.model.startswith("local/"):
        from kace.models.local import SLOTS

        return config.slots or SLOTS
    return config.max_connections or 100


def _open(
    config: Config,
    stack: AsyncExitStack,
    calls: CallStore | None = None,
    ledger: Ledger | None = None,
) -> ChatModel:
    """The model a configuration names, closed with the stack; through batches where it says so and calls are kept."""
    model = open_model(config)
    if config.batch and ledger:
        from kace.models.batch import Batched, open_jobs

        if calls is None:
            raise UsageError(
                "--batch goes on from a run directory, and there is none here",
                fix="leave it out",
            )
        size = config.batch_size
        model = Batched(
            model,
            open_jobs(model),
            calls,
            wait=config.wait,
            ledger=ledger,
            size=size,
        )
    stack.push_async_callback(model.aclose)
    return model
