"""`kace view`: trees, runs and learners as pages in the browser, or as files."""

from __future__ import annotations

import asyncio
import sys
import threading
import webbrowser
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import click

from kace.cli.options import PATH
from kace.cli.terminal import note
from kace.config import tree_path
from kace.errors import UsageError
from kace.report.workspace import Workspace


@click.command("view")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option(
    "--port",
    default=8420,
    type=click.IntRange(0, 65_535),
    help="The port; 0 picks a free one.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    help="The address; one that other machines reach needs --token.",
)
@click.option(
    "--token", help="A key that visitors must send; in the address as ?token=KEY."
)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@click.option(
    "--export",
    type=PATH,
    metavar="DIR",
    help="Write the pages as files that need no server, and stop.",
)
def command(
    paths: tuple[str, ...],
    port: int,
    host: str,
    token: str | None,
    no_browser: bool,
    export: Path | None,
) -> None:
    """Show trees, runs and learners in the browser.

    PATH are trees, runs, exchange folders, or folders of these (default: runs, or the
    current folder).
    """
    places = [tree_path(path) for path in paths]
    if not places:
        places = [Path("runs") if Path("runs").is_dir() else Path()]
    with closing(Workspace(places)) as workspace:
        if not (find_spec("starlette") and find_spec("uvicorn")):
            raise UsageError(
                "kace view needs two more libraries", fix="pip install 'kace[web]'"
            )
        if export is None:
            return _serve(workspace, host, port, token, browser=not no_browser)
        from kace.report.export import export as write_pages

        done = write_pages(workspace, export, say=note)
        note(
            f"export       {done.index} ({len(done.paths):,} pages in {len(done.files) + 1:,} files)"
        )
        for line in done.left_out:
            note(f"note         {line}")


def _serve(
    workspace: Workspace, host: str, port: int, token: str | None, *, browser: bool
) -> None:
    from kace.report.server import Bind, listening, serve

    sys.setswitchinterval(
        0.001
    )  # a page is drawn while large sources are still being read

    def ready(address: str) -> None:
        """Where it is, on standard output; and the browser, opened beside the server."""
        item = (
            workspace.only()
        )  # the page to begin with: that of the one thing that was opened, or the list
        url = f"{address}/{item.kind}/{item.name}" if item else f"{address}/"
        print(url, flush=True)
        note(
            "kace: add ?token=KEY to the address once; Ctrl-C ends"
            if token and not browser
            else "kace: Ctrl-C ends"
        )
        if browser:
            shown = f"{url}?token={quote(token)}" if token else url
            threading.Thread(target=webbrowser.open, args=(shown,), daemon=True).start()

    with listening(Bind(host, port, token)) as opened:
        threading.Thread(
            target=workspace.warm, daemon=True
        ).start()  # while the rest is loaded and the browser opens
        from kace.report.app import create_app
        from kace.report.guard import Hosts

        # Pages are made while a tree or a run is read in another thread: whoever waits for a page goes first.
        sys.setswitchinterval(0.0005)
        asyncio.run(
            serve(
                create_app(workspace, token=token, hosts=Hosts.of(host)),
                opened,
                ready=ready,
            )
        )
