"""What the driver and the workers of a run on Ray do, on a stand-in for Ray; test_ray.py has a real cluster."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from kace.baselines.trial import Trial, run_trial
from kace.config import load_config
from kace.errors import BudgetExceeded, KaceError
from kace.models.cache import CallStore
from kace.problems import Problem
from kace.runs import ray as on_ray
from kace.runs.table import Table
from tests.runs.fake_ray import FakeRay
from tests.runs.test_shards import DATA, results


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    found = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", found)
    monkeypatch.setitem(sys.modules, "ray.exceptions", found.exceptions)
    monkeypatch.setattr(on_ray, "GATHER_SECONDS", 0.001)
    return found


def trial(**settings: object) -> Trial:
    given = {"model": "scripted/dice?sides=3&latency=0.001", "max_connections": 4, **settings}
    return Trial("tiered", DATA, load_config(given, env={}), seeds=2)


def solved(given: Trial, folder: Path) -> Path:
    with given.open(folder) as run:
        asyncio.run(run_trial(given, run))
    return folder


def kept(folder: Path) -> Counter[str]:
    return Counter(record.key for record in CallStore(folder / "calls").records())


def test_workers_solve_what_one_process_solves_and_pay_once(ray: FakeRay, tmp_path: Path):
    there, here = solved(trial(ray="auto"), tmp_path / "ray"), solved(trial(), tmp_path / "here")
    assert results(there) == results(here) and len(results(there)) == 80
    assert kept(there) == kept(here) and set(kept(there).values()) == {1}
    assert ray.started == 2


def test_what_a_lost_worker_had_under_way_goes_to_others(ray: FakeRay, tmp_path: Path):
    turns = itertools.count(1)
    ray.lose = lambda: next(turns) % 20 == 0
    there, here = solved(trial(ray="auto"), tmp_path / "ray"), solved(trial(), tmp_path / "here")
    assert ray.started > 2
    assert results(there) == results(here)
    assert kept(there) == kept(here), "every call is kept once"


def test_caps_hold_over_all_workers(ray: FakeRay, tmp_path: Path):
    with pytest.raises(BudgetExceeded, match="the cap of 61 calls is reached"):
        solved(trial(ray="auto", max_calls=61), tmp_path / "run")
    assert 61 - 2 * 8 < kept(tmp_path / "run").total() <= 61
    solved(trial(ray="auto"), tmp_path / "run")
    assert results(tmp_path / "run") == results(solved(trial(), tmp_path / "here"))


def test_workers_that_never_start_end_the_run(ray: FakeRay, tmp_path: Path):
    ray.lose = lambda: True
    with pytest.raises(KaceError, match="Ray workers do not start: the worker died"):
        solved(trial(ray="auto"), tmp_path / "run")
    assert len(Table.open(tmp_path / "run", allow_empty=True)) == 0


def test_an_error_in_a_worker_ends_the_run_with_it(ray: FakeRay, tmp_path: Path):
    ray.cpus = 0
    with pytest.raises(KaceError, match="no node of the Ray cluster has a free CPU"):
        solved(trial(ray="auto"), tmp_path / "run")
    ray.cpus = 1
    broken = replace(trial(ray="auto", max_usd=1.0, model="openai/m", base_url="http://127.0.0.1:1"))
    with pytest.raises(KaceError, match="needs a price"):
        solved(broken, tmp_path / "other")
    assert Problem("x").id
