"""`kace demo`: the ladder on the starter set, live or replayed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from kace.cli.models import ensure_weights
from kace.cli.options import DATA, MODEL, OUTPUT, Typed, command, new_app, option
from kace.cli.solve import solve_problems
from kace.cli.streams import note
from kace.cli.terminal import audit_line, solve_table, terminal
from kace.datasets.starter import load_split
from kace.errors import KaceError
from kace.models.cache import Replay
from kace.problem import Problem
from kace.solver.manifest import manifest_of
from kace.solver.records import Solution
from kace.solver.run import Run

PROBLEMS = 12
RECORDING = Path(__file__).parent.parent / "datasets" / "starter" / "bundled" / "demo.calls.jsonl"
app = new_app()


@command(app, "model", "base_url")
def demo(
    typed: Typed,
    replay: bool = option(MODEL, False, "--replay", help="Replay a recorded run of the real model: no weights needed."),
    n: int = option(DATA, PROBLEMS, "--n", min=1, max=PROBLEMS, help="How many problems."),
    out: Path = option(OUTPUT, None, help="The run directory; a fresh one under runs/ without it."),
) -> None:
    """Solve a dozen starter problems and show how each answer came about."""
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
    done = list[Solution]()

    def finish(solution: Solution) -> None:
        done.append(solution)
        if not terminal():
            print(audit_line(solution), flush=True)

    with Run(folder, manifest_of(config) | ({"replay_of": recorded.name} if recorded else {})) as run:
        lines = list(solve_problems(demo_problems(n), config, run, finish, model=recorded))
    if terminal():
        Console().print(solve_table(done))
    print("", *lines, sep="\n")
    if recorded:
        print("\nThis was a REPLAY. Run `make demo` for the real model.")


def demo_problems(n: int = PROBLEMS) -> tuple[Problem, ...]:
    """The same few problems of the test split, from every domain in turn."""
    by_domain: dict[str | None, list[Problem]] = {}
    for problem in load_split("test"):
        by_domain.setdefault(problem.domain, []).append(problem)
    turns = [problems[turn] for turn in range(n) for problems in by_domain.values() if turn < len(problems)]
    return tuple(turns[:n])
