"""ACE training: the solver tries a batch, the reflector studies each attempt, the curator changes the playbook.

Batches follow one another; what is in one runs side by side, and so do playbooks of different domains. A batch is one
step of the record: what was done is not done again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar, Literal, NamedTuple, cast, get_args

from pydantic import Field

from kace.baselines.parts import FixedText, System
from kace.baselines.playbook import (
    ALL,
    MAX_BULLET_CHARS,
    SECTIONS,
    Action,
    Operation,
    Playbook,
    Playbooks,
    applied,
)
from kace.baselines.training import MethodSettings, Training
from kace.cards.tree import Domain
from kace.errors import one_line
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
from kace.learning.steps import StepName, StepResult, gather_all
from kace.learning.study import Routes
from kace.learning.teacher import (
    BadBlock,
    Block,
    Grammar,
    Reading,
    read_blocks,
    shuffled,
)
from kace.problems import Problem

NONE = "NONE"
MAX_PROBLEM_CHARS = 6_000
MAX_LINE_CHARS = 400
MAX_LESSON_CHARS = 1_500
MAX_REASON_CHARS = 300
TAIL_CHARS = 3_000  # what is shown of an attempt: its end, where it commits itself

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

    batch: Annotated[int, Field(ge=1, le=1_000)] = (
        8  # problems between two visits of the curator
    )
    budget_tokens: Annotated[int, Field(ge=100, le=100_000)] = (
        2_000  # of a playbook, as the solver reads it
    )


class Studied(StepResult):
    """What became of one batch."""

    right: int
    wrong: int
    failed: int  # attempts that gave no reply; there is nothing to learn from them
    silent: int  # attempts on which the reflector said nothing usable
    operations: tuple[Operation, ...] = ()
    refused: tuple[
        str, ...
    ] = ()  # what the curator said and could not be used, with the reason
    dropped: tuple[str, ...] = ()  # bullets given up for the budget
    tokens: int
    estimated: bool
    playbook: Playbook

    @property
    def summary(self) -> str:
        """Return what became of the attempts and of the playbook."""
        counts = f"{self.right} right, {self.wrong} wrong, {self.failed} failed"
        changes = f"{len(self.operations)} changes ({len(self.refused)} refused)"
        size = f"{len(self.playbook.bullets)} bullets, {self.tokens} tokens"
        return f"{counts}; {changes}; {size}"


class Reflection(NamedTuple):
    """What the reflector made of an attempt, and which bullets helped it."""

    mistake: str
    lesson: str
    tags: tuple[tuple[str, bool], ...]


async def train_ace(training: Training) -> Playbooks:
    """One playbook for all problems, or one a domain, written to the plan's folder."""
    plan = training.plan
    settings = training.plan.settings
    assert isinstance(settings, AceSettings)
    kind: Literal["ace", "domain-ace"] = "ace" if plan.method == "ace" else "domain-ace"
    domains: tuple[Domain, ...] = ()
    members = {ALL: plan.train}
    if kind == "domain-ace" and (domains := await training.domains()):
        step = StepName("ace", "place")
        routed = (
            await training.log.once(
                step, Routes, lambda: training.route_all(plan.train, domains)
            )
        ).domains
        # A problem with two primary domains is studied in both.
        members = {
            each.name: tuple(p for p in plan.train if each.name in routed[p.id])
            for each in domains
        }
    measure = TokenCounter(training.session.kit.model)
    courses = [
        Course(training, settings, measure, name if domains else "") for name in members
    ]
    works = (
        course.train(problems)
        for course, problems in zip(courses, members.values(), strict=True)
    )
    trained = dict(zip(members, await gather_all(works), strict=True))
    books = Playbooks(
        kind=kind,
        budget_tokens=settings.budget_tokens,
        domains=domains,
        playbooks=trained,
    )
    books.write(plan.out)
    return books


def batches(
    problems: Sequence[Problem], size: int, seed: int
) -> Iterator[tuple[Problem, ...]]:
    """The problems in an order of no meaning, so many at a time."""
    ordered = shuffled(problems, seed)
    return (
        tuple(ordered[start : start + size]) for start in range(0, len(ordered), size)
    )


