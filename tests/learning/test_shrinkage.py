"""The posterior of a card's lift: what it borrows from its tree, and its error rates where the truth is known."""

import random
from collections.abc import Callable

import pytest

from kace.learning.measure import CardVotes, Posterior, shrink

Rows = list[CardVotes]
KEEP, RETIRE = 0.8, 0.2


def votes(problem: str, right: int, made: int, right_without: int, made_without: int) -> CardVotes:
    return CardVotes(problem=problem, right=right, made=made, right_without=right_without, made_without=made_without)


def measured(lift: float, problems: int, chance: random.Random, attempts: int = 12) -> Rows:
    """Dropout attempts at problems of different difficulty, with a card that adds `lift`."""
    rows = []
    for number in range(problems):
        rate, counts = chance.betavariate(0.6, 0.9), [0, 0, 0, 0]
        for _ in range(attempts):
            arm = 0 if chance.random() < 0.5 else 2
            counts[arm] += chance.random() < rate + (lift if arm == 0 else 0.0)
            counts[arm + 1] += 1
        rows.append(votes(str(number), *counts))
    return rows


def tree(lift: Callable[[int], float], cards: int, problems: int, seed: int) -> dict[str, Posterior]:
    chance = random.Random(seed)
    return shrink({str(card): measured(lift(card), problems, chance) for card in range(cards)})


def test_where_no_card_does_anything_none_is_kept() -> None:
    runs = [tree(lambda _: 0.0, 20, 4, seed) for seed in range(40)]
    kept = sum(card.helps >= KEEP for run in runs for card in run.values())
    assert kept <= 8, "of 800 idle cards, at most one in a hundred"


def test_cards_that_harm_are_retired() -> None:
    runs = [tree(lambda _: -0.15, 12, 4, seed) for seed in range(10)]
    cards = [card for run in runs for card in run.values()]
    assert sum(card.helps <= RETIRE for card in cards) >= 0.9 * len(cards)


def test_good_cards_on_four_problems_are_told_from_idle_ones() -> None:
    runs = [tree(lambda card: 0.5 if card % 2 else 0.0, 20, 4, seed) for seed in range(10)]
    good = [card for run in runs for name, card in run.items() if int(name) % 2]
    idle = [card for run in runs for name, card in run.items() if not int(name) % 2]
    assert sum(card.helps >= KEEP for card in good) >= 0.8 * len(good)
    assert sum(card.helps >= KEEP for card in idle) <= 0.1 * len(idle)


def test_a_card_measured_on_one_problem_borrows_from_its_tree() -> None:
    chance = random.Random(3)
    helped = {str(card): measured(0.6, 6, chance) for card in range(12)}
    idle = {str(card): measured(0.0, 6, chance) for card in range(12)}
    lone: Rows = [votes("p", 2, 2, 0, 2)]
    among_good, among_idle = shrink({**helped, "lone": lone})["lone"], shrink({**idle, "lone": lone})["lone"]
    assert among_good.helps > 0.9 > among_idle.helps
    assert among_good.effect > among_idle.effect


def test_an_unmeasured_card_knows_only_its_tree() -> None:
    chance = random.Random(4)
    found = shrink({str(card): measured(0.6, 6, chance) for card in range(12)}, also=("new",))
    assert found["new"].helps > KEEP
    width = found["new"].high - found["new"].low
    assert width > found["0"].high - found["0"].low, "and is less certain than a measured one"


def test_more_problems_narrow_the_interval() -> None:
    chance = random.Random(5)
    found = shrink({"few": measured(0.4, 2, chance), "many": measured(0.4, 40, chance)})
    assert found["many"].high - found["many"].low < found["few"].high - found["few"].low
    assert found["many"].low <= 0.4 <= found["many"].high


@pytest.mark.parametrize("rows", [[], [votes("p", 3, 3, 0, 0)]])
def test_a_card_without_a_comparison_has_no_posterior_of_its_own(rows: Rows) -> None:
    assert shrink({"card": rows}) == {}
    assert set(shrink({"card": rows}, also=("card",))) == {"card"}


def test_intervals_cover_the_truth() -> None:
    hits = total = 0
    for seed in range(30):
        chance = random.Random(seed)
        truth = {str(card): chance.gauss(0.2, 0.15) if card % 2 else 0.0 for card in range(16)}
        found = shrink({name: measured(lift, 5, chance) for name, lift in truth.items()})
        # A rate cannot rise past 1 or fall below 0, so the lift that can be seen is a little less than the one added.
        hits += sum(card.low - 0.05 <= truth[name] <= card.high + 0.05 for name, card in found.items())
        total += len(found)
    assert hits >= 0.9 * total
