"""Addresses. Every page has one canonical path; where it leads depends on whether pages are served or are files.

Served: the path itself. As files: one flat folder, a file a path, so that links work from `file://`.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from urllib.parse import quote, urlencode

_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")
MAX_NAME = 80


@dataclass(frozen=True, slots=True)
class Links:
    """How paths become addresses."""

    static: bool = False
    """Pages are files of one folder, and nothing can be asked of a server."""

    def to(self, path: str, **query: str | int | None) -> str:
        """The address of a canonical path. Query values of `None` are left out; a static page has no query."""
        given = {name: str(value) for name, value in query.items() if value is not None}
        if self.static:
            return file_name(path)
        return path + (f"?{urlencode(given)}" if given else "")

    def asset(self, name: str) -> str:
        """The address of a file that pages share: a style, a script, a font."""
        return f"assets/{name}" if self.static else f"/assets/{name}"


def path_of(*parts: str) -> str:
    """A canonical path from parts, each kept apart from the others whatever it holds."""
    return "/" + "/".join(quote(part, safe="") for part in parts)


def file_name(path: str) -> str:
    """The file that holds a path's page: readable, and different for different paths."""
    if path == "/":
        return "index.html"
    plain = _PLAIN.sub("-", path.strip("/")).strip("-.")[:MAX_NAME]
    return f"{plain}-{hashlib.sha256(path.encode()).hexdigest()[:8]}.html"
