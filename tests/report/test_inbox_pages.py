"""The inbox: requests that can be read, and replies that are written whole, once, and nowhere else."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from kace.models import exchange
from kace.report.inbox import MAX_REPLY, Inbox
from kace.report.render import NotHere, path_of
from kace.report.workspace import Workspace
from tests.report.browser import chromium, chromium_missing, site, watched
from tests.report.hostile import CORPUS
from tests.report.letters import RULINGS, asking_for_cards, asking_for_rulings, put, taken
from tests.report.opened import opened
from tests.report.page_audit import Audit, body_of


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replies that nobody is writing need not be watched for long."""
    monkeypatch.setattr(exchange, "SETTLED", 0.01)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "letters"


def shown(client: TestClient, name: str) -> Audit:
    answer = client.get(path_of("inbox", "letters", name))
    assert answer.status_code == 200
    return Audit(body_of(answer.text))


def send(client: TestClient, name: str, text: str, **fields: str | None):
    """Send the form as a person would who has just opened the page; a field of `None` is left out."""
    return client.post(path_of("inbox", "letters", name), data={"text": text, **fields})


def reply_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.reply.md"


# Reading


def test_what_waits_comes_first_and_the_longest_waiting_before_all(folder: Path):
    old, new, done = put(folder, asking_for_cards(number=1), asking_for_cards(number=2), asking_for_rulings())
    reply_file(folder, done).write_text(RULINGS)
    os.utime(folder / f"{old}.request.md", (1, 1))
    with opened(folder) as client:
        page = Audit(body_of(client.get("/inbox/letters").text))
    assert [entry.name for entry in Inbox(folder).entries()] == [old, new, done]
    assert "2 of 3 requests wait" in page.text
    assert page.text.index(old) < page.text.index(new) < page.text.index("Answered") < page.text.index(done)


def test_the_instruction_comes_first_and_the_reply_begins_as_a_template(folder: Path):
    (name,) = put(folder, asking_for_cards("What is half of 8?"))
    with opened(folder) as client:
        page = shown(client, name)
    at = [page.text.index(words) for words in ("What to do", "What it is about", "half of 8", "How replies are read")]
    assert at == sorted(at)
    assert "id: difficulty: problems: routing: payload:" in " ".join(page.text.split())
    assert 'data-copy="whole"' in page.html and 'id="whole"' in page.html


def test_a_request_is_taken_apart_for_reading(folder: Path):
    (name,) = put(folder, asking_for_cards(r"What is $\frac{8}{2}$?"))
    with opened(folder) as client:
        html = client.get(path_of("inbox", "letters", name)).text
    page = Audit(body_of(html))
    assert "Knowledge that was missing: algebra, hard" in page.text
    assert '<blockquote class="quote problem">' in html and '<span class="math">' in html
    assert "=====" not in page.text, "the ruling lines are for files"
    assert "The form of a card" in page.text, "the rules stand beside the form"
    assert "<card>" in page.text and "payload:" in page.text


def test_a_second_round_begins_with_what_was_wrong(folder: Path):
    first = asking_for_cards()
    again = type(first)(
        (*first.messages, first.messages[1].__class__(first.messages[1].role.ASSISTANT, "no block"), first.messages[1]),
        first.sampling,
        first.attempt,
    )
    (name,) = put(folder, again)
    with opened(folder) as client:
        page = shown(client, name)
    assert "second round" in page.text
    assert page.text.index("What could not be used") < page.text.index("The reply of the first round")


def test_a_text_that_is_no_request_of_ours_is_shown_as_it_is(folder: Path):
    folder.mkdir()
    (folder / "note.request.md").write_text("Please *help*.\n<b>now</b>")
    with opened(folder) as client:
        page = shown(client, "note")
        answer = send(client, "note", "Yes.")
    assert "Please *help*. <b>now</b>" in page.text
    assert answer.status_code == 303 and reply_file(folder, "note").read_text() == "Yes.\n"


@pytest.mark.parametrize("text", CORPUS)
def test_nothing_in_a_request_a_reply_or_a_name_becomes_markup(folder: Path, text: str):
    hostile = f"x {text[:60]}".translate({ord(sign): "" for sign in "/\\\u2028"})
    folder.mkdir()
    (folder / f"{hostile}.request.md").write_text(text)
    names = (hostile, *put(folder, asking_for_cards(text)))
    reply_file(folder, names[1]).write_text(f"{text}\n<card>\n{text}\n</card>")
    with opened(folder) as client:
        pages = [client.get("/inbox/letters"), *(client.get(path_of("inbox", "letters", name)) for name in names)]
        pages.append(send(client, names[1], ""))
    for page in pages:
        assert page.status_code in (200, 422)
        assert Audit(page.text).strange == []


# Writing


def test_a_reply_is_written_as_the_learner_reads_it(folder: Path):
    request = asking_for_rulings()
    (name,) = put(folder, request)
    with opened(folder) as client:
        answer = send(client, name, RULINGS.replace("\n", "\r\n"))
        assert answer.status_code == 303 and answer.headers["location"] == path_of("inbox", "letters", name)
        page = shown(client, name)
    assert taken(folder, request) == RULINGS + "\n"
    assert "true for every n" in page.text and "answered" in page.text
    assert sorted(path.name for path in folder.iterdir()) == [f"{name}.reply.md", f"{name}.request.md"], "no litter"


