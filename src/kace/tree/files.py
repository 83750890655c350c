"""A tree in one file: our own form (a header line, then one canonical card a line), or the SPEC's JSON.

The header carries the content hash of what follows, so that an untouched file is trusted at once, while one that was
edited by hand is checked card by card.
"""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kace.errors import DataError
from kace.tree.card import UNIVERSAL, Card, card_line, card_of, read_card, read_json, trusted_card
from kace.tree.journal import FORMAT, newer
from kace.tree.tree import Domain, EpistemicTree, TreeError, domain_of, domains_line

MAX_TREE_BYTES = 1 << 30
SPEC_FORMS = 'a list of cards, or {"domains": [...], "cards": [...]}'


class Header(BaseModel):
    """The first line of a tree's file."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    kace_tree: int
    """The version of the format."""
    generation: Annotated[int, Field(ge=0)]
    journal: Annotated[int, Field(ge=0)]
    """How long the journal was: where to go on reading."""
    frozen: str | None
    sha256: str
    """The content hash of the domains here and the cards below."""
    domains: tuple[Domain, ...]


@dataclass(frozen=True, slots=True)
class Image:
    """What a tree's file holds."""

    tree: EpistemicTree
    generation: int
    journal: int
    frozen: str | None
    trusted: bool
    """False where somebody other than this program wrote it."""


NOTHING = Image(EpistemicTree.of((), ()), generation=-1, journal=0, frozen=None, trusted=True)
"""Before the first entry of a journal."""


def image_text(image: Image) -> str:
    """The file's text."""
    header = Header(
        kace_tree=FORMAT,
        generation=image.generation,
        journal=image.journal,
        frozen=image.frozen,
        sha256=image.tree.content_hash(),
        domains=image.tree.domains,
    )
    return "\n".join([header.model_dump_json(), *map(card_line, image.tree), ""])


def read_image(path: Path) -> Image:
    """Read a tree's file; raises `TreeError` with file and line where it cannot be one."""
    data = read_bytes(path)
    first = (data.find(b"\n") + 1) or len(data)
    header = _header(data[:first], path)
    digest = hashlib.sha256(domains_line(header.domains).encode() + b"\n")
    digest.update(memoryview(data)[first:])
    trusted = digest.hexdigest() == header.sha256
    lines = data.split(b"\n")[1:]
    with _no_collection(), _located(path):
        if trusted:
            tree = EpistemicTree.hashed(header.domains, _trusted_cards(lines, path), header.sha256)
        else:
            tree = EpistemicTree.of(header.domains, _checked_cards(lines, path))
    return Image(tree, header.generation, header.journal, header.frozen, trusted)


def read_spec_json(path: Path) -> EpistemicTree:
    """Read the SPEC's JSON form. A bare list of cards names its own domains."""
    data = read_bytes(path)
    with _located(path):
        value = read_json(data)
        listed, values = (None, value) if isinstance(value, list) else _parts(value)
        cards = list(_numbered(values))
        return EpistemicTree.of(domains_named(cards) if listed is None else map(domain_of, listed), cards)


def _parts(value: object) -> tuple[list[object] | None, list[object]]:
    """The lists of domains and of cards in the SPEC's object."""
    if isinstance(value, dict) and "cards" in value and set(value) <= {"domains", "cards"}:
        domains, cards = value.get("domains"), value["cards"]
        if isinstance(cards, list) and (domains is None or isinstance(domains, list)):
            return domains, cards
    raise TreeError("not a tree", fix=f"give {SPEC_FORMS}")


def _numbered(values: list[object]) -> Iterator[Card]:
    for number, value in enumerate(values, start=1):
        with _located(f"card {number}"):
            yield card_of(value)


def domains_named(cards: list[Card]) -> tuple[Domain, ...]:
    """A registry of the domains that cards are tagged with, for cards that come without one."""
    names = sorted({tag for card in cards for tag in card.domain_tags} - {UNIVERSAL})
    return tuple(Domain(name=name, description=name.replace("_", " ")) for name in names)


def is_image(path: Path) -> bool:
    """Whether a file begins like ours rather than like the SPEC's JSON."""
    try:
        with path.open("rb") as file:
            return file.read(64).lstrip().startswith(b'{"kace_tree"')
    except OSError as error:
        raise cannot_read(path, error) from None


def read_bytes(path: Path) -> bytes:
    """The file, unless it is too large or cannot be read."""
    try:
        if path.stat().st_size > MAX_TREE_BYTES:
            raise TreeError(f"{path} is larger than {MAX_TREE_BYTES >> 20} MiB", fix="is it a tree?")
        return path.read_bytes()
    except OSError as error:
        raise cannot_read(path, error) from None


def cannot_read(path: Path, error: OSError) -> DataError:
    """The operator's line for a failed read."""
    return TreeError(f"cannot read {path}: {(error.strerror or str(error)).lower()}", fix="check the path")


def _header(line: bytes, path: Path) -> Header:
    try:
        version = json.loads(line)["kace_tree"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _damaged(path, 1, "the header cannot be read") from None
    if version != FORMAT:
        raise newer(path, version)
    try:
        return Header.model_validate_json(line)
    except ValidationError:
        raise _damaged(path, 1, "the header cannot be read") from None


def _trusted_cards(lines: list[bytes], path: Path) -> Iterable[Card]:
    try:
        return [trusted_card(line) for line in lines[:-1]]
    except ValidationError:  # the hash fits the text, yet no version of ours wrote it
        return _checked_cards(lines, path)


def _checked_cards(lines: list[bytes], path: Path) -> Iterator[Card]:
    for number, line in enumerate(lines, start=2):
        if line.strip():
            with _located(f"{path}:{number}"):
                yield read_card(line)


def _damaged(path: Path, line: int, what: str) -> TreeError:
    return TreeError(f"{path}:{line}: {what}", fix=f"remove {path.name}: it is rebuilt from the journal beside it")


@contextmanager
def _located(where: Path | str) -> Iterator[None]:
    """Puts the place in front of what is refused inside, unless a closer place stands there already."""
    try:
        yield
    except DataError as error:
        if error.message.startswith(str(where)):
            raise
        raise type(error)(f"{where}: {error.message}", fix=error.fix) from None


@contextmanager
def _no_collection() -> Iterator[None]:
    """Holds the garbage collector off while many objects are made that all stay; it would triple the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
