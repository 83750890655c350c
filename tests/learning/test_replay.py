"""A recorded learning run comes out of its replies again, without a model."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kace.cards.store import TreeStore, open_tree
from kace.config import load_config
from kace.datasets.starter import load_split
from kace.learning.loop import learn
from kace.learning.settings import Settings
from kace.learning.steps import read_steps
from kace.learning.study import LearnPlan, open_study
from kace.models.cache import Replay
from tests.recorded import recorded


def test_a_recorded_learning_run_replays_to_the_identical_tree_by_the_same_steps(tmp_path: Path):
    run = recorded("learning_run")
    config = load_config(
        {"preset": "starter", "teacher": "exchange/unused", "profile": "paper", "prompts": "default"}, env={}
    )
    plan = LearnPlan(load_split("train")[:16], config, Settings(impact_runs=1, refine=1, examples=0), tmp_path / "tree")

    async def work() -> str:
        solver, teacher = Replay.open(run), Replay.open(run, teacher=True)
        async with open_study(plan, model=solver, teacher=teacher) as (study, _):
            return (await learn(study)).content_hash()

    published = TreeStore.open(run / "tree")
    assert asyncio.run(work()) == published.frozen_hash
    assert published.verify() == []
    for epoch in ("epoch-1.jsonl", "epoch-2.jsonl"):
        assert open_tree(tmp_path / "tree" / "snapshots" / epoch) == open_tree(run / "tree" / "snapshots" / epoch)
    steps = [
        [(step.epoch, step.what) for step in read_steps(folder / "learn" / "steps.jsonl")]
        for folder in (tmp_path / "tree", run / "tree")
    ]
    assert steps[0] == steps[1]
