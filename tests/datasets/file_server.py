"""A hub of files: redirects as the real one does, and can break off, refuse or answer with a page of its own."""

from __future__ import annotations

import contextlib
import http.server
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kace.models.hub import HubFile


@dataclass
class FileServer:
    """Files by their path on the hub."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    drops: int = 0
    """How many answers break off half way."""
    page: bytes | None = None
    """What every address answers with, instead of files."""
    seen: list[str] = field(default_factory=list)
    url: str = ""


def address(file: HubFile) -> str:
    return f"/datasets/{file.repo}/resolve/{file.revision}/{file.path}"


@contextlib.contextmanager
def serving(server: FileServer) -> Iterator[FileServer]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, store, _ = self.path.partition("?store")
            if not store:
                server.seen.append(path)
            body = server.files.get(path) if server.page is None else server.page
            if body is None:
                return self.send_error(404)
            if not store:
                self.send_response(302)
                self.send_header("Location", f"{path}?store")
                self.send_header("Content-Length", "0")
                return self.end_headers()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if server.drops:
                server.drops, body = server.drops - 1, body[: len(body) // 2]
                self.close_connection = True
            self.wfile.write(body)

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
