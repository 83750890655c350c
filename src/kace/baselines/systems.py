"""The systems that can be compared: a table of what each is made of, and the parts.

All use the same solver, judge and accounting. They differ in what attempts read, and in who routes and selects it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Literal

from kace.baselines.controls import (
    CardPicker,
    FamilyCards,
    ModelPicker,
    Placebo,
    cards_by_family,
    random_domain,
    require_families,
    require_gold_domains,
)
from kace.cards.tree import EpistemicTree
from kace.config import Config
from kace.errors import DataError, UsageError
from kace.ladder.ladder import (
    ContextSource,
    Kit,
    Tiers,
    locked,
    solve,
)
from kace.ladder.policies import SkipEs
from kace.ladder.prompt import Context, neutral, subject_of, template_hashes
from kace.ladder.record import Attempt, Solution
from kace.ladder.retrieve import (
    Retriever,
    Router,
    TokenCounter,
    fixed_router,
    registry_router,
)
from kace.ladder.tiers import FROM_MS, Gate, Tier, TierName
from kace.learning.study import refuse_overlap
from kace.models.base import ChatModel
from kace.problems import Problem, load_problems

DEFAULT_K = 8
FEWSHOT_K = 2
CANDIDATES = 20
# attempts of best-of-N
LEAST = 2
MOST = 100
UNBOUNDED = 1 << 40  # more tokens than any tree has


class Need(StrEnum):
    """What must be given before a system can be opened or run."""

    TREE = "tree"
    ARTEFACT = "trained file"  # a playbook, a prompt or demonstrations
    TRAINING_FILE = "training file"  # the tree's, with families
    GOLD_DOMAINS = "gold domains"  # domains of the tree's registry


@dataclass(frozen=True, slots=True)
class Spec:
    """One row of the table: a system as the parts it is made of. What is empty is as configured."""

    name: str
    about: str
    source: Literal[
        "tree",
        "nothing",
        "empty_block",
        "ace",
        "domain_ace",
        "gepa",
        "knn_fewshot",
    ] = "nothing"
    router: Literal["", "every", "gold", "random", "none"] = ""
    selector: Literal[
        "",
        "placebo",
        "everything",
        "llm",
        "nearest",
        "llm_of_nearest",
        "family",
    ] = ""
    attempts: int = 0  # of a system without a ladder

    @property
    def trainer(self) -> str:
        """The `kace learn --method` that makes what it reads; empty for a learned tree, or nothing."""
        if self.name == "kace-reflections":
            return "reflections"
        if self.source in ("tree", "nothing", "empty_block"):
            return ""
        return self.source.replace("_", "-")

    @property
    def fewshot(self) -> bool:
        """Whether it reads solved training problems."""
        return self.source == "knn_fewshot"

    @property
    def unbounded(self) -> bool:
        """Whether it shows all of its cards, whatever `max_card_tokens` is."""
        return self.router == "every" or self.selector == "everything"

    @property
    def k(self) -> int:
        """Cards or demonstrations that it picks by default."""
        return FEWSHOT_K if self.fewshot else DEFAULT_K

    @property
    def needs(self) -> frozenset[Need]:
        """What must be given before it can be opened or run."""
        needs = set()
        if self.source == "tree":
            needs.add(Need.TREE)
        elif self.trainer:
            needs.add(Need.ARTEFACT)
        if self.selector == "family":
            needs.add(Need.TRAINING_FILE)
        if self.router == "gold":
            needs.add(Need.GOLD_DOMAINS)
        return frozenset(needs)

    def facts(self) -> dict[str, int | str]:
        """Return what the manifest of a run records beside the name and the configuration."""
        facts: dict[str, int | str] = {}
        if self.unbounded:
            facts["max_card_tokens"] = "not applied"
        if self.selector in ("llm", "nearest", "llm_of_nearest"):
            facts["k"] = self.k
        if self.selector == "llm_of_nearest":
            facts["candidates"] = CANDIDATES
        if self.selector in ("llm", "llm_of_nearest"):
            facts |= template_hashes("systems")
        return facts


_TABLE = (
    Spec("single", "one attempt", attempts=1),
    Spec("best-of-5", "five attempts, the plurality wins; any N from 2 to 100", attempts=5),
    Spec("tiered", "the ladder, reading nothing"),
    Spec("kace", "the ladder, reading its block of the tree", "tree"),
    Spec("kace-no-domain", "ablation: every card of the tier, whatever its domain and max_card_tokens", "tree",
         "every"),
    Spec("kace-monolithic", "ablation: every card in one context, without the limit of max_card_tokens", "tree", "none",
         "everything"),
    Spec("kace-router", f"ablation: an LLM picks {DEFAULT_K} cards from all", "tree", "none", "llm"),
    Spec("kace-retriever", f"ablation: the {DEFAULT_K} cards nearest in meaning", "tree", "none", "nearest"),
    Spec("kace-reranked", f"control: an LLM picks {DEFAULT_K} of the {CANDIDATES} cards nearest in meaning", "tree",
         "none", "llm_of_nearest"),
    Spec("kace-oracle", "control: the problem's own domain instead of the router's", "tree", "gold"),
    Spec("kace-random", "control: a domain drawn at random", "tree", "random"),
    Spec("kace-placebo", "control: another domain's block", "tree", selector="placebo"),
    Spec("kace-empty-prompt", "control: the prompt of a block without its cards", "empty_block"),
    Spec("kace-reflections", "ablation: a tree of the solver's own reflections", "tree"),
    Spec("ace", "one attempt with an ACE playbook", "ace", attempts=1),
    Spec("domain-ace", "one attempt with the playbook of its domain", "domain_ace", attempts=1),
    Spec("tiered-ace", "the ladder, reading an ACE playbook at HS", "ace"),
    Spec("gepa", "one attempt with a GEPA prompt", "gepa", attempts=1),
    Spec("tiered-gepa", "the ladder, with a GEPA prompt at HS", "gepa"),
    Spec("knn-fewshot", f"the ladder, reading the {FEWSHOT_K} nearest solved training problems as demonstrations",
         "knn_fewshot", "none", "nearest"),
    Spec("oracle-card", "ceiling: the cards of the problem's own family", "tree", "none", "family"),
)  # fmt: skip
SYSTEMS: Mapping[str, Spec] = {spec.name: spec for spec in _TABLE}
"""The table by name, in the order of reports."""


def spec_of(name: str) -> Spec:
    """Return the row of a name, best-of-N for any N included; raises `UsageError` for an unknown one."""
    if name in SYSTEMS:
        return SYSTEMS[name]
    found = re.fullmatch(r"best-of-([1-9]\d{0,5})", name)
    if not found:
        raise UsageError(
            f"unknown system '{name[:40]}'",
            fix=f"choose one of {', '.join(SYSTEMS)}",
        )
    attempts = int(found.group(1))
    if not LEAST <= attempts <= MOST:
        raise UsageError(
            f"best-of-N makes {LEAST} to {MOST} attempts, not {attempts}",
            fix=f"choose N from {LEAST} to {MOST}, or use single for one attempt",
        )
    return Spec(
        name, f"{attempts} attempts, the plurality wins", attempts=attempts
    )


def require(
    name: str, tree: EpistemicTree | None, artefact: Path | None
) -> Spec:
    """Return the row of a system that has all it reads; raises `UsageError` if something is missing."""
    spec = spec_of(name)
    method = "kace learn"
    if spec.trainer:
        method += f" --method {spec.trainer}"
    missing = (
        (Need.TREE, tree, f"name one that {method} made: --tree DIR"),
        (
            Need.ARTEFACT,
            artefact,
            f"make it with {method} --out PATH, then name it: --artefact PATH",
        ),
        (
            Need.TRAINING_FILE,
            artefact,
            "name the file that the tree was learned from: --artefact train.jsonl",
        ),
    )
    for need, given, fix in missing:
        if need in spec.needs and given is None:
            raise UsageError(
                f"system '{name}' reads a {need}, and none is given", fix=fix
            )
    return spec


# Systems


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a system is opened with."""

    tree: EpistemicTree | None
    artefact: Path | None
    config: Config
    classifier: ChatModel
    helper: ChatModel  # the solver's model under its own name in the ledger; picks cards
    seed: int
    k: int | None = None  # cards that are picked; by default the row's


