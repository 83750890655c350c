"""Kill the learner between any two durable steps, run it again: the same tree, and no call paid for twice."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from kace.cards.store import TreeStore
from kace.cards.tree import EpistemicTree, SetDomains
from kace.config import load_config
from kace.errors import KaceError
from kace.learning import StepResult
from kace.learning.loop import learn
from kace.learning.study import LearnPlan, Settings, StepLog, StepName, open_study
from kace.models.cache import read_calls
from tests.faults.children import forked
from tests.learning.world import World, problems

CONFIG = load_config({"model": "scripted/steady", "preset": "starter", "relevance_threshold": 0}, env={})
TRAIN = problems(2)
WORLD = World()
pytestmark = pytest.mark.usefixtures("few_everyday_problems")


def learned(out: Path, *, keep_above: float = 0.8) -> EpistemicTree:
    plan = LearnPlan(TRAIN, CONFIG, Settings(epochs=2, refine=2, impact_runs=1, keep_above=keep_above), out)

    async def work() -> EpistemicTree:
        async with open_study(plan, model=WORLD.solver(), teacher=WORLD.teacher()) as study:
            return await learn(study)

    return asyncio.run(work())


def die_at(steps: int, *, before: bool) -> None:
    """Kill this process at a step's record: just before it is kept, when all it stands for is done, or just after."""
    left, write = [steps], StepLog.write

    def deadly(notebook: StepLog, step: StepName, value: StepResult) -> None:
        if notebook.recall(step, type(value)) is not None:
            return  # kept before: nothing is written, so there is nothing to die at
        left[0] -= 1
        if before and not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        write(notebook, step, value)
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    StepLog.write = deadly


def killed(out: Path, steps: int = 1, *, before: bool = False) -> bool:
    def work() -> None:
        die_at(steps, before=before)
        learned(out)

    _, status = os.waitpid(forked(work), 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "a child must be killed or finish, not fail"
    return os.WIFSIGNALED(status)


def steps_of(tree: Path) -> list[str]:
    return sorted((tree / "learn" / "steps.jsonl").read_text().splitlines())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_killed_after_every_single_step_it_ends_in_the_same_tree(
    tmp_path: Path, record_property: Callable[[str, object], None]
):
    whole = learned(tmp_path / "whole")
    kills = 0
    while killed(tmp_path / "broken", before=True) and killed(tmp_path / "broken"):
        kills += 2  # every second process gets one step further than the last
    record_property("tries", kills)
    assert kills > 80, "a run has many steps"
    assert learned(tmp_path / "broken") == whole
    store = TreeStore.open(tmp_path / "broken")
    assert store.read().frozen == whole.content_hash()
    paid = Counter(record.key for record in read_calls(tmp_path / "broken" / "learn" / "calls"))
    assert set(paid.values()) == {1}, "no finished call is paid twice"
    assert steps_of(tmp_path / "broken") == steps_of(tmp_path / "whole")


def test_other_settings_in_the_same_folder_are_refused(tmp_path: Path):
    learned(tmp_path / "tree")
    with pytest.raises(KaceError, match="another setting 'keep_above'"):
        learned(tmp_path / "tree", keep_above=0.9)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_tree_that_somebody_else_changed_is_not_learned_on(tmp_path: Path):
    killed(tmp_path / "tree", 3)
    TreeStore.open(tmp_path / "tree").apply(SetDomains(()), author="somebody")
    with pytest.raises(KaceError, match="another tree than the learner left there"):
        learned(tmp_path / "tree")


def test_two_learners_in_one_folder_are_refused(tmp_path: Path):
    plan = LearnPlan(TRAIN, CONFIG, Settings(), tmp_path / "tree")

    async def work() -> None:
        async with open_study(plan, model=WORLD.solver(), teacher=WORLD.teacher()):
            with pytest.raises(KaceError, match="another process"):
                async with open_study(plan, model=WORLD.solver(), teacher=WORLD.teacher()):
                    pass

    asyncio.run(work())
