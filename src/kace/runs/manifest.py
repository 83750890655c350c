"""The manifest of a run, `run.json`: what produced it.

A resumed run must match its manifest. Reading one back is lenient.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from kace.config import RECORDED, Config, RetrievalConfig, base_urls
from kace.errors import DataError, UsageError, public_url
from kace.files import read_plain, readable, write_atomic
from kace.ladder.prompt import template_hashes

if TYPE_CHECKING:
    from kace.cards.tree import EpistemicTree

RUN_VERSION = 1
HELD = ("v", "config", "prompts", "tree", "system", "data", "shard")
"""The parts that must stay the same when a run is opened again. Seeds may be added."""
PACE = frozenset({"timeout", "max_connections"})
"""Settings of how fast a run goes, which may change."""
TEACHING = {"teacher", "teacher_base_url", "teacher_max_tokens"}
"""Settings of runs in which the teacher takes part."""
SETTINGS = {**Config.model_fields, **RetrievalConfig.model_fields}
DEFAULTS = {name: field.get_default() for name, field in SETTINGS.items()}
SHOWN = 9  # differing settings that an error names
_RESTORE = "restore it, or remove it and repeat the command that made the run: it resumes"


class Manifest:
    """What produced a run, as its run.json records it. Missing parts read as empty."""

    def __init__(self, content: Mapping[str, object] | None = None) -> None:
        """Take the content of a run.json."""
        self.content = content or {}
        self.kace = self._text("", "kace")
        self.system = self._text("system", "name")
        self.model = self._text("config", "model")
        self.preset = self._text("config", "preset")
        self.data = self._text("data", "name")
        self.split = self._text("data", "split")
        self.data_hash = self._text("data", "hash")
        self.problems = self._number("data", "problems")
        self.tree_hash = self._text("tree", "hash")
        self.tree_cards = self._number("tree", "cards")

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Read a manifest; `DataError` if it is missing, malformed, or too new."""
        return cls(_read(path))

    def part(self, name: str) -> Mapping[str, object]:
        """Return a part such as `config`, or the whole; empty if the manifest has none."""
        part = self.content.get(name) if name else self.content
        return part if isinstance(part, dict) else {}

    def _text(self, part: str, name: str) -> str:
        value = self.part(part).get(name)
        return value if isinstance(value, str) else ""

    def _number(self, part: str, name: str) -> int | None:
        value = self.part(part).get(name)
        return value if type(value) is int else None

    def facts(self) -> dict[str, object]:
        """Return what is known of the run by name, without the empty parts."""
        found = {name: value for name, value in vars(self).items() if value}
        found.pop("content", None)
        return found


def manifest_of(
    config: Config, tree: EpistemicTree | None = None
) -> dict[str, object]:
    """Return what a run depends on, free of secrets. A tree counts by its content."""
    recorded = RECORDED | TEACHING if config.synthesis else RECORDED
    settings = config.model_dump(
        mode="json", exclude_none=True, include=recorded
    )
    for name, value in settings.items():
        if name.endswith("base_url"):
            first, *_ = (*base_urls(value), "")
            settings[name] = public_url(first)
    if config.asks_logprobs:
        settings["logprobs"] = True
    settings["sampling"] = {}
    for tier, draw in config.tier_sampling().items():
        settings["sampling"][tier] = asdict(draw)
    size = {"hash": tree.content_hash(), "cards": len(tree)} if tree else None
    return {
        "v": RUN_VERSION,
        "kace": version("kace"),
        "python": platform.python_version(),
        "config": settings,
        "tree": size,
        "sources": dict(config.sources),
        "prompts": solver_prompts(),
    }


def solver_prompts() -> dict[str, str]:
    """Return the hashes of the templates that a solve may use."""
    found: dict[str, str] = {}
    for part in ("", "paper", "subject"):
        found |= template_hashes(part)
    return found


def default_folder(
    name: str,
    manifest: dict[str, object],
    source: bytes,
) -> Path:
    """Return where a run goes by default: a name that the same command finds again."""
    parts = [manifest["config"], manifest["prompts"], manifest["tree"]]
    settings = json.dumps(parts, sort_keys=True).encode()
    digest = hashlib.sha256(settings + source).hexdigest()
    return Path("runs") / f"{name}-{digest[:10]}"


def hold_to(
    path: Path, manifest: dict[str, object], names: tuple[str, ...]
) -> None:
    """Write a manifest if there is none; refuse one whose named parts differ."""
    if not path.exists():
        text = json.dumps(manifest, indent=2, ensure_ascii=False)
        write_atomic(path, text + "\n")
        return
    found = differences(_read(path), manifest, names)
    if found:
        raise UsageError(
            f"{path.parent} holds a run with another {', another '.join(found)}",
            fix="choose another folder, or repeat the settings of that run",
        )


def differences(
    before: Mapping[str, object],
    manifest: Mapping[str, object],
    names: tuple[str, ...],
) -> list[str]:
    """Describe how the named parts of two manifests differ.

    A setting that `before` does not have counts as its default, and a prompt as the
    same, so that a run resumes after an upgrade that added some.
    """
    found = []
    for name in names:
        was = before.get(name)
        now = manifest.get(name)
        if not isinstance(was, dict) or not isinstance(now, dict):
            if was != now:
                found.append(name)
            continue
        was = _flat(was)
        now = _flat(now)
        missing = {"prompts": now, "config": DEFAULTS}.get(name, {})
        changes = []
        for key in sorted({*was, *now} - PACE):
            old = was.get(key, missing.get(key))
            new = now.get(key, missing.get(key))
            if old != new:
                changes.append(f"'{key}' ({old!r}, now {new!r})")
        if changes:
            found.append(f"{name.rstrip('s')} {', '.join(changes[:SHOWN])}")
    return found


def _flat(part: Mapping[str, object]) -> dict[str, object]:
    """Return the retrieval settings among the others, so that differences name them."""
    found = dict(part)
    retrieval = found.pop("retrieval", None)
    return {**found, **retrieval} if isinstance(retrieval, dict) else found


def _read(path: Path) -> Mapping[str, object]:
    """Read the JSON of a manifest."""
    fix = "give the folder of a run, which has run.json in it"
    try:
        with readable(path, fix):
            found = json.loads(read_plain(path))
    except (ValueError, RecursionError):
        raise DataError(f"{path}: not JSON", fix=_RESTORE) from None
    if not isinstance(found, dict):
        raise DataError(f"{path}: not a run's manifest", fix=_RESTORE)
    written = found.get("v")
    if isinstance(written, int) and written > RUN_VERSION:
        what = f"written by a newer kace (run version {written},"
        raise DataError(
            f"{path}: {what} this one reads {RUN_VERSION})", fix="upgrade kace"
        )
    return found
