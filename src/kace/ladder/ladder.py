"""The ladder: sample, vote, and climb until a gate opens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kace.answers.equal import Judge, Verdict
from kace.answers.extract import Answer
from kace.answers.kinds import MATHEMATICS, Subject
from kace.config import TierSampling
from kace.errors import KaceError
from kace.ladder.prompt import NOTHING, Context, Prompt, Prompts, solver_prompt
from kace.ladder.record import (
    Attempt,
    ClassRecord,
    Outcome,
    RetrievedContext,
    Solution,
)
from kace.ladder.tiers import (
    FALLBACK_GATE,
    LOCKED,
    AnswerClass,
    ExitPath,
    Lens,
    Standing,
    Tier,
    TierName,
    Vote,
    count,
    group,
)
from kace.models.base import (
    AttemptKey,
    ChatModel,
    ModelError,
    Request,
    Sampling,
)
from kace.problems import Problem


class ContextSource(Protocol):
    """Finds what a tier reads: in a tree, or in whatever is compared with one."""

    async def retrieve(
        self,
        problem: Problem,
        tier: TierName,
        before: Sequence[Attempt],
        earlier: Context | None,
    ) -> Context | None:
        """Return what a tier reads, after the attempts so far and what the tier before it read."""
        ...


class Observer(Protocol):
    """Receives the progress of solves."""

    def attempted(
        self,
        problem: Problem,
        attempt: Attempt,
    ) -> None:
        """Called when an attempt has ended."""
        return

    def solved(self, solution: Solution) -> None:
        """Called when a problem is solved."""
        return


class Silent(Observer):
    """Ignores the progress of solves."""


SILENT = Silent()


# What may differ from the paper's ladder

Tiers = Callable[[Problem], Awaitable[Sequence[Tier]]]
"""Returns the tiers that a problem climbs."""
Amend = Callable[["Climb", "Kit"], Awaitable["Climb"]]
"""Returns a finished climb with another answer."""


def always(*tiers: Tier) -> Tiers:
    """Return the same tiers for every problem."""

    async def tiers_of(problem: Problem) -> Sequence[Tier]:
        return tiers

    return tiers_of


locked = always(*LOCKED)


@dataclass(frozen=True, slots=True)
class Kit:
    """What a solve needs: the model, the judge of equality, and the settings of the run."""

    model: ChatModel
    judge: Judge
    sampling: Mapping[str, TierSampling]  # by tier
    subject: Subject = (
        MATHEMATICS  # named in prompts, and decides how answers are read
    )
    prompts: Prompts = "default"  # whose instructions attempts get
    seed: int = 0
    source: ContextSource | None = None  # without one, tiers read nothing
    tiers: Tiers = locked
    amend: tuple[Amend, ...] = ()  # applied in order when the climb has ended
    observer: Observer = SILENT


@dataclass(frozen=True, slots=True)
class Climb:
    """A problem that has left the ladder."""

    problem: Problem
    path: ExitPath | None
    vote: Vote  # of the last tier
    winner: Standing | None
    attempts: tuple[Attempt, ...]
    last_tier: int  # position of the first attempt of the last tier
    classes: tuple[AnswerClass, ...]
    context: Context = NOTHING  # what the last tier read
    recalls: tuple[RetrievedContext, ...] = ()  # what each tier read
    finishing: Attempt | None = None  # an attempt after the ladder
    policies: tuple[str, ...] = ()  # names of what else than votes decided


async def solve(problem: Problem, kit: Kit) -> Solution:
    """Solve a problem: climb the ladder, amend it, and grade the answer."""
    start = time.monotonic()
    climbed = await climb(problem, kit)
    for amend in kit.amend:
        climbed = await amend(climbed, kit)
    seconds = time.monotonic() - start
    solution = await conclude(climbed, seconds, kit)
    kit.observer.solved(solution)
    return solution


async def climb(problem: Problem, kit: Kit) -> Climb:
    """Sample, vote, and climb until some answer has enough agreement; else fall back on all attempts."""
    attempts: list[Attempt] = []
    recalls: list[RetrievedContext] = []
    earlier: Context | None = None
    for tier in await kit.tiers(problem):
        start = len(attempts)
        found = None
        if kit.source and tier.reads:
            source = kit.source
            found = await source.retrieve(problem, tier.name, attempts, earlier)
        if found:
            earlier = found
            recalls.append(found.record(tier.name))
        context = found or NOTHING
        attempts += await sample(problem, tier, context, kit)
        classes = await classes_of(problem, attempts, kit)
        vote = count(classes, start, len(attempts))
        if vote.opens(tier.gate):
            path = tier.exit
            winner = vote.leader
            break
    else:
        # No gate opened: the plurality of all attempts decides, if any two agree.
        whole = count(classes, 0, len(attempts))
        path = ExitPath.FALLBACK_LAST_HS
        winner = None
        if whole.opens(FALLBACK_GATE):
            path = ExitPath.FALLBACK_PLURALITY
            winner = whole.leader
    return Climb(
        problem=problem,
        path=path,
        vote=vote,
        winner=winner,
        attempts=tuple(attempts),
        last_tier=start,
        classes=classes,
        context=context,
        recalls=tuple(recalls),
    )


# Attempts


async def sample(
    problem: Problem,
    tier: Tier,
    context: Context,
    kit: Kit,
) -> list[Attempt]:
    """Make the tier's attempts side by side and return them in order."""
    tasks = []
    async with asyncio.TaskGroup() as group:
        for index, lens in enumerate(tier.lenses):
            key = AttemptKey(problem.id, kit.seed, tier.name.value, index)
            work = make_attempt(problem, key, lens, context, kit)
            tasks.append(group.create_task(work))
    attempts = []
    for task in tasks:
        made = task.result()
        if isinstance(made, KaceError):
            raise made
        attempts.append(made)
    return attempts


