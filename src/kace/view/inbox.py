"""An exchange folder as somebody finds it who is to answer: its requests, and a safe way to put down a reply.

The form of the files is that of `kace.models.exchange`. Everything is opened by its name in the folder and never
through a link, so that nothing outside is read or written whatever lies in there.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kace.errors import DataError, KaceError
from kace.io import cannot_write
from kace.view.page import NotHere

REQUEST, REPLY = ".request.md", ".reply.md"
MAX_REQUEST = 8_000_000
MAX_REPLY = 1_000_000
"""Bytes of a reply that is written here; the readers of replies take no more characters than that."""
BLANK = 256
"""A larger reply is not looked at to see whether it says anything."""
PATIENCE = 5.0
"""Seconds that a write waits for another one to the same folder."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A request of the folder, and what is known of its reply."""

    name: str
    """What the request and its reply are called, without their endings."""
    asked: float
    """When the request was written, in seconds since 1970."""
    answered: float | None
    """When the reply was; `None` while it is missing or blank."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply as it lies in the folder."""

    text: str
    mark: str
    """Tells this content from any other."""
    written: float

    @property
    def blank(self) -> bool:
        """Whether it says nothing, so that the request still waits."""
        return not self.text.strip()


class Taken(KaceError):
    """The reply is not, or not any more, what the writer has seen: nothing was written."""


class Inbox:
    """An exchange folder. Any number of threads and processes may read and write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def entries(self) -> tuple[Entry, ...]:
        """Every request: those that wait, the longest waiting first, then those answered, the newest reply first."""
        try:
            with os.scandir(self.folder) as listed:
                files = {each.name: each.stat(follow_symlinks=False) for each in listed if _is_plain(each)}
        except OSError as error:
            raise _unreadable(self.folder, error) from None
        found = [
            Entry(name, asked.st_mtime, self._answered(f"{name}{REPLY}", files.get(f"{name}{REPLY}")))
            for name, asked in ((file.removesuffix(REQUEST), info) for file, info in files.items() if _asks(file))
        ]
        waiting = sorted((each for each in found if each.answered is None), key=lambda each: (each.asked, each.name))
        done = sorted((each for each in found if each.answered is not None), key=lambda e: (-(e.answered or 0), e.name))
        return (*waiting, *done)

    def entry(self, name: str) -> Entry:
        """One request; `NotHere` where there is none of that name."""
        if not _sayable(name):
            raise NotHere("there is no such request")
        with self._opened() as folder:
            asked = _stat(folder, f"{name}{REQUEST}")
            if asked is None:
                raise NotHere(f"there is no request '{name[:80]}' in {self.folder.name}")
            return Entry(name, asked.st_mtime, self._answered(f"{name}{REPLY}", _stat(folder, f"{name}{REPLY}")))

    def request(self, name: str) -> str:
        """What a request says."""
        self.entry(name)
        with self._opened() as folder:
            raw = _read(folder, f"{name}{REQUEST}", MAX_REQUEST)
        if raw is None:
            raise NotHere(f"the request '{name[:80]}' is not there any more")
        return raw.decode("utf-8", "replace")

    def reply(self, name: str) -> Reply | None:
        """The reply to a request, where there is a file for it."""
        self.entry(name)
        with self._opened() as folder:
            return _reply(folder, f"{name}{REPLY}")

    def write(self, name: str, text: str, *, instead_of: str = "") -> None:
        """Put down a reply, whole or not at all. When this returns, a kill can no longer lose it.

        `instead_of` is the mark of the reply it replaces, empty where there is none. Whatever else lies there by now
        stays as it is, and `Taken` is raised; the same text twice is no fault.
        """
        self.entry(name)
        file, data = f"{name}{REPLY}", text.encode()
        if not text.strip():
            raise DataError("the reply is empty", fix="write something")
        if len(data) > MAX_REPLY:
            raise DataError(f"the reply is larger than {MAX_REPLY:,} bytes", fix="write less")
        with self._opened() as folder, _alone(folder, self.folder):
            there = _reply(folder, file)
            if there is not None and there.mark == _mark(data):
                return
            if (there.mark if there else "") != instead_of:
                raise Taken(f"{file} holds another reply by now", fix="read it, then decide")
            try:
                _put(folder, file, data, replace=there is not None)
            except FileExistsError:
                raise Taken(f"{file} was written just now", fix="read it, then decide") from None
            except OSError as error:
                raise cannot_write(self.folder / file, error) from None

    def _answered(self, file: str, info: os.stat_result | None) -> float | None:
        if info is None or not info.st_size:
            return None
        if info.st_size <= BLANK:
            with self._opened() as folder:
                if not (_read(folder, file, BLANK) or b"").strip():
                    return None
        return info.st_mtime

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        try:
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise _unreadable(self.folder, error) from None
        try:
            yield folder
        finally:
            os.close(folder)


def _is_plain(each: os.DirEntry[str]) -> bool:
    return each.name.endswith((REQUEST, REPLY)) and each.is_file(follow_symlinks=False)


def _asks(file: str) -> bool:
    return file.endswith(REQUEST) and _sayable(file.removesuffix(REQUEST))


def _sayable(name: str) -> bool:
    """Whether a name can stand in an address, and leads nowhere but to a file of the folder."""
    if not name or name.startswith(".") or "/" in name or "\\" in name or len(name) > 240:
        return False
    return name.isprintable()  # also no lone surrogates, which a name that is no text is read as


def _stat(folder: int, file: str) -> os.stat_result | None:
    try:
        info = os.stat(file, dir_fd=folder, follow_symlinks=False)
    except (OSError, ValueError):
        return None
    return info if stat.S_ISREG(info.st_mode) else None


def _read(folder: int, file: str, limit: int) -> bytes | None:
    """The beginning of a plain file; `None` where there is none. A pipe or a link is none."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as opened:
        return opened.read(limit) if stat.S_ISREG(os.fstat(handle).st_mode) else None


def _reply(folder: int, file: str) -> Reply | None:
    try:
        info = os.stat(file, dir_fd=folder, follow_symlinks=False)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(info.st_mode):
        raise DataError(f"{file} is no plain file", fix="remove what lies there in its place")
    raw = _read(folder, file, MAX_REQUEST)
    return None if raw is None else Reply(raw.decode("utf-8-sig", "replace"), _mark(raw), info.st_mtime)


def _mark(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _put(folder: int, file: str, data: bytes, *, replace: bool) -> None:
    """Write beside, then give it the name at once: without `replace`, only if nobody else has it."""
    temp = f".{secrets.token_hex(8)}.tmp"
    handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(handle)
        if not replace:
            _claim(folder, temp, file)
        os.replace(temp, file, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temp, dir_fd=folder)
    os.fsync(folder)


def _claim(folder: int, temp: str, file: str) -> None:
    """Take the name, or raise `FileExistsError` where somebody has it."""
    try:
        os.link(temp, file, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:  # no hard links here: an empty file is no reply to anybody, and holds the name for a moment
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=folder))


@contextlib.contextmanager
def _alone(folder: int, path: Path) -> Iterator[None]:
    """Hold the folder itself, which leaves no lock file in it, against everybody who writes replies this way."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > until:
                raise KaceError(f"{path} is being written to", fix="send it again") from None
            time.sleep(0.02)
        except OSError:
            break  # a file system without locks: a new reply still takes its name only if nobody has it
    yield  # closing the folder lets go


def _unreadable(folder: Path, error: OSError) -> NotHere:
    return NotHere(f"{folder.name} cannot be read: {(error.strerror or str(error)).lower()}")
