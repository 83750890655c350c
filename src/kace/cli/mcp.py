"""`kace mcp`: kace as tools of an agent, and the skill that teaches one its commands."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import typer

from kace.cards.store import open_tree
from kace.cli.options import CAPS, OUTPUT, SOLVER, Typed, command, new_app, option
from kace.cli.streams import note, run_async
from kace.config import tree_path
from kace.errors import UsageError
from kace.files import write_atomic

app = new_app()
SKILL = Path(__file__).with_name("SKILL.md")


@command(app, *SOLVER, "tree", "profile", *CAPS)
def mcp(
    typed: Typed,
    paths: list[Path] = typer.Argument(
        None,
        metavar="PATH",
        parser=tree_path,
        help="Trees and runs that clients may read, or folders of these.",
    ),
    skill: Path = option(
        OUTPUT,
        None,
        metavar="DIR",
        help="Write the skill into this folder of skills, and stop.",
    ),
) -> None:
    """Let agents use kace: tools over stdio (MCP), or a skill that teaches its commands.

    The tools are solve, search_cards and explain_run. They write nothing, and read only --tree and what PATH names.
    --max-calls and --max-usd hold for each solve.
    """
    if skill is not None:
        write_atomic(skill / "kace" / SKILL.name, SKILL.read_bytes())
        return note(f"skill        {skill / 'kace' / SKILL.name}")
    config = typed.config()
    if not (find_spec("mcp") and find_spec("prometheus_client")):
        raise UsageError("kace mcp needs more libraries", fix="pip install 'kace[mcp]'")
    from kace.report.workspace import Workspace
    from kace.serve.app import ServerOptions
    from kace.serve.chat import RequestLimits
    from kace.serve.mcp import Tools, serve_stdio

    limits = RequestLimits(max_calls=config.max_calls, max_usd=config.max_usd)
    options = ServerOptions(
        config, open_tree(config.tree) if config.tree else None, limits
    )
    given = [*(paths or ()), *([config.tree] if config.tree else ())]
    tools = Tools(Workspace(given) if given else None, config)
    run_async(serve_stdio(tools, options), resumable=False)
