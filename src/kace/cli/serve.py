"""`kace serve`: the ladder as an OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from kace.cards.store import open_tree
from kace.cli.models import ensure_weights
from kace.cli.options import CAPS, PATH, SOLVER, Options, takes
from kace.cli.terminal import note
from kace.report.server import Bind, Closing, listening


@click.command("serve")
@takes(*SOLVER, "tree", "profile", *CAPS)
@click.option(
    "--host",
    default="127.0.0.1",
    help="The address to listen on; one that is not loopback needs a key.",
)
@click.option("--port", default=8123, help="The port; 0 picks a free one.")
@click.option(
    "--allow-host",
    multiple=True,
    help="A further name of this server that clients use; may be repeated.",
)
@click.option(
    "--record",
    type=PATH,
    help="Keep problems, solves and calls in this run directory.",
)
@click.option(
    "--max-seconds",
    type=click.FloatRange(min=0.001),
    help="The most seconds that one request may take.",
)
@click.option(
    "--grace",
    default=10.0,
    type=click.FloatRange(min=0),
    help="Seconds that open requests get to finish when the server stops.",
)
def command(
    options: Options,
    host: str,
    port: int,
    allow_host: tuple[str, ...],
    record: Path | None,
    max_seconds: float | None,
    grace: float,
) -> None:
    """Serve the ladder as an OpenAI-compatible endpoint.

    Any client of chat completions gets the voted answer. --max-calls and --max-usd hold
    for each request. Clients must send KACE_SERVE_KEY if it is set.
    """
    config = options.config()
    key = config.serve_key.get_secret_value() if config.serve_key else None
    # The port is opened first: the imports below take a while.
    with listening(Bind(host, port, key, option="KACE_SERVE_KEY")) as opened:
        from kace.report.server import Hosts
        from kace.serve.app import (
            RequestLimits,
            ServerOptions,
            disable_full_collections,
            run,
        )

        ensure_weights(config)
        limits = RequestLimits(
            max_calls=config.max_calls,
            max_usd=config.max_usd,
            max_seconds=max_seconds,
        )
        server = ServerOptions(
            config,
            open_tree(config.tree) if config.tree else None,
            limits,
            hosts=Hosts.of(host, list(allow_host)),
            key=key,
            record=record,
            closing=Closing(grace),
        )

        def print_address(url: str) -> None:
            what = (
                f"{config.model} and {config.tree}"
                if config.tree
                else config.model
            )
            note(f"kace: {what} on {url}/v1 (Ctrl-C ends)")
            if record:
                note(f"kace: problems, solves and calls are kept in {record}")

        disable_full_collections()
        asyncio.run(run(server, opened, ready=print_address))
    note("kace: every request has ended")
