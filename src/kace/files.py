"""Plain files only, writes that survive a kill, and downloads that resume.

A folder may hold a link, a pipe or an endless line in place of one of our files. All
readers and writers open through `opened`, which follows no link and never waits, and
read lines and files up to a limit.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO

from kace.errors import DataError, KaceError

if TYPE_CHECKING:
    from http.client import HTTPResponse

DATA = Path(__file__).parent / "data"  # what ships with the package
MAX_BYTES = 64_000_000  # of a line, and of a file that is read whole
HUB_SECONDS = (
    5.0  # to connect, and for each read: a stalled download is resumed
)
HUB_TRIES = 5
_LINK = "a link, and links inside a folder are not followed"
_HARD_LINK = "it has another name elsewhere (a hard link)"
_NO_FILE = "no plain file"
_REFUSED = {
    errno.ELOOP: _LINK,
    errno.EMLINK: _LINK,
    errno.ENXIO: _NO_FILE,
    errno.EISDIR: _NO_FILE,
}
_UNSYNCED = frozenset(
    {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS}
)  # of file systems that cannot sync


class Unreadable(DataError, OSError):
    """Something in a folder that is not what kace puts there: no plain file, damaged, or too large."""

    def __init__(
        self,
        place: Path | str,
        reason: str,
        fix: str = "put the file itself there, or remove it",
    ) -> None:
        super().__init__(f"{place}: {reason}", fix=fix)
        self.strerror = reason


def opened(path: Path | str, flags: int = os.O_RDONLY) -> int:
    """Open a plain file and return its descriptor. Anything else is `Unreadable`."""
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(path, flags, 0o644)
    except OSError as error:
        if error.errno not in _REFUSED:
            raise
        raise Unreadable(path, _REFUSED[error.errno]) from None
    found = os.fstat(fd)
    linked = found.st_nlink > 1 and flags & os.O_APPEND
    if stat.S_ISREG(found.st_mode) and not linked:
        return fd
    os.close(fd)
    raise Unreadable(path, _HARD_LINK if linked else _NO_FILE)


def open_plain(path: Path) -> BinaryIO:
    """Open a plain file for reading."""
    return os.fdopen(opened(path), "rb")


def read_plain(path: Path, most: int = MAX_BYTES) -> bytes:
    """Return the content of a plain file of at most so many bytes."""
    with open_plain(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise Unreadable(
            path, f"larger than {most:,} bytes", "is it the right file?"
        )
    return data


def inside(folder: Path, *names: str) -> Path:
    """Return a folder in a folder. Raises `Unreadable` if it is a link."""
    for name in names:
        folder = folder / name
        if folder.is_symlink():
            raise Unreadable(
                folder, _LINK, "put the folder itself there, or remove it"
            )
    return folder


def write_atomic(path: Path, content: str | bytes) -> None:
    """Replace a file so that a reader, or a crash, sees the old content or the new."""
    temp = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    data = content.encode() if isinstance(content, str) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temp.open("xb") as file:
            file.write(data)
            file.flush()
            sync(file.fileno())
        temp.replace(path)
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            sync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise cannot_write(path, error) from None
    finally:
        with contextlib.suppress(OSError):
            temp.unlink()


def remove(path: Path) -> None:
    """Delete a file, if there is one. Raises `KaceError` for a folder in its place."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from None


def sync(fd: int) -> None:
    """Make a file or a folder durable, where its file system can."""
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _UNSYNCED:
            raise


class LineLog:
    """An append-only file of lines, each written by one system call, so that only the last can ever be torn."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = opened(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            self._end = cut_torn_tail(self._fd)
        except OSError as error:
            raise cannot_write(path, error) from None

    def append(self, line: str) -> int:
        """Add one line and return the offset it begins at. A line that did not fit is taken back."""
        data = line.encode() + b"\n"
        start = self._end
        try:
            if os.write(self._fd, data) != len(data):
                os.ftruncate(self._fd, start)
                raise OSError(28, "no space left on device")
        except OSError as error:
            raise cannot_write(self.path, error) from None
        self._end = start + len(data)
        return start

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes of the log, also those just appended."""
        return os.pread(self._fd, length, offset)

    def close(self) -> None:
        """Make what was written durable and let go. Safe to call twice."""
        if self._fd >= 0:
            sync(self._fd)
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> LineLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def whole_lines(
    path: Path, start: int = 0, most: int = MAX_BYTES
) -> Iterator[tuple[int, int, bytes]]:
    """Yield number, offset and content of each complete line from an offset on.

    Lines are numbered from there.
    """
    offset = start
    number = 1
    with open_plain(path) as file:
        file.seek(start)
        while (line := file.readline(most + 1)).endswith(b"\n"):
            if len(line) > most:
                break
            yield number, offset, line[:-1]
            offset += len(line)
            number += 1
    if len(line) > most:
        raise Unreadable(
            f"{path}:{number}",
            f"the line is longer than {most:,} bytes",
            "cut it out: kace writes no such line",
        )


