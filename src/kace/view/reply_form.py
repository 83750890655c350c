"""The form that a reply must have, by the kind of request: a skeleton to fill in, and what a reader makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kace.learner.admit import RULING, read_rulings
from kace.learner.blocks import BadBlock, Grammar, read_blocks
from kace.learner.illustrate import EXAMPLES
from kace.learner.partition import DOMAIN, read_partition
from kace.learner.propose import CARD
from kace.learner.revise import GAP, REVISION
from kace.systems.ace.curate import REVISION as PLAYBOOK
from kace.systems.ace.reflect import NOTES
from kace.view.request_text import RequestText


@dataclass(frozen=True, slots=True)
class Form:
    """The form of one kind of reply."""

    title: str
    """What is asked for, in a few words."""
    blocks: tuple[Grammar, ...]
    skeleton: str
    """A block of it with the values left out."""


FORMS: Mapping[str, Form] = MappingProxyType(
    {
        "knowledge that was missing": Form(
            "New cards",
            (CARD,),
            "<card>\nid: \ndifficulty: \nproblems: \npayload:\nUseful when:\n- \n\n\n</card>",
        ),
        "what stands beside knowledge": Form(
            "Further cards", (CARD,), "<card>\nid: \ndifficulty: \npayload:\nUseful when:\n- \n\n\n</card>"
        ),
        "worked examples": Form("Worked examples", (EXAMPLES,), "<example>\nid: {}\ntext:\n\nWorked:\n\n</example>"),
        "rulings": Form("Rulings on cards", (RULING,), "<ruling>\nid: {}\nverdict: \nrule: \nreason: \n</ruling>"),
        "the cards of one domain, revised": Form(
            "Revisions of cards", (REVISION, GAP), "<revision>\nid: {}\naction: \nreason: \n</revision>"
        ),
        "domains": Form("Domains", (DOMAIN,), "<domain>\nname: \ndescription: \nproblems: \nsignals:\n\n</domain>"),
        "reflect on one attempt": Form(
            "Notes on an attempt", (NOTES,), "<notes>\nmistake: \nhelpful: \nlesson:\n\n</notes>"
        ),
        "revise the playbook": Form(
            "Changes to the playbook", (PLAYBOOK,), "<revision>\naction: \nsection: \nreason: \ntext: \n</revision>"
        ),
    }
)
"""By the heading that a request's rules have."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What a reader finds in a reply."""

    found: tuple[str, ...]
    """The blocks that have the form, each by its name or its number."""
    faults: tuple[BadBlock, ...]

    @property
    def usable(self) -> bool:
        """Whether nothing in it is wanting."""
        return bool(self.found) and not self.faults


def form_of(request: RequestText) -> Form | None:
    """The form a request asks for; `None` where it is not one of ours."""
    return FORMS.get(request.asks)


def draft(request: RequestText) -> str:
    """What a reply begins as: a block to fill in for every card that is shown, or nothing."""
    form = form_of(request)
    if form is None or "{}" not in form.skeleton or request.again:
        return ""
    return "\n\n".join(form.skeleton.replace("{}", card) for card in request.cards)


def skeleton(form: Form) -> str:
    """An empty block of the form, to copy."""
    return form.skeleton.replace("{}", "")


def check(reply: str, request: RequestText) -> Checked | None:
    """What the learner would find in a reply, as far as its form goes; `None` where the form is not known.

    Whether a card is true, fits its place and gives nothing away is for the learner to say.
    """
    form = form_of(request)
    if form is None:
        return None
    found: list[str] = []
    faults: list[BadBlock] = []
    for grammar in form.blocks:
        blocks, bad = read_blocks(reply, grammar)
        found += [_called(grammar, block.fields, number) for number, block in enumerate(blocks, 1)]
        faults += bad
    faults += _missing(reply, request, form) if not faults else []
    return Checked(tuple(found), tuple(sorted(faults, key=lambda bad: bad.line)))


def _missing(reply: str, request: RequestText, form: Form) -> list[BadBlock]:
    """What well-formed blocks leave out, where the learner's own reader needs nothing but the reply to tell."""
    if request.again:
        return []
    if RULING in form.blocks and request.cards:
        return list(read_rulings(reply, request.cards).bad)
    if DOMAIN in form.blocks:
        shown = sum(quote.tag == "problem" for turn in request.turns for quote in turn.quotes)
        return list(read_partition(reply, shown).bad) if shown else []
    return []


def _called(grammar: Grammar, fields: Mapping[str, str], number: int) -> str:
    return fields.get(grammar.name) or f"{grammar.tag} {number}"
