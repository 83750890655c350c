"""The viewer in this process: what a path gives, without a socket."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.testclient import TestClient

from kace.report.server import create_app
from kace.report.workspace import Workspace

HOST = "http://127.0.0.1"


@contextmanager
def opened(*paths: Path) -> Iterator[TestClient]:
    """A client of a server that has these paths open."""
    workspace = Workspace(paths)
    with TestClient(create_app(workspace), base_url=HOST, follow_redirects=False) as client:
        yield client
