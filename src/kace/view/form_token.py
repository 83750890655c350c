"""The mark that every form of this process carries, and that a page of another origin cannot read.

It is the second lock beside the guard's checks of Host, Origin and Sec-Fetch-Site, and holds where a browser sends none
of them.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping

from kace.web.markup import Html, tag

FIELD = "token"
_TOKEN = secrets.token_urlsafe(32)


def token_field() -> Html:
    """The hidden field of a form."""
    return tag("input", type="hidden", name=FIELD, value=_TOKEN)


def has_token(form: Mapping[str, str]) -> bool:
    """Whether the form was made by this process."""
    return hmac.compare_digest(form.get(FIELD, "").encode("utf-8", "replace"), _TOKEN.encode())
