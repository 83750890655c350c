"""Downloads of single files from the Hugging Face Hub, bounded and resumed."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO, Literal

CONNECT_SECONDS = 5.0  # also for each read: a stalled download is resumed
TRIES = 5
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
    fault = "the connection was lost"
    with target.open("ab") as stream:
        for _ in range(TRIES):
            if stream.tell() >= most:
                return
            response, whole = _open(url, stream)
            with response:
                while True:
                    try:
                        block = response.read1(BLOCK)
                    except (OSError, http.client.HTTPException) as error:
                        fault = str(error) or type(error).__name__
                        break
                    if not block:
                        break
                    if stream.tell() + len(block) > most:
                        stream.truncate(0)
                        raise Unavailable(
                            f"the file is longer than {most:,} bytes"
                        )
                    stream.write(block)
                    on_bytes(stream.tell())
            if whole in (stream.tell(), 0):
                return
    raise Unavailable(fault)


def _open(url: str, stream: IO[bytes]) -> tuple[http.client.HTTPResponse, int]:
    """Request what is missing; return the response and the length of the whole file.

    The length is zero if it is unknown.
    """
    request = urllib.request.Request(url)
    if stream.tell():
        request.add_header("Range", f"bytes={stream.tell()}-")
    try:
        response = urllib.request.urlopen(request, timeout=CONNECT_SECONDS)
    except urllib.error.HTTPError as error:
        error.close()
        raise Unavailable(f"HTTP {error.code}") from None
    except urllib.error.URLError as error:
        raise Unavailable(str(error.reason)) from None
    except (ValueError, http.client.InvalidURL):  # its message has a password
        raise Unavailable("the address of the hub cannot be read") from None
    except (OSError, http.client.HTTPException) as error:
        raise Unavailable(str(error) or type(error).__name__) from None
    if response.status != 206:
        # Truncating alone leaves `tell` where it was.
        stream.seek(stream.truncate(0))
    length = response.headers.get("Content-Length") or ""
    whole = stream.tell() + int(length) if length.isdecimal() else 0
    return response, whole
