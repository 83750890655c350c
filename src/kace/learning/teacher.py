"""The teacher: a strong model that is asked for tagged blocks, and once more for those that could not be used."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from pydantic import ValidationError

from kace.answers.kinds import MATHEMATICS, Subject
from kace.cards.card import CardError, refusal
from kace.errors import KaceError, Outstanding, one_line
from kace.ladder.prompt import BARRED, neutral, template
from kace.learning.blocks import (
    EXCERPT_CHARS,
    BadBlock,
    Block,
    CardRefusal,
    Grammar,
    declines,
    read_blocks,
)
from kace.models.base import (
    AttemptKey,
    ChatModel,
    Message,
    ModelError,
    Request,
    Role,
    Sampling,
    chat,
    lacks_room,
)

T = TypeVar("T")

TIER = "TEACHER"  # where a teacher's calls stand among the attempts in a cache
TEMPERATURE = 0.0
MAX_LISTED = 40
MAX_REPEATED_CHARS = 100_000  # what a repair round shows of the reply before
_NO_BLOCK = "the reply holds no block of the form asked for"
_TURN_MARKER = re.compile(r"<(?=\|\w+\|>)")


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """What a reply was read as: the things it held by name, in order, and what could not be used."""

    found: Mapping[str, T]
    bad: tuple[BadBlock, ...] = ()
    declined: bool = False  # it holds nothing, and says so: "no card"

    def expecting(self, names: Iterable[str], reason: str) -> Reading[T]:
        """The reading, with what it neither holds nor lists added to what could not be used: it is asked for again."""
        there = {*self.found, *(bad.name for bad in self.bad)}
        missing = (BadBlock(0, name, reason) for name in names if name not in there)
        return replace(self, bad=(*self.bad, *missing))


class Teacher:
    """Asks one model for replies that a reader understands."""

    def __init__(
        self,
        model: ChatModel,
        *,
        seed: int = 0,
        max_tokens: int = 16_000,
        subject: Subject = MATHEMATICS,
    ) -> None:
        self.model = model
        self.seed = seed
        self.max_tokens = max_tokens
        self.subject = subject

    @property
    def source(self) -> str:
        """Which teacher it is, for a card's provenance."""
        return one_line(self.model.identity)

    async def ask(
        self, name: str, system: str, user: str, read: Callable[[str], Reading[T]]
    ) -> Reading[T]:
        """One request, and one repair round where something could not be used: what is still bad then is listed.

        `name` says which request it is, for caches, files and errors. Raises `KaceError` where a call fails.
        """
        messages = chat(self.subject.named(system), user)
        reply = await self.complete(name, 0, messages)
        first = _filled(read(reply), reply)
        if (first.found or first.declined) and not any(
            bad.mendable for bad in first.bad
        ):
            return first
        again = await self.complete(name, 1, _repair(messages, reply, first))
        return merged(first, _filled(read(again), again))

    async def complete(
        self,
        name: str,
        index: int,
        messages: tuple[Message, ...],
        temperature: float = TEMPERATURE,
    ) -> str:
        """The text of one reply, to a request of this name. `index` says which of its calls it is."""
        key = AttemptKey(name, self.seed, TIER, index)
        sampling = Sampling(temperature, self.max_tokens, key.sampling_seed())
        try:
            return (await self.model.complete(Request(messages, sampling, key))).text
        except ModelError as error:
            shorter = (
                " with a smaller --set teacher_max_tokens=N"
                if lacks_room(error.message)
                else ""
            )
            raise KaceError(
                f"the teacher did not answer the request '{name}': {one_line(error.message)}",
                fix=f"run the same command again{shorter}: it resumes from here",
            ) from None


def instructions(*names: str) -> str:
    """The system text of a kind of request: what every request shares, then its own parts."""
    return "\n\n".join(template(f"teacher/{name}") for name in ("preface", *names))


