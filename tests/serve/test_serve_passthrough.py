"""Chats that are not for the ladder go to the provider as they are, and come back as they are."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx2
import openai
import pytest
from openai import OpenAI

from kace.errors import KaceError
from kace.models.base import Failure, ModelError, Request
from tests.models.chat_server import Answer, ChatServer, Seen, error, says
from tests.serve.running import Running, Watched, until

CHAT = [{"role": "user", "content": "Write a haiku."}]


def chunks(*texts: str) -> bytes:
    events = [{"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "other"}]
    said = [{**events[0], "choices": [{"index": 0, "delta": {"content": text}}]} for text in texts]
    return b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in said) + b"data: [DONE]\n\n"


def provider(seen: Seen) -> Answer:
    if seen.body["model"] == "missing":
        return error(404, "no such model", code="model_not_found")
    if seen.body["model"] == "busy":
        return error(429, "slow down", headers={"retry-after": "7"})
    if seen.body["model"] == "cut":
        return Answer(chunks("one", "two"), headers={"content-type": "text/event-stream"}, reset=True)
    if seen.body.get("stream"):
        return Answer(chunks("old ", "pond"), headers={"content-type": "text/event-stream; charset=utf-8"})
    return says("old pond")


@pytest.fixture(scope="module")
def upstream() -> Iterator[ChatServer]:
    with ChatServer(provider) as server:
        yield server


@pytest.fixture(scope="module")
def client(upstream: ChatServer) -> Iterator[OpenAI]:
    settings = {"model": "openai/m", "base_url": upstream.url, "api_key": "provider-key-0123"}
    with Running(passthrough=True, **settings) as server:
        with OpenAI(base_url=server.base_url, api_key="none", max_retries=0) as opened:
            yield opened


def test_the_body_goes_on_untouched_but_for_the_models_name(client: OpenAI, upstream: ChatServer):
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    reply = client.chat.completions.create(
        model="passthrough/vendor/other", messages=CHAT, n=2, tools=tools, temperature=0.3, extra_body={"odd": [1]}
    )
    assert reply.choices[0].message.content == "old pond"
    assert not hasattr(reply, "kace")
    sent = upstream.requests[-1]
    assert sent.body == {
        "model": "vendor/other",
        "messages": CHAT,
        "n": 2,
        "tools": tools,
        "temperature": 0.3,
        "odd": [1],
    }
    assert sent.headers["authorization"] == "Bearer provider-key-0123"


def test_a_stream_comes_back_as_it_is(client: OpenAI):
    stream = client.chat.completions.create(model="passthrough/other", messages=CHAT, stream=True)
    assert [chunk.choices[0].delta.content for chunk in stream] == ["old ", "pond"]


def test_the_providers_own_errors_come_back(client: OpenAI):
    with pytest.raises(openai.NotFoundError, match="no such model"):
        client.chat.completions.create(model="passthrough/missing", messages=CHAT)
    with pytest.raises(openai.RateLimitError) as raised:
        client.chat.completions.create(model="passthrough/busy", messages=CHAT)
    assert raised.value.response.headers["retry-after"] == "7"


def test_a_stream_that_is_cut_off_is_cut_off(client: OpenAI):
    stream = client.chat.completions.create(model="passthrough/cut", messages=CHAT, stream=True)
    with pytest.raises((httpx2.RemoteProtocolError, openai.APIConnectionError)):
        list(stream)


def test_the_ladder_is_still_there(client: OpenAI):
    reply = client.chat.completions.create(model="kace", messages=CHAT)
    assert reply.kace["exit_path"] == "fallback_last_hs"
    assert [model.id for model in client.models.list()] == ["kace", "openai/m", "m", "passthrough/m"]


def test_caps_of_a_solve_are_refused_where_nothing_is_solved(client: OpenAI):
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(model="passthrough/other", messages=CHAT, extra_body={"kace": {"max_calls": 1}})
    assert raised.value.param == "kace"


def test_a_provider_that_refuses_our_key_does_not_blame_the_clients():
    with ChatServer([error(401, "bad key sk-canary-0123456789abcdef")]) as upstream:
        with Running(passthrough=True, model="openai/m", base_url=upstream.url) as server:
            with OpenAI(base_url=server.base_url, api_key="none", max_retries=0) as client:
                with pytest.raises(openai.InternalServerError) as raised:
                    client.chat.completions.create(model="passthrough/m", messages=CHAT)
    assert raised.value.status_code == 502
    assert raised.value.code == "upstream_refused"
    assert "canary" not in str(raised.value.body)


def test_a_provider_that_is_not_there_is_a_502():
    with Running(passthrough=True, model="openai/m", base_url="http://127.0.0.1:9/v1") as server:
        with OpenAI(base_url=server.base_url, api_key="none", max_retries=2) as client:
            with pytest.raises(openai.InternalServerError, match="lost the provider"):
                client.chat.completions.create(model="passthrough/m", messages=CHAT)


def test_a_chat_goes_on_to_the_next_server_where_one_is_not_there(upstream: ChatServer):
    urls = ["http://127.0.0.1:9/v1", upstream.url]
    with Running(passthrough=True, model="openai/m", base_url=urls) as server:
        with OpenAI(base_url=server.base_url, api_key="none", max_retries=0) as client:
            for number in range(8):
                chat = [{"role": "user", "content": f"Haiku {number}."}]
                reply = client.chat.completions.create(model="passthrough/other", messages=chat)
                assert reply.choices[0].message.content == "old pond"


def test_a_client_that_leaves_hangs_up_on_the_provider():
    slow = Answer(b"data: {}\n\n", headers={"content-type": "text/event-stream"}, endless=True, drip=0.01)
    with ChatServer([slow]) as upstream:
        with Running(passthrough=True, model="openai/m", base_url=upstream.url) as server:
            idle = server.tasks()
            body = json.dumps({"model": "passthrough/m", "messages": CHAT, "stream": True}).encode()
            port = int(server.url.rpartition(":")[2])
            head = (
                f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            with socket.create_connection(("127.0.0.1", port), timeout=600) as connection:
                connection.sendall(head.encode() + body)
                assert connection.recv(10)
            assert until(lambda: server.tasks() == idle)


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (ModelError(Failure.TIMEOUT, "no whole reply"), "upstream_failed"),
        (KaceError("refused", fix="export SECRET"), "upstream_refused"),
    ],
)
def test_a_model_that_fails_is_a_502(failure: Exception, code: str):
    def script(request: Request) -> str:
        raise failure

    with Running(Watched(script), passthrough=True) as server:
        with OpenAI(base_url=server.base_url, api_key="none", max_retries=2) as client:
            with pytest.raises(openai.InternalServerError) as raised:
                client.chat.completions.create(model="passthrough/watched", messages=CHAT)
    assert (raised.value.status_code, raised.value.code) == (502, code)
    assert "SECRET" not in str(raised.value.body)


def test_a_server_that_stops_ends_them_too():
    model = Watched(latency=60.0)
    with Running(model, passthrough=True, grace=0.3) as server:
        with OpenAI(base_url=server.base_url, api_key="none", max_retries=0) as client, ThreadPoolExecutor(1) as pool:
            asking = pool.submit(client.chat.completions.create, model="passthrough/watched", messages=CHAT)
            assert until(lambda: model.under_way == 1)
            server.stop()
            with pytest.raises(openai.InternalServerError, match="stopping"):
                asking.result(20)
    assert model.cancelled == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_without_http_replies_to_the_messages(stream: bool):
    model = Watched(lambda request: f"{len(request.messages)} messages at {request.sampling.temperature}")
    with Running(model, passthrough=True) as server:
        with OpenAI(base_url=server.base_url, api_key="none", max_retries=0) as client:
            messages = [{"role": "system", "content": "Be brief."}, *CHAT]
            reply = client.chat.completions.create(
                model="passthrough/watched", messages=messages, temperature=0.25, stream=stream
            )
            if stream:
                text = "".join(chunk.choices[0].delta.content or "" for chunk in reply)
            else:
                text = reply.choices[0].message.content
                assert reply.usage.completion_tokens == 4
            with pytest.raises(openai.BadRequestError) as raised:
                client.chat.completions.create(model="passthrough/watched", messages=messages, top_p=0.5)
            with pytest.raises(openai.NotFoundError):
                client.chat.completions.create(model="passthrough/other", messages=messages)
    assert text == "2 messages at 0.25"
    assert raised.value.param == "top_p"
    assert model.calls == 1
