"""An exchange folder for whoever answers: its requests, and a safe way to write a reply. No link is ever followed."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kace.errors import DataError, KaceError
from kace.files import cannot_write, opened, sync
from kace.report.page import NotHere

REQUEST = ".request.md"
REPLY = ".reply.md"
MAX_REQUEST = 8_000_000
MAX_REPLY = 1_000_000  # bytes that are written; the readers of replies take no more characters than that
BLANK = 256  # bytes up to which a reply is read to see whether it says anything
PATIENCE = 5.0  # seconds that a write waits for another one to the same folder
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class RequestFile(NamedTuple):
    """A request of the folder by its name without ending, and when it and its reply were written, since 1970."""

    name: str
    asked: float
    answered: float | None  # while the reply is missing or blank


class ReplyTaken(KaceError):
    """The reply is not, or no longer, what the writer has seen: nothing was written."""


class Inbox:
    """An exchange folder. Any number of threads and processes may read and write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def entries(self) -> tuple[RequestFile, ...]:
        """Every request: those that wait, the longest waiting first, then those answered, the newest reply first."""
        with self._opened() as folder, os.scandir(folder) as listed:
            names = [
                each.name.removesuffix(REQUEST)
                for each in listed
                if each.name.endswith(REQUEST)
            ]
            found = [entry for name in names if (entry := _entry(folder, name))]
        order = (
            (
                (1, -e.answered, e.name)
                if e.answered is not None
                else (0, e.asked, e.name),
                e,
            )
            for e in found
        )
        return tuple(entry for _, entry in sorted(order))

    def entry(self, name: str) -> RequestFile:
        """One request; `NotHere` where there is none of that name."""
        with self._opened() as folder:
            if found := _entry(folder, name):
                return found
        raise NotHere(f"there is no request '{name[:80]}' in {self.folder.name}")

    def request(self, name: str) -> str:
        """What a request says."""
        self.entry(name)
        with self._opened() as folder:
            if (raw := _read(folder, f"{name}{REQUEST}", MAX_REQUEST)) is None:
                raise NotHere(f"the request '{name[:80]}' is not there any more")
        return raw.decode("utf-8", "replace")

    def reply(self, name: str) -> tuple[str, str] | None:
        """The reply to a request and its digest, where there is a file for it."""
        self.entry(name)
        with self._opened() as folder:
            return _reply(folder, f"{name}{REPLY}")

    def write(self, name: str, text: str, *, instead_of: str = "") -> None:
        """Write a reply, whole or not at all; once this returns, a kill cannot lose it. The same twice is no fault.

        `instead_of` is the digest of the reply it may replace. Any other that is there by now raises `ReplyTaken`.
        """
        self.entry(name)
        file = f"{name}{REPLY}"
        data = text.encode()
        if not text.strip():
            raise DataError("the reply is empty", fix="write something")
        if len(data) > MAX_REPLY:
            raise DataError(
                f"the reply is larger than {MAX_REPLY:,} bytes", fix="write less"
            )
        with self._opened() as folder:
            _lock(folder, self.folder)  # closing the folder releases it
            there = _reply(folder, file)
            if there and there[1] == hashlib.sha256(data).hexdigest():
                return
            if (there[1] if there else "") != instead_of:
                raise ReplyTaken(
                    f"{file} holds another reply by now", fix="read it, then decide"
                )
            try:
                _put(folder, file, data, replace=there is not None)
            except FileExistsError:
                raise ReplyTaken(
                    f"{file} was written just now", fix="read it, then decide"
                ) from None
            except OSError as error:
                raise cannot_write(self.folder / file, error) from None

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        try:
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                yield folder
            finally:
                os.close(folder)
        except OSError as error:
            raise NotHere(
                f"{self.folder.name} cannot be read: {(error.strerror or str(error)).lower()}"
            ) from None


def _entry(folder: int, name: str) -> RequestFile | None:
    """The request of a name that can be part of an address and leads nowhere but to a plain file of the folder."""
    if (
        name[:1] in ("", ".")
        or "/" in name
        or "\\" in name
        or len(name) > 240
        or not name.isprintable()
    ):
        return None  # lone surrogates, which a name that is no text is read as, cannot be printed
    asked = _stat(folder, f"{name}{REQUEST}")
    reply = _stat(folder, f"{name}{REPLY}")
    if asked is None or not stat.S_ISREG(asked.st_mode):
        return None
    blank = reply is None or (
        reply.st_size <= BLANK
        and not (_read(folder, f"{name}{REPLY}", BLANK) or b"").strip()
    )
    answered = (
        reply.st_mtime if reply and stat.S_ISREG(reply.st_mode) and not blank else None
    )
    return RequestFile(name, asked.st_mtime, answered)


def _stat(folder: int, file: str) -> os.stat_result | None:
    with contextlib.suppress(OSError):
        return os.stat(file, dir_fd=folder, follow_symlinks=False)
    return None


def _read(folder: int, file: str, limit: int) -> bytes | None:
    """The beginning of a plain file; `None` where there is none. A pipe or a link is none."""
    with (
        contextlib.suppress(OSError),
        os.fdopen(opened(file, folder=folder), "rb") as found,
    ):
        return found.read(limit)
    return None


def _reply(folder: int, file: str) -> tuple[str, str] | None:
    info = _stat(folder, file)
    if info is not None and not stat.S_ISREG(info.st_mode):
        raise DataError(
            f"{file} is no plain file",
            fix="remove it, so that a reply can be written there",
        )
    raw = _read(folder, file, MAX_REQUEST) if info else None
    return (
        None
        if raw is None
        else (raw.decode("utf-8-sig", "replace"), hashlib.sha256(raw).hexdigest())
    )


def _put(folder: int, file: str, data: bytes, *, replace: bool) -> None:
    """Write beside, then give it the name at once: without `replace`, `FileExistsError` where somebody has it."""
    temp = f".{secrets.token_hex(8)}.tmp"
    handle = os.open(temp, NEW, 0o644, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as written:
            written.write(data)
            written.flush()
            sync(handle)
        if not replace:
            try:
                os.link(
                    temp,
                    file,
                    src_dir_fd=folder,
                    dst_dir_fd=folder,
                    follow_symlinks=False,
                )
            except FileExistsError:
                raise
            except OSError:  # no hard links: an empty file is no reply to anybody, and holds the name for a moment
                os.close(os.open(file, NEW, 0o644, dir_fd=folder))
        os.replace(temp, file, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temp, dir_fd=folder)
    sync(folder)


def _lock(folder: int, path: Path) -> None:
    """Lock the folder itself, which leaves no lock file in it, against everybody who writes replies this way."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise KaceError(
                    f"{path} is being written to", fix="send it again"
                ) from None
            time.sleep(0.02)
        except OSError:
            return None  # a file system without locks: a new reply still takes its name only if nobody has it
