"""What a solve leaves on disk: one versioned JSON line per problem and seed, read back strictly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from kace.answers.judge import Verdict
from kace.errors import DataError
from kace.io import whole_lines
from kace.solver.attempt import Attempt, Outcome
from kace.solver.solution import Solution
from kace.solver.tiers import ExitPath, TierName

if TYPE_CHECKING:
    from kace.retrieval.retriever import Recall

TRACE_VERSION = 1


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class AttemptRecord(_Record):
    """One attempt. Its text is in the run's calls, under `call`."""

    tier: TierName
    index: int
    lens: str | None
    prompt: str = ""
    """The hash of the prompt's templates."""
    outcome: Outcome
    answer: str | None
    call: str
    input: int
    cached: int
    output: int
    seconds: float
    from_cache: bool
    detail: str
    correct: bool | None = None
    """Whether this attempt gave the expected answer; `None` where the problem has none."""
    hidden: tuple[str, ...] = ()
    """Cards of the block that this attempt did not see, in a dropout run."""

    @classmethod
    def of(cls, attempt: Attempt, correct: bool | None) -> AttemptRecord:
        """The record of an attempt."""
        reply = attempt.reply
        return cls(
            tier=TierName(attempt.key.tier),
            index=attempt.key.index,
            lens=attempt.lens,
            prompt=attempt.prompt,
            outcome=attempt.outcome,
            answer=attempt.answer.text if attempt.answer else None,
            call=reply.call if reply else "",
            input=attempt.usage.input,
            cached=attempt.usage.cached,
            output=attempt.usage.output,
            seconds=round(reply.seconds, 4) if reply else 0.0,
            from_cache=reply.cached if reply else False,
            detail=attempt.detail,
            correct=correct,
            hidden=attempt.hidden,
        )


class ClassRecord(_Record):
    """Attempts, by position, that gave equivalent answers."""

    answer: str
    positions: tuple[int, ...]


class RecallRecord(_Record):
    """What one tier read of the tree."""

    tier: TierName
    domains: tuple[str, ...]
    cards: tuple[str, ...]
    eligible: int
    tokens: int
    estimated: bool
    classifier_calls: int
    """Calls made to choose what is read: to place the problem or, in some compared systems, to pick cards."""
    classifier_input: int
    classifier_output: int
    notes: str = ""
    """The hash of learned text that was read beside cards or instead of them."""

    @classmethod
    def of(cls, recall: Recall) -> RecallRecord:
        """The record of a recall."""
        return cls(
            tier=recall.tier,
            domains=recall.domains,
            cards=tuple(card.card_id for card in recall.cards),
            eligible=recall.eligible,
            tokens=recall.tokens,
            estimated=recall.estimated,
            classifier_calls=recall.classifier_calls,
            classifier_input=recall.classifier_usage.input,
            classifier_output=recall.classifier_usage.output,
            notes=recall.context.learned_hash,
        )


class SolveRecord(_Record):
    """One problem solved once."""

    v: Literal[1] = 1
    problem: str
    """The content hash of the problem's text, which is not kept here."""
    label: str
    family: str | None
    domain: str | None
    seed: int
    exit: ExitPath | None
    answer: str | None
    expected: str | None
    verdict: Verdict | None
    correct: bool | None
    paper_calls: int
    real_calls: int
    seconds: float
    failed: bool
    recalls: tuple[RecallRecord, ...] = ()
    classes: tuple[ClassRecord, ...]
    attempts: tuple[AttemptRecord, ...]
    synthesis: AttemptRecord | None = None
    """The attempt from common facts, apart from the ladder's attempts; its answer, if it has one, is the answer."""

    @property
    def made(self) -> tuple[AttemptRecord, ...]:
        """The ladder's attempts, and the one from common facts where there is one."""
        return self.attempts if self.synthesis is None else (*self.attempts, self.synthesis)

    @property
    def exit_name(self) -> str:
        """Where it left, for people."""
        return self.exit.value if self.exit else "no ladder"

    @property
    def domains(self) -> tuple[str, ...]:
        """Where the classifier placed the problem; nothing for one that left at ES and was never placed."""
        return self.recalls[-1].domains if self.recalls else ()

    @classmethod
    def of(cls, solution: Solution) -> SolveRecord:
        """The record of a solution."""
        problem = solution.problem
        return cls(
            problem=problem.id,
            label=problem.label,
            family=problem.family,
            domain=problem.domain,
            seed=solution.seed,
            exit=solution.exit,
            answer=solution.answer.text if solution.answer else None,
            expected=problem.answer,
            verdict=solution.verdict,
            correct=solution.correct,
            paper_calls=solution.paper_calls,
            real_calls=solution.real_calls,
            seconds=round(solution.seconds, 4),
            failed=solution.failed,
            recalls=tuple(RecallRecord.of(recall) for recall in solution.recalls),
            classes=tuple(ClassRecord(answer=c.answer.text, positions=c.positions) for c in solution.classes),
            attempts=tuple(
                AttemptRecord.of(a, None if problem.answer is None else position in solution.right)
                for position, a in enumerate(solution.attempts)
            ),
            synthesis=_finishing(solution),
        )


def _finishing(solution: Solution) -> AttemptRecord | None:
    attempt = solution.synthesis
    if attempt is None:
        return None
    # Where it has an answer, that is the solution's, and so is the verdict on it.
    return AttemptRecord.of(attempt, solution.correct and attempt.answer is not None)


@dataclass(frozen=True, slots=True)
class Damage:
    """A line that could not be read."""

    line: int
    reason: str


class Line(NamedTuple):
    """One line of a trace and where it lies."""

    offset: int
    length: int
    content: SolveRecord | Damage


def read_trace(path: Path) -> Iterator[Line]:
    """Every record of a trace, and every damaged line in its place. A torn last line is left out."""
    for number, offset, line in whole_lines(path):
        try:
            yield Line(offset, len(line), SolveRecord.model_validate_json(line))
        except ValidationError as error:
            if newer := _newer_version(line):
                raise DataError(
                    f"{path}:{number}: written by a newer kace (trace version {newer}, this one reads {TRACE_VERSION})",
                    fix="upgrade kace",
                ) from None
            first = error.errors()[0]
            reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}".lstrip(": ")
            yield Line(offset, len(line), Damage(number, reason))


class _Version(BaseModel):
    v: int


def _newer_version(line: bytes) -> int | None:
    try:
        version = _Version.model_validate_json(line).v
    except ValidationError:
        return None
    return version if version > TRACE_VERSION else None
