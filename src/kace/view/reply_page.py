"""The parts of a request's page: what is asked, the reply that is there, and the form to write one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kace.learner.blocks import BadBlock
from kace.view.form_token import token_field
from kace.view.inbox import MAX_REPLY, Reply
from kace.view.prose import prose
from kace.view.reply_form import Checked, check, draft, form_of, skeleton
from kace.view.request_text import Message, Quote, RequestText
from kace.web.markup import Html, join, tag
from kace.words import counted

SHOWN_FAULTS = 40


@dataclass(frozen=True, slots=True)
class Desk:
    """What somebody has written so far, and what came of sending it."""

    text: str | None = None
    """`None` before anything was sent."""
    checked: Checked | None = None
    refusal: str = ""
    status: int = 200
    anyway: bool = False
    """Whether it may be written as it is, though not all of it can be used."""

    def refusing(self, status: int, reason: str, *, anyway: bool = False) -> Desk:
        """The same with the reason why nothing was written."""
        return replace(self, status=status, refusal=reason, anyway=anyway)


def material(request: RequestText) -> Html:
    """What is asked. In a second round, what was wrong comes first and the rest is folded away."""
    if not request.messages:
        return tag("section", tag("h2", "The request"), tag("pre", request.opening, class_="code"))
    if not request.again:
        return join(tag("section", tag("h2", "What is asked"), _turn(turn)) for turn in request.turns)
    *before, last = request.turns
    names = {"user": "The request of the first round", "assistant": "The reply of the first round"}
    return join(
        (
            tag("section", tag("h2", "What could not be used"), _turn(last)),
            *(tag("details", tag("summary", names[turn.role]), _turn(turn)) for turn in before),
        )
    )


def answer(there: Reply, request: RequestText) -> Html:
    """The reply that is there, and what a reader finds in it."""
    checked = check(there.text, request)
    return tag(
        "section",
        tag("h2", "The reply"),
        _findings(checked) if checked else Html(""),
        tag("pre", there.text.strip("\n"), class_="code"),
    )


def reply_form(desk: Desk, there: Reply | None, request: RequestText, action: str) -> Html:
    """The form, with the rules of a reply beside it."""
    answered = there is not None and not there.blank
    text = desk.text if desk.text is not None else there.text if there and answered else draft(request)
    form = tag(
        "form",
        token_field(),
        tag("input", type="hidden", name="seen", value=there.mark if there else ""),
        *_outcome(desk),
        tag("label", "Your reply, and nothing else", for_="text", class_="hide"),
        # A browser drops the first line break of a text area, so there is one for it to drop.
        tag("textarea", f"\n{text}", id="text", name="text", rows=18, spellcheck="false", autocomplete="off"),
        *_ticks(desk, answered),
        tag(
            "p",
            tag("button", "Write the reply", type="submit", name="do", value="write"),
            tag("button", "Check its form", type="submit", name="do", value="check", class_="quiet"),
            class_="buttons",
        ),
        tag("p", _limits(request), class_="note"),
        method="post",
        action=action,
        accept_charset="utf-8",
    )
    folded = answered and desk.text is None
    title = "Write another reply" if answered else "Write the reply"
    shown = tag("details", tag("summary", title), form) if folded else tag("section", tag("h2", title), form)
    return join((shown, rules(request)))


def rules(request: RequestText) -> Html:
    """How a reply must look: an empty block to copy, then the rules in the words of the request."""
    form = form_of(request)
    if not request.rules:
        return Html("")
    empty = tag("pre", skeleton(form), class_="code") if form else Html("")
    return tag(
        "section",
        tag("h2", "The rules of the form"),
        empty,
        tag("div", prose(request.rules), class_="rules-text"),
    )


def _turn(turn: Message) -> Html:
    return join(_quote(part) if isinstance(part, Quote) else prose(part) for part in turn.parts)


def _quote(quote: Quote) -> Html:
    match quote.tag:
        case "attempt":
            said = f"Its text, {counted(len(quote.text), 'character')}"
            return tag("details", tag("summary", said), prose(quote.text), class_="quote attempt")
        case "card" | "revision" | "ruling" | "example":
            return tag("pre", quote.text, class_="code quote")
    return tag("blockquote", prose(quote.text), class_=f"quote {quote.tag}")


def _outcome(desk: Desk) -> Iterator[Html]:
    """What came of sending the form."""
    if desk.refusal:
        yield tag("p", tag("b", "Nothing was written. "), desk.refusal, class_="banner", role="alert")
    if desk.checked:
        yield _findings(desk.checked)
    elif desk.text is not None and not desk.refusal:
        yield tag("p", "The form of this reply is not known here, so it was not checked.", class_="banner info")


def _findings(checked: Checked) -> Html:
    """The blocks that were found, and what is wanting."""
    found = f"{counted(len(checked.found), 'block')} in order" if checked.found else "No block of the form asked for"
    names = f": {', '.join(checked.found)}" if checked.found else ""
    faults = [tag("li", _fault(bad)) for bad in checked.faults[:SHOWN_FAULTS]]
    if len(checked.faults) > SHOWN_FAULTS:
        faults.append(tag("li", f"and {len(checked.faults) - SHOWN_FAULTS:,} more"))
    listed = tag("ul", *faults, class_="plain") if faults else Html("")
    colour = "good" if checked.usable else "warn"
    return tag("div", tag("p", tag("b", found), names, "."), listed, class_=f"banner {colour} findings", role="status")


def _fault(bad: BadBlock) -> str:
    where = ", ".join(part for part in (f"line {bad.line}" if bad.line else "", bad.name) if part)
    return f"{where}: {bad.reason}" if where else bad.reason


def _ticks(desk: Desk, answered: bool) -> Iterator[Html]:
    if answered:
        yield _tick("replace", "Replace the reply that is there. A learner that has read it keeps to it.")
    if desk.anyway:
        yield _tick("anyway", "Write it as it is. The learner asks once more about what it cannot use.")


def _tick(name: str, words: str) -> Html:
    return tag("label", tag("input", type="checkbox", name=name, value="yes"), " ", words, class_="tick")


def _limits(request: RequestText) -> str:
    limit = request.limit or f"{MAX_REPLY:,} bytes at most"
    return f"{limit[:1].upper()}{limit[1:]}. It is written to {request.name}.reply.md as soon as you send it."