@dataclass(frozen=True, slots=True)
class System:
    """One way to solve problems: the ladder, or a fixed number of attempts. It reads its source and nothing else."""

    name: str
    source: ContextSource | None = None
    attempts: int = 0  # sampled as MS samples, without lenses; 0 is the ladder
    tiers: Tiers = locked
    check: Callable[[Sequence[Problem]], None] = lambda problems: None
    """Raises for problems that it cannot solve; called before any of them is paid for."""

    async def solve(
        self,
        problem: Problem,
        kit: Kit,
    ) -> Solution:
        """Solve one problem."""
        tiers = self.tiers
        sampling = dict(kit.sampling)
        if self.attempts:
            # The gate is always open: the plurality wins, and a solution without a ladder has no exit.
            flat = Tier(TierName.FLAT, (None,) * self.attempts, Gate(0), None)
            tiers = always(flat)
            sampling[TierName.FLAT] = sampling[TierName.MS]
        source = self if self.source else None
        kit = replace(kit, source=source, sampling=sampling, tiers=tiers)
        return await solve(problem, kit)

    async def retrieve(
        self,
        problem: Problem,
        tier: TierName,
        before: Sequence[Attempt],
        earlier: Sequence[Context],
    ) -> Context | None:
        """Return what the source gives; nothing at ES, whatever the source."""
        if self.source is None or tier is TierName.ES:
            return None
        return await self.source.retrieve(problem, tier, before, earlier)


