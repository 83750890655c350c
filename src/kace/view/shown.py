"""Where a card was shown: the opened runs that read it, and the problems won and lost beside other runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kace.evaluation.arm import Row
from kace.evaluation.stats import wilson
from kace.view.atlas import known_hash
from kace.view.card_uses import Swing, Use, swings_of, uses_of
from kace.view.links import Links, path_of
from kace.view.page import Ask
from kace.web.markup import Html, join, tag
from kace.web.parts import badge, table
from kace.words import counted

if TYPE_CHECKING:
    from kace.tree.tree import EpistemicTree

NAMED = 12
"""Problems that are named; the run's own page lists them all."""
OFFERED = 8
"""Runs that are offered to be looked at."""


def shown_section(ask: Ask, name: str, tree: EpistemicTree, card_id: str) -> Html:
    """The section of a card's page."""
    runs = ask.shelf.runs()
    uses = uses_of(card_id, runs)
    title = tag("h2", "Where it was shown")
    if not uses:
        return tag(
            "section",
            title,
            tag("p", _why_none(len(runs), len(ask.shelf.items("run"))), class_="note"),
            _offer(ask, name),
        )
    digest = known_hash(tree)
    rows = [_use_row(use, ask.links, digest) for use in uses]
    heads = ("Run", "Solves that read it", "Right", "95 % interval", "Tree")
    swings = swings_of(card_id, uses, runs)
    return tag(
        "section",
        title,
        tag("p", f"In {counted(len(uses), 'run')} of the {len(runs):,} looked at so far.", class_="note"),
        table(heads, rows, right=frozenset(heads[1:4])),
        *([_swings(swings, ask.links)] if swings else []),
    )


def _why_none(opened: int, there: int) -> str:
    if opened:
        return f"None of the {counted(opened, 'run')} looked at so far read this card."
    if there:
        return f"No run has been looked at yet, of {there:,}: open one, and what it read is counted here."
    return "No run is open. Open the viewer on runs as well, and what they read is counted here."


def _offer(ask: Ask, name: str) -> Html:
    """Runs that have not been looked at yet: those that learned this tree first."""
    opened = ask.shelf.runs()
    names = [item.name for item in ask.shelf.items("run") if item.name not in opened]
    offered = sorted(names, key=lambda run: not run.startswith(f"{name}."))[:OFFERED]
    chips = [tag("li", tag("a", run, href=ask.links.to(path_of("run", run)), class_="chip")) for run in offered]
    return tag("ul", *chips, class_="chips") if chips else Html("")


def _use_row(use: Use, links: Links, digest: str) -> tuple[str, ...]:
    run = tag("a", use.run, href=links.to(path_of("run", use.run)))
    low, high = wilson(use.right, use.judged)
    same = (
        "this very one" if digest and use.tree_hash == digest else "another version" if digest and use.tree_hash else ""
    )
    more = "" if use.complete else tag("small", "still being read")
    return (
        join([run, more]),
        f"{len(use.rows):,} of {use.solves:,}",
        f"{use.right / use.judged:.0%} of {use.judged:,}" if use.judged else "not known",
        f"{low:.0%} to {high:.0%}" if use.judged else "",
        same,
    )


def _swings(swings: Sequence[Swing], links: Links) -> Html:
    note = (
        "The same problem and seed in two runs of one model: the first read this card, the second, the plainest one "
        "looked at so far, did not. The runs differ in more than this card, so what was gained or broken need not be "
        "its doing; its lift is."
    )
    return tag(
        "div",
        tag("h3", "Problems gained and broken"),
        tag("p", note, class_="note"),
        *(_swing(swing, links, open_=not place) for place, swing in enumerate(swings)),
        class_="swings",
    )


def _swing(swing: Swing, links: Links, *, open_: bool) -> Html:
    alike = swing.pairs - len(swing.gained) - len(swing.broken)
    counts = [_count(len(swing.gained), "gained", "good"), " ", _count(len(swing.broken), "broken", "bad")]
    pair = f"{swing.run} against {swing.against}"
    return tag(
        "details",
        tag(
            "summary",
            pair,
            " ",
            *counts,
            tag("span", f" of {counted(swing.pairs, 'pair')}, {alike:,} alike", class_="muted"),
        ),
        _named("Gained", swing.gained, swing.run, links),
        _named("Broken", swing.broken, swing.run, links),
        tag("p", tag("a", "Compare the two runs", href=links.to(path_of("run", swing.run, "against", swing.against)))),
        open="" if open_ else None,
    )


def _count(count: int, word: str, colour: str) -> Html:
    return badge(f"{count:,} {word}", colour if count else "plain")


def _named(word: str, rows: Sequence[Row], run: str, links: Links) -> Html:
    if not rows:
        return Html("")
    seeds = len({row.seed for row in rows}) > 1
    chips = [_problem(row, run, links, seeds=seeds) for row in rows[:NAMED]]
    if len(rows) > NAMED:
        chips.append(tag("li", f"and {len(rows) - NAMED:,} more", class_="muted"))
    return tag("ul", tag("li", word, class_="muted"), *chips, class_="chips")


def _problem(row: Row, run: str, links: Links, *, seeds: bool) -> Html:
    path = path_of("run", run, "problem", row.problem, str(row.seed))
    name = f"{row.name}, seed {row.seed}" if seeds else row.name
    return tag("li", tag("a", name, href=links.to(path), class_="chip"))
