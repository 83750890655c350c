r"""A tree as an ACE playbook, and cards from one. Pure.

A playbook is text: sections, and in them one line a card, `[ID] helpful=WINS harmful=LOSSES :: TEXT`. Ours has a
section a domain (`## geometry`, or `## algebra + geometry` for cards of both) and in it one a difficulty (`### hard`).

A line break in a card is written ` ¶ ` and a pilcrow of the text itself is doubled. Backslash escapes would not do:
`\n` begins `\neq` and `\nu`, and doubling every backslash would spoil the LaTeX for the model that reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kace.errors import DataError
from kace.tree.bundle import Bundle, Refused
from kace.tree.card import PREFIXES, UNIVERSAL, Card, CardError, Difficulty, Status, card_of
from kace.tree.card_text import TRIGGER_WORDS, USEFUL
from kace.tree.merge import MAX_COUNT
from kace.tree.tree import EpistemicTree

BULLET = re.compile(
    r"^\s*\[(?P<id>[^\]\s]{1,80})\]\s+helpful=(?P<helpful>\d{1,16})\s+harmful=(?P<harmful>\d{1,16})\s*::"
)
HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*$")
BREAK = re.compile(r"¶¶| ¶(?: |$)")


def to_playbook(tree: EpistemicTree) -> str:
    """The tree as an ACE playbook, without its deprecated cards."""
    cells: dict[tuple[str, ...], dict[Difficulty, list[Card]]] = {}
    for card in sorted(tree.cards.values(), key=lambda card: card.card_id):
        if card.status is not Status.DEPRECATED:
            cells.setdefault(tuple(sorted(card.domain_tags)), {}).setdefault(card.difficulty_tag, []).append(card)
    order = {name: place for place, name in enumerate((*tree.domain_names, UNIVERSAL))}
    lines = ["# Playbook", ""]
    for domains in sorted(cells, key=lambda names: (len(names), [order.get(name, len(order)) for name in names])):
        lines += [f"## {' + '.join(domains)}", ""]
        for difficulty in Difficulty:
            if cards := cells[domains].get(difficulty):
                lines += [f"### {difficulty.value}", "", *map(_line, cards), ""]
    return "\n".join(lines[:-1]) + "\n"


def is_playbook(text: str) -> bool:
    """Whether a text looks like a playbook rather than JSON."""
    return any(BULLET.match(line) for line in text.split("\n"))


def read_playbook(text: str, domains: Iterable[str]) -> Bundle:
    """Cards from a playbook, each experimental; lines that do not fit the card rules are refused with the reason.

    Without a `### difficulty` above it a card is universal, and so is its domain where the section names none of
    `domains`. A bullet of another tool keeps its text: its name becomes a card id (`str-00012` is
    `MICRO_STR_00012`) and, where it has no trigger header, the first words of its section's title become its trigger.
    """
    known = {*domains, UNIVERSAL}
    section = _Section()
    cards: list[Card] = []
    refused: list[Refused] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if heading := HEADING.match(line):
            section = section.under(len(heading[1]), heading[2], known)
        elif bullet := BULLET.match(line):
            try:
                cards.append(_card(bullet, line[bullet.end() :], section))
            except CardError as error:
                refused.append(Refused(f"line {number}", str(error)))
        elif line.lstrip().startswith("["):
            refused.append(Refused(f"line {number}", "not of the form [id] helpful=N harmful=N :: text"))
    if not cards and not refused:
        raise DataError("no card lines in the playbook", fix="write lines like [ID] helpful=0 harmful=0 :: text")
    return Bundle((), tuple(cards), tuple(refused))


@dataclass(frozen=True, slots=True)
class _Section:
    """Where in a playbook a line stands."""

    title: str = "any problem"
    domains: tuple[str, ...] = (UNIVERSAL,)
    difficulty: Difficulty = Difficulty.UNIVERSAL

    def under(self, depth: int, heading: str, known: set[str]) -> _Section:
        if depth > 2 and heading in {difficulty.value for difficulty in Difficulty}:
            return _Section(self.title, self.domains, Difficulty(heading))
        names = tuple(part.strip() for part in heading.split("+"))
        return _Section(heading, names if known.issuperset(names) else (UNIVERSAL,))


def _line(card: Card) -> str:
    counts = f"helpful={card.provenance.n_wins} harmful={card.provenance.n_losses}"
    return f"[{card.card_id}] {counts} :: {card.payload.replace('¶', '¶¶').replace(chr(10), ' ¶ ')}"


def _card(bullet: re.Match[str], text: str, section: _Section) -> Card:
    payload = BREAK.sub(lambda mark: "¶" if mark[0] == "¶¶" else "\n", text.removeprefix(" "))
    helpful, harmful = int(bullet["helpful"]), int(bullet["harmful"])
    record = {
        "card_id": _card_id(bullet["id"]),
        "payload": payload if payload.startswith(USEFUL) else f"{_header(section.title)}\n\n{payload.strip()}",
        "routing_conditions": [],
        "difficulty_tag": section.difficulty.value,
        "domain_tags": list(section.domains),
        "helpfulness_score": 0.0,
        "provenance": {
            "source": f"playbook bullet {bullet['id']}",
            "promotion_status": Status.EXPERIMENTAL.value,
            "n_uses": min(helpful + harmful, MAX_COUNT),
            "n_wins": helpful,
            "n_losses": harmful,
        },
    }
    return card_of(record)


def _card_id(name: str) -> str:
    """The bullet's own id where it can be a card's, else one made of its words."""
    tokens = [token for token in re.split(r"[^A-Za-z0-9]+", name.upper()) if token]
    return name if name.startswith(PREFIXES) else "_".join(["MICRO", *tokens])


def _header(title: str) -> str:
    words = re.findall(r"[A-Za-z0-9]+", title.lower())[:TRIGGER_WORDS]
    return f"{USEFUL}\n- {' '.join(words) or 'any problem'}"
