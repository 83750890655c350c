"""A small real server of both batch APIs, with files on disk, and of their live endpoints, for what is retried there.

It keeps to the documented behaviour: unordered results in an output and an error file, jobs that end after some
looks, fail validation, expire or are cancelled, lists with the newest first, and 404 for another key's job.

    with BatchServer(tmp_path) as server:
        OpenAIModel("m", base_url=f"{server.url}/v1", api_key=KEY, ...)
    assert set(server.submitted.values()) == {1}
"""

from __future__ import annotations

import json
import random
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

KEY = "key-of-the-batches"
USAGE = {"prompt_tokens": 100, "completion_tokens": 10}
ENDED = ("completed", "expired", "cancelled", "failed")
ERROR = {"error": {"message": "try again", "type": "server_error"}}


class Drop(Exception):
    """Raised by a hook: the connection is reset, and nobody hears what came of the request."""


@dataclass
class ServedJob:
    """A job as the server has it."""

    id: str
    path: Path
    keys: list[str]
    owner: str
    tag: str | None
    status: str = "in_progress"
    looks: int = 0
    answered: int | None = None
    errors: list[dict[str, object]] = field(default_factory=list)


def says(body: dict[str, Any]) -> str:
    """What the server's model says: the last number of the question."""
    return f"\\boxed{{{re.findall(r'[0-9]+', body['messages'][-1]['content'])[-1]}}}"


