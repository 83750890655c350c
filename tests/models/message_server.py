"""What Anthropic's Messages API answers, for the scripted server of `chat_server`."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.models.chat_server import JSON, Answer

USAGE = {
    "input_tokens": 20,
    "cache_creation_input_tokens": 300,
    "cache_read_input_tokens": 1000,
    "output_tokens": 7,
}


def message(text: str | None, *, stop: str = "end_turn", **fields: object) -> Answer:
    """A usual reply; `fields` adds or replaces fields of the body."""
    content = [] if text is None else [{"type": "text", "text": text}]
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": stop,
        "usage": USAGE,
        **fields,
    }
    return Answer(json.dumps(body).encode())


def fault(
    status: int, kind: str = "api_error", said: str = "no", *, headers: Mapping[str, str] | None = None
) -> Answer:
    """An error in the shape Anthropic uses."""
    body = json.dumps({"type": "error", "error": {"type": kind, "message": said}, "request_id": "req_1"}).encode()
    return Answer(body, status=status, headers={**JSON, **(headers or {})})
