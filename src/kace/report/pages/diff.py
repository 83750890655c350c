"""What turns one tree into another, as a page to review: what went, what came, and the words that differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import partial
from typing import NamedTuple

from kace.cards.card import Card
from kace.cards.diff import CardPair, TreeDiff, diff, place
from kace.cards.formats import domains_named
from kace.cards.tree import EpistemicTree
from kace.report.later import Later
from kace.report.page import (
    HOME,
    Crumb,
    NotHere,
    Page,
    PageRequest,
    StillReading,
    slice_of,
)
from kace.report.pages.tree import opened
from kace.report.trees import TreeIndex

PER_PAGE = 25
PATIENCE = 0.4  # seconds that a page waits for two trees to be compared
KINDS = {
    "added": ("added", "good"),
    "edited": ("edited", "info"),
    "relocated": ("relocated", "info"),
    "deprecated": ("deprecated", "bad"),
    "removed": ("removed", "bad"),
    "figures": ("with other figures", "plain"),
}
"""What happened to a card, in the order of a reviewer's interest. The last say what they did, and fared differently."""
FIELDS = {
    "helpfulness_score": "helpfulness",
    "validated_lift": "lift",
    "promotion_status": "status",
    "n_uses": "uses",
    "n_wins": "right",
    "n_losses": "wrong",
    "epoch_introduced": "epoch",
}
"""Fields of a card as pages call them."""
LIKE = 0.4  # lines less alike than this are another text, and are not compared word by word
MAX_COMPARED = 2_000
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_HEADS = {
    "+": "diff-head good",
    "-": "diff-head bad",
    "x": "diff-head bad",
    ">": "diff-head info",
}

Marked = tuple[tuple[bool, str], ...]
"""Words of a line, and whether they are what differs."""
_diffs: Later[TreeDiff] = Later(keep=8)


class DiffLine(NamedTuple):
    """A line of a diff: `gone` and `came` have words; a `field` has a name and two values; others only a name."""

    kind: str
    words: Marked = ()
    name: str = ""
    before: str = ""
    after: str = ""


class ChangedCard(NamedTuple):
    """A card that is not the same in both trees."""

    kind: str
    before: Card | None
    after: Card | None


def diff_page(request: PageRequest) -> Page:
    """From one tree to the other."""
    names = request.parts["tree"], request.parts["other"]
    if names[0] == names[1]:
        raise NotHere("a tree does not differ from itself")
    trees = [opened(request, name) for name in names]
    changes = diff_of(trees, request.patience(PATIENCE))
    every = changed_cards(changes)
    kind = request.choice("kind", list(KINDS))
    before, after = (tree.total().cards for tree in trees)
    same = after - sum(each.after is not None for each in every)
    only = replace(
        changes, added=(), edited=(), relocated=(), deprecated=(), removed=()
    )
    values = {
        "names": names,
        "kinds": KINDS,
        "kind": kind,
        "every": len(every),
        "counts": {
            name: n for name in KINDS if (n := sum(each.kind == name for each in every))
        },
        "place": place,
        "lines": lambda each: diff_lines(
            card_diff(each.before, each.after), heads=False
        ),
        "tiles": [
            (before, "cards before"),
            (after, "cards after"),
            (same, "cards that are the same in both"),
        ],
        "domains": diff_lines(only)
        if changes.domains_before != changes.domains_after
        else [],
        "part": slice_of(
            request, [each for each in every if kind in ("", each.kind)], PER_PAGE
        ),
        "to": partial(request.link, "tree", names[0], "diff", names[1], kind=kind),
    }
    crumbs = (HOME, Crumb(names[0], ("tree", names[0])))
    return Page("diff.html", f"From {names[0]} to {names[1]}", values, crumbs)


def diff_of(trees: Sequence[TreeIndex], patience: float | None) -> TreeDiff:
    """What turns one tree into the other, worked out in a thread and kept; `StillReading` where it takes longer."""
    paths = tuple(tree.source for tree in trees)
    state = tuple(repr(tree.stamp()) for tree in trees)
    found = _diffs.ask(
        paths, state, lambda: diff(trees[0].load(), trees[1].load()), patience=patience
    )
    if found.value is None or not found.fresh:
        raise StillReading(f"{trees[0].name} and {trees[1].name}")
    return found.value


