"""The epoch is chosen on problems that the learner never saw, against the ladder alone, and without false claims."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kace.cards.card import Difficulty, Status
from kace.cards.store import TreeStore, open_tree
from kace.cards.tree import Add, Domain, EpistemicTree
from kace.config import Config, load_config
from kace.errors import BudgetExceeded, DataError, UsageError
from kace.ladder.prompt import template
from kace.ladder.record import Solution
from kace.ladder.tiers import ExitPath
from kace.learning.calibrate import (
    EpochRow,
    Selection,
    check_validation,
    epochs_of,
    keep_tree,
    read_learned,
    select_epoch,
    selection_of,
    solver_settings,
)
from kace.learning.study import LearnManifest, ProblemSet
from kace.models.base import Failure, ModelError, Reply, Request
from kace.models.scripted import Scripted
from kace.problems import Problem, problem_rows
from kace.runs.manifest import manifest_of
from kace.runs.table import Table, row_of
from tests.card_examples import a_card
from tests.command import run_kace
from tests.models.chat_server import Answer, ChatServer, Seen, says

DOMAINS = (Domain(name="algebra", description="All of it.", share=1.0),)
TRAIN = tuple(Problem(f"Train on {n}", str(n), f"t{n}") for n in range(10))
VAL = tuple(Problem(f"Problem number {n} asks for {n}.", str(n), f"v{n}") for n in range(12))
SELECT = ("learn", "select")
GOOD, BAD = "EXACT_GOOD_CARD", "EXACT_BAD_CARD"


def reply_to(text: str, seed: int) -> str:
    """Right above 9 without help, below 8 with one card, and not on 11 with another; one lens is always alone."""
    if template("lens_computation_chain") in text:
        return f"\\boxed{{-{seed + 2}}}"
    number = int(text.split("Problem number ")[1].split()[0])
    right = (number >= 10 or (number < 8 and GOOD in text)) and not (number == 11 and BAD in text)
    return f"\\boxed{{{number if right else -1}}}"


class Solver(Scripted):
    """Leaves every problem at MS, two of three agreeing."""

    def __init__(self) -> None:
        def script(request: Request) -> str:
            return reply_to("".join(message.content for message in request.messages), request.sampling.seed)

        super().__init__(script, name="solver")


def learned_tree(folder: Path, config: Config, train: Sequence[Problem] = TRAIN) -> Path:
    """What `kace learn` leaves: a good epoch, and one that spoiled it."""
    store = TreeStore.create(folder, DOMAINS)
    store.apply(Add(a_card(GOOD, difficulty_tag=Difficulty.UNIVERSAL)), author="test")
    store.apply(Add(a_card("EXACT_GONE_CARD", status=Status.DEPRECATED)), author="test")
    store.snapshot("epoch-1")
    store.apply(Add(a_card(BAD, difficulty_tag=Difficulty.UNIVERSAL)), author="test")
    store.snapshot("epoch-2")
    store.freeze()
    (folder / "learn").mkdir()
    manifest = {
        **manifest_of(config),
        "train": {"problems": len(train), "hash": "0" * 64, "ids": [problem.id for problem in train]},
    }
    (folder / "learn" / "learn.json").write_text(json.dumps(manifest))
    return folder


CONFIG = load_config({"model": "scripted/solver", "profile": "paper", "prompts": "default"}, env={})


def held(folder: Path, model: Scripted | None = None, seeds: int = 1, **settings: object) -> Selection:
    config = CONFIG.model_copy(update=settings)
    return asyncio.run(select_epoch(folder, VAL, config, seeds, model=model or Solver()))


def best_row(selection: Selection) -> EpochRow:
    return next(row for row in selection.rows if row.epoch == selection.epoch)


def test_the_best_epoch_is_chosen_and_every_row_says_what_it_cost(tmp_path: Path):
    selection = held(learned_tree(tmp_path / "tree", CONFIG))
    assert (selection.epoch, selection.tree) == (1, "snapshots/epoch-1.jsonl")
    assert [(row.epoch, row.cards, row.right, row.n) for row in selection.rows] == [
        (0, 0, 2, 12),
        (1, 1, 10, 12),
        (2, 2, 9, 12),
    ]
    ladder, first, second = selection.rows
    assert (ladder.gained, ladder.lost, ladder.p, ladder.calls) == (0, 0, None, 5)
    assert (first.gained, first.lost, first.p) == (8, 0, pytest.approx(2 * 2 / 2**8)), "for two epochs"
    assert (second.gained, second.lost) == (8, 1)
    assert first.low < first.right / first.n < first.high
    assert "Epoch 1 did best. epoch 1 is better than no tree" in selection.said


def test_what_the_epochs_share_is_paid_for_once_and_a_repeat_costs_nothing(tmp_path: Path):
    tree = learned_tree(tmp_path / "tree", CONFIG)
    model = Solver()
    first = held(tree, model)
    assert model.calls == len(VAL) * (2 + 3 * 3), "ES once, MS for each of three"
    again = Solver()
    assert held(tree, again) == first
    assert again.calls == 0


def test_more_seeds_go_on_from_the_first(tmp_path: Path):
    tree = learned_tree(tmp_path / "tree", CONFIG)
    held(tree)
    model = Solver()
    selection = held(tree, model, seeds=2)
    assert model.calls == len(VAL) * 11
    chosen = best_row(selection)
    assert (chosen.n, chosen.right, chosen.gained, selection.seeds) == (24, 20, 8, (0, 1))
    once = best_row(held(tree))
    assert (chosen.low, chosen.high, chosen.p) == (once.low, once.high, once.p), "two seeds are no second problem"


def test_a_cap_stops_it_and_the_same_command_goes_on(tmp_path: Path):
    tree = learned_tree(tmp_path / "tree", CONFIG)
    model = Solver()
    with pytest.raises(BudgetExceeded):
        held(tree, model, max_calls=50)
    assert model.calls == 50
    rest = Solver()
    held(tree, rest, max_calls=1_000)
    assert model.calls + rest.calls == len(VAL) * 11


def test_other_settings_are_refused(tmp_path: Path):
    tree = learned_tree(tmp_path / "tree", CONFIG)
    held(tree)
    with pytest.raises(UsageError, match="another config 'sampling'"):
        held(tree, temperature=0.1)


def test_a_lost_call_counts_as_wrong(tmp_path: Path):
    class Down(Solver):
        async def complete(self, request: Request) -> Reply:
            if request.attempt.problem == VAL[0].id:
                raise ModelError(Failure.PROVIDER_ERROR, "503")
            return await super().complete(request)

    assert best_row(held(learned_tree(tmp_path / "tree", CONFIG), Down())).right == 9


def arm(right: str, families: str | None = None) -> Table:
    """One solve a mark: 1 is right."""
    blank = Solution(
        problem="",
        label="",
        family=None,
        domain=None,
        seed=0,
        exit=ExitPath.MS_MAJORITY,
        answer=None,
        expected="1",
        verdict=None,
        correct=None,
        paper_calls=5,
        real_calls=5,
        seconds=0,
        failed=False,
        recalls=(),
        classes=(),
        attempts=(),
    )
    marks = enumerate(right)
    rows = (row_of(blank.model_copy(update={"problem": f"{n:05}", "correct": m == "1"})) for n, m in marks)
    return Table.of((replace(row, family=families and families[int(row.problem)]) for row in rows), name="")


def chosen(*rights: str, families: str | None = None) -> Selection:
    """The choice among the ladder alone and the epochs with these marks."""
    solved = tuple(Problem(str(n), "1") for n in range(len(rights[0])))
    epochs = {number: EpistemicTree.of(DOMAINS, ()) if number else None for number in range(len(rights))}
    return selection_of(epochs, [arm(right, families) for right in rights], solved, (0,))


def test_equal_epochs_go_to_the_smaller_and_equal_to_no_tree_means_no_tree():
    assert chosen("1000", "0110", "1100").epoch == 1
    found = chosen("1100", "0110", "1000")
    assert (found.epoch, found.tree) == (0, None)
    assert "solve without a tree" in found.said and "1 problem gained and 1 lost" in found.said


def test_a_small_difference_is_not_called_one_and_a_family_is_one_piece_of_evidence():
    found = chosen("1000", "1110")
    assert found.epoch == 1 and "indistinguishable at this n" in found.said
    found = chosen("0" * 12, "1" * 12, families="aaaabbbbcccc")
    assert best_row(found).p == 2 / 2**3
    assert "12 problems of 3 families" in found.said and "indistinguishable" in found.said
    assert found.rows[1].low < 0.5, "three families right of three"


def test_the_choice_among_epochs_is_paid_for():
    none, six = "0" * 6, "1" * 6
    alone, among = chosen(none, six), chosen(none, six, none, none)
    assert best_row(alone).p == 2 / 2**6
    assert best_row(among).p == pytest.approx(3 * 2 / 2**6)
    assert "is better than" in alone.said and "indistinguishable" in among.said


def test_problems_of_the_training_set_and_unlabelled_ones_are_refused():
    learned = LearnManifest(config={}, train=ProblemSet(problems=10, ids=tuple(problem.id for problem in TRAIN)))
    check_validation(VAL, learned)
    with pytest.raises(DataError, match="1 of 13 validation problems appear in the training set, such as 't3'"):
        check_validation((*VAL, TRAIN[3]), learned)
    with pytest.raises(DataError, match="has no answer"):
        check_validation((Problem("What?"),), learned)


def test_a_folder_that_was_not_learned_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="no tree that kace learn made"):
        read_learned(tmp_path)
    with pytest.raises(UsageError, match="no snapshot"):
        epochs_of(tmp_path)
    (tmp_path / "learn").mkdir()
    (tmp_path / "learn" / "learn.json").write_text('{"config": {}, "train": {"problems": 3}}')
    with pytest.raises(DataError, match=r"learn\.json: train\.ids is missing"):
        read_learned(tmp_path)


def test_epochs_are_in_the_order_of_their_numbers(tmp_path: Path):
    store = TreeStore.create(tmp_path, DOMAINS)
    for name in ("epoch-10", "epoch-2", "epoch-x", "epoch-2b"):
        store.snapshot(name)
    assert [*epochs_of(tmp_path)] == [0, 2, 10]


def test_other_problems_may_be_tried_on_the_same_tree(tmp_path: Path):
    tree = learned_tree(tmp_path / "tree", CONFIG)
    held(tree)
    found = asyncio.run(select_epoch(tree, VAL[:5], CONFIG, model=Solver()))
    assert (found.validation.problems, [row.n for row in found.rows]) == (5, [5, 5, 5])


def test_one_budget_holds_for_all_epochs(tmp_path: Path):
    model = Solver()
    with pytest.raises(BudgetExceeded):
        held(learned_tree(tmp_path / "tree", CONFIG), model, max_calls=len(VAL) * 5 + 10)
    assert model.calls == len(VAL) * 5 + 10, "the second epoch was stopped"


def test_the_solver_is_the_learners_unless_flags_say_otherwise():
    first = load_config({"model": "openai/a", "base_url": "http://host/v1", "temperature": 0.3, "seed": 4}, env={})
    manifest = json.loads(json.dumps(manifest_of(first)))
    learned = LearnManifest(config=manifest["config"], train=ProblemSet(problems=0, ids=()))
    same = load_config(solver_settings(learned, {"seed": None}), env={"KACE_TEMPERATURE": "1.5"})
    assert (same.model, same.temperature, same.seed, same.base_url) == ("openai/a", 0.3, 4, "http://host/v1")
    other = solver_settings(learned, {"model": "openai/b"})
    assert (other["model"], "base_url" in other) == ("openai/b", False)


def test_the_chosen_tree_is_copied_once_and_frozen(tmp_path: Path):
    tree = open_tree(learned_tree(tmp_path / "tree", CONFIG) / "snapshots" / "epoch-1.jsonl")
    digest = keep_tree(tmp_path / "best", tree, "epoch 1")
    assert keep_tree(tmp_path / "best", tree, "epoch 1") == digest == tree.content_hash()
    store = TreeStore.open(tmp_path / "best")
    assert store.frozen_hash == digest
    with pytest.raises(UsageError, match="another tree"):
        keep_tree(tmp_path / "best", EpistemicTree.of(DOMAINS, ()), "epoch 0")


def chat(seen: Seen) -> Answer:
    text = "\n".join(message["content"] for message in seen.body["messages"])
    return says(reply_to(text, seen.body["seed"]))


def write(path: Path, problems: Sequence[Problem]) -> None:
    path.write_text("".join(line + "\n" for line in problem_rows(problems)))


def test_the_command_shows_decides_writes_and_says_how_to_go_on(tmp_path: Path):
    write(tmp_path / "val.jsonl", VAL)
    with ChatServer(chat) as server:
        config = load_config(
            {"model": "openai/m", "base_url": server.url, "profile": "paper", "prompts": "default"}, env={}
        )
        learned_tree(tmp_path / "tree", config)
        done = run_kace(tmp_path, *SELECT, "--validation", "val.jsonl", "tree", "--out", "best")
        asked = len(server.requests)
        again = run_kace(tmp_path, *SELECT, "--validation", "val.jsonl", "tree", "--out", "best", "--json")
        assert len(server.requests) == asked
    assert done.returncode == 0, done.stderr
    chosen = next(line for line in done.stdout.splitlines() if line.startswith("*"))
    assert chosen.split()[:8] == ["*", "1", "1", "10", "of", "12", "=", "83.3%"]
    assert "epoch 1 is better than no tree" in done.stdout and "8 problems gained and 0 lost" in done.stdout
    assert "kace: epoch 1 select seed 0 run: 12 problems" in done.stderr
    assert "use          kace solve --tree tree/snapshots/epoch-1.jsonl" in done.stderr
    assert "keeps no training texts" in done.stderr
    assert again.returncode == 0, again.stderr
    selection = Selection.model_validate_json(again.stdout)
    assert selection == Selection.model_validate_json((tmp_path / "tree" / "learn" / "selection.json").read_text())
    assert selection.epoch == 1
    assert TreeStore.open(tmp_path / "best").frozen_hash == best_row(selection).tree


def test_where_no_epoch_helps_the_command_says_to_use_none(tmp_path: Path):
    config = load_config({"model": "scripted/dice?sides=9"}, env={})
    tree = learned_tree(tmp_path / "tree", config)
    write(tmp_path / "val.jsonl", VAL)
    done = run_kace(tmp_path, *SELECT, "--validation", "val.jsonl", "tree", "--seeds", "2", "--out", "best")
    assert done.returncode == 0, done.stderr
    assert "solve without a tree" in done.stdout
    assert "without --tree" in done.stderr
    assert len(open_tree(tmp_path / "best")) == 0
    assert json.loads((tree / "learn" / "selection.json").read_text())["epoch"] == 0


def test_bad_input_is_one_clear_line(tmp_path: Path):
    learned_tree(tmp_path / "tree", CONFIG)
    write(tmp_path / "train.jsonl", TRAIN)
    write(tmp_path / "val.jsonl", VAL)
    keep_tree(tmp_path / "other", EpistemicTree.of(DOMAINS, [a_card()]), "")
    for arguments, complaint in (
        (["tree", "--validation", "train.jsonl"], "appear in the training set"),
        (["tree", "--validation", "absent.jsonl"], "no such file"),
        (["nowhere", "--validation", "val.jsonl"], "no tree that kace learn made"),
        (["tree", "--validation", "val.jsonl", "--model", "nonsense"], "unknown model"),
    ):
        done = run_kace(tmp_path, *SELECT, *arguments)
        assert done.returncode == 2, done.stderr
        assert complaint in done.stderr
        assert "Traceback" not in done.stderr
