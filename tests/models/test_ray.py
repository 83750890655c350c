"""Calls answered on a real Ray cluster of two nodes on this machine."""

from __future__ import annotations

import json
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import kace
from kace.errors import BudgetExceeded, KaceError, UsageError
from kace.models.cache import read_calls
from kace.problems import Problem
from kace.runs.table import Table
from tests.models.chat_server import Answer, ChatServer, Seen, says

ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(600)]

PROBLEMS = [Problem(f"What is {n} + {n}?", answer=str(2 * n), label=f"sum-{n}") for n in range(30)]


def die(seen: Seen) -> Answer:
    """An answer that the request's own seed draws, so that equal requests get equal answers."""
    return replace(says(f"\\boxed{{{seen.body['seed'] % 3}}}"), delay=0.05)


def run(server: ChatServer, folder: Path, cluster: Any | None, **settings: object) -> Path:
    place = {"ray": cluster.address} if cluster else {}
    given = {"base_url": server.url, "max_connections": 4, **place, **settings}
    kace.evaluate("tiered", PROBLEMS, "openai/m", seeds=2, out=folder, **given)
    return folder


def results(folder: Path) -> dict[tuple[str, int], str]:
    """Every solve without what depends on the clock and on calls made before."""
    found = {}
    for solution in Table.open(folder).solutions(texts=False):
        unlike = {"seconds": 0.0, "from_cache": False}
        attempts = tuple(attempt.model_copy(update=unlike) for attempt in solution.attempts)
        record = solution.model_copy(update={"seconds": 0.0, "attempts": attempts})
        found[solution.problem, solution.seed] = record.model_dump_json()
    return found


def kept(folder: Path) -> Counter[str]:
    return Counter(record.key for record in read_calls(folder / "calls"))


def test_a_run_on_ray_is_the_run_of_one_process(cluster: Any, tmp_path: Path):
    with ChatServer(die) as server:
        there = run(server, tmp_path / "ray", cluster)
        sent = len(server.requests)
        here = run(server, tmp_path / "here", None)
        assert results(there) == results(here) and len(results(there)) == 60
        assert kept(there) == kept(here) and sent == kept(there).total()
        manifests = [json.loads((folder / "run.json").read_text()) for folder in (there, here)]
        assert manifests[0]["config"] == manifests[1]["config"]
        run(server, there, cluster)
        assert len(server.requests) == 2 * sent, "finished calls are not sent again"


def test_caps_hold_over_all_workers_and_the_rest_is_solved_without_paying_twice(cluster: Any, tmp_path: Path):
    with ChatServer(die) as server:
        with pytest.raises(BudgetExceeded, match="the cap of 61 calls is reached"):
            run(server, tmp_path / "run", cluster, max_calls=61)
        assert len(server.requests) == 61
        assert kept(tmp_path / "run").total() == len(server.requests)
        run(server, tmp_path / "run", cluster)
        assert len(results(tmp_path / "run")) == 60
        assert len(server.requests) == kept(tmp_path / "run").total() == len(kept(tmp_path / "run"))


def test_an_error_of_the_provider_stops_the_run(cluster: Any, tmp_path: Path):
    with ChatServer([Answer(b"{}", status=401)]) as server, pytest.raises(KaceError, match="401"):
        run(server, tmp_path / "run", cluster)


def test_a_model_that_cannot_be_opened_is_one_error(cluster: Any, tmp_path: Path):
    with pytest.raises(UsageError, match="nothing"):
        kace.evaluate("tiered", PROBLEMS, "local/nothing.gguf", out=tmp_path / "run", ray=cluster.address)


def test_a_lost_node_costs_the_calls_under_way_there(cluster: Any, tmp_path: Path):
    """The last one: the cluster has a node less after it."""
    lost = next(node for node in cluster.list_all_nodes() if node is not cluster.head_node)
    done = threading.Event()

    def kill() -> None:
        cluster.remove_node(lost, allow_graceful=False)
        done.set()

    with ChatServer(die) as server:
        threading.Timer(1.0, kill).start()
        there = run(server, tmp_path / "ray", cluster)
        assert done.wait(60)
        here = run(server, tmp_path / "here", None)
    assert results(there) == results(here)
    assert kept(there) == kept(here), "every call is kept once"


def test_batches_need_no_workers(tmp_path: Path):
    with ChatServer(die) as server, pytest.raises(UsageError, match="--ray does not go with --batch"):
        run(server, tmp_path / "run", None, ray="auto", batch=True)


def test_without_a_cluster_it_is_one_error(tmp_path: Path):
    ray.shutdown()
    with ChatServer(die) as server, pytest.raises(KaceError, match=r"no Ray cluster at '127\.0\.0\.1:1'"):
        run(server, tmp_path / "run", None, ray="127.0.0.1:1")
