"""The published table and what is drawn from it."""

from __future__ import annotations

import importlib.util
import json
import math
import re
import subprocess
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from kace.cards.card import Status
from kace.cards.store import open_tree
from kace.config import load_config, tree_path
from kace.ladder.relevance import RelevanceIndex
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


def test_tables_and_the_plot_are_drawn_to_the_committed_bytes(published, draw: ModuleType):
    assert draw.draw_tables(published) == (RESULTS / "tables.md").read_text(encoding="utf-8")
    assert draw.draw_summary(published) == (RESULTS / "summary.md").read_text(encoding="utf-8")
    assert draw.draw_plot(published) == (RESULTS / "by-group.svg").read_text(encoding="utf-8")


FIGURE = re.compile(r"[+-]\d+\.\d \[[^]]+\]|\d+\.\d\d|\d+ \+ [\d,]+|p = 0\.\d+")


def test_every_figure_of_the_page_comes_out_of_the_table():
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    second = page.index("## A second set"), page.index("## What is not known")
    ours = page[: second[0]] + page[second[1] :]
    drawn = (RESULTS / "summary.md").read_text(encoding="utf-8").replace("p 0", "p = 0")
    drawn += (RESULTS / "tables.md").read_text(encoding="utf-8") + OTHER
    figures = FIGURE.findall(ours)
    assert len(figures) >= 50
    assert [figure for figure in figures if figure not in drawn] == []
    rows = [line for line in ours.replace("*", "").splitlines() if line.startswith("| ") and "[" in line]
    assert len(rows) == 10
    for row in rows:
        assert row.removesuffix(" |") in drawn, row
    for counts in ("131: +94 / -2 | 62: +0 / -9", "133: +120 / -1 | 11: +1 / -1"):
        assert counts in drawn
    for share in re.findall(r"\d+\.\d %", ours):
        assert share in drawn, share


OTHER = "+1.8 [-0.6, +4.5]"
"""The paper's form, whose run is older than the table."""


def test_the_page_is_read_in_five_minutes():
    assert len((ROOT / "docs" / "results.md").read_text(encoding="utf-8").split()) <= 1_200


def test_the_published_tree_of_the_starter_set_is_the_one_that_was_measured():
    digest = "d46406184bf3de880598625d5b504240f84fc53a9ee96f45cb1337ea3936ca24"
    assert open_tree(published_tree("starter-1.5b")).content_hash() == digest


def test_the_bundled_tree_is_what_its_own_evidence_left_of_the_measured_one(published, draw: ModuleType):
    measured = open_tree(published_tree("starter-0.5b"))
    assert measured.content_hash() == "380fb3db33d4ab1414d8d900864fcdba128e6d4fe4909f2bc212a9947800e7d5"
    bundled = open_tree(tree_path("starter"))
    harmful = draw.harmful_cards(published)
    assert len(harmful) == 6
    assert bundled.cards.keys() == measured.cards.keys() - harmful
    counts = draw.starter_counts(published, "worded")
    arms = published.studies["gate/worded-0.5b"]
    for card in bundled:
        record = card.provenance
        shown = counts.get(card.card_id, (0, 0, 0))
        assert (record.n_uses, record.n_wins, record.n_losses) == shown[:3]
        assert card.payload == measured.card(card.card_id).payload
        by_problem: Counter[int] = Counter()
        for key, row in arms["worded"].items():
            if card.card_id in row.cards:
                by_problem[key[0]] += row.right - arms["tiered"][key].right
        won, lost = (sum(sign * net > 0 for net in by_problem.values()) for sign in (1, -1))
        total = won + lost + 3  # two problems of each kind come before the evidence
        better = sum(math.comb(total, k) for k in range(won + 2)) / 2**total
        helps = bool(shown[0]) and better >= 0.8
        assert (card.status is Status.VALIDATED) == helps


@pytest.mark.parametrize(
    ("name", "thresholds", "digest"),
    [
        ("third-a", (0.465, 0.473), "4021352cc1eae702675fdde16d296150bf1cbaf7ecd4dcfb8c5c96ea927ba704"),
        ("techniques", (0.499, 0.499), "5878bf5f2a7ad7d203e5c151b41d52411b4d660e79f9c7c313e9335ef0ff21c8"),
    ],
)
def test_the_trees_of_the_third_test_are_read_as_they_were_measured(name: str, thresholds: tuple[float, float], digest):
    tree = open_tree(published_tree(name))
    read = load_config({"tree": published_tree(name)}, env={}).retrieval
    assert (read.relevance_threshold, read.skip_threshold) == thresholds
    assert (read.max_cards, read.es_policy) == (None, "locked")
    assert tree.content_hash() == digest
    assert tree.index_path
    assert set(RelevanceIndex.read(tree.index_path).cards) == {card.card_id for card in tree.shown}


def test_the_tracked_tree_is_small():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    sizes = [path.stat().st_size for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]
    assert sum(sizes) <= 12_000_000


def test_only_five_problems_of_the_retest_are_solved_in_a_card(draw: ModuleType):
    retest = load_bundled("techniques", "retest")
    hashes = HeldOutHashes.of(retest)
    texts = []
    solved = set()
    for card in open_tree(published_tree("techniques")).shown:
        texts += [example.problem for example in card.examples] + list(card.wordings)
        for example in card.examples:
            if hashes.retold(example):
                solved |= {each.label for each in retest if HeldOutHashes.of([each]).retold(example)}
    assert len(texts) == 2342
    assert max(map(hashes.overlap, texts)) < Settings().max_overlap, "no story is retold"
    assert solved == draw.SOLVED_IN_CARDS, "the same numbers and answer in another story"


