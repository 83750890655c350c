"""Calls answered by workers on a Ray cluster.

Workers answer single calls. Votes, files, retries and caps stay in this process, so a
lost worker costs the calls under way there, and they are sent again elsewhere.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from importlib.metadata import version
from typing import Any

from kace.config import Config
from kace.errors import KaceError, UsageError, one_line
from kace.models.base import ChatModel, ModelError, Reply, Request, Transient

START_SECONDS = (
    600.0  # until a first worker must be up; a cluster may start nodes
)


class RayWorker:
    """Answers calls on one node, with a model of its own. Errors are results."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._model: ChatModel | None = None  # opened again after a restart

    async def describe(self) -> tuple[str, str | KaceError]:
        """Return the version of kace, and the model's identity or why it cannot be opened."""
        try:
            return version("kace"), self._open().identity
        except KaceError as error:
            return version("kace"), error

    async def complete(self, request: Request) -> Reply | Exception:
        """Answer one request."""
        try:
            return await self._open().complete(request)
        except (ModelError, KaceError) as error:
            return error

    def _open(self) -> ChatModel:
        from kace.models import open_unlimited

        if self._model is None:
            self._model = open_unlimited(self._config)
        return self._model


class RayServer:
    """One worker, as a server that calls are sent to."""

    def __init__(self, ray: Any, actor: Any, name: str, identity: str) -> None:
        self._ray = ray
        self._actor = actor
        self.name = name
        self.identity = identity

    async def complete(self, request: Request) -> Reply:
        """Answer one request on the worker."""
        reference = self._actor.complete.remote(request)
        try:
            result: Reply | Exception = await reference
        except asyncio.CancelledError:
            self._ray.cancel(reference)
            raise
        except self._ray.exceptions.RayError as error:
            raise Transient(
                one_line(f"a Ray worker was lost: {error}")
            ) from None
        if isinstance(result, Exception):
            raise result
        return result

    async def aclose(self) -> None:
        """End the worker."""
        self._ray.kill(self._actor)


def open_servers(config: Config) -> list[RayServer]:
    """Start workers on the configured cluster; return those that are up.

    One that is lost is started again by Ray, as long as there is room.
    """
    ray = connect(config)
    most = int(ray.cluster_resources().get("CPU", 0))
    options = {"num_cpus": 1, "max_concurrency": 1000, "max_restarts": -1}
    remote = ray.remote(**options)(RayWorker)
    actors = [remote.remote(config) for _ in range(most)]
    starting = {actor.describe.remote(): actor for actor in actors}
    up = []
    if starting:
        # One that is up is enough; the others get a moment more.
        ray.wait(list(starting), num_returns=1, timeout=START_SECONDS)
        up, _ = ray.wait(list(starting), num_returns=most, timeout=10)
    servers = []
    for reference in up:
        try:
            found, identity = ray.get(reference)
        except ray.exceptions.RayError as error:
            found = one_line(f"that does not start: {error}")
        if found != version("kace"):
            what = f"a Ray worker has kace {found}"
            fix = f"install kace {version('kace')} on every node"
            raise KaceError(what, fix=fix)
        if isinstance(identity, KaceError):
            raise identity
        actor = starting[reference]
        servers.append(RayServer(ray, actor, config.model, identity))
    if not servers:
        what = f"no Ray worker came up in {START_SECONDS:.0f} s"
        fix = "add nodes with free CPUs, and run the same command again"
        raise KaceError(what, fix=fix)
    return servers


def connect(config: Config) -> Any:
    """Return Ray, connected to the configured cluster.

    Call it before an event loop takes the signals.
    """
    if config.batch:
        fix = "one process sends batches of any size: leave --ray out"
        raise UsageError("--ray does not go with --batch", fix=fix)
    try:
        import ray
        import ray.exceptions
    except ImportError:
        fix = "pip install 'kace[ray]' on every machine"
        raise UsageError("--ray needs Ray", fix=fix) from None
    if ray.is_initialized():
        return ray
    address = config.ray or "auto"
    try:
        host, colon, port = address.rpartition(":")
        if colon and "/" not in host:  # Ray itself tries for minutes
            socket.create_connection((host, int(port)), timeout=10).close()
        level = logging.ERROR
        ray.init(address=address, log_to_driver=False, logging_level=level)
    except (
        OSError,
        ValueError,
        RuntimeError,
        ray.exceptions.RayError,
    ) as error:
        fix = "start one with ray start --head, or give its address: --ray HOST:6379"
        raise KaceError(
            one_line(f"no Ray cluster at '{address}': {error}"), fix=fix
        ) from None
    return ray
