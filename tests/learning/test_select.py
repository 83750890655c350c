"""The epoch is chosen on problems that the learner never saw, against the ladder alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from kace.cards.card import Difficulty, Status
from kace.cards.store import TreeStore, open_tree
from kace.cards.tree import Add, Domain
from kace.cli.learn import snapshots_of
from kace.config import load_config
from kace.ladder.prompt import template
from kace.problems import Problem, problem_rows
from kace.runs.manifest import manifest_of
from tests.card_examples import a_card
from tests.command import run_kace
from tests.models.chat_server import Answer, ChatServer, Seen, says

DOMAINS = (Domain(name="algebra", description="All of it.", share=1.0),)
TRAIN = tuple(Problem(f"Train on {n}", str(n), f"t{n}") for n in range(10))
VAL = tuple(Problem(f"Problem number {n} asks for {n}.", str(n), f"v{n}") for n in range(12))
SELECT = ("learn", "select", "tree", "--validation", "val.jsonl")
GOOD, BAD = "EXACT_GOOD_CARD", "EXACT_BAD_CARD"
PLAIN = """[retrieval]
router = "words"
relevance_threshold = 0.0
placement = "instructions"
"""


def chat(seen: Seen) -> Answer:
    """Right above 9 without help, below 8 with one card, and not on 11 with another; one lens is always alone."""
    text = "\n".join(message["content"] for message in seen.body["messages"])
    if template("lens_computation_chain") in text:
        return says(f"\\boxed{{-{seen.body['seed'] + 2}}}")
    number = int(text.split("Problem number ")[1].split()[0])
    right = (number >= 10 or (number < 8 and GOOD in text)) and not (number == 11 and BAD in text)
    return says(f"\\boxed{{{number if right else -1}}}")


def write(path: Path, problems: Sequence[Problem]) -> None:
    path.write_text("".join(line + "\n" for line in problem_rows(problems)))


def learned_tree(folder: Path, **solver: str) -> None:
    """What `kace learn` leaves: a good epoch, and one that spoiled it."""
    store = TreeStore.create(folder / "tree", DOMAINS)
    store.apply(Add(a_card(GOOD, difficulty_tag=Difficulty.UNIVERSAL)), author="test")
    store.apply(Add(a_card("EXACT_GONE_CARD", status=Status.DEPRECATED)), author="test")
    store.snapshot("epoch-1")
    store.apply(Add(a_card(BAD, difficulty_tag=Difficulty.UNIVERSAL)), author="test")
    store.snapshot("epoch-2")
    store.freeze()
    (folder / "tree" / "profile.toml").write_text(PLAIN)
    (folder / "tree" / "learn").mkdir()
    manifest = {
        **manifest_of(load_config(solver, env={})),
        "train": {"problems": len(TRAIN), "hash": "0" * 64, "ids": [problem.id for problem in TRAIN]},
    }
    (folder / "tree" / "learn" / "learn.json").write_text(json.dumps(manifest))
    write(folder / "val.jsonl", VAL)


def test_the_best_epoch_is_chosen_and_a_repeat_costs_nothing(tmp_path: Path):
    with ChatServer(chat) as server:
        learned_tree(tmp_path, model="openai/m", base_url=server.url)
        stopped = run_kace(tmp_path, *SELECT, "--out", "best", "--max-calls", "40")
        assert stopped.returncode == 1 and "cap of 40 calls" in stopped.stderr
        done = run_kace(tmp_path, *SELECT, "--out", "best")
        asked = len(server.requests)
        again = run_kace(tmp_path, *SELECT, "--out", "best", "--json")
        assert len(server.requests) == asked
        more = run_kace(tmp_path, *SELECT, "--seeds", "2")
    assert done.returncode == 0, done.stderr
    assert asked == len(VAL) * (2 + 3 * 3), "ES once, MS for each of three"
    assert "epoch-1 is better than no-tree" in done.stdout and "8 problems gained and 0 lost" in done.stdout
    assert "best         tree/snapshots/epoch-1.jsonl" in done.stderr
    found = json.loads(again.stdout)
    assert [(arm["name"], round(arm["accuracy"] * 12)) for arm in found["arms"]] == [
        ("no-tree", 2),
        ("epoch-1", 10),
        ("epoch-2", 9),
    ]
    assert found["comparisons"][0]["adjusted"] == pytest.approx(2 * 2 / 2**8), "for two epochs"
    assert more.returncode == 0 and len(server.requests) == 2 * asked
    best = TreeStore.open(tmp_path / "best")
    assert best.frozen_hash == open_tree(tmp_path / "tree/snapshots/epoch-1.jsonl").content_hash()
    assert (tmp_path / "best" / "profile.toml").read_text() == PLAIN


def test_where_no_epoch_helps_none_is_chosen(tmp_path: Path):
    """Of equals the first is chosen, which is the ladder alone."""
    learned_tree(tmp_path, model="scripted/steady")
    done = run_kace(tmp_path, *SELECT, "--out", "best")
    assert done.returncode == 0, done.stderr
    assert "no tree: solve without cards" in done.stderr
    assert len(open_tree(tmp_path / "best")) == 0
    refused = run_kace(tmp_path, *SELECT, "--out", "tree")
    assert refused.returncode == 2 and "already holds another tree" in refused.stderr


def test_epochs_are_in_the_order_of_their_numbers(tmp_path: Path):
    store = TreeStore.create(tmp_path, DOMAINS)
    for name in ("epoch-10", "epoch-2", "epoch-x", "epoch-2b"):
        store.snapshot(name)
    assert [path.stem for path in snapshots_of(tmp_path)] == ["epoch-2", "epoch-10"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("tree", "--validation", "train.jsonl"), "appear in the training set, such as 't0'"),
        (("tree", "--validation", "absent.jsonl"), "no such file"),
        (("nowhere", "--validation", "val.jsonl"), "no snapshot of an epoch"),
        (("tree", "--validation", "val.jsonl", "--model", "nonsense"), "unknown model"),
    ],
)
def test_bad_input_is_one_clear_line(tmp_path: Path, arguments: tuple[str, ...], complaint: str):
    learned_tree(tmp_path, model="scripted/steady")
    write(tmp_path / "train.jsonl", TRAIN)
    done = run_kace(tmp_path, "learn", "select", *arguments)
    assert done.returncode == 2, done.stderr
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
