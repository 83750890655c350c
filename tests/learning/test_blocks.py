"""Tagged blocks: read byte for byte where they have the form, listed with a reason where they have not."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kace.cards.card import stray_character
from kace.learning.teacher import MAX_BLOCKS, MAX_REPLY_CHARS, Block, CardRefusal, Grammar, read_blocks, read_numbers

CARD = Grammar("card", name="id", required=("id", "payload"), text="payload")
GAP = Grammar("gap", name="", required=("text",), text="text")


def block(name: str = "A_B_C", text: str = "say it", extra: str = "") -> str:
    return f"<card>\nid: {name}\n{extra}payload:\n{text}\n</card>"


def only(reply: str, grammar: Grammar = CARD) -> Block:
    blocks, bad = read_blocks(reply, grammar)
    assert not bad
    (found,) = blocks.values()
    return found


def fault(reply: str, grammar: Grammar = CARD) -> CardRefusal:
    blocks, bad = read_blocks(reply, grammar)
    assert not blocks
    assert len(bad) == 1
    return bad[0]


# What has the form


def test_a_block_is_its_fields_and_its_text():
    found = only("<card>\nid: A_B_C\nproblems: 1, 3\npayload:\nfirst\n\n  second: line\n</card>")
    assert found == {"id": "A_B_C", "problems": "1, 3", "payload": "first\n\n  second: line"}


@pytest.mark.parametrize(
    "around",
    [
        "Sure! Here is the card.\n{}\nI hope it helps: <card> is the tag I used.",
        "```\n{}\n```",
        "```xml\n{}\n```",
        "<think>\nA draft:\n<card>\nid: X_Y_Z\npayload:\nno\n</card>\n</think>\n{}",
        "<THINKING>never closed on this line: <card>\n</thinking>\n{}",
        "thinking that the server opened\n<card>\nid: X_Y_Z\n</think>\n{}",
        "\ufeff{}",
        "</card>\n{}\n</card>",
    ],
)
def test_what_stands_around_a_block_is_ignored(around: str):
    assert only(around.format(block()))["payload"] == "say it"


def test_unfinished_thinking_holds_no_block():
    assert "no block" in fault(f"<think>\nmaybe\n{block()}").reason


@pytest.mark.parametrize(
    "text",
    [
        r"\frac{a}{b} \forall \flat",
        r"\theta \times \tan \text{if} \to",
        r"\beta \binom{n}{k} \bar x \begin{cases}",
        r"\nabla \neq \nu \notin \n",
        r"\rho \right) \rangle \r",
        r"\upsilon \u0041 \uparrow \cup",
        r"\\ \" \/ \a \v \x41 \N{DIGIT ONE} %20 &lt; &#65;",
        "ends in a backslash \\",
    ],
)
def test_latex_and_escapes_survive_byte_for_byte(text: str):
    assert only(block(text=text))["payload"] == text


def test_line_ends_of_windows_any_case_and_blank_lines_between_fields_are_read():
    assert only(block(text="one\ntwo").replace("\n", "\r\n"))["payload"] == "one\ntwo"
    assert only("<card>\n\nID: A_B_C\n \nPayload:\nx\n</card>") == {"id": "A_B_C", "payload": "x"}
    assert only("<gap>\ntext: no card covers it\nat all\n</gap>", GAP)["text"] == "no card covers it\nat all"


def test_delimiters_quoted_inside_a_line_are_text():
    text = "Write </card> or <card> in a line; `<cards>` too.\n> </card>"
    assert only(block(text=text))["payload"] == text


# What has not


def test_a_block_that_is_cut_off_costs_itself_only():
    blocks, bad = read_blocks(f"{block('A_B_C')}\n<card>\nid: D_E_F\npayload:\nUseful wh", CARD)
    assert list(blocks) == ["A_B_C"]
    assert [found.card_id for found in bad] == ["D_E_F"]
    assert "cut off" in bad[0].reason
    blocks, bad = read_blocks(f"<card>\nid: D_E_F\npayload:\nUseful\n{block('A_B_C')}", CARD)
    assert list(blocks) == ["A_B_C"] and "end tag is missing" in bad[0].reason, "it does not swallow the next"


def test_a_text_that_holds_a_whole_block_costs_no_other():
    nested = block("D_E_F", text=block("G_H_I", text="inner"))
    blocks, bad = read_blocks(f"{nested}\n{block('A_B_C')}", CARD)
    assert list(blocks) == ["G_H_I", "A_B_C"]
    assert [found.card_id for found in bad] == ["D_E_F"]


def test_of_two_blocks_with_one_name_the_first_stays():
    blocks, bad = read_blocks(f"{block(text='first')}\n{block(text='second')}", CARD)
    assert [found["payload"] for found in blocks.values()] == ["first"]
    assert "names must differ" in bad[0].reason


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("<card>\n</card>", "id is missing"),
        ("<card>\nid:\npayload:\nx\n</card>", "id is missing"),
        ("<card>\nid: A_B_C\n</card>", "payload is missing"),
        ("<card>\nid: A_B_C\npayload:\n \n\n</card>", "payload is missing"),
        ('<card>\n{"id": "A_B_C"}\n</card>', "id is missing"),
        (block(text="a\x0crac{1}{2}"), "LaTeX corrupted"),
        (block(text="a\x08eta"), "LaTeX corrupted"),
        (block(text="bell \x07"), "U+0007"),
        (block(text="\x1b[31mred"), "U+001B"),
        (block(text="\ud800"), "U+D800"),
        (block(text="left \u202e right"), "U+202E"),
    ],
)
def test_a_block_without_the_form_says_what_is_wrong(reply: str, reason: str):
    assert reason in fault(reply).reason


@pytest.mark.parametrize("reply", ["", "   \n", "I cannot help with that.", "抱歉，我不能。", "<card> </card>"])
def test_a_reply_without_blocks_is_one_bad_block(reply: str):
    assert "no block" in fault(reply).reason


def test_blocks_and_text_over_the_limits_are_not_read():
    blocks, bad = read_blocks("\n".join(block(f"A_B_{n}") for n in range(1_000)), CARD)
    assert len(blocks) == MAX_BLOCKS and not bad
    assert "no block" in fault("x" * MAX_REPLY_CHARS + f"\n{block()}").reason


MARKS = ("<card>", "</card>", "id: A_B_C", "id:", "payload:", "<think>", "</think>", "```", "x:y", "")
PIECES = st.sampled_from((*MARKS, "\r", "\x00", "\ud800"))


@given(st.one_of(st.text(st.characters()), st.lists(st.one_of(PIECES, st.text(max_size=8))).map("\n".join)))
@example("<card>\nid: \ud800\npayload:\n\udfff\n</card>")
@example("<think>" * 50)
def test_reading_never_raises_and_what_it_says_can_be_stored(reply: str):
    for grammar in (CARD, GAP, Grammar("card", name="payload", text="payload"), Grammar("card", name="")):
        blocks, bad = read_blocks(reply, grammar)
        for text in (value for found in blocks.values() for value in found.values()):
            assert all(char.isprintable() or char in "\n\t" or ord(char) > 0x9F for char in text)
            assert "\r" not in text
            text.encode()
        for found in bad:
            assert not any(ord(char) < 32 for char in found.reason + found.card_id)


@given(
    st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1)
    .map(str.strip)
    .filter(lambda line: line and "\n" not in line and "\t" not in line and not stray_character(line))
)
def test_any_printable_line_survives_in_a_text(line: str):
    assert only(block(text=f"x {line}"))["payload"] == f"x {line}"


# Lists of numbers


@pytest.mark.parametrize(
    ("value", "numbers"),
    [
        ("1, 3", (1, 3)),
        ("3 1 3", (3, 1)),
        ("#2; 5", (2, 5)),
        ("1, 4 - 6,8", (1, 4, 5, 6, 8)),
        ("2–3", (2, 3)),
        ("1 and 2", (1, 2)),
        ("9" * 5_000, ()),
        ("all", ()),
    ],
)
def test_numbers_are_read_as_people_list_them(value: str, numbers: tuple[int, ...]):
    assert read_numbers(value, 9) == numbers


@pytest.mark.parametrize("value", ["0", "10", "5-3", "1-99", "2, 0"])
def test_numbers_out_of_range_are_refused(value: str):
    with pytest.raises(ValueError, match="problem"):
        read_numbers(value, 9)
