"""The notebook shows what its cells give, run afresh; in a running event loop, and without weights."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"


def test_the_notebook_shows_what_its_cells_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KACE_CACHE_DIR", str(tmp_path))
    spec = importlib.util.spec_from_file_location("generate_notebook", DOCS / "generate_notebook.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kept = (DOCS / "notebook.ipynb").read_text(encoding="utf-8")
    fresh = module.executed(json.loads(kept))
    for before, after in zip(json.loads(kept)["cells"], fresh["cells"], strict=True):
        assert after.get("outputs") == before.get("outputs"), "run: python docs/generate_notebook.py"
    assert module.page(fresh) == kept
    assert any("text/html" in each.get("data", {}) for cell in fresh["cells"] for each in cell.get("outputs", ()))
