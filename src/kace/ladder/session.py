"""Everything a solve needs, opened from a configuration and closed again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

from kace.answers.equal import Judge
from kace.cards.tree import EpistemicTree
from kace.config import Config
from kace.errors import UsageError
from kace.ladder.ladder import SILENT, Amend, Kit, Observer
from kace.ladder.policies import (
    WithLogprobs,
    begin_with_cards,
    synthesize,
    vote_by_confidence,
)
from kace.ladder.prompt import subject_of
from kace.ladder.retrieve import Retriever
from kace.models import open_model
from kace.models.base import ChatModel
from kace.models.budget import Ledger, Metered
from kace.models.cache import Cached, CallStore

BATCH_WINDOW = 10_000  # problems open at once, at about 20 kB each


@dataclass(frozen=True, slots=True)
class Session:
    """The open resources of a run: its models, judge, ledger and call store. The one bundle that is passed around."""

    config: Config
    kit: Kit
    ledger: Ledger
    model: ChatModel  # as the provider serves it; use `role` to call it
    calls: CallStore | None
    teacher: ChatModel | None = None  # for synthesis

    def role(self, name: str) -> ChatModel:
        """Return the model under a name in the ledger."""
        return in_role(name, self.model, self.ledger, self.calls)

    @property
    def classifier(self) -> ChatModel:
        """The model that routes problems."""
        return self.role("classifier")

    @property
    def window(self) -> int:
        """Enough problems to keep every connection busy, and no more: open problems are held in memory."""
        if self.config.batch:
            return BATCH_WINDOW
        if self.config.model.startswith("local/") and not self.config.ray:
            from kace.models.local import SLOTS

            return SLOTS
        return self.config.max_connections or 100

    def reading(
        self,
        tree: EpistemicTree,
        config: Config,
    ) -> Kit:
        """Return the kit with a tree to read from, as configured."""
        source = Retriever(
            tree,
            self.classifier,
            config.retrieval,
            seed=config.seed,
            subject=subject_of(config),
        )
        return replace(self.kit, source=source, tiers=begin_with_cards(source))

    def billed(
        self,
        bill: Ledger,
        calls: CallStore | None = None,
        seed: int | None = None,
    ) -> Kit:
        """Return the kit whose calls are entered on a bill, as that of one request is."""
        role = partial(in_role, ledger=bill, calls=calls)
        solver = role("solver", self.model)
        if self.config.asks_logprobs:
            # Outermost, since a call with log-probabilities is kept apart from one without.
            solver = WithLogprobs(solver)
        amend: list[Amend] = []
        if self.config.vote == "confidence":
            amend.append(vote_by_confidence)
        if self.teacher:
            teacher = role("synthesis", self.teacher)
            most = self.config.teacher_max_tokens
            amend.append(partial(synthesize, teacher, most))
        seed = self.kit.seed if seed is None else seed
        kit = replace(self.kit, model=solver, seed=seed, amend=tuple(amend))
        if isinstance(kit.source, Retriever):
            # Requests share what it has indexed.
            classifier = role("classifier", self.model)
            source = kit.source.routed_by(classifier, kit.seed)
            kit = replace(kit, source=source, tiers=begin_with_cards(source))
        return kit


@asynccontextmanager
async def open_session(
    config: Config,
    *,
    calls: CallStore | None = None,
    model: ChatModel | None = None,
    tree: EpistemicTree | None = None,
    observer: Observer | None = None,
) -> AsyncIterator[Session]:
    """Open the model behind ledger and cache, with the judge and what the configuration names.

    A model that is given stays the caller's to close.
    """
    ledger = Ledger(config.caps(), config.prices)
    async with AsyncExitStack() as stack:
        opened = model or _open(config, stack, calls, ledger)
        ledger.require_price(opened.name)
        teacher = None
        if config.synthesis:
            teacher = _open(config.for_teacher(), stack)
            ledger.require_price(teacher.name)
        kit = Kit(
            model=opened,
            judge=await stack.enter_async_context(Judge()),
            sampling=config.tier_sampling(),
            subject=subject_of(config),
            prompts=config.retrieval.prompts,
            seed=config.seed,
            observer=observer or SILENT,
        )
        session = Session(config, kit, ledger, opened, calls, teacher)
        session = replace(session, kit=session.billed(ledger, calls))
        if tree is not None:
            session = replace(session, kit=session.reading(tree, config))
        yield session


def in_role(
    role: str,
    model: ChatModel,
    ledger: Ledger,
    calls: CallStore | None,
) -> ChatModel:
    """Return the model in one role of a run: entered in the ledger, and never paid twice if calls are kept."""
    metered = Metered(model, ledger, role)
    return metered if calls is None else Cached(metered, calls)


def _open(
    config: Config,
    stack: AsyncExitStack,
    calls: CallStore | None = None,
    ledger: Ledger | None = None,
) -> ChatModel:
    """Return the configured model, closed with the stack; through batches if configured and calls are kept."""
    model = open_model(config)
    if config.batch and ledger:
        from kace.models.batch import Batched, open_jobs

        if calls is None:
            raise UsageError(
                "--batch keeps its jobs in a run directory, and there is none here",
                fix="leave it out",
            )
        model = Batched(
            model,
            open_jobs(model),
            calls,
            wait=config.wait,
            ledger=ledger,
            size=config.batch_size,
        )
    stack.push_async_callback(model.aclose)
    return model
