"""Prompts: text files, filled in one place, known by their hash.

What all attempts share comes first (the instructions, then the cards of a block, or their examples as turns of the
conversation), then what a problem's attempts share (its text), then what differs between them (the lens), so that
provider and server prefix caches hit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

from kace.answers.kinds import MATHEMATICS, Subject
from kace.config import Config
from kace.ladder.fence import fenced, neutral
from kace.ladder.tiers import Lens, TierName
from kace.models.base import Message, Role

if TYPE_CHECKING:
    from kace.cards.card import Card, Example


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered prompt and the hash of the templates it came from."""

    messages: tuple[Message, ...]
    hash: str


Prompts = Literal["default", "paper"]
"""Whose instructions attempts and the classifier get: ours, or the paper's roles, lenses and JSON reply."""
Placement = Literal["instructions", "problem", "demonstrations"]
"""Where cards are placed in the prompt: after the instructions, before the problem, or as few-shot demonstrations:
earlier turns, in which the problems of a card's examples are asked and solved. A card without one is then placed after
the instructions."""


@dataclass(frozen=True, slots=True)
class PromptContext:
    """What an attempt reads besides its problem."""

    cards: tuple[Card, ...] = ()
    notes: str = ""  # learned text without the form of cards, such as a playbook
    instructions: str = (
        ""  # learned text that takes the place of the solver's instructions
    )
    empty_block: bool = False  # show the block's introduction also where there are no cards: the empty-prompt control
    placement: Placement = "instructions"

    @property
    def as_text(self) -> tuple[Card, ...]:
        """The cards that are shown as text."""
        if self.placement != "demonstrations":
            return self.cards
        return tuple(card for card in self.cards if not card.examples)

    @property
    def demonstrations(self) -> tuple[Example, ...]:
        """The examples that are shown as turns of the conversation."""
        if self.placement != "demonstrations":
            return ()
        return tuple(example for card in self.cards for example in card.examples)

    def beside(self, problem: str) -> PromptContext:
        """The same without demonstrations of the problem itself, and without a card that has no other.

        Else a card that demonstrates training problems would be measured by what is copied from it.
        """
        asked = _spaced(problem)
        if all(_spaced(example.problem) != asked for example in self.demonstrations):
            return self
        kept = []
        for card in self.cards:
            left = tuple(
                example
                for example in card.examples
                if _spaced(example.problem) != asked
            )
            if left == card.examples:
                kept.append(card)
            elif left:
                kept.append(card.illustrated(left))
        return replace(self, cards=tuple(kept))

    @property
    def learned_hash(self) -> str:
        """Which notes and instructions these are; empty where there are none."""
        return (
            templates_hash(self.notes, self.instructions)
            if self.notes or self.instructions
            else ""
        )


NOTHING = PromptContext()


def subject_of(config: Config) -> Subject:
    """Return the subject that a configuration names, with how its answers are read."""
    return Subject(config.subject, config.answers, config.tolerance)


def solver_prompt(
    problem: str,
    lens: Lens | None,
    context: PromptContext = NOTHING,
    tier: TierName | None = None,
    subject: Subject = MATHEMATICS,
) -> Prompt:
    """The prompt of one attempt, with what its tier reads. With a tier, it has the tier's role and the paper's lens."""
    context = context.beside(problem)
    instructions = context.instructions or template("solve", subject)
    finish = template("finish", subject)
    turns = context.demonstrations
    bare = context.empty_block and context.placement == "demonstrations"
    # A demonstration says how to work; after a lens a small model follows the lens instead.
    folder = "paper/" if tier else ""
    steer = (
        template(f"{folder}lens_{lens.value}", subject)
        if lens and not turns and not bare
        else ""
    )
    role = (
        template(f"paper/role_{tier.value.lower()}", subject)
        if tier and tier is not TierName.FLAT
        else ""
    )
    knowledge = (
        template("knowledge")
        if context.as_text or (context.empty_block and not bare)
        else ""
    )
    learned = template("notes") if context.notes else ""
    block = _paragraphs(knowledge, card_block(context.as_text)) if knowledge else ""
    notes = _paragraphs(learned, fenced("notes", context.notes)) if learned else ""
    near = context.placement == "problem"
    system = _paragraphs(instructions, role, "" if near else block, notes)
    # A small model follows what it read last: the form of the answer is asked for once more, after the lens.
    user = _paragraphs(block if near else "", neutral(problem.strip()), steer, finish)
    marks = ("near" if near else "", "turns" if turns else "", learned, role)
    return Prompt(
        messages=(
            Message(Role.SYSTEM, system),
            *_conversation(turns, finish),
            Message(Role.USER, user),
        ),
        hash=templates_hash(
            instructions, knowledge, *filter(None, marks), steer, finish
        ),
    )


def _paragraphs(*parts: str) -> str:
    return "\n\n".join(filter(None, parts))


def _conversation(examples: Sequence[Example], finish: str) -> Iterator[Message]:
    for example in examples:
        yield Message(Role.USER, f"{neutral(example.problem)}\n\n{finish}")
        yield Message(Role.ASSISTANT, neutral(example.worked))


def shown_text(cards: Sequence[Card], placement: Placement) -> str:
    """What an attempt reads of cards, for counting."""
    context = PromptContext(tuple(cards), placement=placement)
    turns = (
        message.content
        for message in _conversation(context.demonstrations, template("finish"))
    )
    return "\n".join(
        (*([card_block(context.as_text)] if context.as_text else ()), *turns)
    )


def card_block(cards: Sequence[Card]) -> str:
    """Cards between our markers, in the order given. Nothing inside a card can close the block."""
    return fenced("cards", "\n\n".join(map(card_text, cards)))


def card_text(card: Card) -> str:
    """One card as the solver reads it: the rule and when it applies."""
    lines = [f"[{card.card_id}]", card.rule]
    if card.routing_conditions:
        lines.append("Choose by: " + "; ".join(card.routing_conditions))
    return neutral("\n".join(lines))


@cache
def template(name: str, subject: Subject = MATHEMATICS) -> str:
    """The text of `prompts/NAME.md`; for another subject that of `prompts/subject/NAME.md`, if there is one."""
    folder = files("kace").joinpath("prompts")
    if subject != MATHEMATICS and folder.joinpath("subject", f"{name}.md").is_file():
        asked = template(f"subject/answer_{subject.answers}")
        return subject.named(template(f"subject/{name}").replace("{answer}", asked))
    return subject.named(
        folder.joinpath(f"{name}.md").read_text(encoding="utf-8").strip()
    )


def template_hashes(part: str = "") -> dict[str, str]:
    """Every template of a part of the folder and its hash, for a run's manifest; the solver's without a part."""
    folder = files("kace").joinpath("prompts", part)
    found = sorted(
        path.name.removesuffix(".md")
        for path in folder.iterdir()
        if path.name.endswith(".md")
    )
    names = [f"{part}/{name}" if part else name for name in found]
    return {name: templates_hash(template(name)) for name in names}


def _spaced(text: str) -> str:
    """The text, however its lines are broken."""
    return " ".join(text.split())


@cache
def templates_hash(*parts: str) -> str:
    """What templates are known by, in 16 digits."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]
