"""One frozen configuration: defaults < preset < profile < file < environment < flags. Each value knows its source.

A profile is how a tree is learned and read. A tree remembers the profile it was learned with, and is read by it unless
another is named. This is the only module that reads the environment.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, SecretStr, ValidationError

from kace.errors import UsageError
from kace.models.budget import Caps, Price
from kace.redact import public_url
from kace.solver.preset import PRESETS, TierSampling, default_preset
from kace.solver.tiers import TierName

CONFIG_FILE = "kace.toml"
ENV_PREFIX = "KACE_"
SHARED_ENV = {
    "OPENAI_API_KEY": "api_key",
    "OPENAI_BASE_URL": "base_url",
    "ANTHROPIC_API_KEY": "anthropic_api_key",
    "ANTHROPIC_BASE_URL": "anthropic_base_url",
    "HF_ENDPOINT": "hub",
}
"""Variables other tools use too; the same setting under our own prefix wins over them."""

PROFILE_FILE = "profile.toml"
"""What a tree remembers of how it was learned, in its directory."""

T = TypeVar("T")
Source = Literal["default", "preset", "profile", "file", "env", "flag"]


class RetrievalConfig(BaseModel):
    """How a tree is read. The defaults are what the published gains were measured with."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    router: Literal["model", "words", "cards"] = "cards"
    """Who names a problem's domain: the solver's model in a call, the words it shares with the registry, or the most
    relevant card of the tree (no call either)."""
    relevance_threshold: Annotated[float, Field(ge=0, le=100)] = 2.0
    """A card with demonstrations is shown only where its relevance score for the problem reaches this. 0 shows the
    whole block."""
    ranking: Literal["words", "meaning"] = "words"
    """How a block is ranked: BM25, or embeddings (an extra)."""
    max_cards: Annotated[int, Field(ge=1)] | None = None
    """Cards an attempt reads at most: the best-ranked of its block."""
    max_card_tokens: Annotated[int, Field(ge=1)] = 5_000
    """A larger block is ranked and cut to this."""
    placement: Literal["instructions", "problem", "demonstrations"] = "demonstrations"
    """Where cards are placed: after the instructions, before the problem, or as few-shot demonstrations. A card without
    demonstrations is then placed after the instructions."""
    es_policy: Literal["locked", "skip", "no-exit"] = "locked"
    """Beyond the paper: where a card covers a problem, skip ES, or make its attempts and never exit there."""
    refine_domain: bool = False
    """Route again after a failed MS, with its attempts in view."""


PROFILES: Mapping[str, Mapping[str, Mapping[str, object]]] = MappingProxyType(
    {
        "default": {"learning": {"epochs": 1, "add_runs": 1, "confident": True, "refine": 0, "impact_runs": 4}},
        "paper": {
            "retrieval": {"router": "model", "relevance_threshold": 0.0, "placement": "instructions"},
            "learning": {"examples": 0},
        },
    }
)
"""Named ways to learn and read a tree. What a profile leaves out is at the default of its class. `default` is what the
published gains were measured with; `paper` is the paper's loop and reading."""


class Draw(BaseModel):
    """The sampling of one tier, as a file may set it; what is left out comes from the preset."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None


class PriceEntry(BaseModel):
    """A user-owned price: USD per million tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: Annotated[float, Field(ge=0)]
    output: Annotated[float, Field(ge=0)]
    cached: Annotated[float, Field(ge=0)] | None = None
    written: Annotated[float, Field(ge=0)] | None = None


