"""What systems are made of: the two ways to sample, and routers, selectors and sources by the names of the table."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from kace.errors import DataError, UsageError
from kace.models.base import Heard, Message, Question, Role, after_thinking, ask, chat
from kace.problem import Problem
from kace.retrieval.embed import rank_by_meaning
from kace.retrieval.fence import fenced, neutral, shortened
from kace.retrieval.prompt import NOTHING, PromptContext, template
from kace.retrieval.retriever import ContextSource, EsPolicy, Retrieval, Retriever, retrieval
from kace.retrieval.router import Router, fixed_router, registry_router
from kace.retrieval.selector import BlockSelector, Budget, SelectedCards, TokenCounter
from kace.solver.ladder import Kit, Tiers, classes_of, climb, conclude, locked, sample
from kace.solver.records import Attempt, Solution
from kace.solver.tiers import ExitPath, Gate, Tier, TierName
from kace.solver.vote import count
from kace.subject import MATHEMATICS, Subject
from kace.systems.registry import CANDIDATES, Bench, Need, Spec
from kace.tree.card import Card, Status
from kace.tree.tree import EpistemicTree

TIER = "ROUTE"  # where the calls of an LLM that picks cards stand among a problem's attempts
MAX_PROBLEM_CHARS = 3_000
UNBOUNDED = 1 << 40  # more tokens than any tree has
_ID = re.compile(r"[A-Z0-9]+(?:_[A-Z0-9]+){2,5}")
_WRAPPING = " \t\r`'\"[]*-."


@dataclass(frozen=True, slots=True)
class System:
    """One way to solve problems: the ladder, or a fixed number of attempts. It reads its source and nothing else."""

    name: str
    source: ContextSource | None = None
    attempts: int = 0  # made side by side, drawn as MS draws, without lenses; 0 is the ladder
    tiers: Tiers = locked
    check: Callable[[Problem], None] | None = None  # raises for a problem that it cannot take, before it is paid for

    async def solve(self, problem: Problem, kit: Kit) -> Solution:
        """Solve one problem."""
        if self.check:
            self.check(problem)
        if self.attempts:
            return await self._sampled(problem, kit)
        return await climb(problem, replace(kit, source=self if self.source else None, tiers=self.tiers))

    async def retrieve(
        self, problem: Problem, tier: TierName, before: Sequence[Attempt], earlier: Sequence[Retrieval]
    ) -> Retrieval | None:
        """Nothing at ES, ever, whatever the source; else what the source gives."""
        if self.source is None or tier is TierName.ES:
            return None
        return await self.source.retrieve(problem, tier, before, earlier)

    async def _sampled(self, problem: Problem, kit: Kit) -> Solution:
        """Sample, then count. A failed attempt votes for nothing; ties go to the lowest attempt index."""
        began = time.monotonic()
        if kit.observer:
            kit.observer.started(problem)
        found = await self.retrieve(problem, TierName.FLAT, (), ())
        # The gate opens at the first answer, so that early stop ends exactly when the plurality is decided. The exit
        # is never read: such a solution has none.
        flat = Tier(TierName.FLAT, (None,) * self.attempts, Gate(1), ExitPath.HS_PLURALITY)
        as_ms = replace(kit, sampling={**kit.sampling, TierName.FLAT: kit.sampling[TierName.MS]})
        attempts = await sample(problem, flat, found.context if found else NOTHING, (), as_ms)
        classes = await classes_of(problem, attempts, kit)
        leader = count(classes, 0, len(attempts)).leader
        said, took = leader.answer if leader else None, time.monotonic() - began
        read = (found,) if found else ()
        solution = await conclude(problem, kit, None, said, attempts, classes, seconds=took, read=read)
        if kit.observer:
            kit.observer.solved(solution)
        return solution


def compose(spec: Spec, bench: Bench) -> System:
    """A system from its row. Where its tree has no card to show, it is the ladder alone: nobody asks for a domain."""
    tree = bench.tree if Need.TREE in spec.needs else None
    shown = any(card.status is not Status.DEPRECATED for card in tree or ())
    retriever = open_retriever(spec, bench, tree) if tree is not None and shown else None
    source = retriever if spec.source == "tree" else other_source(spec, bench)
    gold = retriever if Need.GOLD_DOMAINS in spec.needs else None
    check = partial(require_gold_domains, names=gold.tree.domain_names) if gold else None
    return System(spec.name, source, spec.attempts, EsPolicy(retriever) if retriever else locked, check)


def open_retriever(spec: Spec, bench: Bench, tree: EpistemicTree) -> Retriever:
    """The tree, read as the configuration says but for the parts that the row replaces."""
    require_domains(spec, tree)
    config, names = bench.config.retrieval, tree.domain_names
    if spec.es_policy:
        config = config.model_copy(update={"es_policy": spec.es_policy})

    def drawn(problem: Problem) -> int:
        return int(hashlib.sha256(f"random domain\x1f{problem.id}\x1f{bench.seed}".encode()).hexdigest()[:16], 16)

    rules: Mapping[str, Callable[[Problem], tuple[str, ...]]] = {
        "every_domain": lambda problem: tuple(names),
        "gold_domain": lambda problem: (problem.domain,) if problem.domain else (),
        "random_domain": lambda problem: (names[drawn(problem) % len(names)],),
        "no_domain": lambda problem: (),
    }
    router = fixed_router(rules[spec.router]) if spec.router else None
    found = Retriever(tree, bench.classifier, config, seed=bench.seed, router=router, subject=bench.config.about)
    if spec.selector == "placebo":
        found.selector = Placebo(found.blocks)
    elif spec.selector:
        found.selector = pool_selector(spec, bench, tree)
    return found


def require_domains(spec: Spec, tree: EpistemicTree) -> None:
    """Refuse a tree with cards and no second domain where another domain's block is to be shown."""
    other = spec.selector == "placebo" or spec.router == "random_domain"
    if other and len(tree) and len(tree.domain_names) < 2:
        said = f"system '{spec.name}' shows other domains, and the tree has {len(tree.domain_names)}"
        raise UsageError(said, fix="use a tree of at least two domains, or leave the system out")


