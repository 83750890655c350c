"""The pages of the viewer: which page a path leads to, those of runs, and the export.

A page is a pure function of a request: it reads tables and trees, and returns the
values that a template writes.
"""

from __future__ import annotations

import logging
import re
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from kace.config import Price, load_config
from kace.errors import KaceError, UsageError, counted, redact
from kace.files import inside, read_plain, write_atomic
from kace.ladder.record import Attempt, Outcome, RetrievedContext, Solution
from kace.ladder.tiers import FALLBACK_GATE, ExitPath, ladder_of
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
    LEFT_OUT,
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
from kace.runs.table import (
    ALL,
    MAX_WORDS,
    NO_LADDER,
    VIEWS,
    SolveFilter,
)

log = logging.getLogger(__name__)

SMALL_RUN = 32_000_000  # bytes up to which a run is read for the first page
REFRESH = 5.0
PER_PAGE = 100
IN_FILES = 300  # solves of a run that an export has pages for
CARDS_IN_FILES = 5_000  # cards of a tree that an export has pages for
RELATED = 6  # other runs that a page offers
GROUPS = 12  # cards that broke problems
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
CHANGES = ("gained", "lost")
MARK = "kace-view.txt"  # lies in a folder that an export wrote
View = Callable[[PageRequest], Page]
FALLBACKS = (ExitPath.FALLBACK_PLURALITY, ExitPath.FALLBACK_LAST_HS)


# Paths


class Document(NamedTuple):
    """A page as it is sent or written."""

    text: str
    status: int


def html_at(
    workspace: Workspace,
    path: str,
    query: Mapping[str, str] | None = None,
    *,
    link: Links | None = None,
    reply: str | None = None,
) -> Document:
    """Return the page at a path, or one that says why there is none.

    With `reply`, the text of a form is written first.
    """
    link = link or Links()
    bar: list[tuple[str, str, str]] = []
    try:
        bar = nav(workspace, path, link)
        view, parts = find_view(path)
        if reply is None or view is inbox.request_page:
            page = view(PageRequest(workspace, link, parts, query or {}, reply))
        else:
            page = error_page(405, "Nothing can be sent here")
        return Document(document(page, link, bar), page.status)
    except NotHere as error:
        page = error_page(404, "Not here", error.message, error.fix)
    except KaceError as error:
        words = (redact(error.message), redact(error.fix))
        page = error_page(500, "This cannot be shown", *words)
    except Exception:
        log.error("%s", redact(traceback.format_exc()))
        what = "The page could not be made. The terminal says more."
        page = error_page(500, "Something went wrong here", what)
    return Document(document(page, link, bar), page.status)


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
    workspace: Workspace, path: str, link: Links
) -> list[tuple[str, str, str]]:
    """Return the links of the bar, and which of them is current."""
    found = [("Home", link(), "page" if path == "/" else "")]
    for kind, title in KINDS.items():
        if workspace.items(kind):
            here = "true" if path.startswith(f"/{kind}/") else ""
            found.append((title, f"{link()}#{kind}", here))
    return found


# The first page


class Summary(NamedTuple):
    """An item in a line: what it holds, when it last changed, what it is of."""

    item: Item
    changed: float | None = None
    holds: str = "cannot be read"
    badge: tuple[str, str] | None = None
    about: str = ""
    metrics: Metrics | None = None


def home_page(request: PageRequest) -> Page:
    """Show everything that is open; runs of a learner are on its own page."""
    summaries: dict[str, list[Summary]] = {}
    for kind in KINDS:
        for item in request.workspace.items(kind):
            if item.is_step:
                continue
            found = Summary(item)
            with suppress(OSError, ValueError, KaceError):
                found = summarize(request.workspace, item)
            summaries.setdefault(kind, []).append(found)
    values = {"heads": KINDS, "about": ABOUT, "summaries": summaries}
    return Page("home.html", "What is open", values, refresh=REFRESH)


