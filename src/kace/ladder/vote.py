"""Votes over classes of equivalent answers.

Classes are a function of the attempts in their fixed order, never of the order in which replies arrive. Answers with
the same canonical key that state the same are one class outright. Answers that state a unit or an unknown, and then
those without an exact value, may join a class whose representative they match; two exact classes never merge, so a
loose match cannot chain them together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from math import fsum

from kace.answers.extract import Answer

Same = Callable[[Answer, Answer], Awaitable[bool]]
"""Decides whether two answers, at least one of them without an exact value, are the same."""


@dataclass(frozen=True, slots=True)
class AnswerClass:
    """Equivalent answers, and the positions of the attempts that gave them."""

    answer: Answer  # the representative: the member with the lowest position
    positions: tuple[int, ...]
    exact: bool  # true when every member has an exact value


@dataclass(frozen=True, slots=True)
class Standing:
    """The votes of one class."""

    answer: Answer
    votes: int  # attempts of this vote that gave the answer
    support: int  # attempts so far, in this and earlier tiers, that gave it
    first: int  # the lowest position among them

    @property
    def rank(self) -> tuple[int, int, int]:
        """The larger wins: more votes; then more support over all attempts so far; then the lowest attempt index."""
        return self.votes, self.support, -self.first


@dataclass(frozen=True, slots=True)
class Vote:
    """All classes known so far, best first, as one vote sees them."""

    standings: tuple[Standing, ...]
    exact: bool  # true when every answer so far has an exact value: no later answer can then regroup the classes

    @property
    def leader(self) -> Standing | None:
        """The class that wins the vote, if any attempt voted."""
        return (
            self.standings[0]
            if self.standings and self.standings[0].votes
            else None
        )


async def group(
    answers: Sequence[Answer | None], same: Same
) -> tuple[AnswerClass, ...]:
    """Partition answers, by position, into classes in order of first appearance. `None` votes for nothing."""
    given: dict[int, Answer] = {}
    buckets: dict[object, list[int]] = {}
    for position, answer in enumerate(answers):
        if answer is not None:
            given[position] = answer
            buckets.setdefault((answer.key, answer.stated), []).append(position)

    def exact_first(bucket: list[int]) -> tuple[int, int]:
        # Exact buckets first: they do not depend on which loose answers came before them.
        return given[bucket[0]].looseness, bucket[0]

    async def find_class(answer: Answer) -> list[int] | None:
        for members in classes:
            if await same(given[members[0]], answer):
                return members
        return None

    classes: list[list[int]] = []
    for bucket in sorted(buckets.values(), key=exact_first):
        answer = given[bucket[0]]
        joined = None if answer.exact else await find_class(answer)
        if joined is None:
            classes.append(bucket)
        else:
            joined.extend(bucket)
    found = []
    for members in map(sorted, classes):
        exact = all(given[position].exact for position in members)
        found.append(AnswerClass(given[members[0]], tuple(members), exact))
    return tuple(sorted(found, key=lambda each: each.positions[0]))


def count(
    classes: Sequence[AnswerClass],
    start: int,
    stop: int,
) -> Vote:
    """Count the votes of the attempts at positions `start` to `stop - 1`, with all before `stop` as support."""
    standings = []
    for each in classes:
        first = each.positions[0]
        support = bisect_left(each.positions, stop)
        votes = support - bisect_left(each.positions, start)
        if first < stop:
            standings.append(Standing(each.answer, votes, support, first))
    standings.sort(key=lambda standing: standing.rank, reverse=True)
    return Vote(tuple(standings), exact=all(each.exact for each in classes))


def heaviest(
    vote: Vote,
    classes: Sequence[AnswerClass],
    weights: Sequence[float],
) -> Standing | None:
    """Return the class whose attempts, of all tiers so far, weigh the most. Ties are broken as in the vote."""
    weight = {}
    for each in classes:
        # fsum, so that the order of the positions does not matter
        weight[each.positions[0]] = fsum(weights[at] for at in each.positions)
    return max(
        vote.standings, key=lambda each: weight[each.first], default=None
    )
