"""The records of a solve: an attempt, what a tier read, and the solution. The same in memory and on disk.

A solution is one line of `traces.jsonl`, trace version 1. Texts of attempts and problems are not in it: a run keeps
them in `calls/` and in `problems.jsonl`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from operator import not_
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kace.answers.equal import Verdict
from kace.answers.extract import last_boxed
from kace.errors import DataError
from kace.ladder.tiers import (
    ExitPath,
    TierName,
)
from kace.models.base import (
    AttemptKey,
    Confidence,
    Finish,
    Messages,
    ModelError,
    Reply,
    Usage,
    after_thinking,
    total,
)


class Outcome(StrEnum):
    """How an attempt ended."""

    ANSWERED = "answered"
    NO_ANSWER = "no_answer"
    TRUNCATED = "truncated"  # the token cap came before any boxed answer
    REFUSED = "refused"
    TIMEOUT = "timeout"
    PROVIDER_ERROR = "provider_error"


class _Record(BaseModel):
    # Traces of older versions have fields of features that are gone.
    model_config = ConfigDict(extra="ignore", frozen=True)


class Attempt(_Record):
    """One call to the solver. A failed one is data: counted, kept, and voting for nothing."""

    tier: TierName
    index: int
    lens: str | None = None
    prompt: str = ""  # the hash of the prompt's templates
    outcome: Outcome
    answer: str | None = None
    call: str = ""  # the key of its text among the run's calls
    input: int = 0
    cached: int = 0
    output: int = 0
    seconds: float = 0.0
    from_cache: bool = False
    detail: str = ""  # why it failed
    # Whether it gave the expected answer; `None` if the problem has none.
    correct: bool | None = None
    hidden: tuple[
        str, ...
    ] = ()  # cards of the block that a dropout run hid from it
    # How sure the model was, if that was requested and the model reports it.
    confidence: Confidence | None = Field(default=None, exclude_if=not_)
    # Answered by a batch, at its price.
    batch: bool = Field(default=False, exclude_if=not_)
    # What was sent and what the model wrote, in memory only.
    messages: Messages = Field(default=(), exclude=True)
    text: str = Field(default="", exclude=True)

    @classmethod
    def read(
        cls,
        key: AttemptKey,
        reply: Reply,
        lens: str | None,
        prompt: str = "",
    ) -> Attempt:
        """Read the final answer out of a reply. Never raises."""
        answer = last_boxed(reply.text)
        outcome = Outcome.ANSWERED
        if answer is None:
            ended = {
                Finish.LENGTH: Outcome.TRUNCATED,
                Finish.FILTERED: Outcome.REFUSED,
            }
            outcome = ended.get(reply.finish, Outcome.NO_ANSWER)
        return cls(
            tier=TierName(key.tier),
            index=key.index,
            lens=lens,
            prompt=prompt,
            outcome=outcome,
            answer=answer,
            call=reply.call,
            input=reply.usage.input,
            cached=reply.usage.cached,
            output=reply.usage.output,
            seconds=round(reply.seconds, 4),
            from_cache=reply.cached,
            confidence=reply.confidence,
            batch=reply.batch,
            text=reply.text,
        )

    @classmethod
    def failed(
        cls,
        key: AttemptKey,
        error: ModelError,
        lens: str | None,
        prompt: str = "",
    ) -> Attempt:
        """Record a call that gave no reply."""
        return cls(
            tier=TierName(key.tier),
            index=key.index,
            lens=lens,
            prompt=prompt,
            outcome=Outcome(error.failure.value),
            detail=error.message,
        )

    def __eq__(self, other: object) -> bool:
        """Whether the records are equal; the text is no part of them."""
        return (
            isinstance(other, Attempt)
            and self.model_dump() == other.model_dump()
        )

    @property
    def usage(self) -> Usage:
        """Tokens of its call; zero if no reply came."""
        return Usage(self.input, self.cached, self.output)

    @property
    def replied(self) -> bool:
        """Whether the model wrote anything at all."""
        replies = (Outcome.ANSWERED, Outcome.NO_ANSWER, Outcome.TRUNCATED)
        return self.outcome in replies or bool(self.text)


class ClassRecord(_Record):
    """Attempts, by position, that gave equivalent answers."""

    answer: str
    positions: tuple[int, ...]


class RetrievedContext(_Record):
    """What one tier read and how it was found: the trace's record of a `Context`."""

    tier: TierName
    domains: tuple[str, ...] = ()
    cards: tuple[str, ...] = ()
    eligible: int = (
        0  # cards of the block before the relevance threshold and the budget
    )
    tokens: int = 0  # of everything read: cards, notes and instructions
    estimated: bool = False  # true if `tokens` is characters over four
    # Calls made to choose what is read: to route or, in some compared systems, to pick cards.
    classifier_calls: int = 0
    classifier_input: int = 0
    # Of the input, read from a prefix cache. Written only if there is any: older traces have none.
    classifier_cached: int = Field(default=0, exclude_if=not_)
    classifier_output: int = 0
    notes: str = (
        ""  # the hash of learned text that was read beside or instead of cards
    )

    @property
    def abstained(self) -> bool:
        """Whether there were eligible cards and none was shown."""
        return self.eligible > 0 and not self.cards


