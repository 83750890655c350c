"""What calls cost, and the caps on it: one choke point for every model of a run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from kace.config import Caps, Price
from kace.errors import BudgetExceeded, UsageError
from kace.models.base import (
    ChatModel,
    ModelError,
    Reply,
    Request,
    Usage,
    Wrapper,
    total,
)

log = logging.getLogger(__name__)

CHARS_PER_TOKEN = 2  # deliberately low, so that a reservation made before the provider has counted is never too small
FREE = (
    "local",
    "scripted",
    "replay",
    "exchange",
    "solutions",
)  # that nobody sends a bill for
CAP_FIX = "raise the cap and run the same command: finished calls are kept"


def worst_cost(price: Price, request: Request) -> float:
    """Return the most a call can cost: nothing cached, and all written to a cache if that is dearer."""
    prompt = sum(len(m.content) for m in request.messages) // CHARS_PER_TOKEN + 64
    dearer = price.written is not None and price.written > price.input
    written = prompt if dearer else 0
    return price.cost(Usage(prompt, 0, request.sampling.max_tokens, written))


def charge(price: Price, request: Request, reply: Reply) -> float:
    """Return what a reply is charged: its cost, or the worst case if token counts are missing or impossible."""
    usage = reply.usage
    counted = (
        usage.input > 0
        and usage.output >= (1 if reply.text else 0)
        and min(usage.cached, usage.written) >= 0
    )
    if counted and usage.cached + usage.written <= usage.input:
        return price.cost(usage, reply.batch)
    return worst_cost(price, request)


def free_price(model: str) -> Price | None:
    """Nothing, for a model that nobody sends a bill for; `None` for any other."""
    return Price(0.0, 0.0) if model.split("/")[0] in FREE else None


@dataclass(slots=True)
class Spent:
    """What one role has used so far."""

    calls: int = 0  # every request sent, those sent again too
    failed: int = 0
    usage: Usage = field(default_factory=Usage)
    usd: float = 0.0


async def _nowhere(fault: Exception) -> None: ...


_sending_again: ContextVar[Callable[[Exception], Awaitable[None]]] = ContextVar(
    "sending_again", default=_nowhere
)


async def sent_again(fault: Exception) -> None:
    """Enter that one more request is sent for the call under way, in every ledger it is entered in.

    What came of the last one is charged where it may be billed. Raises `BudgetExceeded` where a cap is reached.
    """
    await _sending_again.get()(fault)


@dataclass(slots=True)
class Ledger:
    """Counts every request that leaves the machine and holds the caps.

    A call reserves its worst case before it starts, so the caps are never passed however many run side by side; when
    it does not fit but others are under way, it waits for what they really cost.
    """

    caps: Caps = field(default_factory=Caps)
    prices: Mapping[str, Price] = field(default_factory=dict)
    roles: dict[str, Spent] = field(default_factory=dict)
    uncounted: set[str] = field(
        default_factory=set
    )  # models that were heard to report no usable token counts
    reserved: float = 0.0  # the worst that calls under way may cost
    _under_way: int = 0
    _freed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def calls(self) -> int:
        """Requests sent or about to be, over all roles: every try is one."""
        return sum(role.calls for role in self.roles.values())

    @property
    def usd(self) -> float:
        """Money spent, over all roles."""
        return sum(role.usd for role in self.roles.values())

    @property
    def usage(self) -> Usage:
        """Tokens, over all roles."""
        return total([role.usage for role in self.roles.values()])

    def price(self, model: str) -> Price | None:
        """The price of a model, where it is known."""
        return free_price(model) or self.prices.get(model)

    def require_price(self, model: str) -> None:
        """Refuse a money cap that could not be enforced."""
        if self.caps.usd is not None and self.price(model) is None:
            fix = f'add [prices."{model}"] with input and output USD per million tokens to kace.toml'
            raise UsageError(f"--max-usd needs a price for '{model}'", fix=fix)

    @asynccontextmanager
    async def reserve(self, role: str, worst: float) -> AsyncIterator[Spent]:
        """Room within the caps for one call that costs this at worst, and where to enter what it did cost."""
        spent = self.roles.setdefault(role, Spent())
        outer = _sending_again.get()
        await self._enter(spent, worst)
        held = True  # not between two requests of a call, where it may be refused

        async def again(fault: Exception) -> None:
            nonlocal held
            self._leave(spent, worst, fault)
            held = False
            await outer(fault)
            await self._enter(spent, worst)
            held = True

        mark = _sending_again.set(again)
        try:
            yield spent
        except BaseException as error:
            if held:
                self._leave(spent, worst, error)
            raise
        else:
            self._leave(spent, worst)
        finally:
            _sending_again.reset(mark)

    async def _enter(self, spent: Spent, worst: float) -> None:
        while not self._fits(worst):
            await self._freed.wait()
        self.reserved += worst
        self._under_way += 1
        spent.calls += 1

    def _leave(
        self, spent: Spent, worst: float, fault: BaseException | None = None
    ) -> None:
        self.reserved -= worst
        self._under_way -= 1
        spent.failed += fault is not None
        if isinstance(fault, ModelError) and fault.billed:
            spent.usd += worst
        self._freed.set()  # all who wait look again
        self._freed.clear()

    def _fits(self, worst: float) -> bool:
        """Whether a call may start; raises where it never could."""
        if self.caps.calls is not None and self.calls >= self.caps.calls:
            raise BudgetExceeded(
                f"the cap of {self.caps.calls} calls is reached", fix=CAP_FIX
            )
        fits = (
            self.caps.usd is None or self.usd + self.reserved + worst <= self.caps.usd
        )
        if not fits and not self._under_way:
            over = f"the next call might pass the cap of {self.caps.usd:.2f} USD ({self.usd:.4f} spent)"
            raise BudgetExceeded(over, fix=CAP_FIX)
        return fits


class Metered(Wrapper):
    """A model whose every call goes through the ledger."""

    def __init__(self, model: ChatModel, ledger: Ledger, role: str) -> None:
        super().__init__(model)
        self.ledger = ledger
        self.role = role

    async def complete(self, request: Request) -> Reply:
        """Answer within the caps."""
        price = self.ledger.price(self.name) or Price(0.0, 0.0)
        async with self.ledger.reserve(self.role, worst_cost(price, request)) as spent:
            reply = await self.model.complete(request)
            spent.usage += reply.usage
            charged = charge(price, request, reply)
            spent.usd += charged
            if (
                charged != price.cost(reply.usage, reply.batch)
                and self.name not in self.ledger.uncounted
            ):
                self.ledger.uncounted.add(self.name)
                log.warning(
                    "%s reports no usable token counts: such calls are charged at their worst",
                    self.name,
                )
            return reply
