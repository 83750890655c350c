"""Report what a learning run did, from the folder of its tree, finished or not.

One plain value, `LearningReport`, is built from the step log and the run tables. The
terminal, `--json` and the pages show it. The forecast of a run is here too.
"""

from __future__ import annotations

import fcntl
import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from kace.cards.card import UNIVERSAL, Card, Difficulty, Status, plain_points
from kace.cards.store import TreeStore, open_tree
from kace.cards.tree import EpistemicTree
from kace.config import Config, Price
from kace.errors import DataError, one_line
from kace.files import inside
from kace.ladder.prompt import template
from kace.ladder.record import Solution
from kace.ladder.retrieve import estimate
from kace.ladder.tiers import LOCKED
from kace.learning.accept import Comparison, Revision, Revisions
from kace.learning.admit import Merge, Merges, Rulings
from kace.learning.measure import Fire, Impact, Lift, lifts_by_source
from kace.learning.propose import FAILURES_AT_ONCE, Proposals, wrong_at_es
from kace.learning.steps import R, RunTotals, StepLine, StepName, read_steps
from kace.learning.study import (
    LearnManifest,
    RoleBill,
    Settings,
    read_bill,
)
from kace.learning.teacher import (
    MOST_DOMAINS,
    SHOWN,
    SOLUTIONS,
    TAIL_CHARS,
    CardRefusal,
)
from kace.learning.wordings import WORDINGS_AT_ONCE, Demonstrations
from kace.models.base import Usage
from kace.models.budget import Ledger
from kace.problems import Problem
from kace.runs.stats import Interval, wilson
from kace.runs.table import Table
from kace.words import counted

TITLES = {
    "run": "before {0.place} cards",
    "base": "with the cards",
    "rebase": "after retirements",
    "dropout": "cards hidden at random",
    "verify": "rerun {0.number} of {0.place}",
}
"""The steps that are tiered runs, and what each is for."""
DONE = "done"
DOING = "under way"
TO_COME = "to come"


@dataclass(frozen=True, slots=True)
class RunScore:
    """A tiered run on training problems, finished or under way."""

    step: StepName
    title: str
    folder: str
    problems: int
    correct: int
    escalated: int
    paper_calls: int
    accuracy: float | None  # `None` if nothing was solved
    interval: Interval

    @classmethod
    def of(cls, step: StepName, run: RunTotals) -> RunScore:
        """Return the totals of a run with its accuracy and 95 % Wilson interval."""
        share = run.correct / run.problems if run.problems else None
        return cls(
            step=step,
            title=TITLES.get(step.what, "{0.what}").format(step),
            **dict(run),
            accuracy=share,
            interval=wilson(run.correct, run.problems),
        )


@dataclass(frozen=True, slots=True)
class CardTotals:
    """The number of cards that a solve may read, with their tokens, and of others."""

    shown: int
    validated: int
    retired: int
    tokens: int
    difficulty: Difficulty | None = None

    @classmethod
    def of(
        cls, cards: Iterable[Card], difficulty: Difficulty | None = None
    ) -> CardTotals:
        """Return the totals of some cards, or of those of one difficulty."""
        shown = validated = retired = tokens = 0
        for card in cards:
            if difficulty not in (None, card.difficulty_tag):
                continue
            if card.status is Status.DEPRECATED:
                retired += 1
                continue
            shown += 1
            validated += card.status is Status.VALIDATED
            tokens += estimate(card)
        return cls(shown, validated, retired, tokens, difficulty)


