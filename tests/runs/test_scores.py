"""`kace report` reads scores that other tools wrote, and pairs and clusters them like runs."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from kace.errors import DataError, UsageError
from kace.runs.compare import compare
from kace.runs.metrics import clusters_of
from kace.runs.scores import ScoreReader
from tests.command import run_kace

HEAD = ("problem", "system", "score", "seed", "cluster")


def written(folder: Path, rows: Iterable[tuple[object, ...]], head: tuple[str, ...] = HEAD) -> Path:
    path = folder / "scores.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([head, *rows])
    return path


def two_systems(folder: Path) -> Path:
    rows = []
    for number in range(12):
        for seed in range(2):
            rows.append((f"p{number}", "old", int(number < 2), seed, f"c{number // 3}"))
            rows.append((f"p{number}", "new", int(number < 10), seed, f"c{number // 3}"))
    return written(folder, rows)


def test_systems_of_a_file_are_paired_by_problem_and_seed(tmp_path: Path):
    old, new = ScoreReader().open([two_systems(tmp_path)])
    assert (old.name, new.name) == ("old", "new")
    found = compare(old, new)
    assert (found.n, found.pairs, found.seeds) == (12, 24, (0, 1))
    assert found.difference == pytest.approx(8 / 12)
    assert (found.cluster, found.clusters) == ("family", 4), "the column cluster is the family"
    by_problem = compare(old, new, clusters_of((old, new), "problem"))
    assert by_problem.clusters == 12 and by_problem.p == pytest.approx(2 / 2**8)
    assert set(by_problem.gained) == {f"p{number}" for number in range(2, 10)}


def test_the_verb_prints_the_sentence_and_no_invented_calls(tmp_path: Path):
    two_systems(tmp_path)
    done = run_kace(tmp_path, "report", "scores.csv", "--cluster", "problem")
    assert done.returncode == 0, done.stderr
    assert "new is better than old: +66.7 points" in done.stdout and "p = 0.008" in done.stdout
    assert " 0.00 " not in done.stdout
    page = run_kace(tmp_path, "report", "scores.csv", "--out", "page")
    assert "calls per problem" not in page.stderr
    html = (tmp_path / "page" / "index.html").read_text()
    assert "calls per problem" not in html and "unknown" in html
    base = json.loads(run_kace(tmp_path, "report", "scores.csv", "--base", "new", "--json").stdout)
    assert base["comparisons"][0]["difference"] < 0


@pytest.mark.parametrize(
    ("rows", "head", "message"),
    [
        ([("p", "a", "1")], ("question", "system", "score"), "no column problem"),
        ([("p", "a", "0.7", "0", "")], HEAD, "the score '0.7' is neither right"),
        ([("p", "a", "good", "0", "")], HEAD, "the score 'good' is neither right"),
        ([("p", "a", "1", "-1", "")], HEAD, "the seed '-1' is no whole number"),
        ([("p", "a", "1", "0", ""), ("p", "a", "0", "0", "")], HEAD, "two scores of one problem, system 'a'"),
    ],
)
def test_a_file_that_cannot_be_compared_is_refused_with_the_line(
    tmp_path: Path, rows: list[tuple[object, ...]], head: tuple[str, ...], message: str
):
    with pytest.raises((DataError, UsageError), match=message):
        ScoreReader().open([written(tmp_path, rows, head)])


def test_another_column_may_be_the_cluster(tmp_path: Path):
    path = two_systems(tmp_path)
    path.write_text(path.read_text().replace("cluster", "topic", 1))
    assert "on 12 problems of 4 topics" in run_kace(tmp_path, "report", "scores.csv", "--cluster", "topic").stdout
    assert "on 12 problems and 2 seeds" in run_kace(tmp_path, "report", "scores.csv").stdout
    (tmp_path / "empty.csv").write_text("problem,system,score\n")
    empty = run_kace(tmp_path, "report", "empty.csv")
    assert empty.returncode == 2 and "no run to report on" in empty.stderr
    done = run_kace(tmp_path, "report", "scores.csv", "--cluster", "nothing")
    assert done.returncode == 2 and "12 of 12 problems have no field 'nothing'" in done.stderr


@pytest.mark.parametrize(
    ("score", "right_from", "right"),
    [("C", None, True), ("I", None, False), ("N", None, False), ("true", None, True), ("1.0", None, True),
     ("", None, None), ("nan", None, None), ("0.5", 0.5, True), ("P", 0.6, False), ("7", 7, True), ("1", 7, False)],
)  # fmt: skip
def test_scores_of_many_spellings(tmp_path: Path, score: str, right_from: float | None, right: bool | None):
    (table,) = ScoreReader(right_from=right_from).open([written(tmp_path, [("p", "a", score, "0", "")])])
    assert [row.correct for row in table] == [right]


def test_a_log_without_inspect_ai_names_the_package(tmp_path: Path):
    try:
        import inspect_ai  # noqa: F401
    except ImportError:
        (tmp_path / "a.eval").write_bytes(b"PK")
        with pytest.raises(UsageError, match="reading it needs inspect_ai"):
            ScoreReader().open([tmp_path / "a.eval"])
    else:
        pytest.skip("inspect_ai is installed")
