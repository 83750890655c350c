"""Confidence from a real server through `kace eval` to the report: calibrated on one run, used in the next."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kace.cli import app
from kace.ladder.confidence import calibration_of
from kace.ladder.record import last_solutions
from kace.problems import Problem, problem_rows
from kace.report.evaluation import evaluation_of, markdown
from kace.report.evaluation_page import page
from kace.report.plots import plots_of
from kace.runs.arm import clusters_of, read_arm
from kace.runs.confidence import confidence_figures, reweighed
from tests.html_pages import parsed
from tests.models.chat_server import Answer, ChatServer, Seen, completion


def solver(seen: Seen) -> Answer:
    """Right in three of ten, and mostly surer then; the log-probabilities in vLLM's shape."""
    draw = random.Random(seen.body["seed"])
    right = draw.random() < 0.3
    own = -draw.uniform(0.1, 0.5) if right else -draw.uniform(0.3, 0.9)
    top = [{"token": "t", "logprob": each, "bytes": [116]} for each in (own, *[-2 / -own] * 4)]
    tokens = [{"token": "t", "logprob": own, "bytes": [116], "top_logprobs": top}] * 3
    body = completion({"role": "assistant", "content": f"so \\boxed{{{1 if right else draw.choice('2345')}}}"})
    if seen.body.get("logprobs"):
        body["choices"][0]["logprobs"] = {"content": tokens}  # type: ignore[index]
    return Answer(json.dumps(body).encode())


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Three runs by hand: of training problems, and of test problems by counts and under both policies."""
    folder = tmp_path_factory.mktemp("runs")
    for split in ("train", "test"):
        problems = [Problem(f"The {split} number {n}?", "1", label=f"{split}{n}") for n in range(40)]
        (folder / f"{split}.jsonl").write_text("\n".join(problem_rows(problems)) + "\n")
    with ChatServer(solver) as server:

        def evaluate(split: str, out: str, *settings: str, reuse: str = "") -> None:
            model = ("--model", "openai/m", "--base-url", server.url, "--seeds", "1")
            sets = [part for setting in settings for part in ("--set", setting)]
            data = ["--data", str(folder / f"{split}.jsonl"), "--out", str(folder / out)]
            data += ["--reuse", str(folder / reuse)] if reuse else []
            done = CliRunner().invoke(app, ["eval", "--system", "tiered", *data, *model, *sets], catch_exceptions=False)
            assert done.exit_code == 0, done.output

        evaluate("train", "calibration", "logprobs=true")
        evaluate("test", "counted", "logprobs=true")
        trained = f"confidence_from={folder / 'calibration'}"
        evaluate("test", "weighted", "vote=confidence", trained, reuse="counted")
        evaluate("test", "confident", "vote=confidence", "es_exit=confident", trained, reuse="counted")
        evaluate("test", "without")
    yield folder


def test_the_figures_tell_right_from_wrong_and_what_the_weights_changed(runs: Path):
    arms = [read_arm(runs / name) for name in ("counted", "weighted", "without")]
    counted, weighted = confidence_figures(arms, clusters_of(arms), calibration_of(runs / "calibration"))
    assert counted.told == counted.attempts > 200
    assert all(0.7 < (each.within or 0) < 1 for each in counted.measures if each.measure == "logprob")
    assert counted.es_right + counted.es_wrong == sum(row.exit == "es_unanimous" for row in arms[0].rows)
    assert sum(each.attempts for each in counted.bins) == counted.told
    assert [each.share for each in counted.bins] == sorted(each.share for each in counted.bins)
    assert counted.weighted == weighted.weighted, "the same attempts, recounted and recorded"
    change = counted.weighted
    assert change is not None and change.gained > change.broken
    right = [sum(bool(row.correct) for row in arm.rows) for arm in arms]
    assert all(attempt.from_cache for each in last_solutions(runs / "weighted") for attempt in each.attempts)
    assert right[0] == change.by_counts
    assert right[1] == change.by_counts + change.gained - change.broken


def test_a_recount_needs_nothing_but_the_record(runs: Path):
    solutions = list(last_solutions(runs / "weighted"))
    change = reweighed(solutions, calibration_of(runs / "weighted" / "run.json"))
    assert change == reweighed(list(last_solutions(runs / "counted")), calibration_of(runs / "calibration"))
    assert change.words.endswith("broken of 40 solves")


def test_a_confident_es_exit_lets_fewer_out(runs: Path):
    agreed, confident = (read_arm(runs / name) for name in ("counted", "confident"))
    out = [{row.problem for row in arm.rows if row.exit == "es_unanimous"} for arm in (agreed, confident)]
    assert out[1] < out[0]
    wrong = [sum(not row.correct for row in arm.rows if row.exit == "es_unanimous") for arm in (agreed, confident)]
    assert wrong[1] < wrong[0]


def test_the_report_says_it_in_every_form(runs: Path):
    names = [str(runs / name) for name in ("counted", "weighted")]
    text = CliRunner().invoke(app, ["report", *names])
    assert "AUC, right against wrong" in text.output and "by weights" in text.output
    told = json.loads(CliRunner().invoke(app, ["report", *names, "--json"]).stdout)
    assert [arm["name"] for arm in told["confidence"]] == ["counted", "weighted"]
    assert told["confidence"][0]["weighted"] is None, "no calibration of its own"
    recounted = ["report", *names, "--json", "--set", f"confidence_from={runs / 'calibration'}"]
    told = json.loads(CliRunner().invoke(app, recounted).stdout)
    assert told["confidence"][0]["weighted"] == told["confidence"][1]["weighted"]
    found = evaluation_of([read_arm(runs / "weighted")])
    assert "## What confidence tells" in markdown(found)
    assert "What confidence tells" in page(found)
    parsed(page(found))
    (plot,) = [plot for plot in plots_of(found) if plot.name == "confidence"]
    assert "fifth 5" in str(plot.draw(880.0))


def test_a_report_of_runs_without_confidence_is_as_it_was(runs: Path):
    found = evaluation_of([read_arm(runs / "without")])
    assert found.confidence == ()
    assert "confidence tells" not in markdown(found) + page(found)
