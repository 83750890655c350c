"""ACE training: the solver tries a batch, the reflector studies each attempt, the curator changes the playbook.

Attempts and reflections of a batch run side by side, and so do the playbooks of different domains; batches follow one
another. A batch is one step of the record: whatever was done before is not done again, and calls are never paid twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar

from pydantic import Field

from kace.learner.notebook import Step
from kace.learner.placements import Placements, place_all
from kace.learner.teacher import side_by_side
from kace.learner.verdicts import Kept
from kace.problem import Problem
from kace.solver.solution import Solution
from kace.solver.tiers import TierName
from kace.systems.ace.artefact import ALL, Playbooks, write_playbooks
from kace.systems.ace.curate import Desk, curate, trimmed
from kace.systems.ace.playbook import Operation, Playbook, applied
from kace.systems.ace.reflect import Reflection, Tried, reflect
from kace.systems.flat import Flat
from kace.systems.learned import Learned
from kace.systems.measure import Measure
from kace.systems.training import Dials, Ground, registry


class AceDials(Dials):
    """How a playbook is trained."""

    EXTENT: ClassVar[frozenset[str]] = frozenset({"epochs"})

    batch: Annotated[int, Field(ge=1, le=1_000)] = 8
    """Problems between two visits of the curator."""
    budget_tokens: Annotated[int, Field(ge=100, le=100_000)] = 2_000
    """What a playbook may weigh, as the solver reads it."""


class Studied(Kept):
    """What became of one batch."""

    right: int
    wrong: int
    failed: int
    """Attempts that gave no reply; there is nothing to learn from them."""
    silent: int
    """Attempts on which the reflector said nothing usable."""
    operations: tuple[Operation, ...] = ()
    refused: tuple[str, ...] = ()
    """What the curator said and could not be used, with the reason."""
    dropped: tuple[str, ...] = ()
    """Bullets given up for the budget."""
    tokens: int
    estimated: bool
    playbook: Playbook


@dataclass(frozen=True, slots=True)
class Course:
    """The training of one playbook."""

    ground: Ground
    dials: AceDials
    measure: Measure
    place: str = ""
    """The domain; empty where there is one playbook for all."""


async def train_ace(ground: Ground, dials: AceDials) -> Playbooks:
    """One playbook for all problems, written to the plan's folder."""
    playbook = await _trained(ground.plan.train, _course(ground, dials))
    books = Playbooks(kind="ace", budget_tokens=dials.budget_tokens, playbooks={ALL: playbook})
    write_playbooks(ground.plan.out, books)
    return books


async def train_domain_ace(ground: Ground, dials: AceDials) -> Playbooks:
    """A playbook a domain, written to the plan's folder. A problem with two primary domains is studied in both."""
    domains = await registry(ground)
    ask = partial(place_all, ground.plan.train, domains, ground.session, ground.plan.config)
    placed = await ground.notebook.once(Step("ace", "place"), Placements, ask)
    members = {
        domain.name: [problem for problem in ground.plan.train if domain.name in placed.domains[problem.id]]
        for domain in domains
    }
    works = [_trained(problems, _course(ground, dials, name)) for name, problems in members.items()]
    trained = dict(zip(members, await side_by_side(works), strict=True))
    books = Playbooks(kind="domain-ace", budget_tokens=dials.budget_tokens, domains=domains, playbooks=trained)
    write_playbooks(ground.plan.out, books)
    return books


def batches(problems: Sequence[Problem], size: int, seed: int) -> Iterator[tuple[Problem, ...]]:
    """The problems in an order that depends on their content and the seed, so many at a time."""

    def drawn(problem: Problem) -> bytes:
        return hashlib.sha256(f"{seed}\x1f{problem.id}".encode()).digest()

    ordered = sorted(problems, key=drawn)
    for start in range(0, len(ordered), size):
        yield tuple(ordered[start : start + size])


def _course(ground: Ground, dials: AceDials, place: str = "") -> Course:
    return Course(ground, dials, Measure(ground.session.kit.model), place)


async def _trained(problems: Sequence[Problem], course: Course) -> Playbook:
    playbook = Playbook()
    for epoch in range(1, course.dials.epochs + 1):
        for number, batch in enumerate(batches(problems, course.dials.batch, course.ground.seed(epoch)), 1):
            step = Step("ace", "study", epoch, course.place, number)
            studied = await course.ground.notebook.once(step, Studied, partial(_study, step, batch, playbook, course))
            playbook = studied.playbook
    return playbook


async def _study(step: Step, batch: Sequence[Problem], playbook: Playbook, course: Course) -> Studied:
    """One batch: try, reflect, curate, and hold the playbook to its budget."""
    solutions = await _attempts(step, batch, playbook, course)
    tried = [_tried(solution) for solution in solutions if solution.attempts[0].reply]
    # Of a right attempt only its bullets can be learned from: without any there is nothing to ask.
    asked = [each for each in tried if not each.correct or playbook.bullets]
    teacher = course.ground.teacher
    said = await side_by_side(reflect(f"{step} reflect {each.problem.id}", each, playbook, teacher) for each in asked)
    heard = [reflection for reflection in said if reflection]
    tagged = playbook.tagged(tag for reflection in heard for tag in reflection.tags)
    lessons = [reflection for each, reflection in zip(asked, said, strict=True) if reflection and not each.correct]
    operations, unusable = await _curated(step, tagged, lessons, course)
    changed, refused = applied(tagged, operations)
    kept, dropped = await trimmed(changed, course.dials.budget_tokens, course.measure)
    size = await course.measure(kept.text)
    return Studied(
        right=sum(each.correct for each in tried),
        wrong=sum(not each.correct for each in tried),
        failed=len(solutions) - len(tried),
        silent=len(asked) - len(heard),
        operations=operations,
        refused=(*unusable, *refused),
        dropped=dropped,
        tokens=size.tokens,
        estimated=size.estimated,
        playbook=kept,
    )


async def _attempts(step: Step, batch: Sequence[Problem], playbook: Playbook, course: Course) -> list[Solution]:
    ground = course.ground
    generator = Flat("generator", shelf=Learned(TierName.FLAT, course.measure, notes=playbook.text))
    kit = replace(ground.session.kit, seed=ground.seed(step.epoch))
    return await side_by_side(generator.solve(problem, kit) for problem in batch)


async def _curated(
    step: Step, playbook: Playbook, lessons: Sequence[Reflection], course: Course
) -> tuple[tuple[Operation, ...], tuple[str, ...]]:
    lessons = [reflection for reflection in lessons if reflection.mistake or reflection.lesson]
    if not lessons:
        return (), ()
    size = await course.measure(playbook.text)
    desk = Desk(playbook, size.tokens, course.dials.budget_tokens)
    return await curate(f"{step} curate", desk, lessons, course.ground.teacher)


def _tried(solution: Solution) -> Tried:
    attempt = solution.attempts[0]
    return Tried(
        problem=solution.problem,
        text=attempt.reply.text if attempt.reply else "",
        correct=bool(solution.correct),
        answer=attempt.answer.text if attempt.answer else None,
    )
