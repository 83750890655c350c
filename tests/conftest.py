"""How tests are run: examples are drawn however long it takes, and every test can be interrupted.

A hundred examples for each test, or with `make fuzz` ten thousand for each reader: a busy machine is no fault of what
is tested.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Before numpy is imported: threads that wait for a busy core cost more than they save.
pytest.MonkeyPatch().setenv("OPENBLAS_NUM_THREADS", "1")
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("patient", PATIENT)
settings.register_profile("fuzz", PATIENT, max_examples=10_000)
settings.load_profile("patient")


@pytest.fixture(autouse=True)
def interruptible() -> None:
    """Let processes that a test starts hear an interrupt: a shell's background job ignores it, and so would they."""
    with suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def few_everyday_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fit relevance on few problems of no technique: each `learn` reads and fits it anew, nine times."""
    from kace.ladder import relevance

    few = relevance.everyday_problems()[:20]
    monkeypatch.setattr(relevance, "everyday_problems", lambda: few)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A real Ray cluster of two nodes of one CPU each, for modules that skip where Ray is not installed."""
    import ray
    from ray.cluster_utils import Cluster

    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    found.add_node(num_cpus=1)
    found.wait_for_nodes()
    yield found
    ray.shutdown()
    found.shutdown()


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The cache directory, in subprocesses as well: the user's own is never touched."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("KACE_CACHE_DIR", str(folder))
        yield folder
