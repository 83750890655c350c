"""User errors: one line that says what is wrong, where, and the fix.

    KaceError                exit 1, something outside the program refused
    ├── UsageError           exit 2, the command or the configuration is wrong
    │   └── DataError        exit 2, a file the user gave cannot be read as what it should be
    ├── BudgetExceeded       exit 1, a cap was reached; everything paid for is kept
    ├── Outstanding          exit 0, requests wait for replies that somebody writes; nothing is wrong
    └── Submitted            exit 0, batches are under way; nothing is wrong

A failed attempt is not an error: it is an `Attempt` with an outcome (see `kace.ladder.record`).
"""

from __future__ import annotations

import html
import re
from base64 import b64encode
from pathlib import PurePath
from urllib.parse import quote, unquote, urlsplit


class KaceError(Exception):
    """An error that the user can fix; `fix` says how."""

    exit_code = 1

    def __init__(self, message: str, *, fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix

    def __str__(self) -> str:
        if not self.fix:
            return self.message
        end = "" if self.message.endswith("?") else "."
        return f"{self.message}{end} Fix: {self.fix}"


class UsageError(KaceError):
    """The command line, an environment variable or the configuration file is wrong."""

    exit_code = 2


class DataError(UsageError):
    """A file the user named is missing, empty or malformed; the message carries file and line."""


class BudgetExceeded(KaceError):
    """A cap on calls or money was reached before the work was done."""


class Outstanding(KaceError):
    """Requests lie in an exchange folder without a reply.

    The same command resumes once the replies are there.
    """

    exit_code = 0

    def __init__(self, requests: tuple[str, ...]) -> None:
        self.requests = requests  # paths of the request files
        super().__init__(
            f"{counted(len(requests), 'request')} without a reply, "
            f"the first is {requests[0]}",
            fix="write each reply into the file that its request names, or in a browser "
            f"(kace view {PurePath(requests[0]).parent}), then run the same command",
        )


class Submitted(KaceError):
    """Batches are under way at their provider. The same command collects them once they have ended."""

    exit_code = 0


MARK = "[redacted]"
# Shorter values ("none", "EMPTY", "ollama") are placeholders, and would blot out plain
# text.
MIN_SECRET = 8

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
ESCAPES = re.compile(
    r"\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)|\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])"
)
CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2064"
    r"\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)

_URL_SAFE = str.maketrans("+/", "-_")
_known: dict[str, re.Pattern[str]] = {}  # by how they begin
FIRST = 6  # characters of a secret that a text is searched for first


def keep_secret(value: str | None) -> None:
    """Let `redact` remove a value from now on, in any spelling a server may echo."""
    if not value or len(value) < MIN_SECRET:
        return
    quoted = quote(value, safe="")
    lower = re.sub("%..", lambda found: found[0].lower(), quoted)
    forms = [value, quoted, lower, unquote(value), value.replace("/", r"\/")]
    forms.append(html.escape(value))
    for style in ("&#{};", "&#x{:x};", "&#x{:X};"):
        forms.append(
            re.sub(r"\W", lambda found: style.format(ord(found[0])), value)  # noqa: B023
        )
    for before in range(3):  # bytes before it in a longer text in base64
        packed = b64encode(b" " * before + value.encode()).decode().rstrip("=")
        # Without the characters that depend on the bytes before and after.
        packed = packed[(0, 2, 3)[before] : len(packed) - bool(before)]
        forms += [packed, packed.translate(_URL_SAFE)]
    for form in forms:
        # It may be broken into lines.
        _known[form] = re.compile(r"\s{0,2}".join(map(re.escape, form)))


def credentials(url: str) -> tuple[str, str] | None:
    """Return the name and the password in an address, kept secret from now on."""
    parts = urlsplit(url.strip())
    if parts.username is None:
        return None
    user = unquote(parts.username)
    password = unquote(parts.password or "")
    keep_secret(password)
    keep_secret(f"{user}:{password}")
    return user, password


def redact(text: str) -> str:
    """Return a text without known secrets and without anything shaped like one."""
    places = _find_known(text)
    for pattern in _PATTERNS:
        places += [found.span("secret") for found in pattern.finditer(text)]
    return _blot(text, places)


def without_secrets(text: str) -> str:
    """Return a text without known secrets: for replies, which may look like anything."""
    return _blot(text, _find_known(text))


def _find_known(text: str) -> list[tuple[int, int]]:
    places = []
    for secret, pattern in _known.items():
        if secret[:FIRST] in text:
            places += [found.span() for found in pattern.finditer(text)]
    return places


def _blot(text: str, places: list[tuple[int, int]]) -> str:
    """Replace each place by a mark; overlapping ones by a single mark."""
    kept = ""
    end = 0
    for first, last in sorted(places):
        if first >= end:
            kept += text[end:first] + MARK
        end = max(end, last)
    return kept + text[end:]


def plain(text: str, limit: int | None = None) -> str:
    """Return text that is safe to print, cut to `limit` characters.

    It has no escape sequences and nothing that overwrites or reorders.
    """
    text = CONTROLS.sub("", ESCAPES.sub("", text))
    if limit is None:
        return text
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def one_line(text: str, limit: int = 300) -> str:
    """Return foreign text fit for an error: redacted, one printable line, cut."""
    # Before the cut, which may halve a key.
    return plain(redact(text[: 64 * limit]), limit)


def public_url(url: str) -> str:
    """Return a URL without user, password, query and fragment."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}".rstrip("/")


# The words of messages


def counted(count: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{count:,} {noun if count == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Return the plural of a noun."""
    if noun.endswith("y") and noun[-2:-1] not in "aeou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def points(share: float, digits: int = 1) -> str:
    """Return a difference of shares in percentage points, with its sign; zero has none."""
    value = f"{100 * share:+.{digits}f}"
    return value[1:] if float(value) == 0 else value.replace("-", "−")
