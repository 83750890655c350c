"""One frozen configuration: defaults < preset < profile < file < environment < flags. Each value knows its source.

A profile is how a tree is learned and read; a tree remembers its own. Nothing else reads the environment.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SecretStr,
    ValidationError,
)

from kace.answers.kinds import MATHEMATICS, AnswerKind, Subject
from kace.cards.store import tree_path
from kace.errors import UsageError
from kace.files import read_plain
from kace.ladder.tiers import PRESETS, TierName, TierSampling, default_preset
from kace.models.budget import Caps, Price
from kace.redact import public_url

CONFIG_FILE = "kace.toml"
ENV_PREFIX = "KACE_"
FLEX_TIMEOUT = 1800.0  # such a call may wait long for its turn
SHARED_ENV = {
    "OPENAI_API_KEY": "api_key",
    "OPENAI_BASE_URL": "base_url",
    "ANTHROPIC_API_KEY": "anthropic_api_key",
    "ANTHROPIC_BASE_URL": "anthropic_base_url",
    "HF_ENDPOINT": "hub",
}
"""Variables other tools use too; the same setting under our own prefix wins over them."""

PROFILE_FILE = (
    "profile.toml"  # what a tree remembers of how it was learned, in its directory
)
PROFILES = {
    path.stem: path
    for path in sorted(Path(__file__).with_name("profiles").glob("*.toml"))
}
"""The named profiles: how the published gains were measured, and the paper's way."""

Source = Literal["default", "preset", "profile", "file", "env", "flag"]


Positive = Annotated[int, Field(ge=1)]
Tokens = Annotated[int, Field(ge=1, le=1_000_000)]
Temperature = Annotated[float, Field(ge=0, le=2)]
Urls = Annotated[
    str,
    BeforeValidator(
        lambda given: ",".join(map(str, given)) if isinstance(given, list) else given
    ),
]
"""An address, or those of several servers of one model: a list, or separated by commas."""


class RetrievalConfig(BaseModel):
    """How a tree is read. The defaults are what the published gains were measured with."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # Who names a problem's domain: the model in a call, the registry's words, or the most relevant card.
    router: Literal["model", "words", "cards"] = "cards"
    # What makes a card relevant: words rare in its tree; or words rare in everyday problems, and nearness in meaning.
    relevance: Literal["tree", "background"] = "tree"
    # A card with demonstrations is shown only where its relevance score reaches this. 0 shows the whole block.
    relevance_threshold: Annotated[float, Field(ge=0, le=100)] = 2.0
    skip_threshold: Annotated[float, Field(ge=0, le=100)] | None = (
        None  # for a card to skip ES; left out, the same
    )
    ranking: Literal["words", "meaning"] = (
        "words"  # how a block is ranked: BM25, or embeddings
    )
    max_cards: Positive | None = (
        None  # cards an attempt reads at most: the best-ranked of its block
    )
    max_card_tokens: Positive = 5_000  # a larger block is ranked and cut to this
    # After the instructions, as is a card without demonstrations; before the problem; or as few-shot demonstrations.
    placement: Literal["instructions", "problem", "demonstrations"] = "demonstrations"
    # Beyond the paper: where a card covers a problem, skip ES, or make its attempts and never exit there.
    es_policy: Literal["locked", "skip", "no-exit"] = "locked"
    refine_domain: bool = (
        False  # route again after a failed MS, with its attempts in view
    )
    # Whose instructions attempts and classifier get: ours, or the paper's tier roles, lenses and JSON reply.
    prompts: Literal["default", "paper"] = "default"


class Draw(BaseModel):
    """The sampling of one tier, as a file may set it; what is left out comes from the preset."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    temperature: Temperature | None = None
    max_tokens: Tokens | None = None