@dataclass(frozen=True, slots=True)
class Course:
    """The training of one playbook."""

    training: Training
    settings: AceSettings
    measure: TokenCounter
    place: str = ""  # the domain; empty where there is one playbook for all

    async def train(self, problems: Sequence[Problem]) -> Playbook:
        """The playbook after all batches of all epochs."""
        playbook = Playbook()
        for epoch in range(1, self.settings.epochs + 1):
            for number, batch in enumerate(
                batches(problems, self.settings.batch, self.training.seed(epoch)), 1
            ):
                step = StepName("ace", "study", epoch, self.place, number)
                work = partial(self._study, step, batch, playbook)
                playbook = (await self.training.log.once(step, Studied, work)).playbook
        return playbook

    async def _study(
        self, step: StepName, batch: Sequence[Problem], playbook: Playbook
    ) -> Studied:
        """One batch: try, reflect, curate, and hold the playbook to its budget."""
        source = FixedText(Context(notes=playbook.text), self.measure)
        generator = System("generator", source, attempts=1)
        kit = replace(self.training.session.kit, seed=self.training.seed(step.epoch))
        solutions = await gather_all(generator.solve(problem, kit) for problem in batch)
        pairs = zip(batch, solutions, strict=True)
        tried = [
            (problem, solution)
            for problem, solution in pairs
            if solution.attempts[0].replied
        ]
        # Of a right attempt only its bullets can be learned from: without any there is nothing to ask.
        asked = [
            (problem, solution)
            for problem, solution in tried
            if not solution.correct or playbook.bullets
        ]
        said = await gather_all(self._reflect(step, *each, playbook) for each in asked)
        heard = [reflection for reflection in said if reflection]
        tagged = playbook.tagged(tag for reflection in heard for tag in reflection.tags)
        lessons = [
            each
            for (_, solution), each in zip(asked, said, strict=True)
            if each and not solution.correct
        ]
        operations, unusable = await self._curate(step, tagged, lessons)
        changed, refused = applied(tagged, operations)
        kept, dropped = await trimmed(
            changed, self.settings.budget_tokens, self.measure
        )
        size = await self.measure(kept.text)
        return Studied(
            right=sum(bool(solution.correct) for _, solution in tried),
            wrong=sum(not solution.correct for _, solution in tried),
            failed=len(solutions) - len(tried),
            silent=len(asked) - len(heard),
            operations=operations,
            refused=(*unusable, *refused),
            dropped=dropped,
            tokens=size.tokens,
            estimated=size.estimated,
            playbook=kept,
        )

    async def _reflect(
        self, step: StepName, problem: Problem, solution: Solution, book: Playbook
    ) -> Reflection | None:
        """What one attempt teaches; nothing where two tries gave no usable reply."""
        attempt = solution.attempts[0]
        verdict = "right" if solution.correct else "wrong"
        answered = (
            f"It answered {quoted_line(attempt.answer)}"
            if attempt.answer
            else "It gave no answer"
        )
        asked = (
            f"The playbook:\n{fenced('notes', book.numbered or '(empty)')}",
            fenced("problem", shortened(problem.text, MAX_PROBLEM_CHARS)),
            f"Expected answer: {quoted_line(problem.answer or 'not known')}",
            f"The attempt is {verdict}. {answered}. It ends:\n{fenced('attempt', attempt.text[-TAIL_CHARS:])}",
        )
        name = f"{step} reflect {problem.id}"
        read = partial(read_notes, playbook=book)
        reading = await self.training.teacher.ask(
            name, _system("reflect"), "\n\n".join(asked), read
        )
        return next(iter(reading.found.values()), None)

    async def _curate(
        self, step: StepName, playbook: Playbook, learned: Sequence[Reflection]
    ) -> tuple[tuple[Operation, ...], tuple[str, ...]]:
        lessons = [
            reflection
            for reflection in learned
            if reflection.mistake or reflection.lesson
        ]
        if not lessons:
            return (), ()
        size = await self.measure(playbook.text)
        asked = (
            f"Budget: {self.settings.budget_tokens} tokens. Now used: {size.tokens}.",
            f"The playbook:\n{fenced('notes', playbook.numbered or '(empty)')}",
            "What was learned:",
            *(
                _note(number, reflection)
                for number, reflection in enumerate(lessons, 1)
            ),
        )
        read = partial(read_operations, playbook=playbook)
        reading = await self.training.teacher.ask(
            f"{step} curate", _system("curate"), "\n\n".join(asked), read
        )
        wanted = tuple(
            operation for operation in reading.found.values() if operation is not None
        )
        return wanted, tuple(map(str, reading.bad))


