"""A run directory is read back as it was recorded, whatever order it was written in and whatever broke."""

from __future__ import annotations

import gc
import gzip
import json
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from kace.config import load_config
from kace.errors import DataError
from kace.ladder.record import Outcome, RetrievedContext, Solution
from kace.ladder.tiers import ExitPath, TierName
from kace.report.evaluation import evaluation_of
from kace.runs.arm import Arm, SolveTable, read_arm, read_arms, row_of
from kace.runs.manifest import manifest_of
from kace.runs.run import Run
from tests.learning.solve_records import HS, MS, a_solve, a_try
from tests.runs.few_rows import a_row


def a_run(folder: Path, records: list[Solution], system: str | None = None) -> Path:
    manifest = manifest_of(load_config({"model": "scripted/made-up"}, env={}))
    if system:
        manifest["system"] = {"name": system, "artefact": None}
    with Run(folder, manifest):
        pass
    (folder / "traces.jsonl").write_text("".join(record.model_dump_json() + "\n" for record in records))
    return folder


def test_rows_are_ordered_by_problem_and_seed_not_by_when_they_finished(tmp_path: Path):
    records = [a_solve(name, seed=seed) for name in "bca" for seed in (2, 0, 1)]
    one = read_arm(a_run(tmp_path / "one", records))
    two = read_arm(a_run(tmp_path / "two", records[::-1]))
    assert one.rows == two.rows
    assert [(row.problem, row.seed) for row in one.rows] == [(name, seed) for name in "abc" for seed in (0, 1, 2)]
    assert (one.name, one.model, one.retried, one.damage) == ("one", "scripted/made-up", 0, ())


def test_a_row_sums_up_what_the_attempts_say():
    tries = [
        a_try(True, tier=TierName.ES),
        a_try(False, tier=TierName.ES, outcome=Outcome.PROVIDER_ERROR),
        a_try(True).model_copy(update={"input": 900, "cached": 512, "output": 70}),
        a_try(False, outcome=Outcome.CANCELLED),
    ]
    record = a_solve("a", tries, {MS: ["EXACT_A", "EXACT_B"], HS: ["EXACT_C", "EXACT_B"]})
    recalls = [
        recall.model_copy(
            update={
                "tokens": tokens,
                "classifier_calls": calls,
                "classifier_input": 10 * calls,
                "classifier_cached": 4 * calls,
            }
        )
        for recall, tokens, calls in zip(record.recalls, (400, 900), (2, 0), strict=True)
    ]
    row = row_of(record.model_copy(update={"recalls": tuple(recalls), "synthesis": a_try(True)}))
    assert (row.attempts, row.right_attempts) == (3, 2), "cancelled attempts and the finishing one are no evidence"
    assert (row.input, row.cached, row.output) == (900, 512, 70)
    assert (row.classifier_calls, row.classifier_input, row.classifier_cached) == (2, 20, 8)
    assert (row.card_tokens, row.read_tokens, row.estimated) == (900, 1_300, True)
    assert row.cards == ("EXACT_A", "EXACT_B", "EXACT_C")
    assert row.failed
    assert row.name == "A"
    assert replace(row, label="").name == "a"


def test_a_system_without_a_ladder_has_no_exit():
    record = a_solve("a", [a_try(True, tier=TierName.FLAT)]).model_copy(update={"exit": None, "paper_calls": 1})
    row = row_of(record)
    assert (row.exit, row.paper_calls) == (None, 1)
    assert row_of(a_solve("a")).exit is ExitPath.MS_MAJORITY


def test_the_last_word_on_a_problem_counts_and_the_earlier_ones_are_told(tmp_path: Path):
    lost = a_solve("a", [a_try(False, outcome=Outcome.PROVIDER_ERROR)], correct=False)
    arm = read_arm(a_run(tmp_path / "run", [lost, a_solve("b"), lost, a_solve("a")]))
    assert [(row.problem, row.correct, row.failed) for row in arm.rows] == [("a", True, False), ("b", True, False)]
    assert arm.retried == 1


def test_damaged_lines_are_left_out_and_told_and_a_torn_end_is_ignored(tmp_path: Path):
    folder = a_run(tmp_path / "run", [a_solve("a"), a_solve("b")])
    trace = folder / "traces.jsonl"
    first, second = trace.read_text().splitlines()
    trace.write_text(f"{first}\n{{not json\n{second}\n{first[:50]}")
    arm = read_arm(folder)
    assert len(arm.rows) == 2
    assert [damage.line for damage in arm.damage] == [2]


