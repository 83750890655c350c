"""A tree as text for others: the SPEC's JSON, an ACE playbook, a SKILL.md; and back from the first two. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from enum import StrEnum

from kace.errors import DataError
from kace.tree.bundle import Bundle, read_bundle
from kace.tree.card import UNIVERSAL, Card, Difficulty, Status
from kace.tree.playbook import is_playbook, read_playbook, to_playbook
from kace.tree.tree import EpistemicTree

SKILL_NAME_CHARS = 64
SKILL_DESCRIPTION_CHARS = 1024


class Format(StrEnum):
    """The forms a tree can be written in."""

    JSON = "json"
    PLAYBOOK = "playbook"
    SKILL = "skill"


def export(tree: EpistemicTree, form: Format, name: str) -> str:
    """The tree as text in one of the forms; `name` is what a skill calls itself."""
    if form is Format.JSON:
        return to_json(tree)
    return to_playbook(tree) if form is Format.PLAYBOOK else to_skill(tree, name)


def to_json(tree: EpistemicTree) -> str:
    """The SPEC's JSON form: the whole tree, in canonical order, so that equal trees give equal bytes."""
    record = {
        "domains": [domain.model_dump(mode="json") for domain in tree.domains],
        "cards": [card.model_dump(mode="json") for card in _sorted(tree.cards.values())],
    }
    return json.dumps(record, ensure_ascii=False, indent=2) + "\n"


def to_skill(tree: EpistemicTree, name: str) -> str:
    """A SKILL.md: front matter, then one section a card that is not deprecated.

    A card's text stands in a fence longer than any it holds, so that no card can end its own section.
    """
    cards = [card for card in _sorted(tree.cards.values()) if card.status is not Status.DEPRECATED]
    slug = _slug(name)
    topics = ", ".join(domain.replace("_", " ") for domain in tree.domain_names)
    about = f"{len(cards)} worked techniques and checks for mathematics" + (f": {topics}." if topics else ".")
    about += " Use when solving a problem that one of the triggers below describes."
    lines = [
        "---",
        f"name: {slug}",
        f"description: {json.dumps(_cut(about), ensure_ascii=False)}",
        "---",
        "",
        f"# {slug}",
        "",
        "Read the triggers first. A section applies where its `Useful when:` fits and its `Do not apply if:` does not.",
    ]
    for card in cards:
        lines += ["", *_skill_section(card)]
    return "\n".join(lines) + "\n"


def read_exchange(data: bytes, domains: Iterable[str]) -> Bundle:
    """Domains and cards from SPEC JSON, JSON lines or an ACE playbook, whichever the bytes are.

    `domains` are the names a playbook's sections may stand for. Raises `DataError` where nothing can be read.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError("not UTF-8", fix="save the file as UTF-8") from None
    return read_playbook(text, domains) if is_playbook(text) else read_bundle(text)


def _skill_section(card: Card) -> list[str]:
    places = ", ".join("any domain" if tag == UNIVERSAL else tag.replace("_", " ") for tag in card.domain_tags)
    text = card.payload.strip("\n")
    if card.routing_conditions:
        text += "\n\nRouting:\n" + "\n".join(f"- {condition}" for condition in card.routing_conditions)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    difficulty = "" if card.difficulty_tag is Difficulty.UNIVERSAL else f"{card.difficulty_tag.value} problems, "
    return [f"## {card.card_id}", "", f"For {difficulty}{places}.", "", f"{fence}text", *text.split("\n"), fence]


def _sorted(cards: Iterable[Card]) -> list[Card]:
    return sorted(cards, key=lambda card: card.card_id)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:SKILL_NAME_CHARS].strip("-") or "kace-cards"


def _cut(text: str) -> str:
    return text if len(text) <= SKILL_DESCRIPTION_CHARS else text[: SKILL_DESCRIPTION_CHARS - 1] + "…"
