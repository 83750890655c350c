"""`kace demo`: a few starter problems without cards and with them, side by side, live or replayed."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from kace.baselines.trial import Trial, run_trial
from kace.cards.store import open_tree
from kace.cli.models import ensure_weights
from kace.cli.options import MODEL, OUTPUT, Typed, command, new_app, option
from kace.cli.side_by_side import SideBySide, colour_of
from kace.cli.streams import columns, note, print_lines, run_async
from kace.cli.terminal import RunProgress
from kace.config import tree_path
from kace.datasets.loader import Dataset, set_hash
from kace.datasets.starter import SPLITS, load_split
from kace.errors import KaceError
from kace.ladder.record import Solution
from kace.problems import Problem

RECORDED = Path(__file__).parent.parent / "datasets" / "starter" / "bundled" / "demo"
WITHOUT = "without-cards"
WITH = "with-cards"
"""Two runs: in the folder that the demo writes, and recorded in the package."""
CHOSEN = (
    "starter-test-0097",
    "starter-test-0102",
    "starter-test-0114",
    "starter-validation-0049",
    "starter-test-0070",
    "starter-test-0080",
    "starter-test-0172",
)
"""Four problems that cards repair, one that its card does not save, one that no card fits, one that leaves at ES."""
INTRO = """\
{problems} problems, without cards and with the tree `starter`: {cards} cards, learned from what the embedded 0.5B model
got wrong on other problems. Two attempts read no card (ES). Where they disagree, three more read the cards that fit
(MS), then five (HS)."""
MADE_NOW = """\
Attempts that read a card are made now, a minute or two on two cores; those without cards are a recording of the same
model."""
MEASURED = """\
Chosen to show cards. Measured on 1,000 test problems, three times each, nothing chosen:
52.7 % right without cards, 65.3 % with this tree: +12.6 points, at 4.60 calls a problem
instead of 5.25. The problems vary 58 techniques; resampling these, the 95 % interval is
+5.2 to +20.6. Nine are invented customs, such as slackage, that no model can know: without
them +7.1 (0.0 to +14.7). On ten techniques that training never saw: -0.6 (-2.3 to +1.5).
All results: docs/results.md."""
"""The published study of this model and tree; tests hold the figures to the README."""
NEXT = """\
Next: a problem of your own, these attempts in the browser, a card of your own.
{activate}  kace solve "YOUR PROBLEM" --tree starter --explain
  kace view {folder}
  docs/quickstart.md"""
app = new_app()


@command(app, "model", "base_url")
def demo(
    typed: Typed,
    replay: bool = option(
        MODEL,
        False,
        "--replay",
        help="Replay a recorded run of the real model: no weights needed.",
    ),
    out: Path = option(
        OUTPUT,
        None,
        help="The folder for both runs; a fresh one under runs/ without it.",
    ),
) -> None:
    """Solve a few starter problems without cards and with them, side by side."""
    config = typed.config(preset="starter", tree="starter")
    if not replay:
        try:
            ensure_weights(config, ask=False)
        except KaceError as error:
            if typed.model is not None:
                raise
            note(f"kace: {error}")
            replay = True
    if replay:
        config = config.model_copy(update={"model": f"replay/{RECORDED / WITH}"})
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    folder = out or Path("runs") / f"demo-{stamp}{'-replay' if replay else ''}"
    problems = demo_problems()
    tree = open_tree(tree_path("starter"))
    if replay:
        print(
            "This is a REPLAY of recorded runs of the real model; no model is running now.\n"
        )
    print(_paragraph(INTRO.format(problems=len(problems), cards=len(tree))), flush=True)
    few = Dataset(
        "starter-demo", "chosen", problems, set_hash(problems), "the starter set"
    )
    before = _solved(
        Trial("tiered", few, config, 1),
        folder / WITHOUT,
        lambda problem, solution: None,
    )
    if not replay:
        recorded = all(
            attempt.from_cache
            for solution in before.values()
            for attempt in solution.made
        )
        print(
            _paragraph(
                f"{config.model}, frozen. {MADE_NOW if recorded else 'Every attempt is made now.'}"
            ),
            flush=True,
        )
    print(flush=True)
    shown = SideBySide(tree, config.retrieval)

    def tell(problem: Problem, solution: Solution) -> None:
        print_lines(
            [*shown.lines(problem, before[problem.id], solution), ""], colour_of
        )

    after = _solved(Trial("kace", few, config, 1, tree), folder / WITH, tell)
    without, using = (
        sum(bool(each.correct) for each in found.values()) for found in (before, after)
    )
    said = f"Right: {without} of {len(problems)} without cards, {using} of {len(problems)} with the tree."
    next_steps = NEXT.format(folder=folder, activate=_activate())
    print(
        said, *_shared(after.values()), _paragraph(MEASURED), "", next_steps, sep="\n"
    )
    if replay:
        print("\nThis was a REPLAY. Run `make demo` for the real model.")


def _shared(solutions: Iterable[Solution]) -> Iterator[str]:
    """How much of the prompts with cards was read once for several attempts."""
    reading = [
        (each, {recall.tier for recall in each.recalls if recall.cards})
        for each in solutions
    ]
    prompts = [
        attempt
        for each, tiers in reading
        for attempt in each.made
        if attempt.tier in tiers
    ]
    if tokens := sum(attempt.input for attempt in prompts):
        again = 100 * sum(attempt.cached for attempt in prompts) / tokens
        yield f"Prompts with cards: {tokens:,} tokens, {again:.0f} % of them found in the prefix cache."


def _activate() -> str:
    """The line that puts `kace` on the path, where it is not: `make demo` runs it from its folder."""
    return (
        ""
        if shutil.which("kace")
        else f"  source {os.path.relpath(Path(sys.prefix, 'bin', 'activate'))}\n"
    )


def _paragraph(text: str) -> str:
    return textwrap.fill(text, min(columns(), 100))


def demo_problems() -> tuple[Problem, ...]:
    """The problems of the demo, in its order."""
    known = {
        problem.label: problem for split in SPLITS for problem in load_split(split)
    }
    return tuple(known[label] for label in CHOSEN)


class _InOrder(RunProgress):
    """Tells of each problem as soon as it and all before it are solved; in a terminal, how the rest goes below."""

    def __init__(
        self, problems: tuple[Problem, ...], tell: Callable[[Problem, Solution], None]
    ) -> None:
        super().__init__(len(problems))
        self.solutions: dict[str, Solution] = {}
        self._waiting = deque(problems)
        self._tell = tell

    def solved(self, solution: Solution) -> None:
        """Count a finished problem."""
        super().solved(solution)
        self.solutions[solution.problem] = solution
        while self._waiting and self._waiting[0].id in self.solutions:
            problem = self._waiting.popleft()
            with self.paused():
                self._tell(problem, self.solutions[problem.id])


def _solved(
    trial: Trial, folder: Path, tell: Callable[[Problem, Solution], None]
) -> dict[str, Solution]:
    """The solutions by problem, each told in order. Recorded attempts without cards are not made again."""
    with (
        trial.open(folder, [RECORDED / WITHOUT]) as run,
        _InOrder(trial.data.problems, tell) as progress,
    ):
        run_async(
            run_trial(trial, run, recalled=progress.solved, observer=progress),
            resumable=True,
        )
    return progress.solutions
