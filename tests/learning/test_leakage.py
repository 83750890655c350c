"""What a card gives away of the problems it was learnt from, and what it does not."""

from __future__ import annotations

import pytest

from kace.cards.card import Card, Difficulty, Provenance
from kace.learning.leakage import Leaks
from kace.problems import Problem, load_bundled
from tests.learning.sound_cards import PAYLOADS, sound_card

TRAIN = load_bundled("starter", "train")
STARTER = Leaks(TRAIN)
BARGE = Problem("A barge carries 7 brades and 2 sacks of barley. How many sacks is that?", "142", "barge")
CHANCE = Problem("A bag holds red and white balls, as many of each. How likely is red?", r"\frac{9}{17}", "chance")
OUTFITS = Problem("Noa has 5 shirts and 4 skirts. How many outfits are there?", "20", "outfits")
ANGLE = Problem("Two corners of a sail measure 70 and 80 degrees. What does the last one measure?", "180", "angle")
SEVEN = Problem("A barge takes on 76 sacks of rye under gleaning. How many does the skipper get?", "7", "seven")


def saying(body: str, *, supporting: tuple[str, ...] = (), routing: tuple[str, ...] = ()) -> Card:
    return Card(
        card_id="RUBRIC_SOME_GENERAL_RULE",
        payload=f"Useful when:\n- it fits\n\n{body}",
        routing_conditions=routing,
        difficulty_tag=Difficulty.HARD,
        domain_tags=("algebra",),
        helpfulness_score=0.0,
        provenance=Provenance(source="teacher", supporting_problems=supporting),
    )


def rule(problem: Problem, body: str, **fields: tuple[str, ...]) -> str | None:
    leak = Leaks([problem]).find(saying(body, **fields))
    return leak.rule if leak else None


@pytest.mark.parametrize("problem", TRAIN, ids=lambda problem: problem.name)
def test_no_solution_of_a_training_problem_can_be_a_card(problem):
    assert STARTER.find(saying(problem.solution or ""))


@pytest.mark.parametrize("problem", TRAIN, ids=lambda problem: problem.name)
def test_no_training_problem_can_be_a_card(problem):
    assert STARTER.find(saying(f"{problem.text} Write {problem.answer}."))


@pytest.mark.parametrize("card_id", PAYLOADS)
def test_a_general_rule_with_its_constants_gives_nothing_away(card_id):
    assert STARTER.find(sound_card(card_id)) is None


@pytest.mark.parametrize("card_id", PAYLOADS)
def test_it_gives_nothing_away_of_the_problems_it_came_from_either(card_id):
    words = set(PAYLOADS[card_id].lower().split())
    near = sorted(TRAIN, key=lambda p: -len(words & set(p.text.lower().split())))[:3]
    assert STARTER.find(sound_card(card_id, supporting=tuple(problem.name for problem in near))) is None


@pytest.mark.parametrize(
    "body",
    [
        "It comes to 142.",
        "It comes to 142 sacks, as always.",
        "Write $142$.",
        "Write \\boxed{142}.",
        "7 * 20 + 2",
        "Take 141 + 1.",
        "Take 7 x 20 + 2.",
        "Take $7\\cdot 20+2$ of them.",
        "It is 142.0 here.",
        "One hundred and forty-two is right.",
        "one hundred forty two",
        "It is １４２.",
        "Divide 284/2.",
        "Use \\frac{284}{2}.",
        "x = 142",
        "Then $n^2 - 1 = 142$.",
        "Sequence: 3, 20, 77, 142.",
    ],
)
def test_a_number_of_three_digits_is_found_in_any_form(body):
    assert rule(BARGE, body) == "answer_leak"


@pytest.mark.parametrize(
    "body", ["Chance 9/17.", "\\dfrac{9}{17}", "\\frac9{17}", "18/34", "p = 9 / 17", "Say \\tfrac{27}{51}"]
)
def test_a_fraction_is_found_in_any_form(body):
    assert rule(CHANCE, body) == "answer_leak"


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        ("0.35", "about 35% of it"),
        ("35%", "just 0.35"),
        ("35%", "just 35 of them, in boxes: the answer is 35"),
        (r"2\sqrt{3}", r"Its height is $\sqrt{12}$."),
        (r"\frac{7\pi}{3}", r"The arc is $7\pi/3$ long."),
        ("(3, 17)", "It meets at $(3, 17)$."),
        (r"\begin{pmatrix} 3 \\ 17 \end{pmatrix}", r"The vector $\begin{pmatrix} 3 \\ 17 \end{pmatrix}$."),
        ("3, 17", "x is 3 or 17"),
        ("13000", "13,000 grams"),
        ("13000", "13{,}000 grams"),
        ("13000", "13 000 grams"),
        ("13000", "thirteen thousand grams"),
        ("-142", "It falls to −142."),
    ],
)
def test_equal_values_are_one_answer(answer, body):
    assert rule(Problem("What is it?", answer, "p"), body) == "answer_leak"


@pytest.mark.parametrize(
    "body",
    [
        "A brade is 20 sacks.",
        "1 brade = 20 sacks",
        "Sacks = 20 * brades + loose ones.",
        "$20n$ of them",
        "Primes: 2, 3, 5, 7, 11, 13, 17, 19, 20.",
        "x^{20} - 1",
    ],
)
def test_two_digits_in_prose_or_in_a_formula_are_no_leak_of_a_problem_about_something_else(body):
    assert rule(OUTFITS, body) is None