class Fate(StrEnum):
    """What became of a proposal."""

    KEPT = "kept"
    RETIRED = "retired"
    MERGED = "merged"
    ADMITTED = "admitted"  # it may enter the tree and has not yet
    REFUSED = "refused"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A card proposed for a cell, and what became of it."""

    epoch: int
    place: str
    card_id: str  # as the teacher named it; empty if it gave no name
    card: Card | None  # `None` if the block could not be read as one
    fate: Fate
    refused: CardRefusal | None = None
    merge: Merge | None = None


@dataclass(frozen=True, slots=True)
class ReportedRefusal:
    """A `card`, or an `example` or a `revision` of one, that was refused."""

    epoch: int
    place: str
    what: str
    refused: CardRefusal


@dataclass(frozen=True, slots=True)
class Revised:
    """What the curator would do with a card, and whether a rerun confirmed it."""

    epoch: int
    card_id: str
    action: str
    reason: str
    domain: str
    number: int
    accepted: bool


@dataclass(frozen=True, slots=True)
class Epoch:
    """One round of growing, measuring and revising."""

    number: int
    scores: tuple[RunScore, ...]
    proposed: int
    waiting: int  # not ruled on yet
    admitted: int
    merged: tuple[Merge, ...]
    refused: tuple[ReportedRefusal, ...]
    revised: tuple[Revised, ...]
    comparisons: tuple[Comparison, ...]
    gaps: tuple[tuple[str, str], ...]  # a domain, and what no card could cover
    beyond: tuple[
        tuple[str, str, str], ...
    ]  # wrong at ES: problem, answer, expected
    size: CardTotals | None  # of the tree at its end


@dataclass(frozen=True, slots=True)
class CardReport:
    """A card of the tree with all that is known of what it does."""

    card: Card
    fire: Fire | None
    lifts: tuple[tuple[int, Lift], ...]  # with their epochs, the oldest first
    lift: Lift | None  # the newest
    outdated: bool  # rewritten or moved after the newest measurement
    earned: float | None  # right attempts: lift times attempts that saw it
    place: str
    revisions: tuple[Revised, ...] = ()


@dataclass(frozen=True, slots=True)
class DomainReport:
    """A domain, its share of the training problems, and its cards by difficulty."""

    name: str
    description: str
    share: float | None  # `universal` has none
    leaves: tuple[CardTotals, ...]


@dataclass(frozen=True, slots=True)
class Funnel:
    """What became of everything proposed."""

    proposed: int
    waiting: int
    admitted: int
    merged: int
    refused: int
    kept: int
    validated: int
    retired: int


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the run, and what came of it or is going on in it."""

    epoch: int  # 0 before the epochs or after them
    title: str
    words: str
    state: str


@dataclass(frozen=True, slots=True)
class LearningReport:
    """A learning run, as far as it came."""

    name: str
    state: str  # finished, working or stopped
    last_sign: float  # when the learner last wrote, in seconds since 1970
    solver: str
    teacher: str
    train: int
    planned: int  # epochs asked for; 0 if not known
    settings: tuple[tuple[str, str], ...]
    finished: bool
    frozen: str | None
    last: str
    under_way: tuple[RunScore, ...]
    size: CardTotals
    epochs: tuple[Epoch, ...]
    stages: tuple[Stage, ...]
    domains: tuple[DomainReport, ...]
    cards: tuple[CardReport, ...]  # highest lift first, then those not measured
    proposals: tuple[Proposal, ...]
    carried_own: Lift | None  # of all cards, on problems they were written from
    carried_others: Lift | None
    costs: tuple[RoleBill, ...]
    unread: tuple[str, ...]

    @property
    def summary(self) -> str:
        """Return what the run made; of one that made nothing, why."""
        return _summary(self)

    @property
    def progress(self) -> str:
        """Return how far an unfinished run came; empty if finished."""
        return _progress(self)

    @property
    def scores(self) -> tuple[RunScore, ...]:
        """Return every run over all training problems: these may be compared."""
        most = 0
        by_size: dict[int, list[RunScore]] = {}
        for epoch in self.epochs:
            for score in epoch.scores:
                if score.step.what != "verify":
                    by_size.setdefault(score.problems, []).append(score)
                    most = max(most, score.problems)
        return tuple(by_size.get(most, ()))

    @property
    def refused(self) -> tuple[ReportedRefusal, ...]:
        """Return everything refused, in order."""
        return tuple(
            refusal for epoch in self.epochs for refusal in epoch.refused
        )

    @property
    def rules(self) -> list[tuple[tuple[str, str], int]]:
        """Return the rules that something was refused for, most frequent first."""
        rules: Counter[tuple[str, str]] = Counter()
        for each in self.refused:
            rules[each.refused.rule, each.refused.by] += 1
        return rules.most_common()

    @property
    def measured(self) -> tuple[CardReport, ...]:
        """Return the cards whose lift is known, highest first."""
        return tuple(card for card in self.cards if card.lifts)

    @property
    def funnel(self) -> Funnel:
        """Return the counts from what was proposed to what was kept."""
        counts: Counter[str] = Counter()
        for epoch in self.epochs:
            counts["proposed"] += epoch.proposed
            counts["waiting"] += epoch.waiting
            counts["admitted"] += epoch.admitted
            counts["merged"] += len(epoch.merged)
        for each in self.refused:
            counts["refused"] += each.what == "card"
        return Funnel(
            proposed=counts["proposed"],
            waiting=counts["waiting"],
            admitted=counts["admitted"],
            merged=counts["merged"],
            refused=counts["refused"],
            kept=self.size.shown,
            validated=self.size.validated,
            retired=self.size.retired,
        )

    @property
    def usd(self) -> float | None:
        """Return the cost of the whole run; `None` if some price is not known."""
        if not self.costs:
            return None
        total = 0.0
        for cost in self.costs:
            if cost.usd is None:
                return None
            total += cost.usd
        return total


