"""`kace learn`: from a solver's failures on labelled problems to a frozen tree, or to what another method makes."""

from __future__ import annotations

from pathlib import Path

import typer

from kace.cli.options import (
    CAPS,
    DATA,
    LEARNING,
    LIMITS,
    MODEL,
    OUTPUT,
    SOLVER,
    GroupedCommand,
    GroupedVerbs,
    Typed,
    option,
    takes,
)
from kace.errors import UsageError

METHODS = ("kace", "ace", "domain-ace", "gepa", "reflections")
learn_app = typer.Typer(cls=GroupedVerbs, rich_markup_mode=None)


@learn_app.callback(invoke_without_command=True)
@takes(*SOLVER, "teacher", "teacher_base_url", "tree", "profile", "set_", "field", "limit", "held_out", *CAPS,
       "as_json", "config_file")  # fmt: skip
def learn(
    context: typer.Context,
    typed: Typed,
    train: Path = option(DATA, None, help="JSONL with a problem and its answer a line."),
    validation: Path = option(DATA, None, help="For --method gepa: problems that choose the prompt by score alone."),
    method: str = option(LEARNING, "kace", help=f"What to learn with: {', '.join(METHODS)}."),
    epochs: int = option(LEARNING, None, min=1, help="Rounds of adding and refining, or passes over the problems."),
    dry_run: bool = option(LIMITS, False, "--dry-run", help="Say what it would take, and spend nothing."),
    no_wait: bool = option(LIMITS, False, "--no-wait", help="With exchange/DIR: leave when only replies are missing."),
    out: Path = option(OUTPUT, None, help="The tree to make, or another method's folder; the same command resumes it."),
) -> None:
    """Learn a tree from labelled problems: kace learn --train train.jsonl --teacher MODEL --model MODEL --out TREE.

    Other methods make what KACE is compared with: an ACE playbook, a GEPA prompt, or the solver's own reflections. For
    domain-ace and reflections, --tree names a tree whose domains are used.
    """
    if context.invoked_subcommand:
        return
    if train is None or out is None:
        missing = "--train" if train is None else "--out"
        raise UsageError(f"{missing} is missing", fix="kace learn --train train.jsonl --teacher MODEL --out TREE")
    if method not in METHODS:
        raise UsageError(f"unknown method '{method[:40]}'", fix=f"choose one of {', '.join(METHODS)}")
    from kace.cli.learn_run import learn_tree, train_method

    wait = False if no_wait else None
    if method == "kace":
        learn_tree(typed, train, out, epochs, wait, dry_run=dry_run)
    elif dry_run:
        raise UsageError(f"--dry-run does not know {method}", fix="cap it with --max-calls or --max-usd")
    else:
        train_method(method, typed, train, out, validation, epochs, wait)


@learn_app.command(cls=GroupedCommand)
def report(
    tree: Path = typer.Argument(help="The tree that kace learn made, finished or not."),
    html: Path = option(OUTPUT, None, help="Write the page here instead of into the tree's folder."),
    as_json: bool = option(OUTPUT, False, "--json", help="The report as JSON on standard output."),
) -> None:
    """Show what was learned: what each card earned, what was refused and why, and the cost."""
    from kace.cli.learn_run import show_report

    show_report(tree, html, as_json=as_json)


@learn_app.command(cls=GroupedCommand)
@takes("model", "base_url", "seed", "set_", "field", "limit", *CAPS, "as_json", "config_file")
def select(
    typed: Typed,
    tree: Path = typer.Argument(metavar="TREE", help="The --out of kace learn.", show_default=False),
    validation: Path = option(DATA, ..., help="JSONL with a validation problem and its answer a line."),
    seeds: int = option(MODEL, 1, min=1, max=20, help="Solve every problem on this many seeds, from --seed on."),
    out: Path = option(OUTPUT, None, help="Copy the chosen epoch's tree here, frozen."),
) -> None:
    """Choose an epoch of a learned tree on validation problems: kace learn select TREE --validation FILE.

    The solver and its settings are those that the tree was learned with, but for what is given.
    """
    from kace.cli.learn_select import choose_epoch

    choose_epoch(typed, tree, validation, seeds, out)
