"""An evaluation: every arm in figures, each compared with a base, and what a reader must know beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from kace.baselines.registry import Spec, spec_of
from kace.cards.card import Card, Status, lift_of
from kace.cards.tree import EpistemicTree
from kace.config import Price
from kace.errors import UsageError, redact
from kace.markup import seen
from kace.report.charts import NAMES
from kace.runs.compare import (
    Comparison,
    Harm,
    compare_all,
    p_text,
    pairs_of,
    warnings_of,
)
from kace.runs.manifest import Manifest
from kace.runs.metrics import NO_CARDS, Clusters, Metrics, clusters_of
from kace.runs.table import Table
from kace.words import counted, points

TEMPLATES = Path(__file__).parent / "templates"
GROUPS = {
    "tree": "With a tree",
    "other": "Without a tree",
    "ablation": "Ablations",
    "control": "Controls",
}
GROUPS |= {"ceiling": "Ceilings"}
ELSEWHERE = (
    "model",
    "base_url",
    "seed",
    "data_dir",
    "retrieval",
)  # settings that tell nothing of the system
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_SPECIAL = str.maketrans(
    {**{char: f"\\{char}" for char in "\\`*_{}[]#|~!$"}, **_ENTITIES}
)


@dataclass(frozen=True, slots=True)
class LiftRow:
    """A card's lift as tables and plots show it."""

    card_id: str
    place: str
    status: Status
    effect: float
    low: float
    high: float
    shown: int  # attempts with the card
    hidden: int  # attempts without it
    problems: int
    method: str

    @property
    def tells(self) -> bool:
        """Whether the interval leaves zero out."""
        return not self.low <= 0 <= self.high


def card_lifts(cards: Iterable[Card]) -> tuple[LiftRow, ...]:
    """The lift of every card that was measured, highest first."""
    found = []
    for card in cards:
        if (lift := lift_of(card)) and lift.counts:
            place = f"{card.difficulty_tag.value} / {', '.join(card.domain_tags)}"
            found.append(
                LiftRow(
                    card.card_id,
                    place,
                    card.status,
                    *lift.mark,
                    **lift.counts._asdict(),
                )
            )
    return tuple(sorted(found, key=lambda lift: (-lift.effect, lift.card_id)))