def changed_cards(changes: TreeDiff) -> list[ChangedCard]:
    """Every changed card once, under the most telling thing that happened to it."""
    kinds = {
        pair.after.card_id: "edited" if _reworded(pair) else "figures"
        for pair in changes.edited
    }
    kinds |= dict.fromkeys(
        (pair.after.card_id for pair in changes.relocated), "relocated"
    )
    kinds |= dict.fromkeys(
        (pair.after.card_id for pair in changes.deprecated), "deprecated"
    )
    found = {
        pair.after.card_id: pair
        for pair in (*changes.edited, *changes.relocated, *changes.deprecated)
    }
    every = [ChangedCard(kinds[name], *pair) for name, pair in found.items()]
    every += [ChangedCard("added", None, card) for card in changes.added]
    every += [ChangedCard("removed", card, None) for card in changes.removed]
    return sorted(every, key=lambda each: [*KINDS].index(each.kind))


def _reworded(pair: CardPair) -> bool:
    before, after = ((card.payload, card.routing_conditions) for card in pair)
    return before != after


def card_diff(before: Card | None, after: Card | None) -> TreeDiff:
    """What turns one card into the other, as a tree's diff says it."""
    cards = [[card] if card else [] for card in (before, after)]
    domains = domains_named([*cards[0], *cards[1]])
    return diff(*(EpistemicTree.of(domains, each) for each in cards))


def what_changed(changes: TreeDiff) -> str:
    """What a change did to the one card it is about."""
    if changes.added or changes.removed:
        return "created" if changes.added else "removed"
    found = [
        "text edited" if _reworded(pair) else "record updated"
        for pair in changes.edited
    ]
    found += ["relocated"] * bool(changes.relocated) + ["deprecated"] * bool(
        changes.deprecated
    )
    return ", ".join(found) or "changed"


def diff_lines(changes: TreeDiff, *, heads: bool = True) -> list[DiffLine]:
    """A diff for a page. Without `heads` the lines that name a card are left out: the page names it."""
    found = list[DiffLine]()
    gone = list[str]()
    came = list[str]()
    for line in (*changes.lines(), ""):
        inner = line.startswith("    ")
        mark = line.lstrip()[:2].rstrip()
        if inner and (mark == "+" or (mark == "-" and not came)):
            (came if mark == "+" else gone).append(line[6:])
            continue
        found += _exchanged(gone, came)
        gone = [line[6:]] if inner and mark == "-" else []
        came = []
        if (
            inner and mark != "-"
        ):  # a field's old and new value, such as `n_uses: 2 -> 4`
            name, _, rest = line.strip().partition(": ")
            old, arrow, new = rest.partition(" -> ")
            words = FIELDS.get(name, name.replace("_", " "))
            found.append(
                DiffLine("field", (), words, old, new)
                if arrow
                else DiffLine("diff-same", name=line.strip())
            )
        elif line and not inner and (heads or line[:1] in ">x"):
            found.append(DiffLine(_HEADS.get(line[:1], "diff-head"), name=line))
    return found


def _exchanged(gone: list[str], came: list[str]) -> Iterator[DiffLine]:
    """Lines that went and lines that came in their place; where as many came as went, word by word."""
    pairs = (
        [_compared(old, new) for old, new in zip(gone, came, strict=True)]
        if len(gone) == len(came)
        else []
    )
    olds = [old for old, _ in pairs] or [((False, line),) for line in gone]
    news = [new for _, new in pairs] or [((False, line),) for line in came]
    yield from (DiffLine("gone", words) for words in olds)
    yield from (DiffLine("came", words) for words in news)


def _compared(old: str, new: str) -> tuple[Marked, Marked]:
    """Two lines with the words marked that the other does not have."""
    plain = ((False, old),), ((False, new),)
    if max(len(old), len(new)) > MAX_COMPARED:
        return plain
    before = _WORDS.findall(old)
    after = _WORDS.findall(new)
    match = SequenceMatcher(None, before, after, autojunk=False)
    if match.ratio() < LIKE:
        return plain
    codes = match.get_opcodes()
    parts = [
        (kind != "equal", "".join(before[i:j]), "".join(after[k:m]))
        for kind, i, j, k, m in codes
    ]
    return tuple((new, gone) for new, gone, _ in parts if gone), tuple(
        (new, came) for new, _, came in parts if came
    )


ROUTES = {"/tree/{tree}/diff/{other}": diff_page}
