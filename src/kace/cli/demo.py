"""`kace demo`: the ladder on the starter set, live or replayed."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kace.cli.streams import note
from kace.errors import KaceError

if TYPE_CHECKING:
    from kace.config import Config
    from kace.models.base import ChatModel
    from kace.models.replay import Replay
    from kace.problem import Problem
    from kace.solver.run import Run
    from kace.solver.trace import SolveRecord

PROBLEMS = 12
RECORDING = Path(__file__).parent.parent / "datasets" / "starter" / "bundled" / "demo.calls.jsonl"


def demo(
    replay: bool = typer.Option(False, "--replay", help="Replay a recorded run of the real model: no weights needed."),
    model: str = typer.Option(None, "--model", "-m", help="Another model than the embedded default."),
    base_url: str = typer.Option(None, help="An OpenAI-compatible server for openai/NAME."),
    n: int = typer.Option(PROBLEMS, "--n", min=1, max=PROBLEMS, help="How many problems."),
    out: Path = typer.Option(None, help="The run directory; a fresh one under runs/ without it."),
) -> None:
    """Solve a dozen starter problems and show how each answer came about."""
    from kace.cli.weights import ensure_weights
    from kace.config import load_config

    config = load_config({"preset": "starter", "model": model, "base_url": base_url})
    if not replay:
        try:
            ensure_weights(config)
        except KaceError as error:
            if model is not None:
                raise
            note(f"kace: {error}")
            replay = True
    recorded = recording() if replay else None
    if recorded:
        print("This is a REPLAY of a recorded run of the real model; no model is running now.\n")
    else:
        print(f"Solving {n} starter problems with {config.model} (a few minutes on two cores).\n", flush=True)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    _show(demo_problems(n), config, recorded, out or Path("runs") / f"demo-{stamp}{'-replay' if replay else ''}")


def demo_problems(n: int = PROBLEMS) -> tuple[Problem, ...]:
    """The same few problems of the test split, from every domain in turn."""
    from kace.datasets.starter import load_split

    by_domain: dict[str | None, list[Problem]] = {}
    for problem in load_split("test"):
        by_domain.setdefault(problem.domain, []).append(problem)
    turns = [problems[turn] for turn in range(n) for problems in by_domain.values() if turn < len(problems)]
    return tuple(turns[:n])


def recording() -> Replay:
    """The bundled recording of the demo on the default model."""
    from kace.models.replay import Replay

    return Replay.open(RECORDING)


def _show(problems: tuple[Problem, ...], config: Config, recorded: ChatModel | None, folder: Path) -> None:
    from kace.cli.show import summary_lines
    from kace.solver.run import Run, manifest_of
    from kace.solver.summary import Summary

    summary = Summary()
    began = time.monotonic()
    manifest = manifest_of(config)
    with Run(folder, {**manifest, "replay_of": recorded.name} if recorded else manifest) as run:
        _solve(problems, config, recorded, run, summary.add)
    print()
    for line in summary_lines(summary, time.monotonic() - began):
        print(line)
    print(f"run          {folder}")
    if recorded:
        print("\nThis was a REPLAY. Run `make demo` for the real model.")


def _solve(
    problems: tuple[Problem, ...],
    config: Config,
    recorded: ChatModel | None,
    run: Run,
    add: Callable[[SolveRecord], None],
) -> None:
    from rich.console import Console

    from kace.cli.live import LiveTable, solve_table, terminal
    from kace.cli.running import run_async
    from kace.cli.show import audit_line
    from kace.solver.run import solve_all
    from kace.solver.session import open_session
    from kace.solver.solution import Solution

    console = Console()
    table = LiveTable(len(problems), rows=len(problems), console=console) if terminal() else None
    done: list[SolveRecord] = []

    def keep(solution: Solution) -> None:
        record = run.keep(solution)
        add(record)
        done.append(record)
        if table is None:
            print(audit_line(record), flush=True)

    async def work() -> None:
        calls = None if recorded else run.calls
        async with open_session(config, calls=calls, model=recorded, observer=table) as session:
            await solve_all(problems, session.kit, session.window, keep)

    with table or nullcontext():
        run_async(work(), resumable=False)
    if table:
        console.print(solve_table(done))
