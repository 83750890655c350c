"""The plug-ins of examples/ in the real packages, as far as those are installed."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.command import environment, run_kace

EXAMPLES = Path(__file__).parents[2] / "examples"
ROWS = [
    {"id": f"p{n}", "problem": f"Throw die number {n}. What does it show?", "answer": "42" if n % 2 else "7"}
    for n in range(4)
]


def needs(package: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(find_spec(package) is None, reason=f"{package} is not installed: pip install {package}")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "d.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)) + "\n")
    return path


def python(folder: Path, *arguments: str, **env: str) -> str:
    """Run a script in a process of its own, without a network."""
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_CACHE": str(folder / "hf"), "DSPY_CACHEDIR": str(folder / "dspy")}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment(folder, PYTHONPATH=f"{EXAMPLES}:{':'.join(sys.path)}", **offline, **env),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


TASK = """
task: small
dataset_path: json
dataset_kwargs: {data_files: {test: %s}}
test_split: test
output_type: generate_until
doc_to_text: "{{problem}}"
doc_to_target: "{{answer}}"
repeats: 2
generation_kwargs: {until: ["Question:"]}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
filter_list:
  - name: boxed
    filter: [{function: regex, regex_pattern: 'boxed.([0-9]+)', group_select: -1}, {function: take_first}]
"""


@needs("lm_eval")
def test_lm_eval_scores_the_voted_answer(tmp_path: Path, data: Path):
    (tmp_path / "small.yaml").write_text(TASK % data)
    settings = "tree=starter,model=scripted/steady,out=runs/small"
    told = ("--tasks", "small", "--include_path", str(tmp_path), "--output_path", "out", "--log_samples")
    script = str(EXAMPLES / "lm_eval_model.py")
    shown = python(tmp_path, script, "--model", "kace", "--model_args", settings, *told)
    assert "|small" in shown
    (results,) = (tmp_path / "out").rglob("results_*.json")
    assert json.loads(results.read_text())["results"]["small"]["exact_match,boxed"] == 0.5
    (samples,) = (tmp_path / "out").rglob("samples_*.jsonl")
    first = json.loads(samples.read_text().splitlines()[0])
    assert first["resps"] == [["Every step agrees. \\boxed{42}"] * 2]
    assert sorted(path.name for path in (tmp_path / "runs" / "small").iterdir()) == ["seed-0", "seed-1"]
    report = run_kace(tmp_path, "report", "runs/small/seed-0")
    assert report.returncode == 0, report.stderr


INSPECT = r"""
import sys
from inspect_ai import Task, eval
from inspect_ai.dataset import FieldSpec, json_dataset
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import generate
from inspect_solver import kace_ladder

def reply(input, tools, tool_choice, config):
    text = "So it is \\boxed{42}."
    if config.seed is None:
        text = "It is 7."
    output = ModelOutput.from_content("mockllm/model", text)
    output.usage = ModelUsage(input_tokens=30, output_tokens=5, total_tokens=35)
    return output

fields = FieldSpec(input="problem", target="answer", id="id", metadata=["family"])
for solver in (generate(), kace_ladder(tree="starter", preset="starter")):
    task = Task(dataset=json_dataset("d.jsonl", fields), solver=solver, scorer=match(), epochs=2)
    (log,) = eval(task, model=get_model("mockllm/model", custom_outputs=reply), display="none", log_dir="logs")
    assert log.status == "success", log.error
    print(log.location)
sample = log.samples[0]
print(sample.metadata["kace"], sample.output.completion, sample.model_usage["mockllm/model"].input_tokens)
"""


@needs("inspect_ai")
def test_inspect_ai_climbs_the_ladder_and_its_logs_are_compared(tmp_path: Path, data: Path):
    rows = [{**row, "family": f"f{at // 2}"} for at, row in enumerate(ROWS)]
    data.write_text("\n".join(map(json.dumps, rows)) + "\n")
    plain, ladder, sample = python(tmp_path, "-c", INSPECT).split("\n", 2)
    assert "'exit': 'es_unanimous', 'calls': 2" in sample
    assert "So it is \\boxed{42}" in sample and "ANSWER: 42 60" in sample, "inspect counts the tokens of all attempts"
    done = run_kace(tmp_path, "report", plain, ladder, "--json")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert [arm["name"] for arm in record["arms"]] == ["generate mockllm/model", "kace_ladder mockllm/model"]
    (found,) = record["comparisons"]
    assert (found["n"], found["pairs"], found["clusters"], found["cluster"]) == (4, 8, 2, "family")
    assert len(found["gained"]) == len(found["lost"]) == 2 and found["difference"] == 0
    assert {each["name"] for each in found["gained"]} == {"p1", "p3"}
    assert record["arms"][1]["input"] == 60
    named = run_kace(tmp_path, "report", plain, ladder, "--cluster", "family", "--scorer", "match")
    assert "2 families" in named.stdout
    wrong = run_kace(tmp_path, "report", plain, "--scorer", "judge")
    assert wrong.returncode == 2 and "has the scores match. Fix: name one of them: --scorer NAME" in wrong.stderr
    topic = run_kace(tmp_path, "report", plain, "--cluster", "topic")
    assert topic.returncode == 2 and "have no field 'topic'" in topic.stderr


DSPY = r"""
import asyncio
import dspy
from dspy_module import Ladder
from tests.models.chat_server import ChatServer, error, says

def answer(seen):
    if "broken" in seen.body["messages"][-1]["content"]:
        return error(500)
    return says(f"So \\boxed{{{40 + len(server.requests) % 3}}}")

problem = "What is 6 times 7?"
with ChatServer(answer) as server:
    dspy.configure(lm=dspy.LM("openai/m", api_base=server.url, api_key="none", num_retries=0), track_usage=True)
    ladder = Ladder(tree="starter")
    first = ladder(problem=problem)
    made = len(server.requests)
    again = ladder(problem=problem)
    assert (again.answer, len(server.requests)) == (first.answer, made), "dspy's cache holds every attempt apart"
    assert made == {"es_unanimous": 2, "ms_majority": 5}.get(first.exit, 10), (made, first)
    assert first.get_lm_usage()["openai/m"]["total_tokens"] > 0
    rows = [dspy.Example(problem=f"What is {n} + 1?", answer="42").with_inputs("problem") for n in range(4)]
    right = lambda row, found, trace=None: found.answer == row.answer
    assert len(dspy.Evaluate(devset=rows, metric=right, num_threads=2)(ladder).results) == 4
    assert asyncio.run(ladder.acall(problem=problem)).answer == first.answer
    failed = ladder(problem="a broken one")
    assert failed.answer is None and failed.exit == "fallback_last_hs"
    print(first.answer)
"""


@needs("dspy")
def test_dspy_takes_the_ladder_as_a_module(tmp_path: Path):
    assert python(tmp_path, "-c", DSPY).strip().splitlines()[-1] in {"40", "41", "42"}