def pool_selector(spec: Spec, bench: Bench, tree: EpistemicTree) -> PoolSelector:
    """The row's way to pick single cards."""
    config = bench.config.retrieval
    if spec.selector == "everything":
        config = config.model_copy(update={"max_card_tokens": UNBOUNDED})
    nearest = {"nearest": bench.k, "llm_of_nearest": max(CANDIDATES, bench.k)}.get(spec.selector)
    pool = tuple(card for card in tree if card.status is not Status.DEPRECATED)
    budget = Budget(config, bench.classifier, ranking=lambda problem, cards: tuple(cards))
    return PoolSelector(pool, budget, bench, nearest, spec.selector.startswith("llm"))


@dataclass(frozen=True, slots=True)
class PoolSelector:
    """Picks single cards out of the whole tree, of any difficulty and domain.

    The choice depends on the problem alone, so HS reads what MS read and nobody is asked twice. Where the picked cards
    do not fit, the last picked go first.
    """

    pool: tuple[Card, ...]
    budget: Budget
    bench: Bench
    nearest: int | None = None  # only so many cards, nearest in meaning first
    picks: bool = False  # whether an LLM picks among them

    async def select(
        self, problem: Problem, tier: TierName, domains: tuple[str, ...], earlier: Sequence[Sequence[Card]]
    ) -> SelectedCards:
        """All cards, the nearest, an LLM's choice, or an LLM's choice among the nearest."""
        if earlier:
            return SelectedCards(tuple(earlier[-1]), len(self.pool))
        cards = rank_by_meaning(problem.text, self.pool)[: self.nearest] if self.nearest else self.pool
        if not cards or not self.picks:
            return SelectedCards(await self.budget.fit(problem.text, cards), len(self.pool))
        pick = await pick_cards(problem, cards, self.bench)
        # Where its replies cannot be used, the nearest cards stand in for its choice.
        chosen = cards[: self.bench.k] if self.nearest and pick.said is None else pick.said or ()
        return SelectedCards(await self.budget.fit(problem.text, chosen), len(self.pool), pick.calls, pick.usage)


async def pick_cards(problem: Problem, pool: Sequence[Card], bench: Bench) -> Heard[tuple[Card, ...]]:
    """At most `k` cards that the helper names, the most wanted first; nothing said where no reply can be used."""
    known = {card.card_id: card for card in pool}

    def read(reply: str) -> tuple[Card, ...] | None:
        ids = read_ids(reply, known, bench.k)
        return None if ids is None else tuple(known[card_id] for card_id in ids)

    system, user = picking_prompt(problem.text, pool, bench.k, bench.config.about)
    # The reply itself is not shown again, since a problem may have dictated it.
    again = (system, Message(Role.USER, f"{user.content}\n\n{template('systems/route_retry')}"))
    question = Question((system, user), problem.id, bench.seed, TIER, read, lambda messages, reply: again)
    return await ask(bench.helper, question)


def picking_prompt(problem: str, pool: Sequence[Card], k: int, subject: Subject = MATHEMATICS) -> tuple[Message, ...]:
    """What all problems share, instructions and ids with triggers, then the problem, so that prefix caches hit."""
    lines = "\n".join(f"{card.card_id}: {'; '.join(card.triggers)}" for card in pool)
    instructions = template("systems/route", subject).format(k=k)
    return chat(f"{instructions}\n\n{fenced('cards', lines)}", fenced("problem", shortened(problem, MAX_PROBLEM_CHARS)))


