"""Votes over classes of equivalent answers.

Classes are a function of the attempts in their fixed order, never of the order in which replies arrive. Answers with
the same canonical key that state the same are one class outright. Answers that state a unit or an unknown, and then
those without an exact value, may join a class whose representative they match; two exact classes never merge, so a
loose match cannot chain them together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import NamedTuple

from kace.answers.extract import Answer

Same = Callable[[Answer, Answer], Awaitable[bool]]
"""Decides whether two answers, at least one of them without an exact value, are the same."""


@dataclass(frozen=True, slots=True)
class AnswerClass:
    """Equivalent answers, by the positions of the attempts that gave them."""

    answer: Answer  # the representative: the member with the lowest position
    positions: tuple[int, ...]
    exact: bool  # true when every member has an exact value


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one class stands in a vote."""

    answer: Answer
    votes: int  # attempts of this vote that gave the answer
    support: int  # attempts so far, in this and earlier tiers, that gave it
    first: int  # the lowest position among them

    @property
    def rank(self) -> tuple[int, int, int]:
        """The higher wins: more votes; then more support over all attempts so far; then the lowest attempt index."""
        return self.votes, self.support, -self.first


@dataclass(frozen=True, slots=True)
class Vote:
    """All classes known so far, best first, as one vote sees them."""

    standings: tuple[Standing, ...]
    exact: bool  # true when every answer so far has an exact value: no later answer can then regroup the classes

    @property
    def leader(self) -> Standing | None:
        """The class that wins the vote, if any attempt voted."""
        return self.standings[0] if self.standings and self.standings[0].votes else None


async def group(
    answers: Sequence[Answer | None], same: Same
) -> tuple[AnswerClass, ...]:
    """Partition answers, by position, into classes in order of first appearance. `None` votes for nothing."""
    buckets: dict[tuple[str, tuple[str, str]], list[_Given]] = {}
    for position, answer in enumerate(answers):
        if answer is not None:
            buckets.setdefault((answer.key, answer.stated), []).append(
                _Given(position, answer)
            )
    classes: list[list[_Given]] = []
    # Exact buckets first: what they are does not depend on which loose answers came before them.
    for bucket in sorted(
        buckets.values(),
        key=lambda bucket: (bucket[0].answer.looseness, bucket[0].position),
    ):
        answer = bucket[0].answer
        for members in classes if not answer.exact else ():
            if await same(members[0].answer, answer):
                members.extend(bucket)
                break
        else:
            classes.append(bucket)
    return tuple(sorted(map(_class, classes), key=lambda c: c.positions[0]))


def count(classes: Sequence[AnswerClass], start: int, stop: int) -> Vote:
    """The vote of the attempts at positions `start` to `stop - 1`, with all attempts before `stop` as support."""
    standings = [
        Standing(
            answer=c.answer,
            votes=sum(start <= p < stop for p in c.positions),
            support=sum(p < stop for p in c.positions),
            first=c.positions[0],
        )
        for c in classes
        if c.positions[0] < stop
    ]
    standings.sort(key=lambda standing: standing.rank, reverse=True)
    return Vote(tuple(standings), exact=all(c.exact for c in classes))


def heaviest(
    vote: Vote, classes: Sequence[AnswerClass], weights: Sequence[float]
) -> Standing | None:
    """The class whose attempts, by position and of all tiers so far, weigh the most. Ties go as in the vote."""
    weight = {
        c.positions[0]: fsum(weights[position] for position in c.positions)
        for c in classes
    }
    return max(
        vote.standings, key=lambda each: weight[each.first], default=None
    )  # of equals the first, as they stand


class _Given(NamedTuple):
    position: int
    answer: Answer


def _class(members: Sequence[_Given]) -> AnswerClass:
    positions = tuple(sorted(each.position for each in members))
    return AnswerClass(
        min(members).answer, positions, exact=all(each.answer.exact for each in members)
    )
