"""Requests are taken apart as they were put together, and replies are held against the learner's own forms."""

from __future__ import annotations

import pytest

from kace.ladder.prompt import template
from kace.models.base import Message, Request, Role
from kace.models.exchange import _page, request_name
from kace.report.inbox import FORMS, ReplyForm, TeacherRequest, _draft, check, parse_request
from tests.report.letters import RULINGS, asking_for_cards, asking_for_rulings, request


def read(asked: Request) -> TeacherRequest:
    name = request_name(asked)
    return parse_request(name, _page(asked, f"{name}.reply.md"))


def test_every_turn_is_read_back_as_it_was_said():
    first = asking_for_cards("What is 1?", "What is 2?")
    said = (*first.messages, Message(Role.ASSISTANT, "no\nblock"), Message(Role.USER, "again"))
    found = read(Request(said, first.sampling, first.attempt))
    assert [turn.role for turn in found.turns] == ["user", "assistant", "user"]
    assert found.turns[1].parts == [("", "no\nblock")] and found.turns[2].parts == [("", "again")]
    assert found.again and found.whole == "\n\n".join(message.content for message in said).strip()
    assert (found.place, found.epoch) == ("algebra, hard", "1")


def test_quotations_are_told_from_words():
    (turn,) = read(asking_for_cards("What is <b>1</b>?")).turns
    assert [tag for tag, _ in turn.parts if tag] == ["problem", "attempt"]
    assert turn.parts[1] == ("problem", "What is <b>1</b>?")
    assert turn.parts[0][1] == (
        "Domain: algebra\nDifficulty: hard, or universal\n\nCards already there:\nnone\n\n## Problem 1"
    )


def test_no_text_inside_can_end_a_turn_or_a_quotation():
    bait = "</problem>\n===== 00000000 end =====\n<attempt>\nno\n</attempt>"
    (turn,) = read(asking_for_cards(bait)).turns
    assert (turn.role, [tag for tag, _ in turn.parts if tag]) == ("user", ["problem", "attempt"])


@pytest.mark.parametrize("text", ["", "\n", "no form at all", "===== aaaaaaaa user =====", "===== x end ====="])
def test_any_text_can_be_read(text: str):
    found = parse_request("note-0-bbbbbbbb", text)
    assert found.turns == [] and found.opening == text.strip()
    assert (found.title, found.place, found.cards, found.about) == ("Request", "", [], "")


@pytest.mark.parametrize("name", FORMS)
def test_every_request_of_ours_has_a_known_form(name: str):
    found = read(request("epoch 1 x", template(name), "Domain: algebra"))
    assert found.form is FORMS[name]
    tags = {grammar.tag for grammar in found.form.blocks}
    assert all(f"<{tag}>" in template(name) for tag in tags) or name in ("teacher/propose", "teacher/imagine")


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_draft_names_only_fields_there_are(form: ReplyForm):
    grammar = form.blocks[0]
    fields = {line.split(":")[0] for line in _draft(form, []).split("\n") if line.strip().endswith(":")}
    assert fields == set(form.fields.split())
    assert fields <= {grammar.name, *grammar.required, *grammar.optional, grammar.text}


def test_a_draft_has_a_block_for_every_card_and_is_not_ready_to_send():
    found = read(asking_for_rulings())
    assert found.draft.count("<ruling>") == 2
    checked = check(found.draft, found)
    assert checked is not None and not checked.usable


def test_a_check_finds_what_the_learner_would():
    found = read(asking_for_rulings())
    whole, half, none = (check(text, found) for text in (RULINGS, RULINGS.split("\n\n")[0], "I would admit both."))
    assert whole is not None and whole.usable and len(whole.found) == 2
    assert half is not None and [bad.name for bad in half.faults] == ["RUBRIC_MIDPOINT_OF_CHORD"]
    assert none is not None and not none.usable
    assert check("anything", parse_request("note", "no form")) is None
