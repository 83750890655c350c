"""A hub of files on this machine, as the Hugging Face hub answers."""

from __future__ import annotations

import contextlib
import http.server
import io
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from kace.problems import HubFile


@dataclass
class FileServer:
    """Files by their path on the hub."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    page: bytes | None = None
    """What every address answers with, instead of files."""
    seen: list[str] = field(default_factory=list)
    """The paths of downloads."""
    headers: list[Mapping[str, str]] = field(default_factory=list)
    """The headers of every request."""
    url: str = ""


def as_jsonl(rows: Sequence[Mapping[str, object]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def as_parquet(rows: Sequence[Mapping[str, object]]) -> bytes:
    pyarrow = pytest.importorskip("pyarrow", reason="the extra 'data' is not installed")
    from pyarrow import parquet

    stream = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows), stream)
    return stream.getvalue()


def address(file: HubFile) -> str:
    return f"/datasets/{file.repo}/resolve/{file.revision}/{file.path}"


@contextlib.contextmanager
def serving(server: FileServer) -> Iterator[FileServer]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.seen.append(self.path)
            with contextlib.suppress(ConnectionError):  # a reader that has seen enough hangs up
                self.wfile.write(self.answer())

        def answer(self) -> bytes:
            server.headers.append(dict(self.headers))
            body = server.files.get(self.path) if server.page is None else server.page
            if body is None:
                self.send_error(404)
                return b""
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            return body

        def log_message(self, *args: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listener:
        server.url = f"http://127.0.0.1:{listener.server_port}"
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown()
            thread.join()
