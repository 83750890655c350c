"""Prompts: text files, filled in one place and identified by their hash.

What all attempts share comes first (the instructions, then the cards of a block, or their examples as turns of the
conversation), then what the attempts at one problem share (its text), then what differs between them (the lens), so
that the prefix caches of providers and servers hit.

Text from outside is quoted so that it cannot end its own quotation.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Literal, get_args

from kace.answers.kinds import MATHEMATICS, Subject
from kace.config import Config
from kace.ladder.record import RetrievedContext
from kace.ladder.tiers import Lens, TierName
from kace.models.base import AttemptKey, Message, Role, Usage

if TYPE_CHECKING:
    from kace.cards.card import Card, Example

Prompts = Literal["default", "paper"]
"""Whose instructions attempts get, ours or the paper's roles and lenses; and whether the classifier sees examples."""
Placement = Literal["instructions", "demonstrations"]
"""Where cards are placed: after the instructions, or as few-shot demonstrations, which are earlier turns that pose and
solve the problems of a card's examples. A card without examples is then placed after the instructions."""

# Quoting

Tag = Literal[
    "problem",
    "attempt",
    "card",
    "cards",
    "domain",
    "facts",
    "revision",
    "gap",
    "ruling",
    "notes",
    "example",
]
TAGS: tuple[Tag, ...] = get_args(Tag)
"""Every tag that a prompt of ours opens or closes."""
BARRED = (
    "‹"  # replaces a `<` or `[` that would begin one of these; still readable
)
_TURNS = (
    r"<(?=\|\w+\|>)",  # Qwen, Llama 3 and later, Phi, gpt-oss
    r"<(?=｜[^<>｜]{1,40}｜>)",  # DeepSeek
    r"<(?=(?:start_of_turn|end_of_turn|bos|eos|\|turn|turn\|)>)",  # Gemma
    r"<(?=/s>|</?SYS>>)|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])",  # Llama 2, Mistral
)
_OURS = re.compile(
    rf"<(?=[^\w<>]*(?:{'|'.join(TAGS)})(?![^\W_]))|{'|'.join(_TURNS)}",
    re.IGNORECASE,
)


def fenced(tag: Tag, text: str) -> str:
    """Return the text between `<tag>` and `</tag>`, which it cannot contain."""
    return f"<{tag}>\n{neutral(text.strip())}\n</{tag}>"


def neutral(text: str) -> str:
    """Return the text without our tags, however spaced, and without the turn markers of chat templates.

    Local engines interpret turn markers such as `<|im_end|>` anywhere in a prompt. Other signs, such as `<` in an
    inequality, stay as they are.
    """
    return _OURS.sub(BARRED, text)


def quoted_line(text: str) -> str:
    """Return text from outside on one line, so that it cannot begin a line of its own."""
    return neutral(shortened(" ".join(text.split()), 300))


def shortened(text: str, limit: int) -> str:
    """Return at most `limit` characters: the beginning and the end, since the question is mostly at the end."""
    text = text.strip()
    if len(text) <= limit:
        return text
    head = (limit - 3) // 2
    return f"{text[:head]} … {text[head + 3 - limit :]}"


# What a tier reads

CHARS_PER_TOKEN = 4
NO_USAGE = Usage()
NOTES = "notes"  # the name by which notes are hidden
Hide = Callable[[AttemptKey, Sequence[str]], tuple[str, ...]]
"""Returns which of these cards, or NOTES, are hidden from an attempt, to measure what each is worth."""


@dataclass(frozen=True, slots=True)
class Context:
    """What the attempts of a tier are shown beside the problem, and how it was found."""

    cards: tuple[Card, ...] = ()
    notes: str = (
        ""  # learned text without the form of cards, such as a playbook
    )
    instructions: str = (
        ""  # learned text that replaces the solver's instructions
    )
    empty_block: bool = False  # show the introduction of a block without cards: the empty-prompt control
    placement: Placement = "instructions"
    # One name, or two if both are primary; none if unknown, and then only universal cards apply.
    domains: tuple[str, ...] = ()
    eligible: int = (
        0  # cards of the block before the relevance threshold and the budget
    )
    calls: int = 0  # made to choose what is read; they are not solver calls
    usage: Usage = NO_USAGE
    hide: Hide | None = None

    @property
    def text_cards(self) -> tuple[Card, ...]:
        """The cards that are shown as text."""
        turns = self.placement == "demonstrations"
        return tuple(c for c in self.cards if not (turns and c.examples))

    @property
    def demonstrations(self) -> tuple[Example, ...]:
        """The examples that are shown as turns of the conversation."""
        cards = self.cards if self.placement == "demonstrations" else ()
        return tuple(example for card in cards for example in card.examples)

    @property
    def tokens(self) -> int:
        """The tokens of what is read, estimated from its length."""
        turns = _conversation(self.demonstrations, template("finish"))
        parts = [message.content for message in turns]
        if self.text_cards:
            parts.insert(0, card_block(self.text_cards))
        parts.append(self.notes or self.instructions)
        return len("\n".join(filter(None, parts))) // CHARS_PER_TOKEN

    @property
    def learned_hash(self) -> str:
        """The hash of the notes and instructions; empty if there are none."""
        if not self.notes and not self.instructions:
            return ""
        return templates_hash(self.notes, self.instructions)

    def beside(self, problem: str) -> Context:
        """Return the context without demonstrations of the problem itself, and without a card that has no other.

        Otherwise a card that demonstrates training problems would be measured by what is copied from it.
        """
        if self.placement != "demonstrations":
            return self
        same = _spaced(problem)
        kept = []
        for card in self.cards:
            others = []
            for example in card.examples:
                if _spaced(example.problem) != same:
                    others.append(example)
            if len(others) == len(card.examples):
                kept.append(card)
            elif others:
                kept.append(card.illustrated(others))
        return replace(self, cards=tuple(kept))

    @property
    def card_ids(self) -> tuple[str, ...]:
        """The ids of the cards."""
        return tuple(card.card_id for card in self.cards)

    @property
    def names(self) -> tuple[str, ...]:
        """The cards, and the notes if they may be hidden."""
        return self.card_ids + (NOTES,) * bool(self.notes and self.hide)

    def seen_by(self, key: AttemptKey) -> tuple[Context, tuple[str, ...]]:
        """Return what one attempt is shown, and the names of what is hidden from it."""
        if self.hide is None:
            return self, ()
        hidden = self.hide(key, self.names)
        seen = tuple(card for card in self.cards if card.card_id not in hidden)
        notes = "" if NOTES in hidden else self.notes
        return replace(self, cards=seen, notes=notes), hidden

    def record(self, tier: TierName) -> RetrievedContext:
        """Return the entry for the trace."""
        tokens = self.tokens
        return RetrievedContext(
            tier=tier,
            domains=self.domains,
            cards=self.names,
            eligible=self.eligible,
            tokens=tokens,
            estimated=tokens > 0,
            classifier_calls=self.calls,
            classifier_input=self.usage.input,
            classifier_cached=self.usage.cached,
            classifier_output=self.usage.output,
            notes=self.learned_hash,
        )


