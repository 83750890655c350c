"""Cards and domains that tests build trees from."""

from __future__ import annotations

from hypothesis import strategies as st

from kace.cards.card import UNIVERSAL, Card, Difficulty, Provenance, Status, stray_character
from kace.cards.tree import Domain

NAMES = ("algebra", "geometry", "number_theory")
DOMAINS = tuple(Domain(name=name, description=f"Problems of {name}", share=0.3) for name in NAMES)


def a_card(card_id: str = "EXACT_SUM_OF_SQUARES", **fields: object) -> Card:
    """A valid card, with some fields changed."""
    status = fields.pop("status", Status.EXPERIMENTAL)
    default = {
        "payload": "Useful when:\n- sum of two squares\nDo not apply if:\n- the terms are not squares\n\n"
        "Use $a^2+b^2=(a+b)^2-2ab$.\nCheck with small numbers.",
        "routing_conditions": ("pick when two squares are added",),
        "difficulty_tag": Difficulty.MEDIUM,
        "domain_tags": ("algebra",),
        "helpfulness_score": 0.0,
        "provenance": Provenance(source="teacher", promotion_status=status),
    }
    return Card.model_validate({"card_id": card_id, **default, **fields})


def with_body(lines: int, difficulty: Difficulty, card_id: str = "RUBRIC_LONG_BODY") -> dict[str, object]:
    """A card's record whose body has that many non-blank lines, with blank ones between."""
    body = "\n\n".join(f"step {n}" for n in range(lines))
    record = a_card(card_id).model_dump(mode="json")
    return {**record, "difficulty_tag": difficulty.value, "payload": f"Useful when:\n- always\n\n{body}"}


@st.composite
def cards(draw: st.DrawFn) -> Card:
    """Any card at any place and of any status."""
    word, number = draw(st.sampled_from(["AB", "C1", "SUM_X"])), draw(st.integers(0, 9))
    tags = draw(st.lists(st.sampled_from([*NAMES, UNIVERSAL]), min_size=1, max_size=3, unique=True))
    signs = st.characters(categories=["L", "N", "S"])
    trigger = draw(st.text(signs.filter(lambda sign: not stray_character(sign)), min_size=1, max_size=12))
    body = draw(st.text("abc $\\{}é", max_size=40))
    return a_card(
        f"EXACT_{word}_{number}",
        payload=f"Useful when:\n- {trigger}\n\n{body}.",
        difficulty_tag=draw(st.sampled_from(Difficulty)),
        domain_tags=tuple(tags),
        helpfulness_score=draw(st.floats(allow_nan=False, allow_infinity=False)),
        status=draw(st.sampled_from(Status)),
    )


def forests() -> st.SearchStrategy[list[Card]]:
    """Cards with different ids."""
    return st.lists(cards(), max_size=12, unique_by=lambda card: card.card_id)
