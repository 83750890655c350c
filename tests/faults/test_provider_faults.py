"""Everything a provider can do wrong, on real sockets: the right outcome, the right number of requests, in time."""

import asyncio
import gzip
import json
import time
import tracemalloc
from contextlib import aclosing
from dataclasses import replace

import pytest

from kace.errors import KaceError
from kace.ladder.record import Attempt, Outcome
from kace.models.base import ModelError, Usage
from kace.models.http import MAX_BODY, OpenAIModel
from kace.models.limits import TRIES, Limited
from tests.models.calling import REQUEST
from tests.models.chat_server import JSON, Answer, ChatServer, completion, error, says

LONG, SHORT = 20.0, 0.5
"""Seconds for a call that should end by itself, and for one that should be ended."""
GOOD = says(r"\boxed{4}")
HTML = {"content-type": "text/html"}


def opened(url, *, api_key="sk-canary-11112222", workers=8, deadline=LONG):
    model = OpenAIModel("m", base_url=url, api_key=api_key, name="openai/m")
    return Limited(model, workers, base=0.01, deadline=deadline)


async def attempt(model):
    try:
        return Attempt.read(REQUEST.attempt, await model.complete(REQUEST), None)
    except ModelError as failure:
        return Attempt.failed(REQUEST.attempt, failure, None)


def solve(url, *, timeout=LONG):
    """One attempt, which may take a second more than its timeout and no longer."""

    async def call():
        async with aclosing(opened(url, deadline=timeout)) as model:
            started = time.monotonic()
            return await attempt(model), time.monotonic() - started

    result, seconds = asyncio.run(call())
    assert seconds <= timeout + 1
    return result


def after(*faults):
    """The attempt and the number of requests, when these answers come first and good ones follow."""
    with ChatServer([*faults, GOOD]) as server:
        return solve(server.url), len(server.requests)


def always(fault, timeout=LONG):
    """The attempt and the number of requests, when this is all that ever comes."""
    with ChatServer([fault]) as server:
        return solve(server.url, timeout=timeout), len(server.requests)


PASSING = {
    "429": error(429),
    "429 with a time": error(429, headers={"retry-after": "0.1"}),
    "500": error(500),
    "502 in HTML": Answer(b"<html>Bad Gateway</html>", status=502, headers=HTML),
    "503": error(503),
    "408": error(408),
    "reset in the body": replace(GOOD, reset=True),
    "reset before the body": Answer(b"", reset=True),
    "empty body": Answer(b""),
    "HTML body": Answer(b"<html>please log in</html>", headers=HTML),
    "invalid JSON": Answer(b'{"choices": [{"message"'),
    "duplicate chunk": Answer(GOOD.body * 2),
    "missing choices": Answer(b'{"object": "chat.completion"}'),
    "empty choices": Answer(b'{"choices": []}'),
    "choices of a wrong type": Answer(b'{"choices": {"0": "4"}}'),
    "null": Answer(b"null"),
    "lone surrogate": Answer(json.dumps(completion({"content": "\ud800"})).encode()),
    "deep nesting": Answer(b"[" * 200_000),
    "status that does not exist": Answer(b"{}", status=999),
    "a codec for a charset": Answer(b"abc", status=500, headers={"content-type": "text/html; charset=base64"}),
    "a header that is not ASCII": error(500, headers={"retry-after": "\xff\xfe"}),
    "an error of odd types": error(500, code=[1], type={"a": 1}, param={"b": 2}),
    "broken compression": Answer(b"not gzip", headers={**JSON, "content-encoding": "gzip"}),
}


@pytest.mark.parametrize("fault", PASSING)
def test_a_fault_that_passes_costs_one_more_request_and_nothing_else(fault):
    result, requests = after(PASSING[fault])
    assert (result.outcome, requests) == (Outcome.ANSWERED, 2)
    assert result.usage == Usage(11, 5, 7)


@pytest.mark.parametrize("fault", [name for name in PASSING if "429" not in name])
def test_a_fault_that_stays_is_given_up_after_the_tries_of_the_policy(fault):
    result, requests = always(PASSING[fault])
    assert (result.outcome, requests) == (Outcome.PROVIDER_ERROR, TRIES)
    assert result.detail