def read_each(
    reply: str, grammar: Grammar, make: Callable[[Block], T | CardRefusal]
) -> Reading[T]:
    """What `make` makes of each block of a reply, by name. Blocks that it refuses or raises an error about are bad."""
    blocks, bad = read_blocks(reply, grammar)
    found: dict[str, T] = {}
    wrong = list(bad)
    for block in blocks:
        name = block.fields[grammar.name]
        try:
            made = make(block)
        except CardError as error:
            reason = (
                f"{error.message.removeprefix(f'card {name[:64]!r}: ')}; {error.fix}"
            )
            wrong.append(BadBlock.of(block, name, reason))
        except ValueError as error:
            reason = (
                "; ".join(refusal(error))
                if isinstance(error, ValidationError)
                else str(error)
            )
            wrong.append(BadBlock.of(block, name, reason))
        else:
            if isinstance(made, CardRefusal):
                wrong.append(BadBlock.of(block, name, made.reason, made.rule))
            else:
                found[name] = made
    return Reading(
        found,
        tuple(wrong),
        declined=not blocks and not bad and declines(reply, grammar),
    )


def merged(first: Reading[T], second: Reading[T]) -> Reading[T]:
    """A reading and the reading of its repair.

    A thing that is new mends the bad block of its name, else the first one left: a fault may have been the name.
    """
    new = {
        name: thing for name, thing in second.found.items() if name not in first.found
    }
    left = list(first.bad)
    for name in new:
        same = [bad for bad in left if bad.name == name]
        for bad in (
            same or [bad for bad in left if bad.mendable and bad.name not in new][:1]
        ):
            left.remove(bad)
    still = [bad for bad in second.bad if bad.name not in first.found]
    again = {bad.name for bad in still}
    return Reading(
        {**first.found, **new},
        (*(bad for bad in left if bad.name not in again), *still),
    )


async def side_by_side(works: Iterable[Awaitable[T]]) -> list[T]:
    """The results of all works, in order, each run to its end; then the first error is raised, if there was one.

    Replies that are outstanding are no fault: they are raised together, as one, when nothing else went wrong.
    """

    async def ended(work: Awaitable[T]) -> T | KaceError:
        try:
            return await work
        except KaceError as error:
            return error

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ended(work)) for work in works]
    ends = [task.result() for task in tasks]
    for end in ends:
        if isinstance(end, KaceError) and not isinstance(end, Outstanding):
            raise end
    if waiting := [
        path for end in ends if isinstance(end, Outstanding) for path in end.requests
    ]:
        raise Outstanding(tuple(dict.fromkeys(waiting)))
    return [end for end in ends if not isinstance(end, KaceError)]


def _filled(reading: Reading[T], reply: str) -> Reading[T]:
    """The reading; one that holds nothing at all says so, with the words that came instead."""
    if reading.found or reading.bad or reading.declined:
        return reading
    return replace(
        reading, bad=(BadBlock(0, "", _NO_BLOCK, one_line(reply, EXCERPT_CHARS)),)
    )


def _repair(
    messages: tuple[Message, ...], reply: str, reading: Reading[T]
) -> tuple[Message, ...]:
    """The conversation so far, and what was wrong with the reply."""
    mendable = [bad for bad in reading.bad if bad.mendable]
    lines = []
    for bad in mendable[:MAX_LISTED]:
        where = f"line {bad.line}" if bad.line else ""
        name = neutral(bad.name)
        named = f"{where} ({name})" if where and name else where or name
        lines.append(f"- {named}{': ' if named else ''}{neutral(bad.reason)}")
    if len(mendable) > MAX_LISTED:
        lines.append(f"- and {len(mendable) - MAX_LISTED} more of the same kind")
    accepted = f"Accepted: {neutral(', '.join(reading.found) or 'nothing')}"
    note = "\n".join((template("teacher/repair"), "", accepted, "Refused:", *lines))
    if not reply.strip():  # providers refuse an empty turn
        asked = messages[-1]
        return (*messages[:-1], Message(asked.role, f"{asked.content}\n\n{note}"))
    # Its own blocks stay readable to the teacher; only what an engine could take for the end of a turn is broken.
    said = _TURN_MARKER.sub(BARRED, reply[:MAX_REPEATED_CHARS])
    return (*messages, Message(Role.ASSISTANT, said), Message(Role.USER, note))
