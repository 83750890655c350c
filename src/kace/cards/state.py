"""What a tree's directory holds: cards.jsonl, the journal's entries since, and what is wrong with them. Reads only.

The header of cards.jsonl carries the content hash of what follows, so that an untouched file is trusted at once, while
one that was edited by hand is checked card by card. A snapshot has the same form.
"""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from kace.cards.card import TRUSTED, Card, StrictRecord, card_line, read_card
from kace.cards.journal import (
    FORMAT,
    MAX_TREE_BYTES,
    JournalEntry,
    JournalLine,
    located,
    read_journal,
    replayed,
)
from kace.cards.tree import Domain, EpistemicTree, TreeError, domains_line
from kace.errors import DataError
from kace.files import inside, open_plain, read_plain


class Header(StrictRecord):
    """The first line of a tree's file."""

    kace_tree: int  # the version of the format
    generation: Annotated[int, Field(ge=0)]
    journal: Annotated[
        int, Field(ge=0)
    ]  # how long the journal was: where reading resumes
    frozen: str | None
    sha256: str  # the content hash of the domains here and the cards below
    domains: tuple[Domain, ...]


Stamp = tuple[
    int, int, int
]  # inode, size and time of change: tell one cards.jsonl from the next without reading it


@dataclass(frozen=True, slots=True)
class TreeState:
    """A tree as last read from disk."""

    tree: EpistemicTree
    generation: int
    journal: int  # where the journal's entries read so far end
    frozen: str | None
    trusted: bool = (
        True  # false where somebody other than this program wrote cards.jsonl
    )
    behind: int = 0  # entries that cards.jsonl does not hold yet
    stamp: Stamp | None = (
        None  # of the cards.jsonl that was read; `None` where there is none
    )


NOTHING = TreeState(EpistemicTree.of((), ()), generation=-1, journal=0, frozen=None)
"""Before the first entry of a journal."""


def state_text(state: TreeState) -> str:
    """The text of cards.jsonl, or of a snapshot."""
    place = {
        "kace_tree": FORMAT,
        "generation": state.generation,
        "journal": state.journal,
        "frozen": state.frozen,
    }
    header = Header.model_validate(
        {**place, "sha256": state.tree.content_hash(), "domains": state.tree.domains}
    )
    return "\n".join([header.model_dump_json(), *map(card_line, state.tree), ""])


def read_header(line: bytes, path: Path) -> Header:
    """The first line of a tree's file; raises `TreeError` where it cannot be one."""
    try:
        version = json.loads(line)["kace_tree"]
        if version == FORMAT:
            return Header.model_validate_json(line)
    except (
        ValueError,
        KeyError,
        TypeError,
        RecursionError,
    ):  # pydantic's is a ValueError
        fix = f"remove {path.name}: it is rebuilt from the journal beside it"
        raise TreeError(f"{path}:1: the header cannot be read", fix=fix) from None
    what = f"{path} was written by a newer kace (format {version}, this one knows {FORMAT})"
    raise TreeError(what, fix="upgrade kace")


def read_file(path: Path) -> TreeState:
    """Read cards.jsonl or a snapshot; raises `TreeError` with file and line where it cannot be one."""
    data = read_bytes(path)
    first = (data.find(b"\n") + 1) or len(data)
    header = read_header(data[:first], path)
    digest = hashlib.sha256(domains_line(header.domains).encode() + b"\n")
    digest.update(memoryview(data)[first:])
    trusted = digest.hexdigest() == header.sha256
    lines = data.split(b"\n")[1:]
    collecting = gc.isenabled()
    gc.disable()  # many objects are made that all stay; the collector would triple the time
    try:
        with located(path):
            cards: Iterable[Card] = _checked_cards(lines, path)
            with suppress(
                ValidationError
            ):  # the hash may fit a text that no version of ours wrote
                cards = (
                    [
                        Card.model_validate_json(line, context=TRUSTED)
                        for line in lines[:-1]
                    ]
                    if trusted
                    else cards
                )
            tree = EpistemicTree.of(
                header.domains, cards, header.sha256 if trusted else ""
            )
    finally:
        if collecting:
            gc.enable()
    return TreeState(tree, header.generation, header.journal, header.frozen, trusted)


def read_state(folder: Path, known: TreeState | None) -> TreeState:
    """The directory now. What is known already is kept as long as cards.jsonl is the same file."""
    path = folder / "cards.jsonl"
    journal = folder / "journal.jsonl"
    stamp = stamp_of(path)
    if known is None or known.stamp != stamp:
        known = NOTHING if stamp is None else replace(read_file(path), stamp=stamp)
        for line in () if known.trusted else read_journal(journal):
            if isinstance(line.content, str):
                raise _damaged(
                    journal,
                    line.number,
                    f"{line.content}, and cards.jsonl was changed by hand",
                )
    lines = _tail(journal, known)
    entries = [line.content for line in lines if isinstance(line.content, JournalEntry)]
    if not entries:
        return known
    tree = replayed(known.tree, entries)
    last = entries[-1]
    behind = known.behind + len(entries)
    end = lines[-1].end
    return replace(
        known,
        tree=tree,
        generation=last.generation,
        journal=end,
        frozen=last.frozen,
        behind=behind,
    )


