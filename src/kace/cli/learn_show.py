"""Show what a learner does, made or would take, as plain text in a terminal."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

from kace.baselines import select
from kace.cards.card import Status, plain_points
from kace.cli.terminal import RunProgress, aligned, columns, note, plain
from kace.ladder.record import Solution
from kace.learning.admit import Rulings
from kace.learning.calibrate import Calibration
from kace.learning.measure import Lift
from kace.learning.propose import NO_CALLS, Proposals
from kace.learning.report import CardReport, LearningReport, RoleForecast
from kace.learning.steps import StepName, StepResult, TreeVersion
from kace.learning.teacher import SOLUTIONS
from kace.models.budget import Ledger
from kace.runs.table import SolveFilter, Table
from kace.words import counted


class LearnProgress(RunProgress):
    """Prints a line for each step and run, and below them the position and the cost."""

    def __init__(self, epochs: int) -> None:
        super().__init__(0)
        self.epochs = epochs
        self.ledger: Ledger | None = None
        self.cards: Counter[str] = Counter()
        self.now = StepName("plan", "partition")

    def run_started(self, step: StepName, problems: int, done: int) -> None:
        """Note that a run begins. Reruns of several domains go side by side."""
        self.now = step
        if self.done >= (self.total or 0):
            self.total = 0
            self.done = 0
            self.right = 0
        self.total = (self.total or 0) + problems
        self.done += done
        before = f", {done} done before" if done else ""
        note(f"kace: {step}: {problems} problems{before}")

    def step_done(self, step: StepName, value: StepResult, fresh: bool) -> None:
        """Count what came of a step, and note a fresh one."""
        self.now = step
        match value:
            case Proposals():
                refused = len(value.refused)
                self.cards.update(proposed=len(value.cards) + refused, refused=refused)
            case Rulings():
                admitted = len(value.admitted)
                self.cards.update(admitted=admitted, refused=len(value.refused))
            case TreeVersion():
                self.cards["in the tree"] = value.cards
        if fresh:
            note(f"kace: {step}: {value.summary}")

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if self.ledger:
            note(f"kace: {self._totals()}")

    def _totals(self) -> str:
        parts = []
        if any(self.cards.values()):
            names = ("proposed", "admitted", "refused", "in the tree")
            counts = ", ".join(f"{self.cards[name]} {name}" for name in names)
            parts.append(f"cards: {counts}")
        roles = []
        for role, spent in sorted(self.ledger.roles.items() if self.ledger else ()):
            roles.append(f"{role} {spent.calls}")
        parts.append(f"calls: {', '.join(roles) or 'none'}")
        parts.append(f"{self.ledger.usd if self.ledger else 0:.4f} USD")
        return "; ".join(parts)

    def status(self) -> str:
        """Return the position, what came of the cards, and the cost."""
        epoch = "outside the epochs"
        if self.now.epoch:
            epoch = f"epoch {self.now.epoch} of {self.epochs}"
        where = " ".join(filter(None, (self.now.phase, self.now.place, self.now.what)))
        return f"{epoch}: {where}: {super().status()}; {self._totals()}"


class SelectProgress(RunProgress):
    """Prints a line when the run of an epoch begins and ends."""

    def __init__(self, validation: select.Validation) -> None:
        super().__init__(None)
        seeds = f" on {validation.seeds} seeds" if validation.seeds > 1 else ""
        self.problems = f"{len(validation.problems)} problems{seeds}"

    def run_started(
        self, epoch: select.EpochTree, solves: int, done: Sequence[Solution]
    ) -> None:
        """Note that a run begins."""
        before = f", {len(done)} done before" if done else ""
        note(f"kace: {_epoch_name(epoch)}: {self.problems}{before}")
        self.total = solves
        self.done = 0
        self.right = 0
        self.labelled = 0
        for record in done:
            self.solved(record)

    def run_done(self, epoch: select.EpochTree, arm: Table) -> None:
        """Note that a run is complete."""
        right = arm.count(SolveFilter(right="yes"))
        note(f"kace: {_epoch_name(epoch)}: {right} of {len(arm)} right")


def _epoch_name(epoch: select.EpochTree) -> str:
    return f"epoch {epoch.epoch}{'' if epoch.epoch else ' (no tree)'}"


SELECTION = (
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


def selection_lines(selection: select.Selection) -> list[str]:
    """Return a row per epoch, the chosen one marked, and the decision."""
    table: list[Sequence[str]] = [SELECTION]
    failed = 0
    for row in selection.rows:
        failed += row.failed
        cells = [
            "*" if row.epoch == selection.epoch else " ",
            str(row.epoch),
            str(row.cards) if row.epoch else "-",
            f"{row.right} of {row.n} = {row.accuracy:.1%}",
            f"{row.low:.1%} to {row.high:.1%}",
            _change(row.ladder),
            _change(row.previous),
            f"{row.calls:.2f}",
            f"{row.card_tokens:,.0f}",
        ]
        table.append(cells)
    lines = [*aligned(table), "", selection.said]
    if failed:
        lines.append(
            f"{failed} solves lost a call to the provider and count as they are; the "
            "same command tries them again."
        )
    return lines


def _change(found: select.Against | None) -> str:
    return "" if found is None else f"+{found.gained} -{found.lost}"


def report_lines(report: LearningReport) -> list[str]:
    """Return what was learned, the cards, the refusals and the cost."""
    width = columns()
    lines: list[str] = []
    parts = (_head, _runs, _carried, _cards, _refusals, _costs)
    for part in parts:
        rows = list(part(report))
        if rows and lines:
            lines.append("")
        for row in rows:
            wrapped = textwrap.wrap(plain(row), width, subsequent_indent="    ")
            lines += wrapped or [""]
    return lines


def _head(report: LearningReport) -> Iterator[str]:
    yield report.name
    yield report.summary
    if report.progress:
        yield report.progress
    found = report.funnel
    waiting = f" ({found.waiting} wait for a ruling)" if found.waiting else ""
    merged = f"{found.merged} merged with a card that says the same"
    frozen = f"frozen at {report.frozen[:12]}" if report.frozen else "not frozen"
    kept = f"{found.kept} ({found.validated} validated), {found.retired} retired"
    yield f"proposed     {found.proposed}{waiting}"
    yield f"refused      {found.refused}"
    yield f"admitted     {found.admitted} ({merged})"
    yield f"kept         {kept}"
    yield f"tree         ~{report.size.tokens:,} tokens, {frozen}"
    if report.unread:
        steps = counted(len(report.unread), "step")
        yield f"unread       {steps} of another version: {'; '.join(report.unread)}"


def _runs(report: LearningReport) -> Iterator[str]:
    if report.scores:
        yield "runs on the training problems, with 95 % intervals"
    for score in report.scores:
        low, high = score.interval
        share = "-" if score.accuracy is None else f"{score.accuracy:.1%}"
        right = f"{score.correct} of {score.problems}"
        title = f"  epoch {score.step.epoch}  {plain(score.title, 28):28}"
        yield f"{title} {right:>12} {share:>7}  {low:.1%} to {high:.1%}"


def _carried(report: LearningReport) -> Iterator[str]:
    lifts = {
        "problems that it was written from": report.carried_own,
        "other problems": report.carried_others,
    }
    if any(lifts.values()):
        yield "what showing a card does to an attempt, in points with 95 % intervals"
    for where, lift in lifts.items():
        if lift:
            yield f"  on {where:34} {_lift_text(lift)}, {lift.problems} problems"


def _lift_text(lift: Lift) -> str:
    low = plain_points(lift.low)
    high = plain_points(lift.high)
    return f"{plain_points(lift.effect):>6} [{low}, {high}]"


def _cards(report: LearningReport) -> Iterator[str]:
    if report.cards:
        yield "cards, with lift in points and its 95 % interval"
    for card in report.cards:
        status = card.card.status
        name = "retired" if status is Status.DEPRECATED else status.value
        yield f"  {card.card.card_id}"
        yield f"    {name}, {card.place}"
        yield f"    {_card_text(card)}"


def _card_text(card: CardReport) -> str:
    shown = "never shown"
    if card.fire:
        fire = card.fire
        right = f"{fire.shown_correct} right, {fire.shown_wrong} wrong"
        shown = f"shown in {fire.n_shown}: {right}"
    if not card.lift or card.earned is None:
        return f"{shown}; not measured"
    earlier = ", of its earlier text" if card.outdated else ""
    lift = _lift_text(card.lift).strip()
    earned = f"{card.earned + 0.0:+.1f} right attempts"
    return f"{shown}; lift {lift}{earlier}, earned {earned}"


def _refusals(report: LearningReport) -> Iterator[str]:
    if report.rules:
        yield "refused, by rule"
    for (rule, by), count in report.rules:
        yield f"  {count:>4}  {plain(rule, 40)} ({by})"


def _costs(report: LearningReport) -> Iterator[str]:
    if report.teacher == SOLUTIONS:
        yield NO_CALLS
    if not report.costs:
        return
    rows: list[Sequence[str]] = [
        ("cost", "calls", "failed", "input", "cached", "output", "USD")
    ]
    for cost in report.costs:
        sizes = (cost.calls, cost.failed, cost.input, cost.cached, cost.output)
        cells = [plain(cost.role, 11)]
        for size in sizes:
            cells.append("-" if size is None else f"{size:,}")
        cells.append("-" if cost.usd is None else f"{cost.usd:,.2f}")
        rows.append(cells)
    total = "not known" if report.usd is None else f"{report.usd:,.2f}"
    rows.append(("together", "", "", "", "", "", total))
    yield from aligned(rows)


def forecast_line(rows: Sequence[RoleForecast]) -> str:
    """Return what a run is expected to take, in a line."""
    calls = []
    money = f"{sum(row.usd or 0 for row in rows):.2f} USD"
    time = _time(rows)
    for row in rows:
        if row.expected.calls:
            calls.append(f"{row.expected.calls:,.0f} {row.role} calls")
        if row.usd is None:
            money = f"money unknown, no price for {row.model}"
        if row.model.startswith("exchange/"):
            time += " and the teacher's"
    more = "--dry-run says more, --max-usd and --max-calls bound it"
    return f"expected: {' and '.join(calls)}; {time}; {money}. {more}"


def forecast_lines(rows: Sequence[RoleForecast]) -> list[str]:
    """Return a line per role: what is expected, then what it takes at most."""
    table: list[Sequence[str]] = [("", "calls", "input tokens", "output tokens", "USD")]
    lines = []
    unpriced = set()
    for row in rows:
        usd = "unknown"
        if row.usd is None or row.most_usd is None:
            unpriced.add(row.model)
        else:
            usd = f"{row.usd:.2f} to {row.most_usd:.2f}"
        cells = [row.role]
        for name in ("calls", "input", "output"):
            expected = _short(getattr(row.expected, name))
            cells.append(f"{expected} to {_short(getattr(row.most, name))}")
        table.append((*cells, usd))
    if unpriced:
        models = ", ".join(sorted(unpriced))
        lines.append(
            f'no price for {models}: add [prices."NAME"] with input and output to '
            "kace.toml"
        )
    else:
        least = sum(row.usd or 0 for row in rows)
        most = sum(row.most_usd or 0 for row in rows)
        table.append(("in all", "", "", "", f"{least:.2f} to {most:.2f}"))
    if any(row.model == SOLUTIONS for row in rows):
        lines.append(NO_CALLS)
    lines.append(
        f"expected to at most, without prefix caches; expected time {_time(rows)}; "
        "nothing was spent"
    )
    return [*aligned(table), *lines]


def _time(rows: Sequence[RoleForecast]) -> str:
    minutes = sum(row.seconds for row in rows) / 60
    if minutes < 120:
        return f"about {minutes:,.0f} min"
    return f"about {minutes / 60:,.0f} hours"


def _short(number: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.0f}"


def calibration_lines(found: Calibration) -> Iterator[str]:
    """Yield the thresholds, and the losses that they come from."""
    yield (
        f"thresholds   a card is shown from {found.threshold:.3f} on, and skips ES from "
        f"{found.skip_threshold:.3f} on"
    )
    yield (
        f"harm         at most {found.bound:.2f} points shown, {found.skip_bound:.2f} "
        "skipping ES, in expectation, on problems of techniques that the tree lacks"
    )
    problems = counted(found.problems, "training problem")
    yield f"             from {problems}, {counted(found.runs, 'run')}"
    if max(found.bound, found.skip_bound) > found.max_harm:
        need = round(200 / found.max_harm)
        yield (
            f"             seen is at most {found.max_harm:g}; a bound as low takes "
            f"{need:,} problems"
        )
    for each in found.left_out[:10]:
        lost = f"{100 * each.loss:+.0f} % shown, {100 * each.skip_loss:+.0f} % skipping"
        yield f"  {each.score:.3f}  {each.card:<44} lost {lost}  on {each.problem}"
