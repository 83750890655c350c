r"""The teacher: a strong model that replies in tagged blocks, and what it is shown.

    <card>
    id: SOME_NAME
    problems: 1, 4
    payload:
    verbatim text, `\frac` and all
    </card>

Not JSON, where `\frac`, `\theta` and `\beta` are valid escapes and would be corrupted
silently. A tag is alone on its line. Text between blocks (prose, code fences,
thinking) is ignored, and a bad block costs itself only.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Generic, Literal, NamedTuple, TypeVar

from pydantic import AfterValidator, ValidationError

from kace.answers.kinds import MATHEMATICS, Subject
from kace.cards.card import (
    Card,
    CardError,
    Difficulty,
    refusal,
    stray_character,
)
from kace.cards.tree import RESERVED, Domain
from kace.config import Config
from kace.errors import KaceError, UsageError, one_line
from kace.ladder.prompt import (
    BARRED,
    fenced,
    neutral,
    quoted_line,
    shortened,
    template,
)
from kace.ladder.record import Attempt, Solution
from kace.ladder.tiers import TierName
from kace.learning import StepResult
from kace.models import open_model
from kace.models.base import (
    AttemptKey,
    ChatModel,
    Message,
    ModelError,
    Request,
    Role,
    Sampling,
    chat,
    lacks_room,
)
from kace.models.budget import Ledger
from kace.models.cache import TEACHER, Replay
from kace.problems import Problem

MAX_BLOCKS = 200
MAX_REPLY_CHARS = 1_000_000
MAX_NAME = 64  # characters kept of a block's name
MAX_REASON = 400  # characters kept of a reason

_THOUGHT = re.compile(
    r"^[ \t]*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
# Some servers put the opening tag into the prompt, so a reply has only the closing one.
_THOUGHT_END = re.compile(
    r"\A.*?^[ \t]*</think(?:ing)?>", re.DOTALL | re.IGNORECASE | re.MULTILINE
)
_BLOCK = (
    r"^[^\S\n]*<TAG>[^\S\n]*$\n?(.*?)"
    r"(?:(^[^\S\n]*</TAG>[^\S\n]*$)|(?=^[^\S\n]*<TAG>[^\S\n]*$)|\Z)"
)
_FIELD = re.compile(r"^[^\S\n]*(\w+)[^\S\n]*:(.*)$", re.MULTILINE)
_LINES = re.MULTILINE | re.IGNORECASE | re.DOTALL
_NUMBERS = re.compile(r"(?<!\d)(\d{1,4})(?!\d)(?: ?[-–] ?(\d{1,4})(?!\d))?")

T = TypeVar("T")


def _at_most(limit: int) -> AfterValidator:
    """Return a validator that makes a text one printable line, and cuts it."""
    return AfterValidator(partial(one_line, limit=limit))


class CardRefusal(StepResult):
    """A block of a reply that was not used, who refused it, and why.

    It holds no control characters, so it is safe to store and to show.
    """

    # As the teacher named it; empty if the block gave no name.
    card_id: Annotated[str, _at_most(MAX_NAME)] = ""
    by: Literal["parser", "code", "teacher"] = "parser"
    rule: str = "bad_block"
    reason: Annotated[str, _at_most(MAX_REASON)]

    def __str__(self) -> str:
        return f"{self.card_id}: {self.reason}" if self.card_id else self.reason


class Grammar(NamedTuple):
    """The form of one kind of block.

    `name` is the field that names a block; no two blocks of a reply may share it, and it
    is empty where blocks have no name. `text` is the last field, whose value is every
    line up to the end tag, verbatim.
    """

    tag: str
    name: str
    required: tuple[str, ...] = ()
    text: str = ""


Block = Mapping[str, str]
"""The fields of a block that has the form, its text among them. They hold no control
characters but newline and tab."""


class Reading(NamedTuple, Generic[T]):
    """A parsed reply: what it holds by name, in order, and what could not be used."""

    found: Mapping[str, T]
    bad: tuple[CardRefusal, ...] = ()

    @property
    def faults(self) -> list[CardRefusal]:
        """Return what the teacher may mend: all but what it rejects itself."""
        return [refusal for refusal in self.bad if refusal.by != "teacher"]


def read_blocks(reply: str, grammar: Grammar) -> Reading[Block]:
    """Return the blocks of a reply in order, and the malformed ones.

    A block without a name goes by its content. A reply without any is one malformed
    block, unless a line such as "no card" says that there is none. Never raises, never
    unescapes. Text and blocks over the limits are not read.
    """
    blocks: dict[str, Block] = {}
    bad: list[CardRefusal] = []
    text = reply[:MAX_REPLY_CHARS].removeprefix("\ufeff").replace("\r\n", "\n")
    text = _THOUGHT_END.sub("", _THOUGHT.sub("", text))
    pattern = _BLOCK.replace("TAG", grammar.tag)
    for found in islice(re.finditer(pattern, text, _LINES), MAX_BLOCKS):
        block = _parse_block(found[1], grammar)
        name = one_line(block.get(grammar.name, ""), MAX_NAME)
        stray = stray_character(found[1])
        empty = [field for field in grammar.required if not block.get(field)]
        if not found[2]:
            reason = "its end tag is missing: the block is cut off"
        elif stray:
            reason = f"it {stray.what}"
        elif name in blocks:
            reason = f"its {grammar.name} is that of an earlier block; names must differ"
        elif empty:
            reason = f"the field {empty[0]} is missing or empty"
        else:
            blocks[name or found[1]] = block
            continue
        bad.append(CardRefusal(card_id=name, reason=reason))
    none = rf"^\W*no {grammar.tag}s?(?: needed)?\W*$"
    if not (blocks or bad or re.search(none, text, _LINES)):
        reason = "the reply holds no block of the form asked for"
        bad.append(CardRefusal(reason=reason))
    return Reading(blocks, tuple(bad))


def read_numbers(value: str, last: int) -> tuple[int, ...]:
    """Return the numbers of a list such as `1, 3, 7-9`, each once.

    Words around them are ignored. Raises `ValueError` for a number out of range.
    """
    found: dict[int, None] = {}
    for first, end in _NUMBERS.findall(value):
        numbers = range(int(first), int(end or first) + 1)
        if not numbers or numbers[0] < 1 or numbers[-1] > last:
            raise ValueError(
                f"{first} to {end or first} is not among the problems 1 to {last}; "
                "write numbers such as 1, 3, 4"
            )
        found.update(dict.fromkeys(numbers))
    return tuple(found)


def _parse_block(body: str, grammar: Grammar) -> Block:
    """Return the fields of a block, the last of which is its text."""
    fields: dict[str, str] = {}
    head = body
    if grammar.text:
        mark = rf"^\s*{grammar.text}\s*:"
        head, *rest = re.split(mark, body, maxsplit=1, flags=_LINES)
        fields[grammar.text] = "".join(rest).strip()
    for name, value in _FIELD.findall(head):
        fields.setdefault(name.lower(), value.strip())
    return fields


TEMPERATURE = 0.0
FEW = 0.4  # of the blocks of a reply: so many refused ones are not repaired
MAX_REPEATED_CHARS = 100_000  # of the earlier reply, in a repair round
_TURN_MARKER = re.compile(r"<(?=\|\w+\|>)")


@dataclass(frozen=True)
class Teacher:
    """Sends requests to one model and parses its replies."""

    model: ChatModel
    seed: int = 0
    max_tokens: int = 16_000
    subject: Subject = MATHEMATICS

    @property
    def source(self) -> str:
        """Return the teacher's name, for a card's provenance."""
        return one_line(self.model.name)

    async def ask(
        self,
        name: str,
        system: str,
        parts: Iterable[str],
        read: Callable[[str], Reading[T]],
    ) -> Reading[T]:
        """Send a request, and one repair round if much could not be used.

        A round for a few blocks of many would cost more than it mends. What is still
        bad then is listed. `name` identifies the request in caches, files
        and errors. Raises `KaceError` if a call fails.
        """
        messages = chat(self.subject.named(system), "\n\n".join(parts))
        reply = await self.complete(name, 0, messages)
        first = read(reply)
        faults = len(first.faults)
        if faults <= FEW * (faults + len(first.found)):
            return first
        again = await self.complete(name, 1, _repair(messages, reply, first))
        return merge_repair(first, read(again))

    async def complete(
        self,
        name: str,
        index: int,
        messages: tuple[Message, ...],
        temperature: float = TEMPERATURE,
    ) -> str:
        """Return the text of one reply. `index` counts the calls of this request."""
        key = AttemptKey(name, self.seed, TEACHER, index)
        sampling = Sampling(temperature, self.max_tokens, key.sampling_seed())
        try:
            reply = await self.model.complete(Request(messages, sampling, key))
        except ModelError as error:
            message = one_line(error.message)
            fewer = " with a smaller --set teacher_max_tokens=N"
            shorter = fewer if lacks_room(error.message) else ""
            raise KaceError(
                f"the teacher did not answer the request '{name}': {message}",
                fix=f"run the same command again{shorter}: it resumes from here",
            ) from None
        return reply.text


Screen = Callable[[Card], CardRefusal | None]


class TeacherStep(NamedTuple):
    """What every teacher request of a step shares, and the screen of its cards."""

    teacher: Teacher
    name: str  # of the step and of its request
    epoch: int
    screen: Screen  # a refusal is reported to the teacher once, which may mend the card
    cards_per_problem: int = 2


def open_teacher(config: Config) -> ChatModel:
    """Open the configured teacher's model; refuse a configuration without one."""
    if not config.teacher:
        raise UsageError(
            "a learner needs a teacher",
            fix="name one: --teacher anthropic/NAME, openai/NAME, local/NAME, "
            "exchange/DIR (a person or an agent answers files), or replay/RUN",
        )
    Ledger(config.caps(), config.prices).require_price(config.teacher)
    provider, _, name = config.teacher.partition("/")
    if provider == "replay":
        return Replay(Path(name), teacher=True)
    return open_model(config.for_teacher())


