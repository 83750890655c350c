"""The ledger: what calls cost, and the caps that every model of a run shares."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
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

FREE = ("local", "scripted", "replay", "exchange", "solutions")
"""Providers that cost nothing."""
OVERHEAD = 64  # tokens of a prompt beside its text
MAX_CHARS_PER_TOKEN = (
    50  # fewer tokens for a text than this allows are impossible
)
CAP_FIX = (
    "raise the cap and run the same command: finished calls are kept, and the cap "
    "counts anew from each start"
)


def free_price(model: str) -> Price | None:
    """Return a price of zero for a model that costs nothing, `None` for any other."""
    return Price(0.0, 0.0) if model.split("/")[0] in FREE else None


def worst_cost(price: Price, request: Request) -> float:
    """Return the most a call can cost: a token per byte, nothing read from a cache."""
    # No byte-level tokenizer makes more tokens than bytes; digits and CJK come close.
    prompt = OVERHEAD
    for message in request.messages:
        prompt += len(message.content.encode("utf-8", "replace"))
    written = 0
    if price.written is not None and price.written > price.input:
        written = prompt
    return price.cost(Usage(prompt, 0, request.sampling.max_tokens, written))


def charge(price: Price, request: Request, reply: Reply) -> float:
    """Return the cost of a reply, the worst case if its token counts are impossible."""
    usage = reply.usage
    least_output = max(bool(reply.text), len(reply.text) // MAX_CHARS_PER_TOKEN)
    plausible = (
        usage.input > 0
        and usage.output >= least_output
        and usage.cached >= 0
        and usage.written >= 0
        and usage.cached + usage.written <= usage.input
    )
    if plausible:
        return price.cost(usage, reply.batch)
    return worst_cost(price, request)


@dataclass(slots=True)
class Spent:
    """What one role has used so far."""

    calls: int = 0  # every request sent, retries included
    failed: int = 0
    usage: Usage = field(default_factory=Usage)
    usd: float = 0.0


class Reservation:
    """One call under way in a ledger, which may be sent several times."""

    def __init__(self, ledger: Ledger, spent: Spent, worst: float) -> None:
        self.ledger = ledger
        self.spent = spent
        self.worst = worst
        self.held = False  # not between two requests, where a cap may refuse it
        self.sent = False  # whether a request is with the provider

    async def retry(self, fault: BaseException) -> None:
        """Enter another request, after the fault of the last one."""
        self.ledger.leave(self, fault)
        await self.ledger.enter(self)


_reserved: ContextVar[Reservation | None] = ContextVar("reserved", default=None)


async def sent_again(fault: Exception) -> None:
    """Enter another request for the call under way, if a ledger counts it.

    The last request is charged if it may be billed. Raises `BudgetExceeded` at a cap.
    """
    reservation = _reserved.get()
    if reservation:
        await reservation.retry(fault)


def mark_sent(sent: bool) -> None:
    """Note whether a request of the call under way is with the provider.

    A call that is cancelled then is charged, since the provider may bill it.
    """
    reservation = _reserved.get()
    if reservation:
        reservation.sent = sent


@dataclass(slots=True)
class Ledger:
    """Counts every request that is sent, and enforces the caps.

    A call reserves its worst case before it starts, so the caps hold however many calls
    run side by side. A call that does not fit waits while others are under way, since
    these may cost less than they reserved.
    """

    caps: Caps = field(default_factory=Caps)
    prices: Mapping[str, Price] = field(default_factory=dict)
    roles: dict[str, Spent] = field(default_factory=dict)
    uncounted: set[str] = field(
        default_factory=set
    )  # models without token counts
    reserved: float = 0.0
    _under_way: int = 0
    _freed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def calls(self) -> int:
        """Requests of all roles, sent or about to be."""
        return sum(role.calls for role in self.roles.values())

    @property
    def usd(self) -> float:
        """Money spent by all roles."""
        return sum(role.usd for role in self.roles.values())

    @property
    def usage(self) -> Usage:
        """Tokens of all roles."""
        return total(role.usage for role in self.roles.values())

    def price(self, model: str) -> Price | None:
        """Return the price of a model, if it is known."""
        return free_price(model) or self.prices.get(model)

    def require_price(self, model: str) -> None:
        """Refuse a cap on money that cannot be enforced."""
        if self.caps.usd is not None and self.price(model) is None:
            raise UsageError(
                f"--max-usd needs a price for '{model}'",
                fix=f'add [prices."{model}"] with input and output USD per million tokens '
                "to kace.toml",
            )

    @asynccontextmanager
    async def reserve(self, role: str, worst: float) -> AsyncIterator[Spent]:
        """Reserve the worst case of one call, and yield where to enter its real cost."""
        spent = self.roles.setdefault(role, Spent())
        reservation = Reservation(self, spent, worst)
        await self.enter(reservation)
        mark = _reserved.set(reservation)
        try:
            yield spent
        except BaseException as error:
            self.leave(reservation, error)
            raise
        else:
            self.leave(reservation)
        finally:
            _reserved.reset(mark)

    async def enter(self, reservation: Reservation) -> None:
        """Wait until a request fits under the caps, and count it."""
        while not self._fits(reservation.worst):
            await self._freed.wait()
        self.reserved += reservation.worst
        self._under_way += 1
        reservation.held = True
        reservation.spent.calls += 1

    def leave(
        self, reservation: Reservation, fault: BaseException | None = None
    ) -> None:
        """Release what a request reserved; charge it if it may be billed."""
        if not reservation.held:
            return
        reservation.held = False
        self.reserved -= reservation.worst
        self._under_way -= 1
        if fault is not None:
            reservation.spent.failed += 1
        billed = isinstance(fault, ModelError) and fault.billed
        if isinstance(fault, asyncio.CancelledError):
            billed = reservation.sent
        if billed:
            reservation.spent.usd += reservation.worst
        self._freed.set()  # every waiting call checks again
        self._freed.clear()

    def _fits(self, worst: float) -> bool:
        """Whether a call may start now. Raises `BudgetExceeded` if it never may."""
        cap = self.caps.calls
        if cap is not None and self.calls >= cap:
            raise BudgetExceeded(
                f"the cap of {cap} calls is reached", fix=CAP_FIX
            )
        limit = self.caps.usd
        if limit is None or self.usd + self.reserved + worst <= limit:
            return True
        if not self._under_way:
            raise BudgetExceeded(
                f"the next call might pass the cap of {limit:.2f} USD "
                f"({self.usd:.4f} spent)",
                fix=CAP_FIX,
            )
        return False


class Metered(Wrapper):
    """A model whose every call goes through the ledger."""

    def __init__(self, model: ChatModel, ledger: Ledger, role: str) -> None:
        super().__init__(model)
        self.ledger = ledger
        self.role = role

    async def complete(self, request: Request) -> Reply:
        """Answer one request within the caps."""
        price = self.ledger.price(self.name) or Price(0.0, 0.0)
        worst = worst_cost(price, request)
        async with self.ledger.reserve(self.role, worst) as spent:
            reply = await self.model.complete(request)
            spent.usage += reply.usage
            cost = charge(price, request, reply)
            spent.usd += cost
            if cost != price.cost(reply.usage, reply.batch):
                self._warn()
            return reply

    def _warn(self) -> None:
        if self.name not in self.ledger.uncounted:
            self.ledger.uncounted.add(self.name)
            log.warning(
                "%s reports no usable token counts: such calls are charged at worst",
                self.name,
            )
