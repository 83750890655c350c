"""The work of `kace learn`: a tree or what another method makes, with its progress and its report."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Self

from kace.cli.learn_show import forecast_lines, report_lines
from kace.cli.models import ensure_weights
from kace.cli.options import Typed
from kace.cli.streams import note, print_lines, run_async, write_output
from kace.cli.terminal import LiveTable, plain, terminal
from kace.config import Config, profile_of
from kace.errors import DataError, UsageError
from kace.io import write_atomic
from kace.learner.admit import Demonstrations, Rulings
from kace.learner.commit import InterimAnalysis
from kace.learner.costs import forecast
from kace.learner.effects import Impact
from kace.learner.leakage import ContaminationHashes
from kace.learner.loop import learn
from kace.learner.propose import Proposals
from kace.learner.report import report_json, report_of
from kace.learner.resources import Routes, RunTotals
from kace.learner.steps import Kept, StepName, TreeVersion
from kace.learner.study import LearnPlan, Settings, check_training, open_study, refuse_overlap
from kace.learner.wall import raise_wall
from kace.models.budget import Ledger
from kace.problem import Problem, load_problems
from kace.solver.records import Attempt
from kace.systems.ace import AceSettings, Studied, train_ace
from kace.systems.gepa import GepaSettings, Rollouts, require_gepa, train_gepa
from kace.systems.reflections import Reflected, train_reflections
from kace.systems.training import MethodSettings, Training, TrainPlan, open_training
from kace.tree.store import open_tree

if TYPE_CHECKING:
    from rich.console import RenderableType

STEPS_KEPT = 8


def learn_tree(typed: Typed, train: Path, out: Path, epochs: int | None, wait: bool | None, *, dry_run: bool) -> None:
    """Learn a tree and report on it, or say what it would take."""
    config = typed.config(*Settings.model_fields, exchange_wait=wait)
    settings = typed.learning(Settings, profile_of(config.profile).get("learning", {}), epochs=epochs)
    problems, kept_out = _training_data(train, typed)
    if dry_run:
        rows = forecast(problems, config, settings)
        told = [json.dumps([asdict(row) for row in rows])] if typed.as_json else forecast_lines(rows)
        return write_output("".join(f"{line}\n" for line in told), None)
    _wall_in(config, train, out)

    async def work() -> None:
        plan = LearnPlan(problems, config, settings, out, ContaminationHashes.of(kept_out))
        async with open_study(plan, observer=progress) as (study, progress.ledger):
            await learn(study)

    with LearnProgress(settings.epochs) as progress:
        run_async(work(), resumable=True)
    show_report(out, None, as_json=typed.as_json)


def show_report(tree: Path, html: Path | None, *, as_json: bool) -> None:
    """The report of a tree that was learned, on standard output and as a page."""
    from kace.web.learner_report import page

    found, place = report_of(tree), html or tree / "learn" / "report.html"
    write_atomic(place, page(found))
    if as_json:
        write_output(report_json(found) + "\n", None)
    else:
        print_lines(report_lines(found))
    note(f"page         {place}")


def train_method(
    method: str, typed: Typed, train: Path, out: Path, validation: Path | None, epochs: int | None, wait: bool | None
) -> None:
    """Train another method, and say what was made."""
    if validation is not None and method != "gepa":
        raise UsageError(f"--validation is not an option of {method}", fix="only gepa chooses by validation problems")
    if typed.tree is not None and method not in ("domain-ace", "reflections"):
        raise UsageError(f"--tree is not an option of {method}", fix="only domain-ace and reflections use its domains")
    if method == "gepa":
        require_gepa()
    kind = {"gepa": GepaSettings, "reflections": MethodSettings}.get(method, AceSettings)
    config = typed.config(*kind.model_fields, exchange_wait=wait)
    chosen = load_problems(validation, typed.fields) if validation else ()
    if bare := next((problem for problem in chosen if problem.answer is None), None):
        raise DataError(f"validation problem {bare.name!r} has no answer", fix="every problem needs its answer here")
    problems, settings = _training_data(train, typed)[0], typed.learning(kind, {}, epochs=epochs)
    domains = open_tree(typed.tree).domains if typed.tree else ()
    plan = TrainPlan(method, problems, config, settings, out, domains, chosen)
    _wall_in(config, train, out)

    def tell(step: StepName, value: Kept, fresh: bool) -> None:
        if fresh:
            note(f"kace: {step}: {outcome(value)}")

    async def work() -> tuple[list[str], Ledger]:
        async with open_training(plan, tell=tell) as training:
            return await _made(training, out), training.session.ledger

    lines, ledger = run_async(work(), resumable=True)
    roles = ", ".join(f"{role} {spent.calls}" for role, spent in sorted(ledger.roles.items()))
    calls = f"calls        {roles or 'none: everything was kept'}"
    print_lines([*lines, calls, f"cost         {ledger.usd:.4f} USD"])


async def _made(training: Training, out: Path) -> list[str]:
    if training.plan.method == "gepa":
        prompt = await train_gepa(training)
        chosen, first = prompt.candidates[prompt.best], prompt.candidates[0]
        return [
            f"prompt       {out / 'prompt.json'}",
            f"candidates   {len(prompt.candidates)}, after {prompt.metric_calls} evaluations",
            f"score        {chosen.score:.1%}, {first.score:.1%} with the prompt it began with",
        ]
    if training.plan.method == "reflections":
        return [f"tree         {out}", f"cards        {len(await train_reflections(training))}"]
    books = await train_ace(training)
    held = ", ".join(f"{name} {len(playbook.bullets)}" for name, playbook in books.playbooks.items())
    return [f"playbook     {out / 'playbook.json'}", f"bullets      {held}"]


def _training_data(path: Path, typed: Typed) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """The problems to learn from, and all those of the evaluation splits that are named, which hold none of them."""
    problems = load_problems(path, typed.fields)[: typed.limit]
    check_training(problems)
    splits = {split: load_problems(split, typed.fields) for split in typed.held_out}
    for split, found in splits.items():
        refuse_overlap(problems, found, str(split))
    return problems, tuple(problem for found in splits.values() for problem in found)


def _wall_in(config: Config, train: Path, out: Path) -> None:
    """Fetch weights, then let this process open the training file, its own folder, a teacher's folder, and no more."""
    ensure_weights(config)
    models = (config.model, config.teacher or "")
    folders = [Path(name.partition("/")[2]) for name in models if name.startswith(("exchange/", "replay/", "local/"))]
    raise_wall([train, out, config.cache_dir, *folders])


