"""The systems that can be compared: a table of what each is made of, and the parts.

All use the same solver, judge and accounting. They differ in what attempts read, and in who routes and selects it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random

from kace.baselines.controls import (
    CardPicker,
    cards_by_family,
    demonstration_tree,
    pick_by_model,
    show_family,
    show_other_domains,
)
from kace.cards.tree import EpistemicTree
from kace.config import Config
from kace.errors import DataError, UsageError
from kace.files import DATA
from kace.ladder.ladder import (
    ContextSource,
    Kit,
    Tiers,
    always,
    locked,
    solve,
)
from kace.ladder.policies import begin_with_cards
from kace.ladder.prompt import NOTHING, Context, neutral, subject_of
from kace.ladder.record import Solution
from kace.ladder.retrieve import (
    Retriever,
    Router,
    Selector,
    fixed_router,
    registry_router,
)
from kace.ladder.tiers import LADDERS, Tier, TierName
from kace.learning.study import refuse_overlap
from kace.models.base import ChatModel
from kace.problems import Problem, load_problems

DEFAULT_K = 8  # cards that a system picks
FEWSHOT_K = 2  # demonstrations
CANDIDATES = 20  # cards that a model picks among
MOST = 100  # attempts of best-of-N
UNBOUNDED = 1 << 40  # more tokens than any tree has
TRAINING = "training file"


@dataclass(frozen=True, slots=True)
class Spec:
    """A system as the parts it is made of; see systems.toml."""

    name: str
    about: str
    source: str = ""
    router: str = ""
    selector: str = ""
    attempts: int = 0
    trainer: str = ""
    artefact: str = ""

    @property
    def reads_tree(self) -> bool:
        """Whether it reads the cards of a tree."""
        return self.source == "tree"


def _read_specs() -> Mapping[str, Spec]:
    text = (DATA / "systems.toml").read_text(encoding="utf-8")
    specs = {}
    for row in tomllib.loads(text)["system"]:
        specs[row["name"]] = Spec(**row)
    return specs


SYSTEMS = _read_specs()
"""The systems by name, in the order of reports."""


def spec_of(name: str) -> Spec:
    """Return the system of a name, best-of-N for any N included; raises `UsageError` for an unknown one."""
    if name in SYSTEMS:
        return SYSTEMS[name]
    found = re.fullmatch(r"best-of-([1-9]\d{0,5})", name)
    if found and 2 <= int(found[1]) <= MOST:
        about = f"{found[1]} attempts, the plurality wins"
        return Spec(name, about, attempts=int(found[1]))
    raise UsageError(
        f"unknown system '{name[:40]}'",
        fix=f"choose one of {', '.join(SYSTEMS)}; best-of-N takes 2 to {MOST} attempts",
    )


def require(
    name: str, tree: EpistemicTree | None, artefact: Path | None
) -> Spec:
    """Return the system of a name that has all it reads; raises `UsageError` if something is missing."""
    spec = spec_of(name)
    method = "kace learn"
    if spec.trainer:
        method += f" --method {spec.trainer}"
    if spec.reads_tree and tree is None:
        raise UsageError(
            f"system '{name}' reads a tree, and none is given",
            fix=f"name one that {method} made: --tree DIR",
        )
    if spec.artefact and artefact is None:
        fix = f"make it with {method} --out PATH, then name it: --artefact PATH"
        if spec.artefact == TRAINING:
            fix = "name the training problems: --artefact train.jsonl"
        raise UsageError(
            f"system '{name}' reads a {spec.artefact}, and none is given",
            fix=fix,
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
            flat = Tier(TierName.FLAT, (None,) * self.attempts, 0, None)
            tiers = always(flat)
            sampling[TierName.FLAT] = sampling[TierName.MS]
        kit = replace(kit, source=self.source, sampling=sampling, tiers=tiers)
        return await solve(problem, kit)


def open_system(name: str, inputs: Inputs) -> System:
    """Return the system of that name, ready to solve; raises `UsageError` if something is missing."""
    spec = require(name, inputs.tree, inputs.artefact)
    if not spec.source:
        return System(name, attempts=spec.attempts)
    # What reads the same for every problem begins at one tier for all.
    policy = inputs.config.retrieval.es_policy
    tiers = always(*LADDERS[policy])
    if not spec.reads_tree and spec.source != "demonstrations":
        source = _open_text(spec, inputs, policy != "locked")
        return System(name, source, spec.attempts, tiers)
    train: Sequence[Problem] = ()
    if spec.artefact and inputs.artefact:
        train = load_problems(inputs.artefact, inputs.config.fields)
    tree = inputs.tree if spec.reads_tree else demonstration_tree(train)
    assert tree is not None  # `require` has checked it
    if not tree.shown:  # then it is the ladder alone, without routing
        return System(name)
    require_domains(spec, tree)
    retriever = _open_retriever(spec, inputs, tree)
    if spec.selector:
        retriever.selector = _open_selector(spec, inputs, retriever, train)
    if spec.selector == "family":

        async def covers(problem: Problem) -> bool:
            shown = await retriever.selector(
                problem, TierName.MS, NOTHING, None
            )
            return bool(shown.cards)

        tiers = begin_with_cards(retriever, covers)
    elif spec.reads_tree or spec.selector == "near_enough":
        tiers = begin_with_cards(retriever)
    check = partial(check_problems, spec, tree, train)
    return System(name, retriever, tiers=tiers, check=check)


def check_problems(
    spec: Spec,
    tree: EpistemicTree,
    train: Sequence[Problem],
    problems: Sequence[Problem],
) -> None:
    """Raise for problems that a system cannot be evaluated on."""
    families = {problem.family for problem in problems}
    if spec.selector == "family" and families <= {None}:
        raise DataError(
            f"{spec.name} needs families, and no problem has one",
            fix="give problems the field 'family'",
        )
    for problem in problems:
        if spec.router == "gold" and problem.domain not in tree.domain_names:
            names = ", ".join(tree.domain_names)
            raise DataError(
                f"{spec.name} needs the tree's domains in the data, and {problem.name!r} has"
                f" {problem.domain or 'none'}",
                fix=f"give each problem a `domain` field with one of: {names}",
            )
    refuse_overlap(train, problems, "the evaluated data")


def _open_retriever(
    spec: Spec,
    inputs: Inputs,
    tree: EpistemicTree,
) -> Retriever:
    """Return the tree, read as configured but for the parts that the system replaces."""
    changes: dict[str, object] = {}
    if spec.router == "every" or spec.selector == "everything":
        changes["max_card_tokens"] = UNBOUNDED
    if not spec.reads_tree:
        changes["placement"] = "demonstrations"
    return Retriever(
        tree,
        inputs.classifier,
        inputs.config.retrieval.model_copy(update=changes),
        seed=inputs.seed,
        router=_open_router(spec, tree.domain_names, inputs.seed),
        subject=subject_of(inputs.config),
    )


def _open_router(
    spec: Spec,
    names: Sequence[str],
    seed: int,
) -> Router | None:
    """Return the system's own router; `None` for the configured one."""

    def choose(problem: Problem) -> tuple[str, ...]:
        if spec.router == "every":
            return tuple(names)
        if spec.router == "gold" and problem.domain:
            return (problem.domain,)
        if spec.router == "random":
            draw = Random(f"{problem.id} {seed}")  # noqa: S311
            return (draw.choice(names),)
        return ()

    return fixed_router(choose) if spec.router else None


