"""A problem that stands twice is found, in one set or across two."""

from __future__ import annotations

from kace.datasets.checks import check, duplicates
from kace.problem import Problem

HENS = Problem("A farmer has 17 hens and 23 ducks, and sells 9 of the hens. How many birds are left?", "31", "hens")
AGAIN = Problem("a farmer has 17 hens and 23 ducks and sells 9 of the hens; how many birds are left", "31", "again")
OTHER = Problem("A farmer has 18 hens and 23 ducks, and sells 9 of the hens. How many birds are left?", "32", "other")
SINES = (Problem(r"Compute $\sin 60^\circ$.", label="sin"), Problem(r"Compute $\cos 60^\circ$.", label="cos"))


def test_a_problem_told_again_is_found_once_and_other_numbers_make_another_problem():
    assert duplicates([OTHER, HENS, *SINES, AGAIN]) == [(HENS, AGAIN)]
    assert duplicates([HENS, OTHER, *SINES]) == []


def test_sets_are_checked_inside_and_against_each_other():
    found = check({"train": [HENS, AGAIN], "test": [OTHER, SINES[0]], "mine": [SINES[0]]})
    assert [(finding.sets, finding.ours.label, finding.theirs.label) for finding in found] == [
        (("train", "train"), "hens", "again"),
        (("test", "mine"), "sin", "sin"),
    ]
    assert check({"train": [HENS], "test": [OTHER, *SINES]}) == []
