"""The viewer in this process: what a path gives, without a socket."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.testclient import TestClient

from kace.view.app import create_app
from kace.view.shelf import open_shelf

HOST = "http://127.0.0.1"


@contextmanager
def opened(*paths: Path, token: str | None = None) -> Iterator[TestClient]:
    """A client of a server that has these paths open."""
    shelf = open_shelf(paths)
    with TestClient(create_app(shelf, token=token), base_url=HOST, follow_redirects=False) as client:
        yield client
    shelf.close()