def report_of(tree_folder: Path) -> LearningReport:
    """Return the report of the learning run of a tree. Reads only, takes no lock."""
    folder = inside(tree_folder, "learn")
    store = TreeStore(tree_folder)
    if not (folder / "learn.json").is_file():
        raise DataError(
            f"{tree_folder} holds no learning run",
            fix="name the --out folder of a `kace learn` command",
        )
    manifest = LearnManifest.read(folder)
    steps = _DoneSteps(folder)
    planted = store.cards_path.exists()
    tree = store.load() if planted else EpistemicTree.of((), ())
    proposals = tuple(_proposals(steps, tree))
    epochs = []
    for number in steps.epochs:
        epochs.append(_epoch(number, steps, tree_folder, proposals))
    impacts = []
    for number in steps.epochs:
        for _, impact in steps.of(Impact, "impact", epoch=number):
            impacts.append((number, impact))
    names = _problem_names(steps)
    own, others = lifts_by_source(
        tree, (impact for _, impact in impacts), names
    )
    planned = manifest.settings.get("epochs")
    finished = StepName("close", "freeze") in steps.steps
    working = not finished and _is_locked(folder / "lock")
    size = CardTotals.of(tree)
    under_way = tuple(_under_way(steps))
    return LearningReport(
        name=tree_folder.resolve().name,
        state="finished" if finished else "working" if working else "stopped",
        last_sign=_last_sign(folder),
        solver=str(manifest.config.get("model", "")),
        teacher=manifest.teacher or "",
        train=manifest.train.problems,
        planned=planned if isinstance(planned, int) else 0,
        settings=tuple(
            (name, str(value)) for name, value in manifest.settings.items()
        ),
        finished=finished,
        frozen=store.frozen_hash if planted else None,
        last=str(steps.lines[-1].step) if steps.lines else "",
        under_way=under_way,
        size=size,
        epochs=tuple(epochs),
        stages=tuple(_stages(epochs, under_way, tree, steps, manifest)),
        domains=tuple(_domains(tree)),
        cards=_cards(tree, impacts, epochs),
        proposals=proposals,
        carried_own=own,
        carried_others=others,
        costs=read_bill(folder),
        unread=tuple(steps.unread),
    )


def report_json(report: LearningReport) -> str:
    """Return the report as one line of JSON, cards and all."""
    return TypeAdapter(LearningReport).dump_json(report).decode()


class _DoneSteps:
    """The steps of a log. One that this version cannot read is named and left out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        lines = {line.step: line for line in read_steps(folder / "steps.jsonl")}
        self.lines: tuple[StepLine, ...] = tuple(lines.values())
        self.steps = frozenset(lines)
        self.epochs = sorted({line.epoch for line in self.lines if line.epoch})
        self.unread: dict[str, None] = {}

    def of(
        self, kind: type[R], *names: str, epoch: int
    ) -> Iterator[tuple[StepName, R]]:
        """Yield the results of an epoch's steps of these names, in order."""
        for line in self.lines:
            if line.what not in names or line.epoch != epoch:
                continue
            try:
                yield line.step, line.read(kind)
            except ValidationError:
                self.unread[str(line.step)] = None


