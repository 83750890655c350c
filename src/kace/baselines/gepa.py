"""GEPA: the `gepa` package proposes instructions, our solver and judge score them.

gepa's own resuming (a pickle, and other random numbers than an unbroken run) is not used. Every evaluation is a step of
our record and every call is kept, so the same command repeats what was done at no cost and ends as it would have.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import Field

from kace.baselines.evaluate import Training, read_artefact
from kace.baselines.systems import FixedText, System
from kace.errors import KaceError, UsageError
from kace.files import write_atomic
from kace.ladder.prompt import Context, neutral, shortened, subject_of, template
from kace.ladder.record import Solution
from kace.learning import StepResult
from kace.learning.study import StepName, gather_all
from kace.models.base import Message, Role
from kace.problems import Problem

if TYPE_CHECKING:
    from gepa.core.adapter import EvaluationBatch, ProposalFn
    from gepa.core.result import GEPAResult

T = TypeVar("T")

FILE = "prompt.json"
COMPONENT = "instructions"  # the one text that is evolved
TEMPERATURE = (
    1.0  # of the teacher: the same prompt should bring another proposal
)
MAX_CHARS = 6_000  # of a problem and of an attempt
MINIBATCH = 3  # problems that one proposal is made from
Row = Mapping[str, str]  # what the teacher is shown of an attempt


class Rollout(StepResult):
    """An attempt and its score. A failed call scores nothing, like a wrong answer."""

    score: float
    feedback: str  # what the teacher reads beside the attempt
    call: str  # the key of its text


class Rollouts(StepResult):
    """A batch of rollouts."""

    rollouts: tuple[Rollout, ...]

    @property
    def summary(self) -> str:
        """How many are right."""
        right = sum(each.score > 0 for each in self.rollouts)
        return f"{right} of {len(self.rollouts)} right"


class GepaPrompt(StepResult):
    """The best instructions."""

    v: Literal[1] = 1
    instructions: Annotated[str, Field(min_length=1)]


def read_prompt(path: Path) -> GepaPrompt:
    """Read the prompt of a file, or of the folder that training made. `{"instructions": "..."}` is enough."""
    return read_artefact(path, FILE, GepaPrompt, "learned prompt", "gepa")


def require_gepa() -> None:
    """Raise `UsageError` if the extra is not installed."""
    try:
        import gepa  # noqa: F401
    except ImportError:
        raise UsageError(
            "training GEPA needs an extra", fix="pip install 'kace[gepa]'"
        ) from None


async def train_gepa(training: Training) -> GepaPrompt:
    """Find the best instructions and write them; the seed prompt is the solver's own."""
    require_gepa()
    prompt = await GepaRun(training).run()
    text = prompt.model_dump_json(indent=2) + "\n"
    write_atomic(training.plan.out / FILE, text)
    return prompt


