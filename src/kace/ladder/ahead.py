"""MS in one round with ES: for batches, where a round may take a day and a call costs half."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from kace.errors import KaceError
from kace.ladder.ladder import Kit, asked_of, request_of
from kace.ladder.prompt import NOTHING, PromptContext
from kace.ladder.record import RetrievedContext
from kace.ladder.tiers import Tier, TierName
from kace.models.base import (
    ChatModel,
    ModelError,
    Reply,
    Request,
    Transient,
    Usage,
    Wrapper,
    total,
)
from kace.models.budget import Ledger
from kace.problems import Problem


@dataclass(frozen=True, slots=True)
class Ahead:
    """Makes the calls of MS together with those of ES, and enters in the ledger what was not needed."""

    ledger: Ledger

    async def hear(
        self, problem: Problem, tiers: Sequence[Tier], kit: Kit
    ) -> HeardAhead:
        """The model of a solve with its replies at both tiers. Where MS must ask what to read, only that is asked."""
        heard = HeardAhead(kit.model, self.ledger)
        if tiers[0].name is TierName.ES:
            async with asyncio.TaskGroup() as both:
                both.create_task(
                    heard.listen(_requests(problem, tiers[0], NOTHING, kit))
                )
                both.create_task(self._ms(problem, tiers[1], kit, heard))
        return heard

    async def _ms(
        self, problem: Problem, tier: Tier, kit: Kit, heard: HeardAhead
    ) -> None:
        try:
            found = (
                await kit.source.retrieve(problem, tier.name, (), ())
                if kit.source
                else None
            )
        except KaceError:  # the solve meets it again, if it comes to MS
            return
        heard.routed = found.record if found else None
        if not (found and found.record.classifier_calls):
            context = found.context if found else NOTHING
            await heard.listen(
                replace(each, ahead=True)
                for each in _requests(problem, tier, context, kit)
            )


def _requests(
    problem: Problem, tier: Tier, context: PromptContext, kit: Kit
) -> Iterator[Request]:
    return (
        request_of(each.key, each.prompt, kit)
        for each in asked_of(problem, tier, context, kit)
    )


class HeardAhead(Wrapper):
    """The model of one solve, which has heard some replies before it is asked for them."""

    def __init__(self, model: ChatModel, ledger: Ledger) -> None:
        super().__init__(model)
        self._ledger = ledger
        self._heard: dict[Request, Reply | ModelError] = {}
        self.routed: RetrievedContext | None = None  # what MS would read

    async def complete(self, request: Request) -> Reply:
        """The reply heard, or the call made."""
        heard = self._heard.pop(request, None)
        if isinstance(heard, ModelError):
            raise heard
        return heard or await self.model.complete(request)

    async def listen(self, requests: Iterable[Request]) -> None:
        """Make calls. A user error is for those who ask, and so is a fault that another try may not meet."""

        async def hear(request: Request) -> None:
            with suppress(KaceError):
                try:
                    self._heard[request] = await self.model.complete(request)
                except ModelError as error:
                    if not (request.ahead and isinstance(error, Transient)):
                        self._heard[request] = error

        async with asyncio.TaskGroup() as calls:
            for request in requests:
                calls.create_task(hear(request))

    def not_needed(self, *, read: bool) -> dict[str, object]:
        """Of a solution, what was paid and not asked for; `read`: whether what MS reads was. The ledger has it, too."""
        replies = [heard for heard in self._heard.values() if isinstance(heard, Reply)]
        calls = len(replies)
        usage = total([reply.usage for reply in replies])
        if (found := self.routed) and not read:
            calls += found.classifier_calls
            usage += Usage(
                found.classifier_input, found.classifier_cached, found.classifier_output
            )
        self._ledger.ahead += calls
        return {"ahead_calls": calls, "ahead_usage": usage}
