"""ACE: a playbook of short bullets that the solver, a reflector and a curator write.

The solver tries a batch, the reflector studies each attempt, and the curator changes the playbook. Batches follow one
another; the calls of one batch run side by side, and so do playbooks of different domains. A batch is one step of the
record, and is not done again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple, cast, get_args

from pydantic import Field, StringConstraints

from kace.baselines.evaluate import MethodSettings, Training, read_artefact
from kace.baselines.systems import FixedText, System
from kace.cards.card import LINE, Count
from kace.cards.tree import Domain
from kace.errors import one_line
from kace.files import write_atomic
from kace.ladder.prompt import (
    Context,
    fenced,
    neutral,
    quoted_line,
    shortened,
    template,
)
from kace.ladder.record import Solution
from kace.ladder.retrieve import TokenCounter
from kace.learning import StepResult
from kace.learning.study import Routes, StepName, gather_all
from kace.learning.teacher import (
    BadBlock,
    Block,
    Grammar,
    Reading,
    read_blocks,
    shuffled,
)
from kace.problems import Problem

# The playbook

Section = Literal["strategies", "formulas", "pitfalls", "checks", "other"]
SECTIONS: tuple[Section, ...] = get_args(Section)
Action = Literal["ADD", "UPDATE", "MERGE", "REMOVE"]
Kind = Literal["ace", "domain-ace"]

MAX_BULLET_CHARS = 800
FILE = "playbook.json"
PAGE = "playbook.md"
ALL = "all"  # the name of the only playbook if there are no domains


class Bullet(StepResult):
    """One line of a playbook. Its id never changes, whatever its text becomes."""

    id: Annotated[str, StringConstraints(pattern=r"^b-[0-9]{5}$")]
    section: Section
    text: Annotated[
        str,
        StringConstraints(
            pattern=LINE,
            min_length=1,
            max_length=MAX_BULLET_CHARS,
        ),
    ]
    # As the reflector tagged it: an opinion, not a measured effect.
    helpful: Count = 0
    harmful: Count = 0

    def __str__(self) -> str:
        counts = f"helpful={self.helpful} harmful={self.harmful}"
        return f"[{self.id}] {counts} :: {self.text}"


class Operation(StepResult):
    """A change that the curator wants."""

    action: Action
    ids: tuple[str, ...] = ()  # the bullets it changes; none for ADD
    section: Section = "other"
    text: str = ""
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.action} {', '.join(self.ids)}".strip()


class Playbook(StepResult):
    """Bullets in the order of their ids, and the next id's number, so that no id is ever given twice."""

    bullets: tuple[Bullet, ...] = ()
    next: Annotated[int, Field(ge=1, le=99_999)] = 1

    @property
    def text(self) -> str:
        """What the solver reads. Empty without a bullet."""
        return self._format("{}:", numbered=False)

    @property
    def numbered(self) -> str:
        """What reflector and curator read: with ids and counters."""
        return self._format("## {}", numbered=True)

    @property
    def ids(self) -> frozenset[str]:
        """The ids of its bullets."""
        return frozenset(bullet.id for bullet in self.bullets)

    def tagged(self, tags: Iterable[tuple[str, bool]]) -> Playbook:
        """Return the playbook with counters raised: helpful or harmful, by id. Unknown ids are ignored."""
        bullets = {bullet.id: bullet for bullet in self.bullets}
        for name, helpful in tags:
            if name in bullets:
                count = "helpful" if helpful else "harmful"
                raised = {count: getattr(bullets[name], count) + 1}
                bullets[name] = bullets[name].model_copy(update=raised)
        return self._with(bullets.values())

    def without(self, ids: Iterable[str]) -> Playbook:
        """Return the playbook without some bullets."""
        gone = frozenset(ids)
        return self._with(
            bullet for bullet in self.bullets if bullet.id not in gone
        )

    def _with(self, bullets: Iterable[Bullet]) -> Playbook:
        return self.model_copy(update={"bullets": tuple(bullets)})

    def _format(
        self,
        title: str,
        numbered: bool,
    ) -> str:
        blocks = []
        for section in SECTIONS:
            name = section if numbered else section.capitalize()
            lines = [title.format(name)]
            for bullet in self.bullets:
                if bullet.section == section:
                    lines.append(
                        str(bullet) if numbered else f"- {bullet.text}"
                    )
            if len(lines) > 1:
                blocks.append("\n".join(lines))
        return "\n\n".join(blocks)


