"""Every system that needs no training, on the embedded model: real engine, real prompts, real classifier replies."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from kace.baselines.systems import Inputs, open_system
from kace.cards.card import Difficulty
from kace.cards.formats import starter_domains
from kace.cards.tree import EpistemicTree
from kace.config import load_config, user_cache
from kace.errors import KaceError
from kace.ladder.record import Solution
from kace.ladder.session import open_session
from kace.models.cache import CallStore
from kace.models.local import find_weights, pull
from kace.problems import Problem, load_bundled
from tests.baselines.arena import BARE, FLAT, UNTRAINED, card

NAME = "qwen2.5-coder-0.5b"
FAMILIES = ("factorial_zeros", "same_colour_guarantee")
MAX_TOKENS = 12
"""Too few to reach an answer, so that every ladder is climbed to its end and reads at MS and HS."""
TREE = EpistemicTree.of(
    starter_domains(),
    [
        card("ZEROSMED", Difficulty.MEDIUM, "number_theory", trigger="zeros of a factorial"),
        card("ZEROSHARD", Difficulty.HARD, "number_theory", trigger="powers of ten dividing"),
        card("SHAPEMED", Difficulty.MEDIUM, "geometry", trigger="area of a rectangle"),
        card("SHAPEHARD", Difficulty.HARD, "geometry", trigger="diagonals of a polygon"),
        card("ANYWHERE", Difficulty.UNIVERSAL, "universal", trigger="any answer"),
    ],
)


@pytest.fixture(scope="session")
def weights() -> Path:
    try:
        return pull(find_weights(NAME), cache=user_cache({}) / "models", hub="https://huggingface.co")
    except KaceError as error:
        pytest.skip(f"THE SYSTEMS ARE NOT TESTED ON THE EMBEDDED MODEL: {error}")


def one_of(family: str) -> Problem:
    return next(problem for problem in load_bundled("starter", "test") if problem.family == family)


async def solve_all(
    weights: Path, folder: Path, names: Sequence[str], tree: EpistemicTree = TREE, families: Sequence[str] = FAMILIES
) -> dict[str, list[Solution]]:
    """The problems under every system named, sharing their calls: what two systems ask alike is asked once."""
    flags = {"model": f"local/{weights}", "max_tokens": MAX_TOKENS, "router": "model", "placement": "instructions"}
    config = load_config(flags, env={})
    calls = CallStore(folder / "calls")
    found: dict[str, list[Solution]] = {}
    try:
        async with open_session(config, calls=calls) as session:
            bench = Inputs(tree, None, config, session.classifier, session.role("helper"), seed=0)
            for name in names:
                system = open_system(name, bench)
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(system.solve(one_of(family), session.kit)) for family in families]
                found[name] = [task.result() for task in tasks]
    finally:
        calls.close()
    return found


@pytest.mark.model
def test_the_method_and_its_base_run_on_the_embedded_model(weights: Path, tmp_path: Path):
    # One problem, and a classifier with few examples to read: all of them are read in the slow test.
    few = [domain.model_copy(update={"signals": domain.signals[:1]}) for domain in TREE.domains]
    check(asyncio.run(solve_all(weights, tmp_path, ("tiered", "kace"), EpistemicTree.of(few, TREE), FAMILIES[:1])))


@pytest.mark.model
@pytest.mark.slow
def test_every_untrained_system_runs_on_the_embedded_model(weights: Path, tmp_path: Path):
    found = asyncio.run(solve_all(weights, tmp_path, UNTRAINED))
    assert list(found) == list(UNTRAINED)
    check(found)
    first = {name: solutions[0] for name, solutions in found.items()}
    for name in ("kace-monolithic", "kace-retriever"):
        assert len(first[name].recalls[0].cards) == len(TREE), "k is larger than the pool"
    assert first["kace-oracle"].recalls[0].domains == ("number_theory",)
    assert first["kace"].recalls[0].classifier_calls >= 1
    assert first["kace-router"].recalls[0].classifier_calls >= 1


def check(found: Mapping[str, Sequence[Solution]]) -> None:
    for name, solutions in found.items():
        for solution in solutions:
            assert Solution.model_validate_json(solution.model_dump_json()) == solution
            assert not solution.failed, f"{name}: {[a.detail for a in solution.attempts]}"
            assert solution.paper_calls == len(solution.attempts)
            assert (solution.exit is None) == (name in FLAT)
            assert all(recall.tokens > 0 and not recall.estimated for recall in solution.recalls if recall.cards)
            assert len(solution.recalls) == (0 if name in (*FLAT, *BARE) else 2), name
