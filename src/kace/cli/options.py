"""The options that verbs share, each defined once.

A verb decorated with `takes("model", "tree")` has these options and is called with an
`Options` that holds what was typed. A setting without an option of its own is set by
`--set key=value` or in a TOML file.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from kace.cli.terminal import json_of, print_lines
from kace.errors import UsageError
from kace.files import DATA

if TYPE_CHECKING:
    from kace.config import Config
    from kace.learning.study import Settings

Verb = Callable[..., Any]

SOLVER = ("model", "base_url", "preset", "seed")
CAPS = ("max_calls", "max_usd")
EVERYWHERE = ("set", "config", "subject")
PATH = click.Path(path_type=Path)
SET_FIX = "write --set max_cards=1"


class Options(dict[str, Any]):
    """What was typed of the shared options, by name; options that were not typed are absent."""

    @property
    def as_json(self) -> bool:
        """Whether results are JSON."""
        return bool(self.get("json"))

    def show(self, record: object, lines: Iterable[str]) -> None:
        """Print a record, or the lines that say the same, as `--json` asks."""
        print_lines([json_of(record)] if self.as_json else lines)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of `--set` by name, each read as a TOML value, else as text."""
        lines = {}
        for pair in self.get("set") or ():
            name, equals, value = pair.partition("=")
            try:
                tomllib.loads(f"value = {value}")
            except tomllib.TOMLDecodeError:
                pair = name + equals + json.dumps(value, ensure_ascii=False)
            lines[name] = pair
        try:
            return tomllib.loads("\n".join(lines.values()))
        except tomllib.TOMLDecodeError as error:
            raise UsageError(
                f"--set cannot be read: {error}", fix=SET_FIX
            ) from None

    def config(self, *learning: str, **defaults: object) -> Config:
        """Return the configuration: `defaults` < options < `--set`.

        Settings of learning, named by `learning`, are left to `learning()`.
        """
        from kace.config import Config, load_config

        flags = dict(defaults)
        for name, value in self.items():
            if name in Config.model_fields:
                flags[name] = value
        for name, value in self.settings.items():
            if name not in learning:
                flags[name] = value
        return load_config(flags, file=self.get("config"))

    def learning(
        self, base: Mapping[str, object], epochs: int | None
    ) -> Settings:
        """Return settings of learning: `base` < `--set` < `--epochs`."""
        from kace.learning.study import Settings, read_settings

        values = dict(base)
        for name, value in self.settings.items():
            if name in Settings.model_fields:
                values[name] = value
        if epochs is not None:
            values["epochs"] = epochs
        return read_settings(values)


def _remember(
    context: click.Context, option: click.Parameter, value: Any
) -> None:
    """Keep an option's value under its name if it was typed."""
    name = str(option.name)
    if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
        context.ensure_object(Options)[name] = value


TYPES = {
    "path": PATH,
    "count": click.IntRange(min=1),
    "int": click.INT,
    "float": click.FLOAT,
}
TABLE = (DATA / "options.toml").read_text(encoding="utf-8")
SHARED = tomllib.loads(TABLE)
pass_options = click.make_pass_decorator(Options, ensure=True)


def takes(*names: str) -> Callable[[Verb], Verb]:
    """Give a verb the named options and those of every verb, as its first argument."""

    def decorate(verb: Verb) -> Verb:
        decorated = pass_options(verb)
        for name in reversed((*names, *EVERYWHERE)):
            row = dict(SHARED[name])
            option = click.option(
                *row.pop("flags"),
                type=TYPES.get(row.pop("type", "")),
                expose_value=False,
                callback=_remember,
                **row,
            )
            decorated = option(decorated)
        return decorated

    return decorate
