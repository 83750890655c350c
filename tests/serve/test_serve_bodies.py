"""`curl`, and bodies that no client library would send."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from kace.report.server import SECURITY_HEADERS
from tests.serve.running import Running, Watched

GOOD = {"model": "kace", "messages": [{"role": "user", "content": "What is 6 times 7?"}]}


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with Running(Watched()) as running:
        yield running


def curl(*arguments: str, body: bytes | None = None) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of one request."""
    data = ["--data-binary", "@-"] if body is not None else []
    done = subprocess.run(["curl", "-sSi", "-m", "20", *data, *arguments], input=body, capture_output=True, check=True)
    head, _, said = done.stdout.rpartition(b"\r\n\r\n") if body is None else done.stdout.partition(b"\r\n\r\n")
    while head.startswith(b"HTTP/1.1 100"):
        head, _, said = said.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return int(first.split()[1]), dict(line.lower().split(": ", 1) for line in lines), said


def post(server: Running, body: object) -> tuple[int, Any]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    status, headers, said = curl(f"{server.base_url}/chat/completions", body=raw)
    assert headers["content-type"].startswith("application/json")
    return status, json.loads(said)


def test_curl_reads_the_stream(server: Running):
    status, headers, said = curl(
        "-N", f"{server.base_url}/chat/completions", body=json.dumps({**GOOD, "stream": True}).encode()
    )
    assert (status, headers["content-type"].partition(";")[0]) == (200, "text/event-stream")
    events = said.decode().strip().split("\n\n")
    assert events[-1] == "data: [DONE]"
    assert all(event.startswith("data: {") for event in events[:-1])


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"{", None),
        (b"null", None),
        (b"\xff\xfe", None),
        (b'{"model": "kace", "messages": "\\ud800"}', None),
        (b"[" * 100_000, None),
        ({"model": 3, "messages": []}, "model"),
        ({"model": "kace"}, "messages"),
        ({"model": "kace", "messages": []}, "messages"),
        ({"model": "kace", "messages": [{"role": "user"}]}, "messages"),
        ({"model": "kace", "messages": [{"role": "user", "content": "  "}]}, "messages"),
        ({"model": "kace", "messages": [{"role": "system", "content": "only"}]}, "messages"),
        ({"model": "kace", "messages": [{"role": "tool", "content": "x"}]}, "messages"),
        ({"model": "kace", "messages": [*GOOD["messages"], {"role": "assistant", "content": "It is"}]}, "messages"),
        ({"model": "kace", "messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages"),
        ({"model": "kace", "messages": [{"role": "user", "content": "a" * 100_001}]}, "messages"),
        ({**GOOD, "stream": "yes"}, "stream"),
        ({**GOOD, "stream_options": 1}, "stream_options"),
        ({**GOOD, "seed": 10**30}, "seed"),
        ({**GOOD, "tools": "x"}, "tools"),
        ({**GOOD, "n": 2}, "n"),
    ],
)
def test_a_bad_body_is_a_400_that_says_where(server: Running, body: object, param: str | None):
    status, reply = post(server, body)
    assert status == 400
    error = reply["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"
    assert error["param"] == param
    assert 0 < len(error["message"]) < 300


def test_a_body_too_large_is_a_413(server: Running):
    status, reply = post(server, b'{"model": "' + b"a" * 2_000_000)
    assert (status, reply["error"]["code"]) == (413, "body_too_large")


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["-X", "PUT"], 405),
        (["-X", "DELETE"], 405),
        (["-X", "OPTIONS"], 405),
        (["-H", "Host: evil.example"], 403),
        (["-H", "Origin: http://evil.example"], 403),
        (["-H", "Origin: null"], 403),
        (["-H", "Sec-Fetch-Site: cross-site"], 403),
    ],
)
def test_what_the_guard_refuses_is_said_in_the_same_shape(server: Running, arguments: list[str], status: int):
    said = curl(*arguments, f"{server.base_url}/chat/completions", body=json.dumps(GOOD).encode())
    assert said[0] == status
    assert json.loads(said[2])["error"]["type"] == "invalid_request_error"
    assert all(said[1][name] == value.lower() for name, value in SECURITY_HEADERS.items())


@pytest.mark.parametrize("path", ["/v1", "/index.html", "/v1/embeddings", "/../etc/passwd"])
def test_there_is_nothing_else_here(server: Running, path: str):
    said = curl("--path-as-is", server.url + path)
    assert said[0] == 404
    assert json.loads(said[2])["error"]["message"]
    assert all(said[1][name] == value.lower() for name, value in SECURITY_HEADERS.items())
