"""The parts of a learner's page: the figures that matter most, its course, its runs, and the way to the tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kace.evaluation.plots import NARROW, WIDE
from kace.learner.findings import DROPOUT, Cost, Score
from kace.learner.report import Report
from kace.plots.forest import Axis, ForestRow, forest
from kace.plots.picture import Paint, inline
from kace.view.card_rows import card_name, card_path
from kace.view.learner import Learner
from kace.view.learner_course import Lap, Mark, Stage, course
from kace.view.links import Links, path_of
from kace.web.markup import Html, join, tag
from kace.web.parts import folded, legend, table, tile
from kace.web.scale import scale_over
from kace.words import counted


@dataclass(frozen=True, slots=True)
class Ways:
    """Where the parts of a learner have pages of their own."""

    links: Links
    learner: str
    tree: str | None
    """The tree's name on the shelf."""
    runs: Mapping[str, str]
    """The names of its runs on the shelf, by the names of their folders."""

    def card(self, card_id: str) -> Html:
        """A card's name, leading to its page."""
        name = tag("span", card_name(card_id), class_="id")
        return tag("a", name, href=self.links.to(card_path(self.tree, card_id))) if self.tree else name

    def run(self, score: Score) -> Html:
        """A run's name, leading to its page."""
        title = score.title[:1].upper() + score.title[1:]
        name = self.runs.get(str(score.step).replace(" ", "-"))
        return tag("a", title, href=self.links.to(path_of("run", name))) if name else join((title,))

    def proposals(self, **query: str | int | None) -> str:
        """The address of the proposals."""
        return self.links.to(path_of("learner", self.learner, "proposals"), **query)


def unread(name: str, why: str, words: str) -> Html:
    """The page of a learner that cannot be shown yet, or not at all."""
    said = why or f"Its record is being read{f': {words}' if words else ''}."
    return tag("section", tag("h1", name), tag("p", said, class_="banner" if why else "note"), class_="empty")


def tiles(learner: Learner) -> Html:
    """The figures that matter most."""
    return tag("div", *_tiles(learner), class_="tiles")


def _tiles(learner: Learner) -> Iterator[Html]:
    report = learner.report
    first = next(iter(report.scores), None)
    base = [score for score in report.scores if score.step.what in ("base", "rebase")]
    if first:
        yield tile(_percent(first), f"without cards: {_of(first)}")
    if base:
        yield tile(_percent(base[-1]), f"with cards, epoch {base[-1].step.epoch}: {_of(base[-1])}")
    kept = f"{report.funnel.validated:,} with a lift beyond chance" if report.size.shown else "the tree is empty so far"
    yield tile(f"{report.size.shown:,}", f"cards in the tree, {kept}" if report.size.shown else kept)
    if learner.costs:
        yield from _cost_tiles(learner)


def _cost_tiles(learner: Learner) -> Iterator[Html]:
    asked = sum(cost.calls for cost in learner.costs if cost.role == "teacher")
    others = sum(cost.calls for cost in learner.costs) - asked
    yield tile(f"{asked:,}", "calls of the teacher" if learner.billed else "calls of the teacher so far")
    spent = total(learner.costs)
    if spent:
        yield tile(f"${spent:,.2f}", f"for {asked + others:,} calls")
    else:
        price = "nobody sends a bill for any" if spent == 0 else "prices are not recorded while it works"
        yield tile(f"{others:,}", f"calls of the solver; {price}")


def total(costs: Iterable[Cost]) -> float | None:
    """What everything cost; nothing where some price is not known."""
    known = [cost.usd for cost in costs]
    return None if not known or None in known else sum(usd for usd in known if usd is not None)


def the_course(learner: Learner) -> Html:
    """The stages of the run, epoch by epoch."""
    laps = course(learner.report, learner.lines)
    return tag("section", tag("h2", "The course"), tag("ol", *(_lap(lap) for lap in laps), class_="course"))


def _lap(lap: Lap) -> Html:
    title = [tag("h3", f"Epoch {lap.number}")] if lap.number else []
    return tag(
        "li", *title, tag("ol", *map(_stage, lap.stages), class_="stages"), class_=None if lap.number else "alone"
    )


def _stage(stage: Stage) -> Html:
    done = {Mark.DONE: "done", Mark.DOING: "under way", Mark.TO_COME: "to come"}[stage.mark]
    return tag(
        "li",
        tag("b", stage.title),
        tag("span", f" ({done})", class_="hide"),
        *([tag("small", stage.words)] if stage.words else []),
        class_=f"stage {stage.mark.value.replace(' ', '-')}",
        aria_current="step" if stage.mark is Mark.DOING else None,
    )


