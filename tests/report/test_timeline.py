from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from kace.files import lock_folder
from kace.runs.solves import RunIndex
from kace.runs.timeline import timeline_of
from tests.report.opened import opened
from tests.report.page_audit import Audit, body_of
from tests.report.samples import a_run, a_solve

START = 1_000_000.0


def written(path: Path, at: float, *lines: str) -> None:
    """Lines that a run appended at a time."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    os.utime(path, (at, at))


def a_call(number: int) -> str:
    usual = {"model": "m", "problem": "p", "seed": 0, "tier": "ES", "index": 0, "text": "", "finish": "stop"}
    figures = {"input": 1, "cached": 0, "output": 1, "seconds": 1.0}
    return json.dumps({"key": f"{number:064x}", "v": 1, **usual, **figures})


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run that began at `START` and has finished a solve and 60 calls a minute later."""
    folder = a_run(tmp_path / "run", [a_solve(seconds=12.0)], data={"problems": 9})
    (folder / "calls").mkdir()
    written(folder / "calls" / "a.jsonl", START + 60, *map(a_call, range(60)))
    for path, at in ((folder / "run.json", START), (folder / "traces.jsonl", START + 60)):
        os.utime(path, (at, at))
    return folder


def test_what_files_gain_counts_to_the_time_since_they_were_read(run: Path):
    index = RunIndex(run)
    index.wait()
    written(run / "calls" / "a.jsonl", START + 180, *map(a_call, range(60, 300)))
    written(run / "traces.jsonl", START + 180, a_solve("c" * 16, seconds=4.5, failed=True).model_dump_json())
    index.wait()
    found = timeline_of(index, time.time())
    assert found is not None
    assert [(each.begin - START, each.end - START, each.rate) for each in found.calls] == [(0, 60, 60), (60, 180, 120)]
    # Two tiers of 1.5 s each: what a solve took beyond that, it waited.
    assert [round(each.waiting, 2) for each in found.solves] == [0.75, 0.33]
    assert [each.what.lost for each in found.solves] == [0, 1]
    assert found.fastest == 120 and (found.scale.low, found.scale.high) == (START, START + 180)
    again = RunIndex(run)  # another start of the viewer
    again.wait()
    assert timeline_of(again, time.time()) == found


def test_a_run_that_nobody_watched_has_none(run: Path):
    index = RunIndex(run)
    index.wait()
    assert timeline_of(index, time.time()) is None


def test_a_run_under_way_is_known_by_its_lock_and_drawn_until_now(run: Path):
    index = RunIndex(run)
    index.wait()
    lock = lock_folder(run)
    try:
        found = timeline_of(index, START + 600)
        assert index.going and found is not None and found.scale.high == START + 600
    finally:
        os.close(lock)
    assert not index.going


def test_a_run_that_has_just_begun_has_an_empty_one(tmp_path: Path):
    folder = a_run(tmp_path / "run", data={"problems": 9})
    (folder / "traces.jsonl").unlink()
    lock = lock_folder(folder)
    try:
        with opened(folder) as client:
            assert "Timeline" in client.get("/run/run").text
    finally:
        os.close(lock)


def test_batches_stand_beside_the_calls(run: Path):
    events = [
        {"tag": "a", "event": "gathered", "at": START + 10, "requests": 120},
        {"tag": "a", "event": "submitted", "at": START + 12, "job": "j"},
        {"tag": "a", "event": "collected", "at": START + 50},
        {"tag": "b", "event": "gathered", "at": START + 40, "requests": 1},
        {"tag": "b", "event": "submitted", "at": START + 41, "job": "k"},
        {"tag": "c", "event": "dropped", "at": START + 45, "why": "<b>no room</b>"},
    ]
    written(run / "batches.jsonl", START + 50, *map(json.dumps, events), "no JSON")
    with opened(run) as client:
        page = Audit(body_of(client.get("/run/run").text))
    assert page.strange == []
    assert "Timeline" in page.text
    for words in ("120 requests, collected", "1 request, submitted", "0 requests, dropped", "(<b>no room</b>)"):
        assert words in page.text


def test_times_that_cannot_be_stop_nothing(run: Path):
    times = ("NaN", "Infinity", "-1e300", "1e300", "0")
    lines = [f'{{"tag":"{at}","event":"gathered","requests":1,"at":{at}}}' for at in times]
    written(run / "batches.jsonl", START, *lines, '{"tag":"a","event":"gathered","requests":7,"at":2000000000}')
    os.utime(run / "run.json", (0, 0))
    with opened(run) as client:
        answer = client.get("/run/run")
    assert answer.status_code == 200 and len(answer.text) < 100_000
    assert "7 requests, gathered" in Audit(body_of(answer.text)).text and "1 request," not in answer.text


def test_batches_of_another_folder_are_not_read(run: Path, tmp_path: Path):
    (tmp_path / "elsewhere.jsonl").write_text('{"tag":"a","event":"gathered","at":1,"requests":1}\n')
    (run / "batches.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
    index = RunIndex(run)
    index.wait()
    assert timeline_of(index, time.time()) is None
