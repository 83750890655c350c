"""A playbook: short bullets with stable names and counters, the operations that change it, and its files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field, StringConstraints

from kace.baselines.training import read_artefact
from kace.cards.card import LINE, Count
from kace.cards.tree import Domain
from kace.errors import one_line
from kace.files import write_atomic
from kace.learning.steps import StepResult

Section = Literal["strategies", "formulas", "pitfalls", "checks", "other"]
SECTIONS: tuple[Section, ...] = get_args(Section)
Action = Literal["ADD", "UPDATE", "MERGE", "REMOVE"]

MAX_BULLET_CHARS = 800
FILE = "playbook.json"
PAGE = "playbook.md"
ALL = "all"  # the name of the only playbook where there are no domains


class Bullet(StepResult):
    """One line of a playbook. Its id never changes, whatever becomes of its text."""

    id: Annotated[str, StringConstraints(pattern=r"^b-[0-9]{5}$")]
    section: Section
    text: Annotated[
        str, StringConstraints(pattern=LINE, min_length=1, max_length=MAX_BULLET_CHARS)
    ]
    helpful: Count = 0
    harmful: Count = 0  # as the reflector tagged it. An opinion, not a measured effect.

    def __str__(self) -> str:
        return (
            f"[{self.id}] helpful={self.helpful} harmful={self.harmful} :: {self.text}"
        )


class Operation(StepResult):
    """A change that the curator asks for."""

    action: Action
    ids: tuple[str, ...] = ()  # the bullets it changes; none for ADD
    section: Section = "other"
    text: str = ""
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.action} {', '.join(self.ids)}".strip()


class Playbook(StepResult):
    """Bullets in the order of their ids, and the number of the next one: kept, so that no id is ever given twice."""

    bullets: tuple[Bullet, ...] = ()
    next: Annotated[int, Field(ge=1, le=99_999)] = 1

    @property
    def text(self) -> str:
        """What the solver reads. Empty where there is no bullet."""
        return self._sections(
            lambda name: f"{name.capitalize()}:", lambda bullet: f"- {bullet.text}"
        )

    @property
    def numbered(self) -> str:
        """What reflector and curator read: with ids and counters."""
        return self._sections(lambda name: f"## {name}", str)

    def tagged(self, tags: Iterable[tuple[str, bool]]) -> Playbook:
        """The playbook with its counters moved on: helpful or harmful by id; bullets that are gone are ignored."""
        bullets = {bullet.id: bullet for bullet in self.bullets}
        for name, helpful in tags:
            if bullet := bullets.get(name):
                count = "helpful" if helpful else "harmful"
                bullets[name] = bullet.model_copy(
                    update={count: getattr(bullet, count) + 1}
                )
        return self.model_copy(update={"bullets": tuple(bullets.values())})

    def without(self, ids: Iterable[str]) -> Playbook:
        """The playbook with some bullets gone."""
        gone = frozenset(ids)
        return self.model_copy(
            update={
                "bullets": tuple(
                    bullet for bullet in self.bullets if bullet.id not in gone
                )
            }
        )

    def _sections(
        self, title: Callable[[str], str], line: Callable[[Bullet], str]
    ) -> str:
        found = (
            (name, [line(bullet) for bullet in self.bullets if bullet.section == name])
            for name in SECTIONS
        )
        return "\n\n".join(
            "\n".join((title(name), *lines)) for name, lines in found if lines
        )


def applied(
    playbook: Playbook, operations: Sequence[Operation]
) -> tuple[Playbook, tuple[str, ...]]:
    """The playbook after operations in order, and the reasons of those that could not be carried out."""
    refused: list[str] = []
    for operation in operations:
        try:
            playbook = _applied(playbook, operation)
        except ValueError as error:
            refused.append(one_line(f"{operation}: {error}"))
    return playbook, tuple(refused)


def _applied(playbook: Playbook, operation: Operation) -> Playbook:
    bullets = {bullet.id: bullet for bullet in playbook.bullets}
    if missing := [name for name in operation.ids if name not in bullets]:
        raise ValueError(f"there is no bullet {missing[0]}")
    if operation.action == "REMOVE":
        return playbook.without(operation.ids)
    for bullet in playbook.bullets:
        if (
            bullet.id not in operation.ids
            and bullet.text.casefold().split() == operation.text.casefold().split()
        ):
            raise ValueError(f"{bullet.id} says the same")
    if operation.action == "ADD":
        new = Bullet(
            id=f"b-{playbook.next:05d}", section=operation.section, text=operation.text
        )
        return Playbook(bullets=(*playbook.bullets, new), next=playbook.next + 1)
    first, *rest = operation.ids
    counts = {
        name: sum(getattr(bullets[each], name) for each in operation.ids)
        for name in ("helpful", "harmful")
    }
    bullets[first] = bullets[first].model_copy(
        update={"text": operation.text, "section": operation.section, **counts}
    )
    return playbook.model_copy(update={"bullets": tuple(bullets.values())}).without(
        rest
    )


class Playbooks(StepResult):
    """One playbook for everything, or one a domain with the registry that problems are placed by."""

    v: Literal[1] = 1
    kind: Literal["ace", "domain-ace"]
    budget_tokens: int  # what each playbook was held to while it was trained
    domains: tuple[Domain, ...] = ()
    playbooks: dict[str, Playbook]

    def write(self, folder: Path) -> None:
        """Write both forms."""
        write_atomic(folder / FILE, self.model_dump_json(indent=2) + "\n")
        write_atomic(folder / PAGE, self.page)

    @property
    def page(self) -> str:
        """The playbooks as text, a line a bullet, in the form that `kace tree add` reads too."""
        lines = ["# Playbook", ""]
        for name, playbook in self.playbooks.items():
            ordered = sorted(
                playbook.bullets, key=lambda bullet: SECTIONS.index(bullet.section)
            )
            titled = [
                (name if self.kind == "domain-ace" else bullet.section, bullet)
                for bullet in ordered
            ]
            for title in dict.fromkeys(title for title, _ in titled):
                shown = (
                    str(bullet).replace("¶", "¶¶")
                    for under, bullet in titled
                    if under == title
                )
                lines += [f"## {title}", "", *shown, ""]
        return "\n".join(lines)


def read_playbooks(path: Path, kind: Literal["ace", "domain-ace"]) -> Playbooks:
    """The playbooks of a file, or of the folder that training made."""
    return read_artefact(path, FILE, Playbooks, "playbook", kind)
