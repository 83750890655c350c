"""`kace report --to eee` writes what Every Eval Ever reads: a record per arm."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from kace.report.evaluation import write_records
from kace.runs.table import Table
from tests.command import run_kace
from tests.plugins.test_plugins import python
from tests.runs.sample_arms import an_arm, manifest

DICE = ("--model", "scripted/dice?sides=3", "--limit", "4", "--seeds", "2", "--data", "starter")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    done = run_kace(tmp_path, "eval", *DICE, "--out", "run")
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_a_record_holds_the_figures(run: Path):
    shown = json.loads(run_kace(run, "report", "run", "--json").stdout)["arms"][0]
    done = run_kace(run, "report", "run", "--to", "eee", "--out", "out")
    assert done.returncode == 0 and "1 file" in done.stderr, done.stderr
    (path,) = run.glob("out/data/starter-test/scripted/dice-sides-3/*.json")
    record = json.loads(path.read_text())
    (result,) = record["evaluation_results"]
    assert result["score_details"]["score"] == shown["accuracy"]
    interval = result["score_details"]["uncertainty"]["confidence_interval"]
    assert [interval["lower"], interval["upper"]] == shown["wilson"]
    assert record["eval_library"]["name"] == "kace" and record["schema_version"] == "0.2.3"
    again = run_kace(run, "report", "run", "--to", "eee", "--out", "out")
    assert again.returncode == 0 and len(list(run.glob("out/data/*/*/*/*"))) == 1, "the same run is the same record"


def test_names_of_a_run_do_not_leave_the_folder(tmp_path: Path):
    arm = an_arm("../../up", skill=0.1)
    content = manifest("../../up")
    content["config"] = {"model": "../../../etc/passwd"}
    content["data"] = {"name": "../data", "split": ".."}
    table = Table.of(list(arm), name="../../up", manifest=content)
    paths = write_records([table], [table.metrics()], tmp_path / "out")
    assert [path.resolve().is_relative_to(tmp_path / "out" / "data") for path in paths] == [True]
    assert len(paths[0].relative_to(tmp_path / "out").parts) == 5


def test_scores_of_a_file_have_a_record(tmp_path: Path):
    (tmp_path / "s.csv").write_text("problem,system,score\np,a,1\nq,a,0\n")
    done = run_kace(tmp_path, "report", "s.csv", "--to", "eee", "--out", "out")
    assert done.returncode == 0 and "1 file" in done.stderr, done.stderr
    (path,) = tmp_path.glob("out/data/s.csv/unknown/a/*.json")
    assert json.loads(path.read_text())["evaluation_results"][0]["score_details"]["score"] == 0.5
    assert run_kace(tmp_path, "report", "s.csv", "--to", "eee").returncode == 0
    assert len(list(tmp_path.glob("eee/data/s.csv/unknown/a/*.json"))) == 1


@pytest.mark.skipif(find_spec("every_eval_ever") is None, reason="every_eval_ever is not installed")
def test_the_projects_own_validator_accepts_it(run: Path):
    (run / "s.csv").write_text("problem,system,score\np,a,1\nq,a,0\n")
    for source in ("run", "s.csv"):
        assert run_kace(run, "report", source, "--to", "eee", "--out", "out").returncode == 0
    shown = python(run / "out", "-m", "every_eval_ever", "validate", "data/*/*/*/*.json")
    assert "2 passed" in shown and "0 failed" in shown
