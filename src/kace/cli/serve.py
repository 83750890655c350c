"""The servers: `kace serve` answers programs, `kace mcp` agents, and `kace view` people."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from importlib.util import find_spec
from pathlib import Path

import click

from kace.api import tree_of
from kace.cli.models import prepare
from kace.cli.options import CAPS, PATH, SOLVER, Options, takes
from kace.cli.terminal import ENDING, note
from kace.config import tree_path
from kace.errors import UsageError
from kace.files import write_atomic
from kace.report.server import listening
from kace.report.workspace import Workspace

SKILL = Path(__file__).with_name("SKILL.md")


@click.command("serve")
@takes(*SOLVER, "tree", "profile", *CAPS)
@click.option(
    "--host",
    default="127.0.0.1",
    help="The address to listen on; one that is not loopback needs a key.",
)
@click.option(
    "--port",
    default=8123,
    type=click.IntRange(0, 65_535),
    help="The port; 0 picks a free one.",
)
@click.option(
    "--record",
    type=PATH,
    help="Keep problems, solves and calls in this run directory.",
)
def command(
    options: Options,
    host: str,
    port: int,
    record: Path | None,
) -> None:
    """Serve the ladder as an OpenAI-compatible endpoint.

    Any client of chat completions gets the voted answer. --max-calls and --max-usd hold
    for each request. Clients must send KACE_SERVE_KEY if it is set.
    """
    config = options.config()
    key = config.serve_key.get_secret_value() if config.serve_key else None
    # The port is opened first: the imports below take a while.
    with listening(host, port, key=key, option="KACE_SERVE_KEY") as opened:
        from kace.serve.app import ServerOptions, run

        prepare(config)

        server = ServerOptions(
            config,
            tree_of(config),
            key,
            record=record,
            on_answer=lambda line: note(f"{time.strftime('%X')} {line}"),
        )

        def print_address(url: str) -> None:
            note(f"kace: {config.model} on {url}/v1 (Ctrl-C ends)")

        asyncio.run(run(server, opened, ready=print_address))
    note("kace: every request has ended")


@click.command()
@takes(*SOLVER, "tree", "profile", *CAPS)
@click.option(
    "--skill",
    type=PATH,
    metavar="DIR",
    help="Write the skill into this folder of skills, and stop.",
)
def mcp(options: Options, skill: Path | None) -> None:
    """Offer kace to agents: tools over stdio (MCP), or a skill.

    The tools are solve and search_cards. They write nothing, and read only --tree.
    --max-calls and --max-usd hold for each solve.
    """
    if skill is not None:
        place = skill / "kace" / SKILL.name
        write_atomic(place, SKILL.read_bytes())
        note(f"skill        {place}")
        return
    config = options.config()
    if not find_spec("mcp"):
        raise UsageError(
            "kace mcp needs more libraries", fix="pip install 'kace[mcp]'"
        )
    from kace.serve.app import ServerOptions
    from kace.serve.mcp import serve_stdio

    def end(*_: object) -> None:
        note("kace: interrupted")
        os._exit(130)

    # The thread that reads standard input would hold up an end in order.
    for number in ENDING:
        signal.signal(number, end)
    asyncio.run(serve_stdio(ServerOptions(config, tree_of(config))))


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option(
    "--port",
    default=8420,
    type=click.IntRange(0, 65_535),
    help="The port; 0 picks a free one.",
)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@click.option(
    "--export",
    type=PATH,
    metavar="DIR",
    help="Write the pages as files that need no server, and stop.",
)
def view(
    paths: tuple[str, ...], port: int, no_browser: bool, export: Path | None
) -> None:
    """Show trees, runs and learners in the browser.

    PATH are trees, runs, exchange folders, or folders of these (default: runs, or the
    current folder). Only this machine can see the pages; from another one, use an ssh
    tunnel.
    """
    places = [tree_path(path) for path in paths]
    if not places:
        places = [Path("runs") if Path("runs").is_dir() else Path()]
    workspace = Workspace(places)
    if export is not None:
        from kace.report.pages import export as write_pages

        written = write_pages(workspace, export)
        note(f"export       {export / 'index.html'} ({len(written):,} pages)")
        return
    from kace.report.server import create_app, serve

    def report_address(address: str) -> None:
        """Print the address, and open the browser beside the server."""
        print(address, flush=True)
        note("kace: Ctrl-C ends")
        if not no_browser:
            click.launch(address)

    with listening(port=port) as opened:
        asyncio.run(serve(create_app(workspace), opened, ready=report_address))
