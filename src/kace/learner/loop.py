"""The algorithm: grow the tree from failures, measure it, revise it, and freeze it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kace.learner.admit import Desk, admit, screen
from kace.learner.cell import Cell
from kace.learner.commit import CommitRule, Look, look
from kace.learner.confident import confident_failures, left_wrong
from kace.learner.consolidate import Merges, consolidate
from kace.learner.credit import credit
from kace.learner.effects import dropout_lifts
from kace.learner.failure import Failure
from kace.learner.fires import fires
from kace.learner.growth import unproven
from kace.learner.illustrate import Illustrated, illustrate
from kace.learner.imagine import imagine
from kace.learner.impact import leave_one_out
from kace.learner.lift import Impact
from kace.learner.notebook import Step
from kace.learner.partition import Partition, partition
from kace.learner.placements import Placements, place_all
from kace.learner.practice import Exercise
from kace.learner.propose import Lesson, find_knowledge
from kace.learner.revise import Revisions, Ward, changes, refine, removes_only, revise
from kace.learner.study import ADD, BASE, UNSEEN, Study
from kace.learner.teacher import side_by_side
from kace.learner.verdicts import Proposals, Refused, Rulings
from kace.solver.dropout import Dropout
from kace.solver.tiers import TierName
from kace.solver.trace import SolveRecord
from kace.tree.card import UNIVERSAL, Card, Status
from kace.tree.changes import Batch, Change, applied
from kace.tree.tree import EpistemicTree

Records = tuple[SolveRecord, ...]


async def learn(study: Study) -> EpistemicTree:
    """The frozen tree. Whatever was done before is not done again."""
    step = Step("plan", "partition")
    parts = await study.notebook.once(step, Partition, lambda: partition(study.train, study.teacher))
    study.growth.plant(parts.domains)
    for epoch in range(1, study.settings.epochs + 1):
        for tiers in rounds_of(study):
            await add(tiers, epoch, study)
        await measure_and_revise(epoch, study)
        study.growth.snapshot(epoch)
    if study.settings.keep == "validated":
        study.growth.commit(Step("close", "prune"), unproven(study.growth.tree))
    return study.growth.freeze()


def rounds_of(study: Study) -> tuple[tuple[TierName, ...], ...]:
    """The tiers that gain cards from one run."""
    both = (TierName.MS, TierName.HS)
    return (both,) if study.settings.add_runs == 1 else tuple((tier,) for tier in both)


async def add(tiers: Sequence[TierName], epoch: int, study: Study) -> None:
    """Phase 1: a tiered run, then new cards for every cell of the tiers where it failed."""
    tree = study.growth.tree
    place = "+".join(tier.value for tier in tiers)
    run = Step("add", "run", epoch, place)
    records = await study.practise(Exercise(run, study.train, tree, study.seed(epoch, ADD)))
    gone = await gone_wrong(Step("add", "place", epoch, place), records, study) if study.settings.confident else {}
    failed = {
        cell: (*study.failed(records, cell), *gone.get(cell.domain, ()))
        for cell in (Cell(tier, name) for tier in tiers for name in tree.domain_names)
    }
    ruled = await side_by_side([new_cards(cell, epoch, found, study) for cell, found in failed.items()])
    gained = consolidate(tree, [card for rulings in ruled for card in rulings.admitted])
    study.notebook.write_new(Step("add", "merge", epoch, place), Merges(merged=gained.merged))
    study.growth.commit(Step("add", "commit", epoch, place), gained.changes)


async def gone_wrong(step: Step, records: Records, study: Study) -> dict[str, tuple[Failure, ...]]:
    """By domain, the problems that ES left with a wrong answer it was sure of."""
    left, domains = left_wrong(records), study.growth.tree.domains
    problems, practice = [study.by_id[record.problem] for record in left], study.practice
    placed = await study.notebook.once(
        step, Placements, lambda: place_all(problems, domains, practice.session, practice.config)
    )
    return {domain.name: confident_failures(left, placed, domain.name, study) for domain in domains}


async def new_cards(cell: Cell, epoch: int, failed: tuple[Failure, ...], study: Study) -> Rulings:
    """The cards a cell gains: proposed by the teacher from its failures, then admitted one by one."""
    if not failed:
        return Rulings()
    known, domains = cards_of(cell, study.growth.tree), study.growth.tree.domain_names

    def lesson(step: Step) -> Lesson:
        return replace(study.lesson(step), screen=lambda card: screen(card, cell, study.leaks, domains))

    asked = Step("add", "propose", epoch, str(cell))
    proposed = await study.notebook.once(asked, Proposals, lambda: find_knowledge(cell, failed, known, lesson(asked)))
    if study.settings.imagine and (seen := (*known, *proposed.cards)):
        beside = Step("add", "imagine", epoch, str(cell))
        more = await study.notebook.once(beside, Proposals, lambda: imagine(cell, seen, lesson(beside)))
        proposed = Proposals(cards=proposed.cards + more.cards, refused=proposed.refused + more.refused)
    ruled = Step("add", "admit", epoch, str(cell))
    desk = Desk(study.leaks, domains, study.lesson(ruled))
    rulings = await study.notebook.once(ruled, Rulings, lambda: admit(proposed, cell, desk))
    if not study.settings.examples:
        return rulings
    shown = Step("add", "illustrate", epoch, str(cell))
    illustrated = await study.notebook.once(
        shown, Illustrated, lambda: illustrate(rulings.admitted, study.settings.examples, study.by_name, lesson(shown))
    )
    return rulings.model_copy(update={"admitted": illustrated.cards})


async def measure_and_revise(epoch: int, study: Study) -> None:
    """Phase 2: no new cards. What each card is worth, and what the curator would change about it."""
    tree = study.growth.tree
    base = await study.practise(Exercise(Step("refine", "base", epoch), study.train, tree, study.seed(epoch, BASE)))
    measured = Step("refine", "impact", epoch)
    impact = await study.notebook.once(measured, Impact, lambda: measure(epoch, tree, base, study))
    alpha = study.settings.alpha / study.settings.epochs
    credited = study.growth.commit(Step("refine", "credit", epoch), credit(tree, impact, epoch=epoch, alpha=alpha))
    if not study.settings.refine:
        return
    if retired(tree, credited):  # the tree reads differently now, so a revision needs another base to be held against
        again = Exercise(Step("refine", "rebase", epoch), study.train, credited, study.seed(epoch, BASE))
        base = await study.practise(again)
    wards = [name for name in (*tree.domain_names, UNIVERSAL) if ward_cards(name, credited)]
    revised = await side_by_side([revise_ward(name, epoch, base, impact, study) for name in wards])
    for name, accepted in zip(wards, revised, strict=True):
        study.growth.commit(Step("refine", "commit", epoch, name), accepted)


async def measure(epoch: int, tree: EpistemicTree, base: Records, study: Study) -> Impact:
    """Fire statistics always; lifts by the method asked for."""
    seen, settings = fires(base), study.settings
    if settings.impact == "fires" or not seen:
        return Impact(fires=seen)
    if settings.impact == "leave_one_out":
        kit = study.practice.kit(tree, study.seed(epoch, BASE))
        found = await leave_one_out(base, tree, study.by_id, kit, max_calls=settings.impact_calls)
        return found.model_copy(update={"fires": seen})
    records: list[SolveRecord] = []
    for number in range(settings.impact_runs):
        # The first run draws the base run's samples: its ES attempts are the same and cost nothing.
        seed = study.seed(epoch, BASE + number)
        step = Step("refine", "dropout", epoch, number=number + 1)
        records += await study.practise(
            Exercise(step, study.train, tree, seed, Dropout(settings.dropout_rate, seed=seed))
        )
    calls = sum(record.paper_calls for record in records)
    return Impact(fires=seen, lifts=dropout_lifts(records), calls=calls)


async def revise_ward(name: str, epoch: int, base: Records, impact: Impact, study: Study) -> tuple[Change, ...]:
    """The changes to a domain's cards that a rerun bore out; none where no candidate did."""
    tree, settings = study.growth.tree, study.settings
    touched = base if name == UNIVERSAL else tuple(record for record in base if name in record.domains)
    rule = CommitRule(settings.threshold, settings.alpha, looks_of(study))
    asked = Step("refine", "revise", epoch, name, 1)
    ward = Ward(
        domain=name,
        cards=ward_cards(name, tree),
        impact=impact,
        failed=still_wrong(touched, name, study),
        lesson=study.lesson(asked),
        screen=lambda card: screen_edit(card, study),
    )
    revisions = await study.notebook.once(asked, Revisions, lambda: revise(ward))
    problems = tuple(study.by_id[record.problem] for record in touched)
    held, seed = touched, study.seed(epoch, BASE)
    for number in range(1, settings.refine + 1):
        wanted = changes(tree, revisions)
        if not wanted:
            return ()
        if number == 1 and was_cut(touched):
            # A cut block gives each problem other cards, so a curator who goes by failures would pick which problems
            # are drawn anew, and chance would look like lift: hold tree and candidate against samples nobody has seen.
            seed = study.seed(epoch, UNSEEN)
            unseen = Step("refine", "unseen base", epoch, name)
            held = await study.practise(Exercise(unseen, problems, tree, seed))
        candidate = applied(tree, Batch(wanted))
        again = Step("refine", "verify", epoch, name, number)
        rerun = await study.practise(Exercise(again, problems, candidate, seed))
        seen = look(held, rerun, domain=name, number=number, rule=rule, removes_only=removes_only(revisions))
        study.notebook.write_new(Step("refine", "look", epoch, name, number), seen)
        if seen.accepted:
            return wanted
        if number < settings.refine:
            next_step = Step("refine", "revise", epoch, name, number + 1)
            revisions = await better(ward, revisions, seen, rerun, next_step, study)
    return ()


