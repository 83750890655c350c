"""The locked ladder, which never varies: tiers, gates, exits, and the vote.

Votes are over classes of equivalent answers, a function of the attempts in their fixed order, never of the order in
which replies arrive. Answers with the same canonical key that state the same are one class outright. Answers that
state a unit or an unknown, and then those without an exact value, may join a class whose representative they match;
two exact classes never merge, so a loose match cannot chain them together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from kace.answers.extract import Answer
from kace.config import EsPolicy

# Votes

Same = Callable[[Answer, Answer], Awaitable[bool]]
"""Decides whether two answers, at least one of them without an exact value, are the same."""


@dataclass(frozen=True, slots=True)
class AnswerClass:
    """Equivalent answers, and the positions of the attempts that gave them."""

    answer: Answer  # the representative: the member with the lowest position
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """The votes of one class."""

    answer: Answer
    votes: int  # attempts of this vote that gave the answer
    support: int  # attempts so far, in this and earlier tiers, that gave it
    first: int  # the lowest position among them


@dataclass(frozen=True, slots=True)
class Vote:
    """All classes known so far, best first, as one vote sees them."""

    standings: tuple[Standing, ...]

    @property
    def leader(self) -> Standing | None:
        """The class that wins the vote, if any attempt voted."""
        if not self.standings or not self.standings[0].votes:
            return None
        return self.standings[0]

    def opens(self, gate: int) -> bool:
        """Whether the leader has as many votes. Attempts without an answer never agree."""
        return (self.leader.votes if self.leader else 0) >= gate


async def group(
    answers: Sequence[Answer | None], same: Same
) -> tuple[AnswerClass, ...]:
    """Partition answers, by position, into classes in order of first appearance. `None` votes for nothing."""
    given: dict[int, Answer] = {}
    buckets: dict[tuple[object, ...], list[int]] = {}
    for position, answer in enumerate(answers):
        if answer is not None:
            given[position] = answer
            # Exact buckets first: loose answers join them. What is written decides the
            # rest, so that no order of arrival makes other classes.
            form = (not answer.exact, answer.key, answer.stated)
            buckets.setdefault(form, []).append(position)
    classes: list[list[int]] = []
    for _, bucket in sorted(buckets.items()):
        answer = given[bucket[0]]
        for members in () if answer.exact else classes:
            if await same(given[members[0]], answer):
                members.extend(bucket)
                break
        else:
            classes.append(bucket)
    found = []
    for members in sorted(map(sorted, classes)):
        found.append(AnswerClass(given[members[0]], tuple(members)))
    return tuple(found)


def count(
    classes: Sequence[AnswerClass],
    start: int,
    stop: int,
) -> Vote:
    """Count the votes of the attempts at positions `start` to `stop - 1`, with all before `stop` as support."""
    standings = []
    for each in classes:
        support = bisect_left(each.positions, stop)
        if support:
            votes = support - bisect_left(each.positions, start)
            first = each.positions[0]
            standings.append(Standing(each.answer, votes, support, first))
    # More votes win; then more support over all attempts so far; then the lowest index.
    standings.sort(key=lambda each: (-each.votes, -each.support, each.first))
    return Vote(tuple(standings))


# The ladder


class TierName(StrEnum):
    """The rungs of the ladder."""

    ES = "ES"
    MS = "MS"
    HS = "HS"
    FLAT = "FLAT"  # no rung: the attempts of systems without a ladder


class Lens(StrEnum):
    """Short instructions that steer how an attempt reasons."""

    DOMAIN_PATTERNS = "domain_patterns"
    COMPUTATION_CHAIN = "computation_chain"
    PROBLEM_SETUP = "problem_setup"


class ExitPath(StrEnum):
    """Where a solve left the ladder."""

    ES_UNANIMOUS = "es_unanimous"
    MS_MAJORITY = "ms_majority"
    HS_PLURALITY = "hs_plurality"
    FALLBACK_PLURALITY = "fallback_plurality"
    FALLBACK_LAST_HS = "fallback_last_hs"

    @property
    def rank(self) -> int:
        """How easy the problem was, judged by this exit: 4 for the first gate, 0 for no agreement."""
        return 4 - list(ExitPath).index(self)


@dataclass(frozen=True, slots=True)
class Tier:
    """One rung: how many attempts, how they differ, and when the ladder ends here."""

    name: TierName
    lenses: tuple[
        Lens | None, ...
    ]  # one attempt each; `None` is diversity by sampling only
    gate: int  # votes for one answer that open it; with 0, always open
    exit: ExitPath | None  # none for attempts without a ladder
    reads: bool = True  # whether it may read cards

    @property
    def attempts(self) -> int:
        """How many attempts the tier makes."""
        return len(self.lenses)


LOCKED = (
    Tier(
        TierName.ES,
        (Lens.DOMAIN_PATTERNS, Lens.COMPUTATION_CHAIN),
        2,
        ExitPath.ES_UNANIMOUS,
        reads=False,
    ),
    Tier(
        TierName.MS,
        tuple(Lens),
        2,
        ExitPath.MS_MAJORITY,
    ),
    Tier(TierName.HS, (None,) * 5, 2, ExitPath.HS_PLURALITY),
)

# Beyond the paper, the ladder that tries a card first. There the card's attempts decide
# only if they are unanimous; what follows is done without cards.
CARD_FIRST = (
    replace(LOCKED[1], gate=3),
    LOCKED[0],
    replace(LOCKED[2], reads=False),
)
LADDERS: Mapping[EsPolicy, tuple[Tier, ...]] = {
    "locked": LOCKED,
    "skip": LOCKED[1:],
    "try": CARD_FIRST,
}


def ladder_of(names: Iterable[TierName]) -> tuple[Tier, ...]:
    """Return the ladder that a solve climbed, from the tiers of its attempts in order."""
    tried = list(dict.fromkeys(names))[:2] == [TierName.MS, TierName.ES]
    return CARD_FIRST if tried else LOCKED


FALLBACK_GATE = 2
"""After the last tier: the plurality of all attempts, if some answer was given at least this often."""