def test_a_provider_that_says_when_to_return_is_not_asked_sooner():
    with ChatServer([error(429, headers={"retry-after": "0.3"}), GOOD]) as server:
        assert solve(server.url).outcome is Outcome.ANSWERED
    first, second = server.requests
    assert second.at - first.at >= 0.3


def test_a_reply_without_content_is_an_attempt_without_an_answer():
    result, requests = always(says(None))
    assert (result.outcome, requests) == (Outcome.NO_ANSWER, 1)
    assert result.usage.output == 7


def test_a_truncated_reply_is_an_outcome_and_is_not_asked_for_again():
    result, requests = always(says("first, let", finish="length"))
    assert (result.outcome, requests, result.usage.output) == (Outcome.TRUNCATED, 1, 7)


BOTTOMLESS = {
    "huge reply": says("x" * MAX_BODY),
    "huge error": Answer(b"x" * (MAX_BODY + 1), status=500),
    "never-ending stream": Answer(b" " * 100_000, endless=True),
}


@pytest.mark.parametrize("fault", BOTTOMLESS)
def test_a_bottomless_body_is_cut_off_and_not_asked_for_again(fault):
    tracemalloc.start()
    try:
        result, requests = always(BOTTOMLESS[fault])
        assert tracemalloc.get_traced_memory()[1] < 8 * MAX_BODY
    finally:
        tracemalloc.stop()
    assert (result.outcome, requests) == (Outcome.PROVIDER_ERROR, 1)
    assert "the reply is larger than 32 MB" in result.detail


@pytest.mark.parametrize("coding", ["gzip", "GZIP, gzip", "deflate", "br"])
def test_a_compressed_reply_is_not_unpacked(coding):
    bomb = Answer(gzip.compress(bytes(50_000_000), 9), headers={**JSON, "content-encoding": coding})
    result, requests = always(bomb)
    assert (result.outcome, requests) == (Outcome.PROVIDER_ERROR, TRIES)
    assert "compressed" in result.detail


STALLED = {
    "silence": replace(GOOD, delay=30.0),
    "slow drip": replace(GOOD, drip=0.2),
    "slow drip of an error": replace(error(500, "x" * 1000), drip=0.2),
    "endless spaces, slowly": Answer(b" ", endless=True, drip=0.05),
}


@pytest.mark.parametrize("fault", STALLED)
def test_a_call_ends_on_time_however_slowly_bytes_come(fault):
    result, requests = always(STALLED[fault], timeout=SHORT)
    assert (result.outcome, requests) == (Outcome.TIMEOUT, 1)


# A server that is not there


def test_a_server_that_was_never_there_or_does_not_speak_tls_stops_the_run():
    with ChatServer([GOOD]) as server, pytest.raises(KaceError, match="cannot reach"):
        solve(server.url.replace("http:", "https:"))
    with pytest.raises(KaceError, match=f"cannot reach {server.url}"):
        solve(server.url)


def test_a_server_that_goes_away_later_fails_attempts_and_not_the_run():
    async def calls():
        with ChatServer([GOOD]) as server:
            model = opened(server.url)
            first = await attempt(model)
        second = await attempt(model)
        await model.aclose()
        return first.outcome, second.outcome

    assert asyncio.run(calls()) == (Outcome.ANSWERED, Outcome.PROVIDER_ERROR)


# Errors that no retry mends: the whole run stops


FATAL = {
    "401": (error(401, "Incorrect API key provided: sk-canary-11112222"), "OPENAI_API_KEY"),
    "403": (error(403, "not allowed"), "OPENAI_API_KEY"),
    "404": (error(404, "model not found"), "no model 'm'"),
}


@pytest.mark.parametrize("fault", FATAL)
def test_a_fatal_error_stops_the_run_within_one_request_per_worker(fault):
    answer, words = FATAL[fault]
    workers, problems = 4, 60

    async def calls(url):
        model = opened(url, workers=workers)
        tasks = [asyncio.create_task(model.complete(REQUEST)) for _ in range(problems)]
        await asyncio.wait(tasks)
        await model.aclose()
        return [task.exception() for task in tasks]

    with ChatServer([replace(answer, delay=0.05)]) as server:
        failures = asyncio.run(calls(server.url))
    assert len(server.requests) <= workers
    assert {type(failure) for failure in failures} == {KaceError}
    for failure in failures:
        assert failure.exit_code == 1
        assert words in str(failure)
        assert "canary" not in str(failure)
