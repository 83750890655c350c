"""Measure whether a text helps: a SKILL.md, a prompt file, or a card.

The learner's dropout with one text: each attempt is shown the text or not, by a draw of
its own, so that chance alone decides which attempts saw it. Attempts are compared within
a problem. If the text does nothing, exchanging shown and hidden attempts of a cluster
only changes a sign, which makes the sign-flip test exact.

The A/A arm compares the same attempts by a second draw that changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

from kace.baselines.systems import System
from kace.cards.card import USEFUL, Card, plain_points
from kace.cards.formats import read_text_card
from kace.config import Config
from kace.errors import DataError
from kace.ladder.ladder import Observer
from kace.ladder.policies import Dropout
from kace.ladder.prompt import Context, Placement
from kace.ladder.record import Attempt, Outcome, Solution
from kace.ladder.session import open_session
from kace.ladder.tiers import TierName
from kace.learning.measure import DROPOUT_RATE, CardVotes
from kace.models.base import AttemptKey, ChatModel
from kace.problems import Problem, read_text
from kace.runs.compare import ALPHA, p_text
from kace.runs.metrics import Clusters
from kace.runs.run import OnSolution, Run, ignore
from kace.runs.stats import Interval, cluster_interval, sign_flip
from kace.words import counted

SKILL_FILE = "SKILL.md"
MOST_CHARS = 100_000
SHAM = Dropout(DROPOUT_RATE, seed=-1)  # the draw of the A/A arm
_CARD = f"\n{USEFUL}"


# What is measured


@dataclass(frozen=True, slots=True)
class Skill:
    """A text that may help: notes, or a card."""

    name: str
    text: str
    card: Card | None = None

    @property
    def digest(self) -> str:
        """The hash of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    def context(self, placement: Placement, dropout: Dropout) -> Context:
        """Return what attempts read, with the rule that hides it."""
        if self.card is None:
            return Context(notes=self.text, hide=dropout.hidden)
        return Context((self.card,), placement=placement, hide=dropout.hidden)


def read_skill(path: Path) -> Skill:
    """Read a folder with a SKILL.md, a text file, or the text of a card."""
    file = path / SKILL_FILE if path.is_dir() else path
    if not file.is_file():
        raise DataError(
            f"{file}: no such file",
            fix=f"name a folder with a {SKILL_FILE}, a text file, or a card",
        )
    text = read_text(file).strip()
    if file.name == SKILL_FILE and text.startswith("---\n"):
        # Front matter is for finding the skill; the model reads what follows.
        text = text.partition("\n---")[2].partition("\n")[2].strip()
    if not text:
        raise DataError(f"{file}: no text in it", fix="write the skill first")
    if len(text) > MOST_CHARS:
        raise DataError(
            f"{file}: {len(text):,} characters, over the limit of {MOST_CHARS:,}",
            fix="name the one file that the model shall read",
        )
    card = None
    if text.startswith("# ") and _CARD in text:
        card = read_text_card(text, str(file))
    return Skill(str(path), text, card)


@dataclass(frozen=True, slots=True)
class SkillSource:
    """A source of context that gives every tier the same."""

    context: Context

    async def retrieve(
        self,
        problem: Problem,
        tier: TierName,
        before: Sequence[Attempt],
        earlier: Sequence[Context],
    ) -> Context:
        """Return the context."""
        return self.context


async def run_lift(
    run: Run,
    problems: Sequence[Problem],
    config: Config,
    skill: Skill,
    attempts: int,
    *,
    model: ChatModel | None = None,
    observer: Observer | None = None,
    on_known: OnSolution = ignore,
) -> None:
    """Attempt each problem so often, the skill shown to about every other attempt."""
    dropout = Dropout(DROPOUT_RATE, config.seed)
    context = skill.context(config.retrieval.placement, dropout)
    system = System("lift", SkillSource(context), attempts)
    async with open_session(
        config,
        calls=run.calls if model is None else None,
        model=model,
        observer=observer,
    ) as session:
        solve = partial(system.solve, kit=session.kit)
        await run.solve(
            problems, solve, config.seed, session.window, on_known=on_known
        )


# What it does


@dataclass(frozen=True, slots=True)
class Effect:
    """The difference that one draw makes to the share of right attempts."""

    difference: float
    interval: Interval | None  # 95 %, cluster bootstrap; `None` below two
    p: float  # two-sided, exact sign-flip over clusters
    clusters: int
    right: float  # shares, with and without
    right_without: float

    @property
    def words(self) -> str:
        """The figures in a line."""
        ends = ""
        if self.interval:
            low, high = self.interval
            ends = (
                f"95 % interval {plain_points(low)} to {plain_points(high)}, "
            )
        return (
            f"{plain_points(self.difference)} points ({ends}{p_text(self.p)})"
        )


