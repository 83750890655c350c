"""What a card carries over from the problems it was written from and from others, and what it does not."""

from __future__ import annotations

import pytest

from kace.cards.card import Card, Example, Provenance
from kace.learning.screen import HeldOutHashes, LeakScreen
from kace.learning.study import Settings
from kace.problems import Problem, load_bundled
from tests.card_samples import a_card
from tests.card_samples import card as sample
from tests.learning.sound_cards import PAYLOADS, sound_card

TRAIN = load_bundled("starter", "train")
STARTER = LeakScreen(TRAIN)
BARGE = Problem("A barge carries 7 brades and 2 sacks of barley. How many sacks is that?", "142", "barge")
SEVEN = Problem("A barge takes on 76 sacks of rye under gleaning. How many does the skipper get?", "7", "seven")


def saying(body: str, *, supporting: tuple[str, ...] = (), routing: tuple[str, ...] = ()) -> Card:
    own = Provenance(source="teacher", supporting_problems=supporting)
    payload = f"Useful when:\n- it fits\n\n{body}"
    return sample("RUBRIC_SOME_GENERAL_RULE", payload=payload, routing_conditions=routing, provenance=own)


def broken(screen: LeakScreen, card: Card) -> str | None:
    """The first rule that the card breaks."""
    return next((rule for rule, _ in screen.find(card)), None)


def own(problem: Problem, body: str, **fields: tuple[str, ...]) -> str | None:
    """The rule that a card breaks which was written from the problem."""
    return broken(LeakScreen([problem]), saying(body, supporting=(problem.name,), **fields))


def other(problem: Problem, body: str) -> str | None:
    """The rule that a card breaks which was written from another problem."""
    return broken(LeakScreen([problem]), saying(body))


def test_no_training_problem_and_no_solution_of_one_can_be_a_card():
    for problem in TRAIN:
        for body in (f"{problem.solution}\nThe answer is {problem.answer}.", f"{problem.text} Write {problem.answer}."):
            assert broken(STARTER, saying(body, supporting=(problem.name,))), body


def rows(text: str) -> list[list[str]]:
    """Return the pairs of a table: `answer => body // answer => body`."""
    return [[part.strip() for part in row.split("=>")] for row in text.split(" //")]


LEAKS = rows(  # an answer, and a way in which a card written from its problem repeats it
    r"""
    47 km/h => So the speed is \boxed{47 km/h}. // 47 km/h => It drives at 47 km/h. //
    47 km/h => The answer is 47. // 17 < x < 29 => Then $17<x<29$. // (17, 29) => \boxed{17 < x < 29} //
    11:47 => They meet at 11:47. // 7 => The solution is 7. // 7 => 7 is the answer. // 7 => Answer: 7 //
    7 => Final answer: **7** // 7 => #### 7 // 7 => \boxed{7} // 7 => \fbox{7} // 7 => the solution: x = 7 //
    7 => The answer is seven. // 7 => The result will always be 7. // 7 => The answer is 7 sacks. //
    7 => \boxed{\text{7 sacks}} // 142 => It is 142. // 42 => forty-two of them // 142.5 => about 142.5 of them //
    142.5 => 285/2 of them // -142 => It falls to -142. // \frac{9}{17} => 9/17 // 9:17 => a ratio of 9:17 //
    0.35 => 35 percent // 35% => $35\%$ // 2\sqrt{17} => It is $2\sqrt{17}$ long. // 3+17i => the root $3+17i$ //
    x^2+37x+2 => It factors to x^2 + 37x + 2. // 2^{37} => There are $2^{37}$ of them. //
    (3, 17) => They meet at (3, 17). // (3, 17) => x = 3 and y = 17 // 3, 17 => 3 and 17 //
    \{3, 17\} => The set \{3, 17\}. // [17, 29) => x lies in [17, 29). // x \ge 17 => so $x\ge 17$ //
    1,234 => 1234 in all // $47.50 => It costs $47.50. // 47^\circ => The angle is 47 degrees. //
    47^\circ => The angle is $47^\circ$. // \text{Tuesday} => The answer is Tuesday. // B => The answer is (B). //
    B => \boxed{\text{B}} //
    \begin{pmatrix} 3 \\ 17 \end{pmatrix} => the vector \begin{pmatrix} 3 \\ 17 \end{pmatrix} //
    2n+1 => The answer is 2n + 1. // 17! => There are 17! orders. //
    \binom{17}{3} => There are $\binom{17}{3}$ ways. // 1.5 \times 10^{8} => It is $1.5\times10^{8}$ km. //
    3 hours 47 minutes => It takes 3 hours 47 minutes. // March 17 => It falls on March 17. //
    142 => It is 142.0 here. // 142 => It is １４２. // 142 => Divide 284/2. // 142 => Then $n^2 - 1 = 142$. //
    142 => Sequence: 3, 20, 77, 142. // \frac{9}{17} => Say \tfrac{27}{51} // \frac{9}{17} => \frac9{17} //
    13000 => 13 000 grams // 13000 => 13{,}000 grams // 180 => The answer is 180. // 20 => 5 * 4 = 20
"""
)
INNOCENT = rows(  # an answer, and a rule that was written from its problem and does not repeat it
    r"""
    20 => Sacks = $20n$ and no more. // 20 => x^{20} - 1 // 20 => Primes: 2, 3, 5, 7, 11, 13, 17, 19, 20. //
    180 => Angles of a triangle add up to 180 degrees. // 180 => $\alpha+\beta+\gamma=180^\circ$ //
    180 => Interior angles: 180(n-2). // 7 => x^7 + 7x // 7 => Take 7 of them. // 7 => 3 + 4 = 7 //
    7 => 7 days make a week // 0 => If d < 0 the answer is 0. //
    1 => If the numbers have no common factor, the answer is 1. // 142 => Multiply by 1420 and divide by 10. //
    17x => Seventeen is prime. // 47 km/h => Speed in km/h is distance by time. //
    11:47 => Add hours to hours and minutes to minutes. // 17 < x < 29 => Solve each inequality for x alone. //
    (3, 17) => Subtract one line from the other: y goes. // Tuesday => Count days modulo 7 from Tuesday on. //
    B => Check option B before option C. // \frac{1}{2} => Half of the cases: 1/2. //
    120 => 5! = 120 orders of five things. // 2n+1 => Odd numbers are 2n + 1.
"""
)


