"""Attempts through batches, against a local server of both APIs, with every fault that those have."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kace.config import Caps, Price
from kace.errors import BudgetExceeded, KaceError, Submitted
from kace.models.base import Failure, ModelError, Reply, Usage
from kace.models.batch import AnthropicJobs, OpenAIJobs
from tests.models.batch_desk import KINDS, Desk, asked, boxed, texts
from tests.models.batch_server import BatchServer, Drop
from tests.models.chat_server import ChatServer, error


@pytest.fixture
def server(tmp_path: Path) -> Iterator[BatchServer]:
    with BatchServer(tmp_path / "server") as server:
        yield server


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def desk(tmp_path: Path, server: BatchServer, kind: str) -> Desk:
    return Desk(tmp_path / "run", server.url, kind)


def drop(server: BatchServer, step: str, times: int) -> list[str]:
    """Reset the first connections of a step, and return the list of those that are left."""
    left = [step] * times

    def hook(now: str) -> None:
        if now == step and left:
            left.pop()
            raise Drop

    server.hook = hook
    return left


MANY = [asked(number) for number in range(40)]


def test_requests_that_come_together_are_one_job_and_the_same_command_again_pays_nothing(
    desk: Desk, server: BatchServer
):
    first = desk.ask(*MANY)
    assert texts(first) == boxed(40)
    assert len(server.jobs) == 1 and set(server.submitted.values()) == {1} and not server.live
    identity = desk.make().identity
    assert set(server.submitted) == {request.digest(identity) for request in MANY}
    assert desk.left() == [], "prompts and results do not stay once the replies are kept"
    again = desk.ask(*MANY, *[asked(50)])
    assert texts(again)[:40] == texts(first) and all(isinstance(each, Reply) and each.batch for each in again)
    assert len(server.jobs) == 2 and len(server.jobs[1].keys) == 1


def test_a_batch_costs_half_and_a_live_retry_all_of_it(desk: Desk, server: BatchServer):
    desk.ask(*MANY[:10])
    whole = (100 * 10 + 10 * 100) / 1e6
    assert desk.ledger.usd == pytest.approx(10 * whole / 2)
    server.fate = lambda key, body: 500
    replies = desk.ask(asked(77))
    assert texts(replies) == ["\\boxed{77}"] and len(server.live) == 1
    assert isinstance(replies[0], Reply) and not replies[0].batch
    assert desk.ledger.usd == pytest.approx(10 * whole / 2 + whole)


def test_a_cap_on_money_holds_and_lets_requests_through_in_several_jobs(desk: Desk, server: BatchServer):
    desk.ledger.caps = Caps(usd=0.06)
    assert texts(desk.ask(*MANY)) == boxed(40)
    assert len(server.jobs) > 1 and set(server.submitted.values()) == {1} and desk.ledger.usd <= 0.06
    desk.ledger.caps = Caps(usd=0.04)
    (refused,) = desk.ask(asked(99))
    assert isinstance(refused, BudgetExceeded)


def test_a_price_may_say_another_rate_for_batches():
    price, usage = Price(10.0, 100.0, batch=0.25), Usage(1000, 0, 10)
    assert price.cost(usage, batch=True) == pytest.approx(price.cost(usage) / 4)


def test_limits_on_requests_and_bytes_are_kept(desk: Desk, server: BatchServer, monkeypatch: pytest.MonkeyPatch):
    for jobs in (AnthropicJobs, OpenAIJobs):
        assert jobs.MOST_REQUESTS in (50_000, 100_000)
        monkeypatch.setattr(jobs, "MOST_REQUESTS", 15)
    assert texts(desk.ask(*MANY)) == boxed(40)
    assert sorted(len(job.keys) for job in server.jobs) == [10, 15, 15]
    longest = max(len(line) for job in server.jobs for line in job.path.read_bytes().splitlines())
    for jobs in (AnthropicJobs, OpenAIJobs):
        monkeypatch.setattr(jobs, "MOST_BYTES", 5 * longest)
    more = [asked(number) for number in range(100, 110)]
    desk.ask(*more)
    assert all(job.path.stat().st_size <= 5 * longest for job in server.jobs[3:]) and len(server.jobs) >= 6
    assert set(server.submitted.values()) == {1}


def test_what_a_batch_did_not_answer_is_retried(desk: Desk, server: BatchServer, kind: str):
    """Errors of single lines, expired ones, and such that no file mentions."""
    keys = sorted(request.digest(desk.make().identity) for request in MANY)
    bad = dict(zip(keys, (500, 529, "expired", None), strict=False))
    server.fate = lambda key, body: bad.get(key, 200) if len(server.jobs) == 1 else 200
    assert texts(desk.ask(*MANY)) == boxed(40)
    assert len(server.live) == 4 and len(server.jobs) == 1
    assert set(server.submitted.values()) == {1}


@pytest.mark.parametrize("files", [True, False])
def test_an_expired_batch_with_and_without_results(desk: Desk, server: BatchServer, files: bool):
    server.end = lambda job: "expired" if len(server.jobs) == 1 else "completed"

    def fate(key: str, body: dict[str, Any]) -> object:
        return "expired" if len(server.jobs) == 1 and int(key, 16) % 2 else 200

    server.fate = fate
    server.results = files
    assert texts(desk.ask(*MANY)) == boxed(40)
    assert len(server.live) == (sum(int(key, 16) % 2 for key in server.submitted) if files else 40)
    assert len(server.jobs) == 1


def test_a_cancelled_batch_keeps_what_it_answered_and_asks_before_it_spends_again(desk: Desk, server: BatchServer):
    server.end = lambda job: "cancelled" if len(server.jobs) == 1 else "completed"
    server.fate = lambda key, body: 200 if int(key, 16) % 2 or len(server.jobs) > 1 else None
    replies = desk.ask(*MANY)
    errors = [reply for reply in replies if isinstance(reply, KaceError)]
    assert errors and "is cancelled" in str(errors[0]) and "run the same command" in str(errors[0])
    assert len(server.jobs) == 1 and not server.live
    assert texts(desk.ask(*MANY)) == boxed(40)
    assert len(server.jobs[1].keys) == len(errors)


def test_a_request_that_is_refused_fails_and_takes_no_other_with_it(desk: Desk, server: BatchServer, kind: str):
    bad = asked(3).digest(desk.make().identity)
    fault: object = (400, {"message": "not allowed", "code": "content_policy_violation"}) if kind == "openai" else 400
    server.fate = lambda key, body: fault if key == bad else 200
    replies = desk.ask(*MANY)
    assert isinstance(replies[3], ModelError) and not replies[3].billed
    assert replies[3].failure is (Failure.REFUSED if kind == "openai" else Failure.PROVIDER_ERROR)
    assert [text for place, text in enumerate(texts(replies)) if place != 3] == boxed(3) + boxed(40)[4:]
    server.fate = lambda key, body: 200
    assert texts(desk.ask(asked(3))) == ["\\boxed{3}"], "a failure is not kept: the next run asks again"


def test_settings_that_no_request_can_have_stop_the_run_as_they_do_live(desk: Desk, server: BatchServer):
    server.fate = lambda key, body: 400
    replies = desk.ask(*MANY)
    assert all(isinstance(reply, KaceError) and "rejects requests" in str(reply) for reply in replies)


def test_a_completed_job_whose_results_are_not_there_yet_is_waited_for(tmp_path: Path, server: BatchServer):
    desk = Desk(tmp_path / "run", server.url, "openai")
    shown = {"id": "b", "status": "completed", "request_counts": {"total": 2, "completed": 2, "failed": 0}}
    jobs = OpenAIJobs(desk.make())  # type: ignore[arg-type]
    assert not jobs._read_job(shown).outcome
    assert jobs._read_job({**shown, "output_file_id": "f"}).outcome == "completed"
    assert jobs._read_job({**shown, "status": "expired"}).outcome == "expired"


def test_a_parameter_that_is_not_taken_is_left_out_of_the_next_batch(tmp_path: Path, server: BatchServer):
    fault = {"message": "Unsupported parameter: 'temperature' is not supported with this model", "param": "temperature"}
    server.fate = lambda key, body: (400, fault) if "temperature" in body else 200
    desk = Desk(tmp_path / "run", server.url, "openai")
    assert texts(desk.ask(*MANY)) == boxed(40)
    assert len(server.jobs) == 2 and not server.live


def test_another_key_is_told_and_how_to_mend_it(tmp_path: Path, server: BatchServer, kind: str):
    server.looks = 1000
    first = Desk(tmp_path / "run", server.url, kind, wait=False).ask(*MANY)
    assert all(isinstance(reply, Submitted) and reply.exit_code == 0 for reply in first)
    other = Desk(tmp_path / "run", server.url, kind, key="another-key-than-before").ask(*MANY)
    assert all(isinstance(reply, KaceError) and "under this key" in str(reply) for reply in other)
    assert "API_KEY" in str(other[0]) and len(server.jobs) == 1
    server.looks = 0
    assert texts(Desk(tmp_path / "run", server.url, kind).ask(*MANY)) == boxed(40)
    assert set(server.submitted.values()) == {1}


def test_without_waiting_a_second_command_collects_and_submits_only_what_is_missing(
    tmp_path: Path, server: BatchServer, kind: str
):
    server.looks = 1000
    hasty = Desk(tmp_path / "run", server.url, kind, wait=False)
    assert all(isinstance(reply, Submitted) for reply in hasty.ask(*MANY[:30]))
    again = hasty.ask(*MANY)
    assert "2 jobs under way" in str(again[0]) and "0 of 40 requests done" in str(again[0])
    assert [len(job.keys) for job in server.jobs] == [30, 10]
    server.jobs[0].status = "completed"
    third = hasty.ask(*MANY)
    assert texts(third)[:30] == boxed(30) and all(isinstance(reply, Submitted) for reply in third[30:])
    server.looks = 0
    assert texts(hasty.ask(*MANY)) == boxed(40)
    assert set(server.submitted.values()) == {1}


@pytest.mark.parametrize(
    ("step", "times"),
    [
        *(("before the upload", 1), ("after the upload", 1), ("before the job", 1), ("after the job", 1)),
        *(("status", 2), ("results", 2), ("half of the results", 2), ("list", 2)),
    ],
)
def test_a_lost_connection_never_submits_twice(desk: Desk, server: BatchServer, kind: str, step: str, times: int):
    if kind == "anthropic" and "upload" in step:
        pytest.skip("has no upload")
    left = drop(server, step, times)
    assert texts(desk.ask(*MANY)) == boxed(40)
    assert not left and set(server.submitted.values()) == {1}


def test_a_provider_that_is_gone_is_not_asked_for_ever(
    desk: Desk, server: BatchServer, monkeypatch: pytest.MonkeyPatch
):
    drop(server, "status", 1_000)
    monkeypatch.setattr("kace.models.batch.MISSES", 3)
    replies = desk.ask(*MANY)
    assert all(isinstance(reply, KaceError) and "nothing that was submitted is lost" in str(reply) for reply in replies)
    server.hook = lambda step: None
    assert texts(desk.ask(*MANY)) == boxed(40) and set(server.submitted.values()) == {1}


def test_a_full_queue_ends_the_run_and_the_next_one_goes_on(tmp_path: Path, server: BatchServer):
    server.room, server.looks = 15, 10
    desk = Desk(tmp_path / "run", server.url, "openai", size=15)
    replies = desk.ask(*MANY)
    assert any(isinstance(reply, KaceError) and "batch_size" in str(reply) for reply in replies)
    server.room = None
    assert texts(desk.ask(*MANY)) == boxed(40) and set(server.submitted.values()) == {1}


def test_a_refused_file_says_why_and_is_submitted_again_by_the_next_command(desk: Desk, server: BatchServer, kind: str):
    real = server.create
    server.create = lambda path, owner, tag, most, size: real(path, owner, tag, 1, size)  # type: ignore[method-assign]
    replies = desk.ask(*MANY)
    assert all(isinstance(reply, KaceError) for reply in replies)
    assert "the file is not valid" in str(replies[0]) or "400" in str(replies[0])
    assert not server.submitted
    server.create = real  # type: ignore[method-assign]
    assert texts(desk.ask(*MANY)) == boxed(40)


def test_someone_elses_batch_of_the_same_size_is_not_taken_for_ours(tmp_path: Path, server: BatchServer):
    """Message Batches carry no tag: after a lost reply, only results tell whose a batch is."""
    theirs = Desk(tmp_path / "theirs", server.url, "anthropic", wait=False)
    ours = Desk(tmp_path / "ours", server.url, "anthropic")
    seen: list[str] = []

    def hook(now: str) -> None:
        if now == "before the job" and not seen:
            seen.append(now)
            theirs_requests = [asked(number, "How many are") for number in range(40)]
            other = threading.Thread(target=lambda: theirs.ask(*theirs_requests))
            other.start()
            other.join()
            raise Drop

    server.looks = 3
    server.hook = hook
    assert texts(ours.ask(*MANY)) == boxed(40)
    assert [len(job.keys) for job in server.jobs] == [40, 40] and set(server.submitted.values()) == {1}


def test_a_server_without_a_batch_api_is_refused(tmp_path: Path):
    with ChatServer([error(404, "no such path")]) as server:
        desk = Desk(tmp_path, server.url.removesuffix("/v1"), "openai")
        replies = desk.ask(asked(1))
    assert "has no batch API" in str(replies[0]) and "leave out --batch" in str(replies[0])


@pytest.mark.parametrize("tag", ["**", "*", "f" * 23, "results", "x.json"])
def test_a_folder_of_somebody_else_names_no_file_outside(desk: Desk, server: BatchServer, tmp_path: Path, tag: str):
    victims = [tmp_path / "victim.in", tmp_path / "run" / "notes.txt"]
    (tmp_path / "run" / "batches" / "**" / "**").mkdir(parents=True)
    (tmp_path / "run" / "batches" / "a.b").mkdir()
    for victim in victims:
        victim.write_text("mine")
    state = {"model": desk.make().identity, "tag": "../notes", "job": "x", "requests": 1}
    (tmp_path / "run" / "batches" / f"{tag}.json").write_text(json.dumps(state))
    assert texts(desk.ask(*MANY)) == boxed(40)
    assert [victim.read_text() for victim in victims] == ["mine"] * 2
