"""GEPA: the `gepa` package proposes instructions, our solver and judge score them.

gepa's own resuming (a pickle, and other random numbers than an unbroken run) is not used. Every call is kept, so the
same command repeats what was done at no cost and ends as it would have.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import Field

from kace.baselines.evaluate import Score, Training, read_artefact
from kace.errors import KaceError, UsageError
from kace.files import write_atomic
from kace.ladder.prompt import Context, neutral, shortened, subject_of, template
from kace.ladder.record import Solution
from kace.learning import StepResult
from kace.learning.study import StepName
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


@dataclass
class GepaRun:
    """Our solver and teacher as gepa calls them from its thread. Only training problems are reflected on.

    gepa carries on after most errors of a proposal. What ends a run (a cap, a missing reply, a refused key) is kept
    here, refuses all further work, and is raised when the thread has ended.
    """

    training: Training
    loop: asyncio.AbstractEventLoop = field(
        default_factory=asyncio.get_running_loop
    )
    stopped: bool = False
    error: KaceError | None = None
    propose_new_texts: ProposalFn | None = None  # gepa's own prompt is used
    _pending: Future[Any] | None = None
    _asked: Counter[str] = field(default_factory=Counter)

    async def run(self) -> GepaPrompt:
        """Run gepa in a thread to its end; a cancelled caller waits until the thread has ended."""
        worker = asyncio.ensure_future(asyncio.to_thread(self._optimize))
        try:
            result = await asyncio.shield(worker)
        except Exception as error:
            raise (self.error or error) from None
        finally:
            self.stopped = True
            if self._pending:
                self._pending.cancel()
            await asyncio.wait([worker])
            worker.exception()  # else asyncio reports that it was never read
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
        found: GEPAResult[Solution, int] = optimize(
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
    ) -> EvaluationBatch[Row, Solution]:
        """Make one attempt per problem. A failed one scores 0; only what ends the run is raised."""
        from gepa.core.adapter import EvaluationBatch

        solutions = self._call(self._attempt(candidate[COMPONENT], batch))
        rows = list(map(self._row, batch, solutions))
        return EvaluationBatch(
            outputs=solutions,
            scores=[float(bool(solution.correct)) for solution in solutions],
            trajectories=rows if capture_traces else None,
        )

    def make_reflective_dataset(
        self,
        candidate: dict[str, str],
        eval_batch: EvaluationBatch[Row, Solution],
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

    async def _attempt(
        self, instructions: str, batch: Sequence[Problem]
    ) -> list[Solution]:
        context = Context(instructions=neutral(instructions))
        seed = self.training.config.seed
        solutions = await self.training.attempt(batch, context, seed)
        right = sum(bool(solution.correct) for solution in solutions)
        score = Score(right=right, of=len(batch))
        observer = self.training.log.observer
        observer.step_done(StepName("gepa", "score"), score)
        return solutions

    async def _reflect(self, prompt: str) -> str:
        digest = hashlib.sha256(prompt.encode()).hexdigest()[:16]
        name = f"gepa reflect {digest}"
        index = self._asked[name]
        self._asked[name] += 1
        messages = (Message(Role.USER, prompt),)
        teacher = self.training.teacher
        text = await teacher.complete(name, index, messages, TEMPERATURE)
        if not text.strip():
            raise ValueError("the teacher's reply is empty")
        return text

    def _row(self, problem: Problem, solution: Solution) -> Row:
        attempt = solution.attempts[0]
        feedback = "The answer is correct."
        if not solution.correct:
            given = attempt.answer or f"missing ({attempt.outcome.value})"
            feedback = f"The answer is {given}, not {solution.expected}."
        text = self.training.text_of(attempt)
        return {
            "Inputs": shortened(problem.text, MAX_CHARS),
            "Generated Outputs": shortened(text, MAX_CHARS) or "(nothing)",
            "Feedback": feedback,
        }