def test_a_compressed_trace_is_read_too(tmp_path: Path):
    folder = a_run(tmp_path / "run", [a_solve("a")])
    trace = folder / "traces.jsonl"
    (folder / "traces.jsonl.gz").write_bytes(gzip.compress(trace.read_bytes()))
    trace.unlink()
    assert len(read_arm(folder).rows) == 1


def test_solves_on_disk_give_the_figures_of_solves_in_memory(tmp_path: Path):
    read = {MS: ["EXACT_A"], HS: ["EXACT_B"]}
    folders = [tmp_path / "one", tmp_path / "two"]
    for part, folder in enumerate(folders):
        marks = [(name, seed, (ord(name) + seed) % (2 + part) == 0) for name in "fbdace" for seed in range(3)]
        a_run(folder, [a_solve(name, [a_try(right)], read, seed=seed, correct=right) for name, seed, right in marks])
    kept = read_arms(folders)
    held = [replace(arm, rows=tuple(arm.rows)) for arm in kept]
    on_disk, in_memory = kept[0].rows, held[0].rows
    assert on_disk == in_memory and (on_disk[-1], on_disk[2:5]) == (in_memory[-1], in_memory[2:5])
    assert evaluation_of(kept) == evaluation_of(held)


def test_memory_does_not_grow_with_the_solves():
    def taken(solves: int) -> int:
        rows = (a_row(f"{n:064x}", n % 3 > 0, exit=None if n % 2 else ExitPath.MS_MAJORITY) for n in range(solves))
        tracemalloc.start()
        evaluation_of([Arm("kace", SolveTable(rows), {})])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    taken(100)  # what is imported on the way
    assert taken(8_000) - taken(2_000) < 6_000 * 100, "bytes, where a row in memory takes a thousand"


def test_rows_outlive_whoever_asked_for_them(tmp_path: Path):
    rows = iter(read_arm(a_run(tmp_path / "run", [a_solve(name) for name in "abc"])).rows)
    gc.collect()
    assert [row.problem for row in rows] == ["a", "b", "c"]


def test_a_seed_that_no_computer_counts_to_is_damage(tmp_path: Path):
    endless = a_solve("a", seed=1 << 63)
    many = a_solve("b").model_copy(update={"real_calls": 10**30})
    arm = read_arm(a_run(tmp_path / "run", [endless, many]))
    assert [damage.line for damage in arm.damage] == [1]
    assert [(row.problem, row.real_calls) for row in arm.rows] == [("b", 10**30)]


def test_the_same_cards_are_kept_once(tmp_path: Path):
    read = {MS: ["EXACT_A", "EXACT_B"]}
    arm = read_arm(a_run(tmp_path / "run", [a_solve(name, read=read) for name in "ab"]))
    assert arm.rows[0].cards is arm.rows[1].cards


def test_arms_are_named_by_system_and_by_folder_where_two_share_one(tmp_path: Path):
    runs = [
        a_run(tmp_path / "x" / "first", [a_solve("a")], "kace"),
        a_run(tmp_path / "x" / "second", [a_solve("a")], "kace"),
        a_run(tmp_path / "third", [a_solve("a")], "tiered"),
    ]
    assert [arm.name for arm in read_arms(runs)] == ["first", "second", "tiered"]
    same = [runs[0], a_run(tmp_path / "y" / "first", [a_solve("a")], "kace")]
    assert [arm.name for arm in read_arms(same)] == ["x/first", "y/first"]
    with pytest.raises(DataError, match="given twice"):
        read_arms([runs[0], runs[0]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a run's manifest"),
        ('{"v": 99}', "written by a newer kace"),
        ("{}", "no traces.jsonl"),
    ],
)
def test_what_is_not_a_run_is_one_clear_error(tmp_path: Path, content: str | None, message: str):
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        read_arm(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert caught.value.fix


def test_a_manifest_with_odd_parts_is_read_without_them(tmp_path: Path):
    folder = a_run(tmp_path / "run", [a_solve("a")])
    (folder / "run.json").write_text(json.dumps({"v": 1, "config": 3, "system": {"name": 7}, "data": None}))
    arm = read_arm(folder)
    assert (arm.name, arm.model, arm.data) == ("run", "", "")


def test_recalls_of_a_real_solve_survive(tmp_path: Path):
    recall = RetrievedContext(
        tier=MS,
        domains=("algebra",),
        cards=("EXACT_A",),
        eligible=1,
        tokens=33,
        estimated=False,
        classifier_calls=1,
        classifier_input=120,
        classifier_output=3,
    )
    record = a_solve("a").model_copy(update={"recalls": (recall,)})
    row = read_arm(a_run(tmp_path / "run", [record])).rows[0]
    assert row == row_of(record)
    assert (row.card_tokens, row.classifier_output, row.estimated) == (33, 3, False)
