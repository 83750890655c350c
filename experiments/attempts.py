"""What cards do to a single attempt: the MS attempts at problems that were shown a card, with and without it.

Drawn from the published votes on validation alone. Writes attempts.md beside this file, or to the path given.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from kace.files import write_atomic
from kace.ladder.tiers import ExitPath, TierName
from kace.ladder.record import Attempt, Damage, Solution, read_trace

HERE = Path(__file__).resolve().parent
STUDIES = ("starter/gate-0.5b", "starter/gate-1.5b", "math-hard/validation")
ARMS = ("text-1", "turns-1", "turns-all", "placebo-turns-1")

Solves = dict[tuple[str, int], Solution]


def main(out: Path) -> None:
    """Write the page."""
    write_atomic(out, "\n".join(_page()) + "\n")


def _page() -> Iterator[str]:
    yield "# What cards do to a single attempt"
    yield ""
    yield "Drawn by `python experiments/attempts.py`: problems that escalated and were shown a card, all seeds; their"
    yield "MS attempts under Tiered and under the arm."
    for study in STUDIES:
        tiered = _solves(study, "tiered")
        escalated = {key for key, solve in tiered.items() if solve.exit is not ExitPath.ES_UNANIMOUS}
        found = sum(any(attempt.correct for attempt in tiered[key].attempts) for key in escalated)
        voted = sum(bool(tiered[key].correct) for key in escalated)
        yield ""
        yield f"## {study}"
        yield ""
        yield f"{len(escalated)} of {len(tiered)} solves escalate; {found} have a right attempt, {voted} end right."
        yield ""
        yield "| arm | solves with a card | attempts right: Tiered | the arm | tokens an attempt: Tiered | the arm |"
        yield "|---|---|---|---|---|---|"
        for name in ARMS:
            arm = _solves(study, name)
            shown = sorted(key for key in escalated if any(recall.cards for recall in arm[key].recalls))
            bare, carded = (_medium([solves[key] for key in shown]) for solves in (tiered, arm))
            yield f"| {name} | {len(shown)} | {_right(bare)} | {_right(carded)} | {_length(bare)} | {_length(carded)} |"


def _solves(study: str, arm: str) -> Solves:
    found: Solves = {}
    for line in read_trace(HERE / study / "runs" / arm / "traces.jsonl.gz"):
        assert not isinstance(line.content, Damage)
        found[line.content.problem, line.content.seed] = line.content
    return found


def _medium(solves: Sequence[Solution]) -> list[Attempt]:
    return [attempt for solve in solves for attempt in solve.attempts if attempt.tier == TierName.MS]


def _right(attempts: Sequence[Attempt]) -> str:
    return f"{100 * sum(bool(attempt.correct) for attempt in attempts) / len(attempts):.1f} %"


def _length(attempts: Sequence[Attempt]) -> str:
    return f"{sum(attempt.output for attempt in attempts) / len(attempts):.0f}"


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else HERE / "attempts.md")
