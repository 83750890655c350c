"""A model behind an HTTP API: one try, bounded in time and size, with a failure that has a name.

One `complete` is one try: `kace.models.limits` tries again. Which failure an answer is, or the lack of one:

    429, and 503 or 529 with Retry-After        RateLimited
    408, 409, 425, 5xx, reset, unreadable body  Transient
    this prompt is not allowed                  ModelError(REFUSED)
    this prompt or this reply is too large      ModelError(PROVIDER_ERROR)
    the call as a whole takes too long          ModelError(TIMEOUT)
    key, model, address or a setting is wrong   KaceError, with the fix
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
import ssl
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from typing import ClassVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

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
    Failure,
    ModelError,
    RateLimited,
    Reply,
    Request,
    Transient,
    lacks_room,
)
from kace.models.budget import sent_again
from kace.models.wire import Broken, NoConnection, Response, Wire, basic_auth

log = logging.getLogger(__name__)

PLACEHOLDER_KEY = "none"

_UNTAKEN = r"unsupported|not (?:support|permitted|allowed|enabled)|unknown|unrecogni[sz]ed|unexpected|deprecated"
_NOT_TAKEN = re.compile(rf"{_UNTAKEN}|max_completion_tokens", re.I)
_NOT_ALLOWED = {
    "content_filter",
    "content_policy_violation",
    "ResponsibleAIPolicyViolation",
}
_TOO_LONG = (
    r"context_length_exceeded|exceed_context_size_error|request_too_large"
    r"|prompt is too long|exceed context limit"
)
_NO_CREDIT = r"insufficient_quota|billing_error|credit balance is too low"


class ErrorReport:
    """An error as a server reports it, in whatever shape."""

    def __init__(self, response: Response) -> None:
        body: object = None
        with suppress(ValueError, RecursionError):
            body = json.loads(response.body)
        outer = body if isinstance(body, dict) else {}
        inner = outer["error"] if isinstance(outer.get("error"), dict) else outer
        details = inner["details"] if isinstance(inner.get("details"), dict) else {}
        self.status = response.status
        self.text = response.body[:40_000].decode("utf-8", "replace")[:10_000]
        self.words: str = (
            inner["message"]
            if isinstance(inner.get("message"), str)
            else self.text[:1000]
        )
        self.labels = {
            str(inner.get("code")),
            str(inner.get("type")),
            str(details.get("error_code")),
        }
        self.wait = retry_after(response.headers)
        self.parameter = inner.get("param")

    def says(self, pattern: str) -> bool:
        """Whether its label or its words match."""
        return any(
            re.search(pattern, text, re.I) for text in (self.words, *self.labels)
        )

    def not_taken(
        self, optional: tuple[str, ...], left_out: frozenset[str]
    ) -> str | None:
        """The parameter a bad request complains of, where we can do without."""
        if self.status not in (400, 403, 422) or not _NOT_TAKEN.search(self.text):
            return None
        candidates = [
            name
            for name in optional
            if name not in left_out and re.search(rf"\b{name}\b", self.text, re.I)
        ]
        return (
            self.parameter
            if self.parameter in candidates
            else next(iter(candidates), None)
        )


class Remote(ABC):
    """A model behind an HTTP API. `timeout` bounds a call, however slowly bytes drip."""

    PROVIDER: str
    PATH: str
    HEADERS: ClassVar[Mapping[str, str]] = {}
    URL: str  # where the provider itself listens: there, a key is needed
    URL_HINT: str
    KEY: str  # the variable that holds the key
    KEY_FIX: str
    OPTIONAL: tuple[
        str, ...
    ]  # what some of its models do not take, and a request can do without

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None,
        api_key: str | None,
        timeout: float,
        name: str,
    ) -> None:
        url, auth = address(base_url or self.URL)
        self.url = (
            url.removesuffix("/v1") if self.PATH.startswith("/v1") else url
        )  # many gateways write it
        if (
            not (api_key or "").strip()
            and urlsplit(url).hostname == urlsplit(self.URL).hostname
        ):
            raise UsageError(f"no API key for '{name}'", fix=self.KEY_FIX)
        key = usable_key(api_key, variable=self.KEY)
        self.headers = {
            "authorization": basic_auth(*auth) if auth else f"Bearer {key}",
            **self.HEADERS,
        }
        self._model = model
        self._timeout = timeout
        self.name = name
        self.identity = f"{self.PROVIDER} {self.url} {model}"
        self.reached = False  # once a response has come, a failed connection is the network's fault, not the user's
        self.answered = False  # once a reply has come, a bad request is that request's fault, not the settings'
        self.left_out: frozenset[str] = (
            frozenset()
        )  # of `OPTIONAL`, what this server turned out not to take
        self._wires: WeakKeyDictionary[asyncio.AbstractEventLoop, Wire] = (
            WeakKeyDictionary()
        )

    @abstractmethod
    def _body(self, request: Request, left_out: frozenset[str]) -> dict[str, object]:
        """The body of a request, without what the server does not take."""

    @abstractmethod
    def _read(self, body: bytes, seconds: float) -> Reply:
        """The reply that a body holds."""

    async def complete(self, request: Request) -> Reply:
        """Answer one request with one try."""
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self._timeout):
                body = await self._send(self._wire(), request)
        except TimeoutError:
            raise ModelError(
                Failure.TIMEOUT, f"no whole reply within {self._timeout:g} s"
            ) from None
        reply = self._read(body, time.perf_counter() - started)
        self.answered = True
        return replace(reply, text=without_secrets(reply.text))

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        if (wire := self._wires.pop(asyncio.get_running_loop(), None)) is not None:
            await wire.aclose()

    def _wire(self) -> Wire:
        loop = asyncio.get_running_loop()
        if (wire := self._wires.get(loop)) is None:
            wire = self._wires[loop] = Wire(
                self.url, {"user-agent": f"kace/{version('kace')}", **self.headers}
            )
        return wire

    async def _send(self, wire: Wire, request: Request) -> bytes:
        left_out = self.left_out
        while True:
            try:
                response = await wire.post(
                    self.PATH, json.dumps(self._body(request, left_out)).encode()
                )
            except Broken as error:
                raise self._unreachable(error) from None
            self.reached = True
            if 200 <= response.status < 300:
                for name in sorted(left_out - self.left_out):
                    log.warning(
                        "%s does not take '%s' for %s: left out from now on",
                        self.url,
                        name,
                        self._model,
                    )
                self.left_out |= left_out
                return response.body
            report = ErrorReport(response)
            refusal = self._refusal(report)
            if isinstance(refusal, ModelError):
                refusal.billed = False
            if (parameter := report.not_taken(self.OPTIONAL, left_out)) is None:
                raise refusal
            left_out |= {parameter}
            await sent_again(refusal)

    def _refusal(self, report: ErrorReport) -> ModelError | KaceError:
        """What an error status means."""
        line = one_line(f"{report.status} from {self.url}: {report.words}")
        if report.says(_NO_CREDIT):
            return KaceError(
                line, fix="add credit to the account, or use another key or model"
            )
        if report.status == 429 or (
            report.status in (503, 529) and report.wait is not None
        ):
            return RateLimited(line, report.wait)
        if report.status in (408, 409, 425) or report.status >= 500:
            return Transient(line)
        if report.status in (400, 413, 422):
            return self._bad_request(report, line)
        if report.status in (401, 402, 403):
            fix = f"set {self.KEY}, or KACE_TEACHER_API_KEY for a teacher, to a key that may use this model"
            return KaceError(line, fix=fix)
        if report.status == 404:
            line = one_line(
                f"no model '{self._model}' at {self.url} (404: {report.words})"
            )
        return KaceError(
            line, fix=f"check the model's name and the base URL, {self.URL_HINT}"
        )

    def _bad_request(self, report: ErrorReport, line: str) -> ModelError | KaceError:
        if report.labels & _NOT_ALLOWED:
            return ModelError(Failure.REFUSED, line)
        if self.answered or report.status == 413 or report.says(_TOO_LONG):
            return ModelError(Failure.PROVIDER_ERROR, line)
        fewer = "ask for fewer tokens: --set teacher_max_tokens=N for a teacher, --set max_tokens=N for a solver"
        fix = fewer if lacks_room(report.words) else "change what it names"
        return KaceError(
            f"the server rejects requests for '{self._model}' ({line})", fix=fix
        )

    def _unreachable(self, error: Broken) -> ModelError | KaceError:
        """What a broken connection means."""
        cause = error.__cause__
        why = one_line(f"{self.url}: {error}")
        if isinstance(cause, ssl.SSLCertVerificationError):
            return KaceError(
                f"cannot trust {why}",
                fix="install its certificate, or name it in SSL_CERT_FILE",
            )
        unsent = isinstance(error, NoConnection) or isinstance(cause, ssl.SSLError)
        if unsent and not self.reached:
            return KaceError(
                f"cannot reach {why}",
                fix="is the server running, and the base URL right?",
            )
        lost = Transient(f"lost the connection to {why}")
        lost.sent = lost.billed = not unsent
        return lost


def address(url: str) -> tuple[str, tuple[str, str] | None]:
    """The URL without credentials, and the credentials: in the URL they would end up in logs and errors."""
    valid = False
    with suppress(ValueError):
        parts = urlsplit(url.strip())
        plain = (
            not parts.query and "," not in parts.path
        )  # a comma there is a list whose next part is no URL
        valid = (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0
            and plain
        )
    if not valid:
        raise UsageError(
            f"'{one_line(url)}' is no base URL",
            fix="give one like http://localhost:8000/v1",
        )
    return public_url(url.strip()), credentials(url)


def usable_key(key: str | None, *, variable: str) -> str:
    """The key, kept out of every message from now on; a placeholder where there is none."""
    key = (key or "").strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(
            f"{variable} has characters that no key has", fix="copy the key again"
        )
    keep_secret(key)
    return key or PLACEHOLDER_KEY


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from `Retry-After` (seconds or a date) or OpenAI's `retry-after-ms`; None where unsaid."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        with suppress(ValueError):
            if math.isfinite(value := float(headers.get(name, ""))) and value >= 0:
                return value / unit
    until, now = (_date(headers.get(name, "")) for name in ("retry-after", "date"))
    # The server's own date: a wrong clock does not matter.
    return (
        max(0.0, (until - (now or datetime.now(UTC))).total_seconds())
        if until
        else None
    )


def _date(text: str) -> datetime | None:
    with suppress(ValueError, TypeError, IndexError):
        date = parsedate_to_datetime(text)
        return date if date.tzinfo else date.replace(tzinfo=UTC)
    return None
