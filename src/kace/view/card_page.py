"""A card's page: what it says, what it is worth, where it came from, where it was read, and what it went through."""

from __future__ import annotations

from collections.abc import Iterable

from kace.evaluation.card_lifts import CardLift, card_lifts
from kace.evaluation.stats import wilson
from kace.retrieval.prompt import card_text
from kace.retrieval.retriever import estimate
from kace.tree.card import Card, Status
from kace.tree.card_text import Example, TextError, read_payload
from kace.view.atlas import Figures
from kace.view.card_rows import card_name, status_badge
from kace.view.change_list import card_history
from kace.view.lift_mark import lift_axis, lift_mark, lift_scale, tone
from kace.view.links import Links, path_of
from kace.view.page import Ask, Crumb, NotHere, Page, Route
from kace.view.patience import patient
from kace.view.prose import inline, prose
from kace.view.shown import shown_section
from kace.view.tree_map import place_name
from kace.web.markup import Html, join, tag
from kace.words import counted, points

VERDICTS = {
    "good": "It helps: the interval lies above zero.",
    "bad": "It harms: the interval lies below zero.",
    "open": "The interval holds zero: it may help, harm, or do nothing.",
}
STATUS_WORDS = {
    Status.EXPERIMENTAL: "Shown in solves; not yet known to help or to harm.",
    Status.VALIDATED: "Shown in solves; measured to help, after correction for the number of cards tried.",
    Status.DEPRECATED: "Kept in the tree and never shown in a solve.",
}
MAX_PROBLEMS = 40
"""Supporting problems that are named."""


@patient
def card_view(ask: Ask) -> Page:
    """Everything there is to know about a card."""
    name, card_id = ask.parts["tree"], ask.parts["card"]
    tree = ask.shelf.tree(name)
    if card_id not in tree:
        raise NotHere(f"the tree {name} has no card '{card_id[:64]}'", fix="search the tree for what it says")
    card = tree.card(card_id)
    body = [
        _head(card, name, ask.links),
        tag(
            "div",
            tag("div", _payload(card), _routing(card), _raw(card)),
            tag("aside", _lift(card), _record(card), _provenance(card)),
            class_="split wide-left card-split",
        ),
        shown_section(ask, name, tree, card_id),
        card_history(ask, card, ask.shelf.store(name)),
    ]
    first = card.domain_tags[0]
    place = path_of("tree", name, "cell", first, card.difficulty_tag.value)
    crumbs = (
        Crumb("Home", "/"),
        Crumb(name, path_of("tree", name)),
        Crumb(place_name(first, card.difficulty_tag), place),
    )
    return Page(card_id, join(body), crumbs)


ROUTES = (Route("/tree/{tree}/card/{card}", card_view),)


def _head(card: Card, tree: str, links: Links) -> Html:
    kind = card.difficulty_tag.value
    places = [
        tag(
            "a",
            place_name(domain, card.difficulty_tag),
            href=links.to(path_of("tree", tree, "cell", domain, kind)),
            class_="chip",
        )
        for domain in card.domain_tags
    ]
    return tag(
        "header",
        tag("p", "Card", class_="eyebrow"),
        tag("h1", card_name(card.card_id), class_="card-title"),
        tag(
            "p",
            status_badge(card.status),
            *(join([" ", place]) for place in places),
            tag("span", f"~{estimate(card):,} tokens", class_="muted num"),
            class_="card-place",
        ),
        tag("p", STATUS_WORDS[card.status], class_="note"),
        class_="lede",
    )


def _payload(card: Card) -> Html:
    try:
        parts = read_payload(card.payload)
    except TextError:  # a card that an older version wrote: shown as it is
        return tag("div", prose(card.payload), class_="payload card")
    avoid = _bullets("Do not apply if", parts.avoid, "avoid") if parts.avoid else Html("")
    header = tag("div", _bullets("Useful when", parts.useful, "useful"), avoid, class_="triggers")
    body = tag("div", prose(parts.body), class_="payload-body")
    return join([tag("div", header, body, class_="payload card"), *map(_example, parts.examples)])


def _example(example: Example) -> Html:
    problem = tag("div", tag("div", tag("h2", "Example"), prose(example.problem)), class_="triggers")
    worked = tag("div", tag("h2", "Worked"), prose(example.worked), class_="payload-body")
    return tag("div", problem, worked, class_="payload card")


