"""The learner's settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from kace.cards.card import MAX_EXAMPLES, MAX_WORDINGS
from kace.errors import UsageError
from kace.learning.steps import Kept

T = TypeVar("T", bound=BaseModel)
QUICK = {
    "epochs": 1,
    "add_runs": 1,
    "refine": 0,
    "impact_runs": 1,
    "keep": "all",
    "calibration_runs": 0,
}
"""What `--quick` sets: few problems prove and calibrate nothing, so every card that passes the gate is kept."""


class Settings(Kept):
    """The learner's dials, with the defaults that `kace learn` uses."""

    epochs: Annotated[int, Field(ge=1, le=20)] = 1
    cards_per_problem: Annotated[int, Field(ge=1, le=3)] = 2
    """Cards the teacher may propose for each failed problem of a cell."""
    add_runs: Annotated[int, Field(ge=1, le=2)] = 1
    """Runs that an epoch's new cards are written from: one a tier, the second with the first one's cards; or one."""
    confident: bool = True
    """Learn also from problems that ES got wrong with both attempts agreed: others of their kind may be in reach."""
    refine: Annotated[int, Field(ge=0, le=2)] = 0
    """Tries of a domain's revisions in an epoch. 0: cards are measured, and not rewritten."""
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.01
    """The least accuracy that a rewritten block must gain on its training problems."""
    evidence: Literal["posterior", "threshold"] = "posterior"
    """What decides about cards and revisions: the probability that they help, given all cards of the tree; or, as in
    the paper, the threshold alone, which retires no card by itself."""
    keep_above: Annotated[float, Field(gt=0.5, le=1)] = 0.8
    """By posterior, the least probability to help at which a card is validated or a revision kept."""
    retire_below: Annotated[float, Field(ge=0, lt=0.5)] = 0.2
    """By posterior, the probability to help at and below which a card is retired."""
    impact: Literal["dropout", "leave_one_out", "fires"] = "dropout"
    impact_runs: Annotated[int, Field(ge=1, le=50)] = 4
    """Dropout runs an epoch, each on other seeds."""
    impact_calls: Annotated[int, Field(ge=1)] = 1_000
    """Solver calls an epoch that leave-one-out may use."""
    dropout_rate: Annotated[float, Field(gt=0, lt=1)] = 0.5
    keep: Literal["all", "validated"] = "validated"
    """Which cards the frozen tree shows: all that were not deprecated, or only those with a validated lift."""
    examples: Annotated[int, Field(ge=0, le=MAX_EXAMPLES)] = 2
    """Worked examples that the teacher writes for each new card, to be shown as turns. 0: none are asked for."""
    max_overlap: Annotated[float, Field(ge=0, le=1)] = 0.55
    """The largest share of content words, numbers aside, that a demonstration may have in common with a problem held
    out. 1 lets any wording be retold."""
    failures: Literal["tier", "final"] = "tier"
    """What new cards are written from: problems that the tier did not deliver, or of those the ones never solved."""
    calibration_runs: Annotated[int, Field(ge=0, le=20)] = 3
    """Runs that the gate's thresholds are set from, of the problems that a card of another technique is relevant to.
    0 leaves the thresholds as they are configured."""
    max_harm: Annotated[float, Field(gt=0, le=100)] = 0.5
    """Points of accuracy that cards may cost, in expectation, on problems of techniques that the tree lacks."""
    wordings: Annotated[int, Field(ge=0, le=MAX_WORDINGS)] = 16
    """Problems of its kind in other stories that the teacher writes for each card that is kept, to find it by."""
    imagine: bool = False
    """Ask for cards beside those that failures called for. Off: it overfitted where it was published."""


def read_settings(kind: type[T], values: Mapping[str, object]) -> T:
    """The settings of a method; raises `UsageError` for the first value that cannot be."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        said = f"{first['loc'][0]} cannot be {first['input']!r}: {first['msg'].lower()}"
        raise UsageError(said, fix="see docs/learning.md") from None
