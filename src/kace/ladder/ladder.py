"""The loop: climb the ladder until a gate opens."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kace.answers.equal import Judge, Verdict
from kace.answers.extract import Answer
from kace.answers.kinds import MATHEMATICS, Subject
from kace.config import TierSampling
from kace.errors import KaceError
from kace.ladder.prompt import NOTHING, Prompt, PromptContext, Prompts, solver_prompt
from kace.ladder.record import Attempt, ClassRecord, Outcome, Solution
from kace.ladder.tiers import (
    FALLBACK_GATE,
    LOCKED,
    ExitPath,
    Lens,
    Tier,
    TierName,
    decided,
)
from kace.ladder.vote import AnswerClass, Standing, count, group
from kace.models.base import AttemptKey, ChatModel, ModelError, Request, Sampling
from kace.problems import Problem

if TYPE_CHECKING:
    from kace.ladder.confidence import ConfidencePolicy
    from kace.ladder.retriever import ContextSource, Retrieval
    from kace.ladder.synthesis import Synthesis


log = logging.getLogger(__name__)

Tiers = Callable[
    [Problem], Awaitable[Sequence[Tier]]
]  # the tiers that a problem climbs


async def locked(problem: Problem) -> Sequence[Tier]:
    """The ladder of the paper, the same for every problem."""
    return LOCKED


class Observer(Protocol):
    """Hears of progress while problems climb."""

    def started(self, problem: Problem) -> None:
        """A problem steps onto the ladder."""

    def attempted(self, problem: Problem, attempt: Attempt) -> None:
        """An attempt has ended."""

    def solved(self, solution: Solution) -> None:
        """A problem has left the ladder."""


@dataclass(frozen=True, slots=True)
class Dropout:
    """Hides each card from each attempt at random: a pure function of the two, so that a rerun hides the same.

    Draws are independent, so that attempts with a card less those without it estimate its worth without bias.
    """

    rate: float = 0.5
    seed: int = 0

    def hidden(self, key: AttemptKey, card_ids: Sequence[str]) -> tuple[str, ...]:
        """The cards hidden from an attempt, in the order given."""
        return tuple(
            card_id for card_id in card_ids if self._draw(key, card_id) < self.rate
        )

    def _draw(self, key: AttemptKey, card_id: str) -> float:
        text = f"{self.seed}\x1f{key.problem}\x1f{key.seed}\x1f{key.tier}\x1f{key.index}\x1f{card_id}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big") / (
            1 << 56
        )


@dataclass(frozen=True, slots=True)
class Kit:
    """What a solve needs: the model, the judge of equality, and the settings of the run."""

    model: ChatModel
    judge: Judge
    sampling: Mapping[str, TierSampling]
    subject: Subject = MATHEMATICS  # what prompts say, and how answers are read
    seed: int = 0
    early_stop: bool = False
    source: ContextSource | None = (
        None  # what to read from; without one, the ladder climbs on the problem alone
    )
    dropout: Dropout | None = (
        None  # hides cards from single attempts at random, to measure what each is worth
    )
    synthesis: Synthesis | None = None
    """Has the solver finish from the common facts of the HS attempts, where these fail their gate."""
    prompts: Prompts = "default"  # whose instructions attempts get
    tiers: Tiers = locked  # what a problem climbs. Anything but the locked ladder is beyond the paper, and says so
    observer: Observer | None = None
    logprobs: bool = False  # ask how sure the model was of each attempt
    confidence: ConfidencePolicy | None = None  # what that decides


async def climb(problem: Problem, kit: Kit) -> Solution:
    """Sample, vote, and climb until some answer has enough agreement."""
    began = time.monotonic()
    if kit.observer:
        kit.observer.started(problem)
    attempts: list[Attempt] = []
    read: list[Retrieval] = []
    finishing: Attempt | None = None
    tiers = await kit.tiers(problem)
    for tier in tiers:
        start = len(attempts)
        found = (
            await kit.source.retrieve(problem, tier.name, attempts, read)
            if kit.source
            else None
        )
        if found:
            read.append(found)
        context = found.context if found else NOTHING
        attempts += await sample(problem, tier, context, attempts, kit)
        classes = await classes_of(problem, attempts, kit)
        vote = count(classes, start, len(attempts))
        if tier.gate.opens(vote) and (
            not kit.confidence or kit.confidence.confirms(tier, attempts[start:])
        ):
            path = tier.exit
            winner = vote.leader
            break
    else:
        path, winner = fallback(classes, len(attempts))
        if kit.synthesis:
            finishing = await kit.synthesis.finish(
                problem, attempts[start:], context.cards, kit
            )
    if kit.confidence:
        winner = kit.confidence.winner(vote, classes, attempts, winner)
    last = next((each for each in reversed(attempts) if each.answer is not None), None)
    answer = winner.answer if winner else said(problem, last, kit)
    if finishing and finishing.answer is not None:
        answer = said(problem, finishing, kit)
    solution = await conclude(
        problem,
        kit,
        path,
        answer,
        attempts,
        classes,
        seconds=time.monotonic() - began,
        read=read,
        finishing=finishing,
    )
    if kit.observer:
        kit.observer.solved(solution)
    return solution


async def conclude(
    problem: Problem,
    kit: Kit,
    path: ExitPath | None,
    answer: Answer | None,
    attempts: Sequence[Attempt],
    classes: Sequence[AnswerClass],
    *,
    seconds: float,
    read: Sequence[Retrieval],
    finishing: Attempt | None,
) -> Solution:
    """The solution: the answer graded, and every attempt marked right or wrong where an answer is expected."""
    verdict = await grade(problem, answer, kit)
    correct = None if problem.answer is None else verdict is Verdict.SAME
    right = await right_positions(problem, classes, kit)
    marked = attempts
    if correct is not None:
        marked = [
            a.model_copy(update={"correct": place in right})
            for place, a in enumerate(attempts)
        ]
    if finishing:
        # Where it has an answer, that is the solution's, and so is the verdict on it.
        finishing = finishing.model_copy(
            update={"correct": correct and finishing.answer is not None}
        )
    made = [*attempts, *([finishing] if finishing else ())]
    return Solution(
        problem=problem.id,
        label=problem.label,
        family=problem.family,
        domain=problem.domain,
        seed=kit.seed,
        exit=path,
        answer=answer.text if answer else None,
        expected=problem.answer,
        verdict=verdict,
        correct=correct,
        paper_calls=len(attempts),
        real_calls=sum(a.calls for a in made),
        seconds=round(seconds, 4),
        failed=any(a.outcome is Outcome.PROVIDER_ERROR for a in made),
        recalls=tuple(each.record for each in read),
        classes=tuple(
            ClassRecord(answer=c.answer.text, positions=c.positions) for c in classes
        ),
        attempts=tuple(marked),
        synthesis=finishing,
        policies=kit.confidence.names if kit.confidence else (),
    )


def fallback(
    classes: Sequence[AnswerClass], attempts: int
) -> tuple[ExitPath, Standing | None]:
    """How a solve leaves that no gate let out: by the plurality of all attempts, or with the last one that answered."""
    vote = count(classes, 0, attempts)
    if FALLBACK_GATE.opens(vote):
        return ExitPath.FALLBACK_PLURALITY, vote.leader
    return ExitPath.FALLBACK_LAST_HS, None


async def sample(
    problem: Problem,
    tier: Tier,
    context: PromptContext,
    before: Sequence[Attempt],
    kit: Kit,
) -> list[Attempt]:
    """The tier's attempts in order, made side by side."""
    asked = asked_of(problem, tier, context, kit)
    done: dict[int, Attempt] = {}
    stopped: list[KaceError] = []
    async with asyncio.TaskGroup() as siblings:
        tasks = {
            siblings.create_task(attempt(problem, each, kit)): each.key.index
            for each in asked
        }
        waiting = set(tasks)
        when = asyncio.FIRST_COMPLETED if kit.early_stop else asyncio.ALL_COMPLETED
        while waiting:
            finished, waiting = await asyncio.wait(waiting, return_when=when)
            for task in finished:
                match task.result():
                    case Attempt() as result:
                        done[tasks[task]] = result
                    case error:
                        stopped.append(error)
            if (
                waiting
                and not stopped
                and await settled(problem, tier, before, done, kit)
            ):
                for task in waiting:
                    task.cancel()
                break
    if stopped:
        raise stopped[0]
    return [
        done.get(each.key.index) or Attempt.cancelled(each.key, each.lens)
        for each in asked
    ]