def refuse_if_tampered(path: Path, state: TreeState) -> None:
    """Raise `TreeError` for a frozen tree that is not what was frozen."""
    if state.frozen is not None and state.frozen != (now := state.tree.content_hash()):
        what = f"{path} was changed after it was frozen ({state.frozen[:12]}, now {now[:12]})"
        fix = "restore it; where a journal lies beside cards.jsonl, remove cards.jsonl and it is rebuilt"
        raise TreeError(what, fix=fix)


def stamp_of(path: Path) -> Stamp | None:
    """The stamp of a file; `None` where there is none."""
    with located(path), suppress(FileNotFoundError):
        found = path.stat()
        return found.st_ino, found.st_size, found.st_mtime_ns
    return None


def is_tree_file(path: Path) -> bool:
    """Whether a file begins like ours rather than like the SPEC's JSON."""
    with located(path), open_plain(path) as file:
        return file.read(64).lstrip().startswith(b'{"kace_tree"')


def read_bytes(path: Path) -> bytes:
    """The file, unless it is too large or cannot be read."""
    with located(path):
        return read_plain(path, MAX_TREE_BYTES)


def check_store(folder: Path) -> list[str]:
    """Everything wrong with a store, one line each."""
    cards = folder / "cards.jsonl"
    wrong = []
    states: dict[Path, TreeState] = {}
    for path in (cards, *sorted(inside(folder, "snapshots").glob("*.jsonl"))):
        try:
            states[path] = read_file(path) if path.exists() else NOTHING
        except DataError as error:
            wrong.append(error.message)
    state = states.pop(cards, None)
    if state is not None:
        missing = f"{cards}: missing; the next change rebuilds it from the journal"
        wrong += [missing] if state is NOTHING else _wrong_cards(cards, state)
    wrong += _wrong_journal(folder / "journal.jsonl", cards, state)
    changed = (path for path, each in states.items() if not each.trusted)
    return [
        *wrong,
        *(f"{path}:1: the snapshot was changed after it was taken" for path in changed),
    ]


def _tail(journal: Path, state: TreeState) -> list[JournalLine]:
    """The entries after a state's generation, none missing; raises `TreeError` where one cannot be read."""
    stamp = stamp_of(journal)
    if stamp is not None and stamp[1] >= state.journal:
        lines = list(read_journal(journal, state.journal))
        if all(
            _generation(line) == state.generation + n
            for n, line in enumerate(lines, start=1)
        ):
            return lines
    # The journal is not the one this file was written beside (a merge, damage): find our place by generation
    lines = list(read_journal(journal))
    known = (
        n
        for n, line in enumerate(lines, start=1)
        if 0 <= _generation(line) <= state.generation
    )
    lines = lines[max(known, default=0) :]
    for generation, line in enumerate(lines, start=state.generation + 1):
        if _generation(line) != generation:
            reason = (
                line.content
                if isinstance(line.content, str)
                else f"it is generation {_generation(line)}"
            )
            raise _damaged(
                journal, line.number, f"{reason}, where generation {generation} must be"
            )
    return lines


def _generation(line: JournalLine) -> int:
    """The generation of an entry; -1 for a damaged line."""
    return line.content.generation if isinstance(line.content, JournalEntry) else -1


def _damaged(path: Path, line: int, reason: str) -> TreeError:
    return TreeError(
        f"{path}:{line}: {reason}",
        fix="restore the file, or begin again from a snapshot",
    )


def _checked_cards(lines: list[bytes], path: Path) -> Iterable[Card]:
    for number, line in enumerate(lines, start=2):
        if line.strip():
            with located(f"{path}:{number}"):
                yield read_card(line)


def _wrong_cards(path: Path, state: TreeState) -> Iterator[str]:
    for number, line in enumerate(read_bytes(path).split(b"\n")[1:-1], start=2):
        try:
            if card_line(read_card(line)).encode() != line:
                yield f"{path}:{number}: the card is not in canonical form; the next change rewrites it"
        except DataError as error:
            yield f"{path}:{number}: {error.message}"
    if not state.trusted:
        yield f"{path}:1: the cards are not those this header was written for; they were edited by hand"
    if state.frozen not in (None, state.tree.content_hash()):
        yield f"{path}:1: the tree was changed after it was frozen"


def _wrong_journal(path: Path, cards: Path, state: TreeState | None) -> Iterator[str]:
    """What is wrong with the journal, and where it disagrees with what cards.jsonl says at its generation."""
    data = read_bytes(path) if path.exists() else b""
    if torn := len(data) - (data.rfind(b"\n") + 1):
        yield f"{path}: the last line is torn ({torn} bytes); it is ignored, and cut by the next change"
    entries: list[JournalEntry] = []
    whole = True
    for line in read_journal(path):
        if isinstance(line.content, str):
            whole = False
            yield f"{path}:{line.number}: {line.content}"
            continue
        if line.content.generation != len(entries) and whole:
            whole = False
            yield f"{path}:{line.number}: generation {line.content.generation} follows {len(entries) - 1}"
        entries.append(line.content)
    if not entries:
        yield f"{path}: no entries; the history is lost"
    elif whole and state is not None and state.generation >= len(entries):
        yield f"{cards}:1: it is at generation {state.generation}, the journal ends at {len(entries) - 1}"
    elif whole and state is not None and state.generation >= 0:
        with suppress(DataError):
            tree = replayed(NOTHING.tree, entries[: state.generation + 1])
            if (tree, entries[state.generation].frozen) != (state.tree, state.frozen):
                yield f"{cards}: it is not the tree that the journal leads to at generation {state.generation}"
