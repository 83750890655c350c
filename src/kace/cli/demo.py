"""`kace demo`: the ladder on the starter set, live or replayed."""

from __future__ import annotations

import time
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kace.cli.options import DATA, MODEL, OUTPUT, Typed, option, takes
from kace.cli.streams import note, run_async
from kace.errors import KaceError

if TYPE_CHECKING:
    from kace.config import Config
    from kace.models.base import ChatModel
    from kace.problem import Problem
    from kace.solver.records import Solution
    from kace.solver.run import Run

PROBLEMS = 12
RECORDING = Path(__file__).parent.parent / "datasets" / "starter" / "bundled" / "demo.calls.jsonl"


@takes("model", "base_url")
def demo(
    typed: Typed,
    replay: bool = option(MODEL, False, "--replay", help="Replay a recorded run of the real model: no weights needed."),
    n: int = option(DATA, PROBLEMS, "--n", min=1, max=PROBLEMS, help="How many problems."),
    out: Path = option(OUTPUT, None, help="The run directory; a fresh one under runs/ without it."),
) -> None:
    """Solve a dozen starter problems and show how each answer came about."""
    from kace.cli.models import ensure_weights
    from kace.cli.terminal import summary_lines
    from kace.models.replay import Replay
    from kace.solver.manifest import manifest_of
    from kace.solver.run import Run
    from kace.solver.summary import Summary

    config = typed.config(preset="starter")
    if not replay:
        try:
            ensure_weights(config)
        except KaceError as error:
            if typed.model is not None:
                raise
            note(f"kace: {error}")
            replay = True
    recorded = Replay.open(RECORDING) if replay else None
    if recorded:
        print("This is a REPLAY of a recorded run of the real model; no model is running now.\n")
    else:
        print(f"Solving {n} starter problems with {config.model} (a few minutes on two cores).\n", flush=True)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    folder = out or Path("runs") / f"demo-{stamp}{'-replay' if replay else ''}"
    began = time.monotonic()
    with Run(folder, manifest_of(config) | ({"replay_of": recorded.name} if recorded else {})) as run:
        done = _solve(demo_problems(n), config, recorded, run)
    lines = summary_lines(Summary.of(done), time.monotonic() - began)
    print("", *lines, f"run          {folder}", sep="\n")
    if recorded:
        print("\nThis was a REPLAY. Run `make demo` for the real model.")


def demo_problems(n: int = PROBLEMS) -> tuple[Problem, ...]:
    """The same few problems of the test split, from every domain in turn."""
    from kace.datasets.starter import load_split

    by_domain: dict[str | None, list[Problem]] = {}
    for problem in load_split("test"):
        by_domain.setdefault(problem.domain, []).append(problem)
    turns = [problems[turn] for turn in range(n) for problems in by_domain.values() if turn < len(problems)]
    return tuple(turns[:n])


def _solve(problems: tuple[Problem, ...], config: Config, recorded: ChatModel | None, run: Run) -> list[Solution]:
    """What came of the problems, each shown as it is solved."""
    from rich.console import Console

    from kace.cli.terminal import LiveTable, audit_line, solve_table, terminal
    from kace.solver.session import open_session

    console = Console()
    done: list[Solution] = []
    table = LiveTable(len(problems), rows=len(problems), console=console) if terminal() else None

    def kept(solution: Solution) -> None:
        done.append(solution)
        if table is None:
            print(audit_line(solution), flush=True)

    async def work() -> None:
        calls = None if recorded else run.calls
        async with open_session(config, calls=calls, model=recorded, observer=table) as session:
            await run.solve(problems, session.kit, session.window, kept=kept)

    with table or nullcontext():
        run_async(work(), resumable=False)
    if table:
        console.print(solve_table(done))
    return done
