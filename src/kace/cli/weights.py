"""Fetching weights with a progress bar, shared by every verb that may need them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kace.config import Config


def ensure_weights(config: Config) -> None:
    """Pull the embedded model a configuration names, if it is one and is not here yet."""
    from kace.models.catalog import SUFFIX, find, is_present
    from kace.models.provider import weights_folder

    provider, _, name = config.model.partition("/")
    if provider == "local" and not name.endswith(SUFFIX) and not is_present(find(name), weights_folder(config)):
        _pull(name, config)


def _pull(name: str, config: Config) -> None:
    """Pull a model by name; the bar is on stderr and says where the bytes come from."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from kace.models.download import Progress as Pulled
    from kace.models.download import pull
    from kace.models.provider import weights_folder

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=False) as bar:
        task = bar.add_task(name, total=None)

        def watch(progress: Pulled) -> None:
            bar.update(task, description=f"{name}: {progress.source}", completed=progress.done, total=progress.total)

        pull(name, cache=weights_folder(config), hub=config.hub, progress=watch)
