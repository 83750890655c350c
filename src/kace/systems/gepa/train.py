"""GEPA training: the `gepa` package proposes instructions, our solver and judge score them.

gepa can keep its own state as a pickle and go on from it, with another stream of random numbers than a run that was
never stopped. It is not asked to: no file of it is written or read. Every evaluation is a step of our record and every
call is kept, so the same command walks through what was done at no cost and ends where an unbroken run would end.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from kace.errors import UsageError
from kace.learner.notebook import Step
from kace.learner.teacher import TIER, side_by_side, unanswered
from kace.models.base import AttemptKey, Message, ModelError, Request, Role, Sampling
from kace.problem import Problem
from kace.retrieval.prompt import template
from kace.solver.solution import Solution
from kace.solver.tiers import TierName
from kace.systems.flat import Flat
from kace.systems.gepa.adapter import COMPONENT, Adapter, FileLogger, Limit
from kace.systems.gepa.artefact import Candidate, GepaPrompt, shelf_of, write_prompt
from kace.systems.gepa.bridge import Bridge
from kace.systems.gepa.rollout import Rollout, Rollouts
from kace.systems.training import Dials, Ground

if TYPE_CHECKING:
    from gepa.core.result import GEPAResult

TEMPERATURE = 1.0
"""Of the reflecting teacher: the same prompt, asked again, should bring another proposal."""


class GepaDials(Dials):
    """How instructions are evolved."""

    EXTENT: ClassVar[frozenset[str]] = frozenset({"epochs", "max_metric_calls"})

    epochs: Annotated[int, Field(ge=1, le=100)] = 2
    """Passes over the training problems, a minibatch an iteration."""
    minibatch: Annotated[int, Field(ge=1, le=100)] = 3
    max_metric_calls: Annotated[int, Field(ge=1)] | None = None
    """Evaluations of one prompt on one problem; training ends with the iteration that passes it."""

    def iterations(self, problems: int) -> int:
        """How many iterations the epochs are."""
        return self.epochs * math.ceil(problems / self.minibatch)


def require_gepa() -> None:
    """Raise with the fix where the extra is not installed."""
    try:
        import gepa  # noqa: F401
    except ImportError:
        raise UsageError("training GEPA needs an extra", fix="pip install 'kace[gepa]'") from None


def check_budget(dials: GepaDials, judged: int) -> None:
    """Refuse a budget that ends before a single new prompt could be accepted, and would look like a result."""
    least = 2 * judged + 2 * dials.minibatch
    if dials.max_metric_calls is not None and dials.max_metric_calls < least:
        raise UsageError(
            f"--max-metric-calls {dials.max_metric_calls} ends before one new prompt is judged",
            fix=f"give at least {least}: twice the {judged} problems that prompts are judged on, and a minibatch",
        )


async def train_gepa(ground: Ground, dials: GepaDials) -> GepaPrompt:
    """The best instructions found, written to the plan's folder. The seed prompt is the solver's own."""
    require_gepa()
    plan = ground.plan
    judged = plan.validation or plan.train
    check_budget(dials, len(judged))
    bridge = Bridge()
    scoring = Scoring(ground)
    with FileLogger(plan.folder / "gepa.log") as logger:
        work = partial(_optimize, ground, dials, Adapter(bridge, scoring), logger)
        result = await bridge.run(work)
    prompt = _prompt(result)
    write_prompt(plan.out, prompt)
    return prompt


class Scoring:
    """What gepa asks of us: scores of instructions on problems, and what the teacher makes of a prompt."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self._asked: Counter[str] = Counter()

    async def score(self, instructions: str, batch: tuple[Problem, ...]) -> Rollouts:
        """One attempt a problem, side by side, each done once."""
        step = Step("gepa", "score", place=_digest(instructions, *(problem.id for problem in batch)))
        return await self.ground.notebook.once(step, Rollouts, partial(self._scored, instructions, batch))

    async def reflect(self, prompt: str) -> str:
        """The teacher's reply to a prompt of gepa's."""
        name = f"gepa reflect {_digest(prompt)}"
        key = AttemptKey(name, self.ground.plan.config.seed, TIER, self._asked[name])
        self._asked[name] += 1
        teacher = self.ground.teacher
        sampling = Sampling(TEMPERATURE, teacher.max_tokens, key.sampling_seed())
        try:
            reply = await teacher.model.complete(Request((Message(Role.USER, prompt),), sampling, key))
        except ModelError as error:
            raise unanswered(key, error) from None
        if not reply.text.strip():
            raise ValueError("the teacher said nothing")
        return reply.text

    def text_of(self, rollout: Rollout) -> str:
        """What an attempt said."""
        reply = self.ground.shop.calls.get(rollout.call) if rollout.call else None
        return reply.text if reply else ""

    async def _scored(self, instructions: str, batch: tuple[Problem, ...]) -> Rollouts:
        session = self.ground.session
        system = Flat("gepa", shelf=shelf_of(instructions, TierName.FLAT, session.kit.model))
        solved: list[Solution] = []
        for start in range(0, len(batch), session.window):
            some = batch[start : start + session.window]
            solved += await side_by_side(system.solve(problem, session.kit) for problem in some)
        return Rollouts(rollouts=tuple(map(Rollout.of, solved)))


def _optimize(ground: Ground, dials: GepaDials, adapter: Adapter, logger: FileLogger) -> GEPAResult[Rollout, int]:
    from gepa.api import optimize

    plan = ground.plan
    return optimize(
        seed_candidate={COMPONENT: template("solve")},
        trainset=list(plan.train),
        valset=list(plan.validation) or None,
        adapter=adapter,
        reflection_lm=adapter.reflect,
        reflection_minibatch_size=dials.minibatch,
        max_metric_calls=dials.max_metric_calls,
        stop_callbacks=Limit(adapter.bridge, dials.iterations(len(plan.train))),
        logger=logger,
        seed=plan.config.seed,
        track_best_outputs=False,
    )


def _prompt(result: GEPAResult[Rollout, int]) -> GepaPrompt:
    found = zip(
        result.candidates, result.val_aggregate_scores, result.parents, result.discovery_eval_counts, strict=True
    )
    return GepaPrompt(
        instructions=result.candidates[result.best_idx][COMPONENT],
        best=result.best_idx,
        metric_calls=result.total_metric_calls or 0,
        candidates=tuple(
            Candidate(
                instructions=texts[COMPONENT],
                score=round(score, 6),
                parents=tuple(parent for parent in parents if parent is not None),
                metric_calls=calls,
            )
            for texts, score, parents, calls in found
        ),
    )


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]