class Config(BaseModel):
    """Everything a run depends on but the problems."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    preset: str
    base_url: Urls | None = None  # for openai/ models
    api_key: SecretStr | None = Field(default=None, exclude=True)
    anthropic_base_url: (
        Annotated[Urls, PlainSerializer(lambda urls: first_url(urls))] | None
    ) = None
    anthropic_api_key: SecretStr | None = Field(default=None, exclude=True)
    # Writes and judges cards, and gathers facts for synthesis. Manifests name it only where a solve depends on it.
    teacher: str | None = Field(default=None, exclude=True)
    teacher_base_url: Urls | None = Field(default=None, exclude=True)
    teacher_api_key: SecretStr | None = Field(default=None, exclude=True)
    teacher_max_tokens: Tokens = Field(
        default=16_000, exclude=True
    )  # must leave room in the context of its server
    serve_key: SecretStr | None = Field(
        default=None, exclude=True
    )  # what clients of `kace serve` must show
    working: bool = Field(
        default=True, exclude=True
    )  # `kace serve` gives the winning attempt's solution, not its box
    exchange_wait: bool = Field(
        default=True, exclude=True
    )  # for replies not there yet, or stop and name the missing
    seed: Annotated[int, Field(ge=0)] = 0
    temperature: Temperature | None = None  # overrides the temperature of every tier
    max_tokens: Tokens | None = None  # overrides the token cap of every tier
    sampling: dict[TierName, Draw] = Field(default_factory=dict)
    early_stop: bool = False
    # What MS and HS read from, a path or `starter`; without one, the ladder climbs on the problem alone.
    tree: Path | None = None
    retrieval: RetrievalConfig = RetrievalConfig()  # how the tree is read
    profile: str | None = Field(
        default=None, exclude=True
    )  # a name or a TOML file; left out, the tree's own
    problem_texts: bool = Field(
        default=True, exclude=True
    )  # keep problem texts in the run directory
    synthesis: bool = False  # where HS fails, the teacher gathers what its attempts agree on, to finish from
    max_connections: Annotated[int, Field(ge=1, le=10_000)] | None = (
        None  # left out, it adapts to the provider
    )
    timeout: Annotated[float, Field(gt=0)] = (
        600.0  # seconds for one call, all its retries included
    )
    service_tier: Literal["auto", "default", "flex", "priority"] | None = Field(
        default=None, exclude=True
    )
    """What openai/ models are asked for: flex is cheaper and slower, priority dearer and faster."""
    max_calls: Positive | None = None
    max_usd: Annotated[float, Field(gt=0)] | None = None
    prices: dict[str, Price] = Field(default_factory=dict)
    # Attempts as jobs of the provider's batch API: cheaper, within a day. None of it changes what is found.
    batch: bool = Field(default=False, exclude=True)
    batch_wait: bool = Field(
        default=True, exclude=True
    )  # for the jobs to end, or submit, collect what has and stop
    batch_retry: Literal["live", "batch"] = Field(
        default="live", exclude=True
    )  # how, what a job did not answer
    batch_window: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=10_000, exclude=True
    )  # problems open at once
    batch_size: Positive | None = Field(
        default=None, exclude=True
    )  # requests a job has at most; else the provider's
    batch_ahead: bool = Field(
        default=False, exclude=True
    )  # MS in the job of ES, before anybody knows who needs it
    threads: Annotated[int, Field(ge=1, le=512)] | None = (
        None  # of the engine; left out, chosen for the machine
    )
    slots: Annotated[int, Field(ge=1, le=64)] | None = (
        None  # attempts the embedded engine decodes side by side
    )
    ray: str | None = Field(
        default=None, exclude=True
    )  # a Ray cluster to solve on: auto, or its address
    ray_cpus: Annotated[float, Field(ge=0)] = Field(
        default=1.0, exclude=True
    )  # of each worker
    ray_gpus: Annotated[float, Field(ge=0)] = Field(default=0.0, exclude=True)
    ray_workers: Positive | None = Field(
        default=None, exclude=True
    )  # left out, as many as the cluster has room for
    cache: bool = Field(
        default=True, exclude=True
    )  # keep finished calls on disk and never pay for one twice
    cache_dir: Path = Field(default=Path(), exclude=True)
    hub: str = Field(default="https://huggingface.co", exclude=True)
    data_dir: Path | None = Field(default=None, exclude=True)
    """A folder with the published data sets' files; left out, they are fetched and kept."""
    fields: dict[Annotated[str, Field(pattern="^(problem|answer|id|domain)$")], str] = (
        Field(default_factory=dict, exclude=True)
    )
    """Where a JSONL file keeps a field, as in `problem = "question"`."""
    # What problems are about, and how their answers are read. Manifests name what is not at its default.
    subject: Annotated[
        str, Field(max_length=80, pattern=r"^[^\s<>{}`]([^<>{}`\n]*[^\s<>{}`])?$")
    ] = Field(default=MATHEMATICS.name, exclude=True)
    answers: AnswerKind = Field(default=MATHEMATICS.answers, exclude=True)
    tolerance: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=MATHEMATICS.tolerance, exclude=True
    )
    # Beyond the paper, and off: see docs/concepts.md. Manifests name what is not at its default, and the calibration.
    logprobs: bool = Field(
        default=False, exclude=True
    )  # record how sure the model was of each attempt
    vote: Literal["majority", "confidence"] = Field(default="majority", exclude=True)
    es_exit: Literal["agreed", "confident"] = Field(default="agreed", exclude=True)
    confidence_from: Path | None = Field(
        default=None, exclude=True
    )  # the training run that calibrates both
    sources: dict[str, Source] = Field(default_factory=dict, exclude=True)

    def source(self, name: str) -> Source:
        """Where a value came from."""
        return self.sources.get(name, "default")

    @property
    def about(self) -> Subject:
        """The subject, with how its answers are read."""
        return Subject(self.subject, self.answers, self.tolerance)

    @property
    def asks_logprobs(self) -> bool:
        """Whether calls ask for log-probabilities: to record them, or because a policy needs them."""
        return self.logprobs or self.vote == "confidence" or self.es_exit == "confident"

    @property
    def secrets(self) -> dict[str, SecretStr]:
        """The keys that were given, by the names of their settings."""
        return {name: value for name, value in self if isinstance(value, SecretStr)}

    def tier_sampling(self) -> dict[TierName, TierSampling]:
        """The sampling of each tier: the preset's, then the file's per tier, then the overrides for all."""
        every = Draw(temperature=self.temperature, max_tokens=self.max_tokens)
        resolved = {}
        for tier, base in PRESETS[self.preset].sampling.items():
            draws = (self.sampling.get(tier, Draw()), every)
            given = {
                name: value
                for draw in draws
                for name, value in draw
                if value is not None
            }
            resolved[tier] = replace(base, **given)
        return resolved

    def caps(self) -> Caps:
        """The caps on calls and money."""
        return Caps(self.max_calls, self.max_usd)

    def for_teacher(self) -> Config:
        """The configuration that opens the teacher. A key goes nowhere but to the server it was given for."""
        if self.teacher is None:
            raise UsageError(
                "no teacher is named",
                fix="give --teacher, or set KACE_TEACHER or `teacher` in kace.toml",
            )
        update: dict[str, object] = {"model": self.teacher}
        if self.teacher_base_url is not None:
            update |= {
                "base_url": self.teacher_base_url,
                "anthropic_base_url": self.teacher_base_url,
            }
        if self.teacher_base_url is not None or self.teacher_api_key is not None:
            update |= {
                "api_key": self.teacher_api_key,
                "anthropic_api_key": self.teacher_api_key,
            }
            update["sources"] = {
                **self.sources,
                "api_key": self.source("teacher_api_key"),
            }
        return self.model_copy(update=update)


