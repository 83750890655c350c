"""Promises that an attack from outside broke once: each stays kept."""

from __future__ import annotations

import asyncio
import base64
import html
import json
import socket
import ssl
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import aclosing, suppress
from pathlib import Path

import pytest

from kace.config import Caps, load_config
from kace.errors import KaceError, UsageError, keep_secret, without_secrets
from kace.models import cache
from kace.models.base import Transient
from kace.models.budget import Ledger, Metered, worst_cost
from kace.models.cache import Cached, CallStore
from kace.models.http import OpenAIModel
from kace.models.limits import Limited
from kace.models.scripted import Scripted, steady
from kace.problems import load_problems
from tests.attacks.given import KEY, PRICE, request
from tests.command import environment, run_kace
from tests.disk import no_file_grows_past
from tests.models.chat_server import ChatServer, certify, completion, says

DICE = ("--model", "scripted/dice")


# Money


def test_a_call_that_is_cancelled_under_way_is_charged_and_one_that_queues_is_not():
    ledger = Ledger(prices={"openai/m": PRICE})

    async def work() -> None:
        slow = Scripted(steady, latency=60.0)
        slow.name = "openai/m"
        model = Metered(Limited(slow, 2), ledger, "solver")
        tasks = [asyncio.create_task(model.complete(request(index))) for index in range(5)]
        await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    asyncio.run(work())
    assert ledger.usd == pytest.approx(2 * worst_cost(PRICE, request()))
    assert ledger.roles["solver"].failed == 5 and ledger.reserved == pytest.approx(0)


@pytest.fixture(scope="module")
def broken_tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path, list[int]]]:
    """A server that takes whole requests over TLS, then sends a record that no key fits."""
    folder = tmp_path_factory.mktemp("tls")
    context = certify(folder)
    taken: list[int] = []

    def answer(connection: socket.socket) -> None:
        read, written = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(read, written, server_side=True)

        def until_done(step):
            while True:
                try:
                    found = step()
                except ssl.SSLWantReadError:
                    found = None
                connection.sendall(written.read())
                if found is not None:
                    return found
                read.write(connection.recv(65_536))

        until_done(lambda: tls.do_handshake() or True)
        seen = b""
        while not seen.endswith(b"}"):
            seen += until_done(lambda: tls.read(65_536))
        taken.append(len(seen))
        connection.sendall(b"\x17\x03\x03\x00\x20" + b"x" * 32)
        connection.close()

    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"https://127.0.0.1:{server.getsockname()[1]}/v1", folder / "cert.pem", taken
        server.shutdown(socket.SHUT_RDWR)


def test_a_tls_fault_after_the_request_was_taken_is_charged(
    broken_tls: tuple[str, Path, list[int]], monkeypatch: pytest.MonkeyPatch
):
    url, certificate, taken = broken_tls
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    ledger = Ledger(Caps(), {"openai/m": PRICE})

    async def work() -> None:
        model = OpenAIModel("m", base_url=url, api_key=None, name="openai/m")
        async with aclosing(Metered(Limited(model, base=0.01), ledger, "solver")) as metered:
            with pytest.raises(Transient):
                await metered.complete(request())

    asyncio.run(work())
    assert len(taken) == ledger.calls == 4
    assert ledger.usd == pytest.approx(4 * worst_cost(PRICE, request()))


# Disks


def test_no_call_is_made_whose_reply_could_not_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    model = Scripted(lambda asked: "x" * 2_000)

    async def ask(store: CallStore, count: int) -> int:
        cached = Cached(model, store)
        refused = 0
        for index in range(count):
            try:
                await cached.complete(request(index))
            except KaceError as error:
                assert "cannot write" in str(error) and "\n" not in str(error)
                refused += 1
        return refused

    with no_file_grows_past(10_000):
        assert asyncio.run(ask(CallStore(tmp_path / "calls"), 20)) > 10
    assert model.calls <= 5, "the first reply that does not fit is the last one"
    monkeypatch.setattr(cache, "MIN_FREE", 1 << 60)
    before = model.calls
    assert asyncio.run(ask(CallStore(tmp_path / "other"), 5)) == 5
    assert model.calls == before


