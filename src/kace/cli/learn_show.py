"""What a learner made or would take, in a terminal: plain text, at most as wide as the screen."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

from kace.cli.streams import columns
from kace.cli.terminal import plain
from kace.learner.costs import RoleForecast
from kace.learner.epoch import Epoch
from kace.learner.report import Report, progress, summary
from kace.tree.card import Difficulty, Status
from kace.words import counted

PLOT = 25  # columns of a lift's picture
INDENT = "  "


def report_lines(report: Report) -> list[str]:
    """What was learned, what each card is worth, what was refused and why, and the cost."""
    width = columns()
    parts = (
        _head(report, width),
        _runs(report),
        _cards(report, width),
        _tree(report),
        *(_epoch(epoch, width) for epoch in report.epochs),
        _refusals(report, width),
        _costs(report),
    )
    return [line for part in map(list, parts) if part for line in ("", *part)][1:]


def _head(report: Report, width: int) -> Iterator[str]:
    yield plain(report.name, width)
    yield from _wrapped(summary(report), width)
    if not report.finished:
        yield from _wrapped(progress(report), width)
    yield ""
    found = report.funnel
    yield f"proposed     {found.proposed}" + (f" ({found.waiting} wait for a ruling)" if found.waiting else "")
    yield f"refused      {found.refused}"
    yield f"admitted     {found.admitted} ({found.merged} merged with a card that says the same)"
    yield f"kept         {found.kept} ({found.validated} validated), {found.retired} retired"
    frozen = f"frozen at {report.frozen[:12]}" if report.frozen else "not frozen"
    yield f"tree         ~{report.size.tokens:,} tokens, {frozen}"
    if report.unread:
        steps = "; ".join(report.unread)
        yield from _wrapped(f"unread       {counted(len(report.unread), 'step')} of another version: {steps}", width)


def _runs(report: Report) -> Iterator[str]:
    scores = [score for epoch in report.epochs for score in epoch.scores]
    if scores:
        yield "runs on the training problems, with 95 % intervals"
    for score in scores:
        low, high = score.interval
        share = "-" if score.accuracy is None else f"{score.accuracy:.1%}"
        right, title = f"{score.correct} of {score.problems}", plain(score.title, 28)
        yield f"{INDENT}epoch {score.step.epoch}  {title:28} {right:>12} {share:>7}  {low:.1%} to {high:.1%}"


def _cards(report: Report, width: int) -> Iterator[str]:
    if report.cards:
        yield "cards, with lift in points: - is the 95 % interval, o the estimate, | no effect"
    reach = max((abs(story.lift.lift.effect) for story in report.measured if story.lift), default=0.0)
    for story in report.cards:
        status = "retired" if story.card.status is Status.DEPRECATED else story.card.status.value
        yield f"{INDENT}{story.card.card_id}"
        yield f"{INDENT}{INDENT}{plain(f'{status}, {story.place}', width - 4)}"
        if story.lift:
            lift = story.lift.lift
            low, effect, high = (f"{100 * share + 0.0:+.1f}" for share in (lift.low, lift.effect, lift.high))
            old = ", of its earlier text" if story.outdated else ""
            drawn = _picture(lift.low, lift.effect, lift.high, max(0.2, 2 * reach))
            yield f"{INDENT}{INDENT}{drawn}  {effect} [{low}, {high}]{old}"
        shown, earned = "never shown", "not measured"
        if fire := story.fire:
            shown = f"shown in {fire.n_shown}: {fire.shown_correct} right, {fire.shown_wrong} wrong"
        if story.earned is not None:
            earned = f"earned {story.earned + 0.0:+.1f} right attempts"
        yield f"{INDENT}{INDENT}{shown}; {earned}"


def _picture(low: float, effect: float, high: float, scale: float) -> str:
    """An interval drawn in characters; one that goes on beyond the scale ends in an arrow."""

    def place(value: float) -> int:
        return round((min(max(value, -scale), scale) / scale + 1) / 2 * (PLOT - 1))

    drawn = ["-" if place(low) <= n <= place(high) else " " for n in range(PLOT)]
    drawn[0] = "<" if low < -scale else drawn[0]
    drawn[-1] = ">" if high > scale else drawn[-1]
    drawn[PLOT // 2] = "|"
    drawn[place(effect)] = "o"
    return "".join(drawn)


def _tree(report: Report) -> Iterator[str]:
    if not report.branches:
        return
    yield f"{'cards in the tree':42}{''.join(f'{kind.value:>12}' for kind in Difficulty)}"
    for branch in report.branches:
        counts = "".join(f"{leaf.shown or '-':>12}" for leaf in branch.leaves)
        yield f"{INDENT}{plain(branch.name, 39):40}{counts}"
    for epoch in report.epochs:
        if epoch.size:
            size = f"{counted(epoch.size.shown, 'card')}, ~{epoch.size.tokens:,} tokens, {epoch.size.retired} retired"
            yield f"{INDENT}after epoch {epoch.number}: {size}"


def _epoch(epoch: Epoch, width: int) -> Iterator[str]:
    refused = sum(refusal.what == "card" for refusal in epoch.refused)
    came = f"{epoch.proposed} proposed, {epoch.admitted} admitted, {len(epoch.merged)} merged, {refused} refused"
    yield f"epoch {epoch.number}: {came}"
    for merging in epoch.merged:
        yield from _wrapped(f"merged {merging.card_id} into {merging.into}: {merging.reason}", width, INDENT)
    for look in epoch.looks:
        verdict = "kept" if look.accepted else "not kept"
        gained, lost = (", ".join(names) or "none" for names in (look.gained, look.lost))
        said = f"{look.domain}, try {look.number}: {verdict}: {look.reason}; gained {gained}; lost {lost}"
        yield from _wrapped(said, width, INDENT)
    for gap in epoch.gaps:
        yield from _wrapped(f"gap in {gap.domain}: {gap.text}", width, INDENT)
    if epoch.beyond:
        names = ", ".join(each.label for each in epoch.beyond)
        said = f"{counted(len(epoch.beyond), 'problem')} beyond the tree's reach (wrong at ES): {names}"
        yield from _wrapped(said, width, INDENT)


def _refusals(report: Report, width: int) -> Iterator[str]:
    rules = Counter((each.refused.rule, each.refused.by) for each in report.refused)
    if not rules:
        return
    yield "refused, by rule"
    yield from (f"{INDENT}{count:>4}  {plain(rule, 40)} ({by})" for (rule, by), count in rules.most_common())
    yield ""
    for each in report.refused:
        what = f"{each.refused.card_id or 'unnamed'}{'' if each.what == 'card' else ' (revision)'}"
        said = f"epoch {each.epoch} {each.place}: {what}: {each.refused.rule}: {each.refused.reason}"
        yield from _wrapped(said, width, INDENT)


def _costs(report: Report) -> Iterator[str]:
    if not report.costs:
        return
    yield f"{'cost':12}{'calls':>9}{'failed':>8}{'input':>14}{'cached':>14}{'output':>13}{'USD':>10}"
    for cost in report.costs:
        usd = "-" if cost.usd is None else f"{cost.usd:,.2f}"
        failed = "-" if cost.failed is None else f"{cost.failed:,}"
        tokens = f"{cost.input:>14,}{cost.cached:>14,}{cost.output:>13,}"
        yield f"{plain(cost.role, 11):12}{cost.calls:>9,}{failed:>8}{tokens}{usd:>10}"
    total = "not known" if report.usd is None else f"{report.usd:,.2f}"
    yield f"{'together':12}{total:>68}"


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Text from anywhere on lines of the width, the later ones set in."""
    words = plain(" ".join(text.split()))
    return textwrap.wrap(words, width, initial_indent=indent, subsequent_indent=f"{indent}{INDENT}")


