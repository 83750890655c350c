"""What the tests of the command line share."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from kace.problems import problem_rows
from tests.command import Kace, run_kace
from tests.learning.world import problems


@pytest.fixture
def kace(tmp_path: Path) -> Kace:
    """Run the command line in an empty folder with an empty cache."""
    return partial(run_kace, tmp_path)


@pytest.fixture
def train_file(tmp_path: Path) -> Path:
    """Write eighteen problems to learn from."""
    path = tmp_path / "train.jsonl"
    path.write_text("\n".join(problem_rows(problems(2))) + "\n")
    return path


@pytest.fixture
def p_file(train_file: Path) -> Path:
    """Write eighteen problems to solve."""
    return train_file.rename(train_file.with_name("p.jsonl"))
