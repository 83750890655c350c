"""One epoch of a learning run, put together from the steps it kept."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from kace.learner.commit import Look
from kace.learner.consolidate import Merge, Merges
from kace.learner.findings import RUNS, Beyond, Gap, Refusal, Revised, Score, Size, is_shown
from kace.learner.illustrate import Illustrated
from kace.learner.notebook import Line, Step
from kace.learner.practice import Exercised
from kace.learner.revise import Revisions
from kace.learner.verdicts import Proposals, Rulings
from kace.retrieval.retriever import estimate
from kace.solver.tiers import ExitPath
from kace.solver.trace import SolveRecord, read_trace
from kace.tree.store import TreeStore, open_tree
from kace.tree.tree import EpistemicTree

B = TypeVar("B", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Epoch:
    """One round of growing, measuring and revising."""

    number: int
    scores: tuple[Score, ...]
    proposed: int
    waiting: int
    """Proposed, but not ruled on yet."""
    admitted: int
    merged: tuple[Merge, ...]
    """Admitted, but the same as another card."""
    refused: tuple[Refusal, ...]
    revised: tuple[Revised, ...]
    looks: tuple[Look, ...]
    gaps: tuple[Gap, ...]
    beyond: tuple[Beyond, ...]
    size: Size | None
    """The tree at the epoch's end; nothing before that."""


class Steps:
    """The kept steps. One whose value this version cannot read is named and left out."""

    def __init__(self, folder: Path, lines: Iterable[Line]) -> None:
        self.folder = folder
        """Where the learner keeps its record, and its runs lie."""
        self.lines = tuple({line.step: line for line in lines}.values())
        self.unread: dict[str, None] = {}

    @property
    def epochs(self) -> tuple[int, ...]:
        """The numbers of the epochs that were begun."""
        return tuple(sorted({line.epoch for line in self.lines if line.epoch}))

    def of(self, kind: type[B], *names: str, epoch: int) -> Iterator[tuple[Step, B]]:
        """The values of an epoch's steps of these names, in the order they were done."""
        for line in self.lines:
            if line.what in names and line.epoch == epoch:
                try:
                    # As JSON: cards are strict, and a decoded list is no tuple to them.
                    yield line.step, kind.model_validate_json(json.dumps(line.value))
                except ValidationError:
                    self.unread[str(line.step)] = None


@dataclass(slots=True)
class _Gate:
    """Counts of what came to the gate of an epoch and what passed."""

    proposed: int = 0
    waiting: int = 0
    admitted: int = 0
    refused: list[Refusal] = field(default_factory=list)


def epoch_of(number: int, steps: Steps, store: TreeStore) -> Epoch:
    """Everything that an epoch did, as far as it came."""
    scores = tuple(Score.of(step, run) for step, run in steps.of(Exercised, *RUNS, epoch=number))
    base = _base_records(number, steps)
    looks = tuple(look for _, look in steps.of(Look, "look", epoch=number))
    curated = list(steps.of(Revisions, "revise", epoch=number))
    gate = _admission(number, steps)
    return Epoch(
        number=number,
        scores=scores,
        proposed=gate.proposed,
        waiting=gate.waiting,
        admitted=gate.admitted,
        merged=_merged(number, steps),
        refused=(*gate.refused, *_refused_examples(number, steps), *_refused_revisions(number, curated)),
        revised=tuple(_revised(curated, looks)),
        looks=looks,
        gaps=tuple(dict.fromkeys(Gap(step.place, text) for step, found in curated for text in found.gaps)),
        beyond=tuple(_beyond(record) for record in base if wrong_at_es(record)),
        size=_size_after(number, store),
    )


def records_of(folder: Path) -> tuple[SolveRecord, ...]:
    """The last word on every problem of a run, damaged lines left out; also while the run is under way."""
    path = folder / "traces.jsonl"
    lines = read_trace(path) if path.exists() else ()
    found = [line.content for line in lines if isinstance(line.content, SolveRecord)]
    return tuple({(record.problem, record.seed): record for record in found}.values())


def wrong_at_es(record: SolveRecord) -> bool:
    """Whether the first two attempts agreed on a wrong answer."""
    return record.exit is ExitPath.ES_UNANIMOUS and record.correct is False


def _admission(number: int, steps: Steps) -> _Gate:
    gate = _Gate()
    rulings = {step.place: ruling for step, ruling in steps.of(Rulings, "admit", epoch=number)}
    proposals: dict[str, list[Proposals]] = {}
    for step, found in steps.of(Proposals, "propose", "imagine", epoch=number):
        proposals.setdefault(step.place, []).append(found)
    for place, parts in proposals.items():
        cards = sum(len(part.cards) for part in parts)
        early = [each for part in parts for each in part.refused]
        ruling = rulings.get(place, Rulings())
        gate.proposed += cards + len(early)
        gate.waiting += 0 if place in rulings else cards
        gate.admitted += len(ruling.admitted)
        gate.refused += [Refusal(number, place, "card", each) for each in (*early, *ruling.refused)]
    return gate


def _merged(number: int, steps: Steps) -> tuple[Merge, ...]:
    """What consolidation made one card of."""
    return tuple(merge for _, merges in steps.of(Merges, "merge", epoch=number) for merge in merges.merged)


def size_of(tree: EpistemicTree) -> Size:
    """How large a tree is."""
    shown = [card for card in tree if is_shown(card)]
    return Size(len(shown), len(tree) - len(shown), sum(map(estimate, shown)))


def _size_after(number: int, store: TreeStore) -> Size | None:
    path = store.folder / "snapshots" / f"epoch-{number}.jsonl"
    return size_of(open_tree(path)) if path.exists() else None


def _refused_examples(number: int, steps: Steps) -> Iterator[Refusal]:
    for step, found in steps.of(Illustrated, "illustrate", epoch=number):
        yield from (Refusal(number, step.place, "example", each) for each in found.refused)


def _refused_revisions(number: int, curated: Iterable[tuple[Step, Revisions]]) -> Iterator[Refusal]:
    for step, found in curated:
        yield from (Refusal(number, step.place, "revision", each) for each in found.refused)


def _revised(curated: Iterable[tuple[Step, Revisions]], looks: Sequence[Look]) -> Iterator[Revised]:
    accepted = {(look.domain, look.number) for look in looks if look.accepted}
    for step, found in curated:
        taken = (step.place, step.number) in accepted
        for each in found.revisions:
            yield Revised(step.epoch, each.card_id, each.action.value, each.reason, step.place, step.number, taken)


def _base_records(number: int, steps: Steps) -> tuple[SolveRecord, ...]:
    """The records of the run that tells how the epoch's tree does, or of the newest before there is one."""
    runs = {step.what: run for step, run in steps.of(Exercised, "run", "base", "rebase", epoch=number)}
    run = runs.get("rebase") or runs.get("base") or runs.get("run")
    # The name is read from a file: it may lead into the learner's folder only.
    return records_of(steps.folder / Path(run.folder).name) if run else ()


def _beyond(record: SolveRecord) -> Beyond:
    return Beyond(record.label or record.problem[:8], record.answer or "", record.expected or "")