def _studied(value: Studied) -> str:
    size = f"{'about ' if value.estimated else ''}{value.tokens} tokens"
    left = f", {len(value.dropped)} given up for the budget" if value.dropped else ""
    return (
        f"{value.right} right, {value.wrong} wrong, {value.failed} failed; {len(value.operations)} changes"
        f" ({len(value.refused)} refused); {len(value.playbook.bullets)} bullets, {size}{left}"
    )


OUTCOMES: Mapping[type[Kept], Callable[[Any], str]] = {
    RunTotals: lambda run: f"{run.correct} of {run.problems} right, {run.escalated} past ES",
    Routes: lambda routes: f"{len(routes.domains)} problems placed, {list(routes.domains.values()).count(())} nowhere",
    Proposals: lambda found: f"{len(found.cards)} cards{f', {len(found.refused)} unusable' if found.refused else ''}",
    Rulings: lambda ruled: f"{len(ruled.admitted)} admitted, {len(ruled.refused)} refused",
    Demonstrations: lambda found: (
        f"{sum(bool(c.examples) for c in found.cards)} of {len(found.cards)} cards with examples"
    ),
    TreeVersion: lambda tree: f"{tree.cards} cards in the tree",
    Impact: lambda impact: f"{len(impact.lifts)} lifts measured, {len(impact.fires)} cards fired",
    InterimAnalysis: lambda look: f"{'kept' if look.accepted else 'not kept'}: {look.reason}",
    Studied: _studied,
    Rollouts: lambda some: f"{sum(each.score > 0 for each in some.rollouts)} of {len(some.rollouts)} right",
    Reflected: lambda made: f"{len(made.cards)} cards, {len(made.refused)} refused, {made.failed} failed",
}


