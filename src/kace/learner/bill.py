"""What a learning run has cost so far, over all the times its command was run: summed from the calls it kept."""

from __future__ import annotations

from pathlib import Path

from kace.config import Config
from kace.io import write_atomic
from kace.learner.verdicts import Kept
from kace.models.base import Usage
from kace.models.budget import Ledger, Price
from kace.models.cache import read_calls
from kace.models.replay import TEACHER
from kace.retrieval.router import FIRST, REFINED
from kace.solver.synthesis import TEACHER_TIER

_ROLES = {TEACHER: "teacher", TEACHER_TIER: "synthesis", FIRST: "classifier", REFINED: "classifier"}


class RoleBill(Kept):
    """What one role used."""

    calls: int = 0
    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    usd: float | None = None
    """`None` where the user gave no price."""


class Bill(Kept):
    """What every role used, and the models they were."""

    roles: dict[str, RoleBill]
    models: dict[str, str]


def bill(calls: Path, config: Config) -> Bill:
    """The sum of every finished call in a folder, at the user's prices."""
    counts: dict[str, int] = {}
    used: dict[str, Usage] = {}
    for segment in sorted(calls.glob("*.jsonl")):
        for record in read_calls(segment):
            role = _ROLES.get(record.tier, "solver")
            counts[role] = counts.get(role, 0) + 1
            used[role] = used.get(role, Usage()) + record.reply().usage
    taught = config.teacher or ""
    models = {"solver": config.model, "classifier": config.model, "teacher": taught, "synthesis": taught}
    ledger = Ledger(prices=config.price_table())
    roles = {
        role: RoleBill(
            calls=counts[role],
            input=used[role].input,
            cached=used[role].cached,
            written=used[role].written,
            output=used[role].output,
            usd=_money(ledger.price(models[role]), used[role]),
        )
        for role in sorted(used)
    }
    return Bill(roles=roles, models={role: models[role] for role in roles})


def keep_bill(folder: Path, total: Bill) -> None:
    """Write the bill beside the learner's steps."""
    write_atomic(folder / "bill.json", total.model_dump_json(indent=2) + "\n")


def _money(price: Price | None, usage: Usage) -> float | None:
    return None if price is None else price.cost(usage)
