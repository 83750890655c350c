"""The options that verbs share, each defined once, and help that groups them. A verb gets what was typed as `typed`.

A setting without an option of its own is set by `--set key=value` or in a TOML file.
"""

from __future__ import annotations

import functools
import inspect
import json
import tomllib
from collections.abc import Callable, Mapping
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

DATA, MODEL, TREE, LEARNING, SERVER, LIMITS, OUTPUT = GROUPS = (
    "Data", "Model", "Tree", "Learning", "Server", "Limits", "Output"
)  # fmt: skip


def option(group: str, default: object, *flags: str, help: str, **more: Any) -> Any:
    """An option of one verb, in a group of its help."""
    return typer.Option(
        default, *flags, help=help, rich_help_panel=group or None, **more
    )


SHARED: Mapping[str, tuple[Any, Any]] = {
    "model": (str, option(MODEL, None, "--model", "-m",
        help="local/NAME or PATH.gguf, openai/NAME, anthropic/NAME, replay/RUN.")),
    "base_url": (list[str], option(MODEL, None, metavar="<str>",
        help="An OpenAI-compatible server for openai/NAME; repeat it for several.")),
    "service_tier": (str, option(MODEL, None, help="flex, priority or auto, where OpenAI's API has them.")),
    "ray": (str, option(MODEL, None, help="Solve on a Ray cluster: auto, or its address. Needs kace[ray].")),
    "preset": (str, option(MODEL, None, help="Temperatures and token caps: aime25, math-hard, olymmath or starter.")),
    "seed": (int, option(MODEL, None, help="Draws other samples; the same seed repeats them.")),
    "teacher": (str, option(MODEL, None,
        help="anthropic/NAME, openai/NAME, local/NAME, exchange/DIR (answered by files), replay/RUN; or solutions.")),
    "tree": (Path, option(TREE, None, help="The epistemic tree that MS and HS read from; starter ships with kace.")),
    "profile": (str, option(TREE, None,
        help="How trees are learned and read: default, paper or a TOML file; else the tree's own.")),
    "limit": (int, option(DATA, None, help="Only the first N problems.", min=1)),
    "shard": (str, option(DATA, None,
        help="Only part I of N, as 3/8, in a run of its own; kace report --merge joins the parts.")),
    "batch": (bool, option(LIMITS, None, "--batch",
        help="Send attempts as jobs of a batch API: half the price, within a day; the same command goes on.")),
    "max_calls": (int, option(LIMITS, None, help="Stop before more calls than this are made.")),
    "max_usd": (float, option(LIMITS, None, help="Stop before more money than this is spent.")),
}  # fmt: skip
SOLVER = ("model", "base_url", "preset", "seed")
CAPS = ("max_calls", "max_usd")
KEYWORD = inspect.Parameter.KEYWORD_ONLY
EVERYWHERE = {
    "set_": "typed",
    "subject": "typed",
    "config_file": "typed",
    "as_json": "as_json",
}
"""The options of the root, which may follow any verb that has the parameter named here."""


class Typed(NamedTuple):
    """What the user typed of the shared options."""

    values: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        return self.values[name]

    @property
    def settings(self) -> dict[str, Any]:
        """What `--set` says: settings by name, read as TOML values, else as text."""
        lines = {}
        for pair in self.values["set_"]:
            name, equals, value = pair.partition("=")
            try:
                lines[name] = f"{name} = {value}"
                tomllib.loads(lines[name])
            except tomllib.TOMLDecodeError:
                lines[name] = f"{name} = {json.dumps(value, ensure_ascii=False)}"
            if not (name.strip() and equals):
                raise UsageError(
                    f"--set {pair} is no setting", fix="write --set max_cards=1"
                )
        try:
            return tomllib.loads("\n".join(lines.values()))
        except tomllib.TOMLDecodeError as error:
            raise UsageError(
                f"--set cannot be read: {error}", fix="write --set max_cards=1"
            ) from None

    def config(self, *learning: str, **more: object) -> Config:
        """The configuration: `more`, over it the options, over them `--set`, but for the settings of `learning`."""
        from kace.config import Config, load_config

        options = {
            name: value
            for name, value in self.values.items()
            if name in Config.model_fields
        }
        chosen = {
            name: value for name, value in self.settings.items() if name not in learning
        }
        layers = (more, options, chosen)
        flags = {
            name: value
            for layer in layers
            for name, value in layer.items()
            if value is not None
        }
        return load_config(flags, file=self.values["config_file"])

    def learning(self, kind: type[T], base: Mapping[str, object], **more: object) -> T:
        """Settings of learning: those of a profile, `--set`, and the options typed."""
        from kace.learning.settings import read_settings

        chosen = {
            name: value
            for name, value in self.settings.items()
            if name in kind.model_fields
        }
        typed = {name: value for name, value in more.items() if value is not None}
        return read_settings(kind, {**base, **chosen, **typed})