def _bullets(title: str, lines: Iterable[str], class_: str) -> Html:
    return tag("div", tag("h2", title), tag("ul", *(tag("li", inline(line)) for line in lines)), class_=class_)


def _routing(card: Card) -> Html:
    if not card.routing_conditions:
        return Html("")
    lines = tag("ul", *(tag("li", inline(line)) for line in card.routing_conditions), class_="plain")
    return tag("section", tag("h2", "Choose by"), lines, class_="routing")


def _raw(card: Card) -> Html:
    return tag("details", tag("summary", "As a solver reads it"), tag("pre", card_text(card), class_="code"))


def _lift(card: Card) -> Html:
    title = tag("h2", "Lift")
    found = card_lifts([card])
    if not found:
        said = card.provenance.validated_lift
        words = tag("p", said) if said else tag("p", "Not measured yet.", class_="muted")
        return tag("section", title, words, class_="card lift-box")
    lift = found[0]
    figures = Figures(lift.effect, lift.low, lift.high)
    scale = lift_scale([figures])
    return tag(
        "section",
        title,
        tag("p", tag("b", points(lift.effect)), " points", class_=f"lift-figure {tone(figures)}"),
        lift_mark(figures, scale, card.card_id),
        lift_axis(scale),
        tag("p", f"95 % interval {points(lift.low)} to {points(lift.high)}. {VERDICTS[tone(figures)]}"),
        tag("p", _measured(lift, card), class_="note"),
        class_="card lift-box",
    )


def _measured(lift: CardLift, card: Card) -> str:
    epoch = card.provenance.validated_lift.partition(", epoch ")[2].partition(";")[0]
    when = f", in epoch {epoch}" if epoch.isdigit() else ""
    return (
        f"Measured by {lift.method}{when}: {counted(lift.shown, 'attempt')} with the card, {lift.hidden:,} without, "
        f"on {counted(lift.problems, 'problem')}."
    )


def _record(card: Card) -> Html:
    known = card.provenance
    title = tag("h2", "Record")
    if not known.n_uses:
        return tag("section", title, tag("p", "Never read in a solve that was credited.", class_="muted"))
    judged = known.n_wins + known.n_losses
    share = ""
    if judged:
        low, high = wilson(known.n_wins, judged)
        share = f" {known.n_wins / judged:.0%} right [{low:.0%}, {high:.0%}], n = {judged:,}."
    words = (
        f"{known.n_wins:,} right and {known.n_losses:,} wrong of {counted(known.n_uses, 'solve')} that read it.{share}"
    )
    note = "What happened where it was read, not what it caused: that is the lift."
    return tag(
        "section", title, _share_bar(known.n_wins, known.n_losses), tag("p", words), tag("p", note, class_="note")
    )


def _share_bar(wins: int, losses: int) -> Html:
    total = wins + losses
    if not total:
        return Html("")
    width = round(100 * wins / total, 2)
    rests = tag("rect", x=width, y=0, width=round(100 - width, 2), height=4, class_="is-wrong")
    return tag(
        "svg",
        tag("title", f"{wins:,} right, {losses:,} wrong"),
        tag("rect", x=0, y=0, width=width, height=4, class_="is-right"),
        rests,
        viewBox="0 0 100 4",
        preserveAspectRatio="none",
        class_="status-bar wide",
        role="img",
    )


def _provenance(card: Card) -> Html:
    known = card.provenance
    problems = known.supporting_problems
    more = f" and {len(problems) - MAX_PROBLEMS:,} more" if len(problems) > MAX_PROBLEMS else ""
    facts = [
        ("Source", known.source or "not said"),
        ("Introduced", f"epoch {known.epoch_introduced}"),
        ("Supported by", ", ".join(problems[:MAX_PROBLEMS]) + more if problems else "no problem is named"),
        ("Helpfulness", f"{card.helpfulness_score:g}".replace("-", "−")),
    ]
    pairs = [part for term, value in facts for part in (tag("dt", term), tag("dd", value))]
    return tag("section", tag("h2", "Where it comes from"), tag("dl", *pairs, class_="pairs"))
