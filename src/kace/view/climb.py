"""A climb as it is drawn: a rung a tier, attempts in groups that agree, and the gate beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kace.solver.tiers import LOCKED, ExitPath, TierName
from kace.solver.trace import AttemptRecord, RecallRecord, SolveRecord
from kace.view.marks import OUTCOMES, Mark, key_of, mark_class, mark_of, shape
from kace.view.run_table import short_answer
from kace.view.rungs import Climb, Group, Rung, Tried, climb_of, failures
from kace.web.markup import Html, tag
from kace.words import counted

Cards = Callable[[Sequence[str]], Html]
"""Draws cards by their ids, each leading to its page where that is open."""

WHOLE = 1_000
"""Characters of the answer itself, which is seldom cut."""
FINISHING_ID = "attempt-from-facts"
"""Where the text of the attempt from common facts stands on the page."""
TIERS = {
    TierName.ES.value: "each with another lens",
    TierName.MS.value: "with the cards of its domain",
    TierName.HS.value: "with the cards for hard problems",
}


def climb_section(record: SolveRecord, cards: Cards) -> Html:
    """The whole climb, and what its shapes mean."""
    climb = climb_of(record)
    steps = [_aside(climb.below, "passed over")] if climb.below else []
    steps += [_rung(rung, cards) for rung in climb.rungs]
    if climb.fallback:
        steps.append(_fallback(record, climb))
    if record.synthesis is not None:
        steps.append(_finishing(record.synthesis))
    if climb.above:
        steps.append(_aside(climb.above, "not needed"))
    marks = {mark_of(attempt.correct, attempt.outcome) for attempt in record.made}
    return tag(
        "section",
        tag("h2", "The climb"),
        tag("p", _told(record, climb), class_="note"),
        tag("ol", *steps, class_="climb"),
        key_of(*(mark for mark in Mark if mark in marks)),
        id="climb",
    )


def attempt_id(position: int) -> str:
    """Where the text of an attempt stands on the page."""
    return f"attempt-{position + 1}"


def _told(record: SolveRecord, climb: Climb) -> str:
    made = counted(len(record.attempts), "attempt")
    if record.exit is None:
        return f"{made} without a ladder; the answer given most often is taken." if len(record.attempts) > 1 else made
    names = {tier.exit: tier.name.value for tier in LOCKED}
    if record.exit in names:
        return f"{made}; the gate of {names[record.exit]} let it out."
    how = "the answer given most often is taken" if climb.agreed else "no two agree, so the last HS answer is taken"
    return f"{made}, and no gate opened: {how}."


def _rung(rung: Rung, cards: Cards) -> Html:
    attempts = counted(len(rung.tried), "attempt")
    name, about = rung.name, TIERS.get(rung.name, "")
    if not rung.needed:
        name = "Vote" if len(rung.tried) > 1 else "Attempt"
    elif rung.name != TierName.ES and not (rung.recall and (rung.recall.cards or rung.recall.notes)):
        about = "without cards"
    return tag(
        "li",
        tag("div", tag("h3", name), tag("p", f"{attempts}, {about}" if about else attempts), class_="rung-name"),
        tag("div", *(_group(group) for group in rung.groups), class_="rung-votes"),
        _gate(rung),
        _recall(rung.recall, cards) if rung.recall else Html(""),
        class_="rung left" if rung.left or not rung.needed else "rung",
    )


def _group(group: Group, *, over_all: bool = False) -> Html:
    """Attempts that agree: their answer, a cell each, and the count. Over all tiers, a cell says which it is of."""
    if group.answer is None:
        ends = ", ".join(
            f"{count} {OUTCOMES[outcome]}" if count > 1 else OUTCOMES[outcome]
            for outcome, count in failures(group.tried).items()
        )
        return tag("div", _cells(group.tried, over_all), tag("div", ends, class_="muted"), class_="votes is-nothing")
    count = counted(group.votes, "vote") + (f", {group.support} in all so far" if group.support > group.votes else "")
    word = "" if group.mark is Mark.ANSWERED else f" {group.mark.value}"
    return tag(
        "div",
        _cells(group.tried, over_all),
        tag("div", tag("b", short_answer(group.answer)), word, class_="answer"),
        tag("div", count, class_="muted num"),
        class_=f"votes is-{group.mark.value}{' leads' if group.leads else ''}",
    )


def _cells(tried: Sequence[Tried], over_all: bool) -> Html:
    return tag("ul", *(tag("li", _cell(each, over_all)) for each in tried), class_="cells")


def _cell(tried: Tried, over_all: bool) -> Html:
    attempt = tried.attempt
    name = f"{attempt.tier.value} {attempt.index + 1}" if over_all else f"{attempt.index + 1}"
    told = f"{attempt.tier.value} attempt {attempt.index + 1}: {OUTCOMES[attempt.outcome]}"
    if attempt.answer is not None:
        told += f", {attempt.answer[:60]}, {mark_of(attempt.correct).value}"
    return tag(
        "a",
        shape(tried.mark),
        tag("span", name, class_="num"),
        href=f"#{attempt_id(tried.position)}",
        title=told,
        aria_label=told,
        class_=f"cell {mark_class(tried.mark)}",
    )


def _gate(rung: Rung) -> Html:
    if rung.needed is None:
        return tag("div", class_="gate")
    of = len(rung.tried)
    ask = "both must agree" if rung.needed == of == 2 else f"{rung.needed} of {of} must agree"
    if rung.left:
        said, word = tag("b", "Gate opens"), "it leaves here"
    elif rung.met:
        said, word = tag("b", "Gate met"), "but this system does not stop here"
    else:
        said, word = tag("b", "Gate stays shut"), _most(rung.votes)
    state = "open" if rung.left else "met" if rung.met else "shut"
    return tag("div", said, tag("span", ask), tag("span", word), class_=f"gate {state}")


def _most(votes: int) -> str:
    return f"at most {votes} agree" if votes > 1 else "no two agree" if votes else "no answer to agree on"


def _recall(recall: RecallRecord, cards: Cards) -> Html:
    """What the tier read."""
    where = ", ".join(recall.domains) or "no domain"
    parts: list[Html | str] = [tag("span", "Placed in "), tag("b", where)]
    if recall.cards:
        of = f" of {recall.eligible:,} that fit" if recall.eligible > len(recall.cards) else ""
        about = "about " if recall.estimated else ""
        parts.append(f"; read {counted(len(recall.cards), 'card')}{of}, {about}{recall.tokens:,} tokens")
    elif recall.notes:
        parts.append(f"; read learned text beside cards, {recall.tokens:,} tokens")
    else:
        parts.append("; no card to read")
    if recall.classifier_calls:
        parts.append(f"; {counted(recall.classifier_calls, 'call')} to choose")
    chips = cards(recall.cards) if recall.cards else Html("")
    return tag("div", tag("p", *parts, "."), chips, class_="rung-read")


def _fallback(record: SolveRecord, climb: Climb) -> Html:
    taken = record.exit is ExitPath.FALLBACK_PLURALITY
    word = f"{climb.fallback[0].votes} of {len(record.attempts)} agree" if taken else "the last HS answer is taken"
    return tag(
        "li",
        tag("div", tag("h3", "Fallback"), tag("p", "the vote over all attempts"), class_="rung-name"),
        tag(
            "div",
            *(_group(group, over_all=True) for group in climb.fallback if group.answer is not None),
            class_="rung-votes",
        ),
        tag("div", tag("b", "Plurality" if taken else "No plurality"), tag("span", word), class_="gate open"),
        class_="rung left",
    )


def _finishing(attempt: AttemptRecord) -> Html:
    mark = mark_of(attempt.correct, attempt.outcome)
    answer = short_answer(attempt.answer) if attempt.answer is not None else OUTCOMES[attempt.outcome]
    cell = tag("a", shape(mark), tag("span", "1"), href=f"#{FINISHING_ID}", class_=f"cell {mark_class(mark)}")
    votes = tag("div", tag("ul", tag("li", cell), class_="cells"), tag("div", tag("b", answer), class_="answer"))
    word = "its answer is taken" if attempt.answer is not None else "no answer, so the fallback’s stands"
    return tag(
        "li",
        tag("div", tag("h3", "Common facts"), tag("p", "one attempt from what HS agrees on"), class_="rung-name"),
        tag("div", tag("div", votes, class_=f"votes is-{mark.value}"), class_="rung-votes"),
        tag("div", tag("b", "Synthesis"), tag("span", word), class_="gate open"),
        class_="rung left",
    )


def _aside(names: Sequence[TierName], why: str) -> Html:
    return tag("li", tag("p", f"{' and '.join(names)} {why}"), class_="rung aside")


def outcome(record: SolveRecord) -> Html:
    """The answer, what was expected, and whether that is the same."""
    mark = Mark.NOTHING if record.answer is None and record.correct is None else mark_of(record.correct)
    words = {Mark.RIGHT: "Right", Mark.WRONG: "Wrong", Mark.ANSWERED: "Not checked", Mark.NOTHING: "No answer"}[mark]
    return tag(
        "div",
        tag("p", shape(mark), " ", words, class_="word"),
        tag("dl", *_pairs(record)),
        class_=f"outcome {mark_class(mark)}",
    )


def _pairs(record: SolveRecord) -> Iterator[Html]:
    yield tag("dt", "Answer")
    yield tag("dd", short_answer(record.answer, WHOLE))
    if record.expected is not None:
        yield tag("dt", "Expected")
        yield tag("dd", short_answer(record.expected, WHOLE))
    if record.verdict is not None and record.verdict.value in {"timeout", "refused"}:
        yield tag("dt", "Compared")
        yield tag("dd", f"without a verdict ({record.verdict.value}), which counts as wrong")


def said_nothing() -> Html:
    """What stands where no attempt is recorded."""
    return tag("p", "The trace holds no attempt of this solve.", class_="note")
