"""A model behind HTTP: how it is addressed, and what it means when it does not reply.

Which failure an answer is, or the lack of one:

    429, and 503 or 529 with Retry-After        RateLimited
    408, 409, 425, 5xx, reset, unreadable body  Transient
    this prompt is not allowed                  ModelError(REFUSED)
    this prompt or this reply is too large      ModelError(PROVIDER_ERROR)
    key, model, address or a setting is wrong   KaceError, with the fix
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from kace.errors import KaceError, UsageError
from kace.models.base import Failure, ModelError, RateLimited, Transient
from kace.models.retry_after import retry_after
from kace.redact import keep_secret, one_line, public_url

PLACEHOLDER_KEY = "none"

_NOT_TAKEN = re.compile(
    r"unsupported|not support|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed|deprecated"
    r"|max_completion_tokens",
    re.I,
)
_NOT_ALLOWED = {"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"}
_TOO_LONG = {"context_length_exceeded", "exceed_context_size_error", "request_too_large"}
_TOO_LONG_WORDS = re.compile(r"prompt is too long|exceed context limit", re.I)
_NO_ROOM = re.compile(r"max_(?:completion_)?tokens|max_model_len|context (?:length|limit|size|window)", re.I)
_NO_CREDIT = {"insufficient_quota", "billing_error"}
_NO_CREDIT_WORDS = re.compile(r"credit balance is too low", re.I)


@dataclass(frozen=True, slots=True)
class Said:
    """An error as a server reports it."""

    status: int
    words: str
    labels: frozenset[str]
    """The error's code and type, whatever shape the server gave them."""
    headers: Mapping[str, str]
    body: str = ""
    """The beginning of what it sent."""
    parameter: str | None = None
    """What it names as the cause, where it does."""

    def not_taken(self, optional: tuple[str, ...], left_out: frozenset[str]) -> str | None:
        """The parameter a bad request complains of, where we can do without."""
        if self.status not in (400, 422) or not _NOT_TAKEN.search(self.body):
            return None
        candidates = [name for name in optional if name not in left_out and re.search(rf"\b{name}\b", self.body)]
        return self.parameter if self.parameter in candidates else next(iter(candidates), None)


@dataclass(frozen=True, slots=True)
class Server:
    """Where a model is asked, as errors name it."""

    url: str
    """Without credentials."""
    model: str
    key_variable: str
    address_hint: str

    def refusal(self, said: Said, *, answered: bool) -> ModelError | KaceError:
        """What an error status means. Once it has `answered`, a bad request is that request's fault only."""
        line = one_line(f"{said.status} from {self.url}: {said.words}")
        wait = retry_after(said.headers)
        if said.labels & _NO_CREDIT or _NO_CREDIT_WORDS.search(said.words):
            return KaceError(line, fix="add credit to the account, or use another key or model")
        if said.status == 429 or (said.status in (503, 529) and wait is not None):
            return RateLimited(line, wait)
        if said.status in (408, 409, 425) or said.status >= 500:
            return Transient(line)
        if said.status in (400, 413, 422):
            return self._bad_request(said, line, answered)
        if said.status in (401, 402, 403):
            fix = f"set {self.key_variable}, or KACE_TEACHER_API_KEY for a teacher, to a key that may use this model"
            return KaceError(line, fix=fix)
        if said.status == 404:
            return KaceError(
                one_line(f"no model '{self.model}' at {self.url} (404: {said.words})"),
                fix=f"check the model's name and the base URL, {self.address_hint}",
            )
        return KaceError(line, fix=f"check the base URL, {self.address_hint}")

    def _bad_request(self, said: Said, line: str, answered: bool) -> ModelError | KaceError:
        if said.labels & _NOT_ALLOWED:
            return ModelError(Failure.REFUSED, line)
        too_long = said.status == 413 or said.labels & _TOO_LONG or _TOO_LONG_WORDS.search(said.words)
        if answered or too_long:
            return ModelError(Failure.PROVIDER_ERROR, line)
        fewer = "ask for fewer tokens: --teacher-max-tokens for a teacher, KACE_MAX_TOKENS for a solver"
        fix = fewer if lacks_room(said.words) else "change what it names"
        return KaceError(f"the server rejects requests for '{self.model}' ({line})", fix=fix)

    def unreachable(self, error: Exception, *, reached: bool) -> ModelError | KaceError:
        """What a broken connection means. Once the server was `reached`, it is the network's fault."""
        import httpx2

        causes = _causes(error)
        said = one_line(f"{self.url}: {str(causes[-1]) or type(causes[-1]).__name__}")
        if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
            return KaceError(f"cannot trust {said}", fix="install its certificate, or name it in SSL_CERT_FILE")
        never_came_up = any(isinstance(c, httpx2.ConnectError | httpx2.ConnectTimeout | ssl.SSLError) for c in causes)
        if never_came_up and not reached:
            return KaceError(f"cannot reach {said}", fix="is the server running, and the base URL right?")
        return Transient(f"lost the connection to {said}")


def lacks_room(words: str) -> bool:
    """Whether a server says that a prompt and the reply asked for do not fit into its model together."""
    return _NO_ROOM.search(words) is not None


def address(url: str) -> tuple[str, tuple[str, str] | None]:
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


def usable_key(key: str | None, *, variable: str, missing: UsageError | None) -> str:
    """The key, kept out of every message from now on; a placeholder where none is needed. Raises `missing`."""
    key = (key or "").strip()
    if not key and missing is not None:
        raise missing
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(f"{variable} has characters that no key has", fix="copy the key again")
    keep_secret(key)
    return key or PLACEHOLDER_KEY


def same_host(left: str, right: str) -> bool:
    """Whether two URLs name one machine."""
    return urlsplit(left).hostname == urlsplit(right).hostname


def _causes(error: BaseException) -> list[BaseException]:
    chain = [error]
    while (inner := chain[-1].__cause__ or chain[-1].__context__) is not None and inner not in chain:
        chain.append(inner)
    return chain
