"""What a learning run would take, worked out before anything is spent; and what it has cost, from the calls it kept."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from kace.config import Config
from kace.files import inside, read_plain, write_atomic
from kace.ladder.policies import TEACHER_TIER
from kace.ladder.prompt import template
from kace.ladder.retrieve import FIRST, REFINED
from kace.ladder.tiers import LOCKED, TierName
from kace.learning.admit import MAX_SHOWN
from kace.learning.propose import FAILURES_AT_ONCE, TAIL_CHARS
from kace.learning.solutions import SOURCE
from kace.learning.wordings import WORDINGS_AT_ONCE
from kace.models.base import Usage
from kace.models.budget import Ledger
from kace.models.cache import TEACHER, read_calls
from kace.models.local import CATALOG, SUFFIX
from kace.problems import Problem

if TYPE_CHECKING:  # the study opens the resources, which keep the bill
    from kace.learning.settings import Settings

ROLES = {
    TEACHER: "teacher",
    TEACHER_TIER: "synthesis",
    FIRST: "classifier",
    REFINED: "classifier",
}
"""Who made the calls of a tier; those of any other are the solver's."""
CHARS_PER_TOKEN = 4
DOMAINS = 5
MOST_DOMAINS = 7
LADDER_SHARE = 0.43  # of the eight attempts past ES, the part that the published runs made: 5.4 calls a problem in all
FAILED_SHARE = 0.5  # of the problems, the part that a tier is expected not to deliver
WORDING_TOKENS = 40
CARD_TOKENS = 250  # of a card, and of an example: in the published trees one is about as long as the other
EMBEDDED_BYTES = 40e9  # of weights that two cores read in a second for all slots together: 80 tokens of the 0.5B model
# tokens a second of one call, and calls at once where nothing is set
REMOTE_SPEED = 60
REMOTE_CALLS = 20
TYPICAL_OUTPUT = (
    800  # tokens of a typical attempt, or the tier's cap where that is lower
)


class RoleBill(BaseModel):
    """What one role used."""

    role: str = ""
    calls: int = 0
    failed: int | None = None  # `None` where failures were not counted
    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    usd: float | None = None  # `None` where the price is not known


class Bill(BaseModel):
    """What every role used, and the models they were: the content of bill.json."""

    roles: Mapping[str, RoleBill] = {}
    models: Mapping[str, str] = {}

    @property
    def usd(self) -> float:
        """Over all roles whose price is known."""
        return sum(role.usd or 0.0 for role in self.roles.values())


def bill_of(folders: Iterable[Path], config: Config) -> Bill:
    """What the finished calls that folders keep cost, at the user's prices; a call that several keep counts once."""
    counts: Counter[str] = Counter()
    used: defaultdict[str, Usage] = defaultdict(Usage)
    batched: defaultdict[str, Usage] = defaultdict(Usage)
    seen: set[str] = set()
    for segment in (
        path for folder in folders for path in sorted(folder.glob("*.jsonl"))
    ):
        for record in (
            record for record in read_calls(segment) if record.key not in seen
        ):
            seen.add(record.key)
            role = ROLES.get(record.tier, "solver")
            counts[role] += 1
            used[role] += (usage := record.reply().usage)
            batched[role] += usage if record.batch else Usage()
    models = {
        role: config.model if role in ("solver", "classifier") else config.teacher or ""
        for role in sorted(used)
    }
    prices = Ledger(prices=config.prices)
    roles = {}
    for role, model in models.items():
        usage = used[role]
        price = prices.price(model)
        tokens = {
            name: getattr(usage, name)
            for name in ("input", "cached", "written", "output")
        }
        usd = price.mixed(usage, batched[role]) if price else None
        roles[role] = RoleBill(calls=counts[role], **tokens, usd=usd)
    return Bill(roles=roles, models=models)


def keep_bill(folder: Path, config: Config) -> None:
    """Write what a learner's calls cost beside its steps."""
    total = bill_of([inside(folder, "calls")], config)
    text = total.model_dump_json(
        indent=2, exclude={"roles": {"__all__": {"role", "failed"}}}
    )
    write_atomic(folder / "bill.json", text + "\n")


def read_costs(folder: Path) -> tuple[RoleBill, ...]:
    """What the bill beside the steps says of every role; nothing where there is none that can be read."""
    path = next(
        (
            path
            for name in ("bill.json", "ledger.json")
            if (path := folder / name).exists()
        ),
        None,
    )
    try:
        roles = Bill.model_validate_json(read_plain(path)).roles if path else {}
    except (OSError, ValidationError):
        return ()
    return tuple(cost.model_copy(update={"role": role}) for role, cost in roles.items())


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
    usd: (
        float | None
    )  # expected, without any prefix cache; `None` where the user gave no price
    most_usd: float | None
    seconds: float  # expected


