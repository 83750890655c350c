"""The command line. Each verb is a module of its own, loaded when it is typed."""

from __future__ import annotations

import io
import sys
from importlib import import_module
from importlib.metadata import version as installed
from itertools import islice
from pathlib import Path
from typing import Any

import typer

from kace.cli.options import GroupedVerbs, option
from kace.cli.streams import ends_process, note
from kace.errors import KaceError, redact

VERBS = {
    "Solve": {
        "demo": "Solve a few starter problems without cards and with them, side by side.",
        "solve": "Solve a problem, or every problem of a file.",
        "serve": "Answer OpenAI's chat completions with the ladder: any client, pointed here, gets the voted answer.",
    },
    "Learn": {
        "learn": "Learn a tree from labelled problems: kace learn --train FILE --teacher MODEL --out TREE.",
        "tree": "Begin a tree of cards, write one, try it; look at a tree, change it, compare it, go back.",
    },
    "Measure": {
        "eval": "Evaluate a system on a data set and write a run.",
        "report": "Say which run is better, or that it cannot be told: kace report RUN RUN; with --out DIR, as a page.",
        "reproduce": "Run the paper's table for a benchmark: shows every command first, then runs them with --yes.",
    },
    "Look": {
        "view": "Look at trees, runs and learners in the browser: kace view runs/eval-1.",
        "data": "List, fetch, check and write problem sets.",
        "models": "List, fetch and find embedded models.",
        "mcp": "Let agents use kace: tools over stdio (MCP), or a skill that teaches its commands.",
        "doctor": "Check the model, its endpoint and key, the equivalence worker and write access.",
    },
}


class Root(GroupedVerbs):
    """The verbs by what they are for; its own options may be typed after the verb too."""

    groups = VERBS

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.commands = {name: None for verbs in VERBS.values() for name in verbs}  # type: ignore[misc]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The verb's command, from its module."""
        known = cmd_name in self.commands
        return (
            typer.main.get_command(import_module(f"kace.cli.{cmd_name}").app)
            if known
            else None
        )

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The root's options first, wherever they stand, then the rest."""
        ours = {
            flag: getattr(param, "is_flag", False)
            for param in self.params
            for flag in param.opts
        }
        first = list[str]()
        rest = list[str]()
        left = iter(args)
        for arg in left:
            flag, _, value = arg.partition("=")
            (first if flag in ours else rest).append(arg)
            if arg == "--":
                rest += left
            elif flag in ours and not ours[flag] and not value:
                first += islice(left, 1)
        return super().parse_args(ctx, [*first, *rest])


app = typer.Typer(
    name="kace",
    cls=Root,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def version(show: bool) -> None:
    """Print the version and stop."""
    if show:
        print(f"kace {installed('kace')}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    set_: list[str] = option(
        "", [], "--set", help="One setting, such as max_cards=1; may be repeated."
    ),
    subject: str = option(
        "",
        None,
        help="What problems are about, as prompts say it; mathematics unless told.",
    ),
    config_file: Path = option(
        "", None, "--config", help="A TOML file; kace.toml is read when it is there."
    ),
    as_json: bool = option(
        "", False, "--json", help="Results as JSON on standard output."
    ),
    _version: bool = option(
        "",
        False,
        "--version",
        callback=version,
        is_eager=True,
        help="Show the version.",
    ),
) -> None:
    """Makes a frozen language model better at mathematics. Start with: kace demo."""
    context.obj = {
        "set_": set_,
        "subject": subject,
        "config_file": config_file,
        "as_json": as_json,
    }


def main() -> None:
    """Run the command line: operator errors are one line on stderr, Ctrl-C is exit 130, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(
                errors="replace"
            )  # a terminal without UTF-8 shows "?", not a traceback
    ends_process.set(True)
    try:
        app()
    except KaceError as error:
        note(redact(f"kace: {error}"))
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): nothing more to say, and nothing to flush at exit.
        sys.stdout = None
        sys.exit(1)
