"""What a change did to a card, as lines that a person reviews: what went, what came, and the words that differ."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher

from kace.tree.card import Card
from kace.tree.diff import TreeDiff, diff
from kace.tree.files import domains_named
from kace.tree.tree import EpistemicTree
from kace.web.markup import Html, join, tag, text

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
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
LIKE = 0.4
"""Lines less alike than this are another text, and are not compared word by word."""
MAX_COMPARED = 2_000


def card_diff(before: Card | None, after: Card | None) -> TreeDiff:
    """What turns one card into the other, as a tree's diff says it."""
    cards = [card for card in (before, after) if card is not None]
    domains = domains_named(cards)
    return diff(
        EpistemicTree.of(domains, [before] if before else []), EpistemicTree.of(domains, [after] if after else [])
    )


def diff_html(changes: TreeDiff, *, heads: bool = True) -> Html:
    """A diff on a page. Without `heads` the lines that name a card are left out: the page names it."""
    return tag("div", *_shown(changes.lines(), heads=heads), class_="diff", role="group")


def _shown(lines: Iterable[str], *, heads: bool) -> Iterator[Html]:
    gone: list[str] = []
    came: list[str] = []
    for line in lines:
        inner, mark = line.startswith("    "), line.lstrip()[:2]
        if inner and mark in {"- ", "-"} and not came:
            gone.append(line[6:])
            continue
        if inner and mark in {"+ ", "+"}:
            came.append(line[6:])
            continue
        yield from _exchanged(gone, came)
        gone, came = [], []
        if inner and mark in {"- ", "-"}:
            gone.append(line[6:])
        elif inner:
            yield _field(line.strip())
        elif heads or line[:1] in ">x":
            yield tag("div", line, class_=_HEADS.get(line[:1], "diff-head"))
    yield from _exchanged(gone, came)


_HEADS = {"+": "diff-head good", "-": "diff-head bad", "x": "diff-head bad", ">": "diff-head info"}


def _field(line: str) -> Html:
    """A field's old and new value, such as `n_uses: 2 -> 4`."""
    name, colon, rest = line.partition(": ")
    old, arrow, new = rest.partition(" -> ")
    if not (colon and arrow):
        return tag("div", line, class_="diff-same")
    return tag(
        "div",
        tag("span", FIELDS.get(name, name.replace("_", " ")), class_="muted"),
        " ",
        tag("del", old or "none"),
        " ",
        tag("span", "→", class_="muted"),
        " ",
        tag("ins", new or "none"),
        class_="diff-field",
    )


def _exchanged(gone: list[str], came: list[str]) -> Iterator[Html]:
    """Lines that went and lines that came in their place; where as many came as went, word by word."""
    marked = [_words(old, new) for old, new in zip(gone, came, strict=True)] if len(gone) == len(came) else []
    olds = [old for old, _ in marked] or [text(line) for line in gone]
    news = [new for _, new in marked] or [text(line) for line in came]
    yield from (_line("−", "removed", line, "diff-gone") for line in olds)
    yield from (_line("+", "added", line, "diff-came") for line in news)


def _line(sign: str, said: str, line: Html, class_: str) -> Html:
    return tag(
        "div",
        tag("span", sign, class_="diff-sign", aria_hidden="true"),
        tag("span", f"{said}: ", class_="hide"),
        tag("span", line),
        class_=class_,
    )


def _words(old: str, new: str) -> tuple[Html, Html]:
    """Two lines with the words marked that the other does not have."""
    if max(len(old), len(new)) > MAX_COMPARED:
        return text(old), text(new)
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    match = SequenceMatcher(None, before, after, autojunk=False)
    if match.ratio() < LIKE:
        return text(old), text(new)
    left: list[str] = []
    right: list[str] = []
    for kind, i, j, k, m in match.get_opcodes():
        was, now = "".join(before[i:j]), "".join(after[k:m])
        left.append(was if kind == "equal" or not was else tag("del", was))
        right.append(now if kind == "equal" or not now else tag("ins", now))
    return join(left), join(right)
