"""A hub of files on this machine, as the Hugging Face hub answers."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kace.problems import HubFile


@dataclass
class FileServer:
    """Files by their path on the hub."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    page: bytes | None = None
    """What every address answers with, instead of files."""
    seen: list[str] = field(default_factory=list)
    """The paths of downloads; questions about a file's size are not counted."""
    headers: list[Mapping[str, str]] = field(default_factory=list)
    """The headers of every request."""
    url: str = ""


def address(file: HubFile) -> str:
    return f"/datasets/{file.repo}/resolve/{file.revision}/{file.path}"


@contextlib.contextmanager
def serving(server: FileServer) -> Iterator[FileServer]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.answer()

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
            self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
            self.send_header("X-Repo-Commit", "1" * 40)
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
