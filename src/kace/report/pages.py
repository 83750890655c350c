"""The pages of the viewer: which page a path leads to, and those of runs.

A page is a pure function of a request: it reads tables and trees, and returns the
values that a template writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import NamedTuple

from kace.config import Price
from kace.errors import KaceError, redact
from kace.files import read_plain
from kace.ladder.record import Attempt, Outcome, RetrievedContext, Solution
from kace.ladder.tiers import FALLBACK_GATE, LOCKED, ExitPath, TierName
from kace.report import inbox, trees
from kace.report.evaluation import (
    OWN,
    Plot,
    evaluation_of,
    exits_plot,
    plots_of,
    tradeoff_plot,
)
from kace.report.inbox import Inbox
from kace.report.render import (
    HOME,
    Crumb,
    Links,
    NotHere,
    Page,
    PageRequest,
    slice_of,
)
from kace.report.workspace import KINDS, Item, Workspace
from kace.runs.compare import p_text
from kace.runs.manifest import Manifest
from kace.runs.metrics import Metrics
from kace.runs.stats import wilson
from kace.runs.table import VIEWS, SolveFilter, Table
from kace.words import counted

FEW = 12  # items from which on there is a field to find one
LISTED = 1_000  # runs on the first page
SMALL_RUN = 32_000_000  # bytes up to which a run is read for the first page
REFRESH = 5.0
PER_PAGE = 100
IN_FILES = 300  # solves of a run that an export has pages for
RELATED = 6  # other runs that a page offers
BESIDE = 7  # runs in one chart
GROUPS = 12  # cards that broke problems
CHANGED = 60  # gained or lost problems that a comparison names
HALF = 560.0  # width of a chart beside another
MAX_VALUE = 200  # characters of a setting
FIRST_DOWN = (
    "calls",
    "tokens",
    "cards",
    "seconds",
)  # largest first on the first click
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
    "run": "Recorded solves: how far each climbed, what it answered, what it cost.",
    "learner": "What kace learn proposed, tried and kept.",
    "inbox": "Requests to a teacher. The reply is written here, in the page.",
}
FIGURES = (
    ("Solver calls per problem", "by the paper's count", "paper_calls", 2),
    ("Calls really made", "per problem", "real_calls", 2),
    ("Calls to route a problem", "", "classifier_calls", 2),
    ("Input tokens", "per problem", "input", 0),
    ("of it cached", "", "cached", 0),
    ("Output tokens", "per problem", "output", 0),
    (
        "Active tokens",
        "of learned text in the fullest prompt",
        "card_tokens",
        0,
    ),
    ("Seconds", "per solve, waiting included", "seconds", 1),
    ("Lost calls", "solves that lost a call to the provider", "failed", 0),
)
"""The rows of a comparison: name, small print, field of `Metrics`, digits."""
View = Callable[[PageRequest], Page]
FALLBACKS = (ExitPath.FALLBACK_PLURALITY, ExitPath.FALLBACK_LAST_HS)


# Paths


def page_at(
    workspace: Workspace,
    path: Sequence[str],
    query: Mapping[str, str] | None = None,
    link: Links | None = None,
) -> Page:
    """Return the page at a path, given in parts; `NotHere` if there is none."""
    view, parts = find_view(path)
    return view(PageRequest(workspace, link or Links(), parts, query or {}))


def find_view(path: Sequence[str]) -> tuple[View, dict[str, str]]:
    """Return what makes the page at a path, and the parts of the path that it names."""
    for pattern, view in ROUTES.items():
        parts = _match(pattern, path)
        if parts is not None:
            return view, parts
    raise NotHere("there is no such page")


def _match(pattern: str, path: Sequence[str]) -> dict[str, str] | None:
    """Return the parts of a path that a pattern names; `None` if it does not fit."""
    names = pattern.strip("/").split("/") if pattern != "/" else []
    if len(names) != len(path):
        return None
    found = {}
    for name, part in zip(names, path, strict=True):
        if name.startswith("{"):
            found[name.strip("{}")] = part
        elif name != part:
            return None
    return found


def nav(
    workspace: Workspace, path: str, link: Links | None = None
) -> list[tuple[str, str, str]]:
    """Return the links of the bar: a single item's page, or its kind's list."""
    link = link or Links()
    found = [("Home", link(), "page" if path == "/" else "")]
    for kind, title in KINDS.items():
        items = workspace.items(kind)
        page = f"/{kind}/{items[0].name}" if len(items) == 1 else ""
        address = link(kind, items[0].name) if page else f"{link()}#{kind}"
        here = "true" if path.startswith(f"/{kind}/") else ""
        if items:
            found.append((title, address, "page" if path == page else here))
    return found


# The first page


class Summary(NamedTuple):
    """An item in a line: what it is of, what it holds, when it last changed."""

    item: Item
    about: Sequence[str] = ()
    holds: Sequence[str] = ()
    changed: float | None = None
    badge: tuple[str, str] | None = None
    metrics: Metrics | None = None


def home_page(request: PageRequest) -> Page:
    """Show everything that is open, or what matches a search."""
    wanted = request.query.get("q", "").strip()[:100]
    learners = {}
    for item in request.workspace.items("learner"):
        learners[item.path / "learn"] = item.name
    total = 0
    shown = dict.fromkeys(KINDS, 0)
    summaries: dict[str, list[Summary]] = {kind: [] for kind in KINDS}
    groups: dict[str, list[Summary]] = {"": []}
    for kind in KINDS:
        for item in request.workspace.items(kind):
            total += 1
            if wanted.lower() not in item.name.lower():
                continue
            shown[kind] += 1
            if kind != "run":
                summaries[kind].append(summarize(request, item))
            elif shown[kind] <= LISTED:
                maker = learners.get(item.path.parent, "")
                groups.setdefault(maker, []).append(summarize(request, item))
    values = {
        "wanted": wanted,
        "searchable": not request.static and (wanted or total >= FEW),
        "heads": KINDS,
        "about": ABOUT,
        "shown": shown,
        "summaries": summaries,
        "groups": groups,
    }
    return Page("home.html", "What is open", values, (), REFRESH)


def summarize(request: PageRequest, item: Item) -> Summary:
    """Return what is known of an item. A damaged one says more on its own page."""
    makers = {"tree": _tree, "run": _run, "learner": _learner, "inbox": _inbox}
    try:
        return makers[item.kind](request.workspace, item)
    except (OSError, ValueError, KaceError):
        return Summary(item, ["cannot be read"])


def _tree(workspace: Workspace, item: Item) -> Summary:
    opened = workspace.tree(item.name)
    domains = counted(len(opened.tree.domains), "domain")
    holds = [counted(len(opened.tree), "card"), domains]
    file = item.path / "cards.jsonl" if opened.journal else item.path
    badge = ("frozen", "info") if opened.frozen else None
    return Summary(item, (), holds, file.stat().st_mtime, badge)


def _run(workspace: Workspace, item: Item) -> Summary:
    manifest = workspace.manifest(item.name)
    words = (manifest.system, manifest.model, manifest.data)
    about = [word[:80] for word in words if word not in ("", item.name)]
    trace = item.path / "traces.jsonl"
    if not trace.exists():
        return Summary(item, about)
    told = Summary(item, about, ["open it to count"], trace.stat().st_mtime)
    if trace.stat().st_size > SMALL_RUN:
        return told
    table = workspace.table(item.name)
    solves = f"{len(table):,}"
    badge = None
    if table.missing:
        solves = f"{solves} of {len(table) + table.missing:,}"
        badge = (
            ("going on", "good") if table.running else ("unfinished", "warn")
        )
    metrics = table.metrics() if len(table) else None
    return told._replace(
        holds=[f"{solves} solves"], badge=badge, metrics=metrics
    )


def _learner(workspace: Workspace, item: Item) -> Summary:
    steps = read_plain(item.path / "learn" / "steps.jsonl").splitlines()
    finished = bool(steps) and b'"what":"freeze"' in steps[-1]
    badge = ("finished", "info") if finished else ("not finished", "warn")
    changed = (item.path / "learn" / "steps.jsonl").stat().st_mtime
    return Summary(item, (), [counted(len(steps), "step")], changed, badge)


def _inbox(workspace: Workspace, item: Item) -> Summary:
    entries = Inbox(item.path).entries()
    waiting = sum(entry.answered is None for entry in entries)
    changed = max(
        (entry.answered or entry.asked for entry in entries), default=None
    )
    holds = [f"{waiting:,} waiting", f"{len(entries) - waiting:,} answered"]
    return Summary(
        item, (), holds, changed, ("waiting", "warn") if waiting else None
    )


# A run


class Choice(NamedTuple):
    """What of a run is listed, as an address says it."""

    where: SolveFilter
    sort: str
    against: str  # the run that it is compared with, if asked for
    base: str  # the run that it is compared with, asked for or not

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
    """Return what an address asks for; values that mean nothing are left out."""
    related = request.workspace.related(run)
    against = request.choice("against", related)
    base = against or request.workspace.base_of(run)
    sorts = [head for head in HEADS if head]
    where = SolveFilter(
        right=request.choice("right", ("yes", "no", "failed")),
        exit=request.choice("exit", (*ExitPath, "none")),
        cards=request.choice("cards", ("shown", "abstained")),
        change=request.choice("change", ("gained", "lost")) if base else "",
        text=" ".join(request.query.get("q", "")[:MAX_VALUE].split()),
    )
    sort = request.choice("sort", [*sorts, *(f"-{name}" for name in sorts)])
    return Choice(where, sort, against, base)


def run_page(request: PageRequest) -> Page:
    """Show a run: its figures, where its solves left, and every solve in a table."""
    name = request.parts["run"]
    workspace = request.workspace
    table = workspace.table(name)
    choice = choice_of(request, name)
    base = workspace.table(choice.base) if choice.base else None
    counts = table.counts()
    price = known_prices().get(table.manifest.model)
    metrics = table.metrics(price, base=base)
    total = table.count(choice.where, base=base)
    shares = {}
    for column in ("exit", "domain", "family", "seed"):
        found = table.shares(column)
        if len(found) > 1:
            shares[column] = found
    views = []
    for words, count in table.views(base).items():
        where = VIEWS[words]
        query = Choice(
            where, choice.sort, choice.base if where.change else "", ""
        )
        views.append((words, count, query.query()))
    broken = []
    if base is not None:
        broken = [use for use in table.cards(base=base) if use.broken]
        broken.sort(key=lambda use: use.gained - use.broken)
    values = {
        "table": table,
        "manifest": table.manifest,
        "counts": counts,
        "metrics": metrics,
        "tree": workspace.tree_of(name),
        "wilson": wilson,
        "charts": _charts(request, metrics, choice.base),
        "by_card": broken[:GROUPS],
        "shares": shares,
        "exits": table.exits(),
        "choice": choice,
        "part": slice_of(
            request,
            total,
            lambda limit, offset: table.solves(
                choice.where,
                sort=choice.sort,
                limit=limit,
                offset=offset,
                base=base,
            ),
            PER_PAGE,
            IN_FILES,
        ),
        "others": workspace.related(name),
        "views": views,
        "heads": {
            head: words
            for head, words in HEADS.items()
            if head != "seed" or len(counts.seeds) > 1
        },
        "first_down": FIRST_DOWN,
        "to": lambda **changes: (
            request.link("run", name, **choice.query(**changes)) + "#solves"
        ),
    }
    refresh = REFRESH if table.running else None
    return Page("run.html", name, values, (HOME,), refresh)


@cache
def known_prices() -> Mapping[str, Price]:
    """Return the user's prices by model, as the configuration has them."""
    from kace.config import load_config

    with suppress(KaceError):  # pages are shown whatever the configuration says
        return load_config().prices
    return {}