def base_urls(urls: str | None) -> tuple[str, ...]:
    """The addresses that a setting lists. A password may hold a comma."""
    return tuple(
        url.strip() for url in re.split(r",(?=\s*https?://)", urls or "") if url.strip()
    )


def first_url(urls: str) -> str:
    """The address that names the server in manifests, without credentials: the first."""
    return public_url(next(iter(base_urls(urls)), urls))


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
        (
            "flag",
            {name: value for name, value in (flags or {}).items() if value is not None},
        ),
    ]
    values: dict[str, object] = {"cache_dir": user_cache(env)}
    retrieval: dict[str, object] = {}
    sources: dict[str, Source] = {}
    for source, layer in layers:
        for name, value in layer.items():
            if name == "retrieval" and isinstance(value, Mapping):
                retrieval |= value
                sources |= {f"retrieval.{key}": source for key in value}
            elif name in RetrievalConfig.model_fields:
                retrieval[name], sources[f"retrieval.{name}"] = value, source
            elif name in Config.model_fields and name != "sources":
                values[name], sources[name] = value, source
            else:
                unknown = f"unknown setting '{name}' from {source}"
                near = _nearest(
                    name, (*Config.model_fields, *RetrievalConfig.model_fields)
                )
                raise UsageError(
                    unknown + near, fix="see docs/quickstart.md for the settings"
                )
    if values.get("tree"):
        values["tree"] = tree_path(str(values["tree"]))
    chosen = profile_of(values.get("profile"), values.get("tree")).get("retrieval", {})
    sources = {**{f"retrieval.{key}": "profile" for key in chosen}, **sources}
    values["retrieval"] = {**chosen, **retrieval}
    preset = str(
        values.setdefault("preset", default_preset(str(values.get("model", "local/"))))
    )
    if preset not in PRESETS:
        raise UsageError(
            f"unknown preset '{preset}'{_nearest(preset, PRESETS)}",
            fix="choose a known preset",
        )
    if values.get("service_tier") == "flex":
        values.setdefault("timeout", FLEX_TIMEOUT)
    if "model" not in values:
        values["model"], sources["model"] = PRESETS[preset].model, "preset"
    try:
        return Config.model_validate({**values, "sources": sources})
    except ValidationError as error:
        raise UsageError(
            _explain(error, sources), fix="correct the value and run again"
        ) from None


