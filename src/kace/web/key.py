"""The key that a server asks for: in a header, or once in an address and from then on in a cookie."""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import parse_qsl, urlencode

from kace.web.head import SAFE, Head, Refusal


class Key:
    """The key that requests must show: compared in constant time, and never said by us."""

    def __init__(self, token: str) -> None:
        self._digest = _digest(token)
        self._cookie = hmac.new(token.encode(), b"kace cookie", "sha256").hexdigest()

    def refusal(self, head: Head, *, cookie: bool) -> Refusal | None:
        """Why a request is turned away for its key, or sent on with a cookie; `None` lets it in."""
        if self._opens(_bearer(head)):
            return None
        if cookie:
            if hmac.compare_digest(_cookie(head).encode(), self._cookie.encode()):
                return None
            if head.method in SAFE and self._opens(dict(parse_qsl(head.query)).get("token", "")):
                return self._welcome(head)
        return Refusal(401, "a valid key is needed", (("www-authenticate", "Bearer"),))

    def _opens(self, given: str) -> bool:
        return hmac.compare_digest(_digest(given), self._digest)

    def _welcome(self, head: Head) -> Refusal:
        """On to the same page, without the token in the address."""
        rest = urlencode([pair for pair in parse_qsl(head.query, keep_blank_values=True) if pair[0] != "token"])
        where = head.raw_path + (f"?{rest}" if rest else "")
        kept = f"{_cookie_name(head)}={self._cookie}; Path=/; HttpOnly; SameSite=Lax"
        return Refusal(303, "this way", (("location", where), ("set-cookie", kept)))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


def _bearer(head: Head) -> str:
    scheme, _, token = (head.one("authorization") or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _cookie_name(head: Head) -> str:
    # A browser sends a machine's cookies to all its ports: two servers must not take each other's.
    return f"kace-{head.port}"


def _cookie(head: Head) -> str:
    pairs = (pair.strip().partition("=") for line in head.headers.get("cookie", ()) for pair in line.split(";"))
    return next((value for name, _, value in pairs if name == _cookie_name(head)), "")
