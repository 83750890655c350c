"""Routers: which domain of the registry a problem belongs to. One of them is the coarse classifier, a model's call.

What all problems share comes first (instructions, registry, examples), the problem last, so that prefix caches hit.
The examples are the registry's own signals: given descriptions only, a model of 0.5B calls every problem mixed. The
paper's classifier has none, and replies in JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations, zip_longest
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kace.answers.kinds import MATHEMATICS, Subject
from kace.cards.card import UNIVERSAL
from kace.ladder.fence import fenced, neutral, shortened
from kace.ladder.prompt import Prompts, template
from kace.ladder.relevance import Relevance, words
from kace.ladder.selector import NO_USAGE, Index
from kace.models.base import ChatModel, Message, Question, Role, Usage, ask
from kace.problems import Problem

if TYPE_CHECKING:
    from kace.cards.tree import Domain, EpistemicTree
    from kace.config import RetrievalConfig

# where the calls stand among a problem's attempts
FIRST = "DOMAIN"
REFINED = "DOMAIN2"
MAX_EXAMPLES = 30
"""Signals shown in all, the same number of each domain. They are read once and then come from the prefix cache."""
MAX_PROBLEM_CHARS = 3_000
MAX_ATTEMPT_CHARS = 800
MAX_SIGNAL_CHARS = 120
"""What is read of each: at most 3,700 tokens or so with seven domains, where a small local model has room for 4,096."""

_WRAPPING = " \t\r\n`'\""
_MIXED = "mixed:"
_OBJECT = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class Route:
    """The domains a problem is routed to, and what it cost to find out."""

    domains: tuple[str, ...]
    """One name; two where both are primary; none where nobody could say, and only universal cards apply."""
    calls: int = 0  # calls made, failed ones too. They are not solver calls
    usage: Usage = NO_USAGE
    raw: tuple[str, ...] = ()  # what the model said, word for word


class Router(Protocol):
    """Names the domains whose cards a problem may read."""

    async def __call__(self, problem: Problem, seen: Sequence[str] = ()) -> Route:
        """The problem's domains. `seen` are texts of failed attempts, for a second look."""
        ...


def fixed_router(rule: Callable[[Problem], tuple[str, ...]]) -> Router:
    """Follows a rule and asks nobody: a control."""

    async def route(problem: Problem, seen: Sequence[str] = ()) -> Route:
        return Route(rule(problem))

    return route


def registry_router(
    config: RetrievalConfig,
    domains: Sequence[Domain],
    model: ChatModel,
    seed: int,
    subject: Subject = MATHEMATICS,
) -> Router:
    """The router asked for where there are no cards yet: the registry's words stand in for them."""

    async def route(problem: Problem, seen: Sequence[str] = ()) -> Route:
        if config.router != "model":
            return route_by_words(problem, domains)
        forms = config.prompts
        return await classify(
            problem,
            domains,
            model,
            seed=seed,
            attempts_in_view=seen,
            prompts=forms,
            subject=subject,
        )

    return route


def open_router(
    config: RetrievalConfig,
    tree: EpistemicTree,
    gate: Relevance,
    model: ChatModel,
    seed: int,
    subject: Subject = MATHEMATICS,
) -> Router:
    """The router asked for over a tree. `cards` takes the domain of the best-ranked card, if that is relevant."""
    if config.router != "cards":
        return registry_router(config, tree.domains, model, seed, subject)
    cards = tuple(card for card in tree.shown if set(card.domain_tags) != {UNIVERSAL})

    async def route(problem: Problem, seen: Sequence[str] = ()) -> Route:
        scores = gate.scores(problem.text, gate.threshold)
        known = (card for card in cards if card.card_id in scores)
        best = max(known, key=lambda card: scores[card.card_id], default=None)
        if best:
            return Route(tuple(tag for tag in best.domain_tags if tag != UNIVERSAL)[:1])
        return route_by_words(problem, tree.domains)

    return route


def route_by_words(problem: Problem, domains: Sequence[Domain]) -> Route:
    """The domain whose name, description and signals share most with the problem, without a call; none if none does."""
    registry = sorted(domains, key=lambda domain: domain.name)
    if len(registry) < 2:
        return Route(tuple(domain.name for domain in registry))
    scores = _word_index(tuple(registry)).scores(problem.text)
    best = max(scores)
    return Route((registry[scores.index(best)].name,) if best > 0 else ())


@lru_cache(maxsize=16)
def _word_index(registry: tuple[Domain, ...]) -> Index:
    texts = (
        (domain.name.replace("_", " "), domain.description, *domain.signals)
        for domain in registry
    )
    return Index(words("\n".join(text)) for text in texts)


async def classify(
    problem: Problem,
    domains: Sequence[Domain],
    model: ChatModel,
    *,
    seed: int,
    attempts_in_view: Sequence[str] = (),
    prompts: Prompts = "default",
    subject: Subject = MATHEMATICS,
) -> Route:
    """Ask the model for the problem's domain; an unusable reply is asked for once more, with the reason.

    With attempts in view it is the refinement after a tier failed. A call that fails leaves the domain unknown.
    """
    registry = sorted(domains, key=lambda domain: domain.name)
    names = tuple(domain.name for domain in registry)
    if len(names) < 2:
        return Route(names)  # nothing to ask
    form = FORMS[prompts]
    question = Question(
        messages=classifier_prompt(
            problem.text, registry, attempts_in_view, prompts, subject
        ),
        problem=problem.id,
        seed=seed,
        tier=REFINED if attempts_in_view else FIRST,
        read=lambda reply: form.read(reply, names) or None,
        again=partial(_asked_again, form),
        choices=choices_of(names, prompts),
    )
    found = await ask(model, question)
    return Route(found.value or (), found.calls, found.usage, found.raw)