def _charts(request: PageRequest, metrics: Metrics, base: str) -> list[Plot]:
    """Return where solves leave, and the run among others of the same problems.

    The problems of the run are sorted by how hard the base found them.
    """
    name = request.parts["run"]
    arms = [replace(metrics, name=f"{name} (this run)")]
    if request.workspace.manifest(name).data_hash:
        for other in request.workspace.related(name)[: BESIDE - 1]:
            found = _small_metrics(request.workspace, other)
            if found is not None:
                arms.append(replace(found, name=other))
    sorted_by = f"attempts of {base}" if base else OWN
    exits = exits_plot([replace(metrics, name=name)], sorted_by)
    plots = (exits, tradeoff_plot(arms))
    return [plot for plot in plots if plot]


def _small_metrics(workspace: Workspace, name: str) -> Metrics | None:
    """Return the figures of a run that is not too large to read for another's page."""
    with suppress(KaceError):
        trace = workspace.item("run", name).path / "traces.jsonl"
        if trace.exists() and trace.stat().st_size <= SMALL_RUN:
            return workspace.table(name).metrics()
    return None


# Two runs


def compare_page(request: PageRequest) -> Page:
    """Show a run against another."""
    ours, theirs = request.parts.values()
    if ours == theirs:
        raise NotHere("a run is not compared with itself")
    tables = [
        request.workspace.table(name).named(name) for name in (theirs, ours)
    ]
    found = evaluation_of(tables, base=theirs)
    right, left = found.arms
    comparison = next(iter(found.comparisons), None)
    others = request.workspace.related(ours)
    changed = {}
    notes = list(found.warnings)
    if comparison is not None:
        changed = {"gained": comparison.gained, "lost": comparison.lost}
        notes += [note for note in comparison.notes if note not in notes]
    values = {
        "arms": (left, right),
        "found": comparison,
        "p_text": p_text,
        "notes": notes,
        "changed": changed,
        "listed": CHANGED,
        "seeds": _changed_seeds(tables[1], tables[0]),
        "lines": list(_figure_lines(left, right)),
        "differences": list(
            _differences(tables[1].manifest, tables[0].manifest)
        ),
        "plots": plots_of(found),
        "others": [name for name in others if name != theirs][:RELATED],
    }
    crumbs = (HOME, Crumb(ours, ("run", ours)))
    return Page("compare.html", f"{ours} against {theirs}", values, crumbs)