def summarize(workspace: Workspace, item: Item) -> Summary:
    """Return what is known of an item. A very large run is not read."""
    found = Summary(item, item.path.stat().st_mtime, "")
    if item.kind == "tree":
        tree = workspace.tree(item.name)
        badge = ("frozen", "info") if tree.frozen else None
        return found._replace(
            holds=counted(len(tree.tree), "card"), badge=badge
        )
    if item.kind == "inbox":
        waiting = len(Inbox(item.path).waiting())
        badge = ("waiting", "warn") if waiting else None
        holds = f"{counted(waiting, 'request')} waiting"
        return found._replace(holds=holds, badge=badge)
    if item.kind == "learner":
        return found
    trace = item.path / "traces.jsonl"
    if trace.exists() and trace.stat().st_size > SMALL_RUN:
        return found._replace(holds="open it to count")
    table = workspace.table(item.name)
    holds = counted(len(table), "solve")
    badge = None
    if table.missing:
        holds = f"{len(table):,} of {len(table) + table.missing:,} solves"
        badge = ("unfinished", "warn")
    manifest = table.manifest
    return found._replace(
        holds=holds,
        badge=badge,
        about=f"{manifest.system[:80]} · {manifest.model[:80]}",
        metrics=table.metrics() if len(table) else None,
    )


# A run


class Choice(NamedTuple):
    """Which solves of a run an address selects, and in which order."""

    where: SolveFilter
    base: str  # the run that it is compared with
    query: Mapping[str, str]  # of the address

    @property
    def filtered(self) -> bool:
        """Whether some solves are left out."""
        return self.where != ALL


def choice_of(request: PageRequest, run: str) -> Choice:
    """Return what an address selects; values that mean nothing are left out."""
    workspace = request.workspace
    against = request.choice("against", workspace.related(run))
    base = against or workspace.base_of(run)
    where = SolveFilter(
        right=request.choice("right", ("yes", "no", "failed")),
        exit=request.choice("exit", (*ExitPath, NO_LADDER)),
        cards=request.choice("cards", ("shown", "abstained")),
        change=request.choice("change", CHANGES) if base else "",
        text=request.query.get("q", "")[:MAX_WORDS],
    )
    sort = request.choice("sort", [*HEADS, *(f"-{name}" for name in HEADS)])
    query = {**query_of(where), "against": against, "sort": sort}
    return Choice(where, base, query)


def query_of(where: SolveFilter) -> dict[str, str]:
    """Return the query of an address that selects the solves of a filter."""
    return {
        "q": where.text,
        "right": where.right,
        "exit": where.exit,
        "cards": where.cards,
        "change": where.change,
    }


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
    broken = []
    if base is not None:
        broken = [use for use in table.cards(base=base) if use.broken]
        broken.sort(key=lambda use: use.gained - use.broken)
    heads = dict(HEADS)
    if len(table.seeds) < 2:
        del heads["seed"]

    def address(**changes: str) -> str:
        query = {**choice.query, **changes}
        return request.link("run", name, **query) + "#solves"

    views = []
    for words, count in table.views(base).items():
        where = VIEWS[words]
        current = where == choice.where
        views.append((words, count, address(**query_of(where)), current))
    rows = table.solves(choice.where, sort=choice.query["sort"], base=base)
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
    return Page("run.html", name, values, refresh=refresh)


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
    table = request.workspace.table(ours).named(ours)
    base = request.workspace.table(theirs).named(theirs)
    found = evaluation_of([base, table], base=theirs, prices=known_prices())
    changed: dict[str, Sequence[object]] = {}
    for change in CHANGES:
        changed[change] = table.solves(
            SolveFilter(change=change), sort="problem", base=base
        )
    values = {
        "ours": ours,
        "theirs": theirs,
        "found": found,
        "lead": lead(found),
        "table": table,
        "changed": changed,
        "plots": plots_of(found),
        "exits": EXIT_NAMES,
        "p_text": p_text,
    }
    return Page(
        "compare.html", f"{ours} against {theirs}", values, ("run", ours)
    )


# A solve