@dataclass(frozen=True, slots=True)
class SkillLift:
    """What a text did, beside an A/A arm."""

    skill: str
    problems: int
    cluster: str
    attempts: int  # graded, with it
    attempts_without: int
    failed: int  # attempts that the provider failed, in neither
    lift: Effect
    sham: Effect
    input: float  # mean prompt tokens of an attempt, with it
    input_without: float

    @property
    def verdict(self) -> str:
        """Return what the test shows, in one sentence."""
        size = counted(self.problems, "problem")
        if self.cluster != "problem":
            size += f" of {counted(self.lift.clusters, self.cluster)}"
        if self.lift.p > ALPHA:
            return f"With it and without it are indistinguishable on {size}."
        word = "helps" if self.lift.difference > 0 else "harms"
        return f"It {word} here: {self.lift.words} on {size}."


def lift_of(
    skill: Skill, solutions: Iterable[Solution], by: Clusters
) -> SkillLift:
    """Return what a text did, by the attempts of a run of `run_lift`."""
    graded = []
    failed = 0
    for solution in solutions:
        for attempt in solution.attempts:
            if attempt.outcome is Outcome.PROVIDER_ERROR:
                failed += 1
            else:
                graded.append((solution, attempt))
    votes = count_votes(graded, lambda solution, attempt: not attempt.hidden)
    lift = effect_of(votes, by)
    sham = effect_of(count_votes(graded, _is_sham, apart=True), by)
    if lift is None or sham is None:
        raise DataError(
            "no problem has attempts both with the skill and without it",
            fix="give more problems, or more --attempts",
        )
    tokens: dict[bool, list[int]] = {True: [], False: []}
    for _, attempt in graded:
        tokens[not attempt.hidden].append(attempt.input)
    return SkillLift(
        skill=skill.name,
        problems=len({solution.problem for solution, _ in graded}),
        cluster=by.field,
        attempts=len(tokens[True]),
        attempts_without=len(tokens[False]),
        failed=failed,
        lift=lift,
        sham=sham,
        input=fmean(tokens[True]),
        input_without=fmean(tokens[False]),
    )


def count_votes(
    graded: Iterable[tuple[Solution, Attempt]],
    draw: Callable[[Solution, Attempt], bool],
    *,
    apart: bool = False,
) -> list[CardVotes]:
    """Count right attempts by problem and draw.

    `apart` counts attempts that saw the skill apart from those that did not.
    """
    counts: dict[tuple[str, bool], list[int]] = {}
    for solution, attempt in graded:
        place = (solution.problem, apart and bool(attempt.hidden))
        row = counts.setdefault(place, [0, 0, 0, 0])
        arm = 0 if draw(solution, attempt) else 2
        row[arm] += bool(attempt.correct)
        row[arm + 1] += 1
    votes = []
    for (problem, _), row in counts.items():
        votes.append(
            CardVotes(
                problem=problem,
                right=row[0],
                made=row[1],
                right_without=row[2],
                made_without=row[3],
            )
        )
    return votes


def _is_sham(solution: Solution, attempt: Attempt) -> bool:
    """Whether the A/A arm's draw counts an attempt as shown."""
    tier = attempt.tier.value
    key = AttemptKey(solution.problem, solution.seed, tier, attempt.index)
    return not SHAM.hidden(key, ("A/A",))


def effect_of(votes: Iterable[CardVotes], by: Clusters) -> Effect | None:
    """Return the effect of a draw; `None` if no problem has attempts of both kinds.

    A stratum weighs n1 n0: with as many attempts at each problem, that is the
    learner's weight. Whole numbers make the test exact.
    """
    totals: dict[str, tuple[int, int]] = {}
    right = [0, 0]
    made = [0, 0]
    for vote in votes:
        right[0] += vote.right
        right[1] += vote.right_without
        made[0] += vote.made
        made[1] += vote.made_without
        gain, weight = totals.get(by.of(vote.problem), (0, 0))
        gain += vote.right * vote.made_without - vote.right_without * vote.made
        weight += vote.made * vote.made_without
        totals[by.of(vote.problem)] = gain, weight
    clusters = [pair for pair in totals.values() if pair[1]]
    if not clusters:
        return None
    return Effect(
        difference=sum(gain for gain, _ in clusters)
        / sum(weight for _, weight in clusters),
        interval=cluster_interval(clusters),
        p=sign_flip(gain for gain, _ in clusters),
        clusters=len(clusters),
        right=right[0] / made[0],
        right_without=right[1] / made[1],
    )