def _epoch(
    number: int, steps: _DoneSteps, tree: Path, proposals: Sequence[Proposal]
) -> Epoch:
    """Return everything that an epoch did, as far as it came."""
    fates: Counter[Fate] = Counter()
    merged = []
    refused = []
    for each in proposals:
        if each.epoch != number:
            continue
        fates[each.fate] += 1
        if each.merge:
            merged.append(each.merge)
        if each.refused:
            refused.append(
                ReportedRefusal(number, each.place, "card", each.refused)
            )
    for step, shown in steps.of(Demonstrations, "illustrate", epoch=number):
        for refusal in shown.refused:
            refused.append(
                ReportedRefusal(number, step.place, "example", refusal)
            )
    comparisons = []
    accepted = set()
    for _, found in steps.of(Comparison, "compare", epoch=number):
        comparisons.append(found)
        if found.accepted:
            accepted.add((found.domain, found.number))
    revised = []
    gaps: dict[tuple[str, str], None] = {}
    for step, curated in steps.of(Revisions, "revise", epoch=number):
        place = (step.place, step.number)
        for refusal in curated.refused:
            refused.append(
                ReportedRefusal(number, step.place, "revision", refusal)
            )
        for revision in curated.revisions:
            revised.append(
                _revised(number, revision, *place, place in accepted)
            )
        for text in curated.gaps:
            gaps[step.place, text] = None
    scores = []
    for done in steps.of(RunTotals, *TITLES, epoch=number):
        scores.append(RunScore.of(*done))
    snapshot = inside(tree, "snapshots") / f"epoch-{number}.jsonl"
    waiting = fates[Fate.WAITING]
    return Epoch(
        number=number,
        scores=tuple(scores),
        proposed=fates.total(),
        waiting=waiting,
        admitted=fates.total() - waiting - fates[Fate.REFUSED],
        merged=tuple(merged),
        refused=tuple(refused),
        revised=tuple(revised),
        comparisons=tuple(comparisons),
        gaps=tuple(gaps),
        beyond=tuple(_beyond(scores, steps.folder)),
        size=CardTotals.of(open_tree(snapshot)) if snapshot.exists() else None,
    )


def _revised(
    epoch: int, revision: Revision, domain: str, number: int, accepted: bool
) -> Revised:
    return Revised(
        epoch,
        revision.card_id,
        revision.action.value,
        revision.reason,
        domain,
        number,
        accepted,
    )


def _beyond(
    scores: Sequence[RunScore], folder: Path
) -> Iterator[tuple[str, str, str]]:
    """Yield the problems that ES left with a wrong answer in the epoch's newest run."""
    runs = {score.step.what: score for score in scores}
    for what in ("rebase", "base", "run"):
        if what in runs:
            # A name from a file leads into our folder only.
            for record in _records(folder / Path(runs[what].folder).name):
                if wrong_at_es(record):
                    yield (
                        record.name,
                        record.answer or "",
                        record.expected or "",
                    )
            return


def _records(folder: Path) -> list[Solution]:
    """Return the last record of every problem of a run, also while it is under way."""
    if not (folder / "run.json").exists():
        return []
    return list(Table.open(folder, allow_empty=True).solutions())


def _under_way(steps: _DoneSteps) -> Iterator[RunScore]:
    done = {step.folder for step in steps.steps}
    for path in sorted(steps.folder.glob("*/traces.jsonl")):
        folder = path.parent
        if folder.name not in done:
            step = StepName("", folder.name.replace("-", " "))
            yield RunScore.of(step, RunTotals.of(_records(folder), folder.name))


def _domains(tree: EpistemicTree) -> Iterator[DomainReport]:
    """Yield the tree by domain, `universal` last. A card of two domains is in both."""
    if not tree.domains:
        return
    for domain in tree.domains:
        leaves = _leaves(tree, domain.name)
        yield DomainReport(
            domain.name, domain.description, domain.share, leaves
        )
    leaves = _leaves(tree, UNIVERSAL)
    yield DomainReport(UNIVERSAL, "read with every domain", None, leaves)