@dataclass(frozen=True, slots=True)
class RunSetup:
    """What produced an arm, as its run says; empty where the run does not."""

    name: str
    folder: str = ""
    model: str = ""
    data: str = ""
    split: str = ""
    data_hash: str = ""
    tree: str = ""
    kace: str = ""
    about: str = ""  # the arm in a line
    group: str = ""  # what kind of system it is


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Arms side by side."""

    title: str
    arms: tuple[Metrics, ...]  # in the order given
    base: str  # the arm that the others are compared with; empty where there is one arm
    comparisons: tuple[Comparison, ...]
    lifts: tuple[LiftRow, ...]  # of the cards of the tree that was given, highest first
    setups: tuple[RunSetup, ...]
    warnings: tuple[str, ...]
    cluster: str = "problem"  # what intervals and tests take as one observation, by the name of its field
    clusters: int = 0

    @property
    def best(self) -> Metrics | None:
        """The arm with the highest accuracy, the cheaper of equals; nothing where no answer is known."""
        known = [arm for arm in self.arms if arm.accuracy is not None]
        return max(
            known, key=lambda arm: (arm.accuracy or 0.0, -arm.paper_calls), default=None
        )

    @property
    def ordered(self) -> tuple[Metrics, ...]:
        """The arms as plots have them: the base, then group by group, the most accurate first."""
        places = {group: place for place, group in enumerate(GROUPS.values())}

        def place(arm: Metrics) -> tuple[bool, int, float]:
            return (
                arm.name != self.base,
                places.get(self.setup(arm.name).group, len(places)),
                -(arm.accuracy or 0.0),
            )

        return tuple(sorted(self.arms, key=place))

    def setup(self, name: str) -> RunSetup:
        """What produced an arm."""
        return next((each for each in self.setups if each.name == name), RunSetup(name))

    @property
    def resampled(self) -> str:
        """What the cluster is and how many there are, in a sentence."""
        whole = "the seeds" if self.cluster == "problem" else "all problems and seeds"
        many = counted(self.clusters, self.cluster)
        return (
            f"Intervals resample {many}: {whole} of one {self.cluster} stay together."
        )

    @property
    def ladders(self) -> tuple[Metrics, ...]:
        """The arms that have a ladder."""
        return tuple(arm for arm in self.arms if arm.exits)

    @property
    def harms(self) -> tuple[tuple[str, Harm], ...]:
        """What showing cards did in each arm that had some to show, by its name."""
        return tuple((each.other, each.harm) for each in self.comparisons if each.harm)

    def against_base(self, name: str) -> Comparison | None:
        """How an arm compares with the base; nothing for the base itself."""
        return next((found for found in self.comparisons if found.other == name), None)


def evaluation_of(
    arms: Sequence[Table], *, base: str | None = None, tree: EpistemicTree | None = None,
    prices: Mapping[str, Price] | None = None, cluster: str | None = None,
) -> Evaluation:  # fmt: skip
    """Everything a report says. The base is the first arm unless one is named; prices are by model.

    The cluster is a field of problems; left out, the family where every solve has one, else the problem itself.
    """
    if not arms:
        raise UsageError("no run to report on", fix="kace report RUN [RUN ...]")
    chosen = base_of(arms, base)
    clusters = clusters_of(arms, cluster)
    figures = tuple(
        _figures(arm, (prices or {}).get(arm.manifest.model), clusters) for arm in arms
    )
    firsts = {_spec(arm): arm for arm in reversed(arms)}  # of each system
    setups = tuple(_setup(arm, firsts[_spec(arm)]) for arm in arms)
    warnings = [*warnings_of(arms)]
    others = []
    for arm in arms:
        if arm is not chosen and any(pairs_of(chosen, arm)):
            others.append(arm)
        elif arm is not chosen and arm.counts().unlabelled < arm.counts().solves:
            alone = f"{arm.name} has no problem and seed in common with {chosen.name}"
            warnings.append(f"{alone}: the two are not compared.")
    names = {
        f"{setup.data}, {setup.split}" if setup.split else setup.data
        for setup in setups
    }
    title = names.pop() if len(names) == 1 else ""
    return Evaluation(
        title or (arms[0].name if len(arms) == 1 else counted(len(arms), "arm")),
        figures,
        base=chosen.name if len(arms) > 1 else "",
        comparisons=compare_all(chosen, others, clusters),
        cluster=clusters.field,
        clusters=clusters.count(arms),
        lifts=card_lifts(tree) if tree else (),
        setups=setups,
        warnings=tuple(warnings),
    )


def base_of(arms: Sequence[Table], name: str | None) -> Table:
    """The arm of that name, or the first where none is named."""
    if name is None:
        return arms[0]
    if found := next((arm for arm in arms if arm.name == name), None):
        return found
    fix = f"choose --base from {', '.join(arm.name for arm in arms)}"
    raise UsageError(f"no arm is called '{name[:60]}'", fix=fix)


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
    others = len(found.comparisons)
    told = sum(each.distinguishable for each in found.comparisons)
    said = (
        f"It is the base; {told} of the {others} other arms can be told from it."
        if others
        else ""
    )
    if compared := found.against_base(best.name):
        size = f"{points(compared.difference)} points, {' to '.join(map(points, compared.interval))}"
        word = (
            "does better than {}"
            if compared.distinguishable
            else "cannot be told from {} at this n"
        )
        said = f"It {word.format(compared.base)} ({size}, {p_text(compared.adjusted)})."
    elif others == 1:
        said = (
            f"It is the base; the other arm can{'' if told else 'not'} be told from it."
        )
    return f"Highest is {best.name}: {share}{seeds} ({low:.1%} to {high:.1%}), {calls}. {said}".rstrip()


def evaluation_json(found: Evaluation) -> str:
    """The evaluation as one line of JSON."""
    return TypeAdapter(Evaluation).dump_json(found).decode()


def _spec(arm: Table) -> Spec | None:
    """The row of an arm's system; `None` for an unknown one."""
    with suppress(UsageError):
        return spec_of(arm.manifest.system)
    return None


