"""A real tree of three domains, a solver that remembers what it was shown, and benches to open systems with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import pytest

from kace.baselines import systems
from kace.baselines.systems import SYSTEMS, TRAINING, Inputs, System, open_system
from kace.cards.card import UNIVERSAL, Card, Difficulty, Provenance, Status
from kace.cards.tree import Domain, EpistemicTree
from kace.config import Config, load_config
from kace.ladder.ladder import Kit
from kace.ladder.record import Solution
from kace.models.base import Failure, ModelError, Request
from kace.models.scripted import Scripted
from kace.problems import Problem
from tests.card_samples import card as sample
from tests.card_samples import named
from tests.one_loop import JUDGE, LOOP

DEFAULTS = load_config({"model": "scripted/custom"}, env={})
READING = {"router": "model", "placement": "instructions", "relevance_threshold": 0.15}
CONFIG = load_config({"model": "scripted/custom", "retrieval": READING}, env={})
"""Whole blocks, as text: what a system chooses, and not what fits of it. The gate holds no card back that has no
demonstrations."""
DOMAINS = ("counting", "geometry", "rates")
UNTRAINED = tuple(name for name, spec in SYSTEMS.items() if not spec.trainer and spec.artefact != TRAINING)
FLAT = ("single", "best-of-5")
BARE = ("tiered",)
"""Ladders that read nothing."""
LADDERS = tuple(name for name in UNTRAINED if name not in FLAT)
DISTINCT = tuple(str(number) for number in range(100))
PROBLEMS = (
    Problem("How many handshakes do 5 people exchange?", "10", "p1", domain="counting"),
    Problem("What is the area of a square with side 3?", "9", "p2", domain="geometry"),
    Problem("A car drives 60 km/h for 2 hours. How far does it get?", "120", "p3", domain="rates"),
)


def card(
    name: str, difficulty: Difficulty, *domains: str, trigger: str = "it comes up", status: Status = Status.VALIDATED
) -> Card:
    payload = f"Useful when:\n- {trigger}\n\nDo this with care."
    own = Provenance(source="test", promotion_status=status)
    return sample(f"EXACT_{name}_CARD", payload=payload, difficulty_tag=difficulty, domain_tags=domains, provenance=own)


CARDS = (
    card("MEDCOUNT", Difficulty.MEDIUM, "counting", trigger="pairs of people"),
    card("HARDCOUNT", Difficulty.HARD, "counting", trigger="handshakes in a group"),
    card("MEDGEO", Difficulty.MEDIUM, "geometry", trigger="area of a square"),
    card("HARDGEO", Difficulty.HARD, "geometry", trigger="angles of a polygon"),
    card("MEDRATE", Difficulty.MEDIUM, "rates", trigger="speed and hours driven"),
    card("HARDRATE", Difficulty.HARD, "rates", trigger="two moving trains"),
    card("MEDSHARED", Difficulty.MEDIUM, "counting", "geometry", trigger="grid points"),
    card("EVERYWHERE", Difficulty.UNIVERSAL, UNIVERSAL, trigger="any answer"),
    card("GONE", Difficulty.MEDIUM, "counting", trigger="handshakes", status=Status.DEPRECATED),
)
TREE = EpistemicTree.of(
    [Domain(name=name, description=f"Problems of {name}.", share=0.3, signals=(name,)) for name in DOMAINS], CARDS
)
MEDIUM = {c.card_id for c in CARDS if c.difficulty_tag is Difficulty.MEDIUM and c.status is not Status.DEPRECATED}
HARD = {c.card_id for c in CARDS if c.difficulty_tag is Difficulty.HARD}
EVERYWHERE = "EXACT_EVERYWHERE_CARD"
POOL = {*MEDIUM, *HARD, EVERYWHERE}
POOL_CARDS = tuple(card for card in TREE if card.status is not Status.DEPRECATED)


def ids(*names: str) -> set[str]:
    return {f"EXACT_{name}_CARD" for name in names}


class Solver(Scripted):
    """Gives the next of its answers, `None` for no answer and an error for a failed call; remembers every request."""

    def __init__(
        self,
        answers: Sequence[str | ModelError | None] = DISTINCT,
        *,
        domain: str | ModelError = "counting",
        picks: Sequence[str | ModelError] = ("none",),
    ) -> None:
        self.requests: list[Request] = []
        self.shown: defaultdict[str, set[str]] = defaultdict(set)
        self.texts: defaultdict[str, list[str]] = defaultdict(list)
        said = iter(answers)
        picked = iter(picks)

        def script(request: Request) -> str:
            self.requests.append(request)
            text = "\n".join(message.content for message in request.messages)
            tier = request.attempt.tier
            self.texts[tier].append(text)
            self.shown[tier] |= {name for name in TREE.cards if f"[{name}]" in text}
            placed = tier.startswith("DOMAIN")
            reply = domain if placed else next(picked) if tier == "ROUTE" else next(said)
            if isinstance(reply, ModelError):
                raise reply
            if placed and isinstance(reply, str) and not reply.startswith("{"):
                return named(reply)
            if placed or tier == "ROUTE":
                return str(reply)
            return "I cannot tell." if reply is None else f"So \\boxed{{{reply}}}"

        super().__init__(script)


def reading(**settings: object) -> Config:
    """The configuration with other retrieval settings."""
    return CONFIG.model_copy(update={"retrieval": CONFIG.retrieval.model_copy(update=settings)})


def lost() -> ModelError:
    return ModelError(Failure.PROVIDER_ERROR, "502")


def bench(model: Scripted, **changes: object) -> Inputs:
    opened = Inputs(tree=TREE, artefact=None, config=CONFIG, classifier=model, helper=model, seed=0)
    return replace(opened, **changes)  # type: ignore[arg-type]


def solve(name: str, model: Scripted, problem: Problem = PROBLEMS[0], **changes: object) -> Solution:
    """Solve a problem with a system; `k` is how many cards it picks."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(systems, "DEFAULT_K", changes.pop("k", systems.DEFAULT_K))
        return run(open_system(name, bench(model, **changes)), model, problem)


def run(system: System, model: Scripted, problem: Problem = PROBLEMS[0]) -> Solution:
    system.check([problem])
    return LOOP.run(system.solve(problem, Kit(model, JUDGE, CONFIG.tier_sampling())))
