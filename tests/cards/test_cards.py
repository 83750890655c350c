"""Cards: every rule at the border, one clear line for each breach, and JSON that comes back byte for byte."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kace.cards.card import (
    BODY_CAPS,
    EXAMPLE_LINES,
    MAX_EXAMPLES,
    Card,
    CardError,
    Difficulty,
    Example,
    Status,
    card_line,
    card_of,
    read_card,
    read_payload,
    split_examples,
)
from tests.card_samples import a_card, cards, with_body

RECORD = a_card().model_dump(mode="json")


def record(**fields: object) -> str:
    return json.dumps({**RECORD, **fields})


def refusal(raw: str | bytes) -> str:
    with pytest.raises(CardError) as caught:
        read_card(raw)
    said = str(caught.value)
    assert "\n" not in said and said.isprintable(), "one line that no terminal chokes on"
    assert caught.value.fix, "every refusal names its fix"
    assert len(said) < 400
    return said


@settings(deadline=None, max_examples=100)
@given(cards())
def test_a_canonical_line_comes_back_byte_for_byte(card: Card):
    line = card_line(card)
    assert read_card(line) == card
    assert card_line(read_card(line.encode())) == line
    assert "\n" not in line


def test_a_payload_comes_apart_into_triggers_header_and_body():
    card = a_card()
    assert card.triggers == ("sum of two squares",)
    assert read_payload(card.payload).avoid == ("the terms are not squares",)
    assert card.body == "Use $a^2+b^2=(a+b)^2-2ab$.\nCheck with small numbers."
    assert card.status is Status.EXPERIMENTAL


@pytest.mark.parametrize("difficulty", Difficulty)
def test_a_body_may_fill_its_cap_and_not_exceed_it_by_one(difficulty: Difficulty):
    cap = BODY_CAPS[difficulty]
    assert read_card(json.dumps(with_body(cap, difficulty))).difficulty_tag is difficulty
    said = refusal(json.dumps(with_body(cap + 1, difficulty)))
    assert f"{cap + 1} non-blank lines, {difficulty.value} allows {cap}" in said
    assert "RUBRIC_LONG_BODY" in said


BAD_IDS = (
    *("../X", "../X_Y_Z", "EXACT_A", "exact_a_b", "EXACT_A_B\n", "EXACT_A_B.", "EXACT A B"),
    *("EXACT__A_B", "_EXACT_A_B", "C:\\X_Y_Z", "a/b", "con", ".", "", "EXACT_A_" + "B" * 60, "EXACT_É_B", "FACT_A_B"),
)


@pytest.mark.parametrize("card_id", BAD_IDS)
def test_an_id_that_is_a_path_or_has_another_shape_is_refused(card_id: str):
    assert "id" in refusal(record(card_id=card_id))


BAD_PAYLOADS = {
    "": "does not begin with a trigger header",
    "Use it.": "does not begin with a trigger header",
    "Useful when:\n\nbody": "does not begin",
    "Useful when:\n- \n\nbody": "does not begin",
    "Useful when:\n- a b c d e f\n\nbody": "trigger of 6 words",
    "Useful when:\n- a\n": "has no body",
    "Useful when:\n- a\n\n  \n": "has no body",
    "Useful when:\n- a\nDo not apply if:\n\nbody": "does not begin",
    "Useful when:\n- a\n\nDo not apply if:\n- b\n\nbody": "no body after",
    "Useful when:\n- a\n\n" + "x" * 8_000: "at most 8000 characters",
    "Useful when:\n- a\n\nbo\x00dy": "U+0000",
    "Useful when:\n- a\n\nbo\u200bdy": "U+200B",
    "Useful when:\r\n- a\r\n\r\nbody": "U+000D",
}


@pytest.mark.parametrize("payload", BAD_PAYLOADS)
def test_a_payload_that_breaks_a_rule_is_refused_by_name(payload: str):
    assert BAD_PAYLOADS[payload] in refusal(record(payload=payload))


@pytest.mark.parametrize(
    "command", [r"\frac", r"\theta", r"\text", r"\times", r"\beta", r"\boxed", r"\rho", r"\right", r"\nabla", r"\notin"]
)
def test_latex_that_json_escapes_corrupted_is_named_as_such(command: str):
    raw = record(payload="Useful when:\n- a\n\nTake @{x} here").replace("@", command)
    said = refusal(raw)
    assert "LaTeX corrupted by JSON escapes" in said
    assert "double every backslash" in said
    assert read_card(raw.replace(command, "\\" + command)).body == f"Take {command}{{x}} here"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"domain_tags": []}, "domain_tags"),
        ({"domain_tags": ["Algebra"]}, "number_theory"),
        ({"domain_tags": ["algebra", "algebra"]}, "repeats a domain tag"),
        ({"domain_tags": "algebra"}, "domain_tags"),
        ({"difficulty_tag": "easy"}, "difficulty_tag"),
        ({"helpfulness_score": "1"}, "helpfulness_score"),
        ({"routing_conditions": ["x" * 301]}, "routing_conditions.0"),
        ({"routing_conditions": ["x\ny"]}, "a newline"),
        ({"provenance": {}}, "provenance.source"),
        ({"provenance": {"source": "t", "n_uses": -1}}, "provenance.n_uses"),
        ({"provenance": {"source": "t", "promotion_status": "great"}}, "provenance.promotion_status"),
        ({"colour": "red"}, "colour"),
        ({"col\nour\x1b[31m": "red"}, "Extra inputs"),
    ],
)
def test_a_field_out_of_range_is_refused_by_name(fields: dict[str, object], words: str):
    said = refusal(record(**fields))
    assert words in said
    assert "EXACT_SUM_OF_SQUARES" in said


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("", "not valid JSON"),
        ("[]", "JSON object"),
        (record()[:-2], "not valid JSON"),
        (record().replace(": 0.0", ": NaN"), "JSON"),
        (record().replace(": 0.0", ": 1e999"), "finite"),
        ("[" * 8_000, "recursion limit exceeded"),
        (b"\xff\xfe", "not UTF-8"),
        (record(payload="x" * 10_000_000), "at most 8000 characters"),
        (record(payload="Useful when:\n- a\n\n" + "漢" * 7_900), "bytes"),
    ],
    ids=lambda value: value[:12] if isinstance(value, (str, bytes)) else None,
)
def test_text_that_is_no_card_is_refused(raw: str | bytes, words: str):
    assert words in refusal(raw)


@settings(deadline=None, max_examples=100)
@given(st.text() | st.binary())
def test_no_text_makes_reading_fail_otherwise(raw: str | bytes):
    with pytest.raises(CardError):
        read_card(raw)


# Worked examples

RULE = "Useful when:\n- both roots\n\nAdd them.\nThen halve."
ROOTS = Example(
    "The roots are 2 and 6. What is their mean?", "Rule: add, then halve.\n2 + 6 = 8.\n8 / 2 = 4, \\boxed{4}."
)
BOATS = Example("Two boats\n\ncarry 3 and 5.", "Rule: add.\n\\boxed{4}")


def test_examples_stand_after_the_body_and_come_back_as_they_were():
    plain = card_of({**RECORD, "payload": RULE})
    assert plain.examples == ()
    card = plain.illustrated((ROOTS, BOATS))
    assert card.payload == f"{RULE}\n\n{ROOTS.text}\n\n{BOATS.text}"
    assert (card.rule, card.body) == (plain.rule, plain.body)
    assert card.examples == (ROOTS, BOATS)
    assert card.illustrated(()) == plain
    assert read_card(card_line(card)) == card


def test_examples_do_not_count_towards_the_body_and_have_caps_of_their_own():
    full = RULE + "\nMore." * 4
    card = card_of({**RECORD, "payload": full, "difficulty_tag": "medium"})
    assert card.illustrated((ROOTS,) * MAX_EXAMPLES).examples == (ROOTS,) * MAX_EXAMPLES
    with pytest.raises(CardError, match="5 examples"):
        card.illustrated((ROOTS,) * (MAX_EXAMPLES + 1))
    with pytest.raises(CardError, match="25 non-blank lines"):
        card.illustrated((Example("How many?", "Add.\n" * EXAMPLE_LINES),))


@pytest.mark.parametrize("part", ["Example:\nWhat is 2 + 2?", "Example:\nWorked:\nAdd.", "Example:\nWhat?\nWorked:\n "])
def test_a_part_without_problem_or_solution_is_body(part: str):
    payload = f"{RULE}\n\n{part}\n\n{ROOTS.text}"
    assert split_examples(payload) == (payload, ())