class Asked(NamedTuple):
    """An attempt before it is made: which it is, what it is shown, and the cards that it is not."""

    key: AttemptKey
    lens: Lens | None
    prompt: Prompt
    hidden: tuple[str, ...]


def asked_of(
    problem: Problem, tier: Tier, context: PromptContext, kit: Kit
) -> list[Asked]:
    """The tier's attempts with what the tier reads."""
    role = tier.name if kit.prompts == "paper" else None
    asked = []
    for index, lens in enumerate(tier.lenses):
        key = AttemptKey(problem.id, kit.seed, tier.name.value, index)
        hidden = (
            kit.dropout.hidden(key, [card.card_id for card in context.cards])
            if kit.dropout
            else ()
        )
        seen = tuple(card for card in context.cards if card.card_id not in hidden)
        prompt = solver_prompt(
            problem.text, lens, replace(context, cards=seen), role, kit.subject
        )
        asked.append(Asked(key, lens, prompt, hidden))
    return asked


async def settled(
    problem: Problem,
    tier: Tier,
    before: Sequence[Attempt],
    done: Mapping[int, Attempt],
    kit: Kit,
) -> bool:
    """Whether the tier's missing attempts can no longer change its gate or its answer."""
    start = len(before)
    stop = len(before) + tier.attempts
    so_far = [*before, *(done.get(index) for index in range(tier.attempts))]
    pending = [start + index for index in range(tier.attempts) if index not in done]
    return decided(
        tier.gate, count(await classes_of(problem, so_far, kit), start, stop), pending
    )


