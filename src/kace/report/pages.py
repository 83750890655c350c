"""The pages of the viewer: which page a path leads to, those of runs, and the export.

A page is a pure function of a request: it reads tables and trees, and returns the
values that a template writes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePath
from typing import NamedTuple
from urllib.parse import unquote

from kace.config import Price, load_config
from kace.errors import KaceError, UsageError, counted, redact
from kace.files import inside, read_plain, write_atomic
from kace.ladder.record import Attempt, Outcome, RetrievedContext, Solution
from kace.ladder.tiers import FALLBACK_GATE, LOCKED, ExitPath
from kace.models.base import Messages
from kace.report import inbox, trees
from kace.report.charts import EXIT_NAMES
from kace.report.evaluation import (
    OWN,
    evaluation_of,
    exits_plot,
    lead,
    plots_of,
)
from kace.report.inbox import Inbox
from kace.report.render import (
    HOME,
    LEFT_OUT,
    Crumb,
    Links,
    NotHere,
    Page,
    PageRequest,
    assets,
    document,
    error_page,
    file_name,
    path_of,
    slice_of,
)
from kace.report.workspace import KINDS, Item, Workspace
from kace.runs.compare import p_text
from kace.runs.metrics import Metrics
from kace.runs.stats import wilson
from kace.runs.table import VIEWS, SolveFilter

SMALL_RUN = 32_000_000  # bytes up to which a run is read for the first page
REFRESH = 5.0
PER_PAGE = 100
IN_FILES = 300  # solves of a run that an export has pages for
CARDS_IN_FILES = 5_000  # cards of a tree that an export has pages for
RELATED = 6  # other runs that a page offers
GROUPS = 12  # cards that broke problems
MAX_WORDS = 200  # characters of a search
FIRST_DOWN = ("calls", "tokens", "cards", "seconds")
"""Columns that are sorted largest first on the first click."""
HEADS = {
    "problem": "Problem",
    "seed": "Seed",
    "result": "Result",
    "": "Answer",
    "exit": "Exit",
    "calls": "Calls",
    "tokens": "Tokens",
    "cards": "Cards",
    "seconds": "Seconds",
}
ABOUT = {
    "tree": "Cards by domain and difficulty, with what each was measured to do.",
    "run": "Recorded solves: how much is right, at how many calls a problem.",
    "learner": "What kace learn proposed, tried and kept.",
    "inbox": "Requests to a teacher. The reply is written here, in the page.",
}
CAPS = (
    f"An export holds the pages of at most {IN_FILES:,} solves of a run and"
    f" {CARDS_IN_FILES:,} cards of a tree, and nothing that depends on a search or a"
    " filter. To see everything, open the original with: kace view"
)
MARK = "kace-view.txt"  # lies in a folder that an export wrote
View = Callable[[PageRequest], Page]
FALLBACKS = (ExitPath.FALLBACK_PLURALITY, ExitPath.FALLBACK_LAST_HS)


# Paths


def page_at(
    workspace: Workspace,
    path: str,
    query: Mapping[str, str] | None = None,
    link: Links | None = None,
) -> Page:
    """Return the page at a path; `NotHere` if there is none."""
    view, parts = find_view(path)
    return view(PageRequest(workspace, link or Links(), parts, query or {}))


def find_view(path: str) -> tuple[View, dict[str, str]]:
    """Return what makes the page at a path, and the parts of the path that it names.

    A part is decoded once: an encoded slash stays inside it.
    """
    for pattern, view in ROUTES.items():
        named = re.sub(r"{(\w+)}", r"(?P<\1>[^/]{1,1200})", pattern)
        found = re.fullmatch(named, path)
        if found:
            parts = {}
            for name, part in found.groupdict().items():
                parts[name] = unquote(part)
            if "".join(parts.values()).isprintable():
                return view, parts
    raise NotHere("there is no such page")


def nav(
    workspace: Workspace, path: str, link: Links | None = None
) -> list[tuple[str, str, str]]:
    """Return the links of the bar, and which of them is current."""
    link = link or Links()
    found = [("Home", link(), "page" if path == "/" else "")]
    for kind, title in KINDS.items():
        if workspace.items(kind):
            here = "true" if path.startswith(f"/{kind}/") else ""
            found.append((title, f"{link()}#{kind}", here))
    return found


# The first page


class Summary(NamedTuple):
    """An item in a line: what it is of, what it holds, when it last changed."""

    item: Item
    holds: str = ""
    changed: float | None = None
    badge: tuple[str, str] | None = None
    about: str = ""
    metrics: Metrics | None = None


def home_page(request: PageRequest) -> Page:
    """Show everything that is open; runs of a learner are on its own page."""
    summaries: dict[str, list[Summary]] = {}
    for kind in KINDS:
        for item in request.workspace.items(kind):
            if kind != "run" or item.path.parent.name != "learn":
                found = Summary(item, "cannot be read")
                with suppress(OSError, ValueError, KaceError):
                    found = summarize(request.workspace, item)
                summaries.setdefault(kind, []).append(found)
    values = {"heads": KINDS, "about": ABOUT, "summaries": summaries}
    return Page("home.html", "What is open", values, (), REFRESH)


def summarize(workspace: Workspace, item: Item) -> Summary:
    """Return what is known of an item. A run too large to read at once is not read."""
    changed = item.path.stat().st_mtime
    if item.kind == "tree":
        tree = workspace.tree(item.name)
        size = counted(len(tree.tree), "card")
        frozen = ("frozen", "info") if tree.frozen else None
        return Summary(item, size, changed, frozen)
    if item.kind == "inbox":
        waiting = [
            one for one in Inbox(item.path).entries() if not one.answered
        ]
        holds = f"{counted(len(waiting), 'request')} waiting"
        badge = ("waiting", "warn") if waiting else None
        return Summary(item, holds, changed, badge)
    trace = item.path / "traces.jsonl"
    if item.kind == "learner" or not trace.exists():
        return Summary(item, changed=changed)
    manifest = workspace.manifest(item.name)
    model = manifest.model
    if model.startswith("replay/"):  # a path of this machine says little
        model = f"replay of {PurePath(model).name}"
    about = f"{manifest.system[:80]} · {model[:80]}"
    if trace.stat().st_size > SMALL_RUN:
        return Summary(item, "open it to count", changed, about=about)
    table = workspace.table(item.name)
    solves = f"{len(table):,} solves"
    badge = None
    if table.missing:
        solves = f"{len(table):,} of {len(table) + table.missing:,} solves"
        badge = ("unfinished", "warn")
    metrics = table.metrics() if len(table) else None
    return Summary(item, solves, changed, badge, about, metrics)


# A run


@dataclass(frozen=True, slots=True)
class Choice:
    """What of a run is listed, as an address says it."""

    where: SolveFilter
    sort: str
    base: str  # the run that it is compared with
    against: str  # the same, where the address names it

    @property
    def filtered(self) -> bool:
        """Whether some solves are left out."""
        return self.where != SolveFilter()

    def query(self, **changes: str) -> dict[str, str]:
        """Return the query of an address with some of it changed."""
        where = self.where
        found = {
            "q": where.text,
            "right": where.right,
            "exit": where.exit,
            "cards": where.cards,
            "change": where.change,
            "against": self.against,
            "sort": self.sort,
        }
        return {**found, **changes}


def choice_of(request: PageRequest, run: str) -> Choice:
    """Return what an address selects; values that mean nothing are left out."""
    workspace = request.workspace
    related = workspace.related(run)
    against = request.choice("against", related)
    base = against or workspace.base_of(run)
    sorts = [*HEADS, *(f"-{name}" for name in HEADS)]
    where = SolveFilter(
        right=request.choice("right", ("yes", "no", "failed")),
        exit=request.choice("exit", (*ExitPath, "none")),
        cards=request.choice("cards", ("shown", "abstained")),
        change=request.choice("change", ("gained", "lost")) if base else "",
        text=request.query.get("q", "")[:MAX_WORDS],
    )
    return Choice(where, request.choice("sort", sorts), base, against)


def run_page(request: PageRequest) -> Page:
    """Show a run: its figures, where its solves left, and every solve in a table."""
    name = request.parts["run"]
    workspace = request.workspace
    table = workspace.table(name)
    choice = choice_of(request, name)
    base = workspace.table(choice.base) if choice.base else None
    metrics = table.metrics(known_prices().get(table.manifest.model), base=base)
    sorted_by = f"attempts of {choice.base}" if base else OWN
    shares = {}
    for column in ("exit", "domain", "family", "seed"):
        found = table.shares(column)
        if len(found) > 1:
            shares[column] = found
    views = []
    for words, count in table.views(base).items():
        views.append((words, count, replace(choice, where=VIEWS[words])))
    broken = []
    if base is not None:
        broken = [use for use in table.cards(base=base) if use.broken]
        broken.sort(key=lambda use: use.gained - use.broken)
    heads = dict(HEADS)
    if len(table.seeds) < 2:
        del heads["seed"]

    def address(**changes: str) -> str:
        query = choice.query(**changes)
        return request.link("run", name, **query) + "#solves"

    rows = table.solves(choice.where, sort=choice.sort, base=base)
    values = {
        "table": table,
        "manifest": table.manifest,
        "metrics": metrics,
        "tree": workspace.tree_of(name),
        "wilson": wilson,
        "exits_plot": exits_plot([replace(metrics, name=name)], sorted_by),
        "by_card": broken[:GROUPS],
        "shares": shares,
        "choice": choice,
        "part": slice_of(request, rows, PER_PAGE, IN_FILES),
        "others": workspace.related(name),
        "views": views,
        "heads": heads,
        "first_down": FIRST_DOWN,
        "to": address,
    }
    refresh = REFRESH if table.running else None
    return Page("run.html", name, values, (HOME,), refresh)


@cache
def known_prices() -> Mapping[str, Price]:
    """Return the user's prices by model, as the configuration has them."""
    with suppress(KaceError):  # pages are shown whatever the configuration says
        return load_config().prices
    return {}


