"""`kace models`: the embedded models, by hash."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

from kace.cli.options import GroupedVerbs
from kace.errors import KaceError

if TYPE_CHECKING:
    from kace.config import Config

models_app = typer.Typer(
    help="List, fetch and find embedded models.", no_args_is_help=True, rich_markup_mode=None, cls=GroupedVerbs
)
NAME = typer.Argument("qwen2.5-coder-0.5b", help="A name from `kace models list`.")


@models_app.command("list")
def list_(as_json: bool = typer.Option(False, "--json", help="One JSON object a model.")) -> None:
    """Show the embedded models and whether they are here."""
    from kace.config import load_config
    from kace.models.catalog import CATALOG, is_present
    from kace.models.provider import weights_folder

    cache = weights_folder(load_config())
    for weights in CATALOG:
        here = is_present(weights, cache)
        row = {"name": f"local/{weights.name}", "bytes": weights.bytes, "sha256": weights.sha256, "here": here}
        size, state = f"{weights.bytes / 1e6:7,.0f} MB", "here" if here else "not here"
        print(json.dumps(row) if as_json else f"local/{weights.name:22} {size}  {state:9} {weights.about}")
    if not as_json:
        print("any other: local/PATH.gguf, openai/NAME with --base-url, replay/RUN")


@models_app.command()
def pull(name: str = NAME) -> None:
    """Fetch a model from the hub or its mirror; accepted by SHA-256 only, resumed where it stopped."""
    from kace.config import load_config
    from kace.models.catalog import path_of
    from kace.models.provider import weights_folder

    name = name.removeprefix("local/")
    config = load_config({"model": f"local/{name}"})
    ensure_weights(config)
    print(path_of(name, weights_folder(config)))


@models_app.command()
def where(name: str = NAME) -> None:
    """Print the path of a model that is here; exit 1 when it is not."""
    from kace.config import load_config
    from kace.models.catalog import find, is_present, path_of
    from kace.models.provider import weights_folder

    weights, cache = find(name.removeprefix("local/")), weights_folder(load_config())
    if not is_present(weights, cache):
        raise KaceError(f"local/{weights.name} is not in {cache}", fix=f"kace models pull {weights.name}")
    print(path_of(weights, cache))


def ensure_weights(config: Config) -> None:
    """Pull the embedded model a configuration names, if it is one and is not here yet; the bar is on stderr."""
    from kace.models.catalog import SUFFIX, find, is_present
    from kace.models.provider import weights_folder

    provider, _, name = config.model.partition("/")
    if provider != "local" or name.endswith(SUFFIX) or is_present(find(name), weights_folder(config)):
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from kace.models.catalog import PullProgress, pull

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=False) as bar:
        task = bar.add_task(name, total=None)

        def watch(progress: PullProgress) -> None:
            bar.update(task, description=f"{name}: {progress.source}", completed=progress.done, total=progress.total)

        pull(name, cache=weights_folder(config), hub=config.hub, progress=watch)