def takes(*names: str) -> Callable[[Verb], Verb]:
    """Give a verb shared options, as `typed`. What it does not ask for of the root's options is refused with it."""

    def wrap(verb: Verb) -> Verb:
        own = inspect.signature(verb)
        asked = [name for name in EVERYWHERE if EVERYWHERE[name] in own.parameters]

        @functools.wraps(verb)
        def run(context: typer.Context, **given: Any) -> None:
            for param in context.find_root().command.params:
                if context.obj.get(param.name) and param.name not in asked:
                    raise UsageError(
                        f"{context.command_path} takes no {param.opts[0]}",
                        fix="leave it out",
                    )
            typed = Typed({**context.obj, **{name: given.pop(name) for name in names}})
            more = {"typed": typed, "as_json": typed.as_json, "context": context}
            verb(
                **given,
                **{
                    name: value
                    for name, value in more.items()
                    if name in own.parameters
                },
            )

        mine = [
            each
            for name, each in own.parameters.items()
            if name not in (*EVERYWHERE.values(), "context")
        ]
        added = {
            "context": (typer.Context, inspect.Parameter.empty),
            **{name: SHARED[name] for name in names},
        }
        mine += [
            inspect.Parameter(name, KEYWORD, default=default)
            for name, (_, default) in added.items()
        ]
        keywords = [each.replace(kind=KEYWORD) for each in mine]
        run.__signature__ = own.replace(parameters=keywords)  # type: ignore[attr-defined]
        run.__annotations__ = {
            **verb.__annotations__,
            **{name: kind for name, (kind, _) in added.items()},
        }
        run.everywhere = asked  # type: ignore[attr-defined]
        return run  # type: ignore[return-value]

    return wrap


def new_app(**more: Any) -> typer.Typer:
    """The commands of a verb."""
    return typer.Typer(
        cls=GroupedVerbs, rich_markup_mode=None, add_completion=False, **more
    )


def command(
    app: typer.Typer, *names: str, name: str | None = None
) -> Callable[[Verb], Verb]:
    """Make a function a command of a verb, with shared options."""
    return lambda verb: app.command(name, cls=GroupedCommand)(takes(*names)(verb))


def _write_options(command: Any, ctx: Any, formatter: Any) -> None:
    """Arguments, then the groups in their order, then the rest; last those of the root that hold here."""
    rows: dict[str, list[tuple[str, str]]] = {}
    shared = getattr(command.callback, "everywhere", ())
    root = [param for param in ctx.find_root().command.params if param.name in shared]
    for param in (*root, *command.get_params(ctx)):
        if record := param.get_help_record(ctx):
            panel = getattr(param, "rich_help_panel", None) or "Options"
            rows.setdefault(
                "Arguments" if param.param_type_name == "argument" else panel, []
            ).append(record)
    for group in ("Arguments", *GROUPS, "Options"):
        if found := rows.get(group):
            with formatter.section(group):
                formatter.write_dl(found)


def refuse_replaced(command: Any, ctx: Any, args: list[str]) -> None:
    """Raise for an option or a verb that is a setting now or has another form, with what to write."""
    known = {
        flag
        for each in (command, ctx.find_root().command)
        for param in each.get_params(ctx)
        for flag in param.opts
    }
    for flag in (arg.partition("=")[0] for arg in args if arg.startswith("--")):
        if flag in known or flag == "--":
            continue
        from kace.config import Config, RetrievalConfig
        from kace.learning.settings import Settings

        name = flag.removeprefix("--").replace("-", "_")
        if any(
            name in kind.model_fields for kind in (Config, RetrievalConfig, Settings)
        ):
            raise UsageError(
                f"{flag} is a setting, not an option here",
                fix=f"write --set {name}=VALUE",
            )


class GroupedCommand(TyperCommand):
    """A command whose help lists its options by group, whole and never cut."""

    format_options = _write_options

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As ever; what has another form now is named with it."""
        refuse_replaced(self, ctx, args)
        return super().parse_args(ctx, args)


class GroupedVerbs(TyperGroup):
    """A list of verbs, each with its whole first sentence; in groups where there are any."""

    groups: Mapping[str, Mapping[str, str]] = {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As for a command, up to the verb."""
        verb = next(
            (place for place, arg in enumerate(args) if arg in self.commands), len(args)
        )
        refuse_replaced(self, ctx, args[:verb])
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The options by group, then the verbs."""
        _write_options(self, ctx, formatter)
        groups = self.groups or {
            "Commands": {name: each.help or "" for name, each in self.commands.items()}
        }
        for group, verbs in groups.items():
            with formatter.section(group):
                formatter.write_dl(
                    [
                        (name, " ".join(told.split("\n\n")[0].split()))
                        for name, told in verbs.items()
                    ]
                )
