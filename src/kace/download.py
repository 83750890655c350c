"""Downloads of single files from the Hugging Face Hub, bounded and resumed."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Literal

CONNECT_SECONDS = 5.0  # also for each read: a stalled download is resumed
TRIES = 5  # in a row without a byte
BLOCK = 1 << 16


class Unavailable(Exception):
    """A source that cannot provide a file; the message is the reason."""


def fetch_from_hub(
    repo: str,
    file: str,
    target: Path,
    *,
    hub: str,
    most: int,
    kind: Literal["model", "dataset"] = "model",
    revision: str = "main",
    on_bytes: Callable[[int], object] = bool,
) -> None:
    """Download a file of a public repository to `target`, from where an earlier try stopped.

    huggingface_hub itself no longer resumes, and it retries for 23 seconds where the hub
    cannot be reached. `on_bytes` is called with the number of bytes so far. Raises
    `Unavailable` if the hub does not have the file, does not answer, or sends more than
    `most` bytes, and `OSError` for a full disk.
    """
    prefix = "datasets/" if kind == "dataset" else ""
    url = f"{hub.rstrip('/')}/{prefix}{repo}/resolve/{revision}/{file}"
    if not url.startswith(("http://", "https://")):
        raise Unavailable("the address of a hub begins with https://")
    target.parent.mkdir(parents=True, exist_ok=True)
    failures = 0
    with target.open("ab") as stream:
        while stream.tell() < most:
            before = stream.tell()
            part = _Part(url, before)
            if part.start == 0:  # truncating alone leaves `tell` where it was
                stream.seek(stream.truncate(0))
            while True:
                block = part.read()
                if stream.tell() + len(block) > most:
                    part.close()
                    stream.truncate(0)
                    raise Unavailable(f"the file is longer than {most:,} bytes")
                if not block:
                    break
                stream.write(block)
                on_bytes(stream.tell())
            part.close()
            if part.is_complete:
                return
            failures = failures + 1 if stream.tell() <= before else 0
            if failures >= TRIES or stream.tell() == 0:
                raise Unavailable(part.fault)


class _Part:
    """The rest of a file from a byte on, or all of it where the server sends no parts."""

    def __init__(self, url: str, start: int) -> None:
        request = urllib.request.Request(url)
        if start:
            request.add_header("Range", f"bytes={start}-")
        try:
            self._response = urllib.request.urlopen(
                request, timeout=CONNECT_SECONDS
            )
        except urllib.error.HTTPError as error:
            error.close()
            raise Unavailable(f"HTTP {error.code}") from None
        except urllib.error.URLError as error:
            raise Unavailable(str(error.reason)) from None
        except (
            http.client.InvalidURL,
            ValueError,
        ):  # its message repeats a password
            raise Unavailable("the address of the hub cannot be read") from None
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(str(error) or type(error).__name__) from None
        self.start = start if self._response.status == 206 else 0
        length = self._response.headers.get("Content-Length") or ""
        self._left = int(length) if length.isdecimal() else None
        self.fault = "the connection was lost"
        self.is_complete = False

    def read(self) -> bytes:
        """Return some bytes, none at the end or after a fault."""
        try:
            block: bytes = self._response.read1(BLOCK)
        except (OSError, http.client.HTTPException) as error:
            self.fault = str(error) or type(error).__name__
            return b""
        if self._left is not None:
            self._left -= len(block)
        if not block:
            self.is_complete = self._left in (None, 0)
        return block

    def close(self) -> None:
        """Close the connection."""
        self._response.close()
