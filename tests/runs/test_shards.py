"""Shards: parts of the problems in runs of their own, and the one run they add up to."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kace.baselines.evaluate import Trial, run_trial
from kace.config import load_config
from kace.errors import DataError, KaceError, UsageError
from kace.models.cache import read_calls
from kace.problems import Dataset, Problem
from kace.runs.run import Run
from kace.runs.shards import Shard, merge_shards
from kace.runs.table import Table

PROBLEMS = tuple(Problem(f"What is {n} + {n}?", answer=str(2 * n), label=f"sum-{n}") for n in range(40))
DATA = Dataset("sums", "test", PROBLEMS)
WHOLE = Trial("tiered", DATA, load_config({"model": "scripted/dice?sides=3"}), seeds=2)
THIRDS = tuple(Shard(index, 3) for index in (1, 2, 3))


def solved(trial: Trial, folder: Path) -> Path:
    with trial.open(folder) as run:
        asyncio.run(run_trial(trial, run, lambda record: None, None))
    return folder


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    each = ((replace(WHOLE, shard=shard), shard.folder(tmp_path / "sums")) for shard in THIRDS)
    return [solved(trial, folder) for trial, folder in each]


def results(folder: Path) -> dict[tuple[str, int], str]:
    """Every solve without what depends on the clock and on calls made before."""
    found, unlike = {}, {"seconds": 0.0, "from_cache": False}
    for solution in Table.open(folder).solutions(texts=False):
        attempts = tuple(attempt.model_copy(update=unlike) for attempt in solution.attempts)
        record = solution.model_copy(update={"seconds": 0.0, "attempts": attempts})
        found[solution.problem, solution.seed] = record.model_dump_json()
    return found


def test_every_problem_falls_into_one_shard_whatever_stands_beside_it():
    taken = [shard.take(PROBLEMS) for shard in THIRDS]
    assert sorted(problem.id for part in taken for problem in part) == sorted(problem.id for problem in PROBLEMS)
    assert all(len(part) > 5 for part in taken)
    assert THIRDS[0].take(PROBLEMS[::-1][:10]) == tuple(p for p in PROBLEMS[::-1][:10] if p in taken[0])


@pytest.mark.parametrize("typed", ["0/3", "4/3", "3", "a/b", "1/0", "1/3/5", "-1/3", "", "1/1000000"])
def test_what_is_no_shard_is_refused(typed: str):
    with pytest.raises(UsageError, match="--shard cannot be"):
        Shard.read(typed)


def test_merged_shards_are_the_run_that_solves_everything(shards: list[Path], tmp_path: Path):
    merged = merge_shards(shards[::-1], tmp_path / "merged")
    assert (len(merged.solved), len(merged), merged.missing) == (40, 80, 0)
    alone = solved(WHOLE, tmp_path / "alone")
    assert results(tmp_path / "merged") == results(alone)
    assert json.loads((tmp_path / "merged" / "run.json").read_text()) == json.loads((alone / "run.json").read_text())
    assert {p.id for p in Table.open(tmp_path / "merged").problems()} == {p.id for p in PROBLEMS}
    assert len(Table.open(tmp_path / "merged")) == 80
    with WHOLE.open(tmp_path / "merged") as run:
        assert len(run) == 80
    calls = list(read_calls(tmp_path / "merged" / "calls"))
    assert len({call.key for call in calls}) == sum(row.real_calls for row in Table.open(alone))


def test_gaps_are_named_and_the_merged_run_solves_what_is_missing(shards: list[Path], tmp_path: Path):
    trace = shards[0] / "traces.jsonl"
    lines = trace.read_text().splitlines(keepends=True)
    trace.write_text("".join(lines[:-3]) + lines[-1][:30])  # three solves short, and torn
    merged = merge_shards([shards[0], shards[2]], tmp_path / "merged")
    assert merged.missing == 3 + 2 * len(THIRDS[1].take(PROBLEMS))
    assert len(merged) == 80 - 3 - 2 * len(THIRDS[1].take(PROBLEMS))
    solved(WHOLE, tmp_path / "merged")
    assert results(tmp_path / "merged") == results(solved(WHOLE, tmp_path / "alone"))


def test_a_shard_goes_on_where_it_stopped_and_as_no_other_shard(shards: list[Path]):
    with replace(WHOLE, shard=THIRDS[0]).open(shards[0]) as run:
        assert len(run) == 2 * len(THIRDS[0].take(PROBLEMS))
    for other in (replace(WHOLE, shard=THIRDS[1]), WHOLE):
        with pytest.raises(UsageError, match="another shard"):
            other.open(shards[0])


def test_shards_of_other_settings_or_of_another_division_are_refused(shards: list[Path], tmp_path: Path):
    hotter = replace(WHOLE, config=WHOLE.config.model_copy(update={"temperature": 0.1}), shard=THIRDS[1])
    other = solved(hotter, tmp_path / "hotter")
    with pytest.raises(UsageError, match=r"another config 'sampling'.*'temperature'"):
        merge_shards([shards[0], other], tmp_path / "merged")
    half = solved(replace(WHOLE, shard=Shard(2, 2)), tmp_path / "half")
    with pytest.raises(UsageError, match=r"is a shard with another number of parts"):
        merge_shards([shards[0], half], tmp_path / "merged")
    with pytest.raises(DataError, match="is no shard"):
        merge_shards([solved(WHOLE, tmp_path / "alone")], tmp_path / "merged")


def test_a_merge_that_was_killed_is_done_by_the_same_command(shards: list[Path], tmp_path: Path):
    merge_shards(shards, tmp_path / "merged")
    trace = tmp_path / "merged" / "traces.jsonl"
    trace.write_text("".join(trace.read_text().splitlines(keepends=True)[:50]))
    assert len(merge_shards(shards, tmp_path / "merged")) == 80


def test_a_damaged_line_costs_itself_and_a_shard_may_be_empty(shards: list[Path], tmp_path: Path):
    with (shards[0] / "traces.jsonl").open("a") as trace:
        trace.write("{broken\n")
    few = replace(DATA, problems=PROBLEMS[:1])
    alone = [solved(replace(WHOLE, data=few, shard=Shard(i, 2)), tmp_path / f"few{i}") for i in (1, 2)]
    assert merge_shards(alone, tmp_path / "few").missing == 0
    assert merge_shards(shards, tmp_path / "merged").missing == 0


def test_a_link_in_a_shard_is_not_followed(tmp_path: Path):
    trial = replace(WHOLE, shard=THIRDS[0])
    Run(tmp_path / "one", trial.manifest).close()
    (tmp_path / "one" / "calls").mkdir()
    (tmp_path / "secret").write_text("secret\n")
    (tmp_path / "one" / "calls" / "a.jsonl").symlink_to(tmp_path / "secret")
    with pytest.raises(DataError, match="links inside a folder are not followed"):
        merge_shards([tmp_path / "one"], tmp_path / "merged")


@pytest.mark.parametrize("put", [lambda place, mine: place.symlink_to(mine), lambda place, mine: os.mkfifo(place)])
@pytest.mark.parametrize("name", ["traces.jsonl", "problems.jsonl", "lock", "calls"])
@pytest.mark.timeout(300)  # against a pipe that is waited for
def test_what_lies_where_a_merged_file_goes_is_not_written_through(
    shards: list[Path], tmp_path: Path, name: str, put: Callable[[Path, Path], None]
):
    mine = tmp_path / "mine"
    mine.write_text("mine")
    (tmp_path / "merged").mkdir()
    put(tmp_path / "merged" / name, mine)
    with pytest.raises(KaceError) as caught:
        merge_shards(shards, tmp_path / "merged")
    assert mine.read_text() == "mine" and "\n" not in str(caught.value)


@pytest.mark.parametrize("odd", [{"of": 10**12}, {"of": "many"}, {"index": [1]}, {"index": 0}])
def test_a_shard_that_says_what_no_shard_is_is_refused(shards: list[Path], tmp_path: Path, odd: dict[str, object]):
    path = shards[0] / "run.json"
    manifest = json.loads(path.read_text())
    manifest["shard"] |= odd
    path.write_text(json.dumps(manifest))
    with pytest.raises(DataError, match="is no shard"):
        merge_shards(shards, tmp_path / "merged")
    assert not (tmp_path / "merged").exists()