def _leaves(tree: EpistemicTree, domain: str) -> tuple[CardTotals, ...]:
    here = [card for card in tree if domain in card.domain_tags]
    return tuple(CardTotals.of(here, difficulty) for difficulty in Difficulty)


def _problem_names(steps: _DoneSteps) -> dict[str, str]:
    """Return the names of the training problems by id, from the first base run."""
    for epoch in steps.epochs:
        for _, run in steps.of(RunTotals, "base", epoch=epoch):
            records = _records(steps.folder / Path(run.folder).name)
            return {record.problem: one_line(record.name) for record in records}
    return {}


def _cards(
    tree: EpistemicTree,
    impacts: Sequence[tuple[int, Impact]],
    epochs: Sequence[Epoch],
) -> tuple[CardReport, ...]:
    fires: dict[str, Fire] = {}
    lifts: dict[str, list[tuple[int, Lift]]] = {}
    for epoch, impact in impacts:
        fires.update((fire.card_id, fire) for fire in impact.fires)
        for lift in impact.lifts:
            lifts.setdefault(lift.card_id, []).append((epoch, lift))
    revisions: dict[str, list[Revised]] = {}
    for each in (revised for epoch in epochs for revised in epoch.revised):
        revisions.setdefault(each.card_id, []).append(each)
    found = []
    for name, card in tree.cards.items():
        changed = 0
        for each in revisions.get(name, ()):
            if each.accepted and each.action in ("EDIT", "RELOCATE"):
                changed = max(changed, each.epoch)
        measured = lifts.get(name, [])
        earned = sum(lift.effect * lift.shown for _, lift in measured)
        report = CardReport(
            card=card,
            fire=fires.get(name),
            lifts=tuple(measured),
            lift=measured[-1][1] if measured else None,
            outdated=bool(measured) and changed >= measured[-1][0],
            earned=earned if measured else None,
            place=f"{card.difficulty_tag.value} / {', '.join(card.domain_tags)}",
            revisions=tuple(revisions.get(name, ())),
        )
        found.append(report)

    def rank(each: CardReport) -> tuple[float, str]:
        return -each.lift.effect if each.lift else math.inf, each.card.card_id

    return tuple(sorted(found, key=rank))


def _proposals(steps: _DoneSteps, tree: EpistemicTree) -> Iterator[Proposal]:
    """Yield all proposals in the order they were made."""
    for epoch in steps.epochs:
        rulings = {}
        for step, ruling in steps.of(Rulings, "admit", epoch=epoch):
            rulings[step.place, step.number] = ruling
        merges = {}
        for step, done in steps.of(Merges, "merge", epoch=epoch):
            for merge in done.merged:
                for tier in step.place.split("+"):
                    merges[tier, merge.card_id] = merge
        for step, found in steps.of(
            Proposals, "propose", "imagine", epoch=epoch
        ):
            place = step.place
            tier = place.split(" ")[0]
            ruled = rulings.get((place, step.number))
            for refused in found.refused:
                name = refused.card_id
                yield Proposal(epoch, place, name, None, Fate.REFUSED, refused)
            for card in found.cards:
                merged = merges.get((tier, card.card_id))
                yield _fate_of(epoch, place, card, ruled, merged, tree)


def _fate_of(
    epoch: int,
    place: str,
    card: Card,
    ruling: Rulings | None,
    merge: Merge | None,
    tree: EpistemicTree,
) -> Proposal:
    """Return a proposed card with what became of it."""
    name = card.card_id
    refused = None
    for each in ruling.refused if ruling else ():
        if each.card_id == name and ruling and card not in ruling.admitted:
            refused = each
    if ruling is None:
        fate = Fate.WAITING
    elif refused:
        fate = Fate.REFUSED
    elif merge:
        fate = Fate.MERGED
    elif (
        name not in tree
    ):  # it enters with its round, or is there under another id
        fate = Fate.ADMITTED
    else:
        gone = tree.card(name).status is Status.DEPRECATED
        fate = Fate.RETIRED if gone else Fate.KEPT
    merged = merge if fate is Fate.MERGED else None
    return Proposal(epoch, place, name, card, fate, refused, merged)


