"""Measure whether a text helps: a SKILL.md, a prompt file, or a card.

The learner's dropout with one text. Of two attempts at a problem, a draw chooses the one
that is shown the text. If the text does nothing, another draw only changes the sign of a
difference, which makes the sign-flip test exact.

The A/A arm splits the same attempts by a draw that changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from kace.baselines.systems import FixedText, System
from kace.cards.card import USEFUL, plain_points
from kace.cards.formats import read_text_card
from kace.config import Config
from kace.errors import DataError, counted
from kace.ladder.policies import Dropout
from kace.ladder.prompt import NOTES, Context
from kace.ladder.record import Solution
from kace.learning.measure import (
    DROPOUT_RATE,
    CardVotes,
    dropout_votes,
)
from kace.models.base import AttemptKey
from kace.problems import read_text
from kace.runs.compare import ALPHA, p_text
from kace.runs.metrics import Clusters
from kace.runs.stats import Interval, cluster_interval, sign_flip

SKILL_FILE = "SKILL.md"
SHAM = Dropout(DROPOUT_RATE, seed=-1)  # the draw of the A/A arm


def read_skill(path: Path) -> Context:
    """Read a folder with a SKILL.md, a text file, or the text of a card."""
    file = path / SKILL_FILE if path.is_dir() else path
    if not file.is_file():
        fix = f"name a folder with a {SKILL_FILE}, a text file, or a card"
        raise DataError(f"{file}: no such file", fix=fix)
    text = read_text(file).strip()
    if file.name == SKILL_FILE and text.startswith("---\n"):
        # Front matter is for finding the skill; the model reads what follows.
        text = text.partition("\n---")[2].partition("\n")[2].strip()
    if text.startswith("# ") and f"\n{USEFUL}" in text:
        return Context((read_text_card(text, str(file)),))
    if not text:
        raise DataError(f"{file}: no text in it", fix="write the skill first")
    return Context(notes=text)


def hide_one_of_two(
    dropout: Dropout, key: AttemptKey, names: Sequence[str]
) -> tuple[str, ...]:
    """Hide everything from one attempt of each pair, drawn for its first attempt."""
    second = key.index % 2
    first = replace(key, index=key.index - second)
    hidden = bool(dropout.hidden(first, names))
    return tuple(names) if hidden != bool(second) else ()


def open_lift(skill: Context, config: Config, pairs: int) -> System:
    """Return the system that makes pairs of attempts at a problem, one of each pair with the skill."""
    dropout = Dropout(DROPOUT_RATE, config.seed)
    context = replace(
        skill,
        placement=config.retrieval.placement,
        hide=partial(hide_one_of_two, dropout),
    )
    return System("lift", FixedText(context), 2 * pairs)


# What it does


@dataclass(frozen=True, slots=True)
class Effect:
    """The difference that a draw makes to the share of right attempts."""

    difference: float
    interval: Interval  # 95 %, cluster bootstrap
    p: float  # two-sided, exact sign-flip over clusters
    cluster: str
    clusters: int
    made: int  # attempts with it
    right: int
    made_without: int
    right_without: int

    @property
    def words(self) -> str:
        """The figures in a line."""
        low, high = map(plain_points, self.interval)
        return (
            f"{plain_points(self.difference)} points (95 % interval {low} to {high},"
            f" {p_text(self.p)}) on {counted(self.clusters, self.cluster)}"
        )

    @property
    def verdict(self) -> str:
        """What the test shows, in one sentence."""
        if self.p > ALPHA:
            return (
                f"With it and without it are indistinguishable: {self.words}."
            )
        word = "helps" if self.difference > 0 else "harms"
        return f"It {word} here: {self.words}."


def lift_of(
    skill: Context, solutions: Iterable[Solution], by: Clusters
) -> tuple[Effect, Effect]:
    """Return what a skill did, and the A/A arm, by the solutions of `run_lift`."""
    name = skill.card_ids[0] if skill.cards else NOTES
    found = list(solutions)
    sham = [_relabelled(solution, name) for solution in found]
    votes = dropout_votes(found).get(name, ())
    sham_votes = dropout_votes(sham).get(name, ())
    return effect_of(votes, by), effect_of(sham_votes, by)


def _relabelled(solution: Solution, name: str) -> Solution:
    """Return a solution whose attempts are labelled by the draw of the A/A arm."""
    attempts = []
    for attempt in solution.attempts:
        tier = attempt.tier.value
        key = AttemptKey(solution.problem, solution.seed, tier, attempt.index)
        drawn = SHAM.hidden(key, (name,))
        attempts.append(attempt.model_copy(update={"hidden": drawn}))
    return solution.model_copy(update={"attempts": tuple(attempts)})


def effect_of(votes: Iterable[CardVotes], by: Clusters) -> Effect:
    """Return the effect of a draw. A problem weighs n1 n0: whole numbers keep the test exact."""
    gains: Counter[str] = Counter()
    weights: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for vote in votes:
        counts.update(vote.model_dump(exclude={"problem"}))
        if vote.fair:
            cluster = by.of(vote.problem)
            with_it = vote.right * vote.made_without
            gains[cluster] += with_it - vote.right_without * vote.made
            weights[cluster] += vote.made * vote.made_without
    if not weights:
        raise DataError(
            "no problem has graded attempts of both kinds",
            fix="take more --pairs, and see in kace view which attempts failed",
        )
    pairs = [(gains[name], weight) for name, weight in weights.items()]
    return Effect(
        gains.total() / weights.total(),
        cluster_interval(pairs) or Interval(-1.0, 1.0),
        sign_flip(gains.values()),
        by.field,
        len(weights),
        **counts,
    )
