"""The command line. Each verb has a file of its own; heavy imports happen inside the verb that needs them."""

from __future__ import annotations

import io
import sys

import typer

from kace.cli.data import data_app
from kace.cli.demo import demo
from kace.cli.doctor import doctor
from kace.cli.eval import evaluate
from kace.cli.learn import learn_app
from kace.cli.models import models_app
from kace.cli.options import GroupedCommand, GroupedVerbs
from kace.cli.report import report
from kace.cli.reproduce import reproduce
from kace.cli.serve import serve
from kace.cli.solve import solve
from kace.cli.streams import note
from kace.cli.tree import tree_app
from kace.cli.view import view
from kace.errors import KaceError
from kace.redact import redact

app = typer.Typer(
    name="kace",
    help="Makes a frozen language model better at mathematics. Start with: kace demo",
    cls=GroupedVerbs,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for name, verb in (("demo", demo), ("solve", solve), ("serve", serve), ("eval", evaluate), ("report", report),
                   ("reproduce", reproduce), ("view", view), ("doctor", doctor)):  # fmt: skip
    app.command(name, cls=GroupedCommand)(verb)
for name, verbs in (("learn", learn_app), ("tree", tree_app), ("data", data_app), ("models", models_app)):
    app.add_typer(verbs, name=name)


def version(show: bool) -> None:
    """Print the version and stop."""
    if show:
        from importlib.metadata import version as installed

        print(f"kace {installed('kace')}")
        raise typer.Exit


@app.callback()
def root(
    _version: bool = typer.Option(False, "--version", callback=version, is_eager=True, help="Show the version."),
) -> None:
    """Knowledge-adaptive context engineering."""


def main() -> None:
    """Run the command line: operator errors are one line on stderr, Ctrl-C is exit 130, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without UTF-8 shows "?", not a traceback
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
