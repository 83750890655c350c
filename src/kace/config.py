"""One frozen configuration: defaults < preset < file < environment < flags, and each value knows its source.

The only module that reads the environment.
"""

from __future__ import annotations

import difflib
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
from kace.retrieval.selector import SPEAKS
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

PAPER: Mapping[str, object] = MappingProxyType({"cards_at": "instructions", "min_relevance": 0.0})
"""How the paper reads a tree: the whole block, as text. Before these were settings, every tree was read so."""

T = TypeVar("T")
Source = Literal["default", "preset", "file", "env", "flag"]


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
    max_card_tokens: Annotated[int, Field(ge=1)] = 5_000
    """A larger block is ranked and cut to this."""
    max_cards: Annotated[int, Field(ge=1)] | None = None
    """Cards an attempt reads at most: the best-ranked of its block."""
    min_relevance: Annotated[float, Field(ge=0, le=100)] = SPEAKS
    """Cards with a worked example are left out unless the problem shares so many telling words with them: none may be
    left. 0 shows the block whatever fits."""
    rank_by: Literal["words", "meaning"] = "words"
    """How a block is ranked: BM25, or embeddings (an extra)."""
    place_by: Literal["model", "words", "cards"] = "model"
    """Who says which domain a problem is of: the solver's model in a call, the words it shares with the registry, or a
    card of the tree that speaks of it."""
    cards_at: Literal["instructions", "problem", "turns"] = "turns"
    """Where cards stand: after the instructions, where prefix caches reach them, right before the problem, or as turns
    of the conversation, in which the problems of their examples were asked and solved. A card without an example then
    stands after the instructions."""
    direct: bool = False
    """Beyond the paper: a problem that a card of the tree speaks of begins at MS."""
    refine_domain: bool = False
    """Classify again after a failed MS, with its attempts in view."""
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
    sources: dict[str, Source] = {}
    for source, layer in layers:
        for name, value in layer.items():
            if name not in Config.model_fields or name == "sources":
                raise UsageError(
                    f"unknown setting '{name}' from {source}{_nearest(name, Config.model_fields)}",
                    fix="see docs/quickstart.md for the settings",
                )
            values[name], sources[name] = value, source
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
