"""What may differ from the paper's ladder: skipping ES, hiding cards, confident votes, and synthesis.

All are off by default.
"""

from __future__ import annotations

import hashlib
import logging
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import fsum
from statistics import fmean, pstdev
from typing import TYPE_CHECKING

from kace.answers.kinds import MATHEMATICS, Subject
from kace.cards.card import BULLET, stray_character
from kace.errors import UsageError
from kace.ladder.ladder import (
    Climb,
    Kit,
    Tiers,
    locked,
    sample_once,
)
from kace.ladder.prompt import (
    Context,
    Prompt,
    fenced,
    neutral,
    solver_prompt,
    template,
    templates_hash,
)
from kace.ladder.record import Attempt
from kace.ladder.tiers import (
    LADDERS,
    LOCKED,
    ExitPath,
    Tier,
    TierName,
)
from kace.models.base import (
    AttemptKey,
    ChatModel,
    Message,
    ModelError,
    Reply,
    Request,
    Role,
    Sampling,
    Wrapper,
    after_thinking,
    chat,
)
from kace.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kace.cards.card import Card
    from kace.ladder.retrieve import Retriever

log = logging.getLogger(__name__)

FALLBACKS = (ExitPath.FALLBACK_PLURALITY, ExitPath.FALLBACK_LAST_HS)


# Where to begin


def begin_with_cards(
    retriever: Retriever,
    covers: Callable[[Problem], Awaitable[bool]] | None = None,
) -> Tiers:
    """Return the rule that begins at MS if a card covers the problem, where `es_policy` is `skip` or `try`.

    A wrong answer that both ES attempts agree on never reads a card. A card that is relevant to the problem can repair
    it.
    """
    policy = retriever.config.es_policy
    if policy == "locked":
        return locked
    if not covers and not retriever.relevance.threshold:
        name = "try" if policy == "try" else "relevance"
        raise UsageError(
            f"es_policy '{policy}' needs a {name} threshold, and it is 0",
            fix=f"set {name}_threshold above 0",
        )
    covered = covers or retriever.covers

    async def tiers_of(problem: Problem) -> Sequence[Tier]:
        return LADDERS[policy] if await covered(problem) else LOCKED

    return tiers_of


# Hiding cards


@dataclass(frozen=True, slots=True)
class Dropout:
    """Hides each card from each attempt at random: a pure function of the two, so a rerun hides the same.

    Draws are independent, so the success of attempts with a card minus that of attempts without it is an unbiased
    estimate of its worth.
    """

    rate: float = 0.5
    seed: int = 0

    def hidden(
        self,
        key: AttemptKey,
        card_ids: Sequence[str],
    ) -> tuple[str, ...]:
        """Return the cards hidden from an attempt, in the order given."""
        attempt = (self.seed, key.problem, key.seed, key.tier, key.index)
        hidden = []
        for card_id in card_ids:
            text = "\x1f".join(map(str, (*attempt, card_id)))
            digest = hashlib.sha256(text.encode()).digest()
            if int.from_bytes(digest[:7], "big") < self.rate * (1 << 56):
                hidden.append(card_id)
        return tuple(hidden)


# Confidence: votes weighted by how sure attempts were


class WithLogprobs(Wrapper):
    """Requests log-probabilities with every call."""

    async def complete(self, request: Request) -> Reply:
        """Return the reply, with its confidence if the model gives one."""
        reply = await self.model.complete(replace(request, logprobs=True))
        if reply.text and reply.confidence is None:
            _warn_unsure(self.name)
        return reply


@cache
def _warn_unsure(model: str) -> None:
    """Warn once per model that it gives no confidence."""
    log.warning(
        "%s gives no usable log-probabilities: its attempts have no confidence, and count as average",
        model,
    )


async def vote_by_confidence(climbed: Climb, kit: Kit) -> Climb:
    """Return the climb with the class of the greatest weight over all attempts; exit gates still count votes.

    Ties are broken as in the vote.
    """
    weights = confidence_weights(climbed.attempts)
    sums = {}
    for each in climbed.classes:
        # fsum, so that the order of the positions does not matter
        sums[each.positions[0]] = fsum(weights[at] for at in each.positions)
    standings = climbed.vote.standings
    winner = max(standings, key=lambda each: sums[each.first], default=None)
    return replace(climbed, winner=winner, policies=("vote=confidence",))


def confidence_weights(attempts: Sequence[Attempt]) -> list[float]:
    """Return exp(z) per attempt, or 1 without confidence.

    z is its mean log-probability, standardised over the attempts of the solve that answered.
    """
    known = []
    for attempt in attempts:
        if attempt.confidence and attempt.answer is not None:
            known.append(attempt.confidence.logprob)
    spread = pstdev(known) if known else 0.0
    weights = []
    for attempt in attempts:
        z = 0.0
        if attempt.confidence and spread:
            z = (attempt.confidence.logprob - fmean(known)) / spread
        weights.append(math.exp(z))
    return weights


