"""Prompts: text files, filled in one place, known by their hash.

What all attempts share comes first (the instructions), then what a problem's attempts share (its text), then what
differs between them (the lens), so that provider and server prefix caches hit.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from kace.models.base import Message, Role
from kace.tiers import Lens


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered prompt and the hash of the templates it came from."""

    messages: tuple[Message, ...]
    hash: str


def solver_prompt(problem: str, lens: Lens | None) -> Prompt:
    """The prompt of one attempt."""
    instructions, finish = template("solve"), template("finish")
    steer = template(f"lens_{lens.value}") if lens else ""
    # A small model follows what it read last: the form of the answer is asked for once more, after the lens.
    user = "\n\n".join(part for part in (problem.strip(), steer, finish) if part)
    return Prompt(
        messages=(Message(Role.SYSTEM, instructions), Message(Role.USER, user)),
        hash=_digest(instructions, steer, finish),
    )


@cache
def template(name: str) -> str:
    """The text of `prompts/NAME.md`."""
    return files("kace").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8").strip()


def template_hashes() -> dict[str, str]:
    """Every template and its hash, for a run's manifest."""
    names = sorted(
        p.name.removesuffix(".md") for p in files("kace").joinpath("prompts").iterdir() if p.name.endswith(".md")
    )
    return {name: _digest(template(name)) for name in names}


@cache
def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]