def always(*tiers: Tier) -> Tiers:
    """Return the same tiers for every problem."""

    async def tiers_of(problem: Problem) -> Sequence[Tier]:
        return tiers

    return tiers_of


def open_system(name: str, inputs: Inputs) -> System:
    """Return the system of that name, ready to solve; raises `UsageError` if something is missing."""
    spec = require(name, inputs.tree, inputs.artefact)
    if spec.source == "nothing":
        return System(name, attempts=spec.attempts)
    if spec.fewshot:
        return _open_fewshot(spec, inputs)
    if spec.source == "tree":
        return _open_tree(spec, inputs)
    # What is read is the same for every problem, so ES is skipped for all or for none.
    skips = inputs.config.retrieval.es_policy == "skip"
    source = _open_text(spec, inputs, skips)
    return System(
        name, source, spec.attempts, always(*FROM_MS) if skips else locked
    )


def _open_tree(spec: Spec, inputs: Inputs) -> System:
    """Open a system that reads a tree. With no card to show, it is the ladder alone, without routing."""
    tree = inputs.tree
    assert tree is not None  # `open_system` has checked what a system needs
    if not tree.shown:
        return System(spec.name)
    require_domains(spec, tree)
    retriever = _open_retriever(spec, inputs, tree)
    tiers = SkipEs(retriever)
    if spec.selector == "family":
        assert inputs.artefact is not None
        train = load_problems(inputs.artefact, inputs.config.fields)
        found = cards_by_family(tree, train)
        if not found:
            raise DataError(
                f"{inputs.artefact}: no card of the tree came from a problem in it that has a family",
                fix="name the file that the tree was learned from, with the field 'family'",
            )
        family = FamilyCards(found, retriever.blocks)
        retriever.selector = family

        def check(problems: Sequence[Problem]) -> None:
            require_families(problems)
            refuse_overlap(train, problems, "the evaluated data")

        tiers = SkipEs(retriever, family.covers)
        return System(spec.name, retriever, tiers=tiers, check=check)
    if spec.router == "gold":
        gold = partial(require_gold_domains, names=tree.domain_names)
        return System(spec.name, retriever, tiers=tiers, check=gold)
    return System(spec.name, retriever, tiers=tiers)


def _open_fewshot(spec: Spec, inputs: Inputs) -> System:
    """Open a system that reads the nearest solved training problems.

    The relevance threshold holds if it is set. Without one every problem has demonstrations, so ES is skipped for all
    or for none.
    """
    from kace.baselines.fewshot import read_demonstrations

    assert inputs.artefact is not None
    found = read_demonstrations(inputs.artefact, spec.trainer)
    check = partial(refuse_overlap, found.train, source="the evaluated data")
    if not len(found.tree):
        return System(spec.name, check=check)
    config = inputs.config
    changes: dict[str, object] = {"placement": "demonstrations"}
    if not applies_threshold(config):
        changes["relevance_threshold"] = 0.0
    retrieval = config.retrieval.model_copy(update=changes)
    inputs = replace(
        inputs, config=config.model_copy(update={"retrieval": retrieval})
    )
    retriever = _open_retriever(spec, inputs, found.tree)
    if retrieval.relevance_threshold:
        return System(
            spec.name, retriever, tiers=SkipEs(retriever), check=check
        )
    tiers = always(*FROM_MS) if retrieval.es_policy == "skip" else locked
    return System(spec.name, retriever, tiers=tiers, check=check)


def applies_threshold(config: Config) -> bool:
    """Whether few-shot systems apply the relevance threshold: only if it is set, since plain few-shot has none."""
    return config.source("retrieval.relevance_threshold") != "default"


def _open_retriever(
    spec: Spec,
    inputs: Inputs,
    tree: EpistemicTree,
) -> Retriever:
    """Return the tree, read as configured but for the parts that the row replaces."""
    config = inputs.config.retrieval
    if spec.unbounded:
        config = config.model_copy(update={"max_card_tokens": UNBOUNDED})
    retriever = Retriever(
        tree,
        inputs.classifier,
        config,
        seed=inputs.seed,
        router=_open_router(spec, tree.domain_names, inputs.seed),
        subject=subject_of(inputs.config),
    )
    if spec.selector == "placebo":
        retriever.selector = Placebo(retriever.blocks)
    elif spec.selector in ("everything", "llm", "nearest", "llm_of_nearest"):
        retriever.selector = _open_picker(spec, inputs, retriever)
    return retriever


