"""Two runs compared for a page: worked out beside the pages, since a hundred thousand solves take seconds, and kept."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kace.evaluation.arm import Arm
from kace.evaluation.compare import Change, Comparison
from kace.evaluation.metrics import Metrics
from kace.evaluation.plots import Plot, plots_of
from kace.evaluation.report import Evaluation, evaluation_of
from kace.redact import redact
from kace.view.later import Found, Later, Tell
from kace.view.run_index import RunIndex

LISTED = 60
"""Problems gained or lost that a page names; the run's page lists them all."""
MAX_VALUE = 200
_VERSIONS = ("v", "sources")


@dataclass(frozen=True, slots=True)
class Changed:
    """A problem on which the two runs differ, and a seed that shows it."""

    problem: str
    name: str
    by: float
    seed: int


@dataclass(frozen=True, slots=True)
class Difference:
    """A value of how the runs were made that is not the same in both."""

    name: str
    ours: str
    theirs: str


@dataclass(frozen=True, slots=True)
class Pair:
    """A run held against another."""

    evaluation: Evaluation
    gained: tuple[Changed, ...]
    """The first of them."""
    lost: tuple[Changed, ...]
    differences: tuple[Difference, ...]

    @property
    def ours(self) -> Metrics:
        """The run that is held against the other."""
        return self.evaluation.arms[0]

    @property
    def theirs(self) -> Metrics:
        """The run it is held against."""
        return self.evaluation.arms[1]

    @property
    def comparison(self) -> Comparison | None:
        """How they compare; `None` where they share no labelled solve."""
        return next(iter(self.evaluation.comparisons), None)

    def plot(self, name: str) -> Plot | None:
        """A drawing of both, where there is data for it."""
        return next((plot for plot in plots_of(self.evaluation) if plot.name == name), None)


_PAIRS: Later[Pair] = Later(keep=24)


def pair_of(ours: tuple[str, RunIndex], theirs: tuple[str, RunIndex], *, patience: float | None = 0.3) -> Found[Pair]:
    """One run, by its name and index, held against another. Both should be read to their ends."""
    indexes = (ours[1], theirs[1])
    state: Hashable = tuple((len(index.rows), index.retried, len(index.damage)) for index in indexes)
    name = tuple((called, str(index.folder)) for called, index in (ours, theirs))

    def work(tell: Tell) -> Pair:
        tell("sorting the solves")
        arms = [replace(index.arm(), name=called) for called, index in (ours, theirs)]
        return compared(arms[0], arms[1], tell)

    return _PAIRS.ask(name, state, work, patience=patience)


def compared(ours: Arm, theirs: Arm, tell: Tell = lambda words: None) -> Pair:
    """All that a page says of two runs."""
    solves = f"{len(ours.rows) + len(theirs.rows):,} solves"
    tell(f"comparing {solves}, problem by problem")
    found = evaluation_of([ours, theirs], base=theirs.name)
    comparison = next(iter(found.comparisons), None)
    gained = comparison.gained[:LISTED] if comparison else ()
    lost = comparison.lost[:LISTED] if comparison else ()
    seeds = _telling_seeds(ours, theirs, {change.problem for change in (*gained, *lost)})
    return Pair(
        evaluation=found,
        gained=tuple(_changed(gained, seeds)),
        lost=tuple(_changed(lost, seeds)),
        differences=tuple(_differences(ours.manifest, theirs.manifest)),
    )


def _telling_seeds(ours: Arm, theirs: Arm, problems: set[str]) -> dict[str, int]:
    """Of each problem, the first seed on which the two runs differ."""
    right = {(row.problem, row.seed): row.correct for row in theirs.rows if row.problem in problems}
    found: dict[str, int] = {}
    for row in ours.rows:
        key = (row.problem, row.seed)
        if row.problem in problems and key in right and right[key] is not row.correct:
            found.setdefault(row.problem, row.seed)
    return found


def _changed(changes: Sequence[Change], seeds: Mapping[str, int]) -> Iterator[Changed]:
    for change in changes:
        yield Changed(change.problem, change.name, change.by, seeds.get(change.problem, 0))


def _differences(ours: Mapping[str, object], theirs: Mapping[str, object]) -> Iterator[Difference]:
    left, right = dict(_leaves(ours)), dict(_leaves(theirs))
    for name in dict.fromkeys((*left, *right)):
        if left.get(name, "") != right.get(name, ""):
            yield Difference(name, _shown(left.get(name, "")), _shown(right.get(name, "")))


def _leaves(part: Mapping[str, object], above: str = "") -> Iterator[tuple[str, str]]:
    """The values of a manifest by their names, without what says nothing about the solves."""
    for name, value in part.items():
        if not above and name in _VERSIONS:
            continue
        if isinstance(value, dict) and above.count(" ") < 4:
            yield from _leaves(value, f"{above}{name} ")
        elif value is not None:
            yield f"{above}{name}", str(value)


def _shown(value: str) -> str:
    told = redact(value)
    return f"{told[:MAX_VALUE]}…" if len(told) > MAX_VALUE else told or "–"