def apply_operations(
    playbook: Playbook, operations: Sequence[Operation]
) -> tuple[Playbook, tuple[str, ...]]:
    """Return the playbook after operations in order, and the reasons of those that could not be applied."""
    refused: list[str] = []
    for operation in operations:
        try:
            playbook = _apply(playbook, operation)
        except ValueError as error:
            refused.append(one_line(f"{operation}: {error}"))
    return playbook, tuple(refused)


def _apply(playbook: Playbook, operation: Operation) -> Playbook:
    for name in operation.ids:
        if name not in playbook.ids:
            raise ValueError(f"there is no bullet {name}")
    if operation.action == "REMOVE":
        return playbook.without(operation.ids)
    spoken = operation.text.casefold().split()
    for bullet in playbook.bullets:
        if (
            bullet.id not in operation.ids
            and bullet.text.casefold().split() == spoken
        ):
            raise ValueError(f"{bullet.id} has the same text")
    if operation.action == "ADD":
        name = f"b-{playbook.next:05d}"
        new = Bullet(
            id=name,
            section=operation.section,
            text=operation.text,
        )
        return Playbook(
            bullets=(*playbook.bullets, new), next=playbook.next + 1
        )
    bullets = {bullet.id: bullet for bullet in playbook.bullets}
    merged = [bullets[name] for name in operation.ids]
    first, *rest = operation.ids
    bullets[first] = Bullet(
        id=first,
        section=operation.section,
        text=operation.text,
        helpful=sum(bullet.helpful for bullet in merged),
        harmful=sum(bullet.harmful for bullet in merged),
    )
    return playbook._with(bullets.values()).without(rest)


class Playbooks(StepResult):
    """One playbook for everything, or one per domain with the registry that problems are routed by."""

    v: Literal[1] = 1
    kind: Kind
    budget_tokens: int  # that each playbook was held to while it was trained
    domains: tuple[Domain, ...] = ()
    playbooks: dict[str, Playbook]

    def write(self, folder: Path) -> None:
        """Write both forms."""
        write_atomic(folder / FILE, self.model_dump_json(indent=2) + "\n")
        write_atomic(folder / PAGE, self.page)

    @property
    def page(self) -> str:
        """The playbooks as text, for reading."""
        parts = ["# Playbook"]
        for name, playbook in self.playbooks.items():
            parts += [f"# {name}", playbook.numbered]
        return "\n\n".join(parts) + "\n"


def read_playbooks(path: Path, kind: Kind) -> Playbooks:
    """Read the playbooks of a file, or of the folder that training made."""
    return read_artefact(path, FILE, Playbooks, "playbook", kind)


# Training

NONE = "NONE"
MAX_PROBLEM_CHARS = 6_000
MAX_LINE_CHARS = 400
MAX_LESSON_CHARS = 1_500
MAX_REASON_CHARS = 300
TAIL_CHARS = (
    3_000  # shown of an attempt: its end, where it commits to an answer
)

NOTES = Grammar(
    "notes",
    name="",
    required=("lesson",),
    optional=("mistake", "helpful", "harmful"),
    text="lesson",
)
REVISION = Grammar(
    "revision",
    "",
    required=("action",),
    optional=("ids", "section", "reason", "text"),
    text="text",
)
_ID = re.compile(r"b-[0-9]{5}")


class AceSettings(MethodSettings):
    """How a playbook is trained."""

    EXTENT: ClassVar[frozenset[str]] = frozenset({"epochs"})

    # Problems between two calls of the curator.
    batch: Annotated[int, Field(ge=1, le=1_000)] = 8
    # Of a playbook, as the solver reads it.
    budget_tokens: Annotated[int, Field(ge=100, le=100_000)] = 2_000


