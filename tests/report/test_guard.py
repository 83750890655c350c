"""The door: what is turned away, and what every answer carries."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Iterator

import pytest

from kace.report.server import SECURITY_HEADERS, Guard
from tests.report.sample_site import TOKEN, Answered, Site, asked, sample_app

GONE = {"type": "http.disconnect"}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with pytest.MonkeyPatch.context() as patched, Site(max_body=1000) as running:
        patched.setattr("kace.report.server.BODY_SECONDS", 0.5)
        yield running


@pytest.fixture(scope="module")
def locked() -> Iterator[Site]:
    with Site(token=TOKEN, open_paths={"/open"}) as running:
        yield running


def secured(answer: Answered) -> bool:
    return all(
        answer.headers.get(name) == value and answer.names.count(name) == 1 for name, value in SECURITY_HEADERS.items()
    )


def test_a_page_is_served_with_every_security_header_whatever_it_says_itself(site: Site):
    answer = site.ask("/")
    assert (answer.status, answer.body) == (200, b"page /")
    assert secured(answer)
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("target", ["/nowhere", "/break"])
def test_every_error_has_them_too(site: Site, target: str):
    answer = site.ask(target)
    assert answer.status >= 400
    assert secured(answer)


@pytest.mark.parametrize("name", ["127.0.0.1", "127.0.0.1:1", "localhost", "LOCALHOST:8123", "[::1]:8123"])
def test_the_names_of_this_machine_are_let_in(site: Site, name: str):
    assert site.ask(host=name).status == 200


@pytest.mark.parametrize(
    "name",
    [
        *("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "localhost.", "evil@127.0.0.1"),
        *("0.0.0.0", "192.168.1.5", "[::2]", "127.0.0.1:port", "127.0.0.1:8123:1", "127.0.0.1/x", "127.1", " "),
    ],
)
def test_any_other_name_is_turned_away(site: Site, name: str):
    assert site.ask(host=name).status in (400, 403)


@pytest.mark.parametrize(
    "lines",
    [
        b"GET / HTTP/1.1\r\n",
        b"GET / HTTP/1.0\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n",
        b"GET / HTTP/1.0\r\nHost: localhost\r\nHost: evil.example\r\n",
    ],
)
def test_one_host_is_needed_and_no_more(site: Site, lines: bytes):
    assert Answered(site.raw(lines + b"\r\n")).status in (400, 403)


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("origin", "null"),
        ("origin", "http://evil.example"),
        ("origin", "https://127.0.0.1:{port}"),
        ("origin", "http://127.0.0.1:1"),
        ("origin", "http://localhost:{port}"),
        ("origin", "http://127.0.0.1:{port}.evil.example"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ],
)
def test_pages_of_others_may_not(site: Site, header: str, value: str):
    answer = site.ask("/act", method="POST", **{header: value.format(port=site.port)})
    assert answer.status == 403
    assert secured(answer)


def test_two_origins_are_not_ours_even_if_one_is(site: Site):
    host = f"127.0.0.1:{site.port}"
    request = f"POST /act HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nOrigin: http://evil.example\r\n"
    assert Answered(site.raw(f"{request}Content-Length: 0\r\n\r\n".encode())).status == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_other_methods_are_not_answered(site: Site, method: str):
    answer = site.ask("/act", method=method)
    assert answer.status == 405
    assert secured(answer)


def test_an_address_of_ten_megabytes_ends_the_connection_and_nothing_else(site: Site):
    said = site.raw(b"GET /" + b"a" * 10_000_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert not said or Answered(said).status in (400, 414)
    assert site.ask("/").status == 200


def test_a_body_over_the_limit_is_not_read(site: Site):
    assert site.ask("/act", method="POST", body=b"a" * 1000).status == 200
    assert site.ask("/act", method="POST", body=b"a" * 1001).status == 413
    assert site.ask("/act", method="POST", content_length="-1").status == 400
    chunked = f"POST /act HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    answer = Answered(site.raw(chunked + b"400\r\n" + b"a" * 1024 + b"\r\n"))
    assert answer.status == 413
    assert secured(answer)


def test_a_body_that_does_not_come_is_not_waited_for(site: Site):
    assert site.ask("/act", method="POST", content_length="5").status == 408


def test_a_bug_is_told_to_the_log_without_secrets_and_not_to_the_client(site: Site, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.ERROR):
        answer = site.ask("/break")
    assert answer.status == 500
    assert b"bug" not in answer.body
    assert "a bug, with" in caplog.text
    assert "sk-canary" not in caplog.text


def test_a_client_that_leaves_within_the_body_is_no_bug(caplog: pytest.LogCaptureFixture):
    scope = {"type": "http", "method": "POST", "path": "/act", "headers": [(b"host", b"localhost")]}
    asked(Guard(sample_app()), scope, {"type": "http.request", "body": b"a", "more_body": True}, GONE)
    assert not caplog.text


def test_without_the_key_nothing_but_the_open_paths_is_answered(locked: Site):
    answer = locked.ask("/")
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert secured(answer)
    assert locked.ask("/nowhere").status == 401
    assert locked.ask("/open").status == 200


@pytest.mark.parametrize(
    "given", ["", "Bearer", "Bearer ", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", TOKEN, "Bearer é"]
)
def test_a_wrong_key_is_no_key(locked: Site, given: str):
    assert locked.ask("/", authorization=given).status == 401


def test_the_key_opens(locked: Site):
    assert locked.ask("/", authorization=f"Bearer {TOKEN}").status == 200
    assert locked.ask("/", authorization=f"bearer  {TOKEN}").status == 200


def test_keys_are_compared_in_constant_time(locked: Site, monkeypatch: pytest.MonkeyPatch):
    compared = []

    def watch(left: bytes, right: bytes) -> bool:
        compared.append((left, right))
        return left == right

    monkeypatch.setattr(hmac, "compare_digest", watch)
    assert locked.ask("/", authorization="Bearer wrong").status == 401
    lengths = {len(side) for pair in compared[:1] for side in pair}
    assert lengths == {32}, "digests, so that not even the length of the key can be timed"
