"""The ceiling: the cards of a problem's own technique, which its `family` names. No retriever could know them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kace.errors import DataError
from kace.problem import Problem
from kace.redact import one_line
from kace.retrieval.selector import BlockSelector, SelectedCards
from kace.solver.tiers import TierName
from kace.tree.tree import EpistemicTree, cards_by_source


@dataclass(frozen=True, slots=True)
class TechniqueSelector:
    """The tier's cards that came from training problems of the problem's family; nothing where there is none."""

    families: Mapping[str, frozenset[str]]  # the ids of the cards that each gave rise to
    blocks: BlockSelector

    async def select(
        self, problem: Problem, tier: TierName, domains: object = (), earlier: object = ()
    ) -> SelectedCards:
        """The cards, of whichever domain, as many as fit. The relevance gate is not asked."""
        tree, budget = self.blocks.tree, self.blocks.budget
        own = self.families.get(problem.family or "", frozenset())
        block = [card for card in tree.project(tier, tree.domain_names) if card.card_id in own]
        return SelectedCards(await budget.fit(problem.text, budget.best(problem.text, block)), len(block))

    async def covers(self, problem: Problem) -> bool:
        """Whether MS reads any."""
        return bool((await self.select(problem, TierName.MS)).cards)


def families_of(tree: EpistemicTree, train: Sequence[Problem], file: Path) -> Mapping[str, frozenset[str]]:
    """By family, the cards that its training problems support."""
    known = {one_line(problem.name): problem.family for problem in train if problem.family}
    if not known:
        raise DataError(f"{file}: no problem has a family", fix="give training problems the field 'family'")
    found: defaultdict[str, set[str]] = defaultdict(set)
    for name, cards in cards_by_source(tree).items():
        if family := known.get(one_line(name)):
            found[family] |= cards
    if not found:
        said = f"{file}: no card of the tree came from a problem in it"
        raise DataError(said, fix="name the file that the tree was learned from")
    return {family: frozenset(cards) for family, cards in found.items()}


def require_families(problems: Sequence[Problem]) -> None:
    """Refuse data that names no family."""
    if not any(problem.family for problem in problems):
        raise DataError("oracle-card needs families, and no problem has one", fix="give problems the field 'family'")
