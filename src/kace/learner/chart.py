"""The charts of a report as inline SVG: positions across are percentages, so that they fit any screen unscaled."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from kace.learner.findings import DROPOUT, CardStory, Score
from kace.tree.card import Status
from kace.web.markup import Html, join, tag
from kace.web.scale import Scale
from kace.words import points

HEIGHT, TOP, FOOT = 300, 34, 44
RUN_WIDTH = 46
"""Pixels a run needs: with many of them the chart scrolls."""
ROW = 40
SHORT = {"run": "", "base": "base", "rebase": "again", DROPOUT: "dropout"}


def accuracy_chart(scores: Sequence[Score]) -> Html:
    """Accuracy of each run with its interval, from left to right as they were done, epoch by epoch."""
    scale = _accuracy_scale(scores)
    marks = join(
        (
            *_epoch_bands(scores),
            *_levels(scale),
            *_course(scores, scale),
            *(_run_mark(score, _middle(n, len(scores)), scale) for n, score in enumerate(scores)),
        )
    )
    picture = tag(
        "svg",
        tag("title", "Accuracy of each run on the training problems"),
        marks,
        class_="accuracy",
        height=HEIGHT,
        role="img",
        style=f"min-width:{RUN_WIDTH * len(scores)}px",
    )
    return tag("div", tag("div", picture, class_="gutter"), class_="scroll")


def lift_scale(stories: Sequence[CardStory]) -> Scale:
    """One scale for all lifts. It follows the effects: an interval far wider than any of them is cut."""
    effects = [abs(story.lift.lift.effect) for story in stories if story.lift]
    ends = [abs(end) for story in stories if story.lift for end in (story.lift.lift.low, story.lift.lift.high)]
    widest = max(0.05, min(max(ends, default=0.1), max(0.2, 2.2 * max(effects, default=0.1)), 1.0))
    step = next(step for step in (0.02, 0.05, 0.1, 0.2, 0.25, 0.5) if widest / step <= 4.5)
    return Scale(-widest * 1.04, widest * 1.04, step)


def lift_mark(story: CardStory, scale: Scale) -> Html:
    """A card's lift as a dot on its interval, beside the line of no effect."""
    measured = story.lift
    if measured is None:
        return Html("")
    lift, y = measured.lift, ROW / 2
    said = f"{story.card.card_id}: {points(lift.effect)} points, from {points(lift.low)} to {points(lift.high)}"
    cut = [
        _arrow(end, y) for end, outside in (("0%", lift.low < scale.low), ("100%", lift.high > scale.high)) if outside
    ]
    return tag(
        "svg",
        tag("title", said),
        *_uprights(scale),
        tag("line", x1=scale.across(lift.low), x2=scale.across(lift.high), y1=y, y2=y, class_="whisker"),
        *cut,
        tag("circle", cx=scale.across(lift.effect), cy=y, r=5, class_="dot"),
        class_=f"forest {tone(story)}",
        height=ROW,
        role="img",
    )


def lift_axis(scale: Scale) -> Html:
    """The axis under the lifts."""
    labels = [
        tag("text", points(tick, digits=0), x=scale.across(tick), y=15, text_anchor="middle") for tick in scale.ticks
    ]
    return tag("svg", *labels, class_="forest", height=22, aria_hidden="true")


def tone(story: CardStory) -> str:
    """The colour of a card: what is known about it."""
    return {Status.VALIDATED: "good", Status.DEPRECATED: "bad", Status.EXPERIMENTAL: "open"}[story.card.status]


def _accuracy_scale(scores: Sequence[Score]) -> Scale:
    low = min((score.interval.low for score in scores), default=0.0)
    high = max((score.interval.high for score in scores), default=1.0)
    bottom, top = math.floor(low * 10) / 10, math.ceil(high * 10) / 10
    return Scale(bottom, max(top, bottom + 0.2), 0.1 if top - bottom < 0.65 else 0.2)


def _middle(position: int, count: int) -> float:
    return 100 * (position + 0.5) / count


def _down(value: float, scale: Scale) -> float:
    return round(HEIGHT - FOOT - scale.share(value) * (HEIGHT - FOOT - TOP), 1)


def _levels(scale: Scale) -> Iterator[Html]:
    for tick in scale.ticks:
        y = _down(tick, scale)
        yield tag("line", x1="0%", x2="100%", y1=y, y2=y, class_="grid")
        yield tag("text", f"{tick:.0%}", x=-8, y=y + 4, text_anchor="end")


def _epoch_bands(scores: Sequence[Score]) -> Iterator[Html]:
    for n, score in enumerate(scores):
        if n == 0 or scores[n - 1].step.epoch != score.step.epoch:
            x = f"{100 * n / len(scores):.2f}%"
            if n:
                yield tag("line", x1=x, x2=x, y1=8, y2=HEIGHT - 8, class_="fence")
            yield tag("text", f"Epoch {score.step.epoch}", x=x, dx=8 if n else 0, y=18, class_="epoch")


def _course(scores: Sequence[Score], scale: Scale) -> Iterator[Html]:
    """Lines from one run with the whole tree to the next."""
    with_tree = [(n, s.accuracy) for n, s in enumerate(scores) if s.step.what != DROPOUT and s.accuracy is not None]
    for (n, before), (m, after) in pairwise(with_tree):
        yield tag(
            "line",
            x1=f"{_middle(n, len(scores)):.2f}%",
            x2=f"{_middle(m, len(scores)):.2f}%",
            y1=_down(before, scale),
            y2=_down(after, scale),
            class_="course",
        )


def _run_mark(score: Score, middle: float, scale: Scale) -> Html:
    x, (low, high) = f"{middle:.2f}%", score.interval
    if score.accuracy is None:
        return Html("")
    said = f"{score.step}: {score.correct} of {score.problems}, {score.accuracy:.1%} ({low:.1%} to {high:.1%})"
    label = score.step.place if score.step.what == "run" else SHORT.get(score.step.what, score.step.what)
    return tag(
        "g",
        tag("title", said),
        tag("line", x1=x, x2=x, y1=_down(low, scale), y2=_down(high, scale), class_="whisker"),
        tag("circle", cx=x, cy=_down(score.accuracy, scale), r=5.5, class_="dot"),
        tag("text", f"{score.accuracy:.0%}", x=x, dx=10, y=_down(score.accuracy, scale) + 4, class_="value"),
        tag("text", label, x=x, y=HEIGHT - FOOT + 24, text_anchor="middle"),
        class_="open" if score.step.what == DROPOUT else "good",
    )


def _uprights(scale: Scale) -> Iterator[Html]:
    for tick in scale.ticks:
        x = scale.across(tick)
        yield tag("line", x1=x, x2=x, y1=0, y2=ROW, class_="zero" if abs(tick) < 1e-9 else "grid")


def _arrow(end: str, y: float) -> Html:
    """An interval goes on beyond the scale."""
    sign, anchor = ("‹", "start") if end == "0%" else ("›", "end")
    return tag("text", sign, x=end, y=y + 5, text_anchor=anchor, class_="cut")
