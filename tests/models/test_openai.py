"""Both APIs against a real server on a socket: what is sent, what is read, what each answer means."""

import asyncio
import json
import logging
from dataclasses import replace

import pytest

from kace.config import load_config
from kace.errors import KaceError, UsageError
from kace.models import open_model
from kace.models.base import ChatModel, Failure, Finish, Message, ModelError, RateLimited, Role, Transient, Usage
from kace.models.http import retry_after
from tests.models.calling import APIS, KEY, REQUEST, answered, asked, opened, outcomes
from tests.models.chat_server import Answer, ChatServer, completion, error, fault, message, says


def body(**fields):
    return Answer(json.dumps({**completion({"content": "4"}), **fields}).encode())


# What is sent and what is read


def test_a_request_carries_the_messages_the_sampling_and_the_key():
    _, (seen,) = asked([says("4")])
    assert seen.path == "/v1/chat/completions"
    assert seen.headers["authorization"] == "Bearer sk-test-12345678"
    assert seen.body == {
        "model": "m",
        "messages": [{"role": "system", "content": "be exact"}, {"role": "user", "content": "2+2?"}],
        "max_tokens": 100,
        "seed": 12345,
        "temperature": 0.6,
    }


@pytest.mark.parametrize(
    ("api", "reply", "usage"),
    [
        ("openai", says, Usage(input=11, cached=5, output=7)),
        ("anthropic", message, Usage(input=1320, cached=1000, output=7, written=300)),
    ],
)
def test_a_reply_carries_text_finish_usage_and_time(api, reply, usage):
    reply = answered(replace(reply(r"so \boxed{4}, naïvely ∎"), delay=0.1), api=api)
    assert reply.text == r"so \boxed{4}, naïvely ∎"
    assert reply.finish is Finish.STOP
    assert reply.usage == usage
    assert 0.1 <= reply.seconds < 5
    assert not reply.cached


@pytest.mark.parametrize(
    ("api", "stop", "expected"),
    [
        ("openai", "length", Finish.LENGTH),
        ("openai", "content_filter", Finish.FILTERED),
        ("openai", "stop", Finish.STOP),
        ("openai", "eos", Finish.STOP),
        ("anthropic", "max_tokens", Finish.LENGTH),
        ("anthropic", "model_context_window_exceeded", Finish.LENGTH),
        ("anthropic", "refusal", Finish.FILTERED),
        ("anthropic", "stop_sequence", Finish.STOP),
    ],
)
def test_why_the_model_stopped_is_kept(api, stop, expected):
    reply = says("part", finish=stop) if api == "openai" else message("part", stop=stop)
    assert answered(reply, api=api).finish is expected


def test_a_refusal_is_filtered_and_its_tokens_are_counted():
    reply = answered(says(None, refusal="I cannot help with that."))
    assert (reply.text, reply.finish, reply.usage.output) == ("I cannot help with that.", Finish.FILTERED, 7)


# Servers that want other parameters


def test_a_model_that_wants_max_completion_tokens_gets_them_from_then_on():
    def reasoning_model(seen):
        if "max_tokens" in seen.body:
            said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'."
            return error(400, said, param="max_tokens", code="unsupported_parameter")
        return says("4")

    reply, requests = asked(reasoning_model, times=3)
    assert reply.text == "4"
    assert [seen.body.get("max_completion_tokens") for seen in requests] == [None, 100, 100, 100]


def test_several_rejected_parameters_are_found_one_by_one():
    def picky(seen):
        for name in ("temperature", "seed", "max_tokens"):
            if name in seen.body:
                return error(400, f"Unsupported value: '{name}' is not supported", param=name)
        return says("4")

    reply, requests = asked(picky)
    assert reply.text == "4" and len(requests) == 4
    assert requests[-1].body.keys() == {"model", "messages", "max_completion_tokens"}


def test_a_bad_value_is_not_taken_for_an_unknown_parameter():
    failure, requests = asked([error(400, "max_tokens must be at most 50", param="max_tokens")])
    assert isinstance(failure, KaceError)
    assert "at most 50" in str(failure)
    assert len(requests) == 1


# What an error means


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 +99999999999999999999"}, None),
        ({"retry-after": "1e308"}, 1e308),
    ],
)
def test_retry_after_is_read_in_seconds(headers, seconds):
    assert retry_after(headers) == seconds
    failure = answered(error(429, headers=headers))
    assert isinstance(failure, RateLimited)
    assert failure.retry_after == seconds


DUE = "Your credit balance is too low to access the API."


@pytest.mark.parametrize(
    ("api", "refusal"),
    [
        ("openai", error(429, "You exceeded your current quota", code="insufficient_quota")),
        ("anthropic", fault(400, "invalid_request_error", DUE)),
        ("anthropic", fault(402, "billing_error", DUE)),
        ("anthropic", fault(403, "billing_error", DUE)),
    ],
)
def test_an_account_without_credit_stops_the_run(api, refusal):
    first = says("4") if api == "openai" else message("4")
    failure = answered(first, refusal, api=api, times=2)
    assert type(failure) is KaceError
    assert "credit" in failure.fix