class Config(BaseModel):
    """Everything a run depends on but the problems."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    preset: str
    base_url: str | None = None
    """For openai/ models."""
    api_key: SecretStr | None = Field(default=None, exclude=True)
    anthropic_base_url: Annotated[str, PlainSerializer(public_url)] | None = None
    anthropic_api_key: SecretStr | None = Field(default=None, exclude=True)
    # A solve depends on the teacher only with synthesis, so manifests name it there; the learner records it by
    # `for_teacher`.
    teacher: str | None = Field(default=None, exclude=True)
    """The model that writes and judges cards when a tree is learned, and gathers facts for synthesis."""
    teacher_base_url: str | None = Field(default=None, exclude=True)
    teacher_api_key: SecretStr | None = Field(default=None, exclude=True)
    teacher_max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] = Field(default=16_000, exclude=True)
    """The token cap of its replies. A server whose context is no longer than this takes no request at all."""
    serve_key: SecretStr | None = Field(default=None, exclude=True)
    """What clients of `kace serve` must show."""
    exchange_wait: bool = Field(default=True, exclude=True)
    """Whether an exchange/ model waits for replies that are not there yet, or stops and says which are missing."""
    seed: Annotated[int, Field(ge=0)] = 0
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """Overrides the temperature of every tier."""
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Overrides the token cap of every tier."""
    sampling: dict[TierName, Draw] = Field(default_factory=dict)
    early_stop: bool = False
    tree: Path | None = None
    """The epistemic tree that MS and HS read from; without one, the ladder climbs on the problem alone."""
    retrieval: RetrievalConfig = RetrievalConfig()
    """How the tree is read."""
    profile: str | None = Field(default=None, exclude=True)
    """`default`, `paper`, or a TOML file with [retrieval] and [learning]; left out, the tree's own."""
    problem_texts: bool = Field(default=True, exclude=True)
    """Keep problem texts in the run directory."""
    synthesis: bool = False
    """Where HS fails its gate, the teacher gathers what its attempts agree on, and the solver finishes from it."""
    max_connections: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Fixes the number of calls under way; left out, it adapts to the provider."""
    timeout: Annotated[float, Field(gt=0)] = 600.0
    """Seconds for one call, all its retries included."""
    max_calls: Annotated[int, Field(ge=1)] | None = None
    max_usd: Annotated[float, Field(gt=0)] | None = None
    prices: dict[str, PriceEntry] = Field(default_factory=dict)
    threads: Annotated[int, Field(ge=1, le=512)] | None = None
    """Threads of the embedded engine; left out, chosen for the machine."""
    slots: Annotated[int, Field(ge=1, le=64)] | None = None
    """Attempts the embedded engine decodes side by side."""
    cache: bool = Field(default=True, exclude=True)
    """Keep finished calls on disk and never pay for one twice."""
    cache_dir: Path = Field(default=Path(), exclude=True)
    hub: str = Field(default="https://huggingface.co", exclude=True)
    sources: dict[str, Source] = Field(default_factory=dict, exclude=True)

    def source(self, name: str) -> Source:
        """Where a value came from."""
        return self.sources.get(name, "default")

    def tier_sampling(self) -> dict[TierName, TierSampling]:
        """The sampling of each tier: the preset's, then the file's per tier, then the overrides for all."""
        resolved = {}
        for tier, base in PRESETS[self.preset].sampling.items():
            draw = self.sampling.get(tier, Draw())
            resolved[tier] = TierSampling(
                temperature=_first(self.temperature, draw.temperature, base.temperature),
                max_tokens=_first(self.max_tokens, draw.max_tokens, base.max_tokens),
            )
        return resolved

    def caps(self) -> Caps:
        """The caps on calls and money."""
        return Caps(self.max_calls, self.max_usd)

    def price_table(self) -> dict[str, Price]:
        """The user's prices by model name."""
        return {name: Price(**entry.model_dump()) for name, entry in self.prices.items()}

    def for_teacher(self) -> Config:
        """The configuration that opens the teacher.

        Without an address of its own, the teacher is asked where its provider's models are asked anyway. With one, it
        has only a key of its own too: a key goes nowhere but to the server it was given for.
        """
        if self.teacher is None:
            raise UsageError("no teacher is named", fix="give --teacher, or set KACE_TEACHER or `teacher` in kace.toml")
        update: dict[str, object] = {"model": self.teacher}
        if self.teacher_base_url is not None:
            update |= {"base_url": self.teacher_base_url, "anthropic_base_url": self.teacher_base_url}
        if self.teacher_base_url is not None or self.teacher_api_key is not None:
            update |= {"api_key": self.teacher_api_key, "anthropic_api_key": self.teacher_api_key}
            update["sources"] = {**self.sources, "api_key": self.source("teacher_api_key")}
        return self.model_copy(update=update)


