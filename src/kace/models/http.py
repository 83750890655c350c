"""Models behind an HTTP API: OpenAI's chat completions and Anthropic's messages.

`HttpClient` sends requests to one server and bounds its replies. `Remote` is a model at
one server; `Servers` are several of one model. One `complete` is one try, which
`kace.models.limits` repeats. What the outcome of a try means:

    429, and 503 or 529 with Retry-After        RateLimited
    408, 409, 425, 5xx, reset, unreadable body  Transient
    this prompt is not allowed                  ModelError(REFUSED)
    this prompt or this reply is too large      ModelError(PROVIDER_ERROR)
    the call as a whole takes too long          ModelError(TIMEOUT)
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
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from typing import Any, ClassVar, NamedTuple, Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

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
LONGEST_WAIT = 1e9  # seconds; a server may name any number
PLACEHOLDER_KEY = "none"


# One server


class Response(NamedTuple):
    """A whole response."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Lost(Exception):
    """No whole response came. `__cause__` is the error of the connection."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent  # whether the request may have reached the server


class HttpClient:
    """Sends requests to one server. Connections are kept per event loop until `aclose`."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        socket: str | None = None,
        read_seconds: float | None = None,
    ) -> None:
        self.url = url
        self._socket = socket
        self._proxy: str | None = None
        self._proxy_headers: dict[str, str] = {}
        if not socket:
            self._proxy, self._proxy_headers = find_proxy(url)
        # No compression: what unpacks to gigabytes need not be guarded against.
        self._headers = {
            "user-agent": f"kace/{version('kace')}",
            "accept-encoding": "identity",
            **headers,
        }
        if url.startswith("http:"):  # over TLS only CONNECT carries them
            self._headers |= self._proxy_headers
        self._timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_SECONDS, sock_read=read_seconds
        )
        self._lost_at = -math.inf
        self._trust: ssl.SSLContext | None = None
        self._sessions: WeakKeyDictionary[
            asyncio.AbstractEventLoop, aiohttp.ClientSession
        ] = WeakKeyDictionary()

    async def post(self, path: str, body: Mapping[str, object]) -> Response:
        """Post JSON. Raises `Lost`, or `ModelError` for a body that is too large."""
        headers = {"content-type": "application/json"}
        data = json.dumps(body).encode()
        async with self.open("POST", path, data, headers) as response:
            reply = await read_body(response)
            return Response(response.status, response.headers, reply)

    @asynccontextmanager
    async def open(
        self,
        method: str,
        path: str,
        data: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and yield the response with its body unread. Raises `Lost`."""
        # A server that closes idle connections closes many at once. So for a moment
        # after a lost connection, each request opens its own.
        fresh = bool(self._socket)
        if time.monotonic() - self._lost_at < FRESH_SECONDS:
            fresh = True
        session = self._session(fresh=fresh)
        try:
            async with session.request(
                method,
                self.url + path,
                data=data,
                headers=headers,
                proxy=self._proxy,
                proxy_headers=self._proxy_headers,
                allow_redirects=False,
            ) as response:
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
            unsent = isinstance(
                error,
                aiohttp.ClientConnectorError
                | aiohttp.ClientHttpProxyError
                | aiohttp.ConnectionTimeoutError
                | aiohttp.InvalidURL,
            )
            inner = getattr(error, "os_error", error)
            why = str(inner) or type(inner).__name__
            if self._proxy:
                why += f" by the proxy {self._proxy}"
            raise Lost(why, sent=not unsent) from error
        finally:
            if fresh:
                await session.close()

    async def aclose(self) -> None:
        """Close the connections of this event loop. Safe to call twice."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()
        # A transport releases its socket in the next iteration of the loop.
        await asyncio.sleep(0)

    def _session(self, *, fresh: bool) -> aiohttp.ClientSession:
        """Return the session of this event loop, or a fresh one."""
        loop = asyncio.get_running_loop()
        if not fresh and loop in self._sessions:
            return self._sessions[loop]
        connector: aiohttp.BaseConnector
        if self._socket:
            connector = aiohttp.UnixConnector(self._socket)
        else:
            # aiohttp's own context ignores a later change of SSL_CERT_FILE. One takes
            # 17 ms to create, so it is shared by the sessions.
            if self._trust is None and self.url.startswith("https"):
                self._trust = ssl.create_default_context()
            connector = aiohttp.TCPConnector(
                limit=0,
                ssl=self._trust or True,
                keepalive_timeout=IDLE_SECONDS,
            )
        session = aiohttp.ClientSession(
            connector=connector,
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=self._timeout,
            auto_decompress=False,
        )
        if not fresh:
            self._sessions[loop] = session
        return session


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


def basic_auth(user: str, password: str) -> str:
    """Return the value of a header with a user name and a password."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def find_proxy(url: str) -> tuple[str | None, dict[str, str]]:
    """Return the proxy that the environment names for a URL, and its headers.

    aiohttp can do this too, but then reads the environment and ~/.netrc per request.
    """
    target = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(target.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(target.netloc.rpartition("@")[2]):
        return None, {}
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    if not is_http_address(proxy):
        raise KaceError(
            f"the proxy '{one_line(proxy, 80)}' is not supported",
            fix="name one with http://, or list the server in NO_PROXY",
        )
    login = credentials(proxy)
    headers = {"Proxy-Authorization": basic_auth(*login)} if login else {}
    return public_url(proxy), headers


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


class ErrorReport:
    """An error response, in whatever shape a server sends it."""

    def __init__(self, response: Response) -> None:
        fields = None
        with suppress(ValueError, RecursionError):
            fields = json.loads(response.body)
        if isinstance(fields, dict) and isinstance(fields.get("error"), dict):
            fields = fields["error"]
        if not isinstance(fields, dict):
            fields = {}
        self.status = response.status
        self.text = response.body[:40_000].decode("utf-8", "replace")[:10_000]
        message = fields.get("message")
        self.message = message if isinstance(message, str) else self.text[:1000]
        self.parameter = fields.get("param")
        self.wait = retry_after(response.headers)

    def unsupported(
        self, optional: Sequence[str], left_out: frozenset[str]
    ) -> str | None:
        """Return the optional parameter that the server does not support."""
        if self.status not in (400, 403, 422):
            return None
        if not _UNSUPPORTED.search(self.text):
            return None
        left = [name for name in optional if name not in left_out]
        if self.parameter in left:
            return str(self.parameter)
        for name in left:
            if re.search(rf"\b{name}\b", self.text, re.I):
                return name
        return None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait by `retry-after-ms` or `Retry-After`, if any."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        with suppress(ValueError):
            seconds = float(headers.get(name, "")) / unit
            if seconds >= 0:
                return min(seconds, LONGEST_WAIT)
    until = _read_date(headers.get("retry-after", ""))
    if until is None:
        return None
    # Counted from the server's own date, so that a wrong clock here does not matter.
    now = _read_date(headers.get("date", "")) or datetime.now(UTC)
    return min(max(0.0, (until - now).total_seconds()), LONGEST_WAIT)


def _read_date(text: str) -> datetime | None:
    """Return a date of a header, if it is one."""
    with suppress(ValueError, TypeError, IndexError, OverflowError):
        date = parsedate_to_datetime(text)
        return date.astimezone(UTC) if date.tzinfo else date.replace(tzinfo=UTC)
    return None


# A model at one server


class Remote(ABC):
    """A model behind an HTTP API. `timeout` bounds a call, however slowly bytes drip."""

    PROVIDER: ClassVar[str]
    PATH: ClassVar[str]
    HEADERS: ClassVar[Mapping[str, str]] = {}
    URL: ClassVar[str]  # the provider's own server, where a key is required
    URL_HINT: ClassVar[str]
    KEY: ClassVar[str]  # the variable that holds the key
    KEY_FIX: ClassVar[str]
    # Parameters that some models do not support.
    OPTIONAL: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None,
        api_key: str | None,
        timeout: float,
        name: str,
    ) -> None:
        url, login = split_address(base_url or self.URL)
        self.url = url
        if self.PATH.startswith("/v1"):  # many write it into the address
            self.url = url.removesuffix("/v1")
        own = urlsplit(url).hostname == urlsplit(self.URL).hostname
        if own and not (api_key or "").strip():
            raise UsageError(f"no API key for '{name}'", fix=self.KEY_FIX)
        auth = f"Bearer {check_key(api_key, variable=self.KEY)}"
        if login:
            auth = basic_auth(*login)
        self.headers = {"authorization": auth, **self.HEADERS}
        self.client = HttpClient(self.url, self.headers)
        self.name = name
        self.identity = f"{self.PROVIDER} {self.url} {model}"
        self._model = model
        self._timeout = timeout
        # After the first response, a failed connection is the network's fault.
        self.reached = False
        # After the first reply, a bad request is that request's fault, not the setup's.
        self.answered = False
        # Optional parameters that the model does not support.
        self.left_out: frozenset[str] = frozenset()

    @abstractmethod
    def build_body(
        self, request: Request, left_out: frozenset[str]
    ) -> dict[str, object]:
        """Return the body of a request, without the parameters in `left_out`."""

    @abstractmethod
    def read_reply(self, body: bytes, seconds: float) -> Reply:
        """Return the reply in a body. Raises `Transient` if there is none."""

    async def complete(self, request: Request) -> Reply:
        """Answer one request with one try."""
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self._timeout):
                body = await self._send(request)
        except TimeoutError:
            raise ModelError(
                Failure.TIMEOUT, f"no whole reply within {self._timeout:g} s"
            ) from None
        reply = self.read_reply(body, time.perf_counter() - started)
        self.answered = True
        text = without_secrets(reply.text)
        return reply if text == reply.text else replace(reply, text=text)

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await self.client.aclose()

    async def _send(self, request: Request) -> bytes:
        """Send a request, again without each optional parameter the server rejects."""
        left_out = self.left_out
        while True:
            body = self.build_body(request, left_out)
            try:
                response = await self.client.post(self.PATH, body)
            except Lost as error:
                raise self.connection_error(error) from None
            self.reached = True
            if 200 <= response.status < 300:
                if left_out - self.left_out:
                    names = "', '".join(sorted(left_out))
                    log.warning(
                        "%s does not support '%s' for %s: left out from now on",
                        self.url,
                        names,
                        self._model,
                    )
                    self.left_out |= left_out
                return response.body
            report = ErrorReport(response)
            fault = self.error_of(report)
            if isinstance(fault, ModelError):
                fault.billed = False
            parameter = report.unsupported(self.OPTIONAL, left_out)
            if parameter is None:
                raise fault
            left_out |= {parameter}
            await sent_again(fault)

    def error_of(self, report: ErrorReport) -> ModelError | KaceError:
        """Return what an error response means."""
        line = one_line(f"{report.status} from {self.url}: {report.message}")
        status = report.status
        fix = f"check the model's name and the base URL, {self.URL_HINT}"
        if _NO_CREDIT.search(report.text):
            fix = "add credit to the account, or use another key or model"
        elif status == 429 or (status in (503, 529) and report.wait):
            return RateLimited(line, report.wait)
        elif status in (408, 409, 425) or status >= 500:
            return Transient(line)
        elif status in (400, 413, 422):
            return self._bad_request(report, line)
        elif status in (401, 402, 403):
            fix = (
                f"set {self.KEY}, or KACE_TEACHER_API_KEY for a teacher, "
                "to a key that may use this model"
            )
        elif status == 404:
            line = one_line(f"no model '{self._model}': {line}")
        return KaceError(line, fix=fix)

    def _bad_request(
        self, report: ErrorReport, line: str
    ) -> ModelError | KaceError:
        if _NOT_ALLOWED.search(report.text):
            return ModelError(Failure.REFUSED, line)
        too_long = report.status == 413 or _TOO_LONG.search(report.text)
        if self.answered or too_long:
            return ModelError(Failure.PROVIDER_ERROR, line)
        fix = "change what it names"
        if lacks_room(report.message):
            fix = (
                "ask for fewer tokens: --set teacher_max_tokens=N for a teacher, "
                "--set max_tokens=N for a solver"
            )
        return KaceError(
            f"the server rejects requests for '{self._model}' ({line})", fix=fix
        )

    def connection_error(self, error: Lost) -> ModelError | KaceError:
        """Return what a lost connection means."""
        why = one_line(f"{self.url}: {error}")
        if isinstance(error.__cause__, aiohttp.ClientConnectorCertificateError):
            fix = "install its certificate, or name it in SSL_CERT_FILE"
            return KaceError(f"cannot trust {why}", fix=fix)
        if not error.sent and not self.reached:
            fix = "is the server running, and the base URL right?"
            return KaceError(f"cannot reach {why}", fix=fix)
        lost = Transient(f"lost the connection to {why}")
        lost.sent = error.sent
        lost.billed = error.sent
        return lost


def split_address(url: str) -> tuple[str, tuple[str, str] | None]:
    """Return a URL without its credentials, which logs would show, and these."""
    url = url.strip()
    # A comma in the path: a list of addresses in which a later one is no URL.
    if not is_http_address(url) or "?" in url or "," in urlsplit(url).path:
        raise UsageError(
            f"'{one_line(url)}' is not a base URL",
            fix="give one like http://localhost:8000/v1",
        )
    return public_url(url), credentials(url)


def check_key(key: str | None, *, variable: str) -> str:
    """Return the key, which `redact` removes from now on, or a placeholder."""
    key = (key or "").strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(
            f"{variable} contains characters that no key has",
            fix="copy the key again",
        )
    keep_secret(key)
    return key or PLACEHOLDER_KEY


# The two APIs


FINISH = {
    "length": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "content_filter": Finish.FILTERED,
    "refusal": Finish.FILTERED,
}
MAX_TEMPERATURE = 1.0  # Anthropic rejects a higher one
EMPTY = "(empty)"  # replaces a turn without text, which Anthropic rejects
MALFORMED = (LookupError, TypeError, AttributeError, ValueError)


class OpenAIModel(Remote):
    """A model behind an OpenAI-compatible server."""

    PROVIDER = "openai"
    PATH = "/chat/completions"
    URL = "https://api.openai.com/v1"
    KEY = "OPENAI_API_KEY"
    KEY_FIX = f"export {KEY}=..., or point --base-url at your own server, or try: kace demo"
    URL_HINT = "which mostly ends in /v1"
    # The first has a newer name. The last two are left out together.
    OPTIONAL = ("max_tokens", "seed", "temperature", *LOGPROBS)

    def build_body(
        self, request: Request, left_out: frozenset[str]
    ) -> dict[str, object]:
        """Return the body of a chat completion."""
        sampling = request.sampling
        limit = "max_tokens"
        if limit in left_out:
            limit = "max_completion_tokens"
        body = {
            "model": self._model,
            "messages": [
                {"role": m.role.value, "content": m.content}
                for m in request.messages
            ],
            limit: sampling.max_tokens,
        }
        if "seed" not in left_out:
            body["seed"] = sampling.seed
        if "temperature" not in left_out:
            body["temperature"] = sampling.temperature
        if request.logprobs and left_out.isdisjoint(LOGPROBS):
            body |= LOGPROBS
        return body

    def read_reply(self, body: bytes, seconds: float) -> Reply:
        """Return the first choice of a completion."""
        completion = _parse(body)
        try:
            choice = completion["choices"][0]
            message = choice["message"]
            refusal = message.get("refusal")
            text = _check_text(message.get("content") or refusal or "")
            stop = str(choice.get("finish_reason"))
        except MALFORMED:
            raise _read_fault(completion, "choices") from None
        if stop == "error":
            raise _read_fault(completion, "choices")
        # A refusal is billed, so it is a reply: its tokens count and it is kept.
        finish = FINISH.get(stop, Finish.STOP)
        if refusal:
            finish = Finish.FILTERED
        logprobs = choice.get("logprobs")
        tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
        return Reply(
            text,
            finish,
            read_usage(completion.get("usage")),
            seconds,
            confidence=read_confidence(tokens),
        )


class AnthropicModel(Remote):
    """A Claude model. It has no seed, newer ones no temperature; the system prompt is cached."""

    PROVIDER = "anthropic"
    PATH = "/v1/messages"
    HEADERS: ClassVar[Mapping[str, str]] = {"anthropic-version": "2026-10-21"}
    URL = "https://api.anthropic.com"
    KEY = "ANTHROPIC_API_KEY"
    KEY_FIX = (
        f"export {KEY}=..., or name another model, such as exchange/FOLDER"
    )
    URL_HINT = "which ends before /v1"
    OPTIONAL = ("temperature",)

    def build_body(
        self, request: Request, left_out: frozenset[str]
    ) -> dict[str, object]:
        """Return the body of a message request."""
        system: list[dict[str, object]] = []
        turns = []
        for message in request.messages:
            text = message.content if message.content.strip() else ""
            if message.role is not Role.SYSTEM:
                turns.append(
                    {"role": message.role.value, "content": text or EMPTY}
                )
            elif text:
                system.append({"type": "text", "text": text})
        body: dict[str, object] = {
            "model": self._model,
            "max_tokens": request.sampling.max_tokens,
            "messages": turns,
        }
        if system:  # the provider caches the prompt up to this mark
            system[-1]["cache_control"] = {"type": "ephemeral"}
            body["system"] = system
        if "temperature" not in left_out:
            body["temperature"] = min(
                request.sampling.temperature, MAX_TEMPERATURE
            )
        return body

    def read_reply(self, body: bytes, seconds: float) -> Reply:
        """Return the text of a message, without the model's thinking."""
        message = _parse(body)
        text = ""
        try:
            for block in message["content"]:
                part = _check_text(block.get("text") or "")
                if block.get("type") == "text":
                    text += part
        except MALFORMED:
            raise _read_fault(message, "content") from None
        finish = FINISH.get(str(message.get("stop_reason")), Finish.STOP)
        return Reply(text, finish, read_usage(message.get("usage")), seconds)


def _parse(body: bytes) -> dict[str, Any]:
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Transient(one_line(f"unreadable reply: {error}")) from None
    if not isinstance(reply, dict):
        raise Transient("unreadable reply: it is not an object")
    return reply


def _check_text(text: object) -> str:
    if not isinstance(text, str):
        raise TypeError("not a text")
    text.encode()  # JSON may hold half a character
    return text


def _read_fault(reply: Mapping[str, Any], missing: str) -> ModelError:
    """Return the error that a router or gateway reports inside a 200."""
    error = reply.get("error")
    if not isinstance(error, dict):
        return Transient(f"unreadable reply: no {missing}")
    code = str(error.get("code"))
    line = one_line(f"error in the reply: {error.get('message') or code}")
    if code == "429" or error.get("type") == "rate_limit_error":
        return RateLimited(line)
    return Transient(line)


_COUNTS = (
    "prompt_tokens",
    "completion_tokens",
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


def read_usage(raw: object) -> Usage:
    """Return the token counts of a reply of either API.

    All are zero if one is malformed: no reason to lose a reply that is paid for.
    """
    if not isinstance(raw, dict):
        return Usage()
    given = dict(raw)
    details = raw.get("prompt_tokens_details")
    if isinstance(details, dict):
        given["cache_read_input_tokens"] = details.get("cached_tokens")
    counts = {}
    for name in _COUNTS:
        value = given.get(name)
        if value is None:
            value = 0
        if type(value) is not int or not 0 <= value <= 10**9:
            return Usage()
        counts[name] = value
    cached = counts["cache_read_input_tokens"]
    written = counts["cache_creation_input_tokens"]
    # Anthropic's input is what was neither read from a cache nor written.
    prompt = counts["input_tokens"] + cached + written
    return Usage(
        counts["prompt_tokens"] or prompt,
        cached,
        counts["completion_tokens"] or counts["output_tokens"],
        written,
    )


# Several servers


REST_SECONDS = 10.0  # for which a server that failed gets no calls


class Endpoint(ChatModel, Protocol):
    """A model at one address."""

    url: str
    reached: bool  # whether it ever answered, if only with an error


class Servers:
    """A model at several servers: a call goes to the one with the fewest under way.

    A server that failed rests while there is another. The first server names the model
    in caches and manifests, so others may come and go.
    """

    def __init__(self, remotes: Sequence[Endpoint]) -> None:
        self._remotes = list(remotes)
        self._under_way = dict.fromkeys(range(len(remotes)), 0)
        self._rest_until = dict.fromkeys(range(len(remotes)), 0.0)
        self.name = remotes[0].name
        self.identity = remotes[0].identity

    async def complete(self, request: Request) -> Reply:
        """Answer one request with one try; at another server if it was not taken."""
        left = set(self._under_way)
        fault = None
        while left:
            place = self._choose(left)
            left.remove(place)
            if fault:
                await sent_again(fault)
            self._under_way[place] += 1
            try:
                return await self._remotes[place].complete(request)
            except (ModelError, KaceError) as error:
                if self._note_failure(place, error):
                    raise
                # A `ModelError` may pass, a `KaceError` would end the run.
                if not isinstance(fault, ModelError):
                    fault = error
            finally:
                self._under_way[place] -= 1
        assert fault is not None
        raise fault

    async def aclose(self) -> None:
        """Close the connections to every server."""
        for remote in self._remotes:
            await remote.aclose()

    def _choose(self, left: set[int]) -> int:
        """Return the server with the fewest calls, one that does not rest if any."""
        now = time.monotonic()

        def rank(place: int) -> tuple[float, int, int]:
            rest = max(0.0, self._rest_until[place] - now)
            return rest, self._under_way[place], place

        return min(left, key=rank)

    def _note_failure(self, place: int, error: ModelError | KaceError) -> bool:
        """Let the server rest; return whether it may have taken the request."""
        remote = self._remotes[place]
        taken = remote.reached
        if isinstance(error, ModelError):
            taken = error.billed
            if error.failure is Failure.REFUSED:
                return taken
        now = time.monotonic()
        if now >= self._rest_until[place]:
            log.warning("%s failed and rests: %s", remote.url, error.message)
        self._rest_until[place] = now + REST_SECONDS
        return taken