def test_a_bad_request_stops_the_run_before_the_first_reply_and_fails_one_attempt_after_it():
    bad = error(400, "invalid value for 'frequency'")
    assert type(answered(bad)) is KaceError
    later = answered(says("4"), bad, times=2)
    assert type(later) is ModelError
    assert later.failure is Failure.PROVIDER_ERROR


LONG = "prompt is too long: 210000 tokens > 200000 maximum"


@pytest.mark.parametrize(
    ("api", "answer", "failure"),
    [
        ("openai", error(400, "flagged", code="content_filter"), Failure.REFUSED),
        ("openai", error(400, "too long", code="context_length_exceeded"), Failure.PROVIDER_ERROR),
        ("openai", error(400, "too long", type="exceed_context_size_error"), Failure.PROVIDER_ERROR),
        ("openai", error(413, "too large"), Failure.PROVIDER_ERROR),
        ("anthropic", fault(400, "invalid_request_error", LONG), Failure.PROVIDER_ERROR),
        ("anthropic", fault(413, "request_too_large", "Request exceeds the maximum size"), Failure.PROVIDER_ERROR),
    ],
)
def test_a_prompt_that_is_refused_or_too_long_fails_its_attempt_only(api, answer, failure):
    found = answered(answer, api=api)
    assert type(found) is ModelError
    assert found.failure is failure


@pytest.mark.parametrize(
    "words",
    [
        "max_tokens=16000 cannot be greater than max_model_len=8192",
        "'max_tokens' or 'max_completion_tokens' is too large: 16000",
        "This model's maximum context length is 8192 tokens. However, you requested 16500 tokens",
    ],
)
def test_a_server_without_room_for_the_reply_says_which_options_ask_for_less(words: str):
    found = answered(error(400, words))
    assert isinstance(found, KaceError)
    assert "--set teacher_max_tokens=N" in found.fix and "--set max_tokens=N" in found.fix


def test_a_redirect_says_to_mend_the_address():
    moved = Answer(b"", status=301, headers={"location": "https://elsewhere/"})
    assert "base URL" in str(answered(moved))


@pytest.mark.parametrize(
    ("api", "answer", "kind"),
    [
        ("openai", body(choices=[], error={"message": "upstream", "code": 502}), Transient),
        ("openai", body(choices=[], error={"message": "slow down", "code": 429}), RateLimited),
        ("anthropic", fault(200, "rate_limit_error", "slow down"), RateLimited),
        ("anthropic", fault(200, "overloaded_error", "busy"), Transient),
    ],
)
def test_a_fault_reported_inside_a_200_is_understood(api, answer, kind):
    assert type(answered(answer, api=api)) is kind


# Keys, addresses, secrets


@pytest.mark.parametrize(
    ("api", "url"),
    [
        ("openai", None),
        ("openai", "https://api.openai.com/v1"),
        ("anthropic", None),
        ("anthropic", "https://api.anthropic.com"),
        ("anthropic", "https://api.anthropic.com/v1/"),
    ],
)
def test_no_key_and_no_server_says_what_to_do(api, url):
    with pytest.raises(UsageError, match=f"no API key for '{api}/m'") as caught:
        opened(url, api, key=None)
    assert APIS[api].KEY in caught.value.fix and APIS[api].KEY.endswith("_API_KEY")


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://h/v1", "http://", "http://h:port/v1", "http://h/v1?k=1"])
def test_what_is_no_base_url_is_refused_at_once(url):
    with pytest.raises(UsageError, match="base URL"):
        opened(url, key="k")


def test_a_mangled_key_is_refused_without_showing_it():
    with pytest.raises(UsageError) as caught:
        opened(None, key="sk-half\nsk-other")
    assert "sk-" not in str(caught.value)


def test_identity_tells_servers_apart_and_keeps_credentials_to_itself():
    urls = ("http://a/v1/", "http://b/v1", "http://user:canary-pass@a/v1")
    plain, other, secret = (opened(url, key="canary-key-123") for url in urls)
    assert plain.identity == secret.identity != other.identity
    assert isinstance(plain, ChatModel)
    assert "canary" not in secret.identity + repr(secret) + secret.name


def test_credentials_in_the_url_are_used_but_never_shown(caplog):
    def echo(seen):
        return error(401, f"bad credentials {seen.headers['authorization']} user:canary-pass-9 sk-canary-key-9")

    with ChatServer(echo) as server, caplog.at_level(logging.DEBUG):
        url = server.url.replace("http://", "http://user:canary-pass-9@")
        (failure,) = outcomes(opened(url, key="sk-canary-key-9"), REQUEST)
    assert isinstance(failure, KaceError)
    sent = server.requests[0].headers["authorization"]
    assert sent == "Basic dXNlcjpjYW5hcnktcGFzcy05"
    for text in (str(failure), repr(failure), caplog.text):
        assert "canary" not in text
        assert "dXNlcjpjYW5hcnktcGFzcy05" not in text


