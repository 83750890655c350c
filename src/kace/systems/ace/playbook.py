"""A playbook: short bullets with stable names and counters, and the operations that change it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import Field, StringConstraints

from kace.learner.verdicts import Kept
from kace.redact import one_line
from kace.tree.card_text import LINE

Section = Literal["strategies", "formulas", "pitfalls", "checks", "other"]
SECTIONS: tuple[Section, ...] = get_args(Section)
MAX_BULLET_CHARS = 800

Action = Literal["ADD", "UPDATE", "MERGE", "REMOVE"]
Count = Annotated[int, Field(ge=0, le=1 << 53)]


class Bullet(Kept):
    """One line of a playbook. Its id never changes, whatever becomes of its text."""

    id: Annotated[str, StringConstraints(pattern=r"^b-[0-9]{5}$")]
    section: Section
    text: Annotated[str, StringConstraints(pattern=LINE, min_length=1, max_length=MAX_BULLET_CHARS)]
    helpful: Count = 0
    harmful: Count = 0
    """As the reflector tagged it. An opinion, not a measured effect."""

    @property
    def worth(self) -> int:
        """By how much it was called helpful more often than harmful."""
        return self.helpful - self.harmful


class Operation(Kept):
    """A change that the curator asks for."""

    action: Action
    ids: tuple[str, ...] = ()
    """The bullets it changes; none for ADD."""
    section: Section = "other"
    text: str = ""
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.action} {', '.join(self.ids)}".strip()


class Tag(NamedTuple):
    """What the reflector said of one bullet."""

    id: str
    helpful: bool


class Playbook(Kept):
    """Bullets in the order of their ids, and the number of the next one: kept, so that no id is ever given twice."""

    bullets: tuple[Bullet, ...] = ()
    next: Annotated[int, Field(ge=1, le=99_999)] = 1

    @property
    def ids(self) -> frozenset[str]:
        """The names of all bullets."""
        return frozenset(bullet.id for bullet in self.bullets)

    @property
    def text(self) -> str:
        """What the solver reads. Empty where there is no bullet."""
        return self._sections(lambda bullet: f"- {bullet.text}", "")

    @property
    def numbered(self) -> str:
        """What reflector and curator read: with ids and counters."""
        return self._sections(
            lambda bullet: f"[{bullet.id}] helpful={bullet.helpful} harmful={bullet.harmful} :: {bullet.text}", "## "
        )

    def tagged(self, tags: Iterable[Tag]) -> Playbook:
        """The playbook with its counters moved on; tags of bullets that are gone are ignored."""
        bullets = {bullet.id: bullet for bullet in self.bullets}
        for tag in tags:
            if bullet := bullets.get(tag.id):
                name = "helpful" if tag.helpful else "harmful"
                bullets[tag.id] = bullet.model_copy(update={name: getattr(bullet, name) + 1})
        return self.model_copy(update={"bullets": tuple(bullets.values())})

    def without(self, ids: Iterable[str]) -> Playbook:
        """The playbook with some bullets gone."""
        gone = frozenset(ids)
        return self.model_copy(update={"bullets": tuple(bullet for bullet in self.bullets if bullet.id not in gone)})

    @property
    def weakest(self) -> Bullet:
        """The bullet to give up first: the one with the worst counts, the oldest where they are equal."""
        return min(self.bullets, key=lambda bullet: (bullet.worth, bullet.helpful, bullet.id))

    def _sections(self, line: Callable[[Bullet], str], mark: str) -> str:
        parts = []
        for section in SECTIONS:
            if lines := [line(bullet) for bullet in self.bullets if bullet.section == section]:
                parts.append("\n".join((f"{mark}{section}" if mark else f"{section.capitalize()}:", *lines)))
        return "\n\n".join(parts)


def applied(playbook: Playbook, operations: Sequence[Operation]) -> tuple[Playbook, tuple[str, ...]]:
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
    others = [bullet for name, bullet in bullets.items() if name not in operation.ids]
    if twin := next((bullet for bullet in others if _folded(bullet.text) == _folded(operation.text)), None):
        raise ValueError(f"{twin.id} says the same")
    if operation.action == "ADD":
        new = Bullet(id=f"b-{playbook.next:05d}", section=operation.section, text=operation.text)
        return Playbook(bullets=(*playbook.bullets, new), next=playbook.next + 1)
    first, *rest = (bullets[name] for name in operation.ids)
    bullets[first.id] = first.model_copy(
        update={
            "text": operation.text,
            "section": operation.section,
            "helpful": first.helpful + sum(bullet.helpful for bullet in rest),
            "harmful": first.harmful + sum(bullet.harmful for bullet in rest),
        }
    )
    changed = playbook.model_copy(update={"bullets": tuple(bullets.values())})
    return changed.without(bullet.id for bullet in rest)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
