"""The command line. Each verb has a file of its own; heavy imports happen inside the verb that needs them."""

from __future__ import annotations

import io
import sys

import typer

from kace.cli.compare import compare
from kace.cli.data import data_app
from kace.cli.demo import demo
from kace.cli.doctor import doctor
from kace.cli.eval import evaluate
from kace.cli.learn import learn_app
from kace.cli.models import models_app
from kace.cli.report import report
from kace.cli.reproduce import reproduce
from kace.cli.select import select
from kace.cli.serve import serve
from kace.cli.solve import solve
from kace.cli.streams import note
from kace.cli.train import train
from kace.cli.transfer import transfer
from kace.cli.tree import tree_app
from kace.cli.view import view
from kace.errors import KaceError
from kace.redact import redact

app = typer.Typer(
    name="kace",
    help="Makes a frozen language model better at mathematics. Start with: kace demo",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command()(solve)
app.command()(demo)
app.command()(doctor)
app.add_typer(learn_app, name="learn")
app.command()(select)
app.command()(train)
app.command("eval")(evaluate)
app.command()(compare)
app.command()(report)
app.command()(reproduce)
app.command()(transfer)
app.command()(view)
app.command()(serve)
app.add_typer(models_app, name="models")
app.add_typer(tree_app, name="tree")
app.add_typer(data_app, name="data")


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
