"""A lift as a small drawing: a dot on its interval beside the line of no effect, and the colours of lifts."""

from __future__ import annotations

from collections.abc import Iterable

from kace.view.atlas import Figures
from kace.web.markup import Html, tag
from kace.web.scale import Scale
from kace.words import points

BANDS = (
    (0.05, "lift-1", "+5 points or more"),
    (0.01, "lift-2", "+1 to +5"),
    (-0.01, "lift-3", "within 1 of zero"),
    (-0.05, "lift-4", "−1 to −5"),
    (float("-inf"), "lift-5", "−5 or less"),
)
"""From which mean lift on a place has which colour, and what the colour means."""
UNMEASURED = "lift-0"
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5)


def band(lift: float | None) -> str:
    """The class of a mean lift's colour."""
    if lift is None:
        return UNMEASURED
    # Rounded as it is written, so that a colour never contradicts the figure beside it.
    return next(name for least, name, _ in BANDS if round(lift, 3) >= least)


def tone(lift: Figures) -> str:
    """What an interval says: that the card helps, that it harms, or nothing yet."""
    return "good" if lift.low > 0 else "bad" if lift.high < 0 else "open"


def lift_words(lift: Figures) -> str:
    """A lift in figures, in points."""
    return f"{points(lift.effect)} [{points(lift.low)}, {points(lift.high)}]"


def lift_scale(lifts: Iterable[Figures | None]) -> Scale:
    """One scale for lifts that stand together. It follows the effects: an interval far wider than any is cut."""
    known = [lift for lift in lifts if lift is not None]
    ends = max((max(abs(lift.low), abs(lift.high)) for lift in known), default=0.1)
    effects = max((abs(lift.effect) for lift in known), default=0.1)
    widest = max(0.02, min(ends, max(0.1, 2.5 * effects), 1.0))
    return Scale(-widest * 1.04, widest * 1.04, next(step for step in _STEPS if widest / step <= 4.5))


def lift_mark(lift: Figures, scale: Scale, name: str) -> Html:
    """The drawing. Places across are percentages, so that it fits any width unscaled."""
    low, high = scale.across(lift.low), scale.across(lift.high)
    ends = [
        *([_arrow("0%", "‹", "start")] if lift.low < scale.low else []),
        *([_arrow("100%", "›", "end")] if lift.high > scale.high else []),
    ]
    zero = scale.across(0.0)
    return tag(
        "svg",
        tag("title", f"{name}: {points(lift.effect)} points, from {points(lift.low)} to {points(lift.high)}"),
        tag("line", x1="0%", x2="100%", y1=14, y2=14, class_="mark-base"),
        tag("line", x1=zero, x2=zero, y1=2, y2=26, class_="mark-zero"),
        tag("line", x1=low, x2=high, y1=14, y2=14, class_="mark-whisker"),
        *ends,
        tag("circle", cx=scale.across(lift.effect), cy=14, r=4.5, class_="mark-dot"),
        class_=f"lift-mark {tone(lift)}",
        height=28,
        role="img",
    )


def lift_axis(scale: Scale) -> Html:
    """The figures under a mark that stands alone."""
    labels = [
        tag("text", points(tick, digits=0), x=scale.across(tick), y=12, text_anchor=_anchor(tick, scale))
        for tick in scale.ticks
    ]
    return tag("svg", *labels, class_="lift-axis", height=16, aria_hidden="true")


def _anchor(tick: float, scale: Scale) -> str:
    """Labels at the very ends stay inside."""
    share = scale.share(tick)
    return "start" if share < 0.06 else "end" if share > 0.94 else "middle"


def _arrow(x: str, sign: str, anchor: str) -> Html:
    """The interval goes on beyond the scale."""
    return tag("text", sign, x=x, y=19, text_anchor=anchor, class_="mark-cut")
