"""The Python functions behind the commands.

The functions without an `a` in front work in scripts and in notebooks.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypedDict,
    TypeVar,
    Unpack,
)

from kace.cards.card import Card
from kace.cards.formats import read_text_card
from kace.cards.store import TreeStore, author, open_tree
from kace.cards.tree import Add, Domain, EpistemicTree
from kace.config import (
    AnswerKind,
    Config,
    EsPolicy,
    Router,
    VoteKind,
    benchmark_preset,
    load_config,
    profile_of,
    tree_path,
)
from kace.ladder.ladder import Observer
from kace.ladder.prompt import Placement, Prompts
from kace.ladder.record import Solution
from kace.ladder.session import open_session
from kace.models.base import ChatModel
from kace.models.cache import CallStore
from kace.problems import (
    ALL,
    Dataset,
    Problem,
    check_problem_text,
    labelled,
    load_dataset,
    load_problems,
    problems_hash,
)
from kace.runs.manifest import manifest_of
from kace.runs.run import OnSolution, Run, climb_with, solve_all
from kace.runs.table import with_texts

if TYPE_CHECKING:
    from kace.runs.compare import Comparison
    from kace.runs.table import RecordedRun

T = TypeVar("T")
Problems = str | Path | Iterable[str | Problem]
"""A JSONL file, or problems and their texts."""


class RunSettings(TypedDict, total=False):
    """The settings of `kace.Config` and of reading a tree, as keyword arguments."""

    preset: str | None
    tree: str | Path | Tree | None
    profile: str | Path | None
    base_url: str | Sequence[str]
    api_key: str
    anthropic_base_url: str
    anthropic_api_key: str
    teacher_base_url: str
    teacher_api_key: str
    teacher_max_tokens: int
    seed: int
    temperature: float
    max_tokens: int
    sampling: Mapping[str, Mapping[str, float]]
    retrieval: Mapping[str, object]
    problem_texts: bool
    synthesis: bool
    max_connections: int
    timeout: float
    max_calls: int
    max_usd: float
    prices: Mapping[str, Mapping[str, float]]
    batch: bool
    batch_size: int
    wait: bool
    ray: str
    cache: bool
    cache_dir: str | Path
    hub: str
    data_dir: str | Path
    fields: Mapping[str, str]
    subject: str
    answers: AnswerKind
    tolerance: float
    logprobs: bool
    vote: VoteKind
    router: Router
    relevance_threshold: float
    skip_threshold: float
    max_cards: int
    max_card_tokens: int
    placement: Placement
    es_policy: EsPolicy
    try_threshold: float
    refine_domain: bool
    prompts: Prompts


class SolveSettings(RunSettings, total=False):
    """The settings of a solve; a teacher takes part with `synthesis`."""

    teacher: str | None


class LearnSettings(RunSettings, total=False):
    """The settings of learning a tree."""

    epochs: int
    partition_problems: int
    cards_per_problem: int
    add_runs: int
    confident: bool
    refine: int
    evidence: Literal["posterior", "threshold"]
    threshold: float
    keep_above: float
    impact: Literal["dropout", "leave_one_out"]
    impact_runs: int
    examples: int
    max_overlap: float
    failures: Literal["tier", "final"]
    max_harm: float
    wordings: int
    imagine: int


async def asolve(
    problem: str | Problem,
    model: str | ChatModel | None = None,
    **settings: Unpack[SolveSettings],
) -> Solution:
    """Solve one problem: its text, or a `Problem`.

    `model` is a `provider/name`, an open `ChatModel` (which stays the caller's to
    close), or `None` for the embedded default. Settings are those of `kace.Config`,
    such as `tree`, `preset`, `seed`, `base_url` or `max_calls`. Raises `KaceError` for
    what the caller can fix: an unknown model, a missing key, a cap that was reached.
    """
    return (await asolve_many([problem], model, **settings))[0]


async def solve_cached(
    problems: Sequence[Problem],
    config: Config,
    model: ChatModel | None = None,
    observer: Observer | None = None,
) -> list[Solution]:
    """Return the solutions, in the order in which they are found.

    Calls are cached in a folder per set of problems, so that opening it stays fast.
    Replies of an open model are not cached, since it has no identity that a later
    process could trust.
    """
    found: list[Solution] = []
    async with AsyncExitStack() as stack:
        calls = None
        if model is None and config.cache:
            name = problems_hash(problems)[:16]
            calls = CallStore(config.cache_dir / "calls" / name)
            calls.prompts = config.problem_texts
            stack.callback(calls.close)
        tree = tree_of(config)
        session = await stack.enter_async_context(
            open_session(
                config, calls=calls, model=model, tree=tree, observer=observer
            )
        )
        await solve_all(problems, session.kit, session.window, found.append)
    return found


def tree_of(config: Config) -> EpistemicTree | None:
    """Open the tree that a configuration names, if it names one."""
    return open_tree(config.tree) if config.tree else None


def solve(
    problem: str | Problem,
    model: str | ChatModel | None = None,
    **settings: Unpack[SolveSettings],
) -> Solution:
    """Solve one problem, from code that is not async (a notebook, too). See `asolve`."""
    return _run(asolve(problem, model, **settings))


async def asolve_many(
    problems: Problems,
    model: str | ChatModel | None = None,
    *,
    out: str | Path | None = None,
    **settings: Unpack[SolveSettings],
) -> list[Solution]:
    """Solve many problems side by side; the solutions come in the order of the problems.

    Problems are a JSONL file, or a list of texts and `Problem`s. With `out` they are
    kept in a run directory, which the same call resumes and `load_run`, `kace view` and
    `kace report` read. Model and settings are those of `asolve`.
    """
    config, given = _configured(model, settings)
    asked = _problems(problems, config)
    once = list({problem.id: problem for problem in asked}.values())
    solved: list[Solution] = []
    if out is None:
        solved = await solve_cached(once, config, given)
    else:
        tree = tree_of(config)
        manifest = manifest_of(config, tree)

        def keep(solution: Solution) -> None:
            solved.append(with_texts(solution, run.calls))

        with Run(Path(out), manifest, texts=config.problem_texts) as run:
            await solve_into(
                run, once, config, tree, keep, on_known=keep, model=given
            )
    found = {solution.problem: solution for solution in solved}
    return [found[problem.id] for problem in asked]


async def solve_into(
    run: Run,
    problems: Sequence[Problem],
    config: Config,
    tree: EpistemicTree | None,
    on_solved: OnSolution,
    *,
    on_known: OnSolution,
    model: ChatModel | None = None,
    observer: Observer | None = None,
) -> None:
    """Solve what is pending in a run.

    `on_solved` is called with each new solution, `on_known` with those of before.
    """
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


def solve_many(
    problems: Problems,
    model: str | ChatModel | None = None,
    *,
    out: str | Path | None = None,
    **settings: Unpack[SolveSettings],
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
    out: str | Path | None = None,
    reuse: Sequence[str | Path] = (),
    **settings: Unpack[SolveSettings],
) -> RecordedRun:
    """Evaluate a system on a data set, as `kace eval` does; the same call resumes its run.

    The system is one of `kace eval --system list`: `tiered` is the ladder alone, `kace`
    reads the `tree` among the settings. Data is the name of a set, a JSONL file, or
    labelled problems. `reuse` names runs whose calls are not paid again.
    """
    from kace.baselines.evaluate import Trial, run_trial
    from kace.baselines.systems import require
    from kace.runs.table import load_run

    named = model if isinstance(model, str | None) else model.name
    preset = benchmark_preset(data, named) if isinstance(data, str) else None
    config, given = _configured(model, {"preset": preset, **settings})
    tree = tree_of(config)
    name = require(system, tree, None).name  # before there is a folder
    found = (
        load_dataset(data, split, config)
        if isinstance(data, str | Path)
        else Dataset("problems", ALL, _problems(data, config))
    )
    found = labelled(found)
    trial = Trial(name, found, config, seeds, tree)
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

    `cluster` is what counts as one observation: `problem`, `family` or `domain`; by
    default the family if every solve has one.
    """
    from kace.runs.compare import compare as compare_tables
    from kace.runs.metrics import clusters_of
    from kace.runs.scores import ScoreReader

    tables = ScoreReader().open([Path(base), Path(other)])
    return compare_tables(tables[0], tables[1], clusters_of(tables, cluster))


