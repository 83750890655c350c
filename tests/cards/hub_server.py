"""A hub of repositories: the endpoints that huggingface_hub calls for a tree, and a second server for large files."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.server
import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass
class HeldFile:
    """A file of a repository."""

    data: bytes
    kind: str = "file"
    size: int | None = None
    """What the hub says of its size, where it lies."""
    large: bool = False
    """Kept on the other server, to which the hub redirects."""


@dataclass
class HeldRepository:
    visibility: str | None = None
    branches: dict[str, str] = field(default_factory=dict)
    commits: dict[str, dict[str, HeldFile]] = field(default_factory=dict)

    def commit(self, branch: str, files: dict[str, HeldFile]) -> str:
        """Files on top of a branch."""
        name = hashlib.sha256(f"{branch}{len(self.commits)}".encode()).hexdigest()[:40]
        self.commits[name] = {**self.commits.get(self.branches.get(branch, ""), {}), **files}
        self.branches[branch] = name
        return name

    def files(self, revision: str) -> dict[str, HeldFile] | None:
        return self.commits.get(self.branches.get(revision, revision))


@dataclass
class HubServer:
    """Repositories by kind and name, as in `models/me/tree`."""

    token: str
    repositories: dict[str, HeldRepository] = field(default_factory=dict)
    seen: list[tuple[str, str]] = field(default_factory=list)
    """Each request's method and path."""
    tokens: list[str | None] = field(default_factory=list)
    """What each request to the other server carried."""
    sent: Callable[[], object] = lambda: None
    """Called half way through a file."""
    drops: bool = False
    """Whether files break off half way."""
    answer: tuple[int, bytes] | None = None
    """What every address answers with, instead."""
    url: str = ""
    other: str = ""

    def repository(self, name: str, files: dict[str, HeldFile] | None = None) -> HeldRepository:
        held = self.repositories.setdefault(name, HeldRepository())
        held.commit("main", files or {})
        return held


def git_hash(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class _Handler(http.server.BaseHTTPRequestHandler):
    hub: HubServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def _answer(self, body: bytes) -> None:
        hub, parts = self.hub, urlsplit(self.path)
        path = unquote(parts.path)
        hub.seen.append((self.command, path))
        if hub.answer:
            return self._say(hub.answer[0], hub.answer[1])
        if path.startswith("/store/"):
            hub.tokens.append(self.headers.get("Authorization"))
            _, _, _, name, commit, file = path.split("/", 5)
            return self._file(hub.repositories[name.replace("+", "/")].commits[commit][file].data)
        known = self.headers.get("Authorization") == f"Bearer {hub.token}"
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked.get('type', 'model')}s/{asked['organization']}/{asked['name']}"
            if not known:
                return self._error(401, None, "Invalid credentials")
            url = f"{hub.url}/{name.removeprefix('models/')}"
            if name in hub.repositories:
                return self._say(409, json.dumps({"error": "You already created this repo", "url": url}).encode())
            hub.repository(name, {".gitattributes": HeldFile(b"")}).visibility = asked.get("visibility")
            return self._json({"url": url})
        if found := re.fullmatch(r"/api/((?:models|datasets)/[\w.-]+/[\w.-]+)(?:/([a-z-]+)/(.+))?", path):
            return self._api(found[1], found[2] or "revision", found[3] or "main", body, known)
        if found := re.fullmatch(r"/(datasets/)?([\w.-]+/[\w.-]+)/resolve/([^/]+)/(.+)", path):
            return self._resolve(f"{found[1] or 'models/'}{found[2]}", found[3], found[4], known)
        self._error(404, None, "Not found")

    def _api(self, name: str, what: str, revision: str, body: bytes, known: bool) -> None:
        hub, held = self.hub, self.hub.repositories.get(name)
        if held is None or (held.visibility == "private" and not known):
            return self._error(404 if known else 401, "RepoNotFound", "Repository not found")
        if what == "branch":
            if revision in held.branches:
                return self._error(409, None, "Reference already exists")
            held.branches[revision] = held.branches["main"]
            return self._json({})
        files = held.files(revision)
        if files is None:
            return self._error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        if what == "revision":
            return self._json({"id": name.split("/", 1)[1], "sha": held.branches.get(revision, revision)})
        if what == "paths-info":
            wanted = [path for path in parse_qs(body.decode())["paths"] if path in files]
            return self._json([_info(path, files[path]) for path in wanted])
        if what == "preupload":
            asked = [file["path"] for file in json.loads(body)["files"]]
            oids = {path: git_hash(files[path].data) if path in files else None for path in asked}
            rows = [{"path": p, "uploadMode": "regular", "shouldIgnore": False, "oid": oids[p]} for p in asked]
            return self._json({"files": rows})
        assert what == "commit" and known
        lines = [json.loads(line) for line in body.splitlines()]
        added = [line["value"] for line in lines if line["key"] == "file"]
        assert all(line["key"] in ("header", "file") for line in lines)
        new = {each["path"]: HeldFile(base64.b64decode(each["content"])) for each in added}
        oid = held.commit(revision, new)
        self._json({"commitUrl": f"{hub.url}/{name}/commit/{oid}", "commitOid": oid})

    def _resolve(self, name: str, revision: str, path: str, known: bool) -> None:
        held = self.hub.repositories.get(name)
        if held is None or (held.visibility == "private" and not known):
            return self._error(401, "RepoNotFound", "Repository not found")
        file = (held.files(revision) or {}).get(path)
        if file is None:
            return self._error(404, "EntryNotFound", "Entry not found")
        if file.large:
            self.send_response(302)
            self.send_header("Location", f"{self.hub.other}/store/x/{name.replace('/', '+')}/{revision}/{path}")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        self._file(file.data)

    def _file(self, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2])
        self.wfile.flush()
        self.hub.sent()
        if self.hub.drops:
            self.close_connection = True
            return
        with contextlib.suppress(OSError):  # whoever asked may be gone
            self.wfile.write(data[len(data) // 2 :])

    def _json(self, value: Any) -> None:
        self._say(200, json.dumps(value).encode())

    def _error(self, status: int, code: str | None, message: str) -> None:
        self._say(status, json.dumps({"error": message}).encode(), code, message)

    def _say(self, status: int, body: bytes, code: str | None = None, message: str | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in (("X-Error-Code", code), ("X-Error-Message", message)):
            if value:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None: ...


def _info(path: str, file: HeldFile) -> dict[str, object]:
    told = {"type": file.kind, "path": path, "oid": git_hash(file.data)}
    return told | ({"size": len(file.data) if file.size is None else file.size} if file.kind == "file" else {})


@contextlib.contextmanager
def hub_of(token: str) -> Iterator[HubServer]:
    """A running hub, empty."""
    hub = HubServer(token)
    handler = type("Handler", (_Handler,), {"hub": hub})
    with contextlib.ExitStack() as stack:
        urls = []
        for _ in range(2):
            listener = stack.enter_context(http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler))
            thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            stack.callback(thread.join)
            stack.callback(listener.shutdown)
            urls.append(f"http://127.0.0.1:{listener.server_port}")
        hub.url, hub.other = urls
        yield hub
