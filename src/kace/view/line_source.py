"""Lines of a file that may still grow, read in order once and at any offset later, compressed or not."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from bisect import bisect_right
from pathlib import Path
from typing import BinaryIO, NamedTuple

CHUNK = 1 << 20
"""Bytes read at a time."""
STRIDE = 1 << 21
"""Decompressed bytes between two places from which a compressed file can be read on."""
SPANS = 4
"""Stretches of that length that are kept, since lines that are asked for together lie together."""
GZIP = zlib.MAX_WBITS | 16


class FoundLine(NamedTuple):
    """A whole line, without its newline, and the offset it begins at."""

    offset: int
    content: bytes


class LineSource(ABC):
    """A file of lines. It is opened for each read and never held open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.taken = 0
        """Bytes of the file that `more` is past."""
        self._node = self._stat()[1]
        self._ended = 0
        """The file's size when `more` last found nothing: a line that is never finished is not looked for again."""

    def more(self) -> list[FoundLine]:
        """The next whole lines, some megabytes at most; nothing at the end, which a later call may find moved."""
        size = self.size
        try:
            with self.path.open("rb") as file:
                found = self._more(file)
        except OSError:
            found = []
        if not found:
            self._ended = size
        return found

    def line_at(self, offset: int) -> bytes:
        """The line that begins at an offset that `more` gave; nothing where the file is gone."""
        try:
            with self.path.open("rb") as file:
                return self._line_at(file, offset)
        except OSError:
            return b""

    @property
    def size(self) -> int:
        """Bytes of the file now."""
        return self._stat()[0]

    @property
    def grown(self) -> bool:
        """Whether `more` may find something."""
        size = self.size
        return size > self.taken and size != self._ended

    @property
    def replaced(self) -> bool:
        """Whether this is no longer the file that was read: another one, or one that was cut."""
        size, node = self._stat()
        return size < self.taken or (self.taken > 0 and node != self._node)

    def _stat(self) -> tuple[int, int]:
        try:
            found = self.path.stat()
        except OSError:
            return 0, 0
        return found.st_size, found.st_ino

    @abstractmethod
    def _more(self, file: BinaryIO) -> list[FoundLine]: ...

    @abstractmethod
    def _line_at(self, file: BinaryIO, offset: int) -> bytes: ...


def line_source(path: Path) -> LineSource:
    """The lines of a file, which is compressed where its name ends in `.gz`."""
    return _Compressed(path) if path.suffix == ".gz" else _Plain(path)


class _Plain(LineSource):
    def _more(self, file: BinaryIO) -> list[FoundLine]:
        file.seek(self.taken)
        chunk = file.read(CHUNK)
        if b"\n" not in chunk:
            chunk += file.readline()  # a line longer than a chunk, or a last one that is not finished
        found, rest = _split(chunk, self.taken)
        self.taken += len(chunk) - len(rest)
        return found

    def _line_at(self, file: BinaryIO, offset: int) -> bytes:
        file.seek(offset)
        return file.readline().removesuffix(b"\n")


class _Compressed(LineSource):
    """Keeps the state of the decompression every few megabytes, so that no line is far from a place to begin at."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._stream = _Inflating()
        self._tail = b""
        self._places = [self._stream.copy()]
        self._spans: dict[int, tuple[int, bytes]] = {}
        """The text of a span, and the size that the file had when it was read."""

    def _more(self, file: BinaryIO) -> list[FoundLine]:
        while piece := self._stream.piece(file):
            begin = self._stream.given - len(piece) - len(self._tail)
            found, self._tail = _split(self._tail + piece, begin)
            self.taken = self._stream.taken
            if self._stream.given - self._places[-1].given >= STRIDE:
                self._places.append(self._stream.copy())
            if found:
                return found
        self.taken = self._stream.taken
        return []

    def _line_at(self, file: BinaryIO, offset: int) -> bytes:
        place = bisect_right(self._places, offset, key=lambda known: known.given) - 1
        begin = self._places[place].given
        text = self._span(file, place)
        if (end := text.find(b"\n", offset - begin)) >= 0:
            return text[offset - begin : end]
        return self._from(file, place, offset)

    def _span(self, file: BinaryIO, place: int) -> bytes:
        """The text between two places, or as much as there is so far after the last."""
        size, (known, text) = self.size, self._spans.get(place, (-1, b""))
        if len(text) >= STRIDE or known == size:  # the last span grows with its file
            return text
        stream, text = self._places[place].copy(), b""
        while len(text) < STRIDE and (piece := stream.piece(file)):
            text += piece
        self._spans[place] = size, text
        while len(self._spans) > SPANS:
            self._spans.pop(next(iter(self._spans)), None)
        return text

    def _from(self, file: BinaryIO, place: int, offset: int) -> bytes:
        """A line that goes on beyond its span."""
        stream, text = self._places[place].copy(), b""
        while piece := stream.piece(file):
            begin = stream.given - len(piece)
            text += piece[max(0, offset - begin) :]
            if b"\n" in text:
                break
        return text.partition(b"\n")[0]


class _Inflating:
    """A gzip stream at some place: bytes taken of the file, and bytes given."""

    def __init__(self) -> None:
        self.taken = self.given = 0
        self._state = zlib.decompressobj(GZIP)

    def copy(self) -> _Inflating:
        other = _Inflating()
        other.taken, other.given, other._state = self.taken, self.given, self._state.copy()
        return other

    def piece(self, file: BinaryIO) -> bytes:
        """The next bytes; nothing at the end, or where the file is damaged."""
        while True:
            file.seek(self.taken)
            packed = file.read(CHUNK // 16)
            try:
                text = self._state.decompress(packed, CHUNK)
            except zlib.error:
                return b""
            used = len(packed) - len(self._state.unconsumed_tail) - len(self._state.unused_data)
            if self._state.eof:  # files made by appending are several streams in a row
                self._state = zlib.decompressobj(GZIP)
            self.taken += used
            self.given += len(text)
            if text or not used:
                return text


def _split(text: bytes, begin: int) -> tuple[list[FoundLine], bytes]:
    """The whole lines of a text, and what is left of it."""
    lines = text.split(b"\n")
    found = []
    for line in lines[:-1]:
        found.append(FoundLine(begin, line))
        begin += len(line) + 1
    return found, lines[-1]
