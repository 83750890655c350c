"""Models behind an HTTP API: OpenAI's chat completions and Anthropic's messages.

`HttpClient` sends requests to one server and bounds its replies. `Remote` is a model at
one server; `Servers` are several of one model. One `complete` is one try, which
`kace.models.limits` repeats. What the outcome of a try means:

    429, and 503 or 529 with Retry-After        RateLimited
    408, 409, 425, 5xx, reset, unreadable body  Transient
    this prompt is not allowed                  ModelError(REFUSED)
    this prompt or this reply is too large      ModelError(PROVIDER_ERROR)
    key, model, address or a setting is wrong   KaceError, with the fix
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import math
import re
import ssl
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, replace
from typing import Any, ClassVar, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from kace.errors import (
    KaceError,
    UsageError,
    credentials,
    keep_secret,
    one_line,
    public_url,
    without_secrets,
)
from kace.models.base import (
    LOGPROBS,
    ChatModel,
    Failure,
    Finish,
    ModelError,
    PerLoop,
    RateLimited,
    Reply,
    Request,
    Role,
    Transient,
    Usage,
    lacks_room,
    read_confidence,
)
from kace.models.budget import sent_again

log = logging.getLogger(__name__)

MAX_BODY = 32_000_000
"""Bytes of a reply. A token has about 4, with its log-probabilities 600."""
CONNECT_SECONDS = 10.0
IDLE_SECONDS = 30.0
FRESH_SECONDS = 1.0
PLACEHOLDER_KEY = "none"
MALFORMED = (
    LookupError,
    TypeError,
    AttributeError,
    ValueError,
    RecursionError,
)
"""What foreign JSON of another shape raises."""


# One server


Headers = Mapping[str, str]


class Response(NamedTuple):
    """A whole response."""

    status: int
    headers: Headers
    body: bytes

    @property
    def text(self) -> str:
        """As much of the body as an error may need."""
        return self.body[:10_000].decode("utf-8", "replace")


_UNSENT = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
)


class Unreachable(KaceError):
    """No request ever reached the server."""

    billed = False


class HttpClient:
    """Sends requests to one server. Connections are kept per event loop until `aclose`.

    A lost connection raises `Transient`, or `KaceError` if the server never answered.
    """

    def __init__(self, url: str, headers: Headers) -> None:
        self.url = url
        # After the first response, a failed connection is the network's fault.
        self.reached = False
        self._proxy = find_proxy(url)
        # No compression: what unpacks to gigabytes need not be guarded against.
        self._headers = {
            "user-agent": "kace",
            "accept-encoding": "identity",
            **headers,
        }
        # aiohttp's own context ignores a later change of SSL_CERT_FILE.
        self._trust: ssl.SSLContext | bool = True
        if url.startswith("https:"):
            self._trust = ssl.create_default_context()
        self._lost_at = -math.inf
        self._sessions = PerLoop(self._open_session)

    async def post(self, path: str, body: Mapping[str, object]) -> Response:
        """Post JSON. Raises `ModelError` for a reply that is too large."""
        async with self.open("POST", path, json=body) as response:
            reply = await read_body(response)
            return Response(response.status, response.headers, reply)

    @asynccontextmanager
    async def open(
        self, method: str, path: str, **sent: Any
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and yield the response with its body unread.

        `sent` is what aiohttp takes: `json`, `data`, `headers` and `timeout`.
        """
        # A server that closes idle connections closes many at once. So for a moment
        # after a lost connection, each request opens its own.
        fresh = time.monotonic() - self._lost_at < FRESH_SECONDS
        session = self._open_session() if fresh else self._sessions.get()
        try:
            url = self.url + path
            async with session.request(
                method, url, proxy=self._proxy, allow_redirects=False, **sent
            ) as response:
                self.reached = True
                coding = response.headers.get("content-encoding", "identity")
                if coding.lower() != "identity":
                    raise Transient("unreadable reply: it is compressed")
                yield response
        except (
            aiohttp.ClientError,
            HttpProcessingError,
            ConnectionError,
        ) as error:
            self._lost_at = time.monotonic()
            raise self._read_fault(error) from error
        finally:
            if fresh:
                await session.close()

    async def aclose(self) -> None:
        """Close the connections of this event loop. Safe to call twice."""
        session = self._sessions.pop()
        if session is not None:
            await session.close()
        # A transport releases its socket in the next iteration of the loop.
        await asyncio.sleep(0)

    def _open_session(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=0, ssl=self._trust, keepalive_timeout=IDLE_SECONDS
        )
        return aiohttp.ClientSession(
            connector=connector,
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(None, sock_connect=CONNECT_SECONDS),
            auto_decompress=False,
            read_bufsize=MAX_BODY // 2,  # so that a line has at most `MAX_BODY`
        )

    def _read_fault(self, error: Exception) -> Transient | KaceError:
        """Return what a lost connection means."""
        inner = getattr(error, "os_error", error)
        why = one_line(f"{self.url}: {str(inner) or type(inner).__name__}")
        if self._proxy:
            why += f" by the proxy {public_url(self._proxy)}"
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            fix = "install its certificate, or name it in SSL_CERT_FILE"
            return KaceError(f"cannot trust {why}", fix=fix)
        unsent = isinstance(error, _UNSENT)
        if unsent and not self.reached:
            fix = "is the server running, and the base URL right?"
            return Unreachable(f"cannot reach {why}", fix=fix)
        lost = Transient(f"lost the connection to {why}")
        lost.billed = not unsent
        return lost


