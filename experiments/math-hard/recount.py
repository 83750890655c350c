"""Would other weights, or other mixes of texts and programs, have voted better? Recounted from the published attempts.

    python experiments/math-hard/recount.py

Nothing is solved: on validation, the attempts of Tiered and of both program policies are put together in other ways. An
attempt that no policy made votes for nothing, and the last column counts these. Writes recount.md beside this file, or
to the path given.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, pstdev

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tables import markdown

from kace.answers.extract import Answer
from kace.answers.judge import Verdict, settled
from kace.ladder.ladder import fallback
from kace.ladder.record import Attempt, Solution, last_solutions
from kace.ladder.vote import AnswerClass, count, group, heaviest

HERE = Path(__file__).resolve().parent
MEASURES = {
    "logprob": "mean log-probability",
    "overall": "token confidence",
    "tail": "token confidence of the last 128",
    "worst": "token confidence of the worst 128",
}
SCALES = (0.5, 1.0, 2.0)
TEXT, PROGRAM = "text", "program"
Place = tuple[str, str, int]  # the tier, what the attempt is, its index
ES = [("ES", TEXT, 0), ("ES", TEXT, 1)]
TEXTS = [("HS", TEXT, index) for index in range(5)]
MIXES: Mapping[str, tuple[list[Place], list[Place]]] = {
    name: ([("MS", kind, at) for kind, at in ms], [*TEXTS[: 5 - len(more)], *(("MS", PROGRAM, at) for at in more)])
    for name, ms, more in (
        ("three texts; five texts (Tiered)", [(TEXT, 0), (TEXT, 1), (TEXT, 2)], []),
        ("three programs; five texts", [(PROGRAM, 0), (PROGRAM, 1), (PROGRAM, 2)], []),
        ("two texts, a program; five texts", [(TEXT, 0), (TEXT, 1), (PROGRAM, 0)], []),
        ("a text, two programs; five texts", [(TEXT, 0), (PROGRAM, 0), (PROGRAM, 1)], []),
        ("three texts; three texts, two programs", [(TEXT, 0), (TEXT, 1), (TEXT, 2)], [0, 1]),
        ("three texts; two texts, three programs", [(TEXT, 0), (TEXT, 1), (TEXT, 2)], [0, 1, 2]),
        ("two texts, a program; three texts, two programs", [(TEXT, 0), (TEXT, 1), (PROGRAM, 0)], [1, 2]),
    )
}


def solves(arm: str) -> dict[str, Solution]:
    """The solves of a published run on validation, by problem."""
    return {solution.problem: solution for solution in last_solutions(HERE / "policies-validation/runs" / arm)}


def classes_of(attempts: Sequence[Attempt | None]) -> tuple[AnswerClass, ...]:
    """Equal answers together, as far as code can tell without algebra."""

    async def same(one: Answer, other: Answer) -> bool:
        return settled(one, other) is Verdict.SAME

    return asyncio.run(group([Answer.of(each.answer) if each and each.answer else None for each in attempts], same))


def mixed(made: Mapping[Place, Attempt], ms: list[Place], hs: list[Place]) -> tuple[bool, int, int]:
    """Whether the mix is right, its calls, and how many of its attempts nobody made."""
    attempts = [made.get(place) for place in (*ES, *ms, *hs)]
    classes, start = classes_of(attempts), 0
    for stop in (2, 5, 10):
        vote = count(classes, start, stop)
        if vote.leader and vote.leader.votes >= 2:
            return bool(attempts[vote.leader.first].correct), stop, sum(not each for each in attempts[:stop])
        start = stop
    winner = fallback(classes, len(attempts))[1]
    answered = [at for at, each in enumerate(attempts) if each and each.answer]
    last = winner.first if winner else answered[-1] if answered else 0
    return bool(attempts[last].correct), 10, sum(not each for each in attempts)


def weighted(solutions: Sequence[Solution], measure: str, scale: float) -> str:
    """How many are right by the answer of the greatest weight, at the same exit."""
    made = [attempt for solution in solutions for attempt in solution.attempts if attempt.confidence]
    told = {id(attempt): getattr(attempt.confidence, measure) for attempt in made}
    mean, sd, right = fmean(told.values()), pstdev(told.values()), 0
    for solution in solutions:
        attempts, classes = solution.attempts, solution.answer_classes
        weights = [math.exp(scale * (told.get(id(attempt), mean) - mean) / sd) for attempt in attempts]
        winner = heaviest(count(classes, 0, len(attempts)), classes, weights)
        right += bool(winner and attempts[winner.first].correct)
    return f"{100 * right / len(solutions):.1f} %"


def main(out: Path) -> None:
    """Write both tables."""
    tiered, *programs = (solves(arm) for arm in ("tiered", "programs-ms", "programs-ms-hs"))
    every, mixes = [*tiered.values()], []
    weights = [[name, *(weighted(every, measure, scale) for scale in SCALES)] for measure, name in MEASURES.items()]
    found: dict[str, list[tuple[bool, int, int]]] = {}
    for problem, solution in tiered.items():
        made: dict[Place, Attempt] = {}
        for each in (solution, *(run[problem] for run in programs)):
            for attempt in each.attempts:
                kind = PROGRAM if attempt.lens == "program" else TEXT
                made.setdefault((attempt.tier.value, kind, attempt.index), attempt)
        for name, (ms, hs) in MIXES.items():
            found.setdefault(name, []).append(mixed(made, ms, hs))
    for name, each in found.items():
        right, calls, missing = zip(*each, strict=True)
        mixes.append([name, f"{100 * fmean(right):.1f} %", f"{fmean(calls):.2f}", str(sum(missing))])
    lines = markdown(["weights of the vote", *(f"scale {scale:g}" for scale in SCALES)], weights)
    lines += ["", *markdown(["MS; HS", "accuracy", "calls", "attempts nobody made"], mixes)]
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else HERE / "recount.md")