def read_ids(reply: str, known: Collection[str], k: int) -> tuple[str, ...] | None:
    """The first `k` known ids of a reply, each once; nothing for `none`.

    Ids that are not known are passed over. `None` for a reply that is not a list of ids, or names no known one.
    """
    text = after_thinking(reply).strip()
    if text.strip(_WRAPPING).casefold() == "none":
        return ()
    named = [part for part in (part.strip(_WRAPPING) for part in re.split(r"[,;\n]", text)) if part]
    if not all(map(_ID.fullmatch, named)):
        return None
    return tuple(dict.fromkeys(name for name in named if name in known))[:k] or None


@dataclass(frozen=True, slots=True)
class Placebo:
    """Routes as the method does, then shows another domain's block.

    The record keeps the domain that the router named; the cards say what was shown. Universal cards are shown as ever,
    and as many cards as the method would show: the two arms differ in the domain's own knowledge and in nothing else.
    """

    blocks: BlockSelector

    async def select(
        self, problem: Problem, tier: TierName, domains: tuple[str, ...], earlier: object
    ) -> SelectedCards:
        """The block of the stand-ins, less what is also the routed domain's."""
        tree, budget = self.blocks.tree, self.blocks.budget
        shown = tree.project(tier, stand_ins(domains, tree.domain_names))
        block = [card for card in shown if set(card.domain_tags).isdisjoint(domains)]
        whole, own = self.blocks.wanted(problem, tier, domains)
        wanted = block if len(own) == len(whole) else budget.best(problem.text, block, len(own))
        return SelectedCards(await budget.fit(problem.text, wanted), len(block))


def stand_ins(routed: Sequence[str], registry: Sequence[str]) -> tuple[str, ...]:
    """For each domain the next in the registry's order, round its end, that is not one of them; fewer if none is left.

    None for none: a problem without a domain is shown what the method shows it.
    """
    chosen: list[str] = []
    for name in routed:
        at = registry.index(name)
        following = (*registry[at + 1 :], *registry[:at])
        chosen += [other for other in following if other not in routed and other not in chosen][:1]
    return tuple(chosen)


def require_gold_domains(*asked: Problem, names: Sequence[str]) -> None:
    """Refuse problems whose domain is missing or is no name of the tree's registry."""
    if strange := [problem for problem in asked if problem.domain not in names]:
        first, known = strange[0], ", ".join(names) or "none"
        has = f"the domain '{first.domain}'" if first.domain else "none"
        raise DataError(
            f"kace-oracle needs the tree's domains in the data: {len(strange)} of {len(asked)} problems have others, "
            f"the first is {first.name!r} with {has}",
            fix=f"give each problem a `domain` field with one of: {known}; or leave kace-oracle out",
        )


def other_source(spec: Spec, bench: Bench) -> ContextSource | None:
    """What is read where that is no tree: nothing, the empty prompt, or what another method learned."""
    from kace.systems.gepa import read_prompt
    from kace.systems.playbook import ALL, read_playbooks

    counter, config, made = TokenCounter(bench.classifier), bench.config.retrieval, bench.artefact
    if spec.source == "empty_block":
        return FixedText(PromptContext(empty_block=True, placement=config.placement), counter)
    if spec.source == "nothing" or made is None:  # `open_system` has checked what a system needs
        return None
    if spec.source == "domain_ace":
        books = read_playbooks(made, "domain-ace")
        router = registry_router(config, books.domains, bench.classifier, bench.seed, bench.config.about)
        return RoutedNotes(router, {name: playbook.text for name, playbook in books.playbooks.items()}, counter)
    if spec.source == "ace":
        context = PromptContext(notes=read_playbooks(made, "ace").playbooks[ALL].text)
    else:
        context = PromptContext(instructions=neutral(read_prompt(made).instructions))
    return FixedText(context, counter, TierName(spec.tier))


@dataclass(frozen=True, slots=True)
class FixedText:
    """Text that is the same for every problem: notes or instructions at one tier, or the empty prompt at all."""

    context: PromptContext
    counter: TokenCounter
    tier: TierName | None = None

    async def retrieve(self, problem: Problem, tier: TierName, before: object, earlier: object) -> Retrieval | None:
        """The text, where there is any at this tier; nobody is asked for a domain."""
        text = self.context.notes or self.context.instructions
        if not self.context.empty_block and (tier is not self.tier or not text):
            return None
        return retrieval(tier, self.context, await self.counter(text))


@dataclass(frozen=True, slots=True)
class RoutedNotes:
    """Notes of each domain: a problem reads those of its domain, or both where two are primary."""

    router: Router
    notes: Mapping[str, str]
    counter: TokenCounter

    async def retrieve(self, problem: Problem, tier: TierName, before: object, earlier: object) -> Retrieval | None:
        """Route the problem, and read what its domains have; nothing where the router cannot say."""
        route = await self.router(problem)
        notes = "\n\n".join(filter(None, (self.notes.get(name) for name in route.domains)))
        context, size = PromptContext(notes=notes), await self.counter(notes)
        return retrieval(tier, context, size, domains=route.domains, calls=route.calls, usage=route.usage)
