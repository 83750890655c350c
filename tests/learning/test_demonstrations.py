"""Worked examples: asked for once a cell, read strictly, and never at the price of a card."""

from __future__ import annotations

import asyncio
from functools import partial

from kace.cards.card import Card
from kace.learning.propose import EXAMPLE_ID, Proposals
from kace.learning.revise import demonstrations, write
from kace.learning.screen import LeakScreen, check_card
from kace.learning.teacher import Teacher, TeacherStep, instructions, read_by_card
from kace.problems import Problem
from tests.learning.said import Said, passes
from tests.learning.sound_cards import PAYLOADS, sound_card

FIRST, SECOND = (sound_card(name) for name in list(PAYLOADS)[:2])
TRAIN = Problem("A floor of 7 by 12 feet is laid with square tiles. How many tiles are there?", "84", "tiles")


ONE = demonstrations(1, {}, passes)


def block(card: Card, *parts: str) -> str:
    return f"<example>\nid: {card.card_id}\ntext:\n" + "\n\nExample:\n".join(parts) + "\n</example>\n"


def part(a: int = 11, b: int = 13) -> str:
    return f"A wall has {a} rows of {b} bricks. How many?\nWorked:\nRule: multiply.\n\\boxed{{{a * b}}}"


def ask(model: Said, count: int = 1) -> Proposals:
    leaks = LeakScreen((TRAIN,))
    screen = partial(check_card, leaks=leaks, domains=("algebra",))
    context = TeacherStep(Teacher(model), "epoch 1 illustrate", 1, screen)
    writing = demonstrations(count, {"tiles": TRAIN}, screen)
    return asyncio.run(write((FIRST, SECOND), writing, context))


def test_every_card_gets_its_examples_and_keeps_its_rule():
    model = Said(block(FIRST, part(11, 13), part(15, 17)) + block(SECOND, part(19, 21), part(23, 27)))
    found = ask(model, count=2)
    assert model.calls == 1
    assert [len(card.examples) for card in found.cards] == [2, 2]
    assert [card.rule for card in found.cards] == [FIRST.rule, SECOND.rule]
    assert found.cards[0].examples[1].worked.endswith("\\boxed{255}")
    assert "2 examples, each with a story of its own," in model.requests[0].messages[1].content


def test_what_is_refused_is_asked_for_once_more_and_then_the_card_stays_without():
    retold = part(7, 12)
    model = Said(block(FIRST, retold) + block(SECOND, part()), block(FIRST, retold))
    found = ask(model)
    assert model.calls == 2
    assert "has the numbers and the answer of a problem" in model.requests[1].messages[-1].content
    assert found.cards == (SECOND.illustrated(found.cards[0].examples),)
    assert [(each.card_id, each.by, each.rule) for each in found.refused] == [(FIRST.card_id, "code", "answer_leak")]


def test_unknown_cards_missing_boxes_and_wrong_counts_are_refused_with_a_reason():
    cases = {
        block(SECOND, part()): "no card of that id",
        block(FIRST, part(), part()): "2 examples, and 1 are asked for",
        block(FIRST, "Only a problem?"): "a line `Worked:`",
        block(FIRST, "What is 2 + 2?\nWorked:\nIt is 4."): "does not end with its answer",
        "": "there is no block example for this card",
    }
    for reply, reason in cases.items():
        reading = read_by_card(reply, ONE.grammar, [FIRST], ONE.add)
        assert not reading.found
        assert any(reason in bad.reason for bad in reading.bad), (reply, reading.bad)


def test_the_prompt_shows_a_block_that_the_reader_knows_and_refuses():
    (bad,) = read_by_card(instructions("illustrate"), ONE.grammar, [], ONE.add).bad
    assert bad.card_id == EXAMPLE_ID
