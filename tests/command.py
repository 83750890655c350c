"""The command line as a user runs it: a process of its own, in a folder of its own, without this machine's settings."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from kace import cli

Kace = Callable[..., "subprocess.CompletedProcess[str]"]

OURS = ("KACE_", "OPENAI_", "ANTHROPIC_", "HF_")
SECONDS = 1_800  # against a hang, never against a slow machine
_ONE = Lock()  # the server answers one request after the other


def commands(command: Any = None, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every command by its words, groups first."""
    if command is None:
        for verb in cli.COMMANDS:
            yield from commands(cli.app.get_command(None, verb), verb)
        return
    yield name, command
    for inner, each in getattr(command, "commands", {}).items():
        yield from commands(each, f"{name} {inner}")


def environment(folder: Path, **env: str) -> dict[str, str]:
    """What the machine sets, without settings of ours, with the cache in the folder; `env` is added."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}  # noqa: TID251
    return {**kept, "KACE_CACHE_DIR": str(folder / "cache"), **env}


def run_kace(folder: Path, *arguments: str, stdin: str | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Run `kace` with its cache in the folder; `env` is added to what the machine sets."""
    kept = environment(folder, **env)
    # What Python reads as it starts can only be given to a process that starts.
    starting = {name for name in env if name.startswith(("PYTHON", "LC_", "LANG"))}
    started = bool(starting) and not (starting == {"PYTHONUTF8"} and env["PYTHONUTF8"] == "1")
    if started or not _ONE.acquire(blocking=False):
        return subprocess.run(
            [sys.executable, "-m", "kace", *arguments],
            cwd=folder,
            env=kept,
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=SECONDS,
        )
    try:
        return _forked(folder, arguments, kept, stdin)
    finally:
        _ONE.release()


def _forked(
    folder: Path, arguments: tuple[str, ...], env: dict[str, str], stdin: str | None
) -> subprocess.CompletedProcess[str]:
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    with tempfile.TemporaryDirectory() as place:
        given, out, err = (Path(place) / name for name in ("in", "out", "err"))
        given.write_text(stdin or "", encoding="utf-8", newline="")
        for path in (out, err):
            path.touch()
        streams = [str(path) for path in (given, out, err)]
        request = {"folder": str(folder), "env": env, "streams": streams, "arguments": arguments}
        print(json.dumps(request), file=server.stdin, flush=True)
        # Safe beside a buffered reader: a request is answered by one line, and the line before was read whole.
        if not select.select([server.stdout], [], [], SECONDS)[0]:
            os.killpg(server.pid, signal.SIGKILL)
            _server.cache_clear()
            raise subprocess.TimeoutExpired(list(arguments), SECONDS)
        code = int(server.stdout.readline())
        told = (path.read_text(encoding="utf-8") for path in (out, err))
        return subprocess.CompletedProcess(["kace", *arguments], code, *told)


@cache
def _server() -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("fork_server.py"))]
    env = {**os.environ, "PYTHONUTF8": "1"}  # noqa: TID251
    pipe = subprocess.PIPE
    server = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=env, start_new_session=True)
    atexit.register(server.communicate)
    return server