def compare_page(request: PageRequest) -> Page:
    """Show a run against another."""
    ours, theirs = request.parts.values()
    if ours == theirs:
        raise NotHere("a run is not compared with itself")
    workspace = request.workspace
    names = (theirs, ours)
    tables = [workspace.table(name).named(name) for name in names]
    found = evaluation_of(tables, base=theirs, prices=known_prices())
    changed: dict[str, Sequence[object]] = {}
    for change in ("gained", "lost"):
        changed[change] = tables[1].solves(
            SolveFilter(change=change), sort="problem", base=tables[0]
        )
    values = {
        "ours": ours,
        "theirs": theirs,
        "found": found,
        "lead": lead(found),
        "table": tables[1],
        "changed": changed,
        "plots": plots_of(found),
        "exits": EXIT_NAMES,
        "p_text": p_text,
    }
    crumbs = (HOME, Crumb(ours, ("run", ours)))
    return Page("compare.html", f"{ours} against {theirs}", values, crumbs)


# A solve


class AnswerGroup(NamedTuple):
    """Attempts of one vote with the same answer, or those without any."""

    answer: str | None
    attempts: Mapping[int, Attempt]  # by position in the solve
    support: int  # attempts with this answer up to this tier
    mark: str

    @property
    def votes(self) -> int:
        """The votes for the answer."""
        return len(self.attempts) if self.answer is not None else 0


