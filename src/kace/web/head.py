"""What a request says before its body, and why it goes no further."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from starlette.types import Scope

METHODS = ("GET", "HEAD", "POST")
SAFE = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request goes no further."""

    status: int
    message: str
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Head:
    """What a request says before its body."""

    method: str
    scheme: str
    path: str
    """Decoded once."""
    raw_path: str
    """As it was sent."""
    query: str
    headers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    port: int = 0

    @classmethod
    def of(cls, scope: Scope) -> Head:
        """The head of an ASGI request."""
        headers: dict[str, tuple[str, ...]] = {}
        for name, value in scope["headers"]:
            key = name.decode("latin-1").lower()
            headers[key] = (*headers.get(key, ()), value.decode("latin-1"))
        server = scope.get("server") or ("", 0)
        query = scope.get("query_string", b"").decode("latin-1")
        return cls(
            method=scope["method"],
            scheme=scope.get("scheme", "http"),
            path=scope["path"],
            raw_path=(scope.get("raw_path") or quote(scope["path"]).encode()).decode("latin-1"),
            query=query,
            headers=headers,
            port=server[1] or 0,
        )

    def one(self, name: str) -> str | None:
        """A header's value; `None` where it is missing, or said more than once."""
        values = self.headers.get(name, ())
        return values[0] if len(values) == 1 else None
