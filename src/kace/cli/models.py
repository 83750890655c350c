"""`kace models`: the embedded models, by hash."""

from __future__ import annotations

from pathlib import Path

import click

from kace.cli.options import Options, takes
from kace.cli.terminal import note
from kace.config import Config
from kace.errors import UsageError
from kace.models import weights_folder
from kace.models.local import (
    CATALOG,
    SUFFIX,
    Weights,
    find_weights,
    is_present,
)
from kace.models.local import pull as fetch


@click.group("models")
def command() -> None:
    """List and fetch embedded models."""


@command.command("list")
@takes("json")
def list_models(options: Options) -> None:
    """List the embedded models and whether they are here."""
    cache = weights_folder(options.config())
    for weights in CATALOG:
        here = is_present(weights, cache)
        name = f"local/{weights.name}"
        row = {
            "name": name,
            "bytes": weights.bytes,
            "sha256": weights.sha256,
            "here": here,
        }
        state = "here" if here else "not here"
        line = f"{name:28} {weights.bytes / 1e6:7,.0f} MB  {state:9} {weights.about}"
        options.show(row, [line])
    note("any other: local/PATH.gguf, openai/NAME with --base-url, replay/RUN")


@command.command()
@click.argument("name", default=CATALOG[0].name)
@takes()
def pull(options: Options, name: str) -> None:
    """Fetch a model from the hub or its mirror.

    It is accepted by SHA-256 only; the same command resumes a download.
    """
    weights = find_weights(name.removeprefix("local/"))
    print(_fetch(weights, options.config()))


def ensure_weights(config: Config) -> None:
    """Fetch an embedded model that a configuration names, with a progress bar on stderr.

    Only the default model is fetched unasked.
    """
    provider, _, name = config.model.partition("/")
    if provider != "local" or name.endswith(SUFFIX):
        return
    weights = find_weights(name)
    if is_present(weights, weights_folder(config)):
        return
    if weights is not CATALOG[0]:
        size = f"{weights.bytes / 1e6:,.0f} MB"
        raise UsageError(
            f"local/{name} is not here, and fetching it takes {size}",
            fix=f"kace models pull {name}",
        )
    _fetch(weights, config)


def _fetch(weights: Weights, config: Config) -> Path:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task(weights.name, total=weights.bytes)

        def update(step: str, done: int) -> None:
            title = f"{weights.name}: {step}"
            bar.update(task, description=title, completed=done)

        return fetch(
            weights,
            cache=weights_folder(config),
            hub=config.hub,
            on_progress=update,
        )


def prepare(config: Config, *, teaches: bool = False) -> None:
    """Fetch weights, of a teacher's too, and join the Ray cluster if one is named."""
    ensure_weights(config)
    if (teaches or config.synthesis) and config.teacher:
        ensure_weights(config.for_teacher())
    if config.ray:
        from kace.models.ray import connect

        connect(config)
