"""The page of one solve: the problem, the climb, what each attempt wrote, and the same problem elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kace.evaluation.arm import Row
from kace.solver.trace import SolveRecord
from kace.view.attempt_texts import attempt_texts
from kace.view.climb import Cards, climb_section, outcome, said_nothing
from kace.view.facts import facts
from kace.view.known_problems import known_problem
from kace.view.links import Links, path_of
from kace.view.marks import exit_words, mark_of, marked
from kace.view.neighbours import Neighbour, TreeRead, neighbours, tree_of
from kace.view.page import Ask, Crumb, NotHere, Page, Route
from kace.view.prose import prose
from kace.view.run_index import NotYet, RunIndex
from kace.view.run_pages import IN_FILES, static_rows, wait_for
from kace.view.run_query import Choice, selected
from kace.view.run_table import short_answer, solve_path
from kace.web.markup import Html, join, tag
from kace.words import counted

if TYPE_CHECKING:
    from kace.view.shelf import Item, Shelf

SOON = 1.5
"""Seconds after which a page that could not be drawn yet looks again."""
ELSEWHERE, FEW = 60, 12
"""Solves of the same problem in other runs that are listed, and up to how many the list is open."""


def problem_page(ask: Ask) -> Page:
    """One solve."""
    run, problem, seed = ask.parts["run"], ask.parts["problem"], _seed(ask.parts["seed"])
    index = ask.shelf.run(run)
    near = neighbours(ask.shelf, run)
    if ask.links.static:
        wait_for(index, near)
    index.catch_up()
    crumbs = (Crumb("Home", "/"), Crumb(run, path_of("run", run)))
    try:
        record = index.record(problem, seed)
    except NotYet:
        return _waiting(index, problem, crumbs)
    cards = _cards(ask, tree_of(ask.shelf, run) if record.recalls else None)
    body = join(
        (
            _header(ask, run, record),
            climb_section(record, cards) if record.attempts else said_nothing(),
            _texts(ask, record, index, cards),
            _elsewhere(ask, run, index, near),
        )
    )
    refresh = SOON if not index.texts_complete else None
    return Page(_title(record), body, crumbs, refresh)


def paths(shelf: Shelf, item: Item) -> Iterator[str]:
    """The pages of a run's solves that a static export writes: those that its own page lists."""
    if item.kind == "run":
        index = shelf.run(item.name)
        index.wait()
        yield from (solve_path(item.name, row) for row in static_rows(index))


def _seed(value: str) -> int:
    if not value.removeprefix("-").isascii() or not value.removeprefix("-").isdigit() or len(value) > 20:
        raise NotHere("a seed is a whole number")
    return int(value)


def _title(record: SolveRecord) -> str:
    return f"{record.label or record.problem[:8]}, seed {record.seed}"


def _waiting(index: RunIndex, problem: str, crumbs: tuple[Crumb, ...]) -> Page:
    read, about = index.progress
    body = tag(
        "section",
        tag("p", "Solve", class_="eyebrow"),
        tag("h1", "Not read yet"),
        tag("p", f"{read:,} of about {about:,} solves of this run are read, and {problem[:16]} is not among them yet."),
        tag("progress", value=read, max=max(1, about), aria_label="Solves read"),
        class_="empty",
    )
    return Page("Not read yet", body, crumbs, SOON)


def _header(ask: Ask, run: str, record: SolveRecord) -> Html:
    found: dict[str, str] = {
        "seed": f"{record.seed}",
        "family": record.family or "",
        "domain": record.domain or "",
        "left at": exit_words(record.exit),
        "calls": _calls(record),
        "tokens": f"{sum(a.input for a in record.made):,} in, {sum(a.output for a in record.made):,} out",
        "seconds": f"{record.seconds:,.1f}",
        "problem": tag("span", record.problem, class_="id"),
    }
    lost = tag("p", "The provider failed an attempt for good; the solve counts as it is.", class_="banner warn")
    return tag(
        "header",
        tag("p", "Solve", class_="eyebrow"),
        tag("h1", record.label or record.problem[:8]),
        _steps(ask, run, record),
        facts(found),
        lost if record.failed else Html(""),
        tag("div", _statement(record), outcome(record), class_="split wide-left problem"),
    )


def _calls(record: SolveRecord) -> str:
    same = record.paper_calls == record.real_calls
    return f"{record.paper_calls}" + ("" if same else f" by the paper’s count, {record.real_calls} made")


def _statement(record: SolveRecord) -> Html:
    """The text, where it is known from elsewhere; traces keep only its hash."""
    known = known_problem(record.problem)
    if known is not None:
        return tag("div", prose(known.text), class_="card statement")
    words = "The text is not here: a trace keeps a problem’s hash, not what it says."
    return tag("div", tag("p", words, class_="muted"), class_="card statement")


