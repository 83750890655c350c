"""The paper's table for a benchmark as a list of commands, each of which can be run by hand and resumes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from kace.config import PAPER
from kace.systems.base import SYSTEMS, Need, spec_of

READING = tuple(
    word for name, value in PAPER.items() for word in (f"--{name.replace('_', '-')}", f"{value}".removesuffix(".0"))
)
"""The options that read a tree as the paper does."""
LADDER_CALLS = (5.4, 10.0)
"""Expected and most calls of the ladder a problem."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark of the paper, with what it reported for it."""

    name: str
    """As `kace reproduce` calls it, which is also its preset."""
    data: str
    epochs: int
    reported: Mapping[str, float]
    """Accuracy in percent by system, means over three seeds."""


BENCHMARKS: Mapping[str, Benchmark] = MappingProxyType(
    {
        each.name: each
        for each in (
            Benchmark(
                "aime25",
                "aime25",
                2,
                {
                    "single": 42.5,
                    "ace": 38.5,
                    "gepa": 51.0,
                    "domain-ace": 52.2,
                    "best-of-5": 51.8,
                    "tiered": 52.2,
                    "tiered-ace": 54.5,
                    "tiered-gepa": 56.6,
                    "kace": 62.2,
                    "kace-no-domain": 54.4,
                    "kace-reflections": 59.3,
                    "kace-monolithic": 51.6,
                    "kace-router": 56.4,
                    "kace-retriever": 56.2,
                },
            ),
            Benchmark(
                "math-hard",
                "math_hard",
                4,
                {"best-of-5": 72.7, "tiered": 73.3, "tiered-ace": 70.0, "tiered-gepa": 72.0, "kace": 77.3},
            ),
            Benchmark(
                "olymmath",
                "olymmath",
                2,
                {"best-of-5": 40.7, "tiered": 44.4, "tiered-ace": 40.7, "tiered-gepa": 44.4, "kace": 48.3},
            ),
        )
    }
)


@dataclass(frozen=True, slots=True)
class Work:
    """One command of a reproduction."""

    about: str
    command: tuple[str, ...]
    calls: tuple[float, float] | None
    """Expected and most solver calls, where they can be said beforehand."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is reproduced, with which models and where."""

    benchmark: Benchmark
    arms: tuple[str, ...]
    model: tuple[str, ...]
    """The options that name the solver and its settings, as every command takes them."""
    teacher: tuple[str, ...]
    out: Path
    seeds: int
    sizes: Mapping[str, int]
    """Problems of each split."""


def work(order: Order) -> tuple[Work, ...]:
    """Everything to be done, in order."""
    needs = {need for arm in order.arms for need in spec_of(arm).needs}
    own_tree = any(_reads_learned_tree(arm) for arm in order.arms)
    trained = [name for name in TRAINERS if any(_trained_by(arm) == name for arm in order.arms)]
    todo = _learning(order) if Need.TREE in needs and own_tree else []
    todo += [_training(name, order) for name in trained]
    todo += [_evaluation(arm, order) for arm in order.arms]
    runs = [str(order.out / "runs" / arm) for arm in order.arms]
    todo.append(Work("the page", ("report", *runs, "--out", str(order.out / "report")), None))
    return tuple(todo)


TRAINERS = ("ace", "domain-ace", "gepa", "reflections")


def default_arms(benchmark: Benchmark) -> tuple[str, ...]:
    """What the paper reports for the benchmark, then the controls it lists as missing, in the order of reports."""
    controls = ("kace-random", "kace-placebo", "kace-scaffold")
    return tuple(name for name in SYSTEMS if name in benchmark.reported or name in controls)


def data_file(order: Order, split: str) -> Path:
    """Where a split is written for the commands that read files."""
    return order.out / "data" / f"{split}.jsonl"


def _learning(order: Order) -> list[Work]:
    tree, train, validation = order.out / "tree", data_file(order, "train"), data_file(order, "validation")
    held = ("--held-out", str(validation), "--held-out", str(data_file(order, "test")))
    dials = ("--epochs", str(order.benchmark.epochs), "--examples", "0", *READING)
    learn = ("learn", "--train", str(train), *held, *dials, *order.model, *order.teacher, "--out", str(tree))
    chosen = ("--val", str(validation), str(tree), "--out", str(order.out / "chosen"))
    n = order.sizes["validation"] * (order.benchmark.epochs + 1)
    return [
        Work(f"learn a tree from {order.sizes['train']} problems (see its own --dry-run)", learn, None),
        Work("choose the epoch on validation", ("select", *chosen), (LADDER_CALLS[0] * n, LADDER_CALLS[1] * n)),
    ]


def _training(name: str, order: Order) -> Work:
    train = ("--train", str(data_file(order, "train")))
    command = ("train", name, *train, *order.model, *order.teacher, "--out", str(order.out / "trained" / name))
    return Work(f"train {name}", command, None)


def _evaluation(arm: str, order: Order) -> Work:
    spec = spec_of(arm)
    learned: tuple[str, ...] = ()
    if _reads_learned_tree(arm):
        learned = ("--tree", str(order.out / "chosen"))
    elif (trainer := _trained_by(arm)) is not None:
        option = "--tree" if Need.TREE in spec.needs else "--artefact"
        learned = (option, str(order.out / "trained" / trainer))
    data = ("--data", str(data_file(order, "test")), "--seeds", str(order.seeds))
    # Ladders ask the same at ES: paid once, and what differs between them is what they read.
    first = next((each for each in order.arms if _climbs(each)), arm)
    shared = ("--reuse", str(order.out / "runs" / first)) if _climbs(arm) and arm != first else ()
    asked = (*data, *order.model, *READING, *learned, *shared)
    command = ("eval", "--system", arm, *asked, "--out", str(order.out / "runs" / arm))
    solves = order.sizes["test"] * order.seeds
    expected, most = _calls(arm)
    return Work(f"{arm} on {order.sizes['test']} test problems", command, (expected * solves, most * solves))


def _climbs(arm: str) -> bool:
    return arm.startswith(("tiered", "kace"))


def _reads_learned_tree(arm: str) -> bool:
    needs = spec_of(arm).needs
    return Need.TREE in needs and Need.TRAIN not in needs


def _trained_by(arm: str) -> str | None:
    name = arm.removeprefix("tiered-").removeprefix("kace-")
    return name if Need.TRAIN in spec_of(arm).needs and name in TRAINERS else None


def _calls(arm: str) -> tuple[float, float]:
    if arm in ("single", "ace", "domain-ace", "gepa"):
        return 1.0, 1.0
    if arm.startswith("best-of-"):
        n = float(arm.removeprefix("best-of-"))
        return n, n
    return LADDER_CALLS


def total(todo: Sequence[Work]) -> tuple[float, float]:
    """Expected and most calls of the commands that can say them."""
    known = [each.calls for each in todo if each.calls]
    return sum(low for low, _ in known), sum(high for _, high in known)
