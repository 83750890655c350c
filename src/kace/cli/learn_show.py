"""What a learner does, made or would take, in a terminal: plain text, at most as wide as the screen."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kace.cards.card import Status, plain_points
from kace.cli.terminal import RunProgress, aligned, columns, note, plain
from kace.ladder.record import Solution
from kace.learning import select
from kace.learning.admit import Rulings
from kace.learning.calibrate import Calibration
from kace.learning.costs import RoleForecast
from kace.learning.propose import Proposals
from kace.learning.report import CardStory, Report
from kace.learning.solutions import NO_CALLS, SOURCE
from kace.learning.steps import Kept, StepName, TreeVersion
from kace.learning.summary import progress, summary
from kace.models.budget import Ledger
from kace.runs.table import SolveFilter, Table
from kace.words import counted

OUTCOMES: Mapping[str, Callable[[Any], str]] = {
    "RunTotals": lambda run: (
        f"{run.correct} of {run.problems} right, {run.escalated} past ES"
    ),
    "Routes": lambda some: (
        f"{len(some.domains)} problems placed, {list(some.domains.values()).count(())} nowhere"
    ),
    "Proposals": lambda some: (
        f"{len(some.cards)} cards{f', {len(some.refused)} unusable' if some.refused else ''}"
    ),
    "CardWordings": lambda given: (
        f"{sum(map(len, given.wordings.values()))} wordings for {len(given.wordings)} cards"
    ),
    "Rulings": lambda ruled: (
        f"{len(ruled.admitted)} admitted, {len(ruled.refused)} refused"
    ),
    "Demonstrations": lambda some: (
        f"{sum(bool(c.examples) for c in some.cards)} of {len(some.cards)} with examples"
    ),
    "TreeVersion": lambda tree: f"{tree.cards} cards in the tree",
    "Impact": lambda impact: (
        f"{len(impact.lifts)} lifts measured, {len(impact.fires)} cards fired"
    ),
    "InterimAnalysis": lambda look: (
        f"{'kept' if look.accepted else 'not kept'}: {look.reason}"
    ),
    "Studied": lambda study: (
        f"{study.right} right, {study.wrong} wrong, {study.failed} failed; {len(study.operations)} changes"
        f" ({len(study.refused)} refused); {len(study.playbook.bullets)} bullets, {study.tokens} tokens"
    ),
    "Rollouts": lambda some: (
        f"{sum(each.score > 0 for each in some.rollouts)} of {len(some.rollouts)} right"
    ),
    "Reflected": lambda made: (
        f"{len(made.cards)} cards, {len(made.refused)} refused, {made.failed} failed"
    ),
}


def outcome(value: Kept) -> str:
    """A step's result in a few words."""
    return OUTCOMES.get(type(value).__name__, lambda _: "done")(value)


class LearnProgress(RunProgress):
    """A line for each step and run; in a terminal, below them, where it is, what came of the cards, what it costs."""

    def __init__(self, epochs: int) -> None:
        self.epochs = epochs
        self.ledger: Ledger | None = None
        self.cards = Counter(
            {"proposed": 0, "admitted": 0, "refused": 0, "in the tree": 0}
        )
        self.now = StepName("plan", "partition")
        super().__init__(0)

    def run_started(self, step: StepName, problems: int, done: int) -> None:
        """A run begins."""
        self.now = step
        if self.done >= (self.total or 0):
            self.total = self.done = self.right = 0
        self.total = (
            self.total or 0
        ) + problems  # reruns of several domains go side by side
        self.done += done
        note(
            f"kace: {step}: {problems} problems"
            + (f", {done} done before" if done else "")
        )

    def step_done(self, step: StepName, value: Kept, fresh: bool) -> None:
        """A step is done."""
        self.now = step
        match value:
            case Proposals():
                self.cards.update(
                    proposed=len(value.cards) + len(value.refused),
                    refused=len(value.refused),
                )
            case Rulings():
                self.cards.update(
                    admitted=len(value.admitted), refused=len(value.refused)
                )
            case TreeVersion():
                self.cards["in the tree"] = value.cards
        if fresh:
            note(f"kace: {step}: {outcome(value)}")

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if self.ledger:
            note(f"kace: {self._told()}")

    def _told(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in self.cards.items())
        cards = f"cards: {counts}; " if any(self.cards.values()) else ""
        spent = sorted(self.ledger.roles.items()) if self.ledger else []
        roles = ", ".join(f"{role} {each.calls}" for role, each in spent) or "none"
        return f"{cards}calls: {roles}; {self.ledger.usd if self.ledger else 0:.4f} USD"

    def status(self) -> str:
        """Where it is, what came of the cards, and what it costs."""
        epoch = (
            f"epoch {self.now.epoch} of {self.epochs}"
            if self.now.epoch
            else "outside the epochs"
        )
        where = " ".join(
            part for part in (self.now.phase, self.now.place, self.now.what) if part
        )
        return f"{epoch}: {where}: {super().status()}; {self._told()}"


