r"""A tree as text for others, and cards from such text: the SPEC's JSON, JSON lines, an ACE playbook, a SKILL.md. Pure.

A playbook has a section a domain (`## algebra + geometry` for cards of both) and in it one a difficulty (`### hard`). A
line break is ` ¶ ` there, and a pilcrow doubled: a backslash escape would not do, since `\n` begins `\neq`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from kace.cards.card import (
    MAX_COUNT,
    PREFIXES,
    UNIVERSAL,
    Card,
    CardError,
    Difficulty,
    card_of,
    read_card,
    read_json,
)
from kace.cards.card_text import TRIGGER_WORDS, USEFUL
from kace.cards.loose import loosened
from kace.cards.tree import Domain, EpistemicTree, TreeError, domain_of
from kace.errors import DataError

SKILL_NAME_CHARS = 64
SKILL_DESCRIPTION_CHARS = 1024
_NOT_CARDS = 'give a card, a list of cards, {"domains": [...], "cards": [...]}, JSON lines, or an ACE playbook'
_BULLET = re.compile(
    r"^\s*\[(?P<id>[^\]\s]{1,80})\]\s+helpful=(?P<helpful>\d{1,16})\s+harmful=(?P<harmful>\d{1,16})\s*::"
)
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*$")
_BREAK = re.compile(r"¶¶| ¶(?: |$)")


class TreeFormat(StrEnum):
    """The forms a tree can be written in."""

    JSON = "json"
    PLAYBOOK = "playbook"
    SKILL = "skill"


class Bundle(NamedTuple):
    """What a file holds that fits the rules, and the rest with reasons."""

    domains: tuple[Domain, ...]
    cards: tuple[Card, ...]
    refused: tuple[
        str, ...
    ] = ()  # where in the file each card was that is left out, and why
    changed: Mapping[
        str, tuple[str, ...]
    ] = {}  # by card id, what was changed to make a loosely written card fit


def export(tree: EpistemicTree, form: TreeFormat, name: str) -> str:
    """The tree as text in one of the forms; `name` is what a skill calls itself."""
    if form is TreeFormat.SKILL:
        return to_skill(tree, name)
    return to_json(tree) if form is TreeFormat.JSON else to_playbook(tree)


def read_exchange(data: bytes, domains: Iterable[str]) -> Bundle:
    """Domains and cards from SPEC JSON, JSON lines or a playbook whose sections may name these domains.

    A loosely written card is made to fit, and a bad one refused while the others are kept. A bad domain, or a text that
    is none of these, raises `DataError`.
    """
    changed: dict[str, tuple[str, ...]] = {}

    def read(value: object) -> Card:
        fitting, changes = loosened(value)
        card = card_of(fitting)
        if changes:
            changed[card.card_id] = changes
        return card

    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError("not UTF-8", fix="save the file as UTF-8") from None
    if any(_BULLET.match(line) for line in text.split("\n")):
        return read_playbook(text, domains)
    if not text.strip():
        raise DataError("no cards: the input is empty", fix=_NOT_CARDS)
    if not _is_lines(text):
        return _read_value(read_json(text), read)._replace(changed=changed)
    lines = (
        (number, line)
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip()
    )
    cards = (
        (f"line {number}", partial(read_card, line, read)) for number, line in lines
    )
    return _bundle((), cards)._replace(changed=changed)


def sorted_out(
    tree: EpistemicTree, bundle: Bundle
) -> tuple[dict[str, Card], list[str]]:
    """The cards that can be added, and those that cannot, with reasons. A card the tree has already is in neither."""
    fitting: dict[str, Card] = {}
    refused = list(bundle.refused)
    for each in bundle.cards:
        name = each.card_id
        if name in tree and tree.card(name) == each:
            continue
        try:
            if name in fitting:
                raise TreeError(
                    "the file has two cards of this id",
                    fix="rename or remove one of them",
                )
            if name in tree:
                raise TreeError(
                    "the tree has another card of this id",
                    fix="kace tree edit, or choose another id",
                )
            EpistemicTree.of(tree.domains, (each,))
            fitting[name] = each
        except TreeError as error:
            refused.append(f"{name}: {str(error).removeprefix(f'card {name}: ')}")
    return fitting, refused


def tree_from_json(data: bytes) -> EpistemicTree:
    """A whole tree from the SPEC's JSON; the first bad card raises. Cards without a registry name their own domains."""
    value = read_json(data)
    record = {"cards": value} if isinstance(value, list) else value
    if not isinstance(record, dict) or not isinstance(record.get("cards"), list):
        raise TreeError(
            "not a tree",
            fix='give a list of cards, or {"domains": [...], "cards": [...]}',
        )
    domains, cards, refused, _ = _read_value(record)
    for each in refused:
        raise CardError(each)
    return EpistemicTree.of(
        domains_named(cards) if record.get("domains") is None else domains, cards
    )


