"""What goes wrong for a client, in the shape OpenAI's clients read. No message ever carries a key."""

from __future__ import annotations

import json
from collections.abc import Mapping

from kace.redact import one_line
from kace.web.guard import Refusal, Said

JSON = "application/json"
MAX_MESSAGE = 1_000

_CODES = {401: "invalid_api_key", 403: "forbidden", 404: "not_found", 405: "method_not_allowed", 413: "body_too_large"}


class Fault(Exception):
    """An error a client hears of. `paid` says what the request has used up all the same."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str,
        param: str | None = None,
        paid: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = one_line(message, MAX_MESSAGE)
        self.code = code
        self.param = param
        self.paid = paid or {}

    @property
    def kind(self) -> str:
        """Whose turn it is: the client's to ask otherwise, or the server's to mend."""
        if self.code == "budget_exceeded":
            return "budget_exceeded"
        return "invalid_request_error" if self.status < 500 else "server_error"

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Clients retry by status. Only a server too busy to begin wants that: everything else was tried or paid."""
        if self.status == 429:
            return (("retry-after", "5"),)
        return (("x-should-retry", "false"),)

    def body(self) -> bytes:
        """The error object, the same in a response and in an event of a stream."""
        error = {"message": self.message, "type": self.kind, "param": self.param, "code": self.code, **self.paid}
        return json.dumps({"error": error}, ensure_ascii=False).encode()


def bad_request(message: str, param: str | None = None, code: str = "invalid_value") -> Fault:
    """A request that cannot be answered as it is."""
    return Fault(400, message, code=code, param=param)


def speak(refusal: Refusal) -> Said:
    """The guard's refusals in the same shape."""
    return Said(JSON, Fault(refusal.status, refusal.message, code=_CODES.get(refusal.status, "bad_request")).body())
