"""The table of systems: what is in it, what each needs, and what is said when that is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from kace.baselines.systems import SYSTEMS, open_system, spec_of
from kace.errors import DataError, UsageError
from tests.baselines.arena import Solver, bench

OF_THE_PAPER = {
    *("single", "ace", "gepa", "domain-ace", "best-of-5", "tiered", "tiered-ace", "tiered-gepa", "kace"),
    *("kace-no-domain", "kace-reflections", "kace-monolithic", "kace-router", "kace-retriever"),
    *("kace-oracle", "kace-random", "kace-reranked", "kace-placebo", "kace-empty-prompt"),
}
ALTERNATIVES = {"knn-fewshot", "knn-fewshot-gated", "oracle-card"}


def test_the_table_holds_every_system_of_the_comparison_and_says_what_each_is():
    assert set(SYSTEMS) == OF_THE_PAPER | ALTERNATIVES
    for name, spec in SYSTEMS.items():
        assert spec.name == name
        assert spec.about and "\n" not in spec.about


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_missing_tree_or_artefact_is_one_error_with_the_fix(name: str):
    spec = SYSTEMS[name]
    if not spec.reads_tree and not spec.artefact:
        assert open_system(name, bench(Solver(), tree=None)).name == name
        return
    with pytest.raises(UsageError, match=f"system '{name}'.*none is given") as caught:
        open_system(name, bench(Solver(), tree=None))
    assert ("--tree DIR" if spec.reads_tree else "--artefact") in caught.value.fix
    assert ("--method" in caught.value.fix) == bool(spec.trainer)


@pytest.mark.parametrize("name", [name for name in SYSTEMS if SYSTEMS[name].artefact])
def test_an_artefact_that_is_not_there_is_one_error(name: str, tmp_path: Path):
    with pytest.raises((UsageError, DataError), match="nothing"):
        open_system(name, bench(Solver(), artefact=tmp_path / "nothing"))


@pytest.mark.parametrize("number", [2, 5, 7, 100])
def test_best_of_any_size_has_a_line_of_its_own(number: int):
    assert spec_of(f"best-of-{number}").name == open_system(f"best-of-{number}", bench(Solver())).name


@pytest.mark.parametrize(
    "name", ["xyzzy", "best-of-0", "best-of-1", "best-of-101", "best-of-05", "best-of--3", "best-of-N"]
)
def test_an_unknown_name_or_size_gets_the_list(name: str):
    with pytest.raises(UsageError, match=f"unknown system '{name}'") as caught:
        spec_of(name)
    assert "kace-oracle" in caught.value.fix
