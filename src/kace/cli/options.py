"""The options that verbs share, each defined once, and help that groups them. A verb gets what was typed as `typed`.

A setting without an option of its own is set by `--set key=value` or in a TOML file.
"""

from __future__ import annotations

import functools
import inspect
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from kace.errors import UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel

    from kace.config import Config

Verb = TypeVar("Verb", bound=Callable[..., None])
T = TypeVar("T", bound="BaseModel")

FIELD = "Where a file keeps a field: problem=question, answer=target, id=name."
MODEL, TREE, DATA, LEARNING, LIMITS, OUTPUT = "Model", "Tree", "Data", "Learning", "Limits", "Output"
KEYWORD = inspect.Parameter.KEYWORD_ONLY
GROUPS = (DATA, MODEL, TREE, LEARNING, "Server", LIMITS, OUTPUT)


def option(group: str, default: object, *flags: str, help: str, **more: Any) -> Any:
    """An option of one verb, in a group of its help."""
    return typer.Option(default, *flags, help=help, rich_help_panel=group, **more)


SHARED: Mapping[str, tuple[Any, Any]] = {
    "model": (str, option(MODEL, None, "--model", "-m",
        help="local/NAME or PATH.gguf, openai/NAME, anthropic/NAME, replay/RUN.")),
    "base_url": (str, option(MODEL, None, help="An OpenAI-compatible server for openai/NAME.")),
    "preset": (str, option(MODEL, None, help="Temperatures and token caps: aime25, math-hard, olymmath or starter.")),
    "seed": (int, option(MODEL, None, help="Draws other samples; the same seed repeats them.")),
    "teacher": (str, option(MODEL, None,
        help="anthropic/NAME, openai/NAME, exchange/DIR (answered by files) or replay/RUN.")),
    "teacher_base_url": (str, option(MODEL, None, help="An OpenAI-compatible server for an openai/NAME teacher.")),
    "tree": (Path, option(TREE, None, help="The epistemic tree that MS and HS read from.")),
    "profile": (str, option(TREE, None,
        help="How trees are learned and read: default, paper or a TOML file; else the tree's own.")),
    "set_": (list[str], option(TREE, [], "--set", help="One setting, such as max_cards=1; may be repeated.")),
    "skip_es": (bool, option(TREE, False, "--skip-es", help="Beyond the paper: begin at MS where a card covers it.")),
    "field": (list[str], option(DATA, [], help=FIELD)),
    "limit": (int, option(DATA, None, help="Only the first N problems.", min=1)),
    "data_dir": (Path, option(DATA, None, help="A folder with the data sets' files; else they are fetched and kept.")),
    "held_out": (list[Path], option(DATA, [], help="An evaluation split: refuse training problems that appear in it.")),
    "max_connections": (int, option(LIMITS, None, help="Calls under way at once; left out, it adapts.")),
    "max_calls": (int, option(LIMITS, None, help="Stop before more calls than this are made.")),
    "max_usd": (float, option(LIMITS, None, help="Stop before more money than this is spent.")),
    "no_texts": (bool, option(OUTPUT, False, "--no-texts", help="Leave problem texts out of the run directory.")),
    "as_json": (bool, option(OUTPUT, False, "--json", help="Results as JSON on standard output.")),
    "config_file": (Path, option(OUTPUT, None, "--config", help="A TOML file; kace.toml is read when it is there.")),
}  # fmt: skip

SOLVER = ("model", "base_url", "preset", "seed")
READING = ("tree", "profile", "set_")
CAPS = ("max_connections", "max_calls", "max_usd")
_NOT_SETTINGS = ("set_", "skip_es", "field", "limit", "data_dir", "held_out", "as_json", "config_file", "no_texts")


class Typed(NamedTuple):
    """What the user typed of the shared options."""

    values: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        return self.values[name]

    @property
    def fields(self) -> dict[str, str]:
        """What `--field` says of a file."""
        return field_map(self.values["field"])

    @property
    def settings(self) -> dict[str, object]:
        """What `--set` says: settings by name, read as TOML values, else as text."""
        found: dict[str, object] = {}
        for pair in self.values.get("set_") or ():
            name, _, value = pair.partition("=")
            if not name or "=" not in pair:
                raise UsageError(f"--set {pair} is no setting", fix="write --set max_cards=1")
            try:
                found[name.strip()] = tomllib.loads(f"x = {value}")["x"]
            except tomllib.TOMLDecodeError:
                found[name.strip()] = value
        return found

    def config(self, *learning: str, **more: object) -> Config:
        """The configuration: the options, `--set`, and `more` where nothing was typed.

        `learning` names settings that are no part of it, and that `--set` may give all the same.
        """
        from kace.config import load_config

        policy = {"es_policy": "skip"} if self.values.get("skip_es") else {}
        texts = {"problem_texts": False} if self.values.get("no_texts") else {}
        options = {name: value for name, value in self.values.items() if name not in _NOT_SETTINGS}
        chosen = {name: value for name, value in self.settings.items() if name not in learning}
        layers = (more, options, policy, texts, chosen)
        flags = {name: value for layer in layers for name, value in layer.items() if value is not None}
        return load_config(flags, file=self.values.get("config_file"))

    def learning(self, kind: type[T], base: Mapping[str, object], **more: object) -> T:
        """Settings of learning: those of a profile, `--set`, and the options typed."""
        from pydantic import ValidationError

        chosen = {name: value for name, value in self.settings.items() if name in kind.model_fields}
        typed = {name: value for name, value in more.items() if value is not None}
        try:
            return kind.model_validate({**base, **chosen, **typed})
        except ValidationError as error:
            first = error.errors()[0]
            known = first["type"] != "extra_forbidden"
            reason = first["msg"].lower() if known else "not a setting of this method"
            raise UsageError(
                f"{first['loc'][0]} cannot be {first['input']!r}: {reason}", fix="see docs/learning.md"
            ) from None


