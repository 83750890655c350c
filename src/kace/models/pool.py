"""Several servers of one model behind one name: calls go where there is room, and on to the next where one is down.

A problem has a home, the same in every process, whose prefix cache then holds its prompt. Its calls go there while the
home has no more than its share of the calls under way (consistent hashing with bounded loads), else to the server with
the fewest. A server is set aside where it cannot be reached, refuses calls, or fails several in a row; after a while
one call tries it again.
"""

from __future__ import annotations

import hashlib
import logging
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

from kace.errors import KaceError
from kace.models.base import Failure, ModelError, RateLimited, Reply, Request, Transient
from kace.models.budget import sent_again
from kace.models.remote import Remote

log = logging.getLogger(__name__)

SHARE = (
    1.25  # of the mean number of calls under way, up to which a problem stays at home
)
FAILURES = 3  # in a row, after which a server that can be reached is set aside
# seconds aside
SHORTEST = 1.0
LONGEST = 60.0

T = TypeVar("T")


class Endpoint(Generic[T]):
    """One server: what asks it, how busy it is, and whether it is set aside."""

    def __init__(self, url: str, client: T) -> None:
        self.url = url
        self.client = client
        self.under_way = self._failures = self._times = 0
        self._until = 0.0  # set aside up to then; above zero until a call succeeds, and so long one call at a time

    def open(self, now: float) -> bool:
        """Whether a call may go there."""
        return now >= self._until and not (self._until and self.under_way)

    @contextmanager
    def call(self) -> Iterator[None]:
        """One call under way. Without an error, the server is well."""
        self.under_way += 1
        try:
            yield
            self._failures = 0
            self._times = 0
            self._until = 0.0
        finally:
            self.under_way -= 1

    def failed(
        self, why: str, *, gone: bool = False, wait: float | None = None
    ) -> None:
        """Take note of a failed call. One that is `gone`, or says how long to `wait`, is set aside at once."""
        now = time.monotonic()
        self._failures += 1
        if now < self._until or not (
            gone or wait is not None or self._failures >= FAILURES
        ):
            return
        self._times += 1
        aside = min(
            LONGEST,
            SHORTEST * 2.0 ** min(self._times - 1, 10)
            if wait is None
            else max(wait, SHORTEST),
        )
        self._until = now + aside
        level = logging.WARNING if wait is None else logging.INFO
        log.log(level, "%s is set aside for %.0f s: %s", self.url, aside, why)


def candidates(endpoints: Sequence[Endpoint[T]], key: str) -> Iterator[Endpoint[T]]:
    """The servers for what `key` names, each once, chosen when it is asked for; those set aside come last."""
    left = list(endpoints)
    while left:
        now = time.monotonic()
        able = [endpoint for endpoint in left if endpoint.open(now)] or left
        most = math.ceil(
            SHARE * (1 + sum(endpoint.under_way for endpoint in able)) / len(able)
        )
        home = max(
            able,
            key=lambda endpoint: hashlib.blake2b(
                f"{endpoint.url} {key}".encode()
            ).digest(),
        )
        chosen = (
            home
            if home.under_way < most
            else min(able, key=lambda endpoint: endpoint.under_way)
        )
        left.remove(chosen)
        yield chosen


class Pool:
    """A model at several servers. The first names it in caches and manifests, so others may come and go."""

    def __init__(self, remotes: Sequence[Remote]) -> None:
        self._endpoints = [Endpoint(remote.url, remote) for remote in remotes]
        self.name = remotes[0].name
        self.identity = remotes[0].identity

    async def complete(self, request: Request) -> Reply:
        """Answer one request with one try, which fails where every server refuses it or cannot be reached."""
        errors = list[ModelError | KaceError]()
        for endpoint in candidates(self._endpoints, request.attempt.problem):
            if errors:
                await sent_again(errors[-1])
            try:
                with endpoint.call():
                    return await endpoint.client.complete(request)
            except (ModelError, KaceError) as error:
                if not self._passes(endpoint, error):
                    raise
                errors.append(error)
        # What passes by itself goes before a server that may come back, and that before a user error.
        raise min(
            errors,
            key=lambda error: (
                not isinstance(error, RateLimited),
                not isinstance(error, ModelError),
            ),
        )

    def _passes(
        self, endpoint: Endpoint[Remote], error: ModelError | KaceError
    ) -> bool:
        """Take note of a failure; whether the call may go on to another server."""
        never = isinstance(error, KaceError) and not endpoint.client.reached
        gone = never or (isinstance(error, Transient) and not error.sent)
        if isinstance(error, RateLimited):
            endpoint.failed(error.message, wait=error.retry_after or 0.0)
        elif (
            gone
            or isinstance(error, Transient)
            or getattr(error, "failure", None) is Failure.TIMEOUT
        ):
            endpoint.failed(error.message, gone=gone)
        return gone or (
            isinstance(error, (RateLimited, Transient)) and not error.billed
        )

    async def aclose(self) -> None:
        """Close the connections to every server."""
        for endpoint in self._endpoints:
            await endpoint.client.aclose()
