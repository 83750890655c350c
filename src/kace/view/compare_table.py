"""The figures of two runs side by side, and by how much they differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kace.evaluation.metrics import Metrics
from kace.view.compare_work import Pair
from kace.web.markup import Html, join, tag
from kace.words import points


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    name: str
    about: str
    values: tuple[str, str]
    difference: str


def side_by_side(pair: Pair) -> Html:
    """The table. It stays one on a phone: figures are compared along a line."""
    figures = (*_results(pair), *_means(pair.ours, pair.theirs), *_totals(pair.ours, pair.theirs))
    heads = (
        tag("th", "Figure", scope="col"),
        *(_head(name) for name in (pair.ours.name, pair.theirs.name, "Difference")),
    )
    return tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *map(_row, figures)), class_="side-by-side")


def _head(name: str) -> Html:
    return tag("th", name, scope="col", class_="right")


def _row(figure: Figure) -> Html:
    values = (tag("td", value, class_="right num") for value in (*figure.values, figure.difference))
    return tag("tr", tag("th", _with(figure.name, figure.about), scope="row"), *values)


def _results(pair: Pair) -> Iterator[Figure]:
    ours, theirs, found = pair.ours, pair.theirs, pair.comparison
    paired = f" {points(found.difference)}" if found else ""
    yield Figure(
        "Accuracy",
        "of all its problems, with the 95\u00a0% Wilson interval; the difference is over the solves that both have",
        (_accuracy(ours), _accuracy(theirs)),
        f"{paired} points".strip() if found else "–",
    )
    yield Figure(
        "Problems",
        "with their seeds",
        (_size(ours), _size(theirs)),
        f"{found.n:,} in both" if found else "none in both",
    )


def _means(ours: Metrics, theirs: Metrics) -> Iterator[Figure]:
    """Figures a solve."""
    yield _mean("Solver calls a problem", "by the paper's count", ours.paper_calls, theirs.paper_calls, digits=2)
    if (ours.real_calls, theirs.real_calls) != (ours.paper_calls, theirs.paper_calls):
        yield _mean("Calls really made", "a problem", ours.real_calls, theirs.real_calls, digits=2)
    if ours.classifier_calls or theirs.classifier_calls:
        yield _mean("Calls to place a problem", "", ours.classifier_calls, theirs.classifier_calls, digits=2)
    yield _mean("Input tokens", "a problem", ours.input, theirs.input)
    if ours.cached or theirs.cached:
        yield _mean("of it cached", "", ours.cached, theirs.cached)
    yield _mean("Output tokens", "a problem", ours.output, theirs.output)
    if ours.card_tokens or theirs.card_tokens:
        read = [arm.card_tokens.mean if arm.card_tokens else 0.0 for arm in (ours, theirs)]
        yield _mean("Active tokens", "of learned text in the fullest prompt of a solve", read[0], read[1])
    yield _mean("Seconds", "a solve, waiting included", ours.seconds, theirs.seconds, digits=1)


def _totals(ours: Metrics, theirs: Metrics) -> Iterator[Figure]:
    """Figures of the whole run."""
    if ours.failed or theirs.failed:
        lost = "solves that lost a call to the provider"
        yield Figure("Lost calls", lost, (f"{ours.failed:,}", f"{theirs.failed:,}"), "")


def _mean(name: str, about: str, ours: float, theirs: float, *, digits: int = 0) -> Figure:
    change = f"{ours - theirs:+,.{digits}f}".replace("-", "−")
    change = change.lstrip("+−") if not float(f"{ours - theirs:.{digits}f}") else change
    ratio = f" ({100 * (ours / theirs - 1):+.0f}\u00a0%)".replace("-", "−") if theirs and ours != theirs else ""
    return Figure(name, about, (f"{ours:,.{digits}f}", f"{theirs:,.{digits}f}"), f"{change}{ratio}")


def _accuracy(arm: Metrics) -> Html:
    if arm.accuracy is None or arm.wilson is None:
        return join(("–",))
    return _with(f"{arm.accuracy:.1%}", f"{arm.wilson.low:.1%} to {arm.wilson.high:.1%}")


def _size(arm: Metrics) -> Html:
    return _with(f"{arm.problems:,}", f"{len(arm.seeds):,} seeds" if len(arm.seeds) > 1 else "")


def _with(value: str, small: str) -> Html:
    return join((value, tag("small", small))) if small else join((value,))
