"""What one request may use up: the server's own caps, and whatever less a client asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kace.models.budget import Caps
from kace.serve.fault import Fault, bad_request

N = TypeVar("N", int, float)

HEADERS = {"x-kace-max-calls": "max_calls", "x-kace-max-usd": "max_usd", "x-kace-max-seconds": "max_seconds"}


@dataclass(frozen=True, slots=True)
class Allowance:
    """Caps on one request; `None` is no cap."""

    max_calls: int | None = None
    max_usd: float | None = None
    max_seconds: float | None = None

    def least(self, other: Allowance) -> Allowance:
        """Both caps hold, so the lower one does."""
        return Allowance(
            _least(self.max_calls, other.max_calls),
            _least(self.max_usd, other.max_usd),
            _least(self.max_seconds, other.max_seconds),
        )

    def caps(self) -> Caps:
        """The part that a ledger holds."""
        return Caps(self.max_calls, self.max_usd)


NO_CAPS = Allowance()


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid")

    max_calls: int | None = Field(default=None, ge=1)
    max_usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)


def read_allowance(field: object, headers: Mapping[str, str]) -> Allowance:
    """What a client allows: the body's `kace` field and the `X-Kace-Max-...` headers, the lower of both."""
    from_headers = {name: headers[header] for header, name in HEADERS.items() if header in headers}
    asked = _read({} if field is None else field, "the field 'kace'", "kace")
    return asked.least(_read(from_headers, "a header X-Kace-Max-...", None))


def _read(raw: object, where: str, param: str | None) -> Allowance:
    try:
        asked = _Asked.model_validate(raw)
    except ValidationError as error:
        raise _refused(error, where, param) from None
    return Allowance(asked.max_calls, asked.max_usd, asked.max_seconds)


def _refused(error: ValidationError, where: str, param: str | None) -> Fault:
    first = error.errors(include_input=False, include_url=False)[0]
    name = ".".join(str(part) for part in first["loc"])
    known = ", ".join(HEADERS.values())
    message = f"{where} takes {known}: {name + ': ' if name else ''}{first['msg'].lower()}"
    return bad_request(message, param=f"{param}.{name}" if param and name else param)


def _least(left: N | None, right: N | None) -> N | None:
    given = [value for value in (left, right) if value is not None]
    return min(given) if given else None
