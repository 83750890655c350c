"""Report what a learning run did, from the folder of its tree, finished or not.

One plain value, `LearningReport`, is built from the step log and the run tables. The
terminal, `--json` and the pages show it. The forecast of a run is here too.
"""

from __future__ import annotations

import fcntl
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from kace.cards.card import Card, Status
from kace.cards.store import TreeStore
from kace.cards.tree import EpistemicTree
from kace.config import Config
from kace.errors import DataError, counted
from kace.files import inside
from kace.ladder.retrieve import estimate
from kace.learning.admit import Merge, Merges, Rulings
from kace.learning.measure import Comparison, Fire, Impact, Lift, text_digest
from kace.learning.propose import Proposals
from kace.learning.revise import Demonstrations, Revisions
from kace.learning.study import (
    Bill,
    LearnManifest,
    R,
    RunTotals,
    Settings,
    StepLine,
    StepName,
    Unplaced,
    read_bill,
    read_steps,
)
from kace.learning.teacher import TAIL_CHARS, CardRefusal
from kace.models.base import Usage
from kace.models.budget import Ledger
from kace.problems import Problem
from kace.runs.stats import Interval, wilson

TITLES = {
    "run": "before {0.place} cards",
    "base": "with the cards",
    "dropout": "cards hidden at random",
    "verify": "rerun {0.number} of {0.place}",
}
"""The steps that are tiered runs, and what each is for."""


@dataclass(frozen=True, slots=True)
class RunScore:
    """A tiered run on training problems."""

    step: StepName
    title: str
    totals: RunTotals
    interval: Interval

    @property
    def accuracy(self) -> float:
        """Return the share of right solves."""
        return self.totals.correct / max(1, self.totals.problems)


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

    step: StepName
    card_id: str  # as the teacher named it; empty if it gave no name
    card: Card | None  # `None` if the block could not be read as one
    fate: Fate
    refused: CardRefusal | None = None
    merge: Merge | None = None


@dataclass(frozen=True, slots=True)
class ReportedRefusal:
    """A `card`, or an `example` or a `revision` of one, that was refused."""

    step: StepName
    what: str
    refused: CardRefusal


@dataclass(frozen=True, slots=True)
class CardReport:
    """A card of the tree, how often it was shown, and its newest lift."""

    card: Card
    place: str
    fire: Fire | None
    lift: Lift | None
    outdated: bool  # rewritten or moved after it was measured


@dataclass(frozen=True, slots=True)
class Funnel:
    """What became of everything proposed, and the size of the tree."""

    proposed: int
    waiting: int
    admitted: int
    merged: int
    refused: int
    kept: int
    validated: int
    retired: int
    tokens: int


