"""What systems are made of: the two ways to sample, and routers, selectors and sources by the names of the table."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from kace.baselines.fewshot import read_pool
from kace.baselines.pool import BY_MEANING, pool_selector
from kace.baselines.registry import Bench, Need, Spec
from kace.cards.tree import EpistemicTree, cards_by_source
from kace.errors import DataError, UsageError, one_line
from kace.ladder.ladder import ContextSource, Kit, Tiers, locked, solve, with_policies
from kace.ladder.policies import SkipEs
from kace.ladder.prompt import NOTHING, Context, neutral, subject_of
from kace.ladder.record import Attempt, Solution
from kace.ladder.retrieve import (
    BlockSelector,
    Ranking,
    Retriever,
    Router,
    TokenCounter,
    fixed_router,
    registry_router,
)
from kace.ladder.tiers import FROM_MS, Gate, Tier, TierName
from kace.learning.study import refuse_overlap
from kace.problems import Problem, load_problems


@dataclass(frozen=True, slots=True)
class System:
    """One way to solve problems: the ladder, or a fixed number of attempts. It reads its source and nothing else."""

    name: str
    source: ContextSource | None = None
    attempts: int = (
        0  # made side by side, drawn as MS draws, without lenses; 0 is the ladder
    )
    tiers: Tiers = locked
    check: Callable[[Sequence[Problem]], None] = lambda problems: None
    """Raises for problems that it cannot take; asked before any of them is paid for."""

    async def solve(self, problem: Problem, kit: Kit) -> Solution:
        """Solve one problem."""
        tiers = self.tiers
        draws = kit.sampling
        if self.attempts:
            # The gate is always open: the plurality wins, and a solution without a ladder has no exit.
            tiers = always(Tier(TierName.FLAT, (None,) * self.attempts, Gate(0), None))
            draws = {**draws, "FLAT": draws["MS"]}
        source = self if self.source else None
        kit = with_policies(replace(kit, source=source, sampling=draws), tiers=tiers)
        return await solve(problem, kit)

    async def retrieve(
        self,
        problem: Problem,
        tier: TierName,
        before: Sequence[Attempt],
        earlier: Sequence[Context],
    ) -> Context | None:
        """Nothing at ES, ever, whatever the source; else what the source gives."""
        if self.source is None or tier is TierName.ES:
            return None
        return await self.source.retrieve(problem, tier, before, earlier)


def compose(spec: Spec, bench: Bench) -> System:
    """A system from its row. Where its tree has no card to show, it is the ladder alone: nobody asks for a domain."""
    if spec.fewshot:
        return few_shot(spec, bench)
    tree = bench.tree if Need.TREE in spec.needs else None
    if tree is None or not tree.shown:
        source = None if spec.source == "tree" else other_source(spec, bench)
        return System(
            spec.name,
            source,
            spec.attempts,
            for_every_problem(spec) if source else locked,
        )
    retriever = open_retriever(spec, bench, tree)
    if Need.TRAINING_FILE in spec.needs:
        return oracle(spec, bench, retriever)
    source = retriever if spec.source == "tree" else None
    system = System(spec.name, source, spec.attempts, SkipEs(retriever))
    if Need.GOLD_DOMAINS in spec.needs:
        return replace(
            system, check=partial(require_gold_domains, names=tree.domain_names)
        )
    return system


def few_shot(spec: Spec, bench: Bench) -> System:
    """The nearest solved training problems as demonstrations, of those that the gate lets pass where there is one."""
    assert bench.artefact is not None  # `open_system` has checked what a system needs
    pool = read_pool(bench.artefact, spec.trainer)
    shown_as = bench.config.retrieval.model_copy(update={"placement": "demonstrations"})
    bench = replace(
        bench, config=bench.config.model_copy(update={"retrieval": shown_as})
    )
    check = partial(refuse_overlap, pool.train, source="the evaluated data")
    if not len(pool.tree):
        return System(spec.name, check=check)
    retriever = open_retriever(spec, bench, pool.tree, pool.ranking(shown_as.ranking))
    tiers = (
        SkipEs(retriever)
        if spec.selector == "nearest_relevant"
        else for_every_problem(spec)
    )
    return System(spec.name, retriever, tiers=tiers, check=check)


def oracle(spec: Spec, bench: Bench, retriever: Retriever) -> System:
    """The cards of a problem's own family."""
    assert bench.artefact is not None  # `open_system` has checked what a system needs
    train = load_problems(bench.artefact, bench.config.fields)
    chosen = TechniqueSelector(
        families_of(retriever.tree, train, bench.artefact), retriever.blocks
    )
    retriever.selector = chosen

    def check(problems: Sequence[Problem]) -> None:
        if not any(problem.family for problem in problems):
            said = "oracle-card needs families, and no problem has one"
            raise DataError(said, fix="give problems the field 'family'")
        refuse_overlap(train, problems, "the evaluated data")

    return System(
        spec.name, retriever, tiers=SkipEs(retriever, chosen.covers), check=check
    )


