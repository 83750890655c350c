"""Opens models by their `provider/name`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from kace.config import Config
from kace.errors import UsageError
from kace.models.base import ChatModel

MOST_ATTEMPTS = 5
"""At one tier of one problem."""


def open_model(config: Config) -> ChatModel:
    """Open the model a configuration names. Nothing is sent yet."""
    provider, _, name = config.model.partition("/")
    if provider not in PROVIDERS or not name:
        raise UsageError(
            f"unknown model '{config.model}'",
            fix="name it as local/NAME, local/PATH.gguf, openai/NAME (with --base-url for your own server),"
            " anthropic/NAME, exchange/FOLDER, replay/RUN or scripted/NAME; `kace models list` shows the embedded ones",
        )
    return PROVIDERS[provider](name, config)


def weights_folder(config: Config) -> Path:
    """Where the weights of embedded models are kept."""
    return config.cache_dir / "models"


def _openai(name: str, config: Config) -> ChatModel:
    from kace.models.openai import OpenAIModel

    key = config.api_key.get_secret_value() if config.api_key else None
    model = OpenAIModel(name, base_url=config.base_url, api_key=key, timeout=config.timeout, name=config.model)
    return _limited(model, config, config.max_connections)


def _anthropic(name: str, config: Config) -> ChatModel:
    from kace.models.anthropic import AnthropicModel

    key = config.anthropic_api_key.get_secret_value() if config.anthropic_api_key else None
    url = config.anthropic_base_url
    model = AnthropicModel(name, base_url=url, api_key=key, timeout=config.timeout, name=config.model)
    return _limited(model, config, config.max_connections)


def _exchange(name: str, config: Config) -> ChatModel:
    from kace.models.exchange import Exchange

    # Neither limited nor timed: every request should lie there at once, and whoever replies takes the time it takes.
    return Exchange(Path(name).expanduser(), wait=config.exchange_wait)


def _local(name: str, config: Config) -> ChatModel:
    from kace.models.local import SLOTS, Room, open_local

    room = Room(slots=config.slots or SLOTS, threads=config.threads or 0)
    # The engine gives out its slots itself; here there is only room for every attempt of every open problem to wait.
    return _limited(open_local(name, cache=weights_folder(config), room=room), config, room.slots * MOST_ATTEMPTS)


def _replay(name: str, config: Config) -> ChatModel:
    from kace.models.replay import Replay

    return Replay.open(Path(name))


def _scripted(name: str, config: Config) -> ChatModel:
    from kace.models.scripted import open_scripted

    return _limited(open_scripted(name), config, config.max_connections or 64)


def _limited(model: ChatModel, config: Config, connections: int | None) -> ChatModel:
    """Behind the one retry policy, with so many calls under way, or as many as the provider turns out to bear."""
    from kace.models.limits import AdaptiveLimiter, Limited, RetryPolicy

    limiter = AdaptiveLimiter.fixed(connections) if connections else AdaptiveLimiter()
    return Limited(model, limiter, RetryPolicy(deadline=config.timeout))


PROVIDERS: Mapping[str, Callable[[str, Config], ChatModel]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "exchange": _exchange,
    "local": _local,
    "replay": _replay,
    "scripted": _scripted,
}
