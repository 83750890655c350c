"""What decides where a tree's cards are shown: the thresholds of its gate, and the wordings that cards are found by."""

from __future__ import annotations

import json
import shlex
from functools import partial
from pathlib import Path

import typer

from kace.cards.store import TreeStore, open_tree
from kace.cards.tree import Batch, Edit
from kace.cli.learn_show import LearnProgress, calibration_lines
from kace.cli.models import prepare
from kace.cli.options import DATA, Typed, option
from kace.cli.streams import escaped, print_lines, run_async
from kace.config import profile_of
from kace.errors import UsageError
from kace.ladder.prompt import template_hashes
from kace.learning.calibrate import LEAST, Calibration, keep_calibration
from kace.learning.leakage import ContaminationHashes
from kace.learning.loop import set_thresholds
from kace.learning.settings import Settings
from kace.learning.study import (
    AUTHOR,
    GivenModels,
    LearnPlan,
    check_training,
    open_resources,
)
from kace.learning.wordings import find_wordings
from kace.models.scripted import Scripted, steady
from kace.problems import load_problems
from kace.words import counted

TREE = typer.Argument(
    metavar="TREE", help="A tree, learned or written by hand.", show_default=False
)


def calibrate(
    typed: Typed,
    as_json: bool,
    tree: Path = TREE,
    train: Path = option(
        DATA, ..., help="JSONL with a training problem and its answer a line."
    ),
) -> None:
    """Set the thresholds of a tree's gate from training problems alone: kace learn calibrate TREE --train FILE.

    Each problem that a card of another technique is relevant to is solved with that card and without: what is lost is
    the harm of a card shown where it does not fit. `kace learn` does this for the trees it makes.
    """
    kept = profile_of(None, tree).get("learning", {})
    config = typed.config(*Settings.model_fields, tree=tree)
    reading = config.retrieval.model_copy(update={"relevance_threshold": LEAST})
    config = config.model_copy(update={"retrieval": reading, "tree": None})
    settings = typed.learning(Settings, {})
    problems = load_problems(train, config.fields)[: typed.limit]
    check_training(problems)
    prepare(config)
    manifest = LearnPlan(problems, config, settings, tree).manifest()

    async def work() -> Calibration:
        folder = tree / "calibrate"
        async with open_resources(
            folder, config, manifest, GivenModels(taught=False), observer=progress
        ) as found:
            progress.ledger = found.session.ledger
            return await set_thresholds(open_tree(tree), problems, found, settings)

    with LearnProgress(1) as progress:
        found = run_async(work(), resumable=True)
    keep_calibration(tree, found, reading, kept)
    print_lines(
        [escaped(found.model_dump_json())] if as_json else calibration_lines(found)
    )


def wordings(
    typed: Typed,
    as_json: bool,
    tree: Path = TREE,
    held_out: list[Path] = option(
        DATA,
        [],
        help="An evaluation split: leave out wordings that retell its problems.",
    ),
) -> None:
    """Find cards in other stories: kace learn wordings TREE --teacher MODEL.

    The teacher writes problems of each card's kind in other stories, 16 a card (--set wordings=N). A problem is then
    compared with them too. No solver reads them. Set the gate's thresholds anew afterwards: kace learn calibrate.
    """
    store = TreeStore.open(tree)
    config = typed.config(*Settings.model_fields)
    settings = typed.learning(Settings, {})
    if not settings.wordings:
        raise UsageError(
            "wordings=0 asks for none", fix="--set wordings=16, or leave it out"
        )
    held = ContaminationHashes.of(
        each for path in held_out for each in load_problems(path, config.fields)
    )
    retells = partial(held.retells, max_overlap=settings.max_overlap)
    before = store.load()
    frozen = store.frozen_hash
    prompt = template_hashes("teacher")["teacher/wordings"]
    manifest: dict[str, object] = {
        "teacher": config.teacher,
        "wordings": settings.wordings,
        "prompt": prompt,
    }

    async def work() -> tuple[Edit, ...]:
        folder = tree / "wordings" / before.content_hash()[:12]
        unasked = Scripted(steady)
        async with open_resources(
            folder, config, manifest, GivenModels(unasked), observer=progress
        ) as found:
            progress.ledger = found.session.ledger
            return await find_wordings(
                before, settings.wordings, found.teacher, found.log, retells
            )

    with LearnProgress(1) as progress:
        edits = run_async(work(), resumable=True)
    if edits:
        if frozen:
            store.thaw(author=AUTHOR)
        store.apply(Batch(edits), author=AUTHOR, note="wordings")
        if frozen:
            store.freeze(author=AUTHOR)
    made = {edit.card.card_id: len(edit.card.wordings) for edit in edits}
    bare = sum(not card.wordings and card.card_id not in made for card in before.shown)
    left = (
        [
            f"without      {counted(bare, 'card')}: the teacher wrote none that could be used"
        ]
        if bare
        else []
    )
    again = f"kace learn calibrate {shlex.quote(str(tree))} --train FILE: its thresholds are of the tree before"
    told = [
        f"wordings     {sum(made.values()):,} for {counted(len(made), 'card')}",
        *left,
        f"then         {again}",
    ]
    print_lines([json.dumps(made)] if as_json else told)