def outcome(value: Kept) -> str:
    """A step's result in a few words."""
    return OUTCOMES.get(type(value), lambda _: "done")(value)


class LearnProgress(LiveTable):
    """Where a learning run is, what came of the cards, what it costs: a panel in a terminal, else a line a step."""

    def __init__(self, epochs: int) -> None:
        self.epochs = epochs
        self.ledger: Ledger | None = None
        self.cards = Counter({"proposed": 0, "admitted": 0, "refused": 0, "in the tree": 0})
        self.runs: list[RunTotals] = []
        self.now = StepName("plan", "partition")
        self.problems = self.attempts = 0
        self.recent: list[str] = []
        super().__init__(0)  # draws the panel
        self._live.transient = False

    def attempted(self, problem: Problem, attempt: Attempt) -> None:
        """An attempt has ended."""
        self.attempts += 1

    def run_started(self, step: StepName, problems: int, done: int) -> None:
        """A run begins."""
        self.now = step
        if self.done >= self.problems:
            self.problems = self.done = self.right = 0
        self.problems += problems  # reruns of several domains go side by side
        self.done += done
        if not terminal():
            note(f"kace: {step}: {problems} problems" + (f", {done} done before" if done else ""))

    def step_done(self, step: StepName, value: Kept, fresh: bool) -> None:
        """A step is done."""
        self.now = step
        self.recent = [*self.recent, f"{step}: {outcome(value)}"][-STEPS_KEPT:]
        match value:
            case Proposals():
                self.cards.update(proposed=len(value.cards) + len(value.refused), refused=len(value.refused))
            case Rulings():
                self.cards.update(admitted=len(value.admitted), refused=len(value.refused))
            case TreeVersion():
                self.cards["in the tree"] = value.cards
            case RunTotals() if step.what in ("run", "base"):  # runs on all problems, so that they compare
                self.runs.append(value)
        if fresh and not terminal():
            note(f"kace: {self.recent[-1]}")

    def __enter__(self) -> Self:
        if terminal():
            super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        if self.ledger and not terminal():
            cards, spent = self.told()
            note(f"kace: cards: {cards}{spent}")

    def told(self) -> tuple[str, str]:
        """What has come of the teacher's cards so far, and the calls and money of this session."""
        cards = ", ".join(f"{count} {name}" for name, count in self.cards.items())
        if self.ledger is None:
            return cards, ""
        roles = ", ".join(f"{role} {spent.calls}" for role, spent in sorted(self.ledger.roles.items()))
        return cards, f"; calls: {roles or 'none'}; {self.ledger.usd:.4f} USD"

    def _render(self) -> RenderableType:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.text import Text

        epoch = f"epoch {self.now.epoch} of {self.epochs}" if self.now.epoch else "outside the epochs"
        where = " ".join(part for part in (self.now.phase, self.now.place, self.now.what) if part)
        now = Text(f"{epoch}: {where}, {monotonic() - self.began:.0f} s", style="bold")
        bar = [ProgressBar(self.problems, min(self.done, self.problems), width=40)] if self.problems else []
        so_far = f"{self.done} of {self.problems}, {self.right} right, {self.attempts} attempts"
        cards, spent = self.told()
        lines = [f"problems     {so_far}"] if bar else []
        lines.append(f"cards        {cards}")
        if len(self.runs) > 1:
            first, last = (f"{run.correct} of {run.problems}" for run in (self.runs[0], self.runs[-1]))
            lines.append(f"accuracy     {first} in the first run, {last} in the last")
        recent = [Text(plain(line), style="dim") for line in self.recent]
        return Group(*recent, now, *bar, *map(Text, (*lines, f"spent{spent}")))
