"""The manifest of a run, `run.json`, read back. Every part of it may be missing: other tools write runs, too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from kace.errors import DataError
from kace.solver.run import RUN_VERSION


def read_manifest(path: Path, most: int = -1) -> Mapping[str, object]:
    """A manifest, of which at most so many bytes are read.

    `DataError` where it is missing, is none, or a newer kace wrote it.
    """
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(most))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError(f"{path}: {reason}", fix="give the folder of a run, which has run.json in it") from None
    except (ValueError, RecursionError):
        raise DataError(f"{path}: not JSON", fix="give the folder of a run as kace wrote it") from None
    if not isinstance(found, dict):
        raise DataError(f"{path}: not a run's manifest", fix="give the folder of a run as kace wrote it")
    version = found.get("v")
    if isinstance(version, int) and version > RUN_VERSION:
        raise DataError(
            f"{path}: written by a newer kace (run version {version}, this one reads {RUN_VERSION})", fix="upgrade kace"
        )
    return found


def manifest_part(manifest: Mapping[str, object], name: str) -> Mapping[str, object]:
    """A part of a manifest; empty where it has none of that name."""
    part = manifest.get(name)
    return part if isinstance(part, dict) else {}


def manifest_text(value: object) -> str:
    """A value as text; nothing where it is none."""
    return value if isinstance(value, str) else ""
