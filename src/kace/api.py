"""The Python functions behind the commands.

The functions without an `a` in front work in scripts and in notebooks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kace.cards.card import Card
from kace.cards.diff import TreeDiff, diff
from kace.cards.formats import read_text_card
from kace.cards.store import TreeStore, author, open_tree
from kace.cards.tree import Add, Domain, EpistemicTree
from kace.config import Config, load_config, profile_of, tree_path
from kace.errors import DataError, UsageError
from kace.ladder.ladder import Observer
from kace.ladder.ladder import solve as solve_one
from kace.ladder.record import Solution
from kace.ladder.session import open_session
from kace.ladder.tiers import TierName
from kace.models.base import ChatModel
from kace.models.budget import Ledger
from kace.models.cache import CallStore
from kace.problems import (
    MAX_LINE_BYTES,
    Problem,
    check_problem_text,
    load_problems,
    problems_hash,
)
from kace.runs.manifest import manifest_of
from kace.runs.run import OnSolution, Run, climb_with, solve_all
from kace.runs.table import with_texts
from kace.words import counted

if TYPE_CHECKING:
    from kace.problems import Dataset
    from kace.runs.compare import Comparison
    from kace.runs.table import RecordedRun

T = TypeVar("T")
POLL = 0.2  # seconds between checks for an interrupt
Problems = str | Path | Iterable[str | Problem]
"""A JSONL file, or problems and their texts."""
NO_STORE = "begin one with kace.Tree.create, or open a tree's directory"


async def asolve(
    problem: str | Problem,
    model: str | ChatModel | None = None,
    **settings: object,
) -> Solution:
    """Solve one problem: its text, or a `Problem`.

    `model` is a `provider/name`, an open `ChatModel` (which stays the caller's to
    close), or `None` for the embedded default. Settings are those of `kace.Config`,
    such as `tree`, `preset`, `seed`, `base_url` or `max_calls`. Raises `KaceError` for
    what the caller can fix: an unknown model, a missing key, a cap that was reached.
    """
    config, given = _configured(model, settings)
    return await asolve_config(_problems([problem])[0], config, given)


async def asolve_config(
    problem: Problem,
    config: Config,
    model: ChatModel | None = None,
    observer: Observer | None = None,
) -> Solution:
    """Solve one problem under a resolved configuration."""
    tree = open_tree(config.tree) if config.tree else None
    with _open_calls(config, model, problem.id) as calls:
        async with open_session(
            config, calls=calls, model=model, tree=tree, observer=observer
        ) as session:
            return await solve_one(problem, session.kit)


@contextmanager
def _open_calls(
    config: Config, model: ChatModel | None, name: str
) -> Iterator[CallStore | None]:
    """Open the cached calls of one problem or set of problems.

    Each has a folder of its own, so that opening it stays fast. Replies of an open
    model are not cached, since it has no identity that a later process could trust.
    """
    if model is not None or not config.cache:
        yield None
        return
    calls = CallStore(config.cache_dir / "calls" / name)
    try:
        yield calls
    finally:
        calls.close()


def solve(
    problem: str | Problem,
    model: str | ChatModel | None = None,
    **settings: object,
) -> Solution:
    """Solve one problem, from code that is not async (a notebook, too). See `asolve`."""
    return _run(asolve(problem, model, **settings))


async def asolve_many(
    problems: Problems,
    model: str | ChatModel | None = None,
    *,
    out: str | Path | None = None,
    **settings: object,
) -> list[Solution]:
    """Solve many problems side by side; the solutions come in the order of the problems.

    Problems are a JSONL file, or a list of texts and `Problem`s. With `out` they are
    kept in a run directory, which the same call resumes and `load_run`, `kace view` and
    `kace report` read. Model and settings are those of `asolve`.
    """
    config, given = _configured(model, settings)
    asked = _problems(problems, config)
    once = list({problem.id: problem for problem in asked}.values())
    tree = open_tree(config.tree) if config.tree else None
    found: dict[str, Solution] = {}

    def keep(solution: Solution) -> None:
        found[solution.problem] = solution

    if out is not None:
        manifest = manifest_of(config, tree)
        with Run(Path(out), manifest, texts=config.problem_texts) as run:
            await solve_into(
                run, once, config, tree, model=given, on_solved=keep
            )
            return [
                with_texts(found[problem.id], run.calls) for problem in asked
            ]
    with _open_calls(config, given, problems_hash(once)[:16]) as calls:
        async with open_session(
            config, calls=calls, model=given, tree=tree
        ) as session:
            await solve_all(once, session.kit, session.window, keep)
    return [found[problem.id] for problem in asked]


async def solve_into(
    run: Run,
    problems: Sequence[Problem],
    config: Config,
    tree: EpistemicTree | None,
    *,
    on_solved: OnSolution,
    model: ChatModel | None = None,
    observer: Observer | None = None,
) -> Ledger:
    """Solve what is pending in a run, and return what it took.

    `on_solved` is called with every solution, those of before too.
    """

    def on_known(solution: Solution) -> None:
        on_solved(solution)
        if observer:
            observer.solved(solution)

    calls = run.calls if model is None else None
    async with open_session(
        config, calls=calls, model=model, tree=tree, observer=observer
    ) as session:
        await run.solve(
            problems,
            climb_with(session.kit),
            config.seed,
            session.window,
            on_solved=on_solved,
            on_known=on_known,
        )
        return session.ledger


def solve_many(
    problems: Problems,
    model: str | ChatModel | None = None,
    *,
    out: str | Path | None = None,
    **settings: object,
) -> list[Solution]:
    """Solve many problems, from code that is not async. See `asolve_many`."""
    return _run(asolve_many(problems, model, out=out, **settings))


def evaluate(
    system: str = "tiered",
    data: Problems = "starter",
    model: str | ChatModel | None = None,
    *,
    split: str = "test",
    seeds: int = 3,
    limit: int | None = None,
    out: str | Path | None = None,
    reuse: Sequence[str | Path] = (),
    artefact: str | Path | None = None,
    k: int | None = None,
    **settings: object,
) -> RecordedRun:
    """Evaluate a system on a data set, as `kace eval` does; the same call resumes its run.

    The system is one of `kace eval --system list`: `tiered` is the ladder alone, `kace`
    reads the `tree` among the settings. Data is a name from `kace data list`, a JSONL
    file, or labelled problems. `reuse` names runs whose calls are not paid again,
    `artefact` what another method learned, and `k` how many single cards some systems
    pick.
    """
    from kace.baselines.evaluate import Trial, run_trial
    from kace.baselines.systems import require
    from kace.config import benchmark_preset
    from kace.runs.table import load_run

    named = model if isinstance(model, str | None) else model.name
    preset = benchmark_preset(data, named) if isinstance(data, str) else None
    config, given = _configured(model, {"preset": preset, **settings})
    tree = open_tree(config.tree) if config.tree else None
    learned = Path(artefact) if artefact else None
    name = require(system, tree, learned, k).name  # before there is a folder
    trial = Trial(
        name, _data(data, split, config, limit), config, seeds, tree, learned, k
    )
    folder = trial.folder() if out is None else Path(out)
    with trial.open(folder, [Path(each) for each in reuse]) as run:
        _run(run_trial(trial, run, model=given))
    return load_run(folder)


def compare(
    base: str | Path | RecordedRun,
    other: str | Path | RecordedRun,
    *,
    cluster: str | None = None,
) -> Comparison:
    """Compare two runs, as `kace report` does.

    `cluster` is what counts as one observation: `problem`, `family`, `domain`, or a
    field of the runs' problems.jsonl; by default the family if every solve has one.
    """
    from kace.runs.compare import compare as compare_tables
    from kace.runs.metrics import clusters_of
    from kace.runs.table import open_tables

    tables = open_tables([Path(base), Path(other)])
    return compare_tables(tables[0], tables[1], clusters_of(tables, cluster))


def learn(
    train: Problems,
    out: str | Path,
    teacher: str | ChatModel | None = None,
    model: str | ChatModel | None = None,
    *,
    held_out: Problems = (),
    quick: bool = False,
    **settings: object,
) -> Tree:
    """Learn a tree from labelled problems, as `kace learn` does; the same call resumes it.

    The teacher is a model, or `solutions`: then cards are made of the problems' own worked solutions. No training
    problem may be `held_out`, and no card may retell one. Settings are those of `kace.Config` and of learning, such as
    `epochs`. It runs in your process, so it cannot take other files away from it, as the command's wall does.
    """
    from kace.learning.loop import learn as learn_tree
    from kace.learning.propose import untaught_settings
    from kace.learning.screen import HeldOutHashes
    from kace.learning.study import (
        QUICK,
        LearnPlan,
        Settings,
        check_training,
        open_study,
        read_settings,
        refuse_overlap,
    )
    from kace.learning.teacher import SOLUTIONS

    asked = teacher if isinstance(teacher, ChatModel) else None
    others = {
        name: value
        for name, value in settings.items()
        if name not in Settings.model_fields
    }
    config, given = _configured(
        model, {"teacher": teacher if asked is None else asked.name, **others}
    )
    base = {
        **profile_of(config.profile).get("learning", {}),
        **(QUICK if quick else {}),
    }
    chosen = {
        name: value
        for name, value in settings.items()
        if name in Settings.model_fields
    }
    dials = read_settings(Settings, {**base, **chosen})
    if config.teacher == SOLUTIONS:
        dials = untaught_settings(config, dials)
    problems = _problems(train, config)
    kept_out = _problems(held_out, config)
    check_training(problems)
    refuse_overlap(problems, kept_out, "what is held out")
    plan = LearnPlan(
        problems, config, dials, Path(out), HeldOutHashes.of(kept_out)
    )

    async def work() -> None:
        async with open_study(plan, model=given, teacher=asked) as study:
            await learn_tree(study)

    _run(work())
    return Tree.open(out)


class _Configured(NamedTuple):
    config: Config
    model: ChatModel | None  # if it was given open


def _configured(
    model: str | ChatModel | None, settings: dict[str, object]
) -> _Configured:
    given = model if isinstance(model, ChatModel) else None
    name = given.name if given else model
    return _Configured(load_config({"model": name, **settings}), given)


def _problems(
    given: Problems, config: Config | None = None
) -> tuple[Problem, ...]:
    if isinstance(given, str | Path):
        return load_problems(given, config.fields if config else None)
    problems = tuple(
        each if isinstance(each, Problem) else Problem(each) for each in given
    )
    for problem in problems:
        check_problem_text(problem.text)
    return problems


def _data(
    given: Problems, split: str, config: Config, limit: int | None
) -> Dataset:
    from kace.problems import ALL, Dataset, labelled, load_dataset, set_hash

    if not isinstance(given, str | Path):
        problems = _problems(given)
        if not problems:
            raise UsageError(
                "no problems were given",
                fix="give a data set, a JSONL file, or a list of problems",
            )
        return labelled(
            Dataset("problems", ALL, problems, set_hash(problems), "given"),
            limit,
        )
    return labelled(load_dataset(given, split, config), limit)


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run async work to its end.

    A notebook already runs a loop in this thread; the work then gets a thread of its
    own, and an interrupt, which reaches this thread alone, cancels it there.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    tasks: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[T] | None]] = []

    async def run_task() -> T:
        tasks.append((asyncio.get_running_loop(), asyncio.current_task()))
        return await work

    def cancel() -> None:
        for loop, task in tasks:
            if task and not loop.is_closed():
                loop.call_soon_threadsafe(task.cancel)

    with ThreadPoolExecutor(1) as pool:
        # Starts the thread: an interrupt while it starts would not be waited for.
        pool.submit(int).result()
        try:
            done = pool.submit(copy_context().run, asyncio.run, run_task())
            # A wait without end would miss a signal that came just before it.
            while wait([done], POLL).not_done:
                pass
            return done.result()
        except KeyboardInterrupt:
            cancel()
            raise


class Tree:
    """A tree of cards: a directory, or a read-only file of cards or `starter`.

    It may be the `tree` of `solve`, `solve_many` and `evaluate`.
    """

    def __init__(self, path: str | Path) -> None:
        """Open the tree at a path, or `starter`, which ships with kace."""
        self.path = tree_path(path)
        self._store = TreeStore.open(self.path) if self.path.is_dir() else None
        self._read = open_tree(self.path)

    @classmethod
    def open(cls, path: str | Path) -> Tree:
        """Open the tree at a path, or `starter`, which ships with kace."""
        return cls(path)

    @classmethod
    def create(cls, path: str | Path, domains: Iterable[Domain] = ()) -> Tree:
        """Create an empty tree in a new directory. A small one needs no domains."""
        TreeStore.create(Path(path), domains, author=author())
        return cls(path)

    @property
    def now(self) -> EpistemicTree:
        """The tree as it is on disk now, as an immutable value."""
        return self._store.load() if self._store else self._read

    @property
    def cards(self) -> Mapping[str, Card]:
        """All cards by id."""
        return self.now.cards

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The branches of the tree."""
        return self.now.domains

    def add(self, card: str | Path | Card, note: str = "new card") -> Card:
        """Add a card: a `Card`, its text, or a file of its text.

        A text that breaks a rule raises `CardError`.
        """
        if self._store is None:
            raise UsageError(f"{self.path} can only be read", fix=NO_STORE)
        if isinstance(card, Path):
            card = _read_text(card)
        if isinstance(card, str):
            card = read_text_card(card, f"written by {author()}")
        self._store.apply(Add(card), author=author(), note=note)
        return card

    def project(self, tier: str, *domains: str) -> tuple[Card, ...]:
        """Return the cards that a tier may read in these domains."""
        if tier not in list(TierName):
            what = f"there is no tier '{tier[:20]}'"
            raise UsageError(what, fix="choose ES, MS or HS")
        tree = self.now
        for name in domains:
            if name not in tree.domain_names:
                known = ", ".join(tree.domain_names)
                none = "none: the tree has no domains, and every problem sees every card"
                what = f"the tree has no domain '{name[:40]}'"
                raise UsageError(what, fix=f"choose of {known or none}")
        return tree.project(TierName(tier), domains)

    def diff(self, other: Tree | str | Path | int) -> TreeDiff:
        """Return what turns this tree into another one.

        For a number, return what changed here since that generation.
        """
        if isinstance(other, int):
            if self._store is None:
                what = f"{self.path} is a file, which has no generations"
                raise UsageError(what, fix=NO_STORE)
            return diff(self._store.at(other), self.now)
        tree = other if isinstance(other, Tree) else Tree.open(other)
        return diff(self.now, tree.now)

    def __len__(self) -> int:
        return len(self.now)

    def __iter__(self) -> Iterator[Card]:
        return iter(self.now)

    def __contains__(self, card_id: object) -> bool:
        return card_id in self.now

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        cards = counted(len(self), "card")
        name = self.path.name.partition(".jsonl")[0]
        return f"<Tree {name}: {cards}, {counted(len(self.domains), 'domain')}>"


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_LINE_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{path}: not UTF-8", fix="save it as UTF-8") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError(
            f"{path}: {reason}", fix="name a file that is there"
        ) from None
