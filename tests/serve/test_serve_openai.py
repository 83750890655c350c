"""The real `openai` client, pointed here: it gets the voted answer, how it came about, and errors it understands."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Iterator

import openai
import pytest
from openai import OpenAI

from kace.errors import KaceError
from kace.models.base import Failure, ModelError, Reply, Request, Usage
from kace.models.scripted import Script
from tests.card_samples import small_tree
from tests.serve.running import Running, Watched

PROBLEM = [{"role": "user", "content": "What is 6 times 7?"}]
WORKED = r"So it is \boxed{42}"


def climber(request: Request) -> str:
    """Disagrees with itself at ES, then finds 42 twice at MS; places every problem in algebra."""
    if request.attempt.tier == "DOMAIN":
        return '{"domain":"algebra"}'
    answers = {"ES": ("12", "15"), "MS": ("42", "15", "42")}
    return f"So it is \\boxed{{{answers[request.attempt.tier][request.attempt.index]}}}"


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with Running(Watched(climber), tree=small_tree(), profile="paper") as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Running) -> Iterator[OpenAI]:
    with OpenAI(base_url=server.base_url, api_key="none", max_retries=0) as opened:
        yield opened


def test_the_answer_comes_with_the_working_of_a_winning_attempt_and_says_how_it_came_about(client: OpenAI):
    reply = client.chat.completions.create(model="kace", messages=PROBLEM)
    assert reply.choices[0].message.content == WORKED
    assert reply.choices[0].finish_reason == "stop"
    assert reply.model == "kace"
    details = reply.kace
    assert details["exit_path"] == "ms_majority"
    assert details["votes"] == [
        {"answer": "42", "votes": 2},
        {"answer": "15", "votes": 2},
        {"answer": "12", "votes": 1},
    ]
    assert details["cards"] == ["READING_CHECK_THE_UNIT", "EXACT_SUM_OF_SQUARES"]
    assert details["domains"] == ["algebra"]
    assert details["calls"] == {"solver": 5, "classifier": 1}
    usage = reply.usage
    assert usage.completion_tokens == 5 * 4 + 1, "every call is counted"
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_a_stream_tells_the_climb_and_ends_with_the_answer(client: OpenAI):
    stream = client.chat.completions.create(
        model="kace", messages=PROBLEM, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    told = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
    assert told.splitlines() == [
        "ES attempt 1: 12.",
        "ES attempt 2: 15.",
        "MS attempt 1: 42.",
        "MS attempt 2: 15.",
        "MS attempt 3: 42.",
    ]
    assert "".join(delta.content or "" for delta in deltas) == WORKED
    assert deltas[0].role == "assistant"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-2].kace["exit_path"] == "ms_majority"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 21
    assert len({chunk.id for chunk in chunks}) == 1
    plain = list(client.chat.completions.create(model="kace", messages=PROBLEM, stream=True))
    assert all(chunk.usage is None for chunk in plain), "usage is sent where it is asked for"


def test_the_models_are_listed(client: OpenAI):
    assert [model.id for model in client.models.list()] == ["kace", "scripted/watched"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tools", [{"type": "function", "function": {"name": "f", "parameters": {}}}]),
        ("tool_choice", "required"),
        ("response_format", {"type": "json_object"}),
        ("logprobs", True),
        ("logit_bias", {"50256": -100}),
        ("modalities", ["text", "audio"]),
        ("temprature", 2),
    ],
)
def test_what_a_ladder_cannot_do_is_said_by_name(client: OpenAI, name: str, value: object):
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(model="kace", messages=PROBLEM, extra_body={name: value})
    assert (raised.value.param, raised.value.code) == (name, "unsupported_parameter")


def test_hints_about_one_sample_and_neutral_values_change_nothing(client: OpenAI):
    neutral = {"response_format": {"type": "text"}, "logprobs": None, "n": 1}
    hints = {"temperature": 0, "top_p": 1, "user": "u", "max_tokens": 1, "stop": ["So"]}
    reply = client.chat.completions.create(model="gpt-9", messages=PROBLEM, extra_body={**neutral, **hints})
    assert (reply.model, reply.choices[0].message.content) == ("gpt-9", WORKED)


def test_no_answer_is_said_and_not_made_up():
    with Running(Watched(lambda request: "I cannot tell.")) as server:
        with OpenAI(base_url=server.base_url, api_key="none") as client:
            reply = client.chat.completions.create(model="kace", messages=PROBLEM)
    assert reply.choices[0].message.content == "No answer was found in 10 attempts."
    assert reply.kace["exit_path"] == "fallback_last_hs"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ModelError(Failure.PROVIDER_ERROR, "down; key sk-canary-0123456789abcdef"), "upstream_failed"),
        (KaceError("refused; key sk-canary-0123456789abcdef", fix="export SECRET=..."), "refused"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_provider_that_fails_is_a_502_the_client_does_not_repeat(error: Exception, code: str, stream: bool):
    model = Watched()
    model.error = error
    with Running(model) as server, OpenAI(base_url=server.base_url, api_key="none", max_retries=3) as client:
        with pytest.raises(openai.APIError) as raised:
            list(client.chat.completions.create(model="kace", messages=PROBLEM, stream=stream))
    assert raised.value.code == code
    assert "sk-canary" not in str(raised.value.body)
    assert "export" not in str(raised.value.body)
    assert model.calls == (10 if code == "upstream_failed" else 2)


class Dear(Watched):
    """A model that somebody sends a bill for: half of the tokens it might write, at a dollar a million."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.name = "openai/dear"

    async def complete(self, request: Request) -> Reply:
        reply = await super().complete(request)
        return Reply(reply.text, reply.finish, Usage(input=400, output=500), 0.0)


