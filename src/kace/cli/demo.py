"""`kace demo`: starter problems without and with cards, side by side, live or replayed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from kace.baselines.evaluate import Trial
from kace.cards.store import open_tree
from kace.cli.eval import finish_trial
from kace.cli.models import prepare
from kace.cli.options import Options, takes
from kace.cli.solve import side_by_side
from kace.cli.terminal import note, print_lines
from kace.config import tree_path
from kace.errors import KaceError
from kace.files import DATA
from kace.ladder.record import Solution
from kace.problems import Dataset, Problem, load_bundled
from kace.runs.table import Table

RECORDED = DATA / "demo"
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
{problems} problems, without cards and with the tree `starter`: {cards} cards, learned from
what the embedded 0.5B model got wrong on other problems. Two attempts read no card
(ES). Where they disagree, three more read the cards that fit (MS), then five (HS)."""
MEASURED = """\
Chosen to show cards. Measured on 1,000 test problems, three times each, with the second
version's search for cards, which was chosen on such problems: 52.7 % right without cards,
65.3 % with the 44 cards that were learned: +12.6 points, at 4.60 calls a problem instead of
5.25. The problems vary 58 techniques; resampling these, the 95 % interval is +5.4 to +20.4.
Nine are invented customs, such as slackage, that no model can know: without them +7.1 (+0.4
to +14.5). On ten techniques that training never saw: -0.6 (-1.7 to 0.0). Six cards that broke
more than they gained there were removed since. A harder test: docs/results.md."""
"""The published study of this model and tree; tests hold the figures to results/."""
NEXT = """\
Next: a problem of your own, these attempts in the browser, a card of your own.
  kace solve "YOUR PROBLEM" --tree starter --explain
  kace view {folder}
  docs/quickstart.md"""


@click.command("demo")
@takes("model", "base_url", "out")
@click.option(
    "--replay",
    is_flag=True,
    help="Replay a recorded run of the real model: no weights needed.",
)
def command(options: Options, replay: bool) -> None:
    """Solve starter problems without and with cards, side by side."""
    config = options.config(preset="starter", tree="starter")
    try:
        if not replay:
            prepare(config)
    except KaceError as error:
        if options.get("model"):
            raise
        note(f"kace: {error}")
        replay = True
    if replay:
        config = config.model_copy(
            update={"model": f"replay/{RECORDED / WITH}"}
        )
        print(
            "This is a REPLAY of recorded runs of the real model; no model is running "
            "now.\nRun `make demo` for the real model.\n"
        )
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    folder = options.get("out") or Path("runs") / f"demo-{stamp}"
    problems = demo_problems()
    tree = open_tree(tree_path("starter"))
    print(INTRO.format(problems=len(problems), cards=len(tree)), flush=True)
    data = Dataset("starter-demo", "chosen", problems)
    before = _solve(Trial("tiered", data, config, 1), folder / WITHOUT)
    if not replay:
        print(f"{config.model}, frozen: a minute or two on two cores.")
    after = _solve(Trial("kace", data, config, 1, tree), folder / WITH)
    for problem in problems:
        without = before[problem.id]
        lines = side_by_side(tree, problem, without, after[problem.id])
        print_lines(["", *lines])
    alone = sum(bool(solution.correct) for solution in before.values())
    using = sum(bool(solution.correct) for solution in after.values())
    print(
        f"\nRight: {alone} of {len(problems)} without cards, "
        f"{using} of {len(problems)} with the tree."
    )
    print(MEASURED, "", NEXT.format(folder=folder), sep="\n")


def demo_problems() -> tuple[Problem, ...]:
    """Return the problems of the demo, in its order."""
    problems = load_bundled("starter", "validation")
    problems += load_bundled("starter", "test")
    found = {problem.label: problem for problem in problems}
    return tuple(found[label] for label in CHOSEN)


def _solve(trial: Trial, folder: Path) -> dict[str, Solution]:
    """Return the solutions by problem. Recorded attempts without cards are not made again."""
    finish_trial(trial, trial.open(folder, [RECORDED / WITHOUT]))
    solutions = Table.open(folder).solutions(texts=False)
    return {solution.problem: solution for solution in solutions}
