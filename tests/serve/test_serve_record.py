"""What a server keeps of what it solves: an ordinary run, whatever happens to the server or to the disk."""

from __future__ import annotations

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import kace
from kace.cards.store import open_tree
from kace.config import tree_path
from kace.models.base import Failure, ModelError
from kace.models.cache import read_calls
from kace.models.scripted import dice
from kace.runs.table import Table
from tests.command import run_kace
from tests.disk import no_file_grows_past
from tests.runs.few_rows import recorded
from tests.serve.running import Running, Watched, ask, until
from tests.serve.test_serve_keys import kace_serve

BUS = "A bus goes 30 km/h out and 70 km/h back. Average speed?"

STARTER = open_tree(tree_path("starter"))


def told_by(base_url: str, text: str, **more: object) -> dict[str, Any]:
    """The `kace` object of a reply, with its usage."""
    reply = ask(base_url, text, **more)
    return {**reply["kace"], "usage": reply["usage"], "content": reply["choices"][0]["message"]["content"]}


def texts(folder: Path) -> list[str]:
    return [problem.text for problem in Table.open(folder, allow_empty=True).problems()]


def paid(folder: Path) -> list[str]:
    return [call.key for call in read_calls(folder / "calls")]


def test_what_is_solved_is_a_run_that_says_it_was_served(tmp_path: Path):
    with Running(Watched(dice(3)), tree=STARTER, record=tmp_path / "run") as server:
        told = {text: told_by(server.base_url, text) for text in (BUS, "What is 2 + 2?")}
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda n: told_by(server.base_url, f"{n}?"), range(8)))
    run = kace.load_run(tmp_path / "run")
    rows = {row["text"]: row for row in run.rows()}
    assert set(rows) == {BUS, "What is 2 + 2?", *(f"{n}?" for n in range(8))}
    for text in (BUS, "What is 2 + 2?"):
        assert (rows[text]["answer"], rows[text]["exit"]) == (told[text]["answer"], told[text]["exit_path"])
        assert rows[text]["expected"] is rows[text]["correct"] is None
    assert told[BUS]["cards"] and rows[BUS]["cards"] == " ".join(told[BUS]["cards"])
    assert all(each.working for each in run.solutions()), "the texts of its attempts are among the calls"
    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    assert manifest["data"] == {"name": "served"}
    assert manifest["tree"]["hash"] == STARTER.content_hash()


def test_without_the_option_nothing_is_written(tmp_path: Path):
    with Running(Watched(), cache_dir=str(tmp_path)) as server:
        told_by(server.base_url, "6 times 7?")
    assert not list(tmp_path.iterdir())


def test_asked_twice_it_is_kept_once_and_paid_once(tmp_path: Path):
    model = Watched(dice(3))
    with Running(model, record=tmp_path) as server:
        first, calls = told_by(server.base_url, BUS), model.calls
        again = told_by(server.base_url, BUS)
        assert model.calls == calls and (again["calls"], again["usage"]["total_tokens"]) == ({}, 0)
        assert (again["answer"], again["content"]) == (first["answer"], first["content"])
        other = told_by(server.base_url, BUS, seed=5)
        assert other["calls"] == {"solver": model.calls - calls}, "another seed draws other samples"
    assert texts(tmp_path) == [BUS]
    assert [(each.problem, each.seed) for each in recorded(tmp_path)] == [
        (kace.Problem(BUS).id, seed) for seed in (0, 5)
    ]
    assert len(paid(tmp_path)) == model.calls
    with Running(model, record=tmp_path) as server:  # nor after a restart
        made = model.calls
        assert told_by(server.base_url, BUS)["answer"] == first["answer"]
        assert model.calls == made
    assert len(recorded(tmp_path)) == 2


def test_a_solve_that_the_provider_failed_is_replaced_by_the_next(tmp_path: Path):
    model = Watched()
    model.error = ModelError(Failure.PROVIDER_ERROR, "no luck")
    with Running(model, record=tmp_path) as server:
        with pytest.raises(AssertionError, match="upstream_failed"):
            told_by(server.base_url, BUS)
        model.error = None
        assert told_by(server.base_url, BUS)["answer"] == "42"
    assert [each.failed for each in recorded(tmp_path)] == [True, False]
    assert [each.answer for each in Table.open(tmp_path).solutions()] == ["42"]


def test_killed_it_loses_only_what_was_under_way_and_goes_on_there(tmp_path: Path):
    folder = tmp_path / "served"
    arguments = ("--model", "scripted/dice?sides=9&latency=0.05", "--set", "max_connections=4", "--record", "served")
    told: dict[str, str] = {}
    with kace_serve(tmp_path, *arguments) as (process, url), ThreadPoolExecutor(4) as pool:

        def each(number: int) -> None:
            try:
                told[f"What is {number} + 1?"] = told_by(url, f"What is {number} + 1?")["answer"]
            except (OSError, ValueError):  # the server is gone
                return

        for number in range(60):
            pool.submit(each, number)
        assert until(lambda: len(told) >= 10)
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    kept = {row["text"]: row["answer"] for row in kace.load_run(folder).rows()}
    assert 10 <= len(kept) < 60, "it was killed at work"
    assert told.items() <= kept.items(), "whoever was answered is in the record"
    assert len(texts(folder)) <= len(kept) + 4, "and besides, what was under way"
    before, begun = set(paid(folder)), [text for text in texts(folder) if text not in kept]
    with kace_serve(tmp_path, *arguments) as (_, url):
        again = {text: told_by(url, text) for text in (*told, *begun)}
    assert all((again[text]["answer"], again[text]["calls"]) == (told[text], {}) for text in told)
    assert {row["text"] for row in kace.load_run(folder).rows()} == {*kept, *begun}
    after = paid(folder)
    assert before <= set(after) and len(after) == len(set(after)), "no finished call is paid twice"


def test_one_server_writes_a_record_and_settings_must_be_its_own(tmp_path: Path):
    arguments = ("serve", "--model", "scripted/steady", "--record", "served", "--port", "0")
    with kace_serve(tmp_path, *arguments[1:5]):
        done = run_kace(tmp_path, *arguments)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert "served is being written by another process" in done.stderr
    done = run_kace(tmp_path, *arguments, "--seed", "3")
    assert done.returncode == 2 and "holds a run with another config 'seed' (0, now 3)" in done.stderr
    (tmp_path / "p.jsonl").write_text('{"problem": "1 + 1?"}\n')
    done = run_kace(tmp_path, "solve", "--file", "p.jsonl", "--model", "scripted/steady", "--out", "served")
    assert done.returncode == 2 and "holds a run with another data" in done.stderr


def test_on_a_full_disk_a_request_is_refused_before_it_is_paid(tmp_path: Path):
    model = Watched()
    with Running(model, record=tmp_path) as server:
        told_by(server.base_url, "before?")
        with no_file_grows_past(10):
            for n in range(3):
                with pytest.raises(AssertionError, match="cannot write"):
                    told_by(server.base_url, f"{n}?")
    assert model.calls == 2
    assert texts(tmp_path) == ["before?"] and len(recorded(tmp_path)) == 1


def test_problem_texts_can_be_left_out(tmp_path: Path):
    with Running(Watched(), record=tmp_path, problem_texts=False) as server:
        told_by(server.base_url, BUS)
    assert len(recorded(tmp_path)) == 1 and not texts(tmp_path)
