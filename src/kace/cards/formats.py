"""Read cards that people and other tools wrote, and write trees for other tools.

The forms are the contract's JSON, JSON lines, a SKILL.md and the draft of one card.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kace.cards.card import (
    BODY_CAPS,
    EXAMPLE,
    ID,
    PREFIXES,
    UNIVERSAL,
    USEFUL,
    WORKED,
    Card,
    CardError,
    CardText,
    Difficulty,
    TextError,
    card_of,
    line_count,
    read_card,
    read_json,
    read_payload,
)
from kace.cards.tree import Domain, EpistemicTree, TreeError, domain_of
from kace.errors import DataError
from kace.problems import DATA

SOURCE = "imported"  # the source of a card that names none
SKILL_NAME_CHARS = 64
SKILL_DESCRIPTION_CHARS = 1024
_NOT_CARDS = 'give a card, a list of cards, {"domains": [...], "cards": [...]} or JSON lines'
_DEFAULTS: Mapping[str, Any] = {
    "routing_conditions": [],
    "helpfulness_score": 0.0,
    "provenance": {},
}


# Writing


def to_json(tree: EpistemicTree) -> str:
    """Return the whole tree in canonical order: equal trees give equal bytes."""
    record = {
        "domains": [domain.model_dump(mode="json") for domain in tree.domains],
        "cards": [card.model_dump(mode="json") for card in tree],
    }
    return json.dumps(record, ensure_ascii=False, indent=2) + "\n"


def to_skill(tree: EpistemicTree, name: str) -> str:
    """Return a SKILL.md: front matter, then one fenced section per card."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    slug = slug[:SKILL_NAME_CHARS].strip("-") or "kace-cards"
    topics = ", ".join(domain.replace("_", " ") for domain in tree.domain_names)
    about = f"{len(tree.shown)} worked techniques and checks for mathematics"
    about += f": {topics}." if topics else "."
    about += (
        " Use when solving a problem that one of the triggers below describes."
    )
    if len(about) > SKILL_DESCRIPTION_CHARS:
        about = about[: SKILL_DESCRIPTION_CHARS - 1] + "…"
    lines = [
        "---",
        f"name: {slug}",
        f"description: {json.dumps(about, ensure_ascii=False)}",
        "---",
        "",
        f"# {slug}",
        "",
        "Read the triggers first. A section applies where its `Useful when:` fits and"
        " its `Do not apply if:` does not.",
    ]
    for card in tree.shown:
        lines += ["", *_skill_section(card)]
    return "\n".join(lines) + "\n"


def _skill_section(card: Card) -> list[str]:
    places = []
    for tag in card.domain_tags:
        places.append(
            "any domain" if tag == UNIVERSAL else tag.replace("_", " ")
        )
    where = ", ".join(places)
    if card.difficulty_tag is not Difficulty.UNIVERSAL:
        where = f"{card.difficulty_tag.value} problems, {where}"
    text = card.payload.strip("\n")
    if card.routing_conditions:
        text += "\n\nRouting:"
    for condition in card.routing_conditions:
        text += f"\n- {condition}"
    # A longer fence than any in the text, so that no card can end its own section.
    fence = "```"
    while fence in text:
        fence += "`"
    return [
        f"## {card.card_id}",
        "",
        f"For {where}.",
        "",
        f"{fence}text",
        text,
        fence,
    ]


# Reading


class Bundle(NamedTuple):
    """The cards and domains of a file, and why others were refused."""

    domains: tuple[Domain, ...]
    cards: tuple[Card, ...]
    refused: tuple[str, ...]  # the place in the file, and the reason