def _open_router(
    spec: Spec,
    names: Sequence[str],
    seed: int,
) -> Router | None:
    if spec.router == "every":
        return fixed_router(lambda problem: tuple(names))
    if spec.router == "gold":
        return fixed_router(
            lambda problem: (problem.domain,) if problem.domain else ()
        )
    if spec.router == "random":
        return fixed_router(
            lambda problem: (random_domain(problem, names, seed),)
        )
    if spec.router == "none":
        return fixed_router(lambda problem: ())
    return None


def _open_picker(
    spec: Spec,
    inputs: Inputs,
    retriever: Retriever,
) -> CardPicker:
    """Return the row's way to pick single cards."""
    k = inputs.k or spec.k
    nearest = None
    model = None
    if spec.selector == "nearest":
        nearest = k
    elif spec.selector == "llm_of_nearest":
        nearest = max(CANDIDATES, k)
    if spec.selector in ("llm", "llm_of_nearest"):
        subject = subject_of(inputs.config)
        model = ModelPicker(inputs.helper, k, inputs.seed, subject)
    relevance = retriever.relevance if spec.fewshot else None
    cards = retriever.tree.shown
    return CardPicker(
        cards,
        retriever.budget,
        by="words" if spec.fewshot else "meaning",
        nearest=nearest,
        relevance=relevance,
        model=model,
    )


def require_domains(spec: Spec, tree: EpistemicTree) -> None:
    """Refuse a tree without a second domain if another domain's block is to be shown."""
    other = spec.selector == "placebo" or spec.router == "random"
    if other and len(tree) and len(tree.domain_names) < 2:
        raise UsageError(
            f"system '{spec.name}' shows other domains, and the tree has {len(tree.domain_names)}",
            fix="use a tree of at least two domains, or leave the system out",
        )


# Text that is no tree


def _open_text(
    spec: Spec,
    inputs: Inputs,
    skips: bool,
) -> ContextSource:
    """Return the empty prompt, or what another method learned."""
    from kace.baselines.ace import ALL, read_playbooks
    from kace.baselines.gepa import read_prompt

    counter = TokenCounter(inputs.classifier)
    config = inputs.config
    if spec.source == "empty_block":
        placement = config.retrieval.placement
        return FixedText(
            Context(empty_block=True, placement=placement), counter
        )
    assert inputs.artefact is not None
    if spec.source == "domain_ace":
        books = read_playbooks(inputs.artefact, "domain-ace")
        router = registry_router(
            config.retrieval,
            books.domains,
            inputs.classifier,
            inputs.seed,
            subject_of(config),
        )
        notes = {name: book.text for name, book in books.playbooks.items()}
        return RoutedNotes(router, notes, counter)
    if spec.source == "ace":
        book = read_playbooks(inputs.artefact, "ace").playbooks[ALL]
        context = Context(notes=book.text)
    else:
        instructions = read_prompt(inputs.artefact).instructions
        context = Context(instructions=neutral(instructions))
    tiers = {TierName.FLAT, TierName.HS}
    if skips:
        tiers.add(TierName.MS)
    return FixedText(context, counter, tiers)


@dataclass(frozen=True, slots=True)
class FixedText:
    """What is the same for every problem: notes, instructions, cards, or the empty prompt."""

    context: Context
    counter: TokenCounter
    tiers: Collection[TierName] = tuple(TierName)

    async def retrieve(
        self,
        problem: Problem,
        tier: TierName,
        before: object,
        earlier: object,
    ) -> Context | None:
        """Return the text, if there is any at this tier."""
        text = self.context.notes or self.context.instructions
        shown = text or self.context.cards or self.context.empty_block
        if tier not in self.tiers or not shown:
            return None
        size = await self.counter(text)
        return replace(
            self.context, tokens=size.tokens, estimated=size.estimated
        )


@dataclass(frozen=True, slots=True)
class RoutedNotes:
    """Notes per domain: a problem reads those of its domain, or both if two are primary."""

    router: Router
    notes: Mapping[str, str]
    counter: TokenCounter

    async def retrieve(
        self,
        problem: Problem,
        tier: TierName,
        before: object,
        earlier: object,
    ) -> Context | None:
        """Route the problem, and return the notes of its domains; none if it has no domain."""
        routed = await self.router(problem)
        found = [self.notes.get(name, "") for name in routed.domains]
        notes = "\n\n".join(filter(None, found))
        size = await self.counter(notes)
        return replace(
            routed,
            notes=notes,
            tokens=size.tokens,
            estimated=size.estimated,
        )
