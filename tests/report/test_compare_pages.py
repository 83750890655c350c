"""Two runs or two trees side by side: the figures of the evaluation, worked out beside the pages and kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from kace.report.render import path_of
from kace.runs.compare import compare
from kace.runs.scores import ScoreReader
from tests.report.opened import opened
from tests.report.page_audit import Audit, body_of
from tests.report.samples import a_run, a_solve


def runs(folder: Path, *, problems: int = 12, seeds: int = 1) -> Path:
    """`first` gets all but every fourth problem right, `second` all but every third."""
    for name, wrong in (("first", 4), ("second", 3)):
        solves = [
            a_solve(f"{n:016x}", label=f"problem {n}", seed=seed, correct=n % wrong > 0, paper_calls=5 if n % 2 else 2)
            for n in range(problems)
            for seed in range(seeds)
        ]
        a_run(
            folder / name, solves, system={"name": name}, tree={"hash": "ab" * 32, "cards": 3} if wrong == 4 else None
        )
    return folder


def settled(client: TestClient, path: str) -> Audit:
    """The page."""
    return Audit(body_of(client.get(path).text))


# Runs


def test_the_page_says_what_the_comparison_says(tmp_path: Path):
    runs(tmp_path / "both")
    ours, theirs = ScoreReader().open([tmp_path / "both" / "first", tmp_path / "both" / "second"])
    with opened(tmp_path / "both") as client:
        page = settled(client, "/run/first/against/second")
    assert compare(theirs, ours).sentence.replace(" %", "\u00a0%") in page.text.replace("95 %", "95\u00a0%")
    assert "first 12 0 3 2 16.7%" in page.text, "cards shown, gained and broken"
    assert "75.0% first" in page.text and "66.7%" in page.text
    assert "+8.3" in page.text


def test_gained_and_lost_problems_lead_to_both_solves(tmp_path: Path):
    runs(tmp_path / "both")
    with opened(tmp_path / "both") as client:
        page = settled(client, "/run/first/against/second")
        for link in [link for link in page.links if "/problem/" in link]:
            assert client.get(link).status_code == 200
    gained = [f"{n:016x}" for n in range(12) if n % 4 and not n % 3]
    lost = [f"{n:016x}" for n in range(12) if not n % 4 and n % 3]
    for problem in (*gained, *lost):
        for run in ("first", "second"):
            assert path_of("run", run, "problem", problem, "0") in page.links
    assert "/run/first?against=second&change=gained#solves" in page.links
    assert "Gained 3" in page.text and "Lost 2" in page.text


def test_the_table_says_that_runs_are_identical(tmp_path: Path):
    for name in ("first", "second"):
        a_run(tmp_path / "both" / name, [a_solve("a" * 16)])
    with opened(tmp_path / "both") as client:
        table = settled(client, "/run/first/against/second").text.partition("Verdict")[2]
    assert "identical" in table.partition("Gained and lost are problems")[0]


def test_runs_without_a_problem_in_common_are_shown_and_not_compared(tmp_path: Path):
    a_run(tmp_path / "both" / "first", [a_solve("a" * 16)])
    a_run(tmp_path / "both" / "second", [a_solve("c" * 16)])
    with opened(tmp_path / "both") as client:
        page = settled(client, "/run/first/against/second")
    assert "first has no problem and seed in common with second" in page.text


@pytest.mark.parametrize("correct", [None, True])
def test_runs_without_answers_or_solves_have_a_page(tmp_path: Path, correct: bool | None):
    a_run(tmp_path / "both" / "first", [a_solve(correct=correct, expected=None)])
    folder = a_run(tmp_path / "both" / "second")
    (folder / "traces.jsonl").write_text("")
    with opened(tmp_path / "both") as client:
        assert "Two runs side by side" in settled(client, "/run/first/against/second").text


# Files


def test_a_manifest_of_any_shape_does_no_harm(tmp_path: Path):
    deep: object = "x"
    for _ in range(60):
        deep = {"k": deep}
    a_run(tmp_path / "both" / "first", config={"model": ["a", None], "deep": deep, "long": "y" * 9000})
    a_run(tmp_path / "both" / "second", config=[1, 2], data="text", tree=7, system=None)
    with opened(tmp_path / "both") as client:
        page = settled(client, "/run/first/against/second")
    assert page.strange == [] and "y" * 300 not in page.text
