"""The command line as a user runs it: a process of its own, in a folder of its own, without this machine's settings."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

Kace = Callable[..., "subprocess.CompletedProcess[str]"]

OURS = ("KACE_", "OPENAI_", "ANTHROPIC_", "HF_", "OTEL_")


def environment(folder: Path, **env: str) -> dict[str, str]:
    """What the machine sets, without settings of ours, with the cache in the folder; `env` is added."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}  # noqa: TID251
    return {**kept, "KACE_CACHE_DIR": str(folder / "cache"), **env}


def run_kace(folder: Path, *arguments: str, stdin: str | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Run `kace` with its cache in the folder; `env` is added to what the machine sets."""
    return subprocess.run(
        [sys.executable, "-m", "kace", *arguments],
        cwd=folder,
        env=environment(folder, **env),
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )
