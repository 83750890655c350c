"""Synthesis: where HS fails its gate, a teacher gathers what its attempts agree on, and the solver finishes from it.

An option that is off by default: where it was published it did not help, and it is here so that this can be checked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kace.answers.kinds import MATHEMATICS, Subject
from kace.cards.card import BULLET, stray_character
from kace.ladder.fence import fenced, neutral
from kace.ladder.ladder import Kit, drawn
from kace.ladder.prompt import (
    Prompt,
    PromptContext,
    solver_prompt,
    template,
    templates_hash,
)
from kace.ladder.record import Attempt
from kace.ladder.tiers import LOCKED
from kace.models.base import (
    AttemptKey,
    ChatModel,
    Message,
    ModelError,
    Reply,
    Request,
    Role,
    Sampling,
    after_thinking,
    chat,
)
from kace.problems import Problem

if TYPE_CHECKING:
    from kace.cards.card import Card

TEACHER_TIER = "SYNTHESIS"  # where the teacher's call stands among a problem's attempts
HARD = LOCKED[-1]
LEAST_ATTEMPTS = 2  # one alone has nothing to agree with
MAX_ATTEMPT_CHARS = 6_000
"""What is shown of an attempt: its beginning, since what attempts share stands before they part."""
MAX_FACTS = 12
MAX_FACT_CHARS = 500

_ANSWER = re.compile(
    r"\\f?boxed|\bfinal answer\b|\banswer\b[^.;]{0,40}?(?:\bis\b|[:=])", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Synthesis:
    """The teacher that gathers facts. It is shown the problem and the attempts, never the expected answer."""

    teacher: ChatModel
    max_tokens: int = 16_000

    async def finish(
        self,
        problem: Problem,
        attempts: Sequence[Attempt],
        cards: Sequence[Card],
        kit: Kit,
    ) -> Attempt | None:
        """The solver's attempt from the common facts of a tier's attempts; `None` where they gave none to go on from.

        A teacher that fails leaves a failed attempt, so that another run tries again. Dropout hides no card from it.
        """
        texts = [a.text for a in attempts if a.text.strip()]
        if len(texts) < LEAST_ATTEMPTS:
            return None
        key = AttemptKey(problem.id, kit.seed, HARD.name.value, HARD.attempts)
        try:
            reply = await self._ask(problem, texts, kit)
        except ModelError as error:
            return Attempt.failed(
                key, ModelError(error.failure, f"teacher: {error.message}"), None
            )
        facts = read_facts(reply.text)
        if not facts:
            return None
        attempt = await drawn(
            key, None, finishing_prompt(problem.text, facts, cards, kit.subject), kit
        )
        if kit.observer:
            kit.observer.attempted(problem, attempt)
        return attempt

    async def _ask(self, problem: Problem, texts: Sequence[str], kit: Kit) -> Reply:
        key = AttemptKey(problem.id, kit.seed, TEACHER_TIER, 0)
        sampling = Sampling(
            temperature=0.0, max_tokens=self.max_tokens, seed=key.sampling_seed()
        )
        messages = gathering_prompt(problem.text, texts, kit.subject)
        return await self.teacher.complete(Request(messages, sampling, key))


def gathering_prompt(
    problem: str, attempts: Sequence[str], subject: Subject = MATHEMATICS
) -> tuple[Message, ...]:
    """What the teacher is asked: the problem and the beginning of each attempt, quoted."""
    shown = [
        fenced("problem", problem),
        *(fenced("attempt", beginning(text)) for text in attempts),
    ]
    return chat(template("synthesis", subject), "\n\n".join(shown))


def finishing_prompt(
    problem: str,
    facts: Sequence[str],
    cards: Sequence[Card],
    subject: Subject = MATHEMATICS,
) -> Prompt:
    """What the solver is asked: as any attempt without a lens, with the facts quoted before the finish line."""
    plain = solver_prompt(problem, None, PromptContext(tuple(cards)), subject=subject)
    system, _ = plain.messages
    steer = template("from_facts", subject)
    quoted = fenced("facts", "\n".join(BULLET + fact for fact in facts))
    user = "\n\n".join(
        (neutral(problem.strip()), steer, quoted, template("finish", subject))
    )
    return Prompt(
        messages=(system, Message(Role.USER, user)),
        hash=templates_hash(plain.hash, steer),
    )


def beginning(text: str) -> str:
    """An attempt as the teacher reads it."""
    text = text.strip()
    return (
        text
        if len(text) <= MAX_ATTEMPT_CHARS
        else f"{text[:MAX_ATTEMPT_CHARS].rstrip()} …"
    )


def read_facts(reply: str) -> tuple[str, ...]:
    """The facts of a reply, in order; none where it has not exactly one whole block of `- fact` lines.

    A line that gives a final answer is left out: the solver finishes by itself.
    """
    lines = [line.strip() for line in after_thinking(reply).split("\n")]
    if lines.count("<facts>") != 1 or lines.count("</facts>") != 1:
        return ()
    block = [
        line
        for line in lines[lines.index("<facts>") + 1 : lines.index("</facts>")]
        if line
    ]
    if len(block) > MAX_FACTS or not all(map(_is_fact, block)):
        return ()
    facts = (line.removeprefix(BULLET).strip() for line in block)
    return tuple(dict.fromkeys(fact for fact in facts if not _ANSWER.search(fact)))


def _is_fact(line: str) -> bool:
    return (
        line.startswith(BULLET)
        and len(line) <= MAX_FACT_CHARS
        and stray_character(line) is None
    )
