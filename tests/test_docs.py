"""The documents say what is so."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kace.cards.card import read_card

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_command_page_is_current():
    spec = importlib.util.spec_from_file_location("generate_cli", ROOT / "docs" / "generate_cli.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == module.page(), "run: python docs/generate_cli.py"


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_every_file_a_page_names_exists(page: Path):
    text = page.read_text(encoding="utf-8")
    linked = re.findall(r"\]\(([^)#:]+)\)", text)
    named = re.findall(r"`((?:src|tests|benchmarks|docs|results)/[\w./-]+)`", text)
    for name in linked:
        assert (page.parent / name).exists(), name
    for name in named:
        assert (ROOT / name).exists(), name


def test_every_file_of_the_walks_exists_and_no_walk_is_longer_than_twelve():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    walks = re.findall(r"## One (?:problem|teacher reply|page view)\n(.*?)(?=\n## )", text, re.DOTALL)
    assert len(walks) == 3
    for walk in walks:
        files = set(re.findall(r"`([\w/]+\.(?:py|html))`", walk))
        assert len(files) <= 12
        assert not [name for name in files if not (ROOT / "src" / "kace" / name).exists()]


def test_the_card_of_the_page_on_concepts_is_a_card():
    page = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    assert read_card(example).triggers == ("two stamp values", "largest impossible amount")


def test_the_package_docstring_example_works():
    code = "import doctest, kace, sys; sys.exit(doctest.testmod(kace).failed)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_no_file_names_a_registry_host():
    hosts = re.compile(r"pypi" + r"\.org|pythonhosted" + r"\.org|registry\.npmjs|deb\.debian", re.IGNORECASE)
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".lock", ".in", ""} and path.is_file():
            assert not hosts.search(path.read_text(encoding="utf-8", errors="replace")), name
