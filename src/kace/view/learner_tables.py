"""The parts of a learner's page that tell what is known: its cards, revisions, costs and settings."""

from __future__ import annotations

from collections.abc import Iterator

from kace.learner.epoch import Epoch
from kace.learner.findings import CardStory, Cost, is_shown
from kace.learner.report import Report
from kace.view.atlas import Figures
from kace.view.card_rows import status_badge
from kace.view.learner import Learner
from kace.view.learner_parts import Ways, total
from kace.view.lift_mark import lift_mark, lift_scale, lift_words
from kace.view.links import path_of
from kace.web.markup import Html, join, tag
from kace.web.parts import badge, folded, table
from kace.web.scale import Scale
from kace.words import counted, points

LISTED = 12
"""Cards that are shown here; the tree's pages have the rest."""


def learned(report: Report, ways: Ways) -> Html:
    """The cards that were learned, those that are worth most first."""
    title = tag("h2", "What was learned")
    if not report.cards:
        return tag("section", title, tag("p", "No card is in the tree yet.", class_="note"))
    shown = sorted(report.cards, key=lambda story: not is_shown(story.card))[:LISTED]
    figures = [_figures(story) for story in shown]
    scale = lift_scale(figures)
    rows = [_learned(story, lift, scale, ways) for story, lift in zip(shown, figures, strict=True)]
    if any(figures):
        note = (
            "By how much a card itself changes the share of right attempts, in percentage points, with its 95\u00a0% "
            "interval. One that holds zero says nothing yet."
        )
    else:
        note = "No card's lift has been measured yet."
    return tag(
        "section",
        title,
        tag("p", note, class_="note"),
        tag("ol", *rows, class_="learned"),
        _rest(report, len(shown), ways),
    )


def _learned(story: CardStory, lift: Figures | None, scale: Scale, ways: Ways) -> Html:
    fire = story.fire
    fired = f", shown in {counted(fire.n_shown, 'solve')}" if fire and fire.n_shown else ", never shown"
    outdated = ", rewritten since it was measured" if story.outdated else ""
    about = tag("small", status_badge(story.card.status), f" {story.place}{fired}{outdated}")
    mark = lift_mark(lift, scale, story.card.card_id) if lift else tag("span", "not measured", class_="muted")
    said = tag("span", lift_words(lift) if lift else "", class_="num")
    return tag("li", tag("div", ways.card(story.card.card_id), about), mark, said, data_row="")


def _figures(story: CardStory) -> Figures | None:
    if story.lift is None:
        return None
    lift = story.lift.lift
    return Figures(lift.effect, lift.low, lift.high)


def _rest(report: Report, shown: int, ways: Ways) -> Html:
    more = len(report.cards) - shown
    if ways.tree is None:
        return tag("p", f"and {counted(more, 'card')} more", class_="note") if more else Html("")
    words = f"The tree, with {counted(more, 'card')} more" if more else "The tree, with its map and history"
    return tag("p", tag("a", words, href=ways.links.to(path_of("tree", ways.tree))))


def revisions(report: Report, ways: Ways) -> Html:
    """What the curator wanted changed, and whether a rerun bore it out."""
    told = [epoch for epoch in report.epochs if epoch.looks or epoch.gaps or epoch.revised]
    if not told:
        return Html("")
    return tag("section", tag("h2", "What was revised"), *(_epoch(epoch, ways) for epoch in told))


def _epoch(epoch: Epoch, ways: Ways) -> Html:
    changed = [each for each in epoch.revised if each.action != "KEEP"]
    heads = ("Domain", "Lift", "p", "Gained", "Lost", "Verdict")
    looks = table(
        heads,
        (
            (
                join((look.domain, tag("small", f"try {look.number}, {counted(look.n, 'solve')}"))),
                points(look.lift),
                f"{look.p:.3g}",
                ", ".join(look.gained) or "–",
                ", ".join(look.lost) or "–",
                join(
                    (badge("kept", "good") if look.accepted else badge("dropped", "plain"), tag("small", look.reason))
                ),
            )
            for look in epoch.looks
        ),
        right=frozenset(("Lift", "p")),
    )
    wanted = table(
        ("Card", "Wanted", "Why"),
        (
            (
                ways.card(each.card_id),
                join(
                    (each.action.lower(), " ", badge("done", "good") if each.accepted else badge("not done", "plain"))
                ),
                each.reason,
            )
            for each in changed
        ),
    )
    gaps = tag("ul", *(tag("li", tag("b", gap.domain), f": {gap.text}") for gap in epoch.gaps), class_="plain")
    return join(
        (
            tag("h3", f"Epoch {epoch.number}"),
            looks if epoch.looks else tag("p", "Nothing was put to the test.", class_="note"),
            folded("What the curator wanted, card by card", wanted, len(changed), open_up_to=0) if changed else "",
            folded("Gaps that no card covers", gaps, len(epoch.gaps), open_up_to=0) if epoch.gaps else "",
        )
    )


def costs(learner: Learner) -> Html:
    """What each role used."""
    if not learner.costs:
        return tag("section", tag("h2", "What it cost"), tag("p", "No call has been made yet.", class_="note"))
    heads = ("Role", "Calls", "Input tokens", "of it cached", "Output tokens", "USD")
    every = table(heads, map(_cost_row, learner.costs), right=frozenset(heads[1:]))
    spent = total(learner.costs)
    if spent is not None:
        note = f"Together {spent:,.2f} USD, over every time the command was run."
    elif learner.billed:
        note = "No price was given for some model, so what it cost together is not known."
    else:
        note = "Counted from the calls as they come. Prices are not recorded with them: the bill is made when it stops."
    return tag("section", tag("h2", "What it cost"), every, tag("p", note, class_="note"))


def _cost_row(cost: Cost) -> tuple[str, ...]:
    told = (f"{figure:,}" for figure in (cost.calls, cost.input, cost.cached, cost.output))
    return (cost.role, *told, "–" if cost.usd is None else f"{cost.usd:,.2f}")


def settings(learner: Learner) -> Html:
    """How it was set."""
    pairs = [*_models(learner), *((name.replace("_", " "), value) for name, value in learner.report.settings)]
    listed = tag("dl", *(join((tag("dt", name), tag("dd", value))) for name, value in pairs), class_="pairs")
    return tag("section", folded("Settings", listed, len(pairs), open_up_to=0))


def _models(learner: Learner) -> Iterator[tuple[str, str]]:
    yield "solver", learner.report.solver or "unknown"
    yield "teacher", learner.teacher or "unknown"
    yield "training problems", f"{learner.report.train:,}"
    if learner.report.frozen:
        yield "frozen tree", learner.report.frozen