@pytest.mark.parametrize("stream", [False, True])
def test_the_servers_caps_hold_for_each_request(stream: bool):
    with Running(Watched(climber), max_calls=4, tree=small_tree(), profile="paper") as server:
        with OpenAI(base_url=server.base_url, api_key="none") as client:
            for _ in range(2):
                with pytest.raises(openai.APIError) as raised:
                    list(client.chat.completions.create(model="kace", messages=PROBLEM, stream=stream))
    assert (raised.value.code, raised.value.body["message"]) == ("budget_exceeded", "the cap of 4 calls is reached")


def test_a_money_cap_holds_by_the_price():
    prices = {"openai/dear": {"input": 0.0, "output": 1.0}}
    model = Dear(climber)
    with Running(model, prices=prices, max_tokens=1000, max_usd=0.0018) as server:
        with OpenAI(base_url=server.base_url, api_key="none") as client:
            with pytest.raises(openai.APIStatusError) as raised:
                client.chat.completions.create(model="kace", messages=PROBLEM)
    assert raised.value.status_code == 402
    assert "might pass the cap" in str(raised.value.body)
    assert model.calls == 2, "two attempts; a third might have been too dear"


def test_what_an_unknown_price_comes_to_is_not_zero():
    with Running(Dear(climber)) as server, OpenAI(base_url=server.base_url, api_key="none") as client:
        assert client.chat.completions.create(model="kace", messages=PROBLEM).kace["usd"] is None


def test_earlier_turns_are_read_before_the_problem():
    seen: list[str] = []

    def script(request: Request) -> str:
        seen.append(request.messages[-1].content)
        return "\\boxed{1}"

    with Running(Watched(script)) as other, OpenAI(base_url=other.base_url, api_key="none") as asking:
        asking.chat.completions.create(
            model="kace",
            messages=[
                {"role": "system", "content": "Angles are in degrees."},
                {"role": "user", "content": "Let x be 3."},
                {"role": "assistant", "content": "Noted."},
                {"role": "user", "content": [{"type": "text", "text": "What is x + 1?"}]},
            ],
        )
    assert "Angles are in degrees.\n\nUser: Let x be 3.\n\nAssistant: Noted.\n\nWhat is x + 1?" in seen[0]
    assert seen[0].index("Noted.") < seen[0].index("What is x + 1?")


def test_a_browser_sees_that_it_runs_and_every_request_is_logged_without_its_body():
    with Running(Watched(climber), key="secret-key") as running:
        headers = {"authorization": "Bearer secret-key"}
        asked = urllib.request.Request(f"{running.url}/?key=secret-key", headers=headers)
        with urllib.request.urlopen(asked) as answer:
            assert b"kace is running with scripted/watched" in answer.read()
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{running.url}/%0Aforged")
    assert [re.sub(r"\d+\.\d s$", "_ s", line) for line in running.log] == ["GET / 200 _ s", "GET /%0Aforged 401 _ s"]
