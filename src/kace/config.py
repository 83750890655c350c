"""One frozen configuration: defaults < preset < profile < file < environment < flags.

Each value records its source. A profile holds settings of learning and reading a tree;
a tree directory keeps the profile it was learned with. No other module reads the
environment, and this one imports nothing but errors and files.
"""

from __future__ import annotations

import difflib
import json
import logging
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlsplit

import pydantic
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    SecretStr,
    TypeAdapter,
    ValidationError,
)

from kace.errors import UsageError, public_url
from kace.files import DATA, read_plain, readable

log = logging.getLogger(__name__)
CONFIG_FILE = "kace.toml"
ENV_PREFIX = "KACE_"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
SHARED_ENV = {
    "OPENAI_API_KEY": "api_key",
    "OPENAI_BASE_URL": "base_url",
    "ANTHROPIC_API_KEY": "anthropic_api_key",
    "ANTHROPIC_BASE_URL": "anthropic_base_url",
    "HF_ENDPOINT": "hub",
}
"""Variables of other tools. The same setting under our own prefix wins over them."""

PROFILE_FILE = (
    "profile.toml"  # in a tree's directory: the profile it was learned with
)
PROFILES = {
    path.stem: path
    for path in sorted(Path(__file__).with_name("profiles").glob("*.toml"))
}
DEFAULT_PROFILE = "default"  # names the class defaults
PRICES = DATA / "prices.toml"
BUNDLED_TREES = (
    Path(__file__).parent / "cards" / "bundled"
)  # frozen, NAME.jsonl

AnswerKind = Literal["math", "text", "choice", "number"]
"""How answers are read: as mathematics, as text, as an option's letter, as a number."""

Source = Literal["default", "preset", "profile", "file", "env", "flag"]
Share = Annotated[float, Field(ge=0, le=1)]
Score = Annotated[float, Field(ge=0, le=100)]
Tokens = Annotated[int, Field(ge=1, le=1_000_000)]
Temperature = Annotated[float, Field(ge=0, le=2)]
LadderTier = Literal["ES", "MS", "HS", "FLAT"]
SubjectName = Annotated[
    str, Field(max_length=80, pattern=r"^[^\s<>{}`]([^<>{}`\n]*[^\s<>{}`])?$")
]
EsPolicy = Literal["locked", "skip", "try"]
Router = Literal["model", "words", "cards"]
VoteKind = Literal["majority", "confidence"]
ProblemField = Annotated[str, Field(pattern="^(problem|answer|id|domain)$")]


def _joined_urls(given: str | Iterable[object]) -> str:
    return given if isinstance(given, str) else ",".join(map(str, given))


Urls = Annotated[str, BeforeValidator(_joined_urls)]
"""An address, or several servers of one model: a list, or separated by commas."""


@pydantic.dataclasses.dataclass(
    frozen=True, slots=True, config=ConfigDict(extra="forbid")
)
class Price:
    """USD per million tokens."""

    input: NonNegativeFloat
    output: NonNegativeFloat
    cached: NonNegativeFloat | None = None  # cached input, if priced apart
    written: NonNegativeFloat | None = (
        None  # input written to a prompt cache, if priced apart
    )
    batch: Share = 0.5  # the share of all this that a call in a batch costs

    def cost(self, usage: Any, batch: bool = False) -> float:
        """Return the cost of a `Usage`, live or in a batch."""
        cached = self.input if self.cached is None else self.cached
        written = self.input if self.written is None else self.written
        fresh = usage.input - usage.cached - usage.written
        prompt = (
            fresh * self.input + usage.cached * cached + usage.written * written
        )
        usd: float = (prompt + usage.output * self.output) / 1e6
        return usd * self.batch if batch else usd


@dataclass(frozen=True, slots=True)
class Caps:
    """Limits on a whole run; `None` is no limit."""

    calls: int | None = None
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class TierSampling:
    """How one tier's attempts are drawn."""

    temperature: float
    max_tokens: int


class Preset(NamedTuple):
    """A model and the sampling of each tier, as a benchmark is run."""

    model: str
    sampling: Mapping[str, TierSampling]


PRESETS = TypeAdapter(dict[str, Preset]).validate_python(
    tomllib.loads((DATA / "presets.toml").read_text(encoding="utf-8"))
)
BENCHMARK_PRESETS = {
    "aime25": "aime25",
    "math-hard": "math-hard",
    "olymmath": "olymmath",
    "gsm8k": "math-hard",
}


def is_embedded(model: str | None) -> bool:
    """Whether a model is embedded, as the default is."""
    return model is None or model.startswith("local/")