def cut_torn_tail(fd: int) -> int:
    """Drop the bytes after the last newline, which a killed writer left, and return the end of the file."""
    size = os.fstat(fd).st_size
    if not size:
        return 0
    with mmap.mmap(fd, size, access=mmap.ACCESS_READ) as content:
        end = content.rfind(b"\n") + 1
    if end < size:
        os.ftruncate(fd, end)
    return end


def lock_folder(folder: Path, seconds: float = 0.0) -> int:
    """Take a folder's lock, waiting so long for it.

    Closing the descriptor, or dying, releases it.
    """
    deadline = time.monotonic() + seconds
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = opened(folder / "lock", os.O_RDWR | os.O_CREAT)
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return lock
            if time.monotonic() >= deadline:
                os.close(lock)
                raise KaceError(
                    f"{folder} is being written by another process",
                    fix="wait for it, or choose another folder",
                )
            time.sleep(0.002)
    except OSError as error:  # a file system without locks, too
        raise cannot_write(folder / "lock", error) from None


@contextlib.contextmanager
def readable(path: Path | str, fix: str) -> Iterator[None]:
    """Raise the errors of reading a file as one line that names it and the fix."""
    try:
        yield
    except Unreadable:
        raise
    except OSError as error:
        raise DataError(f"{path}: {reason_of(error)}", fix=fix) from None


def reason_of(error: OSError) -> str:
    """Return what the system says of an error."""
    return (error.strerror or str(error)).lower()


def cannot_write(path: Path, error: OSError) -> KaceError:
    """Return the error of a failed write."""
    if isinstance(error, KaceError):
        return error
    return KaceError(
        f"cannot write {path}: {reason_of(error)}",
        fix="check free space and permissions, or choose another place",
    )


# Downloads


class Unavailable(Exception):
    """A source that cannot provide a file; the message is the reason."""


def fetch_from_hub(
    repo: str,
    file: str,
    target: Path,
    *,
    hub: str,
    most: int,
    revision: str = "main",
    on_bytes: Callable[[int], object] = bool,
) -> None:
    """Download a file of a public repository to `target`, from where an earlier try stopped.

    huggingface_hub itself no longer resumes, and it retries for 23 seconds where the hub
    cannot be reached. `on_bytes` is called with the number of bytes so far. Raises
    `Unavailable` if the hub does not have the file, does not answer, or sends more than
    `most` bytes, and `OSError` for a full disk.
    """
    url = f"{hub.rstrip('/')}/{repo}/resolve/{revision}/{file}"
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("ab") as stream:
        for _ in range(HUB_TRIES):
            if stream.tell() >= most:
                return
            with _request_rest(url, stream) as response:
                for block in _read_blocks(response):
                    if stream.tell() + len(block) > most:
                        stream.truncate(0)
                        raise Unavailable(
                            f"the file is longer than {most:,} bytes"
                        )
                    stream.write(block)
                    on_bytes(stream.tell())
            if not response.length:  # nothing of the body is missing
                return
    raise Unavailable("the connection was lost")


def _request_rest(url: str, stream: IO[bytes]) -> HTTPResponse:
    """Request what is missing of a file."""
    from http.client import HTTPException, InvalidURL
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    if not url.startswith(("http://", "https://")):
        raise Unavailable("the address of a hub begins with https://")
    request = Request(url)
    if stream.tell():
        request.add_header("Range", f"bytes={stream.tell()}-")
    try:
        response: HTTPResponse = urlopen(request, timeout=HUB_SECONDS)
    except HTTPError as error:
        error.close()
        raise Unavailable(f"HTTP {error.code}") from None
    except (ValueError, InvalidURL):  # its message may have a password
        raise Unavailable("the address of the hub cannot be read") from None
    except (OSError, HTTPException) as error:
        raise Unavailable(str(error) or type(error).__name__) from None
    if response.status != 206:
        # Truncating alone leaves `tell` where it was.
        stream.seek(stream.truncate(0))
    return response


def _read_blocks(response: HTTPResponse) -> Iterator[bytes]:
    """Yield a body up to its end, or to where the connection is lost."""
    from http.client import HTTPException

    with contextlib.suppress(OSError, HTTPException):
        while block := response.read1(1 << 16):
            yield block
