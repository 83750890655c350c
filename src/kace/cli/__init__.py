"""The command line. Each verb is a module of its own, loaded when it is typed."""

from __future__ import annotations

import errno
import io
import sys
import tomllib
from importlib import import_module

import click

from kace.cli.terminal import note
from kace.errors import KaceError, UsageError, redact
from kace.files import DATA

VERBS = tomllib.loads((DATA / "verbs.toml").read_text(encoding="utf-8"))
COMMANDS = {
    name: row for verbs in VERBS.values() for name, row in verbs.items()
}
MODULES = {"lift": "eval", "mcp": "serve", "view": "serve"}
"""Where verbs are that share a module."""


class Verbs(click.Group):
    """The verbs by what they are for, each imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all verbs."""
        return list(COMMANDS)

    def get_command(
        self, ctx: click.Context, cmd_name: str
    ) -> click.Command | None:
        """Return a verb's command from its module."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"kace.cli.{MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = getattr(module, cmd_name, module.command)
        examples = "\n  ".join(COMMANDS[cmd_name]["examples"])
        command.epilog = f"\b\nExamples:\n  {examples}"
        return command

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the verbs in groups."""
        for group, verbs in VERBS.items():
            with formatter.section(group):
                formatter.write_dl(
                    [(name, verb["help"]) for name, verb in verbs.items()]
                )


@click.group(
    cls=Verbs,
    name="kace",
    context_settings={
        "help_option_names": ["-h", "--help"],
        "show_default": True,
        "max_content_width": 100,
    },
)
@click.version_option(package_name="kace", message="kace %(version)s")
def app() -> None:
    """Make a frozen language model better at checkable problems. First: kace demo."""


def main() -> None:
    """Run the command line.

    Errors that a user can fix are one line on standard error, Ctrl-C exits with 130;
    neither prints a traceback.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(
            stream, io.TextIOWrapper
        ):  # a terminal without UTF-8 shows "?"
            stream.reconfigure(errors="replace")
    try:
        code = app(prog_name="kace", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KaceError as error:
        _fail(error)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.UsageError as error:
        message = " ".join(error.format_message().split()).removesuffix(".")
        path = error.ctx.command_path if error.ctx else "kace"
        text = f"{message[:1].lower()}{message[1:]}"
        _fail(UsageError(text, fix=f"{path} --help"))
    except (KeyboardInterrupt, click.Abort):
        sys.exit(130)
    except BrokenPipeError:
        # The reader of the output has gone (`| head`): there is nothing to flush at exit.
        sys.stdout = None
        sys.exit(1)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        sys.stdout = None
        _fail(
            KaceError(
                "the output cannot be written: the disk is full",
                fix="write it to a file on a disk with free space",
            )
        )
    sys.exit(code)


def _fail(error: KaceError) -> None:
    note(redact(f"kace: {error}"))
    sys.exit(error.exit_code)
