"""The loop: climb the ladder until a gate opens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from kace.answers.extract import Answer
from kace.answers.judge import Judge, Verdict
from kace.errors import KaceError
from kace.models.base import AttemptKey, ChatModel, ModelError, Request, Sampling
from kace.problem import Problem
from kace.retrieval.prompt import NOTHING, Context, Prompt, solver_prompt
from kace.solver.attempt import Attempt
from kace.solver.preset import TierSampling
from kace.solver.solution import Solution
from kace.solver.tiers import FALLBACK_GATE, LOCKED, ExitPath, Lens, Tier, TierName, decided
from kace.solver.vote import AnswerClass, Standing, count, group

if TYPE_CHECKING:
    from kace.retrieval.retriever import Recall, Shelf
    from kace.solver.dropout import Dropout
    from kace.solver.synthesis import Synthesis


Rungs = Callable[[Problem], Sequence[Tier]]
"""The ladder that a problem climbs."""


def locked(problem: Problem) -> Sequence[Tier]:
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
class Kit:
    """What a solve needs: the model, the judge of equality, and the settings of the run."""

    model: ChatModel
    judge: Judge
    sampling: Mapping[TierName, TierSampling]
    seed: int = 0
    early_stop: bool = False
    library: Shelf | None = None
    """What to read from; without one, the ladder climbs on the problem alone."""
    dropout: Dropout | None = None
    """Hides cards from single attempts at random, to measure what each is worth."""
    synthesis: Synthesis | None = None
    """Has the solver finish from the common facts of the HS attempts, where these fail their gate."""
    rungs: Rungs = locked
    """What a problem climbs. Anything but the locked ladder is beyond the paper, and says so."""
    observer: Observer | None = None


async def climb(problem: Problem, kit: Kit) -> Solution:
    """Sample, vote, and climb until some answer has enough agreement."""
    began = time.monotonic()
    if kit.observer:
        kit.observer.started(problem)
    attempts: list[Attempt] = []
    recalls: list[Recall] = []
    finishing: Attempt | None = None
    for tier in kit.rungs(problem):
        start = len(attempts)
        recall = await kit.library.read(problem, tier.name, attempts, recalls) if kit.library else None
        if recall:
            recalls.append(recall)
        context = recall.context if recall else NOTHING
        attempts += await sample(problem, tier, context, attempts, kit)
        classes = await classes_of([a.answer for a in attempts], kit.judge)
        vote = count(classes, start, len(attempts))
        if tier.gate.opens(vote):
            path, winner = tier.exit, vote.leader
            break
    else:
        path, winner = fallback(classes, len(attempts))
        if kit.synthesis:
            finishing = await kit.synthesis.finish(problem, attempts[start:], context.cards, kit)
    answer = winner.answer if winner else attempts[-1].answer
    if finishing and finishing.answer:
        answer = finishing.answer
    solution = Solution(
        problem=problem,
        seed=kit.seed,
        exit=path,
        answer=answer,
        verdict=await grade(problem, answer, kit.judge),
        attempts=tuple(attempts),
        classes=classes,
        right=await right_positions(problem, classes, kit.judge),
        recalls=tuple(recalls),
        seconds=time.monotonic() - began,
        synthesis=finishing,
    )
    if kit.observer:
        kit.observer.solved(solution)
    return solution


def fallback(classes: Sequence[AnswerClass], attempts: int) -> tuple[ExitPath, Standing | None]:
    """How a solve leaves that no gate let out: by the plurality of all attempts, or with no agreement at all."""
    vote = count(classes, 0, attempts)
    if FALLBACK_GATE.opens(vote):
        return ExitPath.FALLBACK_PLURALITY, vote.leader
    return ExitPath.FALLBACK_LAST_HS, None


async def sample(problem: Problem, tier: Tier, context: Context, before: Sequence[Attempt], kit: Kit) -> list[Attempt]:
    """The tier's attempts in order, made side by side."""
    keys = [AttemptKey(problem.id, kit.seed, tier.name.value, index) for index in range(tier.attempts)]
    done: dict[int, Attempt] = {}
    stopped: list[KaceError] = []
    async with asyncio.TaskGroup() as siblings:
        tasks = {siblings.create_task(attempt(problem, tier, key, context, kit)): key.index for key in keys}
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
            if waiting and not stopped and await settled(tier, before, done, kit.judge):
                for task in waiting:
                    task.cancel()
                break
    if stopped:
        raise stopped[0]
    return [done.get(key.index) or Attempt.cancelled(key, tier.lenses[key.index]) for key in keys]


async def settled(tier: Tier, before: Sequence[Attempt], done: Mapping[int, Attempt], judge: Judge) -> bool:
    """Whether the tier's missing attempts can no longer change its gate or its answer."""
    start, stop = len(before), len(before) + tier.attempts
    so_far = [a.answer for a in before] + [done[i].answer if i in done else None for i in range(tier.attempts)]
    pending = [start + index for index in range(tier.attempts) if index not in done]
    return decided(tier.gate, count(await classes_of(so_far, judge), start, stop), pending)


async def attempt(problem: Problem, tier: Tier, key: AttemptKey, context: Context, kit: Kit) -> Attempt | KaceError:
    """One attempt with what its tier reads.

    What the operator must mend is returned, not raised, so that siblings already paid for finish and are kept.
    """
    lens = tier.lenses[key.index]
    hidden = kit.dropout.hidden(key, [card.card_id for card in context.cards]) if kit.dropout else ()
    seen = tuple(card for card in context.cards if card.card_id not in hidden)
    prompt = solver_prompt(problem.text, lens, replace(context, cards=seen))
    try:
        result = await drawn(key, lens, prompt, kit)
    except KaceError as error:
        return error
    result = replace(result, hidden=hidden) if hidden else result
    if kit.observer:
        kit.observer.attempted(problem, result)
    return result


async def drawn(key: AttemptKey, lens: Lens | None, prompt: Prompt, kit: Kit) -> Attempt:
    """One call to the solver; the one place where a failed call becomes data."""
    draw = kit.sampling[TierName(key.tier)]
    request = Request(
        messages=prompt.messages,
        sampling=Sampling(draw.temperature, draw.max_tokens, key.sampling_seed()),
        attempt=key,
    )
    try:
        return Attempt.read(key, await kit.model.complete(request), lens, prompt.hash)
    except ModelError as error:
        return Attempt.failed(key, error, lens, prompt.hash)


async def classes_of(answers: Sequence[Answer | None], judge: Judge) -> tuple[AnswerClass, ...]:
    """The classes of equivalent answers. A comparison without a verdict never merges two answers."""

    async def same(left: Answer, right: Answer) -> bool:
        return await judge(left, right) is Verdict.SAME

    return await group(answers, same)


async def grade(problem: Problem, answer: Answer | None, judge: Judge) -> Verdict | None:
    """The verdict against the expected answer, where the problem has one."""
    if problem.answer is None:
        return None
    return await judge(Answer.of(problem.answer), answer) if answer else Verdict.DIFFERENT


async def right_positions(problem: Problem, classes: Sequence[AnswerClass], judge: Judge) -> frozenset[int]:
    """The positions of the attempts that gave the expected answer; empty where the problem has none."""
    right = [c for c in classes if await grade(problem, c.answer, judge) is Verdict.SAME]
    return frozenset(position for c in right for position in c.positions)
