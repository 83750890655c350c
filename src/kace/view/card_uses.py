"""Where a card was read in the opened runs, and which problems were won or lost beside runs that did not read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from kace.evaluation.arm import Row

if TYPE_CHECKING:
    from kace.view.run_index import RunIndex


@dataclass(frozen=True, slots=True)
class Use:
    """A run that read a card."""

    run: str
    """As the shelf calls it."""
    solves: int
    """All solves of the run read so far."""
    rows: tuple[Row, ...]
    """Those in which some tier read the card."""
    right: int
    wrong: int
    complete: bool
    tree_hash: str
    """Of the tree that the run read from, or nothing where it does not say."""

    @property
    def judged(self) -> int:
        """Solves whose answer could be checked."""
        return self.right + self.wrong


@dataclass(frozen=True, slots=True)
class Swing:
    """The same problems and seeds in two runs of one model: read in the one, not in the other."""

    run: str
    against: str
    pairs: int
    gained: tuple[Row, ...]
    """Right in `run`, wrong in `against`; the rows are those of `run`."""
    broken: tuple[Row, ...]
    """The other way round."""


class _Pair(NamedTuple):
    row: Row
    other: Row


def uses_of(card_id: str, runs: Mapping[str, RunIndex]) -> tuple[Use, ...]:
    """Every opened run that read the card, most solves first."""
    found = []
    for name, run in runs.items():
        complete, rows = run.complete, run.rows
        reading = _reading(card_id, rows)
        if reading:
            right, wrong = (sum(row.correct is said for row in reading) for said in (True, False))
            found.append(Use(name, len(rows), reading, right, wrong, complete, run.tree_hash))
    return tuple(sorted(found, key=lambda use: (-len(use.rows), use.run)))


def swings_of(card_id: str, uses: Sequence[Use], runs: Mapping[str, RunIndex]) -> tuple[Swing, ...]:
    """Per run that read the card, the plainest run to set it beside, where there is one.

    That is one of the same model on the same problems and seeds, so that as little as possible differs besides: with a
    ladder where the run has one, without a tree if there is such a one, and with the shortest prompts.
    """
    models = {runs[use.run].model for use in uses}
    solved = {
        name: {(row.problem, row.seed): row for row in run.rows} for name, run in runs.items() if run.model in models
    }
    found = []
    for use in uses:
        model = runs[use.run].model
        others = [name for name in solved if name != use.run and runs[name].model == model]
        beside = {name: pairs for name in others if (pairs := _pairs(card_id, use, solved[name]))}
        if beside:
            best = min(
                beside, key=lambda name: (_ladders(beside[name]), runs[name].tree_hash != "", _prompt(beside[name]))
            )
            found.append(_swing(use.run, best, beside[best]))
    return tuple(found)


def _pairs(card_id: str, use: Use, solved: Mapping[tuple[str, int], Row]) -> list[_Pair]:
    """The solves that read the card, each with one of the other run that did not, where both could be checked."""
    found = []
    for row in use.rows:
        other = solved.get((row.problem, row.seed))
        if other and row.correct is not None and other.correct is not None and card_id not in other.cards:
            found.append(_Pair(row, other))
    return found


def _ladders(pairs: Sequence[_Pair]) -> int:
    """Pairs of which only one climbed a ladder."""
    return sum((pair.row.exit is None) != (pair.other.exit is None) for pair in pairs)


def _prompt(pairs: Sequence[_Pair]) -> float:
    """Prompt tokens of an attempt of the other run."""
    return sum(pair.other.input for pair in pairs) / max(1, sum(pair.other.attempts for pair in pairs))


def _swing(run: str, against: str, pairs: Sequence[_Pair]) -> Swing:
    changed = [pair.row for pair in pairs if pair.row.correct is not pair.other.correct]
    gained = tuple(row for row in changed if row.correct)
    return Swing(run, against, len(pairs), gained, tuple(row for row in changed if not row.correct))


def _reading(card_id: str, rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rows that read the card. Rows share their tuples of cards, so each tuple is searched once."""
    known: dict[int, bool] = {}
    found = []
    for row in rows:
        key = id(row.cards)
        if key not in known:
            known[key] = card_id in row.cards
        if known[key]:
            found.append(row)
    return tuple(found)
