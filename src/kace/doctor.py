"""Checks that everything a solve needs is there, each with its fix."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from kace.answers.extract import Answer
from kace.answers.judge import Judge, Verdict
from kace.config import Config
from kace.errors import KaceError
from kace.redact import one_line, public_url

LOW_DISK_GB = 2.0
PROBE_SECONDS = 5.0
SECRET = ("api_key", "anthropic_api_key", "teacher_api_key", "serve_key")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


def examine(config: Config) -> Iterator[Check]:
    """Every check, in the order in which a solve would meet the trouble."""
    ok = sys.version_info >= (3, 11)
    yield Check("python", ok, platform.python_version(), "" if ok else "kace needs Python 3.11 or newer")
    given = ", ".join(f"{name} from {source}" for name, source in sorted(config.sources.items()) if name not in SECRET)
    yield Check("settings", True, f"preset {config.preset}" + (f"; {given}" if given else ""))
    yield from _until_refused("model", _model(config))
    yield from _until_refused("teacher model", _teacher(config))
    yield asyncio.run(_equivalence())
    yield _writable("cache directory", config.cache_dir, "set KACE_CACHE_DIR to a directory you can write")
    yield _writable("run directory", Path("runs"), "run from a directory you can write, or give --out")


def _until_refused(name: str, checks: Iterator[Check]) -> Iterator[Check]:
    """The checks up to the one that raises a user error, which is a failed check of this name."""
    try:
        yield from checks
    except KaceError as error:
        yield Check(name, False, error.message, error.fix)


def _model(config: Config) -> Iterator[Check]:
    from kace.models.provider import open_model

    provider = config.model.partition("/")[0]
    if provider == "local":
        installed = find_spec("xllamacpp") is not None
        fix = "" if installed else "pip install 'kace[local]'"
        detail = "llama.cpp through xllamacpp" if installed else "xllamacpp is not installed"
        yield Check("engine", installed, detail, fix)
        yield from _until_refused("weights", _weights(config)) if installed else ()
    elif provider == "openai":
        yield _key(config)
        yield _endpoint(config)
    elif provider == "anthropic":
        from kace.models.anthropic import require_sdk

        require_sdk()
        yield Check("sdk", True, "anthropic is installed")
        open_model(config)
        yield Check("key", True, "given" if config.anthropic_api_key else "none; your own gateway may not need one")
    elif provider == "exchange":
        folder = Path(config.model.partition("/")[2]).expanduser()
        yield _writable("exchange", folder, "name a folder you can write, as exchange/FOLDER")
    else:
        open_model(config)
        yield Check("model", True, config.model)


def _teacher(config: Config) -> Iterator[Check]:
    """Where one is named, the teacher's own model, key and address."""
    if config.teacher is None:
        return
    provider, _, name = config.teacher.partition("/")
    if provider == "replay":
        from kace.models.replay import Replay

        Replay.open(Path(name), teacher=True)
        yield Check("teacher model", True, config.teacher)
    else:
        for check in _model(config.for_teacher()):
            yield replace(check, name=f"teacher {check.name}")


def _key(config: Config) -> Check:
    if config.api_key:
        return Check("key", True, f"given by {config.source('api_key')}")
    if config.base_url:
        return Check("key", True, "none; your own server may not need one")
    return Check("key", False, "OPENAI_API_KEY is not set", "export OPENAI_API_KEY=..., or give --base-url")


def _endpoint(config: Config) -> Check:
    from kace.models.openai import DEFAULT_URL

    base = public_url(config.base_url or DEFAULT_URL)
    headers = {"Authorization": f"Bearer {config.api_key.get_secret_value()}"} if config.api_key else {}
    name = config.model.partition("/")[2]
    try:
        request = urllib.request.Request(f"{base}/models", headers=headers)
        with urllib.request.urlopen(request, timeout=PROBE_SECONDS) as reply:
            listed = [str(row.get("id")) for row in json.load(reply).get("data", [])]
    except urllib.error.HTTPError as error:
        fix = "check the key" if error.code in (401, 403) else "does --base-url end in /v1?"
        return Check("endpoint", False, one_line(f"{base} answered {error.code}"), fix)
    except (OSError, ValueError, AttributeError) as error:
        return Check("endpoint", False, one_line(f"{base}: {error}"), "is the server up, and the address right?")
    if listed and name not in listed:
        fix = f"choose one of {', '.join(listed[:5])}"
        return Check("endpoint", False, one_line(f"{base} has no model '{name}'"), fix)
    return Check("endpoint", True, one_line(f"{base} answers and has '{name}'"))


async def _equivalence() -> Check:
    async with Judge(workers=1) as judge:
        pairs = ((r"\cos^2 t", r"1-\sin^2 t", Verdict.SAME), (r"\cos t", r"\sin t", Verdict.DIFFERENT))
        for left, right, expected in pairs:
            verdict = await judge(Answer.of(left), Answer.of(right))
            if verdict is not expected:
                detail = f"{left} and {right} came out as {verdict.value}"
                return Check("equivalence", False, detail, "reinstall: pip install 'kace' in a clean environment")
    return Check("equivalence", True, "the worker compares expressions and was ended again")


def _weights(config: Config) -> Iterator[Check]:
    from kace.models.catalog import SUFFIX, find, is_present, path_of, weights_at
    from kace.models.provider import weights_folder

    name, cache = config.model.partition("/")[2], weights_folder(config)
    if name.endswith(SUFFIX):
        yield Check("weights", True, f"{name}, sha256 {weights_at(Path(name).expanduser(), cache)[:12]}...")
    elif is_present(weights := find(name), cache):
        yield Check("weights", True, f"{path_of(weights, cache)}, verified by sha256")
    else:
        yield Check("weights", False, f"local/{name} is not in {cache}", f"kace models pull {name}")


def _writable(name: str, path: Path, fix: str) -> Check:
    place = path
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        return Check(name, False, f"{path} cannot be written", fix)
    free = shutil.disk_usage(place).free / 1e9
    if free < LOW_DISK_GB:
        return Check(name, False, f"{path}: only {free:.1f} GB free", "make room, or choose another disk")
    return Check(name, True, f"{path} ({free:.0f} GB free)")
