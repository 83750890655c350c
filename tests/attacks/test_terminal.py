"""What reaches the terminal: no character that drives it, no traceback however often somebody presses Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kace.cli.terminal import json_of
from kace.errors import CONTROLS, plain
from tests.command import environment, run_kace

HIDDEN = ["\x85", "\x9b31m", "\x9d0;title\x9c", *"\u202e\u2066\u200f\u061c\u200b\ufeff\U000e0041"]
MODEL = ("--model", "scripted/dice?sides=9")


def test_ids_are_escaped_in_json_and_read_back_the_same(tmp_path: Path):
    labels = [f"p{hidden}q é" for hidden in HIDDEN]
    rows = [json.dumps({"id": label, "problem": f"What is {n} + 1?", "answer": "1"}) for n, label in enumerate(labels)]
    (tmp_path / "p.jsonl").write_text("\n".join(rows) + "\n")
    solved = run_kace(tmp_path, "solve", "--file", "p.jsonl", *MODEL, "--json")
    told = run_kace(tmp_path, "solve", "--file", "p.jsonl", *MODEL)
    for done in (solved, told):
        assert CONTROLS.search(done.stdout + done.stderr) is None, done
    assert sorted(json.loads(line)["label"] for line in solved.stdout.splitlines()) == sorted(labels)
    assert "é" in solved.stdout


@pytest.mark.parametrize("hidden", HIDDEN)
def test_a_hidden_character_is_taken_from_text_and_escaped_in_json(hidden: str):
    told = json.dumps({hidden: [hidden]}, ensure_ascii=False)
    assert CONTROLS.search(plain(hidden)) is None
    assert CONTROLS.search(json_of(told)) is None and json.loads(json_of(told)) == {hidden: [hidden]}


@pytest.mark.parametrize("gap", [0.0, 0.001, 0.01, 0.1])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_at_once_and_without_a_traceback(tmp_path: Path, number: signal.Signals, gap: float):
    rows = (json.dumps({"problem": f"What is {n} + 1?"}) for n in range(400))
    (tmp_path / "p.jsonl").write_text("\n".join(rows) + "\n")
    words = ["solve", "--file", "p.jsonl", "--model", "scripted/dice?sides=9&latency=0.2", "--out", "run"]
    process = subprocess.Popen(
        [sys.executable, "-m", "kace", *words],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    process.stdout.readline()
    for _ in range(3):
        process.send_signal(number)
        time.sleep(gap)
    _, errors = process.communicate(timeout=600)
    assert errors.count("kace: interrupted. Resume with: kace solve --file p.jsonl") == 1
    assert len(errors.splitlines()) == 1, errors
    assert process.returncode in (130, -signal.SIGTERM)  # once all is told, the next one may end it
    assert (tmp_path / "run" / "traces.jsonl").read_text().endswith("}\n")
