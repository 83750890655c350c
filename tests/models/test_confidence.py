"""How sure a model was: four figures from what servers give, and nothing where they give nothing to go by."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kace.errors import KaceError
from kace.models.base import FLOOR, Confidence, Reply, Request, read_confidence
from kace.models.cache import Cached, CallStore, Replay
from kace.models.scripted import Scripted, steady
from tests.models.calling import REQUEST, answered, opened, outcomes
from tests.models.chat_server import Answer, ChatServer, completion, error, says

SURE = replace(REQUEST, logprobs=True)
SOME = Confidence(-0.25)


def token(own: float | None, *top: float | None) -> dict[str, object]:
    """One token, in the shape of vLLM and OpenAI."""
    likely = [{"token": f"t{at}", "logprob": each, "bytes": [116]} for at, each in enumerate(top)]
    return {"token": "t", "logprob": own, "bytes": [116], "top_logprobs": likely}


@pytest.mark.parametrize(
    ("tokens", "mean"),
    [
        ([token(-0.5, -0.5), token(-1.5, -0.5)], -1.0),
        ([token(-0.1)] * 99 + [token(-9999.0)], round((99 * -0.1 + FLOOR) / 100, 5)),  # does not outweigh all others
        ([token(1.2e-7), token(-1.0)], -0.5),  # a probability of one may come out as slightly more
    ],
)
def test_the_figure_is_the_mean_over_the_tokens(tokens: object, mean: float):
    assert read_confidence(tokens) == Confidence(mean)


@pytest.mark.parametrize(
    "tokens",
    [
        None,
        "nonsense",
        [],
        [None, 3, {"logprob": None}],
        [token(0.0, 0.0, -9999.0), token(-9999.0, 0.0, -9999.0)] * 20,  # as some proxies write
        [token(0, 0, 0, 0, 0, 0)] * 20,
        [token(-9999.0, *[-9999.0] * 5)] * 20,
        [token(0.9, 0.9, 0.05, 0.02)] * 20,  # probabilities, not their logarithms
        [token(float("nan"), float("nan"))],
        [token(None, None)],
    ],
)
def test_what_says_nothing_is_no_confidence(tokens: object):
    assert read_confidence(tokens) is None


def with_logprobs(tokens: Sequence[object]) -> Answer:
    """A reply as vLLM writes it."""
    body = completion({"role": "assistant", "content": "4", "reasoning_content": None, "tool_calls": []})
    body["choices"][0] |= {"logprobs": {"content": list(tokens)}, "stop_reason": None}  # type: ignore[index]
    return Answer(json.dumps(body).encode())


def test_log_probabilities_are_asked_for_only_where_they_are_wanted():
    with ChatServer([says("4"), with_logprobs([token(-1.0, *[-2.0] * 5)])]) as server:
        without, told = outcomes(opened(server.url), REQUEST, SURE)
    plain, asked = (seen.body for seen in server.requests)
    assert {key: asked[key] for key in asked.keys() - plain.keys()} == {"logprobs": True, "top_logprobs": 1}
    assert without.confidence is None
    assert told.confidence == Confidence(-1.0)
    assert told.text == without.text == "4"


@pytest.mark.parametrize(
    "refusal",
    [
        error(400, "Unsupported parameter: 'logprobs' is not supported with this model.", param="logprobs"),
        error(400, "Unrecognized request argument supplied: top_logprobs"),
        error(400, "Logprobs is not enabled for models/some-pro"),
        error(403, "You are not allowed to request logprobs from this model"),
    ],
)
def test_a_server_that_refuses_them_is_asked_without_and_it_is_said_once(
    refusal: Answer, caplog: pytest.LogCaptureFixture
):
    with ChatServer([refusal, says("4")]) as server, caplog.at_level(logging.WARNING):
        replies = outcomes(opened(server.url), SURE, SURE, SURE)
    assert [reply.confidence for reply in replies] == [None] * 3
    assert ["logprobs" in seen.body for seen in server.requests] == [True, False, False, False]
    assert not any("top_logprobs" in seen.body for seen in server.requests[1:])
    (said,) = caplog.messages
    assert "left out from now on" in said


def test_a_key_that_may_not_use_the_model_is_still_refused():
    assert isinstance(answered(error(403, "this key is not allowed to use the model"), request=SURE), KaceError)


class Sure(Scripted):
    async def complete(self, request: Request) -> Reply:
        reply = await super().complete(request)
        return replace(reply, confidence=SOME if request.logprobs else None)


def test_a_kept_call_keeps_its_confidence_and_stands_for_no_call_that_asked_for_less_or_more(tmp_path: Path):
    model = Sure(steady)
    cached = Cached(model, CallStore(tmp_path))
    first, again, plain = (asyncio.run(cached.complete(request)) for request in (SURE, SURE, REQUEST))
    assert first.confidence == again.confidence == SOME
    assert again.cached and not plain.cached and plain.confidence is None
    assert model.calls == 2
    cached.store.close()
    assert asyncio.run(Replay(tmp_path).complete(SURE)).confidence == SOME
    (kept,) = tmp_path.glob("*.jsonl")
    assert sorted("confidence" in line for line in kept.read_text().splitlines()) == [False, True]