@dataclass(frozen=True, slots=True)
class LearningReport:
    """A learning run, as far as it came."""

    name: str
    state: str  # finished, working or stopped
    solver: str
    teacher: str
    train: int
    settings: dict[str, str]
    frozen: str | None
    summary: str
    progress: str  # how far an unfinished run came
    funnel: Funnel
    runs: tuple[RunScore, ...]
    cards: tuple[CardReport, ...]  # highest lift first, then those not measured
    proposals: tuple[Proposal, ...]
    refused: tuple[ReportedRefusal, ...]
    comparisons: tuple[tuple[int, Comparison], ...]  # each with its epoch
    gaps: tuple[tuple[str, str], ...]  # a domain, and what no card covers
    bill: Bill
    unread: tuple[str, ...]

    @property
    def scores(self) -> tuple[RunScore, ...]:
        """Return every run over all training problems: these may be compared."""
        whole = [run for run in self.runs if run.step.what != "verify"]
        most = max((run.totals.problems for run in whole), default=0)
        return tuple(run for run in whole if run.totals.problems == most)

    @property
    def unmeasured(self) -> int:
        """Return how many cards of the tree no attempt could compare."""
        count = 0
        for each in self.cards:
            if each.card.status is not Status.DEPRECATED and each.lift is None:
                count += 1
        return count


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
    runs = []
    for step, totals in steps.of(RunTotals, *TITLES):
        title = TITLES[step.what].format(step)
        share = wilson(totals.correct, totals.problems)
        runs.append(RunScore(step, title, totals, share))
    proposals = tuple(_proposals(steps, tree))
    refused = tuple(_refusals(steps, proposals))
    comparisons = []
    for step, found in steps.of(Comparison, "compare"):
        comparisons.append((step.epoch, found))
    gaps: dict[tuple[str, str], None] = {}
    for step, curated in steps.of(Revisions, "revise"):
        for text in curated.gaps:
            gaps[step.place, text] = None
    finished = StepName("close", "freeze") in steps.lines
    state = "working" if _is_locked(folder / "lock") else "stopped"
    progress = ""
    if not finished:
        last = list(steps.lines)[-1:]
        done = f" The last step done: {last[0]}." if last else ""
        progress = f"Not finished.{done} The same command resumes it."
    funnel = _funnel(proposals, tree)
    train = manifest.train.problems
    summary = _summary(funnel, train)
    if finished and not funnel.kept:
        why = _why_empty(funnel, refused, runs, steps)
        summary += f" The tree is empty: {why}"
    return LearningReport(
        name=tree_folder.resolve().name,
        state="finished" if finished else state,
        solver=str(manifest.config.get("model", "")),
        teacher=manifest.teacher or "",
        train=train,
        settings={name: str(v) for name, v in manifest.settings.items()},
        frozen=store.frozen_hash if planted else None,
        summary=summary,
        progress=progress,
        funnel=funnel,
        runs=tuple(runs),
        cards=_cards(tree, steps),
        proposals=proposals,
        refused=refused,
        comparisons=tuple(comparisons),
        gaps=tuple(gaps),
        bill=read_bill(folder),
        unread=tuple(steps.unread),
    )


def report_json(report: LearningReport) -> str:
    """Return the report as one line of JSON, cards and all."""
    return TypeAdapter(LearningReport).dump_json(report).decode()


class _DoneSteps:
    """The steps of a log. One that this version cannot read is named and left out."""

    def __init__(self, folder: Path) -> None:
        self.lines: dict[StepName, StepLine] = {}
        for line in read_steps(folder / "steps.jsonl"):
            self.lines[line.step] = line
        self.unread: dict[str, None] = {}

    def of(self, kind: type[R], *names: str) -> Iterator[tuple[StepName, R]]:
        """Yield the results of the steps of these names, in order."""
        for step, line in self.lines.items():
            if step.what not in names:
                continue
            try:
                yield step, line.read(kind)
            except ValidationError:
                self.unread[str(step)] = None


def _proposals(steps: _DoneSteps, tree: EpistemicTree) -> Iterator[Proposal]:
    """Yield all proposals in the order they were made."""
    ruled = set()
    refusals = {}
    for step, rulings in steps.of(Rulings, "admit"):
        domain = step.place.partition(" ")[2]
        ruled.add((step.epoch, domain))
        for refusal in rulings.refused:
            refusals[step.epoch, domain, refusal.card_id] = refusal
    merges = {}
    for step, done in steps.of(Merges, "merge"):
        for merge in done.merged:
            if merge.into != merge.card_id:
                merges[step.epoch, merge.card_id] = merge
    for step, found in steps.of(Proposals, "propose", "imagine"):
        domain = step.place.partition(" ")[2]
        for bad in found.refused:
            yield Proposal(step, bad.card_id, None, Fate.REFUSED, bad)
        for card in found.cards:
            name = card.card_id
            refused = refusals.get((step.epoch, domain, name))
            into = None
            fate = Fate.ADMITTED  # it enters with its round
            if (step.epoch, domain) not in ruled:
                fate = Fate.WAITING
            elif refused:
                fate = Fate.REFUSED
            elif (step.epoch, name) in merges:
                fate = Fate.MERGED
                into = merges[step.epoch, name]
            elif name in tree:
                gone = tree.card(name).status is Status.DEPRECATED
                fate = Fate.RETIRED if gone else Fate.KEPT
            yield Proposal(step, name, card, fate, refused, into)