def _steps(ask: Ask, run: str, record: SolveRecord) -> Html:
    """To the solve before and after, in the order and with the filters that the table had."""
    if ask.links.static:
        return Html("")
    choice = Choice.of(ask.query)
    base = ask.shelf.run(choice.against) if choice.change else None
    rows = selected(ask.shelf.run(run), choice, base)
    key = (record.problem, record.seed)
    here = next((place for place, row in enumerate(rows) if (row.problem, row.seed) == key), None)
    if here is None:
        return Html("")
    query = choice.query()
    parts = []
    if here > 0:
        parts.append(tag("a", "← Previous", href=ask.links.to(solve_path(run, rows[here - 1]), **query), rel="prev"))
    among = " of those you chose" if choice.filtered else ""
    parts.append(tag("span", f"{here + 1:,} of {len(rows):,}{among}", class_="num"))
    if here + 1 < len(rows):
        parts.append(tag("a", "Next →", href=ask.links.to(solve_path(run, rows[here + 1]), **query), rel="next"))
    if choice.filtered or choice.sort:
        parts.append(tag("a", "To the table", href=ask.links.to(path_of("run", run), **query) + "#solves"))
    return tag("nav", *parts, class_="pager steps", aria_label="Solves")


def _texts(ask: Ask, record: SolveRecord, index: RunIndex, cards: Cards) -> Html:
    all_open = ask.query.get("open") == "all"
    kept = {name: value for name, value in Choice.of(ask.query).query().items() if value is not None}
    link = ""
    if not ask.links.static and index.keeps_texts:
        here = path_of("run", ask.parts["run"], "problem", record.problem, str(record.seed))
        link = ask.links.to(here, **kept, open=None if all_open else "all") + "#attempts"
    return attempt_texts(record, index, cards, all_open=all_open, open_link=link)


def _cards(ask: Ask, found: TreeRead | None) -> Cards:
    """Draws cards that lead to their pages in the open tree, where it has them."""

    def drawn(ids: Sequence[str]) -> Html:
        chips = [tag("li", _chip(card, found, ask.links)) for card in ids]
        return tag("ul", *chips, class_="chips card-chips")

    return drawn


def _chip(card: str, found: TreeRead | None, links: Links) -> Html:
    if found is None or (found.tree is not None and card not in found.tree):
        return tag("span", card, class_="chip id")
    known = found.tree.cards[card] if found.tree is not None else None
    about = " ".join(known.payload.split())[:160] if known else ""
    if not found.exact:
        about = f"The tree has changed since this run read it. {about}".strip()
    return tag("a", card, href=links.to(path_of("tree", found.name, "card", card)), class_="chip id", title=about)


def _elsewhere(ask: Ask, run: str, index: RunIndex, near: Sequence[Neighbour]) -> Html:
    """The same problem under other seeds and in other runs."""
    problem, here = ask.parts["problem"], (run, _seed(ask.parts["seed"]))
    own = [(run, index, row) for row in index.solves_of(problem)]
    others = [(each.name, each.index, row) for each in near for row in each.index.solves_of(problem)]
    if len(own) + len(others) < 2:
        return Html("")
    marks = [row.correct for _, _, row in (*own, *others) if row.correct is not None]
    told = f"Right in {sum(marks):,} of {counted(len(marks), 'solve')} in what is open." if marks else ""
    parts = [_solves(ask, own, here)] if len(own) > 1 else []
    if others:
        rest = f", of which {ELSEWHERE} are listed" if len(others) > ELSEWHERE else ""
        said = tag("summary", f"{counted(len(others), 'solve')} in other runs{rest}")
        parts.append(
            tag("details", said, _solves(ask, others[:ELSEWHERE], here), open="" if len(others) < FEW else None)
        )
    return tag(
        "section", tag("h2", "The same problem elsewhere"), tag("p", told, class_="note"), *parts, id="elsewhere"
    )


def _solves(ask: Ask, found: Sequence[tuple[str, RunIndex, Row]], here: tuple[str, int]) -> Html:
    numbers = {"Seed": "num", "Calls": "num"}
    heads = ("Run", "Seed", "Result", "Answer", "Exit", "Calls")
    top = tag("tr", *(tag("th", head, scope="col", class_=numbers.get(head)) for head in heads))
    rows = (_other(ask, name, held, row, here) for name, held, row in found)
    return tag("table", tag("thead", top), tag("tbody", *rows), class_="rows")


def _other(ask: Ask, name: str, index: RunIndex, row: Row, here: tuple[str, int]) -> Html:
    current = (name, row.seed) == here
    record = index.records([(row.problem, row.seed)])[0]
    there = not ask.links.static or index.progress.read <= IN_FILES  # of a larger run, not every solve is in the files
    link = tag("a", name, href=ask.links.to(solve_path(name, row))) if there and not current else tag("b", name)
    cells = (
        ("Run", join((link, tag("small", "this one"))) if current else link, None),
        ("Seed", f"{row.seed}", "num"),
        ("Result", marked(mark_of(row.correct)), None),
        ("Answer", short_answer(record.answer) if record else "–", None),
        ("Exit", exit_words(row.exit), None),
        ("Calls", f"{row.paper_calls}", "num"),
    )
    drawn = (tag("td", content, data_label=head, class_=class_) for head, content, class_ in cells)
    return tag("tr", *drawn, class_="here" if current else None)


ROUTES = (Route("/run/{run}/problem/{problem}/{seed}", problem_page),)
