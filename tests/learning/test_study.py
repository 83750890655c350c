"""A learner's folder goes on under the settings and prompts it was begun with."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from kace.cards.card import Example
from kace.config import load_config
from kace.errors import UsageError
from kace.learning.screen import HeldOutHashes
from kace.learning.study import LearnPlan, Settings, open_study, open_workbench
from kace.models.scripted import Scripted
from kace.problems import Problem
from tests.learning.sound_cards import PAYLOADS, sound_card
from tests.learning.world import problems, solve

CONFIG = load_config({"model": "scripted/steady"}, env={})


def opened(folder: Path, settings: Settings) -> None:
    async def work() -> None:
        manifest = LearnPlan(problems(1), CONFIG, settings, folder).manifest()
        async with open_workbench(folder, CONFIG, manifest, model=Scripted(solve), taught=False):
            pass

    asyncio.run(work())


def test_other_settings_and_other_prompts_are_refused(tmp_path: Path):
    opened(tmp_path, Settings())
    opened(tmp_path, Settings())
    with pytest.raises(UsageError, match="settings"):
        opened(tmp_path, Settings(max_harm=2))
    with pytest.raises(UsageError, match="settings"):
        opened(tmp_path, Settings(epochs=5))
    path = tmp_path / "learn.json"
    learned = json.loads(path.read_text())
    path.write_text(json.dumps(learned | {"prompts": learned["prompts"] | {"solve": "0" * 64}}))
    with pytest.raises(UsageError, match="another prompt"):
        opened(tmp_path, Settings())


@pytest.mark.parametrize(("max_overlap", "refused"), [(0.55, True), (1.0, False)])
def test_the_learner_screens_by_the_overlap_that_its_settings_allow(tmp_path: Path, max_overlap: float, refused: bool):
    held_out = HeldOutHashes.of((Problem("A farmer stacks 9 wooden crates of plums. How many plums?", "90"),))
    told = Example("Plums are in 5 wooden crates that a farmer stacks. How many?", "Multiply: 5 * 8 = 40.\n\\boxed{40}")
    card = sound_card(next(iter(PAYLOADS))).illustrated((told,))
    plan = LearnPlan(problems(2), CONFIG, Settings(max_overlap=max_overlap), tmp_path / "tree", held_out)

    async def work() -> bool:
        async with open_study(plan, model=Scripted(solve), teacher=Scripted(solve)) as study:
            return any(study.leaks.find(card))

    assert asyncio.run(work()) is refused
