"""What ACE training leaves: playbook.json, which systems read, and playbook.md, which people read."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from kace.errors import DataError
from kace.io import write_atomic
from kace.learner.verdicts import Kept
from kace.systems.ace.playbook import SECTIONS, Bullet, Playbook
from kace.tree.tree import Domain

FILE = "playbook.json"
PAGE = "playbook.md"
ALL = "all"
"""The name of the only playbook where there are no domains."""
MAX_BYTES = 16_000_000


class Playbooks(Kept):
    """One playbook for everything, or one a domain with the registry that problems are placed by."""

    v: Literal[1] = 1
    kind: Literal["ace", "domain-ace"]
    budget_tokens: int
    """What each playbook was held to while it was trained."""
    domains: tuple[Domain, ...] = ()
    playbooks: dict[str, Playbook]


def write_playbooks(folder: Path, books: Playbooks) -> None:
    """Write both forms."""
    write_atomic(folder / FILE, books.model_dump_json(indent=2) + "\n")
    write_atomic(folder / PAGE, page_of(books))


def read_playbooks(path: Path, kind: Literal["ace", "domain-ace"]) -> Playbooks:
    """The playbooks of a file, or of the folder that training made."""
    file = path / FILE if path.is_dir() else path
    fix = f"name what kace train {kind} made"
    try:
        if file.stat().st_size > MAX_BYTES:
            raise DataError(f"{file}: larger than {MAX_BYTES // 1_000_000} MB", fix=fix)
        books = Playbooks.model_validate_json(file.read_bytes())
    except OSError as error:
        raise DataError(f"{file}: {(error.strerror or str(error)).lower()}", fix=fix) from None
    except ValidationError as error:
        raise DataError(f"{file}: not a playbook ({error.errors()[0]['msg'].lower()})", fix=fix) from None
    if books.kind != kind:
        raise DataError(f"{file}: made by kace train {books.kind}, not by kace train {kind}", fix=fix)
    return books


def page_of(books: Playbooks) -> str:
    """The playbooks as text, a line a bullet, in the form that `kace tree import` reads too."""
    lines = ["# Playbook", ""]
    for name, playbook in books.playbooks.items():
        sections = {str(section): [b for b in playbook.bullets if b.section == section] for section in SECTIONS}
        if books.kind == "domain-ace":
            sections = {name: [bullet for bullets in sections.values() for bullet in bullets]}
        for title, bullets in sections.items():
            if bullets:
                lines += [f"## {title}", "", *map(_line, bullets), ""]
    return "\n".join(lines)


def _line(bullet: Bullet) -> str:
    return f"[{bullet.id}] helpful={bullet.helpful} harmful={bullet.harmful} :: {bullet.text.replace('¶', '¶¶')}"
