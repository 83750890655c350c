"""`kace models`: the embedded models, by hash."""

from __future__ import annotations

import json
import sys

import click

from kace.cli.options import Commands, Options, takes
from kace.cli.terminal import can_redraw
from kace.config import Config
from kace.errors import KaceError, UsageError
from kace.models import weights_folder
from kace.models.local import (
    CATALOG,
    SUFFIX,
    Weights,
    find_weights,
    is_present,
)
from kace.models.local import pull as fetch

DEFAULT = "qwen2.5-coder-0.5b"


@click.group("models", cls=Commands, no_args_is_help=True)
def command() -> None:
    """List, fetch and find embedded models."""


@command.command("list")
@takes("json")
def list_models(options: Options) -> None:
    """List the embedded models and whether they are here."""
    cache = weights_folder(options.config())
    for weights in CATALOG:
        here = is_present(weights, cache)
        name = f"local/{weights.name}"
        if options.as_json:
            row = {
                "name": name,
                "bytes": weights.bytes,
                "sha256": weights.sha256,
                "here": here,
            }
            print(json.dumps(row))
        else:
            size = f"{weights.bytes / 1e6:7,.0f} MB"
            state = "here" if here else "not here"
            print(f"{name:28} {size}  {state:9} {weights.about}")
    if not options.as_json:
        print(
            "any other: local/PATH.gguf, openai/NAME with --base-url, replay/RUN"
        )


@command.command()
@click.argument("name", default=DEFAULT)
@takes()
def pull(options: Options, name: str) -> None:
    """Fetch a model from the hub or its mirror.

    It is accepted by SHA-256 only; the same command resumes a download.
    """
    name = name.removeprefix("local/")
    config = options.config(model=f"local/{name}")
    ensure_weights(config, ask=False)
    print(weights_folder(config) / find_weights(name).file)


@command.command()
@click.argument("name", default=DEFAULT)
@takes()
def where(options: Options, name: str) -> None:
    """Print the path of a model that is here; exit 1 if it is not."""
    weights = find_weights(name.removeprefix("local/"))
    cache = weights_folder(options.config())
    if not is_present(weights, cache):
        raise KaceError(
            f"local/{weights.name} is not in {cache}",
            fix=f"kace models pull {weights.name}",
        )
    print(cache / weights.file)


def ensure_weights(config: Config, *, ask: bool = True) -> None:
    """Fetch the embedded models that a configuration names, with a progress bar on stderr.

    With `ask`, a person at a terminal is asked first; elsewhere only the default model
    is fetched.
    """
    if config.synthesis:
        teacher = config.for_teacher().model_copy(update={"synthesis": False})
        ensure_weights(teacher, ask=ask)
    provider, _, name = config.model.partition("/")
    if provider != "local" or name.endswith(SUFFIX):
        return
    weights = find_weights(name)
    if is_present(weights, weights_folder(config)):
        return
    if ask and not _may_fetch(weights):
        size = f"{weights.bytes / 1e6:,.0f} MB"
        raise UsageError(
            f"local/{name} is not here, and fetching it takes {size}",
            fix=f"kace models pull {name}",
        )
    _fetch(weights, config)


def _fetch(weights: Weights, config: Config) -> None:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    ) as bar:
        task = bar.add_task(weights.name, total=weights.bytes)

        def update(step: str, done: int) -> None:
            bar.update(
                task, description=f"{weights.name}: {step}", completed=done
            )

        fetch(
            weights,
            cache=weights_folder(config),
            hub=config.hub,
            on_progress=update,
        )


def _may_fetch(weights: Weights) -> bool:
    """Whether weights may be fetched: by the user's answer, or because they are the default."""
    if sys.stdin is None or not sys.stdin.isatty() or not can_redraw():
        return weights is CATALOG[0]
    size = f"{weights.bytes / 1e6:,.0f} MB"
    return click.confirm(
        f"Fetch local/{weights.name}, {size}?", default=True, err=True
    )


def prepare(config: Config) -> None:
    """Fetch weights, and join the Ray cluster if one is named."""
    ensure_weights(config)
    if config.ray:
        from kace.models.ray import connect

        connect(config)
