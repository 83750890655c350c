"""What each attempt wrote, folded until somebody wants to read it."""

from __future__ import annotations

from collections.abc import Sequence

from kace.redact import redact
from kace.solver.attempt import Outcome
from kace.solver.tiers import TierName
from kace.solver.trace import AttemptRecord, SolveRecord
from kace.view.climb import FINISHING_ID, Cards, attempt_id
from kace.view.facts import facts
from kace.view.marks import OUTCOMES, mark_of, marked
from kace.view.prose import prose
from kace.view.run_index import RunIndex
from kace.view.run_table import short_answer
from kace.web.markup import Html, join, tag
from kace.words import counted


def attempt_texts(record: SolveRecord, index: RunIndex, cards: Cards, *, all_open: bool, open_link: str) -> Html:
    """Every attempt of a solve, in order."""
    if not record.made:
        return Html("")
    parts = [
        _attempt(attempt, index, cards, (attempt_id(position), all_open))
        for position, attempt in enumerate(record.attempts)
    ]
    if record.synthesis is not None:
        parts.append(_attempt(record.synthesis, index, cards, (FINISHING_ID, all_open)))
    fold = tag("a", "Fold all" if all_open else "Open all", href=open_link, class_="fold") if open_link else Html("")
    return tag(
        "section",
        tag("h2", "What each attempt wrote ", fold),
        _about_texts(record.made, index),
        *parts,
        id="attempts",
    )


def _about_texts(attempts: Sequence[AttemptRecord], index: RunIndex) -> Html:
    if not index.keeps_texts:
        words = "This run’s folder has no calls in it, so what the attempts wrote is not here; what came of them is."
    elif not index.texts_complete:
        words = "The run’s calls are being read; texts appear as they are found."
    else:
        return Html("")
    return tag("p", words, class_="note")


def _attempt(attempt: AttemptRecord, index: RunIndex, cards: Cards, place: tuple[str, bool]) -> Html:
    name, is_open = place
    tier = "Attempt" if attempt.tier is TierName.FLAT else attempt.tier.value
    heading = "From common facts" if name == FINISHING_ID else f"{tier} {attempt.index + 1}"
    mark = mark_of(attempt.correct, attempt.outcome)
    answered = short_answer(attempt.answer) if attempt.answer is not None else OUTCOMES[attempt.outcome]
    summary = tag(
        "summary",
        tag("b", heading, class_="which"),
        marked(mark),
        tag("span", answered, class_="said"),
        tag("span", f"{attempt.output:,} tokens out, {attempt.seconds:,.1f} s", class_="muted num"),
    )
    body = tag("div", _figures(attempt), _hidden(attempt, cards), _text(attempt, index), id=name, class_="wrote")
    return tag("details", summary, body, class_="attempt", open="" if is_open else None)


def _figures(attempt: AttemptRecord) -> Html:
    cached = f" ({attempt.cached:,} cached)" if attempt.cached else ""
    found = {
        "lens": (attempt.lens or "none, by sampling only").replace("_", " "),
        "outcome": OUTCOMES[attempt.outcome],
        "tokens": f"{attempt.input:,} in{cached}, {attempt.output:,} out",
        "seconds": f"{attempt.seconds:,.2f}" + (", kept from an earlier run" if attempt.from_cache else ""),
        "call": tag("span", attempt.call[:12], class_="id") if attempt.call else "",
        "why": redact(attempt.detail),
    }
    return facts(found)


def _hidden(attempt: AttemptRecord, cards: Cards) -> Html:
    if not attempt.hidden:
        return Html("")
    words = f"{counted(len(attempt.hidden), 'card')} of the block hidden from this attempt, to measure what each does:"
    return join((tag("p", words, class_="note"), cards(attempt.hidden)))


def _text(attempt: AttemptRecord, index: RunIndex) -> Html:
    if text := index.text_of(attempt.call):
        return prose(text)
    if attempt.outcome is Outcome.CANCELLED:
        words = "It was stopped before it had written anything that counts."
    elif not attempt.call:
        words = "No reply came."
    elif not index.keeps_texts:
        words = "Its text is not here."
    elif not index.texts_complete:
        words = "Its text has not been found yet."
    else:
        words = "The run’s calls do not hold its text."
    return tag("p", words, class_="note")