def test_a_full_disk_is_one_line(tmp_path: Path):
    (tmp_path / "p.jsonl").write_text("".join(f'{{"problem": "{n} + 1? {"x" * 900}"}}\n' for n in range(50)))
    script = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)); from kace.cli import main; main()"
    )
    command = [sys.executable, "-c", script, "solve", "--file", "p.jsonl", *DICE, "--out", "run"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "kace: cannot write" in done.stderr


@pytest.mark.parametrize("words", [("solve", "6 times 7?", *DICE), ("--help",), ("solve", "--file", "p.jsonl", *DICE)])
def test_output_that_cannot_be_written_is_one_line(tmp_path: Path, words: tuple[str, ...]):
    (tmp_path / "p.jsonl").write_text('{"problem": "6 times 7?"}\n')
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kace", *words], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True
        )
    lines = [line for line in done.stderr.splitlines() if line.startswith("kace: ")]
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert lines[-1].startswith("kace: the output cannot be written")


# Settings


ODD_PROXIES = ("http://[bad", "http://127.0.0.1:99999", "http://", "socks5://x", "http://ü[x", "::::", "http://a b:80")


@pytest.mark.parametrize("proxy", ODD_PROXIES)
def test_an_odd_proxy_is_one_line(tmp_path: Path, proxy: str):
    server = ("--model", "openai/m", "--base-url", "http://10.255.0.1:9/v1")
    done = run_kace(tmp_path, "solve", "6 times 7?", *server, http_proxy=proxy, no_proxy="")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
    assert "proxy" in done.stderr


def test_an_address_that_is_not_ascii_goes_through_a_proxy(tmp_path: Path):
    with ChatServer([says(r"\boxed{42}")]) as server:
        there = ("--model", "openai/m", "--base-url", "http://model.invalid/vü/1")
        proxy = server.url.removesuffix("/v1")
        done = run_kace(tmp_path, "solve", "6 times 7?", *there, http_proxy=proxy, no_proxy="")
    assert done.returncode == 0 and "42" in done.stdout, done.stderr
    assert {seen.path for seen in server.requests} == {"http://model.invalid/v%C3%BC/1/chat/completions"}


@pytest.mark.parametrize("seed", [10**30, 2**63, 2**40])
def test_a_seed_that_no_table_holds_is_refused_before_a_call(tmp_path: Path, seed: int):
    (tmp_path / "p.jsonl").write_text('{"problem": "6 times 7?", "answer": "42"}\n')
    done = run_kace(tmp_path, "eval", "--data", "p.jsonl", *DICE, "--seed", str(seed), "--out", "run")
    assert done.returncode == 2 and "setting 'seed'" in done.stderr
    assert not (tmp_path / "run").exists()
    kept = run_kace(tmp_path, "eval", "--data", "p.jsonl", *DICE, "--seed", str(2**40 - 1), "--out", "run")
    assert kept.returncode == 0 and "could not be read" not in run_kace(tmp_path, "report", "run").stderr


# Connections


def test_no_call_fails_where_the_server_closes_idle_connections(record_property: Callable[[str, object], None]):
    """It closes each one a moment after its reply, and does not say so."""
    record_property("tries", 600)
    body = json.dumps(completion({"content": r"\boxed{4}"})).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    served = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal served
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await reader.readuntil(b"}]")
            served += 1
            writer.write(head.encode() + body)
            await asyncio.sleep(0.001 * (served % 10))
        writer.close()

    async def work() -> Ledger:
        ledger = Ledger()
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
            model = OpenAIModel("m", base_url=url, api_key=None, name="openai/m")
            async with aclosing(Metered(Limited(model, 100, base=0.01), ledger, "solver")) as metered:
                async with asyncio.TaskGroup() as group:
                    for index in range(600):
                        group.create_task(metered.complete(request(index)))
        return ledger

    assert asyncio.run(work()).calls < 900, "after the first lost connections, requests open their own"
    assert served == 600


