"""ACE: a playbook of short bullets that the solver, a reflector and a curator write.

The solver tries a batch, the reflector studies each attempt, and the curator changes
the playbook. The teacher reflects and curates. Batches follow one another; the calls
of one batch run side by side, and so do playbooks of different domains. A batch is one
step of the record, and is not done again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from kace.baselines.evaluate import Score, Training, read_artefact
from kace.cards.card import PLAIN, Count
from kace.cards.tree import Domain
from kace.errors import one_line
from kace.files import write_atomic
from kace.ladder.prompt import (
    Context,
    fenced,
    neutral,
    shortened,
    template,
)
from kace.ladder.record import Solution
from kace.learning import StepResult
from kace.learning.study import ADD, Routes, StepName, gather_all
from kace.learning.teacher import (
    Block,
    Grammar,
    Reading,
    format_attempt,
    format_problem,
    instructions,
    read_each,
    shuffled,
)
from kace.problems import Problem

FILE = "playbook.json"
ALL = "all"  # the name of the only playbook if there are no domains
BATCH = 8  # problems between two calls of the curator
MAX_BULLET_CHARS = 800
MAX_PROBLEM_CHARS = 6_000
MAX_LESSON_CHARS = 1_500
TAIL_CHARS = 3_000  # shown of an attempt: its end, with its answer

NOTES = Grammar(
    "notes",
    name="",
    required=("lesson",),
    text="lesson",
)
REVISION = Grammar(
    "revision",
    "",
    required=("action",),
    text="text",
)
_ID = re.compile(r"b-[0-9]{5}")


# The playbook


class Bullet(StepResult):
    """One line of a playbook."""

    id: Annotated[str, Field(pattern=r"^b-[0-9]{5}$")]
    text: Annotated[
        str, Field(min_length=1, max_length=MAX_BULLET_CHARS), PLAIN
    ]
    # As the reflector tagged it: an opinion, not a measured effect.
    helpful: Count = 0
    harmful: Count = 0


class Operation(NamedTuple):
    """A change that the curator wants: a bullet to remove, or one to add."""

    remove: str = ""
    add: str = ""


class Playbook(StepResult):
    """Bullets in the order of their ids, and the next id's number: none is given twice."""

    bullets: tuple[Bullet, ...] = ()
    next: int = 1

    @property
    def text(self) -> str:
        """What the solver reads. Empty without a bullet."""
        return "\n".join(f"- {bullet.text}" for bullet in self.bullets)

    @property
    def numbered(self) -> str:
        """What reflector and curator read: with ids and counters."""
        lines = []
        for bullet in self.bullets:
            counts = f"helpful={bullet.helpful} harmful={bullet.harmful}"
            lines.append(f"[{bullet.id}] {counts} :: {bullet.text}")
        return "\n".join(lines) or "(empty)"

    def tagged(
        self, helpful: Iterable[str], harmful: Iterable[str]
    ) -> Playbook:
        """Return the playbook with the counters of these bullets raised."""
        bullets = []
        for bullet in self.bullets:
            counts = {
                "helpful": bullet.helpful + (bullet.id in helpful),
                "harmful": bullet.harmful + (bullet.id in harmful),
            }
            bullets.append(bullet.model_copy(update=counts))
        return Playbook(bullets=tuple(bullets), next=self.next)

    def changed(self, operation: Operation) -> Playbook:
        """Return the playbook after an operation."""
        bullets = [b for b in self.bullets if b.id != operation.remove]
        number = self.next
        if operation.add:
            bullets.append(Bullet(id=f"b-{number:05d}", text=operation.add))
            number += 1
        return Playbook(bullets=tuple(bullets), next=number)


class Playbooks(StepResult):
    """One playbook for everything, or one per domain with the registry for routing."""

    v: Literal[1] = 1
    kind: str  # the method that made it
    domains: tuple[Domain, ...] = ()
    playbooks: dict[str, Playbook]


def read_playbooks(path: Path, kind: str) -> Playbooks:
    """Read the playbooks of a file, or of the folder that training made."""
    return read_artefact(path, FILE, Playbooks, "playbook", kind)


# Training


class Studied(Score):
    """The result of one batch."""

    playbook: Playbook

    @property
    def summary(self) -> str:
        """What became of the attempts and of the playbook."""
        return f"{super().summary}; {len(self.playbook.bullets)} bullets"


class Reflection(NamedTuple):
    """What an attempt teaches, and which bullets helped or harmed it."""

    lesson: str
    helpful: set[str]
    harmful: set[str]


async def train_ace(training: Training) -> Playbooks:
    """Train one playbook for all problems, or one per domain, and write it."""
    plan = training.plan
    domains: tuple[Domain, ...] = ()
    members = {ALL: list(plan.train)}
    if plan.method == "domain-ace":
        domains = plan.tree.domains
        domains = domains or await training.domains_of(plan.train)
        route = partial(training.route_all, plan.train, domains)
        step = StepName("ace", "place")
        routed = await training.log.once(step, Routes, route)
        members = {domain.name: [] for domain in domains}
        for problem in plan.train:
            # A problem with two primary domains is studied in both.
            for name in routed.domains[problem.id]:
                members[name].append(problem)
    works = []
    for name, problems in members.items():
        works.append(_train_book(training, problems, name if domains else ""))
    trained = await gather_all(works)
    books = Playbooks(
        kind=plan.method,
        domains=domains,
        playbooks=dict(zip(members, trained, strict=True)),
    )
    write_atomic(plan.out / FILE, books.model_dump_json(indent=2) + "\n")
    return books