def _changed_seeds(ours: Table, theirs: Table) -> dict[str, int]:
    """Return the first seed of each problem on which two runs differ."""
    found: dict[str, int] = {}
    for change in ("gained", "lost"):
        for row in ours.solves(SolveFilter(change=change), base=theirs):
            found[row.problem] = min(row.seed, found.get(row.problem, row.seed))
    return found


def _figure_lines(
    ours: Metrics, theirs: Metrics
) -> Iterator[tuple[str, str, list[str], str]]:
    """Iterate over the table of figures: name, small print, values, difference."""
    for name, about, field, digits in FIGURES:
        here, there = (_figure(metrics, field) for metrics in (ours, theirs))
        if not here and not there:
            continue
        change = f"{here - there:+,.{digits}f}".replace("-", "−")
        if here == there:
            change = f"{0:.{digits}f}"
        elif there:
            percent = f"{100 * (here / there - 1):+.0f}".replace("-", "−")
            change += f" ({percent}\u00a0%)"
        yield (
            name,
            about,
            [f"{here:,.{digits}f}", f"{there:,.{digits}f}"],
            change,
        )


def _figure(metrics: Metrics, field: str) -> float:
    value = getattr(metrics, field)
    return float(getattr(value, "mean", value) or 0)


def _differences(
    ours: Manifest, theirs: Manifest
) -> Iterator[tuple[str, str, str]]:
    """Iterate over the settings in which two runs differ."""
    left = dict(_settings(ours.content))
    right = dict(_settings(theirs.content))
    for name in dict.fromkeys((*left, *right)):
        values = [
            redact(part.get(name, "–"))[:MAX_VALUE] for part in (left, right)
        ]
        if values[0] != values[1]:
            yield name, values[0], values[1]


