"""Problems that stand in two sets are found, also when they were told again; relatives with other numbers are not."""

from __future__ import annotations

from itertools import combinations

from kace.datasets.loader import duplicates, find_doubles, overlaps
from kace.datasets.starter import load_split
from kace.problems import Problem

HENS = Problem("A farmer has 17 hens and 23 ducks, and sells 9 of the hens. How many birds are left?", "31", "hens")
AGAIN = Problem("a farmer has 17 hens and 23 ducks and sells 9 of the hens; how many birds are left", "31", "again")
OTHER = Problem("A farmer has 18 hens and 23 ducks, and sells 9 of the hens. How many birds are left?", "32", "other")
SINES = (Problem(r"Compute $\sin 60^\circ$.", label="sin"), Problem(r"Compute $\cos 60^\circ$.", label="cos"))
TOLD = "A farmer has 17 hens and 23 ducks, and sells 9 of the hens at the market. How many birds are left?"


def test_the_same_problem_told_with_other_spacing_case_or_signs_is_found():
    again = Problem(
        "a farmer has 17 hens   and 23 ducks -- and sells 9 of the hens, at the market; how many birds are left"
    )
    ((ours, theirs),) = overlaps([Problem("unrelated 5"), again], [Problem(TOLD)])
    assert ours is again and theirs.text == TOLD


def test_a_word_changed_is_still_the_same_problem():
    assert overlaps([Problem(TOLD.replace("market", "fair"))], [Problem(TOLD)])


def test_other_numbers_make_another_problem():
    assert not overlaps([Problem(TOLD.replace("17", "18"))], [Problem(TOLD)])


def test_the_bundled_splits_do_not_overlap():
    splits = {name: load_split(name) for name in ("train", "validation", "test")}
    for one, other in combinations(splits, 2):
        assert overlaps(splits[one], splits[other]) == []
    assert len(overlaps(splits["train"], splits["train"])) == len(splits["train"])


def test_a_problem_told_again_is_found_once_and_other_numbers_make_another_problem():
    assert duplicates([OTHER, HENS, *SINES, AGAIN]) == [(HENS, AGAIN)]
    assert duplicates([HENS, OTHER, *SINES]) == []


def test_sets_are_checked_inside_and_against_each_other():
    found = find_doubles({"train": [HENS, AGAIN], "test": [OTHER, SINES[0]], "mine": [SINES[0]]})
    assert [(finding.sets, finding.ours.label, finding.theirs.label) for finding in found] == [
        (("train", "train"), "hens", "again"),
        (("test", "mine"), "sin", "sin"),
    ]
    assert find_doubles({"train": [HENS], "test": [OTHER, *SINES]}) == []
