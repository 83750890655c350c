"""Calls of a model of either API at a scripted server, one after the other, and what became of the last."""

import asyncio

from kace.errors import KaceError
from kace.models.base import AttemptKey, ModelError, Request, Sampling, chat
from kace.models.http import AnthropicModel, OpenAIModel
from tests.models.chat_server import ChatServer

APIS = {"openai": OpenAIModel, "anthropic": AnthropicModel}
KEY = "sk-test-12345678"
REQUEST = Request(chat("be exact", "2+2?"), Sampling(0.6, 100, 12345), AttemptKey("p", 0, "ES", 0))


def opened(url, api="openai", *, key=KEY):
    return APIS[api]("m", base_url=url, api_key=key, name=f"{api}/m")


def outcomes(model, *requests):
    """The reply or the error of each request, made by one model, which is then closed."""

    async def calls():
        found = []
        for request in requests:
            try:
                found.append(await model.complete(request))
            except (ModelError, KaceError) as failure:
                found.append(failure)
        await model.aclose()
        return found

    return asyncio.run(calls())


def answered(*script, api="openai", times=1, key=KEY, request=REQUEST):
    """The outcome of the last of some equal calls, where a server answers so."""
    with ChatServer(script) as server:
        return outcomes(opened(server.url, api, key=key), *[request] * times)[-1]


def asked(script, api="openai", *, times=1, request=REQUEST, **settings):
    """The last outcome, and the requests that the server saw."""
    with ChatServer(script) as server:
        found = outcomes(opened(server.url, api, **settings), *[request] * times)[-1]
        return found, server.requests
