"""Consolidate: admitted cards join the tree, and what says the same becomes one card."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

from kace.learner.steps import Kept
from kace.learner.text import ngrams
from kace.tree.card import UNIVERSAL, Card, CardError, Difficulty, Status, card_of
from kace.tree.card_text import AVOID, USEFUL
from kace.tree.changes import Add, Change, Edit
from kace.tree.tree import EpistemicTree

NEAR_DUPLICATE = 0.7
"""Share of the n-grams of two cards, of those either has, from which on they say the same."""
NGRAM = 3
MAX_SUPPORTING = 64
"""A card names no more problems than this; the first ones stay."""
MAX_ID_TOKENS = 6
MAX_COUNT = 1 << 53
"""The largest number a card's counter holds."""

_LABELS = re.compile(rf"^(?:{USEFUL}|{AVOID})\s*$", re.MULTILINE)
_TOKEN = re.compile(r"\\[A-Za-z]+|[^\W\d_]+|\d+(?:\.\d+)?|[-+*/^=<>≤≥≠%!|]")
_SIGN = re.compile(r"\d.*|[-+*/=<>≤≥≠]|\\(?:le|ge|ne|leq|geq|neq|pm|mp|cdot|times|div)")
_FILLER = frozenset(("$", "\\left", "\\right", "\\quad", "\\text", "a", "an", "the"))


class Merge(Kept):
    """A proposal that the tree, or an earlier proposal, says already."""

    card_id: str
    into: str
    """The card that stays."""
    reason: str


class Merges(Kept):
    """The merges of a step, as the learner keeps them."""

    merged: tuple[Merge, ...] = ()


class Consolidated(NamedTuple):
    """What to change in a tree, and which proposals are no card of their own."""

    changes: tuple[Change, ...]
    merged: tuple[Merge, ...]


def consolidate(tree: EpistemicTree, cards: Sequence[Card]) -> Consolidated:
    """Add cards to a tree, each once.

    A card is the same as one before it if the same tier reads both and it has the same id or says nearly the same.
    The first stays, and its provenance takes up the other's. A deprecated card takes up nothing and is not revived.
    A card that shares its id with one of another tier or domain is no repetition, since no attempt reads both: it
    gets an id of its own.
    Formulas that differ in a sign or a number never count as the same, however alike their words.
    """
    known = dict(tree.cards)
    merged: list[Merge] = []
    changed: dict[str, Card] = {}
    for proposed in cards:
        card = _renamed(proposed, known)
        # It repeats the card of its id, else the one most like it, among equals the first.
        alike = (other for other in known.values() if _read_together(card, other) and same_knowledge(card, other))
        twin = known.get(card.card_id) or max(alike, key=partial(similarity, card), default=None)
        if twin is None:
            known[card.card_id] = changed[card.card_id] = card
            continue
        reason = "it has the same id" if card.card_id == twin.card_id else "it says nearly the same"
        if twin.status is Status.DEPRECATED:
            reason += ", and that card is deprecated"
        elif (united := _united(twin, card)) != twin:
            known[twin.card_id] = changed[twin.card_id] = united
        merged.append(Merge(card_id=card.card_id, into=twin.card_id, reason=reason))
    changes = (Edit(card) if name in tree else Add(card) for name, card in changed.items())
    return Consolidated(tuple(changes), tuple(merged))


def similarity(left: Card, right: Card) -> float:
    """The share of n-grams that two cards have in common, from 0 to 1."""
    (one, _), (other, _) = _wording(left.rule), _wording(right.rule)
    return len(one & other) / len(one | other) if one or other else 1.0


def same_knowledge(left: Card, right: Card) -> bool:
    """Whether two cards say nearly the same, with the same signs and numbers as far as both have any."""
    (_, one), (_, other) = _wording(left.rule), _wording(right.rule)
    return (one <= other or other <= one) and similarity(left, right) >= NEAR_DUPLICATE


def _renamed(card: Card, known: Mapping[str, Card]) -> Card:
    """The card under an id that tells it from its namesake elsewhere; as it is, where that is not needed or no use."""
    namesake = known.get(card.card_id)
    if namesake is None or _read_together(card, namesake):
        return card
    place = card.difficulty_tag if card.difficulty_tag is not namesake.difficulty_tag else card.domain_tags[0]
    suffix = str(place).upper().split("_")
    name = "_".join((*card.card_id.split("_")[: MAX_ID_TOKENS - len(suffix)], *suffix))
    if name in known and not _read_together(card, known[name]):
        return card
    return card_of({**card.model_dump(mode="json"), "card_id": name})


def _read_together(left: Card, right: Card) -> bool:
    difficulties = {left.difficulty_tag, right.difficulty_tag}
    domains = {*left.domain_tags, *right.domain_tags}
    return (len(difficulties) == 1 or Difficulty.UNIVERSAL in difficulties) and (
        UNIVERSAL in domains or not set(left.domain_tags).isdisjoint(right.domain_tags)
    )


@lru_cache(maxsize=16_384)
def _wording(rule: str) -> tuple[frozenset[tuple[str, ...]], Counter[str]]:
    """The n-grams of a rule, and its signs and numbers."""
    tokens = [token.lower() for token in _TOKEN.findall(_LABELS.sub("", rule))]
    words = [token for token in tokens if token not in _FILLER]
    signs = Counter(token for token in words if _SIGN.fullmatch(token))
    return frozenset(ngrams(words, min(NGRAM, len(words)))), signs


def _united(first: Card, other: Card) -> Card:
    """The first card with what is known of where the other came from and how it fared."""
    one, two = first.provenance, other.provenance
    supporting = tuple(dict.fromkeys((*one.supporting_problems, *two.supporting_problems)))
    counted = ("n_uses", "n_wins", "n_losses")
    provenance = one.model_dump(mode="json") | {
        "supporting_problems": supporting[: max(MAX_SUPPORTING, len(one.supporting_problems))],
        "validated_lift": one.validated_lift or two.validated_lift,
        **{name: min(getattr(one, name) + getattr(two, name), MAX_COUNT) for name in counted},
        "epoch_introduced": min(one.epoch_introduced, two.epoch_introduced),
    }
    try:
        return card_of({**first.model_dump(mode="json"), "provenance": provenance})
    except CardError:  # the labels would make it larger than a card may be
        return first
