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
from kace.errors import DataError, one_line
from kace.files import inside
from kace.ladder.record import Solution
from kace.ladder.retrieve import estimate
from kace.learning.admit import Merge, Merges, Rulings
from kace.learning.measure import (
    Comparison,
    Fire,
    Impact,
    Lift,
    lifts_by_source,
    text_digest,
)
from kace.learning.propose import Proposals
from kace.learning.revise import Demonstrations, Revision, Revisions
from kace.learning.study import (
    LearnManifest,
    R,
    RoleBill,
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


@dataclass(frozen=True, slots=True)
class RunScore:
    """A tiered run on training problems, finished or under way."""

    step: StepName
    title: str
    problems: int
    correct: int
    escalated: int
    paper_calls: int
    accuracy: float | None  # `None` if nothing was solved
    interval: Interval


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
    domain: str
    revision: Revision
    accepted: bool


@dataclass(frozen=True, slots=True)
class CardReport:
    """A card of the tree, how often it was shown, and its newest lift."""

    card: Card
    place: str
    fire: Fire | None
    lift: Lift | None
    outdated: bool  # rewritten or moved after it was measured


@dataclass(frozen=True, slots=True)
class DomainReport:
    """A domain, its share of the training problems, and its cards."""

    name: str
    description: str
    share: float
    cards: int


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
    under_way: tuple[RunScore, ...]
    domains: tuple[DomainReport, ...]
    cards: tuple[CardReport, ...]  # highest lift first, then those not measured
    proposals: tuple[Proposal, ...]
    refused: tuple[ReportedRefusal, ...]
    revised: tuple[Revised, ...]
    comparisons: tuple[tuple[int, Comparison], ...]  # each with its epoch
    gaps: tuple[tuple[str, str], ...]  # a domain, and what no card covers
    carried_own: Lift | None  # of all cards, on problems they were written from
    carried_others: Lift | None
    costs: tuple[RoleBill, ...]
    teacher_steps: tuple[RoleBill, ...]  # its costs by kind of step
    cost_parts: tuple[RoleBill, ...]  # the costs by epoch, phase and role
    usd: float | None  # `None` if some price is not known
    unread: tuple[str, ...]

    @property
    def scores(self) -> tuple[RunScore, ...]:
        """Return every run over all training problems: these may be compared."""
        whole = [run for run in self.runs if run.step.what != "verify"]
        most = max((run.problems for run in whole), default=0)
        return tuple(run for run in whole if run.problems == most)

    @property
    def unmeasured(self) -> int:
        """Return how many cards of the tree no attempt could compare."""
        count = 0
        for each in self.cards:
            if each.card.status is not Status.DEPRECATED and each.lift is None:
                count += 1
        return count

    @property
    def rules(self) -> list[tuple[tuple[str, str], int]]:
        """Return the rules that something was refused for, most frequent first."""
        rules: Counter[tuple[str, str]] = Counter()
        for each in self.refused:
            rules[each.refused.rule, each.refused.by] += 1
        return rules.most_common()


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
        runs.append(_score(step, totals))
    under_way = tuple(_under_way(steps))
    proposals = tuple(_proposals(steps, tree))
    refused = tuple(_refusals(steps, proposals))
    comparisons = []
    for step, found in steps.of(Comparison, "compare"):
        comparisons.append((step.epoch, found))
    revised = tuple(_revised(steps, comparisons))
    gaps: dict[tuple[str, str], None] = {}
    for step, curated in steps.of(Revisions, "revise"):
        for text in curated.gaps:
            gaps[step.place, text] = None
    impacts = [impact for _, impact in steps.of(Impact, "impact")]
    own, others = lifts_by_source(tree, impacts, _problem_names(steps, runs))
    finished = StepName("close", "freeze") in steps.lines
    state = "working" if _is_locked(folder / "lock") else "stopped"
    funnel = _funnel(proposals, tree)
    bill = read_bill(folder)
    costs = bill.roles
    prices = [cost.usd for cost in costs if cost.usd is not None]
    train = manifest.train.problems
    summary = _summary(funnel, train)
    unplaced = [lost for _, lost in steps.of(Unplaced, "place")]
    if finished and not funnel.kept:
        why = _why_empty(funnel, refused, runs, unplaced)
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
        progress="" if finished else _progress(steps, under_way),
        funnel=funnel,
        runs=tuple(runs),
        under_way=under_way,
        domains=tuple(_domains(tree)),
        cards=_cards(tree, steps),
        proposals=proposals,
        refused=refused,
        revised=revised,
        comparisons=tuple(comparisons),
        gaps=tuple(gaps),
        carried_own=own,
        carried_others=others,
        costs=costs,
        teacher_steps=bill.steps,
        cost_parts=bill.parts,
        usd=sum(prices) if costs and len(prices) == len(costs) else None,
        unread=tuple(steps.unread),
    )


def report_json(report: LearningReport) -> str:
    """Return the report as one line of JSON, cards and all."""
    return TypeAdapter(LearningReport).dump_json(report).decode()


