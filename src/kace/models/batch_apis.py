"""The two batch APIs: OpenAI's Batch and Anthropic's Message Batches."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from kace.errors import UsageError, one_line
from kace.files import open_plain
from kace.models.base import ChatModel, Wrapper
from kace.models.http import AnthropicModel, OpenAIModel
from kace.models.jobs import PIECE, Jobs, JobStatus, Unfinished, id_of

STATUS = {
    **{
        "invalid_request_error": 400,
        "authentication_error": 401,
        "billing_error": 402,
        "permission_error": 403,
    },
    **{
        "not_found_error": 404,
        "request_too_large": 413,
        "rate_limit_error": 429,
        "overloaded_error": 529,
    },
}
"""What Anthropic's kinds of error are as a status, which a result does not have."""
NO_ROOM = (
    "token_limit_exceeded",
    "request_limit_exceeded",
)  # why OpenAI fails a job that may be sent again later


def jobs_of(model: ChatModel) -> Jobs:
    """The jobs of a model; raises `UsageError` where its provider has none."""
    inner = model
    while isinstance(inner, Wrapper):
        inner = inner.model
    if isinstance(inner, OpenAIModel):
        return OpenAIJobs(inner)
    if isinstance(inner, AnthropicModel):
        return AnthropicJobs(inner)
    fix = "name an openai/ or anthropic/ model at one address, or leave out --batch"
    raise UsageError(f"'{model.name}' has no batch API", fix=fix)


class OpenAIJobs(Jobs):
    """OpenAI's Batch API, and that of servers like it."""

    MOST_REQUESTS = 50_000
    MOST_BYTES = 200_000_000
    PATH = "/batches"
    NEXT = "after"
    TAGGED = True

    def _entry(self, key: str, body: Mapping[str, object]) -> Mapping[str, object]:
        return {
            "custom_id": key,
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": body,
        }

    async def submit(self, requests: Path, tag: str) -> str:
        """Upload the file, and make a job of it that carries the tag."""
        rule = f"--{tag}\r\ncontent-disposition: form-data; name="
        before = f'{rule}"purpose"\r\n\r\nbatch\r\n{rule}"file"; filename="kace-{tag}.jsonl"\r\n'
        head = f"{before}content-type: application/jsonl\r\n\r\n".encode()
        tail = f"\r\n--{tag}--\r\n".encode()
        length = str(len(head) + requests.stat().st_size + len(tail))
        kind = f"multipart/form-data; boundary={tag}"
        content = _around(requests, head, tail)
        file = await self._call(
            "POST", "/files", id_of, content, content_type=kind, content_length=length
        )
        asked = {
            "input_file_id": file,
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
        }
        body = json.dumps({**asked, "metadata": {"kace": tag}}).encode()
        return await self._call(
            "POST", self.PATH, id_of, body, content_type="application/json"
        )

    def _may_be(self, found: Any, tag: str, requests: int) -> bool:
        return (
            isinstance(told := found.get("metadata"), dict) and told.get("kace") == tag
        )

    def _status(self, found: Any) -> JobStatus:
        state = found["status"]
        counts = found.get("request_counts") or {}
        answered = counts.get("completed") or 0
        failed = counts.get("failed") or 0
        files = [found.get(name) for name in ("output_file_id", "error_file_id")]
        # One that is completed and has no file of its replies yet is not ended: they are paid for.
        ended = state in ("expired", "cancelled", "failed") or (
            state == "completed" and bool(files[0] or not answered)
        )
        errors = (found.get("errors") or {}).get("data") or []
        expires = found.get("expires_at")
        why = "; ".join(
            str(error.get("message") or error.get("code")) for error in errors[:3]
        )
        refused = state == "failed" and not files[0]
        return JobStatus(
            id=found["id"],
            outcome=(one_line(why) or state) if refused else state if ended else "",
            done=answered + failed,
            answered=answered,
            results=tuple(f"/files/{file}/content" for file in files if file),
            refused=refused,
            no_room=refused and any(error.get("code") in NO_ROOM for error in errors),
            expires=float(expires) if expires else None,
        )

    def _result(self, line: Any) -> tuple[int, Any]:
        if response := line.get("response"):
            return int(response["status_code"]), response["body"]
        error = line.get("error") or {}
        raise Unfinished(
            one_line(str(error.get("message") or error.get("code") or "no response"))
        )


class AnthropicJobs(Jobs):
    """Anthropic's Message Batches. They carry no tag: a listed one is told by its size, and then by its results."""

    MOST_REQUESTS = 100_000
    MOST_BYTES = 256_000_000
    PATH = "/v1/messages/batches"
    NEXT = "after_id"
    TAGGED = False

    def _entry(self, key: str, body: Mapping[str, object]) -> Mapping[str, object]:
        return {"custom_id": key, "params": body}

    async def submit(self, requests: Path, tag: str) -> str:
        """Send all requests as one list."""
        head = b'{"requests":['
        tail = b"]}"
        length = str(len(head) + requests.stat().st_size + len(tail))
        content = _around(requests, head, tail, between=b",")
        kind = "application/json"
        return await self._call(
            "POST", self.PATH, id_of, content, content_type=kind, content_length=length
        )

    def _may_be(self, found: Any, tag: str, requests: int) -> bool:
        counts = found.get("request_counts")
        return (
            isinstance(counts, dict)
            and sum(each for each in counts.values() if type(each) is int) == requests
        )

    def _status(self, found: Any) -> JobStatus:
        counts = found.get("request_counts") or {}
        job = found["id"]
        expires = found.get("expires_at")
        total = sum(counts.values())
        ended = found["processing_status"] == "ended"
        missed = next(
            (name for name in ("canceled", "expired") if counts.get(name)), "completed"
        )
        return JobStatus(
            id=job,
            outcome=missed.replace("canceled", "cancelled") if ended else "",
            done=total - (counts.get("processing") or 0),
            answered=counts.get("succeeded") or 0,
            results=(f"{self.PATH}/{job}/results",)
            if ended and found.get("results_url")
            else (),
            expires=datetime.fromisoformat(expires).timestamp() if expires else None,
        )

    def _result(self, line: Any) -> tuple[int, Any]:
        result = line["result"]
        if result["type"] == "succeeded":
            return 200, result["message"]
        if result["type"] != "errored":
            raise Unfinished(f"the request is {result['type']}")
        error = result["error"]
        return STATUS.get((error.get("error") or error).get("type"), 500), error


async def _around(
    path: Path, head: bytes, tail: bytes, between: bytes = b"\n"
) -> AsyncIterator[bytes]:
    """A file of lines with something before and after it, and the lines joined in another way."""
    yield head
    left = path.stat().st_size
    with open_plain(path) as file:
        while piece := file.read(PIECE):
            left -= len(piece)
            yield (
                piece.replace(b"\n", between)
                if left
                else piece[:-1].replace(b"\n", between) + b"\n"
            )
    yield tail