def forecast(
    train: Sequence[Problem], config: Config, settings: Settings
) -> tuple[RoleForecast, ...]:
    """Solver, classifier and teacher, in that order."""
    prices = Ledger(prices=config.prices)

    def role(name: str, model: str, expected: Load, most: Load) -> RoleForecast:
        price = prices.price(model)
        used = (
            Usage(input=round(load.input), output=round(load.output))
            for load in (expected, most)
        )
        usd, most_usd = (price.cost(usage) if price else None for usage in used)
        return RoleForecast(
            name,
            model,
            expected,
            most,
            usd,
            most_usd,
            expected.output / _speed(model, config),
        )

    asked = [_teacher(train, settings, most=most) for most in (False, True)]
    if config.teacher == SOURCE:
        asked = [Load(0, 0, 0)] * 2
    asks = (
        config.retrieval.router == "model"
    )  # a placement is asked for once and then kept
    placed = [asks * len(train) * share for share in (LADDER_SHARE, 2.0)]
    return (
        role(
            "solver",
            config.model,
            *(_solver(train, config, settings, most=most) for most in (False, True)),
        ),
        role(
            "classifier",
            config.model,
            *(Load(calls, calls * 1_000, calls * 10) for calls in placed),
        ),
        role("teacher", config.teacher or "", *asked),
    )


def _speed(model: str, config: Config) -> float:
    """Output tokens a second, roughly; without end where no model runs."""
    provider, _, name = model.partition("/")
    if provider == "local":
        path = Path(name)
        size = path.stat().st_size if path.suffix == SUFFIX and path.is_file() else 0
        return EMBEDDED_BYTES / (
            size or next((known.bytes for known in CATALOG if known.name == name), 1e9)
        )
    asks = provider in ("openai", "anthropic")
    return REMOTE_SPEED * (config.max_connections or REMOTE_CALLS) if asks else math.inf


def _solver(
    train: Sequence[Problem], config: Config, settings: Settings, *, most: bool
) -> Load:
    n = len(train)
    epochs = settings.epochs
    dropout = settings.impact_runs if settings.impact == "dropout" else 0
    # Tiered runs an epoch: those that new cards are written from, the base, what measures impact, and the reruns.
    reruns = settings.refine + bool(settings.refine) if most else settings.refine / 2
    runs = settings.add_runs + 1 + dropout + reruns
    fresh_seeds = 2 + max(
        0, dropout - 1
    )  # runs that share a seed share their ES attempts
    easy = epochs * n * LOCKED[0].attempts * fresh_seeds
    climbed = (
        epochs
        * n
        * sum(tier.attempts for tier in LOCKED[1:])
        * runs
        * (1.0 if most else LADDER_SHARE)
    )
    left_out = (
        epochs * settings.impact_calls if settings.impact == "leave_one_out" else 0
    )
    prompt = (
        len(template("solve")) + sum(len(p.text) for p in train) / n
    ) / CHARS_PER_TOKEN
    cards = (
        config.retrieval.max_card_tokens
        if most
        else min(config.retrieval.max_card_tokens, 4 * CARD_TOKENS)
    )
    caps = {tier: draw.max_tokens for tier, draw in config.tier_sampling().items()}
    written = {
        tier: cap if most else min(cap, TYPICAL_OUTPUT) for tier, cap in caps.items()
    }
    hard = climbed + left_out
    output = easy * written[TierName.ES] + hard * max(
        written[TierName.MS], written[TierName.HS]
    )
    return Load(easy + hard, easy * prompt + hard * (prompt + cards), output)


def _teacher(train: Sequence[Problem], settings: Settings, *, most: bool) -> Load:
    domains, share, tries = (
        (MOST_DOMAINS, 1.0, 2) if most else (DOMAINS, FAILED_SHARE, 1)
    )
    tries_a_domain = settings.refine if most else min(1, settings.refine)
    text = sum(len(p.text) for p in train) / len(train)
    failed = share * len(train)
    parts = max(
        domains, failed / FAILURES_AT_ONCE
    )  # of a tier's failures, a request each
    rounds = round(
        2 * parts * (2 + settings.imagine + bool(settings.examples))
        + (domains + 1) * tries_a_domain
    )
    shown = failed * (text + 4 * TAIL_CHARS) / CHARS_PER_TOKEN
    cards = failed * settings.cards_per_problem * CARD_TOKENS
    worked = settings.examples * cards
    retold = (
        (
            cards
            + failed * settings.cards_per_problem * MAX_SHOWN * text / CHARS_PER_TOKEN
        )
        if worked
        else 0
    )
    epoch_input = (
        2 * shown
        + 2 * cards
        + 2 * retold
        + tries_a_domain * (shown + 2 * cards)
        + rounds * 1_000
    )
    wordings = failed * settings.cards_per_problem * settings.wordings
    asked = domains + wordings / WORDINGS_AT_ONCE if settings.wordings else 0
    return Load(
        calls=tries * (1 + settings.epochs * rounds + round(asked)),
        input=tries
        * (30 * text / CHARS_PER_TOKEN + settings.epochs * epoch_input + asked * 1_000),
        output=tries
        * (
            1_000
            + settings.epochs
            * (2 * (cards + worked) + tries_a_domain * cards + rounds * 100)
            + wordings * WORDING_TOKENS
        ),
    )
