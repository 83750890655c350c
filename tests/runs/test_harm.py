"""What showing cards did: counted over pairs, clustered by problem, and told by card."""

from __future__ import annotations

import random

import pytest

from kace.ladder.record import RetrievedContext
from kace.ladder.tiers import TierName
from kace.runs.compare import Harm, compare
from kace.runs.stats import wilson
from kace.runs.table import CardUse, Table, row_of
from tests.learning.solve_records import HS, MS, a_solve
from tests.runs.few_rows import a_row, an_arm

A, B = "EXACT_A", "EXACT_B"


def harm(*solves: tuple[str, int, int, tuple[str, ...]]) -> Harm:
    """Of solves given as the problem, right in the base, right in the arm, and the cards shown; one more abstained."""
    seeds = [sum(other[0] == solve[0] for other in solves[:at]) for at, solve in enumerate(solves)]
    base = [a_row(p, bool(was), seed=s) for s, (p, was, _, _) in zip(seeds, solves, strict=True)]
    arm = [a_row(p, bool(is_), seed=s, cards=cards) for s, (p, _, is_, cards) in zip(seeds, solves, strict=True)]
    found = compare(
        an_arm("tiered", [*base, a_row("zz"), a_row("only-base")]),
        an_arm("kace", [*arm, a_row("zz", False, abstained=True), a_row("only-arm", False, cards=(A,))]),
    ).harm
    assert found is not None
    return found


def test_gained_and_broken_are_counted_among_the_solves_shown_cards_only():
    found = harm(
        ("a", 0, 1, (A,)),
        ("b", 1, 0, (A, B)),
        ("c", 1, 0, (B,)),
        ("d", 1, 1, (B,)),
        ("e", 1, 0, ()),  # broken by chance: nothing was shown
    )
    assert (found.shown, found.abstained, found.gained, found.broken) == (4, 1, 1, 2)
    assert found.rate == 2 / 4
    assert found.interval == pytest.approx(wilson(2, 4))
    assert found.cards == (CardUse(B, 3, 1, 2, gained=0, broken=2), CardUse(A, 2, 1, 1, gained=1, broken=1))
    assert found.flagged == found.cards[:1], "as many gained as broken is no flag"
    assert "shown on 4 solves, abstained on 1; of those shown 1 gained and 2 broken, harm rate 50.0%" in found.words


def test_seeds_of_one_problem_are_one_observation():
    once = harm(*((f"p{n}", 1, n > 0, (A,)) for n in range(10)))
    thrice = harm(*((f"p{n}", 1, n > 0, (A,)) for n in range(10) for _ in range(3)))
    assert (once.broken, thrice.broken) == (1, 3)
    assert once.rate == thrice.rate
    assert once.interval == thrice.interval
    uneven = harm(*((f"p{n}", 1, n > 0, (A,)) for n in range(10) for _ in range(20 if n == 0 else 1)))
    assert uneven.interval is not None and uneven.interval.low < 0.2 < 0.69 < uneven.interval.high


def test_the_interval_holds_the_true_rate_at_least_95_times_in_a_hundred():
    draw, held, times, rate = random.Random(3), 0, 200, 0.1
    for _ in range(times):
        solves = []
        for number in range(40):
            breaks = draw.betavariate(0.8 * rate, 0.8 * (1 - rate))
            solves += [(f"p{number}", 1, draw.random() >= breaks, (A,)) for _ in range(draw.choice((1, 2, 3)))]
        interval = harm(*solves).interval
        held += interval is not None and interval.low <= rate <= interval.high
    assert held / times >= 0.95


def test_a_gate_that_abstains_always_has_no_rate():
    found = harm()
    assert (found.shown, found.abstained, found.rate, found.interval, found.cards) == (0, 1, None, None, ())
    assert found.words == "shown on 0 solves, abstained on 1"


def test_an_arm_without_cards_has_no_harm():
    assert compare(an_arm("single", [a_row("a")]), an_arm("tiered", [a_row("a", False)])).harm is None


def test_a_solve_abstained_where_no_tier_showed_what_some_tier_had():
    def solve(**eligible: int) -> bool:
        tiers = [RetrievedContext(tier=TierName(tier), eligible=n) for tier, n in eligible.items()]
        return row_of(a_solve("a").model_copy(update={"recalls": tuple(tiers)})).abstained

    assert solve(MS=3, HS=0) and solve(MS=0, HS=2)
    assert not solve(MS=0, HS=0), "there was nothing to show"
    assert not solve(), "it left before any card tier"
    shown = a_solve("a", read={MS: [], HS: [A]})
    abstained = shown.recalls[0].model_copy(update={"eligible": 4})
    assert abstained.abstained
    assert not row_of(shown.model_copy(update={"recalls": (abstained, shown.recalls[1])})).abstained


def test_right_and_wrong_cards_are_counted_where_families_are_known():
    solves = (("a", 0, 1, (A,)), ("b", 1, 0, (B,)), ("c", 1, 0, (B, A)), ("d", 1, 1, ()), ("e", 0, 1, (B,)))
    rows = [a_row(p, bool(right), cards=cards, family="sums" if p < "e" else "other") for p, _, right, cards in solves]
    base = [a_row(p, bool(was)) for p, was, _, _ in solves]
    manifest = {"right_cards": {"sums": [A], "other": "damaged"}}
    found = compare(an_arm("tiered", base), Table.of(rows, name="kace", manifest=manifest)).harm
    assert found is not None
    assert found.kinds == (
        CardUse("a right card", 2, 1, 1, gained=1, broken=1),
        CardUse("only wrong cards", 2, 1, 1, gained=1, broken=1),
    )
    assert {card.card: card.astray for card in found.cards} == {A: 0, B: 3}
    assert [card.warning for card in found.cards if card.card == B] == [
        "breaks more than it gains; 3 of other families"
    ]
    assert harm(("a", 0, 1, (A,))).kinds == ()
