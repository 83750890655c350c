"""What an evaluated system is, and the table of all of them.

A system turns a problem into a solution with the solver of a `Kit`. Each lives in a small file of its own or with its
family; the table names them, and loads a file only when a system of it is opened.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from kace.errors import UsageError
from kace.retrieval.prompt import template_hashes
from kace.retrieval.selector import SPEAKS

if TYPE_CHECKING:
    from kace.config import Config
    from kace.models.base import ChatModel
    from kace.problem import Problem
    from kace.solver.ladder import Kit
    from kace.solver.solution import Solution
    from kace.tree.tree import EpistemicTree

DEFAULT_K = 8
CANDIDATES = 20

Facts = Mapping[str, int | str]
"""Settings of a system that its name and the configuration do not say, for a run's manifest."""


class System(Protocol):
    """One way to solve problems, compared with others on the same solver."""

    @property
    def name(self) -> str:
        """What it is called in the table and in every report."""
        ...

    async def solve(self, problem: Problem, kit: Kit) -> Solution:
        """Solve one problem. What the kit itself would read is not read: that is the system's to say."""
        ...


class Need(StrEnum):
    """What must be there before a system can be opened or run."""

    TREE = "tree"
    ARTEFACT = "artefact"
    """A playbook or a prompt that training has made."""
    TRAIN = "train"
    """What it reads comes from `kace train`."""
    GOLD_DOMAINS = "gold domains"
    """Every problem must carry its domain, under a name of the tree's registry."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What a system is opened with."""

    tree: EpistemicTree | None
    artefact: Path | None
    config: Config
    classifier: ChatModel
    helper: ChatModel
    """The solver's model in a role of its own: it picks cards where that is the system."""
    seed: int
    k: int = DEFAULT_K
    """Cards read by systems that pick single cards instead of a block."""

    @property
    def grown(self) -> EpistemicTree:
        """The tree of a system that needs one."""
        assert self.tree is not None, "open_system checks what a system needs"
        return self.tree


Opener = Callable[[Bench], System]


def no_facts(k: int) -> Facts:
    """Nothing but the name."""
    return {}


@dataclass(frozen=True, slots=True)
class Spec:
    """One line of the table."""

    name: str
    about: str
    needs: frozenset[Need]
    open: Opener
    facts: Callable[[int], Facts] = no_facts
    """What the manifest of a run says beside the name, from the bench's `k`; known before anything is opened."""


