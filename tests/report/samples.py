"""Small trees, runs, learners and exchange folders that tests of the viewer open."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from kace.answers.equal import Verdict
from kace.cards.card import Card
from kace.cards.store import TreeStore
from kace.ladder.record import Attempt, ClassRecord, Outcome, RetrievedContext, Solution
from kace.ladder.tiers import ExitPath, TierName
from kace.models.base import Finish
from kace.models.cache import CallRecord
from tests.card_samples import DOMAINS, a_card


def a_tree(folder: Path, cards: Iterable[Card] = ()) -> Path:
    """A tree's directory."""
    TreeStore.create(
        folder, DOMAINS, cards or (a_card(), a_card("RUBRIC_MIDPOINT_OF_CHORD", domain_tags=("geometry",)))
    )
    return folder


def an_attempt(**fields: object) -> Attempt:
    """An attempt that answered 4, with some fields changed."""
    usual: dict[str, object] = {
        "tier": TierName.ES,
        "index": 0,
        "lens": None,
        "outcome": Outcome.ANSWERED,
        "answer": "4",
        "call": "a" * 64,
        "input": 100,
        "cached": 0,
        "output": 20,
        "seconds": 1.5,
        "from_cache": False,
        "detail": "",
        "correct": True,
    }
    return Attempt.model_validate({**usual, **fields})


def a_solve(problem: str = "b" * 16, **fields: object) -> Solution:
    """A solve that left at MS with the right answer, with some fields changed."""
    attempts = tuple(
        an_attempt(tier=tier, index=index, answer=answer, correct=answer == "4", call=f"{place:064x}")
        for place, (tier, index, answer) in enumerate(
            [(TierName.ES, 0, "4"), (TierName.ES, 1, "5"), *((TierName.MS, index, "4") for index in range(3))]
        )
    )
    usual: dict[str, object] = {
        "problem": problem,
        "label": f"problem-{problem[:6]}",
        "family": "sums",
        "domain": "algebra",
        "seed": 0,
        "exit": ExitPath.MS_MAJORITY,
        "answer": "4",
        "expected": "4",
        "verdict": Verdict.SAME,
        "correct": True,
        "paper_calls": 5,
        "real_calls": 5,
        "seconds": 7.5,
        "failed": False,
        "recalls": (a_recall(),),
        "classes": (ClassRecord(answer="4", positions=(0, 2, 3, 4)), ClassRecord(answer="5", positions=(1,))),
        "attempts": attempts,
    }
    return Solution.model_validate({**usual, **fields})


def a_call(key: str, text: str, **fields: object) -> str:
    """The line of a kept call."""
    names = {"model": "m", "problem": "p", "seed": 0, "tier": "ES", "index": 0, "seconds": 1.0}
    usual = {"v": 1, "finish": Finish.STOP, "input": 1, "cached": 0, "output": 1, **names}
    record = CallRecord.model_validate({"key": key, "text": text, **usual, **fields})
    return record.model_dump_json() + "\n"


def a_recall(**fields: object) -> RetrievedContext:
    """What MS read."""
    usual: dict[str, object] = {
        "tier": TierName.MS,
        "domains": ("algebra",),
        "cards": ("EXACT_SUM_OF_SQUARES",),
        "eligible": 1,
        "tokens": 60,
        "estimated": True,
        "classifier_calls": 1,
        "classifier_input": 50,
        "classifier_output": 3,
    }
    return RetrievedContext.model_validate({**usual, **fields})


def a_run(folder: Path, solves: Iterable[Solution] = (), **manifest: object) -> Path:
    """A run's directory."""
    folder.mkdir(parents=True)
    said: dict[str, object] = {
        "v": 1,
        "kace": "0.1.0",
        "config": {"model": "scripted/test"},
        "system": {"name": "tiered"},
    }
    (folder / "run.json").write_text(json.dumps({**said, **manifest}), encoding="utf-8")
    lines = [solve.model_dump_json() + "\n" for solve in solves or (a_solve(),)]
    (folder / "traces.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


def a_learner(folder: Path) -> Path:
    """A tree that a learner has begun to make, with one run of its own."""
    a_tree(folder)
    learn = folder / "learn"
    a_run(learn / "epoch-1-add-MS-run")
    manifest = {"v": 1, "config": {"model": "scripted/test"}, "settings": {}, "prompts": {}, "train": {"problems": 3}}
    (learn / "learn.json").write_text(json.dumps(manifest), encoding="utf-8")
    (learn / "steps.jsonl").write_text("", encoding="utf-8")
    return folder


def an_inbox(folder: Path, name: str = "propose-1") -> Path:
    """An exchange folder with one request."""
    folder.mkdir(parents=True)
    (folder / f"{name}.request.md").write_text("# A request\n\nWrite a card.\n", encoding="utf-8")
    return folder


def a_shelf_of_all(folder: Path) -> Path:
    """A folder with one thing of each kind."""
    a_learner(folder / "oak")
    a_run(folder / "first")
    an_inbox(folder / "letters")
    return folder