@dataclass(frozen=True, slots=True)
class TechniqueSelector:
    """The ceiling, which no retriever could know: the tier's cards from training problems of the problem's family."""

    families: Mapping[
        str, frozenset[str]
    ]  # the ids of the cards that each gave rise to
    blocks: BlockSelector

    async def select(
        self,
        problem: Problem,
        tier: TierName,
        routed: Context = NOTHING,
        earlier: object = (),
    ) -> Context:
        """The cards, of whichever domain, as many as fit. The relevance gate is not asked."""
        tree = self.blocks.tree
        budget = self.blocks.budget
        own = self.families.get(problem.family or "", frozenset())
        block = [
            card
            for card in tree.project(tier, tree.domain_names)
            if card.card_id in own
        ]
        cards = await budget.fit(problem.text, budget.best(problem.text, block))
        return replace(routed, cards=cards, eligible=len(block))

    async def covers(self, problem: Problem) -> bool:
        """Whether MS reads any."""
        return bool((await self.select(problem, TierName.MS)).cards)


def families_of(
    tree: EpistemicTree, train: Sequence[Problem], file: Path
) -> Mapping[str, frozenset[str]]:
    """By family, the cards that its training problems support."""
    known = {
        one_line(problem.name): problem.family for problem in train if problem.family
    }
    if not known:
        raise DataError(
            f"{file}: no problem has a family",
            fix="give training problems the field 'family'",
        )
    found: defaultdict[str, set[str]] = defaultdict(set)
    for name, cards in cards_by_source(tree).items():
        if family := known.get(one_line(name)):
            found[family] |= cards
    if not found:
        said = f"{file}: no card of the tree came from a problem in it"
        raise DataError(said, fix="name the file that the tree was learned from")
    return {family: frozenset(cards) for family, cards in found.items()}


def for_every_problem(spec: Spec) -> Tiers:
    """The tiers of a system whose reading is for every problem, so that it either skips ES for all or for none."""
    return always(*FROM_MS) if spec.es_policy == "skip" else locked


def always(*tiers: Tier) -> Tiers:
    """The same tiers for every problem."""

    async def climbed(problem: Problem) -> Sequence[Tier]:
        return tiers

    return climbed


def open_retriever(
    spec: Spec, bench: Bench, tree: EpistemicTree, ranking: Ranking = BY_MEANING
) -> Retriever:
    """The tree, read as the configuration says but for the parts that the row replaces."""
    require_domains(spec, tree)
    config = bench.config.retrieval
    names = tree.domain_names
    if spec.es_policy:
        config = config.model_copy(update={"es_policy": spec.es_policy})

    def drawn(problem: Problem) -> int:
        return int(
            hashlib.sha256(
                f"random domain\x1f{problem.id}\x1f{bench.seed}".encode()
            ).hexdigest()[:16],
            16,
        )

    rules: Mapping[str, Callable[[Problem], tuple[str, ...]]] = {
        "every_domain": lambda problem: tuple(names),
        "gold_domain": lambda problem: (problem.domain,) if problem.domain else (),
        "random_domain": lambda problem: (names[drawn(problem) % len(names)],),
        "no_domain": lambda problem: (),
    }
    router = fixed_router(rules[spec.router]) if spec.router else None
    found = Retriever(
        tree,
        bench.classifier,
        config,
        seed=bench.seed,
        router=router,
        subject=subject_of(bench.config),
    )
    if spec.selector == "placebo":
        found.selector = Placebo(found.blocks)
    elif spec.selector and spec.selector != "technique":
        found.selector = pool_selector(spec, bench, found, ranking)
    return found


def require_domains(spec: Spec, tree: EpistemicTree) -> None:
    """Refuse a tree with cards and no second domain where another domain's block is to be shown."""
    other = spec.selector == "placebo" or spec.router == "random_domain"
    if other and len(tree) and len(tree.domain_names) < 2:
        said = f"system '{spec.name}' shows other domains, and the tree has {len(tree.domain_names)}"
        raise UsageError(
            said, fix="use a tree of at least two domains, or leave the system out"
        )