class SelectProgress(RunProgress):
    """A line when the run of an epoch begins and ends; in a terminal, how it goes below."""

    def __init__(self, validation: select.Validation) -> None:
        super().__init__(None)
        seeds = f" on {validation.seeds} seeds" if validation.seeds > 1 else ""
        self.asked = f"{len(validation.problems)} problems{seeds}"

    def run_started(
        self, epoch: select.EpochTree, solves: int, done: Sequence[Solution]
    ) -> None:
        """A run begins."""
        note(
            f"kace: {_called(epoch)}: {self.asked}"
            + (f", {len(done)} done before" if done else "")
        )
        self.total = solves
        self.done = 0
        self.right = 0
        self.labelled = 0
        for record in done:
            self.solved(record)

    def run_done(self, epoch: select.EpochTree, arm: Table) -> None:
        """A run is complete."""
        note(
            f"kace: {_called(epoch)}: {arm.count(SolveFilter(right='yes'))} of {len(arm)} right"
        )


def _called(epoch: select.EpochTree) -> str:
    return f"epoch {epoch.epoch}{'' if epoch.epoch else ' (no tree)'}"


def selection_lines(selection: select.Selection) -> list[str]:
    """A row for each epoch, the chosen one marked, and what it means."""

    def change(found: select.Against | None) -> str:
        return "" if found is None else f"+{found.gained} -{found.lost}"

    table = [
        (
            "",
            "epoch",
            "cards",
            "right",
            "95 % interval",
            "against 0",
            "against last",
            "calls",
            "card tokens",
        )
    ]
    for row in selection.rows:
        mark = "*" if row.epoch == selection.epoch else " "
        cards = str(row.cards) if row.epoch else "-"
        right = f"{row.right} of {row.n} = {row.accuracy:.1%}"
        interval = f"{row.low:.1%} to {row.high:.1%}"
        sizes = (f"{row.calls:.2f}", f"{row.card_tokens:,.0f}")
        table.append(
            (
                mark,
                str(row.epoch),
                cards,
                right,
                interval,
                change(row.ladder),
                change(row.previous),
                *sizes,
            )
        )
    failed = sum(row.failed for row in selection.rows)
    lost = f"{failed} solves lost a call to the provider and count as they are; the same command tries them again."
    return [*aligned(table), "", selection.said, *([lost] if failed else [])]


def report_lines(report: Report) -> list[str]:
    """What was learned, what each card is worth, what was refused, and the cost; the page says more of each epoch."""
    parts = (
        _head(report),
        _runs(report),
        _carried(report),
        _cards(report.cards),
        _refusals(report),
        _costs(report),
    )
    lines = [line for part in map(list, parts) if part for line in ("", *part)][1:]
    width = columns()
    return [
        piece
        for line in lines
        for piece in textwrap.wrap(plain(line), width, subsequent_indent="    ") or [""]
    ]


def _head(report: Report) -> Iterator[str]:
    yield from (report.name, summary(report))
    if not report.finished:
        yield progress(report)
    found = report.funnel
    yield f"proposed     {found.proposed}" + (
        f" ({found.waiting} wait for a ruling)" if found.waiting else ""
    )
    yield f"refused      {found.refused}"
    yield f"admitted     {found.admitted} ({found.merged} merged with a card that says the same)"
    yield f"kept         {found.kept} ({found.validated} validated), {found.retired} retired"
    frozen = f"frozen at {report.frozen[:12]}" if report.frozen else "not frozen"
    yield f"tree         ~{report.size.tokens:,} tokens, {frozen}"
    if report.unread:
        yield f"unread       {counted(len(report.unread), 'step')} of another version: {'; '.join(report.unread)}"


def _runs(report: Report) -> Iterator[str]:
    if report.scores:
        yield "runs on the training problems, with 95 % intervals"
    for score in report.scores:
        low, high = score.interval
        share = "-" if score.accuracy is None else f"{score.accuracy:.1%}"
        right = f"{score.correct} of {score.problems}"
        title = plain(score.title, 28)
        yield f"  epoch {score.step.epoch}  {title:28} {right:>12} {share:>7}  {low:.1%} to {high:.1%}"


def _carried(report: Report) -> Iterator[str]:
    lifts = {
        "problems that it was written from": report.carried.own,
        "other problems": report.carried.others,
    }
    known = {where: lift for where, lift in lifts.items() if lift}
    if known:
        yield "what showing a card does to an attempt, in points with 95 % intervals"
    for where, lift in known.items():
        effect, low, high = map(plain_points, (lift.effect, lift.low, lift.high))
        yield f"  on {where:34} {effect:>6} [{low}, {high}], {lift.problems} problems"


def _cards(cards: Sequence[CardStory]) -> Iterator[str]:
    if cards:
        yield "cards, with lift in points and its 95 % interval"
    for story in cards:
        status = (
            "retired"
            if story.card.status is Status.DEPRECATED
            else story.card.status.value
        )
        shown = "never shown"
        worth = "not measured"
        if fire := story.fire:
            shown = f"shown in {fire.n_shown}: {fire.shown_correct} right, {fire.shown_wrong} wrong"
        if story.lift:
            lift = story.lift
            low, effect, high = map(plain_points, (lift.low, lift.effect, lift.high))
            worth = f"lift {effect} [{low}, {high}]{', of its earlier text' if story.outdated else ''}"
        if story.earned is not None:
            worth += f", earned {story.earned + 0.0:+.1f} right attempts"
        yield from (
            f"  {story.card.card_id}",
            f"    {status}, {story.place}",
            f"    {shown}; {worth}",
        )