class Studied(StepResult):
    """The result of one batch."""

    right: int
    wrong: int
    failed: int  # attempts without a reply; there is nothing to learn from them
    silent: int  # attempts on which the reflector gave nothing usable
    operations: tuple[Operation, ...] = ()
    refused: tuple[
        str, ...
    ] = ()  # what the curator wrote in vain, with the reason
    dropped: tuple[str, ...] = ()  # bullets given up for the budget
    tokens: int
    estimated: bool
    playbook: Playbook

    @property
    def summary(self) -> str:
        """What became of the attempts and of the playbook."""
        counts = f"{self.right} right, {self.wrong} wrong, {self.failed} failed"
        changes = (
            f"{len(self.operations)} changes ({len(self.refused)} refused)"
        )
        size = f"{len(self.playbook.bullets)} bullets, {self.tokens} tokens"
        return f"{counts}; {changes}; {size}"


class Reflection(NamedTuple):
    """What the reflector made of an attempt, and which bullets helped it."""

    mistake: str
    lesson: str
    tags: tuple[tuple[str, bool], ...]


async def train_ace(training: Training) -> Playbooks:
    """Train one playbook for all problems, or one per domain, and write it to the plan's folder."""
    plan = training.plan
    settings = plan.settings
    assert isinstance(settings, AceSettings)
    domains: tuple[Domain, ...] = ()
    members = {ALL: list(plan.train)}
    if plan.method == "domain-ace":
        domains = await training.domains()
    if domains:
        route = partial(training.route_all, plan.train, domains)
        routed = await training.log.once(
            StepName("ace", "place"), Routes, route
        )
        members = {domain.name: [] for domain in domains}
        for problem in plan.train:
            # A problem with two primary domains is studied in both.
            for name in routed.domains[problem.id]:
                if name in members:
                    members[name].append(problem)
    measure = TokenCounter(training.session.kit.model)
    works = []
    for name, problems in members.items():
        course = Course(training, settings, measure, name if domains else "")
        works.append(course.train(problems))
    trained = await gather_all(works)
    books = Playbooks(
        kind=cast(Kind, plan.method),
        budget_tokens=settings.budget_tokens,
        domains=domains,
        playbooks=dict(zip(members, trained, strict=True)),
    )
    books.write(plan.out)
    return books


def batches(
    problems: Sequence[Problem],
    size: int,
    seed: int,
) -> Iterator[tuple[Problem, ...]]:
    """Yield the problems in a shuffled order, `size` at a time."""
    ordered = shuffled(problems, seed)
    for start in range(0, len(ordered), size):
        yield tuple(ordered[start : start + size])


