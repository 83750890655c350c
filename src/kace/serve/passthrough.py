"""Chats that are not for the ladder, passed through to the provider's own model.

An OpenAI-compatible provider gets the body as the client sent it, and its reply goes back byte for byte, streamed or
not, but for keys of ours in it, and for what is too large. Any other model is asked for one reply to the messages.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from kace.config import Config
from kace.errors import KaceError
from kace.models.apis import read_completion
from kace.models.base import (
    AttemptKey,
    ChatModel,
    Failure,
    Finish,
    ModelError,
    Request,
    Sampling,
)
from kace.models.budget import Ledger, Spent
from kace.models.pool import Endpoint, candidates
from kace.models.provider import open_remotes
from kace.models.wire import CODING, MAX_BODY, unpacked
from kace.redact import one_line, redact, without_secrets
from kace.serve.chat import (
    EVENTS,
    JSON,
    ApiError,
    Completion,
    HttpReply,
    SseWriter,
    read_chat,
)

if TYPE_CHECKING:
    import httpx2

log = logging.getLogger(__name__)

PREFIX = "passthrough/"
ROLE = "passthrough"
MAX_ERROR = 65_536
MAX_STREAM = 4 * MAX_BODY  # bytes; a token streamed takes some 250
PREFIX_CHARS = (
    1_000  # of the messages: chats that begin alike go to the same of several servers
)
MAX_TOKENS = 2_048  # of a reply, where a client asks for no other number
_FINISH = {
    Finish.STOP: "stop",
    Finish.LENGTH: "length",
    Finish.FILTERED: "content_filter",
}

Forward = Callable[
    [Mapping[str, object], str, HttpReply], Awaitable[None]
]  # answers a body for the model named


@asynccontextmanager
async def open_passthrough(
    config: Config, model: ChatModel, ledger: Ledger
) -> AsyncIterator[Forward]:
    """The way through to the provider of a configuration; `model` is the one it serves."""
    if not config.model.startswith("openai/"):
        yield partial(_ask, config.model, model)
        return
    import httpx2

    limits = httpx2.Limits(max_keepalive_connections=64)
    timeout = httpx2.Timeout(None, connect=10.0)
    async with AsyncExitStack() as stack:
        endpoints = []
        for remote in open_remotes(config):
            headers = {
                **remote.headers,
                "content-type": JSON,
                "accept-encoding": CODING,
            }
            client = httpx2.AsyncClient(
                base_url=remote.url, headers=headers, timeout=timeout, limits=limits
            )
            endpoints.append(
                Endpoint(remote.url, await stack.enter_async_context(client))
            )
        yield partial(_relay, endpoints, config.timeout, ledger)


async def _relay(
    endpoints: Sequence[Endpoint[httpx2.AsyncClient]],
    seconds: float,
    ledger: Ledger,
    raw: Mapping[str, object],
    name: str,
    reply: HttpReply,
) -> None:
    """Send the body on under the other model's name, and its reply back as it comes."""
    import httpx2

    spent = ledger.roles.setdefault(ROLE, Spent())
    why = ""
    body = json.dumps({**raw, "model": name}).encode()
    prefix = str(raw.get("messages"))[:PREFIX_CHARS]
    for endpoint in candidates(endpoints, prefix):
        spent.calls += 1
        try:
            with endpoint.call():
                async with asyncio.timeout(seconds):
                    async with endpoint.client.stream(
                        "POST", "/chat/completions", content=body
                    ) as response:
                        await (
                            _pass_error if response.status_code >= 400 else _pass_reply
                        )(response, reply, spent)
            return
        except (httpx2.HTTPError, TimeoutError, ModelError) as error:
            spent.failed += 1
            why = (
                "no whole reply in time"
                if isinstance(error, TimeoutError)
                else str(error) or type(error).__name__
            )
            log.warning("%s", one_line(f"lost {endpoint.url}/chat/completions: {why}"))
            gone = isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout))
            if len(endpoints) > 1:
                endpoint.failed(one_line(why), gone=gone)
            # A reply that has begun is not ended: its client's connection is cut off as ours was.
            if reply.status:
                return
            if not gone:
                break
    raise ApiError(
        f"lost the provider: {why}", status=502, code="upstream_failed"
    ) from None


async def _pass_reply(
    response: httpx2.Response, reply: HttpReply, spent: Spent
) -> None:
    kind = response.headers.get("content-type", JSON)
    line = b""
    if kind.startswith(EVENTS):
        await reply.start(response.status_code, kind)
        async for piece in _pieces(response, MAX_STREAM):
            whole, newline, line = (line + piece).rpartition(b"\n")
            if len(line) > MAX_BODY:
                raise ModelError(
                    Failure.PROVIDER_ERROR, "a line of the stream has no end"
                )
            if newline:
                await reply.send(_public(whole + newline))
        return await reply.send(_public(line), more=False)
    body = b"".join([piece async for piece in _pieces(response)])
    await reply.whole(response.status_code, _public(body), kind)
    try:
        spent.usage += read_completion(body, 0.0).usage
    except ModelError:
        spent.failed += 1


def _pieces(response: httpx2.Response, most: int = MAX_BODY) -> AsyncIterator[bytes]:
    return unpacked(
        response.aiter_raw(), response.headers.get("content-encoding", ""), most
    )


def _public(body: bytes) -> bytes:
    """The bytes as they are, without keys of ours."""
    return without_secrets(body.decode("latin-1")).encode("latin-1")


async def _pass_error(
    response: httpx2.Response, reply: HttpReply, spent: Spent
) -> None:
    if response.status_code in (401, 403):  # our key, not the client's
        raise ApiError(
            "the provider refused the key this server has for it",
            status=502,
            code="upstream_refused",
        )
    body = b""
    async for piece in _pieces(response):
        body += piece
        if len(body) > MAX_ERROR:
            break
    after = response.headers.get("retry-after")
    headers = (("retry-after", after),) if after and after.isascii() else ()
    kind = response.headers.get("content-type", JSON)
    await reply.whole(
        response.status_code,
        redact(body.decode("utf-8", "replace")).encode(),
        kind,
        headers,
    )


async def _ask(
    served: str,
    model: ChatModel,
    raw: Mapping[str, object],
    name: str,
    reply: HttpReply,
) -> None:
    """Have the served model itself, which need not speak HTTP, reply to the messages: text in, text out."""
    own = served.partition("/")[2]
    if name not in (own, served):
        raise ApiError(
            f"only '{PREFIX}{own}' is served here",
            "model",
            status=404,
            code="model_not_found",
        )
    body, messages = read_chat(raw)
    text = "\x1f".join(message.content for message in messages)
    key = AttemptKey(
        hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16],
        body.seed or 0,
        "CHAT",
        0,
    )
    temperature = 1.0 if body.temperature is None else body.temperature
    sampling = Sampling(temperature, body.token_cap or MAX_TOKENS, key.sampling_seed())
    try:
        answer = await model.complete(Request(messages, sampling, key))
    except (ModelError, KaceError) as error:
        code = (
            "upstream_failed" if isinstance(error, ModelError) else "upstream_refused"
        )
        raise ApiError(error.message, status=502, code=code) from None
    completion = Completion(answer.text, answer.usage, _FINISH[answer.finish])
    writer = SseWriter(body)
    if body.stream:
        await reply.start(200, EVENTS)
        await reply.send(writer.opening() + writer.closing(completion), more=False)
    else:
        await reply.whole(200, writer.whole(completion))