def profile_of(name: object, tree: object = None) -> Mapping[str, Mapping[str, object]]:
    """The sections of a profile: the one named, else the one a tree or its snapshot remembers, else the default.

    A tree that is a file, NAME.jsonl, remembers its own in NAME.toml beside it.
    """
    place = Path(str(tree))
    kept = (
        place.parents[1] if place.parent.name == "snapshots" else place
    ) / PROFILE_FILE
    if place.is_file() and not kept.is_file():
        kept = place.with_suffix(".toml")
    chosen = str(name or (kept if tree and kept.is_file() else "default"))
    path = PROFILES.get(chosen, Path(chosen))
    if not path.is_file():
        raise UsageError(
            f"unknown profile '{name}'{_nearest(chosen, PROFILES)}",
            fix="or name a TOML file",
        )
    theirs = not name and chosen not in PROFILES  # a tree may be somebody else's
    found = _from_file(path, read_plain if theirs else Path.read_bytes)
    for section, values in found.items():
        if section not in ("retrieval", "learning") or not isinstance(values, dict):
            raise UsageError(
                f"{chosen}: '{section}' is no part of a profile",
                fix="use [retrieval] and [learning]",
            )
    return {
        section: values for section, values in found.items() if isinstance(values, dict)
    }


def profile_text(
    retrieval: Mapping[str, object], learning: Mapping[str, object]
) -> str:
    """A profile as TOML, every setting named. What is not set is left out."""

    def lines(values: Mapping[str, object]) -> list[str]:
        return [
            f"{key} = {json.dumps(value)}"
            for key, value in values.items()
            if value is not None
        ]

    return "\n".join(
        ("[retrieval]", *lines(retrieval), "", "[learning]", *lines(learning), "")
    )


def user_cache(env: Mapping[str, str] | None = None) -> Path:
    """The directory for weights and calls: `KACE_CACHE_DIR`, else `kace` under the user's cache directory."""
    env = os.environ if env is None else env  # noqa: TID251 - the one place
    if own := env.get(f"{ENV_PREFIX}CACHE_DIR"):
        return Path(own).expanduser()
    base = env.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kace"


def _from_file(
    path: Path | None, read: Callable[[Path], bytes] = Path.read_bytes
) -> Mapping[str, object]:
    if path is None:
        path = Path(CONFIG_FILE)
        if not path.is_file():
            return {}
    try:
        return tomllib.loads(read(path).decode())
    except OSError as error:
        raise UsageError(
            f"{path}: {(error.strerror or str(error)).lower()}", fix="name a TOML file"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path}: not TOML ({error})", fix="see docs/quickstart.md for an example"
        ) from None


def _from_env(env: Mapping[str, str]) -> Mapping[str, object]:
    shared = {name: env[var] for var, name in SHARED_ENV.items() if env.get(var)}
    prefix = len(ENV_PREFIX)
    return shared | {
        var[prefix:].lower(): value
        for var, value in env.items()
        if value and var.startswith(ENV_PREFIX)
    }


def _explain(error: ValidationError, sources: Mapping[str, Source]) -> str:
    first = error.errors()[0]
    source = sources.get(str(first["loc"][0]))
    where = f"'{'.'.join(map(str, first['loc']))}'" + (
        f" (from {source})" if source else ""
    )
    return f"setting {where}: {first['msg'][:1].lower()}{first['msg'][1:]}"


def _nearest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, known := sorted(known), n=1)
    return f"; did you mean '{close[0]}'?" if close else f"; known: {', '.join(known)}"