def read_exchange(data: bytes) -> Bundle:
    """Read domains and cards from JSON or JSON lines.

    A bad card is refused while the others are kept. Raise `DataError` for a bad domain,
    or a text of another form.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(
            "not UTF-8",
            fix="save the file as UTF-8",
        ) from None
    if not text.strip():
        raise DataError(
            "no cards: the input is empty",
            fix=_NOT_CARDS,
        )
    if not _is_lines(text):
        return _read_value(read_json(text), card_with_defaults)
    lines = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            lines.append((f"line {number}", line))
    return _bundle((), lines, lambda line: read_card(line, card_with_defaults))


def card_with_defaults(value: object) -> Card:
    """Return the card of a record, whose less important fields may be missing."""
    if not isinstance(value, dict):
        return card_of(value)
    record = dict(value)
    for name, default in _DEFAULTS.items():
        if record.get(name) is None:
            record[name] = default
    provenance = record["provenance"]
    if isinstance(provenance, dict) and provenance.get("source") is None:
        record["provenance"] = provenance | {"source": SOURCE}
    return card_of(record)


def read_domains(text: str) -> tuple[Domain, ...]:
    """Read a registry: a list of domains, or an object with one under `domains`."""
    value = read_json(text)
    return _domains(value.get("domains") if isinstance(value, dict) else value)


def starter_domains() -> tuple[Domain, ...]:
    """Return the domains that a tree of the starter set begins with."""
    return read_domains(
        (DATA / "starter-domains.json").read_text(encoding="utf-8")
    )


def tree_from_json(data: bytes) -> EpistemicTree:
    """Read a whole tree; raise for the first bad card.

    Cards without a registry name their own domains.
    """
    value = read_json(data)
    record = {"cards": value} if isinstance(value, list) else value
    if not isinstance(record, dict) or not isinstance(
        record.get("cards"), list
    ):
        raise TreeError(
            "not a tree",
            fix='give a list of cards, or {"domains": [...], "cards": [...]}',
        )
    bundle = _read_value(record, card_of)
    for reason in bundle.refused:
        raise CardError(reason)
    domains = bundle.domains
    if record.get("domains") is None:
        domains = domains_named(bundle.cards)
    return EpistemicTree.of(domains, bundle.cards)


def domains_named(cards: Iterable[Card]) -> tuple[Domain, ...]:
    """Return a registry of the domains that cards are tagged with."""
    tags: set[str] = set()
    for card in cards:
        tags.update(card.domain_tags)
    names = sorted(tags - {UNIVERSAL})
    return tuple(
        Domain(name=name, description=name.replace("_", " ")) for name in names
    )


def select_new(
    tree: EpistemicTree, bundle: Bundle
) -> tuple[dict[str, Card], list[str]]:
    """Return the cards that can be added to a tree, and why others cannot.

    A card the tree has already is in neither.
    """
    fitting: dict[str, Card] = {}
    refused = list(bundle.refused)
    for card in bundle.cards:
        name = card.card_id
        try:
            if name in fitting:
                raise TreeError(
                    "the file has two cards of this id",
                    fix="rename or remove one of them",
                )
            if tree.cards.get(name) == card:
                continue
            if name in tree:
                raise TreeError(
                    "the tree already has a card of this id",
                    fix="edit it, or choose another id",
                )
            EpistemicTree.of(tree.domains, [card])
            fitting[name] = card
        except TreeError as error:
            refused.append(
                f"{name}: {str(error).removeprefix(f'card {name}: ')}"
            )
    return fitting, refused


def _is_lines(text: str) -> bool:
    """Whether the first line is a JSON object of its own: then every line is a card."""
    first, _, rest = text.strip().partition("\n")
    if not rest or not first.startswith("{"):
        return False
    try:
        return isinstance(read_json(first), dict)
    except CardError:
        return first.rstrip().endswith("}")


def _read_value(value: object, read: Callable[[object], Card]) -> Bundle:
    """Read one card, a list of cards, or an object of domains and cards."""
    domains: tuple[Domain, ...] = ()
    cards = value if isinstance(value, list) else [value]
    if isinstance(value, dict) and "cards" in value:
        for name in sorted(value.keys() - {"domains", "cards"}):
            raise DataError(
                f"unknown field '{name}' beside domains and cards",
                fix="remove it",
            )
        cards = value["cards"]
        if not isinstance(cards, list):
            raise DataError(
                "the cards are not a list",
                fix=_NOT_CARDS,
            )
        if value.get("domains") is not None:
            domains = _domains(value["domains"])
    places = [f"card {number}" for number in range(1, len(cards) + 1)]
    return _bundle(domains, zip(places, cards, strict=True), read)


def _domains(value: object) -> tuple[Domain, ...]:
    if not isinstance(value, list):
        raise DataError(
            "the domains are not a list",
            fix='write [{"name": "geometry", "description": "..."}]',
        )
    return tuple(map(domain_of, value))


def _bundle(
    domains: tuple[Domain, ...],
    values: Iterable[tuple[str, Any]],
    read: Callable[[Any], Card],
) -> Bundle:
    cards: list[Card] = []
    refused: list[str] = []
    for place, value in values:
        try:
            cards.append(read(value))
        except CardError as error:
            refused.append(f"{place}: {error}")
    return Bundle(domains, tuple(cards), tuple(refused))


# Drafts


DIFFICULTY = (
    Difficulty.MEDIUM
)  # read from MS on, the first tier that reads cards
NAME_WORDS = 5
TEMPLATE = f"""\
# <a name of 2 to {NAME_WORDS} words>