def _last_sign(folder: Path) -> float:
    """Return when the learner last wrote its steps, traces or calls; 0 if never."""
    newest = 0.0
    for pattern in (
        "learn.json",
        "steps.jsonl",
        "*/traces.jsonl",
        "calls/*.jsonl",
    ):
        for path in folder.glob(pattern):
            newest = max(newest, path.stat().st_mtime)
    return min(newest, time.time())


def _is_locked(lock: Path) -> bool:
    """Whether a process holds the lock of a learner's folder."""
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


# Sentences.


def _summary(report: LearningReport) -> str:
    """Return what the run made; of one that made nothing, why."""
    found = report.funnel
    if not found.proposed:
        if report.finished:
            return f"No card: {_why_empty(report)}"
        return "No card has been proposed yet."
    author = (
        "worked solutions" if report.teacher == SOLUTIONS else "the teacher"
    )
    problems = counted(report.train, "training problem")
    are = "is" if found.kept == 1 else "are"
    text = (
        f"From {problems} {author} gave {counted(found.proposed, 'card')}. "
        f"{found.admitted} passed admission; {found.kept} {are} in the tree, "
        f"{found.validated or 'none'} of them validated."
    )
    if found.kept or not report.finished:
        return text
    return f"{text} The tree is empty: {_why_empty(report)}"


def _why_empty(report: LearningReport) -> str:
    """Return why a finished run has no card to show, and what to do."""
    found = report.funnel
    if found.admitted:
        few = (
            f"{found.retired} that passed admission could not be shown to help with "
            f"{report.train} problems"
        )
        if report.carried_others and report.carried_others.effect <= 0:
            worth = f"{plain_points(report.carried_others.effect)} points of right attempts"
            return (
                f"{few}, nor do they carry over to other problems ({worth}). "
                "Give more problems of the same kinds."
            )
        return (
            f"{few}. Keep them with --quick or --set keep=all, or give more problems "
            "of the same kinds."
        )
    if found.refused:
        rules: Counter[str] = Counter()
        for each in report.refused:
            rules[each.refused.rule] += each.what == "card"
        parts = [f"{rule} {count}" for rule, count in rules.most_common(3)]
        return (
            f"every proposal was refused ({', '.join(parts)}). learn/report.html "
            "beside the tree lists each with its reason."
        )
    scores = report.scores
    wrong = scores[0].problems - scores[0].correct if scores else 0
    if scores and not wrong:
        return (
            f"the solver got all {scores[0].problems} training problems right. "
            "Give harder ones."
        )
    agreed = len(report.epochs[0].beyond) if report.epochs else 0
    if wrong and wrong == agreed:
        return (
            f"on all {wrong} wrong problems both ES attempts agreed, and ES reads no "
            "card. --set confident=true learns from them too."
        )
    if report.teacher == SOLUTIONS:
        return (
            f"no training problem that went wrong ({wrong}) has a worked solution to "
            "make a card of."
        )
    return (
        f"the teacher saw what went wrong ({counted(wrong, 'problem')}) and wrote no "
        "card."
    )


def _progress(report: LearningReport) -> str:
    """Return how far an unfinished run came."""
    if report.finished:
        return ""
    sentences = ["Not finished."]
    if report.epochs:
        planned = f" of {report.planned}" if report.planned else ""
        sentences = [
            f"Not finished, in epoch {report.epochs[-1].number}{planned}."
        ]
    last = f"The last step done: {report.last}." if report.last else ""
    sentences.append(last or "No step is done yet.")
    for score in report.under_way:
        done = counted(score.problems, "problem")
        sentences.append(f"Under way: {score.step}, {done} done.")
    sentences.append("The same command resumes it.")
    return " ".join(sentences)


# Stages: the parts of a run in order, with what came of each.


