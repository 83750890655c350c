"""Any server that speaks OpenAI's chat completions: OpenAI itself, vLLM, llama.cpp, Ollama, OpenRouter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kace.errors import UsageError
from kace.models.base import Reply, Request
from kace.models.completion import read_reply
from kace.models.remote import Rejected, Remote, Unreached
from kace.models.server import Said, Server, address, same_host, usable_key

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

    from kace.models.wire import BoundedClient

DEFAULT_URL = "https://api.openai.com/v1"
KEY = "OPENAI_API_KEY"


class OpenAIModel(Remote["AsyncOpenAI"]):
    """A model behind an OpenAI-compatible server."""

    PROVIDER = "openai"
    OPTIONAL = ("max_tokens", "seed", "temperature")
    """`max_tokens` has a newer name; the others are left out."""

    def __init__(self, model: str, *, base_url: str | None, api_key: str | None, timeout: float, name: str) -> None:
        url, auth = address(base_url or DEFAULT_URL)
        self._key = usable_key(api_key, variable=KEY, missing=_needed_at(url, name))
        super().__init__(Server(url, model, KEY, "which mostly ends in /v1"), auth, timeout=timeout, name=name)

    def _open(self, http: BoundedClient) -> AsyncOpenAI:
        from openai import AsyncOpenAI

        from kace.models.wire import CONNECT_TIMEOUT

        return AsyncOpenAI(
            api_key=self._key,
            base_url=self._server.url,
            max_retries=0,  # `kace.models.limits` holds the only retry policy
            timeout=CONNECT_TIMEOUT,
            http_client=http,
        )

    async def _post(self, client: AsyncOpenAI, request: Request, left_out: frozenset[str]) -> bytes:
        import httpx2
        import openai

        body = _body(self._server.model, request, left_out)
        try:
            return (await client.post("/chat/completions", body=body, cast_to=httpx2.Response)).content
        except openai.APIStatusError as error:
            raise Rejected(_said(error)) from None
        except openai.APIConnectionError as error:
            raise Unreached from error

    def _read(self, body: bytes, seconds: float) -> Reply:
        return read_reply(body, seconds)


def _needed_at(url: str, name: str) -> UsageError | None:
    """What is wrong where there is no key: nothing, but at OpenAI itself."""
    if not same_host(url, DEFAULT_URL):
        return None
    return UsageError(
        f"no API key for '{name}'",
        fix=f"export {KEY}=..., or point --base-url at your own server, or try: kace demo",
    )


def _body(model: str, request: Request, left_out: frozenset[str]) -> dict[str, object]:
    sampling = request.sampling
    body: dict[str, object] = {
        "model": model,
        "messages": [{"role": m.role.value, "content": m.content} for m in request.messages],
        "max_completion_tokens" if "max_tokens" in left_out else "max_tokens": sampling.max_tokens,
    }
    optional = {"seed": sampling.seed, "temperature": sampling.temperature}
    return body | {key: value for key, value in optional.items() if key not in left_out}


def _said(error: APIStatusError) -> Said:
    message = error.body.get("message") if isinstance(error.body, dict) else None
    return Said(
        status=error.status_code,
        words=message if isinstance(message, str) else error.response.text[:1000],
        labels=frozenset({str(error.code), str(error.type)}),
        headers=error.response.headers,
        body=error.response.text[:10_000],
        parameter=error.param,
    )
