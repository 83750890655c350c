r"""Read cards that people and other tools wrote, and write trees for other tools.

The forms are the contract's JSON, JSON lines, an ACE playbook, a SKILL.md and the
draft of a single card. A playbook has a section per domain (`## algebra + geometry`
for cards of both) and in it one per difficulty (`### hard`). A line break is ` ¶ `
there, and a pilcrow is doubled: a backslash escape would not do, since `\n` begins
`\neq`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from kace.cards.card import (
    AVOID,
    BODY_CAPS,
    BULLET,
    EXAMPLE,
    ID,
    LEGACY,
    MAX_COUNT,
    PREFIXES,
    TRIGGER_WORDS,
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
from kace.cards.tree import (
    Add,
    Domain,
    EpistemicTree,
    TreeError,
    applied,
    domain_of,
)
from kace.errors import DataError
from kace.problems import DATA

SOURCE = "imported"  # the source of a card that names none
SKILL_NAME_CHARS = 64
SKILL_DESCRIPTION_CHARS = 1024
_NOT_CARDS = (
    'give a card, a list of cards, {"domains": [...], "cards": [...]}, JSON lines,'
    " or an ACE playbook"
)
_BULLET = re.compile(
    r"""\s*\[(?P<id>[^\]\s]{1,80})\]\s+helpful=(?P<helpful>\d{1,16})
    \s+harmful=(?P<harmful>\d{1,16})\s*::\ ?(?P<text>.*)""",
    re.VERBOSE,
)
_TITLE = re.compile(r"(#{1,6})\s+(.*?)\s*$")
_BREAK = re.compile(r"¶¶| ¶(?: |$)")
_HEADING = re.compile(rf"\s*({USEFUL[:-1]}|{AVOID[:-1]})\b\s*:?\s*(.*)", re.IGNORECASE)
_LIST_MARK = re.compile(r"\s*(?:(?:[-*•–]|\d+[.)])\s+)?")


# Writing


class TreeFormat(StrEnum):
    """The forms a tree can be written in."""

    JSON = "json"
    PLAYBOOK = "playbook"
    SKILL = "skill"


def export(tree: EpistemicTree, form: TreeFormat, name: str) -> str:
    """Return the tree as text; `name` is the name of a skill."""
    if form is TreeFormat.SKILL:
        return to_skill(tree, name)
    return to_json(tree) if form is TreeFormat.JSON else to_playbook(tree)


def to_json(tree: EpistemicTree) -> str:
    """Return the whole tree in canonical order: equal trees give equal bytes."""
    record = {
        "domains": [domain.model_dump(mode="json") for domain in tree.domains],
        "cards": [card.model_dump(mode="json") for card in tree],
    }
    return json.dumps(record, ensure_ascii=False, indent=2) + "\n"


def to_playbook(tree: EpistemicTree) -> str:
    """Return the tree as an ACE playbook, without its deprecated cards."""
    places = {name: place for place, name in enumerate((*tree.domain_names, UNIVERSAL))}
    difficulties = list(Difficulty)

    def order(card: Card) -> tuple[int, list[int], int]:
        tags = sorted(card.domain_tags)
        known = [places[tag] for tag in tags]
        return len(tags), known, difficulties.index(card.difficulty_tag)

    lines = ["# Playbook"]
    section = ""
    difficulty = None
    for card in sorted(tree.shown, key=order):
        domains = " + ".join(sorted(card.domain_tags))
        if domains != section:
            section = domains
            difficulty = None
            lines += ["", f"## {section}"]
        if card.difficulty_tag is not difficulty:
            difficulty = card.difficulty_tag
            lines += ["", f"### {difficulty.value}", ""]
        record = card.provenance
        counts = f"helpful={record.n_wins} harmful={record.n_losses}"
        text = card.payload.replace("¶", "¶¶").replace("\n", " ¶ ")
        lines.append(f"[{card.card_id}] {counts} :: {text}")
    return "\n".join(lines) + "\n"


def to_skill(tree: EpistemicTree, name: str) -> str:
    """Return a SKILL.md: front matter, then one fenced section per card."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    slug = slug[:SKILL_NAME_CHARS].strip("-") or "kace-cards"
    topics = ", ".join(domain.replace("_", " ") for domain in tree.domain_names)
    about = f"{len(tree.shown)} worked techniques and checks for mathematics"
    about += f": {topics}." if topics else "."
    about += " Use when solving a problem that one of the triggers below describes."
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
        places.append("any domain" if tag == UNIVERSAL else tag.replace("_", " "))
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
    return [f"## {card.card_id}", "", f"For {where}.", "", f"{fence}text", text, fence]


