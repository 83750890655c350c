"""A run as pages hold it: compact rows read beside the pages, records and texts by where they lie."""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
import threading
from pathlib import Path

import pytest

from kace.errors import DataError
from kace.ladder.record import Solution
from kace.models.cache import CallRecord
from kace.report.page import NotHere, StillReading
from kace.report.pages.run import metrics_so_far
from kace.runs.metrics import Metrics, metrics_of
from kace.runs.selection import Choice, ChosenSolves
from kace.runs.solves import RunIndex
from kace.runs.table import Table
from tests.report.samples import a_run, a_solve
from tests.runs.made_up import lines


def opened(folder: Path, **options: Path) -> RunIndex:
    index = RunIndex(folder, **options)
    index.wait()
    return index


def figures(index: RunIndex) -> Metrics:
    found = metrics_so_far(index, patience=None).value
    assert found is not None
    return found


def grow(folder: Path, *solves: Solution) -> None:
    with (folder / "traces.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(solve.model_dump_json() + "\n" for solve in solves)


def a_made_up_run(folder: Path, solves: int) -> Path:
    a_run(folder)
    text = "".join(lines(solves, 0.0))
    (folder / "traces.jsonl").write_text(text, encoding="utf-8")
    return folder


def a_call(key: str, text: str) -> str:
    usage = {"input": 1, "cached": 0, "output": 1}
    return (
        CallRecord(
            key=key, model="m", problem="p", seed=0, tier="ES", index=0, text=text, finish="stop", seconds=1.0, **usage
        ).model_dump_json()
        + "\n"
    )


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Reading stands still until the event is set."""
    gate = threading.Event()
    step = RunIndex.step

    def waiting(self: RunIndex, db: sqlite3.Connection) -> bool:
        gate.wait(600)
        return step(self, db)

    monkeypatch.setattr(RunIndex, "step", waiting)
    return gate


def test_the_rows_and_figures_are_those_of_a_report(tmp_path: Path):
    folder = a_made_up_run(tmp_path / "run", 600)
    index, arm = opened(folder), Table.open(folder)
    assert index.complete
    assert index.progress == (600, 600)
    assert [*index.arm()] == [*arm]
    found, expected = figures(index), metrics_of(arm)
    for name in (
        *("name", "model", "problems", "solves", "labelled", "complete", "seeds", "failed", "cost", "exits", "buckets"),
        *("accuracy", "wilson", "paper_calls", "real_calls", "classifier_calls"),
        *("input", "cached", "output", "seconds", "card_tokens"),
    ):
        assert getattr(found, name) == pytest.approx(getattr(expected, name)), name


def test_figures_follow_solves_that_are_made_again(tmp_path: Path):
    folder = a_made_up_run(tmp_path / "run", 120)
    records = [Solution.model_validate_json(line) for line in (folder / "traces.jsonl").read_text().splitlines()]
    chance = random.Random(5)
    for record in chance.sample(records, 40):
        grow(folder, record.model_copy(update={"correct": not record.correct, "failed": False, "paper_calls": 10}))
    index, arm = opened(folder), Table.open(folder)
    assert index.arm().counts().retried == arm.counts().retried == 40
    found, expected = figures(index), metrics_of(arm)
    assert (found.accuracy, found.exits, found.buckets) == (expected.accuracy, expected.exits, expected.buckets)
    assert found.paper_calls == pytest.approx(expected.paper_calls)
    assert index.score() == (found.accuracy, found.wilson, found.problems)


def test_the_score_counts_each_family_once_as_a_report_does(tmp_path: Path):
    folder = a_made_up_run(tmp_path / "run", 120)
    records = [Solution.model_validate_json(line) for line in (folder / "traces.jsonl").read_text().splitlines()]
    for record in records:
        grow(folder, record.model_copy(update={"family": f"f{int(record.problem, 16) % 7}"}))
    found, score = metrics_of(Table.open(folder)), opened(folder).score()
    assert (found.cluster, found.clusters) == ("family", 7)
    assert score == (found.accuracy, found.wilson, found.problems)


@pytest.mark.parametrize("packed", [False, True])
def test_a_record_is_read_from_where_it_lies(tmp_path: Path, packed: bool):
    folder = a_made_up_run(tmp_path / "run", 300)
    text = (folder / "traces.jsonl").read_bytes()
    if packed:
        (folder / "traces.jsonl").unlink()
        (folder / "traces.jsonl.gz").write_bytes(gzip.compress(text))
    index = opened(folder)
    wanted = [Solution.model_validate_json(line) for line in text.splitlines()][::17]
    assert [index.record(each.problem, each.seed) for each in wanted] == wanted
    assert index.solves("problem = ? AND seed = ?", "seed", wanted[1].problem, 99) == ()
    assert [row.seed for row in index.solves("problem = ?", "seed", wanted[0].problem)] == [0, 1, 2]
    with pytest.raises(NotHere):
        index.record("nobody", 0)


def test_pages_need_not_wait_for_the_end_of_the_trace(tmp_path: Path, held: threading.Event):
    folder = a_made_up_run(tmp_path / "run", 400)
    index = RunIndex(folder)
    assert not index.look(0)
    assert index.solves() == ()
    problem = json.loads((folder / "traces.jsonl").read_text().splitlines()[-1])["problem"]
    with pytest.raises(StillReading):
        index.record(problem, 0)
    held.set()
    index.wait()
    assert index.complete
    assert index.progress == (400, 400)


def test_progress_tells_how_many_there_will_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("kace.runs.solves.BATCH", 50)
    folder = a_made_up_run(tmp_path / "run", 400)
    seen = []
    step = RunIndex.step

    def watched(self: RunIndex, db: sqlite3.Connection) -> bool:
        seen.append(self.progress)
        return step(self, db)

    monkeypatch.setattr(RunIndex, "step", watched)
    index = opened(folder)
    assert index.progress == (400, 400)
    assert seen[:2] == [(0, 0), (50, seen[1][1])]
    assert all(300 < about < 500 for _, about in seen[1:])
    assert [read for read, _ in seen] == sorted(read for read, _ in seen)


def test_a_run_that_goes_on_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = a_run(tmp_path / "run", [a_solve("a" * 16)])
    index = opened(folder)
    assert index.count() == 1
    assert index.going
    grow(folder, a_solve("b" * 16, correct=False), a_solve("a" * 16, seed=1))
    assert index.look(600.0)
    assert [(row.problem[0], row.seed, row.correct) for row in index.solves()] == [
        *[("a", 0, True), ("b", 0, False), ("a", 1, True)]
    ]
    assert figures(index).problems == 2


def test_a_line_that_a_killed_run_left_unfinished_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = a_run(tmp_path / "run", [a_solve("a" * 16)])
    last = a_solve("b" * 16).model_dump_json()
    with (folder / "traces.jsonl").open("a", encoding="utf-8") as file:
        file.write(last[:100])
    index = opened(folder)
    assert index.complete
    assert index.progress == (1, 1)
    assert index.damage == ()
    with (folder / "traces.jsonl").open("a", encoding="utf-8") as file:
        file.write(last[100:] + "\n")
    assert index.look(600.0)
    assert index.count() == 2


def test_a_trace_that_was_written_anew_is_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = a_run(tmp_path / "run", [a_solve("a" * 16), a_solve("b" * 16)])
    index = opened(folder)
    (folder / "traces.jsonl").write_text(a_solve("c" * 16).model_dump_json() + "\n", encoding="utf-8")
    index.wait()
    assert [row.problem[0] for row in index.solves()] == ["c"]
    assert figures(index).solves == 1


def test_a_compressed_trace_that_was_appended_to_is_read_to_its_new_end(tmp_path: Path):
    folder = a_run(tmp_path / "run")
    (folder / "traces.jsonl").unlink()
    index = RunIndex(folder)
    for number, problem in enumerate(("a" * 16, "b" * 16), start=1):
        with gzip.open(folder / "traces.jsonl.gz", "at", encoding="utf-8") as file:
            file.write(a_solve(problem).model_dump_json() + "\n")
        index.wait()
        assert index.count() == number
        assert index.record(problem, 0) == a_solve(problem)
    unpacked = gzip.decompress((folder / "traces.jsonl.gz").read_bytes())
    (folder / "traces.jsonl").write_bytes(unpacked)
    index.wait()
    assert (index.count(), index.arm().counts().retried) == (2, 0)
    assert index.record("b" * 16, 0) == a_solve("b" * 16)


def test_a_damaged_compressed_trace_gives_what_comes_before_the_damage(tmp_path: Path):
    folder = a_made_up_run(tmp_path / "run", 600)
    whole = gzip.compress((folder / "traces.jsonl").read_bytes())
    (folder / "traces.jsonl").unlink()
    (folder / "traces.jsonl.gz").write_bytes(whole[: len(whole) // 2] + b"\x00" * 200)
    index = opened(folder)
    assert 0 < index.count() < 600
    assert [damage.line for damage in index.damage] == [index.count() + 1]


def test_a_trace_that_is_gone_is_empty(tmp_path: Path):
    folder = a_run(tmp_path / "run")
    index = opened(folder)
    (folder / "traces.jsonl").unlink()
    assert index.look(600.0)
    assert index.solves() == ()
    with pytest.raises(NotHere):
        index.record("b" * 16, 0)


def test_a_run_that_was_read_before_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = a_made_up_run(tmp_path / "run", 60)
    assert opened(folder).count() == 60
    monkeypatch.setattr("kace.runs.solves.solve_in", None)
    again = opened(folder)
    assert again.count() == 60
    assert again.error is None


def test_a_run_without_a_trace_yet_is_empty_until_there_is_one(tmp_path: Path):
    folder = a_run(tmp_path / "run")
    (folder / "traces.jsonl").unlink()
    index = opened(folder)
    assert index.complete
    assert index.solves() == ()
    assert not index.going
    grow(folder, a_solve())
    index.wait()
    assert index.count() == 1


def test_damage_is_counted_and_a_newer_trace_stops_the_reading(tmp_path: Path):
    folder = a_run(tmp_path / "run", [a_solve("a" * 16)])
    with (folder / "traces.jsonl").open("a", encoding="utf-8") as file:
        file.write('not json\n{"v": 1}\n')
    index = opened(folder)
    assert [damage.line for damage in index.damage] == [2, 3]
    assert index.error is None
    with (folder / "traces.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"v": 99}\n')
    index.wait()
    assert index.error is not None
    assert "newer kace" in index.error.message
    assert index.count() == 1


@pytest.mark.parametrize("content", [None, b"nonsense", b"[]", b'{"v": 99}'])
def test_a_folder_without_a_manifest_is_refused(tmp_path: Path, content: bytes | None):
    if content is not None:
        (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(DataError):
        RunIndex(tmp_path)


@pytest.mark.parametrize("packed", [False, True])
def test_texts_are_found_in_the_calls_of_the_run(tmp_path: Path, packed: bool):
    folder = a_run(tmp_path / "run")
    calls = folder / "calls"
    calls.mkdir()
    keys = [f"{number:03x}".ljust(64, "0") for number in range(0, 16**3, 16)]
    text = "".join(a_call(key, f"said {key[:3]}") for key in keys) + "damaged\n" + a_call("f" * 64, "last")
    if packed:
        (calls / "calls.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    else:
        (calls / "one.jsonl").write_text(text, encoding="utf-8")
    index = opened(folder)
    assert index.texts is not None
    assert index.texts.text(keys[7]) == f"said {keys[7][:3]}"
    assert index.texts.text("f" * 64) == "last"
    assert index.texts.text("e" * 64) is None
    assert index.texts.text("no key") is None
    assert index.texts.text("") is None
    assert index.texts.complete


def test_texts_of_calls_made_later_are_found_too(tmp_path: Path):
    folder = a_run(tmp_path / "run")
    (folder / "calls").mkdir()
    index = opened(folder)
    assert index.texts is not None and index.texts.text("a" * 64) is None
    (folder / "calls" / "new.jsonl").write_text(a_call("a" * 64, "news"), encoding="utf-8")
    assert index.texts.look(600.0)
    assert index.texts.text("a" * 64) == "news"


def test_calls_above_a_run_are_its_own_only_inside_what_is_open(tmp_path: Path):
    folder = a_run(tmp_path / "learn" / "step")
    calls = tmp_path / "learn" / "calls"
    calls.mkdir()
    (calls / "one.jsonl").write_text(a_call("a" * 64, "shared"), encoding="utf-8")
    index = opened(folder, within=tmp_path / "learn")
    assert index.texts is not None and index.texts.text("a" * 64) == "shared"
    assert opened(folder).texts is None
    assert opened(folder, within=folder).texts is None


def test_links_out_of_what_is_open_are_not_read(tmp_path: Path):
    outside = tmp_path / "outside"
    a_run(outside)
    (outside / "one.jsonl").write_text(a_call("a" * 64, "secret"), encoding="utf-8")
    folder = a_run(tmp_path / "open" / "run")
    (folder / "traces.jsonl").unlink()
    (folder / "traces.jsonl").symlink_to(outside / "traces.jsonl")
    (folder / "calls").mkdir()
    (folder / "calls" / "one.jsonl").symlink_to(outside / "one.jsonl")
    index = opened(folder)
    assert index.solves() == ()
    assert index.texts.text("a" * 64) is None


def test_many_pages_may_ask_while_a_run_is_read(tmp_path: Path):
    folder = a_made_up_run(tmp_path / "run", 900)
    index = RunIndex(folder)
    failed: list[BaseException] = []

    def look() -> None:
        try:
            while not index.look(0.001):
                solves, found = index.count(), figures(index)
                assert found.wilson is None or 0 <= found.wilson.low <= found.wilson.high <= 1
                assert solves <= index.count()
                assert not {"gained", "lost"} & ChosenSolves(index, Choice(), index).views().keys()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert index.count() == 900


def test_a_closed_run_is_read_no_further(tmp_path: Path, held: threading.Event):
    index = RunIndex(a_made_up_run(tmp_path / "run", 3_000))
    index.look(0)
    index.close()
    held.set()
    index.wait()
    assert index.count() <= 2_000
