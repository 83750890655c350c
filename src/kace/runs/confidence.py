"""What confidence tells: right from wrong within a problem, wrong agreed ES answers from right, and in a vote."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from kace.ladder.confidence import (
    ConfidenceCalibration,
    ConfidencePolicy,
    agreed_at_es,
    elected,
)
from kace.ladder.record import Solution, last_solutions
from kace.models.confidence import Confidence
from kace.runs.arm import Arm, Clusters
from kace.runs.manifest import manifest_part
from kace.runs.stats import SHARES, Interval, cluster_interval
from kace.words import counted

MEASURES = ("logprob", "overall", "tail", "worst")
BINS = 5


@dataclass(frozen=True, slots=True)
class Separation:
    """How well one figure tells right from wrong: in so many pairs, how often the right one has the higher (AUC)."""

    measure: str
    within: float | None  # over pairs of attempts of the same solve
    pairs: int
    at_es: (
        float | None
    )  # over pairs of agreed ES answers, each by its less sure attempt


@dataclass(frozen=True, slots=True)
class ConfidenceBin:
    """Attempts that were about as sure as each other."""

    low: float  # mean log-probability
    high: float
    attempts: int
    share: float  # that is right
    interval: Interval


@dataclass(frozen=True, slots=True)
class Reweighed:
    """The same attempts at the same exits, by counts and by weights."""

    solves: int
    by_counts: int  # right answers
    gained: int  # right by weights only
    broken: int  # right by counts only

    @property
    def words(self) -> str:
        """What the weights changed, in a sentence."""
        weighted = self.by_counts + self.gained - self.broken
        shares = f"{self.by_counts / self.solves:.1%} by counts, {weighted / self.solves:.1%} by weights"
        return f"{shares}: {self.gained:,} gained and {self.broken:,} broken of {counted(self.solves, 'solve')}"


@dataclass(frozen=True, slots=True)
class ConfidenceFigures:
    """The confidence of one arm."""

    name: str
    attempts: int  # that answered a problem with a known answer
    told: int  # of them, with confidence
    measures: tuple[Separation, ...]
    es_right: int  # agreed ES answers
    es_wrong: int
    bins: tuple[ConfidenceBin, ...]  # fifths of the attempts, the least sure first
    weighted: Reweighed | None  # `None` without a calibration to weigh by


def confidence_figures(
    arms: Iterable[Arm],
    clusters: Clusters,
    calibration: ConfidenceCalibration | None = None,
) -> tuple[ConfidenceFigures, ...]:
    """Of every arm that recorded confidence. An arm's votes are weighed by its own calibration, else the one given."""
    found = []
    for arm in arms:
        config = manifest_part(arm.manifest, "config")
        if arm.folder and config.get("logprobs") is True:
            own = _calibration(config.get("confidence")) or calibration
            if figures := figures_of(
                arm.name, last_solutions(arm.folder), clusters, own
            ):
                found.append(figures)
    return tuple(found)


def figures_of(
    name: str,
    solutions: Iterable[Solution],
    clusters: Clusters,
    calibration: ConfidenceCalibration | None,
) -> ConfidenceFigures | None:
    """The figures of some solves; `None` where no known answer has confidence."""
    known = [each for each in solutions if each.correct is not None]
    made = [
        (clusters.of(s), a) for s in known for a in s.attempts if a.answer is not None
    ]
    told = [
        (name, a.confidence.logprob, bool(a.correct))
        for name, a in made
        if a.confidence
    ]
    if not told:
        return None
    exits = [agreed for each in known if (agreed := agreed_at_es(each))]
    solves = [
        [(a.confidence, bool(a.correct)) for a in s.attempts if a.answer is not None]
        for s in known
    ]
    within, at_es = (
        {measure: _auc(measure, parts) for measure in MEASURES}
        for parts in (solves, [exits])
    )
    return ConfidenceFigures(
        name=name,
        attempts=len(made),
        told=len(told),
        measures=tuple(
            Separation(each, *within[each], at_es[each][0]) for each in MEASURES
        ),
        es_right=sum(right for _, right in exits),
        es_wrong=sum(not right for _, right in exits),
        bins=_bins(told),
        weighted=reweighed(known, calibration) if calibration else None,
    )


def reweighed(
    solutions: Sequence[Solution], calibration: ConfidenceCalibration
) -> Reweighed:
    """A pure recount of recorded solves: by counts of votes, and by their weights."""
    policy = ConfidencePolicy(calibration, vote=True)
    changes = list[tuple[bool, bool]]()
    for solution in solutions:
        places = elected(solution), elected(solution, policy)
        counts, weights = (
            at is not None and bool(solution.attempts[at].correct) for at in places
        )
        changes.append((counts, weights))
    by_counts = sum(counts for counts, _ in changes)
    return Reweighed(
        len(changes),
        by_counts,
        changes.count((False, True)),
        changes.count((True, False)),
    )


def _auc(
    measure: str, parts: Iterable[Sequence[tuple[Confidence | None, bool]]]
) -> tuple[float | None, int]:
    """Of the pairs within each part, the share in which the right one is the higher, equal ones counting half."""
    wins = 0.0
    pairs = 0
    for part in parts:
        right = [getattr(sure, measure) for sure, is_right in part if sure and is_right]
        wrong = sorted(
            getattr(sure, measure) for sure, is_right in part if sure and not is_right
        )
        wins += sum(
            (bisect_left(wrong, value) + bisect_right(wrong, value)) / 2
            for value in right
        )
        pairs += len(right) * len(wrong)
    return wins / pairs if pairs else None, pairs


def _bins(told: Sequence[tuple[str, float, bool]]) -> tuple[ConfidenceBin, ...]:
    ordered = sorted(told, key=lambda each: each[1])
    found = []
    for number in range(BINS):
        inside = ordered[
            number * len(ordered) // BINS : (number + 1) * len(ordered) // BINS
        ]
        if inside:
            groups = defaultdict[str, list[bool]](list)
            for name, _, right in inside:
                groups[name].append(right)
            interval = cluster_interval(
                Counter((sum(each), len(each)) for each in groups.values()), SHARES
            )
            share = sum(right for *_, right in inside) / len(inside)
            found.append(
                ConfidenceBin(inside[0][1], inside[-1][1], len(inside), share, interval)
            )
    return tuple(found)


def _calibration(named: object) -> ConfidenceCalibration | None:
    try:
        return ConfidenceCalibration.model_validate(named)
    except ValidationError:
        return None