class GepaRun:
    """Our solver and teacher as gepa calls them from its thread. Only training problems are reflected on.

    gepa carries on after most errors of a proposal. What ends a run (a cap, a missing reply, a refused key) is kept
    here, refuses all further work, and is raised when the thread has ended.
    """

    propose_new_texts: ProposalFn | None = (
        None  # gepa's own proposal prompt is used
    )

    def __init__(self, training: Training) -> None:
        """Take the training whose solver and teacher gepa calls."""
        self.training = training
        self.loop = asyncio.get_running_loop()
        self.stopped = False
        self.error: KaceError | None = None
        self._pending: Future[Any] | None = None
        self._asked: Counter[str] = Counter()

    async def run(self) -> GepaPrompt:
        """Run gepa in a thread to its end; a cancelled caller waits until the thread has ended."""
        worker = asyncio.ensure_future(asyncio.to_thread(self._optimize))
        try:
            result = await asyncio.shield(worker)
        except asyncio.CancelledError:
            self.stopped = True
            if self._pending:
                self._pending.cancel()
            await asyncio.wait([worker])
            worker.exception()
            raise
        except Exception as error:
            raise (self.error or error) from None
        if self.error:
            raise self.error
        return result

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop and wait for it in gepa's thread."""
        if self.stopped:
            work.close()
            raise RuntimeError("the training was stopped")
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        self._pending = future
        try:
            return future.result()
        except KaceError as error:
            self.stopped = True
            self.error = error
            raise

    def _optimize(self) -> GepaPrompt:
        from gepa.api import optimize

        plan = self.training.plan
        iterations = plan.epochs * math.ceil(len(plan.train) / MINIBATCH)
        seed = template("solve", subject_of(plan.config))
        found: GEPAResult[Rollout, int] = optimize(
            seed_candidate={COMPONENT: seed},
            trainset=list(plan.train),
            valset=list(plan.validation) or None,
            adapter=self,
            reflection_lm=self.reflect,
            reflection_minibatch_size=MINIBATCH,
            stop_callbacks=lambda state: (
                self.stopped or state.i + 1 >= iterations
            ),
            logger=self,
            seed=plan.config.seed,
            track_best_outputs=False,
        )
        best = found.candidates[found.best_idx]
        return GepaPrompt(instructions=best[COMPONENT])

    def log(self, message: str) -> None:
        """Drop gepa's messages: standard output is for results."""

    def evaluate(
        self,
        batch: list[Problem],
        candidate: dict[str, str],
        capture_traces: bool = False,
    ) -> EvaluationBatch[Row, Rollout]:
        """Make one attempt per problem. A failed one scores 0; only what ends the run is raised."""
        from gepa.core.adapter import EvaluationBatch

        scored = self._call(self._score(candidate[COMPONENT], batch))
        rollouts = list(scored.rollouts)
        return EvaluationBatch(
            outputs=rollouts,
            scores=[rollout.score for rollout in rollouts],
            trajectories=list(map(self._row, batch, rollouts))
            if capture_traces
            else None,
        )

    def make_reflective_dataset(
        self,
        candidate: dict[str, str],
        eval_batch: EvaluationBatch[Row, Rollout],
        components_to_update: list[str],
    ) -> Mapping[str, Sequence[Row]]:
        """Return what the teacher is shown of a minibatch."""
        rows = list(eval_batch.trajectories or ())
        return dict.fromkeys(components_to_update, rows)

    def reflect(self, prompt: str | list[dict[str, object]]) -> str:
        """Return the teacher's reply to gepa's prompt."""
        assert isinstance(prompt, str), (
            "prompts with images are never made here"
        )
        return self._call(self._reflect(prompt))

    async def _score(
        self,
        instructions: str,
        batch: Sequence[Problem],
    ) -> Rollouts:
        kit = self.training.session.kit
        context = Context(instructions=neutral(instructions))
        source = FixedText(context)
        system = System("gepa", source, attempts=1)

        async def score() -> Rollouts:
            solve = partial(system.solve, kit=kit)
            solutions = await gather_all(map(solve, batch))
            return Rollouts(rollouts=tuple(map(_rollout, solutions)))

        place = _digest(instructions, *(problem.id for problem in batch))
        step = StepName("gepa", "score", place=place)
        return await self.training.log.once(step, Rollouts, score)

    async def _reflect(self, prompt: str) -> str:
        name = f"gepa reflect {_digest(prompt)}"
        index = self._asked[name]
        self._asked[name] += 1
        messages = (Message(Role.USER, prompt),)
        teacher = self.training.teacher
        text = await teacher.complete(name, index, messages, TEMPERATURE)
        if not text.strip():
            raise ValueError("the teacher's reply is empty")
        return text

    def _row(
        self,
        problem: Problem,
        rollout: Rollout,
    ) -> Row:
        reply = self.training.calls.get(rollout.call)
        text = reply.text if reply else ""
        return {
            "Inputs": shortened(problem.text, MAX_CHARS),
            "Generated Outputs": shortened(text, MAX_CHARS) or "(nothing)",
            "Feedback": rollout.feedback,
        }


def _rollout(solution: Solution) -> Rollout:
    (attempt,) = solution.attempts
    if solution.correct:
        feedback = "The answer is correct."
    else:
        given = attempt.answer or f"missing ({attempt.outcome.value})"
        feedback = f"The answer is {given}, not {solution.expected}."
    score = float(bool(solution.correct))
    return Rollout(score=score, feedback=feedback, call=attempt.call)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]
