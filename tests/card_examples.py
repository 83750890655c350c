"""Cards and domains that tests build trees from."""

from __future__ import annotations

from kace.cards.card import Card, Difficulty, Provenance, Status
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
