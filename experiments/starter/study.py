"""Tables of the 1,000-problem study that `kace report` does not draw, from the published votes alone.

With and without the house conventions; families that training saw and families that occur only in the test set, apart;
the wary ladder counted again without its ES attempts where a card speaks of the problem; and higher gates. Intervals
resample families. Writes study.md beside this file, or to the path given.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path

from kace.answers.extract import Answer
from kace.cards.card import Difficulty
from kace.datasets.starter.generate import generate_set
from kace.files import write_atomic
from kace.runs.arm import Arm, read_arm
from kace.runs.compare import compare
from kace.ladder.ladder import fallback
from kace.problems import Problem
from kace.ladder.gate import TreeScore
from kace.cards.store import open_tree
from kace.ladder.tiers import LOCKED
from kace.ladder.record import Damage, Solution, read_trace
from kace.ladder.vote import AnswerClass, count

HERE = Path(__file__).resolve().parent
SOLVERS = ("0.5b", "1.5b")
HOUSE = "house_conventions"
THRESHOLD = 2.0
RECOUNTED = "recounted"
GATES = (2, 3, 4)
SEEN = {problem.family for problem in generate_set(200, 1, "train")}
TEST = {problem.id: problem for problem in generate_set(1000, 1, "test")}
GROUPS: Mapping[str, Callable[[Problem], bool]] = {
    "all": lambda problem: True,
    "without house conventions": lambda problem: problem.domain != HOUSE,
    "families seen in training": lambda problem: problem.family in SEEN and problem.domain != HOUSE,
    "house conventions, seen": lambda problem: problem.family in SEEN and problem.domain == HOUSE,
    "families only in test": lambda problem: problem.family not in SEEN,
}


def main(out: Path) -> None:
    """Write the page."""
    write_atomic(out, "\n".join(_page()) + "\n")


def _page() -> Iterator[str]:
    yield "# The 1,000 test problems, by what training saw"
    yield ""
    yield "Drawn by `python experiments/starter/study.py` from the votes in test-0.5b and test-1.5b. Accuracy, and the"
    yield "difference from Tiered paired by problem and seed. 95 % intervals resample families: all problems and seeds"
    yield "of one family stay together. House conventions are nine invented families, two of them only in test."
    yield ""
    yield f"Rows marked *{RECOUNTED}* were counted after the fact from another arm's votes; they have no run of their own."
    for solver in SOLVERS:
        folder = HERE / f"test-{solver}"
        arms = [_named(folder, name) for name in (folder / "arms.txt").read_text().split()]
        tiered, kace, wary = arms[:3]
        tree = open_tree(folder / "tree")
        score = TreeScore(tree)
        scores = {id: score(problem.text) for id, problem in TEST.items()}
        medium = {card.card_id for card in tree if card.difficulty_tag is Difficulty.MEDIUM}
        known = {id for id, found in scores.items() if any(found.get(card, 0) >= THRESHOLD for card in medium)}
        yield ""
        yield f"## Qwen2.5-Coder {solver.upper()}"
        yield ""
        yield from _table([*arms[:3], direct(wary, known), *arms[3:]])
        yield ""
        yield "A higher gate: Tiered's solve wherever no card that was shown, at MS or HS, shares that many telling"
        yield "words. Two words are the gate of the run itself. Above it the count is rough: a solve of which only some"
        yield "cards pass is kept whole, and one that Tiered would send on to a card that passes is Tiered's."
        yield ""
        higher = [_behind(arm, tiered, scores, gate) for arm in (kace, wary) for gate in GATES]
        yield from _table([tiered, *higher])
    yield ""
    yield "kace-direct is kace-wary counted again: where a card speaks of a problem, its ES attempts count for no vote"
    yield "and no call. Prompts and samples of MS and HS do not depend on them, so nothing else changes."


def _named(folder: Path, name: str) -> Arm:
    return replace(read_arm(folder / "runs" / name), name=name)


def _table(arms: Sequence[Arm]) -> Iterator[str]:
    base = arms[0]
    yield f"| arm | seeds | calls | {' | '.join(GROUPS)} |"
    yield "|---" * (3 + len(GROUPS)) + "|"
    for arm in arms:
        calls = sum(row.paper_calls for row in arm.rows) / len(arm.rows)
        cells = [_cell(base, arm, belongs) for belongs in GROUPS.values()]
        yield f"| {arm.name} | {len({row.seed for row in arm.rows})} | {calls:.2f} | {' | '.join(cells)} |"


def _cell(base: Arm, arm: Arm, belongs: Callable[[Problem], bool]) -> str:
    ours, theirs = (
        replace(each, rows=tuple(row for row in each.rows if belongs(TEST[row.problem]))) for each in (base, arm)
    )
    right = sum(bool(row.correct) for row in theirs.rows) / len(theirs.rows)
    if arm is base:
        problems, families = (len({getattr(row, name) for row in ours.rows}) for name in ("problem", "family"))
        return f"{100 * right:.1f} (n = {problems}, {families} families)"
    found = compare(ours, theirs)
    low, high = found.interval
    return f"{100 * right:.1f}, {100 * found.difference:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"


def _behind(arm: Arm, tiered: Arm, scores: Mapping[str, Mapping[str, float]], gate: float) -> Arm:
    """An arm about as it would be, did its cards stand behind a higher gate."""
    without = {(row.problem, row.seed): row for row in tiered.rows}
    rows = (
        row if any(scores[row.problem].get(card, 0) >= gate for card in row.cards) else without[row.problem, row.seed]
        for row in arm.rows
    )
    return replace(arm, name=f"{arm.name}, {gate:g} words ({RECOUNTED})", rows=tuple(rows))


def direct(wary: Arm, known: Set[str]) -> Arm:
    """The wary ladder, begun at MS where a card speaks of the problem."""
    assert wary.folder
    counted = {}
    for line in read_trace(wary.folder / "traces.jsonl.gz"):
        assert not isinstance(line.content, Damage)
        if line.content.problem in known:
            counted[line.content.problem, line.content.seed] = without_es(line.content)
    rows = tuple(
        replace(row, correct=found[0], paper_calls=found[1], real_calls=found[1])
        if (found := counted.get((row.problem, row.seed)))
        else row
        for row in wary.rows
    )
    return replace(wary, name=f"kace-direct ({RECOUNTED})", rows=rows)


def without_es(solve: Solution) -> tuple[bool, int]:
    """Whether the solve is right without its ES attempts, and the calls it then takes."""
    skipped, stop = LOCKED[0].attempts, 0
    classes = [
        AnswerClass(Answer.of(each.answer), kept, exact=True)
        for each in solve.classes
        if (kept := tuple(position - skipped for position in each.positions if position >= skipped))
    ]
    # The first position of a class names it, as in the votes.
    right = {each.answer.text: bool(solve.attempts[each.positions[0] + skipped].correct) for each in classes}
    for tier in LOCKED[1:]:
        start, stop = stop, stop + tier.attempts
        vote = count(classes, start, stop)
        if vote.leader and tier.gate.opens(vote):
            return right[vote.leader.answer.text], stop
    _, winner = fallback(classes, stop)
    return right[winner.answer.text] if winner else bool(solve.attempts[-1].correct), stop


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else HERE / "study.md")