class AnswerGroup(NamedTuple):
    """Attempts of one vote with the same answer, or those without any."""

    answer: str | None
    attempts: Mapping[int, Attempt]  # by position in the solve
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


def mark_of(correct: bool | None, outcome: Outcome = Outcome.ANSWERED) -> str:
    """Return the result of an attempt or a solve, as a class of the style sheet."""
    if outcome is not Outcome.ANSWERED:
        return "nothing"
    if correct is None:
        return "answered"
    return "right" if correct else "wrong"


def climb_of(record: Solution) -> list[Rung]:
    """Return the tiers that a recorded solve reached."""
    recalls = {recall.tier: recall for recall in record.recalls}
    sizes = Counter(attempt.tier for attempt in record.attempts)
    tiers = {tier.name: tier for tier in ladder_of(sizes)}
    rungs = []
    start = 0
    for name, count in sizes.items():
        tier = tiers.get(name)
        rung = Rung(
            name.value,
            count,
            vote_of(record, start, start + count),
            needed=tier.gate.votes if tier else None,
            left=tier is not None and record.exit is tier.exit,
            recall=recalls.get(name),
        )
        rungs.append(rung)
        start += count
    return rungs


def vote_of(record: Solution, start: int, end: int) -> list[AnswerGroup]:
    """Return the vote of the attempts from `start` to `end`.

    Ties go to the answer given most often so far, then to the first.
    """
    found = []
    rest = dict(enumerate(record.attempts[start:end], start))
    for each in record.classes:
        here = {at: rest.pop(at) for at in each.positions if at in rest}
        if here:
            first = next(iter(here.values()))
            mark = mark_of(first.correct, first.outcome)
            group = AnswerGroup(each.answer, here, mark)
            so_far = sum(at < end for at in each.positions)
            found.append((-group.votes, -so_far, min(here), group))
    groups = [group for *_, group in sorted(found)]
    if rest:
        groups.append(AnswerGroup(None, rest, "nothing"))
    return groups


def solve_page(request: PageRequest) -> Page:
    """Show one solve: the problem, the climb, and what each attempt wrote."""
    name, problem, seed = request.parts.values()
    workspace = request.workspace
    table = workspace.table(name)
    record = None
    if re.fullmatch("-?[0-9]{1,17}", seed):
        record = table.solution(problem, int(seed))
    if record is None:
        what = f"no solve of problem '{problem[:40]}' with seed {seed[:20]} in {name}"
        raise NotHere(what)
    choice = choice_of(request, name)
    base = workspace.table(choice.base) if choice.base else None
    rows = table.solves(choice.where, sort=choice.query["sort"], base=base)
    number = 0  # in the list, from 1; 0 for a solve that is not in it
    for place, row in enumerate(rows, 1):
        if (row.problem, row.seed) == (problem, record.seed):
            number = place
    elsewhere = []
    for run in (name, *workspace.related(name)[:RELATED]):
        with suppress(KaceError):
            for row in workspace.table(run):
                if row.problem == problem:
                    elsewhere.append((run, row))
    senders: dict[Messages, int] = {}  # the first attempt with each prompt
    for position, attempt in enumerate(record.made):
        senders.setdefault(attempt.messages, position)
    mark = mark_of(record.correct)
    if record.answer is None and record.correct is None:
        mark = "nothing"
    fallback = []
    if record.exit in FALLBACKS:
        fallback = vote_of(record, 0, len(record.attempts))
    values = {
        "run": name,
        "record": record,
        "mark": mark,
        "mark_of": mark_of,
        "climb": climb_of(record),
        "fallback": fallback,
        "text": table.problem_text(problem),
        "senders": senders,
        "whys": [redact(attempt.detail) for attempt in record.made],
        "keeps_texts": table.calls_folder is not None,
        "tree": workspace.tree_of(name),
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
    return Page("solve.html", title, values, ("run", name))


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
    old = {path.name for path in folder.glob("*")}
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
        made = html_at(workspace, path, link=link)
        _write(folder, file_name(path), made.text)
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
