"""The Python functions: what they give, that they resume, and that what is wrong is one line with the fix."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from pathlib import Path

import pytest

import kace
from kace import api
from kace.config import Config, RetrievalConfig
from kace.learning.study import Settings
from kace.models.base import Reply, Request
from kace.models.scripted import Scripted
from kace.problems import problem_rows
from tests.card_samples import small_tree
from tests.learning.world import World, problems

CARD = (Path(__file__).resolve().parents[1] / "docs" / "examples" / "average-speed.md").read_text(encoding="utf-8")
FEW = [kace.Problem(f"Throw {number}", answer="3", label=f"t{number}") for number in range(6)]
DICE = "scripted/dice?sides=3"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KACE_CACHE_DIR", str(tmp_path / "cache"))


def in_a_notebook(work):
    """What a plain function gives where an event loop is running already."""

    async def cell():
        return work()

    return asyncio.run(cell())


def test_many_problems_come_back_in_their_order_each_asked_once():
    model = Scripted(lambda asked: f"\\boxed{{{asked.messages[-1].content[1]}}}")
    solutions = kace.solve_many(["x1 is?", kace.Problem("x2 is?", answer="2"), "x1 is?"], model)
    assert [solution.answer for solution in solutions] == ["1", "2", "1"]
    assert [solution.correct for solution in solutions] == [None, True, None]
    assert model.calls == 4


def test_many_problems_are_not_paid_for_twice():
    first, again = (kace.solve_many(FEW, DICE) for _ in range(2))
    assert [solution.cached_calls for solution in first] == [0] * 6
    assert [solution.cached_calls for solution in again] == [solution.real_calls for solution in first]
    assert [solution.answer for solution in again] == [solution.answer for solution in first]


def test_a_run_directory_resumes_with_every_working(tmp_path: Path):
    first = kace.solve_many(FEW[:3], DICE, out=tmp_path / "run")
    lines = (tmp_path / "run" / "traces.jsonl").read_text().count("\n")
    whole = in_a_notebook(lambda: kace.solve_many(FEW, DICE, out=str(tmp_path / "run")))
    assert lines == 3
    assert [solution.working for solution in whole] == [f"The die shows \\boxed{{{each.answer}}}" for each in whole]
    assert whole[:3] == first
    with pytest.raises(kace.UsageError, match="another config 'seed'"):
        kace.solve_many(FEW, DICE, out=tmp_path / "run", seed=1)


def test_problems_come_from_a_file_named_by_a_text(tmp_path: Path):
    file = tmp_path / "few.jsonl"
    file.write_text("\n".join(problem_rows(FEW)))
    assert kace.load_problems(str(file)) == kace.load_problems(file) == tuple(FEW)
    assert [solution.label for solution in kace.solve_many(str(file), DICE)] == [problem.label for problem in FEW]
    with pytest.raises(kace.DataError, match="no such file"):
        kace.solve_many("none.jsonl", DICE)


def test_rows_are_flat_and_have_the_problems_text(tmp_path: Path):
    kace.solve_many(FEW, DICE, out=tmp_path / "run")
    run = kace.load_run(str(tmp_path / "run"))
    rows = run.rows()
    assert {(row["label"], row["text"], row["expected"]) for row in rows} == {(p.label, p.text, "3") for p in FEW}
    assert all(row["correct"] is (row["answer"] == "3") for row in rows)
    assert all(value is None or isinstance(value, str | int | float) for row in rows for value in row.values())
    assert len({tuple(row) for row in rows}) == 1, "every row has the same columns"
    assert json.loads(json.dumps(rows)) == rows
    assert repr(run) == "<RecordedRun run: 6 solves>"
    assert sum(1 for each in run.solutions() if each.working) == len(run) == 6


def test_an_evaluation_is_a_run_that_can_be_compared(tmp_path: Path):
    alone = kace.evaluate("tiered", FEW, DICE, seeds=2, out=tmp_path / "alone")
    once = in_a_notebook(lambda: kace.evaluate("single", FEW, DICE, seeds=2, out=tmp_path / "once"))
    assert (len(alone), len(once)) == (12, 12)
    assert alone.metrics().problems == 6
    found = kace.compare(alone, tmp_path / "once")
    assert (found.base, found.other, found.pairs) == ("tiered", "single", 12)
    assert repr(found) == f"<Comparison: {found.sentence}>"
    assert kace.evaluate("tiered", FEW, DICE, seeds=2, out=str(tmp_path / "alone")).rows() == alone.rows()


def test_a_model_of_ones_own_can_be_evaluated(tmp_path: Path):
    model = Scripted(lambda asked: "\\boxed{3}")
    run = kace.evaluate("tiered", FEW[:4], model, seeds=1, out=tmp_path / "run")
    assert [row["correct"] for row in run.rows()] == [True] * 4
    assert model.calls == 8


def test_what_cannot_be_evaluated_leaves_no_folder(tmp_path: Path):
    with pytest.raises(kace.UsageError, match="reads a tree, and none is given"):
        kace.evaluate("kace", FEW, DICE, out=tmp_path / "run")
    with pytest.raises(kace.UsageError, match="has no answer"):
        kace.evaluate("tiered", ["6 times 7?"], DICE, out=tmp_path / "run")
    with pytest.raises(kace.UsageError, match="no problems were given"):
        kace.evaluate("tiered", [], DICE, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_tree_is_begun_grown_and_read(tmp_path: Path):
    tree = kace.Tree.create(tmp_path / "oak")
    card = tree.add(CARD)
    assert tree.cards == {card.card_id: card}
    assert kace.Tree(str(tmp_path / "oak")).cards == tree.cards
    with pytest.raises(kace.DataError, match=r"needs whole examples.*Fix: "):
        tree.add("# x\n\nfoo")
    assert list(tree.cards) == [card.card_id] and len(kace.Tree("starter").cards) > 30


def test_an_open_tree_is_what_attempts_read(tmp_path: Path):
    tree = kace.Tree.create(tmp_path / "oak", small_tree().domains)
    for card in small_tree():
        tree.add(card)
    shown = kace.solve("Throw", "scripted/dice?sides=1000", tree=tree, profile="paper", router="words")
    assert shown.recalls[0].cards


def test_a_tree_is_learned_and_learned_once(tmp_path: Path):
    train = list(problems(2))
    given = {"teacher": World().teacher(), "model": "scripted/dice?sides=9", "quick": True, "preset": "starter"}
    tree = in_a_notebook(lambda: kace.learn(train, tmp_path / "oak", **given))
    assert len(tree.cards) > 0
    before = sorted((path, path.stat().st_size) for path in (tmp_path / "oak" / "learn" / "calls").iterdir())
    assert kace.learn(train, tmp_path / "oak", **given).cards == tree.cards
    assert sorted((path, path.stat().st_size) for path in (tmp_path / "oak" / "learn" / "calls").iterdir()) == before
    with pytest.raises(kace.DataError, match="appear in what is held out too"):
        kace.learn(train, tmp_path / "elm", held_out=train[:1], **given)
    with pytest.raises(kace.UsageError, match="epochs cannot be 21"):
        kace.learn(train, tmp_path / "elm", epochs=21, **given)
    assert not (tmp_path / "elm").exists()


class Stuck:
    """A model that interrupts whoever waits for it, and then never answers."""

    name = identity = "scripted/stuck"
    cancelled = False

    async def complete(self, request: Request) -> Reply:
        if request.attempt.index == 0:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        raise AssertionError("it was not called off")

    async def aclose(self) -> None: ...


def test_an_interrupt_in_a_notebook_calls_the_work_off():
    model, loop = Stuck(), asyncio.new_event_loop()

    async def cell() -> None:
        kace.solve("6 times 7?", model)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(cell())
    finally:
        signal.signal(signal.SIGINT, before)
        loop.close()
    assert model.cancelled


def test_an_interrupt_in_a_script_leaves_it_interruptible():
    model, before = Stuck(), signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            kace.solve_many(["6 times 7?"], model)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert model.cancelled


def test_every_setting_is_a_typed_keyword():
    named = {"model", "sources", "serve_key", "teacher"}
    reading = set(Config.model_fields) - named | set(RetrievalConfig.model_fields)
    assert set(api.RunSettings.__annotations__) == reading
    assert set(api.SolveSettings.__annotations__) - reading == {"teacher"}
    assert set(api.LearnSettings.__annotations__) - reading == set(Settings.model_fields)
