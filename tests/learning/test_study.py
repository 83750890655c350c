"""A learner's folder goes on under the settings it was begun with, also where kace has learned new ones since."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from kace.cards.card import Example
from kace.config import load_config
from kace.errors import UsageError
from kace.learning.screen import HeldOutHashes
from kace.learning.study import GivenModels, LearnPlan, Settings, open_study, open_workbench
from kace.models.scripted import Scripted
from kace.problems import Problem
from tests.learning.sound_cards import PAYLOADS, sound_card
from tests.learning.world import problems, solve

CONFIG = load_config({"model": "scripted/steady"}, env={})


def opened(folder: Path, settings: Settings) -> None:
    async def work() -> None:
        manifest = LearnPlan(problems(1), CONFIG, settings, folder).manifest()
        async with open_workbench(folder, CONFIG, manifest, GivenModels(Scripted(solve), taught=False)):
            pass

    asyncio.run(work())


def test_a_setting_and_a_prompt_that_came_later_let_an_older_learner_go_on(tmp_path: Path):
    opened(tmp_path, Settings())
    path = tmp_path / "learn.json"
    older = json.loads(path.read_text())
    del older["settings"]["calibration_runs"], older["prompts"]["teacher/revise_worked"]
    path.write_text(json.dumps(older))
    opened(tmp_path, Settings())
    with pytest.raises(UsageError, match="settings"):
        opened(tmp_path, Settings(calibration_runs=2))
    with pytest.raises(UsageError, match="settings"):
        opened(tmp_path, Settings(epochs=5))
    changed = older | {"prompts": older["prompts"] | {"solve": "0" * 64}}
    path.write_text(json.dumps(changed))
    with pytest.raises(UsageError, match="another prompt"):
        opened(tmp_path, Settings())


@pytest.mark.parametrize(("max_overlap", "refused"), [(0.55, True), (1.0, False)])
def test_the_learner_screens_by_the_overlap_that_its_settings_allow(tmp_path: Path, max_overlap: float, refused: bool):
    held_out = HeldOutHashes.of((Problem("A farmer stacks 9 wooden crates of plums. How many plums?", "90"),))
    told = Example("Plums are in 5 wooden crates that a farmer stacks. How many?", "Multiply: 5 * 8 = 40.\n\\boxed{40}")
    card = sound_card(next(iter(PAYLOADS))).illustrated((told,))
    plan = LearnPlan(problems(2), CONFIG, Settings(max_overlap=max_overlap), tmp_path / "tree", held_out)

    async def work() -> bool:
        async with open_study(plan, model=Scripted(solve), teacher=Scripted(solve)) as (study, _):
            return study.leaks.find(card) is not None

    assert asyncio.run(work()) is refused
