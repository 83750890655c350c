"""An arm: one system's recorded solves, held as one compact row each so that a hundred thousand fit in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from sys import intern
from typing import Any

from kace.errors import DataError, UsageError
from kace.solver.manifest import manifest_part, manifest_text, read_manifest
from kace.solver.records import Damage, Outcome, Solution, read_trace, trace_of
from kace.solver.run import kept_field
from kace.solver.tiers import ExitPath
from kace.systems.registry import SYSTEMS
from kace.words import counted

_TEXTS = ("problem", "label", "family", "domain")
_ROUTING = ("classifier_calls", "classifier_input", "classifier_cached", "classifier_output")
_SAME = ("seed", "correct", "failed", "exit", "paper_calls", "real_calls", "abstained", "seconds", "ahead_calls")


@dataclass(frozen=True, slots=True)
class SolveRow:
    """One problem solved once, as its record says it."""

    problem: str
    label: str
    family: str | None
    domain: str | None
    seed: int
    correct: bool | None
    failed: bool
    exit: ExitPath | None
    paper_calls: int
    real_calls: int
    attempts: int  # attempts that ran to an end; one that early stop cancelled is not evidence of anything
    right_attempts: int
    input: int  # the solver's prompt tokens, cached ones included
    cached: int
    output: int
    classifier_calls: int
    classifier_input: int
    classifier_cached: int
    classifier_output: int
    card_tokens: int  # tokens of learned text in the fullest prompt of the solve: its active context
    read_tokens: int  # tokens of learned text over all tiers of the solve
    estimated: bool  # whether those tokens are an estimate from the length of the text
    cards: tuple[str, ...]  # ids of the cards it read, each once, in order
    abstained: bool  # whether it read none though some tier had eligible ones
    seconds: float
    batch_input: int = 0  # of the solver's tokens, those of calls in batches, which have a price of their own
    batch_cached: int = 0
    batch_output: int = 0
    ahead_calls: int = 0  # sent ahead by a batch and not needed, with their tokens: part of no other figure
    ahead_input: int = 0
    ahead_cached: int = 0
    ahead_output: int = 0

    @property
    def name(self) -> str:
        """What to call the problem in a table."""
        return self.label or self.problem[:8]


@dataclass(frozen=True, slots=True)
class Arm:
    """A system as it was recorded: the last row of every problem and seed, ordered by both."""

    name: str
    rows: tuple[SolveRow, ...]
    manifest: Mapping[str, object]  # what produced it, as `run.json` has it.
    damage: tuple[Damage, ...] = ()
    retried: int = 0  # solves that replace an earlier one of the same problem and seed, which had lost a call
    folder: Path | None = None

    @property
    def model(self) -> str:
        """The solver, or nothing where the run does not say."""
        return manifest_text(manifest_part(self.manifest, "config").get("model"))

    @property
    def data(self) -> str:
        """The content hash of the problems it was run on, or nothing where the run does not say."""
        return manifest_text(manifest_part(self.manifest, "data").get("hash"))

    @property
    def reads_tree(self) -> bool:
        """Whether its system shows cards of a tree."""
        spec = SYSTEMS.get(manifest_text(manifest_part(self.manifest, "system").get("name")))
        return spec is not None and spec.source == "tree"


@dataclass(frozen=True, slots=True)
class Clusters:
    """What counts as one observation: all problems that share a field, with all their seeds."""

    field: str
    names: Mapping[str, str]  # the cluster of each problem

    def sizes(self, problems: Iterable[str]) -> Counter[str]:
        """How many of these there are in each cluster."""
        return Counter(self.names[problem] for problem in problems)


def clusters_of(arms: Sequence[Arm], field: str | None = None) -> Clusters:
    """By any field that every problem has; left out, by family where every solve has one, else by problem."""
    rows = [row for arm in arms for row in arm.rows]
    field = field or ("family" if rows and all(row.family for row in rows) else "problem")
    if field in _TEXTS:
        names = {row.problem: name for row in rows if (name := getattr(row, field))}
    else:
        names = dict(pair for arm in arms if arm.folder for pair in kept_field(arm.folder, field))
    problems = {row.problem for row in rows}
    if bare := problems - names.keys():
        said = f"{len(bare):,} of {counted(len(problems), 'problem')} have no field '{field[:40]}'"
        raise UsageError(said, fix="--cluster problem, family, domain, or a field of the runs' problems.jsonl")
    return Clusters(field, {problem: names[problem] for problem in problems})


def read_arm(folder: Path) -> Arm:
    """Read a run directory line by line. Damaged lines are left out and counted."""
    manifest = read_manifest(folder / "run.json")
    found: dict[tuple[str, int], SolveRow] = {}
    damage: list[Damage] = []
    retried: set[tuple[str, int]] = set()
    for line in read_trace(trace_of(folder)):
        if isinstance(line.content, Damage):
            damage.append(line.content)
        else:
            row = row_of(line.content)
            retried |= {key := (row.problem, row.seed)} & found.keys()
            found[key] = row
    name = manifest_text(manifest_part(manifest, "system").get("name")) or folder.resolve().name
    return Arm(name, tuple(found[key] for key in sorted(found)), manifest, tuple(damage), len(retried), folder)


def read_arms(folders: Sequence[Path]) -> tuple[Arm, ...]:
    """Read several, each under a name of its own: the system's, or the folder's where two share a system."""
    arms = [read_arm(folder) for folder in folders]
    for called in ([folder.resolve().name for folder in folders], [str(folder) for folder in folders]):
        times = Counter(arm.name for arm in arms)
        arms = [replace(a, name=name) if times[a.name] > 1 else a for a, name in zip(arms, called, strict=True)]
    name, most = Counter(arm.name for arm in arms).most_common(1)[0] if arms else ("", 0)
    if most > 1:
        raise DataError(f"{name} is given twice", fix="name every run once")
    return tuple(arms)


def row_of(record: Solution) -> SolveRow:
    """The row of a record; rows that read the same cards share them."""
    ran = [attempt for attempt in record.attempts if attempt.outcome is not Outcome.CANCELLED]
    recalls = record.recalls
    taken: dict[str, Any] = {name: getattr(record, name) for name in _SAME}
    taken |= {name: (text := getattr(record, name)) and intern(text) for name in _TEXTS}
    taken |= {name: sum(getattr(each, name) for each in record.made) for name in ("input", "cached", "output")}
    batched = [each for each in record.made if each.batch]
    taken |= {f"batch_{name}": sum(getattr(each, name) for each in batched) for name in ("input", "cached", "output")}
    taken |= {name: sum(getattr(recall, name) for recall in recalls) for name in _ROUTING}
    taken |= {f"ahead_{name}": getattr(record.ahead_usage, name) for name in ("input", "cached", "output")}
    return SolveRow(
        **taken,
        attempts=len(ran),
        right_attempts=sum(bool(attempt.correct) for attempt in ran),
        card_tokens=max((recall.tokens for recall in recalls), default=0),
        read_tokens=sum(recall.tokens for recall in recalls),
        estimated=any(recall.estimated for recall in recalls),
        cards=_shared(tuple(dict.fromkeys(card for recall in recalls for card in recall.cards))),
    )


@lru_cache(maxsize=10_000)
def _shared(cards: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(intern, cards))
