"""Report what a learning run did, from the folder of its tree, finished or not.

One plain value, `LearningReport`, is built from the step log and the run tables. The
terminal, `--json` and the pages show it. The forecast of a run is here too.
"""

from __future__ import annotations

import fcntl
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import TypeAdapter

from kace.cards.card import Card, Status
from kace.cards.store import TreeState, TreeStore
from kace.cards.tree import EpistemicTree
from kace.config import Config
from kace.errors import DataError, counted
from kace.files import inside
from kace.learning.admit import Merges
from kace.learning.measure import Comparison
from kace.learning.propose import Proposals
from kace.learning.revise import Revisions
from kace.learning.study import (
    Bill,
    RunTotals,
    Settings,
    StepName,
    Steps,
    read_bill,
    read_steps,
    results,
)
from kace.learning.teacher import TAIL_CHARS, CardRefusal
from kace.models.base import Usage
from kace.models.budget import Ledger
from kace.problems import Problem
from kace.runs.manifest import Manifest
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
    REFUSED = "refused"
    WAITING = "waiting"  # for a ruling, or for the end of its round


@dataclass(frozen=True, slots=True)
class Proposal:
    """A card proposed for a cell, and what became of it."""

    step: StepName
    card_id: str  # as the teacher named it; empty if it gave no name
    card: Card | None  # `None` if the block could not be read as one
    fate: Fate
    refused: CardRefusal | None = None
    into: str = ""  # the card that it was merged with


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
    funnel: dict[str, int]  # what became of everything proposed
    runs: tuple[RunScore, ...]
    cards: tuple[Card, ...]  # highest lift first
    proposals: tuple[Proposal, ...]
    comparisons: tuple[tuple[StepName, Comparison], ...]
    gaps: tuple[tuple[str, str], ...]  # a domain, and what no card covers
    bill: Bill

    @property
    def scores(self) -> tuple[RunScore, ...]:
        """Return the runs over all training problems: these may be compared."""
        return tuple(
            run for run in self.runs if run.step.what in ("run", "base")
        )


def report_of(tree_folder: Path) -> LearningReport:
    """Return the report of the learning run of a tree. Reads only, takes no lock."""
    folder = inside(tree_folder, "learn")
    store = TreeStore(tree_folder)
    if not (folder / "learn.json").is_file():
        raise DataError(
            f"{tree_folder} holds no learning run",
            fix="name the --out folder of a `kace learn` command",
        )
    manifest = Manifest()
    with suppress(DataError):  # a damaged one costs itself only
        manifest = Manifest.read(folder / "learn.json")
    lines = read_steps(folder / "steps.jsonl")
    steps = {line.step: line for line in lines}
    state = TreeState(EpistemicTree.of((), ()))
    if store.cards_path.exists():
        state = store.read()
    tree = state.tree
    runs = []
    for step, totals in results(steps, RunTotals, *TITLES):
        title = TITLES[step.what].format(step)
        share = wilson(totals.correct, totals.problems)
        runs.append(RunScore(step, title, totals, share))
    proposals = tuple(_proposals(steps, tree))
    gaps = []
    for step, curated in results(steps, Revisions, "revise"):
        gaps += [(step.place, text) for text in curated.gaps]
    last = next(reversed(steps), "none")
    progress = f"Not finished. The last step done: {last}. The same command resumes it."
    now = "working" if _is_locked(folder / "lock") else "stopped"
    if last == StepName("close", "freeze"):
        progress = ""
        now = "finished"
    funnel = _funnel(proposals, tree)
    train = manifest.part("train").get("problems")
    train = train if isinstance(train, int) else 0
    summary = _summary(funnel, train)
    if now == "finished" and not funnel["kept"]:
        why = _why_empty(funnel, runs)
        summary += f" The tree is empty: {why}"
    return LearningReport(
        name=tree_folder.resolve().name,
        state=now,
        solver=manifest.model,
        teacher=str(manifest.content.get("teacher") or ""),
        train=train,
        settings={
            name: str(v) for name, v in manifest.part("settings").items()
        },
        frozen=state.frozen,
        summary=summary,
        progress=progress,
        funnel=funnel,
        runs=tuple(runs),
        cards=tuple(sorted(tree, key=lambda card: -card.helpfulness_score)),
        proposals=proposals,
        comparisons=tuple(results(steps, Comparison, "compare")),
        gaps=tuple(gaps),
        bill=read_bill(folder),
    )


def report_json(report: LearningReport) -> str:
    """Return the report as one line of JSON, cards and all."""
    return TypeAdapter(LearningReport).dump_json(report).decode()


def _proposals(steps: Steps, tree: EpistemicTree) -> Iterator[Proposal]:
    """Yield all proposals in the order they were made."""
    refusals: dict[tuple[int, str], CardRefusal] = {}
    for step, judged in results(steps, Proposals, "illustrate", "admit"):
        for refusal in judged.refused:
            refusals[step.epoch, refusal.card_id] = refusal
    merges = {}
    for step, done in results(steps, Merges, "merge"):
        for name, into in done.merged:
            if into != name:
                merges[step.epoch, name] = into
    for step, found in results(steps, Proposals, "propose", "imagine"):
        for bad in found.refused:
            yield Proposal(step, bad.card_id, None, Fate.REFUSED, bad)
        for card in found.cards:
            key = (step.epoch, card.card_id)
            refused = None
            fate = Fate.WAITING
            if card.card_id in tree:
                status = tree.card(card.card_id).status
                gone = status is Status.DEPRECATED
                fate = Fate.RETIRED if gone else Fate.KEPT
            elif key in merges:
                fate = Fate.MERGED
            elif key in refusals:
                fate = Fate.REFUSED
                refused = refusals[key]
            yield Proposal(
                step, card.card_id, card, fate, refused, merges.get(key, "")
            )


