"""Which slot of the embedded engine an attempt decodes in.

A slot keeps the prompt it read last, and only for itself. Attempts of one problem and tier that share a long prefix
(a block of cards) therefore follow each other in one slot: the first reads the prefix, the others find it there.
Reading it once in every slot would cost more than decoding side by side gains. Short prompts take any free slot.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from kace.models.base import Request, Role

LONG_PREFIX = 1_000
"""Characters of instructions from which reading them again costs more than waiting for a turn."""

Group = tuple[str, int, str]


@dataclass(frozen=True, slots=True, eq=False)
class _Waiter:
    prefix: str
    group: Group
    turn: asyncio.Future[int]


class Slots:
    """Leases of slots, first come, first served but for attempts that follow their own."""

    def __init__(self, count: int) -> None:
        self._prefix = [""] * count
        """The long prefix each slot holds."""
        self._group: list[Group | None] = [None] * count
        """What each slot is decoding now; `None` is free."""
        self._waiting: list[_Waiter] = []

    @asynccontextmanager
    async def lease(self, request: Request) -> AsyncIterator[int]:
        """A slot for as long as the request is under way."""
        slot = await self._take(long_prefix(request), _group(request))
        try:
            yield slot
        finally:
            self._free(slot)

    async def _take(self, prefix: str, group: Group) -> int:
        slot = self._choose(prefix, group)
        if slot is not None:
            self._assign(slot, prefix, group)
            return slot
        waiter = _Waiter(prefix, group, asyncio.get_running_loop().create_future())
        self._waiting.append(waiter)
        try:
            return await waiter.turn
        except asyncio.CancelledError:
            if waiter.turn.done() and not waiter.turn.cancelled():
                self._free(waiter.turn.result())  # given a slot in the same moment: hand it on
            else:
                self._waiting.remove(waiter)
            raise

    def _choose(self, prefix: str, group: Group) -> int | None:
        """The free slot that holds the prefix, else one that holds nothing worth keeping; none if it should wait."""
        if prefix and any(
            busy == group and held == prefix for busy, held in zip(self._group, self._prefix, strict=True)
        ):
            return None
        free = [slot for slot, busy in enumerate(self._group) if busy is None]
        return min(free, key=lambda slot: (self._prefix[slot] != prefix, bool(self._prefix[slot]), slot), default=None)

    def _assign(self, slot: int, prefix: str, group: Group) -> None:
        self._group[slot] = group
        self._prefix[slot] = prefix

    def _free(self, slot: int) -> None:
        done, self._group[slot] = self._group[slot], None
        # Those that follow in this slot go first; then whoever has waited longest and finds a place.
        for waiter in sorted(self._waiting, key=lambda w: not (w.prefix == self._prefix[slot] and w.group == done)):
            place = self._choose(waiter.prefix, waiter.group)
            if place is not None and not waiter.turn.done():
                self._waiting.remove(waiter)
                self._assign(place, waiter.prefix, waiter.group)
                waiter.turn.set_result(place)


def long_prefix(request: Request) -> str:
    """The instructions, where they are long enough to be worth sharing."""
    first = request.messages[0]
    return first.content if first.role is Role.SYSTEM and len(first.content) >= LONG_PREFIX else ""


def _group(request: Request) -> Group:
    attempt = request.attempt
    return (attempt.problem, attempt.seed, attempt.tier)
