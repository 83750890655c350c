"""Checks that everything a solve needs is there, each with its fix."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from kace.answers.equal import Judge, Verdict
from kace.answers.extract import Answer
from kace.config import Config, base_urls
from kace.errors import KaceError, one_line, public_url
from kace.models import open_model, weights_folder
from kace.models.cache import Replay
from kace.models.http import AnthropicModel, OpenAIModel
from kace.models.local import locate

LOW_DISK_GB = 2.0
PROBE_SECONDS = 5.0
PATIENCE = 60.0  # seconds for a comparison: whether the worker works is asked, not how busy the machine is

Look = Callable[[], str]  # says what it found, or raises the error with the fix


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


def examine(config: Config) -> Iterator[Check]:
    """Every check, in the order in which a solve would meet the trouble."""
    for name, look in _looks(config):
        try:
            yield Check(name, True, look())
        except KaceError as error:
            yield Check(name, False, error.message, error.fix)


def _looks(config: Config) -> Iterator[tuple[str, Look]]:
    yield "python", platform.python_version
    yield "settings", lambda: _settings(config)
    yield from model_looks(config)
    yield "equivalence", lambda: asyncio.run(_equivalence())
    fix = "to a directory you can write"
    yield (
        "cache directory",
        lambda: _writable(config.cache_dir, f"set KACE_CACHE_DIR {fix}"),
    )
    yield (
        "run directory",
        lambda: _writable(Path("runs"), f"change {fix}, or give --out"),
    )


def model_looks(config: Config) -> Iterator[tuple[str, Look]]:
    """What the solver and, where one is named, the teacher need. Only an endpoint is asked anything."""
    yield from _model(config)
    provider, _, name = (config.teacher or "").partition("/")
    if provider == "replay":
        yield "teacher model", lambda: Replay.open(Path(name), teacher=True).name
    elif provider:
        yield from (
            (f"teacher {name}", look) for name, look in _model(config.for_teacher())
        )


def _model(config: Config) -> Iterator[tuple[str, Look]]:
    provider, _, name = config.model.partition("/")
    folder = Path(name).expanduser()
    looks: dict[str, dict[str, Look]] = {
        "local": {
            "engine": lambda: _installed("xllamacpp", "local"),
            "weights": lambda: _weights(config),
        },
        "openai": {"key": lambda: _key(config, ""), **_endpoints(config)},
        "anthropic": {"key": lambda: _key(config, "anthropic_")},
        "exchange": {
            "exchange": lambda: _writable(
                folder, "name a folder you can write, as exchange/FOLDER"
            )
        },
    }
    yield from looks.get(provider, {"model": lambda: open_model(config).name}).items()


def _settings(config: Config) -> str:
    given = (
        f"{name} from {source}"
        for name, source in sorted(config.sources.items())
        if name not in config.secrets
    )
    return "; ".join((f"preset {config.preset}", ", ".join(given))).removesuffix("; ")


def _installed(package: str, extra: str) -> str:
    if find_spec(package) is None:
        raise KaceError(
            f"{package} is not installed", fix=f"pip install 'kace[{extra}]'"
        )
    return f"{package} is installed"


def _key(config: Config, prefix: str) -> str:
    key = getattr(config, f"{prefix}api_key")
    kind = AnthropicModel if prefix else OpenAIModel
    if not key and not getattr(config, f"{prefix}base_url"):
        raise KaceError(f"{kind.KEY} is not set", fix=kind.KEY_FIX)
    open_model(config)  # refuses a key or an address that cannot be one
    return (
        f"given by {config.source(f'{prefix}api_key')}"
        if key
        else "none; your own server may not need one"
    )


def _endpoints(config: Config) -> dict[str, Look]:
    urls = base_urls(config.base_url) or (OpenAIModel.URL,)
    return {
        f"endpoint {place}" if len(urls) > 1 else "endpoint": partial(
            _endpoint, config, public_url(url)
        )
        for place, url in enumerate(urls, 1)
    }


def _endpoint(config: Config, base: str) -> str:
    headers = (
        {"Authorization": f"Bearer {config.api_key.get_secret_value()}"}
        if config.api_key
        else {}
    )
    name = config.model.partition("/")[2]
    try:
        request = urllib.request.Request(f"{base}/models", headers=headers)
        with urllib.request.urlopen(request, timeout=PROBE_SECONDS) as reply:
            listed = [str(row.get("id")) for row in json.load(reply).get("data", [])]
    except urllib.error.HTTPError as error:
        fix = (
            "check the key"
            if error.code in (401, 403)
            else "does --base-url end in /v1?"
        )
        raise KaceError(one_line(f"{base} answered {error.code}"), fix=fix) from None
    except (OSError, ValueError, AttributeError) as error:
        raise KaceError(
            one_line(f"{base}: {error}"), fix="is the server up, and the address right?"
        ) from None
    if listed and name not in listed:
        raise KaceError(
            one_line(f"{base} has no model '{name}'"),
            fix=f"choose one of {', '.join(listed[:5])}",
        )
    return one_line(f"{base} answers and has '{name}'")


async def _equivalence() -> str:
    async with Judge(workers=1, seconds=PATIENCE) as judge:
        pairs = (
            (r"\cos^2 t", r"1-\sin^2 t", Verdict.SAME),
            (r"\cos t", r"\sin t", Verdict.DIFFERENT),
        )
        for left, right, expected in pairs:
            verdict = await judge(Answer.of(left), Answer.of(right))
            if verdict is not expected:
                fix = "reinstall: pip install 'kace' in a clean environment"
                raise KaceError(
                    f"{left} and {right} came out as {verdict.value}", fix=fix
                )
    return "the worker compares expressions and was ended again"


def _weights(config: Config) -> str:
    path, sha256 = locate(config.model.partition("/")[2], weights_folder(config))
    return f"{path}, sha256 {sha256[:12]}..."


def _writable(path: Path, fix: str) -> str:
    place = path
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        raise KaceError(f"{path} cannot be written", fix=fix)
    free = shutil.disk_usage(place).free / 1e9
    if free < LOW_DISK_GB:
        raise KaceError(
            f"{path}: only {free:.1f} GB free", fix="make room, or choose another disk"
        )
    return f"{path} ({free:.0f} GB free)"