def instructions(*names: str, folder: str = "teacher") -> str:
    """Return the system text of a kind of request: the shared part, then its own."""
    parts = [template(f"{folder}/{name}") for name in ("preface", *names)]
    return "\n\n".join(parts)


def read_each(
    reply: str, grammar: Grammar, make: Callable[[Block], T | CardRefusal]
) -> Reading[T]:
    """Parse each block of a reply with `make`; list those that it refuses as bad."""
    blocks = read_blocks(reply, grammar)
    found: dict[str, T] = {}
    bad = list(blocks.bad)
    for name, block in blocks.found.items():
        try:
            made = make(block)
        except CardError as error:
            message = error.message.removeprefix(f"card {name!r}: ")
            reason = f"{message}; {error.fix}"
        except ValidationError as error:
            reason = "; ".join(refusal(error))
        except ValueError as error:
            reason = str(error)
        else:
            if isinstance(made, CardRefusal):
                bad.append(made)
            else:
                found[name] = made
            continue
        bad.append(CardRefusal(card_id=name, reason=reason))
    return Reading(found, tuple(bad))


def read_by_card(
    reply: str,
    grammar: Grammar,
    cards: Iterable[Card],
    make: Callable[[Card, Block], T | CardRefusal],
    every: bool = True,
) -> Reading[T]:
    """Parse the blocks on cards that were shown, by their field `id`.

    Where every card needs a block, those without one are listed as bad.
    """
    known = {card.card_id: card for card in cards}

    def make_of(block: Block) -> T | CardRefusal:
        card = known.get(block["id"])
        if card is None:
            raise ValueError(
                "no card of that id was shown; copy the id between the square brackets"
            )
        return make(card, block)

    reading = read_each(reply, grammar, make_of)
    bad = list(reading.bad)
    if every:
        there = {*reading.found, *(each.card_id for each in bad)}
        for name in known:
            if name not in there:
                reason = f"there is no block {grammar.tag} for this card"
                bad.append(CardRefusal(card_id=name, reason=reason))
    return Reading(reading.found, tuple(bad))