def learn(
    train: Problems,
    out: str | Path,
    teacher: str | ChatModel,
    model: str | ChatModel | None = None,
    *,
    held_out: Problems = (),
    quick: bool = False,
    **settings: Unpack[LearnSettings],
) -> Tree:
    """Learn a tree from labelled problems, as `kace learn` does; the same call resumes it.

    No training problem may be `held_out`, and no card may retell one. Settings are those
    of `kace.Config` and of learning, such as `epochs`.
    """
    from kace.learning.loop import learn as learn_tree
    from kace.learning.screen import HeldOutHashes
    from kace.learning.study import (
        QUICK,
        LearnPlan,
        Settings,
        open_study,
        read_settings,
        refuse_overlap,
    )

    asked = teacher if isinstance(teacher, ChatModel) else None
    named: dict[str, object] = {"teacher": asked.name if asked else teacher}
    chosen: dict[str, object] = {}
    for name, value in settings.items():
        kind = chosen if name in Settings.model_fields else named
        kind[name] = value
    config, given = _configured(model, named)
    base = dict(profile_of(config.profile).get("learning", {}))
    if quick:
        base |= QUICK
    dials = read_settings({**base, **chosen})
    problems = _problems(train, config)
    kept_out = _problems(held_out, config)
    refuse_overlap(problems, kept_out, "what is held out")
    hashes = HeldOutHashes.of(kept_out)
    plan = LearnPlan(problems, config, dials, Path(out), hashes)

    async def work() -> None:
        async with open_study(plan, model=given, teacher=asked) as study:
            await learn_tree(study)

    _run(work())
    return Tree(out)


