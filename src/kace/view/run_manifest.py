"""What produced a run, as its `run.json` says. Every part of it may be missing: other tools write runs, too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kace.solver.manifest import manifest_part, manifest_text

MAX_BYTES = 8_000_000
"""What is read of a manifest for a page."""


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


def setup_of(manifest: Mapping[str, object]) -> Setup:
    """What a manifest says."""
    config, data, tree = (manifest_part(manifest, name) for name in ("config", "data", "tree"))
    return Setup(
        system=manifest_text(manifest_part(manifest, "system").get("name")),
        model=manifest_text(config.get("model")),
        preset=manifest_text(config.get("preset")),
        data=manifest_text(data.get("name")),
        split=manifest_text(data.get("split")),
        data_hash=manifest_text(data.get("hash")),
        problems=_count(data.get("problems")),
        tree_hash=manifest_text(tree.get("hash")),
        tree_cards=_count(tree.get("cards")),
        kace=manifest_text(manifest.get("kace")),
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
