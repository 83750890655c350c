"""Many clients at once, clients that leave, and a server that stops: every call ends, and nothing is left behind."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from openai import AsyncOpenAI, OpenAI

from kace.models.base import Request
from kace.models.scripted import dice
from tests.serve.running import Running, Watched, until


def body(text: str, *, stream: bool) -> bytes:
    return json.dumps({"model": "kace", "stream": stream, "messages": [{"role": "user", "content": text}]}).encode()


@contextmanager
def knock(server: Running, text: str = "6 times 7?", *, stream: bool = False) -> Iterator[socket.socket]:
    """A client that has asked and not yet read."""
    port = int(server.url.rpartition(":")[2])
    data = body(text, stream=stream)
    lines = ("POST /v1/chat/completions HTTP/1.1", f"Host: 127.0.0.1:{port}", f"Content-Length: {len(data)}")
    head = "\r\n".join([*lines, "Connection: close", "", ""])
    with socket.create_connection(("127.0.0.1", port), timeout=600) as connection:
        connection.sendall(head.encode() + data)
        yield connection


def heard(connection: socket.socket) -> bytes:
    """Everything the server says."""
    said = b""
    while piece := connection.recv(65536):
        said += piece
    return said


def refuses(url: str) -> bool:
    """Whether a server takes no more connections."""
    try:
        socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=600).close()
    except OSError:
        return True
    return False


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_fifty_clients_at_once_each_get_their_own_answer():
    def script(request: Request) -> str:
        number = request.messages[-1].content.partition("Problem ")[2].partition(".")[0]
        return f"\\boxed{{{number}}}"

    async def ask_all(url: str) -> list[str | None]:
        async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:

            async def ask(number: int) -> str | None:
                messages = [{"role": "user", "content": f"Problem {number}."}]
                if number % 2:
                    reply = await client.chat.completions.create(model="kace", messages=messages)
                    return reply.choices[0].message.content
                stream = await client.chat.completions.create(model="kace", messages=messages, stream=True)
                return "".join([c.choices[0].delta.content or "" async for c in stream])

            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(ask(number)) for number in range(50)]
            return [task.result() for task in tasks]

    model = Watched(script, latency=0.3)
    with Running(model) as server:
        idle = server.tasks()
        assert asyncio.run(ask_all(server.base_url)) == [rf"\boxed{{{n}}}" for n in range(50)]
        assert model.calls == 100
        assert model.most > 50, "they climb side by side"
        assert until(lambda: server.tasks() == idle)


def test_no_more_problems_climb_at_once_than_the_model_has_places_for():
    model = Watched(latency=0.1)
    with Running(model, max_connections=3) as server, ThreadPoolExecutor(12) as pool:
        with OpenAI(base_url=server.base_url, api_key="none", max_retries=0) as client:

            def ask(number: int) -> None:
                client.chat.completions.create(model="kace", messages=[{"role": "user", "content": f"{number}?"}])

            list(pool.map(ask, range(12)))
    assert model.calls == 24 and model.most <= 6, "three problems of two attempts at a time"


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_ends_its_calls_and_nobody_elses(stream: bool):
    model = Watched()
    model.held = True
    with Running(model) as server:
        idle = server.tasks()
        with knock(server, "b?") as staying:
            with knock(server, "a?", stream=stream):
                assert until(lambda: model.under_way == 4)
            assert until(lambda: model.under_way == 2), "within moments, not when the reply is there"
            assert model.cancelled == 2
            model.held = False
            assert b"boxed{42}" in heard(staying)
        assert model.begun == 4, "no tier was begun for nobody"
        assert until(lambda: server.tasks() == idle)


def test_a_server_that_stops_lets_requests_finish():
    model = Watched()
    model.held = True
    with Running(model, grace=60.0) as server:
        with knock(server, "a?") as whole, knock(server, "b?", stream=True) as streamed:
            assert until(lambda: model.under_way == 4)
            server.stop()
            assert until(lambda: refuses(server.url))
            model.held = False
            assert b"boxed{42}" in heard(whole)
            assert b"boxed{42}" in heard(streamed)
    assert model.cancelled == 0


@pytest.mark.parametrize("stream", [False, True])
def test_when_its_grace_is_over_it_ends_them(stream: bool):
    model = Watched()
    model.held = True
    with Running(model, grace=0.3) as server, knock(server, stream=stream) as connection:
        assert until(lambda: model.under_way == 2)
        server.stop()
        assert b"boxed" not in heard(connection)
    assert (model.under_way, model.cancelled) == (0, 2)


def test_nothing_is_left_when_it_has_stopped():
    threads, before = threading.active_count(), descriptors()
    for _ in range(2):
        with Running(Watched(dice(6), latency=0.01)) as server:
            with OpenAI(base_url=server.base_url, api_key="none") as client:
                for number in range(5):
                    client.chat.completions.create(model="kace", messages=[{"role": "user", "content": f"{number}?"}])
            with knock(server):
                pass
    assert threading.active_count() == threads
    assert until(lambda: descriptors() <= before)
