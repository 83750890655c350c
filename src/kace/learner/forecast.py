"""What a learning run would take, worked out before anything is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kace.config import Config
from kace.learner.failure import TAIL_CHARS
from kace.learner.illustrate import MAX_SHOWN
from kace.learner.settings import Settings
from kace.models.base import Usage
from kace.models.budget import Ledger
from kace.problem import Problem
from kace.retrieval.prompt import template
from kace.solver.tiers import LOCKED, TierName

CHARS_PER_TOKEN = 4
DOMAINS = 5
MOST_DOMAINS = 7
LADDER_SHARE = 0.43
"""Of the eight attempts past ES, the part that the published runs made: 5.4 calls a problem in all."""
FAILED_SHARE = 0.5
"""Of the problems, the part that a tier is expected not to deliver."""
CARD_TOKENS = 250
"""Of a card, and of an example: in the published trees one is about as long as the other."""
TYPICAL_OUTPUT = 800
"""Tokens of a typical attempt, or the tier's cap where that is lower."""


@dataclass(frozen=True, slots=True)
class Load:
    """Calls and tokens of one role."""

    calls: float
    input: float
    output: float


@dataclass(frozen=True, slots=True)
class RoleForecast:
    """What one role is expected to take, and what it takes at most."""

    role: str
    model: str
    expected: Load
    most: Load
    usd: float | None
    """Expected, without any prefix cache; `None` where the user gave no price."""
    most_usd: float | None


def forecast(train: Sequence[Problem], config: Config, settings: Settings) -> tuple[RoleForecast, ...]:
    """Solver, classifier and teacher, in that order."""
    ledger = Ledger(prices=config.price_table())
    solver = [_solver(train, config, settings, most=most) for most in (False, True)]
    classifier = [_classifier(train, share) for share in (LADDER_SHARE, 2.0)]
    teacher = [_teacher(train, settings, most=most) for most in (False, True)]
    rows: tuple[tuple[str, str, Load, Load], ...] = (
        ("solver", config.model, solver[0], solver[1]),
        ("classifier", config.model, classifier[0], classifier[1]),
        ("teacher", config.teacher or "", teacher[0], teacher[1]),
    )
    return tuple(
        RoleForecast(role, model, expected, most, _usd(ledger, model, expected), _usd(ledger, model, most))
        for role, model, expected, most in rows
    )


def runs_per_epoch(settings: Settings, *, most: bool) -> float:
    """Tiered runs an epoch: those that new cards are written from, the base, what measures impact, and the reruns."""
    dropout = settings.impact_runs if settings.impact == "dropout" else 0
    unseen = 1 if settings.refine else 0
    return settings.add_runs + 1 + dropout + (settings.refine + unseen if most else settings.refine / 2)


def _solver(train: Sequence[Problem], config: Config, settings: Settings, *, most: bool) -> Load:
    n, epochs = len(train), settings.epochs
    dropout = settings.impact_runs if settings.impact == "dropout" else 0
    fresh_seeds = 2 + max(0, dropout - 1)  # runs that share a seed share their ES attempts
    easy = epochs * n * LOCKED[0].attempts * fresh_seeds
    climbed = epochs * n * sum(tier.attempts for tier in LOCKED[1:]) * runs_per_epoch(settings, most=most)
    climbed *= 1.0 if most else LADDER_SHARE
    left_out = epochs * settings.impact_calls if settings.impact == "leave_one_out" else 0
    prompt = (len(template("solve")) + sum(len(p.text) for p in train) / n) / CHARS_PER_TOKEN
    cards = config.max_card_tokens if most else min(config.max_card_tokens, 4 * CARD_TOKENS)
    caps = {tier: draw.max_tokens for tier, draw in config.tier_sampling().items()}
    written = {tier: cap if most else min(cap, TYPICAL_OUTPUT) for tier, cap in caps.items()}
    hard = climbed + left_out
    return Load(
        calls=easy + hard,
        input=easy * prompt + hard * (prompt + cards),
        output=easy * written[TierName.ES] + hard * max(written[TierName.MS], written[TierName.HS]),
    )


def _classifier(train: Sequence[Problem], per_problem: float) -> Load:
    calls = len(train) * per_problem  # a placement is asked for once and then kept
    return Load(calls, calls * 1_000, calls * 10)


def _teacher(train: Sequence[Problem], settings: Settings, *, most: bool) -> Load:
    domains, share, tries = (MOST_DOMAINS, 1.0, 2) if most else (DOMAINS, FAILED_SHARE, 1)
    wards = domains + 1
    looks = settings.refine if most else min(1, settings.refine)
    rounds = 2 * domains * (2 + settings.imagine + bool(settings.examples)) + wards * looks
    calls = tries * (1 + settings.epochs * rounds)
    text = sum(len(p.text) for p in train) / len(train)
    failed = share * len(train)
    shown = failed * (text + 4 * TAIL_CHARS) / CHARS_PER_TOKEN
    cards = failed * settings.cards_per_problem * CARD_TOKENS
    worked = settings.examples * cards
    retold = (cards + failed * settings.cards_per_problem * MAX_SHOWN * text / CHARS_PER_TOKEN) if worked else 0
    epoch_input = 2 * shown + 2 * cards + 2 * retold + looks * (shown + 2 * cards) + rounds * 1_000
    return Load(
        calls=calls,
        input=tries * (30 * text / CHARS_PER_TOKEN + settings.epochs * epoch_input),
        output=tries * (1_000 + settings.epochs * (2 * (cards + worked) + looks * cards + rounds * 100)),
    )


def _usd(ledger: Ledger, model: str, load: Load) -> float | None:
    price = ledger.price(model)
    return None if price is None else price.cost(Usage(input=round(load.input), output=round(load.output)))
