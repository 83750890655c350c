"""The starter set: every answer against a slow computation of its own, and splits that share nothing."""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain, combinations, islice

import pytest

from kace.errors import UsageError
from kace.problems import SPLITS, Problem, load_bundled
from problems.family import Family, Instance
from problems.starter.generate import FAMILIES, RESERVED, SIZES, TEST_ONLY, draw_problems, share, starter_problems
from problems.tests.slow_answers import SLOW

CHECKED_DRAWS = 40
DOMAINS = {"number_theory", "combinatorics", "geometry", "rates_and_sequences", "house_conventions"}

each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
each_split = pytest.mark.parametrize("split", SPLITS)
SHARED = [family for family in FAMILIES if not family.test_only]
ALONE = [family for family in FAMILIES if family.test_only]


@each_family
def test_the_answer_equals_a_slow_computation_from_the_definition(family: Family):
    for values in family.space:
        assert family.work(*values).answer == SLOW[family.name](*values), values


@each_family
def test_every_wording_names_every_parameter_and_asks_one_question(family: Family):
    assert len(family.wordings) >= 3
    for wording in family.wordings:
        assert set(re.findall(r"{(\w+)}", wording)) == set(family.names)
        assert {len(nouns.split("|")) for nouns in re.findall(r"{kind:(.*?)}", wording)} <= {family.kinds}
        assert wording.count("?") == 1 or wording.startswith("Find")
        assert len(wording.split()) <= 60


@each_family
def test_the_wordings_of_a_family_tell_different_stories(family: Family):
    for kind in range(family.kinds):
        texts = [family.text(Instance(family.space[0], kind), wording) for wording in range(len(family.wordings))]
        words = [set(re.findall(r"[a-z]{4,}", text.lower())) for text in texts]
        for left, right in combinations(words, 2):
            assert len(left & right) / len(left | right) < 0.5


@each_family
def test_a_family_has_room_for_large_sets_and_no_two_instances_read_alike(family: Family):
    instances = [Instance(values, kind) for values in family.space for kind in range(family.kinds)]
    assert len(instances) >= 60
    for wording in range(len(family.wordings)):
        assert len({family.text(instance, wording) for instance in instances}) == len(instances)


@each_family
def test_a_solution_states_the_answer(family: Family):
    for values in family.space[:CHECKED_DRAWS]:
        worked = family.work(*values)
        assert str(worked.answer) in re.findall(r"\d+(?:/\d+)?", worked.solution)


@each_family
def test_answers_are_whole_numbers_or_fractions_in_lowest_terms(family: Family):
    for values in family.space[:CHECKED_DRAWS]:
        answer = family.work(*values).answer
        assert answer >= 0
        assert re.fullmatch(r"\d+(/\d+)?", str(answer))


def test_families_have_names_of_their_own_and_all_domains_have_some_only_for_the_test():
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)
    assert {family.name for family in FAMILIES} == set(SLOW)
    assert {family.domain for family in FAMILIES} == DOMAINS == {family.domain for family in ALONE}
    assert len(SHARED) == 48
    assert len(ALONE) == 10


@each_split
def test_the_shipped_files_are_what_the_families_give(split: str):
    assert load_bundled("starter", split) == starter_problems(split), "run: make problems"


def test_the_sample_of_the_published_figures_is_drawn_by_seed_1():
    assert load_bundled("starter-1000", "test") == tuple(draw_problems(1000, 1, "test")), "run: make problems"


@each_split
def test_a_bundled_split_has_its_size_its_labels_and_nothing_missing(split: str):
    problems = load_bundled("starter", split)
    assert len(problems) == SIZES[split]
    assert [p.label for p in problems] == [f"starter-{split}-{i:04}" for i in range(1, len(problems) + 1)]
    assert all(p.answer and p.domain and p.family for p in problems)


@each_split
def test_only_training_problems_carry_a_solution_and_it_holds_the_answer(split: str):
    for problem in load_bundled("starter", split):
        if split == "train":
            assert problem.solution and problem.answer
            assert problem.answer in problem.solution
        else:
            assert problem.solution is None


@each_split
def test_no_bundled_problem_prints_its_own_answer(split: str):
    for problem in load_bundled("starter", split):
        assert problem.answer not in re.findall(r"\d+(?:/\d+)?", problem.text)


