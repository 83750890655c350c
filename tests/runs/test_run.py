"""A run directory resumes, refuses other settings, and survives damage."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kace.config import Config, load_config
from kace.errors import BudgetExceeded, UsageError
from kace.ladder.session import open_session
from kace.models.base import Failure, ModelError, Reply, Request
from kace.models.scripted import Scripted, dice
from kace.problems import Problem
from kace.runs.manifest import manifest_of
from kace.runs.run import Run, solve_all
from tests.runs.few_rows import recorded

PROBLEMS = tuple(Problem(f"Throw {n}", "3", label=f"t{n}") for n in range(40))


def config(**flags: object) -> Config:
    return load_config({"model": "scripted/dice?sides=3", **flags}, env={})


def solve_in(folder: Path, settings: Config, model: Scripted | None = None) -> Run:
    with Run(folder, manifest_of(settings)) as run:
        todo = [p for p in PROBLEMS if run.solution(p.id, settings.seed) is None]

        async def work() -> None:
            async with open_session(settings, calls=run.calls, model=model) as session:
                await solve_all(todo, session.kit, session.window, run.keep)

        asyncio.run(work())
    return run


def test_a_finished_run_is_not_solved_again(tmp_path: Path):
    solve_in(tmp_path, config())
    inner = Scripted(dice(3), name="dice?sides=3")
    solve_in(tmp_path, config(), inner)
    assert inner.calls == 0
    assert len(recorded(tmp_path)) == len(PROBLEMS)


def test_where_the_provider_failed_the_next_run_tries_again(tmp_path: Path):
    class Down(Scripted):
        async def complete(self, request: Request) -> Reply:
            if request.attempt.tier == "ES":
                raise ModelError(Failure.PROVIDER_ERROR, "503")
            return await super().complete(request)

    script = dice(3)
    solve_in(tmp_path, config(), Down(script, name="dice?sides=3"))
    assert all(record.failed for record in recorded(tmp_path))
    up = Scripted(script, name="dice?sides=3")
    solve_in(tmp_path, config(), up)
    assert up.calls == 2 * len(PROBLEMS), "only the failed calls are made again"
    with Run(tmp_path, manifest_of(config())) as run:
        assert len(run) == len(PROBLEMS)
        assert not any(record.failed for record in run.table)


def test_other_settings_are_refused_with_the_difference(tmp_path: Path):
    solve_in(tmp_path, config())
    with pytest.raises(UsageError, match="config 'seed' \\(0, now 1\\)"):
        solve_in(tmp_path, config(seed=1))


def test_a_cap_may_be_raised_to_go_on(tmp_path: Path):
    with pytest.raises(BudgetExceeded, match="cap of 30 calls"):
        solve_in(tmp_path, config(max_calls=30))
    assert 0 < len(recorded(tmp_path)) < len(PROBLEMS)
    inner = Scripted(dice(3), name="dice?sides=3")
    solve_in(tmp_path, config(max_calls=1000), inner)
    total = sum(record.real_calls for record in recorded(tmp_path))
    assert inner.calls == total - 30, "all thirty paid calls were kept"


@pytest.mark.parametrize(
    ("harm", "damaged"),
    [
        (lambda lines: [*lines[:-1], lines[-1][:-20]], 0),
        (lambda lines: [lines[0], b'{"v":1,"problem":5}\n', *lines[2:]], 1),
        (lambda lines: [], 0),
    ],
    ids=["torn tail", "flipped line", "emptied"],
)
def test_a_damaged_trace_is_mended_from_the_calls(
    tmp_path: Path, harm: Callable[[list[bytes]], list[bytes]], damaged: int
):
    solve_in(tmp_path, config())
    before = {record.label: (record.exit, record.answer) for record in recorded(tmp_path)}
    trace = tmp_path / "traces.jsonl"
    trace.write_bytes(b"".join(harm(trace.read_bytes().splitlines(keepends=True))))
    inner = Scripted(dice(3), name="dice?sides=3")
    run = solve_in(tmp_path, config(), inner)
    assert inner.calls == 0, "the calls are still on disk"
    assert len(run.table.damage) == damaged
    assert {record.label: (record.exit, record.answer) for record in recorded(tmp_path)} == before
    assert len(recorded(tmp_path)) == len(PROBLEMS)


def test_the_manifest_says_what_ran_and_holds_no_key(tmp_path: Path):
    settings = load_config({"model": "scripted/steady"}, env={"OPENAI_API_KEY": "sk-canary-123"})
    solve_in(tmp_path, settings)
    text = (tmp_path / "run.json").read_text()
    manifest = json.loads(text)
    assert manifest["config"]["model"] == "scripted/steady"
    assert manifest["config"]["sampling"]["HS"] == {"temperature": 0.8, "max_tokens": 12000}
    assert set(manifest["prompts"]) >= {"solve", "lens_problem_setup"}
    assert "canary" not in text


def test_a_run_made_before_a_setting_existed_goes_on_at_its_default(tmp_path: Path):
    solve_in(tmp_path / "run", config())
    path = tmp_path / "run" / "run.json"
    manifest = json.loads(path.read_text())
    del manifest["config"]["retrieval"]["max_card_tokens"]
    path.write_text(json.dumps(manifest))
    solve_in(tmp_path / "run", config())
    with pytest.raises(UsageError, match="max_card_tokens"):
        solve_in(tmp_path / "run", config(max_card_tokens=9))


def test_how_fast_a_run_goes_may_change(tmp_path: Path):
    solve_in(tmp_path / "run", config(timeout=60.0, max_connections=4))
    solve_in(tmp_path / "run", config(timeout=90.0, max_connections=8))