@dataclass(frozen=True, slots=True)
class Placebo:
    """Routes as the method does, then shows another domain's block.

    The record keeps the domain that the router named; the cards say what was shown. Universal cards are shown as ever,
    and as many cards as the method would show: the two arms differ in the domain's own knowledge and in nothing else.
    """

    blocks: BlockSelector

    async def select(
        self,
        problem: Problem,
        tier: TierName,
        routed: Context,
        earlier: object,
    ) -> Context:
        """The block of the stand-ins, less what is also the routed domain's."""
        domains = routed.domains
        tree = self.blocks.tree
        budget = self.blocks.budget
        shown = tree.project(tier, stand_ins(domains, tree.domain_names))
        block = [card for card in shown if set(card.domain_tags).isdisjoint(domains)]
        whole, own = self.blocks.wanted(problem, tier, domains)
        wanted = (
            block
            if len(own) == len(whole)
            else budget.best(problem.text, block, len(own))
        )
        cards = await budget.fit(problem.text, wanted)
        return replace(routed, cards=cards, eligible=len(block))


def stand_ins(routed: Sequence[str], registry: Sequence[str]) -> tuple[str, ...]:
    """For each domain the next in the registry's order, round its end, that is not one of them; fewer if none is left.

    None for none: a problem without a domain is shown what the method shows it.
    """
    chosen: list[str] = []
    for name in routed:
        at = registry.index(name)
        following = (*registry[at + 1 :], *registry[:at])
        chosen += [
            other for other in following if other not in routed and other not in chosen
        ][:1]
    return tuple(chosen)


def require_gold_domains(asked: Sequence[Problem], names: Sequence[str]) -> None:
    """Refuse problems whose domain is missing or is no name of the tree's registry."""
    if strange := [problem for problem in asked if problem.domain not in names]:
        first = strange[0]
        known = ", ".join(names) or "none"
        has = f"the domain '{first.domain}'" if first.domain else "none"
        raise DataError(
            f"kace-oracle needs the tree's domains in the data: {len(strange)} of {len(asked)} problems have others, "
            f"the first is {first.name!r} with {has}",
            fix=f"give each problem a `domain` field with one of: {known}; or leave kace-oracle out",
        )


def other_source(spec: Spec, bench: Bench) -> ContextSource | None:
    """What is read where that is no tree: nothing, the empty prompt, or what another method learned."""
    from kace.baselines.gepa import read_prompt
    from kace.baselines.playbook import ALL, read_playbooks

    counter = TokenCounter(bench.classifier)
    config = bench.config.retrieval
    made = bench.artefact
    if spec.source == "empty_block":
        return FixedText(Context(empty_block=True, placement=config.placement), counter)
    if (
        spec.source == "nothing" or made is None
    ):  # `open_system` has checked what a system needs
        return None
    if spec.source == "domain_ace":
        books = read_playbooks(made, "domain-ace")
        router = registry_router(
            config,
            books.domains,
            bench.classifier,
            bench.seed,
            subject_of(bench.config),
        )
        return RoutedNotes(
            router,
            {name: playbook.text for name, playbook in books.playbooks.items()},
            counter,
        )
    if spec.source == "ace":
        context = Context(notes=read_playbooks(made, "ace").playbooks[ALL].text)
    else:
        context = Context(instructions=neutral(read_prompt(made).instructions))
    tiers = {"MS": (TierName.MS, TierName.HS)}.get(spec.tier, (TierName(spec.tier),))
    return FixedText(context, counter, tiers)


@dataclass(frozen=True, slots=True)
class FixedText:
    """Text that is the same for every problem: notes, instructions, or the empty prompt."""

    context: Context
    counter: TokenCounter
    tiers: Collection[TierName] = tuple(TierName)

    async def retrieve(
        self, problem: Problem, tier: TierName, before: object, earlier: object
    ) -> Context | None:
        """The text, where there is any at this tier; nobody is asked for a domain."""
        text = self.context.notes or self.context.instructions
        if tier not in self.tiers or not (text or self.context.empty_block):
            return None
        size = await self.counter(text)
        return replace(self.context, tokens=size.tokens, estimated=size.estimated)


@dataclass(frozen=True, slots=True)
class RoutedNotes:
    """Notes of each domain: a problem reads those of its domain, or both where two are primary."""

    router: Router
    notes: Mapping[str, str]
    counter: TokenCounter

    async def retrieve(
        self, problem: Problem, tier: TierName, before: object, earlier: object
    ) -> Context | None:
        """Route the problem, and read what its domains have; nothing where the router cannot say."""
        route = await self.router(problem)
        notes = "\n\n".join(
            filter(None, (self.notes.get(name) for name in route.domains))
        )
        size = await self.counter(notes)
        return replace(route, notes=notes, tokens=size.tokens, estimated=size.estimated)
