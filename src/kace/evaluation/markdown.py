"""An evaluation as Markdown, for a README, an issue or an appendix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kace.evaluation.compare import Comparison, p_text
from kace.evaluation.metrics import Metrics
from kace.evaluation.plots import concordance_words
from kace.evaluation.report import Evaluation, lead
from kace.plots.exit_bars import NAMES
from kace.web.markup import seen
from kace.words import points

_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_SPECIAL = str.maketrans({**{char: f"\\{char}" for char in "\\`*_{}[]#|~!$"}, **_ENTITIES})


def markdown(found: Evaluation, pictures: Mapping[str, str] | None = None) -> str:
    """The whole report. `pictures` are links to the plots' files by name; text from outside is never markup."""
    parts = (
        _head(found),
        _arms(found),
        _comparisons(found),
        _exits(found),
        _buckets(found),
        _concordance(found),
        _lifts(found),
        _costs(found),
        _pictures(pictures or {}),
        _setups(found),
    )
    return "\n\n".join(part for lines in parts if (part := "\n".join(lines))) + "\n"


def _head(found: Evaluation) -> Iterator[str]:
    yield f"# {plain(found.title)}: evaluation"
    yield ""
    yield plain(lead(found))
    for warning in found.warnings:
        yield f"\n> {plain(warning)}"


def _arms(found: Evaluation) -> Iterator[str]:
    heads = ("arm", "accuracy", "95 % Wilson", "95 % bootstrap", "by seed", "calls (paper / real)")
    more = ("input (cached)", "output", "active tokens", "USD")
    yield "## Arms"
    yield ""
    yield from table((*heads, *more), (_arm(arm) for arm in found.arms))
    yield ""
    yield "Tokens are a solve; active tokens are learned text in the fullest prompt of a solve. A failed call is wrong."


def _arm(arm: Metrics) -> tuple[str, ...]:
    tokens = arm.card_tokens
    return (
        plain(arm.name),
        "–" if arm.accuracy is None else f"{arm.accuracy:.1%}",
        _percents(arm.wilson),
        _percents(arm.interval),
        ", ".join(f"{score.accuracy:.1%}" for score in arm.seeds) or "–",
        f"{arm.paper_calls:.2f} / {arm.real_calls:.2f}",
        f"{arm.input:,.0f} ({arm.cached:,.0f})",
        f"{arm.output:,.0f}",
        f"{tokens.mean:,.0f} (at most {tokens.most:,})" if tokens else "–",
        _usd(arm.cost.usd),
    )


def _comparisons(found: Evaluation) -> Iterator[str]:
    if not found.comparisons:
        return
    yield f"## Compared with {plain(found.base)}"
    yield ""
    yield from table(
        ("arm", "difference", "95 % interval", "p", "corrected", "gained", "lost", "detectable"),
        (_comparison(each) for each in found.comparisons),
    )
    yield ""
    for each in found.comparisons:
        yield f"- {plain(each.sentence)}"


def _comparison(each: Comparison) -> tuple[str, ...]:
    return (
        plain(each.other),
        points(each.difference),
        f"{points(each.interval.low)} to {points(each.interval.high)}",
        p_text(each.p).removeprefix("p ").removeprefix("= "),
        p_text(each.adjusted).removeprefix("p ").removeprefix("= "),
        f"{len(each.gained):,}",
        f"{len(each.lost):,}",
        "–" if each.mdd is None else f"{100 * each.mdd:.1f}",
    )


def _exits(found: Evaluation) -> Iterator[str]:
    if found.ladders:
        yield "## Exits"
        yield ""
        rows = ((plain(arm.name), *(f"{arm.exits.get(path, 0):,}" for path in NAMES)) for arm in found.ladders)
        yield from table(("arm", *NAMES.values()), rows)


def _buckets(found: Evaluation) -> Iterator[str]:
    rows = [
        (
            plain(arm.name),
            row.bucket.value,
            f"{row.problems:,}",
            f"{row.right:,} of {row.solves:,}",
            f"{row.paper_calls / row.solves:.2f}" if row.solves else "–",
            *(f"{row.exits.get(path, 0):,}" for path in NAMES),
        )
        for arm in found.ladders
        for row in arm.buckets
    ]
    if rows:
        yield "## Exits by difficulty"
        yield ""
        yield from table(("arm", "bucket", "problems", "right", "calls", *NAMES.values()), rows)


def _concordance(found: Evaluation) -> Iterator[str]:
    told = [(arm.name, concordance_words(arm.concordance)) for arm in found.ladders if arm.concordance]
    if told:
        yield "## Concordance of exit and difficulty"
        yield ""
        for name, words in told:
            yield f"- {plain(name)}: {words}"


def _lifts(found: Evaluation) -> Iterator[str]:
    if found.lifts:
        yield "## What each card is worth"
        yield ""
        rows = (
            (
                f"`{lift.card_id}`",
                plain(lift.place),
                points(lift.effect),
                f"{points(lift.low)} to {points(lift.high)}",
                f"{lift.problems:,}",
                lift.status.value,
            )
            for lift in found.lifts
        )
        yield from table(("card", "place", "lift", "95 % interval", "problems", "status"), rows)


def _costs(found: Evaluation) -> Iterator[str]:
    rows = [
        (
            plain(arm.name),
            plain(role.role),
            f"{role.calls:,}",
            f"{role.usage.input:,} ({role.usage.cached:,})",
            f"{role.usage.output:,}",
            _usd(role.usd),
        )
        for arm in found.arms
        for role in arm.cost.roles
    ]
    if rows:
        yield "## Cost by role"
        yield ""
        yield from table(("arm", "role", "calls", "input (cached)", "output", "USD"), rows)


def _pictures(pictures: Mapping[str, str]) -> Iterator[str]:
    if pictures:
        yield "## Plots"
    for title, link in pictures.items():
        yield f"\n![{plain(title)}](<{link}>)"


def _setups(found: Evaluation) -> Iterator[str]:
    yield "## How the arms were made"
    yield ""
    rows = (
        tuple(
            plain(value) or "–"
            for value in (
                setup.name,
                setup.model,
                f"{setup.data} {setup.split}",
                setup.data_hash[:12],
                setup.tree[:12],
                setup.folder,
                setup.kace,
            )
        )
        for setup in found.setups
    )
    yield from table(("arm", "solver", "data", "hash", "tree", "run", "kace"), rows)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A Markdown table; the cells are taken as they are."""
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def plain(text: str) -> str:
    """Text from outside on one line, with every character that Markdown or HTML reads escaped."""
    return " ".join(seen(text).split()).translate(_SPECIAL)


def _percents(interval: tuple[float, float] | None) -> str:
    return "–" if interval is None else f"{interval[0]:.1%} to {interval[1]:.1%}"


def _usd(value: float | None) -> str:
    return "–" if value is None else f"{value:,.2f}"