def _settings(
    part: Mapping[str, object], above: str = ""
) -> Iterator[tuple[str, str]]:
    """Iterate over the values of a manifest by their names."""
    for name, value in part.items():
        if isinstance(value, dict) and above.count(" ") < 5:
            if above or name != "sources":
                yield from _settings(value, f"{above}{name} ")
        elif value is not None and (above or name != "v"):
            yield f"{above}{name}", str(value)


# A solve


class AnswerGroup(NamedTuple):
    """Attempts of one vote with the same answer, or those without any."""

    answer: str | None
    attempts: Mapping[int, Attempt]  # by position in the solve
    votes: int
    support: int  # attempts with this answer up to this tier
    mark: str


class Rung(NamedTuple):
    """A tier that was reached."""

    name: str
    attempts: int
    groups: list[
        AnswerGroup
    ]  # the leader first; attempts without an answer last
    needed: int | None  # votes that open the gate; `None` without a gate
    left: bool  # whether the solve left here
    recall: RetrievedContext | None

    @property
    def met(self) -> bool:
        """Whether enough attempts agree."""
        return bool(
            self.needed and self.groups and self.groups[0].votes >= self.needed
        )


class Climb(NamedTuple):
    """A solve from the first tier to its answer."""

    rungs: list[Rung]
    below: list[TierName]  # tiers that were passed over
    above: list[TierName]  # tiers that were not needed
    fallback: list[AnswerGroup]  # the vote over all attempts, if no gate opened


