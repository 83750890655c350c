"""`kace view`: trees, runs and learners as pages in the browser, or as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import typer

from kace.cli.streams import note
from kace.errors import UsageError

if TYPE_CHECKING:
    from kace.view.shelf import Shelf


def view(
    paths: list[Path] = typer.Argument(
        None, metavar="PATH", help="Trees, runs, exchange folders, or folders of these (default: runs, or here)."
    ),
    port: int = typer.Option(8420, min=0, max=65_535, help="The port; 0 is any free one."),
    host: str = typer.Option("127.0.0.1", help="The address; one that other machines reach needs --token."),
    token: str = typer.Option(None, help="A key that visitors must show; the address takes it as ?token=KEY."),
    no_browser: bool = typer.Option(False, "--no-browser", help="Only print the address."),
    export: Path = typer.Option(None, metavar="DIR", help="Write the pages as files that need no server, and stop."),
) -> None:
    """Look at trees, runs and learners in the browser: kace view runs/eval-1."""
    from kace.view.shelf import open_shelf

    shelf = open_shelf(paths or [_somewhere()])
    try:
        if export is not None:
            _export(shelf, export)
        else:
            _serve(shelf, host, port, token, browser=not no_browser)
    finally:
        shelf.close()


def _somewhere() -> Path:
    """Where to look when nobody says: the runs of this folder, or the folder."""
    return Path("runs") if Path("runs").is_dir() else Path()


def _export(shelf: Shelf, folder: Path) -> None:
    from kace.view.export import export

    done = export(shelf, folder, say=note)
    note(f"export       {done.index} ({done.pages:,} pages)")
    for line in done.left_out:
        note(f"note         {line}")


def _serve(shelf: Shelf, host: str, port: int, token: str | None, *, browser: bool) -> None:
    import asyncio
    import sys
    import threading

    _require_server()
    from kace.web.server import Bind, listening, serve

    with listening(Bind(host, port, token)) as opened:
        threading.Thread(target=shelf.warm, daemon=True).start()  # while the rest is loaded and the browser opens
        from kace.view.app import create_app
        from kace.web.guard import Hosts

        # Pages are made while a tree or a run is read in another thread: whoever waits for a page goes first.
        sys.setswitchinterval(0.0005)
        app = create_app(shelf, token=token, hosts=Hosts.of(host))
        asyncio.run(serve(app, opened, ready=lambda url: _say(f"{url}{_first(shelf)}", token, browser=browser)))


def _first(shelf: Shelf) -> str:
    """The page to begin with: that of the one thing that was opened, or the list."""
    item = shelf.only()
    return f"/{item.kind}/{item.name}" if item else "/"


def _require_server() -> None:
    from importlib.util import find_spec

    if not (find_spec("starlette") and find_spec("uvicorn")):
        raise UsageError("kace view needs two more libraries", fix="pip install 'kace[web]', or give --export DIR")


def _say(url: str, token: str | None, *, browser: bool) -> None:
    """Where it is, on standard output; and the browser, opened beside the server."""
    import threading
    import webbrowser

    print(url, flush=True)
    note("kace: add ?token=KEY to the address once; Ctrl-C ends" if token and not browser else "kace: Ctrl-C ends")
    if browser:
        address = f"{url}?token={quote(token)}" if token else url
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
