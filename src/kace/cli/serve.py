"""`kace serve`: the ladder as an OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kace.cards.store import open_tree
from kace.cli.models import ensure_weights
from kace.cli.options import (
    CAPS,
    LIMITS,
    OUTPUT,
    SERVER,
    SOLVER,
    Typed,
    command,
    new_app,
    option,
)
from kace.cli.streams import note
from kace.report.server import Bind, Closing, listening

app = new_app()


@command(app, *SOLVER, "tree", "profile", *CAPS)
def serve(
    typed: Typed,
    host: str = option(
        SERVER,
        "127.0.0.1",
        help="The address to listen on; any but this machine's own needs a key.",
    ),
    port: int = option(SERVER, 8123, help="The port; 0 picks a free one."),
    allow_host: list[str] = option(
        SERVER, [], help="A further name clients call this server by; may be repeated."
    ),
    record: Path = option(
        OUTPUT, None, help="Keep problems, solves and calls in this run directory."
    ),
    max_seconds: float = option(
        LIMITS, None, min=0.001, help="Seconds that one request may take."
    ),
    grace: float = option(
        SERVER,
        10.0,
        min=0,
        help="Seconds that requests have to end once the server is to stop.",
    ),
) -> None:
    """Answer OpenAI's chat completions with the ladder: any client, pointed here, gets the voted answer.

    --max-calls and --max-usd hold for each request. KACE_SERVE_KEY is what clients must show.
    """
    config = typed.config()
    key = config.serve_key.get_secret_value() if config.serve_key else None
    with listening(
        Bind(host, port, key, option="KACE_SERVE_KEY")
    ) as opened:  # before the rest takes its time to load
        from kace.report.guard import Hosts
        from kace.serve.app import ServerOptions, run, spare_collector
        from kace.serve.chat import RequestLimits

        ensure_weights(config)
        options = ServerOptions(
            config,
            open_tree(config.tree) if config.tree else None,
            RequestLimits(
                max_calls=config.max_calls,
                max_usd=config.max_usd,
                max_seconds=max_seconds,
            ),
            hosts=Hosts.of(host, allow_host),
            key=key,
            record=record,
            closing=Closing(grace),
        )

        def ready(url: str) -> None:
            note(
                f"kace: {config.model}{f' and {config.tree}' if config.tree else ''} on {url}/v1 (Ctrl-C ends)"
            )
            if record:
                note(f"kace: problems, solves and calls are kept in {record}")

        spare_collector()
        asyncio.run(run(options, opened, ready=ready))
    note("kace: every request has ended")