async def trimmed(
    playbook: Playbook, budget: int, measure: TokenCounter
) -> tuple[Playbook, tuple[str, ...]]:
    """The playbook within its budget, and the bullets given up for it: the worst counts first, then the oldest."""
    gone: list[str] = []
    while playbook.bullets and (await measure(playbook.text)).tokens > budget:
        gone.append(
            min(
                playbook.bullets, key=lambda b: (b.helpful - b.harmful, b.helpful, b.id)
            ).id
        )
        playbook = playbook.without(gone[-1:])
    return playbook, tuple(gone)


def read_notes(reply: str, playbook: Playbook) -> Reading[Reflection]:
    """The notes of a reply, as one thing; the first block counts, and ids that are no bullets do not."""
    blocks, bad = read_blocks(reply, NOTES)
    if not blocks:
        return Reading({}, bad)
    fields = blocks[0].fields
    known = {bullet.id for bullet in playbook.bullets}
    helpful, harmful = (_ids(fields, name) for name in ("helpful", "harmful"))
    tags = [
        (name, name in helpful)
        for name in (*helpful, *harmful)
        if (name in helpful) != (name in harmful)
    ]
    said = (
        one_line(fields.get("mistake", ""), MAX_LINE_CHARS),
        shortened(blocks[0].text, MAX_LESSON_CHARS),
    )
    mistake, lesson = (
        "" if text.strip(" .").casefold() == "none" else text for text in said
    )
    return Reading(
        {
            "notes": Reflection(
                mistake, lesson, tuple(tag for tag in tags if tag[0] in known)
            )
        }
    )


def read_operations(reply: str, playbook: Playbook) -> Reading[Operation | None]:
    """The operations of a reply by name; `NONE` is one that changes nothing."""
    blocks, bad = read_blocks(reply, REVISION)
    found: dict[str, Operation | None] = {}
    wrong = list(bad)
    for block in blocks:
        # What an operation is called while its reply is mended: the same for the same block, whatever its place.
        said = hashlib.sha256(
            f"{block.fields.get('ids', '')}\x1f{block.text}".encode()
        ).hexdigest()
        name = f"{block.fields['action'].upper()} {said[:8]}"
        try:
            found[name] = _operation(block, playbook)
        except ValueError as error:
            wrong.append(BadBlock.of(block, name, str(error)))
    return Reading(found, tuple(sorted(wrong, key=lambda each: each.line)))


def _operation(block: Block, playbook: Playbook) -> Operation | None:
    action = block.fields["action"].upper()
    ids = _ids(block.fields, "ids")
    if action == NONE:
        return None
    if action not in get_args(Action):
        raise ValueError(f"the action is {', '.join(get_args(Action))} or {NONE}")
    least, most = {"ADD": (0, 0), "MERGE": (2, len(playbook.bullets))}.get(
        action, (1, 1)
    )
    if not least <= len(ids) <= most:
        raise ValueError(
            f"{action} names {least if least == most else f'{least} or more'} of the ids shown in ids"
        )
    if unknown := [
        name for name in ids if name not in {bullet.id for bullet in playbook.bullets}
    ]:
        raise ValueError(
            f"there is no bullet {unknown[0]}; copy the id between the square brackets"
        )
    text = "" if action == "REMOVE" else " ".join(block.text.split())
    if not text and action != "REMOVE":
        raise ValueError(f"{action} needs the text of the bullet")
    if text and text in template("ace/curate"):
        raise ValueError("it is the example of the form, not a bullet")
    if len(text) > MAX_BULLET_CHARS:
        raise ValueError(
            f"the text has {len(text)} characters; a bullet has at most {MAX_BULLET_CHARS}"
        )
    section = block.fields.get("section", "").lower()
    return Operation(
        action=cast(Action, action),
        ids=ids,
        section=next((known for known in SECTIONS if known == section), "other"),
        text=neutral(text),
        reason=one_line(block.fields.get("reason", ""), MAX_REASON_CHARS),
    )


def _ids(fields: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_ID.findall(fields.get(name, ""))))


def _system(name: str) -> str:
    return f"{template('ace/preface')}\n\n{template(f'ace/{name}')}"


def _note(number: int, reflection: Reflection) -> str:
    said = {"Mistake": reflection.mistake, "Lesson": reflection.lesson}
    return f"{number}.\n" + fenced(
        "notes", "\n".join(f"{name}: {text}" for name, text in said.items() if text)
    )