# Reading


class Bundle(NamedTuple):
    """The cards and domains of a file, and why others were refused."""

    domains: tuple[Domain, ...]
    cards: tuple[Card, ...]
    refused: tuple[str, ...] = ()  # the place in the file, and the reason
    changed: Mapping[str, tuple[str, ...]] = {}
    """By card id, what was changed to make a loosely written card fit."""


def read_exchange(data: bytes, domains: Iterable[str]) -> Bundle:
    """Read domains and cards from JSON, JSON lines or a playbook.

    The sections of a playbook may name these domains. A loosely written card is made to
    fit, and a bad one is refused while the others are kept. Raise `DataError` for a bad
    domain, or a text that is none of these.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError("not UTF-8", fix="save the file as UTF-8") from None
    if any(_BULLET.match(line) for line in text.split("\n")):
        return read_playbook(text, domains)
    if not text.strip():
        raise DataError("no cards: the input is empty", fix=_NOT_CARDS)
    if not _is_lines(text):
        return _read_value(read_json(text), loose=True)
    lines = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            lines.append((f"line {number}", line))
    return _bundle(lines, (), loose=True)


def read_domains(text: str) -> tuple[Domain, ...]:
    """Read a registry: a list of domains, or an object with one under `domains`."""
    value = read_json(text)
    return _domains(value.get("domains") if isinstance(value, dict) else value)


def starter_domains() -> tuple[Domain, ...]:
    """Return the domains that a tree of the starter set begins with."""
    return read_domains((DATA / "starter-domains.json").read_text(encoding="utf-8"))


def tree_from_json(data: bytes) -> EpistemicTree:
    """Read a whole tree; raise for the first bad card.

    Cards without a registry name their own domains.
    """
    value = read_json(data)
    record = {"cards": value} if isinstance(value, list) else value
    if not isinstance(record, dict) or not isinstance(record.get("cards"), list):
        raise TreeError(
            "not a tree",
            fix='give a list of cards, or {"domains": [...], "cards": [...]}',
        )
    bundle = _read_value(record, loose=False)
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
            if tree.cards.get(name) != card:
                applied(tree, Add(card))
                fitting[name] = card
        except TreeError as error:
            refused.append(f"{name}: {str(error).removeprefix(f'card {name}: ')}")
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


def _read_value(value: object, *, loose: bool) -> Bundle:
    """Read one card, a list of cards, or an object of domains and cards."""
    domains: tuple[Domain, ...] = ()
    cards = value if isinstance(value, list) else [value]
    if isinstance(value, dict) and "cards" in value:
        for name in sorted(value.keys() - {"domains", "cards"}):
            raise DataError(
                f"unknown field '{name}' beside domains and cards", fix="remove it"
            )
        cards = value["cards"]
        if not isinstance(cards, list):
            raise DataError(
                f"'cards' is a {type(cards).__name__}, not a list", fix=_NOT_CARDS
            )
        if value.get("domains") is not None:
            domains = _domains(value["domains"])
    named = [(f"card {number}", card) for number, card in enumerate(cards, start=1)]
    return _bundle(named, domains, loose=loose)


def _domains(value: object) -> tuple[Domain, ...]:
    if not isinstance(value, list):
        raise DataError(
            "the domains are not a list",
            fix='write [{"name": "geometry", "description": "..."}]',
        )
    return tuple(map(domain_of, value))


def _bundle(
    values: Iterable[tuple[str, object]], domains: tuple[Domain, ...], *, loose: bool
) -> Bundle:
    """Read cards, each a text or a decoded value, with its place in the file."""
    cards: list[Card] = []
    refused: list[str] = []
    changed: dict[str, tuple[str, ...]] = {}

    def read(value: object) -> Card:
        fitting, changes = loosened(value) if loose else (value, ())
        card = card_of(fitting)
        if changes:
            changed[card.card_id] = changes
        return card

    for place, value in values:
        try:
            card = read_card(value, read) if isinstance(value, str) else read(value)
            cards.append(card)
        except CardError as error:
            refused.append(f"{place}: {error}")
    return Bundle(domains, tuple(cards), tuple(refused), changed)


# Playbooks


def read_playbook(text: str, domains: Iterable[str]) -> Bundle:
    """Read cards from a playbook, each experimental; list what breaks a rule.

    Without a `### difficulty` above it a card is universal, and so is its domain where
    its section names none of `domains`. A bullet of another tool gets a card id
    (`str-00012` is `MICRO_STR_00012`) and, without a trigger, its section's title.
    """
    known = {*domains, UNIVERSAL}
    title = "any problem"
    tags = [UNIVERSAL]
    difficulty = Difficulty.UNIVERSAL
    bullets: list[tuple[str, object]] = []
    refused = []
    for number, line in enumerate(text.split("\n"), start=1):
        heading = _TITLE.match(line)
        if heading and len(heading[1]) > 2 and heading[2] in list(Difficulty):
            difficulty = Difficulty(heading[2])
        elif heading:
            title = heading[2]
            names = [part.strip() for part in title.split("+")]
            tags = names if known.issuperset(names) else [UNIVERSAL]
            difficulty = Difficulty.UNIVERSAL
        elif line.lstrip().startswith("["):
            bullet = _BULLET.match(line)
            if bullet:
                record = _playbook_card(bullet, title)
                record["difficulty_tag"] = difficulty.value
                record["domain_tags"] = tags
                bullets.append((f"line {number}", record))
            else:
                what = "not of the form [id] helpful=N harmful=N :: text"
                refused.append(f"line {number}: {what}")
    if not bullets and not refused:
        raise DataError(
            "no card lines in the playbook",
            fix="write lines like [ID] helpful=0 harmful=0 :: text",
        )
    bundle = _bundle(bullets, (), loose=False)
    return bundle._replace(refused=(*bundle.refused, *refused))


def _playbook_card(bullet: re.Match[str], title: str) -> dict[str, object]:
    payload = _BREAK.sub(lambda m: "¶" if m[0] == "¶¶" else "\n", bullet["text"])
    if not payload.startswith(USEFUL):
        words = re.findall(r"[A-Za-z0-9]+", title.lower())[:TRIGGER_WORDS]
        trigger = " ".join(words) or "any problem"
        payload = f"{USEFUL}\n{BULLET}{trigger}\n\n{payload.strip()}"
    name = bullet["id"]
    card_id = name
    if not name.startswith(PREFIXES):
        tokens = re.findall(r"[A-Z0-9]+", name.upper())
        card_id = "_".join(["MICRO", *tokens])
    helpful = int(bullet["helpful"])
    harmful = int(bullet["harmful"])
    provenance = {
        "source": f"playbook bullet {name}",
        "n_uses": min(helpful + harmful, MAX_COUNT),
        "n_wins": helpful,
        "n_losses": harmful,
    }
    return {
        "card_id": card_id,
        "payload": payload,
        "routing_conditions": [],
        "helpfulness_score": 0.0,
        "provenance": provenance,
    }


# Looser forms


def loosened(value: object) -> tuple[object, tuple[str, ...]]:
    """Return a card's record that fits the rules, and what was changed, in words.

    This reads cards as papers and other stores write them. What fits already comes back
    as it is; what cannot be mended is left for the rules to refuse.
    """
    if not isinstance(value, dict):
        return value, ()
    record = dict(value)
    changes = []
    defaults: dict[str, object] = {
        "routing_conditions": [],
        "helpfulness_score": 0.0,
        "provenance": {},
    }
    for name, default in defaults.items():
        if record.get(name) is None:
            record[name] = default
            changes.append(f"added {name}")
    provenance = record["provenance"]
    if isinstance(provenance, dict) and provenance.get("source") is None:
        record["provenance"] = provenance | {"source": SOURCE}
        if "added provenance" not in changes:
            changes.append("added provenance.source")
    for name in LEGACY:
        if name in record:
            read = "read scope as domain tags"
            changes.append(read if name == "scope" else f"left out {name}")
    payload = record.get("payload")
    if isinstance(payload, str) and read_payload(payload).faults:
        _mend_header(record, payload, changes)
    return record, tuple(changes)


def _mend_header(record: dict[str, object], payload: str, changes: list[str]) -> None:
    """Write the header as bullets, and move long triggers to the routing conditions."""
    header, body = _loose_parts(payload)
    useful: list[str] = []
    avoid: list[str] = []
    section = None
    for line in header:
        heading = _HEADING.match(line)
        parts = [line]
        if heading:
            section = useful if heading[1].lower() == USEFUL[:-1].lower() else avoid
            parts = heading[2].split(";")
        if section is None:
            return
        for part in parts:
            text = _LIST_MARK.sub("", part, count=1).strip()
            if text:
                section.append(text)
    if _header(useful, avoid) != header:
        changes.append("wrote the header as bullets")
    long = [trigger for trigger in useful if len(trigger.split()) > TRIGGER_WORDS]
    short = [" ".join(trigger.split()[:TRIGGER_WORDS]) for trigger in useful]
    record["payload"] = "\n".join((*_header(short, avoid), "", body))
    conditions = record["routing_conditions"]
    if long and isinstance(conditions, list):
        new = [trigger for trigger in long if trigger not in conditions]
        record["routing_conditions"] = conditions + new
        cut = "a trigger" if len(long) == 1 else f"{len(long)} triggers"
        words = f"{TRIGGER_WORDS} words, whole among the routing conditions"
        changes.append(f"cut {cut} to {words}")


def _loose_parts(payload: str) -> tuple[list[str], str]:
    """Split a payload; a blank line before `Do not apply if:` is inside the header."""
    first, *rest = re.split(r"\n[ \t]*\n", payload.strip("\n"))
    header = first.split("\n")
    while rest and _HEADING.match(rest[0]):
        header += rest.pop(0).split("\n")
    return header, "\n\n".join(rest)


def _header(useful: list[str], avoid: list[str]) -> list[str]:
    lines = [USEFUL]
    lines += [f"{BULLET}{text}" for text in useful]
    if avoid:
        lines.append(AVOID)
    lines += [f"{BULLET}{text}" for text in avoid]
    return lines


# Drafts


DIFFICULTY = Difficulty.MEDIUM  # read from MS on, the first tier that reads cards
NAME_WORDS = 5
TEMPLATE = f"""\
# <a name of 2 to {NAME_WORDS} words>