def spec_of(name: str) -> Spec:
    """The table's line for a name, best-of-N for any N from 2 to 100 included."""
    if name in SYSTEMS:
        return SYSTEMS[name]
    if found := re.fullmatch(r"best-of-([1-9]\d{0,5})", name):
        from kace.systems.flat import best_of_spec

        return best_of_spec(int(found.group(1)))
    near = get_close_matches(name, SYSTEMS, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    raise UsageError(f"unknown system '{name}'{hint}", fix=f"choose one of {', '.join(SYSTEMS)}")


def open_system(name: str, bench: Bench) -> System:
    """The system of that name, ready to solve; raises `UsageError` with the fix where something is missing."""
    spec = spec_of(name)
    if Need.TREE in spec.needs and bench.tree is None:
        made = f"kace train {_trainer(name)}" if Need.TRAIN in spec.needs else "kace learn"
        raise UsageError(
            f"system '{name}' reads a tree, and none is given", fix=f"name one that {made} made: --tree DIR"
        )
    if Need.ARTEFACT in spec.needs and bench.artefact is None:
        raise UsageError(
            f"system '{name}' reads what training made, and none is given",
            fix=f"make it with kace train {_trainer(name)} --out PATH, then name it: --artefact PATH",
        )
    if bench.k < 1:
        raise UsageError(f"k is {bench.k}, and a system that picks cards picks at least one", fix="choose k from 1 up")
    return spec.open(bench)


def _trainer(name: str) -> str:
    """What `kace train` calls the training behind a system."""
    return name.removeprefix("tiered-").removeprefix("kace-")


def _later(module: str, function: str) -> Opener:
    """Opens with a function of one of our files, which is loaded only then: the table itself costs nothing."""

    def opener(bench: Bench) -> System:
        opened: System = getattr(import_module(f"kace.systems.{module}"), function)(bench)
        return opened

    return opener


def _spec(name: str, opener: Opener, about: str, *needs: Need, facts: Callable[[int], Facts] = no_facts) -> Spec:
    return Spec(name, about, frozenset(needs), opener, facts)


def candidates(k: int) -> int:
    """Cards that a reranker is shown: never fewer than it may pick."""
    return max(CANDIDATES, k)


def _unbounded(k: int) -> Facts:
    return {"max_card_tokens": "not applied"}


def _doubting(k: int) -> Facts:
    return {"doubts_es_from_telling_words": str(SPEAKS)}


def _retrieved(k: int) -> Facts:
    return {"k": k}


def _routed(k: int) -> Facts:
    return {"k": k, **template_hashes("systems")}


def _reranked(k: int) -> Facts:
    return {"k": k, "candidates": candidates(k), **template_hashes("systems")}


_TRAINED = (Need.ARTEFACT, Need.TRAIN)

_TABLE = (
    _spec("single", _later("flat", "open_single"), "one attempt"),
    _spec("best-of-5", _later("flat", "open_best_of_5"), "five attempts, the plurality wins; any N from 2 to 100"),
    _spec("tiered", _later("tiered", "open_tiered"), "the ladder, reading nothing"),
    _spec("kace", _later("tiered", "open_kace"), "the ladder, reading its block of the tree", Need.TREE),
    _spec(
        "kace-wary",
        _later("wary", "open_wary"),
        "beyond the paper: past an agreed ES where a card speaks of the problem",
        Need.TREE,
        facts=_doubting,
    ),
    _spec(
        "kace-direct",
        _later("wary", "open_direct"),
        "beyond the paper: begins at MS where a card speaks of the problem",
        Need.TREE,
        facts=_doubting,
    ),
    _spec(
        "kace-wary-bare",
        _later("wary", "open_wary_bare"),
        "control: climbs where kace-wary climbs, reading nothing",
        Need.TREE,
        facts=_doubting,
    ),
    _spec(
        "kace-wary-placebo",
        _later("wary", "open_wary_placebo"),
        "control: climbs where kace-wary climbs, reading another domain's block",
        Need.TREE,
        facts=_doubting,
    ),
    _spec(
        "kace-no-domain",
        _later("placed", "open_no_domain"),
        "ablation: cards grouped by difficulty only",
        Need.TREE,
    ),
    _spec(
        "kace-monolithic",
        _later("pool", "open_monolithic"),
        "ablation: every card in one context, whatever --max-card-tokens says",
        Need.TREE,
        facts=_unbounded,
    ),
    _spec(
        "kace-router",
        _later("pool", "open_router"),
        f"ablation: an LLM picks {DEFAULT_K} cards from all",
        Need.TREE,
        facts=_routed,
    ),
    _spec(
        "kace-retriever",
        _later("pool", "open_retriever"),
        f"ablation: the {DEFAULT_K} cards nearest in meaning",
        Need.TREE,
        facts=_retrieved,
    ),
    _spec(
        "kace-reranked",
        _later("pool", "open_reranked"),
        f"control: an LLM picks {DEFAULT_K} of the {CANDIDATES} cards nearest in meaning",
        Need.TREE,
        facts=_reranked,
    ),
    _spec(
        "kace-oracle",
        _later("placed", "open_oracle"),
        "control: the problem's own domain instead of the classifier's",
        Need.TREE,
        Need.GOLD_DOMAINS,
    ),
    _spec("kace-random", _later("placed", "open_random"), "control: a domain drawn at random", Need.TREE),
    _spec("kace-placebo", _later("sham", "open_placebo"), "control: another domain's block", Need.TREE),
    _spec("kace-scaffold", _later("sham", "open_scaffold"), "control: the prompt of a block without its cards"),
    _spec(
        "kace-reflections",
        _later("reflections", "open_reflections"),
        "ablation: a tree of the solver's own reflections",
        Need.TREE,
        Need.TRAIN,
    ),
    _spec("ace", _later("ace", "open_ace"), "one attempt with an ACE playbook", *_TRAINED),
    _spec("domain-ace", _later("ace", "open_domain_ace"), "one attempt with the playbook of its domain", *_TRAINED),
    _spec("tiered-ace", _later("ace", "open_tiered_ace"), "the ladder, reading an ACE playbook at HS", *_TRAINED),
    _spec("gepa", _later("gepa", "open_gepa"), "one attempt with a GEPA prompt", *_TRAINED),
    _spec("tiered-gepa", _later("gepa", "open_tiered_gepa"), "the ladder, with a GEPA prompt at HS", *_TRAINED),
)

SYSTEMS: Mapping[str, Spec] = MappingProxyType({spec.name: spec for spec in _TABLE})
"""Every system by name, in the order of reports."""
