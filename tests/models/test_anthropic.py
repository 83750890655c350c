"""The Messages API against a real server on a socket: what is sent, what is read, what each answer means."""

import logging
from dataclasses import replace

import pytest

from kace.config import load_config
from kace.models import open_model
from kace.models.base import Finish, Message, RateLimited, Request, Role, Sampling, Usage
from tests.models.calling import KEY, REQUEST, answered, asked
from tests.models.chat_server import fault, message

API = "anthropic"

# What is sent and what is read


def test_a_request_carries_the_messages_the_key_and_the_mark_for_the_cache():
    _, (seen,) = asked([message("4")], API)
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
    _, (seen,) = asked([message("4")], API, request=replace(REQUEST, messages=turns))
    assert seen.body["messages"] == [
        {"role": "user", "content": "2+2?"},
        {"role": "assistant", "content": "4"},
        {"role": "user", "content": "again"},
    ]


def test_no_system_prompt_is_none_and_a_temperature_stays_in_range():
    bare = Request((Message(Role.USER, "2+2?"),), Sampling(1.5, 100, 1), REQUEST.attempt)
    _, (seen,) = asked([message("4")], API, request=bare)
    assert "system" not in seen.body and seen.body["temperature"] == 1.0


def test_a_reply_carries_text_finish_time_and_what_the_cache_did():
    reply = answered(replace(message(r"so \boxed{4}, naïvely ∎"), delay=0.1), api=API)
    assert reply.text == r"so \boxed{4}, naïvely ∎"
    assert reply.finish is Finish.STOP
    assert reply.usage == Usage(input=1320, cached=1000, output=7, written=300)
    assert 0.1 <= reply.seconds < 5


def test_thoughts_are_left_out_and_several_texts_are_one():
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert answered(message(None, content=content), api=API).text == "ab"


def test_a_model_that_takes_no_temperature_is_asked_without_it_from_then_on(caplog):
    def newer(seen):
        if "temperature" in seen.body:
            return fault(400, "invalid_request_error", "`temperature` is deprecated for this model.")
        return message("4")

    with caplog.at_level(logging.WARNING):
        reply, requests = asked(newer, API, times=3)
    assert reply.text == "4"
    assert ["temperature" in seen.body for seen in requests] == [True, False, False, False]
    assert caplog.text.count("does not support 'temperature'") == 1


# What an error means


@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limit_error"), (529, "overloaded_error")])
def test_a_server_that_says_when_to_return_is_a_rate_limit(status, kind):
    failure = answered(fault(status, kind, headers={"retry-after": "7"}), api=API)
    assert isinstance(failure, RateLimited)
    assert failure.retry_after == 7.0
    assert isinstance(answered(fault(429, "rate_limit_error"), api=API), RateLimited)


# Keys, addresses, secrets


def test_a_gateway_needs_no_key_and_the_environment_gives_it_none(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary-of-the-environment")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "canary-of-the-environment")
    reply, (seen,) = asked([message("4")], API, key=None)
    assert reply.text == "4" and seen.headers["authorization"] == "Bearer none"
    assert "canary" not in str(seen.headers)


def test_it_is_opened_by_name_with_its_own_key_and_never_with_another_providers_address():
    env = {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": "sk-other", "OPENAI_BASE_URL": "http://localhost:1/v1"}
    model = open_model(load_config({"model": "anthropic/claude-m"}, env=env))
    assert model.identity == "anthropic https://api.anthropic.com claude-m"