# Synthesis: if HS fails its gate, a teacher gathers what its attempts agree on, and the solver finishes from it.
# It did not help where it was published, and is here so that this can be checked.

TEACHER_TIER = "SYNTHESIS"  # under which the teacher's call is kept
HARD = LOCKED[-1]
LEAST_ATTEMPTS = 2  # one alone has nothing to agree with
MAX_ATTEMPT_CHARS = (
    6_000  # shown of an attempt: what attempts share is at their beginning
)
MAX_FACTS = 12
MAX_FACT_CHARS = 500
_BLOCK = re.compile(r"^<facts>\n(.*?)\n</facts>$", re.DOTALL | re.MULTILINE)
_ANSWER = re.compile(
    r"\\f?boxed|\bfinal answer\b|\banswer\b[^.;]{0,40}?(?:\bis\b|[:=])",
    re.IGNORECASE,
)


async def synthesize(
    teacher: ChatModel, max_tokens: int, climbed: Climb, kit: Kit
) -> Climb:
    """Return the climb with the solver's attempt from the common facts of the last tier, if no gate opened.

    The teacher gathers them from the problem and the attempts, and never reads the expected answer. If it fails, a
    failed attempt is left, so that another run tries again. Dropout hides no card from the solver.
    """
    attempts = climbed.attempts[climbed.last_tier :]
    texts = [attempt.text for attempt in attempts if attempt.text.strip()]
    if climbed.path not in FALLBACKS or len(texts) < LEAST_ATTEMPTS:
        return climbed
    problem = climbed.problem
    cards = climbed.context.cards
    key = AttemptKey(problem.id, kit.seed, TEACHER_TIER, 0)
    sampling = Sampling(0.0, max_tokens, key.sampling_seed())
    messages = gathering_prompt(problem.text, texts, kit.subject)
    request = Request(messages, sampling, key)
    last = AttemptKey(problem.id, kit.seed, HARD.name.value, HARD.attempts)
    try:
        reply = await teacher.complete(request)
    except ModelError as error:
        failure = ModelError(error.failure, f"teacher: {error.message}")
        failed = Attempt.failed(last, failure, None)
        return replace(climbed, finishing=failed)
    facts = read_facts(reply.text)
    if not facts:
        return climbed
    role = HARD.name if kit.prompts == "paper" else None
    prompt = finishing_prompt(problem.text, facts, cards, kit.subject, role)
    attempt = await sample_once(last, prompt, kit)
    kit.observer.attempted(problem, attempt)
    return replace(climbed, finishing=attempt)


def gathering_prompt(
    problem: str,
    attempts: Sequence[str],
    subject: Subject = MATHEMATICS,
) -> tuple[Message, ...]:
    """Return the teacher's prompt: the problem and the beginning of each attempt, quoted."""
    quoted = [fenced("problem", problem)]
    for text in attempts:
        text = text.strip()
        if len(text) > MAX_ATTEMPT_CHARS:
            text = f"{text[:MAX_ATTEMPT_CHARS].rstrip()} …"
        quoted.append(fenced("attempt", text))
    return chat(template("synthesis", subject), "\n\n".join(quoted))


def finishing_prompt(
    problem: str,
    facts: Sequence[str],
    cards: tuple[Card, ...],
    subject: Subject = MATHEMATICS,
    role: TierName | None = None,
) -> Prompt:
    """Return the solver's prompt: that of an attempt without a lens, with the facts before the finish line."""
    plain = solver_prompt(problem, None, Context(cards), role, subject)
    steer = template("from_facts", subject)
    quoted = fenced("facts", "\n".join(BULLET + fact for fact in facts))
    finish = template("finish", subject)
    parts = (neutral(problem.strip()), steer, quoted, finish)
    user = Message(Role.USER, "\n\n".join(parts))
    return Prompt((plain.messages[0], user), templates_hash(plain.hash, steer))


def read_facts(reply: str) -> tuple[str, ...]:
    """Return the facts of a reply, in order; none unless it has exactly one whole block of `- fact` lines.

    A line that gives a final answer is left out: the solver finishes by itself.
    """
    lines = [line.strip() for line in after_thinking(reply).split("\n")]
    blocks = _BLOCK.findall("\n".join(filter(None, lines)))
    if len(blocks) != 1:
        return ()
    facts = []
    for line in blocks[0].split("\n"):
        short = len(line) <= MAX_FACT_CHARS
        if not short or not line.startswith(BULLET) or stray_character(line):
            return ()
        if not _ANSWER.search(line):
            facts.append(line.removeprefix(BULLET).strip())
    if len(facts) > MAX_FACTS:
        return ()
    return tuple(dict.fromkeys(facts))
