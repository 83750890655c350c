"""`kace eval` and `kace reproduce` by hand: runs that resume, a matrix, and a table of commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kace.cards.card import Difficulty, Example
from kace.cards.store import TreeStore
from kace.cards.tree import Domain
from tests.baselines.arena import card
from tests.baselines.paper_tree import paper_tree
from tests.command import Kace
from tests.learning.world import problems

pytestmark = pytest.mark.usefixtures("p_file")
DICE = ("--model", "scripted/dice?sides=40")


def rows(run: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (run / "traces.jsonl").read_text().splitlines()]


def test_a_run_holds_every_problem_on_every_seed_and_adds_seeds_later(kace: Kace, tmp_path: Path):
    arguments = ("eval", "--system", "tiered", "--data", "p.jsonl", *DICE, "--out", "run")
    done = kace(*arguments, "--seeds", "2")
    assert done.returncode == 0, done.stderr
    assert "accuracy" in done.stdout and "95 % interval" in done.stdout and "by the paper's count" in done.stdout
    assert {(row["label"], row["seed"]) for row in rows(tmp_path / "run")} == {
        (problem.label, seed) for problem in problems(2) for seed in (0, 1)
    }
    more = kace(*arguments, "--seeds", "3", "--json")
    assert len(rows(tmp_path / "run")) == 3 * len(problems(2)), "what was solved is not solved again"
    assert len(json.loads(more.stdout)["seeds"]) == 3
    assert more.stderr.splitlines()[-1].startswith("next:        kace report run")


def test_a_dry_run_says_what_it_takes_and_writes_nothing(kace: Kace, tmp_path: Path):
    before = sorted(tmp_path.rglob("*"))
    done = kace("eval", "--data", "p.jsonl", "--model", "openai/gpt-4.1-mini", "--seeds", "2", "--dry-run")
    assert done.returncode == 0, done.stderr
    said = done.stderr
    assert "preset aime25 (at most 12,000 tokens an attempt)" in said
    calls = round(2 * len(problems(2)) * (2 + 8 * 0.43))
    assert f"solver      {calls:,} calls" in said and "USD" in said and "minute" in said
    assert sorted(tmp_path.rglob("*")) == before
    unknown = kace("eval", "--data", "p.jsonl", "--model", "openai/mine", "--dry-run")
    assert "price unknown" in unknown.stderr and "0.00 USD" not in unknown.stderr


def test_another_system_in_the_same_folder_is_refused(kace: Kace):
    arguments = ("--data", "p.jsonl", *DICE, "--out", "run", "--seeds", "1", "--limit", "2")
    assert kace("eval", "--system", "single", *arguments).returncode == 0
    done = kace("eval", "--system", "best-of-3", *arguments)
    assert done.returncode == 2 and "another system 'name'" in done.stderr


def test_what_another_run_paid_for_is_not_paid_again(kace: Kace, tmp_path: Path):
    settings = ("--data", "p.jsonl", *DICE, "--seeds", "1")
    assert kace("eval", "--system", "tiered", *settings, "--out", "first").returncode == 0
    kept = {path.name: path.read_bytes() for path in (tmp_path / "first" / "calls").iterdir()}
    control = ("--system", "kace-empty-prompt", "--set", "placement=instructions")
    done = kace("eval", *control, *settings, "--reuse", "first", "--out", "second")
    assert done.returncode == 0, done.stderr
    attempts = [attempt for row in rows(tmp_path / "second") for attempt in row["attempts"]]
    assert all(attempt["from_cache"] is (attempt["tier"] == "ES") for attempt in attempts)
    own = "".join(path.read_text() for path in (tmp_path / "second" / "calls").iterdir())
    assert own.count('"tier":"ES"') == 2 * len(problems(2)), "what was reused is kept with the run"
    assert {path.name: path.read_bytes() for path in (tmp_path / "first" / "calls").iterdir()} == kept


def test_solves_that_begin_at_ms_are_reported_compared_and_viewed_like_any(kace: Kace, tmp_path: Path):
    domain = Domain(name="weaving", description="Weaving.", share=1.0)
    flim = card("FLIM", Difficulty.MEDIUM, "weaving", trigger="flim")
    example = Example("The flim of 1 and 2?", r"It is \boxed{3}.")
    TreeStore.create(tmp_path / "tree", [domain], [flim.illustrated([example])])
    low = ("--set", "relevance_threshold=0.1")  # invented words in short problems
    settings = ("--tree", "tree", "--data", "p.jsonl", *DICE, "--seeds", "2", *low)
    skip = ("--system", "kace", "--set", "es_policy=skip", "--out", "skip")
    for system in (("--system", "kace", "--out", "kace"), skip):
        done = kace("eval", *system, *settings)
        assert done.returncode == 0, done.stderr
    solves = rows(tmp_path / "skip")
    begun = {row["label"]: row["attempts"][0]["tier"] for row in solves}
    assert {label for label, tier in begun.items() if tier == "MS"} == {"flim-0", "flim-1"}
    assert all(row["paper_calls"] == len(row["attempts"]) for row in solves)
    calls = sum(len(row["attempts"]) for row in solves) / len(solves)
    said = kace("eval", *skip, *settings)
    assert f"{calls:.2f} per problem by the paper's count, {calls:.2f} really made" in said.stdout
    runs = ("kace", "skip")
    assert f"{calls:.2f}" in kace("report", *runs).stdout
    reported = kace("report", *runs, "--out", "report")
    assert reported.returncode == 0, reported.stderr
    assert f"{calls:.2f}<small>real {calls:.2f}" in (tmp_path / "report" / "index.html").read_text()
    drawn = kace("view", *runs, "tree", "--export", "pages")
    assert drawn.returncode == 0, drawn.stderr
    pages = [page.read_text() for page in (tmp_path / "pages").rglob("*.html")]
    assert sum(page.count("ES not used") for page in pages) == 4, "two problems on two seeds"


def test_a_tree_that_may_still_change_is_named(kace: Kace, tmp_path: Path):
    tree = paper_tree(("weaving",), 2)
    TreeStore.create(tmp_path / "tree", tree.domains, tree)
    arguments = ("eval", "--system", "kace", "--tree", "tree", "--data", "p.jsonl", *DICE, "--seeds", "1", "--out", "r")
    assert "kace: warning: tree is not frozen (kace tree freeze)" in kace(*arguments).stderr
    assert kace("tree", "freeze", "tree").returncode == 0
    assert "not frozen" not in kace(*arguments).stderr


WRONG = {
    "unknown system": (("--system", "kase"), "unknown system 'kase'"),
    "nothing to reuse": (("--system", "tiered", "--reuse", "nowhere"), "no calls are kept there"),
    "no tree": (("--system", "kace"), "reads a tree"),
    "no artefact": (("--system", "tiered-ace"), "kace learn --method ace"),
    "unknown data": (("--data", "nowhere.jsonl"), "nowhere.jsonl"),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG.values(), ids=WRONG.keys())
def test_bad_input_is_one_clear_line_and_leaves_no_run(
    kace: Kace, tmp_path: Path, arguments: tuple[str, ...], said: str
):
    data = () if "--data" in arguments else ("--data", "p.jsonl")
    done = kace("eval", *data, *DICE, "--limit", "2", "--out", "run", *arguments)
    assert done.returncode in (1, 2) and said in done.stderr
    assert "Traceback" not in done.stderr and len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()
