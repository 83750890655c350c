"""`kace doctor`: checks that everything a solve needs is there, each with its fix."""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import click

from kace.cli.options import Options, takes
from kace.config import Config, base_urls
from kace.errors import KaceError, one_line, plain, public_url
from kace.learning.teacher import open_teacher
from kace.models import open_model
from kace.models.http import OpenAIModel

PROBE_SECONDS = 5.0


@click.command("doctor")
@takes("json", "model", "base_url")
def command(options: Options) -> None:
    """Check the model, its endpoint and key, and write access.

    Exits with 1 if a check fails.
    """
    healthy = True
    for name, probe in probes(options.config()):
        check = {"name": name, "ok": True, "detail": "", "fix": ""}
        try:
            check["detail"] = probe()
            line = f"ok    {name:16} {check['detail']}"
        except KaceError as error:
            healthy = False
            check |= {"ok": False, "detail": error.message, "fix": error.fix}
            line = f"FAIL  {name:16} {error.message}; fix: {error.fix}"
        options.show(check, [plain(line)])
    if not healthy:
        sys.exit(1)


def probes(config: Config) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield every check, in the order in which a solve would meet the trouble."""
    # Opening a model sends nothing.
    yield "model", lambda: open_model(config).identity
    if config.model.startswith("openai/"):
        urls = base_urls(config.base_url) or (OpenAIModel.URL,)
        for place, url in enumerate(urls, 1):
            yield f"model endpoint {place}", partial(_endpoint, config, url)
    if config.teacher:
        yield "teacher", lambda: open_teacher(config).identity
    yield "cache", partial(_writable, config.cache_dir)


def _endpoint(config: Config, url: str) -> str:
    """Check that an endpoint lists the model, or lists none."""
    base = public_url(url)
    name = config.model.partition("/")[2]
    request = urllib.request.Request(f"{base}/models")
    if config.api_key:
        key = config.api_key.get_secret_value()
        request.add_header("Authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(request, timeout=PROBE_SECONDS) as reply:
            listed = [row["id"] for row in json.load(reply).get("data", [])]
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise KaceError(
            one_line(f"{base}: {error}"),
            fix="is the server up, does --base-url end in /v1? Else check the key",
        ) from None
    if listed and name not in listed:
        raise KaceError(
            one_line(f"{base} has no model '{name}'"),
            fix=f"choose one of {', '.join(map(str, listed[:5]))}",
        )
    return one_line(f"{base} answers and has '{name}'")


def _writable(path: Path) -> str:
    """Check that a folder can be written; make it if there is none."""
    with suppress(OSError):
        path.mkdir(parents=True, exist_ok=True)
    if not os.access(path, os.W_OK | os.X_OK):
        raise KaceError(
            f"{path} cannot be written",
            fix="set KACE_CACHE_DIR to a directory you can write",
        )
    return str(path)
