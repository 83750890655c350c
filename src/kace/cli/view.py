"""`kace view`: trees, runs and learners as pages in the browser, or as files."""

from __future__ import annotations

import asyncio
import threading
import webbrowser
from pathlib import Path

import click

from kace.cli.options import PATH
from kace.cli.terminal import note
from kace.config import tree_path
from kace.report.workspace import Workspace


@click.command("view")
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
def command(
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
    workspace = Workspace(places, progress=_report_progress)
    if export is None:
        _serve(workspace, port, browser=not no_browser)
        return
    from kace.report.export import export as write_pages

    done = write_pages(workspace, export, on_progress=note)
    note(f"export       {done.index} ({len(done.paths):,} pages)")


def _report_progress(done: int, size: int) -> None:
    note(f"kace: reading a run, {done / max(1, size):.0%}")


def _serve(workspace: Workspace, port: int, *, browser: bool) -> None:
    from kace.report.server import Bind, create_app, listening, serve

    item = workspace.only()
    path = f"/{item.kind}/{item.name}" if item else "/"

    def report_address(address: str) -> None:
        """Print the address, and open the browser beside the server."""
        print(address + path, flush=True)
        note("kace: Ctrl-C ends")
        if browser:
            page = (address + path,)
            threading.Thread(
                target=webbrowser.open, args=page, daemon=True
            ).start()

    with listening(Bind(port=port)) as opened:
        asyncio.run(serve(create_app(workspace), opened, ready=report_address))