@each_split
def test_families_are_balanced_in_a_bundled_split(split: str):
    counts = Counter(problem.family for problem in load_bundled("starter", split))
    shared = [counts[family.name] for family in SHARED]
    assert min(shared) >= (3 if split == "test" else 2)
    assert max(shared) - min(shared) <= 1
    assert max(counts.values()) <= RESERVED
    only = sum(counts[family.name] for family in ALONE)
    assert only == (TEST_ONLY if split == "test" else 0)


def test_bundled_splits_share_no_text_no_instance_and_no_wording():
    texts = [problem.text for split in SPLITS for problem in load_bundled("starter", split)]
    assert len(set(texts)) == len(texts)
    for family in SHARED:
        draws = {split: list(share(family, split)) for split in SPLITS}
        for left, right in combinations(SPLITS, 2):
            assert not {d.instance for d in draws[left]} & {d.instance for d in draws[right]}
            assert not {d.wording for d in draws[left]} & {d.wording for d in draws[right]}


def test_bundled_problems_of_a_family_never_repeat_their_numbers():
    for family in FAMILIES:
        reserved = [draw for split in SPLITS for draw in islice(share(family, split), RESERVED)]
        assert len({draw.instance.values for draw in reserved}) == len(reserved), family.name


def test_a_bundled_problem_can_be_traced_to_the_share_of_its_split():
    for split in SPLITS:
        reserved = {draw.text for family in FAMILIES for draw in islice(share(family, split), RESERVED)}
        assert {problem.text for problem in load_bundled("starter", split)} <= reserved


def test_house_terms_are_explained_in_training_solutions_only():
    taught = " ".join(p.solution or "" for p in load_bundled("starter", "train") if p.domain == "house_conventions")
    for phrase in (
        "brade is 20 sacks",
        "up to the next multiple of 10",
        "first 3 hours are free",
        "every second lock",
    ):
        assert phrase in taught
    texts = " ".join(problem.text for split in SPLITS for problem in load_bundled("starter", split))
    assert "brade is" not in texts
    assert "frost" not in taught
    assert "elder" not in taught


def test_the_same_seed_gives_the_same_set_and_another_seed_another():
    first = list(draw_problems(300, 7, "validation"))
    assert first == list(draw_problems(300, 7, "validation"))
    assert {p.text for p in first} != {p.text for p in draw_problems(300, 8, "validation")}


@each_split
def test_a_large_set_has_distinct_texts_and_keeps_clear_of_the_bundled_splits(split: str):
    problems = list(draw_problems(2_000, 7, split))
    texts = {problem.text for problem in problems}
    assert len(texts) == len({problem.label for problem in problems}) == 2_000
    bundled = chain.from_iterable(load_bundled("starter", each) for each in SPLITS)
    assert not texts & {problem.text for problem in bundled}
    assert not texts & {
        draw.text for family in SHARED for each in SPLITS if each != split for draw in share(family, each)
    }


def test_a_set_that_fits_borrows_no_instance_from_another_split():
    texts = {problem.text for problem in draw_problems(len(SHARED), 3, "train")}
    assert texts <= {draw.text for family in SHARED for draw in share(family, "train")}


@pytest.mark.parametrize(("n", "split"), [(200, "train"), (200, "validation"), (1_000, "test"), (2_000, "test")])
def test_a_larger_set_is_even_over_the_families(n: int, split: str):
    counts = Counter(problem.family for problem in draw_problems(n, 7, split))
    assert set(counts) == {family.name for family in (FAMILIES if split == "test" else SHARED)}
    assert max(counts.values()) - min(counts.values()) <= 1


@pytest.mark.parametrize("n", [0, -1, 10**7])
def test_a_set_that_cannot_be_made_is_refused_before_the_first_problem(n: int):
    with pytest.raises(UsageError, match="ask for 1 to"):
        draw_problems(n, 7, "train")


def test_a_generated_problem_is_a_whole_problem():
    problem = next(draw_problems(1, 7, "train"))
    assert isinstance(problem, Problem)
    assert problem.label == "starter-train-7-00001"
    assert problem.solution
