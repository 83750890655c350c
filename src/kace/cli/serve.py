"""`kace serve`: the ladder as an OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kace.cli.streams import note

if TYPE_CHECKING:
    from kace.config import Config
    from kace.serve.desk import Offer


def serve(
    model: str = typer.Option(None, "--model", "-m", help="local/NAME, local/PATH.gguf, openai/NAME, anthropic/NAME."),
    base_url: str = typer.Option(None, help="An OpenAI-compatible server for openai/NAME."),
    preset: str = typer.Option(None, help="aime25, math-hard, olymmath or starter."),
    tree: Path = typer.Option(None, help="An epistemic tree: MS and HS read the block of their tier and domain."),
    host: str = typer.Option("127.0.0.1", help="The address to listen on; any but this machine's own needs a key."),
    port: int = typer.Option(8123, help="The port; 0 picks a free one."),
    api_key: str = typer.Option(None, help="What clients must show. KACE_SERVE_KEY keeps it off the command line."),
    allow_host: list[str] = typer.Option([], help="A further name clients call this server by; may be repeated."),
    passthrough: bool = typer.Option(False, "--passthrough", help="Let passthrough/NAME ask the model directly."),
    max_calls: int = typer.Option(None, help="Calls that one request may make."),
    max_usd: float = typer.Option(None, help="Money that one request may spend; needs a price in kace.toml."),
    max_seconds: float = typer.Option(None, min=0.001, help="Seconds that one request may take."),
    timeout: float = typer.Option(None, help="Seconds for one call to the model."),
    max_connections: int = typer.Option(None, help="Calls under way at once; left out, it adapts."),
    seed: int = typer.Option(None, help="Draws other samples; a request's own seed comes first."),
    max_cards: int = typer.Option(None, help="Read at most so many cards: the best-ranked of the block."),
    min_relevance: float = typer.Option(None, help="Telling words a worked card must share (default 2; paper: 0)."),
    cards_at: str = typer.Option(None, help="Where cards stand: turns (default), instructions (the paper) or problem."),
    direct: bool = typer.Option(None, "--direct", help="Beyond the paper: begin at MS where a card speaks of it."),
    place_by: str = typer.Option(None, help="Who names a problem's domain: model (a call), words or cards (none)."),
    early_stop: bool = typer.Option(None, "--early-stop", help="Cancel attempts that cannot change the outcome."),
    grace: float = typer.Option(10.0, min=0, help="Seconds that requests have to end once the server is to stop."),
    config_file: Path = typer.Option(None, "--config", help="A TOML file; kace.toml is read when it is there."),
) -> None:
    """Answer OpenAI's chat completions with the ladder: any client, pointed here, gets the voted answer."""
    from kace.cli.weights import ensure_weights
    from kace.config import load_config
    from kace.serve.allowance import Allowance
    from kace.serve.desk import Offer
    from kace.tree.store import open_tree
    from kace.web.server import Bind, Closing, listening

    flags = {
        "model": model,
        "base_url": base_url,
        "preset": preset,
        "tree": tree,
        "serve_key": api_key,
        "max_calls": max_calls,
        "max_usd": max_usd,
        "timeout": timeout,
        "max_connections": max_connections,
        "seed": seed,
        "max_cards": max_cards,
        "min_relevance": min_relevance,
        "cards_at": cards_at,
        "direct": direct or None,
        "place_by": place_by,
        "early_stop": early_stop or None,
    }
    config = load_config(flags, file=config_file)
    key = config.serve_key.get_secret_value() if config.serve_key else None
    with listening(Bind(host, port, key, option="--api-key or KACE_SERVE_KEY")) as opened:
        from kace.serve.run import Door, run, spare_collector
        from kace.web.guard import Hosts

        ensure_weights(config)
        offer = Offer(
            config,
            open_tree(config.tree) if config.tree else None,
            Allowance(config.max_calls, config.max_usd, max_seconds),
        )
        door = Door(Hosts.of(host, allow_host), key, passthrough, Closing(grace))
        spare_collector()
        asyncio.run(run(offer, opened, door, ready=lambda url: _say(url, offer, passthrough)))
    note("kace: every request has ended")


def _say(url: str, offer: Offer, passthrough: bool) -> None:
    """Where it listens, and what with."""
    config: Config = offer.config
    tree = f" and {config.tree}" if config.tree else ""
    note(f"kace: {config.model}{tree} on {url}/v1 (Ctrl-C ends)")
    if passthrough:
        note("kace: passthrough/NAME asks the model directly")
