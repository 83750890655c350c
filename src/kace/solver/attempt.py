"""One sampled attempt at a problem. A failed one is data: counted, kept, and voting for nothing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kace.answers.extract import Answer, read_answer
from kace.models.base import AttemptKey, Finish, ModelError, Reply, Usage


class Outcome(StrEnum):
    """How an attempt ended."""

    ANSWERED = "answered"
    NO_ANSWER = "no_answer"
    TRUNCATED = "truncated"
    """The token cap came before any boxed answer."""
    REFUSED = "refused"
    TIMEOUT = "timeout"
    PROVIDER_ERROR = "provider_error"
    CANCELLED = "cancelled"
    """Stopped early because it could no longer change the gate or the answer."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one call to the solver gave."""

    key: AttemptKey
    outcome: Outcome
    answer: Answer | None = None
    reply: Reply | None = None
    lens: str | None = None
    prompt: str = ""
    """The hash of the prompt's templates."""
    detail: str = ""
    """Why it failed, for people."""
    hidden: tuple[str, ...] = ()
    """Cards of its block that a dropout run hid from it."""

    @property
    def usage(self) -> Usage:
        """Tokens of the call; zero when no reply came."""
        return self.reply.usage if self.reply else Usage()

    @classmethod
    def read(cls, key: AttemptKey, reply: Reply, lens: str | None, prompt: str = "") -> Attempt:
        """Read the final answer out of a reply. Never raises."""
        answer = read_answer(reply.text)
        if answer is not None:
            outcome = Outcome.ANSWERED
        elif reply.finish is Finish.LENGTH:
            outcome = Outcome.TRUNCATED
        elif reply.finish is Finish.FILTERED:
            outcome = Outcome.REFUSED
        else:
            outcome = Outcome.NO_ANSWER
        return cls(key, outcome, answer, reply, lens, prompt)

    @classmethod
    def failed(cls, key: AttemptKey, error: ModelError, lens: str | None, prompt: str = "") -> Attempt:
        """Record a call that gave no reply."""
        return cls(key, Outcome(error.failure.value), lens=lens, prompt=prompt, detail=error.message)

    @classmethod
    def cancelled(cls, key: AttemptKey, lens: str | None) -> Attempt:
        """Record an attempt that was stopped because the tier was already decided."""
        return cls(key, Outcome.CANCELLED, lens=lens)
