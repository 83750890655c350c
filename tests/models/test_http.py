"""The HTTP client on real sockets: broken replies, reused connections, proxies and certificates."""

import asyncio
from contextlib import aclosing, suppress

import pytest

from kace.errors import KaceError
from kace.models.base import Transient
from kace.models.http import HttpClient
from tests.models.chat_server import ChatServer, certify, says

OK = b"HTTP/1.1 200 OK\r\n"
FOUR = OK + b"content-length: 4\r\n\r\nfour"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


class Raw:
    """A server that answers request n with the n-th bytes, and says on how many connections they came."""

    def __init__(self, *answers, close=False):
        self.answers, self.close = list(answers), close
        self.connections, self.heads, self.writers, self.copies = 0, [], [], []

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.accept, "127.0.0.1", 0)
        port = self.server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_):
        self.server.close()
        for writer in self.writers:
            writer.transport.abort()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others)

    async def accept(self, reader, writer):
        self.connections += 1
        self.writers.append(writer)
        try:
            await self.serve(reader, writer)
        finally:
            if not self.copies:
                writer.close()

    async def serve(self, reader, writer):
        try:
            while self.answers:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.heads.append(head)
                length = [line for line in head.lower().split("\r\n") if line.startswith("content-length")]
                await reader.readexactly(int(length[0].split(":")[1]) if length else 0)
                for piece in self.answers.pop(0).split(b"|"):  # a bar is a pause
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0.01)
                if self.close:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass


def sent(*answers, times=1, close=False, **headers):
    """The last body or fault of some posts one after the other, and the number of connections they took."""

    async def posts():
        async with Raw(*answers, close=close) as server:
            try:
                async with aclosing(HttpClient(server.url, headers)) as client:
                    for _ in range(times):
                        found = (await client.post("/p", {})).body
            except Exception as error:
                found = error
            return found, server.connections

    return asyncio.run(posts())


def test_bytes_that_nobody_asked_for_never_become_the_next_reply():
    smuggled = FOUR + OK + b"content-length: 4\r\n\r\nevil"
    assert sent(smuggled, FOUR, times=2) == (b"four", 2)


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"x" * 100_000,
        OK + b"content-length: 9\r\n\r\nfour",
        OK + b"content-length: 4\r\ncontent-length: 5\r\n\r\nfour",
        OK + b"content-length: -4\r\n\r\nfour",
        OK + b"transfer-encoding: chunked\r\n\r\n4\r\nfo",
        OK + b"transfer-encoding: chunked\r\n\r\n-4\r\nfour\r\n0\r\n\r\n",
        OK + b"transfer-encoding: chunked\r\n\r\n2\r\nfour\r\n0\r\n\r\n",
        OK + b"transfer-encoding: gzip, chunked\r\n\r\nfour",
        b"",
    ],
)
def test_what_is_no_whole_reply_is_broken(answer):
    found, _ = sent(answer, close=True)
    assert type(found) is Transient and found.billed


def test_after_a_stale_connection_a_retry_opens_a_new_one():
    """The server closes kept connections as requests arrive on them."""

    async def calls():
        async with Raw(*[FOUR] * 4) as server:
            client = HttpClient(server.url, {})
            async with asyncio.TaskGroup() as group:
                for _ in range(3):
                    group.create_task(client.post("/p", {}))
            await asyncio.sleep(0.1)  # the server waits for requests again
            server.answers, server.close = [b"", FOUR, FOUR], True
            with pytest.raises(Transient):
                await client.post("/p", {})
            bodies = [(await client.post("/p", {})).body for _ in range(2)]
            await client.aclose()
            return bodies, server.connections

    assert asyncio.run(calls()) == ([b"four"] * 2, 5)


# Proxies


