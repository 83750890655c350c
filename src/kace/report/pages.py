"""The pages of the viewer: which page a path leads to, those of runs, and the export.

A page is a pure function of a request: it reads tables and trees, and returns the
values that a template writes.
"""

from __future__ import annotations

import logging
import re
import traceback
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from starlette.routing import compile_path

from kace.config import Price, load_config
from kace.errors import KaceError, UsageError, redact
from kace.files import write_atomic
from kace.ladder.record import Attempt, Outcome, RetrievedContext, Solution
from kace.ladder.tiers import FALLBACK_GATE, ExitPath, ladder_of
from kace.report import inbox, trees
from kace.report.evaluation import (
    evaluation_of,
    exits_plot,
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
from kace.runs.table import FILTERS, MAX_WORDS, ORDERS, SolveRow, Table

log = logging.getLogger(__name__)

REFRESH = 5.0
PER_PAGE = 100
IN_FILES = 300  # solves of a run that an export has pages for
RELATED = 6  # other runs that a page offers
SHARES = 200  # groups in a table of what is right where
CAPS = (
    f"An export holds the pages of at most {IN_FILES:,} solves of a run, and nothing"
    " that depends on a search or a filter. To see everything, open the original with:"
    " kace view"
)
View = Callable[[PageRequest], Page]
FALLBACKS = (ExitPath.FALLBACK_PLURALITY, ExitPath.FALLBACK_LAST_HS)


# Paths


def html_at(
    workspace: Workspace,
    path: str,
    query: Mapping[str, str] | None = None,
    *,
    link: Links | None = None,
    reply: str | None = None,
) -> tuple[str, int]:
    """Return the page at a path and its status, or one that says why there is none.

    With `reply`, the text of a form is written first.
    """
    link = link or Links()
    kinds = {kind: KINDS[kind] for kind in KINDS if workspace.items(kind)}
    try:
        view, parts = find_view(path)
        if reply is None or view is inbox.request_page:
            page = view(PageRequest(workspace, link, parts, query or {}, reply))
        else:
            page = error_page(405, "Nothing can be sent here")
        return document(page, link, path, kinds), page.status
    except NotHere as error:
        page = error_page(404, "Not here", error.message, error.fix)
    except KaceError as error:
        words = (redact(error.message), redact(error.fix))
        page = error_page(500, "This cannot be shown", *words)
    except Exception:
        log.error("%s", redact(traceback.format_exc()))
        what = "the page could not be made; the terminal says more"
        page = error_page(500, "Something went wrong here", what)
    return document(page, link, path, kinds), page.status


def find_view(path: str) -> tuple[View, dict[str, str]]:
    """Return what makes the page at a path, and the parts of the path that it names.

    A part is decoded once: an encoded slash stays inside it.
    """
    for pattern, view in ROUTES.items():
        found = compile_path(pattern)[0].fullmatch(path)
        if found:
            parts = {}
            for name, part in found.groupdict().items():
                parts[name] = unquote(part)
            if "".join(parts.values()).isprintable():
                return view, parts
    raise NotHere("there is no such page")


# The first page


def home_page(request: PageRequest) -> Page:
    """Show everything that is open; runs of a learner are on its own page."""
    workspace = request.workspace
    items: dict[str, list[tuple[Item, object]]] = {}
    for kind in KINDS:
        for item in workspace.items(kind):
            if kind == "run" and item.path.parent.name == "learn":
                continue
            found: object = "cannot be read"
            with suppress(OSError, ValueError, KaceError):
                if kind == "tree":
                    found = workspace.tree(item.name)
                elif kind == "run":
                    found = workspace.table(item.name)
                elif kind == "inbox":
                    found = Inbox(item.path).waiting()
                else:
                    found = ""
            items.setdefault(kind, []).append((item, found))
    values = {"heads": KINDS, "items": items}
    return Page("home.html", "What is open", values, refresh=REFRESH)


# A run


class Choice(NamedTuple):
    """Which solves of a run an address selects, and in which order."""

    where: Mapping[str, str]  # the filters
    query: Mapping[str, str]  # of the address
    base: str  # the name of the run that it is compared with
    other: Table | None  # that run
    rows: list[SolveRow]


def choice_of(request: PageRequest, run: str) -> Choice:
    """Return what an address selects; values that mean nothing are left out."""
    workspace = request.workspace
    against = request.choice("against", workspace.related(run))
    base = against or workspace.base_of(run)
    query = {}
    for name, values in FILTERS.items():
        query[name] = request.choice(name, values)
    if not base:
        query["change"] = ""
    query["text"] = request.query.get("text", "")[:MAX_WORDS]
    where = {name: value for name, value in query.items() if value}
    sort = request.query.get("sort", "")
    if sort.removeprefix("-") not in ORDERS:
        sort = ""
    query |= {"against": against, "sort": sort}
    other = workspace.table(base) if base else None
    rows = workspace.table(run).solves(where, sort=sort, base=other)
    return Choice(where, query, base, other, rows)


def run_page(request: PageRequest) -> Page:
    """Show a run: its figures, where its solves left, and every solve in a table."""
    name = request.parts["run"]
    workspace = request.workspace
    table = workspace.table(name)
    choice = choice_of(request, name)
    price = known_prices().get(table.manifest.model)
    metrics = table.metrics(price, base=choice.other)
    shares = {}
    for column in ("exit", "domain", "family", "seed"):
        found = table.shares(column)[:SHARES]
        if len(found) > 1:
            shares[column] = found

    def address(**changes: str) -> str:
        query = {**choice.query, **changes}
        return request.link("run", name, **query) + "#solves"

    values = {
        "table": table,
        "metrics": metrics,
        "tree": workspace.tree_of(name),
        "exits_plot": exits_plot([replace(metrics, name=name)]),
        "shares": shares,
        "choice": choice,
        "part": slice_of(request, choice.rows, PER_PAGE, IN_FILES),
        "others": workspace.related(name),
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
    changed = {}
    for change in FILTERS["change"]:
        where = {"change": change}
        changed[change] = table.solves(where, sort="problem", base=base)
    values = {
        "ours": ours,
        "theirs": theirs,
        "found": found,
        "table": table,
        "changed": changed,
        "plots": plots_of(found),
    }
    title = f"{ours} against {theirs}"
    return Page("compare.html", title, values, ("run", ours))


# A solve


class AnswerGroup(NamedTuple):
    """Attempts of one vote with the same answer, or those without any."""

    answer: str | None
    attempts: Mapping[int, Attempt]  # by position in the solve
    mark: str
    votes: int  # for the answer


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
    end = 0
    for name, count in sizes.items():
        end += count
        tier = tiers.get(name)
        rung = Rung(
            name.value,
            count,
            vote_of(record, end - count, end),
            tier.gate if tier else None,
            tier is not None and record.exit is tier.exit,
            recalls.get(name),
        )
        rungs.append(rung)
    return rungs


def vote_of(record: Solution, start: int, end: int) -> list[AnswerGroup]:
    """Return the vote of the attempts from `start` to `end`.

    Ties go to the answer given most often so far, then to the first.
    """
    groups = []
    rest = dict(enumerate(record.attempts[start:end], start))
    known = sorted(
        record.classes, key=lambda each: -bisect_left(each.positions, end)
    )
    for each in known:
        here = {at: rest.pop(at) for at in each.positions if at in rest}
        if here:
            mark = mark_of(record.attempts[each.positions[0]].correct)
            groups.append(AnswerGroup(each.answer, here, mark, len(here)))
    groups.sort(key=lambda group: -group.votes)
    if rest:
        groups.append(AnswerGroup(None, rest, "nothing", 0))
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
    keys = [(row.problem, row.seed) for row in choice.rows]
    number = 0  # in the list, from 1; 0 for a solve that is not in it
    with suppress(ValueError):
        number = 1 + keys.index((problem, record.seed))
    elsewhere = []
    for run in (name, *workspace.related(name)[:RELATED]):
        with suppress(KaceError):
            for row in workspace.table(run):
                if row.problem == problem:
                    elsewhere.append((run, row))
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
        "keeps_texts": table.calls_folder is not None,
        "tree": workspace.tree_of(name),
        "plurality": FALLBACK_GATE,
        "choice": choice,
        "number": number,
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

    Raises `UsageError` for a folder that is not empty.
    """
    if any(folder.glob("*")):
        fix = "choose another folder, or remove what is in it"
        raise UsageError(f"{folder} is not empty", fix=fix)
    paths = list(paths_of(workspace))
    link = Links(exported=frozenset(paths))
    for name, content in assets().items():
        write_atomic(folder / "assets" / name, content)
    for path in paths:
        text, _ = html_at(workspace, path, link=link)
        write_atomic(folder / file_name(path), text)
    about = error_page(200, "Left out", CAPS)
    write_atomic(folder / LEFT_OUT, document(about, link))
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
    name = item.name
    if item.kind == "tree":
        for card in workspace.tree(name).tree:
            yield "card", card.card_id
    elif item.kind == "learner":
        yield ("proposals",)
    elif item.kind == "inbox":
        for entry in Inbox(item.path).entries():
            yield (entry.name,)
    else:
        for other in workspace.related(name)[:RELATED]:
            yield "against", other
        base = workspace.base_of(name)
        table = workspace.table(base) if base else None
        rows = workspace.table(name).solves(sort="", base=table)
        for row in rows[:IN_FILES]:
            yield "problem", row.problem, str(row.seed)