def benchmark_preset(data: str, model: str | None) -> str | None:
    """Return the preset of a data set; an embedded model keeps its own, being far smaller."""
    known = BENCHMARK_PRESETS.get(data)
    return None if is_embedded(model) else known


class RetrievalConfig(BaseModel):
    """How a tree is read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # Names a problem's domain: a model call, the registry's words, or the most relevant card.
    router: Router = "cards"
    # A card with demonstrations is shown from this probability on that the problem is of
    # its kind; 0 shows the whole block.
    relevance_threshold: Score = 0.3
    # From this relevance on a card skips ES; left out, the same threshold.
    skip_threshold: Score | None = None
    # The most cards an attempt reads: the best-ranked of its block. Left out, two with
    # demonstrations and all others.
    max_cards: PositiveInt | None = None
    # A larger block is ranked and cut to this.
    max_card_tokens: PositiveInt = 5_000
    # After the instructions (always so for cards without demonstrations), or as few-shot
    # demonstrations.
    placement: Literal["instructions", "demonstrations"] = "demonstrations"
    # Beyond the paper, where a card covers the problem: `skip` begins at MS; `try` begins
    # with the best card, and believes its attempts only if they are unanimous.
    es_policy: EsPolicy = "locked"
    # From this relevance on `try` tries a card.
    try_threshold: Score = 0.2
    # Route again after a failed MS, with its attempts in view.
    refine_domain: bool = False
    # Our instructions, or the paper's tier roles, lenses and JSON reply.
    prompts: Literal["default", "paper"] = "default"


class Draw(BaseModel):
    """The sampling of one tier, as a file may set it; what is left out is the preset's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    temperature: Temperature | None = None
    max_tokens: Tokens | None = None


class Config(BaseModel):
    """Everything a run depends on but the problems."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    preset: str
    base_url: Urls | None = None  # of openai/ models
    api_key: SecretStr | None = None
    anthropic_base_url: Urls | None = None
    anthropic_api_key: SecretStr | None = None
    # Writes and judges cards, and gathers facts for synthesis.
    teacher: str | None = None
    teacher_base_url: Urls | None = None
    teacher_api_key: SecretStr | None = None
    # Must leave room in the context of its server.
    teacher_max_tokens: Tokens = 16_000
    # The key that clients of `kace serve` must send.
    serve_key: SecretStr | None = None
    # Wait for exchange replies and for batch jobs to end; or stop and name what is missing.
    wait: bool = True
    # The learner multiplies it by 10,000, and tables hold integers of 64 bits.
    seed: Annotated[int, Field(ge=0, lt=1 << 40)] = 0
    temperature: Temperature | None = None  # of every tier, over the preset's
    max_tokens: Tokens | None = None  # of every tier, over the preset's
    sampling: dict[LadderTier, Draw] = {}
    # What MS and HS read: a path or a bundled tree's name. Without one, the problem alone.
    tree: Path | None = None
    retrieval: RetrievalConfig = RetrievalConfig()
    # A profile's name or a TOML file; left out, the tree's own.
    profile: str | None = None
    # Keep problem texts in the run directory.
    problem_texts: bool = True
    # If HS fails, the teacher gathers what its attempts agree on, to finish from.
    synthesis: bool = False
    # Calls under way at once; left out, 64.
    max_connections: Annotated[int, Field(ge=1, le=10_000)] | None = None
    # Seconds for one call, all its retries included.
    timeout: PositiveFloat = 600.0
    max_calls: PositiveInt | None = None
    max_usd: PositiveFloat | None = None
    prices: dict[str, Price] = {}
    # Attempts as jobs of the provider's batch API: cheaper, within a day.
    batch: bool = False
    # The most requests of a job; left out, the provider's limit.
    batch_size: PositiveInt | None = None
    # A Ray cluster to solve on: auto, or its address.
    ray: str | None = None
    # Keep finished calls on disk and never pay for one twice.
    cache: bool = True
    cache_dir: Path = Path()
    hub: str = "https://huggingface.co"
    # A folder with the published data sets' files; left out, they are downloaded.
    data_dir: Path | None = None
    # The name of a field in a JSONL file, as in `problem = "question"`.
    fields: dict[ProblemField, str] = {}
    # What problems are about, and how answers are read. Manifests name them if changed.
    subject: SubjectName = "mathematics"
    answers: AnswerKind = "math"
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 1e-6
    # Beyond the paper and off (docs/concepts.md). Manifests name them if changed.
    logprobs: bool = False  # record confidences
    vote: VoteKind = "majority"
    sources: dict[str, Source] = {}

    @property
    def asks_logprobs(self) -> bool:
        """Whether calls request log-probabilities: to record them, or to weigh votes."""
        return self.logprobs or self.vote == "confidence"

    def tier_sampling(self) -> dict[str, TierSampling]:
        """Return the sampling of each tier: preset < file per tier < overrides for all."""
        every = Draw(temperature=self.temperature, max_tokens=self.max_tokens)
        resolved = {}
        for tier, sampling in PRESETS[self.preset].sampling.items():
            own = self.sampling.get(tier, every)  # type: ignore[call-overload]
            changes = own.model_dump(exclude_none=True)
            changes |= every.model_dump(exclude_none=True)
            resolved[tier] = replace(sampling, **changes)
        return resolved

    def caps(self) -> Caps:
        """Return the caps on calls and money."""
        return Caps(self.max_calls, self.max_usd)

    def for_teacher(self) -> Config:
        """Return the configuration that opens the teacher.

        A key is sent only to the server it was given for. On a Ray cluster the workers
        belong to the solver: a second model would wait for free CPUs for ever.
        """
        if self.teacher is None:
            raise UsageError(
                "no teacher is named",
                fix="give --teacher, or set KACE_TEACHER or `teacher` in kace.toml",
            )
        update: dict[str, object] = {"model": self.teacher, "ray": None}
        url = self.teacher_base_url
        key = self.teacher_api_key
        if url is not None:
            update |= {"base_url": url, "anthropic_base_url": url}
        if url is not None or key is not None:
            update |= {"api_key": key, "anthropic_api_key": key}
        return self.model_copy(update=update)


RECORDED = {
    "answers",
    "anthropic_base_url",
    "base_url",
    "max_tokens",
    "model",
    "preset",
    "retrieval",
    "sampling",
    "seed",
    "subject",
    "synthesis",
    "temperature",
    "tolerance",
    "vote",
}
"""What a run's manifest always holds of a configuration, where it is given."""
SETTINGS = (*Config.model_fields, *RetrievalConfig.model_fields)


