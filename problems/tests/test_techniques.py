"""The technique set: every answer as brute force found it, and splits that share neither wordings nor numbers."""

import hashlib
import json
import re
from collections import Counter
from itertools import combinations

import pytest

from kace.problems import load_bundled, problem_rows
from problems.family import Instance
from problems.techniques.generate import DOMAINS, EACH, SPLITS, families, instances, technique_problems

_NUMBER = re.compile(r"\d+(?:/\d+)?")


VERIFIED = {
    "number_properties": "c8772e89f875c003",
    "modular_and_bases": "b04b07f41ac16df2",
    "counting": "6a1e813339ebcfde",
    "probability": "f7f1a4a958ab6b33",
    "equations": "75f065c131cde582",
    "sequences_and_sums": "b2c12951a620b80e",
    "plane_geometry": "310ec926fd561e02",
    "solids_and_coordinates": "418e22cfaf0a7140",
    "rates_and_mixtures": "9e0e77cda6e61cf3",
    "fractions_and_percent": "b8ad818304e04bff",
    "data_and_sets": "c550567969b16022",
    "lighthouse_log": "7c28c15932ecd13d",
    "guild_of_bakers": "7d3a7405dc245efb",
    "hex_game_scoring": "57e665bddafab4cc",
    "archive_call_numbers": "b640f7caebc52f41",
}
"""Hashes of the answers that brute force found for every instance of every family.

The sets are finished; `problems/tests/slow_techniques.py` of commit 89c170f holds the brute force, for a new family.
"""


@pytest.mark.parametrize("domain", DOMAINS)
def test_answers_are_those_that_brute_force_found(domain: str):
    found = []
    for family in (family for family in families() if family.domain == domain):
        assert len(family.wordings) == 12 and len(family.space) >= 40
        for values in family.space:
            worked = family.work(*values)
            found.append([family.name, *map(str, values), str(worked.answer)])
            assert _NUMBER.findall(worked.solution)[-1] == str(worked.answer).removeprefix("-"), family.name
        texts = {family.text(Instance(values, 0), wording) for values in family.space for wording in range(12)}
        assert len(texts) == 12 * len(family.space), family.name
    assert hashlib.sha256(json.dumps(found).encode()).hexdigest()[:16] == VERIFIED[domain]


def test_families_that_came_later_are_in_the_test_only_and_changed_no_other_problem():
    drawn = {family.name for family in families() if not family.test_only}
    assert (len(families()), len(drawn)) == (200, 184)
    train, validation, test, retest, third, fourth = ([*problem_rows(technique_problems(split))] for split in SPLITS)
    before = sorted(row for row in test if json.loads(row)["family"] in drawn)
    assert (len(before), len(test), len(retest)) == (920, 1000, 1000)
    assert len(third) == len(fourth) == 600
    files = ("".join(f"{row}\n" for row in rows).encode() for rows in (train, validation, before))
    hashes = [hashlib.sha256(content).hexdigest()[:16] for content in files]
    assert hashes == ["5f30592f36aa84d6", "46db43f13d9b22f4", "3faf42d94f1550dc"]


@pytest.mark.parametrize("split", SPLITS)
def test_a_split_is_fixed_and_gives_no_answer_away(split):
    problems = technique_problems(split)
    assert problems == load_bundled("techniques", split), "run: make problems"
    assert len({problem.text for problem in problems}) == len(problems)
    assert max(Counter(problem.family for problem in problems).values()) <= EACH[split]
    assert all(problem.answer not in _NUMBER.findall(problem.text) for problem in problems)
    assert all((problem.solution is not None) is (split == "train") for problem in problems)


def test_no_two_splits_share_a_wording_or_numbers():
    masked = [{re.sub(r"\d+", "#", problem.text) for problem in technique_problems(split)} for split in SPLITS]
    assert not any(one & other for one, other in combinations(masked, 2))
    for family in families():
        drawn = [{instance for instance, _ in instances(family, split)} for split in SPLITS]
        assert not any(one & other for one, other in combinations(drawn, 2)), family.name
