"""What the calls of a system cost, by role."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kace.evaluation.arm import Row
from kace.models.base import Usage
from kace.models.budget import Price


@dataclass(frozen=True, slots=True)
class RoleCost:
    """One role's calls, tokens and, where the price is known, money."""

    role: str
    calls: int
    usage: Usage
    usd: float | None


@dataclass(frozen=True, slots=True)
class Cost:
    """What an arm cost, or would have cost had nothing been read from disk."""

    roles: tuple[RoleCost, ...]

    @property
    def usd(self) -> float | None:
        """Over all roles; `None` where a role's price is not known."""
        known = [role.usd for role in self.roles if role.usd is not None]
        return sum(known) if len(known) == len(self.roles) else None


def cost_of(rows: Iterable[Row], price: Price | None) -> Cost:
    """The solver's and the classifier's part, both asked of one model.

    Traces count neither the classifier's cached input nor tokens written to a prompt cache: both are priced as fresh.
    """
    solver = classifier = Usage()
    solves = classified = 0
    for row in rows:
        solves += row.real_calls
        classified += row.classifier_calls
        solver += Usage(row.input, row.cached, row.output)
        classifier += Usage(row.classifier_input, 0, row.classifier_output)
    roles = [role_cost("solver", solves, solver, price)]
    if classified:
        roles.append(role_cost("classifier", classified, classifier, price))
    return Cost(tuple(roles))


def role_cost(role: str, calls: int, usage: Usage, price: Price | None) -> RoleCost:
    """What a role's tokens cost at a price."""
    return RoleCost(role, calls, usage, None if price is None else price.cost(usage))