def forecast_lines(rows: Sequence[RoleForecast]) -> list[str]:
    """A line a role: what is expected, then what it takes at most."""
    lines = [f"{'':11}{'calls':>16}{'input tokens':>18}{'output tokens':>18}{'USD':>15}"]
    for row in rows:
        pairs = ((getattr(row.expected, name), getattr(row.most, name)) for name in ("calls", "input", "output"))
        calls, read, written = (f"{_short(expected)} to {_short(most)}" for expected, most in pairs)
        usd = "unknown" if row.usd is None or row.most_usd is None else f"{row.usd:.2f} to {row.most_usd:.2f}"
        lines.append(f"{row.role:<11}{calls:>16}{read:>18}{written:>18}{usd:>15}")
    if unpriced := sorted({row.model for row in rows if row.usd is None or row.most_usd is None}):
        lines.append(f'no price for {", ".join(unpriced)}: add [prices."NAME"] with input and output to kace.toml')
    else:
        total = f"{sum(row.usd or 0 for row in rows):.2f} to {sum(row.most_usd or 0 for row in rows):.2f}"
        lines.append(f"{'in all':<63}{total:>15}")
    return [*lines, "expected to at most, without prefix caches; nothing was spent"]


def _short(number: float) -> str:
    scale = next(((size, unit) for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if number >= size), None)
    return f"{number / scale[0]:.3g}{scale[1]}" if scale else f"{number:.0f}"