@pytest.mark.parametrize(
    ("answer", "body", "rule"), [*((*row, "answer_leak") for row in LEAKS), *((*row, None) for row in INNOCENT)]
)
def test_a_card_may_not_repeat_the_answer_of_its_own_problem(answer: str, body: str, rule: str | None):
    assert own(Problem("How does it end?", answer, "p"), body) == rule


def test_a_small_answer_is_a_leak_beside_the_numbers_of_its_problem():
    assert own(SEVEN, "76 holds 7 full tens.") == "answer_leak"


def test_a_tiny_example_is_no_leak_however_many_problems_have_small_answers():
    many = LeakScreen(Problem(f"Thing {n}: add {n % 9 + 2} and {n // 9 % 9 + 2}.", str(n % 12)) for n in range(3_000))
    for body in ("Pattern: 3 + 4 = 7.", "Pattern: 2 * 5 = 10.", "n = 4 gives 4 * 3 / 2 = 6."):
        assert broken(many, saying(body)) is None


def test_the_id_and_the_routing_of_a_card_are_read_too():
    leaks = LeakScreen([BARGE])
    assert broken(leaks, saying("Use 20.", supporting=("barge",), routing=("when it is 142",)))
    assert broken(leaks, saying("Use 20.", supporting=("barge",)).model_copy(update={"card_id": "EXACT_RESULT_142"}))


def test_eight_words_in_a_row_are_a_copy_whatever_the_numbers():
    body = "All corners of a simple polygon are points of a unit grid."
    rule, reason = next(STARTER.find(saying(body)))
    assert rule == "instance_overfit" and "starter-train-0024" in reason


def test_a_phrase_of_the_trade_is_no_copy():
    problem = Problem("What is the sum of the first 10 terms of the list?", "5")
    assert own(problem, "For the sum of the first n terms of the sequence use n(a + l)/2.") is None


def test_the_numbers_of_one_problem_make_an_instance():
    problem = Problem("A train of 417 tons climbs 283 metres.", "5")
    assert own(problem, "Use mass 417 and height 283.") == "instance_overfit"
    assert own(problem, "Use mass 417 and height h.") is None


@pytest.mark.parametrize(
    "body",
    [
        "9^{9^{9^{9}}}",
        "(1," * 2_000,
        "1" * 7_000,
        "\\frac{" * 1_500,
        "x=" * 3_000,
        "1+" * 3_000,
        "answer " * 1_000,
        "²½" * 900,
    ],
)
def test_hostile_text_is_read_without_evaluating_it(body):
    leaks = LeakScreen([BARGE, Problem(body, body, "hostile")])
    assert broken(leaks, saying(f"{body[:3000]}\nAdd 142.", supporting=("barge",)))


