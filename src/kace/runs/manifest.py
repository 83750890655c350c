"""The manifest of a run, `run.json`: what produced it. Held to when a run is resumed, and read back leniently."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from kace.answers.kinds import MATHEMATICS
from kace.config import Config, RetrievalConfig, base_urls, first_url
from kace.errors import DataError, UsageError, public_url
from kace.files import MAX_BYTES, Unreadable, read_plain, write_atomic
from kace.ladder.confidence import open_policy
from kace.ladder.prompt import subject_of, template_hashes

if TYPE_CHECKING:
    from kace.cards.tree import EpistemicTree

RUN_VERSION = 1


@dataclass(frozen=True)
class Manifest:
    """What produced a run, as its run.json records it. Missing parts read as empty."""

    content: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, most: int = MAX_BYTES) -> Manifest:
        """Read a manifest; `DataError` if it is missing, malformed, or too new."""
        return cls(read_manifest(path, most))

    def part(self, name: str) -> Mapping[str, object]:
        """Return a part such as `config`; empty if the manifest has none."""
        return manifest_part(self.content, name)

    def text(self, part: str, name: str) -> str:
        """Return a text of a part; empty if there is none."""
        return manifest_text(self.part(part).get(name))

    def _number(self, part: str, name: str) -> int | None:
        value = self.part(part).get(name)
        return value if type(value) is int else None

    @property
    def system(self) -> str:
        """The name of the system."""
        return self.text("system", "name")

    @property
    def model(self) -> str:
        """The solver."""
        return self.text("config", "model")

    @property
    def preset(self) -> str:
        """The sampling preset."""
        return self.text("config", "preset")

    @property
    def data(self) -> str:
        """The name of the data set."""
        return self.text("data", "name")

    @property
    def split(self) -> str:
        """The split of the data set."""
        return self.text("data", "split")

    @property
    def data_hash(self) -> str:
        """The content hash of the problems."""
        return self.text("data", "hash")

    @property
    def problems(self) -> int | None:
        """The number of problems of the data set."""
        return self._number("data", "problems")

    @property
    def tree_hash(self) -> str:
        """The content hash of the tree."""
        return self.text("tree", "hash")

    @property
    def tree_cards(self) -> int | None:
        """The number of cards of the tree."""
        return self._number("tree", "cards")

    @property
    def kace(self) -> str:
        """The version of kace that made the run."""
        return manifest_text(self.content.get("kace"))

    def facts(self) -> dict[str, object]:
        """Return what is known of the run by name, without the empty parts."""
        names = (
            "system",
            "model",
            "preset",
            "data",
            "split",
            "data_hash",
            "problems",
            "tree_hash",
            "tree_cards",
            "kace",
        )
        found = {name: getattr(self, name) for name in names}
        return {name: value for name, value in found.items() if value}


HELD = ("v", "config", "prompts", "tree", "system", "data", "shard")
"""What must be the same whenever a run is opened. More seeds may be added to it."""
_ANEW = "restore it, or remove it and repeat the command that made the run: it goes on"


def hold_to(
    path: Path,
    manifest: dict[str, object],
    names: tuple[str, ...],
    defaults: Mapping[str, object] | None = None,
) -> None:
    """Write a manifest where there is none; refuse one that differs in what the named parts hold."""
    if not path.exists():
        write_atomic(path, json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
        return
    if told := differences(read_manifest(path), manifest, names, defaults):
        what = f"{path.parent} holds a run with another {', another '.join(told)}"
        raise UsageError(
            what, fix="choose another folder, or repeat the settings of that run"
        )


def differences(
    before: Mapping[str, object],
    manifest: Mapping[str, object],
    names: tuple[str, ...],
    defaults: Mapping[str, object] | None = None,
) -> list[str]:
    """What the named parts of two manifests hold otherwise, in words.

    A setting that came after one was written stood at its default (of `settings`, as given), a prompt was not there.
    """
    found = []
    for name in names:
        was = before.get(name)
        now = manifest.get(name)
        if name == "config" and isinstance(was, dict) and isinstance(now, dict):
            # One that no longer counts is let go.
            was = _flat(was)
            now = _flat(now)
            was = {key: was.get(key, _default(key)) for key in {*now, *was} - PACE}
        if name == "prompts" and isinstance(
            was, dict
        ):  # trainings had them by part of the folder
            parts = [part for part in was.values() if isinstance(part, dict)]
            was = {
                key: digest for part in parts or [was] for key, digest in part.items()
            }
        if (
            name in ("settings", "prompts")
            and isinstance(was, dict)
            and isinstance(now, dict)
        ):
            later = (
                now
                if name == "prompts"
                else {
                    key: value for key, value in (defaults or {}).items() if key in now
                }
            )
            was = {**later, **was}
        if (
            name == "data" and isinstance(was, dict) and was.get("name") == "math_hard"
        ):  # its first spelling
            was = {**was, "name": "math-hard"}
        if was != now:
            found.append(_difference(name, was, now))
    return found


PACE = frozenset(
    {"timeout", "max_connections"}
)  # how fast a run goes, not what it finds


NAMED = (
    "subject",
    "answers",
    "tolerance",
    "vote",
    "es_exit",
)  # only where they are not the default


def _flat(config: Mapping[str, object]) -> dict[str, object]:
    """The retrieval settings among the others, so that a difference names the setting."""
    retrieval = config.get("retrieval")
    rest = {key: value for key, value in config.items() if key != "retrieval"}
    return {**rest, **retrieval} if isinstance(retrieval, dict) else rest


def _default(name: str) -> object:
    field = Config.model_fields.get(name) or RetrievalConfig.model_fields.get(name)
    return None if field is None else field.get_default()


def manifest_of(config: Config, tree: EpistemicTree | None = None) -> dict[str, object]:
    """What a run depends on, free of secrets. A tree counts by its content, wherever it lies."""
    url = {"base_url": first_url(config.base_url)} if config.base_url else {}
    endpoints = [public_url(url) for url in base_urls(config.base_url)]
    named = {
        name: value
        for name in NAMED
        if (value := getattr(config, name)) != _default(name)
    }
    if config.asks_logprobs:
        named["logprobs"] = True
    if policy := open_policy(config):
        named["confidence"] = policy.calibration.model_dump()
    unmeant = {"max_calls", "max_usd", "prices", "tree", *PACE}
    return {
        "v": RUN_VERSION,
        "kace": version("kace"),
        "python": platform.python_version(),
        "config": {
            **config.model_dump(mode="json", exclude_none=True, exclude=unmeant),
            **url,
            **(_teacher(config) if config.synthesis else {}),
            **named,
            "sampling": {
                tier: asdict(draw) for tier, draw in config.tier_sampling().items()
            },
        },
        "tree": {"hash": tree.content_hash(), "cards": len(tree)} if tree else None,
        "sources": dict(config.sources),
        **(
            {"endpoints": endpoints} if len(endpoints) > 1 else {}
        ),  # how fast a run goes, not what it finds
        "prompts": solver_prompts(config)
        | (template_hashes("subject") if subject_of(config) != MATHEMATICS else {}),
    }


def solver_prompts(config: Config) -> dict[str, str]:
    """The hashes of the templates that a solve may use."""
    used = {
        "": True,
        "paper": config.retrieval.prompts == "paper",
    }
    return {
        name: digest
        for part in used
        if used[part]
        for name, digest in template_hashes(part).items()
    }


def read_manifest(path: Path, most: int = MAX_BYTES) -> Mapping[str, object]:
    """A manifest, of at most so many bytes; `DataError` where it is missing, is none, or a newer kace wrote it."""
    try:
        found = json.loads(read_plain(path, most))
    except Unreadable:
        raise
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError(
            f"{path}: {reason}",
            fix="give the folder of a run, which has run.json in it",
        ) from None
    except (ValueError, RecursionError):
        raise DataError(f"{path}: not JSON", fix=_ANEW) from None
    if not isinstance(found, dict):
        raise DataError(f"{path}: not a run's manifest", fix=_ANEW)
    version = found.get("v")
    if isinstance(version, int) and version > RUN_VERSION:
        raise DataError(
            f"{path}: written by a newer kace (run version {version}, this one reads {RUN_VERSION})",
            fix="upgrade kace",
        )
    return found


def manifest_part(manifest: Mapping[str, object], name: str) -> Mapping[str, object]:
    """A part of a manifest; empty where it has none of that name."""
    part = manifest.get(name)
    return part if isinstance(part, dict) else {}


def manifest_text(value: object) -> str:
    """A value as text; nothing where it is none."""
    return value if isinstance(value, str) else ""


def default_folder(name: str, manifest: dict[str, object], source: bytes) -> Path:
    """Where a run goes when nobody says: a name that the same command finds again."""
    settings = json.dumps(
        [manifest["config"], manifest["prompts"], manifest["tree"]], sort_keys=True
    ).encode()
    return Path("runs") / f"{name}-{hashlib.sha256(settings + source).hexdigest()[:10]}"


def _teacher(config: Config) -> dict[str, object]:
    """The teacher's settings, which a solve depends on only where the teacher takes part in it."""
    url = (
        {"teacher_base_url": first_url(config.teacher_base_url)}
        if config.teacher_base_url
        else {}
    )
    return {
        "teacher": config.teacher,
        **url,
        "teacher_max_tokens": config.teacher_max_tokens,
    }


def _difference(name: str, before: object, now: object) -> str:
    if isinstance(before, dict) and isinstance(now, dict):
        other = [
            key for key in sorted({*before, *now}) if before.get(key) != now.get(key)
        ]
        named = (
            other if name in ("config", "settings") else other[:1]
        )  # the rest is hashes, and lists of them
        told = (f"'{key}' ({before.get(key)!r}, now {now.get(key)!r})" for key in named)
        return f"{name.rstrip('s')} {', '.join(told)}"
    return name