def domains_named(cards: Iterable[Card]) -> tuple[Domain, ...]:
    """A registry of the domains that cards are tagged with, for cards that come without one."""
    names = sorted({tag for card in cards for tag in card.domain_tags} - {UNIVERSAL})
    return tuple(
        Domain(name=name, description=name.replace("_", " ")) for name in names
    )


def read_domains(text: str) -> tuple[Domain, ...]:
    """A registry from JSON: a list of domains, or an object that holds one under `domains`."""
    value = read_json(text)
    return _domains(value.get("domains") if isinstance(value, dict) else value)


def to_json(tree: EpistemicTree) -> str:
    """The SPEC's JSON form: the whole tree, in canonical order, so that equal trees give equal bytes."""
    parts: dict[str, Iterable[Domain | Card]] = {"domains": tree.domains, "cards": tree}
    record = {
        name: [each.model_dump(mode="json") for each in part]
        for name, part in parts.items()
    }
    return json.dumps(record, ensure_ascii=False, indent=2) + "\n"


def to_playbook(tree: EpistemicTree) -> str:
    """The tree as an ACE playbook, without its deprecated cards."""
    cells: dict[tuple[str, ...], dict[Difficulty, list[Card]]] = {}
    for card in tree.shown:
        cells.setdefault(tuple(sorted(card.domain_tags)), {}).setdefault(
            card.difficulty_tag, []
        ).append(card)
    order = {name: place for place, name in enumerate((*tree.domain_names, UNIVERSAL))}
    lines = ["# Playbook", ""]
    for domains in sorted(
        cells,
        key=lambda names: (len(names), [order.get(name, len(order)) for name in names]),
    ):
        lines += [f"## {' + '.join(domains)}", ""]
        for difficulty in Difficulty:
            if cards := cells[domains].get(difficulty):
                lines += [f"### {difficulty.value}", "", *map(_bullet, cards), ""]
    return "\n".join(lines[:-1]) + "\n"


def _bullet(card: Card) -> str:
    text = card.payload.replace("¶", "¶¶").replace("\n", " ¶ ")
    return f"[{card.card_id}] helpful={card.provenance.n_wins} harmful={card.provenance.n_losses} :: {text}"


def to_skill(tree: EpistemicTree, name: str) -> str:
    """A SKILL.md: front matter, then one section a card, fenced so that no card can end its own section."""
    cards = tree.shown
    slug = (
        re.sub(r"[^a-z0-9]+", "-", name.lower())
        .strip("-")[:SKILL_NAME_CHARS]
        .strip("-")
        or "kace-cards"
    )
    topics = ", ".join(domain.replace("_", " ") for domain in tree.domain_names)
    about = f"{len(cards)} worked techniques and checks for mathematics" + (
        f": {topics}." if topics else "."
    )
    about += " Use when solving a problem that one of the triggers below describes."
    if len(about) > SKILL_DESCRIPTION_CHARS:
        about = about[: SKILL_DESCRIPTION_CHARS - 1] + "…"
    front = [
        "---",
        f"name: {slug}",
        f"description: {json.dumps(about, ensure_ascii=False)}",
        "---",
    ]
    how = "A section applies where its `Useful when:` fits and its `Do not apply if:` does not."
    lines = [*front, "", f"# {slug}", "", f"Read the triggers first. {how}"]
    for card in cards:
        lines += ["", *_skill_section(card)]
    return "\n".join(lines) + "\n"


def read_playbook(text: str, domains: Iterable[str]) -> Bundle:
    """Cards from a playbook, each experimental; lines that do not fit the card rules are refused with the reason.

    Without a `### difficulty` above it a card is universal, and so where its section names none of `domains`. A bullet
    of another tool gets a card id (`str-00012` is `MICRO_STR_00012`) and, where it has no trigger, its section's title.
    """
    bundle = _bundle((), _playbook_cards(text, {*domains, UNIVERSAL}))
    if not bundle.cards and not bundle.refused:
        raise DataError(
            "no card lines in the playbook",
            fix="write lines like [ID] helpful=0 harmful=0 :: text",
        )
    return bundle


