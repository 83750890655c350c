"""A tree of the paper's size: 132 cards of about 254 tokens, half medium and half hard, by turns over the domains."""

from __future__ import annotations

from collections.abc import Sequence

from kace.cards.card import Difficulty
from kace.cards.tree import Domain, EpistemicTree
from tests.card_samples import card as sample

CARDS = 132
STEP = "take the next pair of terms, join them as the rule says, then look back at the first one"


def paper_tree(domains: Sequence[str], cards: int = CARDS) -> EpistemicTree:
    """A tree of so many cards over the domains."""
    made = []
    for number in range(cards):
        place = number // 2 % len(domains)
        steps = [f"{step}. For rule {number}, {STEP}; {STEP}." for step in range(1, 6)]
        card = sample(
            f"RUBRIC_NUMBER_{number}",
            payload="Useful when:\n- terms are joined\n\n" + "\n".join(steps),
            difficulty_tag=Difficulty.MEDIUM if number % 2 else Difficulty.HARD,
            domain_tags=(domains[place],),
        )
        made.append(card)
    share = 1 / len(domains)
    registry = [Domain(name=name, description=f"Problems of {name}.", share=share, signals=(name,)) for name in domains]
    return EpistemicTree.of(registry, made)