async def read_body(response: aiohttp.ClientResponse) -> bytes:
    """Read a body. Raises `ModelError` if it is longer than `MAX_BODY`."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_BODY:
            raise ModelError(
                Failure.PROVIDER_ERROR,
                f"the reply is larger than {MAX_BODY // 1_000_000} MB",
            )
    return bytes(body)


def find_proxy(url: str) -> str | None:
    """Return the proxy that the environment names for a URL.

    aiohttp can do this too, but then reads the environment and ~/.netrc per request.
    """
    target = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(target.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(target.netloc):
        return None
    if not is_http_address(proxy):
        raise KaceError(
            f"the proxy '{one_line(proxy, 80)}' is not supported",
            fix="name one with http://, or list the server in NO_PROXY",
        )
    credentials(proxy)  # kept out of every message from now on
    return proxy


def is_http_address(url: str) -> bool:
    """Whether a URL names an HTTP server and, if any, a valid port."""
    try:
        parts = urlsplit(url)
        valid = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return valid and parts.scheme in ("http", "https")


# Errors of a server


_UNSUPPORTED = re.compile(
    r"unsupported|not (?:support|permitted|allowed|enabled)|unknown|unrecogni[sz]ed"
    r"|unexpected|deprecated|max_completion_tokens",
    re.I,
)
_NOT_ALLOWED = re.compile(
    r"content_filter|content_policy_violation|ResponsibleAIPolicyViolation"
)
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size_error|request_too_large"
    r"|prompt is too long|exceed context limit",
    re.I,
)
_NO_CREDIT = re.compile(
    r"insufficient_quota|billing_error|credit balance is too low", re.I
)


def retry_after(headers: Headers) -> float | None:
    """Return the seconds to wait by `Retry-After`, if it has a number."""
    with suppress(ValueError):
        seconds = float(headers.get("retry-after", ""))
        if seconds >= 0:
            return seconds
    return None


# A model at one server


class Remote(ABC):
    """A model behind an HTTP API."""

    PROVIDER: ClassVar[str]
    PATH: ClassVar[str]
    HEADERS: ClassVar[Headers] = {}
    URL: ClassVar[str]  # the provider's own server, where a key is required
    KEY: ClassVar[str]  # the variable that holds the key
    # Parameters that some models do not support.
    OPTIONAL: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None,
        api_key: str | None,
        name: str,
    ) -> None:
        url = (base_url or self.URL).strip()
        if not is_http_address(url) or "?" in url:
            raise UsageError(
                f"'{one_line(url)}' is not a base URL",
                fix="give one like http://localhost:8000/v1",
            )
        key = (api_key or "").strip()
        own = urlsplit(url).hostname == urlsplit(self.URL).hostname
        if own and not key:
            fix = (
                f"export {self.KEY}=..., or point --base-url at your own server, "
                "or try: kace demo"
            )
            raise UsageError(f"no API key for '{name}'", fix=fix)
        if not re.fullmatch("[!-~]*", key):
            raise UsageError(
                f"{self.KEY} contains characters that no key has",
                fix="copy the key again",
            )
        keep_secret(key)
        self.url = public_url(url)  # logs show it
        if self.PATH.startswith("/v1"):  # many write it into the address
            self.url = self.url.removesuffix("/v1")
        auth = f"Bearer {key or PLACEHOLDER_KEY}"
        login = credentials(url)
        if login:
            packed = base64.b64encode(":".join(login).encode()).decode()
            auth = f"Basic {packed}"
        headers = {"authorization": auth, **self.HEADERS}
        self.client = HttpClient(self.url, headers)
        self.name = name
        self.identity = f"{self.PROVIDER} {self.url} {model}"
        self._model = model
        # After the first reply, a bad request is that request's fault, not the setup's.
        self.answered = False
        # Optional parameters that the model does not support.
        self.left_out: frozenset[str] = frozenset()

    @abstractmethod
    def build_body(self, request: Request) -> dict[str, object]:
        """Return the body of a request, without the parameters in `left_out`."""

    @abstractmethod
    def _read_reply(self, body: Any, seconds: float) -> Reply:
        """Return the reply in a body, or raise one of `MALFORMED`."""

    async def complete(self, request: Request) -> Reply:
        """Answer one request with one try: again without each parameter the server rejects."""
        started = time.perf_counter()
        while True:
            left_out = self.left_out
            body = self.build_body(request)
            response = await self.client.post(self.PATH, body)
            if 200 <= response.status < 300:
                seconds = time.perf_counter() - started
                reply = self.read_reply(response.body, seconds)
                self.answered = True
                return reply
            fault = self.error_of(response)
            if isinstance(fault, ModelError):
                fault.billed = False
            if not self.leave_out_rejected(response, left_out):
                raise fault
            await sent_again(fault)

    def read_reply(self, body: bytes, seconds: float) -> Reply:
        """Return the reply in a body. Raises `Transient` if there is none."""
        fault = None
        try:
            fields = json.loads(body)
            fault = fields.get("error")
            reply = self._read_reply(fields, seconds)
            text = without_secrets(reply.text)
            text.encode()  # JSON may hold half a character
            return replace(reply, text=text)
        except MALFORMED as error:
            line = one_line(f"unreadable reply: {type(error).__name__} {error}")
        # Routers and gateways report an error inside a 200.
        if isinstance(fault, dict):
            line = one_line(f"error in the reply: {fault}")
            kind = fault.get("code") or fault.get("type")
            if kind in (429, "rate_limit_error"):
                raise RateLimited(line)
        raise Transient(line)

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await self.client.aclose()

    def leave_out_rejected(
        self, response: Response, left_out: frozenset[str]
    ) -> bool:
        """Leave out the optional parameter that an error response rejects, if any.

        `left_out` are those that its request did not have.
        """
        text = response.text
        if response.status in (400, 403, 422) and _UNSUPPORTED.search(text):
            for name in self.OPTIONAL:
                named = re.search(rf"\b{name}\b", text, re.I)
                if named and name not in left_out:
                    if name not in self.left_out:
                        what = "%s does not support '%s' for %s: left out from now on"
                        log.warning(what, self.url, name, self._model)
                    self.left_out |= {name}
                    return True
        return False

    def error_of(self, response: Response) -> ModelError | KaceError:
        """Return what an error response means."""
        text = response.text
        message = text[:1000]
        with suppress(*MALFORMED):
            fields = json.loads(response.body)
            message = str(fields.get("error", fields)["message"])
        line = one_line(f"{response.status} from {self.url}: {message}")
        wait = retry_after(response.headers)
        status = response.status
        fix = f"check the model's name and the base URL (the provider's: {self.URL})"
        if _NO_CREDIT.search(text):
            fix = "add credit to the account, or use another key or model"
        elif status == 429 or (status in (503, 529) and wait):
            return RateLimited(line, wait)
        elif status in (408, 409, 425) or status >= 500:
            return Transient(line)
        elif status in (400, 413, 422):
            if _NOT_ALLOWED.search(text):
                return ModelError(Failure.REFUSED, line)
            too_long = status == 413 or _TOO_LONG.search(text)
            if self.answered or too_long:
                return ModelError(Failure.PROVIDER_ERROR, line)
            line = f"the server rejects requests for '{self._model}' ({line})"
            fix = "change what it names"
            if lacks_room(message):
                fix = (
                    "ask for fewer tokens: --set teacher_max_tokens=N for a teacher, "
                    "--set max_tokens=N for a solver"
                )
        elif status in (401, 402, 403):
            fix = (
                f"set {self.KEY}, or KACE_TEACHER_API_KEY for a teacher, "
                "to a key that may use this model"
            )
        elif status == 404:
            line = one_line(f"no model '{self._model}': {line}")
        return KaceError(line, fix=fix)


# The two APIs


FINISH = {
    "length": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "content_filter": Finish.FILTERED,
    "refusal": Finish.FILTERED,
}
MAX_TEMPERATURE = 1.0  # Anthropic rejects a higher one


class OpenAIModel(Remote):
    """A model behind an OpenAI-compatible server."""

    PROVIDER = "openai"
    PATH = "/chat/completions"
    URL = "https://api.openai.com/v1"
    KEY = "OPENAI_API_KEY"
    # The first has a newer name. The last two are left out together.
    OPTIONAL = ("max_tokens", "seed", "temperature", *LOGPROBS)

    def build_body(self, request: Request) -> dict[str, object]:
        """Return the body of a chat completion."""
        sampling = request.sampling
        limit = "max_tokens"
        if limit in self.left_out:
            limit = "max_completion_tokens"
        body = {
            "model": self._model,
            "messages": as_turns(request),
            limit: sampling.max_tokens,
        }
        for name in ("seed", "temperature"):
            if name not in self.left_out:
                body[name] = getattr(sampling, name)
        if request.logprobs and self.left_out.isdisjoint(LOGPROBS):
            body |= LOGPROBS
        return body

    def _read_reply(self, body: Any, seconds: float) -> Reply:
        choice = body["choices"][0]
        message = choice["message"]
        stop = choice.get("finish_reason")
        if stop == "error":
            raise ValueError(stop)
        # A refusal is billed, so it is a reply: its tokens count and it is kept.
        refusal = message.get("refusal")
        finish = FINISH.get(stop, Finish.STOP)
        if refusal:
            finish = Finish.FILTERED
        logprobs = choice.get("logprobs")
        tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
        return Reply(
            message.get("content") or refusal or "",
            finish,
            read_usage(body.get("usage")),
            seconds,
            confidence=read_confidence(tokens),
        )


def as_turns(request: Request) -> list[dict[str, str]]:
    """Return the messages of a request as a chat completion holds them."""
    return [asdict(message) for message in request.messages]


class AnthropicModel(Remote):
    """A Claude model. It has no seed, newer ones no temperature; the system prompt is cached."""

    PROVIDER = "anthropic"
    PATH = "/v1/messages"
    HEADERS: ClassVar[Headers] = {"anthropic-version": "2026-10-21"}
    URL = "https://api.anthropic.com"
    KEY = "ANTHROPIC_API_KEY"
    OPTIONAL = ("temperature",)

    def build_body(self, request: Request) -> dict[str, object]:
        """Return the body of a message request."""
        system: list[dict[str, object]] = []
        turns = []
        for message in request.messages:
            if message.role is Role.SYSTEM:
                system.append({"type": "text", "text": message.content})
            else:
                turns.append(asdict(message))
        body: dict[str, object] = {
            "model": self._model,
            "max_tokens": request.sampling.max_tokens,
            "messages": turns,
        }
        if system:  # the provider caches the prompt up to this mark
            system[-1]["cache_control"] = {"type": "ephemeral"}
            body["system"] = system
        if "temperature" not in self.left_out:
            body["temperature"] = min(
                request.sampling.temperature, MAX_TEMPERATURE
            )
        return body

    def _read_reply(self, body: Any, seconds: float) -> Reply:
        text = ""
        for block in body["content"]:
            if block["type"] == "text":  # and not the model's thinking
                text += block["text"]
        finish = FINISH.get(body.get("stop_reason"), Finish.STOP)
        return Reply(text, finish, read_usage(body.get("usage")), seconds)


def read_usage(raw: Any) -> Usage:
    """Return the token counts of a reply of either API.

    All are zero if one is impossible: no reason to lose a reply that is paid for. The
    ledger then charges the worst case.
    """
    try:
        details = raw.get("prompt_tokens_details") or {}
        cached = raw.get("cache_read_input_tokens")
        cached = cached or details.get("cached_tokens") or 0
        written = raw.get("cache_creation_input_tokens") or 0
        # Anthropic's input is what was neither read from a cache nor written.
        prompt = raw.get("input_tokens", 0) + cached + written
        prompt = raw.get("prompt_tokens", prompt)
        output = raw.get("completion_tokens", raw.get("output_tokens", 0))
    except MALFORMED:
        return Usage()
    counts = (prompt, cached, output, written)
    for count in counts:
        if type(count) is not int or not 0 <= count <= 10**9:
            return Usage()
    return Usage(*counts)


# Several servers


REST_SECONDS = 10.0  # for which a server that failed gets no calls


class Servers:
    """A model at several servers: a call goes to the one with the fewest under way.

    A server that failed rests while there is another. The first server names the model
    in caches and manifests, so others may come and go.
    """

    def __init__(self, remotes: Sequence[ChatModel]) -> None:
        self._remotes = list(remotes)
        self._under_way: Counter[ChatModel] = Counter()
        self._rest_until = dict.fromkeys(remotes, 0.0)
        self.name = remotes[0].name
        self.identity = remotes[0].identity

    async def complete(self, request: Request) -> Reply:
        """Answer one request with one try; at another server if it was not taken."""
        left = self._remotes.copy()
        fault: ModelError | Unreachable | None = None
        while left:
            remote = min(left, key=self._rank)
            left.remove(remote)
            if fault:
                await sent_again(fault)
            self._under_way[remote] += 1
            try:
                return await remote.complete(request)
            except (ModelError, Unreachable) as error:
                if getattr(error, "failure", None) is Failure.REFUSED:
                    raise
                now = time.monotonic()
                if now >= self._rest_until[remote]:
                    what = "%s failed and rests: %s"
                    log.warning(what, remote.identity, error.message)
                self._rest_until[remote] = now + REST_SECONDS
                if error.billed:
                    raise
                # A `ModelError` may pass, the other would end the run.
                if not isinstance(fault, ModelError):
                    fault = error
            finally:
                self._under_way[remote] -= 1
        assert fault is not None
        raise fault

    def _rank(self, remote: ChatModel) -> tuple[bool, int]:
        rests = self._rest_until[remote] > time.monotonic()
        return rests, self._under_way[remote]

    async def aclose(self) -> None:
        """Close the connections to every server."""
        for remote in self._remotes:
            await remote.aclose()