class Rung(NamedTuple):
    """A tier that was reached."""

    name: str
    attempts: int
    groups: list[AnswerGroup]  # the leader first; those without an answer last
    needed: int | None  # votes that open the gate; `None` without a gate
    left: bool  # whether the solve left here
    recall: RetrievedContext | None


class Climb(NamedTuple):
    """A solve from the first tier to its answer."""

    rungs: list[Rung]
    fallback: list[AnswerGroup]  # the vote over all attempts, if no gate opened


def mark_of(correct: bool | None, outcome: Outcome = Outcome.ANSWERED) -> str:
    """Return the result of an attempt or a solve, as a class of the style sheet."""
    if outcome is Outcome.CANCELLED:
        return "stopped"
    if outcome is not Outcome.ANSWERED:
        return "nothing"
    if correct is None:
        return "answered"
    return "right" if correct else "wrong"


def climb_of(record: Solution) -> Climb:
    """Return the climb of a recorded solve."""
    recalls = {recall.tier: recall for recall in record.recalls}
    tiers = {tier.name: tier for tier in LOCKED}
    sizes = Counter(attempt.tier for attempt in record.attempts)
    rungs = []
    start = 0
    for name, count in sizes.items():
        tier = tiers.get(name)
        groups = _groups(record, start, start + count)
        needed = tier.gate.votes if tier else None
        left = tier is not None and record.exit is tier.exit
        read = recalls.get(name)
        rungs.append(Rung(name.value, count, groups, needed, left, read))
        start += count
    fallback = _groups(record, 0, start) if record.exit in FALLBACKS else []
    return Climb(rungs, fallback)


def _groups(record: Solution, start: int, end: int) -> list[AnswerGroup]:
    """Return the vote of the attempts from `start` to `end`."""
    groups = []
    rest = dict(enumerate(record.attempts[start:end], start))
    for each in record.classes:
        here = {at: rest.pop(at) for at in each.positions if at in rest}
        for first in list(here.values())[:1]:
            mark = mark_of(first.correct, first.outcome)
            support = sum(at < end for at in each.positions)
            groups.append(AnswerGroup(each.answer, here, support, mark))
    groups.sort(key=lambda one: (-one.votes, -one.support, min(one.attempts)))
    if rest:
        groups.append(AnswerGroup(None, rest, 0, "nothing"))
    return groups


