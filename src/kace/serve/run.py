"""A server from its first byte to its last: one model, one session, and every request within them."""

from __future__ import annotations

import gc
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from kace.models.budget import Ledger
from kace.models.provider import open_model
from kace.serve.app import create_app
from kace.serve.desk import Desk, Offer
from kace.serve.mending import Mending
from kace.serve.relay import ROLE, open_relay
from kace.solver.session import open_session
from kace.web.guard import Hosts
from kace.web.server import Closing, Port, Ready, serve

if TYPE_CHECKING:
    from kace.models.base import ChatModel


@dataclass(frozen=True, slots=True)
class Door:
    """Who may come in, and how it closes."""

    hosts: Hosts = field(default_factory=Hosts)
    key: str | None = None
    passthrough: bool = False
    closing: Closing = field(default_factory=Closing)


def spare_collector() -> None:
    """Have Python look for garbage among young objects only, and among all of them once in a long while.

    Requests under way are tens of thousands of objects, none of them garbage. With 200 clients, looking at them all
    takes 30 ms in which nobody is answered, and by default happens several times a second. For a process that does
    nothing but serve; see bench_serve.py.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(700, 1_500, 10)


async def run(offer: Offer, port: Port, door: Door, *, ready: Ready, model: ChatModel | None = None) -> None:
    """Serve until a signal. A model that is given stays the caller's to close."""
    config = offer.config
    async with AsyncExitStack() as stack:
        if model is None:
            model = Mending(partial(open_model, config))
            stack.push_async_callback(model.aclose)
        Ledger(offer.allowance.caps(), config.price_table()).require_price(model.name)
        # The caps of the configuration are each request's own: the session as a whole has none.
        unlimited = config.model_copy(update={"max_calls": None, "max_usd": None})
        session = await stack.enter_async_context(open_session(unlimited, model=model, tree=offer.tree))
        desk = Desk(session, offer)
        relay = None
        if door.passthrough:
            relay = open_relay(config, session.role(ROLE), session.ledger)
            stack.push_async_callback(relay.aclose)
        app = create_app(desk, relay, hosts=door.hosts, key=door.key)
        await serve(app, port, ready=ready, closing=replace(door.closing, expire=desk.expire))