def _funnel(
    proposals: Sequence[Proposal], tree: EpistemicTree
) -> dict[str, int]:
    """Return the number of proposals by what became of them, and the tree's size."""
    fates = Counter(each.fate for each in proposals)
    statuses = Counter(card.status for card in tree)
    shown = tree.shown
    return {
        "proposed": len(proposals),
        "waiting": fates[Fate.WAITING],
        "refused": fates[Fate.REFUSED],
        "admitted": len(proposals) - fates[Fate.WAITING] - fates[Fate.REFUSED],
        "merged": fates[Fate.MERGED],
        "kept": len(shown),
        "unmeasured": [c.provenance.validated_lift for c in shown].count(""),
        "validated": statuses[Status.VALIDATED],
        "retired": statuses[Status.DEPRECATED],
    }


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


def _summary(found: dict[str, int], train: int) -> str:
    """Return what was proposed and kept."""
    if not found["proposed"]:
        return "No card has been proposed yet."
    return (
        f"From {counted(train, 'training problem')} the teacher gave "
        f"{counted(found['proposed'], 'card')}. {found['admitted']} passed admission; "
        f"kept in the tree: {found['kept']}, validated: {found['validated']}."
    )


def _why_empty(found: dict[str, int], runs: Sequence[RunScore]) -> str:
    """Return why a finished run has no card to show, and what to do."""
    if found["admitted"]:
        return (
            f"{found['retired']} that passed admission could not be shown to help. "
            "Keep them with --quick, or give more problems of the same kinds."
        )
    if found["refused"]:
        return "every proposal was refused; `kace view` shows why."
    first = runs[0].totals
    if first.correct == first.problems:
        return "the solver got all training problems right. Give harder ones."
    if first.unplaced:
        return f"{first.warning}."
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
    input: int
    output: int
    usd: float | None  # without prefix caches; `None` without a price
    seconds: float


def forecast(
    train: Sequence[Problem], config: Config, settings: Settings
) -> list[RoleForecast]:
    """Return the forecast of the solver and the teacher."""
    size = len(train)
    text = sum(len(problem.text) for problem in train) / CHARS_PER_TOKEN
    epochs = settings.epochs
    written = FAILED_SHARE * size * settings.cards_per_problem  # cards an epoch
    # The runs for new cards, and the reruns of domains with their revisions.
    runs = settings.add_runs + settings.refine / 2 + settings.needs_base
    if settings.impact == "dropout":
        runs += settings.impact_runs
    attempts = runs * LADDER_ATTEMPTS
    if settings.impact == "leave_one_out":
        # Every attempt past ES is made again without each card of its block.
        attempts += written / DOMAINS * (LADDER_ATTEMPTS - 2)
    found = [forecast_attempts(text, size, epochs * attempts, config)]
    if config.teacher:
        # Requests for cards, demonstrations and rulings, for revisions and wordings.
        kinds = 2 + settings.imagine + bool(settings.examples)
        calls = epochs * DOMAINS * (2 * kinds + settings.refine) + DOMAINS
        rounds = 2 + settings.refine
        shown = epochs * rounds * FAILED_SHARE
        read = shown * (text + size * TAIL_CHARS) + calls * PROMPT_TOKENS
        card = CARD_TOKENS * (1 + settings.examples) * rounds
        card += settings.wordings * WORDING_TOKENS
        reply = epochs * written * card
        role = _role("teacher", config.teacher, config, calls, read, reply)
        found.append(role)
    return found


def forecast_attempts(
    text: float, problems: int, attempts: float, config: Config
) -> RoleForecast:
    """Return the forecast of so many attempts at each problem."""
    calls = attempts * problems
    cap = max(draw.max_tokens for draw in config.tier_sampling().values())
    read = attempts * text + calls * PROMPT_TOKENS
    written = calls * min(cap, TYPICAL_OUTPUT)
    return _role("solver", config.model, config, calls, read, written)


def _role(
    role: str,
    model: str,
    config: Config,
    calls: float,
    read: float,
    written: float,
) -> RoleForecast:
    """Return the forecast of a role with its cost and time."""
    usage = Usage(input=round(read), output=round(written))
    price = Ledger(prices=config.prices).price(model)
    usd = price.cost(usage) if price else None
    speed: float = REMOTE_SPEED * (config.max_connections or REMOTE_CALLS)
    if model.startswith("local/"):
        speed = EMBEDDED_SPEED
    elif model.startswith("exchange/"):
        speed = math.inf  # a person's time is not known
    seconds = usage.output / speed
    return RoleForecast(
        role, model, calls, usage.input, usage.output, usd, seconds
    )
