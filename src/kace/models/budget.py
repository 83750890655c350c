"""What calls cost, and the caps on it: one choke point for every model of a run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from kace.errors import BudgetExceeded, UsageError
from kace.models.base import ChatModel, Reply, Request, Usage, Wrapper, total

CHARS_PER_TOKEN = 2  # deliberately low, so that a reservation made before the provider has counted is never too small
FREE = ("local", "scripted", "replay", "exchange")  # providers that nobody sends a bill for
CAP_FIX = "raise the cap and run the same command: finished calls are kept"


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens."""

    input: float
    output: float
    cached: float | None = None  # cached input, where the provider prices it apart
    written: float | None = None  # input written to a prompt cache, where the provider prices it apart

    def cost(self, usage: Usage) -> float:
        """What a call cost."""
        cached, written = (self.input if price is None else price for price in (self.cached, self.written))
        fresh = usage.input - usage.cached - usage.written
        prompt = fresh * self.input + usage.cached * cached + usage.written * written
        return (prompt + usage.output * self.output) / 1e6

    def most(self, request: Request) -> float:
        """What a call can cost at most: nothing of it cached, and all written to a cache if that is dearer."""
        prompt = sum(len(m.content) for m in request.messages) // CHARS_PER_TOKEN + 64
        dearer = self.written is not None and self.written > self.input
        return self.cost(Usage(prompt, 0, request.sampling.max_tokens, prompt if dearer else 0))


def free_price(model: str) -> Price | None:
    """Nothing, for a model that nobody sends a bill for; `None` for any other."""
    return Price(0.0, 0.0) if model.split("/")[0] in FREE else None


@dataclass(frozen=True, slots=True)
class Caps:
    """Limits on a whole run; `None` is no limit."""

    calls: int | None = None
    usd: float | None = None


@dataclass(slots=True)
class Spent:
    """What one role has used so far."""

    calls: int = 0
    failed: int = 0
    usage: Usage = field(default_factory=Usage)
    usd: float = 0.0


@dataclass(slots=True)
class Ledger:
    """Counts every call that leaves the machine and holds the caps.

    A call reserves its worst case before it starts, so the caps are never passed however many run side by side; when
    it does not fit but others are under way, it waits for what they really cost.
    """

    caps: Caps = field(default_factory=Caps)
    prices: Mapping[str, Price] = field(default_factory=dict)
    roles: dict[str, Spent] = field(default_factory=dict)
    _reserved: float = 0.0
    _under_way: int = 0
    _freed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def calls(self) -> int:
        """Calls started, over all roles."""
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

    async def complete(self, role: str, model: ChatModel, request: Request) -> Reply:
        """Make one call within the caps, and enter what it cost."""
        price = self.price(model.name) or Price(0.0, 0.0)
        worst = price.most(request)
        spent = await self._reserve(role, worst)
        try:
            reply = await model.complete(request)
        except BaseException:
            spent.failed += 1
            raise
        else:
            spent.usage += reply.usage
            spent.usd += price.cost(reply.usage)
        finally:
            self._reserved -= worst
            self._under_way -= 1
            async with self._freed:
                self._freed.notify_all()
        return reply

    async def _reserve(self, role: str, worst: float) -> Spent:
        async with self._freed:
            while True:
                if self.caps.calls is not None and self.calls >= self.caps.calls:
                    raise BudgetExceeded(f"the cap of {self.caps.calls} calls is reached", fix=CAP_FIX)
                if self.caps.usd is None or self.usd + self._reserved + worst <= self.caps.usd:
                    break
                if not self._under_way:
                    over = f"the next call might pass the cap of {self.caps.usd:.2f} USD ({self.usd:.4f} spent)"
                    raise BudgetExceeded(over, fix=CAP_FIX)
                await self._freed.wait()
            self._reserved += worst
            self._under_way += 1
            spent = self.roles.setdefault(role, Spent())
            spent.calls += 1
            return spent


class Metered(Wrapper):
    """A model whose every call goes through the ledger."""

    def __init__(self, model: ChatModel, ledger: Ledger, role: str) -> None:
        super().__init__(model)
        self.ledger, self.role = ledger, role

    async def complete(self, request: Request) -> Reply:
        """Answer within the caps."""
        return await self.ledger.complete(self.role, self.model, request)