def _stages(
    epochs: Sequence[Epoch],
    under_way: Sequence[RunScore],
    tree: EpistemicTree,
    steps: _DoneSteps,
    manifest: LearnManifest,
) -> Iterator[Stage]:
    """Yield all stages. The first one that is not done is under way."""
    domains = counted(len(tree.domains), "domain")
    planned = [(StepName("plan", "plant"), "Domains", domains)]
    known = {epoch.number: epoch for epoch in epochs}
    wanted = manifest.settings.get("epochs")
    most = max(wanted if isinstance(wanted, int) else 1, *known, 1)
    for number in range(1, most + 1):
        planned += _epoch_stages(number, known.get(number), manifest)
    cards = f"{counted(len(tree.shown), 'card')} in the tree"
    planned.append((StepName("close", "freeze"), "Frozen tree", cards))
    frozen = planned[-1][0] in steps.steps
    doing = False
    for last, title, words in planned:
        done = frozen or last in steps.steps
        state = DONE if done else TO_COME if doing else DOING
        doing = doing or not done
        if state == DOING and under_way:
            run = under_way[0]
            words = f"{run.problems:,} problems solved, {run.correct:,} right"
        yield Stage(last.epoch, title, words, state)


def _epoch_stages(
    number: int, epoch: Epoch | None, manifest: LearnManifest
) -> Iterator[tuple[StepName, str, str]]:
    """Yield the last step, the title and the words of each stage of an epoch."""
    added = measured = revised = "not begun"
    if epoch:
        added = f"{epoch.proposed:,} proposed, {epoch.admitted:,} admitted"
        kept = sum(each.accepted for each in epoch.comparisons)
        revised = (
            f"{counted(len(epoch.comparisons), 'change')} tried, {kept:,} kept"
        )
        for score in epoch.scores:
            if score.step.what == "base":
                measured = f"{score.correct:,} of {score.problems:,} right"
    rounds = {"MS+HS": "New cards"}
    if manifest.settings.get("add_runs") == 2:
        rounds = {"MS": "New medium cards", "HS": "New hard cards"}
    for tiers, title in rounds.items():
        yield StepName("add", "commit", number, tiers), title, added
    yield StepName("refine", "credit", number), "Measurement", measured
    if manifest.settings.get("refine"):
        yield StepName("close", "snapshot", number), "Revision", revised


# The forecast: what a run would take, worked out before anything is spent.

CHARS_PER_TOKEN = 4
DOMAINS = 5
LADDER_SHARE = (
    0.43  # of the eight attempts past ES, the part that published runs made
)
FAILED_SHARE = (
    0.5  # of the problems, the part that a tier is expected not to deliver
)
WORDING_TOKENS = 40
CARD_TOKENS = 250  # of a card, and of an example
EMBEDDED_SPEED = 80  # tokens a second of the embedded model, over all its calls
REMOTE_SPEED = 60  # tokens a second of one call
REMOTE_CALLS = 20  # calls at once if nothing is set
TYPICAL_OUTPUT = 800  # tokens of an attempt, or the tier's cap if that is lower


@dataclass(frozen=True, slots=True)
class Load:
    """Calls and tokens of one role."""

    calls: float = 0
    input: float = 0
    output: float = 0


@dataclass(frozen=True, slots=True)
class RoleForecast:
    """What one role is expected to take, and what it takes at most."""

    role: str
    model: str
    expected: Load
    most: Load
    usd: float | None  # expected, without prefix caches; `None` without a price
    most_usd: float | None
    seconds: float  # expected


def forecast(
    train: Sequence[Problem], config: Config, settings: Settings
) -> tuple[RoleForecast, ...]:
    """Return the forecast of solver, classifier and teacher, in that order."""
    expected = _loads(train, config, settings, most=False)
    most = _loads(train, config, settings, most=True)
    prices = Ledger(prices=config.prices)
    found = []
    for role, load in expected.items():
        model = config.teacher or "" if role == "teacher" else config.model
        price = prices.price(model)
        speed = math.inf
        if model.startswith("local/"):
            speed = EMBEDDED_SPEED
        elif model.startswith(("openai/", "anthropic/")):
            speed = REMOTE_SPEED * (config.max_connections or REMOTE_CALLS)
        seconds = load.output / speed
        row = RoleForecast(
            role=role,
            model=model,
            expected=load,
            most=most[role],
            usd=_cost(load, price),
            most_usd=_cost(most[role], price),
            seconds=seconds,
        )
        found.append(row)
    return tuple(found)


def _cost(load: Load, price: Price | None) -> float | None:
    """Return the cost of a load without prefix caches; `None` without a price."""
    if price is None:
        return None
    return price.cost(Usage(input=round(load.input), output=round(load.output)))


