"""Chat models: one protocol, its providers, and the wrappers around them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kace.config import Config, base_urls
from kace.errors import UsageError
from kace.models.base import ChatModel

if TYPE_CHECKING:
    from kace.models.http import Remote

MOST_ATTEMPTS = 5  # in one tier of one problem


def open_model(config: Config) -> ChatModel:
    """Open the model a configuration names, with retries and a limit on its calls.

    Nothing is sent yet. On a Ray cluster, workers answer the calls.
    """
    if config.ray:
        from kace.models.http import Servers
        from kace.models.ray import open_servers

        servers = open_servers(config)
        return _limit(Servers(servers), config, len(servers))
    return _limit(open_unlimited(config), config)


def open_unlimited(config: Config) -> ChatModel:
    """Open the model a configuration names: one call is one request."""
    provider, _, name = config.model.partition("/")
    match provider if name else "":
        case "openai" | "anthropic":
            return _open_remote(config)
        case "local":
            return _open_local(name, config)
        case "scripted":
            from kace.models.scripted import open_scripted

            return open_scripted(name)
        case "replay":
            from kace.models.cache import Replay

            return Replay.open(Path(name))
        case "exchange":
            from kace.models.exchange import Exchange

            return Exchange(Path(name).expanduser(), wait=config.wait)
    raise UsageError(
        f"unknown model '{config.model}'",
        fix="name it as local/NAME, local/PATH.gguf, openai/NAME (with --base-url for your "
        "own server), anthropic/NAME, exchange/FOLDER, replay/RUN or scripted/NAME; "
        "`kace models list` shows the embedded ones",
    )


def weights_folder(config: Config) -> Path:
    """Return the folder of the embedded models' weights."""
    return config.cache_dir / "models"


def _open_remote(config: Config) -> ChatModel:
    from kace.models.http import AnthropicModel, OpenAIModel, Servers

    provider, _, name = config.model.partition("/")
    kind: type[Remote] = OpenAIModel
    urls = config.base_url
    key = config.api_key
    if provider == "anthropic":
        kind = AnthropicModel
        urls = config.anthropic_base_url
        key = config.anthropic_api_key
    remotes: list[Remote] = []
    for url in base_urls(urls) or (None,):
        remote = kind(
            name,
            base_url=url,
            api_key=key.get_secret_value() if key else None,
            timeout=config.timeout,
            name=config.model,
        )
        remotes.append(remote)
    return Servers(remotes) if len(remotes) > 1 else remotes[0]


def _open_local(name: str, config: Config) -> ChatModel:
    from kace.models.local import open_local

    return open_local(name, cache=weights_folder(config))


def _limit(model: ChatModel, config: Config, workers: int = 1) -> ChatModel:
    """Wrap a model with retries and a limit on its calls.

    Recorded and exchanged replies are neither limited nor timed: all requests of an
    exchange should be visible at once.
    """
    from kace.models.limits import CONNECTIONS, Limited

    provider = config.model.partition("/")[0]
    if provider in ("replay", "exchange"):
        return model
    connections = config.max_connections or CONNECTIONS
    if provider == "local":
        from kace.models.local import SLOTS

        # The engine limits the calls itself. Here every attempt of every open problem
        # only needs room to wait.
        connections = SLOTS * MOST_ATTEMPTS * workers
    return Limited(model, connections, deadline=config.timeout)
