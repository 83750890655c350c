"""`kace mcp`: kace as tools of an agent, and the skill that teaches one its commands."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from kace.cards.store import open_tree
from kace.cli.options import CAPS, PATH, SOLVER, Options, takes
from kace.cli.terminal import note, run_async
from kace.config import tree_path
from kace.errors import UsageError
from kace.files import write_atomic

SKILL = Path(__file__).with_name("SKILL.md")


@click.command("mcp")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@takes(*SOLVER, "tree", "profile", *CAPS)
@click.option(
    "--skill",
    type=PATH,
    metavar="DIR",
    help="Write the skill into this folder of skills, and stop.",
)
def command(
    options: Options, paths: tuple[str, ...], skill: Path | None
) -> None:
    """Offer kace to agents: tools over stdio (MCP), or a skill.

    PATH are trees and runs that clients may read, or folders of these. The tools are
    solve, search_cards and explain_run. They write nothing, and read only --tree and
    PATH. --max-calls and --max-usd hold for each solve.
    """
    if skill is not None:
        place = skill / "kace" / SKILL.name
        write_atomic(place, SKILL.read_bytes())
        note(f"skill        {place}")
        return
    config = options.config()
    if not (find_spec("mcp") and find_spec("starlette")):
        raise UsageError(
            "kace mcp needs more libraries", fix="pip install 'kace[mcp]'"
        )
    from kace.report.workspace import Workspace
    from kace.serve.app import RequestLimits, ServerOptions
    from kace.serve.mcp import Tools, serve_stdio

    limits = RequestLimits(max_calls=config.max_calls, max_usd=config.max_usd)
    tree = open_tree(config.tree) if config.tree else None
    readable = [tree_path(path) for path in paths]
    if config.tree:
        readable.append(config.tree)
    tools = Tools(Workspace(readable) if readable else None, config)
    server = ServerOptions(config, tree, limits)
    run_async(serve_stdio(tools, server), resumable=False)