class Proxy(Raw):
    """Answers CONNECT by joining both ends, and any other request as a server would."""

    forged = b""

    async def serve(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        if not head.startswith("CONNECT"):
            writer.write(FOUR)
            return
        host, port = head.split()[1].split(":")
        if port == "1":
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            return
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        self.writers.append(far_writer)
        writer.write(b"HTTP/1.1 200 Connected\r\n\r\n" + self.forged)

        async def copy(source, sink):
            with suppress(ConnectionError):
                while data := await source.read(65_536):
                    sink.write(data)

        self.copies += [asyncio.create_task(copy(*pair)) for pair in ((reader, far_writer), (far_reader, writer))]


def test_a_plain_server_is_asked_through_the_proxy_with_its_credentials(monkeypatch):
    async def post():
        async with Proxy() as proxy:
            monkeypatch.setenv("HTTP_PROXY", proxy.url.replace("//", "//user:canary%2Fpass@"))
            async with aclosing(HttpClient("http://model.invalid:8000/v1", {})) as client:
                assert (await client.post("/chat", {})).body == b"four"
            return proxy.heads[0]

    head = asyncio.run(post())
    assert head.startswith("POST http://model.invalid:8000/v1/chat HTTP/1.1\r\nHost: model.invalid:8000\r\n")
    assert "Proxy-Authorization: Basic dXNlcjpjYW5hcnkvcGFzcw==\r\n" in head


def test_a_server_in_no_proxy_is_asked_directly(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1")
    assert sent(FOUR) == (b"four", 1)


def test_a_proxy_that_is_not_there_is_named_without_its_password(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "http://user:canary-pass@127.0.0.1:9")
    found, _ = sent(FOUR)
    assert isinstance(found, KaceError)
    assert "proxy http://127.0.0.1:9" in str(found) and "canary" not in str(found)


def test_a_proxy_of_another_kind_is_refused_with_the_fix(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    with pytest.raises(KaceError, match="socks5"):
        HttpClient("http://127.0.0.1:1", {})


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    return folder / "cert.pem", certify(folder)


def over_tls(url, times=3):
    async def posts():
        async with aclosing(HttpClient(url, {})) as client:
            return [(await client.post("/chat/completions", {})).status for _ in range(times)]

    return asyncio.run(posts())


def test_a_certificate_that_is_named_is_trusted_and_its_connection_kept(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with ChatServer([says("4")], tls=certificate[1]) as server:
        assert over_tls(server.url) == [200] * 3
    assert len({seen.peer for seen in server.requests}) == 1


def test_a_certificate_of_another_host_is_not_trusted(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with ChatServer([says("4")], tls=certificate[1]) as server:
        with pytest.raises(KaceError, match=r"cannot trust.*SSL_CERT_FILE"):
            over_tls(server.url.replace("127.0.0.1", "localhost"))


def test_a_secure_server_is_reached_through_a_proxy_that_sees_no_request(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))

    async def posts(url):
        async with Proxy() as proxy:
            monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//user:pass@"))
            async with aclosing(HttpClient(url, {})) as client:
                found = [(await client.post("/chat/completions", {})).status for _ in range(2)]
            async with aclosing(HttpClient("https://127.0.0.1:1", {})) as other:
                with pytest.raises(KaceError, match="407"):
                    await other.post("/", {})
            return found, proxy.heads

    with ChatServer([says("4")], tls=certificate[1]) as server:
        found, heads = asyncio.run(posts(server.url))
    assert found == [200, 200]
    assert [head.split()[0] for head in heads] == ["CONNECT", "CONNECT"]
    assert "Proxy-Authorization: Basic" in heads[0] and "authorization: bearer" not in "".join(heads).lower()


def test_a_proxy_cannot_forge_a_reply_of_a_secure_server(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))

    async def post(url):
        async with Proxy() as proxy:
            proxy.forged = OK + b"content-length: 6\r\n\r\nforged"
            monkeypatch.setenv("HTTPS_PROXY", proxy.url)
            async with aclosing(HttpClient(url, {})) as client:
                try:
                    return (await client.post("/chat/completions", {})).body
                except Transient as error:
                    return str(error).encode()

    with ChatServer([says("4")], tls=certificate[1]) as server:
        assert b"forged" not in asyncio.run(post(server.url))
