"""Any server that speaks OpenAI's chat completions: OpenAI itself, vLLM, llama.cpp, Ollama, OpenRouter.

One `complete` is one try: it never waits and tries again, `kace.limits` does. What a failure means is decided here:

    429, and 503 with Retry-After               RateLimited
    408, 409, 5xx, reset, unreadable body       Transient
    the call as a whole took too long           ModelError(TIMEOUT)
    this prompt is not allowed                  ModelError(REFUSED)
    this prompt or this reply is too large      ModelError(PROVIDER_ERROR)
    key, model, address or a setting is wrong   KaceError, with the fix
"""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
import time
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

from kace.errors import KaceError, UsageError
from kace.models.base import Failure, ModelError, RateLimited, Reply, Request, Transient
from kace.models.completion import read_reply
from kace.models.retry_after import retry_after
from kace.redact import keep_secret, one_line, public_url

if TYPE_CHECKING:
    from openai import APIConnectionError, APIStatusError

    from kace.models.wire import Lanes

log = logging.getLogger(__name__)

DEFAULT_URL = "https://api.openai.com/v1"
PLACEHOLDER_KEY = "none"
OPTIONAL = ("max_tokens", "seed", "temperature")
"""Parameters some models do not take. `max_tokens` has a newer name; the others are left out."""

_NOT_TAKEN = re.compile(
    r"unsupported|not support|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed|max_completion_tokens", re.I
)
_NOT_ALLOWED = {"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"}
_TOO_LONG = {"context_length_exceeded", "exceed_context_size_error"}


class OpenAIModel:
    """A model behind an OpenAI-compatible server. `timeout` bounds one call as a whole, however slowly bytes drip."""

    def __init__(self, model: str, *, base_url: str | None, api_key: str | None, timeout: float, name: str) -> None:
        self._model = model
        self._name = name
        self._timeout = timeout
        self._url, self._auth = _address(base_url or DEFAULT_URL)
        self._key = _key(api_key, self._url, name)
        self._reached = False
        """Some HTTP response has come: from then on, a failed connection is the network's, not the operator's."""
        self._answered = False
        """Some reply has come: from then on, a bad request is that request's fault, not the settings'."""
        self._left_out: frozenset[str] = frozenset()
        self._lanes: WeakKeyDictionary[asyncio.AbstractEventLoop, Lanes] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"OpenAIModel({self._model!r}, base_url={self._url!r})"

    @property
    def name(self) -> str:
        """The `provider/name` this model was opened as."""
        return self._name

    @property
    def identity(self) -> str:
        """Base URL, without credentials, and model."""
        return f"openai {self._url} {self._model}"

    @property
    def left_out(self) -> frozenset[str]:
        """Parameters of `OPTIONAL` this server turned out not to take as they are."""
        return self._left_out

    async def complete(self, request: Request) -> Reply:
        """Answer one request with one try."""
        lanes = self._connections()  # before the clock starts: the first call loads the SDK
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self._timeout):
                body = await self._send(lanes, request)
        except TimeoutError:
            raise ModelError(Failure.TIMEOUT, f"no whole reply within {self._timeout:g} s") from None
        reply = read_reply(body, time.perf_counter() - started)
        self._answered = True
        return reply

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        lanes = self._lanes.pop(asyncio.get_running_loop(), None)
        if lanes is not None:
            await lanes.aclose()

    def _connections(self) -> Lanes:
        from kace.models.wire import Lanes

        loop = asyncio.get_running_loop()
        if loop not in self._lanes:
            self._lanes[loop] = Lanes(self._url, self._key, self._auth)
        return self._lanes[loop]

    async def _send(self, lanes: Lanes, request: Request) -> bytes:
        import httpx2
        import openai

        from kace.models.wire import BodyTooLarge

        left_out = self._left_out
        while True:
            body = _body(self._model, request, left_out)
            try:
                with lanes.client() as client:
                    response = await client.post("/chat/completions", body=body, cast_to=httpx2.Response)
            except openai.APIStatusError as error:
                self._reached = True
                parameter = _not_taken(error, left_out)
                if parameter is None:
                    raise self._refusal(error) from None
                left_out |= {parameter}
            except openai.APIConnectionError as error:
                raise self._unreachable(error) from None
            except BodyTooLarge as error:
                raise ModelError(Failure.PROVIDER_ERROR, str(error)) from None
            else:
                self._reached = True
                self._remember(left_out)
                return response.content

    def _remember(self, left_out: frozenset[str]) -> None:
        for parameter in sorted(left_out - self._left_out):
            log.warning("%s does not take '%s' for %s: going on without it", self._url, parameter, self._model)
        self._left_out |= left_out

    def _refusal(self, error: APIStatusError) -> ModelError | KaceError:
        """What an error status means."""
        status = error.status_code
        said = one_line(f"{status} from {self._url}: {_words(error)}")
        wait = retry_after(error.response.headers)
        if status == 429 and error.code == "insufficient_quota":
            return KaceError(said, fix="add credit to the account, or use another key or model")
        if status == 429 or (status in (503, 529) and wait is not None):
            return RateLimited(said, wait)
        if status in (408, 409, 425) or status >= 500:
            return Transient(said)
        if status in (400, 413, 422):
            return self._bad_request(error, said)
        if status in (401, 402, 403):
            return KaceError(said, fix="set OPENAI_API_KEY to a key that may use this model")
        if status == 404:
            return KaceError(
                one_line(f"no model '{self._model}' at {self._url} (404: {_words(error)})"),
                fix="check the model's name and the base URL, which mostly ends in /v1",
            )
        return KaceError(said, fix="check the base URL, which mostly ends in /v1")

    def _bad_request(self, error: APIStatusError, said: str) -> ModelError | KaceError:
        labels = {str(error.code), str(error.type)}  # whatever shape the server gave them
        if labels & _NOT_ALLOWED:
            return ModelError(Failure.REFUSED, said)
        if self._answered or error.status_code == 413 or labels & _TOO_LONG:
            return ModelError(Failure.PROVIDER_ERROR, said)
        return KaceError(f"the server rejects requests for '{self._model}' ({said})", fix="change what it names")

    def _unreachable(self, error: APIConnectionError) -> ModelError | KaceError:
        """What a broken connection means."""
        import httpx2

        causes = _causes(error)
        said = one_line(f"{self._url}: {str(causes[-1]) or type(causes[-1]).__name__}")
        if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
            return KaceError(f"cannot trust {said}", fix="install its certificate, or name it in SSL_CERT_FILE")
        never_came_up = any(isinstance(c, httpx2.ConnectError | httpx2.ConnectTimeout | ssl.SSLError) for c in causes)
        if never_came_up and not self._reached:
            return KaceError(f"cannot reach {said}", fix="is the server running, and the base URL right?")
        return Transient(f"lost the connection to {said}")


