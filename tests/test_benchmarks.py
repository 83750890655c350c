"""Benchmarks are run by hand; that they can start is checked here."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("bench_*.py"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_benchmark_imports(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(FOLDER)
    assert callable(importlib.import_module(name).main)
