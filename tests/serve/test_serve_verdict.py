"""What a client knows of a served answer makes the record a training set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kace.errors import DataError, keep_secret
from kace.models.scripted import dice, silent
from kace.problems import Problem, load_problems
from tests.command import run_kace
from tests.disk import no_file_grows_past
from tests.runs.few_rows import recorded
from tests.serve.running import Running, Watched


def tell(server: Running, name: object, **verdict: object) -> tuple[int, Any]:
    status, reply = server.post("kace/verdict", {"id": name, **verdict})
    return status, json.loads(reply) if status == 200 else reply


def answers(run: Path) -> dict[str, str | None]:
    return {problem.text: problem.answer for problem in load_problems(run)}


def test_a_right_answer_a_wrong_one_and_a_known_one(tmp_path: Path):
    with Running(Watched(), record=tmp_path) as server:
        right = server.ask("6 times 7?")
        wrong = server.ask("6 times 8?")
        known = server.ask("6 times 9?")
        server.ask("nothing is known of this one")
        status, told = tell(server, right["id"], right=True)
        assert (status, told["answer"], told["right"]) == (200, "42", True)
        assert tell(server, wrong["id"], right=False)[0] == 200
        assert tell(server, known["id"], answer="54")[0] == 200
    assert answers(tmp_path) == {"6 times 7?": "42", "6 times 9?": "54"}


def test_the_last_verdict_counts_and_a_wrong_answer_takes_back_only_itself(tmp_path: Path):
    with Running(Watched(dice(40)), record=tmp_path) as server:
        first, second = server.ask("6 times 7?", seed=1), server.ask("6 times 7?", seed=2)
        assert first["kace"]["answer"] != second["kace"]["answer"]
        tell(server, first["id"], right=True)
        tell(server, second["id"], right=False)
        assert answers(tmp_path) == {"6 times 7?": first["kace"]["answer"]}
        tell(server, first["id"], right=False)
        with pytest.raises(DataError, match="problems with an answer or a verdict"):
            load_problems(tmp_path)
        tell(server, first["id"], answer="42")
    assert answers(tmp_path) == {"6 times 7?": "42"}


def test_a_stream_has_the_id_and_it_lives_through_a_restart(tmp_path: Path):
    body = {"model": "kace", "messages": [{"role": "user", "content": "6 times 7?"}], "stream": True}
    with Running(Watched(), record=tmp_path) as server:
        _, events = server.post("chat/completions", body)
    name = json.loads(events.decode().split("\n")[0].removeprefix("data: "))["id"]
    with Running(Watched(), record=tmp_path) as server:
        assert tell(server, name, right=True)[0] == 200
    assert answers(tmp_path) == {"6 times 7?": "42"}


def test_what_cannot_be_recorded_is_refused(tmp_path: Path):
    with Running(Watched(), record=tmp_path) as server:
        reply = server.ask("6 times 7?")
        for name in ("chatcmpl-00-0123456789abcdef-0", "x", "chatcmpl-1-../../etc/passwd-0"):
            status, error = tell(server, name, right=True)
            assert (status, error["code"]) == (404, "not_found"), name
        for verdict in ({}, {"right": True, "answer": "42"}, {"right": "yes"}, {"answer": ""}, {"answer": "4" * 2_000}):
            assert tell(server, reply["id"], **verdict)[0] == 400, verdict
        assert tell(server, 7, right=True)[0] == 400
        with no_file_grows_past(0):
            status, error = tell(server, reply["id"], right=True)
            assert (status, error["code"]) == (502, "refused")
        assert tell(server, reply["id"], right=True)[0] == 200
    with Running(Watched()) as server:
        status, error = tell(server, server.ask("6 times 7?")["id"], right=True)
        assert (status, error["code"]) == (404, "not_found")
    with Running(Watched(silent), record=tmp_path / "none") as server:
        status, error = tell(server, server.ask("6 times 7?")["id"], right=True)
        assert status == 400 and "had no answer" in error["message"]


def test_keys_are_not_kept_in_problems_replies_and_answers(tmp_path: Path):
    secret = "verdict-canary-0123456789"
    keep_secret(secret)
    echo = Watched(lambda request: f"{request.messages[-1].content} \\boxed{{42}}")
    with Running(echo, record=tmp_path) as server:
        name = server.ask(f"My key is {secret}. What is 6 times 7?")["id"]
        assert tell(server, name, answer=f"42 {secret}")[0] == 200
    assert all(secret.encode() not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    text = "My key is [redacted]. What is 6 times 7?"
    assert answers(tmp_path) == {text: "42 [redacted]"}
    assert [each.problem for each in recorded(tmp_path)] == [Problem(text).id]


def test_the_record_is_learned_from_and_evaluated_on(tmp_path: Path):
    model = ("--model", "scripted/dice?sides=2")
    with Running("scripted/dice?sides=2", record=tmp_path / "served") as server:
        for number in range(12):
            reply = server.ask(f"Add {number} and one.")
            tell(server, reply["id"], **({"right": True} if number % 2 else {"answer": "7"}))
    measured = run_kace(
        tmp_path, "eval", "--data", "served", *model, "--seeds", "1", "--reuse", "served", "--max-calls", "1", "--json"
    )
    assert measured.returncode == 0, measured.stderr
    assert json.loads(measured.stdout)["accuracy"] == 0.5, "half of the answers were said to be right"
    learned = run_kace(tmp_path, "learn", "--train", "served", *model, "--teacher", "scripted/silent", "--out", "tree")
    assert learned.returncode == 1 and "the teacher proposed no usable domains" in learned.stderr
    nothing = run_kace(tmp_path, "learn", "--train", "tree", *model, "--teacher", "scripted/silent", "--out", "other")
    assert nothing.returncode == 2 and "problems.jsonl: no such file" in nothing.stderr
