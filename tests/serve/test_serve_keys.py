"""Keys: the server's own opens it, the provider's never leaves it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import openai
import pytest
from openai import OpenAI

from tests.command import environment, run_kace
from tests.models.chat_server import Answer, ChatServer, says
from tests.serve.running import Running, Watched, ask

KEY = "serve-key-0123456789"
CANARY = "sk-canary-0123456789abcdef"
PASSWORD = "hunter2hunter2"
PROBLEM = [{"role": "user", "content": "What is 6 times 7?"}]


@contextmanager
def kace_serve(folder: Path, *arguments: str, **env: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`kace serve` as a user starts it, and its base URL."""
    with subprocess.Popen(
        [sys.executable, "-m", "kace", "serve", "--port", "0", *arguments],
        cwd=folder,
        env=environment(folder, **env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        try:
            assert " on http://" in first, first + process.stderr.read()
            yield process, first.split(" on ")[1].split(" ")[0].strip()
        finally:
            process.terminate()
            process.wait(20)


@pytest.fixture(scope="module")
def locked() -> Iterator[Running]:
    with Running(Watched(), key=KEY) as running:
        yield running


@pytest.mark.parametrize("given", ["wrong-key-0123456789", KEY[:-1], f"{KEY}x"])
def test_a_wrong_key_is_a_401_in_the_shape_clients_know(locked: Running, given: str):
    with OpenAI(base_url=locked.base_url, api_key=given) as client:
        with pytest.raises(openai.AuthenticationError) as raised:
            client.chat.completions.create(model="kace", messages=PROBLEM)
        with pytest.raises(openai.AuthenticationError):
            client.models.list()
    assert raised.value.code == "invalid_api_key"
    assert given not in str(raised.value.body)


def test_health_needs_no_key_and_the_rest_does_and_none_in_the_address_counts(locked: Running):
    with urllib.request.urlopen(f"{locked.url}/healthz") as response:
        assert response.read() == b'{"status": "ok"}'
    for path in ("v1/models", f"v1/models?token={KEY}"):
        with pytest.raises(urllib.error.HTTPError, match="401") as refused:
            urllib.request.urlopen(f"{locked.url}/{path}")
        refused.value.close()
    assert locked.post("kace/verdict", {"id": "x", "right": True})[0] == 401


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_other_machines_are_not_let_in_without_a_key(tmp_path: Path, host: str):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    done = run_kace(tmp_path, "serve", "--model", "scripted/steady", "--host", host, "--port", str(port))
    assert done.returncode == 2
    assert "lets other machines in" in done.stderr
    assert "KACE_SERVE_KEY" in done.stderr
    assert "Traceback" not in done.stderr
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=2)


def test_with_a_key_from_the_environment_they_are(tmp_path: Path):
    with kace_serve(tmp_path, "--model", "scripted/steady", "--host", "0.0.0.0", KACE_SERVE_KEY=KEY) as (_, url):
        local = url.replace("0.0.0.0", "127.0.0.1")
        with OpenAI(base_url=local, api_key=KEY) as client:
            assert client.chat.completions.create(model="kace", messages=PROBLEM).choices
        request = urllib.request.Request(f"{local}/models", headers={"Host": "rebound.example"})
        with pytest.raises(urllib.error.HTTPError, match="401") as refused:
            urllib.request.urlopen(request)
        refused.value.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_verb_ends_in_order_on_a_signal(tmp_path: Path, number: signal.Signals):
    with kace_serve(tmp_path, "--model", "scripted/steady?latency=0.7") as (process, url):
        assert "boxed{42}" in ask(url, "What is 6 times 7?")["choices"][0]["message"]["content"]
        process.send_signal(number)
        assert process.wait(15) == 0
        assert process.stderr is not None
        logged, ended = process.stderr.read().splitlines()
        assert "POST /v1/chat/completions 200" in logged
        assert ended == "kace: every request has ended"


def test_a_port_in_use_and_a_model_that_is_none_are_one_line(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run_kace(tmp_path, "serve", "--model", "scripted/steady", "--port", port)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "address already in use" in done.stderr
    done = run_kace(tmp_path, "serve", "--model", "nothing/here", "--port", "0")
    assert done.returncode == 2
    assert "unknown model" in done.stderr
    done = run_kace(tmp_path, "serve", "--model", "openai/m", "--base-url", "http://127.0.0.1:9/v1", "--max-usd", "1")
    assert done.returncode == 2
    assert "needs a price" in done.stderr


def every_byte(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("status", [200, 400, 401])
def test_no_key_leaves_by_a_reply_an_error_a_log_or_a_file(tmp_path: Path, status: int):
    echo = f'{{"error": {{"message": "bad key {CANARY} for {PASSWORD} and {KEY}"}}}}'.encode()
    upstream = [says("\\boxed{42}")] if status == 200 else [Answer(status=status, body=echo)]
    heard = ""
    with ChatServer(upstream) as provider:
        base = provider.url.replace("http://", f"http://user:{PASSWORD}@")
        arguments = ("--model", "openai/m", "--base-url", base, "--record", "served")
        keys = {"OPENAI_API_KEY": CANARY, "KACE_SERVE_KEY": KEY}
        with kace_serve(tmp_path, *arguments, **keys, KACE_TIMEOUT="5") as (process, url):
            for stream in (False, True):
                body = json.dumps({"model": "kace", "messages": PROBLEM, "stream": stream}).encode()
                request = urllib.request.Request(
                    f"{url}/chat/completions", data=body, headers={"Authorization": f"Bearer {KEY}"}
                )
                try:
                    with urllib.request.urlopen(request) as response:
                        heard += str(response.headers) + response.read().decode()
                except urllib.error.HTTPError as error:
                    with error:
                        heard += str(error.headers) + error.read().decode()
            for path in ("v1/models", "healthz"):
                request = urllib.request.Request(
                    f"{url.removesuffix('v1')}{path}", headers={"Authorization": f"Bearer {KEY}"}
                )
                with urllib.request.urlopen(request) as response:
                    heard += response.read().decode()
            process.terminate()
            assert process.wait(20) == 0
            assert process.stderr is not None
            heard += process.stderr.read()
    assert "Traceback" not in heard
    assert ("boxed{42}" in heard) == (status == 200)
    for secret in (CANARY, PASSWORD, KEY):
        assert secret not in heard
        assert secret.encode() not in every_byte(tmp_path)
