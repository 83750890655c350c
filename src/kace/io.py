"""Writes that survive a kill: whole files by rename, logs by whole lines."""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

from kace.errors import KaceError


def write_atomic(path: Path, content: str | bytes) -> None:
    """Replace a file so that a reader, or a crash, sees the old content or the new and nothing between."""
    temp = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temp.open("xb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        temp.replace(path)
    except BaseException as error:  # Ctrl-C too: no litter, and the old file untouched
        with contextlib.suppress(OSError):
            temp.unlink()
        raise (cannot_write(path, error) if isinstance(error, OSError) else error) from None
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


class LineLog:
    """An append-only file of lines, each written by one system call, so that only the last can ever be torn."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            self._end = cut_torn_tail(self._fd)
        except OSError as error:
            raise cannot_write(path, error) from None

    def append(self, line: str) -> int:
        """Add one line and return the offset it begins at. A line that did not fit is taken back."""
        data, start = line.encode() + b"\n", self._end
        try:
            if os.write(self._fd, data) != len(data):
                os.ftruncate(self._fd, start)
                raise OSError(28, "no space left on device")
        except OSError as error:
            raise cannot_write(self.path, error) from None
        self._end = start + len(data)
        return start

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of the log, also those just appended."""
        return os.pread(self._fd, length, offset)

    def close(self) -> None:
        """Make what was written durable and let go. Safe to call twice."""
        if self._fd >= 0:
            os.fsync(self._fd)
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> LineLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def whole_lines(path: Path, start: int = 0) -> Iterator[tuple[int, int, bytes]]:
    """Line number, offset and content of each complete line from an offset on, numbered from there. Reads `.gz` too."""
    offset = start
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        file.seek(start)
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            yield number, offset, line[:-1]
            offset += len(line)


def cut_torn_tail(fd: int) -> int:
    """Drop the bytes after the last newline, which a killed writer left, and return the end of the file."""
    size = end = os.fstat(fd).st_size
    while end:
        start = max(0, end - 65_536)
        newline = os.pread(fd, end - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end < size:
        os.ftruncate(fd, end)
    return end


def lock_folder(folder: Path, seconds: float = 0.0) -> int:
    """Take a folder's lock, waiting so long for it. Closing the descriptor, or dying, releases it."""
    deadline = time.monotonic() + seconds
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            while not _locked(lock):
                if time.monotonic() >= deadline:
                    held, end = f"has been locked by another process for {seconds:.0f} s", "end it"
                    if not seconds:
                        held, end = "is being written by another process", "choose another --out"
                    raise KaceError(f"{folder} {held}", fix=f"wait for it, or {end}")
                time.sleep(0.002)
            return lock
        except BaseException:
            os.close(lock)
            raise
    except OSError as error:  # a file system without locks, too
        raise cannot_write(folder / "lock", error) from None


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def cannot_write(path: Path, error: OSError) -> KaceError:
    """The error of a failed write."""
    reason = (error.strerror or str(error)).lower()
    return KaceError(f"cannot write {path}: {reason}", fix="check free space and permissions, or choose another place")
