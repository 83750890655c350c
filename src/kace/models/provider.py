"""Opens models by their `provider/name`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kace.config import Config, base_urls
from kace.errors import UsageError
from kace.models.base import ChatModel

if TYPE_CHECKING:
    from kace.models.remote import Remote

MOST_ATTEMPTS = 5  # at one tier of one problem


def open_model(config: Config) -> ChatModel:
    """Open the model a configuration names. Nothing is sent yet."""
    provider, _, name = config.model.partition("/")
    match provider if name else "":
        case "openai" | "anthropic":
            from kace.models.pool import Pool

            remotes = open_remotes(config)
            # One limit on all calls: a call chooses its server when its turn has come, not when it queues.
            return _limited(
                Pool(remotes) if len(remotes) > 1 else remotes[0],
                config,
                config.max_connections,
            )
        case "local":
            from kace.models.local import SLOTS, EngineSettings, open_local

            settings = EngineSettings(config.slots or SLOTS, config.threads or 0)
            model = open_local(name, cache=weights_folder(config), settings=settings)
            # The engine gives out its slots itself; here every attempt of every open problem has only room to wait.
            return _limited(model, config, settings.slots * MOST_ATTEMPTS)
        case "scripted":
            from kace.models.scripted import open_scripted

            return _limited(open_scripted(name), config, config.max_connections or 64)
        case "replay":
            from kace.models.cache import Replay

            return Replay.open(Path(name))
        case "exchange":
            from kace.models.exchange import Exchange

            # Neither limited nor timed: every request should lie there at once, and a reply takes the time it takes.
            return Exchange(Path(name).expanduser(), wait=config.wait)
    raise UsageError(
        f"unknown model '{config.model}'",
        fix="name it as local/NAME, local/PATH.gguf, openai/NAME (with --base-url for your own server),"
        " anthropic/NAME, exchange/FOLDER, replay/RUN or scripted/NAME; `kace models list` shows the embedded ones",
    )


def open_remotes(config: Config) -> list[Remote]:
    """The model at each of its addresses, for a provider with an HTTP API."""
    from kace.models.apis import AnthropicModel, OpenAIModel

    provider, _, name = config.model.partition("/")
    kind, urls, key = {
        "openai": (OpenAIModel, config.base_url, config.api_key),
        "anthropic": (
            AnthropicModel,
            config.anthropic_base_url,
            config.anthropic_api_key,
        ),
    }[provider]
    secret = key.get_secret_value() if key else None
    remotes: list[Remote] = []
    for url in base_urls(urls) or (None,):
        remote = kind(
            name,
            base_url=url,
            api_key=secret,
            timeout=config.timeout,
            name=config.model,
        )
        if isinstance(remote, OpenAIModel):
            remote.service_tier = config.service_tier
        remotes.append(remote)
    return remotes


def weights_folder(config: Config) -> Path:
    """Where the weights of embedded models are kept."""
    return config.cache_dir / "models"


def _limited(model: ChatModel, config: Config, connections: int | None) -> ChatModel:
    """Behind the one retry policy, with so many calls under way, or as many as the provider turns out to bear."""
    from kace.models.limits import AdaptiveLimiter, Limited, RetryPolicy

    limiter = (
        AdaptiveLimiter(connections, fixed=True) if connections else AdaptiveLimiter()
    )
    return Limited(model, limiter, RetryPolicy(deadline=config.timeout))