{USEFUL}
- <what such a problem says, in at most 5 words>
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
    """The card of a draft or all its faults, and what was changed to make it fit."""

    card: Card | None
    faults: tuple[TextError, ...] = ()
    changes: tuple[str, ...] = ()


def read_draft(text: str, source: str, known: Container[str] = ()) -> Draft:
    """Read a card that a person wrote: a name, when it helps, the rule, examples.

    The rest has defaults. Every fault is listed. `known` are the ids of the tree.
    """
    text = text.strip()
    title = ""
    payload = text
    if text.startswith("#"):
        first, _, rest = text.partition("\n")
        title = first.lstrip("# ").strip()
        payload = rest.strip()
    record: dict[str, object] = {
        "payload": payload,
        "provenance": {"source": source},
        "routing_conditions": [],
        "helpfulness_score": 0.0,
        "difficulty_tag": DIFFICULTY.value,
        "domain_tags": [UNIVERSAL],
    }
    changes: list[str] = []
    content = read_payload(payload)
    if content.faults:
        _mend_header(record, payload, changes)
        content = read_payload(str(record["payload"]))
    card_id = _draft_id(title, content)
    named = list(_name_faults(card_id, title, known))
    faults = (*named, *content.faults, *_draft_faults(text, content))
    if faults:
        return Draft(None, faults)
    try:
        return Draft(card_of(record | {"card_id": card_id}), (), tuple(changes))
    except CardError as error:
        return Draft(
            None,
            (TextError(error.message.removeprefix(f"card {card_id!r}: "), error.fix),),
        )


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
            yield TextError(f"still has {part}", "write it, or remove the line")
    lines = line_count(content.body)
    cap = BODY_CAPS[DIFFICULTY]
    if EXAMPLE in content.body.split("\n"):
        what = f"has an '{EXAMPLE}' that is not whole"
        parts = f"write a problem, a line '{WORKED}' and a solution"
        yield TextError(what, f"{parts}; a blank line before '{EXAMPLE}'")
    elif not content.examples:
        fix = f"add two, each with '{WORKED}' and a solution"
        yield TextError(
            f"has no '{EXAMPLE}'", f"{fix}: small models follow examples, not rules"
        )
    elif lines > cap:
        yield TextError(f"has a rule of {lines} lines", f"use at most {cap}")
    for number, example in enumerate(content.examples, 1):
        if r"\boxed{" not in example.worked:
            yield TextError(
                f"has no answer in example {number}",
                r"end its solution with: The answer is \boxed{42}.",
            )
