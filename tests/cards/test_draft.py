"""A card as a person writes it: what has a default, what is mended, and all faults at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from kace.cards.card import Difficulty, Status
from kace.cards.formats import TEMPLATE, read_draft

WRITTEN = (Path(__file__).parents[2] / "docs" / "examples" / "average-speed.md").read_text(encoding="utf-8")


def faults(text: str, *known: str) -> list[str]:
    draft = read_draft(text, "a test", known)
    assert draft.card is None
    return [fault.what for fault in draft.faults]


def test_a_name_when_a_rule_and_examples_make_a_card():
    card = read_draft(WRITTEN, "written by ada").card
    assert card is not None
    assert card.card_id == "RUBRIC_AVERAGE_SPEED_THERE_AND_BACK"
    assert card.triggers == ("average speed", "there and back", "returns the same way")
    assert card.body.startswith("Average speed = whole way / whole time.")
    assert [example.worked.split()[-1] for example in card.examples] == [r"\boxed{42}.", r"\boxed{12}."]
    assert (card.difficulty_tag, card.domain_tags, card.status) == (
        Difficulty.MEDIUM,
        ("universal",),
        Status.EXPERIMENTAL,
    )
    assert card.provenance.source == "written by ada"


def test_without_a_name_the_triggers_name_it_and_an_id_stays_as_it_is():
    _, _, bare = WRITTEN.partition("\n")
    for text, name in (
        (bare, "RUBRIC_AVERAGE_SPEED_THERE_AND_BACK"),
        (f"# EXACT_MEAN_SPEED\n{bare}", "EXACT_MEAN_SPEED"),
    ):
        card = read_draft(text, "a test").card
        assert card is not None
        assert card.card_id == name


def test_all_faults_are_told_at_once():
    text = WRITTEN.replace("# Average speed there and back", "# Speed").replace(r"\boxed{42}", "42")
    text = text.replace("For the same way", "\n".join(f"Line {n}." for n in range(6)))
    assert faults(text) == ["has no name of 2 to 5 words", "has a rule of 7 lines", "has no answer in example 1"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Useful when:", "When:", "does not begin with a trigger header"),
        ("- average speed\n- there and back\n- returns the same way\n", "", "has no bullet under 'Useful when:'"),
        ("- average speed\n", "- the average speed of a whole trip\n", "has a trigger of 7 words"),
        ("Worked:\na = 10", "a = 10", "has an 'Example:' that is not whole"),
        ("# Average speed there and back", "# <a name of 2 to 5 words>", "still has <a name of 2 to 5 words>"),
    ],
)
def test_what_is_missing_is_named(old: str, new: str, said: str):
    assert any(fault.startswith(said) for fault in faults(WRITTEN.replace(old, new)))


def test_the_template_left_as_it_is_says_what_to_write():
    told = faults(TEMPLATE)
    assert len(told) == 9
    assert all(fault.startswith("still has <") for fault in told)


def test_examples_are_asked_for_and_a_name_is_given_once():
    rule, _, _ = WRITTEN.partition("Example:")
    assert faults(rule) == ["has no 'Example:'"]
    (said,) = faults(WRITTEN, "RUBRIC_AVERAGE_SPEED_THERE_AND_BACK")
    assert "has the name of a card that is there" in said
