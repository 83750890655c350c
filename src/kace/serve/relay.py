"""Chats that are not for the ladder, passed through to the provider's own model.

An OpenAI-compatible provider gets the body as the client sent it, and its reply goes back byte for byte, streamed or
not. Any other model is asked for one reply to the messages.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from kace.config import Config
from kace.errors import KaceError
from kace.models.base import AttemptKey, ChatModel, Finish, ModelError, Request, Sampling
from kace.models.budget import Ledger, Spent
from kace.models.completion import read_reply
from kace.redact import one_line, redact
from kace.serve.chat import read_chat
from kace.serve.fault import JSON, Fault
from kace.serve.reply import Letter
from kace.serve.respond import EVENTS, Respond

if TYPE_CHECKING:
    import httpx2

log = logging.getLogger(__name__)

PREFIX = "passthrough/"
ROLE = "passthrough"
MAX_ERROR = 65_536
_FINISH = {Finish.STOP: "stop", Finish.LENGTH: "length", Finish.FILTERED: "content_filter"}


class Relay(Protocol):
    """Answers a chat without the ladder."""

    async def forward(self, raw: Mapping[str, object], name: str, respond: Respond) -> None:
        """Have the model `name` reply to a chat. Raises `Fault` before anything was sent."""

    async def aclose(self) -> None:
        """Let go of connections."""


def open_relay(config: Config, model: ChatModel, ledger: Ledger) -> Relay:
    """The relay for the provider of a configuration; `model` is the one it serves."""
    if config.model.startswith("openai/"):
        return HttpRelay(config, ledger)
    return ModelRelay(config.model, model)


class HttpRelay:
    """Passes bodies on to an OpenAI-compatible server, with the key it was started with."""

    def __init__(self, config: Config, ledger: Ledger) -> None:
        import httpx2

        from kace.models.openai import DEFAULT_URL, KEY
        from kace.models.server import address, usable_key

        url, auth = address(config.base_url or DEFAULT_URL)
        key = config.api_key.get_secret_value() if config.api_key else None
        self._url = f"{url}/chat/completions"
        self._seconds = config.timeout
        self._ledger = ledger
        # Credentials in the URL take the place of the key, as they do for every other call.
        bearer = {} if auth else {"authorization": f"Bearer {usable_key(key, variable=KEY, missing=None)}"}
        self._client = httpx2.AsyncClient(
            auth=auth,
            headers={**bearer, "content-type": JSON},
            timeout=httpx2.Timeout(None, connect=10.0),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=64),
        )

    async def forward(self, raw: Mapping[str, object], name: str, respond: Respond) -> None:
        """Send the body on under the other model's name, and its reply back as it comes."""
        import httpx2

        body = json.dumps({**raw, "model": name}).encode()
        spent = self._ledger.roles.setdefault(ROLE, Spent())
        spent.calls += 1
        try:
            async with asyncio.timeout(self._seconds):
                async with self._client.stream("POST", self._url, content=body) as response:
                    if response.status_code >= 400:
                        await _pass_error(response, respond)
                    else:
                        await _pass_reply(response, respond, spent)
        except (httpx2.HTTPError, TimeoutError) as error:
            spent.failed += 1
            why = "no whole reply in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
            log.warning("%s", one_line(f"lost {self._url}: {why}"))
            # A reply that has begun is not ended: its client's connection is cut off as ours was.
            if not respond.started:
                raise Fault(502, f"lost the provider: {why}", code="upstream_failed") from None

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


async def _pass_reply(response: httpx2.Response, respond: Respond, spent: Spent) -> None:
    kind = response.headers.get("content-type", JSON)
    await respond.start(response.status_code, kind)
    kept = bytearray()
    streamed = kind.startswith(EVENTS)
    async for chunk in response.aiter_bytes():
        if not streamed:
            kept += chunk
        await respond.send(chunk)
    await respond.end()
    if not streamed:
        try:
            spent.usage += read_reply(bytes(kept), 0.0).usage
        except ModelError:
            spent.failed += 1


async def _pass_error(response: httpx2.Response, respond: Respond) -> None:
    if response.status_code in (401, 403):  # our key, not the client's
        raise Fault(502, "the provider refused the key this server has for it", code="upstream_refused")
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_ERROR:
            break
    after = response.headers.get("retry-after")
    headers = (("retry-after", after),) if after and after.isascii() else ()
    kind = response.headers.get("content-type", JSON)
    await respond.whole(response.status_code, redact(bytes(body).decode("utf-8", "replace")).encode(), kind, headers)


class ModelRelay:
    """Asks the served model itself, which need not speak HTTP: text in, text out."""

    def __init__(self, served: str, model: ChatModel) -> None:
        self._served = served
        self._name = served.partition("/")[2]
        self._model = model

    async def forward(self, raw: Mapping[str, object], name: str, respond: Respond) -> None:
        """Have the model reply to the messages."""
        if name not in (self._name, self._served):
            raise Fault(404, f"only '{PREFIX}{self._name}' is served here", code="model_not_found", param="model")
        chat = read_chat(raw)
        text = "\x1f".join(message.content for message in chat.messages)
        key = AttemptKey(hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16], chat.seed, "CHAT", 0)
        sampling = Sampling(chat.temperature, chat.max_tokens, key.sampling_seed())
        try:
            reply = await self._model.complete(Request(chat.messages, sampling, key))
        except ModelError as error:
            raise Fault(502, error.message, code="upstream_failed") from None
        except KaceError as error:
            raise Fault(502, error.message, code="upstream_refused") from None
        letter = Letter(f"{PREFIX}{name}", chat.include_usage)
        finish = _FINISH[reply.finish]
        if not chat.stream:
            await respond.whole(200, letter.whole(reply.text, reply.usage, finish=finish))
            return
        await respond.start(200, EVENTS)
        await respond.end(b"".join((letter.opening(), *letter.closing(reply.text, reply.usage, finish=finish))))

    async def aclose(self) -> None:
        """The model is the session's."""
