"""Beyond the paper: votes weighted by how sure attempts were, and an ES exit that needs it. Calibrated on a run.

A weight is exp(scale * z), where z is an attempt's mean log-probability, standardised. Gates open as ever, by counts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from statistics import fmean, pstdev

from pydantic import BaseModel, ConfigDict

from kace.config import Config
from kace.errors import UsageError
from kace.files import read_plain
from kace.ladder.ladder import fallback
from kace.ladder.record import Attempt, Solution, last_solutions
from kace.ladder.tiers import ExitPath, Tier, TierName
from kace.ladder.vote import AnswerClass, Standing, Vote, count, heaviest
from kace.models.base import Confidence

SCALES = (1.0, 0.5, 2.0)  # tried in calibration, the first unless another is better
MOST = 5.0  # standard deviations; beyond, an attempt counts no more and no less
FALLBACKS = (ExitPath.FALLBACK_PLURALITY, ExitPath.FALLBACK_LAST_HS)


class ConfidenceCalibration(BaseModel):
    """What is an average attempt, and how sure agreed ES answers must be. Manifests name it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    problems: int
    attempts: int  # that answered, with confidence
    mean: float  # of their mean log-probabilities
    sd: float
    scale: float
    es_exits: int  # agreed ES answers that are known to be right or wrong
    es_threshold: (
        float | None
    )  # of the less sure attempt's tail confidence; `None` where none tells right from wrong


@dataclass(frozen=True, slots=True)
class ConfidencePolicy:
    """What confidence decides in a solve."""

    calibration: ConfidenceCalibration
    vote: bool = False
    es_exit: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The policies, as settings name them."""
        return (*["vote=confidence"] * self.vote, *["es_exit=confident"] * self.es_exit)

    def weight(self, attempt: Attempt) -> float:
        """What an attempt's vote counts; one without confidence as the average, 1."""
        if attempt.confidence is None:
            return 1.0
        z = (attempt.confidence.logprob - self.calibration.mean) / self.calibration.sd
        return math.exp(self.calibration.scale * max(-MOST, min(MOST, z)))

    def winner(
        self,
        vote: Vote,
        classes: Sequence[AnswerClass],
        attempts: Sequence[Attempt],
        counted: Standing | None,
    ) -> Standing | None:
        """The class of the greatest weight over all attempts so far; without `vote`, what the counts chose."""
        return (
            heaviest(vote, classes, [*map(self.weight, attempts)])
            if self.vote
            else counted
        )

    def confirms(self, tier: Tier, attempts: Sequence[Attempt]) -> bool:
        """Whether an agreed tier may exit. Agreement alone decides above ES, and where confidence is not known."""
        least = self.calibration.es_threshold
        if not self.es_exit or tier.name is not TierName.ES or least is None:
            return True
        return (found := least_sure(attempts)) is None or found.tail >= least


def least_sure(attempts: Sequence[Attempt]) -> Confidence | None:
    """Each figure of the attempt that has it lowest; `None` where one has no confidence."""
    told = [astuple(attempt.confidence) for attempt in attempts if attempt.confidence]
    return (
        Confidence(*map(min, zip(*told, strict=True)))
        if told and len(told) == len(attempts)
        else None
    )


def agreed_at_es(solution: Solution) -> tuple[Confidence, bool] | None:
    """How sure the ES attempts were that agreed, and whether they are right; `None` where they did not, or untold."""
    es = [attempt for attempt in solution.attempts if attempt.tier is TierName.ES]
    together = any(
        set(range(len(es))) <= set(each.positions) for each in solution.classes
    )
    found = least_sure(es)
    return (
        (found, es[0].correct)
        if together and found and es[0].correct is not None
        else None
    )


def elected(solution: Solution, policy: ConfidencePolicy | None = None) -> int | None:
    """A pure recount: the position of the attempt whose answer wins, by counts or under a policy, at the same exit."""
    classes = solution.answer_classes
    attempts = solution.attempts
    start = next(
        (
            at
            for at, attempt in enumerate(attempts)
            if attempt.tier is attempts[-1].tier
        ),
        0,
    )
    vote = count(classes, start, len(attempts))
    winner = (
        fallback(classes, len(attempts))[1]
        if solution.exit in FALLBACKS
        else vote.leader
    )
    if policy:
        winner = policy.winner(vote, classes, attempts, winner)
    answered = (
        at for at in reversed(range(len(attempts))) if attempts[at].answer is not None
    )
    return winner.first if winner else next(answered, None)


def calibrate_confidence(solutions: Iterable[Solution]) -> ConfidenceCalibration | None:
    """From the solves of training problems; `None` where fewer than two different attempts have confidence."""
    solutions = list(solutions)
    made = [
        attempt
        for solution in solutions
        for attempt in solution.attempts
        if attempt.answer is not None
    ]
    told = [attempt.confidence.logprob for attempt in made if attempt.confidence]
    if len(set(told)) < 2:
        return None
    exits = [agreed for solution in solutions if (agreed := agreed_at_es(solution))]
    found = ConfidenceCalibration(
        problems=len({solution.problem for solution in solutions}),
        attempts=len(told),
        mean=fmean(told),
        sd=pstdev(told),
        scale=1.0,
        es_exits=len(exits),
        es_threshold=youden([(told.tail, right) for told, right in exits]),
    )

    def right(scale: float) -> int:
        policy = ConfidencePolicy(found.model_copy(update={"scale": scale}), vote=True)
        winners = ((solution, elected(solution, policy)) for solution in solutions)
        return sum(
            bool(solution.attempts[at].correct)
            for solution, at in winners
            if at is not None
        )

    return found.model_copy(update={"scale": max(SCALES, key=right)})


def youden(told: Sequence[tuple[float, bool]]) -> float | None:
    """The threshold that best keeps what is right and drops what is wrong: Youden's J, the lowest of equals.

    `None` where none does better than keeping everything.
    """
    rights = sum(right for _, right in told)
    wrongs = len(told) - rights
    kept = 0
    most = 1
    best = None
    for value, same in groupby(sorted(told, reverse=True), key=lambda each: each[0]):
        kept += sum(wrongs if right else -rights for _, right in same)
        if kept >= most:
            best = value
            most = kept
    return best


def open_policy(config: Config) -> ConfidencePolicy | None:
    """What a configuration has confidence decide; `None` for nothing."""
    vote = config.vote == "confidence"
    es_exit = config.es_exit == "confident"
    if not vote and not es_exit:
        return None
    asked = "vote=confidence" if vote else "es_exit=confident"
    if config.confidence_from is None:
        fix = "name a training run made with --set logprobs=true: --set confidence_from=RUN"
        raise UsageError(f"{asked} needs a calibration", fix=fix)
    if vote and config.early_stop:
        unknown = "early_stop cannot know how much the votes to come will weigh"
        raise UsageError(unknown, fix="leave out early_stop, or vote=confidence")
    return ConfidencePolicy(calibration_of(config.confidence_from), vote, es_exit)


@cache
def calibration_of(path: Path) -> ConfidenceCalibration:
    """The calibration on a training run; or the one that the `run.json` of a run names, which was made with it."""
    found = (
        calibrate_confidence(last_solutions(path)) if path.is_dir() else _named(path)
    )
    if found is None:
        fix = "name the folder of a training run made with --set logprobs=true, by a model that gives log-probabilities"
        raise UsageError(f"{path}: no confidence to calibrate by", fix=fix)
    return found


def _named(path: Path) -> ConfidenceCalibration | None:
    try:
        return ConfidenceCalibration.model_validate(
            json.loads(read_plain(path))["config"]["confidence"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
