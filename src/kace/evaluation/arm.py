"""An arm: one system's recorded solves, held as one compact row each so that a hundred thousand fit in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from sys import intern

from kace.errors import DataError
from kace.solver.attempt import Outcome
from kace.solver.manifest import manifest_part, manifest_text, read_manifest
from kace.solver.tiers import ExitPath
from kace.solver.trace import Damage, SolveRecord, read_trace

TRACES = ("traces.jsonl", "traces.jsonl.gz")


@dataclass(frozen=True, slots=True)
class Row:
    """One problem solved once."""

    problem: str
    """The content hash of the problem's text."""
    label: str
    family: str | None
    domain: str | None
    """The gold domain, where the data set has one."""
    seed: int
    correct: bool | None
    """`None` where no answer is expected."""
    failed: bool
    """Whether the provider failed some attempt for good."""
    exit: ExitPath | None
    """`None` for a system without a ladder."""
    paper_calls: int
    real_calls: int
    attempts: int
    """Attempts that ran to an end; one that early stop cancelled is not evidence of anything."""
    right_attempts: int
    input: int
    """The solver's prompt tokens, cached ones included."""
    cached: int
    output: int
    classifier_calls: int
    classifier_input: int
    classifier_output: int
    card_tokens: int
    """Tokens of learned text in the fullest prompt of the solve: its active context."""
    read_tokens: int
    """Tokens of learned text over all tiers of the solve."""
    estimated: bool
    """Whether those tokens are an estimate from the length of the text."""
    cards: tuple[str, ...]
    """Ids of the cards it read, each once, in order."""
    seconds: float

    @property
    def name(self) -> str:
        """What to call the problem in a table."""
        return self.label or self.problem[:8]


@dataclass(frozen=True, slots=True)
class Arm:
    """A system as it was recorded."""

    name: str
    rows: tuple[Row, ...]
    """The last word on every problem and seed, ordered by both, whatever order they finished in."""
    manifest: Mapping[str, object]
    """What produced it, as `run.json` has it."""
    damage: tuple[Damage, ...] = ()
    """Lines of the trace that could not be read."""
    retried: int = 0
    """Solves that replace an earlier one of the same problem and seed, which had lost a call."""
    folder: Path | None = None

    @property
    def model(self) -> str:
        """The solver, or nothing where the run does not say."""
        return manifest_text(manifest_part(self.manifest, "config").get("model"))

    @property
    def data(self) -> str:
        """The content hash of the problems it was run on, or nothing where the run does not say."""
        return manifest_text(manifest_part(self.manifest, "data").get("hash"))


def read_arm(folder: Path) -> Arm:
    """Read a run directory: its manifest whole, its trace line by line.

    Damaged lines are left out and counted; a missing or foreign folder is a `DataError`.
    """
    manifest = read_manifest(folder / "run.json")
    trace = next((path for name in TRACES if (path := folder / name).is_file()), None)
    if trace is None:
        raise DataError(f"{folder}: no {TRACES[0]} in it", fix="give the --out of kace eval, solve or select")
    found: dict[tuple[str, int], Row] = {}
    damage: list[Damage] = []
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}
    retried: set[tuple[str, int]] = set()
    for line in read_trace(trace):
        if isinstance(line.content, Damage):
            damage.append(line.content)
            continue
        row = row_of(line.content, shared)
        key = (row.problem, row.seed)
        if key in found:
            retried.add(key)
        found[key] = row
    rows = tuple(found[key] for key in sorted(found))
    name = manifest_text(manifest_part(manifest, "system").get("name")) or folder.resolve().name
    return Arm(name, rows, manifest, tuple(damage), len(retried), folder)


def read_arms(folders: Sequence[Path]) -> tuple[Arm, ...]:
    """Read several, each under a name of its own: the system's, or the folder's where two share a system."""
    arms = [read_arm(folder) for folder in folders]
    for called in (_folder_name, _folder_path):
        names = [arm.name for arm in arms]
        arms = [replace(arm, name=called(arm)) if names.count(arm.name) > 1 else arm for arm in arms]
    names = [arm.name for arm in arms]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise DataError(f"{twice} is given twice", fix="name every run once")
    return tuple(arms)


def row_of(record: SolveRecord, shared: dict[tuple[str, ...], tuple[str, ...]] | None = None) -> Row:
    """The row of a record. With `shared`, equal tuples of cards are kept once over all rows."""
    ran = [attempt for attempt in record.attempts if attempt.outcome is not Outcome.CANCELLED]
    made, recalls = record.made, record.recalls
    cards = tuple(dict.fromkeys(intern(card) for recall in recalls for card in recall.cards))
    return Row(
        problem=intern(record.problem),
        label=intern(record.label),
        family=_interned(record.family),
        domain=_interned(record.domain),
        seed=record.seed,
        correct=record.correct,
        failed=record.failed,
        exit=record.exit,
        paper_calls=record.paper_calls,
        real_calls=record.real_calls,
        attempts=len(ran),
        right_attempts=sum(bool(attempt.correct) for attempt in ran),
        input=sum(attempt.input for attempt in made),
        cached=sum(attempt.cached for attempt in made),
        output=sum(attempt.output for attempt in made),
        classifier_calls=sum(recall.classifier_calls for recall in recalls),
        classifier_input=sum(recall.classifier_input for recall in recalls),
        classifier_output=sum(recall.classifier_output for recall in recalls),
        card_tokens=max((recall.tokens for recall in recalls), default=0),
        read_tokens=sum(recall.tokens for recall in recalls),
        estimated=any(recall.estimated for recall in recalls),
        cards=cards if shared is None else shared.setdefault(cards, cards),
        seconds=record.seconds,
    )


def _interned(text: str | None) -> str | None:
    return None if text is None else intern(text)


def _folder_name(arm: Arm) -> str:
    return arm.folder.resolve().name if arm.folder else arm.name


def _folder_path(arm: Arm) -> str:
    return str(arm.folder) if arm.folder else arm.name
