"""Moments as people say them."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from kace.view.links import Links
from kace.web.markup import Html, tag
from kace.words import counted

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"))


def ago(seconds: float) -> str:
    """How long something is past, such as `3 minutes ago`."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{counted(int(seconds // size), unit)} ago"
    return "just now"


def when(moment: float, links: Links) -> Html:
    """A moment, given in seconds since 1970: how long ago, with the date beside it; in a file, the date."""
    date = datetime.fromtimestamp(moment, UTC)
    exact = f"{date:%Y-%m-%d %H:%M} UTC"
    said = exact if links.static else ago(time.time() - moment)
    return tag("time", said, datetime=f"{date:%Y-%m-%dT%H:%M:%SZ}", title=exact, class_="num")