def _refusals(
    steps: _DoneSteps, proposals: Sequence[Proposal]
) -> Iterator[ReportedRefusal]:
    """Yield the refusals of cards, then of examples and of revisions."""
    for each in proposals:
        if each.refused:
            yield ReportedRefusal(each.step, "card", each.refused)
    for step, shown in steps.of(Demonstrations, "illustrate"):
        for refused in shown.refused:
            yield ReportedRefusal(step, "example", refused)
    for step, curated in steps.of(Revisions, "revise"):
        for refused in curated.refused:
            yield ReportedRefusal(step, "revision", refused)


def _cards(tree: EpistemicTree, steps: _DoneSteps) -> tuple[CardReport, ...]:
    """Return the cards of the tree, those with the highest lift first."""
    fires: dict[str, Fire] = {}
    lifts: dict[str, Lift] = {}
    for _, impact in steps.of(Impact, "impact"):
        fires.update((fire.card_id, fire) for fire in impact.fires)
        lifts.update((lift.card_id, lift) for lift in impact.lifts)
    found = []
    for name, card in tree.cards.items():
        lift = lifts.get(name)
        outdated = lift is not None and lift.text != text_digest(card)
        place = f"{card.difficulty_tag.value} / {', '.join(card.domain_tags)}"
        found.append(CardReport(card, place, fires.get(name), lift, outdated))

    def rank(each: CardReport) -> tuple[float, str]:
        return -each.lift.effect if each.lift else math.inf, each.card.card_id

    return tuple(sorted(found, key=rank))


def _funnel(proposals: Sequence[Proposal], tree: EpistemicTree) -> Funnel:
    fates = Counter(each.fate for each in proposals)
    statuses = Counter(card.status for card in tree)
    return Funnel(
        proposed=len(proposals),
        waiting=fates[Fate.WAITING],
        admitted=len(proposals) - fates[Fate.WAITING] - fates[Fate.REFUSED],
        merged=fates[Fate.MERGED],
        refused=fates[Fate.REFUSED],
        kept=len(tree.shown),
        validated=statuses[Status.VALIDATED],
        retired=statuses[Status.DEPRECATED],
        tokens=sum(map(estimate, tree.shown)),
    )


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


def _summary(found: Funnel, train: int) -> str:
    """Return what was proposed and kept."""
    if not found.proposed:
        return "No card has been proposed yet."
    problems = counted(train, "training problem")
    are = "is" if found.kept == 1 else "are"
    return (
        f"From {problems} the teacher gave {counted(found.proposed, 'card')}. "
        f"{found.admitted} passed admission; {found.kept} {are} in the tree, "
        f"{found.validated or 'none'} of them validated."
    )


def _why_empty(
    found: Funnel,
    refused: Sequence[ReportedRefusal],
    runs: Sequence[RunScore],
    steps: _DoneSteps,
) -> str:
    """Return why a finished run has no card to show, and what to do."""
    if found.admitted:
        return (
            f"{found.retired} that passed admission could not be shown to help. Keep "
            "them with --quick, or give more problems of the same kinds."
        )
    if found.refused:
        rules = Counter(each.refused.rule for each in refused)
        parts = [f"{rule} {count}" for rule, count in rules.most_common(3)]
        return f"every proposal was refused ({', '.join(parts)})."
    first = runs[0].totals if runs else None
    if first is None or first.correct == first.problems:
        return "the solver got all training problems right. Give harder ones."
    for _, unplaced in steps.of(Unplaced, "place"):
        return f"{unplaced.summary.removeprefix('warning: ')}."
    problems = counted(first.problems - first.correct, "problem")
    return f"the teacher saw what went wrong ({problems}) and wrote no card."


# The forecast: what a run is expected to take, before anything is spent.

