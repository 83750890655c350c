"""What may differ from the paper's ladder: skipping ES, hiding cards, confident votes, and synthesis.

All are off by default.
"""

from __future__ import annotations

import hashlib
import logging
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean, pstdev
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from kace.answers.kinds import MATHEMATICS, Subject
from kace.cards.card import BULLET, stray_character
from kace.config import Config
from kace.errors import DataError, UsageError
from kace.files import whole_lines
from kace.ladder.ladder import (
    Climb,
    ContextSource,
    Kit,
    sample_once,
)
from kace.ladder.prompt import (
    Context,
    Prompt,
    fenced,
    neutral,
    solver_prompt,
    template,
    templates_hash,
)
from kace.ladder.record import Attempt, Solution, parse_solution
from kace.ladder.tiers import (
    FROM_MS,
    LOCKED,
    ExitPath,
    Tier,
    TierName,
    heaviest,
)
from kace.models.base import (
    AttemptKey,
    ChatModel,
    Message,
    ModelError,
    Reply,
    Request,
    Role,
    Sampling,
    Wrapper,
    after_thinking,
    chat,
)
from kace.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kace.ladder.retrieve import Retriever

log = logging.getLogger(__name__)

FALLBACKS = (ExitPath.FALLBACK_PLURALITY, ExitPath.FALLBACK_LAST_HS)


# Skipping ES


class SkipEs:
    """Begins at MS if a card covers the problem, where `es_policy` is `skip`.

    A wrong answer that both ES attempts agree on never reads a card. A card that is relevant to the problem can repair
    it.
    """

    def __init__(
        self,
        retriever: Retriever,
        covers: Callable[[Problem], Awaitable[bool]] | None = None,
    ) -> None:
        self.skips = retriever.config.es_policy == "skip"
        self.covers = covers or retriever.covers
        if (
            self.skips
            and covers is None
            and not retriever.config.relevance_threshold
        ):
            raise UsageError(
                "es_policy 'skip' needs a relevance threshold, and it is 0",
                fix="set relevance_threshold above 0",
            )

    async def __call__(self, problem: Problem) -> Sequence[Tier]:
        """Return the tiers of a problem."""
        if self.skips and await self.covers(problem):
            return FROM_MS
        return LOCKED


# Hiding cards


@dataclass(frozen=True, slots=True)
class Dropout:
    """Hides each card from each attempt at random: a pure function of the two, so a rerun hides the same.

    Draws are independent, so the success of attempts with a card minus that of attempts without it is an unbiased
    estimate of its worth.
    """

    rate: float = 0.5
    seed: int = 0

    def hidden(
        self,
        key: AttemptKey,
        card_ids: Sequence[str],
    ) -> tuple[str, ...]:
        """Return the cards hidden from an attempt, in the order given."""
        return tuple(
            name for name in card_ids if self._draw(key, name) < self.rate
        )

    def _draw(
        self,
        key: AttemptKey,
        card_id: str,
    ) -> float:
        parts = (self.seed, key.problem, key.seed, key.tier, key.index, card_id)
        text = "\x1f".join(map(str, parts))
        digest = hashlib.sha256(text.encode()).digest()
        return int.from_bytes(digest[:7], "big") / (1 << 56)


@dataclass(frozen=True, slots=True)
class DropoutSource:
    """A source of context that hides cards from single attempts."""

    source: ContextSource
    dropout: Dropout

    async def retrieve(
        self,
        problem: Problem,
        tier: TierName,
        before: Sequence[Attempt],
        earlier: Sequence[Context],
    ) -> Context | None:
        """Return what the tier reads, with the rule that hides cards."""
        found = await self.source.retrieve(problem, tier, before, earlier)
        return found and replace(found, hide=self.dropout.hidden)


# Confidence: votes weighted by how sure attempts were

MOST = 5.0  # standard deviations, beyond which a weight no longer changes


class WithLogprobs(Wrapper):
    """Requests log-probabilities with every call."""

    async def complete(self, request: Request) -> Reply:
        """Return the reply, with its confidence if the model gives one."""
        reply = await self.model.complete(replace(request, logprobs=True))
        if reply.text and reply.confidence is None:
            _warn_unsure(self.name)
        return reply


