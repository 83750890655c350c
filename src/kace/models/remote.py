"""What every model behind an HTTP API has in common: one try, bounded in time and size, with a failure that has a name.

One `complete` is one try: it never waits and tries again, `kace.models.limits` does. What a failure means is decided in
`kace.models.server`; a call that as a whole takes too long is a `ModelError(TIMEOUT)`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar
from weakref import WeakKeyDictionary

from kace.models.base import Failure, ModelError, Reply, Request
from kace.models.server import Said, Server

if TYPE_CHECKING:
    from kace.models.wire import BoundedClient, Closable, Lanes

log = logging.getLogger(__name__)

C = TypeVar("C", bound="Closable")


class Rejected(Exception):
    """The server answered with an error."""

    def __init__(self, said: Said) -> None:
        super().__init__(said.status)
        self.said = said


class Unreached(Exception):
    """No whole answer came; the cause says why."""


class Remote(ABC, Generic[C]):
    """A model behind an API, asked through an SDK's client. `timeout` bounds a call, however slowly bytes drip."""

    PROVIDER: ClassVar[str]
    OPTIONAL: ClassVar[tuple[str, ...]]
    """Parameters that some of its models do not take, and that a request can do without."""

    def __init__(self, server: Server, auth: tuple[str, str] | None, *, timeout: float, name: str) -> None:
        self._server = server
        self._auth = auth
        self._timeout = timeout
        self._name = name
        self._reached = False
        """Some HTTP response has come: from then on, a failed connection is the network's, not the operator's."""
        self._answered = False
        """Some reply has come: from then on, a bad request is that request's fault, not the settings'."""
        self._left_out: frozenset[str] = frozenset()
        self._lanes: WeakKeyDictionary[asyncio.AbstractEventLoop, Lanes[C]] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._server.model!r}, base_url={self._server.url!r})"

    @property
    def name(self) -> str:
        """The `provider/name` this model was opened as."""
        return self._name

    @property
    def identity(self) -> str:
        """Provider, base URL without credentials, and model."""
        return f"{self.PROVIDER} {self._server.url} {self._server.model}"

    @property
    def left_out(self) -> frozenset[str]:
        """Parameters of `OPTIONAL` this server turned out not to take as they are."""
        return self._left_out

    async def complete(self, request: Request) -> Reply:
        """Answer one request with one try."""
        lanes = self._connections()  # before the clock starts: the first call loads the SDK
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self._timeout):
                body = await self._send(lanes, request)
        except TimeoutError:
            raise ModelError(Failure.TIMEOUT, f"no whole reply within {self._timeout:g} s") from None
        reply = self._read(body, time.perf_counter() - started)
        self._answered = True
        return reply

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        lanes = self._lanes.pop(asyncio.get_running_loop(), None)
        if lanes is not None:
            await lanes.aclose()

    @abstractmethod
    def _open(self, http: BoundedClient) -> C:
        """A client of the SDK that sends through `http` and never tries again by itself."""

    @abstractmethod
    async def _post(self, client: C, request: Request, left_out: frozenset[str]) -> bytes:
        """The body of the server's answer; raises `Rejected`, or `Unreached` from its cause."""

    @abstractmethod
    def _read(self, body: bytes, seconds: float) -> Reply:
        """The reply that a body holds."""

    def _connections(self) -> Lanes[C]:
        from kace.models.wire import Lanes

        loop = asyncio.get_running_loop()
        if loop not in self._lanes:
            self._lanes[loop] = Lanes(self._open, self._auth)
        return self._lanes[loop]

    async def _send(self, lanes: Lanes[C], request: Request) -> bytes:
        from kace.models.wire import BodyTooLarge

        left_out = self._left_out
        while True:
            try:
                with lanes.client() as client:
                    body = await self._post(client, request, left_out)
            except Rejected as error:
                self._reached = True
                parameter = error.said.not_taken(self.OPTIONAL, left_out)
                if parameter is None:
                    raise self._server.refusal(error.said, answered=self._answered) from None
                left_out |= {parameter}
            except Unreached as error:
                raise self._server.unreachable(error, reached=self._reached) from None
            except BodyTooLarge as error:
                raise ModelError(Failure.PROVIDER_ERROR, str(error)) from None
            else:
                self._reached = True
                self._remember(left_out)
                return body

    def _remember(self, left_out: frozenset[str]) -> None:
        for parameter in sorted(left_out - self._left_out):
            log.warning(
                "%s does not take '%s' for %s: going on without it", self._server.url, parameter, self._server.model
            )
        self._left_out |= left_out