def field_map(pairs: Sequence[str]) -> dict[str, str]:
    """What `--field` says of a file: our names to the file's."""
    found = {}
    for pair in pairs:
        ours, _, theirs = pair.partition("=")
        if ours not in ("problem", "answer", "id", "domain") or not theirs:
            raise UsageError(f"--field {pair} is not a field map", fix="write --field problem=question")
        found[ours] = theirs
    return found


def takes(*names: str) -> Callable[[Verb], Verb]:
    """Give a verb shared options; it gets them as `typed`."""

    def wrap(verb: Verb) -> Verb:
        own = inspect.signature(verb)
        mine = [each for each in own.parameters.values() if each.name != "typed"]
        shared = [
            inspect.Parameter(name, KEYWORD, default=SHARED[name][1], annotation=SHARED[name][0]) for name in names
        ]

        @functools.wraps(verb)
        def run(**given: Any) -> None:
            verb(**{k: v for k, v in given.items() if k not in names}, typed=Typed({n: given[n] for n in names}))

        keyword = [each.replace(kind=KEYWORD) for each in (*mine, *shared)]
        run.__signature__ = own.replace(parameters=keyword)  # type: ignore[attr-defined]
        run.__annotations__ = {**verb.__annotations__, **{each.name: each.annotation for each in shared}}
        return run  # type: ignore[return-value]

    return wrap


def _write_options(command: Any, ctx: Any, formatter: Any) -> None:
    """Arguments, then the groups in their order, then the rest."""
    rows: dict[str, list[tuple[str, str]]] = {}
    for param in command.get_params(ctx):
        if record := param.get_help_record(ctx):
            panel = getattr(param, "rich_help_panel", None) or "Options"
            rows.setdefault("Arguments" if param.param_type_name == "argument" else panel, []).append(record)
    for group in ("Arguments", *GROUPS, "Options"):
        if found := rows.get(group):
            with formatter.section(group):
                formatter.write_dl(found)


class GroupedCommand(TyperCommand):
    """A command whose help lists its options by group, whole and never cut."""

    format_options = _write_options

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As ever; a setting that was typed as an option is named with the way to set it."""
        refuse_settings(self, ctx, args)
        return super().parse_args(ctx, args)


def refuse_settings(command: Any, ctx: Any, args: Sequence[str]) -> None:
    """Raise for an option that is a setting, with the fix."""
    known = {flag for param in command.get_params(ctx) for flag in param.opts}
    for arg in args:
        flag = arg.partition("=")[0]
        if not flag.startswith("--") or flag in known or flag == "--":
            continue
        from kace.config import Config, RetrievalConfig
        from kace.learner.study import Settings
        from kace.solver.manifest import OLD_SETTINGS

        name = flag.removeprefix("--").replace("-", "_")
        name = {**OLD_SETTINGS, "direct": "es_policy"}.get(name, name)
        if any(name in kind.model_fields for kind in (Config, RetrievalConfig, Settings)):
            raise UsageError(f"{flag} is a setting, not an option here", fix=f"write --set {name}=VALUE")


class GroupedVerbs(TyperGroup):
    """A list of verbs by what they are for, each with its whole first sentence."""

    groups: Mapping[str, Sequence[str]] = {
        "Solve": ("demo", "solve", "serve"),
        "Learn": ("learn", "tree"),
        "Measure": ("eval", "report", "reproduce"),
        "Look": ("view", "data", "models", "doctor"),
    }

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As for a command, up to the verb."""
        verb = next((place for place, arg in enumerate(args) if arg in self.commands), len(args))
        refuse_settings(self, ctx, args[:verb])
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The options by group, then the verbs, grouped where this is the root."""
        _write_options(self, ctx, formatter)
        named = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        shown = {name: command.help or "" for name, command in named.items() if command and not command.hidden}
        is_root = set(shown) == {name for some in self.groups.values() for name in some}
        for group, names in (self.groups if is_root else {"Commands": tuple(shown)}).items():
            with formatter.section(group):
                formatter.write_dl([(name, " ".join(shown[name].split("\n\n")[0].split())) for name in names])
