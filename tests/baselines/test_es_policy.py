"""ES policies beyond the paper: a card that covers a problem keeps it from leaving at ES."""

from __future__ import annotations

import pytest

from kace.cards.card import Difficulty, Example
from kace.cards.tree import EpistemicTree
from kace.errors import UsageError
from kace.ladder.record import Solution
from kace.ladder.tiers import ExitPath
from kace.problems import Problem
from tests.baselines.arena import TREE, Solver, ids, reading, solve

SKIPPING = reading(es_policy="skip")
KNOWN = Problem("How many pairs of people can be formed?", "2", "known")
STRANGE = Problem("What is any answer?", "2", "strange")
PAIRS = Example("How many pairs of people can 3 people form?", r"So \boxed{3}")
SHOWING = EpistemicTree.of(
    TREE.domains, [card.illustrated([PAIRS]) if card.card_id in ids("MEDCOUNT") else card for card in TREE]
)
"""Only a card with a demonstration keeps a problem from ES: triggers are too short to score."""


def direct(*answers: str | None) -> tuple[Solution, Solver]:
    """A problem that a card speaks of, solved by the ladder that begins at MS."""
    solver = Solver(answers)
    return solve("kace", solver, KNOWN, config=SKIPPING, tree=SHOWING), solver


def test_a_problem_that_a_card_speaks_of_begins_at_ms():
    solution, solver = direct("1", "2", "2")
    assert solution.exit is ExitPath.MS_MAJORITY and solution.correct
    assert solution.paper_calls == solution.real_calls == len(solution.attempts) == 3
    assert "ES" not in solver.texts and ids("MEDCOUNT") <= solver.shown["MS"]
    assert [each.positions for each in solution.classes] == [(0,), (1, 2)]
    assert len(solution.agreeing) == 2


def test_any_other_problem_begins_at_es():
    for answers in (["1"] * 10, [str(n) for n in range(10)]):
        ours, theirs = (Solver(answers=answers) for _ in range(2))
        assert (
            solve("kace", ours, STRANGE, config=SKIPPING, tree=SHOWING).exit
            is solve("kace", theirs, STRANGE, tree=SHOWING).exit
        )
        assert [r.digest("model") for r in ours.requests] == [r.digest("model") for r in theirs.requests]


def test_what_does_not_agree_at_ms_climbs_to_hs():
    solution, solver = direct("1", "2", "3", "4", "5", "2", "2", "6")
    assert solution.exit is ExitPath.HS_PLURALITY and solution.correct
    assert solution.paper_calls == len(solution.attempts) == 8
    assert [attempt.tier for attempt in solution.attempts] == ["MS"] * 3 + ["HS"] * 5
    assert [recall.tier for recall in solution.recalls] == ["MS", "HS"]
    assert ids("HARDCOUNT") <= solver.shown["HS"]
    assert {n for n, a in enumerate(solution.attempts) if a.correct} == {1, 5, 6}, (
        "positions count from the first attempt that was made"
    )


@pytest.mark.parametrize(
    ("answers", "path", "answer"),
    [
        (("1", "2", "3", "4", "5", "2", "6", "7"), ExitPath.FALLBACK_PLURALITY, "2"),
        (("1", "2", "3", "4", "5", "6", "7", "8"), ExitPath.FALLBACK_LAST_HS, "8"),
        ((None,) * 8, ExitPath.FALLBACK_LAST_HS, None),
    ],
)
def test_where_no_gate_opens_the_attempts_that_were_made_decide(
    answers: tuple[str | None, ...], path: ExitPath, answer: str | None
):
    solution, _ = direct(*answers)
    assert solution.exit is path
    assert solution.answer == answer
    assert len(solution.attempts) == 8


@pytest.mark.parametrize(
    ("answers", "path", "tiers"),
    [
        (["2", "2", "2"], ExitPath.MS_MAJORITY, ["MS"]),
        (["1", "1", "2", "2", "2"], ExitPath.ES_UNANIMOUS, ["MS", "ES"]),
        (["1", "1", None, "3", "4", "2", "5", "2", "6", "7"], ExitPath.HS_PLURALITY, ["MS", "ES", "HS"]),
        (["1", "2", "3", "4", "5", "6", "7", "8", "9", "2"], ExitPath.FALLBACK_PLURALITY, ["MS", "ES", "HS"]),
    ],
)
def test_a_card_tried_first_decides_only_by_unanimous_attempts(answers, path, tiers):
    solver = Solver(answers)
    solution = solve("kace", solver, KNOWN, config=reading(es_policy="try", try_threshold=0.2), tree=SHOWING)
    assert solution.exit is path and solution.correct
    assert solution.paper_calls == solution.real_calls == len(answers)
    assert list(dict.fromkeys(attempt.tier for attempt in solution.attempts)) == tiers
    assert [recall.tier for recall in solution.recalls] == ["MS"]
    assert ids("MEDCOUNT") <= solver.shown["MS"]
    assert not solver.shown.get("HS") and not solver.shown.get("ES"), "what follows reads nothing"


def test_a_card_of_either_tier_is_tried_and_the_ladder_without_cards_follows_where_none_is_near():
    cards = []
    for card in SHOWING:
        cards.append(card.revised(difficulty_tag=Difficulty.HARD) if card.examples else card)
    hard = EpistemicTree.of(SHOWING.domains, cards)
    config = reading(es_policy="try", try_threshold=0.2)
    solver = Solver(["2", "2", "2"])
    solution = solve("kace", solver, KNOWN, config=config, tree=hard)
    assert (solution.exit, solution.paper_calls) == (ExitPath.MS_MAJORITY, 3)
    assert ids("MEDCOUNT") <= solver.shown["MS"]
    config = reading(es_policy="try", try_threshold=1.0)
    solver = Solver(["1", "2", "3", "4", "5", "6", "7", "8", "9", "2"])
    solve("kace", solver, KNOWN, config=config, tree=hard)
    assert not ids("MEDCOUNT") & (solver.shown["MS"] | solver.shown["HS"])


def test_only_a_card_that_reaches_the_threshold_is_tried():
    config = reading(es_policy="try", try_threshold=1.0)
    assert solve("kace", Solver(["1"] * 10), KNOWN, config=config, tree=SHOWING).exit is ExitPath.ES_UNANIMOUS
    with pytest.raises(UsageError, match="es_policy 'try' needs a try threshold"):
        solve("kace", Solver(["1"] * 10), KNOWN, config=reading(es_policy="try", try_threshold=0.0), tree=SHOWING)