NOTHING = Context()


# Templates


@cache
def template(name: str, subject: Subject = MATHEMATICS) -> str:
    """Return the text of `prompts/NAME.md`, or of `prompts/subject/NAME.md` for another subject, if it exists."""
    folder = files("kace").joinpath("prompts")
    own = folder.joinpath("subject", f"{name}.md")
    if subject != MATHEMATICS and own.is_file():
        answer = template(f"subject/answer_{subject.answers}")
        text = template(f"subject/{name}").replace("{answer}", answer)
    else:
        text = folder.joinpath(f"{name}.md").read_text("utf-8").strip()
    return subject.named(text)


def template_hashes(part: str = "") -> dict[str, str]:
    """Return the hash of every template of a folder, for a run's manifest; without a folder, of the solver's."""
    hashes = {}
    prefix = f"{part}/" if part else ""
    for path in files("kace").joinpath("prompts", part).iterdir():
        if path.name.endswith(".md"):
            name = prefix + path.name.removesuffix(".md")
            hashes[name] = templates_hash(template(name))
    return dict(sorted(hashes.items()))


@cache
def templates_hash(*parts: str) -> str:
    """Return 16 digits that identify templates."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]


def subject_of(config: Config) -> Subject:
    """Return the subject that a configuration names, and how its answers are read."""
    return Subject(config.subject, config.answers, config.tolerance)


# The solver's prompt


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered prompt, the hash of its templates, and the lens that it names."""

    messages: tuple[Message, ...]
    hash: str
    lens: Lens | None = None


def solver_prompt(
    problem: str,
    lens: Lens | None,
    context: Context = NOTHING,
    tier: TierName | None = None,
    subject: Subject = MATHEMATICS,
) -> Prompt:
    """Return the prompt of one attempt. With a tier, it has the tier's role and the paper's lens."""
    context = context.beside(problem)
    turns = context.demonstrations
    as_turns = context.placement == "demonstrations"
    instructions = context.instructions or template("solve", subject)
    finish = template("finish", subject)
    if turns or (context.empty_block and as_turns):
        # With a demonstration there is no lens: a small model would follow the lens instead.
        lens = None
    steer = role = knowledge = block = learned = notes = ""
    if lens:
        folder = "paper/" if tier else ""
        steer = template(f"{folder}lens_{lens.value}", subject)
    if tier and tier is not TierName.FLAT:
        role = template(f"paper/role_{tier.value.lower()}", subject)
    # The empty-prompt control has the shape that cards would have: without text, if they are demonstrations.
    if context.text_cards or (context.empty_block and not as_turns):
        knowledge = template("knowledge")
        block = _paragraphs(knowledge, card_block(context.text_cards))
    if context.notes:
        learned = template("notes")
        notes = _paragraphs(learned, fenced("notes", context.notes))
    system = _paragraphs(instructions, role, block, notes)
    # A small model follows what it read last, so the form of the answer is repeated after the lens.
    user = _paragraphs(neutral(problem.strip()), steer, finish)
    marks = filter(None, ("turns" if turns else "", learned, role))
    digest = templates_hash(instructions, knowledge, *marks, steer, finish)
    messages = (
        Message(Role.SYSTEM, system),
        *_conversation(turns, finish),
        Message(Role.USER, user),
    )
    return Prompt(messages, digest, lens)


def card_block(cards: Sequence[Card]) -> str:
    """Return cards between our markers, in order. Nothing inside a card can close the block."""
    return fenced("cards", "\n\n".join(map(card_text, cards)))


def card_text(card: Card) -> str:
    """Return one card as the solver reads it: the rule and when it applies."""
    lines = [f"[{card.card_id}]", card.rule]
    if card.routing_conditions:
        lines.append("Choose by: " + "; ".join(card.routing_conditions))
    return neutral("\n".join(lines))


def _conversation(examples: Sequence[Example], finish: str) -> list[Message]:
    turns = []
    for example in examples:
        turns.append(
            Message(Role.USER, f"{neutral(example.problem)}\n\n{finish}")
        )
        turns.append(Message(Role.ASSISTANT, neutral(example.worked)))
    return turns


def _paragraphs(*parts: str) -> str:
    return "\n\n".join(filter(None, parts))


def _spaced(text: str) -> str:
    """Return the text without regard to line breaks."""
    return " ".join(text.split())