async def better(ward: Ward, before: Revisions, seen: Look, rerun: Records, step: Step, study: Study) -> Revisions:
    """The curator's next try, after it saw how the last one fared."""
    wrong = still_wrong(rerun, ward.domain, study)
    informed = replace(ward, lesson=study.lesson(step))
    return await study.notebook.once(step, Revisions, lambda: refine(informed, before, seen, wrong))


def looks_of(study: Study) -> int:
    """Every look of the run shares alpha: so often may chance alone pass anywhere in it."""
    settings = study.settings
    return settings.refine * settings.epochs * (len(study.growth.tree.domains) + 1)


def was_cut(records: Records) -> bool:
    """Whether some block was too large to be read whole."""
    return any(recall.eligible > len(recall.cards) for record in records for recall in record.recalls)


def retired(before: EpistemicTree, after: EpistemicTree) -> bool:
    """Whether some card is no longer shown."""
    return any(card.status is Status.DEPRECATED is not before.card(card.card_id).status for card in after)


def cards_of(cell: Cell, tree: EpistemicTree) -> tuple[Card, ...]:
    """What the tier may read in the domain today."""
    return tree.project(cell.tier, (cell.domain,))


def ward_cards(name: str, tree: EpistemicTree) -> tuple[Card, ...]:
    """The cards one revision may touch. A card of several domains belongs to the first, so that no two revise it."""
    return tuple(card for card in tree if card.status is not Status.DEPRECATED and card.domain_tags[0] == name)


def still_wrong(records: Sequence[SolveRecord], name: str, study: Study) -> tuple[Failure, ...]:
    """The problems of a domain that no tier delivered."""
    wrong = tuple(record for record in records if not record.correct)
    places = sorted({domain for record in wrong for domain in record.domains}) if name == UNIVERSAL else [name]
    found = {
        failure.problem.id: failure
        for tier in (TierName.MS, TierName.HS)
        for place in places
        for failure in study.failed(wrong, Cell(tier, place))
    }
    return tuple(found.values())


def screen_edit(card: Card, study: Study) -> Refused | None:
    """What code holds against a rewritten card, wherever it lives."""
    tier = TierName.HS if card.difficulty_tag.value == "hard" else TierName.MS
    return screen(card, Cell(tier, card.domain_tags[0]), study.leaks, study.growth.tree.domain_names)