@pytest.mark.parametrize(
    "body",
    [
        "5 * 4 = 20",
        "2 * 10 = 20",
        "The answer is 20.",
        "Answer: $20$",
        "20 is the answer.",
        "\\boxed{20}",
        "The total is 20.",
        "n = 20",
        "Then $a + b = 20$.",
        "That makes 20 outfits of shirts.",
    ],
)
def test_two_digits_are_one_where_they_are_a_result_or_the_card_is_about_the_problem(body):
    assert rule(OUTFITS, body) == "answer_leak"


def test_two_digits_in_prose_are_a_leak_of_a_problem_the_card_came_from():
    assert rule(OUTFITS, "There are 20 of them.", supporting=("outfits",)) == "answer_leak"


@pytest.mark.parametrize(
    "body",
    [
        "Angles of a triangle add up to 180 degrees.",
        r"$\alpha+\beta+\gamma=180^\circ$",
        "Interior angles: 180(n-2).",
        "180 - a - b",
        "A straight angle is 180.",
        r"$x = 180^\circ$ is a half turn",
    ],
)
def test_a_customary_constant_is_no_leak(body):
    assert rule(ANGLE, body) is None


@pytest.mark.parametrize("body", ["90 * 2 = 180", "The answer is 180.", "\\boxed{180^\\circ}", "360 / 2 = 180"])
def test_a_customary_constant_is_one_where_it_is_a_result_of_numbers(body):
    assert rule(ANGLE, body) == "answer_leak"


@pytest.mark.parametrize("body", ["x^7 + 7x", "Take 7 of them.", "3 + 4 = 7", "n = 7 works", "7 days make a week"])
def test_a_small_number_is_no_leak_by_itself(body):
    assert rule(SEVEN, body) is None


@pytest.mark.parametrize(
    "body",
    [
        "The answer is 7.",
        "\\boxed{7}",
        "76 holds 7 full tens.",
        "For rye under gleaning: 3 + 4 = 7 sacks.",
    ],
)
def test_a_small_number_is_one_as_an_answer_with_the_problems_numbers_or_in_a_result_about_it(body):
    assert rule(SEVEN, body) == "answer_leak"


def test_nothing_and_one_may_be_answers_of_a_general_rule():
    problem = Problem("What is the remainder of 31?", "1", "p")
    assert rule(problem, "If the numbers have no common factor, the answer is 1.") is None
    assert rule(Problem("How many?", "0", "p"), "If d < 0 the answer is 0.") is None


def test_a_tiny_example_is_no_leak_however_many_problems_have_small_answers():
    many = Leaks(Problem(f"Thing {n}: add {n % 9 + 2} and {n // 9 % 9 + 2}.", str(n % 12)) for n in range(3_000))
    for body in ("Pattern: 3 + 4 = 7.", "Pattern: 2 * 5 = 10.", "n = 4 gives 4 * 3 / 2 = 6."):
        assert many.find(saying(body)) is None


def test_a_formula_that_is_an_answer_is_a_leak_only_for_cards_about_the_problem():
    problem = Problem("Factor the quartic polynomial of the surveyor.", "x^2+3x+2", "p")
    assert rule(problem, "Look for $x^2+3x+2$.") is None
    assert rule(problem, "The surveyor of the quartic has $(x+1)(x+2)$.") == "answer_leak"


def test_the_id_and_the_routing_of_a_card_are_read_too():
    leaks = Leaks([BARGE])
    assert leaks.find(saying("Use 20.", routing=("when it is 142",)))
    assert leaks.find(saying("Use 20.").model_copy(update={"card_id": "EXACT_RESULT_142"}))


def test_eight_words_in_a_row_are_a_copy_whatever_the_numbers():
    body = "All corners of a simple polygon are points of a unit grid."
    leak = STARTER.find(saying(body))
    assert leak and leak.rule == "instance_overfit" and "starter-train-0024" in leak.reason


def test_five_words_with_a_telling_number_are_a_copy():
    problem = Problem("For this she has to go up 18 floors a day.", "5")
    assert rule(problem, "If you go up 18 floors a day") == "instance_overfit"
    assert rule(problem, "If you go up n floors a day") is None


def test_a_phrase_of_the_trade_is_no_copy():
    problem = Problem("What is the sum of the first 10 terms of the list?", "5")
    assert rule(problem, "For the sum of the first n terms of the sequence use n(a + l)/2.") is None


def test_a_name_that_one_problem_has_makes_an_instance():
    problem = Problem("At the quay, old Bertram sells rope.", "5")
    assert rule(problem, "Whatever Bertram sells, add it.") == "instance_overfit"
    assert rule(Problem("By the lemma of Vieta and Euler find it.", "5"), "Use Vieta, then Euler.") is None


def test_a_name_that_many_problems_have_is_a_term_of_the_subject():
    shared = [Problem(f"On the Orrin they pay {word} pence.", "5") for word in ("two", "three", "four")]
    assert Leaks(shared).find(saying("On the Orrin every second lock is free.")) is None


def test_the_numbers_of_one_problem_make_an_instance():
    problem = Problem("A train of 417 tons climbs 283 metres.", "5")
    assert rule(problem, "Use mass 417 and height 283.") == "instance_overfit"
    assert rule(problem, "Use mass 417 and height h.") is None


def test_what_is_found_does_not_depend_on_the_order_of_the_problems():
    found = [Leaks(problems).find(saying("It is 142.")) for problems in ((BARGE, OUTFITS), (OUTFITS, BARGE))]
    assert found[0] == found[1]


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
    leaks = Leaks([BARGE, Problem(body, body, "hostile")])
    assert leaks.find(saying(f"{body[:3000]}\nAdd 142.")) is not None


def test_problems_without_answers_still_give_away_their_words():
    unlabelled = Problem("A heron eats seven striped frogs before the second thunderstorm begins.", None, "p")
    assert rule(unlabelled, "A heron eats seven striped frogs before the second rain.") == "instance_overfit"
