"""The table of systems that can be compared. A row says which parts a system is made of; `parts.py` has the parts.

All use the same solver, judge and accounting. They differ in what attempts read, who routes and selects it, and how.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kace.errors import UsageError

if TYPE_CHECKING:
    from kace.baselines.parts import System
    from kace.cards.tree import EpistemicTree
    from kace.config import Config
    from kace.models.base import ChatModel

DEFAULT_K = 8
FEWSHOT_K = 2
CANDIDATES = 20
# attempts of best-of-N
LEAST = 2
MOST = 100


class Need(StrEnum):
    """What must be there before a system can be opened or run."""

    TREE = "tree"
    ARTEFACT = "artefact"  # a playbook or a prompt that training has made
    TRAINING_FILE = "training file"  # the problems that the tree was learned from, with their families
    GOLD_DOMAINS = "gold domains"  # every problem carries its domain, under a name of the tree's registry


@dataclass(frozen=True, slots=True)
class Bench:
    """What a system is opened with."""

    tree: EpistemicTree | None
    artefact: Path | None
    config: Config
    classifier: ChatModel
    helper: ChatModel  # the solver's model in a role of its own: it picks cards where that is the system
    seed: int
    k: int = DEFAULT_K  # cards or demonstrations read by systems that pick single ones instead of a block


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
        "bootstrap_fewshot",
    ] = "nothing"
    router: Literal["", "every_domain", "gold_domain", "random_domain", "no_domain"] = (
        ""
    )
    selector: Literal[
        "",
        "placebo",
        "everything",
        "llm",
        "nearest",
        "llm_of_nearest",
        "nearest_relevant",
        "technique",
    ] = ""
    es_policy: Literal["", "locked", "skip"] = (
        ""  # it needs a tree, also where nothing is read
    )
    attempts: int = 0  # attempts of a system without a ladder
    tier: Literal["MS", "HS", "FLAT"] = "HS"  # from where on learned text is read

    @property
    def trainer(self) -> str:
        """The `kace learn --method` that makes what it reads; empty where that is a learned tree, or nothing."""
        if self.source in ("tree", "nothing", "empty_block"):
            return "reflections" if self.name == "kace-reflections" else ""
        return self.source.replace("_", "-")

    @property
    def fewshot(self) -> bool:
        """Whether it reads solved training problems."""
        return self.source in ("knn_fewshot", "bootstrap_fewshot")

    @property
    def k(self) -> int:
        """Cards or demonstrations that it picks, where nobody says."""
        return FEWSHOT_K if self.fewshot else DEFAULT_K

    @property
    def needs(self) -> frozenset[Need]:
        """What must be there before it can be opened or run."""
        wanted = {
            Need.TREE: self.source == "tree"
            or bool(self.es_policy and self.source == "nothing"),
            Need.ARTEFACT: bool(self.trainer) and self.source != "tree",
            Need.TRAINING_FILE: self.selector == "technique",
            Need.GOLD_DOMAINS: self.router == "gold_domain",
        }
        return frozenset(need for need, wants in wanted.items() if wants)

    def facts(self, k: int) -> Mapping[str, int | str]:
        """What the manifest of a run says beside the name and the configuration."""
        found: dict[str, int | str] = (
            {"max_card_tokens": "not applied"} if self.selector == "everything" else {}
        )
        if self.selector in ("llm", "nearest", "llm_of_nearest", "nearest_relevant"):
            found["k"] = k
        if self.selector == "llm_of_nearest":
            found["candidates"] = max(CANDIDATES, k)
        if self.selector in ("llm", "llm_of_nearest"):
            from kace.ladder.prompt import template_hashes

            found |= template_hashes("systems")
        return found | ({"es_policy": self.es_policy} if self.es_policy else {})


_TABLE = (
    Spec("single", "one attempt", attempts=1),
    Spec("best-of-5", "five attempts, the plurality wins; any N from 2 to 100", attempts=5),
    Spec("tiered", "the ladder, reading nothing"),
    Spec("kace", "the ladder, reading its block of the tree", "tree"),
    Spec("kace-skip-es", "beyond the paper: skips ES where a card covers the problem", "tree", es_policy="skip"),
    Spec("kace-no-domain", "ablation: cards grouped by difficulty only", "tree", router="every_domain"),
    Spec("kace-monolithic", "ablation: every card in one context, whatever max_card_tokens says", "tree",
         router="no_domain", selector="everything"),
    Spec("kace-router", f"ablation: an LLM picks {DEFAULT_K} cards from all", "tree",
         router="no_domain", selector="llm"),
    Spec("kace-retriever", f"ablation: the {DEFAULT_K} cards nearest in meaning", "tree",
         router="no_domain", selector="nearest"),
    Spec("kace-reranked", f"control: an LLM picks {DEFAULT_K} of the {CANDIDATES} cards nearest in meaning", "tree",
         router="no_domain", selector="llm_of_nearest"),
    Spec("kace-oracle", "control: the problem's own domain instead of the router's", "tree", router="gold_domain"),
    Spec("kace-random", "control: a domain drawn at random", "tree", router="random_domain"),
    Spec("kace-placebo", "control: another domain's block", "tree", selector="placebo"),
    Spec("kace-empty-prompt", "control: the prompt of a block without its cards", "empty_block"),
    Spec("kace-reflections", "ablation: a tree of the solver's own reflections", "tree"),
    Spec("ace", "one attempt with an ACE playbook", "ace", attempts=1, tier="FLAT"),
    Spec("domain-ace", "one attempt with the playbook of its domain", "domain_ace", attempts=1),
    Spec("tiered-ace", "the ladder, reading an ACE playbook at HS", "ace"),
    Spec("tiered-ace-from-ms", "the ladder, reading an ACE playbook from MS on", "ace", tier="MS"),
    Spec("tiered-ace-skip-es", "the ladder from MS on, reading an ACE playbook", "ace", es_policy="skip", tier="MS"),
    Spec("gepa", "one attempt with a GEPA prompt", "gepa", attempts=1, tier="FLAT"),
    Spec("tiered-gepa", "the ladder, with a GEPA prompt at HS", "gepa"),
    Spec("tiered-gepa-from-ms", "the ladder, with a GEPA prompt from MS on", "gepa", tier="MS"),
    Spec("tiered-gepa-skip-es", "the ladder from MS on, with a GEPA prompt", "gepa", es_policy="skip", tier="MS"),
    Spec("knn-fewshot", f"the ladder, reading the {FEWSHOT_K} nearest solved training problems as demonstrations",
         "knn_fewshot", "no_domain", "nearest", "locked"),
    Spec("knn-fewshot-skip-es", "the same, and every problem begins at MS",
         "knn_fewshot", "no_domain", "nearest", "skip"),
    Spec("knn-fewshot-gated", "knn-fewshot, reading only what the relevance gate lets pass",
         "knn_fewshot", "no_domain", "nearest_relevant", "locked"),
    Spec("knn-fewshot-gated-skip-es", "the same, skipping ES where there is any",
         "knn_fewshot", "no_domain", "nearest_relevant", "skip"),
    Spec("bootstrap-fewshot", f"the ladder, reading its right attempts at the {FEWSHOT_K} nearest training problems",
         "bootstrap_fewshot", "no_domain", "nearest", "locked"),
    Spec("bootstrap-fewshot-skip-es", "the same, and every problem begins at MS",
         "bootstrap_fewshot", "no_domain", "nearest", "skip"),
    Spec("bootstrap-fewshot-gated", "bootstrap-fewshot, reading only what the relevance gate lets pass",
         "bootstrap_fewshot", "no_domain", "nearest_relevant", "locked"),
    Spec("bootstrap-fewshot-gated-skip-es", "the same, skipping ES where there is any",
         "bootstrap_fewshot", "no_domain", "nearest_relevant", "skip"),
    Spec("oracle-card", "ceiling: the cards of the problem's own family", "tree",
         router="no_domain", selector="technique", es_policy="locked"),
    Spec("oracle-card-skip-es", "ceiling: the same, skipping ES where there is one", "tree",
         router="no_domain", selector="technique", es_policy="skip"),
)  # fmt: skip

SYSTEMS: Mapping[str, Spec] = {
    spec.name: spec for spec in _TABLE
}  # in the order of reports


def spec_of(name: str) -> Spec:
    """The row of a name, best-of-N for any N from 2 to 100 included."""
    if name in SYSTEMS:
        return SYSTEMS[name]
    if found := re.fullmatch(r"best-of-([1-9]\d{0,5})", name):
        attempts = int(found.group(1))
        if not LEAST <= attempts <= MOST:
            fix = (
                "use single for one attempt"
                if attempts == 1
                else f"choose N from {LEAST} to {MOST}"
            )
            raise UsageError(
                f"best-of-N makes {LEAST} to {MOST} attempts, not {attempts}", fix=fix
            )
        return Spec(name, f"{attempts} attempts, the plurality wins", attempts=attempts)
    near = get_close_matches(name, SYSTEMS, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    raise UsageError(
        f"unknown system '{name}'{hint}", fix=f"choose one of {', '.join(SYSTEMS)}"
    )


def require(
    name: str, tree: EpistemicTree | None, artefact: Path | None, k: int | None = None
) -> Spec:
    """The row of a system that has all it reads; raises `UsageError` with the fix where something is missing."""
    spec = spec_of(name)
    method = f"kace learn --method {spec.trainer}" if spec.trainer else "kace learn"
    if Need.TREE in spec.needs and tree is None:
        fix = f"name one that {method} made: --tree DIR"
        raise UsageError(f"system '{name}' reads a tree, and none is given", fix=fix)
    if Need.ARTEFACT in spec.needs and artefact is None:
        fix = f"make it with {method} --out PATH, then name it: --artefact PATH"
        raise UsageError(
            f"system '{name}' reads what training made, and none is given", fix=fix
        )
    if Need.TRAINING_FILE in spec.needs and artefact is None:
        said = f"system '{name}' reads the families of the training problems, and no file of them is given"
        raise UsageError(
            said,
            fix="name the file that the tree was learned from: --artefact train.jsonl",
        )
    if k is not None and k < 1:
        raise UsageError(
            f"k is {k}, and a system that picks cards picks at least one",
            fix="choose k from 1 up",
        )
    return spec


def open_system(name: str, bench: Bench) -> System:
    """The system of that name, ready to solve; raises `UsageError` with the fix where something is missing."""
    spec = require(name, bench.tree, bench.artefact, bench.k)
    from kace.baselines.parts import compose

    return compose(spec, bench)
