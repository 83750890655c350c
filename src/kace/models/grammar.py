"""Choices as a grammar llama.cpp understands, so that a reply can be nothing else."""

from __future__ import annotations

from collections.abc import Sequence


def grammar_of(choices: Sequence[str]) -> str:
    """A GBNF grammar whose only sentences are the choices. Raises `ValueError` where there is none to choose."""
    if not choices or not all(choices):
        raise ValueError("a choice needs at least one text, and no empty one")
    return "root ::= " + " | ".join(f'"{_escaped(choice)}"' for choice in dict.fromkeys(choices))


def _escaped(text: str) -> str:
    # Everything but plain words goes by number, so no character can end the literal or start an escape of its own.
    return "".join(char if char.isascii() and (char.isalnum() or char in " _") else _by_number(char) for char in text)


def _by_number(char: str) -> str:
    return f"\\U{ord(char):08X}"