def _open_selector(
    spec: Spec,
    inputs: Inputs,
    retriever: Retriever,
    train: Sequence[Problem],
) -> Selector:
    """Return the system's own way to choose cards."""
    tree = retriever.tree
    if spec.selector == "placebo":
        return partial(show_other_domains, retriever)
    if spec.selector == "family":
        found = cards_by_family(tree, train)
        if not found:
            raise DataError(
                f"{inputs.artefact}: no card of the tree came from a problem in it that has a family",
                fix="name the file that the tree was learned from, with the field 'family'",
            )
        return partial(show_family, retriever, found)
    k = DEFAULT_K if spec.reads_tree else FEWSHOT_K
    pick = None
    if spec.selector in ("llm", "llm_of_nearest"):
        subject = subject_of(inputs.config)
        pick = partial(pick_by_model, inputs.helper, k, inputs.seed, subject)
    nearest = {"nearest": k, "near_enough": k, "llm_of_nearest": CANDIDATES}
    picker = CardPicker(
        retriever,
        by="meaning" if spec.reads_tree else "words",
        nearest=nearest.get(spec.selector),
        gated=spec.selector == "near_enough",
        pick=pick,
    )
    return picker.select


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

    config = inputs.config
    if spec.source == "empty_block":
        placement = config.retrieval.placement
        return FixedText(Context(empty_block=True, placement=placement))
    assert inputs.artefact is not None  # `require` has checked it
    if spec.source == "gepa":
        instructions = read_prompt(inputs.artefact).instructions
        context = Context(instructions=neutral(instructions))
    else:
        books = read_playbooks(inputs.artefact, spec.source)
        notes = {name: book.text for name, book in books.playbooks.items()}
        if spec.source == "domain-ace":
            router = registry_router(
                config.retrieval,
                books.domains,
                inputs.classifier,
                inputs.seed,
                subject_of(config),
            )
            return FixedText(Context(), router=router, notes=notes)
        context = Context(notes=notes[ALL])
    tiers = {TierName.FLAT, TierName.HS}
    if skips:
        tiers.add(TierName.MS)
    return FixedText(context, tiers)


@dataclass(frozen=True, slots=True)
class FixedText:
    """Text that is no tree: the same for every problem, or notes by domain."""

    context: Context
    tiers: Collection[TierName] = tuple(TierName)
    router: Router | None = None
    notes: Mapping[str, str] = field(default_factory=dict)  # by domain

    async def retrieve(
        self,
        problem: Problem,
        tier: TierName,
        before: object,
        earlier: object,
    ) -> Context | None:
        """Return the text, if there is any at this tier. A problem of two domains reads both notes."""
        if tier not in self.tiers:
            return None
        found = self.context
        if self.router:
            routed = await self.router(problem)
            notes = [self.notes.get(name, "") for name in routed.domains]
            found = replace(routed, notes="\n\n".join(filter(None, notes)))
        return found
