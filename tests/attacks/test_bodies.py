"""Bodies without end, packed once and twice, for a solver and through `serve --passthrough`: memory stays bounded."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import tracemalloc
import zlib

import httpx2
import openai
import pytest
from openai import OpenAI

from kace.models.apis import OpenAIModel
from kace.models.base import AttemptKey, ModelError, Request, Sampling, chat
from kace.models.wire import MAX_BODY
from kace.serve.passthrough import MAX_STREAM
from tests.models.chat_server import JSON, Answer, ChatServer, completion, says
from tests.serve.running import Running

CHAT = [{"role": "user", "content": "Write a haiku."}]
EVENTS = {"content-type": "text/event-stream"}
GZIP = {"content-encoding": "gzip"}
MEMORY = 8 * MAX_BODY  # bytes that a body may take on its way
ZEROS = gzip.compress(bytes(1_000_000_000), 9)


def unended_gzip() -> bytes:
    """Many megabytes of spaces, and room for more."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return packer.compress(b" " * 200_000_000) + packer.flush(zlib.Z_SYNC_FLUSH)


BOTTOMLESS = {
    "endless": Answer(b" " * 100_000, endless=True),
    "a gigabyte in one megabyte": Answer(ZEROS, headers={**JSON, **GZIP}),
    "packed twice": Answer(gzip.compress(ZEROS), headers={**JSON, "content-encoding": "gzip, gzip"}),
    "packed, and never ended": Answer(unended_gzip(), headers={**JSON, **GZIP}),
    "another packing": Answer(zlib.compress(bytes(200_000_000)), headers={**JSON, "content-encoding": "deflate"}),
}
STREAMED = {name: Answer(answer.body, headers={**answer.headers, **EVENTS}, endless=answer.endless)
            for name, answer in BOTTOMLESS.items()}  # fmt: skip


@pytest.mark.parametrize("body", BOTTOMLESS)
def test_a_solver_reads_no_more_than_it_can_hold(body: str) -> None:
    async def work(url: str) -> None:
        model = OpenAIModel("m", base_url=url, api_key=None, timeout=60.0, name="openai/m")
        request = Request(chat("s", "u"), Sampling(0.6, 100, 0), AttemptKey("p", 0, "ES", 0))
        try:
            await model.complete(request)
        finally:
            await model.aclose()

    with ChatServer([BOTTOMLESS[body]]) as server:
        tracemalloc.start()
        try:
            with pytest.raises(ModelError, match=r"larger than \d+ MB|packed as"):
                asyncio.run(work(server.url))
            assert tracemalloc.get_traced_memory()[1] < MEMORY
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("body", BOTTOMLESS)
def test_a_server_passes_on_no_more_than_it_can_hold(body: str, stream: bool) -> None:
    with ChatServer([(STREAMED if stream else BOTTOMLESS)[body]]) as upstream:
        with Running(passthrough=True, model="openai/m", base_url=upstream.url) as server:
            with httpx2.Client(timeout=60.0) as client:
                asked = {"model": "passthrough/m", "messages": CHAT, "stream": stream}
                tracemalloc.start()
                try:
                    read = 0
                    try:
                        with client.stream("POST", f"{server.base_url}/chat/completions", json=asked) as response:
                            read = sum(map(len, response.iter_raw()))
                            status = response.status_code
                    except httpx2.RemoteProtocolError:
                        status = 0
                    assert tracemalloc.get_traced_memory()[1] < MEMORY
                finally:
                    tracemalloc.stop()
    if stream:
        assert status == 0, "a stream that has begun is cut off"
    else:
        assert status == 502
    assert read <= MAX_STREAM


def test_replies_packed_once_are_read_and_passed_on() -> None:
    packed = Answer(gzip.compress(says("old pond").body), headers={**JSON, **GZIP})
    with ChatServer([packed]) as upstream:
        with Running(passthrough=True, model="openai/m", base_url=upstream.url) as server:
            with OpenAI(base_url=server.base_url, api_key="none", max_retries=0) as client:
                reply = client.chat.completions.create(model="passthrough/m", messages=CHAT)
    assert reply.choices[0].message.content == "old pond"


@pytest.mark.parametrize("stream", [False, True])
def test_a_key_that_the_provider_returns_is_not_passed_on(stream: bool) -> None:
    key = "provider/key-0123"
    said = json.dumps({**completion({"content": f"é {key}"}), "choices": [{"index": 0, "delta": {"content": key}}]})
    plain = Answer(json.dumps(completion({"content": f"é {key}"})).replace("/", r"\/").encode())
    events = Answer(f"data: {said}\n\n".encode() * 3, headers=EVENTS, drip=0.0001)
    with ChatServer([events if stream else plain]) as upstream:
        with Running(passthrough=True, model="openai/m", base_url=upstream.url, api_key=key) as server:
            asked = {"model": "passthrough/m", "messages": CHAT, "stream": stream}
            reply = httpx2.post(f"{server.base_url}/chat/completions", json=asked, timeout=60.0)
    assert "key-0123" not in reply.text
    assert reply.text.count("[redacted]") == (3 if stream else 1)


@pytest.mark.parametrize("order", [("Content-Length: 5", "Transfer-Encoding: chunked"),
                                   ("Transfer-Encoding: chunked", "content-length: 5")])  # fmt: skip
def test_a_body_that_is_measured_twice_is_refused(order: tuple[str, str]) -> None:
    with Running() as server:
        port = int(server.url.rpartition(":")[2])
        head = "\r\n".join(("POST /v1/chat/completions HTTP/1.1", f"Host: 127.0.0.1:{port}", *order, "", ""))
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            connection.sendall(head.encode() + b"0\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n")
            answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1, "nothing after it is read"


def test_the_provider_may_still_be_asked_for_much() -> None:
    long = "x" * 4_000_000
    with ChatServer([says(long)]) as upstream:
        with Running(passthrough=True, model="openai/m", base_url=upstream.url) as server:
            with OpenAI(base_url=server.base_url, api_key="none", max_retries=0) as client:
                try:
                    reply = client.chat.completions.create(model="passthrough/m", messages=CHAT)
                except openai.APIError as error:
                    pytest.fail(str(error))
    assert reply.choices[0].message.content == long