@pytest.mark.parametrize("status", [200, 400, 401, 404, 429, 500])
def test_a_server_that_echoes_the_key_puts_it_in_no_message(status):
    key = "canary-0123456789"  # not shaped like any key we know
    echo = Answer(f"<html>key {key} {'x' * 500}</html>".encode(), status=status)
    failure = answered(echo, key=key)
    assert "canary" not in f"{failure} {failure!r} {failure.message}"
    assert len(str(failure)) < 700


# Connections


def test_one_model_serves_many_event_loops():
    with ChatServer([says("4")]) as server:
        model = opened(server.url)

        async def call():
            reply = await model.complete(REQUEST)
            await model.aclose()
            await model.aclose()
            return reply.text

        assert [asyncio.run(call()) for _ in range(3)] == ["4"] * 3


def test_three_hundred_calls_run_side_by_side_and_leave_usable_connections_when_cancelled():
    slow, quick = replace(says("late"), delay=30.0), says("4")

    async def calls():
        model = opened(server.url)
        tasks = [asyncio.create_task(model.complete(REQUEST)) for _ in range(300)]
        while len(server.requests) < 300:
            await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        replies = [(await model.complete(REQUEST)).text for _ in range(3)]
        await model.aclose()
        return replies

    with ChatServer(lambda seen: slow if len(server.requests) <= 300 else quick) as server:
        assert asyncio.run(calls()) == ["4"] * 3


# Anthropic's own


def test_a_request_carries_the_system_prompt_the_key_and_the_mark_for_the_cache():
    _, (seen,) = asked([message("4")], "anthropic")
    assert seen.path == "/v1/messages"
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert "anthropic-version" in seen.headers
    assert seen.body == {
        "model": "m",
        "max_tokens": 100,
        "temperature": 0.6,
        "system": [{"type": "text", "text": "be exact", "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": "2+2?"}],
    }


def test_a_repair_round_is_sent_as_turns():
    turns = (*REQUEST.messages, Message(Role.ASSISTANT, "4"), Message(Role.USER, "again"))
    _, (seen,) = asked([message("4")], "anthropic", request=replace(REQUEST, messages=turns))
    assert seen.body["messages"] == [
        {"role": "user", "content": "2+2?"},
        {"role": "assistant", "content": "4"},
        {"role": "user", "content": "again"},
    ]


def test_no_system_prompt_is_none_and_a_temperature_stays_in_range():
    bare = replace(REQUEST, messages=REQUEST.messages[1:], sampling=replace(REQUEST.sampling, temperature=1.5))
    _, (seen,) = asked([message("4")], "anthropic", request=bare)
    assert "system" not in seen.body and seen.body["temperature"] == 1.0


def test_thoughts_are_left_out_and_several_texts_are_one():
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert answered(message(None, content=content), api="anthropic").text == "ab"


def test_a_model_that_takes_no_temperature_is_asked_without_it_from_then_on(caplog):
    def newer(seen):
        if "temperature" in seen.body:
            return fault(400, "invalid_request_error", "`temperature` is deprecated for this model.")
        return message("4")

    with caplog.at_level(logging.WARNING):
        reply, requests = asked(newer, "anthropic", times=3)
    assert reply.text == "4"
    assert ["temperature" in seen.body for seen in requests] == [True, False, False, False]
    assert caplog.text.count("does not support 'temperature'") == 1


@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limit_error"), (529, "overloaded_error")])
def test_a_server_that_says_when_to_return_is_a_rate_limit(status, kind):
    failure = answered(fault(status, kind, headers={"retry-after": "7"}), api="anthropic")
    assert isinstance(failure, RateLimited)
    assert failure.retry_after == 7.0
    assert isinstance(answered(fault(429, "rate_limit_error"), api="anthropic"), RateLimited)


def test_a_gateway_needs_no_key_and_the_environment_gives_it_none(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary-of-the-environment")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "canary-of-the-environment")
    reply, (seen,) = asked([message("4")], "anthropic", key=None)
    assert reply.text == "4" and seen.headers["authorization"] == "Bearer none"
    assert "canary" not in str(seen.headers)


def test_it_is_opened_by_name_with_its_own_key_and_never_with_another_providers_address():
    env = {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": "sk-other", "OPENAI_BASE_URL": "http://localhost:1/v1"}
    model = open_model(load_config({"model": "anthropic/claude-m"}, env=env))
    assert model.identity == "anthropic https://api.anthropic.com claude-m"