@cache
def _warn_unsure(model: str) -> None:
    """Warn once per model that it gives no confidence."""
    log.warning(
        "%s gives no usable log-probabilities: its attempts have no confidence, and count as average",
        model,
    )


class ConfidenceCalibration(BaseModel):
    """The confidence of an average attempt. Manifests name it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    problems: int
    attempts: int  # that answered, with confidence
    mean: float  # of their mean log-probabilities
    sd: float
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class ConfidentVote:
    """Picks the winner by confidence; exit gates still count votes."""

    calibration: ConfidenceCalibration

    async def amend(
        self,
        climbed: Climb,
        kit: Kit,
    ) -> Climb:
        """Return the climb with the class of the greatest weight over all attempts."""
        weights = [self.weight(attempt) for attempt in climbed.attempts]
        winner = heaviest(climbed.vote, climbed.classes, weights)
        return replace(climbed, winner=winner, policies=("vote=confidence",))

    def weight(self, attempt: Attempt) -> float:
        """Return the weight of an attempt's vote: exp(scale z), or 1 without confidence.

        z is the attempt's mean log-probability, standardised.
        """
        if attempt.confidence is None:
            return 1.0
        found = self.calibration
        z = (attempt.confidence.logprob - found.mean) / found.sd
        return math.exp(found.scale * max(-MOST, min(MOST, z)))


def calibrate_confidence(
    solutions: Collection[Solution],
) -> ConfidenceCalibration | None:
    """Calibrate on solves of training problems; `None` if fewer than two attempts differ in confidence."""
    logprobs = []
    for solution in solutions:
        for attempt in solution.attempts:
            if attempt.answer is not None and attempt.confidence:
                logprobs.append(attempt.confidence.logprob)
    if len(set(logprobs)) < 2:
        return None
    return ConfidenceCalibration(
        problems=len({solution.problem for solution in solutions}),
        attempts=len(logprobs),
        mean=fmean(logprobs),
        sd=pstdev(logprobs),
    )


def open_vote(config: Config) -> ConfidentVote | None:
    """Return the configured weighting of votes; `None` if votes are counted."""
    if config.vote == "majority":
        return None
    if config.confidence_from is None:
        raise UsageError(
            "vote=confidence needs a calibration",
            fix="name a training run made with --set logprobs=true: --set confidence_from=RUN",
        )
    return ConfidentVote(calibration_of(config.confidence_from))


@cache
def calibration_of(folder: Path) -> ConfidenceCalibration:
    """Return the calibration on a training run."""
    trace = folder / "traces.jsonl"
    if not trace.is_file():
        fix = "give the --out of kace eval, solve or select"
        raise DataError(f"{folder}: no {trace.name} in it", fix=fix)
    solutions: dict[tuple[str, int], Solution] = {}
    for number, _, line in whole_lines(trace):
        solution = parse_solution(line, f"{trace}:{number}")
        if isinstance(solution, Solution):
            solutions[solution.problem, solution.seed] = solution
    # In one order, so that the sums do not depend on which solve came first.
    found = calibrate_confidence([solutions[key] for key in sorted(solutions)])
    if found is None:
        raise UsageError(
            f"{folder}: no confidence to calibrate by",
            fix="name the folder of a training run made with --set logprobs=true, "
            "by a model that gives log-probabilities",
        )
    return found


# Synthesis: if HS fails its gate, a teacher gathers what its attempts agree on, and the solver finishes from it.
# It did not help where it was published, and is here so that this can be checked.

TEACHER_TIER = "SYNTHESIS"  # under which the teacher's call is kept
HARD = LOCKED[-1]
LEAST_ATTEMPTS = 2  # one alone has nothing to agree with
MAX_ATTEMPT_CHARS = (
    6_000  # shown of an attempt: what attempts share is at their beginning
)
MAX_FACTS = 12
MAX_FACT_CHARS = 500
_ANSWER = re.compile(
    r"\\f?boxed|\bfinal answer\b|\banswer\b[^.;]{0,40}?(?:\bis\b|[:=])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Synthesis:
    """The teacher that gathers facts. It reads the problem and the attempts, never the expected answer."""

    teacher: ChatModel
    max_tokens: int = 16_000

    async def amend(
        self,
        climbed: Climb,
        kit: Kit,
    ) -> Climb:
        """Return the climb with the solver's attempt from the common facts of the last tier, if no gate opened."""
        if climbed.path not in FALLBACKS:
            return climbed
        attempts = climbed.attempts[climbed.last_tier :]
        finishing = await self.finish(
            climbed.problem, attempts, climbed.context, kit
        )
        return replace(climbed, finishing=finishing)

    async def finish(
        self,
        problem: Problem,
        attempts: Sequence[Attempt],
        context: Context,
        kit: Kit,
    ) -> Attempt | None:
        """Return an attempt that starts from common facts; `None` if the attempts have none.

        A teacher that fails leaves a failed attempt, so that another run tries again. Dropout hides no card from it.
        """
        texts = [attempt.text for attempt in attempts if attempt.text.strip()]
        if len(texts) < LEAST_ATTEMPTS:
            return None
        key = AttemptKey(problem.id, kit.seed, TEACHER_TIER, 0)
        sampling = Sampling(0.0, self.max_tokens, key.sampling_seed())
        messages = gathering_prompt(problem.text, texts, kit.subject)
        last = AttemptKey(problem.id, kit.seed, HARD.name.value, HARD.attempts)
        try:
            reply = await self.teacher.complete(
                Request(messages, sampling, key)
            )
        except ModelError as error:
            failure = ModelError(error.failure, f"teacher: {error.message}")
            return Attempt.failed(last, failure, None)
        facts = read_facts(reply.text)
        if not facts:
            return None
        role = HARD.name if kit.prompts == "paper" else None
        prompt = finishing_prompt(
            problem.text, facts, context, kit.subject, role
        )
        attempt = await sample_once(last, prompt, kit)
        kit.observer.attempted(problem, attempt)
        return attempt


