"""Replies as they leave: whole, or as server-sent events that tell the solve step by step."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from starlette.types import Send

from kace.models.base import Usage
from kace.problem import Problem
from kace.redact import one_line
from kace.retrieval.retriever import ContextSource, Retrieval
from kace.serve.chat import JSON
from kace.solver.records import Attempt, RetrievedContext, Solution
from kace.solver.tiers import LOCKED, TierName

EVENTS = "text/event-stream"
HEARTBEAT = b": still climbing\n\n"  # a comment that clients skip and that keeps connections open
HEARTBEAT_SECONDS = 15.0
CHUNK, MAX_ANSWER = "chat.completion.chunk", 60
_ATTEMPTS = {tier.name: tier.attempts for tier in LOCKED}

Event = Literal["waiting", "attempt", "climbing", "reading", "finishing"]
Headers = Sequence[tuple[str, str]]
SolveStep = Mapping[str, object]  # its `event`, a `text` for people, and what else there is to say


class HttpReply:
    """Sends one HTTP response; remembers its status, which is 0 while nothing has been sent."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0

    async def start(self, status: int, content_type: str, headers: Headers = ()) -> None:
        """Send the head."""
        self.status = status
        pairs = (*headers, ("content-type", content_type))
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    async def send(self, chunk: bytes, *, more: bool = True) -> None:
        """Send a piece of the body: the last one where there is no `more`."""
        await self._send({"type": "http.response.body", "body": chunk, "more_body": more})

    async def whole(self, status: int, body: bytes, content_type: str = JSON, headers: Headers = ()) -> None:
        """Send everything at once."""
        await self.start(status, content_type, (*headers, ("content-length", str(len(body)))))
        await self.send(body, more=False)


class Completion(NamedTuple):
    """What a client gets."""

    content: str
    usage: Usage
    finish: str = "stop"
    kace: Mapping[str, object] | None = None  # what the ladder says besides; OpenAI's clients leave it alone


@dataclass(frozen=True, slots=True)
class SseWriter:
    """Writes one completion as OpenAI's clients read it, in events or in one piece."""

    model: str  # as the client named it
    include_usage: bool | None = False  # whether the client wants usage at the end of a stream
    id: str = field(default_factory=lambda: f"chatcmpl-{secrets.token_hex(12)}")
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(self, completion: Completion) -> bytes:
        """The completion in one piece."""
        message = {"role": "assistant", "content": completion.content, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": completion.finish}
        return self._json("chat.completion", [choice], completion.kace, usage=usage_json(completion.usage))

    def opening(self) -> bytes:
        """The first chunk: who speaks."""
        return self._chunk({"role": "assistant", "content": ""})

    def closing(self, completion: Completion) -> bytes:
        """The last chunks: the content, why it ends, and what it cost."""
        last = self._chunk({}, finish=completion.finish, kace=completion.kace)
        if self.include_usage:
            last += _event(self._json(CHUNK, [], usage=usage_json(completion.usage)))
        return self._chunk({"content": completion.content}) + last + _event(b"[DONE]")

    async def steps(self, queue: asyncio.Queue[SolveStep | None]) -> AsyncIterator[bytes]:
        """Steps up to `None` as they come, told as reasoning, those of one moment together; else a heartbeat."""
        while True:
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    first = await queue.get()
            except TimeoutError:
                yield HEARTBEAT
                continue
            ready = [first, *(queue.get_nowait() for _ in range(queue.qsize()))]
            if steps := [step for step in ready if step is not None]:
                yield b"".join(self._chunk({"reasoning_content": f"{step['text']}\n"}, kace=step) for step in steps)
            if ready[-1] is None:
                return

    def _chunk(self, delta: Mapping[str, object], *, finish: str | None = None, kace: object = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _event(self._json(CHUNK, [choice], kace, **({"usage": None} if self.include_usage else {})))

    def _json(self, kind: str, choices: Sequence[object], kace: object = None, **usage: object) -> bytes:
        head = {"id": self.id, "object": kind, "created": self.created, "model": self.model, "choices": choices}
        body = {**head, **usage, **({} if kace is None else {"kace": kace})}
        return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def _event(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"


def usage_json(usage: Usage) -> dict[str, object]:
    """Tokens as a completion counts them."""
    split = {"prompt_tokens": usage.input, "completion_tokens": usage.output}
    return {**split, "total_tokens": sum(split.values()), "prompt_tokens_details": {"cached_tokens": usage.cached}}


class SolveProgress:
    """Observes one solve and what it reads, tells its steps, and keeps what was paid for if it ends early."""

    def __init__(self, tell: Callable[[SolveStep], None] | None = None) -> None:
        self._tell = tell
        self._ended: dict[str, int] = {}
        self.source: ContextSource | None = None
        self.attempts: list[Attempt] = []
        self.recalls: list[RetrievedContext] = []

    def started(self, problem: Problem) -> None:
        """A problem steps onto the ladder."""

    def solved(self, solution: Solution) -> None:
        """A problem has left the ladder."""

    def attempted(self, problem: Problem, attempt: Attempt) -> None:
        """An attempt has ended."""
        self.attempts.append(attempt)
        tier, of, outcome = attempt.tier.value, _ATTEMPTS[attempt.tier], attempt.outcome.value
        answer = one_line(attempt.answer, MAX_ANSWER) if attempt.answer else None
        result = answer or f"no answer ({outcome.replace('_', ' ')})"
        if attempt.index >= of:
            return self.step("finishing", f"From common facts: {result}.", tier=tier, answer=answer)
        done = self._ended[tier] = self._ended.get(tier, 0) + 1
        text = f"{tier} {done}/{of}: {result}."
        self.step("attempt", text, tier=tier, done=done, of=of, answer=answer, outcome=outcome)

    async def retrieve(
        self, problem: Problem, tier: TierName, before: Sequence[Attempt], earlier: Sequence[Retrieval]
    ) -> Retrieval | None:
        """What the source gives a tier, which comes to read when the ladder is climbed; nothing where there is none."""
        if before:
            self.step("climbing", f"Climbing to {tier.value}.", tier=tier.value)
        found = await self.source.retrieve(problem, tier, before, earlier) if self.source else None
        if found is not None:
            self.recalls.append(found.record)
            cards, domains, reader = found.record.cards, found.record.domains, found.record.tier.value
            count = f"{len(cards)} card{'' if len(cards) == 1 else 's'}" if cards else "no card"
            where = f" of {' and '.join(domains)}" if domains and cards else ""
            self.step("reading", f"{reader} reads {count}{where}.", tier=reader, cards=cards)
        return found

    def step(self, event: Event, text: str, **details: object) -> None:
        """Tell a step to who listens."""
        if self._tell is not None:
            self._tell({"event": event, "text": text, **{name: value for name, value in details.items() if value}})