def merge_repair(first: Reading[T], second: Reading[T]) -> Reading[T]:
    """Merge a reading with the reading of its repair.

    What was good stays as it was. A new item mends the bad block of its name, else the
    first one left: the fault may have been the name.
    """
    new = second.found.keys() - first.found.keys()
    renamed = len(new - {bad.card_id for bad in first.bad})
    again = {*new, *(bad.card_id for bad in second.bad)}
    left = [bad for bad in first.bad if bad.card_id not in again]
    still = [bad for bad in second.bad if bad.card_id not in first.found]
    found = {**first.found, **second.found, **first.found}
    return Reading(found, (*left[renamed:], *still))


def _repair(
    messages: tuple[Message, ...], reply: str, reading: Reading[T]
) -> tuple[Message, ...]:
    """Return the conversation so far, and what was wrong with the reply."""
    accepted = neutral(", ".join(reading.found) or "nothing")
    lines = [
        template("teacher/repair"),
        "",
        f"Accepted: {accepted}",
        "Refused:",
    ]
    for bad in reading.faults:
        lines.append(f"- {neutral(str(bad))}")
    # The teacher's own blocks stay readable to it. Only what an engine could take for
    # the end of a turn is broken. Providers refuse an empty turn.
    shown = _TURN_MARKER.sub(BARRED, reply[:MAX_REPEATED_CHARS]).strip()
    return (
        *messages,
        Message(Role.ASSISTANT, shown or "(no text)"),
        Message(Role.USER, "\n".join(lines)),
    )


