"""The one place that strips secrets from text: values given to this process, and whatever has the shape of a key."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, unquote, urlsplit

MARK = "[redacted]"
MIN_SECRET = 8  # shorter values ("none", "EMPTY", "ollama") are placeholders: blotting them out would hide plain text

_SHAPES = (
    # Credentials in a URL. Anchored on the literal `://` and bounded, so that no text is scanned twice.
    r"://(?P<secret>[^\s/?#\"'<>]{1,512})@",
    r"(?P<secret>\bsk-[\w*.-]{6,}|\b(?:gsk_|hf_|xai-|ghp_|glpat-|AIza)[\w-]{16,})",
    # After `Bearer`, only what a token looks like: long, or with a digit in it.
    r"\bbearer\s{1,8}(?P<secret>(?=[\w.~+/=*-]{0,64}\d)[\w.~+/=*-]{8,}|[\w.~+/=*-]{20,})",
    r"\b(?:api[-_]?key|access[-_]?token|auth[-_]?token|authorization)[\"']?\s{0,8}[:=]\s{0,8}[\"']?"
    r"(?:(?:basic|bearer)\s{1,8})?(?P<secret>[^\s\"'&,;{}\[\]]{4,})",
)
_PATTERNS = tuple(re.compile(shape, re.IGNORECASE) for shape in _SHAPES)
_UNPRINTABLE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor movement
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links, clipboard
    r"|[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]+"
)

_known: dict[str, None] = {}


def keep_secret(value: str | None) -> None:
    """Make sure that `value` never leaves through `redact`, in any spelling a server may echo."""
    if not value or len(value) < MIN_SECRET:
        return
    encoded = base64.b64encode(value.encode()).decode().rstrip("=")
    for form in (
        value,
        quote(value, safe=""),
        unquote(value),
        encoded,
        value.replace("/", r"\/"),
    ):
        _known[form] = None


def credentials(url: str) -> tuple[str, str] | None:
    """The name and the password in an address, kept secret from now on."""
    parts = urlsplit(url.strip())
    if parts.username is None:
        return None
    user = unquote(parts.username)
    password = unquote(parts.password or "")
    keep_secret(password)
    keep_secret(f"{user}:{password}")
    return user, password


def redact(text: str) -> str:
    """The text without known secrets and without anything shaped like one. Redacting twice changes nothing."""
    shaped = (
        found.span("secret")
        for pattern in _PATTERNS
        for found in pattern.finditer(text)
    )
    return _blotted(text, [*_told(text), *shaped])


def without_secrets(text: str) -> str:
    """The text without known secrets, and otherwise as it is: for what a model says, which may look like anything."""
    return _blotted(text, _told(text))


def _told(text: str) -> Iterator[tuple[int, int]]:
    """Where known secrets stand."""
    for secret in _known:
        at = text.find(secret)
        while at >= 0:
            yield at, at + len(secret)
            at = text.find(secret, at + 1)


def _blotted(text: str, places: Iterable[tuple[int, int]]) -> str:
    """The text with a mark for each place. Those that overlap have one: no end of a longer secret is left standing."""
    kept = list[str]()
    end = 0
    for first, last in sorted(places):
        if first >= end:
            kept += [text[end:first], MARK]
        end = max(end, last)
    return "".join([*kept, text[end:]])


def one_line(text: str, limit: int = 300) -> str:
    """Someone else's words, fit for an error: redacted, one printable line, cut to `limit`."""
    text = redact(
        text[: 64 * limit]
    )  # before cutting to size, or half a key could slip through
    line = " ".join(_UNPRINTABLE.sub(" ", text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def public_url(url: str) -> str:
    """A URL without user, password, query and fragment: what may be shown and may name a server in a cache."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}".rstrip("/")