# Problems


@pytest.mark.parametrize("verb", [("solve", "--file"), ("eval", "--system", "tiered", "--seeds", "1", "--data")])
def test_answers_that_were_corrected_are_graded_anew_without_a_call(tmp_path: Path, verb: tuple[str, ...]):
    def run(answer: str) -> str:
        (tmp_path / "p.jsonl").write_text(json.dumps({"problem": "6 times 7?", "answer": answer}) + "\n")
        done = run_kace(tmp_path, *verb, "p.jsonl", "--model", "scripted/steady", "--out", "run")
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    assert "accuracy     0.0%" in run("41")
    calls = sum(len(path.read_text().splitlines()) for path in (tmp_path / "run" / "calls").iterdir())
    for _ in range(2):
        assert "accuracy     100.0%" in run("42")
    assert calls == sum(len(path.read_text().splitlines()) for path in (tmp_path / "run" / "calls").iterdir())


def test_two_problems_with_one_id_and_an_endless_id_are_refused(tmp_path: Path):
    path = tmp_path / "p.jsonl"
    path.write_text('{"id": "a", "problem": "1?"}\n{"id": "b", "problem": "2?"}\n{"id": "a", "problem": "3?"}\n')
    with pytest.raises(UsageError, match=r"p\.jsonl:3: the same id as line 1"):
        load_problems(path)
    path.write_text(json.dumps({"id": "x" * 100_000, "problem": "1?"}) + "\n")
    with pytest.raises(UsageError, match="the id has more than 200 characters"):
        load_problems(path)


# Keys


def test_the_key_of_the_environment_is_not_sent_where_a_file_says(tmp_path: Path):
    file = tmp_path / "kace.toml"
    env = {"OPENAI_API_KEY": KEY}
    file.write_text('base_url = "https://elsewhere.invalid/v1"\n')
    with pytest.raises(UsageError, match=r"kace\.toml names https://elsewhere\.invalid/v1"):
        load_config(file=file, env=env)
    assert load_config({"base_url": "https://own.invalid/v1"}, file=file, env=env).api_key
    file.write_text(f'base_url = "https://elsewhere.invalid/v1"\napi_key = "{KEY}"\n')
    assert load_config(file=file, env={}).api_key
    file.write_text('base_url = "http://127.0.0.1:8000/v1"\n')
    assert load_config(file=file, env=env).api_key


def packed(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


SPELLINGS = {
    "in a packed header": packed(f"Bearer {KEY}"),
    "packed with a user": packed(f"user:{KEY}"),
    "packed at another offset": packed(f"xx{KEY}yy"),
    "packed over lines": textwrap.fill(packed(f"Authorization: Bearer {KEY}"), 24),
    "packed for addresses": base64.urlsafe_b64encode(f"Bearer {KEY}".encode()).decode(),
    "in lower percents": KEY.replace("/", "%2f").replace("+", "%2b"),
    "in decimal entities": KEY.replace("/", "&#47;").replace("+", "&#43;"),
    "in hexadecimal entities": html.escape(KEY).replace("/", "&#x2F;").replace("+", "&#x2B;"),
    "over lines": f"{KEY[:9]}\n{KEY[9:]}",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_key_in_any_spelling_is_taken_out_of_replies(spelling: str):
    keep_secret(KEY)
    text = f"before {SPELLINGS[spelling]} after"
    left = without_secrets(text)
    assert left.startswith("before ") and left.endswith(" after") and "[redacted]" in left
    assert len(left) < len(text) - 8 and "0123456" not in left
