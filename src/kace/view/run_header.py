"""The top of a run's page: what it is, how far it is read, and what it comes to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from kace.errors import KaceError
from kace.models.budget import Price
from kace.solver.tiers import ExitPath
from kace.view.facts import facts
from kace.view.links import path_of
from kace.view.marks import percent, spread
from kace.view.neighbours import tree_of
from kace.view.page import Ask
from kace.view.run_index import RunIndex
from kace.view.run_tally import Tally
from kace.web.markup import Html, join, tag
from kace.words import counted


def header(ask: Ask, name: str, index: RunIndex) -> Html:
    """What the run is, how far it is read, and its figures."""
    tally = index.tally
    return tag(
        "header",
        tag("p", "Run", class_="eyebrow"),
        tag("h1", name),
        tag("p", _lead(index, tally), class_="lead") if tally.solves else Html(""),
        *_notices(index, tally),
        _facts(ask, name, index, tally),
        tag("div", *_tiles(ask, name, index, tally), class_="tiles") if tally.solves else Html(""),
    )


def _lead(index: RunIndex, tally: Tally) -> str:
    accuracy, interval = tally.accuracy, tally.interval
    size = counted(tally.problems, "problem") + (f" on {len(tally.seeds)} seeds" if len(tally.seeds) > 1 else "")
    if accuracy is None or interval is None:
        return f"{index.name} solved {size}. No expected answers are known, so there is no accuracy."
    return (
        f"{index.name} answered {percent(accuracy)} of {size} correctly ({spread(*interval)}), "
        f"with {tally.each('paper_calls'):.2f} calls a problem."
    )


def _notices(index: RunIndex, tally: Tally) -> Iterator[Html]:
    read, about = index.progress
    if index.error is not None:
        yield tag("p", f"Reading stopped: {index.error.message}. ", index.error.fix, class_="banner")
    if read < about or not index.complete:
        words = f"{read:,} of about {about:,} solves read. Every figure is that of what is read so far."
        bar = tag("progress", value=read, max=max(1, about), aria_label="Solves read")
        yield tag("div", tag("p", words), bar, class_="banner info", role="status")
    elif not tally.solves:
        yield tag("p", "Nothing is solved yet. The page follows the run as it goes on.", class_="banner info")
    elif index.going:
        yield tag("p", "The run seems to be going on; the page follows it.", class_="banner info", role="status")
    missing = (index.setup.problems or 0) - tally.problems
    if missing > 0 and tally.solves and read == about:
        yield tag("p", f"{counted(missing, 'problem')} of the data set not solved here.", class_="banner info")
    if failed := tally.sums["failed"]:
        words = f"{counted(failed, 'solve')} lost a call to the provider and count as they are."
        yield tag("p", words, class_="banner warn")
    if damage := index.damage:
        lines = ", ".join(f"{each.line:,}" for each in damage[:5]) + (" …" if len(damage) > 5 else "")
        yield tag("p", f"{counted(len(damage), 'line')} of the trace cannot be read: {lines}.", class_="banner warn")


def _facts(ask: Ask, name: str, index: RunIndex, tally: Tally) -> Html:
    setup = index.setup
    found: dict[str, str] = {
        "solver": setup.model,
        "system": setup.system,
        "data": " ".join((setup.data, setup.split)).strip(),
        "preset": setup.preset,
        "tree": _tree(ask, name, index),
        "seeds": ", ".join(map(str, sorted(tally.seeds)[:8])) + (" …" if len(tally.seeds) > 8 else ""),
        "solved again": f"{index.retried:,}" if index.retried else "",
        "kace": setup.kace,
    }
    return facts(found)


def _tree(ask: Ask, name: str, index: RunIndex) -> Html:
    setup = index.setup
    if not setup.tree_hash:
        return Html("")
    size = "" if setup.tree_cards is None else counted(setup.tree_cards, "card")
    found = tree_of(ask.shelf, name)
    if found is None:
        return join((size or "yes", " ", tag("span", setup.tree_hash[:12], class_="id muted")))
    link = tag("a", found.name, href=ask.links.to(path_of("tree", found.name)))
    return join((link, f", {size}" if size else "", "" if found.exact else " (changed since)"))


def _tiles(ask: Ask, name: str, index: RunIndex, tally: Tally) -> Iterator[Html]:
    to_run = path_of("run", name)
    accuracy, interval = tally.accuracy, tally.interval
    if accuracy is not None and interval is not None:
        n = f"n\u00a0=\u00a0{tally.clusters.total():,}" + (
            f" × {len(tally.seeds)} seeds" if len(tally.seeds) > 1 else ""
        )
        yield _tile(percent(accuracy), f"right, {spread(*interval)}, {n}")
        wrong = tally.labelled - tally.right
        link = ask.links.to(to_run, right="no") + "#solves" if wrong and not ask.links.static else None
        yield _tile(f"{wrong:,}", f"wrong of {counted(tally.labelled, 'solve')}", link)
    else:
        yield _tile(f"{tally.solves:,}", "solves, none with an expected answer")
    made = "" if tally.sums["real_calls"] == tally.sums["paper_calls"] else f", {tally.each('real_calls'):.2f} made"
    choosing = tally.each("classifier_calls")
    chosen_by = f", {choosing:.2f} more to choose cards" if choosing else ""
    yield _tile(f"{tally.each('paper_calls'):.2f}", f"calls a problem{made}{chosen_by}")
    cached = f", {tally.sums['cached'] / tally.sums['input']:.0%} of the input cached" if tally.sums["cached"] else ""
    yield _tile(
        f"{tally.each('input') + tally.each('output'):,.0f}",
        f"tokens a solve: {tally.each('input'):,.0f} in, {tally.each('output'):,.0f} out{cached}",
    )
    yield _cost(index, tally)
    if tally.exits:
        first = tally.exits[ExitPath.ES_UNANIMOUS]
        yield _tile(percent(first / tally.exits.total(), 0), f"of the solves leave at ES, {first:,} in number")


def _cost(index: RunIndex, tally: Tally) -> Html:
    usd = tally.metrics(index.name, index.model, known_prices().get(index.model)).cost.usd
    tokens = sum(tally.sums[part] for part in ("input", "output", "classifier_input", "classifier_output"))
    if usd is None:
        model = index.model or "the solver"
        return _tile(_short(tokens), f"tokens in all; no price is known for {model}")
    if not usd:
        return _tile(_short(tokens), "tokens in all; nobody sends a bill for this model")
    return _tile(f"${usd:,.2f}", f"for all solves, {1000 * usd / tally.solves:,.2f} a thousand, if none were cached")


@cache
def known_prices() -> Mapping[str, Price]:
    """The user's prices by model, as the configuration has them."""
    from kace.config import load_config

    try:
        return load_config().price_table()
    except KaceError:  # a viewer opens whatever the configuration says about other things
        return {}


def _tile(value: str, about: str, link: str | None = None) -> Html:
    return tag("a" if link else "div", tag("b", value), tag("span", about), class_="tile", href=link)


def _short(count: int) -> str:
    for size, unit in ((1_000_000_000, "billion"), (1_000_000, "million")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:,}"