def _loads(
    train: Sequence[Problem], config: Config, settings: Settings, *, most: bool
) -> dict[str, Load]:
    """Return the load of each role, expected or at most."""
    placed = len(train) * (2.0 if most else LADDER_SHARE)
    loads = {
        "solver": _solver_load(train, config, settings, most=most),
        "classifier": Load(placed, placed * 1_000, placed * 10),
        "teacher": _teacher_load(train, settings, most=most),
    }
    if config.retrieval.router != "model":
        loads["classifier"] = Load()
    if config.teacher == SOLUTIONS:
        loads["teacher"] = Load()
    return loads


def _solver_load(
    train: Sequence[Problem], config: Config, settings: Settings, *, most: bool
) -> Load:
    """Return the attempts of an epoch's runs: for new cards, the base, measurement."""
    dropout = settings.impact_runs if settings.impact == "dropout" else 0
    reruns = settings.refine / 2
    if most:
        # Before its reruns, a domain may need another base, and one on other samples.
        reruns = settings.refine + 2 * bool(settings.refine)
    runs = settings.add_runs + 1 + dropout + reruns
    solves = settings.epochs * len(train)
    # Runs that share a seed share their ES attempts.
    easy = solves * LOCKED[0].attempts * (1 + max(1, dropout))
    past_es = sum(tier.attempts for tier in LOCKED[1:])
    hard = solves * runs * past_es * (1.0 if most else LADDER_SHARE)
    if settings.impact == "leave_one_out":
        hard += settings.epochs * settings.impact_calls
    if most:
        # Few problems have a relevant card of another technique; in the worst case all
        # are solved without cards, and with one from MS on.
        pairs = len(train) * settings.calibration_runs
        easy += pairs * LOCKED[0].attempts
        hard += pairs * past_es * 2
    prompt = len(template("solve")) / CHARS_PER_TOKEN + _text_tokens(train)
    cards = config.retrieval.max_card_tokens
    if not most:
        cards = min(cards, 4 * CARD_TOKENS)
    cap = max(draw.max_tokens for draw in config.tier_sampling().values())
    output = cap if most else min(cap, TYPICAL_OUTPUT)
    tokens = (easy + hard) * prompt + hard * cards
    return Load(easy + hard, tokens, (easy + hard) * output)


def _teacher_load(
    train: Sequence[Problem], settings: Settings, *, most: bool
) -> Load:
    """Return the requests for domains, cards, rulings, revisions and wordings."""
    domains = MOST_DOMAINS if most else DOMAINS
    failed = len(train) * (1.0 if most else FAILED_SHARE)
    written = failed * settings.cards_per_problem
    # A tier's failures go in parts, one request of each kind per part.
    parts = max(domains, failed / FAILURES_AT_ONCE)
    kinds = 2 + settings.imagine + bool(settings.examples)
    tries = settings.refine if most else min(1, settings.refine)
    revisions = (domains + 1) * tries * (1 + bool(settings.examples))
    requests = round(2 * parts * kinds + revisions)
    shown = failed * (_text_tokens(train) + TAIL_CHARS)
    cards = written * CARD_TOKENS * (1 + settings.examples)
    wordings = written * settings.wordings
    worded = 0.0
    if settings.wordings:
        worded = domains + wordings // WORDINGS_AT_ONCE
    domains_read = min(len(train), SHOWN) * _text_tokens(train)
    epoch_input = 2 * shown + 3 * cards + tries * (shown + 2 * cards)
    epoch_output = (2 + tries) * cards + requests * 100
    repaired = 2 if most else 1  # a repair round each, at most
    return Load(
        calls=repaired * (1 + settings.epochs * requests + worded),
        input=repaired
        * (
            domains_read
            + settings.epochs * (epoch_input + requests * 1_000)
            + worded * 1_000
        ),
        output=repaired
        * (1_000 + settings.epochs * epoch_output + wordings * WORDING_TOKENS),
    )


def _text_tokens(train: Sequence[Problem]) -> float:
    """Return the mean length of a problem in tokens."""
    chars = sum(len(problem.text) for problem in train)
    return chars / len(train) / CHARS_PER_TOKEN