def test_every_number_of_the_first_page_comes_out_of_the_results(published, draw: ModuleType):
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    drawn = (RESULTS / "summary.md").read_text(encoding="utf-8")
    table = "\n".join(line for line in page.splitlines() if line.startswith("| "))
    figures = re.findall(r"[+-]\d+\.\d \[[^]]+\]|\d+\.\d %|\d+\.\d\d", table)
    assert len(figures) == 14
    assert [figure for figure in figures if figure not in drawn] == []
    arms = published.studies[draw.THIRD]
    right: dict[str, list[int]] = {}
    for key, row in arms["kace-b-skip-es"].items():
        problem = published.problems[key[0]]
        if problem.invented and problem.seen:
            solves, before, after = right.get(problem.family, (0, 0, 0))
            right[problem.family] = [solves + 1, before + arms["tiered"][key].right, after + row.right]
    assert right["paid_on_hadder"] == [9, 0, 9]
    words = " ".join(page.split())
    assert "in 0 of 9 solves without cards and in 9 of 9 with its tree" in words
    cured = sum(counts == [9, 0, 9] for counts in right.values())
    stayed = sum(counts == [9, 0, 0] for counts in right.values())
    assert (
        f"Of the {len(right)} such rules in the test {cured} went from 0 to 9 of 9, and {stayed} stayed at 0" in words
    )
    families = draw.right_cards(published, {"oracle": arms["oracle-kept-a-skip-es"]})
    wrong = draw.count_cards(
        arms["tiered"], arms["kace-a-skip-es"], lambda p: families[published.problems[p].family], False
    )
    harm = f"{wrong.read} of the test's {len(arms['tiered']):,} solves read only wrong ones"
    assert f"{harm}, and {wrong.lost} of the {wrong.base_right} that were right broke" in words
    assert "+13.6 and +14.8" in words and all(f"{gain} [" in drawn for gain in ("+13.6", "+14.8"))
    card = open_tree(published_tree("techniques")).card("EXACT_HADDER_LATE_NIGHTS_DOUBLE")
    (shown,) = re.findall(r"```\n(n = nights.*?)\n```", page, re.DOTALL)
    assert shown in card.body and len(shown.splitlines()) == 4


def test_the_pages_are_short():
    docs = [path for path in (ROOT / "docs").glob("*.md") if path.name != "cli.md"]
    assert sum(len(path.read_text(encoding="utf-8").split()) for path in docs) <= 15_000
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 95
    assert (ROOT / "docs" / "viewer.png").stat().st_size <= 150_000


def solve(family: str, correct: bool, exit: str, tiers: dict[str, list[str]], cards: list[str] | None = None) -> dict:
    attempts = [
        {"tier": tier, "answer": answer, "correct": answer == "right", "input": 10, "output": 90}
        for tier, answers in tiers.items()
        for answer in answers
    ]
    answers = [each["answer"] for each in attempts]
    classes = [{"positions": [i for i, each in enumerate(answers) if each == one]} for one in set(answers)]
    recalls = [{"tier": "MS", "cards": cards}] if cards else []
    known = {"problem": family, "seed": 0, "family": family, "correct": correct, "exit": exit}
    return {**known, "paper_calls": len(attempts), "attempts": attempts, "classes": classes, "recalls": recalls}


@pytest.mark.parametrize(
    ("score", "probe", "right", "gained", "lost", "calls"),
    [
        (0.4, ["right"] * 3, False, 1, 0, 3),
        (0.4, ["wrong"] * 3, True, 0, 1, 3),
        (0.4, ["right", "right", "wrong"], True, 0, 0, 10),
        (0.4, ["right", "right", "wrong"], False, 0, 0, 10),
        (0.1, ["wrong"] * 3, True, 0, 0, 10),
    ],
)
def test_only_unanimous_attempts_decide_in_the_replay(monkeypatch, score, probe, right, gained, lost, calls):
    monkeypatch.syspath_prepend(str(RESULTS))
    import replay

    alone = {"ES": ["a", "b"], "MS": ["c", "d", "e"], "HS": ["right" if right else "x"] * 5}
    votes = replay.Votes(tiered={("f", 0): solve("f", right, "hs_plurality", alone)})
    votes.right["f", 0] = solve("f", True, "ms_majority", {"MS": probe}, ["CARD"])
    (sums,) = replay.replay(votes, {"f": ("CARD", score)}, {"CARD": {"f"}}, 0.3).values()
    assert (sums.gained, sums.lost, sums.calls) == (gained, lost, calls)


def test_the_task_of_finding_cards_is_written_in_the_layout_of_beir(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(RESULTS))
    import finding

    finding.write_beir(tmp_path / "b", open_tree(published_tree("techniques")), "third")
    corpus, queries = (
        {json.loads(line)["_id"] for line in (tmp_path / "b" / name).read_text().splitlines()}
        for name in ("corpus.jsonl", "queries.jsonl")
    )
    head, *rows = (tmp_path / "b" / "qrels" / "third.tsv").read_text().splitlines()
    assert head == "query-id\tcorpus-id\tscore"
    pairs = [row.split("\t") for row in rows]
    assert (len(corpus), len(queries), len({query for query, _, _ in pairs})) == (70, 600, 162)
    assert {query for query, _, _ in pairs} < queries
    assert {card for _, card, _ in pairs} <= corpus
