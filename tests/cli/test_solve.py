"""`kace solve` as a person or a pipe uses it."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import environment

STEADY = ["--model", "scripted/steady"]


def write(folder: Path, n: int = 12) -> Path:
    path = folder / "p.jsonl"
    path.write_text(
        "".join(json.dumps({"problem": f"Throw {i}", "answer": "3", "id": f"t{i}"}) + "\n" for i in range(n))
    )
    return path


def test_standard_output_is_the_answer_alone(kace):
    done = kace("solve", "What is 6 times 7?", *STEADY)
    assert done.returncode == 0
    assert done.stdout == "42\n"
    assert "es_unanimous" in done.stderr
    assert "2 calls" in done.stderr


def test_a_reader_that_leaves_early_ends_a_run_quietly(tmp_path: Path):
    command = f"{sys.executable} -m kace solve --file {write(tmp_path, 40)} --model scripted/dice --json | head -1"
    done = subprocess.run(
        command, shell=True, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, timeout=600
    )
    assert json.loads(done.stdout)["v"] == 1
    assert done.stderr == ""


def test_results_in_a_pipe_stay_there_while_a_terminal_shows_how_it_goes(tmp_path: Path):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "kace", "solve", "--file", str(write(tmp_path)), "--model", "scripted/dice"]
    env = {**environment(tmp_path), "TERM": "xterm-256color"}
    done = subprocess.run(
        [*command, "--json"], cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=theirs, text=True, timeout=600
    )
    os.close(ours), os.close(theirs)
    assert len([json.loads(line) for line in done.stdout.splitlines()]) == 12


def test_weights_that_are_not_here_are_fetched_only_on_request(kace):
    done = kace("solve", "1+1?", "--model", "local/qwen2.5-coder-1.5b", HF_ENDPOINT="http://127.0.0.1:9")
    assert done.returncode == 2
    assert "fetching it takes 1,117 MB. Fix: kace models pull qwen2.5-coder-1.5b" in done.stderr


def test_a_problem_can_be_piped(kace):
    assert kace("solve", *STEADY, stdin="6 times 7?\n").stdout == "42\n"
    assert kace("solve", "-", *STEADY, stdin="6 times 7?\n").stdout == "42\n"


def test_json_is_one_parseable_record(kace):
    row = json.loads(kace("solve", "6 times 7?", *STEADY, "--json", "--explain").stdout)
    assert row["answer"] == "42"
    assert row["exit"] == "es_unanimous"
    assert row["paper_calls"] == row["real_calls"] == 2
    assert len(row["texts"]) == len(row["messages"]) == 2
    assert row["messages"][0][-1]["content"].startswith("6 times 7?")
    assert "boxed" in row["texts"][0]
    assert row["working"] == "Every step agrees. \\boxed{42}"


def test_explain_shows_every_attempt(kace):
    shown = kace("solve", "Throw", "--model", "scripted/dice?sides=1000", "--explain").stdout
    first = next(line for line in shown.splitlines() if line.startswith("-- "))
    assert first.endswith(", the winner") and shown.count(", the winner") == 1
    assert shown.count("-- ES attempt") == 2
    assert shown.count("-- HS attempt") == 5
    assert "domain_patterns" in shown
    assert shown.count("-- sent to ES") == 2, "with MS, where the lens is the same"
    assert "-- sent to HS 1, HS 2, HS 3, HS 4, HS 5\n   -- system\n" in shown
    assert shown.count("\n   Throw\n") == 4, "each of three lenses once, and none"


def test_a_person_at_a_terminal_sees_the_working_before_the_answer(tmp_path: Path):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "kace", "solve", "6 times 7?", *STEADY]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(tmp_path), stdout=theirs, stderr=subprocess.PIPE, text=True, timeout=600
    )
    os.close(theirs)
    assert os.read(ours, 1000).decode().split() == ["42"]
    os.close(ours)
    assert done.stderr.startswith("Every step agrees. \\boxed{42}\n")


def test_asking_again_costs_nothing(kace):
    kace("solve", "6 times 7?", *STEADY)
    assert "2 from cache" in kace("solve", "6 times 7?", *STEADY).stderr
    assert "from cache" not in kace("solve", "6 times 7?", *STEADY, "--set", "cache=false").stderr
    assert "from cache" not in kace("solve", "6 times 7?", *STEADY, "--seed", "1").stderr


def test_a_file_gives_a_line_each_and_a_summary_and_resumes(kace, tmp_path: Path):
    path = write(tmp_path)
    first = kace("solve", "--file", str(path), "--model", "scripted/dice?sides=3")
    assert first.returncode == 0
    assert len(first.stdout.splitlines()) == 12
    assert "12 problems, 12 solves" in first.stderr
    assert "95 % interval" in first.stderr
    again = kace("solve", "--file", str(path), "--model", "scripted/dice?sides=3", "--json")
    rows = [json.loads(line) for line in again.stdout.splitlines()]
    assert len(rows) == 12
    assert all(row["working"] == f"The die shows \\boxed{{{row['answer']}}}" for row in rows)
    (run,) = (tmp_path / "runs").iterdir()
    assert len((run / "traces.jsonl").read_text().splitlines()) == 12


def test_a_file_can_be_piped_limited_and_mapped(kace):
    rows = '{"q": "a?", "gold": "42"}\n{"q": "b?", "gold": "41"}\n{"q": "c?"}\n'
    mapped = ["--limit", "2", "--set", "fields.problem=q", "--set", "fields.answer=gold"]
    done = kace("solve", "--file", "-", *STEADY, *mapped, stdin=rows)
    assert done.returncode == 0, done.stderr
    assert "accuracy     50.0%" in done.stderr


BAD = [
    (["solve", "x", "--model", "nope/x"], 2, "unknown model 'nope/x'"),
    (["solve", "x", "--model", "local/absent.gguf"], 2, "absent.gguf"),
    (["solve", "x", "--model", "scripted/absent"], 2, "choose one of"),
    (["solve", "x", "--model", "replay/absent"], 2, "no recorded calls"),
    (["solve", "x", "--model", "openai/gpt-4.1-mini"], 2, "OPENAI_API_KEY"),
    (["solve", *STEADY], 2, "no problem was given"),
    (["solve", "x", "--file", "y", *STEADY], 2, "give one of them"),
    (["solve", "--file", "absent.jsonl", *STEADY], 2, "absent.jsonl: no such file"),
    (["solve", "--file", "empty.jsonl", *STEADY], 2, ": no problems. Fix: add lines"),
    (["solve", "--file", ".", *STEADY], 2, "problems.jsonl: no such file"),
    (["solve", "x", *STEADY, "--set", "fields.nonsense=x"], 2, "fields.nonsense"),
    (["solve", "x", "--model", "scripted/silent"], 1, "no answer: the last of 10 attempts ended in no_answer"),
    (["solve", "x", *STEADY, "--max-calls", "1"], 1, "cap of 1 calls is reached"),
    (["solve", "x", *STEADY, "--set", "batch=true"], 2, "--batch is for many problems"),
    (["solve", "x", *STEADY, "--max-calls", "0"], 2, "should be greater than 0"),
    (["solve", "x", "--model", "openai/m", "--base-url", "http://127.0.0.1:9", "--max-usd", "1"], 2, "needs a price"),
    (["solve", "x", "--model", "openai/m", "--base-url", "http://127.0.0.1:9"], 1, "127.0.0.1:9"),
    (["solve", "x", *STEADY, "--config", "absent.toml"], 2, "absent.toml"),
    (["solve", "x", *STEADY, "--tree", "nowhere"], 2, "nowhere"),
    (["solve", "--no-such-flag"], 2, "--no-such-flag"),
]


@pytest.mark.parametrize(("arguments", "code", "complaint"), BAD, ids=[" ".join(b[0])[:60] for b in BAD])
def test_bad_input_is_one_clear_line(kace, tmp_path: Path, arguments: list[str], code: int, complaint: str):
    (tmp_path / "empty.jsonl").write_text("")
    done = kace(*arguments)
    assert done.returncode == code, done.stderr
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
    if code and "--no-such-flag" not in arguments:
        assert len([line for line in done.stderr.splitlines() if line.startswith("kace:")]) == 1


@pytest.mark.parametrize("text", ["\u202ewhat", "∫₀¹ x² dx", "\u200b\u200b2+2", "２＋２", "a\x00b", "😀" * 50])
def test_unicode_tricks_are_just_text(kace, text: str):
    assert kace("solve", "-", *STEADY, stdin=text).stdout == "42\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_says_how_to_go_on_and_ends_the_run_in_order(tmp_path: Path, number: signal.Signals):
    model = ("--model", "scripted/dice?sides=9&latency=0.2", "--set", "max_connections=4")
    with subprocess.Popen(
        [sys.executable, "-m", "kace", "solve", "--file", str(write(tmp_path, 400)), *model],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job ignores it
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(number)
        _, errors = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "interrupted. Resume with: kace solve --file" in errors and "Traceback" not in errors
    (run,) = (tmp_path / "runs").iterdir()
    assert (run / "traces.jsonl").read_text().endswith("}\n")


@pytest.mark.parametrize(
    "env", [{"TERM": "dumb"}, {"COLUMNS": "20"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}, {"NO_COLOR": "1"}]
)
def test_odd_terminals_are_no_trouble(kace, env: dict[str, str]):
    done = kace("solve", "What is ½?", *STEADY, "--explain", **env)
    assert done.returncode == 0, done.stderr


def test_closed_output_is_no_traceback(tmp_path: Path):
    shell = f"{sys.executable} -m kace solve 'x' --model scripted/steady"
    for closed in (">&-", "2>&-", "| head -c 0"):
        done = subprocess.run(
            ["bash", "-c", f"{shell} {closed}"], cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True
        )
        assert "Traceback" not in done.stderr
        assert "Exception" not in done.stderr
