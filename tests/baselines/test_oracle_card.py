"""The ceiling: cards of a problem's own family, whatever router and gate would say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kace.cards.tree import EpistemicTree
from kace.errors import DataError, UsageError
from kace.ladder.tiers import ExitPath
from kace.problems import Problem, problem_rows
from tests.baselines.arena import TREE, Solver, ids, reading, solve

SKIPPING = reading(es_policy="skip")
SUPPORT = {
    "MEDCOUNT": ("t1",), "HARDGEO": ("t1", "t2"), "MEDRATE": ("t2",), "HARDRATE": ("t3",), "GONE": ("t1",),
}  # fmt: skip
TRAIN = (
    Problem("Nine people meet in pairs.", "36", "t1", family="pairs"),
    Problem("Two trains leave at noon.", "4", "t2", family="trains"),
    Problem("A rope is cut at random.", "1/2", "t3", family="ropes"),
)
PAIRS = Problem("What is the area of a square with side 3?", "9", "p1", family="pairs")


def supported() -> EpistemicTree:
    """The tree of the arena, whose cards came from these training problems."""
    cards = []
    for card in TREE:
        name = card.card_id.split("_")[1]
        told = card.provenance.model_copy(update={"supporting_problems": SUPPORT.get(name, ("elsewhere",))})
        cards.append(card.model_copy(update={"provenance": told}))
    return EpistemicTree.of(TREE.domains, cards)


@pytest.fixture
def train(tmp_path: Path) -> Path:
    file = tmp_path / "train.jsonl"
    file.write_text("\n".join(problem_rows(TRAIN)) + "\n")
    return file


def test_a_tier_reads_its_own_cards_of_the_family_and_of_any_domain(train: Path):
    model = Solver(domain="rates")
    solution = solve("oracle-card", model, PAIRS, tree=supported(), artefact=train)
    assert model.shown["MS"] == ids("MEDCOUNT") and model.shown["HS"] == ids("HARDGEO")
    assert model.shown["ES"] == set() and "DOMAIN" not in model.texts
    assert [recall.eligible for recall in solution.recalls] == [1, 1], "a deprecated card is never shown"


@pytest.mark.parametrize("family", ["weather", "ropes"])
def test_a_family_without_a_card_at_ms_reads_none_there_and_begins_at_es(family: str, train: Path):
    model = Solver()
    solution = solve(
        "oracle-card", model, replace(PAIRS, family=family), tree=supported(), artefact=train, config=SKIPPING
    )
    assert "ES" in model.texts and model.shown["MS"] == set()
    assert model.shown["HS"] == (ids("HARDRATE") if family == "ropes" else set())
    assert solution.exit is ExitPath.FALLBACK_LAST_HS


def test_es_is_skipped_where_the_family_has_a_card_and_kept_by_the_locked_ladder(train: Path):
    skipped = solve("oracle-card", Solver(["9"] * 3), PAIRS, tree=supported(), artefact=train, config=SKIPPING)
    assert skipped.exit is ExitPath.MS_MAJORITY and len(skipped.attempts) == 3
    kept = solve("oracle-card", Solver(["9"] * 2), PAIRS, tree=supported(), artefact=train)
    assert kept.exit is ExitPath.ES_UNANIMOUS


def test_what_it_needs_is_said_with_the_fix(train: Path, tmp_path: Path):
    with pytest.raises(UsageError, match="reads a training file, and none is given") as caught:
        solve("oracle-card", Solver(), PAIRS, tree=supported())
    assert "--artefact train.jsonl" in caught.value.fix
    with pytest.raises(DataError, match="no card of the tree came from a problem in it"):
        solve("oracle-card", Solver(), PAIRS, tree=TREE, artefact=train)
    with pytest.raises(DataError, match="needs families, and no problem has one"):
        solve("oracle-card", Solver(), replace(PAIRS, family=None), tree=supported(), artefact=train)
    with pytest.raises(DataError, match="1 training problems appear in the evaluated data"):
        solve("oracle-card", Solver(), TRAIN[1], tree=supported(), artefact=train)
    bare = tmp_path / "bare.jsonl"
    bare.write_text('{"problem": "What?", "answer": "1", "id": "t1"}\n')
    with pytest.raises(DataError, match="that has a family"):
        solve("oracle-card", Solver(), PAIRS, tree=supported(), artefact=bare)