def base_urls(urls: str | None) -> tuple[str, ...]:
    """Return the addresses that a setting lists. A password may hold a comma."""
    parts = re.split(r",(?=\s*https?://)", urls or "")
    return tuple(url.strip() for url in parts if url.strip())


def tree_path(name: str | Path) -> Path:
    """Return a tree's path: as given, or that of a bundled tree if no file here has its name."""
    bundled = BUNDLED_TREES / f"{name}.jsonl"
    given = Path(name)
    ours = len(given.parts) == 1 and not given.exists() and bundled.is_file()
    return bundled if ours else given


def load_config(
    flags: Mapping[str, object] | None = None,
    *,
    file: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Config:
    """Resolve the configuration.

    Flags that are `None` count as not given. An unknown name raises `UsageError` with
    the nearest known one.
    """
    env = os.environ if env is None else env  # noqa: TID251 - the one place
    if file is None and Path(CONFIG_FILE).is_file():
        file = Path(CONFIG_FILE)
    in_file = _read_toml(file) if file else {}
    in_env = _from_env(env)
    typed = {
        name: value
        for name, value in (flags or {}).items()
        if value is not None
    }
    named = {**in_file, **in_env, **typed}
    tree = tree_path(str(named["tree"])) if named.get("tree") else None
    profile = profile_of(named.get("profile"), tree).get("retrieval", {})
    layers: dict[Source, Mapping[str, object]] = {
        "profile": profile,
        "file": in_file,
        "env": in_env,
        "flag": typed,
    }
    tables = {"prices": _read_toml(PRICES), "retrieval": {}}
    values: dict[str, object] = {"cache_dir": user_cache(env), **tables}
    sources: dict[str, Source] = {}
    for source, layer in layers.items():
        for name, value in layer.items():
            if name not in SETTINGS:
                raise UsageError(
                    f"unknown setting '{name}' from {source}"
                    f"{nearest(name, SETTINGS)}",
                    fix="see docs/quickstart.md for the settings",
                )
            table = name
            if name in RetrievalConfig.model_fields:
                table = "retrieval"
                value = {name: value}
            if table in tables and isinstance(value, Mapping):
                tables[table] |= value
                sources |= {f"{table}.{key}": source for key in value}
            else:
                values[name] = value
                sources[name] = source
    if tree:
        values["tree"] = tree
    _check_keys(values, sources)
    _apply_preset(values, sources)
    try:
        return Config.model_validate({**values, "sources": sources})
    except ValidationError as error:
        raise UsageError(
            _first_error(error, sources), fix="correct the value and run again"
        ) from None


def _check_keys(
    values: Mapping[str, object], sources: Mapping[str, Source]
) -> None:
    """Refuse to send the environment's key to a server that a file names.

    The file of the current folder may come from others.
    """
    for prefix in ("", "anthropic_", "teacher_"):
        name = f"{prefix}base_url"
        key = f"{prefix}api_key"
        if (sources.get(name), sources.get(key)) != ("file", "env"):
            continue
        for url in base_urls(str(values[name])):
            if urlsplit(url).hostname not in LOOPBACK:
                raise UsageError(
                    f"{CONFIG_FILE} names {public_url(url)}, and the key of the environment is not sent there",
                    fix=f"set {key} in the same file, or give the address as --base-url",
                )


def _apply_preset(
    values: dict[str, object], sources: dict[str, Source]
) -> None:
    """Fill in the preset, and the model it names if none was given."""
    embedded = is_embedded(str(values.get("model", "local/")))
    values.setdefault("preset", "starter" if embedded else "aime25")
    preset = PRESETS.get(str(values["preset"]))
    if preset is None:
        near = nearest(str(values["preset"]), PRESETS)
        raise UsageError(
            f"unknown preset '{values['preset']}'{near}",
            fix="choose a known preset",
        )
    if "model" not in values:
        values["model"] = preset.model
        sources["model"] = "preset"


def profile_of(
    name: object, tree: object = None
) -> Mapping[str, Mapping[str, object]]:
    """Return the sections of a profile.

    It is the one named, else the one that a tree or its snapshot keeps. `default` names
    the class defaults, so its sections are empty. A tree that is a file, NAME.jsonl,
    keeps its own in NAME.toml beside it.
    """
    path = PROFILES.get(str(name), Path(str(name)))
    if not name:
        place = Path(str(tree))
        inside = place.parent.name == "snapshots"
        path = (place.parents[1] if inside else place) / PROFILE_FILE
        if place.is_file() and not path.is_file():
            path = place.with_suffix(".toml")
    if name == DEFAULT_PROFILE or not (name or (tree and path.is_file())):
        return {}
    if not path.is_file():
        near = nearest(str(name), (*PROFILES, DEFAULT_PROFILE))
        raise UsageError(
            f"unknown profile '{name}'{near}", fix="or name a TOML file"
        )
    # A tree may come from others, so that links in it are not followed.
    sections = _read_toml(path, Path.read_bytes if name else read_plain)
    for section, values in sections.items():
        if section not in ("retrieval", "learning") or type(values) is not dict:
            raise UsageError(
                f"{path}: '{section}' is no part of a profile",
                fix="use [retrieval] and [learning]",
            )
    return sections


def profile_text(
    retrieval: Mapping[str, object], learning: Mapping[str, object]
) -> str:
    """Return a profile as TOML. Settings that are `None` are left out."""
    lines = []
    for section, values in (("retrieval", retrieval), ("learning", learning)):
        lines.append(f"[{section}]")
        for key, value in values.items():
            if value is not None:
                lines.append(f"{key} = {json.dumps(value)}")
        lines.append("")
    return "\n".join(lines)


def user_cache(env: Mapping[str, str]) -> Path:
    """Return the directory for weights and calls where none is set: `kace` under the user's cache directory."""
    base = env.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kace"


def _read_toml(
    path: Path, read: Callable[[Path], bytes] = Path.read_bytes
) -> dict[str, Any]:
    fix = "name a TOML file; see docs/quickstart.md for an example"
    try:
        with readable(path, fix):
            return tomllib.loads(read(path).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not TOML ({error})", fix=fix) from None


def _from_env(env: Mapping[str, str]) -> Mapping[str, object]:
    values = {}
    for variable, name in SHARED_ENV.items():
        if env.get(variable):
            values[name] = env[variable]
    for variable, value in env.items():
        name = variable.removeprefix(ENV_PREFIX).lower()
        if not value or not variable.startswith(ENV_PREFIX):
            continue
        if name in SETTINGS:
            values[name] = value
        else:
            log.warning("kace: %s names no setting", variable)
    return values


def _first_error(error: ValidationError, sources: Mapping[str, Source]) -> str:
    first = error.errors()[0]
    name = ".".join(map(str, first["loc"]))
    source = sources.get(name) or sources.get(str(first["loc"][0]))
    origin = f" (from {source})" if source else ""
    return f"setting '{name}'{origin}: {first['msg']}"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of an error about an unknown name: the nearest one, or all."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    return (
        f"; did you mean '{close[0]}'?"
        if close
        else f"; known: {', '.join(names)}"
    )
