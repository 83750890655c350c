"""The work of `kace learn select`: every epoch of a learned tree, tried on problems it was not learned from."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Self

from kace.cli.models import ensure_weights
from kace.cli.options import CAPS, Typed
from kace.cli.streams import note, print_lines, run_async
from kace.cli.terminal import LiveTable, terminal
from kace.config import PROFILE_FILE, Config, load_config
from kace.errors import UsageError
from kace.evaluation.arm import Arm
from kace.io import write_atomic
from kace.learner import select
from kace.learner.steps import LearnManifest
from kace.problem import load_problems
from kace.solver.records import Solution
from kace.tree.store import TreeStore, frozen_hash_of


def choose_epoch(typed: Typed, tree: Path, validation: Path, seeds: int, out: Path | None) -> None:
    """Try every epoch, choose one, and say so."""
    learned, epochs = select.read_learned(tree), select.epochs_of(tree)
    problems = load_problems(validation, typed.fields)[: typed.limit]
    select.check_validation(problems, learned)
    if out is not None and TreeStore(out).cards_path.exists():
        found = TreeStore.open(out).load()
        if found and all(found != epoch.tree for epoch in epochs):  # it would be refused in the end, when all is paid
            raise UsageError(f"{out} already holds another tree", fix="choose another --out")
    asked = select.Validation(tree / "learn" / "select", problems, _config(learned, typed), seeds)
    if frozen_hash_of(tree) is None:
        note(f"kace: {tree} is not frozen, so the learner has not finished; the epochs there are so far are tried")
    note(
        f"kace: none of the {len(problems)} validation problems has the text of a training problem; {tree} keeps no"
        " training texts, so one told in other words would not be noticed here (kace learn --held-out notices it)"
    )
    with SelectProgress(asked) as progress:
        arms = run_async(select.try_epochs(asked, epochs, observer=progress), resumable=True)
    selection, place = select.selection_of(asked, epochs, arms), tree / "learn" / "selection.json"
    write_atomic(place, selection.model_dump_json(indent=2) + "\n")
    print_lines([selection.model_dump_json()] if typed.as_json else selection_lines(selection))
    note(f"selection    {place}")
    use = f" --tree {shlex.quote(str(tree / selection.tree))}" if selection.tree else ", without --tree"
    note(f"use          kace solve{use}")
    if out is not None:
        _copy(next(epoch for epoch in epochs if epoch.epoch == selection.epoch), tree, out)


def _config(learned: LearnManifest, typed: Typed) -> Config:
    flags = {**{name: typed.values[name] for name in ("model", "base_url", "seed", *CAPS)}, **typed.settings}
    ambient = load_config(file=typed.config_file)
    config = load_config(select.solver_settings(learned, flags, ambient), file=typed.config_file)
    for named in (config.for_teacher(), config) if config.synthesis else (config,):
        ensure_weights(named)
    return config


def _copy(chosen: select.EpochTree, tree: Path, out: Path) -> None:
    if (profile := tree / PROFILE_FILE).is_file():
        write_atomic(out / PROFILE_FILE, profile.read_bytes())
    digest = select.keep_tree(out, chosen.tree, f"epoch {chosen.epoch} of {tree}")
    what = "an empty tree, which is the ladder alone" if chosen.tree is None else f"epoch {chosen.epoch}"
    note(f"copied       {out}: {what}, frozen at {digest[:12]}")


def selection_lines(selection: select.Selection) -> list[str]:
    """A row for each epoch, the chosen one marked, and what it means."""
    table = [("epoch", "cards", "right", "95 % interval", "against 0", "against last", "calls", "card tokens")]
    table += [
        (
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
    widths = (5, 5, 18, 16, 9, 12, 5, 11)
    lines = ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in table]
    marked = [
        f"{'*' if row[0] == str(selection.epoch) else ' '} {line}" for row, line in zip(table, lines, strict=True)
    ]
    failed = sum(row.failed for row in selection.rows)
    lost = f"{failed} solves lost a call to the provider and count as they are; the same command tries them again."
    return [*marked, "", selection.said, *([lost] if failed else [])]


def _change(found: select.Against | None) -> str:
    return "" if found is None else f"+{found.gained} -{found.lost}"


class SelectProgress(LiveTable):
    """A line when the run of an epoch begins and ends; in a terminal, a live table between."""

    def __init__(self, validation: select.Validation) -> None:
        super().__init__(None)
        seeds = f" on {validation.seeds} seeds" if validation.seeds > 1 else ""
        self.asked = f"{len(validation.problems)} problems{seeds}"

    def __enter__(self) -> Self:
        return self

    def run_started(self, epoch: select.EpochTree, solves: int, done: Sequence[Solution]) -> None:
        """A run begins."""
        note(f"kace: {_called(epoch)}: {self.asked}" + (f", {len(done)} done before" if done else ""))
        self.total, self.done, self.right, self.labelled = solves, 0, 0, 0
        self.began = monotonic()
        self.finished.clear()
        for record in done:
            self.add(record)
        if terminal():
            super().__enter__()

    def run_done(self, epoch: select.EpochTree, arm: Arm) -> None:
        """A run is complete."""
        self.__exit__(None, None, None)
        note(f"kace: {_called(epoch)}: {sum(bool(row.correct) for row in arm.rows)} of {len(arm.rows)} right")


def _called(epoch: select.EpochTree) -> str:
    return f"epoch {epoch.epoch}{'' if epoch.epoch else ' (no tree)'}"
