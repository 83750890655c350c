"""Chat models: one protocol, its providers, and the wrappers around them."""

from __future__ import annotations

from pathlib import Path

from kace.config import Config, base_urls
from kace.errors import UsageError
from kace.models.base import ChatModel


def open_model(config: Config) -> ChatModel:
    """Open the model a configuration names, with retries and a limit on its calls.

    Nothing is sent yet. On a Ray cluster, workers answer the calls.
    """
    from kace.models.limits import CONNECTIONS, Limited

    if config.ray:
        from kace.models.http import Servers
        from kace.models.ray import open_servers

        model: ChatModel = Servers(open_servers(config))
    else:
        model = open_unlimited(config)
    provider = config.model.partition("/")[0]
    # All requests of an exchange should be visible at once, and may wait for long.
    if provider in ("replay", "exchange"):
        return model
    connections = config.max_connections or CONNECTIONS
    return Limited(model, connections, deadline=config.timeout)


def open_unlimited(config: Config) -> ChatModel:
    """Open the model a configuration names: one call is one request."""
    provider, _, name = config.model.partition("/")
    match provider if name else "":
        case "openai" | "anthropic":
            return _open_remote(config)
        case "local":
            from kace.models.local import LocalModel

            return LocalModel(name, weights_folder(config))
        case "scripted":
            from kace.models.scripted import open_scripted

            return open_scripted(name)
        case "replay":
            from kace.models.cache import Replay

            return Replay(Path(name))
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
    from kace.models.http import AnthropicModel, OpenAIModel, Remote, Servers

    provider, _, name = config.model.partition("/")
    kind: type[Remote] = OpenAIModel
    urls = config.base_url
    key = config.api_key
    if provider == "anthropic":
        kind = AnthropicModel
        urls = config.anthropic_base_url
        key = config.anthropic_api_key
    secret = key.get_secret_value() if key else None
    remotes = []
    for url in base_urls(urls) or (None,):
        remote = kind(name, base_url=url, api_key=secret, name=config.model)
        remotes.append(remote)
    return Servers(remotes) if len(remotes) > 1 else remotes[0]
