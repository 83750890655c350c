"""Whether a tree on disk is whole: every card under every rule, and a journal that leads to exactly this tree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kace.errors import DataError
from kace.tree.card import card_line, read_card
from kace.tree.files import NOTHING, Image, read_bytes, read_image
from kace.tree.journal import Entry, read_journal, redone, torn_bytes
from kace.tree.tree import EpistemicTree


def check_store(folder: Path) -> list[str]:
    """Everything wrong with a store, one line each."""
    return [*_cards(folder / "cards.jsonl"), *_journal(folder), *_snapshots(folder / "snapshots")]


def _cards(path: Path) -> Iterator[str]:
    if not path.exists():
        yield f"{path}: missing; the next change rebuilds it from the journal"
        return
    try:
        lines = read_bytes(path).split(b"\n")
        image = read_image(path)
    except DataError as error:
        yield error.message
        return
    for number, line in enumerate(lines[1:-1], start=2):
        try:
            if card_line(read_card(line)).encode() != line:
                yield f"{path}:{number}: the card is not in canonical form; the next change rewrites it"
        except DataError as error:
            yield f"{path}:{number}: {error.message}"
    if not image.trusted:
        yield f"{path}:1: the cards are not those this header was written for; they were edited by hand"
    if image.frozen not in (None, image.tree.content_hash()):
        yield f"{path}:1: the tree was changed after it was frozen"


def _journal(folder: Path) -> Iterator[str]:
    path = folder / "journal.jsonl"
    if torn := torn_bytes(path):
        yield f"{path}: the last line is torn ({torn} bytes); it is ignored, and cut by the next change"
    entries: list[Entry] = []
    whole = True
    for line in read_journal(path):
        if isinstance(line.content, Entry):
            if line.content.generation != len(entries) and whole:
                whole = False
                yield f"{path}:{line.number}: generation {line.content.generation} follows {len(entries) - 1}"
            entries.append(line.content)
        else:
            whole = False
            yield f"{path}:{line.number}: {line.content.reason}"
    if not entries:
        yield f"{path}: no entries; the history is lost"
    elif whole:
        yield from _agreement(folder, entries)


def _agreement(folder: Path, entries: list[Entry]) -> Iterator[str]:
    """What the journal says against what cards.jsonl says, at the generation of the latter."""
    path = folder / "cards.jsonl"
    try:
        image = read_image(path) if path.exists() else NOTHING
        tree = redone(NOTHING.tree, entries[: image.generation + 1])
    except DataError:
        return  # named where the cards are read
    if image.generation >= len(entries):
        yield f"{path}:1: it is at generation {image.generation}, the journal ends at {len(entries) - 1}"
    elif image.generation >= 0 and _differs(tree, image, entries):
        yield f"{path}: it is not the tree that the journal leads to at generation {image.generation}"


def _differs(tree: EpistemicTree, image: Image, entries: list[Entry]) -> bool:
    return tree != image.tree or image.frozen != entries[image.generation].frozen


def _snapshots(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*.jsonl")):
        try:
            if not read_image(path).trusted:
                yield f"{path}:1: the snapshot was changed after it was taken"
        except DataError as error:
            yield error.message
