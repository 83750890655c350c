from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from kace.cards.store import TreeStore
from kace.report.render import assets, assets_mark
from kace.report.server import CSP
from kace.report.workspace import Workspace
from tests.report.opened import opened
from tests.report.sample_site import asked
from tests.report.samples import a_run, a_shelf_of_all, a_solve, a_tree


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What nothing here changes."""
    root = tmp_path_factory.mktemp("app")
    a_shelf_of_all(root / "opened")
    TreeStore(root / "opened" / "oak").snapshot("before")
    (root / "secret.txt").write_text("the secret")
    return root


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[TestClient]:
    snapshot = folder / "opened" / "oak" / "snapshots" / "before.jsonl"
    with opened(folder / "opened", snapshot) as client:
        yield client


def sent(app: ASGIApp, path: str) -> tuple[int, dict[str, str], str]:
    """The answer to a path that no client would send as it is."""
    raw = path.partition("?")[0].encode()
    scope = {
        **{"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http"},
        **{"path": unquote(raw.decode()), "raw_path": raw, "query_string": b"", "root_path": ""},
        **{"headers": [(b"host", b"127.0.0.1")], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80)},
    }
    said = asked(app, scope, {"type": "http.request", "body": b"", "more_body": False})
    headers = {name.decode(): value.decode() for name, value in said[0]["headers"]}
    return said[0]["status"], headers, b"".join(each.get("body", b"") for each in said[1:]).decode()


PAGES = (
    *("/", "/tree/oak", "/tree/oak/card/EXACT_SUM_OF_SQUARES", "/tree/oak?q=sum"),
    *("/run/first", f"/run/first/problem/{'b' * 16}/0", "/run/first?exit=x&page=9999&sort=%00", "/learner/oak"),
    *("/learner/oak/proposals", "/inbox/letters", "/inbox/letters/propose-1"),
    *("/run/first/against/oak.epoch-1-add-MS-run",),
)


@pytest.mark.parametrize("path", PAGES)
def test_every_kind_of_page_answers(client, path):
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-security-policy"] == CSP


MISSING = (
    *("/nothing", "/tree", "/tree/ash", "/tree/oak/card/NO_SUCH_CARD", "/tree/oak/cell/x/y", "/run/first/problem/x/0"),
    *("/run/first/problem/x/not-a-number", "/run/x", "/learner/x", "/inbox/x", "/inbox/letters/x"),
    *("/run/first/against/first", "/run/first/against/none", "/run/none/against/first"),
    *("/tree/oak/extra/x/y", "/assets/nothing.css", f"/assets/{assets_mark()}/nothing.css", "/assets/"),
)


@pytest.mark.parametrize("path", MISSING)
def test_what_is_not_there_is_a_page_that_says_so(client, path):
    answer = client.get(path)
    assert answer.status_code == 404
    assert "Not here" in answer.text and 'href="/"' in answer.text
    assert answer.headers["content-security-policy"] == CSP


OUTSIDE = (
    *("/../secret.txt", "/..%2fsecret.txt", "/%2e%2e/secret.txt", "/%2e%2e%2fsecret.txt", "/%252e%252e%252fsecret.txt"),
    *("/run/..", "/run/../secret.txt", "/run/%2e%2e", "/run/%2e%2e%2f%2e%2e%2fsecret.txt", "/run/..%5csecret.txt"),
    *("/run/first%00", "/run/%00", "/run/first/problem/..%2f..%2fsecret.txt/0", "/run//etc/passwd", "//etc/passwd"),
    *("/tree/%2fetc%2fpasswd", "/tree/oak/card/..%2f..%2f..%2fsecret.txt", "/inbox/letters/..%2f..%2fsecret.txt"),
    *("/inbox/letters/..%2f..%2f..%2fsecret", "/inbox/letters/%2e", "/inbox/letters/a%5c..%5csecret"),
    *("/assets/../app.py", "/assets/..%2fapp.py", "/assets/%2e%2e/app.py", "/assets/katex/../../app.py"),
    *("/assets//etc/passwd", "/run/%ff"),
    *("/tree/" + "a" * 500, "/tree/oak%0d%0aX-Evil:1", "/tree/%e2%80%aeoak"),
)


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_path_leads_out_of_what_is_open(client, path):
    status, headers, text = sent(client.app, path)
    assert status in {400, 404}
    assert "the secret" not in text and "root:" not in text and "import" not in text
    assert headers["content-security-policy"] == CSP
    assert "x-evil" not in headers


def test_an_encoded_slash_stays_inside_its_part(client):
    assert sent(client.app, "/run%2ffirst")[0] == 404
    assert sent(client.app, "/run/%66irst")[0] == 200


def test_assets_are_kept_for_ever_under_the_mark_of_their_content_only(client):
    kept = client.get(f"/assets/{assets_mark()}/kace.css")
    assert kept.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert kept.content == assets()["kace.css"]
    assert client.get("/assets/kace.css").status_code == 404


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("view.js", "text/javascript; charset=utf-8"),
        ("kace.css", "text/css; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
        ("katex/fonts/KaTeX_Main-Regular.woff2", "font/woff2"),
        ("katex/LICENSE", "text/plain; charset=utf-8"),
    ],
)
def test_assets_say_what_they_are(client, name, kind):
    answer = client.get(f"/assets/{assets_mark()}/{name}")
    assert (answer.headers["content-type"], answer.headers["x-content-type-options"]) == (kind, "nosniff")
    assert answer.headers["content-security-policy"] == CSP


@pytest.mark.parametrize("path", ["/", "/tree/oak", "/run/first", "/inbox/letters", "/learner/oak"])
def test_only_an_exchange_folder_takes_anything(client, path):
    answer = client.post(path, data={"text": "x"})
    assert answer.status_code == 405 and "Nothing can be sent here" in answer.text


def test_a_page_that_fails_says_so_and_no_more(client, monkeypatch):
    def broken(*_: object) -> None:
        raise RuntimeError("sk-secret-key-123456 inside")

    monkeypatch.setattr(Workspace, "tree", broken)
    answer = client.get("/tree/oak")
    assert answer.status_code == 500 and "Something went wrong here" in answer.text
    assert "sk-secret" not in answer.text and "Traceback" not in answer.text
    assert answer.headers["content-security-policy"] == CSP


def test_a_damaged_item_says_what_is_wrong_with_it(tmp_path):
    a_tree(tmp_path / "oak")
    with opened(tmp_path) as client:
        (tmp_path / "oak" / "cards.jsonl").write_text("{}\n")
        answer = client.get("/tree/oak")
        assert answer.status_code == 500
        assert "This cannot be shown" in answer.text and "the header is damaged" in answer.text
        assert client.get("/").status_code == 200


def test_the_first_page_shows_what_is_open_at_a_glance(client):
    text = client.get("/").text
    assert "2 cards" in text and "1 request waiting" in text and "1 solve" in text


def test_the_first_page_marks_unfinished_runs(tmp_path):
    data = {"data": {"problems": 3, "hash": "d" * 16}}
    os.utime(a_run(tmp_path / "half", **data) / "traces.jsonl", (0, 0))
    a_run(tmp_path / "whole", [a_solve(char * 16) for char in "abc"], **data)
    with opened(tmp_path) as client:
        text = client.get("/").text
    assert "unfinished" in text and "1 of 3 solves" in text and "3 solves" in text