def gathering_prompt(
    problem: str,
    attempts: Sequence[str],
    subject: Subject = MATHEMATICS,
) -> tuple[Message, ...]:
    """Return the teacher's prompt: the problem and the beginning of each attempt, quoted."""
    quoted = [fenced("problem", problem)]
    for text in attempts:
        text = text.strip()
        if len(text) > MAX_ATTEMPT_CHARS:
            text = f"{text[:MAX_ATTEMPT_CHARS].rstrip()} …"
        quoted.append(fenced("attempt", text))
    return chat(template("synthesis", subject), "\n\n".join(quoted))


def finishing_prompt(
    problem: str,
    facts: Sequence[str],
    context: Context,
    subject: Subject = MATHEMATICS,
    role: TierName | None = None,
) -> Prompt:
    """Return the solver's prompt: that of an attempt without a lens, with the facts before the finish line."""
    plain = solver_prompt(problem, None, Context(context.cards), role, subject)
    steer = template("from_facts", subject)
    quoted = fenced("facts", "\n".join(BULLET + fact for fact in facts))
    parts = (
        neutral(problem.strip()),
        steer,
        quoted,
        template("finish", subject),
    )
    user = Message(Role.USER, "\n\n".join(parts))
    return Prompt((plain.messages[0], user), templates_hash(plain.hash, steer))


def read_facts(reply: str) -> tuple[str, ...]:
    """Return the facts of a reply, in order; none unless it has exactly one whole block of `- fact` lines.

    A line that gives a final answer is left out: the solver finishes by itself.
    """
    lines = [line.strip() for line in after_thinking(reply).split("\n")]
    if lines.count("<facts>") != 1 or lines.count("</facts>") != 1:
        return ()
    start = lines.index("<facts>") + 1
    block = [line for line in lines[start : lines.index("</facts>")] if line]
    if len(block) > MAX_FACTS:
        return ()
    facts: list[str] = []
    for line in block:
        short = len(line) <= MAX_FACT_CHARS
        if not short or not line.startswith(BULLET) or stray_character(line):
            return ()
        fact = line.removeprefix(BULLET).strip()
        if fact not in facts and not _ANSWER.search(fact):
            facts.append(fact)
    return tuple(facts)