def _address(url: str) -> tuple[str, tuple[str, str] | None]:
    """The URL without credentials, and the credentials: in the URL they would end up in logs and errors."""
    try:
        parts = urlsplit(url.strip())
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and not parts.query
    except ValueError:
        valid = False
    if not valid:
        raise UsageError(f"'{one_line(url)}' is no base URL", fix="give one like http://localhost:8000/v1")
    if parts.username is None:
        return public_url(url.strip()), None
    user, password = unquote(parts.username), unquote(parts.password or "")
    keep_secret(password)
    keep_secret(f"{user}:{password}")
    return public_url(url.strip()), (user, password)


def _key(key: str | None, url: str, name: str) -> str:
    key = (key or "").strip()
    if not key and urlsplit(url).hostname == urlsplit(DEFAULT_URL).hostname:
        raise UsageError(
            f"no API key for '{name}'",
            fix="export OPENAI_API_KEY=..., or point --base-url at your own server, or try: kace demo",
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError("OPENAI_API_KEY has characters that no key has", fix="copy the key again")
    keep_secret(key)
    return key or PLACEHOLDER_KEY


def _body(model: str, request: Request, left_out: frozenset[str]) -> dict[str, object]:
    sampling = request.sampling
    body: dict[str, object] = {
        "model": model,
        "messages": [{"role": m.role.value, "content": m.content} for m in request.messages],
        "max_completion_tokens" if "max_tokens" in left_out else "max_tokens": sampling.max_tokens,
    }
    optional = {"seed": sampling.seed, "temperature": sampling.temperature}
    return body | {key: value for key, value in optional.items() if key not in left_out}


def _not_taken(error: APIStatusError, left_out: frozenset[str]) -> str | None:
    """The parameter a bad request complains of, where we can do without."""
    said = error.response.text[:10_000]
    if error.status_code not in (400, 422) or not _NOT_TAKEN.search(said):
        return None
    candidates = [name for name in OPTIONAL if name not in left_out and re.search(rf"\b{name}\b", said)]
    return error.param if error.param in candidates else next(iter(candidates), None)


def _words(error: APIStatusError) -> str:
    message = error.body.get("message") if isinstance(error.body, dict) else None
    return message if isinstance(message, str) else error.response.text[:1000]


def _causes(error: BaseException) -> list[BaseException]:
    chain = [error]
    while (inner := chain[-1].__cause__ or chain[-1].__context__) is not None and inner not in chain:
        chain.append(inner)
    return chain