class _DoneSteps:
    """The steps of a log. One that this version cannot read is named and left out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
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


def _score(step: StepName, run: RunTotals) -> RunScore:
    """Return the totals of a run with its accuracy and 95 % Wilson interval."""
    return RunScore(
        step=step,
        title=TITLES.get(step.what, "{0.what}").format(step),
        problems=run.problems,
        correct=run.correct,
        escalated=run.escalated,
        paper_calls=run.paper_calls,
        accuracy=run.correct / run.problems if run.problems else None,
        interval=wilson(run.correct, run.problems),
    )


def _records(folder: Path) -> list[Solution]:
    """Return the last record of every problem of a run, also while it is under way."""
    if not (folder / "run.json").exists():
        return []
    return list(Table.open(folder, allow_empty=True).solutions())


def _under_way(steps: _DoneSteps) -> Iterator[RunScore]:
    done = {step.folder for step in steps.lines}
    for path in sorted(steps.folder.glob("*/traces.jsonl")):
        folder = path.parent
        if folder.name not in done:
            step = StepName("", folder.name.replace("-", " "))
            yield _score(step, RunTotals.of(_records(folder), folder.name))


def _problem_names(
    steps: _DoneSteps, runs: Sequence[RunScore]
) -> dict[str, str]:
    """Return the names of the training problems by id, from the first base run."""
    for run in runs:
        if run.step.what == "base":
            # A name from a file leads into our folder only.
            records = _records(steps.folder / Path(run.step.folder).name)
            return {record.problem: one_line(record.name) for record in records}
    return {}


def _proposals(steps: _DoneSteps, tree: EpistemicTree) -> Iterator[Proposal]:
    """Yield all proposals in the order they were made."""
    rulings: dict[tuple[int, str], Rulings] = {}
    for step, ruling in steps.of(Rulings, "admit"):
        tiers, _, domain = step.place.partition(" ")
        for tier in tiers.split("+"):
            key = (step.epoch, f"{tier} {domain}")
            before = rulings.get(key, Rulings())
            rulings[key] = Rulings(
                admitted=before.admitted + ruling.admitted,
                refused=before.refused + ruling.refused,
            )
    merges = {}
    for step, done in steps.of(Merges, "merge"):
        tiers = step.place.partition(" ")[0]
        for merge in done.merged:
            for tier in tiers.split("+"):
                merges[step.epoch, tier, merge.card_id] = merge
    first: set[tuple[int, str]] = set()  # of proposals with the same id
    for step, found in steps.of(Proposals, "propose", "imagine"):
        place = step.place
        for refused in found.refused:
            yield Proposal(
                step.epoch, place, refused.card_id, None, Fate.REFUSED, refused
            )
        for card in found.cards:
            name = card.card_id
            ruled = rulings.get((step.epoch, place))
            into = merges.get((step.epoch, place.split(" ")[0], name))
            if into and into.into == name and (step.epoch, name) not in first:
                into = None
            first.add((step.epoch, name))
            refusal = _refusal_of(card, ruled) if ruled else None
            fate = Fate.ADMITTED  # it enters with its round
            if into:
                fate = Fate.MERGED
            elif ruled is None or not _is_ruled(name, ruled):
                fate = Fate.WAITING
            elif refusal:
                fate = Fate.REFUSED
            elif name in tree:
                gone = tree.card(name).status is Status.DEPRECATED
                fate = Fate.RETIRED if gone else Fate.KEPT
            merged = into if fate is Fate.MERGED else None
            yield Proposal(step.epoch, place, name, card, fate, refusal, merged)


def _refusal_of(card: Card, ruled: Rulings) -> CardRefusal | None:
    """Return the refusal of a card; of two cards of one id, one may be admitted."""
    if card not in ruled.admitted:
        for each in ruled.refused:
            if each.card_id == card.card_id:
                return each
    return None


def _is_ruled(card_id: str, ruled: Rulings) -> bool:
    names = {card.card_id for card in ruled.admitted}
    names.update(refused.card_id for refused in ruled.refused)
    return card_id in names


def _refusals(
    steps: _DoneSteps, proposals: Sequence[Proposal]
) -> Iterator[ReportedRefusal]:
    """Yield the refusals of cards, then of examples and of revisions."""
    for each in proposals:
        if each.refused:
            yield ReportedRefusal(each.epoch, each.place, "card", each.refused)
    for step, shown in steps.of(Demonstrations, "illustrate"):
        for refused in shown.refused:
            yield ReportedRefusal(step.epoch, step.place, "example", refused)
    for step, curated in steps.of(Revisions, "revise"):
        for refused in curated.refused:
            yield ReportedRefusal(step.epoch, step.place, "revision", refused)


def _revised(
    steps: _DoneSteps, comparisons: Sequence[tuple[int, Comparison]]
) -> Iterator[Revised]:
    """Yield what the curators would do with each card."""
    accepted = set()
    for epoch, found in comparisons:
        if found.accepted:
            accepted.add((epoch, found.domain, found.number))
    for step, curated in steps.of(Revisions, "revise"):
        done = (step.epoch, step.place, step.number) in accepted
        for revision in curated.revisions:
            yield Revised(step.epoch, step.place, revision, done)


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


def _domains(tree: EpistemicTree) -> Iterator[DomainReport]:
    """Yield the domains. A card of two is counted in both."""
    for domain in tree.domains:
        cards = sum(domain.name in card.domain_tags for card in tree.shown)
        yield DomainReport(domain.name, domain.description, domain.share, cards)


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
    unplaced: Sequence[Unplaced],
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
    wrong = runs[0].problems - runs[0].correct if runs else 0
    if not wrong:
        return "the solver got all training problems right. Give harder ones."
    if unplaced:
        return f"{unplaced[0].summary.removeprefix('warning: ')}."
    problems = counted(wrong, "problem")
    return f"the teacher saw what went wrong ({problems}) and wrote no card."


def _progress(steps: _DoneSteps, under_way: Sequence[RunScore]) -> str:
    """Return how far an unfinished run came."""
    sentences = ["Not finished."]
    if steps.lines:
        sentences.append(f"The last step done: {list(steps.lines)[-1]}.")
    for score in under_way:
        done = counted(score.problems, "problem")
        sentences.append(f"Under way: {score.step}, {done} done.")
    sentences.append("The same command resumes it.")
    return " ".join(sentences)


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