def runs(learner: Learner, ways: Ways) -> Html:
    """How the solver did, run by run."""
    report = learner.report
    title = tag("h2", "How the solver did on the training problems")
    scores = [score for score in report.scores if score.accuracy is not None]
    if not scores:
        return tag("section", title, tag("p", "No run over the training problems is finished yet.", class_="note"))
    marks = [("good", "", "the tree as it stood")]
    if any(score.step.what == DROPOUT for score in scores):
        marks.append(("open", "hollow", "each card hidden at random, to measure it"))
    caption = (
        "Bars are 95\u00a0% Wilson intervals. These are the problems that the cards were written from: what holds for "
        "new problems is for a held-out split to say."
    )
    figure = tag("figure", *_plot(scores), legend(marks), tag("figcaption", caption))
    every = [score for epoch in report.epochs for score in epoch.scores]
    return tag("section", title, figure, folded("Every run", _run_table(every, ways), len(every), open_up_to=0))


def _plot(scores: Iterable[Score]) -> Iterator[Html]:
    rows = [
        ForestRow(
            name=f"Epoch {score.step.epoch}, {score.title}",
            about="",
            value=score.accuracy or 0.0,
            low=score.interval.low,
            high=score.interval.high,
            told=f"{score.accuracy or 0.0:.1%} {score.interval.low:.1%} – {score.interval.high:.1%}",
            paint=Paint.OPEN if score.step.what == DROPOUT else Paint.GOOD,
            hollow=score.step.what == DROPOUT,
        )
        for score in scores
    ]
    scale = scale_over(min(row.low for row in rows), max(row.high for row in rows), about=6)
    axis = Axis(scale, "accuracy on the training problems", tuple(f"{tick:.0%}" for tick in scale.ticks))
    for width, name in ((WIDE, "plot wide"), (NARROW, "plot narrow")):
        yield inline(forest("Accuracy of each run", rows, axis, width), name)


def _run_table(scores: Iterable[Score], ways: Ways) -> Html:
    heads = ("Epoch", "Run", "Right", "Accuracy", "95\u00a0% interval", "Past ES", "Calls a problem")
    rows = (
        (
            str(score.step.epoch),
            ways.run(score),
            f"{score.correct:,} of {score.problems:,}",
            _percent(score),
            f"{score.interval.low:.1%} to {score.interval.high:.1%}",
            f"{score.escalated:,}",
            f"{score.paper_calls / max(score.problems, 1):.2f}",
        )
        for score in scores
    )
    return table(heads, rows, right=frozenset(heads[2:]))


def funnel(report: Report, ways: Ways) -> Html:
    """From proposals to kept cards, each stage leading to the proposals behind it."""
    found = report.funnel
    title = tag("h2", "From proposal to tree")
    if not found.proposed:
        return tag("section", title, tag("p", "The teacher has proposed no card yet.", class_="note"))
    lost = {
        "Proposed": _list(((found.refused, "refused"), (found.waiting, "waiting for a ruling"))),
        "Admitted": _list(((found.merged, "merged with a card that says the same"), (found.retired, "retired since"))),
        "In the tree": f"{found.kept - found.validated:,} not shown to help or harm yet",
        "Validated": "their lift is beyond chance" if found.validated else "",
    }
    counts = (found.proposed, found.admitted, found.kept, found.validated)
    rows = [_bar(name, n, found.proposed, note) for (name, note), n in zip(lost.items(), counts, strict=True)]
    more = tag("a", f"All {counted(found.proposed, 'proposal')}, with who refused what and why", href=ways.proposals())
    return tag("section", title, tag("div", *rows, class_="funnel"), tag("p", more))


def _bar(name: str, count: int, of: int, note: str) -> Html:
    width = f"{100 * min(1.0, count / max(of, 1)):.1f}%"
    drawn = tag("svg", tag("rect", width=width, height="100%"), class_="bar", aria_hidden="true", height="9")
    return tag("div", tag("span", name), drawn, tag("b", f"{count:,}"), tag("small", note), class_="funnel-row")


def _list(parts: Iterable[tuple[int, str]]) -> str:
    return ", ".join(f"{count:,} {words}" for count, words in parts if count)


def _percent(score: Score) -> str:
    return "–" if score.accuracy is None else f"{score.accuracy:.1%}"


def _of(score: Score) -> str:
    low, high = score.interval
    return f"{score.correct:,} of {score.problems:,} right, {low:.0%} to {high:.0%}"
