"""An evaluation: every arm in figures, each compared with a base, and what a reader must know beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from kace.errors import UsageError
from kace.evaluation.arm import Arm
from kace.evaluation.card_lifts import CardLift, card_lifts
from kace.evaluation.compare import Comparison, compare_all, p_text
from kace.evaluation.metrics import Metrics, metrics_of
from kace.models.budget import Price
from kace.solver.manifest import manifest_part, manifest_text
from kace.tree.tree import EpistemicTree
from kace.words import counted, points


@dataclass(frozen=True, slots=True)
class Setup:
    """What produced an arm, as its run says; empty where the run does not."""

    name: str
    folder: str
    model: str
    data: str
    split: str
    data_hash: str
    tree: str
    kace: str


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Arms side by side."""

    title: str
    arms: tuple[Metrics, ...]
    """In the order given."""
    base: str
    """The arm that the others are compared with; empty where there is one arm."""
    comparisons: tuple[Comparison, ...]
    lifts: tuple[CardLift, ...]
    """Of the cards of the tree that was given, highest first."""
    setups: tuple[Setup, ...]
    warnings: tuple[str, ...]

    @property
    def best(self) -> Metrics | None:
        """The arm with the highest accuracy, the cheaper of equals; nothing where no answer is known."""
        known = [arm for arm in self.arms if arm.accuracy is not None]
        return max(known, key=lambda arm: (arm.accuracy or 0.0, -arm.paper_calls), default=None)

    @property
    def ladders(self) -> tuple[Metrics, ...]:
        """The arms that have a ladder."""
        return tuple(arm for arm in self.arms if sum(arm.exits.values()))

    def against_base(self, name: str) -> Comparison | None:
        """How an arm compares with the base; nothing for the base itself."""
        return next((found for found in self.comparisons if found.other == name), None)


def evaluation_of(
    arms: Sequence[Arm],
    *,
    base: str | None = None,
    tree: EpistemicTree | None = None,
    prices: Mapping[str, Price] | None = None,
) -> Evaluation:
    """Everything a report says. The base is the first arm unless one is named; prices are by model."""
    if not arms:
        raise UsageError("no run to report on", fix="kace report RUN [RUN ...]")
    chosen = base_of(arms, base)
    figures = tuple(metrics_of(arm, (prices or {}).get(arm.model)) for arm in arms)
    setups = tuple(_setup(arm) for arm in arms)
    labelled = [arm for arm, found in zip(arms, figures, strict=True) if found.accuracy is not None]
    others, strangers = _paired(chosen, [arm for arm in labelled if arm is not chosen])
    return Evaluation(
        title=_title(setups),
        arms=figures,
        base=chosen.name if len(arms) > 1 else "",
        comparisons=compare_all(chosen, others) if others else (),
        lifts=card_lifts(tree) if tree else (),
        setups=setups,
        warnings=(*_differing(setups), *_incomplete(figures), *strangers),
    )


def base_of(arms: Sequence[Arm], name: str | None) -> Arm:
    """The arm of that name, or the first where none is named."""
    if name is None:
        return arms[0]
    found = next((arm for arm in arms if arm.name == name), None)
    if found is None:
        raise UsageError(
            f"no arm is called '{name[:60]}'", fix=f"choose --base from {', '.join(arm.name for arm in arms)}"
        )
    return found


def lead(found: Evaluation) -> str:
    """What came of it, in a sentence or two."""
    best = found.best
    if best is None or best.accuracy is None or best.wilson is None:
        return f"{counted(len(found.arms), 'arm')}, and no known answer to measure an accuracy by."
    low, high = best.wilson
    share = f"{best.accuracy:.1%} of {counted(best.problems, 'problem')}"
    seeds = f" over {counted(len(best.seeds), 'seed')}" if len(best.seeds) > 1 else ""
    calls = f"with {best.paper_calls:.2f} calls a problem"
    if len(found.arms) == 1:
        return f"{best.name} answered {share}{seeds} correctly ({low:.1%} to {high:.1%}), {calls}."
    compared = found.against_base(best.name)
    said = _against(compared) if compared else _of_the_base(found)
    return f"Highest is {best.name}: {share}{seeds} ({low:.1%} to {high:.1%}), {calls}. {said}".rstrip()


def evaluation_json(found: Evaluation) -> str:
    """The evaluation as one line of JSON."""
    return TypeAdapter(Evaluation).dump_json(found).decode()


def _against(found: Comparison) -> str:
    size = f"{points(found.difference)} points, {points(found.interval.low)} to {points(found.interval.high)}"
    told = f"({size}, {p_text(found.adjusted)})"
    if found.distinguishable:
        return f"It does better than {found.base} {told}."
    return f"It cannot be told from {found.base} with this many problems {told}."


def _paired(base: Arm, others: Sequence[Arm]) -> tuple[tuple[Arm, ...], list[str]]:
    """The arms that share solves with the base, and what to say of the others."""
    ours = _labelled(base)
    apart = [arm.name for arm in others if ours.isdisjoint(_labelled(arm))]
    said = [f"{name} has no problem and seed in common with {base.name}: the two are not compared." for name in apart]
    return tuple(arm for arm in others if arm.name not in apart), said


def _labelled(arm: Arm) -> set[tuple[str, int]]:
    return {(row.problem, row.seed) for row in arm.rows if row.correct is not None}


def _of_the_base(found: Evaluation) -> str:
    """The best arm is the base: what can be said of the others."""
    others, told = len(found.comparisons), sum(each.distinguishable for each in found.comparisons)
    if others < 2:
        return f"It is the base; the other arm can{'' if told else 'not'} be told from it." if others else ""
    return f"It is the base; {told} of the {others} other arms can be told from it."


def _title(setups: Sequence[Setup]) -> str:
    names = {f"{setup.data}, {setup.split}" if setup.split else setup.data for setup in setups}
    if len(names) == 1 and (only := names.pop()):
        return only
    return setups[0].name if len(setups) == 1 else counted(len(setups), "arm")


def _setup(arm: Arm) -> Setup:
    data, tree = manifest_part(arm.manifest, "data"), manifest_part(arm.manifest, "tree")
    return Setup(
        name=arm.name,
        folder=str(arm.folder or ""),
        model=arm.model,
        data=manifest_text(data.get("name")),
        split=manifest_text(data.get("split")),
        data_hash=arm.data,
        tree=manifest_text(tree.get("hash")),
        kace=manifest_text(arm.manifest.get("kace")),
    )


def _differing(setups: Sequence[Setup]) -> list[str]:
    """Arms that are not alike in what should be alike."""
    said = []
    if len({setup.model for setup in setups}) > 1:
        said.append("The arms have different solvers: differences are not those of the systems alone.")
    if len({setup.data_hash for setup in setups}) > 1:
        said.append("The arms were not run on the same problems: comparisons hold for those they share.")
    return said


def _incomplete(arms: Sequence[Metrics]) -> list[str]:
    said = []
    for arm in arms:
        if not arm.complete:
            said.append(f"{arm.name} is not complete: some problems are missing on some seeds.")
        if 0 < arm.labelled < arm.solves:
            said.append(
                f"{arm.name}: {arm.solves - arm.labelled:,} of {counted(arm.solves, 'solve')} have no known answer and "
                "are in no accuracy."
            )
        if arm.failed:
            said.append(
                f"{arm.name}: {counted(arm.failed, 'solve')} lost a call to the provider and count as they are."
            )
        if arm.damaged:
            said.append(f"{arm.name}: {counted(arm.damaged, 'line')} of the trace could not be read.")
    return said