def _playbook_cards(
    text: str, known: set[str]
) -> Iterator[tuple[str, Callable[[], Card]]]:
    section = _Section()
    for number, line in enumerate(text.split("\n"), start=1):
        if heading := _HEADING.match(line):
            if len(heading[1]) > 2 and heading[2] in [*Difficulty]:
                section = section._replace(difficulty=Difficulty(heading[2]))
            else:
                names = tuple(part.strip() for part in heading[2].split("+"))
                section = _Section(
                    heading[2], names if known.issuperset(names) else (UNIVERSAL,)
                )
        elif line.lstrip().startswith("["):
            yield f"line {number}", partial(_card, line, section)


def _is_lines(text: str) -> bool:
    """Whether the first line is a whole JSON object and is not the last: then every line is a card."""
    first, _, rest = text.strip().partition("\n")
    if not rest or not first.startswith("{"):
        return False
    try:
        return isinstance(read_json(first), dict)
    except CardError:
        return first.rstrip().endswith("}")


def _read_value(value: object, read: Callable[[object], Card] = card_of) -> Bundle:
    """One card, a list of them, or the SPEC's object."""
    domains: tuple[Domain, ...] = ()
    cards = value if isinstance(value, list) else [value]
    if isinstance(value, dict) and "cards" in value:
        cards = value["cards"]
        if unknown := sorted(set(value) - {"domains", "cards"}):
            raise DataError(
                f"unknown field '{unknown[0]}' beside domains and cards",
                fix="remove it",
            )
        if not isinstance(cards, list):
            raise DataError(
                f"'cards' is a {type(cards).__name__}, not a list", fix=_NOT_CARDS
            )
        domains = _domains([] if (listed := value.get("domains")) is None else listed)
    return _bundle(
        domains,
        ((f"card {n}", partial(read, each)) for n, each in enumerate(cards, start=1)),
    )


def _bundle(
    domains: tuple[Domain, ...], reads: Iterable[tuple[str, Callable[[], Card]]]
) -> Bundle:
    cards: list[Card] = []
    refused: list[str] = []
    for where, read in reads:
        try:
            cards.append(read())
        except CardError as error:
            refused.append(f"{where}: {error}")
    return Bundle(domains, tuple(cards), tuple(refused))


def _domains(value: object) -> tuple[Domain, ...]:
    if not isinstance(value, list):
        raise DataError(
            "the domains are not a list",
            fix='write [{"name": "geometry", "description": "..."}]',
        )
    return tuple(map(domain_of, value))


def _skill_section(card: Card) -> list[str]:
    places = ", ".join(
        "any domain" if tag == UNIVERSAL else tag.replace("_", " ")
        for tag in card.domain_tags
    )
    text = card.payload.strip("\n")
    if card.routing_conditions:
        text += "\n\nRouting:\n" + "\n".join(
            f"- {condition}" for condition in card.routing_conditions
        )
    fence = "`" * max(
        3, 1 + max((len(run) for run in re.findall("`+", text)), default=0)
    )
    difficulty = (
        ""
        if card.difficulty_tag is Difficulty.UNIVERSAL
        else f"{card.difficulty_tag.value} problems, "
    )
    return [
        f"## {card.card_id}",
        "",
        f"For {difficulty}{places}.",
        "",
        f"{fence}text",
        *text.split("\n"),
        fence,
    ]


class _Section(NamedTuple):
    """Where in a playbook a line is."""

    title: str = "any problem"
    domains: tuple[str, ...] = (UNIVERSAL,)
    difficulty: Difficulty = Difficulty.UNIVERSAL


def _card(line: str, section: _Section) -> Card:
    bullet = _BULLET.match(line)
    if bullet is None:
        raise CardError("not of the form [id] helpful=N harmful=N :: text")
    text = line[bullet.end() :].removeprefix(" ")
    payload = _BREAK.sub(lambda mark: "¶" if mark[0] == "¶¶" else "\n", text)
    if not payload.startswith(USEFUL):
        words = re.findall(r"[A-Za-z0-9]+", section.title.lower())[:TRIGGER_WORDS]
        payload = f"{USEFUL}\n- {' '.join(words) or 'any problem'}\n\n{payload.strip()}"
    name = bullet["id"]
    helpful = int(bullet["helpful"])
    harmful = int(bullet["harmful"])
    tokens = [token for token in re.split(r"[^A-Za-z0-9]+", name.upper()) if token]
    counts = {
        "n_uses": min(helpful + harmful, MAX_COUNT),
        "n_wins": helpful,
        "n_losses": harmful,
    }
    record = {
        "card_id": name if name.startswith(PREFIXES) else "_".join(["MICRO", *tokens]),
        "payload": payload,
        "routing_conditions": [],
        "difficulty_tag": section.difficulty.value,
        "domain_tags": list(section.domains),
        "helpfulness_score": 0.0,
        "provenance": {"source": f"playbook bullet {name}", **counts},
    }
    return card_of(record)
