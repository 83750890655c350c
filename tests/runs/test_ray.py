"""Runs on a real Ray cluster of two nodes on this machine: the same records, a lost node, caps over all workers."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kace.baselines.trial import Trial, run_trial
from kace.config import load_config
from kace.errors import BudgetExceeded, KaceError, UsageError
from kace.ladder.record import last_solutions
from kace.models.cache import CallStore
from kace.problems import Dataset, Problem, set_hash
from tests.models.chat_server import Answer, ChatServer, Seen, says
from tests.observers import Counting

ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(300)]

PROBLEMS = tuple(Problem(f"What is {n} + {n}?", answer=str(2 * n), label=f"sum-{n}") for n in range(30))
DATA = Dataset("sums", "test", PROBLEMS, set_hash(PROBLEMS), "made up")


def die(seen: Seen) -> Answer:
    """An answer that the request's own seed draws, so that whoever asks the same hears the same."""
    return replace(says(f"\\boxed{{{seen.body['seed'] % 3}}}"), delay=0.05)


def trial(server: ChatServer, cluster: Any | None, **settings: object) -> Trial:
    place = {"ray": cluster.address} if cluster else {}
    given = {"model": "openai/m", "base_url": server.url, "max_connections": 4, **place, **settings}
    return Trial("tiered", DATA, load_config(given, env={}), seeds=2)


def solved(given: Trial, folder: Path, observer: Counting | None = None) -> Path:
    with given.open(folder) as run:
        asyncio.run(run_trial(given, run, lambda record: None, observer))
    return folder


def results(folder: Path) -> dict[tuple[str, int], str]:
    """Every solve without what depends on the clock and on calls made before."""
    found, unlike = {}, {"seconds": 0.0, "from_cache": False}
    for solution in last_solutions(folder):
        attempts = tuple(attempt.model_copy(update=unlike) for attempt in solution.attempts)
        record = solution.model_copy(update={"seconds": 0.0, "attempts": attempts})
        found[solution.problem, solution.seed] = record.model_dump_json()
    return found


def kept(folder: Path) -> Counter[str]:
    return Counter(record.key for record in CallStore(folder / "calls").records())


def test_a_run_on_ray_is_the_run_of_one_process(cluster: Any, tmp_path: Path):
    with ChatServer(die) as server:
        there, sent = solved(trial(server, cluster), tmp_path / "ray"), len(server.requests)
        here = solved(trial(server, None), tmp_path / "here")
        assert results(there) == results(here) and len(results(there)) == 60
        assert kept(there) == kept(here) and sent == kept(there).total()
        manifests = [json.loads((folder / "run.json").read_text()) for folder in (there, here)]
        assert manifests[0]["config"] == manifests[1]["config"]
        solved(trial(server, cluster), there)
        assert len(server.requests) == 2 * sent, "what is done is not asked again"


def test_caps_hold_over_all_workers_and_the_rest_is_solved_without_paying_twice(cluster: Any, tmp_path: Path):
    with ChatServer(die) as server:
        with pytest.raises(BudgetExceeded, match="the cap of 61 calls is reached"):
            solved(trial(server, cluster, max_calls=61), tmp_path / "run")
        assert 61 - 2 * 8 < len(server.requests) <= 61
        assert kept(tmp_path / "run").total() == len(server.requests)
        solved(trial(server, cluster), tmp_path / "run")
        assert len(results(tmp_path / "run")) == 60
        assert len(server.requests) == kept(tmp_path / "run").total() == len(kept(tmp_path / "run"))


def test_money_is_capped_over_all_workers(cluster: Any, tmp_path: Path):
    prices = {"openai/m": {"input": 0.0, "output": 1000.0}}
    with ChatServer(die) as server:
        with pytest.raises(BudgetExceeded, match=r"might pass the cap of 1\.00 USD"):
            solved(trial(server, cluster, max_usd=1.0, max_tokens=50, prices=prices), tmp_path / "run")
        spent = sum(record.output for record in CallStore(tmp_path / "run" / "calls").records()) / 1000
        assert 0.5 < spent <= 1.0


def test_a_worker_that_cannot_open_its_session_ends_the_run_with_its_error(cluster: Any, tmp_path: Path):
    with ChatServer(die) as server:
        with pytest.raises(UsageError, match="needs a price for"):
            solved(trial(server, cluster, max_usd=1.0), tmp_path / "run")
        assert not server.requests


def test_an_error_of_the_provider_stops_the_run_and_is_told(cluster: Any, tmp_path: Path):
    with ChatServer([Answer(b"{}", status=401)]) as server, pytest.raises(KaceError, match="401"):
        solved(trial(server, cluster), tmp_path / "run")


def test_a_lost_node_costs_what_was_under_way_there(cluster: Any, tmp_path: Path):
    """The last one: the cluster has a node less after it."""
    lost = next(node for node in cluster.list_all_nodes() if node is not cluster.head_node)

    def kill() -> None:
        threading.Thread(target=cluster.remove_node, args=(lost,), kwargs={"allow_graceful": False}).start()

    with ChatServer(die) as server:
        there = solved(trial(server, cluster), tmp_path / "ray", Counting(10, kill))
        again = len(server.requests) - len(kept(there))
        assert len(cluster.list_all_nodes()) == 1
        here = solved(trial(server, None), tmp_path / "here")
    assert results(there) == results(here)
    assert kept(there) == kept(here), "every call is kept once"
    assert again <= 8, "no more than its connections had open, and what had just ended"


def test_batches_need_no_workers(tmp_path: Path):
    with ChatServer(die) as server, pytest.raises(UsageError, match="--ray does not go with --batch"):
        solved(trial(server, None, ray="auto", batch=True), tmp_path / "run")


def test_without_a_cluster_it_says_so(tmp_path: Path):
    ray.shutdown()
    with ChatServer(die) as server, pytest.raises(KaceError, match=r"no Ray cluster at '127\.0\.0\.1:1'"):
        solved(replace(trial(server, None), config=trial(server, None, ray="127.0.0.1:1").config), tmp_path / "run")
