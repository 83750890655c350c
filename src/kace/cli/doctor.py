"""`kace doctor`: checks that everything a solve needs is there, each with its fix."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import click

from kace.answers.equal import Judge, Verdict
from kace.answers.extract import Answer
from kace.cli.options import Options, takes
from kace.cli.terminal import plain
from kace.config import Config, base_urls
from kace.errors import KaceError, one_line, public_url
from kace.learning.teacher import open_teacher
from kace.models import open_model
from kace.models.base import ChatModel
from kace.models.http import OpenAIModel

PROBE_SECONDS = 5.0


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
        state = "ok  " if check.ok else "FAIL"
        lines = [f"{state}  {check.name:16} {plain(check.detail)}"]
        if check.fix:
            lines.append(f"      {'':16} fix: {plain(check.fix)}")
        options.show(asdict(check), lines)
    if not healthy:
        sys.exit(1)


def examine(config: Config) -> Iterator[Check]:
    """Yield every check, in the order in which a solve would meet the trouble."""
    probes: list[tuple[str, Callable[[], str]]] = [
        ("settings", partial(_settings, config))
    ]
    models = [("model", config, partial(open_model, config))]
    if config.teacher:
        opened = partial(open_teacher, config)
        models.append(("teacher", config.for_teacher(), opened))
    for title, each, opened in models:
        probes.append((title, partial(_opened, each, opened)))
        if each.model.startswith("openai/"):
            urls = base_urls(each.base_url) or (OpenAIModel.URL,)
            for place, url in enumerate(urls, 1):
                asked = partial(_endpoint, each, public_url(url))
                probes.append((f"{title} endpoint {place}", asked))
    probes.append(("equivalence", lambda: asyncio.run(_equivalence())))
    fix = "set KACE_CACHE_DIR to a directory you can write"
    probes.append(("cache", partial(_writable, config.cache_dir, fix)))
    fix = "change to a directory you can write, or give --out"
    probes.append(("runs", partial(_writable, Path("runs"), fix)))
    for name, probe in probes:
        try:
            yield Check(name, True, probe())
        except KaceError as error:
            yield Check(name, False, error.message, error.fix)


def _opened(config: Config, opened: Callable[[], ChatModel]) -> str:
    """Open a model, which needs its weights or its key; nothing is sent."""
    provider, _, name = config.model.partition("/")
    if provider == "exchange":
        return _writable(
            Path(name).expanduser(),
            "name a folder you can write, as exchange/FOLDER",
        )
    return opened().identity


def _settings(config: Config) -> str:
    parts = [f"preset {config.preset}"]
    for name, source in sorted(config.sources.items()):
        if name not in config.secrets:
            parts.append(f"{name} from {source}")
    return ", ".join(parts)


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
    request = urllib.request.Request(f"{base}/models", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=PROBE_SECONDS) as reply:
            rows = json.load(reply).get("data", [])
            return [str(row.get("id")) for row in rows]
    except (OSError, ValueError, AttributeError) as error:
        fix = "is the server up, and does --base-url end in /v1?"
        if getattr(error, "code", None) in (401, 403):
            fix = "check the key"
        raise KaceError(one_line(f"{base}: {error}"), fix=fix) from None


async def _equivalence() -> str:
    left = Answer.of(r"\cos^2 t")
    right = Answer.of(r"1-\sin^2 t")
    async with Judge(workers=1, seconds=60) as judge:
        verdict = await judge(left, right)
    if verdict is not Verdict.SAME:
        raise KaceError(
            f"an identity came out as {verdict.value}",
            fix="reinstall: pip install 'kace' in a clean environment",
        )
    return "answers can be compared"


def _writable(path: Path, fix: str) -> str:
    place = path
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        raise KaceError(f"{path} cannot be written", fix=fix)
    return str(path)
