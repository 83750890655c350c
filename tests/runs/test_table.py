"""One reader of runs: it follows what grows, survives what breaks, and is rebuilt when it is thrown away."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from kace.errors import DataError
from kace.ladder.record import Outcome, Solution
from kace.ladder.tiers import TierName
from kace.models.base import Usage, chat
from kace.problems import Problem, problem_rows
from kace.runs import table as tables
from kace.runs.scores import ScoreReader
from kace.runs.table import Table, row_of
from tests.learning.solve_records import HS, MS, a_try
from tests.learning.solve_records import a_solve as b_solve
from tests.report.samples import a_call, a_run, a_solve


def grow(folder: Path, *solves: Solution) -> None:
    with (folder / "traces.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(solve.model_dump_json() + "\n" for solve in solves)


def some(first: int, last: int) -> list[Solution]:
    return [a_solve(f"{number:016x}", correct=number % 3 > 0) for number in range(first, last)]


def called(*keys: str) -> Solution:
    """Return a solve whose attempts are these calls."""
    solve = a_solve("a" * 16)
    attempts = tuple(solve.attempts[0].model_copy(update={"call": key, "text": ""}) for key in keys)
    return solve.model_copy(update={"attempts": attempts})


def written(table: Table) -> list[str]:
    solve = table.solution("a" * 16, 0)
    assert solve
    return [attempt.text for attempt in solve.attempts]


def keys(table: Table) -> list[tuple[str, int]]:
    return [(row.problem[:1], row.seed) for row in table]


def test_rows_are_those_of_the_records(tmp_path: Path):
    solves = some(0, 30)
    table = Table.open(a_run(tmp_path / "run", solves))
    assert [*table] == [row_of(solve) for solve in solves]
    assert [*table.solutions()] == solves
    assert table.solution(solves[7].problem, 0) == solves[7]
    assert table.solution(solves[7].problem, 1) is None
    assert len(table.solves({"right": "no"})) == 10


def test_a_torn_last_line_is_left_for_the_next_read(tmp_path: Path):
    folder = a_run(tmp_path / "run", [a_solve("a" * 16)])
    last = a_solve("b" * 16).model_dump_json()
    with (folder / "traces.jsonl").open("a", encoding="utf-8") as file:
        file.write(last[:100])
    table = Table.open(folder)
    assert (keys(table), table.damage) == ([("a", 0)], [])
    with (folder / "traces.jsonl").open("a", encoding="utf-8") as file:
        file.write(last[100:] + "\n")
    table.refresh()
    assert keys(table) == [("a", 0), ("b", 0)]


def test_damage_is_counted_and_a_newer_trace_is_refused(tmp_path: Path):
    folder = a_run(tmp_path / "run", [a_solve("a" * 16)])
    with (folder / "traces.jsonl").open("a", encoding="utf-8") as file:
        file.write('not json\n{"v": 1}\n' + a_solve("b" * 16, seed=1 << 63).model_dump_json() + "\n")
    table = Table.open(folder)
    assert [damage.line for damage in table.damage] == [2, 3, 4]
    assert len(table) == 1
    with (folder / "traces.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"v": 99}\n')
    with pytest.raises(DataError, match="newer kace"):
        table.refresh()
    assert len(table) == 1


@pytest.mark.parametrize("solves", [["c"], ["c", "b"]], ids=["shorter", "as long"])
def test_a_replaced_trace_is_read_anew(tmp_path: Path, solves: list[str]):
    folder = a_run(tmp_path / "run", [a_solve("a" * 16), a_solve("b" * 16)])
    table = Table.open(folder)
    text = "".join(a_solve(name * 16).model_dump_json() + "\n" for name in solves)
    (folder / "traces.jsonl").write_text(text, encoding="utf-8")
    table.refresh()
    assert keys(table) == sorted((name, 0) for name in solves)
    assert not table.retried


def test_a_trace_that_is_gone_is_empty(tmp_path: Path):
    folder = a_run(tmp_path / "run", some(0, 3))
    table = Table.open(folder)
    (folder / "traces.jsonl").unlink()
    table.refresh()
    assert (len(table), table.solution(f"{0:016x}", 0)) == (0, None)
    with pytest.raises(DataError, match="no traces"):
        Table.open(folder)
    assert len(Table.open(folder, allow_empty=True)) == 0


def test_a_run_that_grows_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = a_run(tmp_path / "run", [a_solve("a" * 16)])
    table = Table.open(folder)
    read = []
    parse = tables.parse_solution
    monkeypatch.setattr(tables, "parse_solution", lambda line, where: read.append(line) or parse(line, where))
    grow(folder, a_solve("b" * 16, correct=False), a_solve("a" * 16, seed=1))
    assert len(table) == 1, "a table changes only when it is refreshed"
    table.refresh()
    assert len(read) == 2, "what was read is not read again"
    assert keys(table) == [("a", 0), ("a", 1), ("b", 0)]
    assert [row.problem[0] for row in table.solves()] == ["a", "b", "a"], "in the run's order"
    assert table.metrics().problems == 2
    grow(folder, a_solve("b" * 16, correct=True))
    table.refresh()
    assert (table.metrics().retried, table.metrics().accuracy) == (1, 1.0)


def test_several_threads_may_follow_one_table(tmp_path: Path):
    folder = a_run(tmp_path / "run", some(0, 300))
    table = Table.open(folder)
    grow(folder, *some(300, 600))
    threads = [threading.Thread(target=table.refresh) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(table), table.retried) == (600, set())


@pytest.mark.parametrize("sort", tables.ORDERS)
def test_solves_are_sorted_both_ways_and_ties_keep_the_order_of_the_run(sort: str):
    rows = [row_of(a_solve(f"{n:016x}", correct=n % 2 == 0, label=f"P-{n}")) for n in range(4)]
    rows[3] = replace(rows[3], exit=None, correct=None, seconds=9.0, usage=Usage(0, 0, 5_000), paper_calls=9)
    table = Table.of(rows, name="kace")
    order = tables.ORDERS[sort]
    keys = [order(row) for row in table.solves(sort=sort)]
    assert keys == sorted(keys)
    assert [order(row) for row in table.solves(sort=f"-{sort}")] == keys[::-1]
    wrong_first = [row.label for row in table.solves(sort="")]
    assert wrong_first == ["P-1", "P-0", "P-2", "P-3"]


def test_texts_of_calls_and_problems_are_found_by_key(tmp_path: Path):
    folder = a_run(tmp_path / "learn" / "run", [called("a" * 64, "b" * 64, "c" * 64, "", "no key", "z" * 64)])
    problem = Problem("What is 2 + 2?", answer="4")
    (folder / "problems.jsonl").write_text("damaged\n" + "".join(problem_rows([problem])) + "\n")
    table = Table.open(folder, within=tmp_path / "learn")
    assert table.problem_text(problem.id) == "What is 2 + 2?"
    assert table.problem_text("f" * 64) is None
    assert not any(written(table))
    table = Table.open(folder, within=tmp_path / "learn")
    calls = tmp_path / "learn" / "calls"
    calls.mkdir()
    (calls / "one.jsonl").write_text("damaged\n" + a_call("a" * 64, "said a") + a_call("b" * 64, "said b"))
    assert written(table) == ["said a", "said b", "", "", "", ""]
    assert not any(written(Table.open(folder))), "nothing above the folder is read unless allowed"


def test_attempts_that_share_a_prompt_have_its_messages(tmp_path: Path):
    folder = a_run(tmp_path / "run", [called("a" * 64, "b" * 64, "c" * 64)])
    (folder / "calls").mkdir()
    sent = chat("Be exact.", "2 + 2?")
    lines = [a_call("a" * 64, "4", prompt="1"), a_call("b" * 64, "5", prompt="1", messages=sent), a_call("c" * 64, "6")]
    (folder / "calls" / "one.jsonl").write_text("".join(lines))
    solve = Table.open(folder).solution("a" * 16, 0)
    assert solve
    assert [attempt.messages for attempt in solve.attempts] == [sent, sent, ()]


def test_links_are_not_followed(tmp_path: Path):
    outside = a_run(tmp_path / "outside", some(0, 2))
    (outside / "one.jsonl").write_text(a_call("a" * 64, "secret"))
    folder = a_run(tmp_path / "run", [called("a" * 64)])
    (folder / "calls").mkdir()
    (folder / "calls" / "one.jsonl").symlink_to(outside / "one.jsonl")
    assert written(Table.open(folder)) == [""]
    (folder / "traces.jsonl").unlink()
    (folder / "traces.jsonl").symlink_to(outside / "traces.jsonl")
    with pytest.raises(DataError, match="link"):
        Table.open(folder)


def test_runs_are_named_by_system_and_by_folder_where_two_share_one(tmp_path: Path):
    folders = [a_run(tmp_path / name, some(0, 1)) for name in ("x/first", "x/second", "third")]
    for folder, system in zip(folders, ("kace", "kace", "tiered"), strict=True):
        manifest = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(json.dumps(manifest | {"system": {"name": system}}))
    assert [table.name for table in ScoreReader().open(folders)] == [*map(str, folders[:2]), "tiered"]
    with pytest.raises(DataError, match="given twice"):
        ScoreReader().open([folders[0], folders[0]])


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
        Table.open(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert caught.value.fix


def test_a_manifest_with_odd_parts_is_read_without_them(tmp_path: Path):
    folder = a_run(tmp_path / "run", config=3, system={"name": 7}, data=None, tree={"cards": True, "hash": "x"})
    table = Table.open(folder)
    found = table.manifest
    assert (table.name, found.model, found.data, found.problems, found.tree_cards) == ("run", "", "", None, None)
    assert found.facts() == {"tree_hash": "x", "kace": "0.1.0"}


def test_a_row_sums_up_what_the_attempts_say():
    tries = [
        a_try(True, tier=TierName.ES),
        a_try(False, tier=TierName.ES, outcome=Outcome.PROVIDER_ERROR),
        a_try(True).model_copy(update={"input": 900, "cached": 512, "output": 70}),
    ]
    record = b_solve("a", tries, {MS: ["EXACT_A", "EXACT_B"], HS: ["EXACT_C", "EXACT_B"]})
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
    assert (row.attempts, row.right_attempts) == (3, 2), "the finishing attempt is no evidence"
    assert row.usage == Usage(900, 512, 70)
    assert (row.classifier_calls, row.classifier) == (2, Usage(20, 8, 0))
    assert (row.card_tokens, row.estimated) == (900, True)
    assert row.cards == ("EXACT_A", "EXACT_B", "EXACT_C")
    assert row.failed
    assert row.name == "A"
    assert replace(row, label="").name == "a"


def test_a_number_that_no_sum_could_hold_is_damage(tmp_path: Path):
    many = a_solve("b" * 16).model_copy(update={"real_calls": 10**30})
    endless = a_solve("c" * 16).model_copy(update={"seconds": float("inf")})
    table = Table.open(a_run(tmp_path / "run", [a_solve("a" * 16, seed=1 << 40), many, endless]))
    assert [damage.line for damage in table.damage] == [2, 3]
    assert keys(table) == [("a", 1 << 40)]


@pytest.mark.parametrize("line", [b"x" * 300, b"{}\n" * 30], ids=["too long", "too many damaged"])
def test_a_run_that_cannot_be_read_to_its_end_never_reads_as_a_shorter_one(tmp_path: Path, monkeypatch, line):
    monkeypatch.setattr(tables, "MAX_DAMAGED", 20)
    plain = tables.whole_lines
    monkeypatch.setattr(tables, "whole_lines", lambda path, start=0: plain(path, start, 1 << 16))
    run = a_run(tmp_path / "run", some(0, 3))
    with (run / "traces.jsonl").open("ab") as file:
        file.write(line * 300 + b"\n" if len(line) == 300 else line)
    grow(run, *some(3, 6))
    for _ in range(3):
        with pytest.raises(DataError):
            Table.open(run)