async def _train_book(
    training: Training,
    problems: Sequence[Problem],
    place: str,
) -> Playbook:
    """Return the playbook of a domain after all batches of all epochs."""
    playbook = Playbook()
    for epoch in range(1, training.plan.epochs + 1):
        ordered = shuffled(problems, training.seed_of(epoch, ADD))
        for number, start in enumerate(range(0, len(ordered), BATCH), 1):
            step = StepName("ace", "study", epoch, place, number)
            batch = ordered[start : start + BATCH]
            work = partial(_study, training, step, batch, playbook)
            studied = await training.log.once(step, Studied, work)
            playbook = studied.playbook
    return playbook


async def _study(
    training: Training,
    step: StepName,
    batch: Sequence[Problem],
    playbook: Playbook,
) -> Studied:
    """Try one batch, reflect, and curate."""
    context = Context(notes=playbook.text)
    seed = training.seed_of(step.epoch, ADD)
    tried = await training.attempt(batch, context, seed)
    works = []
    for problem, solution in zip(batch, tried, strict=True):
        # Of a right attempt only its bullets can be learned from.
        teaches = playbook.bullets or not solution.correct
        if teaches and solution.attempts[0].replied:
            works.append(_reflect(training, step, problem, solution, playbook))
    lessons = []
    for reflection in filter(None, await gather_all(works)):
        playbook = playbook.tagged(reflection.helpful, reflection.harmful)
        if reflection.lesson:
            lessons.append(reflection.lesson)
    if lessons:
        for operation in await _curate(training, step, playbook, lessons):
            playbook = playbook.changed(operation)
    right = sum(bool(solution.correct) for solution in tried)
    return Studied(right=right, of=len(tried), playbook=playbook)


async def _reflect(
    training: Training,
    step: StepName,
    problem: Problem,
    solution: Solution,
    book: Playbook,
) -> Reflection | None:
    """Return what one attempt teaches; `None` if two tries gave no usable reply."""
    verdict = "right" if solution.correct else "wrong"
    title = f"The attempt is {verdict}. It"
    parts = (
        f"The playbook:\n{fenced('notes', book.numbered)}",
        format_problem(1, problem, MAX_PROBLEM_CHARS),
        format_attempt(title, solution.attempts[0], TAIL_CHARS),
    )
    reading = await training.teacher.ask(
        f"{step} reflect {problem.id}",
        instructions("reflect", folder="ace"),
        parts,
        read_notes,
    )
    return next(iter(reading.found.values()), None)


async def _curate(
    training: Training,
    step: StepName,
    playbook: Playbook,
    lessons: Sequence[str],
) -> Iterable[Operation]:
    """Return the operations that the curator wants."""
    parts = [
        f"The playbook:\n{fenced('notes', playbook.numbered)}",
        "What was learned:",
    ]
    for number, lesson in enumerate(lessons, 1):
        parts.append(f"{number}.\n" + fenced("notes", lesson))
    reading = await training.teacher.ask(
        f"{step} curate",
        instructions("curate", folder="ace"),
        parts,
        partial(read_operations, playbook=playbook),
    )
    return reading.found.values()


def read_notes(reply: str) -> Reading[Reflection]:
    """Return the notes of a reply. An id that is both helpful and harmful counts as neither."""

    def make(block: Block) -> Reflection:
        helpful = set(_ID.findall(block.get("helpful", "")))
        harmful = set(_ID.findall(block.get("harmful", "")))
        mistake = one_line(block.get("mistake", ""))
        lesson = shortened(block["lesson"], MAX_LESSON_CHARS)
        lines = []
        for name, text in (("Mistake", mistake), ("Lesson", lesson)):
            if text.strip(" .").casefold() not in ("", "none"):
                lines.append(f"{name}: {text}")
        return Reflection(
            "\n".join(lines), helpful - harmful, harmful - helpful
        )

    return read_each(reply, NOTES, make)


def read_operations(reply: str, playbook: Playbook) -> Reading[Operation]:
    """Return the operations of a reply; an empty one changes nothing."""
    return read_each(reply, REVISION, partial(_read_operation, playbook))


def _read_operation(playbook: Playbook, block: Block) -> Operation:
    action = block["action"].upper()
    if action == "NONE":
        return Operation()
    texts = {bullet.id: bullet.text for bullet in playbook.bullets}
    if action == "REMOVE":
        ids = _ID.findall(block.get("ids", ""))
        if len(ids) != 1 or ids[0] not in texts:
            raise ValueError("REMOVE takes the id of one bullet")
        return Operation(remove=ids[0])
    if action != "ADD":
        raise ValueError("the action is ADD, REMOVE or NONE")
    text = " ".join(block["text"].split())
    if not text:
        raise ValueError("it needs the text of the bullet")
    if text in template("ace/curate"):
        raise ValueError("it is the example of the form, not a bullet")
    if len(text) > MAX_BULLET_CHARS:
        raise ValueError(f"a bullet has at most {MAX_BULLET_CHARS} characters")
    for name, other in texts.items():
        if other.casefold() == text.casefold():
            raise ValueError(f"{name} has the same text")
    return Operation(add=neutral(text))
