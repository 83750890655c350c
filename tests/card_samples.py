"""Cards and trees for tests: a small fixed tree, and strategies that make any card the rules allow."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from kace.cards.card import BODY_CAPS, PREFIXES, UNIVERSAL, Card, Difficulty, Provenance, Status, stray_character
from kace.cards.tree import Domain, EpistemicTree

ALGEBRA = Domain(name="algebra", description="equations, factoring and identities", share=0.6, signals=("solve for x",))
GEOMETRY = Domain(name="geometry", description="lengths, areas and angles", share=0.4, signals=())


def card(card_id: str, **changes: object) -> Card:
    """A valid card; name the fields that matter."""
    provenance = changes.pop("provenance", Provenance(source="by hand"))
    fields = {
        "payload": "Useful when:\n- sum of squares\n\nUse n(n+1)(2n+1)/6.",
        "routing_conditions": (),
        "difficulty_tag": Difficulty.MEDIUM,
        "domain_tags": ("algebra",),
        "helpfulness_score": 0.0,
        **changes,
    }
    return Card.model_validate({"card_id": card_id, "provenance": provenance, **fields})


NAMES = ("algebra", "geometry", "number_theory")
DOMAINS = tuple(Domain(name=name, description=f"Problems of {name}", share=0.3) for name in NAMES)


def a_card(card_id: str = "EXACT_SUM_OF_SQUARES", **fields: object) -> Card:
    """A valid card that says when not to apply it, with some fields changed."""
    default = {
        "payload": "Useful when:\n- sum of two squares\nDo not apply if:\n- the terms are not squares\n\n"
        "Use $a^2+b^2=(a+b)^2-2ab$.\nCheck with small numbers.",
        "routing_conditions": ("pick when two squares are added",),
        "provenance": {"source": "teacher", "promotion_status": fields.pop("status", Status.EXPERIMENTAL)},
    }
    return card(card_id, **{**default, **fields})


def with_body(lines: int, difficulty: Difficulty, card_id: str = "RUBRIC_LONG_BODY") -> dict[str, object]:
    """A card's record whose body has that many non-blank lines, with blank ones between."""
    body = "\n\n".join(f"step {n}" for n in range(lines))
    record = a_card(card_id).model_dump(mode="json")
    return {**record, "difficulty_tag": difficulty.value, "payload": f"Useful when:\n- always\n\n{body}"}


def small_tree() -> EpistemicTree:
    """Two domains; a card of each difficulty, one in two domains, one deprecated."""
    return EpistemicTree.of(
        (ALGEBRA, GEOMETRY),
        (
            card(
                "EXACT_SUM_OF_SQUARES",
                routing_conditions=("the terms are consecutive squares",),
                helpfulness_score=0.25,
                provenance=Provenance(
                    source="teacher, cell MS/algebra",
                    supporting_problems=("P026", "P031"),
                    validated_lift="+2/6 -> +4/6 on P026 (k=6)",
                    promotion_status=Status.VALIDATED,
                    n_uses=9,
                    n_wins=4,
                    n_losses=1,
                    epoch_introduced=1,
                ),
            ),
            card(
                "RUBRIC_ANGLE_CHASE_STEPS",
                payload=(
                    "Useful when:\n- cyclic quadrilateral\nDo not apply if:\n- only lengths are given\n\n"
                    "1. Mark equal angles.\n2. Look for $\\angle ABC \\neq 90^\\circ$.\n```\nkeep the fence\n```"
                ),
                difficulty_tag=Difficulty.HARD,
                domain_tags=("geometry", "algebra"),
            ),
            card("READING_CHECK_THE_UNIT", difficulty_tag=Difficulty.UNIVERSAL, domain_tags=(UNIVERSAL,)),
            card(
                "MICRO_OLD_TRICK",
                domain_tags=("geometry",),
                provenance=Provenance(source="by hand", promotion_status=Status.DEPRECATED),
            ),
        ),
    )


_CHARACTERS = st.characters(exclude_categories=("Cs", "Cc")).filter(lambda sign: not stray_character(sign))
_WORDS = st.text(_CHARACTERS.filter(lambda char: not char.isspace()), min_size=1, max_size=8)
_LINES = st.one_of(
    st.text(_CHARACTERS, max_size=40), st.sampled_from(("", "¶", " ¶ ", "¶¶", "\\neq \\nu", "```", "---"))
)
_COUNTS = st.integers(0, 1 << 53)


@st.composite
def payloads(draw: st.DrawFn, difficulty: Difficulty) -> str:
    triggers = draw(st.lists(st.lists(_WORDS, min_size=1, max_size=5).map(" ".join), min_size=1, max_size=3))
    body = draw(st.lists(_LINES, max_size=BODY_CAPS[difficulty] - 1))
    text = "Useful when:\n" + "\n".join(f"- {trigger}" for trigger in triggers)
    return f"{text}\n\nFirst, " + "\n".join(["state it.", *body])


@st.composite
def cards(draw: st.DrawFn) -> Card:
    """Any card of the two domains above."""
    difficulty = draw(st.sampled_from(Difficulty))
    name = "_".join(draw(st.lists(st.from_regex(r"[A-Z0-9]{1,6}", fullmatch=True), min_size=2, max_size=3)))
    payload = draw(payloads(difficulty).filter(lambda text: not stray_character(text)))
    lines = st.text(_CHARACTERS, max_size=30)
    return Card(
        card_id=draw(st.sampled_from(PREFIXES)) + name,
        payload=payload,
        routing_conditions=tuple(draw(st.lists(lines, max_size=2))),
        difficulty_tag=difficulty,
        domain_tags=tuple(draw(st.permutations((UNIVERSAL, "algebra", "geometry")))[: draw(st.integers(1, 3))]),
        helpfulness_score=draw(st.floats(allow_nan=False, allow_infinity=False)),
        provenance=Provenance(
            source=draw(lines),
            supporting_problems=tuple(draw(st.lists(lines, max_size=3))),
            validated_lift=draw(lines),
            promotion_status=draw(st.sampled_from(Status)),
            n_uses=draw(_COUNTS),
            n_wins=draw(_COUNTS),
            n_losses=draw(_COUNTS),
            epoch_introduced=draw(_COUNTS),
        ),
    )


def forests(max_cards: int = 12) -> st.SearchStrategy[list[Card]]:
    """Cards with different ids."""
    return st.lists(cards(), max_size=max_cards, unique_by=lambda card: card.card_id)


def trees(max_cards: int = 4) -> st.SearchStrategy[EpistemicTree]:
    """Any tree of the two domains above."""
    return forests(max_cards).map(lambda found: EpistemicTree.of((ALGEBRA, GEOMETRY), found))


def named(domains: str) -> str:
    """A classifier's reply that names one domain, or two."""
    return json.dumps(dict(zip(("domain", "second"), domains.split(", "), strict=False)))
