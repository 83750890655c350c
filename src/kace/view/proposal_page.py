"""Every card that a teacher proposed, with what became of it, who refused it and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kace.view.card_rows import card_name, card_path
from kace.view.learner import learner_at
from kace.view.learner_parts import unread
from kace.view.links import path_of
from kace.view.page import Ask, Crumb, Page
from kace.view.paging import pager, part_of
from kace.view.proposals import Proposal, Verdict
from kace.web.markup import Html, join, tag
from kace.web.parts import badge
from kace.words import counted

PER_PAGE = 40
COLOURS: Mapping[Verdict, str] = {
    Verdict.KEPT: "good",
    Verdict.ADMITTED: "info",
    Verdict.MERGED: "info",
    Verdict.RETIRED: "plain",
    Verdict.REFUSED: "bad",
    Verdict.WAITING: "warn",
}
SAYS: Mapping[Verdict, str] = {
    Verdict.KEPT: "in the tree",
    Verdict.ADMITTED: "admitted",
    Verdict.MERGED: "merged",
    Verdict.RETIRED: "retired",
    Verdict.REFUSED: "refused",
    Verdict.WAITING: "waiting for a ruling",
}
BY: Mapping[str, str] = {"parser": "the reader of replies", "code": "code", "teacher": "the teacher"}


@dataclass(frozen=True, slots=True)
class Choice:
    """Which proposals are shown. An empty value is no condition."""

    epoch: str = ""
    cell: str = ""
    verdict: str = ""
    rule: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Choice:
        """The choice that a query asks for."""
        return cls(*(query.get(name, "")[:80] for name in ("epoch", "cell", "verdict", "rule")))

    def fits(self, proposal: Proposal) -> bool:
        """Whether a proposal is among them."""
        return (
            self.epoch in ("", str(proposal.epoch))
            and self.cell in ("", proposal.place)
            and self.verdict in ("", proposal.verdict.value)
            and self.rule in ("", proposal.rule)
        )

    @property
    def query(self) -> dict[str, str | None]:
        """The choice as a query."""
        given = {"epoch": self.epoch, "cell": self.cell, "verdict": self.verdict, "rule": self.rule}
        return {name: value or None for name, value in given.items()}


def proposal_page(ask: Ask) -> Page:
    """The proposals of a learner, by epoch, cell and verdict."""
    item = ask.shelf.item("learner", ask.parts["learner"])
    found = learner_at(item.path, patience=None if ask.links.static else 0.3)
    crumbs = (Crumb("Home", "/"), Crumb(item.name, path_of("learner", item.name)))
    if found.value is None:
        why = str(found.error) if found.error else ""
        return Page("Proposals", unread(item.name, why, found.words), crumbs, refresh=None if why else 1.0)
    every = found.value.proposals
    choice = Choice() if ask.links.static else Choice.of(ask.query)
    chosen = [proposal for proposal in every if choice.fits(proposal)]
    tree = next((each.name for each in ask.shelf.items("tree") if each.path == item.path), None)
    path = path_of("learner", item.name, "proposals")
    part = part_of(chosen, ask, PER_PAGE)
    body = join(
        (
            _header(every, item.name),
            _refusals(every, choice, ask, path),
            _filters(every, choice, ask, path) if every and not ask.links.static else Html(""),
            tag("p", _count(len(chosen), len(every)), class_="muted") if every else Html(""),
            tag("ol", *(_proposal(each, ask, tree) for each in part.rows), class_="proposals"),
            pager(part, ask, path, **choice.query),
        )
    )
    return Page("Proposals", body, crumbs, refresh=None if found.value.report.finished else 10.0)


def _header(every: Sequence[Proposal], learner: str) -> Html:
    counts = Counter(proposal.verdict for proposal in every)
    said = ", ".join(f"{counts[verdict]:,} {SAYS[verdict]}" for verdict in Verdict if counts[verdict])
    lead = f"The teacher proposed {counted(len(every), 'card')}: {said}." if every else "No card has been proposed yet."
    return tag(
        "header",
        tag("p", learner, class_="eyebrow"),
        tag("h1", "Proposals"),
        tag("p", lead, class_="lead"),
        class_="lede",
    )


def _refusals(every: Iterable[Proposal], choice: Choice, ask: Ask, path: str) -> Html:
    """How often each rule refused a card, each leading to the cases."""
    rules = Counter((each.rule, each.by) for each in every if each.verdict is Verdict.REFUSED)
    if not rules:
        return Html("")
    chips = [
        tag(
            "li",
            _chip(
                f"{rule} ", tag("b", f"{n:,}"), tag("span", f" by {BY.get(by, by)}", class_="muted"), to=address, on=on
            ),
        )
        for (rule, by), n in rules.most_common()
        for on in (choice.rule == rule,)
        for address in (None if ask.links.static else ask.links.to(path, rule=None if on else rule),)
    ]
    return tag("div", tag("h3", "Refused, by rule"), tag("ul", *chips, class_="chips"))


def _chip(*parts: str, to: str | None, on: bool) -> Html:
    if to is None:
        return tag("span", *parts, class_="chip")
    return tag("a", *parts, href=to, class_="chip", aria_current="true" if on else None)


def _filters(every: Sequence[Proposal], choice: Choice, ask: Ask, path: str) -> Html:
    epochs = sorted({proposal.epoch for proposal in every})
    cells = sorted({proposal.place for proposal in every})
    verdicts = [verdict for verdict in Verdict if any(each.verdict is verdict for each in every)]
    fields = (
        _select("Epoch", "epoch", choice.epoch, ((str(epoch), str(epoch)) for epoch in epochs)),
        _select("Place", "cell", choice.cell, ((cell, cell) for cell in cells)),
        _select("Verdict", "verdict", choice.verdict, ((verdict.value, SAYS[verdict]) for verdict in verdicts)),
    )
    rule = tag("input", type="hidden", name="rule", value=choice.rule) if choice.rule else Html("")
    reset = tag("a", "Show all", href=ask.links.to(path), class_="button quiet") if choice != Choice() else Html("")
    go = tag("button", "Show", type="submit")
    return tag(
        "form", *fields, rule, go, reset, method="get", action=ask.links.to(path), class_="filters", role="search"
    )


def _select(title: str, name: str, chosen: str, options: Iterable[tuple[str, str]]) -> Html:
    every = [("", "all"), *options]
    if chosen and chosen not in dict(every):
        every.append((chosen, chosen))
    made = [tag("option", words, value=value, selected="" if value == chosen else None) for value, words in every]
    return tag("label", title, tag("select", *made, name=name))


def _count(shown: int, total: int) -> str:
    return f"{shown:,} of {counted(total, 'proposal')}" if shown < total else counted(total, "proposal")


def _proposal(proposal: Proposal, ask: Ask, tree: str | None) -> Html:
    title = card_name(proposal.card_id) if proposal.card_id else join(("unnamed",))
    lives = proposal.verdict in (Verdict.KEPT, Verdict.RETIRED) and tree is not None
    name = (
        tag("a", title, href=ask.links.to(card_path(tree, proposal.card_id)), class_="id")
        if lives and tree
        else tag("span", title, class_="id")
    )
    said = badge(SAYS[proposal.verdict], COLOURS[proposal.verdict])
    return tag(
        "li",
        tag("div", tag("h3", name), tag("p", said, f" Epoch {proposal.epoch}, {proposal.place}", class_="muted")),
        tag("div", *_why(proposal, ask, tree), *_text(proposal)),
        data_row="",
    )


def _why(proposal: Proposal, ask: Ask, tree: str | None) -> Iterator[Html]:
    if proposal.verdict is Verdict.REFUSED:
        by = BY.get(proposal.by, proposal.by)
        yield tag("p", "Refused by ", tag("b", by), " for ", tag("code", proposal.rule), f": {proposal.reason}")
    elif proposal.verdict is Verdict.MERGED:
        into = tag("span", card_name(proposal.into), class_="id")
        if tree:
            into = tag("a", into, href=ask.links.to(card_path(tree, proposal.into)))
        yield tag("p", "Merged into ", into, f": {proposal.reason}.")


def _text(proposal: Proposal) -> Iterator[Html]:
    """When the card applies, and folded away all that it says."""
    card = proposal.card
    if card is None:
        return
    known = ", ".join(card.provenance.supporting_problems)
    about = [tag("p", f"Written for {known}", class_="muted")] if known else []
    when = "; ".join(card.triggers)
    yield tag(
        "details", tag("summary", when or "What it says"), tag("pre", card.payload.strip(), class_="code"), *about
    )
