"""`kace demo`, `doctor`, `models` and `data`, as a new user types them."""

from __future__ import annotations

import json
import subprocess
from importlib import import_module
from pathlib import Path

import pytest
import typer

from kace.cli import VERBS
from kace.cli.demo import RECORDING, demo_problems
from kace.problem import load_problems
from tests.command import run_kace
from tests.models.chat_server import Answer, ChatServer, error


@pytest.fixture
def kace(tmp_path: Path):
    def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        return run_kace(tmp_path, *arguments, **env)

    return run


def test_the_replay_shows_a_recorded_run_of_the_real_model_and_says_so(kace, tmp_path: Path):
    done = kace("demo", "--replay")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("This is a REPLAY of a recorded run of the real model")
    assert sum(line.startswith("starter-test-") for line in done.stdout.splitlines()) == 12
    for figure in ("accuracy", "95 % interval", "exits", "by the paper's count", "tokens"):
        assert figure in done.stdout
    (run,) = (tmp_path / "runs").iterdir()
    assert json.loads((run / "run.json").read_text())["replay_of"].startswith("replay/")


def test_the_recording_is_of_the_default_model_and_of_every_demo_problem():
    recorded = [json.loads(line) for line in RECORDING.read_text(encoding="utf-8").splitlines()]
    assert {row["problem"] for row in recorded} == {problem.id for problem in demo_problems()}
    assert all("1d9614638d18024d" in row["model"] for row in recorded)


def test_the_demo_takes_from_every_domain():
    assert len({problem.domain for problem in demo_problems()}) == 5


def test_without_weights_and_without_any_source_the_demo_replays(kace):
    # No hub answers and pip may not look anywhere: the weights cannot be had.
    done = kace("demo", HF_ENDPOINT="http://127.0.0.1:9", PIP_NO_INDEX="1", PIP_FIND_LINKS="/nonexistent")
    assert done.returncode == 0, done.stderr
    assert "REPLAY" in done.stdout
    assert "127.0.0.1:9" in done.stderr, "what was tried is named"
    assert "Traceback" not in done.stderr


def test_a_model_that_was_asked_for_is_never_replaced_by_a_replay(kace):
    done = kace("demo", "--model", "local/absent")
    assert done.returncode == 2
    assert "absent" in done.stderr


def test_models_are_listed_with_size_and_state(kace):
    rows = [json.loads(line) for line in kace("models", "list", "--json").stdout.splitlines()]
    assert {row["name"] for row in rows} >= {"local/qwen2.5-coder-0.5b", "local/smollm2-135m"}
    assert not any(row["here"] for row in rows)
    assert "491 MB  not here" in kace("models", "list").stdout


def test_where_fails_with_the_fix_when_a_model_is_not_here(kace):
    done = kace("models", "where", "smollm2-135m")
    assert done.returncode == 1
    assert "kace models pull smollm2-135m" in done.stderr
    assert kace("models", "where", "qwen").returncode == 2


def test_the_doctor_passes_what_works_and_says_the_fix_for_what_does_not(kace):
    good = kace("doctor", "--model", "scripted/steady")
    assert good.returncode == 0, good.stdout
    assert "FAIL" not in good.stdout
    bad = kace("doctor")
    assert bad.returncode == 1
    assert "fix: kace models pull qwen2.5-coder-0.5b" in bad.stdout
    keyless = kace("doctor", "--model", "openai/gpt-4.1-mini", "--json")
    checks = {row["name"]: row for row in map(json.loads, keyless.stdout.splitlines())}
    assert not checks["key"]["ok"]
    assert "OPENAI_API_KEY" in checks["key"]["detail"]


@pytest.mark.parametrize(
    ("reply", "healthy", "said"),
    [
        (Answer(body=b'{"data": [{"id": "m"}]}'), True, "has 'm'"),
        (Answer(body=b'{"data": [{"id": "other"}]}'), False, "choose one of other"),
        (error(401), False, "check the key"),
        (Answer(body=b"<html>hello"), False, "is the server up"),
    ],
)
def test_the_doctor_asks_the_endpoint(kace, reply: Answer, healthy: bool, said: str):
    with ChatServer([reply]) as server:
        done = kace("doctor", "--model", "openai/m", "--base-url", server.url)
    assert (done.returncode == 0) is healthy, done.stdout
    assert said in done.stdout


