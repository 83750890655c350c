"""Admit proposed cards: code refuses first, then the teacher judges; twins are merged."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache

from kace.cards.card import (
    AVOID,
    UNIVERSAL,
    USEFUL,
    Card,
    CardError,
    Difficulty,
    Status,
)
from kace.cards.tree import Add, Change, Domain, Edit, EpistemicTree
from kace.errors import one_line
from kace.ladder.prompt import card_text, fenced, neutral
from kace.learning import StepResult
from kace.learning.propose import Proposals
from kace.learning.screen import ngrams
from kace.learning.teacher import (
    Block,
    CardRefusal,
    Grammar,
    Reading,
    TeacherStep,
    instructions,
    read_by_card,
)

OPEN_RULES = (
    "wrong",
    "answer_leak",
    "instance_overfit",
    "benchmark_talk",
    "vague",
    "wrong_domain",
    "wrong_tier",
    "duplicate",
    "wrong_example",
    "other_rule",
)
"""The rules that the teacher may reject a card for."""

RULING = Grammar(
    "ruling",
    name="id",
    required=("id", "verdict"),
)


async def admit(
    cards: Sequence[Card],
    domain: str,
    registry: Sequence[Domain],
    context: TeacherStep,
) -> Proposals:
    """Return the cards of a domain that the teacher admits, and the others with reasons.

    Code has checked each card before, and each has an id of its own. The teacher is
    asked once, and may move a card to another domain. A card without a ruling is refused.
    """
    parts = ["judge"]
    if any(card.examples for card in cards):
        parts.append("judge_worked")
    head = [f"Domain: {neutral(domain)}", "Other domains:"]
    for other in registry:
        if other.name != domain:
            head.append(f"- {other.name}: {neutral(other.description)}")
    letter = ["\n".join(head)]
    for card in cards:
        examples = [neutral(example.text) for example in card.examples]
        text = fenced("card", "\n".join((card_text(card), *examples)))
        letter.append(f"Difficulty: {card.difficulty_tag.value}\n{text}")
    names = [each.name for each in registry]
    reading = await context.teacher.ask(
        context.name,
        instructions(*parts),
        letter,
        lambda reply: read_rulings(reply, cards, names),
    )
    shown = {card.card_id for card in cards}
    refused = [bad for bad in reading.bad if bad.card_id in shown]
    return Proposals(
        cards=tuple(reading.found.values()), refused=tuple(refused)
    )


def read_rulings(
    reply: str, cards: Sequence[Card], domains: Sequence[str] = ()
) -> Reading[Card]:
    """Return the admitted cards of a reply; list those rejected and those without a ruling."""

    def make(card: Card, block: Block) -> Card | CardRefusal:
        verdict = block["verdict"].lower()
        rule = block.get("rule", "")
        domain = block.get("domain", "")
        reason = neutral(block.get("reason", ""))
        if domain and domain not in domains:
            raise ValueError(f"there is no domain {one_line(domain, 64)!r}")
        if verdict == "admit" or (domain and rule == "wrong_domain"):
            return card.revised(domain_tags=(domain,)) if domain else card
        if verdict != "reject":
            raise ValueError("the verdict is admit or reject")
        if rule not in OPEN_RULES:
            rules = ", ".join(OPEN_RULES)
            raise ValueError(f"a rejection names one of the rules {rules}")
        if not reason:
            raise ValueError("a rejection gives its reason")
        return CardRefusal(
            card_id=card.card_id, by="teacher", rule=rule, reason=reason
        )

    return read_by_card(reply, RULING, cards, make)


# Consolidation: the same id or nearly the same text is one card.

NEAR_DUPLICATE = 0.7
NGRAM = 3
"""The share of n-grams in common, of those either card has, that makes them one."""
MAX_SUPPORTING = 64  # problems that a card names; the first ones stay

_LABELS = re.compile(rf"^(?:{USEFUL}|{AVOID})\s*$", re.MULTILINE)
_TOKEN = re.compile(r"\\[A-Za-z]+|[^\W\d_]+|\d+(?:\.\d+)?|[-+*/^=<>≤≥≠%!|]")
_SIGN = re.compile(
    r"\d.*|[-+*/=<>≤≥≠]|\\(?:le|ge|ne|leq|geq|neq|pm|mp|cdot|times|div)"
)
_FILLER = frozenset(
    ("$", "\\left", "\\right", "\\quad", "\\text", "a", "an", "the")
)


class Merges(StepResult):
    """Proposals that repeat a card, each with the id of that card."""

    merged: tuple[tuple[str, str], ...] = ()


def consolidate(
    tree: EpistemicTree, cards: Sequence[Card]
) -> tuple[tuple[Change, ...], Merges]:
    """Return the changes that add cards to a tree, each once, and the merges.

    A card repeats an earlier one if the same tier reads both and it has the same id or
    nearly the same text, with the same signs and numbers. The first stays and takes up
    the other's provenance, unless it is deprecated. A card that shares its id with one
    read elsewhere gets an id of its own.
    """
    known = dict(tree.cards)
    merged = []
    for proposed in cards:
        twin = _twin(proposed, known)
        card = proposed if twin else _with_free_id(proposed, known)
        twin = twin or known.get(card.card_id)
        if not twin:
            known[card.card_id] = card
            continue
        merged.append((card.card_id, twin.card_id))
        if twin.status is not Status.DEPRECATED:
            known[twin.card_id] = _unite(twin, card)
    changes: list[Change] = []
    for name, card in known.items():
        before = tree.cards.get(name)
        if card != before:
            changes.append(Edit(card) if before else Add(card))
    return tuple(changes), Merges(merged=tuple(merged))


def same_knowledge(left: Card, right: Card) -> bool:
    """Whether two cards have nearly the same text, with the same signs and numbers."""
    one, signs = _wording(left.rule)
    other, other_signs = _wording(right.rule)
    nested = signs <= other_signs or other_signs <= signs
    return nested and len(one & other) >= NEAR_DUPLICATE * len(one | other)


@lru_cache(maxsize=16_384)
def _wording(rule: str) -> tuple[frozenset[tuple[str, ...]], Counter[str]]:
    """Return the n-grams of a rule, and its signs and numbers."""
    words = []
    for token in _TOKEN.findall(_LABELS.sub("", rule).lower()):
        if token not in _FILLER:
            words.append(token)
    signs = Counter(filter(_SIGN.fullmatch, words))
    return frozenset(ngrams(words, min(NGRAM, len(words)))), signs


def _twin(card: Card, known: Mapping[str, Card]) -> Card | None:
    """Return the first card that is read with this one and has nearly its text."""
    for other in known.values():
        if _read_together(card, other) and same_knowledge(card, other):
            return other
    return None


def _with_free_id(card: Card, known: Mapping[str, Card]) -> Card:
    """Return the card under an id that differs from its namesake elsewhere."""
    namesake = known.get(card.card_id)
    if namesake is None or _read_together(card, namesake):
        return card
    where: str = card.domain_tags[0]
    if card.difficulty_tag is not namesake.difficulty_tag:
        where = card.difficulty_tag.value
    where = where[:20].rstrip("_").upper()
    name = f"{card.card_id[:40].rstrip('_')}_{where}"
    return card.model_copy(update={"card_id": name})


def _read_together(left: Card, right: Card) -> bool:
    difficulties = {left.difficulty_tag, right.difficulty_tag}
    if len(difficulties) > 1 and Difficulty.UNIVERSAL not in difficulties:
        return False
    apart = set(left.domain_tags).isdisjoint(right.domain_tags)
    return not apart or UNIVERSAL in (*left.domain_tags, *right.domain_tags)


def _unite(first: Card, other: Card) -> Card:
    """Return the first card with the other's problems added."""
    ours = first.provenance
    theirs = other.provenance.supporting_problems
    names = tuple(dict.fromkeys((*ours.supporting_problems, *theirs)))
    more = {"supporting_problems": names[:MAX_SUPPORTING]}
    with suppress(CardError):  # it would be larger than a card may be
        return first.revised(provenance=dict(ours) | more)
    return first
