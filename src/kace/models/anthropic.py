"""Anthropic's Messages API through its own SDK, an extra: the system prompt is cached, and priced as such."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from kace.errors import UsageError
from kace.models.base import Message, Reply, Request, Role
from kace.models.message import read_message
from kace.models.remote import Rejected, Remote, Unreached
from kace.models.server import Said, Server, address, same_host, usable_key

if TYPE_CHECKING:
    from anthropic import APIStatusError, AsyncAnthropic

    from kace.models.wire import BoundedClient

DEFAULT_URL = "https://api.anthropic.com"
KEY = "ANTHROPIC_API_KEY"
HOTTEST = 1.0
"""The API refuses a higher temperature."""
NOTHING = "(empty)"
"""Stands for a turn without text, which the API refuses."""


class AnthropicModel(Remote["AsyncAnthropic"]):
    """A Claude model. It draws without a seed, and newer models without a temperature too."""

    PROVIDER = "anthropic"
    OPTIONAL = ("temperature",)

    def __init__(self, model: str, *, base_url: str | None, api_key: str | None, timeout: float, name: str) -> None:
        require_sdk()
        url, auth = address(base_url or DEFAULT_URL)
        url = url.removesuffix("/v1")  # the SDK adds it; many gateways write it
        self._key = usable_key(api_key, variable=KEY, missing=_needed_at(url, name))
        super().__init__(Server(url, model, KEY, "which ends before /v1"), auth, timeout=timeout, name=name)

    def _open(self, http: BoundedClient) -> AsyncAnthropic:
        from anthropic import AsyncAnthropic

        from kace.models.wire import CONNECT_TIMEOUT

        return AsyncAnthropic(
            api_key=self._key,  # always given: without one, the SDK goes looking for credentials of its own
            base_url=self._server.url,
            max_retries=0,  # `kace.models.limits` holds the only retry policy
            timeout=CONNECT_TIMEOUT,
            http_client=http,
            open_telemetry=False,
        )

    async def _post(self, client: AsyncAnthropic, request: Request, left_out: frozenset[str]) -> bytes:
        import anthropic
        import httpx2

        from kace.models.wire import BodyTooLarge

        body = _body(self._server.model, request, left_out)
        try:
            return (await client.post("/v1/messages", body=body, cast_to=httpx2.Response)).content
        except anthropic.APIStatusError as error:
            raise Rejected(_said(error)) from None
        except anthropic.APIConnectionError as error:
            if isinstance(error.__cause__, BodyTooLarge):  # the SDK wraps whatever is raised beneath it
                raise error.__cause__ from None
            raise Unreached from error

    def _read(self, body: bytes, seconds: float) -> Reply:
        return read_message(body, seconds)


def require_sdk() -> None:
    """Raise with the fix where the extra is not installed."""
    if find_spec("anthropic") is None:
        raise UsageError("anthropic/ models need Anthropic's SDK", fix="pip install 'kace[anthropic]'")


def _needed_at(url: str, name: str) -> UsageError | None:
    """What is wrong where there is no key: nothing, but at Anthropic itself."""
    if not same_host(url, DEFAULT_URL):
        return None
    return UsageError(
        f"no API key for '{name}'", fix=f"export {KEY}=..., or name another model, such as exchange/FOLDER"
    )


def _body(model: str, request: Request, left_out: frozenset[str]) -> dict[str, object]:
    sampling = request.sampling
    body: dict[str, object] = {
        "model": model,
        "max_tokens": sampling.max_tokens,
        "messages": [
            {"role": m.role.value, "content": m.content if m.content.strip() else NOTHING}
            for m in request.messages
            if m.role is not Role.SYSTEM
        ],
    }
    if system := _system(request.messages):
        body["system"] = system
    if "temperature" not in left_out:
        body["temperature"] = min(sampling.temperature, HOTTEST)
    return body


def _system(messages: Iterable[Message]) -> list[dict[str, object]]:
    """The system prompt as blocks. The last carries the mark up to which the provider caches the prompt."""
    blocks: list[dict[str, object]] = [
        {"type": "text", "text": m.content} for m in messages if m.role is Role.SYSTEM and m.content.strip()
    ]
    if blocks:
        blocks[-1]["cache_control"] = {"type": "ephemeral"}
    return blocks


def _said(error: APIStatusError) -> Said:
    return Said(
        status=error.status_code,
        words=error.api_message if isinstance(error.api_message, str) else error.response.text[:1000],
        labels=frozenset({str(error.type), str(error.error_code)}),
        headers=error.response.headers,
        body=error.response.text[:10_000],
    )
