"""The relevance gate on large trees: how long it takes to decide what is shown, and whether ES is skipped.

    python benchmarks/bench_gate.py [--quick]

Cards demonstrate problems of the technique set, whose words repeat as a real tree's do: at 100,000 cards every kind of
problem has some five hundred. Each problem is asked twice: a gate that has seen its cards before knows their vectors.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from itertools import cycle, islice

from kace.cards.card import Card, Difficulty, Example, Provenance
from kace.cards.tree import Domain, EpistemicTree
from kace.config import RetrievalConfig
from kace.datasets.techniques.generate import technique_problems
from kace.ladder.retriever import Retriever
from kace.models.scripted import Scripted
from kace.problems import Problem

SIZES = (3, 1_000, 10_000, 100_000)
READING = RetrievalConfig(relevance_threshold=0.45, es_policy="skip")


def tree_of(size: int, told: list[Problem]) -> EpistemicTree:
    """So many cards, each with two demonstrations of one family."""
    domains = sorted({problem.domain or "other" for problem in told})
    cards = []
    for number, problem in enumerate(islice(cycle(told), size)):
        shown = (f"{problem.text} It is case {number}.", f"Case {number + 1}: {problem.text}")
        made = Card(
            card_id=f"EXACT_{'_'.join((problem.family or 'x').upper().split('_')[:3])}_N{number}",
            payload=f"Useful when:\n- {(problem.family or 'x').replace('_', ' ')}\n\nThink.",
            routing_conditions=(),
            difficulty_tag=Difficulty.MEDIUM,
            domain_tags=(problem.domain or "other",),
            helpfulness_score=0.0,
            provenance=Provenance(source="synthetic"),
        )
        cards.append(made.illustrated([Example(text, "So \\boxed{1}.") for text in shown]))
    return EpistemicTree.of([Domain(name=name, description=name.replace("_", " ")) for name in domains], cards)


def milliseconds(work: object, problems: list[Problem]) -> list[float]:
    """How long each problem took."""
    took = []
    for problem in problems:
        began = time.perf_counter()
        work(problem)  # type: ignore[operator]
        took.append(1000 * (time.perf_counter() - began))
    return sorted(took)


def main(quick: bool) -> None:
    """Print a table."""
    told, asked = list(technique_problems("train")), list(technique_problems("validation"))[:100]
    print("| cards | index s | first time, median ms | again, median ms | again, 99 % | skip-ES, median ms | shown |")
    print("|---|---|---|---|---|---|---|")
    for size in SIZES[: 3 if quick else 4]:
        print(row(size, Retriever(tree_of(size, told), Scripted(lambda _: "x"), READING), asked), flush=True)


def row(size: int, found: Retriever, asked: list[Problem]) -> str:
    """One size's line of the table."""
    began = time.perf_counter()
    found.relevance.scores("triangle", 0.45)
    index = time.perf_counter() - began
    first, again = (milliseconds(lambda p: found.relevance.scores(p.text, 0.45), asked) for _ in range(2))
    skip = milliseconds(lambda p: asyncio.run(found.covers(p)), asked)
    shown = sum(bool(found.relevance.scores(problem.text, 0.45)) for problem in asked)
    cells = [f"{size:,}", f"{index:.2f}", *(f"{statistics.median(each):.2f}" for each in (first, again))]
    return (
        f"| {' | '.join([*cells, f'{again[-2]:.2f}', f'{statistics.median(skip):.2f}', f'{shown} of {len(asked)}'])} |"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="no tree of 100,000 cards")
    main(parser.parse_args().quick)
