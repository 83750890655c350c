"""The step log of a recorded learning run, with the tree that it led to."""

from __future__ import annotations

from kace.cards.store import TreeStore, open_tree
from kace.learning.measure import Impact
from kace.learning.propose import Proposals
from kace.learning.study import read_steps
from tests.recorded import recorded

TREE = recorded("learning_run") / "tree"


def test_the_tree_of_a_recorded_run_is_whole():
    store = TreeStore.open(TREE)
    assert len(store.log()) == store.generation + 1
    assert store.load().content_hash() == store.read().frozen
    assert len(open_tree(TREE / "snapshots" / "epoch-2.jsonl")) == 17


def test_every_step_of_a_recorded_run_is_read_and_accounts_for_the_tree():
    steps = list(read_steps(TREE / "learn" / "steps.jsonl"))
    assert {step.epoch for step in steps} >= {1, 2}
    admitted = [card for step in steps if step.what == "admit" for card in step.read(Proposals).cards]
    measured = {name for step in steps if step.what == "impact" for name in step.read(Impact).lifts}
    tree = open_tree(TREE)
    assert {card.card_id for card in admitted} == {card.card_id for card in tree}
    assert measured <= {card.card_id for card in tree}
    for card in admitted:
        assert tree.card(card.card_id).provenance.supporting_problems