# What the teacher is shown: the cells of a tree, and the problems that they failed.

TAIL_CHARS = 1_500  # shown of a wrong attempt: its end, where it commits itself


class TreeCell(NamedTuple):
    """A cell of the tree as a learner fills it: what one tier reads in one domain."""

    tier: TierName
    domain: str

    @property
    def difficulty(self) -> Difficulty:
        """Return the difficulty of the cards that only this tier reads."""
        return (
            Difficulty.MEDIUM if self.tier is TierName.MS else Difficulty.HARD
        )

    def __str__(self) -> str:
        return f"{self.tier.value} {self.domain}"


class FailedProblem(NamedTuple):
    """A training problem that a tier did not deliver."""

    problem: Problem
    record: Solution
    attempts: tuple[Attempt, ...]  # the tier's wrong ones, with how they end


def is_failed(record: Solution, tier: TierName, failures: str) -> bool:
    """Whether a tier was reached and did not solve the problem; if `final`, no tier did."""
    tiers = [attempt.tier for attempt in record.attempts]
    delivered = failures == "final" or tiers[-1] is tier
    return tier in tiers and not (record.correct and delivered)


def format_problem(
    number: int, problem: Problem, limit: int, label: str = ""
) -> str:
    """Return a problem with its answer under a number, as the teacher is shown it."""
    text = fenced("problem", shortened(problem.text, limit))
    answer = quoted_line(problem.answer or "not known")
    return f"## Problem {number}{label}\n{text}\nExpected answer: {answer}"


def format_attempt(title: str, attempt: Attempt, tail: int) -> str:
    """Return what an attempt answered, and how its text ends."""
    answered = "gave no answer"
    if attempt.answer:
        answered = f"answered {quoted_line(attempt.answer)}"
    ending = fenced("attempt", attempt.text[-tail:] or "(no text)")
    return f"{title} {answered}. It ends:\n{ending}"


# BuildEpistemicTree: the domains of a corpus, proposed by the teacher, checked by code.

FEWEST_DOMAINS = 3
MOST_DOMAINS = 7
FORGOTTEN = 0.02  # of many problems, the share that a reply may leave out
ONE_IN = 10  # each domain must hold one in so many of the problems shown
EXAMPLE_DOMAIN = (
    "tea_and_coffee"  # the domain that the prompt shows the form with
)
MAX_SIGNAL_CHARS = 100
MIN_SIGNALS = 2
MAX_SIGNALS = 12
MAX_PROBLEM_CHARS = 3_000
MAX_SHOWN_CHARS = (
    300_000  # of all problems shown: as much as a teacher takes in
)
MAX_REASONS = 6  # listed in the error for a reply that could not be used