async def attempt(problem: Problem, asked: Asked, kit: Kit) -> Attempt | KaceError:
    """One attempt. A user error is returned, not raised, so that siblings already paid for finish and are kept."""
    key, lens, prompt, hidden = asked
    try:
        result = await drawn(key, lens, prompt, kit)
    except KaceError as error:
        return error
    result = result.model_copy(update={"hidden": hidden}) if hidden else result
    if kit.observer:
        kit.observer.attempted(problem, result)
    return result


def request_of(key: AttemptKey, prompt: Prompt, kit: Kit) -> Request:
    """What an attempt asks of the solver."""
    draw = kit.sampling[TierName(key.tier)]
    sampling = Sampling(draw.temperature, draw.max_tokens, key.sampling_seed())
    return Request(prompt.messages, sampling, key, logprobs=kit.logprobs)


async def drawn(
    key: AttemptKey, lens: Lens | None, prompt: Prompt, kit: Kit
) -> Attempt:
    """One call to the solver; the one place where a failed call becomes data."""
    try:
        reply = await kit.model.complete(request_of(key, prompt, kit))
    except ModelError as error:
        return Attempt.failed(key, error, lens, prompt.hash)
    if kit.logprobs and reply.text and reply.confidence is None:
        say_unsure(kit.model.name)
    return Attempt.read(key, reply, lens, prompt.hash)


@cache
def say_unsure(model: str) -> None:
    """Say, once for each model, that confidence is not to be had of it."""
    log.warning(
        "%s gives no usable log-probabilities: its attempts have no confidence, and count as average",
        model,
    )


def said(problem: Problem, attempt: Attempt | None, kit: Kit) -> Answer | None:
    """The answer of an attempt, read as the subject's answers are."""
    return (
        None
        if attempt is None or attempt.answer is None
        else kit.subject.read(attempt.answer, problem.text)
    )


async def classes_of(
    problem: Problem, attempts: Sequence[Attempt | None], kit: Kit
) -> tuple[AnswerClass, ...]:
    """The classes of equivalent answers. A comparison without a verdict never merges two answers."""

    async def same(left: Answer, right: Answer) -> bool:
        return await kit.judge(left, right) is Verdict.SAME

    return await group([said(problem, attempt, kit) for attempt in attempts], same)


async def grade(problem: Problem, answer: Answer | None, kit: Kit) -> Verdict | None:
    """The verdict against the expected answer, where the problem has one."""
    if problem.answer is None:
        return None
    expected = kit.subject.read(problem.answer, problem.text)
    return await kit.judge(expected, answer) if answer else Verdict.DIFFERENT


async def right_positions(
    problem: Problem, classes: Sequence[AnswerClass], kit: Kit
) -> frozenset[int]:
    """The positions of the attempts that gave the expected answer; empty where the problem has none."""
    right = [c for c in classes if await grade(problem, c.answer, kit) is Verdict.SAME]
    return frozenset(position for c in right for position in c.positions)
