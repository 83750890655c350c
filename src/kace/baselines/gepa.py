"""GEPA training: the `gepa` package proposes instructions, our solver and judge score them.

gepa's own resuming (a pickle, and other random numbers than an unbroken run) is not used. Every evaluation is a step of
our record and every call is kept, so the same command repeats what was done at no cost and ends where it would have.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TextIO, TypeVar

from pydantic import Field

from kace.baselines.parts import FixedText, System
from kace.baselines.training import RECORD, MethodSettings, Training, read_artefact
from kace.errors import KaceError, UsageError
from kace.files import write_atomic
from kace.ladder.prompt import Context, neutral, shortened, subject_of, template
from kace.ladder.record import Solution
from kace.ladder.retrieve import TokenCounter
from kace.learning.steps import StepName, StepResult
from kace.models.base import Message, Role
from kace.problems import Problem

if TYPE_CHECKING:
    from gepa.core.adapter import EvaluationBatch, ProposalFn
    from gepa.core.result import GEPAResult

T = TypeVar("T")

FILE = "prompt.json"
COMPONENT = "instructions"  # the one text that is evolved
TEMPERATURE = 1.0  # of the reflecting teacher: the same prompt, asked again, should bring another proposal
MAX_CHARS = 6_000  # of a problem and of an attempt
Row = Mapping[str, str]  # what the teacher is shown of an attempt


class GepaSettings(MethodSettings):
    """How instructions are evolved."""

    EXTENT: ClassVar[frozenset[str]] = frozenset({"epochs", "max_metric_calls"})

    epochs: Annotated[int, Field(ge=1, le=100)] = (
        2  # passes over the training problems, a minibatch an iteration
    )
    minibatch: Annotated[int, Field(ge=1, le=100)] = 3
    max_metric_calls: Annotated[int, Field(ge=1)] | None = None
    """Evaluations of one prompt on one problem; training ends with the iteration that passes it."""


class Rollout(StepResult):
    """An attempt and its score. A failed call scores nothing, like a wrong answer."""

    score: float
    answer: str | None
    expected: str | None
    outcome: str
    call: str  # where its text is kept
    detail: str = ""


class Rollouts(StepResult):
    """A batch of them."""

    rollouts: tuple[Rollout, ...]

    @property
    def summary(self) -> str:
        """Return the number of right rollouts."""
        right = sum(each.score > 0 for each in self.rollouts)
        return f"{right} of {len(self.rollouts)} right"


class EvolvedPrompt(StepResult):
    """One prompt that entered the pool."""

    instructions: str
    score: float  # the share of the problems it was chosen on that it got right
    parents: tuple[int, ...]
    metric_calls: int  # evaluations made before it was found


class GepaPrompt(StepResult):
    """The instructions that did best, and every prompt of the pool."""

    v: Literal[1] = 1
    instructions: Annotated[str, Field(min_length=1)]
    best: int = (
        0  # its place among the candidates; 0 is the prompt that training began with
    )
    metric_calls: int = 0
    candidates: tuple[EvolvedPrompt, ...] = ()


def read_prompt(path: Path) -> GepaPrompt:
    """The prompt of a file, or of the folder that training made. `{"instructions": "..."}` is enough."""
    return read_artefact(path, FILE, GepaPrompt, "learned prompt", "gepa")


def require_gepa() -> None:
    """Raise with the fix where the extra is not installed."""
    try:
        import gepa  # noqa: F401
    except ImportError:
        raise UsageError(
            "training GEPA needs an extra", fix="pip install 'kace[gepa]'"
        ) from None


def check_budget(settings: GepaSettings, judged: int) -> None:
    """Refuse a budget that ends before a single new prompt could be accepted, and would look like a result."""
    least = 2 * judged + 2 * settings.minibatch
    if settings.max_metric_calls is not None and settings.max_metric_calls < least:
        raise UsageError(
            f"max_metric_calls {settings.max_metric_calls} ends before one new prompt is judged",
            fix=f"give at least {least}: twice the {judged} problems that prompts are judged on, and a minibatch",
        )


async def train_gepa(training: Training) -> GepaPrompt:
    """The best instructions found, written to the plan's folder. The seed prompt is the solver's own."""
    require_gepa()
    plan = training.plan
    assert isinstance(plan.settings, GepaSettings)
    check_budget(plan.settings, len(plan.validation or plan.train))
    log = plan.out / RECORD / "gepa.log"
    log.unlink(missing_ok=True)
    with log.open("x", encoding="utf-8", errors="replace") as file:
        prompt = await GepaRun(training, plan.settings, file).run()
    write_atomic(plan.out / FILE, prompt.model_dump_json(indent=2) + "\n")
    return prompt


class GepaRun:
    """Our solver and teacher as gepa sees them from its thread. Only training problems are ever reflected on.

    gepa carries on after most errors of a proposal. What ends a run (a cap, a missing reply, a refused key) is kept
    here, refuses all further work, and is raised when the thread has ended.
    """

    propose_new_texts: ProposalFn | None = None  # gepa's own proposal prompt is used

    def __init__(
        self, training: Training, settings: GepaSettings, file: TextIO
    ) -> None:
        self.training = training
        self.settings = settings
        self.file = file
        self.loop = asyncio.get_running_loop()
        self.stopped = False
        self.error: KaceError | None = None
        self._under_way: Future[Any] | None = None
        self._asked: Counter[str] = Counter()

    async def run(self) -> GepaPrompt:
        """Run gepa in a thread to its end; a cancelled caller waits until the thread has let go."""
        worker = asyncio.ensure_future(asyncio.to_thread(self._optimize))
        try:
            result = await asyncio.shield(worker)
        except asyncio.CancelledError:
            self.stopped = True
            if self._under_way:
                self._under_way.cancel()
            await asyncio.wait([worker])
            worker.exception()
            raise
        except Exception as error:
            raise (self.error or error) from None
        if self.error:
            raise self.error
        return result

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine, for the thread that waits for it."""
        if self.stopped:
            work.close()
            raise RuntimeError("the training was stopped; nothing more is done for it")
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        self._under_way = future
        try:
            return future.result()
        except KaceError as error:
            self.stopped = True
            self.error = error
            raise

    def _optimize(self) -> GepaPrompt:
        from gepa.api import optimize

        plan = self.training.plan
        settings = self.settings
        iterations = settings.epochs * math.ceil(len(plan.train) / settings.minibatch)
        found: GEPAResult[Rollout, int] = optimize(
            seed_candidate={COMPONENT: template("solve", subject_of(plan.config))},
            trainset=list(plan.train),
            valset=list(plan.validation) or None,
            adapter=self,
            reflection_lm=self.reflect,
            reflection_minibatch_size=settings.minibatch,
            max_metric_calls=settings.max_metric_calls,
            stop_callbacks=lambda gepa_state: (
                self.stopped or gepa_state.i + 1 >= iterations
            ),
            logger=self,
            seed=plan.config.seed,
            track_best_outputs=False,
        )
        pool = []
        rows = (
            found.candidates,
            found.val_aggregate_scores,
            found.parents,
            found.discovery_eval_counts,
        )
        for texts, score, parents, calls in zip(*rows, strict=True):
            known = tuple(parent for parent in parents if parent is not None)
            told = {"score": round(score, 6), "parents": known, "metric_calls": calls}
            pool.append(EvolvedPrompt(instructions=texts[COMPONENT], **told))
        best = found.best_idx
        calls = found.total_metric_calls or 0
        return GepaPrompt(
            instructions=pool[best].instructions,
            best=best,
            metric_calls=calls,
            candidates=tuple(pool),
        )

    def log(self, message: str) -> None:
        """Keep what gepa says of its run in a file: standard output is for results."""
        self.file.write(f"{message}\n")

    def evaluate(
        self,
        batch: list[Problem],
        candidate: dict[str, str],
        capture_traces: bool = False,
    ) -> EvaluationBatch[Row, Rollout]:
        """One attempt a problem. A failed one scores 0 and says why; only what ends the run is raised."""
        from gepa.core.adapter import EvaluationBatch

        rollouts = list(self._call(self._scored(candidate[COMPONENT], batch)).rollouts)
        shown = list(map(self._row, batch, rollouts)) if capture_traces else None
        return EvaluationBatch(
            outputs=rollouts,
            scores=[each.score for each in rollouts],
            trajectories=shown,
        )

    def make_reflective_dataset(
        self,
        candidate: dict[str, str],
        eval_batch: EvaluationBatch[Row, Rollout],
        components_to_update: list[str],
    ) -> Mapping[str, Sequence[Row]]:
        """What the teacher is shown of a minibatch."""
        return {
            name: list(eval_batch.trajectories or ()) for name in components_to_update
        }

    def reflect(self, prompt: str | list[dict[str, object]]) -> str:
        """The teacher as gepa calls it."""
        assert isinstance(prompt, str), "prompts with images are never made here"
        return self._call(self._reflected(prompt))

    async def _scored(self, instructions: str, batch: Sequence[Problem]) -> Rollouts:
        async def scored() -> Rollouts:
            kit = self.training.session.kit
            context = Context(instructions=neutral(instructions))
            system = System(
                "gepa", FixedText(context, TokenCounter(kit.model)), attempts=1
            )
            solved = await self.training.each(
                batch, lambda problem: system.solve(problem, kit)
            )
            return Rollouts(rollouts=tuple(map(_rollout, solved)))

        step = StepName(
            "gepa",
            "score",
            place=_digest(instructions, *(problem.id for problem in batch)),
        )
        return await self.training.log.once(step, Rollouts, scored)

    async def _reflected(self, prompt: str) -> str:
        name = f"gepa reflect {_digest(prompt)}"
        index = self._asked[name]
        self._asked[name] += 1
        text = await self.training.teacher.complete(
            name, index, (Message(Role.USER, prompt),), TEMPERATURE
        )
        if not text.strip():
            raise ValueError("the teacher said nothing")
        return text

    def _row(self, problem: Problem, rollout: Rollout) -> Row:
        reply = self.training.calls.get(rollout.call) if rollout.call else None
        silent = rollout.answer is None
        wrong = (
            f"There is no final answer ({rollout.outcome})."
            if silent
            else f"The answer {rollout.answer} is wrong."
        )
        right = (
            "The answer is correct."
            if rollout.score > 0
            else f"{wrong} The expected answer is {rollout.expected}."
        )
        return {
            "Inputs": shortened(problem.text, MAX_CHARS),
            "Generated Outputs": shortened(reply.text if reply else "", MAX_CHARS)
            or "(nothing)",
            "Feedback": right,
        }


def _rollout(solution: Solution) -> Rollout:
    said = solution.attempts[0].model_dump(
        mode="json", include={"answer", "outcome", "call", "detail"}
    )
    return Rollout(
        score=float(bool(solution.correct)), expected=solution.expected, **said
    )


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]