@dataclass(frozen=True, slots=True)
class Course:
    """The training of one playbook."""

    training: Training
    settings: AceSettings
    measure: TokenCounter
    place: str = ""  # the domain; empty for a playbook for all

    async def train(self, problems: Sequence[Problem]) -> Playbook:
        """Return the playbook after all batches of all epochs."""
        playbook = Playbook()
        log = self.training.log
        for epoch in range(1, self.settings.epochs + 1):
            found = batches(
                problems, self.settings.batch, self.training.seed(epoch)
            )
            for number, batch in enumerate(found, 1):
                step = StepName("ace", "study", epoch, self.place, number)
                work = partial(self._study, step, batch, playbook)
                playbook = (await log.once(step, Studied, work)).playbook
        return playbook

    async def _study(
        self,
        step: StepName,
        batch: Sequence[Problem],
        playbook: Playbook,
    ) -> Studied:
        """Try one batch, reflect, curate, and hold the playbook to its budget."""
        tried = await self._try(step, batch, playbook)
        replied = [each for each in tried if each[1].attempts[0].replied]
        # Of a right attempt only its bullets can be learned from: without any there is nothing to ask.
        studied = [
            each for each in replied if not each[1].correct or playbook.bullets
        ]
        reflections = await gather_all(
            self._reflect(step, problem, solution, playbook)
            for problem, solution in studied
        )
        tags: list[tuple[str, bool]] = []
        lessons = []
        silent = 0
        for (_, solution), reflection in zip(studied, reflections, strict=True):
            if reflection is None:
                silent += 1
                continue
            tags += reflection.tags
            if not solution.correct and (
                reflection.mistake or reflection.lesson
            ):
                lessons.append(reflection)
        tagged = playbook.tagged(tags)
        operations, unusable = await self._curate(step, tagged, lessons)
        changed, refused = apply_operations(tagged, operations)
        kept, dropped = await trimmed(
            changed, self.settings.budget_tokens, self.measure
        )
        size = await self.measure(kept.text)
        right = sum(bool(solution.correct) for _, solution in replied)
        return Studied(
            right=right,
            wrong=len(replied) - right,
            failed=len(tried) - len(replied),
            silent=silent,
            operations=operations,
            refused=(*unusable, *refused),
            dropped=dropped,
            tokens=size.tokens,
            estimated=size.estimated,
            playbook=kept,
        )

    async def _try(
        self,
        step: StepName,
        batch: Sequence[Problem],
        playbook: Playbook,
    ) -> list[tuple[Problem, Solution]]:
        """Solve each problem of a batch once, with the playbook."""
        source = FixedText(Context(notes=playbook.text), self.measure)
        system = System("generator", source, attempts=1)
        kit = replace(
            self.training.session.kit, seed=self.training.seed(step.epoch)
        )
        solutions = await gather_all(
            system.solve(problem, kit) for problem in batch
        )
        return list(zip(batch, solutions, strict=True))

    async def _reflect(
        self,
        step: StepName,
        problem: Problem,
        solution: Solution,
        book: Playbook,
    ) -> Reflection | None:
        """Return what one attempt teaches; `None` if two tries gave no usable reply."""
        attempt = solution.attempts[0]
        verdict = "right" if solution.correct else "wrong"
        answered = "It gave no answer"
        if attempt.answer:
            answered = f"It answered {quoted_line(attempt.answer)}"
        ending = fenced("attempt", attempt.text[-TAIL_CHARS:])
        parts = (
            f"The playbook:\n{fenced('notes', book.numbered or '(empty)')}",
            fenced("problem", shortened(problem.text, MAX_PROBLEM_CHARS)),
            f"Expected answer: {quoted_line(problem.answer or 'not known')}",
            f"The attempt is {verdict}. {answered}. It ends:\n{ending}",
        )
        reading = await self.training.teacher.ask(
            f"{step} reflect {problem.id}",
            _system("reflect"),
            "\n\n".join(parts),
            partial(read_notes, playbook=book),
        )
        return next(iter(reading.found.values()), None)

    async def _curate(
        self,
        step: StepName,
        playbook: Playbook,
        lessons: Sequence[Reflection],
    ) -> tuple[tuple[Operation, ...], tuple[str, ...]]:
        """Return the operations that the curator wants, and what it wrote in vain."""
        if not lessons:
            return (), ()
        size = await self.measure(playbook.text)
        parts = [
            f"Budget: {self.settings.budget_tokens} tokens. Now used: {size.tokens}.",
            f"The playbook:\n{fenced('notes', playbook.numbered or '(empty)')}",
            "What was learned:",
        ]
        for number, reflection in enumerate(lessons, 1):
            lines = []
            if reflection.mistake:
                lines.append(f"Mistake: {reflection.mistake}")
            if reflection.lesson:
                lines.append(f"Lesson: {reflection.lesson}")
            parts.append(f"{number}.\n" + fenced("notes", "\n".join(lines)))
        reading = await self.training.teacher.ask(
            f"{step} curate",
            _system("curate"),
            "\n\n".join(parts),
            partial(read_operations, playbook=playbook),
        )
        wanted = [each for each in reading.found.values() if each is not None]
        return tuple(wanted), tuple(str(bad) for bad in reading.bad)


