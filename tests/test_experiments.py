"""Published figures come out of the published replies again, without a model."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from experiments.gate.subjects import other_subjects
from kace.baselines.registry import spec_of
from kace.cards.store import TreeStore, open_tree
from kace.cards.tree import EpistemicTree
from kace.config import load_config, profile_of
from kace.datasets.starter import load_split
from kace.datasets.techniques.generate import technique_problems
from kace.ladder.gate import BackgroundScore
from kace.ladder.record import Solution, read_trace
from kace.ladder.session import open_session
from kace.ladder.tiers import ExitPath
from kace.learning.admit import Rulings
from kace.learning.leakage import ContaminationHashes
from kace.learning.loop import learn
from kace.learning.settings import Settings
from kace.learning.steps import read_steps
from kace.learning.study import LearnPlan, open_study
from kace.models.cache import Replay
from kace.runs.metrics import Totals
from kace.runs.run import solve_all
from tests.command import run_kace

ROOT = Path(__file__).resolve().parents[1]
STARTER = ROOT / "experiments" / "starter"
RATES = STARTER / "solve-rates"
LEARNED = STARTER / "learn"
SYSTEMS_RUN = STARTER / "systems"
BLIND = ROOT / "experiments" / "techniques" / "learn"
SERVED = {"model": "openai/solver", "base_url": "http://127.0.0.1:8000/v1", "api_key": "none"}
READ = {"relevance": "tree", "relevance_threshold": 2.0, "es_policy": "skip"}
QUOTING = ("math-hard", "kace-reflections")


def test_the_ladder_on_the_recorded_replies_gives_the_published_row():
    summary = Totals()

    def keep(solution: Solution) -> None:
        summary.add(solution)

    async def work() -> None:
        config = load_config({"preset": "starter", "seed": 0, "profile": "paper", "prompts": "default"}, env={})
        async with open_session(config, model=Replay.open(RATES)) as session:
            await solve_all(load_split("test"), session.kit, 8, keep)

    asyncio.run(work())
    assert (summary.correct, summary.labelled) == (101, 200)
    assert [summary.exits[path] for path in ExitPath] == [75, 64, 44, 12, 5]
    assert round(summary.paper_calls / summary.problems, 2) == 5.40


def test_the_published_learning_run_replays_to_the_identical_tree(tmp_path: Path):
    config = load_config(
        {"preset": "starter", "teacher": "exchange/unused", "profile": "paper", "prompts": "default"}, env={}
    )
    plan = LearnPlan(load_split("train")[:16], config, Settings(impact_runs=1, refine=1, examples=0), tmp_path / "tree")

    async def work() -> str:
        solver, teacher = Replay.open(LEARNED), Replay.open(LEARNED, teacher=True)
        async with open_study(plan, model=solver, teacher=teacher) as (study, _):
            return (await learn(study)).content_hash()

    published = TreeStore.open(LEARNED / "tree")
    assert asyncio.run(work()) == published.frozen_hash
    assert published.verify() == []
    for epoch in ("epoch-1.jsonl", "epoch-2.jsonl"):
        assert open_tree(tmp_path / "tree" / "snapshots" / epoch) == open_tree(LEARNED / "tree" / "snapshots" / epoch)


def test_the_blind_teachers_run_comes_out_of_its_votes_and_replies_as_the_identical_tree(tmp_path: Path):
    """Two epochs with revisions: every refusal, lift, revision and retirement is decided anew, without a model."""
    with tarfile.open(BLIND / "state.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    recorded, out = tmp_path / "tree" / "learn", tmp_path / "again"
    begun = json.loads((recorded / "learn.json").read_text(encoding="utf-8"))
    assert begun["settings"]["epochs"] == begun["settings"]["refine"] == 2 and begun["train"]["problems"] >= 200
    for run in ("calls", *(path.name for path in recorded.glob("epoch-*"))):
        shutil.copytree(recorded / run, out / "learn" / run)
    config = load_config({**SERVED, "preset": "starter", "teacher": "exchange/unused", **READ}, env={})
    held_out = ContaminationHashes.of((*technique_problems("validation"), *technique_problems("test")))
    settings = Settings.model_validate(begun["settings"])
    assert settings.max_overlap == 1, "a setting that came later, and was off"
    plan = LearnPlan(tuple(technique_problems("train")), config, settings, out, held_out)

    async def work() -> str:
        teacher = Replay.open(recorded, teacher=True)
        async with open_study(plan, model=Replay.open(recorded), teacher=teacher) as (study, _):
            return (await learn(study)).content_hash()

    published = TreeStore.open(BLIND / "tree")
    assert asyncio.run(work()) == published.frozen_hash
    for epoch in ("epoch-1.jsonl", "epoch-2.jsonl"):
        assert open_tree(out / "snapshots" / epoch) == open_tree(tmp_path / "tree" / "snapshots" / epoch)


def test_how_many_demonstrations_of_the_blind_teacher_are_near_a_held_out_wording(tmp_path: Path):
    """The run is older than this guard, which would have asked for these ten anew."""
    with tarfile.open(BLIND / "state.tar.xz") as archive:
        archive.extract("tree/learn/steps.jsonl", tmp_path, filter="data")
    steps = read_steps(tmp_path / "tree" / "learn" / "steps.jsonl")
    admitted = [card for line in steps if line.what == "admit" for card in line.read(Rulings).admitted]
    told = {example.problem for card in admitted for example in card.examples}
    held_out = ContaminationHashes.of((*technique_problems("validation"), *technique_problems("test")))
    settings = Settings.model_validate(profile_of("default")["learning"])
    assert (len(told), sum(held_out.overlap(text) > settings.max_overlap for text in told)) == (530, 10)


def drawn_again(folder: Path, out: Path) -> str:
    """The report on a published folder, made as `make experiments` makes it."""
    here = folder.relative_to(ROOT)
    runs = [str(here / "runs" / arm) for arm in (folder / "arms.txt").read_text().split()]
    tree = ["--tree", str(here / "tree")] if (folder / "tree").exists() else []
    drawn = ["--format", "md", "--out", str(out), "--plots", str(out / "plots")]
    done = run_kace(ROOT, "report", *runs, *tree, *drawn, "--no-pdf", KACE_CACHE_DIR=str(out / "cache"))
    assert done.returncode == 0, done.stderr
    return (out / "report.md").read_text()


def test_the_published_table_of_all_systems_comes_out_of_its_votes(tmp_path: Path):
    arms = (SYSTEMS_RUN / "arms.txt").read_text().split()
    assert all(spec_of(arm) for arm in arms), "old names are known, too"
    assert drawn_again(SYSTEMS_RUN, tmp_path) == (SYSTEMS_RUN / "report.md").read_text()


PUBLISHED = sorted(path.parent for path in (ROOT / "experiments").glob("*/*/arms.txt") if path.parent != SYSTEMS_RUN)


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_published_tables_come_out_of_their_votes_and_trees(folder: Path, tmp_path: Path):
    assert drawn_again(folder, tmp_path) == (folder / "report.md").read_text()
    first = folder.name.replace("retest", "test")  # a retest reads the tree of its test
    named = (f"{folder.name}/tree", f"{first}/tree", f"{folder.name}/trees/*", "worded*/tree")
    stores = [store for pattern in named for store in folder.parent.glob(pattern)]
    there = {open_tree(store).content_hash() for store in stores}
    manifests = (json.loads(path.read_text()) for path in sorted((folder / "runs").glob("*/run.json")))
    read = {each["tree"]["hash"]: each["system"]["name"] for each in manifests if each.get("tree")}
    # Reflections on MATH quote its problems, so that tree stays out.
    assert {digest for digest, system in read.items() if (folder.parent.name, system) != QUOTING} <= there


@pytest.mark.parametrize(
    "script",
    ["starter/study.py", "attempts.py", "carried_over.py", "techniques/wordings.py", "math-hard/recount.py"],
)
def test_the_tables_of_the_studies_come_out_of_their_votes(script: str, tmp_path: Path):
    path = ROOT / "experiments" / script
    subprocess.run([sys.executable, path, tmp_path / "page.md"], check=True)
    assert (tmp_path / "page.md").read_text() == path.with_suffix(".md").read_text()


def test_the_groups_of_families_come_out_of_their_votes(tmp_path: Path):
    pages = sorted((ROOT / "experiments").glob("*/groups.md"))
    subprocess.run([sys.executable, ROOT / "experiments" / "groups.py", tmp_path], check=True)
    assert {page.parent.name for page in pages} >= {"techniques", "gate"}
    for page in pages:
        assert (tmp_path / page.parent.name / "groups.md").read_text() == page.read_text()


def test_the_plots_of_the_evidence_come_out_of_their_votes(tmp_path: Path):
    folder = ROOT / "experiments" / "techniques"
    subprocess.run([sys.executable, folder / "plots.py", tmp_path], check=True)
    drawn = sorted(tmp_path.glob("*.svg"))
    assert [path.name for path in drawn] == ["against-tiered.svg", "by-group.svg"]
    for path in drawn:
        assert path.read_text() == (folder / path.name).read_text()


def test_no_published_vote_of_outside_data_has_an_expected_answer():
    runs = [*(ROOT / "experiments").glob("math-hard/*/runs/*"), *(ROOT / "experiments").glob("transfer/*/runs/*")]
    assert len(runs) > 20
    for run in runs:
        for line in read_trace(run / "traces.jsonl.gz"):
            assert isinstance(line.content, Solution)
            assert line.content.expected is None


def test_every_run_that_read_the_published_tree_read_this_one():
    frozen = TreeStore.open(SYSTEMS_RUN / "tree").frozen_hash
    trees = {
        run.parent.name: json.loads(run.read_text())["tree"]
        for run in sorted((SYSTEMS_RUN / "runs").glob("*/run.json"))
    }
    read = {name: tree["hash"] for name, tree in trees.items() if tree}
    assert {name for name, digest in read.items() if digest != frozen} == {"kace-reflections"}
    assert len(read) == 11


@pytest.mark.parametrize("solver", ["0.5b", "1.5b"])
def test_a_tree_of_three_cards_and_one_with_a_thousand_more_show_what_the_published_tree_shows(solver: str):
    tree = open_tree(ROOT / "experiments" / "gate" / f"worded-{solver}" / "trees" / "worded")
    cards, least = list(tree.shown), 0.353
    beside = other_subjects(tree.domains, 1000)
    whole, three, thousand = (
        BackgroundScore(EpistemicTree.of(tree.domains, some)) for some in (cards, cards[:3], [*cards, *beside])
    )
    first = {card.card_id for card in cards[:3]}
    shown = 0
    for problem in load_split("test"):
        scores = whole(problem.text, least)
        shown += bool(scores)
        assert thousand(problem.text, least) == scores
        assert three(problem.text, least) == {name: score for name, score in scores.items() if name in first}
    assert shown >= 60, "else there is nothing to compare"