CHARS_PER_TOKEN = 4
DOMAINS = 5
LADDER_SHARE = 0.43
"""Of the eight attempts past ES, the part that published runs made."""
LADDER_ATTEMPTS = 2 + 8 * LADDER_SHARE
FAILED_SHARE = 0.5
"""Of the problems, the part that a tier is expected not to deliver."""
PROMPT_TOKENS = 1_000  # of a request, without its problem
CARD_TOKENS = 250  # of a card, and of an example
WORDING_TOKENS = 40
TYPICAL_OUTPUT = 800  # tokens of an attempt, or the tier's cap if that is lower
EMBEDDED_SPEED = 80  # tokens a second of the embedded model, over all its calls
REMOTE_SPEED = 60  # tokens a second of one call
REMOTE_CALLS = 20  # calls at once if nothing is set


@dataclass(frozen=True, slots=True)
class RoleForecast:
    """What one role is expected to take."""

    role: str
    model: str
    calls: float
    input: float
    output: float
    usd: float | None  # without prefix caches; `None` without a price
    seconds: float


def forecast(
    train: Sequence[Problem], config: Config, settings: Settings
) -> tuple[RoleForecast, ...]:
    """Return the forecast of the solver and the teacher."""
    chars = sum(len(problem.text) for problem in train)
    text = chars / CHARS_PER_TOKEN  # tokens of all problems together
    found = [_forecast_solver(text, len(train), config, settings)]
    if config.teacher:
        found.append(_forecast_teacher(text, len(train), config, settings))
    return tuple(found)


def _forecast_solver(
    text: float, train: int, config: Config, settings: Settings
) -> RoleForecast:
    """Return the forecast of the runs for new cards, the base and measurement."""
    runs = settings.epochs * (settings.add_runs + 1 + settings.refine / 2)
    if settings.impact == "dropout":
        runs += settings.epochs * settings.impact_runs
    attempts = runs * LADDER_ATTEMPTS
    if settings.impact == "leave_one_out":
        # Every attempt past ES is made again without each card of its block.
        cards = FAILED_SHARE * train * settings.cards_per_problem / DOMAINS
        attempts += settings.epochs * cards * (LADDER_ATTEMPTS - 2)
    return forecast_attempts(text, train, attempts, config)


def forecast_attempts(
    text: float, problems: int, attempts: float, config: Config
) -> RoleForecast:
    """Return the forecast of so many attempts at each problem."""
    calls = attempts * problems
    cap = max(draw.max_tokens for draw in config.tier_sampling().values())
    written = calls * min(cap, TYPICAL_OUTPUT)
    read = attempts * text + calls * PROMPT_TOKENS
    return _role("solver", config.model, config, calls, read, written)


def _forecast_teacher(
    text: float, train: int, config: Config, settings: Settings
) -> RoleForecast:
    """Return the forecast of domains, cards, rulings, revisions and wordings."""
    kinds = 2 + settings.imagine + bool(settings.examples)
    tries = min(1, settings.refine)
    calls = settings.epochs * DOMAINS * (2 * kinds + tries) + DOMAINS
    shown = settings.epochs * (2 + tries) * FAILED_SHARE
    read = shown * (text + train * TAIL_CHARS) + calls * PROMPT_TOKENS
    cards = settings.epochs * FAILED_SHARE * train * settings.cards_per_problem
    card = CARD_TOKENS * (1 + settings.examples) * (2 + tries)
    written = cards * (card + settings.wordings * WORDING_TOKENS)
    return _role("teacher", config.teacher or "", config, calls, read, written)


def _role(
    role: str,
    model: str,
    config: Config,
    calls: float,
    read: float,
    written: float,
) -> RoleForecast:
    """Return the forecast of a role with its cost and time."""
    price = Ledger(prices=config.prices).price(model)
    used = Usage(input=round(read), output=round(written))
    speed = math.inf
    if model.startswith("local/"):
        speed = EMBEDDED_SPEED
    elif model.startswith(("openai/", "anthropic/")):
        speed = REMOTE_SPEED * (config.max_connections or REMOTE_CALLS)
    usd = price.cost(used) if price else None
    return RoleForecast(role, model, calls, read, written, usd, written / speed)
