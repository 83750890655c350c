"""The published table and what is drawn from it."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from kace.cards.store import open_tree
from kace.config import load_config
from kace.learning.screen import HeldOutHashes
from kace.learning.study import Settings
from kace.problems import load_bundled
from tests.recorded import published_tree

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"


@pytest.fixture(scope="module")
def draw() -> ModuleType:
    spec = importlib.util.spec_from_file_location("results_draw", RESULTS / "draw.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def published(draw: ModuleType):
    return draw.Published()


@pytest.mark.parametrize(
    ("study", "arm", "accuracy", "gain"),
    [
        ("gate/worded-1.5b", "worded", "67.5 %", "+7.9 [+2.5, +14.5]"),
        ("gate/worded-0.5b", "worded", "52.7 %", "+12.6 [+5.2, +20.6]"),
        ("gate/worded-1.5b", "worded-skip-es", "67.5 %", "+17.6 [+7.5, +28.5]"),
        ("gate/worded-0.5b", "worded-skip-es", "52.7 %", "+14.5 [+4.4, +25.2]"),
        ("techniques/retest-1.5b", "worded-skip-es", "16.1 %", "+7.7 [+4.2, +11.5]"),
        ("techniques/retest-0.5b", "worded-skip-es", "1.9 %", "+3.5 [+1.9, +5.3]"),
        ("math-hard/policies-test", "together", "29.0 %", "+1.7 [-0.1, +3.4]"),
    ],
)
def test_headline_figures_come_out_of_the_table(published, draw: ModuleType, study, arm, accuracy, gain):
    arms = published.studies[study]
    assert draw.percent(arms["tiered"]) == accuracy
    assert str(published.compare(arms["tiered"], arms[arm])) == gain


def test_calls_of_the_headline_come_out_of_the_table(published, draw: ModuleType):
    arms = published.studies["gate/worded-1.5b"]
    assert [draw.costs(arms[name])[1] for name in ("tiered", "worded", "worded-skip-es")] == ["3.65", "3.36", "3.24"]


def test_tables_and_the_plot_are_drawn_to_the_committed_bytes(published, draw: ModuleType):
    assert draw.draw_tables(published) == (RESULTS / "tables.md").read_text(encoding="utf-8")
    assert draw.draw_plot(published) == (RESULTS / "by-group.svg").read_text(encoding="utf-8")


def test_the_published_tree_of_the_starter_set_is_the_one_that_was_measured():
    digest = "d46406184bf3de880598625d5b504240f84fc53a9ee96f45cb1337ea3936ca24"
    assert open_tree(published_tree("starter-1.5b")).content_hash() == digest


def test_the_technique_tree_is_read_as_its_headline_was_measured():
    tree = published_tree("techniques")
    read = load_config({"tree": tree}, env={}).retrieval
    assert (read.relevance_threshold, read.max_cards, read.es_policy) == (0.445, None, "skip")
    digest = "5878bf5f2a7ad7d203e5c151b41d52411b4d660e79f9c7c313e9335ef0ff21c8"
    assert open_tree(tree).content_hash() == digest


def test_the_tracked_tree_is_small():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    sizes = [path.stat().st_size for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]
    assert sum(sizes) <= 12_000_000


def test_no_card_of_the_technique_tree_retells_a_story_of_the_retest():
    retest = HeldOutHashes.of(load_bundled("techniques", "retest"))
    texts = []
    for card in open_tree(published_tree("techniques")).shown:
        texts += [example.problem for example in card.examples] + list(card.wordings)
    assert len(texts) == 2342
    assert max(map(retest.overlap, texts)) < Settings().max_overlap
