"""A report as one HTML page that needs nothing else: no script, no font, no network."""

from __future__ import annotations

from collections.abc import Iterator

from kace.learner.chart import accuracy_chart, lift_axis, lift_mark, lift_scale, tone
from kace.learner.findings import CardStory, Funnel, Score
from kace.learner.report import Report, progress, summary
from kace.learner.tables import cards, costs, epochs, refusals, settings, tree
from kace.web.markup import Html, join, tag
from kace.web.parts import document, legend, tile
from kace.words import counted, points

MANY = 30
"""Measured cards up to which every one is drawn; beyond, those that show nothing are folded away."""


def page(report: Report) -> str:
    """The whole page. Everything that came from outside is text in it, whatever it says."""
    sections = (accuracy, lifts, funnel, tree, cards, epochs, refusals, costs, settings)
    parts = (section(report) for section in sections)
    return document(f"{report.name}: what was learned", header(report), *parts, _footer(report))


def header(report: Report) -> Html:
    """Who, what, and the answer in one sentence."""
    facts = {"solver": report.solver, "teacher": report.teacher, "tree": (report.frozen or "not frozen")[:12]}
    known = [tag("span", f"{name} ", tag("b", value)) for name, value in facts.items() if value]
    return tag(
        "header",
        tag("p", "Learning report", class_="eyebrow"),
        tag("h1", report.name),
        tag("p", summary(report), class_="lead"),
        *([] if report.finished else [tag("p", progress(report), class_="banner")]),
        tag("p", *known, class_="facts"),
        tag("div", *_tiles(report), class_="tiles"),
    )


def accuracy(report: Report) -> Html:
    """How the solver did, run by run."""
    title = tag("h2", "How the solver did on the training problems")
    if not report.scores:
        return tag("section", title, tag("p", "No run over the training problems is finished.", class_="note"))
    shown = [("good", "", "the tree as it stood")]
    if any(score.step.what == "dropout" for score in report.scores):
        shown.append(("open", "hollow", "each card hidden at random, to measure it"))
    caption = (
        "Bars are 95 % Wilson intervals; MS and HS are the runs that new medium and hard cards were written from, base "
        "is the run with those cards. These are the problems that the cards were written from: what holds for new "
        "problems is for a held-out split to say."
    )
    return tag(
        "section",
        title,
        tag("figure", accuracy_chart(report.scores), legend(shown), tag("figcaption", caption)),
    )


def lifts(report: Report) -> Html:
    """What each card is worth, as a forest plot."""
    title = tag("h2", "What each card is worth")
    if not report.measured:
        return tag("section", title, tag("p", "No card's lift has been measured.", class_="note"))
    scale = lift_scale(report.measured)
    telling = [story for story in report.measured if len(report.measured) <= MANY or _tells(story)]
    silent = [story for story in report.measured if story not in telling]
    rows = join(_lift_row(story, lift_mark(story, scale)) for story in telling)
    axis = tag("div", tag("div"), lift_axis(scale), tag("div"), class_="lift axis", aria_hidden="true")
    folded = tag("div", *(_lift_row(story, lift_mark(story, scale)) for story in silent))
    caption = (
        "The change in the share of right attempts that a card causes, in percentage points, with its 95 % interval. "
        "A card is validated only where it helps beyond chance, after correcting for all cards measured in the epoch. "
        "It is retired where it harms beyond chance, or where nothing was lost without it."
    )
    if ("keep", "validated") in report.settings:
        caption += " In this run every card that was not validated was retired at the end."
    return tag(
        "section",
        title,
        tag(
            "figure",
            tag("div", rows, axis, class_="lifts"),
            *(
                [tag("details", tag("summary", f"{counted(len(silent), 'card')} that show nothing"), folded)]
                if silent
                else []
            ),
            legend([("good", "", "validated"), ("open", "hollow", "experimental"), ("bad", "", "retired")]),
            tag("figcaption", caption),
        ),
    )


def funnel(report: Report) -> Html:
    """From proposals to kept cards."""
    found = report.funnel
    stages = (
        ("Proposed", found.proposed, _lost(found, ("refused", "waiting"))),
        ("Admitted", found.admitted, _lost(found, ("merged", "retired"))),
        ("Kept", found.kept, f"{found.kept - found.validated} not shown to help or harm yet" if found.kept else ""),
        ("Validated", found.validated, ""),
    )
    widest = max(found.proposed, 1)
    return tag(
        "section",
        tag("h2", "From proposal to tree"),
        tag("div", *(_stage(name, n, n / widest, note) for name, n, note in stages), class_="funnel"),
    )


def _stage(name: str, count: int, share: float, note: str) -> Html:
    # The widest bar leaves room for its figure.
    bar = tag("div", class_="bar", style=f"width:{86 * min(1.0, share):.1f}%")
    track = tag("div", bar, tag("b", f"{count:,}"), class_="track")
    return tag("div", tag("span", name), track, *([tag("small", note)] if note else []), class_="stage")


def _lost(found: Funnel, ways: tuple[str, ...]) -> str:
    said = {
        "refused": (found.refused, "refused"),
        "waiting": (found.waiting, "waiting for a ruling"),
        "merged": (found.merged, "merged with a card that says the same"),
        "retired": (found.retired, "retired"),
    }
    return ", ".join(f"{count:,} {words}" for count, words in (said[way] for way in ways) if count)


def _lift_row(story: CardStory, mark: Html) -> Html:
    measured = story.lift
    if measured is None:
        return Html("")
    lift = measured.lift
    about = f"{story.place}, earlier text" if story.outdated else story.place
    return tag(
        "div",
        tag("div", tag("span", story.card.card_id, class_="id"), tag("small", about)),
        mark,
        tag(
            "div",
            tag("b", points(lift.effect), class_=tone(story)),
            tag("small", f"{points(lift.low)} to {points(lift.high)}"),
            class_="say",
        ),
        class_="lift",
    )


def _tells(story: CardStory) -> bool:
    """Whether a card's lift says something: it was ruled on, or its interval leaves zero out."""
    lift = story.lift
    return tone(story) != "open" or (lift is not None and not lift.lift.low <= 0 <= lift.lift.high)


def _tiles(report: Report) -> Iterator[Html]:
    first = next(iter(report.scores), None)
    base = [score for score in report.scores if score.step.what in ("base", "rebase")]
    if first:
        yield tile(_percent(first), f"without cards: {first.correct} of {first.problems} ({_range(first)})")
    if base:
        last = base[-1]
        yield tile(
            _percent(last), f"with cards, epoch {last.step.epoch}: {last.correct} of {last.problems} ({_range(last)})"
        )
    yield tile(f"{report.size.shown}", f"cards in the tree, about {report.size.tokens:,} tokens")
    calls = sum(cost.calls for cost in report.costs)
    if report.usd is not None and report.usd > 0:
        yield tile(f"${report.usd:,.2f}", f"for {counted(calls, 'call')}")
    elif calls:
        yield tile(f"{calls:,}", "calls" if report.usd is not None else "calls, price not known")


def _percent(score: Score) -> str:
    return "–" if score.accuracy is None else f"{score.accuracy:.1%}"


def _range(score: Score) -> str:
    return f"{score.interval.low:.0%} to {score.interval.high:.0%}"


def _footer(report: Report) -> Html:
    unread = (
        f" {counted(len(report.unread), 'step')} could not be read: {'; '.join(report.unread)}."
        if report.unread
        else ""
    )
    return tag("footer", "Made by ", tag("code", "kace learn report"), " from the record beside the tree.", unread)
