"""A card as a person writes it: what has a default, and the first rule that it breaks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kace.cards.card import CardError, Difficulty, Status
from kace.cards.formats import TEMPLATE, read_exchange, read_text_card

DOCS = Path(__file__).parents[2] / "docs" / "examples"
WRITTEN = (DOCS / "average-speed.md").read_text(encoding="utf-8")


def test_a_name_when_a_rule_and_examples_make_a_card():
    card = read_text_card(WRITTEN, "written by ada")
    assert card.card_id == "RUBRIC_AVERAGE_SPEED_THERE_AND_BACK"
    assert card.triggers == ("average speed", "there and back", "returns the same way")
    assert card.body.startswith("Average speed = whole way / whole time.")
    assert [example.worked.split()[-1] for example in card.examples] == [r"\boxed{42}.", r"\boxed{12}."]
    assert (card.difficulty_tag, card.domain_tags) == (Difficulty.UNIVERSAL, ("universal",))
    assert (card.status, card.provenance.source) == (Status.EXPERIMENTAL, "written by ada")
    assert read_exchange(WRITTEN.encode(), "written by ada").cards == (card,)
    named = WRITTEN.replace("Average speed there and back", "EXACT_MEAN_SPEED")
    assert read_text_card(named, "a test").card_id == "EXACT_MEAN_SPEED", "an id as the name is kept"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("# Average speed there and back", "# Speed", "3 or more words"),
        (r"\boxed{42}", "42", "whole examples with answers"),
        ("For the same way", "\n".join(f"Line {n}." for n in range(4)), "body of 5 non-blank lines"),
        ("Useful when:", "When:", "does not begin with a trigger header"),
        ("- average speed\n- there and back\n- returns the same way\n", "", "does not begin with a trigger header"),
        ("- average speed\n", "- the average speed of a whole trip\n", "has a trigger of 7 words"),
        ("Worked:\na = 10", "a = 10", "whole examples with answers"),
        ("# Average speed there and back", "# <a name of 2 or more words>", "still has <a name"),
        (WRITTEN[WRITTEN.index("Example:") :], "", "whole examples with answers"),
        (WRITTEN, TEMPLATE, "still has <"),
    ],
)
def test_a_text_that_breaks_a_rule_is_refused(old: str, new: str, words: str):
    assert old in WRITTEN
    with pytest.raises(CardError) as caught:
        read_text_card(WRITTEN.replace(old, new), "a test")
    assert words in str(caught.value) and caught.value.fix


# The two forms of cards in papers: an id of seven words with an unknown epoch, and a
# rubric without a trigger header, whose triggers are its routing conditions.
PAPER: dict[str, object] = {"source": "a paper", "promotion_status": "validated", "epoch_introduced": -1}
IN_PAPERS: list[dict[str, object]] = [
    {
        "card_id": "ALGO_RUBRIC_SOLID_3D_TANK_TIPPED_LEVEL",
        "payload": "Useful when:\n- tank tipped about edge\nDo not apply if:\n- the tank stands upright\n\n"
        "1. Put the edge on the z axis.\n2. The water keeps its volume.\n3. Its surface stays level.",
        "routing_conditions": ["a closed tank is tipped and the water level is asked"],
        "difficulty_tag": "hard",
        "domain_tags": ["geometry"],
        "helpfulness_score": 0.0,
        "provenance": {**PAPER, "supporting_problems": ["P1"], "validated_lift": "", "n_uses": 4, "n_wins": 3},
    },
    {
        "card_id": "RUBRIC_MOST_MARKED_CELLS",
        "payload": "Bound the count from above by blocks, then draw a marking that reaches the bound.",
        "routing_conditions": ["Choose when the largest number of marked cells is asked", "not for counting all"],
        "difficulty_tag": "medium",
        "domain_tags": ["counting"],
        "helpfulness_score": 0.0,
        "provenance": PAPER,
    },
]


def test_cards_in_the_forms_of_papers_are_read_with_a_warning():
    bundle = read_exchange(json.dumps(IN_PAPERS).encode())
    first, second = bundle.cards
    assert first.card_id == "ALGO_RUBRIC_SOLID_3D_TANK_TIPPED_LEVEL"
    assert first.provenance.epoch_introduced == second.provenance.epoch_introduced == 0
    assert second.triggers == ("Choose when the largest number", "not for counting all")
    assert second.body.startswith("Bound the count")
    assert len(bundle.mended) == 3
    assert "epoch -1" in bundle.mended[0] and "trigger header" in bundle.mended[2]