def choices_of(names: Sequence[str], prompts: Prompts = "default") -> tuple[str, ...]:
    """Every reply there is: a name, or a pair of names, each pair in one order only to keep the list short."""
    return tuple(
        FORMS[prompts].write(*said)
        for said in (*((name,) for name in names), *combinations(names, 2))
    )


def read_names(reply: str, names: Sequence[str]) -> tuple[str, ...]:
    """The domains a reply names, a pair in the registry's order; empty for anything but the two forms asked for."""
    known = {name.casefold(): name for name in names}
    text = _bare(reply).casefold()
    if text in known:
        return (known[text],)
    if not text.startswith(_MIXED):
        return ()
    parts = [_bare(part) for part in text.removeprefix(_MIXED).split(",")]
    pair = {known[part] for part in parts if part in known}
    return (
        tuple(name for name in names if name in pair)
        if len(parts) == len(pair) == 2
        else ()
    )


def read_object(reply: str, names: Sequence[str]) -> tuple[str, ...]:
    """The domains that the JSON object in a reply names, whatever stands around it; empty where objects disagree."""
    found = {_named(text, names) for text in _OBJECT.findall(reply)} - {()}
    return found.pop() if len(found) == 1 else ()


def _named(text: str, names: Sequence[str]) -> tuple[str, ...]:
    known = {name.casefold(): name for name in names}
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    given = [said.get("domain"), *filter(None, [said.get("second")])]
    found = {
        known.get(name.strip().casefold()) if isinstance(name, str) else None
        for name in given
    }
    return () if None in found else tuple(name for name in names if name in found)


def _bare(text: str) -> str:
    return text.strip(_WRAPPING).removesuffix(".").rstrip(_WRAPPING)


def classifier_prompt(
    problem: str,
    registry: Sequence[Domain],
    attempts: Sequence[str] = (),
    prompts: Prompts = "default",
    subject: Subject = MATHEMATICS,
) -> tuple[Message, ...]:
    """Instructions and registry, an example for every signal, then the problem and the attempts made at it."""
    form = FORMS[prompts]
    lines = [f"- {domain.name}: {neutral(domain.description)}" for domain in registry]
    instructions = "\n".join(
        (template(f"{form.folder}classify", subject), "", "Domains:", *lines)
    )
    asked = [fenced("problem", shortened(problem, MAX_PROBLEM_CHARS))]
    if attempts:
        asked += [
            fenced("attempt", shortened(attempt, MAX_ATTEMPT_CHARS))
            for attempt in attempts
        ]
        asked.append(template(f"{form.folder}reclassify"))
    shown = _examples(registry) if form.examples else ()
    return (
        Message(Role.SYSTEM, instructions),
        *shown,
        Message(Role.USER, "\n\n".join(asked)),
    )


def _examples(registry: Sequence[Domain]) -> list[Message]:
    """One exchange for each signal, the domains by turns, always in the same order: a small model did best so."""
    each = max(1, MAX_EXAMPLES // len(registry))
    turns: list[Message] = []
    for signals in zip_longest(*(domain.signals[:each] for domain in registry)):
        for domain, signal in zip(registry, signals, strict=True):
            if signal:
                shown = fenced("problem", shortened(signal, MAX_SIGNAL_CHARS))
                turns += (
                    Message(Role.USER, shown),
                    Message(Role.ASSISTANT, domain.name),
                )
    return turns


def _asked_again(
    form: ClassifierForm, messages: tuple[Message, ...], reply: str
) -> tuple[Message, ...]:
    # The reason is ours and fixed; the reply itself is not shown again, since a problem may have dictated it.
    last = messages[-1]
    said = template(f"{form.folder}classify_retry").format(reason=form.reason(reply))
    return (*messages[:-1], Message(last.role, f"{last.content}\n\n{said}"))


class ClassifierForm(NamedTuple):
    """What the classifier is asked with, and the form of its replies."""

    folder: str  # of its templates
    examples: bool  # whether the signals are shown as examples
    write: Callable[..., str]  # a reply that gives these names, one or two
    read: Callable[[str, Sequence[str]], tuple[str, ...]]
    reason: Callable[[str], str]  # why a reply cannot be used


def _name_or_pair(*names: str) -> str:
    return names[0] if len(names) == 1 else f"{_MIXED} {', '.join(names)}"


def _object(*names: str) -> str:
    return json.dumps(dict(zip(("domain", "second"), names, strict=False)))


def _no_name(reply: str) -> str:
    mixed = _bare(reply).casefold().startswith("mixed")
    return (
        "mixed needs two different names of the list"
        if mixed
        else "it was not a name of the list"
    )


_NO_OBJECT = "it holds no JSON object, in double quotes, with a name of the list"
FORMS: Mapping[Prompts, ClassifierForm] = {
    "default": ClassifierForm("", True, _name_or_pair, read_names, _no_name),
    "paper": ClassifierForm(
        "paper/", False, _object, read_object, lambda reply: _NO_OBJECT
    ),
}
