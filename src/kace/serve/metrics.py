"""What the server has done so far, in the text format that Prometheus reads."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kace.models.budget import Ledger
from kace.solver.tiers import ExitPath

BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True)
class Histogram:
    """Seconds, counted by how many were at most so long."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    sum: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.sum += seconds

    def lines(self, name: str) -> Iterator[str]:
        """The samples of the histogram."""
        so_far = 0
        for bound, count in zip((*map(str, BUCKETS), "+Inf"), self.counts, strict=True):
            so_far += count
            yield f'{name}_bucket{{le="{bound}"}} {so_far}'
        yield f"{name}_sum {self.sum:.6f}"
        yield f"{name}_count {so_far}"


@dataclass(slots=True)
class Metrics:
    """Counters of one server. Calls and tokens are the ledger's."""

    ledger: Ledger
    in_flight: int = 0
    waiting: int = 0
    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By kind (solve, passthrough) and status."""
    exits: Counter[ExitPath] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    disconnects: int = 0
    seconds: Histogram = field(default_factory=Histogram)
    """From a request's arrival to its last byte; answered requests only."""

    def text(self) -> str:
        """Everything, as Prometheus reads it."""
        return "\n".join([*self._lines(), ""])

    def _lines(self) -> Iterator[str]:
        yield from _family("kace_requests_total", "counter", "Requests answered, by kind and status.")
        for (kind, status), count in sorted(self.requests.items()):
            yield _sample("kace_requests_total", {"kind": kind, "status": status}, count)
        yield from _single("kace_requests_in_flight", "gauge", "Requests under way.", self.in_flight)
        yield from _single("kace_requests_waiting", "gauge", "Of those, the ones waiting for a place.", self.waiting)
        yield from _single("kace_disconnects_total", "counter", "Clients gone before the answer.", self.disconnects)
        yield from _family("kace_errors_total", "counter", "Errors told to clients, by code.")
        for code, count in sorted(self.errors.items()):
            yield _sample("kace_errors_total", {"code": code}, count)
        yield from _family("kace_exits_total", "counter", "Problems solved, by where they left the ladder.")
        for path in ExitPath:
            yield _sample("kace_exits_total", {"path": path.value}, self.exits[path])
        yield from self._spent()
        yield from _family("kace_request_seconds", "histogram", "Seconds from a request to its whole answer.")
        yield from self.seconds.lines("kace_request_seconds")

    def _spent(self) -> Iterator[str]:
        roles = sorted(self.ledger.roles.items())
        yield from _family("kace_model_calls_total", "counter", "Calls to the model, by role.")
        for role, spent in roles:
            yield _sample("kace_model_calls_total", {"role": role}, spent.calls)
        yield from _family("kace_model_calls_failed_total", "counter", "Calls that failed or were cancelled, by role.")
        for role, spent in roles:
            yield _sample("kace_model_calls_failed_total", {"role": role}, spent.failed)
        yield from _family("kace_tokens_total", "counter", "Tokens, by role and kind; input includes cached.")
        for role, spent in roles:
            usage = spent.usage
            for kind, count in (("input", usage.input), ("cached", usage.cached), ("output", usage.output)):
                yield _sample("kace_tokens_total", {"role": role, "kind": kind}, count)
        yield from _family("kace_usd_total", "counter", "Money spent, where prices are known.")
        yield f"kace_usd_total {self.ledger.usd:.6f}"


def _family(name: str, kind: str, about: str) -> tuple[str, str]:
    return f"# HELP {name} {about}", f"# TYPE {name} {kind}"


def _single(name: str, kind: str, about: str, value: int) -> tuple[str, ...]:
    return (*_family(name, kind, about), f"{name} {value}")


def _sample(name: str, labels: Mapping[str, str], value: int) -> str:
    inside = ",".join(f'{label}="{text}"' for label, text in labels.items())
    return f"{name}{{{inside}}} {value}"
