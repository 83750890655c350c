"""The Messages API against a real server on a socket: what is sent, what is read, what each answer means."""

import asyncio
import logging
from dataclasses import replace

import pytest

from kace.config import load_config
from kace.errors import KaceError, UsageError
from kace.models import open_model
from kace.models.base import (
    AttemptKey,
    Failure,
    Finish,
    Message,
    ModelError,
    RateLimited,
    Request,
    Role,
    Sampling,
    Transient,
    Usage,
    chat,
)
from kace.models.http import AnthropicModel
from tests.models.chat_server import Answer, ChatServer, fault, message

REQUEST = Request(chat("be exact", "2+2?"), Sampling(0.6, 100, 12345), AttemptKey("p", 0, "TEACHER", 0))
KEY = "sk-ant-test-12345678"


def opened(server, *, api_key=KEY):
    return AnthropicModel("claude-m", base_url=server.url, api_key=api_key, name="anthropic/claude-m")


def ask(server, times=1, request=REQUEST, **settings):
    """The reply, or the error, to the last of some calls made one after the other by one model."""

    async def calls():
        model = opened(server, **settings)
        try:
            for _ in range(times - 1):
                await model.complete(request)
            return await model.complete(request)
        except (ModelError, KaceError) as failure:
            return failure
        finally:
            await model.aclose()

    return asyncio.run(calls())


def answered(*script, times=1, **settings):
    with ChatServer(script) as server:
        return ask(server, times, **settings)


# What is sent and what is read


def test_a_request_carries_the_messages_the_key_and_the_mark_for_the_cache():
    with ChatServer([message("4")]) as server:
        ask(server)
    (seen,) = server.requests
    assert seen.path == "/v1/messages"
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert "anthropic-version" in seen.headers
    assert seen.body == {
        "model": "claude-m",
        "max_tokens": 100,
        "temperature": 0.6,
        "system": [{"type": "text", "text": "be exact", "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": "2+2?"}],
    }


def test_a_repair_round_is_sent_as_turns_and_no_turn_is_empty():
    turns = (*REQUEST.messages, Message(Role.ASSISTANT, " "), Message(Role.USER, "again"))
    with ChatServer([message("4")]) as server:
        ask(server, request=replace(REQUEST, messages=turns))
    assert server.requests[0].body["messages"] == [
        {"role": "user", "content": "2+2?"},
        {"role": "assistant", "content": "(empty)"},
        {"role": "user", "content": "again"},
    ]


def test_no_system_prompt_is_none_and_a_temperature_stays_in_range():
    bare = Request((Message(Role.USER, "2+2?"),), Sampling(1.5, 100, 1), REQUEST.attempt)
    with ChatServer([message("4")]) as server:
        ask(server, request=bare)
    assert "system" not in server.requests[0].body
    assert server.requests[0].body["temperature"] == 1.0


def test_a_reply_carries_text_finish_time_and_what_the_cache_did():
    reply = answered(replace(message(r"so \boxed{4}, naïvely ∎"), delay=0.1))
    assert reply.text == r"so \boxed{4}, naïvely ∎"
    assert reply.finish is Finish.STOP
    assert reply.usage == Usage(input=1320, cached=1000, output=7, written=300)
    assert 0.1 <= reply.seconds < 5


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        ("max_tokens", Finish.LENGTH),
        ("model_context_window_exceeded", Finish.LENGTH),
        ("refusal", Finish.FILTERED),
        ("stop_sequence", Finish.STOP),
    ],
)
def test_why_the_model_stopped_is_kept(stop, expected):
    assert answered(message("part", stop=stop)).finish is expected


def test_thoughts_are_left_out_and_several_texts_are_one():
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert answered(message(None, content=content)).text == "ab"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, Usage()),
        ({"input_tokens": 3, "output_tokens": 2}, Usage(3, 0, 2)),
        ({"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": None}, Usage(3, 0, 2)),
        ({"input_tokens": -1, "output_tokens": 2}, Usage()),
        ("many", Usage()),
    ],
)
def test_usage_that_is_absent_or_nonsense_is_zero_and_costs_no_reply(usage, expected):
    assert answered(message("4", usage=usage)).usage == expected


def test_a_model_that_takes_no_temperature_is_asked_without_it_from_then_on(caplog):
    def newer(seen):
        if "temperature" in seen.body:
            return fault(400, "invalid_request_error", "`temperature` is deprecated for this model.")
        return message("4")

    with ChatServer(newer) as server, caplog.at_level(logging.WARNING):
        assert ask(server, times=3).text == "4"
    assert ["temperature" in seen.body for seen in server.requests] == [True, False, False, False]
    assert caplog.text.count("does not support 'temperature'") == 1


# What an error means


@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limit_error"), (529, "overloaded_error")])
def test_a_server_that_says_when_to_return_is_a_rate_limit(status, kind):
    failure = answered(fault(status, kind, headers={"retry-after": "7"}))
    assert isinstance(failure, RateLimited)
    assert failure.retry_after == 7.0
    assert isinstance(answered(fault(429, "rate_limit_error")), RateLimited)


@pytest.mark.parametrize(
    ("status", "kind"), [(400, "invalid_request_error"), (402, "billing_error"), (403, "billing_error")]
)
def test_an_account_without_credit_stops_the_run(status, kind):
    said = "Your credit balance is too low to access the API."
    failure = answered(message("4"), fault(status, kind, said), times=2)
    assert type(failure) is KaceError
    assert "credit" in failure.fix


@pytest.mark.parametrize(
    "answer",
    [
        fault(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        fault(413, "request_too_large", "Request exceeds the maximum size"),
    ],
)
def test_a_prompt_that_is_too_long_fails_its_call_only(answer):
    found = answered(answer)
    assert type(found) is ModelError
    assert found.failure is Failure.PROVIDER_ERROR


def test_a_fault_reported_inside_a_200_is_understood():
    slow = Answer(b'{"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}')
    busy = Answer(b'{"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}')
    assert isinstance(answered(slow), RateLimited)
    assert isinstance(answered(busy), Transient)


# Keys, addresses, secrets


def test_no_key_says_what_to_do():
    for url in (None, "https://api.anthropic.com", "https://api.anthropic.com/v1/"):
        with pytest.raises(UsageError, match="no API key for 'anthropic/m'") as caught:
            AnthropicModel("m", base_url=url, api_key=None, name="anthropic/m")
        assert "ANTHROPIC_API_KEY" in caught.value.fix


def test_a_gateway_needs_no_key_and_the_environment_gives_it_none(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary-of-the-environment")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "canary-of-the-environment")
    with ChatServer([message("4")]) as server:
        assert ask(server, api_key=None).text == "4"
    assert server.requests[0].headers["authorization"] == "Bearer none"
    assert "canary" not in str(server.requests[0].headers)


def test_it_is_opened_by_name_with_its_own_key_and_never_with_another_providers_address():
    env = {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": "sk-other", "OPENAI_BASE_URL": "http://localhost:1/v1"}
    model = open_model(load_config({"model": "anthropic/claude-m"}, env=env))
    assert model.identity == "anthropic https://api.anthropic.com claude-m"
