"""The reflector: what one attempt teaches, and which bullets helped or misled it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kace.learner.blocks import Block, Grammar, read_blocks
from kace.learner.teacher import Reading, Teacher
from kace.problem import Problem
from kace.redact import one_line
from kace.retrieval.fence import fenced, quoted_line, shortened
from kace.retrieval.prompt import template
from kace.systems.ace.playbook import Playbook, Tag

MAX_PROBLEM_CHARS, MAX_LINE_CHARS, MAX_LESSON_CHARS = 6_000, 400, 1_500
TAIL_CHARS = 3_000
"""What is shown of an attempt: its end, where it commits itself."""

NOTES = Grammar("notes", name="", required=("lesson",), optional=("mistake", "helpful", "harmful"), text="lesson")
_ID = re.compile(r"b-[0-9]{5}")


@dataclass(frozen=True, slots=True)
class Tried:
    """One attempt at a training problem."""

    problem: Problem
    text: str
    correct: bool
    answer: str | None


@dataclass(frozen=True, slots=True)
class Reflection:
    """What the reflector made of an attempt."""

    mistake: str
    lesson: str
    tags: tuple[Tag, ...]


async def reflect(name: str, tried: Tried, playbook: Playbook, teacher: Teacher) -> Reflection | None:
    """Ask about one attempt; nothing where two tries gave no usable reply. `name` says which request it is."""
    reading = await teacher.ask(name, _system(), _user(tried, playbook), lambda reply: read_notes(reply, playbook))
    return next(iter(reading.found.values()), None)


def read_notes(reply: str, playbook: Playbook) -> Reading[Reflection]:
    """The notes of a reply, as one thing; the first block counts, and ids that are no bullets do not."""
    blocks, bad = read_blocks(reply, NOTES)
    if not blocks:
        return Reading({}, bad)
    return Reading({"notes": _reflection(blocks[0], playbook)})


def _reflection(block: Block, playbook: Playbook) -> Reflection:
    helpful, harmful = (_known(block.fields.get(name, ""), playbook) for name in ("helpful", "harmful"))
    tags = [Tag(name, True) for name in helpful if name not in harmful]
    tags += [Tag(name, False) for name in harmful if name not in helpful]
    return Reflection(
        mistake=_said(one_line(block.fields.get("mistake", ""), MAX_LINE_CHARS)),
        lesson=_said(shortened(block.text, MAX_LESSON_CHARS)),
        tags=tuple(tags),
    )


def _known(listed: str, playbook: Playbook) -> tuple[str, ...]:
    return tuple(name for name in dict.fromkeys(_ID.findall(listed)) if name in playbook.ids)


def _said(text: str) -> str:
    return "" if text.strip(" .").casefold() == "none" else text


def _system() -> str:
    return f"{template('ace/preface')}\n\n{template('ace/reflect')}"


def _user(tried: Tried, playbook: Playbook) -> str:
    problem = tried.problem
    verdict = "right" if tried.correct else "wrong"
    answered = f"It answered {quoted_line(tried.answer)}" if tried.answer else "It gave no answer"
    return "\n\n".join(
        (
            f"The playbook:\n{fenced('notes', playbook.numbered or '(empty)')}",
            fenced("problem", shortened(problem.text, MAX_PROBLEM_CHARS)),
            f"Expected answer: {quoted_line(problem.answer or 'not known')}",
            f"The attempt is {verdict}. {answered}. It ends:\n{fenced('attempt', tried.text[-TAIL_CHARS:])}",
        )
    )
