"""Consolidate: admitted cards join the tree, and what says the same becomes one card."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kace.learner.verdicts import Kept
from kace.tree.card import UNIVERSAL, Card, CardError, Difficulty, Provenance, Status, card_of
from kace.tree.card_text import AVOID, USEFUL
from kace.tree.changes import Add, Change, Edit
from kace.tree.tree import EpistemicTree

NEAR_DUPLICATE = 0.7
"""Share of the word sequences of two cards, of those either has, from which on they say the same."""
SEQUENCE = 3
MAX_SUPPORTING = 64
"""A card names no more problems than this; the first ones stay."""
MAX_ID_TOKENS = 6
MAX_COUNT = 1 << 53
"""The largest number a card's counter holds."""

_LABELS = re.compile(rf"^(?:{USEFUL}|{AVOID})\s*$", re.MULTILINE)
_TOKEN = re.compile(r"\\[A-Za-z]+|[^\W\d_]+|\d+(?:\.\d+)?|[-+*/^=<>≤≥≠%!|]")
_SIGN = re.compile(r"\d.*|[-+*/=<>≤≥≠]|\\(?:le|ge|ne|leq|geq|neq|pm|mp|cdot|times|div)")
_WORDING = frozenset(("$", "\\left", "\\right", "\\quad", "\\text", "a", "an", "the"))


class Merge(Kept):
    """A proposal that the tree, or an earlier proposal, says already."""

    card_id: str
    into: str
    """The card that stays."""
    reason: str


class Merges(Kept):
    """The merges of a step, as the learner keeps them."""

    merged: tuple[Merge, ...] = ()


@dataclass(frozen=True, slots=True)
class Consolidated:
    """What to change in a tree, and which proposals are no card of their own."""

    changes: tuple[Change, ...] = ()
    merged: tuple[Merge, ...] = ()


@dataclass(frozen=True, slots=True)
class _Sense:
    """What a card says, for comparing."""

    sequences: frozenset[tuple[str, ...]]
    signs: Counter[str]


def consolidate(tree: EpistemicTree, cards: Sequence[Card]) -> Consolidated:
    """Add cards to a tree, each once.

    A card is the same as one before it if the same tier reads both and it has the same id or says nearly the same.
    The first stays, and its provenance takes up the other's. A deprecated card takes up nothing and is not revived.
    A card that shares its id with one of another tier or domain is no repetition, since no attempt reads both: it
    gets an id of its own.
    Formulas that differ in a sign or a number never count as the same, however alike their words.
    """
    known = dict(tree.cards)
    senses = {name: _sense(card) for name, card in known.items()}
    merged: list[Merge] = []
    changed: dict[str, Card] = {}
    for proposed in cards:
        card = _renamed(proposed, known)
        sense = _sense(card)
        twin = _twin(card, sense, known, senses)
        if twin is None:
            known[card.card_id] = changed[card.card_id] = card
            senses[card.card_id] = sense
            continue
        merged.append(Merge(card_id=card.card_id, into=twin.card_id, reason=_reason(card, twin)))
        if twin.status is not Status.DEPRECATED and (united := _united(twin, card)) != twin:
            known[twin.card_id] = changed[twin.card_id] = united
    changes = (Edit(card) if name in tree else Add(card) for name, card in changed.items())
    return Consolidated(tuple(changes), tuple(merged))


def similarity(left: Card, right: Card) -> float:
    """The share of word sequences that two cards have in common, from 0 to 1."""
    return _shared(_sense(left), _sense(right))


def same_knowledge(left: Card, right: Card) -> bool:
    """Whether two cards say nearly the same, with the same signs and numbers as far as both have any."""
    return _same(_sense(left), _sense(right))


def _twin(card: Card, sense: _Sense, known: dict[str, Card], senses: dict[str, _Sense]) -> Card | None:
    """The card that a proposal repeats: that of its id, else the one most like it."""
    if card.card_id in known:
        return known[card.card_id]
    alike = [
        (_shared(sense, senses[name]), other)
        for name, other in known.items()
        if _read_together(card, other) and _same(sense, senses[name])
    ]
    # Among equals the first one stays.
    return max(alike, key=lambda pair: pair[0])[1] if alike else None


def _renamed(card: Card, known: dict[str, Card]) -> Card:
    """The card under an id that tells it from its namesake elsewhere; as it is, where that is not needed or no use."""
    namesake = known.get(card.card_id)
    if namesake is None or _read_together(card, namesake):
        return card
    place = card.difficulty_tag if card.difficulty_tag is not namesake.difficulty_tag else card.domain_tags[0]
    suffix = str(place).upper().split("_")
    stem = card.card_id.split("_")[: MAX_ID_TOKENS - len(suffix)]
    name = "_".join((*stem, *suffix))
    if name in known and not _read_together(card, known[name]):
        return card
    return card_of({**card.model_dump(mode="json"), "card_id": name})


def _reason(card: Card, twin: Card) -> str:
    why = "it has the same id" if card.card_id == twin.card_id else "it says nearly the same"
    return f"{why}, and that card is deprecated" if twin.status is Status.DEPRECATED else why


def _read_together(left: Card, right: Card) -> bool:
    difficulties = {left.difficulty_tag, right.difficulty_tag}
    domains = {*left.domain_tags, *right.domain_tags}
    return (len(difficulties) == 1 or Difficulty.UNIVERSAL in difficulties) and (
        UNIVERSAL in domains or not set(left.domain_tags).isdisjoint(right.domain_tags)
    )


def _same(left: _Sense, right: _Sense) -> bool:
    return (left.signs <= right.signs or right.signs <= left.signs) and _shared(left, right) >= NEAR_DUPLICATE


def _shared(left: _Sense, right: _Sense) -> float:
    every = len(left.sequences | right.sequences)
    return len(left.sequences & right.sequences) / every if every else 1.0


def _sense(card: Card) -> _Sense:
    tokens = [token.lower() for token in _TOKEN.findall(_LABELS.sub("", card.rule))]
    words = [token for token in tokens if token not in _WORDING]
    length = min(SEQUENCE, len(words))
    sequences = frozenset(tuple(words[start : start + length]) for start in range(len(words) - length + 1))
    return _Sense(sequences, Counter(token for token in words if _SIGN.fullmatch(token)))


def _united(first: Card, other: Card) -> Card:
    """The first card with what is known of where the other came from and how it fared."""
    one, two = first.provenance, other.provenance
    supporting = tuple(dict.fromkeys((*one.supporting_problems, *two.supporting_problems)))
    kept = max(MAX_SUPPORTING, len(one.supporting_problems))
    provenance = Provenance(
        source=one.source,
        supporting_problems=supporting[:kept],
        validated_lift=one.validated_lift or two.validated_lift,
        promotion_status=one.promotion_status,
        n_uses=min(one.n_uses + two.n_uses, MAX_COUNT),
        n_wins=min(one.n_wins + two.n_wins, MAX_COUNT),
        n_losses=min(one.n_losses + two.n_losses, MAX_COUNT),
        epoch_introduced=min(one.epoch_introduced, two.epoch_introduced),
    )
    united = {**first.model_dump(mode="json"), "provenance": provenance.model_dump(mode="json")}
    try:
        return card_of(united)
    except CardError:  # the labels would make it larger than a card may be
        return first
