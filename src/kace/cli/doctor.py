"""`kace doctor`: checks that everything a solve needs is there, each with its fix."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import click

from kace.answers.equal import Judge, Verdict
from kace.answers.extract import Answer
from kace.cli.options import Options, takes
from kace.cli.terminal import plain
from kace.config import Config, base_urls
from kace.errors import KaceError, one_line, public_url
from kace.models import open_model, weights_folder
from kace.models.cache import Replay
from kace.models.http import AnthropicModel, OpenAIModel
from kace.models.local import locate

LOW_DISK_GB = 2.0
PROBE_SECONDS = 5.0
COMPARE_SECONDS = (
    60.0  # generous: the worker is checked, not how busy the machine is
)

Probe = Callable[[], str]
"""Returns what it found, or raises the error with the fix."""


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one probe."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


@click.command("doctor")
@takes("json", "model", "base_url")
def command(options: Options) -> None:
    """Check the model, its endpoint and key, and write access.

    Also checks that answers can be compared. Exits with 1 if a check fails.
    """
    healthy = True
    for check in examine(options.config()):
        healthy = healthy and check.ok
        if options.as_json:
            print(json.dumps(asdict(check)))
            continue
        print(
            f"{'ok  ' if check.ok else 'FAIL'}  {check.name:16} {plain(check.detail)}"
        )
        if check.fix:
            print(f"      {'':16} fix: {plain(check.fix)}")
    if not healthy:
        sys.exit(1)


def examine(config: Config) -> Iterator[Check]:
    """Yield every check, in the order in which a solve would meet the trouble."""
    for name, probe in _probes(config):
        try:
            yield Check(name, True, probe())
        except KaceError as error:
            yield Check(name, False, error.message, error.fix)


def _probes(config: Config) -> Iterator[tuple[str, Probe]]:
    yield "python", platform.python_version
    yield "settings", partial(_settings, config)
    yield from model_probes(config)
    yield "equivalence", lambda: asyncio.run(_equivalence())
    cache_fix = "set KACE_CACHE_DIR to a directory you can write"
    yield "cache directory", partial(_writable, config.cache_dir, cache_fix)
    run_fix = "change to a directory you can write, or give --out"
    yield "run directory", partial(_writable, Path("runs"), run_fix)


def model_probes(config: Config) -> Iterator[tuple[str, Probe]]:
    """Yield the probes of the solver and, if one is named, of the teacher.

    They send requests only to list an endpoint's models.
    """
    yield from _model_probes(config)
    provider, _, name = (config.teacher or "").partition("/")
    if provider == "replay":
        yield (
            "teacher model",
            lambda: Replay.open(Path(name), teacher=True).name,
        )
    elif provider:
        for title, probe in _model_probes(config.for_teacher()):
            yield f"teacher {title}", probe


def _model_probes(config: Config) -> Iterator[tuple[str, Probe]]:
    provider, _, name = config.model.partition("/")
    if provider == "local":
        yield "engine", partial(_installed, "xllamacpp", "local")
        yield "weights", partial(_weights, config)
    elif provider == "openai":
        yield "key", partial(_key, config, "")
        urls = base_urls(config.base_url) or (OpenAIModel.URL,)
        for place, url in enumerate(urls, 1):
            title = f"endpoint {place}" if len(urls) > 1 else "endpoint"
            yield title, partial(_endpoint, config, public_url(url))
    elif provider == "anthropic":
        yield "key", partial(_key, config, "anthropic_")
    elif provider == "exchange":
        fix = "name a folder you can write, as exchange/FOLDER"
        yield "exchange", partial(_writable, Path(name).expanduser(), fix)
    else:
        yield "model", lambda: open_model(config).name


def _settings(config: Config) -> str:
    parts = []
    for name, source in sorted(config.sources.items()):
        if name not in config.secrets:
            parts.append(f"{name} from {source}")
    preset = f"preset {config.preset}"
    return f"{preset}; {', '.join(parts)}" if parts else preset


def _installed(package: str, extra: str) -> str:
    if find_spec(package) is None:
        raise KaceError(
            f"{package} is not installed", fix=f"pip install 'kace[{extra}]'"
        )
    return f"{package} is installed"


def _weights(config: Config) -> str:
    path, sha256 = locate(
        config.model.partition("/")[2], weights_folder(config)
    )
    return f"{path}, sha256 {sha256[:12]}..."


def _key(config: Config, prefix: str) -> str:
    key = getattr(config, f"{prefix}api_key")
    kind = AnthropicModel if prefix else OpenAIModel
    if not key and not getattr(config, f"{prefix}base_url"):
        raise KaceError(f"{kind.KEY} is not set", fix=kind.KEY_FIX)
    open_model(config)  # refuses a key or an address that cannot be one
    if not key:
        return "none; your own server may not need one"
    return f"given by {config.source(f'{prefix}api_key')}"


def _endpoint(config: Config, base: str) -> str:
    """Check that an endpoint lists the model, or lists none."""
    name = config.model.partition("/")[2]
    listed = _listed_models(config, base)
    if listed and name not in listed:
        raise KaceError(
            one_line(f"{base} has no model '{name}'"),
            fix=f"choose one of {', '.join(listed[:5])}",
        )
    return one_line(f"{base} answers and has '{name}'")


def _listed_models(config: Config, base: str) -> list[str]:
    headers = {}
    if config.api_key:
        headers["Authorization"] = f"Bearer {config.api_key.get_secret_value()}"
    try:
        request = urllib.request.Request(f"{base}/models", headers=headers)
        with urllib.request.urlopen(request, timeout=PROBE_SECONDS) as reply:
            return [
                str(row.get("id")) for row in json.load(reply).get("data", [])
            ]
    except urllib.error.HTTPError as error:
        fix = "does --base-url end in /v1?"
        if error.code in (401, 403):
            fix = "check the key"
        raise KaceError(
            one_line(f"{base} answered {error.code}"), fix=fix
        ) from None
    except (OSError, ValueError, AttributeError) as error:
        raise KaceError(
            one_line(f"{base}: {error}"),
            fix="is the server up, and the address right?",
        ) from None


async def _equivalence() -> str:
    pairs = (
        (r"\cos^2 t", r"1-\sin^2 t", Verdict.SAME),
        (r"\cos t", r"\sin t", Verdict.DIFFERENT),
    )
    async with Judge(workers=1, seconds=COMPARE_SECONDS) as judge:
        for left, right, expected in pairs:
            verdict = await judge(Answer.of(left), Answer.of(right))
            if verdict is not expected:
                raise KaceError(
                    f"{left} and {right} came out as {verdict.value}",
                    fix="reinstall: pip install 'kace' in a clean environment",
                )
    return "the worker compares expressions and was ended again"


def _writable(path: Path, fix: str) -> str:
    place = path
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        raise KaceError(f"{path} cannot be written", fix=fix)
    free = shutil.disk_usage(place).free / 1e9
    if free < LOW_DISK_GB:
        raise KaceError(
            f"{path}: only {free:.1f} GB free",
            fix="make room, or choose another disk",
        )
    return f"{path} ({free:.0f} GB free)"