def solve_page(request: PageRequest) -> Page:
    """Show one solve: the problem, the climb, and what each attempt wrote."""
    name, problem, seed = request.parts.values()
    table = request.workspace.table(name)
    record = None
    if seed.removeprefix("-").isdecimal() and len(seed) < 18:
        record = table.solution(problem, int(seed))
    if record is None:
        what = f"no solve of problem '{problem[:40]}' with seed {seed[:20]} in {name}"
        raise NotHere(what)
    choice = choice_of(request, name)
    base = request.workspace.table(choice.base) if choice.base else None
    rows = table.solves(choice.where, sort=choice.sort, base=base)
    number = 0  # in the list, from 1; 0 for a solve that is not in it
    for place, row in enumerate(rows, 1):
        if (row.problem, row.seed) == (problem, record.seed):
            number = place
    mark = mark_of(record.correct)
    if record.answer is None and record.correct is None:
        mark = "nothing"
    related = request.workspace.related(name)[:RELATED]
    elsewhere = []
    for run in (name, *related):
        with suppress(KaceError):
            other = request.workspace.table(run)
            for row in other:
                if row.problem == problem:
                    elsewhere.append((run, row))
    senders: dict[Messages, int] = {}  # the first attempt with each prompt
    for position, attempt in enumerate(record.made):
        senders.setdefault(attempt.messages, position)
    values = {
        "run": name,
        "record": record,
        "mark": mark,
        "mark_of": mark_of,
        "climb": climb_of(record),
        "let_out": [tier.name for tier in LOCKED if tier.exit is record.exit],
        "text": table.problem_text(problem),
        "senders": senders,
        "whys": [redact(attempt.detail) for attempt in record.made],
        "keeps_texts": table.calls_folder is not None,
        "tree": request.workspace.tree_of(name),
        "plurality": FALLBACK_GATE.votes,
        "choice": choice,
        "number": number,
        "total": len(rows),
        "before": rows[number - 2] if number > 1 else None,
        "after": rows[number] if 0 < number < len(rows) else None,
        "all_open": request.query.get("open") == "all",
        "elsewhere": elsewhere,
    }
    title = f"{record.name}, seed {seed}"
    crumbs = (HOME, Crumb(name, ("run", name)))
    return Page("solve.html", title, values, crumbs)


ROUTES: dict[str, View] = {
    "/": home_page,
    "/run/{run}": run_page,
    "/run/{run}/against/{other}": compare_page,
    "/run/{run}/problem/{problem}/{seed}": solve_page,
    **trees.ROUTES,
    **inbox.ROUTES,
}


# The export


def export(workspace: Workspace, folder: Path) -> list[str]:
    """Write the pages of a workspace as files that need no server; return their paths.

    Raises `UsageError` for a folder that holds anything but an earlier export.
    """
    old = {path.name for path in folder.glob("*")} if folder.is_dir() else ()
    if old and MARK not in old:
        raise UsageError(
            f"{folder} is not empty, and no export of ours",
            fix="choose another folder",
        )
    if old:
        read_plain(folder / MARK)  # a link in its place is not ours
    paths = list(paths_of(workspace))
    link = Links(exported=frozenset(paths))
    _write(folder, MARK, "kace view --export wrote this folder.\n")
    for name in old:
        if name.endswith(".html"):
            (folder / name).unlink()
    for name, content in assets().items():
        _write(folder, f"assets/{name}", content)
    for path in paths:
        try:
            page = page_at(workspace, path, link=link)
        except KaceError as error:
            words = (redact(error.message), redact(error.fix))
            page = error_page(500, "This cannot be shown", *words)
        html = document(page, link, nav(workspace, path, link))
        _write(folder, file_name(path), html)
    about = error_page(200, "Left out", CAPS)
    _write(folder, LEFT_OUT, document(about, link))
    return paths


def paths_of(workspace: Workspace) -> Iterator[str]:
    """Iterate over the paths of the pages that an export writes."""
    yield "/"
    for kind in KINDS:
        for item in workspace.items(kind):
            yield path_of(kind, item.name)
            with suppress(KaceError, OSError):  # its page has the reason
                for parts in _pages_below(workspace, item):
                    yield path_of(kind, item.name, *parts)


def _pages_below(workspace: Workspace, item: Item) -> Iterator[tuple[str, ...]]:
    """Iterate over the pages of an item but its first, as parts of their paths."""
    if item.kind == "tree":
        for card in list(workspace.tree(item.name).tree)[:CARDS_IN_FILES]:
            yield "card", card.card_id
    elif item.kind == "learner":
        yield ("proposals",)
    elif item.kind == "inbox":
        for entry in Inbox(item.path).entries():
            yield (entry.name,)
    else:
        for name in workspace.related(item.name)[:RELATED]:
            yield "against", name
        base = workspace.base_of(item.name)
        other = workspace.table(base) if base else None
        table = workspace.table(item.name)
        for row in table.solves(sort="", base=other)[:IN_FILES]:
            yield "problem", row.problem, str(row.seed)


def _write(folder: Path, name: str, content: str | bytes) -> None:
    """Write a file in place of any other, without following links."""
    *above, last = name.split("/")
    write_atomic(inside(folder, *above) / last, content)