DOMAIN = Grammar(
    "domain",
    name="name",
    required=("name", "description", "problems", "signals"),
    text="signals",
)


class Partition(StepResult):
    """The domains that a tree begins with."""

    domains: tuple[Domain, ...]


async def partition(
    problems: Sequence[Problem],
    teacher: Teacher,
    most: int = 500,
) -> Partition:
    """Ask for 3 to 7 disjoint domains over the problems, or a sample of `most`.

    The sample depends on the problems' content and the seed, not on their order. Raises
    `KaceError` if two tries give none.
    """
    shown = shuffled(problems, teacher.seed)[:most]
    limit = min(MAX_PROBLEM_CHARS, MAX_SHOWN_CHARS // max(1, len(shown)))
    parts = []
    for number, problem in enumerate(shown, 1):
        parts.append(format_problem(number, problem, limit))
    parts.append(
        f"Sort these {len(shown)} problems into {FEWEST_DOMAINS} to {MOST_DOMAINS} "
        "domains."
    )
    reading = await teacher.ask(
        "partition",
        instructions("partition"),
        parts,
        lambda reply: read_partition(reply, len(shown)),
    )
    if reading.found:
        return Partition(domains=tuple(reading.found.values()))
    reasons = "; ".join(map(str, reading.bad[:MAX_REASONS]))
    raise KaceError(
        f"the teacher proposed no usable domains, in two tries: {reasons}",
        fix="try another teacher, or another seed to show it other problems",
    )


def shuffled(problems: Sequence[Problem], seed: int) -> list[Problem]:
    """Return the problems in an order that depends on their content and the seed."""
    return sorted(
        problems,
        key=lambda problem: hashlib.sha256(
            f"{seed}\x1f{problem.id}".encode()
        ).digest(),
    )


def read_partition(reply: str, shown: int) -> Reading[Domain]:
    """Return the domains of a reply, or none if they do not hold all problems."""
    rest = set(range(1, shown + 1))

    def make(block: Block) -> Domain:
        name = block["name"]
        if name in (*RESERVED, EXAMPLE_DOMAIN):
            raise ValueError(
                "the name is reserved: call the domain what its problems share"
            )
        numbers = rest.intersection(read_numbers(block["problems"], shown))
        if len(numbers) * ONE_IN < shown:
            raise ValueError(
                f"{name} holds {len(numbers)} of {shown} problems; at least one in "
                f"{ONE_IN} is needed"
            )
        lines = [line.strip(" -*•") for line in block["signals"].split("\n")]
        short = [line for line in lines if 0 < len(line) <= MAX_SIGNAL_CHARS]
        signals = tuple(dict.fromkeys(short))
        if len(signals) < MIN_SIGNALS:
            raise ValueError(
                f"it has {len(signals)} signals of at most {MAX_SIGNAL_CHARS} "
                "characters; write 5 to 8"
            )
        domain = Domain(
            name=name,
            description=block["description"],
            share=round(len(numbers) / shown, 4),
            signals=signals[:MAX_SIGNALS],
        )
        rest.difference_update(numbers)
        return domain

    reading = read_each(reply, DOMAIN, make)
    count = len(reading.found)
    if not FEWEST_DOMAINS <= count <= MOST_DOMAINS:
        allowed = f"there must be {FEWEST_DOMAINS} to {MOST_DOMAINS}"
        reason = f"{count} usable domains; {allowed}"
    elif len(rest) > shown * FORGOTTEN:
        numbers = ", ".join(map(str, sorted(rest)))
        reason = f"no usable domain holds the problems {numbers}"
    else:
        return Reading(reading.found)
    return Reading({}, (*reading.bad, CardRefusal(reason=reason)))
