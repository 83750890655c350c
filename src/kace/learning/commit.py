"""What changes in the tree: cards join it, evidence validates or deprecates them, and a revision is kept or not."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

from kace.cards.card import (
    AVOID,
    MAX_COUNT,
    UNIVERSAL,
    USEFUL,
    Card,
    CardError,
    Difficulty,
    LiftCounts,
    LiftMark,
    Provenance,
    Status,
    card_of,
    lift_line,
    plain_points,
)
from kace.cards.tree import Add, Change, Deprecate, Edit, EpistemicTree
from kace.ladder.record import Solution
from kace.learning.effects import Impact, Lift, evidence
from kace.learning.shrinkage import Posterior, shrink
from kace.learning.steps import Kept
from kace.learning.text import ngrams
from kace.runs.stats import sign_flip

NEAR_DUPLICATE = 0.7
NGRAM = 3
"""Share of the n-grams of two cards, of those either has, from which on they say the same."""
MAX_SUPPORTING = 64  # a card names no more problems than this; the first ones stay
MAX_ID_TOKENS = 6
COUNTED = ("n_uses", "n_wins", "n_losses")

_LABELS = re.compile(rf"^(?:{USEFUL}|{AVOID})\s*$", re.MULTILINE)
_TOKEN = re.compile(r"\\[A-Za-z]+|[^\W\d_]+|\d+(?:\.\d+)?|[-+*/^=<>≤≥≠%!|]")
_SIGN = re.compile(r"\d.*|[-+*/=<>≤≥≠]|\\(?:le|ge|ne|leq|geq|neq|pm|mp|cdot|times|div)")
_FILLER = frozenset(("$", "\\left", "\\right", "\\quad", "\\text", "a", "an", "the"))


class Merge(Kept):
    """A proposal that the tree, or an earlier proposal, says already, and the card that stays."""

    card_id: str
    into: str
    reason: str


class Merges(Kept):
    """The merges of a step, as the learner keeps them."""

    merged: tuple[Merge, ...] = ()


def consolidate(
    tree: EpistemicTree, cards: Sequence[Card]
) -> tuple[tuple[Change, ...], Merges]:
    """Add cards to a tree, each once: what to change, and which proposals are no card of their own.

    A card is the same as one before it if the same tier reads both and it has the same id or says nearly the same, with
    the same signs and numbers. The first stays, and its provenance takes up the other's; a deprecated one takes up
    nothing. A card that shares its id with one that no attempt reads beside it gets an id of its own.
    """
    known = dict(tree.cards)
    merged: list[Merge] = []
    changed: dict[str, Card] = {}
    for proposed in cards:
        card = _renamed(proposed, known)
        # It repeats the card of its id, else the one most like it, among equals the first.
        alike = (
            other
            for other in known.values()
            if _read_together(card, other) and same_knowledge(card, other)
        )
        twin = known.get(card.card_id) or max(
            alike, key=partial(similarity, card), default=None
        )
        if twin is None:
            known[card.card_id] = changed[card.card_id] = card
            continue
        reason = (
            "it has the same id"
            if card.card_id == twin.card_id
            else "it says nearly the same"
        )
        if twin.status is Status.DEPRECATED:
            reason += ", and that card is deprecated"
        elif (united := _united(twin, card)) != twin:
            known[twin.card_id] = changed[twin.card_id] = united
        merged.append(Merge(card_id=card.card_id, into=twin.card_id, reason=reason))
    changes = (
        Edit(card) if name in tree else Add(card) for name, card in changed.items()
    )
    return tuple(changes), Merges(merged=tuple(merged))


def similarity(left: Card, right: Card) -> float:
    """The share of n-grams that two cards have in common, from 0 to 1."""
    (one, _), (other, _) = _wording(left.rule), _wording(right.rule)
    return len(one & other) / len(one | other) if one or other else 1.0


def same_knowledge(left: Card, right: Card) -> bool:
    """Whether two cards say nearly the same, with the same signs and numbers as far as both have any."""
    (_, one), (_, other) = _wording(left.rule), _wording(right.rule)
    return (one <= other or other <= one) and similarity(left, right) >= NEAR_DUPLICATE


@lru_cache(maxsize=16_384)
def _wording(rule: str) -> tuple[frozenset[tuple[str, ...]], Counter[str]]:
    """The n-grams of a rule, and its signs and numbers."""
    tokens = [token.lower() for token in _TOKEN.findall(_LABELS.sub("", rule))]
    words = [token for token in tokens if token not in _FILLER]
    return frozenset(ngrams(words, min(NGRAM, len(words)))), Counter(
        filter(_SIGN.fullmatch, words)
    )


def _renamed(card: Card, known: Mapping[str, Card]) -> Card:
    """The card under an id that tells it from its namesake elsewhere; as it is, where that is not needed or no use."""
    namesake = known.get(card.card_id)
    if namesake is None or _read_together(card, namesake):
        return card
    place = (
        card.difficulty_tag
        if card.difficulty_tag is not namesake.difficulty_tag
        else card.domain_tags[0]
    )
    suffix = str(place).upper().split("_")
    name = "_".join((*card.card_id.split("_")[: MAX_ID_TOKENS - len(suffix)], *suffix))
    if name in known and not _read_together(card, known[name]):
        return card
    return card_of({**card.model_dump(mode="json"), "card_id": name})


def _read_together(left: Card, right: Card) -> bool:
    difficulties = {left.difficulty_tag, right.difficulty_tag}
    domains = {*left.domain_tags, *right.domain_tags}
    shared = UNIVERSAL in domains or not set(left.domain_tags).isdisjoint(
        right.domain_tags
    )
    return shared and (len(difficulties) == 1 or Difficulty.UNIVERSAL in difficulties)


def _united(first: Card, other: Card) -> Card:
    """The first card with what is known of where the other came from and how it fared."""
    one = first.provenance
    two = other.provenance
    supporting = tuple(
        dict.fromkeys((*one.supporting_problems, *two.supporting_problems))
    )
    provenance = one.model_dump(mode="json") | {
        "supporting_problems": supporting[
            : max(MAX_SUPPORTING, len(one.supporting_problems))
        ],
        "validated_lift": one.validated_lift or two.validated_lift,
        **{
            name: min(getattr(one, name) + getattr(two, name), MAX_COUNT)
            for name in COUNTED
        },
        "epoch_introduced": min(one.epoch_introduced, two.epoch_introduced),
    }
    try:
        return card_of({**first.model_dump(mode="json"), "provenance": provenance})
    except CardError:  # the labels would make it larger than a card may be
        return first


def credit(tree: EpistemicTree, impact: Impact, *, epoch: int) -> tuple[Change, ...]:
    """Return edits that record the figures of the cards shown or measured, in order of id; no status changes."""
    fires, lifts = impact.by_card
    changes: list[Change] = []
    for card in (
        card for card in tree if card.card_id in fires or card.card_id in lifts
    ):
        fire = fires.get(card.card_id)
        lift = lifts.get(card.card_id)
        said = lift_text(lift, epoch) if lift else card.provenance.validated_lift
        # Rounded: the last bits of a sum differ between machines, and a replayed run must give the identical tree.
        score = round(lift.effect, 4) + 0.0 if lift else card.helpfulness_score
        counts = (
            (fire.n_shown, fire.shown_correct, fire.shown_wrong) if fire else (0, 0, 0)
        )
        changes.append(_credited(card, card.status, said, score, counts))
    return tuple(changes)


def credit_posterior(
    tree: EpistemicTree, impacts: Sequence[Impact], *, epoch: int, keep: float
) -> tuple[Change, ...]:
    """Edits of the cards that may be shown, with the figures of the last impact and the posterior of all.

    A card is validated where it helps with probability `keep` or more, deprecated where it harms with as much, and else
    waits. One that no run both showed and hid is judged by the tree it belongs to.
    """
    believed, (fires, lifts) = posteriors(tree, impacts), impacts[-1].by_card
    changes: list[Change] = []
    for card in tree.shown if believed else ():
        found = believed[card.card_id]
        fire = fires.get(card.card_id)
        lift = lifts.get(card.card_id)
        called = {
            Status.VALIDATED: found.helps >= keep,
            Status.DEPRECATED: found.harms >= keep,
        }
        status = next(
            (status for status, so in called.items() if so), Status.EXPERIMENTAL
        )
        counts = (fire.n_shown if fire else 0, *(lift.wins if lift else (0, 0)))
        changes.append(
            _credited(
                card, status, posterior_text(found, lift, epoch), found.effect, counts
            )
        )
    return tuple(changes)


def _credited(
    card: Card, status: Status, said: str | None, score: float, counts: Iterable[int]
) -> Edit:
    """The card with its status and figures, and with uses, wins and losses added to those before."""
    known = dict(card.provenance) | {"promotion_status": status, "validated_lift": said}
    known |= {
        name: known[name] + more for name, more in zip(COUNTED, counts, strict=True)
    }
    update = {
        "provenance": Provenance.model_validate(known),
        "helpfulness_score": score,
    }
    return Edit(card.model_copy(update=update))


def posteriors(tree: EpistemicTree, impacts: Sequence[Impact]) -> dict[str, Posterior]:
    """What all epochs say of every card that may be shown; nothing where no card was measured."""
    measured = evidence(tree, impacts)
    return shrink(measured, [card.card_id for card in tree.shown]) if measured else {}


def idle(
    before: EpistemicTree, tree: EpistemicTree, impacts: Sequence[Impact], retire: float
) -> tuple[Change, ...]:
    """Deprecations of the cards that help with probability `retire` or less, and that no curator has rewritten."""
    believed = posteriors(before, impacts)
    same = (
        card for card in tree.shown if card.payload == before.card(card.card_id).payload
    )
    return tuple(
        Deprecate(card.card_id)
        for card in same
        if believed and believed[card.card_id].helps <= retire
    )


def unproven(tree: EpistemicTree) -> tuple[Change, ...]:
    """The changes that leave only cards with a validated lift to be shown."""
    return tuple(
        Deprecate(card.card_id) for card in tree if card.status is Status.EXPERIMENTAL
    )


def lift_text(lift: Lift, epoch: int) -> str:
    """A lift in words, as its card holds it."""
    return lift_line(_mark(lift), _counts(lift), epoch)


def posterior_text(believed: Posterior, lift: Lift | None, epoch: int) -> str:
    """A posterior in words, as its card holds it."""
    told = lift_line(_mark(believed), _counts(lift) if lift else None, epoch)
    return f"{told}; helps with probability {believed.helps:.2f}"


def _mark(found: Lift | Posterior) -> LiftMark:
    return LiftMark(found.effect, found.low, found.high)


def _counts(lift: Lift) -> LiftCounts:
    return LiftCounts(
        lift.shown, lift.hidden, lift.problems, lift.method.replace("_", "-")
    )


class CommitRule(NamedTuple):
    """What a candidate must show: a least lift, or with `keep` this probability to gain more than it loses."""

    threshold: float
    keep: float | None = None


class InterimAnalysis(Kept):
    """One comparison of a candidate with the base run, over solves of the same problem and seed; p is one-sided."""

    domain: str
    number: int
    n: int
    lift: float
    p: float
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    accepted: bool
    reason: str


def analyse(
    base: Sequence[Solution],
    rerun: Sequence[Solution],
    *,
    domain: str,
    number: int,
    rule: CommitRule,
    removes_only: bool,
) -> InterimAnalysis:
    """Compare a rerun with the base run, pair by pair.

    A candidate that adds or rewrites claims to help, and must show it. One that only removes cards claims nothing, and
    passes if nothing is lost.
    """
    again = {(record.problem, record.seed): record for record in rerun}
    both = (
        (record, again.get((record.problem, record.seed)))
        for record in base
        if record.correct is not None
    )
    pairs = [
        (before, after)
        for before, after in both
        if after and not before.failed and not after.failed
    ]
    net: defaultdict[str, int] = defaultdict(int)
    changed: dict[int, dict[str, None]] = {-1: {}, 0: {}, 1: {}}
    for before, after in pairs:
        change = bool(after.correct) - bool(before.correct)
        net[before.problem] += change
        changed[change][before.name] = None
    lift = sum(net.values()) / len(pairs) if pairs else 0.0
    p = sign_flip(net.values())
    better = gains(
        sum(each > 0 for each in net.values()), sum(each < 0 for each in net.values())
    )
    accepted, reason = _ruling(len(pairs), lift, better, rule, removes_only)
    compared = {
        "domain": domain,
        "number": number,
        "n": len(pairs),
        "lift": lift,
        "p": p,
    }
    gained = tuple(changed[1])
    lost = tuple(changed[-1])
    return InterimAnalysis(
        **compared, gained=gained, lost=lost, accepted=accepted, reason=reason
    )


def gains(won: int, lost: int) -> float:
    """The probability that a change gains more problems than it loses, beginning from two of each kind."""
    total = won + lost + 3
    return sum(math.comb(total, k) for k in range(won + 2)) / (1 << total)


def _ruling(
    n: int, lift: float, better: float, rule: CommitRule, removes_only: bool
) -> tuple[bool, str]:
    if not n:
        return False, "no problem could be compared"
    measured = f"lift {plain_points(lift)} points on {n} solves"
    if removes_only:
        return lift >= 0, f"{measured}; a removal must not lose"
    if rule.keep is not None:
        enough = "at least" if better >= rule.keep else "below"
        return (
            better >= rule.keep,
            f"{measured}, better with probability {better:.2f}, {enough} {rule.keep:g}",
        )
    enough = "at least" if lift >= rule.threshold else "below"
    return (
        lift >= rule.threshold,
        f"{measured}, {enough} the threshold of {plain_points(rule.threshold)}",
    )
