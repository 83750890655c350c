"""Learning on a real Ray cluster of two nodes on this machine: the tree of one process, also where a node is lost."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kace.config import load_config
from kace.errors import BudgetExceeded
from kace.learning.loop import learn
from kace.learning.steps import StepName
from kace.learning.study import LearnPlan, Settings, open_study
from kace.models.budget import Ledger
from kace.models.cache import CallStore
from tests.command import run_kace
from tests.learning.world import DOMAINS, World, problems, solve
from tests.models.chat_server import Answer, ChatServer, Seen, says
from tests.observers import Counting

pytest.importorskip("ray", reason="Ray is not installed: pip install 'kace[ray]'")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(600)]

TRAIN = problems(2)


@pytest.fixture(scope="module", autouse=True)
def clock() -> Iterator[None]:
    """The journal's clock stands still, so that journals can be compared."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kace.cards.store.datetime", SimpleNamespace(now=lambda zone: now))
        yield


def world(seen: Seen) -> Answer:
    """The world's solver behind a server: what the seed of the request draws, so that who asks the same hears so."""
    messages = [SimpleNamespace(content=message["content"]) for message in seen.body["messages"]]
    if all(name in messages[-1].content or name in messages[0].content for name in DOMAINS):
        asked = messages[-1].content.rpartition("In ")[2]
        return says(json.dumps({"domain": asked.partition(",")[0]}))
    sampling = SimpleNamespace(seed=seen.body["seed"])
    return replace(says(solve(SimpleNamespace(messages=messages, sampling=sampling, choices=()))), delay=0.02)


class Hearing(Counting):
    """Hears of the learner's steps, too."""

    def run_started(self, step: StepName, problems: int, done: int) -> None: ...

    def step_done(self, step: StepName, value: object, fresh: bool) -> None: ...


def learned(
    server: ChatServer, cluster: Any | None, out: Path, hearing: Hearing | None = None, **given: object
) -> Ledger:
    place = {"ray": cluster.address} if cluster else {}
    known = {"model": "openai/m", "base_url": server.url, "max_connections": 4, "profile": "paper", **place, **given}
    settings = Settings.model_validate({"epochs": 1, "impact_runs": 1, "examples": 0, "refine": 1})
    plan = LearnPlan(TRAIN, load_config(known, env={}), settings, out)

    async def work() -> Ledger:
        async with open_study(plan, teacher=World().teacher(), observer=hearing) as (study, ledger):
            await learn(study)
            return ledger

    return asyncio.run(work())


def made(tree: Path) -> dict[str, object]:
    """Cards, journal and snapshots byte for byte, and the steps, of which those of several cells end in any order."""
    files = [path for folder in (tree, tree / "snapshots") for path in sorted(folder.glob("*")) if path.is_file()]
    steps = sorted((tree / "learn" / "steps.jsonl").read_bytes().splitlines())
    assert {"cards.jsonl", "journal.jsonl", "epoch-1.jsonl"} <= {path.name for path in files}
    return {"steps": steps, **{path.name: path.read_bytes() for path in files}}


def calls(tree: Path) -> Counter[str]:
    return Counter(record.key for record in CallStore(tree / "learn" / "calls").records())


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with ChatServer(world) as found:  # one for all: its address is part of what a call is known by
        yield found


@pytest.fixture(scope="module")
def here(clock: None, server: ChatServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree that one process learns."""
    out = tmp_path_factory.mktemp("here") / "tree"
    learned(server, None, out)
    return out


def test_a_tree_learned_on_ray_is_that_of_one_process(cluster: Any, server: ChatServer, here: Path, tmp_path: Path):
    there, before = tmp_path / "tree", len(server.requests)
    ledger = learned(server, cluster, there)
    sent = len(server.requests) - before
    assert made(there) == made(here) and b"EXACT_FLIM_RULE" in (there / "cards.jsonl").read_bytes()
    assert calls(there) == calls(here), "no call is made twice, though runs go side by side"
    assert sent == ledger.roles["solver"].calls + ledger.roles["classifier"].calls
    learned(server, cluster, there)
    assert len(server.requests) == before + sent, "what is done is not asked again"


def test_one_cap_holds_over_all_workers(cluster: Any, server: ChatServer, here: Path, tmp_path: Path):
    there, before = tmp_path / "tree", len(server.requests)
    with pytest.raises(BudgetExceeded, match="the cap of 150 calls is reached"):
        learned(server, cluster, there, max_calls=150)
    assert 100 < calls(there).total() <= 150 and len(server.requests) - before <= 150
    learned(server, cluster, there)
    assert made(there) == made(here) and calls(there) == calls(here)


def test_the_command_learns_on_a_cluster_behind_the_wall(cluster: Any, server: ChatServer, tmp_path: Path):
    rows = ({"problem": p.text, "answer": p.answer, "solution": "By its rule."} for p in TRAIN)
    (tmp_path / "train.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    given = ("--model", "openai/m", "--base-url", server.url, "--teacher", "solutions", "--out", "tree")
    done = run_kace(tmp_path, "learn", "--train", "train.jsonl", *given, "--quick", "--ray", cluster.address)
    assert done.returncode == 0, done.stderr
    assert "calls: solver" in done.stderr and (tmp_path / "tree" / "cards.jsonl").exists()
    other = run_kace(tmp_path, "learn", "--train", "train.jsonl", *given, "--ray", "auto", "--method", "ace")
    assert other.returncode == 2 and "--ray does not know" in other.stderr


def test_a_lost_node_loses_nothing(cluster: Any, server: ChatServer, here: Path, tmp_path: Path):
    """The last one: the cluster has a node less after it."""
    lost = next(node for node in cluster.list_all_nodes() if node is not cluster.head_node)

    def kill() -> None:
        threading.Thread(target=cluster.remove_node, args=(lost,), kwargs={"allow_graceful": False}).start()

    before = len(server.requests)
    learned(server, cluster, tmp_path / "tree", Hearing(10, kill))
    again = len(server.requests) - before - len(calls(tmp_path / "tree"))
    assert len(cluster.list_all_nodes()) == 1
    assert made(tmp_path / "tree") == made(here) and calls(tmp_path / "tree") == calls(here)
    assert again <= 8, "no more than its connections had open, and what had just ended"
