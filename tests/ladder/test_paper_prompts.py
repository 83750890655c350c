"""The paper's prompts: roles, lenses and a classifier without examples; and requests of other profiles as they were."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from kace.cards.card import Example
from kace.cards.tree import EpistemicTree
from kace.config import load_config
from kace.ladder.ladder import solve as solve_on_ladder
from kace.ladder.prompt import solver_prompt, template
from kace.ladder.session import open_session
from kace.ladder.tiers import Lens, TierName
from kace.models.base import Request, Role
from kace.models.scripted import Scripted
from kace.problems import Problem
from tests.card_samples import ALGEBRA, GEOMETRY, card, small_tree

DEMONSTRATED = card("MICRO_WITH_A_DEMONSTRATION").illustrated((Example("Sum the first 3 squares.", "\\boxed{14}"),))
TREE = EpistemicTree.of((ALGEBRA, GEOMETRY), (*small_tree(), DEMONSTRATED))
PROBLEM = Problem("What is the sum of squares of the sides?", "1", "p1")
AS_TEXT = {"router": "model", "relevance_threshold": 0.0, "placement": "instructions", "refine_domain": True}


def asked(**settings: object) -> list[Request]:
    """Every request of a climb to the end, in order."""
    requests: list[Request] = []

    def say(request: Request) -> str:
        requests.append(request)
        return request.choices[0] if request.choices else f"\\boxed{{{len(requests)}}}"

    async def work() -> None:
        config = load_config({"model": "scripted/custom", "preset": "starter", **settings}, env={})
        async with open_session(config, model=Scripted(say), tree=TREE) as session:
            await solve_on_ladder(PROBLEM, session.kit)

    asyncio.run(work())
    return requests


@pytest.mark.parametrize(
    ("settings", "calls", "frozen"),
    [
        ({}, 10, "edb693d0553ae17dad22c7fe54ae85ba809bd2036e8ccb1a77635202a96d16cf"),
        (AS_TEXT, 10, "b3cf97d30c548ad0a74cc366257b4aff4a40beabaaff95506de70fb4ede0e1d1"),
    ],
)
def test_requests_of_other_profiles_are_what_they_were(settings: dict[str, object], calls: int, frozen: str):
    attempts = [request for request in asked(**settings) if not request.attempt.tier.startswith("DOMAIN")]
    digests = sorted(request.digest("m") for request in attempts)
    assert len(digests) == calls
    assert hashlib.sha256("".join(digests).encode()).hexdigest() == frozen


# Roles and lenses


def test_an_attempt_has_the_role_of_its_tier_and_the_lens_of_its_place():
    requests = asked(profile="paper")
    assert [request.attempt.tier for request in requests] == [*["ES"] * 2, "DOMAIN", *["MS"] * 3, *["HS"] * 5]
    lenses = {lens: template(f"paper/lens_{lens.value}") for lens in [*Lens][:3]}
    rotation = {"ES": [*Lens][:2], "MS": [*Lens][:3], "HS": [None] * 5}
    for tier, expected in rotation.items():
        of_tier = [request.messages for request in requests if request.attempt.tier == tier]
        held = [[lens for lens, text in lenses.items() if text in messages[-1].content] for messages in of_tier]
        assert held == [[lens] if lens else [] for lens in expected]
        roles = [name for name in ("es", "ms", "hs") if template(f"paper/role_{name}") in of_tier[0][0].content]
        assert roles == [tier.lower()]
        assert len({messages[0] for messages in of_tier}) == 1, "what attempts share comes first"


def test_the_rest_of_a_request_is_as_in_other_profiles():
    ours, theirs = asked(profile="paper"), asked(**{**AS_TEXT, "refine_domain": False})
    for one, other in zip(ours, theirs, strict=True):
        assert (one.sampling, one.attempt) == (other.sampling, other.attempt)
        if one.attempt.tier in ("ES", "MS", "HS"):
            role = template(f"paper/role_{one.attempt.tier.lower()}")
            assert one.messages[0].content.replace(f"\n\n{role}", "", 1) == other.messages[0].content
            assert one.messages[1].content.startswith(PROBLEM.text) and other.messages[1].content.startswith(
                PROBLEM.text
            )


def test_a_sample_without_a_ladder_has_no_role_and_the_hash_knows_roles():
    assert solver_prompt("1?", None, tier=TierName.FLAT) == solver_prompt("1?", None)
    assert len({solver_prompt("1?", None, tier=tier).hash for tier in TierName}) == 4


# The classifier


def test_the_classifier_sees_names_and_descriptions_and_is_asked_at_temperature_zero():
    (request,) = (request for request in asked(profile="paper") if request.attempt.tier == "DOMAIN")
    assert (request.sampling.temperature, request.sampling.max_tokens) == (0.0, 512)
    assert [message.role for message in request.messages] == [Role.SYSTEM, Role.USER]
    for domain in TREE.domains:
        assert f"- {domain.name}: {domain.description}" in request.messages[0].content
        assert not any(signal in request.messages[0].content for signal in domain.signals)