async def make_attempt(
    problem: Problem,
    key: AttemptKey,
    lens: Lens | None,
    context: Context,
    kit: Kit,
) -> Attempt | KaceError:
    """Make one attempt. A user error is returned, not raised, so that siblings already paid for are kept."""
    seen, hidden = context.seen_by(key)
    role = TierName(key.tier) if kit.prompts == "paper" else None
    prompt = solver_prompt(problem.text, lens, seen, role, kit.subject)
    try:
        attempt = await sample_once(key, prompt, kit)
    except KaceError as error:
        return error
    update = {"hidden": hidden, "messages": prompt.messages}
    attempt = attempt.model_copy(update=update)
    kit.observer.attempted(problem, attempt)
    return attempt


async def sample_once(
    key: AttemptKey,
    prompt: Prompt,
    kit: Kit,
) -> Attempt:
    """Call the solver once; the one place where a failed call becomes data."""
    tier = kit.sampling[key.tier]
    sampling = Sampling(tier.temperature, tier.max_tokens, key.sampling_seed())
    try:
        reply = await kit.model.complete(
            Request(prompt.messages, sampling, key)
        )
    except ModelError as error:
        return Attempt.failed(key, error, prompt.lens, prompt.hash)
    return Attempt.read(key, reply, prompt.lens, prompt.hash)


# Answers


async def classes_of(
    problem: Problem,
    attempts: Sequence[Attempt],
    kit: Kit,
) -> tuple[AnswerClass, ...]:
    """Return the classes of equivalent answers. A comparison without a verdict never merges two answers."""

    async def same(left: Answer, right: Answer) -> bool:
        return await kit.judge(left, right) is Verdict.SAME

    answers = [
        read_answer(problem, attempt.answer, kit) for attempt in attempts
    ]
    return await group(answers, same)


def read_answer(
    problem: Problem,
    text: str | None,
    kit: Kit,
) -> Answer | None:
    """Return an answer as the subject's answers are read."""
    return None if text is None else kit.subject.read(text, problem.text)


async def conclude(
    climbed: Climb,
    seconds: float,
    kit: Kit,
) -> Solution:
    """Return the solution: the answer graded, and every attempt marked right or wrong if an answer is expected."""
    problem = climbed.problem
    attempts = climbed.attempts
    finishing = climbed.finishing
    answer = final_answer(climbed, kit)
    verdict = await grade(problem, answer, kit)
    correct = None
    if problem.answer is not None:
        correct = verdict is Verdict.SAME
        attempts = await mark(problem, attempts, climbed.classes, kit)
    if finishing:
        # If it has an answer, that is the solution's answer, and so is the verdict on it.
        right = correct and finishing.answer is not None
        finishing = finishing.model_copy(update={"correct": right})
    made = [*attempts, finishing] if finishing else attempts
    classes = []
    for each in climbed.classes:
        text = each.answer.text
        classes.append(ClassRecord(answer=text, positions=each.positions))
    return Solution(
        problem=problem.id,
        label=problem.label,
        family=problem.family,
        domain=problem.domain,
        seed=kit.seed,
        exit=climbed.path,
        answer=answer.text if answer else None,
        expected=problem.answer,
        verdict=verdict,
        correct=correct,
        paper_calls=len(attempts),
        real_calls=len(made),
        seconds=round(seconds, 4),
        failed=any(each.outcome is Outcome.PROVIDER_ERROR for each in made),
        recalls=climbed.recalls,
        classes=tuple(classes),
        attempts=attempts,
        synthesis=finishing,
        policies=climbed.policies,
    )


def final_answer(climbed: Climb, kit: Kit) -> Answer | None:
    """Return the answer after the ladder if there is one, else the winner's, else that of the last tier's last attempt.

    By default attempts without an answer are passed over; the paper takes the very last.
    """
    finishing = climbed.finishing
    if finishing and finishing.answer is not None:
        return read_answer(climbed.problem, finishing.answer, kit)
    if climbed.winner:
        return climbed.winner.answer
    text = None
    for attempt in climbed.attempts[climbed.last_tier :]:
        if attempt.answer is not None or kit.prompts == "paper":
            text = attempt.answer
    return read_answer(climbed.problem, text, kit)


async def grade(
    problem: Problem,
    answer: Answer | None,
    kit: Kit,
) -> Verdict | None:
    """Return the verdict against the expected answer; `None` if the problem has none."""
    expected = read_answer(problem, problem.answer, kit)
    if expected is None:
        return None
    if answer is None:
        return Verdict.DIFFERENT
    return await kit.judge(expected, answer)


async def mark(
    problem: Problem,
    attempts: Sequence[Attempt],
    classes: Sequence[AnswerClass],
    kit: Kit,
) -> tuple[Attempt, ...]:
    """Return the attempts, each marked right or wrong."""
    right: set[int] = set()
    for each in classes:
        if await grade(problem, each.answer, kit) is Verdict.SAME:
            right.update(each.positions)
    marked = []
    for position, attempt in enumerate(attempts):
        marked.append(attempt.model_copy(update={"correct": position in right}))
    return tuple(marked)