def test_problems_without_answers_still_give_away_their_words():
    unlabelled = Problem("A heron eats seven striped frogs before the second thunderstorm begins.", None, "p")
    assert own(unlabelled, "A heron eats seven striped frogs before the second rain.") == "instance_overfit"


def test_other_problems_leak_only_where_several_numbers_and_the_answer_coincide():
    lanterns = Problem("Each of 61 bridges has 69 lanterns, and 8 more hang at the lock. How many?", "4217", "lanterns")
    assert other(lanterns, "As in 61 * 69 + 8 = 4217.") == "answer_leak"
    for body in ("It is 4217.", "The answer is 4217.", "Take 61 * 69.", "61 rows give 4217."):
        assert other(lanterns, body) is None
        assert own(lanterns, body)


def test_a_problem_with_superscript_digits_can_be_learned_from():
    train = (Problem("A tile of 25 cm² and ² others, ④ in all: how many?", "41"),)
    assert broken(LeakScreen(train), a_card()) is None


# What a demonstration may have in common with problems that must stay unknown

TILES = Problem("A floor of 7 by 12 feet is laid with square tiles of one foot. How many tiles are there?", "84")
HASHES = HeldOutHashes.of((TILES,))
CUT_OFF = Settings().max_overlap


@pytest.mark.parametrize(
    ("problem", "answer", "retold"),
    [
        ("A choir stands in 12 rows of 7. How many sing?", "84", True),
        ("7 crates hold 12 eggs each, in 1 cart. How many eggs?", "84.0", True),
        ("A floor of 3 by 5 feet is laid with square tiles of one foot. How many?", "15", True),
        ("A choir stands in 4 rows of 21. How many sing?", "84", False),
        ("A choir of 12 meets 7 others. How many are they?", "19", False),
        ("7 and 12 and 3 are multiplied, then divided by 3.", "84", False),
    ],
)
def test_the_numbers_with_the_answer_and_the_wording_are_retold(problem: str, answer: str, retold: bool):
    assert bool(HASHES.retold(Example(problem, f"Work. \\boxed{{{answer}}}"))) is retold


def test_only_hashes_are_kept():
    words = frozenset().union(*HASHES.templates)
    assert len(words) == 6, "floor, feet, laid, square, tile, foot"
    assert all(len(mark) == 24 for mark in HASHES.worked | HASHES.ngrams | words)
    assert "tiles" not in repr(HASHES)


RETOLD = "Square tiles are laid on the floor of a hall, 30 feet by eleven. How many tiles does it take?"


@pytest.mark.parametrize(
    ("problem", "retold"),
    [
        (RETOLD, True),
        (RETOLD.replace("30", "8 hundred").replace("eleven", "6"), True),
        ("A hall has a floor of 11 by 30 metres. How many slabs of one metre cover it?", False),
        ("Square plates of one pound are stacked. How many plates weigh 30 pounds?", False),
    ],
)
def test_a_wording_is_retold_with_other_numbers_where_most_content_words_are_the_same(problem: str, retold: bool):
    example = Example(problem, "Multiply. \\boxed{330}")
    assert bool(HASHES.retold(example, CUT_OFF)) is retold
    assert not HASHES.retold(example), "unless the setting allows any wording"
    assert (HASHES.overlap(problem) > CUT_OFF) is retold


def test_a_wording_that_is_learned_from_may_be_retold_and_one_held_out_may_not():
    card = sound_card(next(iter(PAYLOADS))).illustrated((Example(RETOLD, "Multiply: 30 * 11 = 330.\n\\boxed{330}"),))
    assert broken(LeakScreen((TILES,), max_overlap=CUT_OFF), card) is None
    ((rule, reason),) = LeakScreen((), HASHES, CUT_OFF).find(card)
    assert rule == "answer_leak" and "another story" in reason


def test_no_training_problem_of_the_technique_set_reaches_the_default_cut_off():
    """Its splits share techniques and no story. Other wordings of other families come over it now and then."""
    held_out = HeldOutHashes.of(
        problem for split in ("validation", "test", "retest") for problem in load_bundled("techniques", split)
    )
    largest = max(held_out.overlap(problem.text) for problem in load_bundled("techniques", "train"))
    assert CUT_OFF - 0.02 < largest < CUT_OFF