def _configured(
    model: str | ChatModel | None, settings: Mapping[str, object]
) -> tuple[Config, ChatModel | None]:
    """Return the configuration, and the model if it was given open."""
    given = model if isinstance(model, ChatModel) else None
    name = given.name if given else model
    return load_config({"model": name, **settings}), given


def _problems(given: Problems, config: Config) -> tuple[Problem, ...]:
    if isinstance(given, str | Path):
        return load_problems(given, config.fields)
    problems = []
    for each in given:
        problem = each if isinstance(each, Problem) else Problem(each)
        check_problem_text(problem.text)
        problems.append(problem)
    return tuple(problems)


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run async work to its end, in a thread where a notebook already runs a loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    started: list[Callable[[], object]] = []

    async def cancellable() -> T:
        task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        if task:
            started.append(partial(loop.call_soon_threadsafe, task.cancel))
        return await work

    with ThreadPoolExecutor(1) as pool:
        # An interrupt while a thread starts would leave its work running.
        pool.submit(bool).result()
        try:
            return pool.submit(asyncio.run, cancellable()).result()
        except KeyboardInterrupt:  # it reaches the notebook's thread alone
            for cancel in started:
                cancel()
            raise


class Tree:
    """A tree of cards: a directory, or a read-only file of cards or `starter`.

    It may be the `tree` of `solve`, `solve_many` and `evaluate`.
    """

    def __init__(self, path: str | Path) -> None:
        """Open the tree at a path, or `starter`, which ships with kace."""
        self.path = tree_path(path)
        open_tree(self.path)

    @classmethod
    def create(cls, path: str | Path, domains: Iterable[Domain] = ()) -> Tree:
        """Create an empty tree in a new directory. A small one needs no domains."""
        TreeStore.create(Path(path), domains, author=author())
        return cls(path)

    @property
    def cards(self) -> Mapping[str, Card]:
        """All cards by id, as they are on disk now."""
        return open_tree(self.path).cards

    def add(self, card: str | Card) -> Card:
        """Add a card: a `Card`, or its text. One that breaks a rule raises `CardError`."""
        if isinstance(card, str):
            card = read_text_card(card, f"written by {author()}")
        store = TreeStore.open(self.path)
        store.apply(Add(card), author=author(), note="new card")
        return card

    def __fspath__(self) -> str:
        return str(self.path)

    __str__ = __fspath__