{USEFUL}
- <its sign in 5 words>
- <another sign of it>

<the rule, in at most {BODY_CAPS[DIFFICULTY]} lines>

{EXAMPLE}
<a problem of this kind>
{WORKED}
<its solution in short lines, as the model shall write its own>
The answer is \\boxed{{<answer>}}.

{EXAMPLE}
<another one, with other numbers and another story>
{WORKED}
<its solution>
The answer is \\boxed{{<answer>}}.
"""
"""What an editor opens on. A part in <...> that is left as it is counts as missing."""
_OPEN = tuple(dict.fromkeys(re.findall(r"<[^<>\n]+>", TEMPLATE)))


class Draft(NamedTuple):
    """The card of a draft, or all its faults."""

    card: Card | None
    faults: tuple[TextError, ...] = ()


def read_draft(
    text: str,
    source: str,
    known: Container[str] = (),
) -> Draft:
    """Read a card that a person wrote: a name, when it helps, the rule, examples.

    The rest has defaults. Every fault is listed. `known` are the ids of the tree.
    """
    title = ""
    payload = text.strip()
    if payload.startswith("#"):
        title, _, payload = payload.partition("\n")
        title = title.lstrip("# ").strip()
        payload = payload.strip()
    content = read_payload(payload)
    card_id = _draft_id(title, content)
    named = list(_name_faults(card_id, title, known))
    faults = (*named, *content.faults, *_draft_faults(text, content))
    if faults:
        return Draft(None, faults)
    record = {
        "card_id": card_id,
        "payload": payload,
        "difficulty_tag": DIFFICULTY.value,
        "domain_tags": [UNIVERSAL],
        "provenance": {"source": source},
    }
    try:
        return Draft(card_with_defaults(record))
    except CardError as error:
        what = error.message.removeprefix(f"card {card_id!r}: ")
        return Draft(None, (TextError(what, error.fix),))


def _draft_id(title: str, content: CardText) -> str:
    """Return the id that a name, or else the triggers, make."""
    if re.fullmatch(ID, title) and title.startswith(PREFIXES):
        return title
    words = re.findall("[A-Z0-9]+", (title or " ".join(content.useful)).upper())
    return "_".join(("RUBRIC", *words[:NAME_WORDS]))


def _name_faults(
    card_id: str, title: str, known: Container[str]
) -> Iterator[TextError]:
    if not re.fullmatch(ID, card_id) and title not in _OPEN:
        yield TextError(
            f"has no name of 2 to {NAME_WORDS} words",
            "write it in the first line: # average speed there and back",
        )
    if card_id in known:
        yield TextError(
            f"has the name of a card that is there, {card_id}",
            f"choose another, or: kace tree edit TREE {card_id}",
        )


def _draft_faults(text: str, content: CardText) -> Iterator[TextError]:
    """Find what a draft lacks beyond the rules of every card."""
    for part in _OPEN:
        if part in text:
            yield TextError(
                f"still has {part}",
                "write it, or remove the line",
            )
    lines = line_count(content.body)
    cap = BODY_CAPS[DIFFICULTY]
    if EXAMPLE in content.body.split("\n"):
        what = f"has an '{EXAMPLE}' that is not whole"
        parts = f"write a problem, a line '{WORKED}' and a solution"
        yield TextError(
            what,
            f"{parts}; a blank line before '{EXAMPLE}'",
        )
    elif not content.examples:
        fix = f"add two, each with '{WORKED}' and a solution"
        yield TextError(
            f"has no '{EXAMPLE}'",
            f"{fix}: small models follow examples, not rules",
        )
    elif lines > cap:
        yield TextError(
            f"has a rule of {lines} lines",
            f"use at most {cap}",
        )
    for number, example in enumerate(content.examples, 1):
        if r"\boxed{" not in example.worked:
            yield TextError(
                f"has no answer in example {number}",
                r"end its solution with: The answer is \boxed{42}.",
            )
