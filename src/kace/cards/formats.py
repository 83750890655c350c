"""Read cards that people and other tools wrote, and write trees for other tools.

The forms are the contract's JSON, JSON lines, a SKILL.md and the text of one card.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kace.cards.card import (
    BODY_CAPS,
    BULLET,
    EXAMPLE,
    PREFIXES,
    TRIGGER_WORDS,
    UNIVERSAL,
    USEFUL,
    WORKED,
    Card,
    CardError,
    Difficulty,
    card_of,
    cut_triggers,
    read_json,
    split_examples,
    text_of,
)
from kace.cards.tree import Domain, EpistemicTree, domains_of
from kace.errors import DataError
from kace.files import DATA

SOURCE = "imported"  # the source of a card that names none
_NOT_CARDS = (
    'give a card, a list of cards, {"domains": [...], "cards": [...]}, JSON lines, or the'
    " text of one card, which begins with '# name'"
)
_DROPPED = ("scope", "tier_eligibility", "tag")  # fields of old stores
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


# Reading


class Bundle(NamedTuple):
    """The cards and domains of a file, and what was mended in them."""

    domains: tuple[Domain, ...]
    cards: tuple[Card, ...]
    mended: tuple[str, ...] = ()


def read_exchange(data: bytes, source: str = SOURCE) -> Bundle:
    """Read domains and cards from JSON or JSON lines, or one card from its text.

    Raise `DataError` for the first card or domain that breaks a rule.
    """
    text = text_of(data).strip()
    if text.startswith("#"):
        return Bundle((), (read_text_card(text, source),))
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > 1 and all(line.startswith('{"') for line in lines):
        text = "[" + ",\n".join(lines) + "]"
    value = read_json(text)
    domains: object = []
    cards = value if isinstance(value, list) else [value]
    if isinstance(value, dict) and not {"domains", "cards"}.isdisjoint(value):
        domains = value.get("domains", [])
        cards = value.get("cards", [])
        if not isinstance(cards, list) or value.keys() - {"domains", "cards"}:
            raise DataError(
                "the cards are no list, or there are unknown fields beside them",
                fix=_NOT_CARDS,
            )
    registry = domains_of(domains)
    found = []
    mended = []
    for number, each in enumerate(cards, 1):
        record, notes = mend_record(each)
        try:
            card = card_of(record)
        except CardError as error:
            what = f"card {number}: {error.message}"
            raise CardError(what, fix=error.fix) from None
        found.append(card)
        mended += [f"{card.card_id}: {note}" for note in notes]
    return Bundle(registry, tuple(found), tuple(mended))


def mend_record(value: object) -> tuple[object, list[str]]:
    """Return a record with what other stores leave out, and what was mended in it.

    Old stores have `scope`, whose names become domain tags, and fields that are
    dropped. The form of papers has routing conditions instead of a trigger header,
    and -1 for an unknown epoch.
    """
    notes: list[str] = []
    if not isinstance(value, dict):
        return value, notes
    record: dict[str, Any] = {**_DEFAULTS}
    for name, each in value.items():
        if each is not None and name not in _DROPPED:
            record[name] = each
    tags = record.get("domain_tags", [])
    if "scope" in value and isinstance(tags, list):
        tags = [*map(str, tags), *_tags_of(value["scope"])]
        record["domain_tags"] = list(dict.fromkeys(tags))
    provenance = record["provenance"]
    if isinstance(provenance, dict):
        record["provenance"] = provenance = {"source": SOURCE, **provenance}
        if provenance.get("epoch_introduced") == -1:
            provenance["epoch_introduced"] = 0
            notes.append("epoch -1 became 0")
    payload = record.get("payload")
    conditions = record["routing_conditions"]
    if (
        isinstance(payload, str)
        and isinstance(conditions, list)
        and "Useful when" not in payload
    ):
        header = [USEFUL]
        for condition in conditions:
            header.append(BULLET + " ".join(str(condition).split()))
        record["payload"] = cut_triggers("\n".join([*header, "", payload]))
        notes.append("its trigger header was made of its routing conditions")
    return record, notes


def _tags_of(scope: object) -> Iterator[str]:
    """Yield the domain tags of a `scope`."""
    for name in scope if isinstance(scope, list) else [scope]:
        tag = "_".join(str(name).lower().replace("-", " ").split())
        everywhere = tag in ("general", "global", "all", "any")
        yield UNIVERSAL if everywhere else tag


def starter_domains() -> tuple[Domain, ...]:
    """Return the domains that a tree of the starter set begins with."""
    return read_exchange((DATA / "starter-domains.json").read_bytes()).domains


def tree_from_json(data: bytes) -> EpistemicTree:
    """Read a whole tree from a file of cards. Without a registry, its domains are the tags of the cards."""
    bundle = read_exchange(data)
    domains = list(bundle.domains)
    if not domains:
        tags = set[str]().union(*(card.domain_tags for card in bundle.cards))
        for tag in sorted(tags - {UNIVERSAL}):
            domains.append(Domain(name=tag, description=tag.replace("_", " ")))
    return EpistemicTree.of(domains, bundle.cards)


# The text of one card

TEMPLATE = f"""\
# <a name of 2 or more words>

{USEFUL}
- <its sign in at most {TRIGGER_WORDS} words>

<the rule, in at most {BODY_CAPS[Difficulty.UNIVERSAL]} lines>

{EXAMPLE}
<a problem of this kind>
{WORKED}
<its solution in short lines, as the model shall write its own>
The answer is \\boxed{{<answer>}}.
"""
"""What an editor opens on. A part in <...> that is left as it is counts as missing."""


def read_text_card(text: str, source: str) -> Card:
    """Read a card that a person wrote: `# name`, when it helps, the rule, examples.

    It is universal, so MS and HS read it, and needs examples, by which it is found.
    """
    for part in re.findall(r"<[^<>\n]+>", TEMPLATE):
        if part in text:
            raise CardError(f"the card still has {part}", fix="replace it")
    title, _, payload = text.strip().partition("\n")
    card_id = "_".join(re.findall("[A-Z0-9]+", title.upper()))
    if not card_id.startswith(PREFIXES):
        card_id = f"RUBRIC_{card_id}"
    examples = split_examples(payload)[1]
    answers = [r"\boxed{" in example.worked for example in examples]
    if not answers or not all(answers):
        raise CardError(
            f"card {card_id!r}: needs whole examples with answers, by which it is"
            " found",
            fix=f"after a blank line, write '{EXAMPLE}', a problem, '{WORKED}' and its"
            r" solution, each on lines of its own; end with: The answer is \boxed{42}.",
        )
    record = {
        **_DEFAULTS,
        "card_id": card_id,
        "payload": payload.strip(),
        "difficulty_tag": Difficulty.UNIVERSAL.value,
        "domain_tags": [UNIVERSAL],
        "provenance": {"source": source},
    }
    return card_of(record)