def test_a_reply_that_is_there_is_never_overwritten_unasked(folder: Path):
    (name,) = put(folder, asking_for_rulings())
    reply_file(folder, name).write_text("the first reply")
    with opened(folder) as client:
        answer = send(client, name, RULINGS)
    page = Audit(body_of(answer.text))
    assert answer.status_code == 422
    assert "Nothing was written" in page.text and "the first reply" in page.text
    assert page.written == RULINGS, "what was typed is kept"
    assert reply_file(folder, name).read_text() == "the first reply"


def test_of_many_who_reply_at_once_one_succeeds_and_the_others_are_told(folder: Path):
    (name,) = put(folder, asking_for_rulings())
    texts = [RULINGS.replace("true for every n", f"number {number}") for number in range(16)]
    outcomes: dict[str, int] = {}
    with opened(folder) as client:
        begin = threading.Barrier(len(texts))

        def reply(text: str) -> None:
            begin.wait()
            outcomes[text] = client.post(path_of("inbox", "letters", name), data={"text": text}).status_code

        threads = [threading.Thread(target=reply, args=(text,)) for text in texts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(outcomes.values()) == [303] + [422] * 15
    winner = next(text for text, status in outcomes.items() if status == 303)
    assert reply_file(folder, name).read_text() == winner + "\n"


@pytest.mark.parametrize(
    "headers",
    [{"origin": "http://evil.test"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}, {"host": "evil.test"}],
)
def test_another_site_cannot_send(folder: Path, headers: dict[str, str]):
    (name,) = put(folder, asking_for_rulings())
    with opened(folder) as client:
        answer = client.post(path_of("inbox", "letters", name), data={"text": RULINGS}, headers=headers)
    assert answer.status_code == 403
    assert not reply_file(folder, name).exists()


@pytest.mark.parametrize("text", ["", " \n\t ", "x" * (MAX_REPLY + 1)])
def test_an_empty_or_huge_reply_is_refused(folder: Path, text: str):
    (name,) = put(folder, asking_for_rulings())
    with opened(folder) as client:
        assert send(client, name, text).status_code == 422
    assert not reply_file(folder, name).exists()


def test_letters_beyond_ascii_arrive_as_they_were_sent(folder: Path):
    request = asking_for_cards()
    (name,) = put(folder, request)
    text = "Größe: α ≤ β, 𝔽₂, “quoted”, \\frac{1}{2}, a+b & c=d%20\n<card>…</card>"
    with opened(folder) as client:
        assert send(client, name, text).status_code == 303
    assert taken(folder, request) == text + "\n"


# Nothing outside


@pytest.mark.parametrize(
    "name", ["..", ".", "", "../secret", "a/../../secret", "/etc/passwd", "x\0y", "nothing", "x" * 5000]
)
def test_a_name_leads_nowhere_but_to_a_request_of_the_folder(folder: Path, name: str):
    put(folder, asking_for_rulings())
    (folder.parent / "secret.request.md").write_text("secret")
    inbox = Inbox(folder)
    for act in (inbox.read, lambda name: inbox.write(name, "x")):
        with pytest.raises(NotHere):
            act(name)
    assert [path.name for path in folder.parent.iterdir() if "reply" in path.name] == []


def test_links_are_neither_read_nor_written_through(folder: Path):
    (name,) = put(folder, asking_for_rulings())
    secret = folder.parent / "secret.txt"
    secret.write_text("secret")
    (folder / "linked.request.md").symlink_to(secret)
    reply_file(folder, name).symlink_to(secret)
    os.mkfifo(folder / "pipe.request.md")
    inbox = Inbox(folder)
    assert [entry.name for entry in inbox.entries()] == [name]
    with pytest.raises(NotHere):
        inbox.read("linked")
    with pytest.raises(NotHere):
        inbox.read("pipe")
    with pytest.raises(Exception, match="a link"):
        inbox.write(name, RULINGS)
    assert secret.read_text() == "secret"


def test_a_folder_that_cannot_be_written_says_so_and_keeps_the_text(folder: Path, monkeypatch: pytest.MonkeyPatch):
    (name,) = put(folder, asking_for_rulings())

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kace.files.os.fsync", full)
    with opened(folder) as client:
        answer = send(client, name, RULINGS)
    page = Audit(body_of(answer.text))
    assert answer.status_code == 422 and "no space left" in page.text and page.written == RULINGS
    assert [path.name for path in folder.iterdir()] == [f"{name}.request.md"], "no litter"


# Files and many


MISSING = chromium_missing()


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_a_person_answers_a_request_in_the_browser(folder: Path):
    request = asking_for_rulings()
    (name,) = put(folder, request)
    with chromium() as browser, site(Workspace([folder])) as address, watched(browser, address) as (page, watch):
        page.goto(f"{address}/inbox/letters")
        page.get_by_role("link", name="Answer the one that waits longest").click()
        area = page.locator("textarea")
        assert area.input_value().startswith("<ruling>\nid: EXACT_SUM_OF_SQUARES")
        area.fill(RULINGS)
        page.get_by_role("button", name="Write the reply").click()
        page.get_by_role("heading", name="The reply", exact=True).wait_for()
        watch.check(page)
        page.reload()  # sends nothing again
    assert taken(folder, request) == RULINGS + "\n"
    assert time.time() - reply_file(folder, name).stat().st_mtime < 60
