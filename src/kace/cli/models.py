"""`kace models`: the embedded models, by hash."""

from __future__ import annotations

import json
import sys

import typer

from kace.cli.options import Typed, command, new_app
from kace.cli.terminal import terminal
from kace.config import Config
from kace.errors import KaceError, UsageError
from kace.models import weights_folder
from kace.models.local import (
    CATALOG,
    SUFFIX,
    PullProgress,
    Weights,
    find_weights,
    is_present,
)
from kace.models.local import pull as fetch

app = new_app(help="List, fetch and find embedded models.", no_args_is_help=True)
NAME = typer.Argument("qwen2.5-coder-0.5b", help="A name from `kace models list`.")


@command(app, name="list")
def list_(typed: Typed, as_json: bool) -> None:
    """Show the embedded models and whether they are here."""
    cache = weights_folder(typed.config())
    for weights in CATALOG:
        here = is_present(weights, cache)
        row = {
            "name": f"local/{weights.name}",
            "bytes": weights.bytes,
            "sha256": weights.sha256,
            "here": here,
        }
        size = f"{weights.bytes / 1e6:7,.0f} MB"
        state = "here" if here else "not here"
        print(
            json.dumps(row)
            if as_json
            else f"local/{weights.name:22} {size}  {state:9} {weights.about}"
        )
    if not as_json:
        print("any other: local/PATH.gguf, openai/NAME with --base-url, replay/RUN")


@command(app)
def pull(typed: Typed, name: str = NAME) -> None:
    """Fetch a model from the hub or its mirror; accepted by SHA-256 only, resumed where it stopped."""
    name = name.removeprefix("local/")
    config = typed.config(model=f"local/{name}")
    ensure_weights(config, ask=False)
    print(weights_folder(config) / find_weights(name).file)


@command(app)
def where(typed: Typed, name: str = NAME) -> None:
    """Print the path of a model that is here; exit 1 when it is not."""
    weights = find_weights(name.removeprefix("local/"))
    cache = weights_folder(typed.config())
    if not is_present(weights, cache):
        raise KaceError(
            f"local/{weights.name} is not in {cache}",
            fix=f"kace models pull {weights.name}",
        )
    print(cache / weights.file)


def ensure_weights(config: Config, *, ask: bool = True) -> None:
    """Pull the embedded models a configuration names, if any is not here yet; the bar is on stderr.

    A person at a terminal is asked first, unless told not to. Elsewhere only the default model is fetched unasked.
    """
    if config.synthesis:
        ensure_weights(
            config.for_teacher().model_copy(update={"synthesis": False}), ask=ask
        )
    provider, _, name = config.model.partition("/")
    if (
        provider != "local"
        or name.endswith(SUFFIX)
        or is_present(weights := find_weights(name), weights_folder(config))
    ):
        return
    if ask and not _agreed(weights):
        said = f"local/{name} is not here, and fetching it takes {weights.bytes / 1e6:,.0f} MB"
        raise UsageError(said, fix=f"kace models pull {name}")
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=False) as bar:
        task = bar.add_task(name, total=None)

        def watch(progress: PullProgress) -> None:
            bar.update(
                task,
                description=f"{name}: {progress.source}",
                completed=progress.done,
                total=progress.total,
            )

        fetch(
            weights,
            cache=weights_folder(config),
            hub=config.hub,
            on_progress=watch,
        )


def _agreed(weights: Weights) -> bool:
    """Whether weights may be fetched: what the person at the terminal says, or whether they are the default."""
    if not (sys.stdin is not None and sys.stdin.isatty() and terminal()):
        return weights is CATALOG[0]
    return typer.confirm(
        f"Fetch local/{weights.name}, {weights.bytes / 1e6:,.0f} MB?",
        default=True,
        err=True,
    )


def prepare(config: Config) -> None:
    """Fetch weights, and join the cluster that solves, where there is one."""
    ensure_weights(config)
    if config.ray:
        from kace.runs.ray import connect

        connect(config)
