"""The starter set: every answer as a slow computation found it, and splits that share nothing."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from itertools import combinations

import pytest

from kace.errors import UsageError
from kace.problems import SPLITS, load_bundled
from problems.family import Family
from problems.starter.generate import FAMILIES, RESERVED, TEST_ONLY, draw_problems, share, starter_problems

CHECKED_DRAWS = 40
VERIFIED = {
    "number_theory": "3da04080a0f320d2",
    "combinatorics": "568d36148386aeb2",
    "geometry": "43b5f037a837cfb9",
    "rates_and_sequences": "cf51d2e9b818b310",
    "house_conventions": "66f9256f1e08d847",
}
"""Hashes of the answers that slow computations found for every instance of every family.

The set is finished; `problems/tests/slow_answers.py` of commit 54a72487 holds the computations, for a new family.
"""

each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
each_split = pytest.mark.parametrize("split", SPLITS)
SHARED = [family for family in FAMILIES if not family.test_only]
ALONE = [family for family in FAMILIES if family.test_only]


@pytest.mark.parametrize("domain", VERIFIED)
def test_answers_are_those_that_slow_computations_found(domain: str):
    found = []
    for family in FAMILIES:
        if family.domain == domain:
            found += [[family.name, *map(str, values), str(family.work(*values).answer)] for values in family.space]
    assert hashlib.sha256(json.dumps(found).encode()).hexdigest()[:16] == VERIFIED[domain]


@each_family
def test_every_wording_names_every_parameter_and_asks_one_question(family: Family):
    assert len(family.wordings) >= 3
    for wording in family.wordings:
        assert set(re.findall(r"{(\w+)}", wording)) == set(family.names)
        assert {len(nouns.split("|")) for nouns in re.findall(r"{kind:(.*?)}", wording)} <= {family.kinds}
        assert wording.count("?") == 1 or wording.startswith("Find")
        assert len(wording.split()) <= 60


@each_family
def test_a_solution_states_the_answer(family: Family):
    for values in family.space[:CHECKED_DRAWS]:
        worked = family.work(*values)
        assert str(worked.answer) in re.findall(r"\d+(?:/\d+)?", worked.solution)


def test_families_have_names_of_their_own_and_all_domains_have_some_only_for_the_test():
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)
    assert {family.domain for family in FAMILIES} == set(VERIFIED) == {family.domain for family in ALONE}
    assert len(SHARED) == 48
    assert len(ALONE) == 10


@each_split
def test_the_shipped_files_are_what_the_families_give_and_give_no_answer_away(split: str):
    problems = load_bundled("starter", split)
    assert problems == starter_problems(split), "run: make problems"
    assert all((problem.solution is not None) is (split == "train") for problem in problems)
    assert all(problem.answer in (problem.solution or problem.answer) for problem in problems)
    assert all(problem.answer not in re.findall(r"\d+(?:/\d+)?", problem.text) for problem in problems)


def test_the_sample_of_the_published_figures_is_drawn_by_seed_1():
    for split, size in (("train", 200), ("test", 1000)):
        assert load_bundled("starter-1000", split) == tuple(draw_problems(size, 1, split)), "run: make problems"


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


def test_house_terms_are_explained_in_training_solutions_only():
    taught = " ".join(p.solution or "" for p in load_bundled("starter", "train") if p.domain == "house_conventions")
    for phrase in ("brade is 20 sacks", "up to the next multiple of 10", "first 3 hours are free", "every second lock"):
        assert phrase in taught
    texts = " ".join(problem.text for split in SPLITS for problem in load_bundled("starter", split))
    assert "brade is" not in texts
    assert "frost" not in taught
    assert "elder" not in taught


@pytest.mark.parametrize("n", [0, -1, 10**7])
def test_a_set_that_cannot_be_made_is_refused_before_the_first_problem(n: int):
    with pytest.raises(UsageError, match="ask for 1 to"):
        draw_problems(n, 7, "train")
