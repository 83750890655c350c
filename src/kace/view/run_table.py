"""The table of a run's solves: filters that are a form, headings that sort, pages that are links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from kace.evaluation.arm import Row
from kace.solver.tiers import ExitPath
from kace.solver.trace import SolveRecord
from kace.view.links import Links, path_of
from kace.view.marks import EXITS, NO_EXIT, exit_words, mark_of, marked
from kace.view.prose import maths
from kace.view.run_changes import Changes
from kace.view.run_index import RunIndex
from kace.view.run_query import CHANGES, NO_LADDER, PER_PAGE, Choice
from kace.view.run_tally import Tally
from kace.web.markup import Html, join, tag
from kace.web.parts import badge
from kace.words import counted

LONGEST = 60
"""Characters of an answer in the table."""
NUMBERS = frozenset({"seed", "calls", "tokens", "cards", "seconds"})
FIRST_DOWN = frozenset({"calls", "tokens", "cards", "seconds"})
"""Columns of which the largest figures are asked for first."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """What the table is made of."""

    run: str
    """As the shelf calls it."""
    index: RunIndex
    tally: Tally
    choice: Choice
    rows: Sequence[Row]
    """All that the choice leaves."""
    changes: Changes | None
    """What it gained and lost against another run, where one is named."""
    links: Links

    @property
    def pages(self) -> int:
        """How many there are."""
        return max(1, -(-len(self.rows) // PER_PAGE))

    @property
    def page(self) -> int:
        """The one that is shown."""
        return min(self.choice.page, self.pages)

    @property
    def shown(self) -> Sequence[Row]:
        """The rows of the page. A file cannot ask for another page, so it has them all."""
        if self.links.static:
            return self.rows
        return self.rows[(self.page - 1) * PER_PAGE : self.page * PER_PAGE]

    def to(self, **changes: str | int) -> str:
        """The address of the table with some of the choice changed."""
        return self.links.to(path_of("run", self.run), **self.choice.query(**changes)) + "#solves"


def solves_table(sheet: Sheet) -> Html:
    """The table, and the pager below it."""
    if not sheet.rows:
        return _nothing(sheet)
    several = len({row.seed for row in sheet.shown}) > 1 or sheet.tally.problems < sheet.tally.solves
    heads = _heads(sheet, several)
    records = sheet.index.records([(row.problem, row.seed) for row in sheet.shown])
    rows = [_row(sheet, row, record, several) for row, record in zip(sheet.shown, records, strict=True)]
    table = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows), class_="rows solves")
    return join((table, pager(sheet)))


def filters(sheet: Sheet, others: Sequence[str]) -> Html:
    """The form above the table. Without script, its button applies it."""
    choice, tally = sheet.choice, sheet.tally
    fields = [
        tag(
            "label",
            "Words",
            tag("input", type="search", name="q", value=choice.q, placeholder="name, family or domain"),
        )
    ]
    if tally.labelled or choice.right:
        fields.append(
            _select("Result", "right", choice.right, {"": "all", "yes": "right", "no": "wrong", "failed": "call lost"})
        )
    if tally.exits or choice.exit:
        fields.append(_select("Exit", "exit", choice.exit, {"": "all", **dict(_exit_options(sheet))}))
    if others:
        fields.append(_select("Against", "against", choice.against, {"": "no other run", **{n: n for n in others}}))
    if choice.against:
        fields.append(_select("Change", "change", choice.change, {"": "all", **{change: change for change in CHANGES}}))
    if choice.sort:
        fields.append(tag("input", type="hidden", name="sort", value=choice.sort))
    clear = Html("")
    if choice.filtered or choice.against:
        clear = tag("a", "Clear", href=sheet.to(exit="", right="", against="", change="", q=""), class_="button quiet")
    return tag(
        "form",
        *fields,
        tag("button", "Apply"),
        clear,
        method="get",
        action=sheet.links.to(path_of("run", sheet.run)) + "#solves",
        class_="filters",
        role="search",
    )


def pager(sheet: Sheet) -> Html:
    """Links to the other pages of the table."""
    if sheet.links.static or sheet.pages == 1:
        return Html("")
    page, last = sheet.page, sheet.pages
    first = (page - 1) * PER_PAGE + 1
    places = sorted({1, 2, page - 1, page, page + 1, last - 1, last} & set(range(1, last + 1)))
    parts = [tag("a", "← Previous", href=sheet.to(page=page - 1), rel="prev")] if page > 1 else []
    for place, after in zip_longest(places, places[1:]):
        here = place == page
        parts.append(
            tag("b", f"{place:,}", aria_current="page")
            if here
            else tag("a", f"{place:,}", href=sheet.to(page=place), aria_label=f"Page {place}")
        )
        if after and after > place + 1:
            parts.append(tag("span", "…"))
    if page < last:
        parts.append(tag("a", "Next →", href=sheet.to(page=page + 1), rel="next"))
    shown = tag("span", f"{first:,} to {first + len(sheet.shown) - 1:,} of {len(sheet.rows):,}", class_="num")
    return tag("nav", *parts, shown, class_="pager", aria_label="Pages of solves")


def _exit_options(sheet: Sheet) -> Iterator[tuple[str, str]]:
    tally = sheet.tally
    for path in ExitPath:
        if tally.exits[path] or sheet.choice.exit == path.value:
            yield path.value, EXITS[path]
    if tally.exits.total() < tally.solves or sheet.choice.exit == NO_LADDER:
        yield NO_LADDER, NO_EXIT


def _select(label: str, name: str, value: str, options: Mapping[str, str]) -> Html:
    known = {**options, value: options.get(value, value)}
    drawn = (
        tag("option", words, value=option, selected="" if option == value else None) for option, words in known.items()
    )
    return tag("label", label, tag("select", *drawn, name=name))


def _heads(sheet: Sheet, several: bool) -> Iterator[Html]:
    names = {"problem": "Problem", "seed": "Seed", "result": "Result", "": "Answer", "exit": "Exit", "calls": "Calls"}
    names |= {"tokens": "Tokens", "cards": "Cards", "seconds": "Seconds"}
    for name, words in names.items():
        if name == "seed" and not several:
            continue
        yield _head(sheet, name, words)


def _head(sheet: Sheet, name: str, words: str) -> Html:
    class_ = "num" if name in NUMBERS else None
    if not name or sheet.links.static:
        return tag("th", words, scope="col", class_=class_)
    now = sheet.choice.sort
    turned = {name: f"-{name}", f"-{name}": name}.get(now, f"-{name}" if name in FIRST_DOWN else name)
    sorted_ = {name: "ascending", f"-{name}": "descending"}.get(now)
    arrow = {"ascending": " ↑", "descending": " ↓"}.get(sorted_ or "", "")
    link = tag("a", words, tag("span", arrow, aria_hidden="true"), href=sheet.to(sort=turned))
    return tag("th", link, scope="col", class_=class_, aria_sort=sorted_)


def _row(sheet: Sheet, row: Row, record: SolveRecord | None, several: bool) -> Html:
    about = " · ".join(part for part in (row.family, row.domain) if part)
    link = tag("a", row.name, href=sheet.links.to(solve_path(sheet.run, row), **sheet.choice.query()))
    cells = [_cell("Problem", join((link, tag("small", about) if about else Html(""))))]
    if several:
        cells.append(_cell("Seed", f"{row.seed}", number=True))
    made = "" if row.real_calls == row.paper_calls else f"{row.real_calls} made"
    cells += [
        _cell("Result", _result(sheet, row)),
        _cell("Answer", _answer(record)),
        _cell("Exit", exit_words(row.exit)),
        _cell("Calls", _with(f"{row.paper_calls}", made), number=True),
        _cell("Tokens", _with(f"{row.input + row.output:,}", f"{row.output:,} out"), number=True),
        _cell("Cards", f"{len(row.cards)}" if row.cards else "–", number=True),
        _cell("Seconds", f"{row.seconds:,.1f}", number=True),
    ]
    return tag("tr", *cells)


def _result(sheet: Sheet, row: Row) -> Html:
    parts = [marked(mark_of(row.correct))]
    if row.failed:
        parts.append(badge("call lost", "warn"))
    key = (row.problem, row.seed)
    if sheet.changes is not None and key in sheet.changes.gained:
        parts.append(badge("gained", "good"))
    elif sheet.changes is not None and key in sheet.changes.lost:
        parts.append(badge("lost", "bad"))
    return join(parts)


def _answer(record: SolveRecord | None) -> Html:
    if record is None:
        return tag("span", "–", class_="muted")
    said = short_answer(record.answer)
    if record.correct is False and record.expected is not None:
        return join((said, tag("small", "expected ", short_answer(record.expected))))
    return said


def short_answer(answer: str | None, longest: int = LONGEST) -> Html:
    """An answer as maths, cut where it is long."""
    if answer is None:
        return tag("span", "none", class_="muted")
    if len(answer) > longest:
        return tag("code", f"{answer[:longest]}…")
    return maths(answer)


def _nothing(sheet: Sheet) -> Html:
    if not sheet.tally.solves:
        words = "Nothing is solved yet." if sheet.index.complete else "The first solves are being read."
        return tag("p", words, class_="note")
    clear = tag("a", f"Show all {counted(sheet.tally.solves, 'solve')}.", href=sheet.to(**_CLEAR))
    said = "No solve is like that" + ("." if sheet.index.complete else " among those read so far.")
    return tag("p", said, " ", clear, class_="note")


_CLEAR = {"exit": "", "right": "", "against": "", "change": "", "q": ""}


def solve_path(run: str, row: Row) -> str:
    """The canonical path of a solve's page."""
    return path_of("run", run, "problem", row.problem, str(row.seed))


def _cell(label: str, content: str, *, number: bool = False) -> Html:
    return tag("td", content, data_label=label, class_="num" if number else None)


def _with(value: str, small: str) -> Html:
    return join((value, tag("small", small))) if small else join((value,))
