"""Replies as OpenAI's clients read them. What the ladder says besides stands in `kace`, which they leave alone."""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from kace.models.base import Usage, total
from kace.models.budget import Ledger
from kace.serve.asked import Asked
from kace.serve.progress import Progress, Step
from kace.solver.attempt import Attempt
from kace.solver.solution import Solution

DONE = b"data: [DONE]\n\n"
CHUNK = "chat.completion.chunk"
HEARTBEAT = b": still climbing\n\n"
"""A comment that clients skip and that keeps connections open."""


@dataclass(frozen=True, slots=True)
class Solved:
    """A solution and what it cost."""

    solution: Solution
    bill: Ledger


@dataclass(frozen=True, slots=True)
class Letter:
    """The envelope of one reply, whole or in chunks."""

    model: str
    """As the client named it."""
    include_usage: bool = False
    """Whether the client wants usage at the end of a stream."""
    id: str = field(default_factory=lambda: f"chatcmpl-{secrets.token_hex(12)}")
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(self, content: str, usage: Usage, *, finish: str = "stop", kace: object = None) -> bytes:
        """The reply in one piece."""
        message = {"role": "assistant", "content": content, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        reply = {**self._head("chat.completion"), "choices": [choice], "usage": _usage(usage)}
        return _json(reply if kace is None else {**reply, "kace": kace})

    def opening(self) -> bytes:
        """The first chunk: who speaks."""
        return self._chunk({"role": "assistant", "content": ""})

    def step(self, step: Step) -> bytes:
        """A chunk that tells a step, as reasoning: it is no part of the answer."""
        told = {name: getattr(step, name) for name in Step.__slots__ if getattr(step, name)}
        return self._chunk({"reasoning_content": f"{step.text}\n"}, kace=told)

    def closing(self, content: str, usage: Usage, *, finish: str = "stop", kace: object = None) -> list[bytes]:
        """The last chunks: the content, why it ends, and what it cost."""
        chunks = [self._chunk({"content": content}), self._chunk({}, finish=finish, kace=kace)]
        if self.include_usage:
            chunks.append(_event({**self._head(CHUNK), "choices": [], "usage": _usage(usage)}))
        return [*chunks, DONE]

    def _head(self, kind: str) -> dict[str, object]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}

    def _chunk(self, delta: Mapping[str, object], *, finish: str | None = None, kace: object = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        chunk = {**self._head(CHUNK), "choices": [choice]}
        if self.include_usage:
            chunk["usage"] = None
        return _event(chunk if kace is None else {**chunk, "kace": kace})


def solved_whole(asked: Asked, solved: Solved) -> bytes:
    """The reply to a request that was solved."""
    usage = used(solved.bill)
    return Letter(asked.model).whole(content_of(asked, solved.solution), usage, kace=_details(asked, solved))


def solved_closing(letter: Letter, asked: Asked, solved: Solved) -> list[bytes]:
    """The end of its stream."""
    usage = used(solved.bill)
    return letter.closing(content_of(asked, solved.solution), usage, kace=_details(asked, solved))


def content_of(asked: Asked, solution: Solution) -> str:
    """The answer in a sentence, cut where the client wants it to stop."""
    if solution.answer is not None:
        text = rf"The answer is $\boxed{{{solution.answer.text}}}$."
    else:
        text = f"No answer was found in {len(solution.made)} attempts."
    for stop in asked.stops:
        text = text.split(stop, 1)[0]
    return text


def paid_for(progress: Progress, bill: Ledger) -> Mapping[str, object]:
    """What a solve that ended early has used up, and what it found for it."""
    votes = _tally(progress.attempts)
    best = votes[0] if votes and votes[0]["votes"] != 1 else None
    details = {
        "exit_path": None,
        "answer": best["answer"] if best else None,
        "votes": votes,
        "cards": _cards(progress),
        "attempts": len(progress.attempts),
        **_cost(bill),
    }
    return {"kace": details, "usage": _usage(used(bill))}


def sse_error(body: bytes) -> bytes:
    """An error as an event of a stream that has begun."""
    return b"data: " + body + b"\n\n"


def _details(asked: Asked, solved: Solved) -> dict[str, object]:
    solution = solved.solution
    won = solution.answer.key if solution.answer else None
    classes = sorted(solution.classes, key=lambda c: (-len(c.positions), c.answer.key != won, c.positions[0]))
    cards = dict.fromkeys(card.card_id for recall in solution.recalls for card in recall.cards)
    return {
        "exit_path": solution.exit.value if solution.exit else None,
        "answer": solution.answer.text if solution.answer else None,
        "votes": [{"answer": c.answer.text, "votes": len(c.positions)} for c in classes],
        "cards": list(cards),
        "domains": list(solution.recalls[-1].domains) if solution.recalls else [],
        "attempts": len(solution.made),
        **_cost(solved.bill),
        "seconds": round(solution.seconds, 3),
        "seed": solution.seed,
        "ignored": list(asked.ignored),
    }


def _cost(bill: Ledger) -> dict[str, object]:
    roles = bill.roles.items()
    return {
        "calls": {role: spent.calls for role, spent in roles},
        "tokens": {
            role: {"input": spent.usage.input, "cached": spent.usage.cached, "output": spent.usage.output}
            for role, spent in roles
        },
        "usd": round(bill.usd, 6),
    }


def used(bill: Ledger) -> Usage:
    """All tokens of a bill, whoever asked for them."""
    return total([spent.usage for spent in bill.roles.values()])


def _usage(usage: Usage) -> dict[str, object]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }


def _tally(attempts: list[Attempt]) -> list[dict[str, object]]:
    answers = [attempt.answer for attempt in attempts if attempt.answer]
    first = {answer.key: answer for answer in reversed(answers)}
    counts = Counter(answer.key for answer in answers)
    return [{"answer": first[key].text, "votes": votes} for key, votes in counts.most_common()]


def _cards(progress: Progress) -> list[str]:
    return list(dict.fromkeys(card.card_id for recall in progress.recalls for card in recall.cards))


def _event(value: Mapping[str, object]) -> bytes:
    return b"data: " + _json(value) + b"\n\n"


def _json(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
