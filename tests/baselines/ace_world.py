"""The learner's world again, with a reflector and a curator who know its rules.

The solver is right where the notes it reads state the rule. The reflector names the rule that an attempt lacked, and
says of a bullet that it helped where it states the rule that was asked for.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kace.baselines.evaluate import Training, TrainPlan, open_training
from kace.baselines.systems import Inputs, open_system
from kace.cards.tree import Domain, EpistemicTree
from kace.config import Config, load_config
from kace.ladder.record import Solution
from kace.ladder.session import open_session
from kace.models.base import ChatModel, Request
from kace.models.scripted import Scripted
from tests.learning.world import DOMAINS, RULES, World, problems, solve, statement

CONFIG = load_config(
    {"model": "scripted/steady", "preset": "starter", "profile": "paper", "prompts": "default"}, env={}
)
SKIPPING = CONFIG.model_copy(update={"retrieval": CONFIG.retrieval.model_copy(update={"es_policy": "skip"})})
TRAIN, TEST = problems(4), problems(2, start=50)
REGISTRY = tuple(Domain(name=name, description=f"questions of {name}", share=0.3, signals=()) for name in DOMAINS)

_ASKED = re.compile(r"the (\w+) of (\d+) and (\d+)")
_BULLET = re.compile(r"^\[(b-\d{5})\] helpful=\d+ harmful=\d+ :: (.+)$", re.MULTILINE)


@dataclass
class AceTeacher:
    """Reflects and curates. `mangle` may spoil a reply, told by the name of its request."""

    mangle: Callable[[str, str], str] = lambda name, reply: reply

    def model(self) -> Scripted:
        return Scripted(self.reply, name="ace-teacher")

    def reply(self, request: Request) -> str:
        name, asked = request.attempt.problem, request.messages[1].content
        if name == "partition":
            return World().teach(request)
        said = self.reflect(asked) if " reflect " in name else self.curate(asked)
        return self.mangle(f"{name} {request.attempt.index}", said)

    def reflect(self, asked: str) -> str:
        rule = _ASKED.search(asked)[1]
        used = [bullet for bullet, text in _BULLET.findall(asked) if rule in RULES and statement(rule) in text]
        tags = f"helpful: {', '.join(used)}\n" if used else ""
        if "The attempt is right" in asked:
            return f"<notes>\nmistake: none\n{tags}lesson: none\n</notes>"
        return f"<notes>\nmistake: did not know the rule\n{tags}lesson:\n{statement(rule)}\n</notes>"

    def curate(self, asked: str) -> str:
        playbook, _, learned = asked.partition("What was learned:")
        lessons = dict.fromkeys(re.findall(r"^Lesson: (.+)$", learned, re.MULTILINE))
        added = [
            f"<revision>\naction: ADD\nreason: was missing\ntext: {lesson}\n</revision>"
            for lesson in lessons
            if lesson not in playbook
        ]
        return "\n".join(added) or "<revision>\naction: NONE\n</revision>"


def plan_of(method: str, out: Path, epochs: int = 1, **more: object) -> TrainPlan:
    given = {"method": method, "train": TRAIN, "config": CONFIG, "epochs": epochs, "out": out}
    return TrainPlan(**{**given, **more})


def trained(
    plan: TrainPlan, work: Callable[[Training], object], *, model: ChatModel, teacher: ChatModel | None
) -> object:
    async def run() -> object:
        async with open_training(plan, model=model, teacher=teacher) as training:
            return await work(training)

    return asyncio.run(run())


def solved(
    name: str,
    *,
    artefact: Path | None = None,
    tree: EpistemicTree | None = None,
    heard: list[Request] | None = None,
    config: Config = CONFIG,
) -> tuple[Solution, ...]:
    """The test problems, solved by a system of the table; `heard` gathers what the solver was asked."""

    def script(request: Request) -> str:
        if heard is not None:
            heard.append(request)
        return solve(request)

    solver = Scripted(script, name="world")

    async def run() -> tuple[Solution, ...]:
        async with open_session(config, model=solver) as session:
            bench = Inputs(
                tree=tree,
                artefact=artefact,
                config=config,
                classifier=session.classifier,
                helper=session.role("helper"),
                seed=config.seed,
            )
            system = open_system(name, bench)
            return tuple([await system.solve(problem, session.kit) for problem in TEST])

    return asyncio.run(run())


def accuracy(solutions: tuple[Solution, ...]) -> float:
    return sum(bool(solution.correct) for solution in solutions) / len(solutions)


def asked_below_hs(heard: list[Request]) -> dict[tuple[str, str, int], str]:
    """Every prompt of ES and MS, in full."""
    below = [request for request in heard if request.attempt.tier in ("ES", "MS")]
    return {(each.attempt.problem, each.attempt.tier, each.attempt.index): repr(each.messages) for each in below}
