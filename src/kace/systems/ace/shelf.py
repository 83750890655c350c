"""Playbooks, opened for solving."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kace.models.base import ChatModel
from kace.problem import Problem
from kace.retrieval.retriever import Recall
from kace.retrieval.router import PlaceBy, place
from kace.solver.attempt import Attempt
from kace.solver.tiers import TierName
from kace.systems.ace.artefact import ALL, read_playbooks
from kace.systems.ace.playbook import Playbook
from kace.systems.base import Bench
from kace.systems.flat import Flat
from kace.systems.learned import Learned, made
from kace.systems.measure import Measure
from kace.systems.tiered import Tiered
from kace.tree.tree import Domain


@dataclass(frozen=True, slots=True)
class DomainNotes:
    """A shelf of playbooks, one a domain: a problem reads that of its domain, or both where two are primary."""

    domains: tuple[Domain, ...]
    playbooks: Mapping[str, Playbook]
    classifier: ChatModel
    place_by: PlaceBy
    seed: int
    measure: Measure

    async def read(
        self, problem: Problem, tier: TierName, before: Sequence[Attempt], earlier: Sequence[Recall]
    ) -> Recall | None:
        """Place the problem, and read what its domains have; nothing where the classifier cannot say."""
        placed = await place(problem, self.domains, self.classifier, by=self.place_by, seed=self.seed)
        texts = (self.playbooks[name].text for name in placed.domains if name in self.playbooks)
        notes = "\n\n".join(text for text in texts if text)
        size = await self.measure(notes)
        return Recall(
            tier,
            placed.domains,
            (),
            0,
            size.tokens,
            size.estimated,
            classifier_calls=placed.calls,
            classifier_usage=placed.usage,
            notes=notes,
        )


def open_ace(bench: Bench) -> Flat:
    """One attempt with the playbook in view."""
    return Flat("ace", shelf=_one_playbook(bench, TierName.FLAT))


def open_tiered_ace(bench: Bench) -> Tiered:
    """The ladder, with the playbook in view at HS and nowhere else."""
    return Tiered("tiered-ace", _one_playbook(bench, TierName.HS))


def open_domain_ace(bench: Bench) -> Flat:
    """One attempt with the playbook of the problem's domain in view."""
    books = read_playbooks(made(bench), "domain-ace")
    shelf = DomainNotes(
        books.domains,
        books.playbooks,
        bench.classifier,
        bench.config.place_by,
        bench.seed,
        Measure(bench.classifier),
    )
    return Flat("domain-ace", shelf=shelf)


def _one_playbook(bench: Bench, tier: TierName) -> Learned:
    playbook = read_playbooks(made(bench), "ace").playbooks[ALL]
    return Learned(tier, Measure(bench.classifier), notes=playbook.text)