class BatchServer:
    """Set `fate`, `end`, `room` or `hook` to have it misbehave."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.url = folder, ""
        self.jobs: list[ServedJob] = []
        self.files: dict[str, Path] = {}
        self.submitted: Counter[str] = Counter()  # requests of jobs that were taken
        self.live: list[dict[str, Any]] = []
        self.looks = 1  # at a job that is not over, before it ends
        self.end: Callable[[ServedJob], str] = lambda job: "completed"
        self.fate: Callable[[str, dict[str, Any]], object] = lambda key, body: 200  # a status, an error, or nothing
        self.says = says
        self.room: int | None = None  # requests that may be enqueued at once
        self.results = True  # whether an ended job still has its files
        self.hook: Callable[[str], None] = lambda step: None
        self.lock = threading.RLock()
        handler = type("Handler", (_Handler,), {"world": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True

    def __enter__(self) -> BatchServer:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def create(self, path: Path, owner: str, tag: str | None, most: int, size: int) -> ServedJob:
        with self.lock:
            keys = [json.loads(line)["custom_id"] for line in path.read_bytes().splitlines()]
            job = ServedJob(f"batch_{len(self.jobs):04}", path, keys, owner, tag)
            busy = sum(len(each.keys) for each in self.jobs if each.status not in ENDED)
            self.jobs.append(job)
            bad = [key for key in keys if not re.fullmatch("[a-zA-Z0-9_-]{1,64}", key)]
            if len(keys) > most or path.stat().st_size > size or bad or len(set(keys)) < len(keys) or not keys:
                job.status, job.errors = "failed", [{"code": "invalid_request", "message": "the file is not valid"}]
            elif self.room is not None and busy + len(keys) > self.room:
                said = f"Enqueued token limit reached for m. Limit: {100 * self.room:,} enqueued tokens."
                job.status, job.errors = "failed", [{"code": "token_limit_exceeded", "message": said}]
            else:
                self.submitted.update(keys)
            return job

    def look(self, job: ServedJob) -> None:
        with self.lock:
            job.looks += 1
            if job.status not in ENDED and job.looks > self.looks:
                job.status = self.end(job)

    def lines(self, job: ServedJob) -> Iterator[tuple[str, object, dict[str, Any]]]:
        """Every request of a job, in any order, with what becomes of it."""
        found = [json.loads(line) for line in job.path.read_bytes().splitlines()]
        random.Random(job.id).shuffle(found)
        for each in found:
            body = each.get("body") or each.get("params")
            yield each["custom_id"], self.fate(each["custom_id"], body), body


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    world: BatchServer

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._guarded(self._get)

    def do_POST(self) -> None:
        self._guarded(self._post)

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Drop:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    @property
    def owner(self) -> str:
        return self.headers.get("x-api-key") or self.headers.get("authorization", "").removeprefix("Bearer ")

    def _say(self, body: object, status: int = 200, **headers: str) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def _get(self) -> None:
        path, _, query = self.path.partition("?")
        world, parts = self.world, path.strip("/").split("/")[1:]
        anthropic = parts[0] == "messages"
        if parts in (["batches"], ["messages", "batches"]):
            world.hook("list")
            asked = dict(pair.split("=") for pair in query.split("&"))
            mine = [job for job in world.jobs[::-1] if job.owner == self.owner]
            after = asked.get("after") or asked.get("after_id")
            start = next((place + 1 for place, job in enumerate(mine) if job.id == after), 0)
            page = mine[start : start + int(asked["limit"])]
            shown = [self._shown(job, anthropic) for job in page]
            return self._say({"data": shown, "has_more": start + len(page) < len(mine)})
        if parts[0] == "files":
            job_id, _, kind = parts[1].removeprefix("file-").rpartition("-")
            job = next(each for each in world.jobs if each.id == job_id)
            return self._results(job, kind == "errors", anthropic=False)
        job = next((each for each in world.jobs if each.id == parts[1 + anthropic] and each.owner == self.owner), None)
        if job is None:
            return self._say({"error": {"message": "No such batch"}}, 404)
        if parts[-1] == "results":
            return self._results(job, False, anthropic=True)
        world.hook("status")
        world.look(job)
        self._say(self._shown(job, anthropic))

    def _shown(self, job: ServedJob, anthropic: bool) -> dict[str, object]:
        over = job.status in ENDED
        if anthropic:
            left = {"completed": "succeeded", "expired": "expired", "cancelled": "canceled"}.get(
                job.status, "processing"
            )
            counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
            counts[left] = len(job.keys)
            if over:
                good = self._answered(job)
                bad = "errored" if left == "succeeded" else left
                counts |= {"succeeded": good, bad: len(job.keys) - good}
            url = f"{self.world.url}/v1/messages/batches/{job.id}/results" if over and self.world.results else None
            status = "ended" if over else "in_progress"
            return {"id": job.id, "processing_status": status, "request_counts": counts, "results_url": url}
        ended = over and job.status != "failed" and self.world.results
        good = self._answered(job) if ended else 0
        counts = {"total": len(job.keys), "completed": good, "failed": len(job.keys) - good if ended else 0}
        return {
            "id": job.id,
            "status": "validating" if job.status == "failed" and not job.looks else job.status,
            "output_file_id": f"file-{job.id}-output" if ended else None,
            "error_file_id": f"file-{job.id}-errors" if ended else None,
            "errors": {"data": job.errors} if job.errors else None,
            "request_counts": counts,
            "metadata": {"kace": job.tag} if job.tag else None,
        }

    def _answered(self, job: ServedJob) -> int:
        if job.answered is None:
            job.answered = sum(fate == 200 for _, fate, _ in self.world.lines(job))
        return job.answered

    def _results(self, job: ServedJob, errors: bool, *, anthropic: bool) -> None:
        self.world.hook("results")
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        told = 0
        for key, fate, body in self.world.lines(job):
            text = self.world.says(body)
            line = _anthropic_result(fate, text) if anthropic else _openai_result(fate, text)
            if line is None or (not anthropic and errors != (fate != 200)):
                continue
            data = json.dumps({"custom_id": key, **line}).encode() + b"\n"
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            told += 1
            if told == len(job.keys) // 2:
                self.wfile.flush()
                self.world.hook("half of the results")
        self.wfile.write(b"0\r\n\r\n")

    def _post(self) -> None:
        world, path = self.world, self.path.split("?")[0]
        if path.endswith("/files"):
            world.hook("before the upload")
            file = f"input-{len(world.files)}"
            world.files[file] = world.folder / file
            self._upload(world.files[file])
            world.hook("after the upload")
            return self._say({"id": file, "purpose": "batch"})
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if path.endswith("/completions") or path.endswith("/messages"):
            world.live.append(asked)
            text = world.says(asked)
            if path.endswith("/messages"):
                return self._say(_message(text))
            return self._say(_completion(text))
        world.hook("before the job")
        if path.endswith("/messages/batches"):
            job = self._message_batch(asked["requests"])
        else:
            tag = (asked.get("metadata") or {}).get("kace")
            job = world.create(world.files[asked["input_file_id"]], self.owner, tag, 50_000, 200_000_000)
        if path.endswith("/messages/batches") and job.status == "failed":
            with world.lock:
                world.jobs.remove(job)
            full = job.errors[0]["code"] == "token_limit_exceeded"
            kind = "rate_limit_error" if full else "invalid_request_error"
            return self._say({"type": "error", "error": {"type": kind, "message": "no"}}, 429 if full else 400)
        world.hook("after the job")
        self._say(self._shown(job, path.endswith("/messages/batches")))

    def _message_batch(self, requests: list[dict[str, Any]]) -> ServedJob:
        with self.world.lock:
            place = self.world.folder / f"requests-{len(self.world.files)}"
            self.world.files[place.name] = place
        with place.open("w") as file:
            file.writelines(json.dumps(each, separators=(",", ":")) + "\n" for each in requests)
        return self.world.create(place, self.owner, None, 100_000, 256_000_000)

    def _upload(self, path: Path) -> None:
        """Keep the file of a form, which is its last field."""
        form = self.rfile.read(int(self.headers["content-length"]))
        path.write_bytes(form.split(b"\r\n\r\n", 2)[2].rpartition(b"\r\n--")[0])


def _completion(text: str) -> dict[str, object]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"choices": [choice], "usage": USAGE}


def _message(text: str) -> dict[str, object]:
    usage = {"input_tokens": 100, "output_tokens": 10}
    return {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "usage": usage}


def _openai_result(fate: object, text: str) -> dict[str, object] | None:
    if fate == 200:
        return {"response": {"status_code": 200, "body": _completion(text)}, "error": None}
    if fate == "expired":
        return {"response": None, "error": {"code": "batch_expired", "message": "the window has expired"}}
    if isinstance(fate, int):
        return {"response": {"status_code": fate, "body": ERROR}, "error": None}
    if isinstance(fate, tuple):
        return {"response": {"status_code": fate[0], "body": {"error": fate[1]}}, "error": None}
    return None


def _anthropic_result(fate: object, text: str) -> dict[str, object] | None:
    if fate == 200:
        return {"result": {"type": "succeeded", "message": _message(text)}}
    if fate in ("expired", "canceled"):
        return {"result": {"type": fate}}
    if isinstance(fate, int):
        kinds = {529: "overloaded_error", 400: "invalid_request_error", 401: "authentication_error"}
        error = {"type": kinds.get(fate, "api_error"), "message": "try again"}
        return {"result": {"type": "errored", "error": {"type": "error", "error": error}}}
    return None