def test_the_doctor_looks_at_the_teacher_where_one_is_named(kace, tmp_path: Path):
    done = kace("doctor", "--model", "scripted/steady", KACE_TEACHER=f"exchange/{tmp_path / 'letters'}")
    assert done.returncode == 0, done.stdout
    assert "teacher exchange" in done.stdout
    assert not (tmp_path / "letters").exists()
    (tmp_path / "file").write_text("in the way")
    blocked = kace("doctor", "--model", "scripted/steady", KACE_TEACHER=f"exchange/{tmp_path / 'file'}")
    assert blocked.returncode == 1
    assert "name a folder you can write" in blocked.stdout
    keyless = kace("doctor", "--model", "scripted/steady", KACE_TEACHER="anthropic/m")
    assert keyless.returncode == 1
    assert "export ANTHROPIC_API_KEY" in keyless.stdout
    keyed = kace(
        "doctor", "--model", "scripted/steady", KACE_TEACHER="anthropic/m", KACE_TEACHER_API_KEY="canary-12345"
    )
    assert keyed.returncode == 0, keyed.stdout
    assert "canary" not in keyed.stdout


def test_the_doctor_notices_a_cache_that_cannot_be_written(kace, tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    done = kace("doctor", "--model", "scripted/steady", KACE_CACHE_DIR=str(tmp_path / "file" / "cache"))
    assert done.returncode == 1
    assert "set KACE_CACHE_DIR" in done.stdout


def test_data_writes_the_bundled_split_and_fresh_problems(kace, tmp_path: Path):
    assert len(kace("data", "starter", "--split", "train").stdout.splitlines()) == 100
    done = kace("data", "starter", "--n", "300", "--seed", "7", "-o", "fresh.jsonl")
    assert done.returncode == 0, done.stderr
    fresh = load_problems(tmp_path / "fresh.jsonl")
    assert len(fresh) == 300
    again = kace("data", "starter", "--n", "300", "--seed", "7").stdout
    assert again == (tmp_path / "fresh.jsonl").read_text(encoding="utf-8")
    assert kace("data", "starter", "--split", "exam").returncode == 2


@pytest.mark.parametrize(
    ("arguments", "fix"),
    [
        (("solve", "2+2?", "--place-by", "words"), "--set router=VALUE"),
        (("solve", "2+2?", "--timeout=5"), "--set timeout=VALUE"),
        (("learn", "--refine", "0"), "--set refine=VALUE"),
        (("solve", "2+2?", "--max-connections", "4"), "--set max_connections=VALUE"),
        (("solve", "2+2?", "--skip-es"), "--set es_policy=skip"),
        (("serve", "--api-key", "k"), "KACE_SERVE_KEY=KEY before the command, or --set serve_key=KEY"),
        (("tree", "cards", "t"), "kace tree show TREE cards"),
        (("tree", "diff", "t", "--since", "3"), "kace tree diff TREE N"),
        (("compare", "a", "b"), "kace report RUN RUN --format text"),
    ],
)
def test_a_setting_typed_as_an_option_is_refused_with_the_way_to_set_it(kace, arguments: tuple[str, ...], fix: str):
    done = kace(*arguments)
    assert done.returncode == 2
    assert f"Fix: write {fix}" in done.stderr and done.stderr.count("\n") == 1


def test_the_options_of_every_verb_may_stand_anywhere_and_are_refused_where_they_say_nothing(kace):
    for words in (("--json", "models", "list"), ("models", "--json", "list"), ("models", "list", "--json")):
        assert json.loads(kace(*words).stdout.splitlines()[0])["name"].startswith("local/")
    done = kace("--set", "cache_dir=other", "models", "where", "smollm2-135m")
    assert done.returncode == 1 and "is not in other" in done.stderr
    refused = kace("tree", "freeze", "t", "--json")
    assert refused.returncode == 2 and "kace tree freeze takes no --json" in refused.stderr.replace("python -m ", "")


def test_the_list_of_verbs_says_what_each_says_of_itself():
    for verb, told in ((verb, told) for verbs in VERBS.values() for verb, told in verbs.items()):
        command = typer.main.get_command(import_module(f"kace.cli.{verb}").app)
        assert " ".join((command.help or "").split("\n\n")[0].split()) == told
