"""What produced a run, as its `run.json` says. Every part of it may be missing: other tools write runs, too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kace.errors import DataError
from kace.run import RUN_VERSION

MAX_BYTES = 8_000_000


@dataclass(frozen=True, slots=True)
class Setup:
    """The parts of a manifest that pages show; empty where the run does not say."""

    system: str
    model: str
    preset: str
    data: str
    split: str
    data_hash: str
    """The content hash of the problems it was run on."""
    problems: int | None
    """Problems of the data set."""
    tree_hash: str
    tree_cards: int | None
    kace: str


def read_manifest(path: Path) -> Mapping[str, object]:
    """A manifest; `DataError` where it is missing, is none, or a newer kace wrote it."""
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        raise DataError(f"{path}: cannot be read as a run's manifest", fix="give the folder of a run") from None
    if not isinstance(found, dict):
        raise DataError(f"{path}: not a run's manifest", fix="give the folder of a run as kace wrote it")
    version = found.get("v")
    if isinstance(version, int) and version > RUN_VERSION:
        raise DataError(
            f"{path}: written by a newer kace (run version {version}, this one reads {RUN_VERSION})", fix="upgrade kace"
        )
    return found


def setup_of(manifest: Mapping[str, object]) -> Setup:
    """What a manifest says."""
    config, data, tree = (_part(manifest, name) for name in ("config", "data", "tree"))
    return Setup(
        system=_text(_part(manifest, "system").get("name")),
        model=_text(config.get("model")),
        preset=_text(config.get("preset")),
        data=_text(data.get("name")),
        split=_text(data.get("split")),
        data_hash=_text(data.get("hash")),
        problems=_count(data.get("problems")),
        tree_hash=_text(tree.get("hash")),
        tree_cards=_count(tree.get("cards")),
        kace=_text(manifest.get("kace")),
    )


def _part(manifest: Mapping[str, object], name: str) -> Mapping[str, object]:
    part = manifest.get(name)
    return part if isinstance(part, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
