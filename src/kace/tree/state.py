"""What a tree's directory holds now: the checkpoint in cards.jsonl and the journal's entries since. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kace.tree.files import NOTHING, Image, cannot_read, read_image
from kace.tree.journal import Damage, Entry, JournalLine, read_journal, redone
from kace.tree.tree import TreeError


class Stamp(NamedTuple):
    """Tells one cards.jsonl from the next without reading it."""

    inode: int
    size: int
    changed: int


@dataclass(frozen=True, slots=True)
class State:
    """A store as last read."""

    image: Image
    """The tree now; its `journal` is where the entries read so far end."""
    behind: int
    """Entries that cards.jsonl does not hold yet."""
    stamp: Stamp | None
    """Of the cards.jsonl that was read; `None` where there is none."""


def read_state(folder: Path, known: State | None) -> State:
    """The store now. What is known already is kept as long as cards.jsonl is the same file."""
    stamp = stamp_of(folder / "cards.jsonl")
    if known is None or known.stamp != stamp:
        known = State(_image(folder), 0, stamp)
    lines = _tail(folder / "journal.jsonl", known.image)
    entries = [line.content for line in lines if isinstance(line.content, Entry)]
    if not entries:
        return known
    last = entries[-1]
    tree = redone(known.image.tree, entries)
    image = Image(tree, last.generation, lines[-1].end, last.frozen, trusted=known.image.trusted)
    return State(image, known.behind + len(entries), stamp)


def refuse_if_tampered(path: Path, image: Image) -> None:
    """Raise `TreeError` for a frozen tree that is not what was frozen."""
    if image.frozen is not None and image.tree.content_hash() != image.frozen:
        raise TreeError(
            f"{path} was changed after it was frozen ({image.frozen[:12]}, now {image.tree.content_hash()[:12]})",
            fix="restore it; where a journal lies beside cards.jsonl, remove cards.jsonl and it is rebuilt",
        )


def stamp_of(path: Path) -> Stamp | None:
    """The stamp of a file; `None` where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise cannot_read(path, error) from None
    return Stamp(found.st_ino, found.st_size, found.st_mtime_ns)


def _image(folder: Path) -> Image:
    """What cards.jsonl holds. One that was edited by hand needs a journal without damage beside it."""
    path = folder / "cards.jsonl"
    image = NOTHING if stamp_of(path) is None else read_image(path)
    if not image.trusted:
        journal = folder / "journal.jsonl"
        for line in read_journal(journal):
            if isinstance(line.content, Damage):
                raise _damaged(journal, line.number, f"{line.content.reason}, and cards.jsonl was changed by hand")
    return image


def _tail(journal: Path, image: Image) -> list[JournalLine]:
    """The entries after an image's generation, none missing; raises `TreeError` where one cannot be read."""
    stamp = stamp_of(journal)
    if stamp is not None and stamp.size >= image.journal:
        lines = list(read_journal(journal, image.journal))
        if all(_is(line, image.generation + n) for n, line in enumerate(lines, start=1)):
            return lines
    # The journal is not the one this file was written beside (a merge, damage): find our place by generation.
    lines = list(read_journal(journal))
    known = (n for n, line in enumerate(lines, start=1) if _is_upto(line, image.generation))
    lines = lines[max(known, default=0) :]
    for generation, line in enumerate(lines, start=image.generation + 1):
        if not _is(line, generation):
            found = line.content
            reason = f"it is generation {found.generation}" if isinstance(found, Entry) else found.reason
            raise _damaged(journal, line.number, f"{reason}, where generation {generation} must stand")
    return lines


def _is(line: JournalLine, generation: int) -> bool:
    return isinstance(line.content, Entry) and line.content.generation == generation


def _is_upto(line: JournalLine, generation: int) -> bool:
    return isinstance(line.content, Entry) and line.content.generation <= generation


def _damaged(path: Path, line: int, reason: str) -> TreeError:
    return TreeError(f"{path}:{line}: {reason}", fix="restore the file, or begin again from a snapshot")