class Solution(_Record):
    """One problem solved once, with everything that led to the answer."""

    v: Literal[1] = 1
    problem: str  # the content hash of the problem's text
    label: str
    family: str | None
    domain: str | None
    seed: int
    exit: ExitPath | None  # `None` for a system without a ladder
    answer: str | None
    expected: str | None
    # Against the expected answer; `None` if the problem has none.
    verdict: Verdict | None
    # No answer, and a comparison without a verdict, count as wrong.
    correct: bool | None
    # Attempts of every tier that was reached: 2, 5 or 10 on the locked ladder.
    paper_calls: int
    real_calls: int  # calls that ran to an end, read from the cache or not
    seconds: float  # from the first attempt to the exit, waiting included
    failed: bool  # whether a call failed for good: worth another try on the next run
    recalls: tuple[RetrievedContext, ...] = ()  # what MS and HS read
    classes: tuple[ClassRecord, ...]
    attempts: tuple[Attempt, ...]
    # The attempt from common facts. It is not one of the ladder's and votes for nothing, but its answer is the answer.
    synthesis: Attempt | None = None
    # Beyond the paper: what else than counts of votes decided, such as `vote=confidence`.
    policies: tuple[str, ...] = Field(default=(), exclude_if=not_)

    def __repr__(self) -> str:
        verdict = {True: "right, ", False: "wrong, ", None: ""}[self.correct]
        answer = self.answer or "no answer"
        return f"<Solution {answer}: {verdict}{self.exit_name}, {self.real_calls} calls>"

    __str__ = __repr__

    @property
    def name(self) -> str:
        """The problem's label, or the beginning of its hash."""
        return self.label or self.problem[:8]

    @property
    def made(self) -> tuple[Attempt, ...]:
        """The ladder's attempts, and the one from common facts if there is one."""
        if self.synthesis is None:
            return self.attempts
        return (*self.attempts, self.synthesis)

    @property
    def agreeing(self) -> tuple[Attempt, ...]:
        """The attempts that gave the answer, of the last tier in which one did."""
        for each in self.classes:
            if each.answer == self.answer:
                made = [self.attempts[place] for place in each.positions]
                return tuple(a for a in made if a.tier is made[-1].tier)
        return ()

    @property
    def winner(self) -> Attempt | None:
        """The attempt whose working represents the answer."""
        if self.synthesis is not None and self.synthesis.answer is not None:
            return self.synthesis
        return next(iter(self.agreeing), None)

    @property
    def working(self) -> str:
        """What the winner wrote without its thinking, ending in the boxed answer. Empty without texts."""
        winner = self.winner
        if winner is None or self.answer is None or not winner.text:
            return ""
        text = after_thinking(winner.text).strip()
        box = last_boxed(text)
        if box is not None and box == winner.answer:
            rest = text.rpartition("boxed")[2].replace(box, "", 1)
            if not any(map(str.isalnum, rest)):
                return text
        return f"{text}\n\n{boxed(self.answer)}".strip()

    @property
    def exit_name(self) -> str:
        """The exit, for display."""
        return self.exit.value if self.exit else "no ladder"

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains the problem was routed to; none if it left at ES."""
        return self.recalls[-1].domains if self.recalls else ()

    @property
    def abstained(self) -> bool:
        """Whether some tier had eligible cards and no tier showed any."""
        shown = any(recall.cards for recall in self.recalls)
        return not shown and any(recall.abstained for recall in self.recalls)

    @property
    def cached_calls(self) -> int:
        """Calls that were read from disk and cost nothing."""
        return sum(attempt.from_cache for attempt in self.made)

    @property
    def usage(self) -> Usage:
        """The solver's tokens over all attempts."""
        return total([attempt.usage for attempt in self.made])


def boxed(answer: str) -> str:
    """Return the answer in a sentence."""
    return rf"The answer is $\boxed{{{answer}}}$."


@dataclass(frozen=True, slots=True)
class Damage:
    """A line of a trace that could not be read."""

    line: int
    reason: str


def parse_solution(line: bytes, where: str) -> Solution | str:
    """Return the record in a line of a trace, or why it is damaged.

    A record of a newer trace version raises `DataError`.
    """
    try:
        return Solution.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    version = first["input"]
    if place == "v" and isinstance(version, int) and version > 1:
        raise DataError(
            f"{where}: written by a newer kace (trace version {version}, this one reads 1)",
            fix="upgrade kace",
        )
    return f"{place}: {first['msg']}".lstrip(": ")
