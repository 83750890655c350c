"""A problem solved without cards and with them, side by side, as `kace demo` and `kace tree try` show it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from kace.cards.tree import EpistemicTree
from kace.cli.streams import aligned, columns, plain
from kace.cli.terminal import verdict_of
from kace.config import RetrievalConfig
from kace.ladder.record import Solution
from kace.ladder.relevance import Relevance
from kace.ladder.tiers import TierName
from kace.problems import Problem
from kace.words import counted

COLOURS = {"right": "green", "wrong": "red"}
SKIP_ES = "--set es_policy=skip"


class SideBySide:
    """Tells what the cards of a tree changed, problem by problem."""

    def __init__(self, tree: EpistemicTree, reading: RetrievalConfig) -> None:
        self.tree = tree
        self.relevance = Relevance(tree, reading)

    def lines(
        self, problem: Problem, without: Solution, using: Solution
    ) -> Iterator[str]:
        """The problem, both answers, and each card that was read by its name and how it begins, or why none was."""
        width = max(columns(), 60)
        expected = "" if problem.answer is None else f"  Expected: {problem.answer}"
        yield from textwrap.wrap(plain(problem.text + expected), width)
        read = tuple(
            dict.fromkeys(name for recall in using.recalls for name in recall.cards)
        )
        told = f"with {counted(len(read), 'card')}" if read else "with the tree"
        rows = [
            (f"  {name}", *_outcome(solution))
            for name, solution in (("without cards", without), (told, using))
        ]
        yield from aligned(rows, left=4)
        for name in read:
            yield f"    {plain(f'{name}: {self.tree.card(name).body}', width - 4)}"
        if not read:
            why = self._why_none(problem, using)
            yield from textwrap.wrap(
                why, width, initial_indent="    ", subsequent_indent="    "
            )

    def passed_over(self, problem: Problem) -> str:
        """The card that fits a problem which left at ES, and how to read it; nothing where none fits."""
        best, score = self._nearest(problem)
        return (
            f"{best} fits, and {SKIP_ES} would read it"
            if best and score >= self.relevance.skip_threshold
            else ""
        )

    def _why_none(self, problem: Problem, solution: Solution) -> str:
        if not solution.recalls:
            left = f"both {TierName.ES} attempts agree, so no card is read"
            return "; ".join(filter(None, (left, self.passed_over(problem))))
        (best, score), threshold = self._nearest(problem), self.relevance.threshold
        close = best and score >= 2 / 3 * threshold
        near = (
            f" (nearest: {best} at {score:.2f}, shown from {threshold:.2f})"
            if close
            else ""
        )
        return f"no card fits, so nothing changes{near}"

    def _nearest(self, problem: Problem) -> tuple[str, float]:
        """The card that comes nearest to a problem, and its score; of an empty tree none, at zero."""
        scores = self.relevance.scores(problem.text)
        return max(scores.items(), key=lambda item: item[1], default=("", 0.0))


def colour_of(line: str) -> str:
    """The colour of a line: that of its verdict."""
    return next(
        (
            colour
            for verdict, colour in COLOURS.items()
            if f"  {verdict}  " in f"{line}  "
        ),
        "",
    )


def _outcome(solution: Solution) -> tuple[str, str, str]:
    """The answer, the verdict on it, and how many attempts of the tier that decided gave it."""
    answer = plain(solution.answer, 24) if solution.answer else "no answer"
    last = solution.tiers[-1]
    votes = last.vote.leader.votes if last.vote.leader else 0
    of = len(last.attempts)
    agreed = f"{votes} of {of} attempts agree at {last.tier.name}"
    if solution.exit is not last.tier.exit:
        agreed = f"no agreement in {len(solution.attempts)} attempts"
    return answer, verdict_of(solution), agreed
