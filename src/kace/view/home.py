"""The first page: what is open, each with what can be said of it at a glance."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kace.view.glance import Glance, Score, glance
from kace.view.marks import percent, spread
from kace.view.page import Ask, Page, Route
from kace.view.shelf import KINDS, Item, Kind
from kace.view.shell import NAMES
from kace.view.when import when
from kace.web.markup import Html, join, tag
from kace.web.parts import badge
from kace.words import counted

SAYS: dict[Kind, str] = {
    "tree": "Cards by domain and difficulty, with what each was measured to do.",
    "run": "Recorded solves: how far each climbed, what it answered, what it cost.",
    "learner": "What kace learn proposed, tried and kept.",
    "inbox": "Requests to a teacher. Somebody writes the reply here, in the page.",
}
EMPTY = "Nothing is here any more. What is written into the opened folders appears by itself."
FEW = 12
"""Items from which on there is a field to find one."""
MOST = 1_000
"""Runs that are listed."""
REFRESH = 5.0


def home(ask: Ask) -> Page:
    """Everything that is open, or what matches a search."""
    wanted = "" if ask.links.static else ask.query.get("q", "").strip()[:100]
    every = {kind: ask.shelf.items(kind) for kind in KINDS}
    shown = {kind: [item for item in items if wanted.lower() in item.name.lower()] for kind, items in every.items()}
    parts = [_section(ask, kind, items) for kind, items in shown.items()]
    if not any(shown.values()):
        parts.append(tag("p", f"Nothing is called '{wanted}'." if wanted else EMPTY, class_="note"))
    search = _search(ask, wanted) if wanted or sum(map(len, every.values())) >= FEW else Html("")
    lede = tag("header", tag("h1", "What is open"), search, class_="lede")
    return Page("What is open", join([lede, *parts]), refresh=REFRESH)


def _search(ask: Ask, wanted: str) -> Html:
    if ask.links.static:
        return Html("")
    field = tag(
        "input", type="search", name="q", value=wanted, placeholder="Part of a name", aria_label="Part of a name"
    )
    all_ = tag("a", "Show all", href=ask.links.to("/")) if wanted else Html("")
    return tag("form", field, tag("button", "Find"), all_, class_="filters", action=ask.links.to("/"), role="search")


def _section(ask: Ask, kind: Kind, items: Sequence[Item]) -> Html:
    if not items:
        return Html("")
    count = tag("span", f"{len(items):,}", class_="muted num")
    listed = _runs(ask, items) if kind == "run" else [_cards(ask, items)]
    return tag("section", tag("h2", NAMES[kind], " ", count), tag("p", SAYS[kind], class_="note"), *listed, id=kind)


def _cards(ask: Ask, items: Sequence[Item]) -> Html:
    return tag("ul", *(_card(ask, item) for item in items), class_="shelf")


def _card(ask: Ask, item: Item) -> Html:
    seen = glance(ask.shelf, item)
    about = tag("p", " · ".join(seen.about), class_="says") if seen.about else Html("")
    holds = [tag("span", words) for words in seen.holds]
    return tag("li", _link(ask, item), *_signs(item, seen), about, tag("p", *holds, _when(ask, seen), class_="figures"))


def _runs(ask: Ask, items: Sequence[Item]) -> list[Html]:
    """Runs in a table. Those of a learner, which are many and seldom looked at first, are folded away."""
    learners = {learner.path / "learn": learner for learner in ask.shelf.items("learner")}
    own = [item for item in items if item.path.parent not in learners]
    parts = [_table(ask, own)] if own else []
    for folder, learner in learners.items():
        if steps := [item for item in items if item.path.parent == folder]:
            words = f"{counted(len(steps), 'run')} that the learner of {learner.name} made"
            parts.append(tag("details", tag("summary", words), _table(ask, steps), class_="group"))
    return parts


def _table(ask: Ask, items: Sequence[Item]) -> Html:
    columns: dict[str, Callable[[Item, Glance], Html]] = {
        "Run": lambda item, seen: join([_link(ask, item), *_signs(item, seen)]),
        "Right": lambda item, seen: _score(seen.score) if seen.score else Html(""),
        "Holds": lambda item, seen: join([", ".join(seen.holds)]),
        "Of": lambda item, seen: join([" · ".join(seen.about)]),
        "Changed": lambda item, seen: _when(ask, seen),
    }
    head = tag("tr", *(tag("th", name, scope="col") for name in columns))
    rows = []
    for item in items[:MOST]:
        seen = glance(ask.shelf, item)
        rows.append(tag("tr", *(tag("td", cell(item, seen), data_label=name) for name, cell in columns.items())))
    left = len(items) - MOST
    more = tag("p", f"{left:,} more are not listed. Find one by its name.", class_="note") if left > 0 else Html("")
    return join([tag("table", tag("thead", head), tag("tbody", *rows), class_="rows runs"), more])


def _score(score: Score) -> Html:
    """The share that is right: drawn on its interval, and in figures."""
    low, high = 100 * score.interval.low, 100 * score.interval.high
    drawn = tag(
        "svg",
        tag("rect", x=0, y=7, width="100%", height=6, class_="track"),
        tag("rect", x=0, y=7, width=f"{100 * score.share:.1f}%", height=6, class_="fill"),
        tag("line", x1=f"{low:.1f}%", x2=f"{high:.1f}%", y1=10, y2=10, class_="reach"),
        class_="share",
        height=20,
        aria_hidden="true",
    )
    words = tag("small", spread(score.interval.low, score.interval.high), f", n {score.problems:,}")
    return tag("span", drawn, tag("b", percent(score.share), class_="num"), words, class_="scored")


def _link(ask: Ask, item: Item) -> Html:
    return tag("a", item.name, href=ask.links.to(f"/{item.kind}/{item.name}"), class_="name")


def _signs(item: Item, seen: Glance) -> list[Html]:
    signs = [badge("frozen", "info")] if seen.frozen else []
    if seen.waiting:
        signs.append(badge("waiting", "warn"))
    elif seen.going and item.kind in {"run", "learner"}:
        signs.append(badge("going on", "good"))
    return [join([" ", sign]) for sign in signs]


def _when(ask: Ask, seen: Glance) -> Html:
    return Html("") if seen.changed is None else tag("span", when(seen.changed, ask.links), class_="muted")


ROUTES = (Route("/", home),)
