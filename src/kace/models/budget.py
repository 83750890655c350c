"""The ledger: what calls cost, and the caps that every model of a run shares."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
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
    output = request.sampling.max_tokens
    plain = price.cost(Usage(prompt, 0, output))
    written = price.cost(Usage(prompt, 0, output, prompt))
    return max(plain, written)


def charge(price: Price, request: Request, reply: Reply) -> float:
    """Return the cost of a reply, the worst case if its token counts are impossible."""
    usage = reply.usage
    least_output = max(bool(reply.text), len(reply.text) // MAX_CHARS_PER_TOKEN)
    if (
        0 < usage.input >= usage.cached + usage.written
        and usage.output >= least_output
    ):
        return price.cost(usage, reply.batch)
    return worst_cost(price, request)


@dataclass(slots=True)
class Spent:
    """What one role has used so far."""

    calls: int = 0  # every request sent, retries included
    failed: int = 0
    usage: Usage = field(default_factory=Usage)
    usd: float = 0.0


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
    # Models without token counts.
    uncounted: set[str] = field(default_factory=set)
    reserved: float = 0.0
    under_way: int = 0
    freed: asyncio.Event = field(default_factory=asyncio.Event)

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

    def fits(self, worst: float) -> bool:
        """Whether a call may start now. Raises `BudgetExceeded` if it never may."""
        cap = self.caps.calls
        if cap is not None and self.calls >= cap:
            raise BudgetExceeded(
                f"the cap of {cap} calls is reached", fix=CAP_FIX
            )
        limit = self.caps.usd
        if limit is None or self.usd + self.reserved + worst <= limit:
            return True
        if not self.under_way:
            raise BudgetExceeded(
                f"the next call might pass the cap of {limit:.2f} USD "
                f"({self.usd:.4f} spent)",
                fix=CAP_FIX,
            )
        return False


class Reservation:
    """One call under way in a ledger, which may be sent several times."""

    def __init__(self, ledger: Ledger, role: str, worst: float) -> None:
        self.ledger = ledger
        self.spent = ledger.roles.setdefault(role, Spent())
        self.worst = worst
        self.held = False  # not between two requests, where a cap may refuse it
        self.sent = False  # whether a request is with the provider

    async def enter(self) -> None:
        """Wait until a request fits under the caps, and count it."""
        while not self.ledger.fits(self.worst):
            await self.ledger.freed.wait()
        self.ledger.reserved += self.worst
        self.ledger.under_way += 1
        self.held = True
        self.spent.calls += 1

    def leave(self, fault: BaseException | None = None) -> None:
        """Release what a request reserved; charge it if it may be billed."""
        if not self.held:
            return
        self.held = False
        self.ledger.reserved -= self.worst
        self.ledger.under_way -= 1
        if fault is not None:
            self.spent.failed += 1
        billed = isinstance(fault, ModelError) and fault.billed
        if isinstance(fault, asyncio.CancelledError):
            billed = self.sent
        if billed:
            self.spent.usd += self.worst
        self.ledger.freed.set()  # every waiting call checks again
        self.ledger.freed.clear()


_under_way: ContextVar[Reservation | None] = ContextVar(
    "under_way", default=None
)


async def sent_again(fault: Exception) -> None:
    """Enter another request for the call under way, if a ledger counts it.

    The last request is charged if it may be billed. Raises `BudgetExceeded` at a cap.
    """
    call = _under_way.get()
    if call:
        call.leave(fault)
        await call.enter()


def mark_sent(sent: bool) -> None:
    """Note whether a request of the call under way is with the provider.

    A call that is cancelled then is charged, since the provider may bill it.
    """
    call = _under_way.get()
    if call:
        call.sent = sent


class Metered(Wrapper):
    """A model whose every call goes through the ledger."""

    def __init__(self, model: ChatModel, ledger: Ledger, role: str) -> None:
        super().__init__(model)
        self.ledger = ledger
        self.role = role

    async def complete(self, request: Request) -> Reply:
        """Answer one request within the caps."""
        price = self.ledger.price(self.name) or Price(0.0, 0.0)
        call = Reservation(self.ledger, self.role, worst_cost(price, request))
        await call.enter()
        mark = _under_way.set(call)
        try:
            reply = await self.model.complete(request)
        except BaseException as error:
            call.leave(error)
            raise
        finally:
            _under_way.reset(mark)
        cost = charge(price, request, reply)
        call.spent.usage += reply.usage
        call.spent.usd += cost
        call.leave()
        unusable = cost != price.cost(reply.usage, reply.batch)
        if unusable and self.name not in self.ledger.uncounted:
            self.ledger.uncounted.add(self.name)
            log.warning(
                "%s reports no usable token counts: such calls are charged at worst",
                self.name,
            )
        return reply