def _figures(arm: Table, price: Price | None, clusters: Clusters) -> Metrics:
    """The figures of an arm, with a note if its system reads a tree that is empty."""
    found = arm.metrics(price, clusters)
    spec = _spec(arm)
    if spec and spec.source == "tree" and not arm.manifest.part("tree"):
        return replace(found, note=NO_CARDS)
    return found


def _setup(arm: Table, first: Table) -> RunSetup:
    known = arm.manifest
    setup = RunSetup(
        arm.name,
        _place(arm.folder),
        known.model,
        known.data,
        known.split,
        known.data_hash,
        known.tree_hash,
        known.kace,
    )
    spec = _spec(arm)
    if not spec:
        return setup
    kind, _, about = spec.about.partition(";")[0].rpartition(": ")
    kind = kind if kind in GROUPS else "tree" if spec.source == "tree" else "other"
    k = known.part("system").get("k", spec.k)
    about = about.replace(f" {spec.k} ", f" {k} ")
    if changed := [*_settings_changed(arm, first)]:
        about = f"{first.name} with {' and '.join(changed[:2])}" + (
            " and more" if len(changed) > 2 else ""
        )
    return replace(setup, about=about, group=GROUPS[kind])


def _settings_changed(arm: Table, first: Table) -> Iterator[str]:
    """What an arm reads or does differently from another of the same system."""
    if arm.manifest.tree_hash != first.manifest.tree_hash:
        yield "another tree"
    configs = (each.manifest.part("config") for each in (arm, first))
    ours, theirs = (
        {**config, **Manifest(config).part("retrieval")} for config in configs
    )
    for name in dict.fromkeys((*ours, *theirs)):
        value = ours.get(name)
        if (
            value != theirs.get(name)
            and name not in ELSEWHERE
            and not isinstance(value, dict | list)
        ):
            yield f"{name} = {'none' if value is None else redact(str(value))[:40]}"


def _place(folder: Path | None) -> str:
    """Where a run is, without what is above the folder that the reader stands in."""
    if folder is None or not folder.is_absolute():
        return str(folder or "")
    inside = folder.is_relative_to(Path.cwd())
    return str(
        folder.relative_to(Path.cwd()) if inside else Path("…", *folder.parts[-2:])
    )


def markdown(found: Evaluation, pictures: Mapping[str, str] | None = None) -> str:
    """The report as text. `pictures` are links to the plots by title; nothing that came from outside is markup."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    pages = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        finalize=lambda value: (
            value if isinstance(value, Markup) else plain(str(value))
        ),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    pages.filters |= {
        "percent": lambda share: "–" if share is None else f"{share:.1%}",
        "percents": lambda interval: (
            "–" if interval is None else f"{interval[0]:.1%} to {interval[1]:.1%}"
        ),
        "points": points,
        "whole": lambda value: f"{value:,.0f}",
        "auc": lambda share: "–" if share is None else f"{share:.2f}",
        "logprob": lambda value: f"{value:.3f}".replace("-", "−"),
        "usd": lambda value: "–" if value is None else f"{value:,.2f}",
        "chance": lambda p: Markup(p_text(p).removeprefix("p ").removeprefix("= ")),
    }
    return pages.get_template("report.md").render(
        found=found, lead=lead(found), exits=NAMES, pictures=pictures or {}
    )


def plain(text: str) -> str:
    """Text from outside on one line, with every character that Markdown or HTML reads escaped."""
    return " ".join(seen(text).split()).translate(_SPECIAL)