def load_config(
    flags: Mapping[str, object] | None = None,
    *,
    file: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Config:
    """Resolve the configuration. Flags that are `None` were not given; unknown names get the nearest known one."""
    env = os.environ if env is None else env  # noqa: TID251 - the one place
    layers: list[tuple[Source, Mapping[str, object]]] = [
        ("file", _from_file(file)),
        ("env", _from_env(env)),
        ("flag", {name: value for name, value in (flags or {}).items() if value is not None}),
    ]
    values: dict[str, object] = {"cache_dir": user_cache(env)}
    retrieval: dict[str, object] = {}
    sources: dict[str, Source] = {}
    for source, layer in layers:
        for name, value in layer.items():
            if name in RetrievalConfig.model_fields:
                retrieval[name], sources[f"retrieval.{name}"] = value, source
            elif name == "retrieval" and isinstance(value, Mapping):
                retrieval |= value
                sources |= {f"retrieval.{key}": source for key in value}
            elif name in Config.model_fields and name != "sources":
                values[name], sources[name] = value, source
            else:
                known = {**Config.model_fields, **RetrievalConfig.model_fields}
                raise UsageError(
                    f"unknown setting '{name}' from {source}{_nearest(name, known)}",
                    fix="see docs/quickstart.md for the settings",
                )
    chosen = profile_of(_text_or_none(values.get("profile")), values.get("tree")).get("retrieval", {})
    sources = {**{f"retrieval.{key}": "profile" for key in chosen}, **sources}
    values["retrieval"] = {**chosen, **retrieval}
    if "preset" not in values:
        values["preset"] = default_preset(_text_or_none(values.get("model")))
    preset = str(values["preset"])
    if preset not in PRESETS:
        raise UsageError(f"unknown preset '{preset}'{_nearest(preset, PRESETS)}", fix="choose a known preset")
    if "model" not in values:
        values["model"], sources["model"] = PRESETS[preset].model, "preset"
    try:
        return Config.model_validate({**values, "sources": sources})
    except ValidationError as error:
        raise UsageError(_explain(error, sources), fix="correct the value and run again") from None


def profile_of(name: str | None, tree: object = None) -> Mapping[str, Mapping[str, object]]:
    """The sections of a profile: the one named, else the one a tree remembers, else the default."""
    if name is not None and name in PROFILES:
        return PROFILES[name]
    path = Path(name) if name else _remembered(Path(str(tree))) if tree else None
    if path is None:
        return PROFILES["default"]
    if name and not path.is_file():
        raise UsageError(f"unknown profile '{name}'{_nearest(name, PROFILES)}", fix="or name a TOML file")
    found = _from_file(path)
    for section, values in found.items():
        if section not in ("retrieval", "learning") or not isinstance(values, dict):
            raise UsageError(f"{path}: '{section}' is no part of a profile", fix="use [retrieval] and [learning]")
    return {section: values for section, values in found.items() if isinstance(values, dict)}


def _remembered(tree: Path) -> Path | None:
    """The profile of a tree's directory, also for one of its snapshots."""
    places = (tree / PROFILE_FILE, tree.parent.parent / PROFILE_FILE if tree.parent.name == "snapshots" else tree)
    return next((place for place in places if place.name == PROFILE_FILE and place.is_file()), None)


def profile_text(retrieval: Mapping[str, object], learning: Mapping[str, object]) -> str:
    """A profile as TOML, every setting named. What is not set is left out."""

    def lines(values: Mapping[str, object]) -> list[str]:
        return [f"{key} = {json.dumps(value)}" for key, value in values.items() if value is not None]

    return "\n".join(("[retrieval]", *lines(retrieval), "", "[learning]", *lines(learning), ""))


def user_cache(env: Mapping[str, str] | None = None) -> Path:
    """The directory for weights and calls: `KACE_CACHE_DIR`, else `kace` under the user's cache directory."""
    env = os.environ if env is None else env  # noqa: TID251 - the one place
    if own := env.get(f"{ENV_PREFIX}CACHE_DIR"):
        return Path(own).expanduser()
    base = env.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kace"


def _from_file(path: Path | None) -> Mapping[str, object]:
    if path is None:
        path = Path(CONFIG_FILE)
        if not path.is_file():
            return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {(error.strerror or str(error)).lower()}", fix="name a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not TOML ({error})", fix="see docs/quickstart.md for an example") from None


def _from_env(env: Mapping[str, str]) -> Mapping[str, object]:
    values: dict[str, object] = {name: env[var] for var, name in SHARED_ENV.items() if env.get(var)}
    for var, value in env.items():
        if var.startswith(ENV_PREFIX) and value:
            values[var.removeprefix(ENV_PREFIX).lower()] = value
    return values


def _explain(error: ValidationError, sources: Mapping[str, Source]) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    source = sources.get(str(first["loc"][0])) if first["loc"] else None
    message = first["msg"].removeprefix("Value error, ")
    if not where:
        return message
    return f"setting '{where}'{f' (from {source})' if source else ''}: {message[:1].lower()}{message[1:]}"


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean '{close[0]}'?" if close else f"; known: {', '.join(sorted(known))}"


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _first(*values: T | None) -> T:
    return next(value for value in values if value is not None)
