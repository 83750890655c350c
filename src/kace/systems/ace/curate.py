"""The curator: how the playbook changes after a batch, within a budget that code enforces."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast, get_args

from kace.learner.blocks import BadBlock, Block, Grammar, read_blocks
from kace.learner.teacher import Reading, Teacher
from kace.redact import one_line
from kace.retrieval.fence import fenced, neutral
from kace.retrieval.prompt import template
from kace.systems.ace.playbook import MAX_BULLET_CHARS, SECTIONS, Action, Operation, Playbook
from kace.systems.ace.reflect import Reflection
from kace.systems.measure import Measure

NONE = "NONE"
MAX_REASON_CHARS = 300

REVISION = Grammar(
    "revision", name="", required=("action",), optional=("ids", "section", "reason", "text"), text="text"
)
_ID = re.compile(r"b-[0-9]{5}")


@dataclass(frozen=True, slots=True)
class Desk:
    """The playbook as the curator finds it, and what it may weigh."""

    playbook: Playbook
    tokens: int
    budget: int


async def curate(
    name: str, desk: Desk, learned: Sequence[Reflection], teacher: Teacher
) -> tuple[tuple[Operation, ...], tuple[str, ...]]:
    """The operations asked for, and what in the reply could not be used. `name` says which request it is."""
    reading = await teacher.ask(name, _system(), _user(desk, learned), lambda reply: read_operations(reply, desk))
    wanted = tuple(operation for operation in reading.found.values() if operation is not None)
    return wanted, tuple(f"{bad.name}: {bad.reason}" if bad.name else bad.reason for bad in reading.bad)


def read_operations(reply: str, desk: Desk) -> Reading[Operation | None]:
    """The operations of a reply by name; `NONE` is one that changes nothing."""
    blocks, bad = read_blocks(reply, REVISION)
    found: dict[str, Operation | None] = {}
    wrong = list(bad)
    for block in blocks:
        name = _name(block)
        try:
            found[name] = _operation(block, desk.playbook)
        except ValueError as error:
            wrong.append(BadBlock.of(block, name, str(error)))
    return Reading(found, tuple(sorted(wrong, key=lambda each: each.line)))


async def trimmed(playbook: Playbook, budget: int, measure: Measure) -> tuple[Playbook, tuple[str, ...]]:
    """The playbook within its budget, whatever the curator did, and the bullets given up for it."""
    gone: list[str] = []
    while playbook.bullets and (await measure(playbook.text)).tokens > budget:
        gone.append(playbook.weakest.id)
        playbook = playbook.without(gone[-1:])
    return playbook, tuple(gone)


def _operation(block: Block, playbook: Playbook) -> Operation | None:
    action = block.fields["action"].upper()
    if action == NONE:
        return None
    if action not in get_args(Action):
        raise ValueError(f"the action is {', '.join(get_args(Action))} or {NONE}")
    ids = tuple(dict.fromkeys(_ID.findall(block.fields.get("ids", ""))))
    least, most = {"ADD": (0, 0), "MERGE": (2, len(playbook.bullets))}.get(action, (1, 1))
    if not least <= len(ids) <= most:
        raise ValueError(f"{action} names {least if least == most else f'{least} or more'} of the ids shown in ids")
    if unknown := [name for name in ids if name not in playbook.ids]:
        raise ValueError(f"there is no bullet {unknown[0]}; copy the id between the square brackets")
    text = " ".join(block.text.split())
    if action == "REMOVE":
        text = ""
    elif not text:
        raise ValueError(f"{action} needs the text of the bullet")
    elif text in template("ace/curate"):
        raise ValueError("it is the example of the form, not a bullet")
    elif len(text) > MAX_BULLET_CHARS:
        raise ValueError(f"the text has {len(text)} characters; a bullet has at most {MAX_BULLET_CHARS}")
    section = block.fields.get("section", "").lower()
    return Operation(
        action=cast(Action, action),
        ids=ids,
        section=next((known for known in SECTIONS if known == section), "other"),
        text=neutral(text),
        reason=one_line(block.fields.get("reason", ""), MAX_REASON_CHARS),
    )


def _name(block: Block) -> str:
    """What an operation is called while its reply is mended: the same for the same block, whatever its place."""
    said = f"{block.fields.get('ids', '')}\x1f{block.text}"
    return f"{block.fields['action'].upper()} {hashlib.sha256(said.encode()).hexdigest()[:8]}"


def _system() -> str:
    return f"{template('ace/preface')}\n\n{template('ace/curate')}"


def _user(desk: Desk, learned: Sequence[Reflection]) -> str:
    notes = [_note(number, reflection) for number, reflection in enumerate(learned, 1)]
    return "\n\n".join(
        (
            f"Budget: {desk.budget} tokens. Now used: {desk.tokens}.",
            f"The playbook:\n{fenced('notes', desk.playbook.numbered or '(empty)')}",
            "What was learned:",
            *notes,
        )
    )


def _note(number: int, reflection: Reflection) -> str:
    lines = [f"Mistake: {reflection.mistake}"] if reflection.mistake else []
    lines += [f"Lesson: {reflection.lesson}"] if reflection.lesson else []
    return f"{number}.\n" + fenced("notes", "\n".join(lines))