def _refusals(report: Report) -> Iterator[str]:
    rules = Counter((each.refused.rule, each.refused.by) for each in report.refused)
    if rules:
        yield "refused, by rule"
    yield from (
        f"  {count:>4}  {plain(rule, 40)} ({by})"
        for (rule, by), count in rules.most_common()
    )


def _costs(report: Report) -> Iterator[str]:
    rows: list[Sequence[str]] = [
        ("cost", "calls", "failed", "input", "cached", "output", "USD")
    ]
    for cost in report.costs:
        sizes = (cost.calls, cost.failed, cost.input, cost.cached, cost.output)
        usd = "-" if cost.usd is None else f"{cost.usd:,.2f}"
        rows.append(
            (
                plain(cost.role, 11),
                *("-" if size is None else f"{size:,}" for size in sizes),
                usd,
            )
        )
    if report.teacher == SOURCE:
        yield NO_CALLS
    if report.costs:
        total = "not known" if report.usd is None else f"{report.usd:,.2f}"
        yield from aligned([*rows, ("together", "", "", "", "", "", total)])


def forecast_line(rows: Sequence[RoleForecast]) -> str:
    """What a run is expected to take, in a line."""
    calls = " and ".join(
        f"{row.expected.calls:,.0f} {row.role} calls"
        for row in rows
        if row.expected.calls
    )
    unpriced = [row.model for row in rows if row.usd is None]
    money = (
        f"money unknown, no price for {unpriced[0]}"
        if unpriced
        else f"{sum(row.usd or 0 for row in rows):.2f} USD"
    )
    waiting = (
        " and the teacher's"
        if any(row.model.startswith("exchange/") for row in rows)
        else ""
    )
    expected = f"expected: {calls}; {_time(rows)}{waiting}; {money}"
    return f"{expected}. --dry-run says more, --max-usd and --max-calls bound it"


def forecast_lines(rows: Sequence[RoleForecast]) -> list[str]:
    """A line a role: what is expected, then what it takes at most."""
    table: list[Sequence[str]] = [("", "calls", "input tokens", "output tokens", "USD")]
    for row in rows:
        pairs = (
            (getattr(row.expected, name), getattr(row.most, name))
            for name in ("calls", "input", "output")
        )
        usd = (
            "unknown"
            if row.usd is None or row.most_usd is None
            else f"{row.usd:.2f} to {row.most_usd:.2f}"
        )
        table.append(
            (
                row.role,
                *(f"{_short(expected)} to {_short(most)}" for expected, most in pairs),
                usd,
            )
        )
    unpriced = sorted(
        {row.model for row in rows if row.usd is None or row.most_usd is None}
    )
    if not unpriced:
        total = f"{sum(row.usd or 0 for row in rows):.2f} to {sum(row.most_usd or 0 for row in rows):.2f}"
        table.append(("in all", "", "", "", total))
    missing = f'no price for {", ".join(unpriced)}: add [prices."NAME"] with input and output to kace.toml'
    last = f"expected to at most, without prefix caches; expected time {_time(rows)}; nothing was spent"
    untaught = [NO_CALLS] if any(row.model == SOURCE for row in rows) else []
    return [*aligned(table), *([missing] if unpriced else []), *untaught, last]


def _time(rows: Sequence[RoleForecast]) -> str:
    minutes = sum(row.seconds for row in rows) / 60
    return (
        f"about {minutes:,.0f} min"
        if minutes < 120
        else f"about {minutes / 60:,.0f} hours"
    )


def _short(number: float) -> str:
    scale = next(
        (
            (size, unit)
            for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k"))
            if number >= size
        ),
        None,
    )
    return f"{number / scale[0]:.3g}{scale[1]}" if scale else f"{number:.0f}"


def calibration_lines(found: Calibration) -> Iterator[str]:
    """What the thresholds are, and the losses that they come from."""
    yield f"thresholds   a card is shown from {found.threshold:.3f} on, and skips ES from {found.skip_threshold:.3f} on"
    said = f"at most {found.bound:.2f} points shown, {found.skip_bound:.2f} skipping ES, in expectation"
    yield f"harm         {said}, on problems of techniques that the tree lacks"
    yield f"             from {counted(found.problems, 'training problem')}, {counted(found.runs, 'run')}"
    if max(found.bound, found.skip_bound) > found.max_harm:
        need = round(200 / found.max_harm)
        yield f"             seen is at most {found.max_harm:g}; a bound as low takes {need:,} problems"
    for each in found.left_out[:10]:
        lost = f"{100 * each.loss:+.0f} % shown, {100 * each.skip_loss:+.0f} % skipping"
        yield f"  {each.score:.3f}  {each.card:<44} lost {lost}  on {each.problem}"
