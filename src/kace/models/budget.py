"""What calls cost, and the caps on it: one choke point for every model of a run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from kace.errors import BudgetExceeded, UsageError
from kace.models.base import ChatModel, Reply, Request, Usage, Wrapper

CHARS_PER_TOKEN = 2
"""Deliberately low, so that a reservation made before the provider has counted is never too small."""
FREE = ("local", "scripted", "replay", "exchange")
"""Providers that nobody sends a bill for."""


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens."""

    input: float
    output: float
    cached: float | None = None
    """Cached input, where the provider prices it apart."""
    written: float | None = None
    """Input written to a prompt cache, where the provider prices it apart."""

    def cost(self, usage: Usage) -> float:
        """What a call cost."""
        cached = self.input if self.cached is None else self.cached
        written = self.input if self.written is None else self.written
        fresh = usage.input - usage.cached - usage.written
        prompt = fresh * self.input + usage.cached * cached + usage.written * written
        return (prompt + usage.output * self.output) / 1e6

    def most(self, request: Request) -> float:
        """What a call can cost at most: nothing of it cached, and all written to a cache if that is dearer."""
        characters = sum(len(m.content) for m in request.messages)
        prompt = characters // CHARS_PER_TOKEN + 64
        dearer = self.written is not None and self.written > self.input
        return self.cost(
            Usage(input=prompt, output=request.sampling.max_tokens, written=prompt if dearer else 0),
        )


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

    def price(self, model: str) -> Price | None:
        """The price of a model; embedded and recorded models cost nothing, nor do replies that somebody writes."""
        return free_price(model) or self.prices.get(model)

    def require_price(self, model: str) -> None:
        """Refuse a money cap that could not be enforced."""
        if self.caps.usd is not None and self.price(model) is None:
            raise UsageError(
                f"--max-usd needs a price for '{model}'",
                fix=f'add [prices."{model}"] with input and output USD per million tokens to kace.toml',
            )

    async def complete(self, role: str, model: ChatModel, request: Request) -> Reply:
        """Make one call within the caps, and enter what it cost."""
        price = self.price(model.name) or Price(0.0, 0.0)
        worst = price.most(request)
        await self._reserve(role, worst)
        spent = self.roles[role]
        try:
            reply = await model.complete(request)
        except BaseException:
            spent.failed += 1
            raise
        else:
            spent.usage += reply.usage
            spent.usd += price.cost(reply.usage)
            return reply
        finally:
            self._reserved -= worst
            self._under_way -= 1
            async with self._freed:
                self._freed.notify_all()

    async def _reserve(self, role: str, worst: float) -> None:
        async with self._freed:
            while (why := self._over(worst)) is not None:
                if not self._under_way or (self.caps.calls is not None and self.calls >= self.caps.calls):
                    raise BudgetExceeded(why, fix="raise the cap and run the same command: finished calls are kept")
                await self._freed.wait()
            self._reserved += worst
            self._under_way += 1
            self.roles.setdefault(role, Spent()).calls += 1

    def _over(self, worst: float) -> str | None:
        if self.caps.calls is not None and self.calls >= self.caps.calls:
            return f"the cap of {self.caps.calls} calls is reached"
        if self.caps.usd is not None and self.usd + self._reserved + worst > self.caps.usd:
            return f"the next call might pass the cap of {self.caps.usd:.2f} USD ({self.usd:.4f} spent)"
        return None


class Metered(Wrapper):
    """A model whose every call goes through the ledger."""

    def __init__(self, model: ChatModel, ledger: Ledger, role: str) -> None:
        super().__init__(model)
        self.ledger = ledger
        self.role = role

    async def complete(self, request: Request) -> Reply:
        """Answer within the caps."""
        return await self.ledger.complete(self.role, self.model, request)
