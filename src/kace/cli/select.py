"""`kace select`: the epoch of a learned tree that does best on problems it was not learned from."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kace.cli.streams import note, print_lines
from kace.errors import UsageError

if TYPE_CHECKING:
    from kace.cli.live import LiveTable
    from kace.config import Config
    from kace.learner.select import Candidate, Contest, Learned, Trial
    from kace.learner.selection import Against, Row, Selection
    from kace.problem import Problem
    from kace.solver.attempt import Attempt
    from kace.solver.solution import Solution
    from kace.solver.trace import SolveRecord

WIDTHS = (5, 5, 18, 16, 9, 12, 5, 11)


def select(
    tree: Path = typer.Argument(metavar="TREE", help="The --out of kace learn.", show_default=False),
    val: Path = typer.Option(..., "--val", help="JSONL with a validation problem and its answer a line."),
    out: Path = typer.Option(None, help="Copy the chosen epoch's tree here, frozen."),
    model: str = typer.Option(None, "--model", "-m", help="The solver; left out, the one the tree was learned with."),
    base_url: str = typer.Option(None, help="An OpenAI-compatible server for openai/NAME."),
    seed: int = typer.Option(None, min=0, help="Draws other samples; the learner's without it."),
    seeds: int = typer.Option(1, min=1, max=20, help="Solve every problem on this many seeds, from --seed on."),
    limit: int = typer.Option(None, min=1, help="Only the first N problems of the file."),
    field: list[str] = typer.Option([], help="Where the file keeps a field: problem=question, answer=target, id=name."),
    max_connections: int = typer.Option(None, help="Calls under way at once; left out, as the tree was learned."),
    max_calls: int = typer.Option(None, help="Stop before more calls than this are made."),
    max_usd: float = typer.Option(None, help="Stop before more money than this is spent."),
    as_json: bool = typer.Option(False, "--json", help="The selection as JSON on standard output."),
    config_file: Path = typer.Option(None, "--config", help="A TOML file; kace.toml is read when it is there."),
) -> None:
    """Choose an epoch of a learned tree on a validation set: kace select --val val.jsonl TREE."""
    from kace.learner.select import Contest, candidates, check_validation, read_learned

    learned = read_learned(tree)
    entered = candidates(tree)
    problems = _problems(val, field, limit)
    check_validation(problems, learned)
    _check_out(out, entered)
    flags = {
        "model": model,
        "base_url": base_url,
        "seed": seed,
        "max_connections": max_connections,
        "max_calls": max_calls,
        "max_usd": max_usd,
    }
    config = _config(learned, flags, config_file)
    _say_what_was_checked(tree, problems)
    contest = Contest(tree / "learn" / "select", problems, config, tuple(range(config.seed, config.seed + seeds)))
    selection = _selected(contest, entered, tree)
    if as_json:
        print(selection.model_dump_json())
    else:
        print_lines(selection_lines(selection))
    _say_how_to_use(selection, tree)
    if out is not None:
        _copy(selection, entered, tree, out)


class Progress:
    """A line when a run begins and ends; in a terminal, a live table between."""

    def __init__(self) -> None:
        self.table: LiveTable | None = None

    def trying(self, trial: Trial, problems: int, done: Sequence[SolveRecord]) -> None:
        """A run begins."""
        from kace.cli.live import LiveTable, terminal

        before = f", {len(done)} done before" if done else ""
        note(f"kace: {_called(trial)}: {problems} problems{before}")
        if terminal():
            self.table = LiveTable(problems)
            for record in done:
                self.table.add(record)
            self.table.__enter__()

    def tried(self, trial: Trial, records: Sequence[SolveRecord]) -> None:
        """A run is complete."""
        self.close()
        note(f"kace: {_called(trial)}: {sum(bool(record.correct) for record in records)} of {len(records)} right")

    def started(self, problem: Problem) -> None:
        """A problem steps onto the ladder."""
        if self.table:
            self.table.started(problem)

    def attempted(self, problem: Problem, attempt: Attempt) -> None:
        """An attempt has ended."""
        if self.table:
            self.table.attempted(problem, attempt)

    def solved(self, solution: Solution) -> None:
        """A problem has left the ladder."""
        if self.table:
            self.table.solved(solution)

    def close(self) -> None:
        """Take the table down, if there is one."""
        if self.table:
            self.table.__exit__(None, None, None)
            self.table = None


def selection_lines(selection: Selection) -> list[str]:
    """A row for each epoch, the chosen one marked, and what it means."""
    head = _line(" ", "epoch", "cards", "right", "95 % interval", "against 0", "against last", "calls", "card tokens")
    rows = [
        _line(
            "*" if row.epoch == selection.epoch else " ",
            str(row.epoch),
            str(row.cards) if row.epoch else "-",
            f"{row.right} of {row.n} = {row.accuracy:.1%}",
            f"{row.low:.1%} to {row.high:.1%}",
            _change(row.ladder),
            _change(row.previous),
            f"{row.calls:.2f}",
            f"{row.card_tokens:,.0f}",
        )
        for row in selection.rows
    ]
    return [head, *rows, "", selection.said, *_failures(selection.rows)]


def _line(mark: str, *cells: str) -> str:
    return f"{mark} " + "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True))


def _failures(rows: Sequence[Row]) -> list[str]:
    failed = sum(row.failed for row in rows)
    if not failed:
        return []
    return [f"{failed} solves lost a call to the provider and count as they are; the same command tries them again."]


def _change(found: Against | None) -> str:
    return "" if found is None else f"+{found.gained} -{found.lost}"


def _called(trial: Trial) -> str:
    epoch = trial.candidate.epoch
    return f"epoch {epoch}{'' if epoch else ' (no tree)'}" + (f", seed {trial.seed}" if trial.seed else "")


def _problems(path: Path, field: list[str], limit: int | None) -> tuple[Problem, ...]:
    from kace.cli.solve import field_map
    from kace.problem import load_problems

    return load_problems(path, field_map(field))[:limit]


def _config(learned: Learned, flags: dict[str, object], file: Path | None) -> Config:
    from kace.cli.weights import ensure_weights
    from kace.config import load_config
    from kace.learner.select import solver_settings

    config = load_config(solver_settings(learned, flags, load_config(file=file)), file=file)
    for named in (config.for_teacher(), config) if config.synthesis else (config,):
        ensure_weights(named)
    return config


def _check_out(out: Path | None, entered: Sequence[Candidate]) -> None:
    """Refuse before anything is paid what would be refused in the end."""
    from kace.tree.store import TreeStore

    if out is not None and TreeStore(out).cards_path.exists():
        found = TreeStore.open(out).load()
        if found and all(found != candidate.tree for candidate in entered):
            raise UsageError(f"{out} already holds another tree", fix="choose another --out")


def _selected(contest: Contest, entered: Sequence[Candidate], tree: Path) -> Selection:
    from kace.cli.running import run_async
    from kace.io import write_atomic
    from kace.learner.select import hold, selection_of

    progress = Progress()
    try:
        outings = run_async(hold(contest, entered, spectator=progress), resumable=True)
    finally:
        progress.close()
    selection = selection_of(contest, outings)
    write_atomic(tree / "learn" / "selection.json", selection.model_dump_json(indent=2) + "\n")
    return selection


def _copy(selection: Selection, entered: Sequence[Candidate], tree: Path, out: Path) -> None:
    from kace.learner.select import keep_tree

    chosen = next(candidate for candidate in entered if candidate.epoch == selection.epoch)
    digest = keep_tree(out, chosen.tree, f"epoch {chosen.epoch} of {tree}")
    what = "an empty tree, which is the ladder alone" if chosen.tree is None else f"epoch {chosen.epoch}"
    note(f"copied       {out}: {what}, frozen at {digest[:12]}")


def _say_what_was_checked(tree: Path, problems: Sequence[Problem]) -> None:
    from kace.tree.store import frozen_hash_of

    if frozen_hash_of(tree) is None:
        note(f"kace: {tree} is not frozen, so the learner has not finished; the epochs there are so far are tried")
    note(
        f"kace: none of the {len(problems)} validation problems has the text of a training problem; {tree} keeps no"
        " training texts, so one told in other words would not be noticed here (kace learn --held-out notices it)"
    )


def _say_how_to_use(selection: Selection, tree: Path) -> None:
    note(f"selection    {tree / 'learn' / 'selection.json'}")
    if selection.tree is None:
        note("use          kace solve, without --tree")
    else:
        note(f"use          kace solve --tree {shlex.quote(str(tree / selection.tree))}")