async def trimmed(
    playbook: Playbook,
    budget: int,
    measure: TokenCounter,
) -> tuple[Playbook, tuple[str, ...]]:
    """Return the playbook within its budget, and the bullets given up: the worst counts first, then the oldest."""

    def worth(bullet: Bullet) -> tuple[int, int, str]:
        return bullet.helpful - bullet.harmful, bullet.helpful, bullet.id

    gone: list[str] = []
    while playbook.bullets and (await measure(playbook.text)).tokens > budget:
        worst = min(playbook.bullets, key=worth)
        gone.append(worst.id)
        playbook = playbook.without([worst.id])
    return playbook, tuple(gone)


def read_notes(reply: str, playbook: Playbook) -> Reading[Reflection]:
    """Return the first notes of a reply. Ids that are no bullets, or both helpful and harmful, are left out."""
    blocks, bad = read_blocks(reply, NOTES)
    if not blocks:
        return Reading({}, bad)
    block = blocks[0]
    helpful = _ids(block.fields, "helpful")
    harmful = _ids(block.fields, "harmful")
    tags = []
    for name in (*helpful, *harmful):
        if name in playbook.ids and (name in helpful) != (name in harmful):
            tags.append((name, name in helpful))
    mistake = one_line(block.fields.get("mistake", ""), MAX_LINE_CHARS)
    lesson = shortened(block.text, MAX_LESSON_CHARS)
    found = Reflection(_unless_none(mistake), _unless_none(lesson), tuple(tags))
    return Reading({"notes": found})


def read_operations(
    reply: str, playbook: Playbook
) -> Reading[Operation | None]:
    """Return the operations of a reply by name; `NONE` is one that changes nothing."""
    blocks, bad = read_blocks(reply, REVISION)
    found: dict[str, Operation | None] = {}
    wrong = list(bad)
    for block in blocks:
        # Names an operation during repair: the same for the same block, whatever its place.
        content = f"{block.fields.get('ids', '')}\x1f{block.text}"
        digest = hashlib.sha256(content.encode()).hexdigest()
        name = f"{block.fields['action'].upper()} {digest[:8]}"
        try:
            found[name] = _read_operation(block, playbook)
        except ValueError as error:
            wrong.append(BadBlock(block.line, name, str(error)))
    wrong.sort(key=lambda each: each.line)
    return Reading(found, tuple(wrong))


def _read_operation(block: Block, playbook: Playbook) -> Operation | None:
    action = block.fields["action"].upper()
    if action == NONE:
        return None
    if action not in get_args(Action):
        raise ValueError(
            f"the action is {', '.join(get_args(Action))} or {NONE}"
        )
    ids = _ids(block.fields, "ids")
    if action == "MERGE" and len(ids) < 2:
        raise ValueError("MERGE names 2 or more of the ids shown in ids")
    count = 0 if action == "ADD" else 1
    if action != "MERGE" and len(ids) != count:
        raise ValueError(f"{action} names {count} of the ids shown in ids")
    for name in ids:
        if name not in playbook.ids:
            raise ValueError(
                f"there is no bullet {name}; copy the id between the square brackets"
            )
    text = ""
    if action != "REMOVE":
        text = _read_text(block, action)
    section = block.fields.get("section", "").lower()
    return Operation(
        action=cast(Action, action),
        ids=ids,
        section=section if section in SECTIONS else "other",
        text=neutral(text),
        reason=one_line(block.fields.get("reason", ""), MAX_REASON_CHARS),
    )


def _read_text(block: Block, action: str) -> str:
    text = " ".join(block.text.split())
    if not text:
        raise ValueError(f"{action} needs the text of the bullet")
    if text in template("ace/curate"):
        raise ValueError("it is the example of the form, not a bullet")
    if len(text) > MAX_BULLET_CHARS:
        raise ValueError(
            f"the text has {len(text)} characters; a bullet has at most {MAX_BULLET_CHARS}"
        )
    return text


def _ids(fields: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_ID.findall(fields.get(name, ""))))


def _unless_none(text: str) -> str:
    return "" if text.strip(" .").casefold() == "none" else text


def _system(name: str) -> str:
    return f"{template('ace/preface')}\n\n{template(f'ace/{name}')}"
