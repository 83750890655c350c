"""The Python door: `kace.solve(...)` and `await kace.asolve(...)`."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from kace.config import Config, load_config
from kace.models.base import ChatModel
from kace.models.cache import CallStore
from kace.problem import Problem, check_problem_text
from kace.solver.ladder import Observer, climb
from kace.solver.records import Solution
from kace.solver.session import open_session
from kace.tree.store import open_tree


async def asolve(problem: str | Problem, model: str | ChatModel | None = None, **settings: object) -> Solution:
    """Solve one problem: its text, or a `Problem`.

    The model is a `provider/name`, an open `ChatModel` (which stays yours to close), or nothing for the embedded
    default. Settings are those of `kace.Config`, such as `preset`, `seed`, `base_url` or `max_calls`. Raises
    `KaceError` for what you can mend: an unknown model, a missing key, a cap that was reached.
    """
    asked = problem if isinstance(problem, Problem) else Problem(problem)
    check_problem_text(asked.text)
    given = model if isinstance(model, ChatModel) else None
    config = load_config({"model": model if given is None else given.name, **settings})
    return await asolve_config(asked, config, given)


async def asolve_config(
    problem: Problem, config: Config, model: ChatModel | None = None, observer: Observer | None = None
) -> Solution:
    """Solve one problem under a resolved configuration."""
    # A model object has no identity a later process could trust, so its replies are not kept. A problem solved on
    # its own has a folder of calls to itself, so that opening it stays instant however many there are.
    keep = config.cache and model is None
    calls = CallStore(config.cache_dir / "calls" / problem.id) if keep else None
    tree = open_tree(config.tree) if config.tree else None
    try:
        async with open_session(config, calls=calls, model=model, tree=tree, observer=observer) as session:
            return await climb(problem, session.kit)
    finally:
        if calls is not None:
            calls.close()


def solve(problem: str | Problem, model: str | ChatModel | None = None, **settings: object) -> Solution:
    """Solve one problem, from code that is not async (a notebook, too). See `asolve`."""
    coroutine = asolve(problem, model, **settings)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as pool:  # a notebook already runs a loop in this thread: give the work one of its own
        return pool.submit(asyncio.run, coroutine).result()