def mark_of(correct: bool | None, outcome: Outcome = Outcome.ANSWERED) -> str:
    """Return what came of an attempt or a solve, as a class of the style sheet."""
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
    rungs = []
    start = 0
    for name, count in Counter(
        attempt.tier for attempt in record.attempts
    ).items():
        tier = tiers.get(name)
        groups = _groups(record, start, start + count)
        needed = tier.gate.votes if tier else None
        left = tier is not None and record.exit is tier.exit
        rungs.append(
            Rung(name.value, count, groups, needed, left, recalls.get(name))
        )
        start += count
    below: list[TierName] = []
    above: list[TierName] = []
    reached = {rung.name for rung in rungs}
    begun = False
    for name in tiers if record.exit is not None else ():
        if name.value in reached:
            begun = True
        elif begun:
            above.append(name)
        else:
            below.append(name)
    fallback = _groups(record, 0, start) if record.exit in FALLBACKS else []
    return Climb(rungs, below, above, fallback)


def _groups(record: Solution, start: int, end: int) -> list[AnswerGroup]:
    """Return the vote of the attempts from `start` to `end`.

    Attempts before them with the same answer are its support.
    """
    groups = []
    rest = {at: record.attempts[at] for at in range(start, end)}
    for each in sorted(
        record.classes, key=lambda one: min(one.positions, default=0)
    ):
        here = {}
        support = 0
        for at in each.positions:
            support += at < end
            if at in rest:
                here[at] = rest.pop(at)
        if here:
            first = next(iter(here.values()))
            mark = mark_of(first.correct, first.outcome)
            groups.append(
                AnswerGroup(each.answer, here, len(here), support, mark)
            )
    groups.sort(key=lambda group: (-group.votes, -group.support))
    if rest:
        groups.append(AnswerGroup(None, rest, 0, 0, "nothing"))
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
    number, before, after = table.neighbours(
        problem, record.seed, choice.where, sort=choice.sort, base=base
    )
    mark = mark_of(record.correct)
    if record.answer is None and record.correct is None:
        mark = "nothing"
    all_open = request.query.get("open") == "all"
    values = {
        "run": name,
        "record": record,
        "mark": mark,
        "mark_of": mark_of,
        "climb": climb_of(record),
        "let_out": [tier.name for tier in LOCKED if tier.exit is record.exit],
        "text": table.problem_text(problem),
        "texts": [table.call_text(attempt.call) for attempt in record.made],
        "whys": [redact(attempt.detail) for attempt in record.made],
        "keeps_texts": table.calls_folder is not None,
        "cards": _card_links(request, name, record),
        "plurality": FALLBACK_GATE.votes,
        "choice": choice,
        "number": number,
        "total": table.count(choice.where, base=base),
        "before": before,
        "after": after,
        "to": lambda row, **more: request.link(
            "run",
            name,
            "problem",
            row.problem,
            str(row.seed),
            **choice.query(**more),
        ),
        "all_open": all_open,
        "elsewhere": list(_elsewhere(request, name, problem)),
    }
    title = f"{record.name}, seed {seed}"
    crumbs = (HOME, Crumb(name, ("run", name)))
    return Page("solve.html", title, values, crumbs)


def _card_links(
    request: PageRequest, run: str, record: Solution
) -> dict[str, str]:
    """Return the address of every card of a solve that the open tree has."""
    found = request.workspace.tree_of(run) if record.recalls else None
    if found is None:
        return {}
    tree = found[0]
    links = {}
    shown = [recall.cards for recall in record.recalls]
    shown += [attempt.hidden for attempt in record.made]
    for card in chain.from_iterable(shown):
        if card in tree.tree:
            links[card] = request.link("tree", tree.name, "card", card)
    return links


def _elsewhere(
    request: PageRequest, name: str, problem: str
) -> Iterator[tuple[str, object]]:
    """Iterate over the solves of a problem: this run's, then those of small others."""
    where = SolveFilter(problem=problem)
    for run in (name, *request.workspace.related(name)[:RELATED]):
        if run == name or _small_metrics(request.workspace, run):
            for row in request.workspace.table(run).solves(where, sort="seed"):
                yield run, row


ROUTES: dict[str, View] = {
    "/": home_page,
    "/run/{run}": run_page,
    "/run/{run}/against/{other}": compare_page,
    "/run/{run}/problem/{problem}/{seed}": solve_page,
    **trees.ROUTES,
    **inbox.ROUTES,
}
