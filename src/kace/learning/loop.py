"""The algorithm: grow the tree from failures, measure it, revise it, and freeze it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kace.cards.card import UNIVERSAL, Card, Difficulty
from kace.cards.tree import Batch, Change, Edit, EpistemicTree, applied
from kace.errors import one_line
from kace.ladder.policies import Dropout
from kace.ladder.record import Solution
from kace.ladder.relevance import Relevance, RelevanceScore
from kace.ladder.tiers import TierName
from kace.learning.admit import Demonstrations, Rulings, admit, demonstrate, screen
from kace.learning.blocks import CardRefusal
from kace.learning.calibrate import Calibration, calibrate, keep_calibration
from kace.learning.commit import (
    CommitRule,
    analyse,
    consolidate,
    credit,
    credit_posterior,
    idle,
    unproven,
)
from kace.learning.effects import Impact, dropout_lifts, fires, leave_one_out
from kace.learning.partition import Partition, partition
from kace.learning.propose import (
    FAILURES_AT_ONCE,
    FailedProblem,
    Proposals,
    Screen,
    TreeCell,
    find_knowledge,
    imagine,
    split,
    wrong_at_es,
)
from kace.learning.revise import (
    DomainRevision,
    LastTry,
    Revisions,
    changes,
    removes_only,
    revise,
    rewritten,
)
from kace.learning.settings import Settings
from kace.learning.solutions import admit_fitting, partition_by_label, propose_solved
from kace.learning.steps import StepName
from kace.learning.study import ADD, BASE, UNSEEN, Resources, Routes, Study
from kace.learning.teacher import side_by_side
from kace.learning.wordings import find_wordings
from kace.problems import Problem

Records = tuple[Solution, ...]


async def learn(study: Study) -> EpistemicTree:
    """The frozen tree. Whatever was done before is not done again."""
    asked = (
        partial(partition, study.train, study.teacher)
        if study.asked
        else partial(partition_by_label, study.train)
    )
    parts = await study.log.once(StepName("plan", "partition"), Partition, asked)
    study.writer.plant(parts.domains)
    rounds = (
        ((TierName.MS, TierName.HS),)
        if study.settings.add_runs == 1
        else ((TierName.MS,), (TierName.HS,))
    )
    for epoch in range(1, study.settings.epochs + 1):
        for tiers in rounds:
            await add(tiers, epoch, study)
        await measure_and_revise(epoch, study)
        study.writer.snapshot(epoch)
    if study.settings.keep == "validated":
        study.writer.commit(StepName("close", "prune"), unproven(study.tree))
    if study.settings.wordings and study.asked:
        count = study.settings.wordings
        retells = study.leaks.retells
        worded = await find_wordings(study.tree, count, study.asked, study.log, retells)
        study.writer.commit(StepName("close", "word"), worded)
    if study.settings.calibration_runs:
        found = await set_thresholds(study.tree, study.train, study, study.settings)
        keep_calibration(
            study.writer.folder,
            found,
            study.config.retrieval,
            study.settings.model_dump(mode="json"),
        )
    return study.writer.freeze()


async def set_thresholds(
    tree: EpistemicTree, train: Sequence[Problem], work: Resources, settings: Settings
) -> Calibration:
    """The thresholds of the gate for a tree as it is now."""

    async def solve(
        problems: Sequence[Problem], relevance: RelevanceScore | None, number: int
    ) -> Records:
        step = StepName(
            "calibrate", "left out" if relevance else "alone", number=number
        )
        read = tree if relevance else EpistemicTree.of(tree.domains, ())
        return await work.run(
            step, problems, read, work.seed_of(0, number), relevance=relevance
        )

    ask = partial(
        calibrate,
        tree,
        train,
        solve,
        runs=settings.calibration_runs,
        max_harm=settings.max_harm,
    )
    return await work.log.once(StepName("close", "calibrate"), Calibration, ask)


async def add(tiers: Sequence[TierName], epoch: int, study: Study) -> None:
    """Phase 1: a tiered run, then new cards for every cell of the tiers where it failed."""
    tree = study.tree
    place = "+".join(tier.value for tier in tiers)
    run = StepName("add", "run", epoch, place)
    records = await study.run(run, study.train, tree, study.seed_of(epoch, ADD))
    at_es = (
        await failures_at_es(epoch, place, records, study)
        if study.settings.confident
        else {}
    )
    failed = {
        cell: (*study.failed(records, cell), *at_es.get(cell.domain, ()))
        for cell in (
            TreeCell(tier, name) for tier in tiers for name in tree.domain_names
        )
    }
    parts = [
        (cell, part)
        for cell, found in failed.items()
        for part in enumerate(split(found, FAILURES_AT_ONCE))
    ]
    ruled = await side_by_side(
        [new_cards(cell, epoch, part, number, study) for cell, (number, part) in parts]
    )
    wanted, merges = consolidate(
        tree, [card for rulings in ruled for card in rulings.admitted]
    )
    study.log.write(StepName("add", "merge", epoch, place), merges)
    study.writer.commit(StepName("add", "commit", epoch, place), wanted)


async def failures_at_es(
    epoch: int, place: str, records: Records, study: Study
) -> dict[str, list[FailedProblem]]:
    """By domain, the problems that ES left with a wrong answer it was sure of.

    Without them, a rule that the solver is confidently wrong about is never written down.
    """
    wrong = [record for record in records if wrong_at_es(record)]
    domains = study.tree.domains
    problems = [study.by_id[record.problem] for record in wrong]
    routed = partial(study.route_all, problems, domains)
    routes = await study.log.once(
        StepName("add", "place", epoch, place), Routes, routed
    )
    failed = [
        FailedProblem.of(r, study.by_id[r.problem], TierName.ES, study.text_of)
        for r in wrong
    ]
    return {
        d.name: [each for each in failed if d.name in routes.domains[each.problem.id]]
        for d in domains
    }


async def new_cards(
    cell: TreeCell,
    epoch: int,
    failed: Sequence[FailedProblem],
    number: int,
    study: Study,
) -> Rulings:
    """The cards a cell gains: proposed from its failures or imagined beside its cards, then admitted one by one.

    The number says which part of its failures they are.
    """
    known = study.tree.project(cell.tier, (cell.domain,))
    fits = partial(
        screen, cell=cell, leaks=study.leaks, domains=study.tree.domain_names
    )

    def step(what: str) -> StepName:
        return StepName("add", what, epoch, str(cell), number)

    if not study.asked:  # the training set's own solutions teach
        problems = [failure.problem for failure in failed]
        made = partial(propose_solved, cell, problems, study.settings.examples, epoch)
        proposed = await study.log.once(step("propose"), Proposals, made)
        return await study.log.once(
            step("admit"), Rulings, partial(admit_fitting, proposed, fits)
        )
    proposed = Proposals()
    if failed:
        proposed = await study.ask(
            step("propose"),
            Proposals,
            partial(find_knowledge, cell, failed, known),
            fits,
        )
    if study.settings.imagine and (seen := (*known, *proposed.cards)):
        more = await study.ask(
            step("imagine"), Proposals, partial(imagine, cell, seen), fits
        )
        proposed = Proposals(
            cards=proposed.cards + more.cards, refused=proposed.refused + more.refused
        )
    elif not failed:
        return Rulings()
    if study.settings.examples and proposed.cards:
        # Before the ruling: the solver reads the demonstrations, so they are what must be right.
        shown = await demonstrations(proposed.cards, step("illustrate"), fits, study)
        proposed = proposed.model_copy(update={"cards": shown.cards})
    return await study.ask(step("admit"), Rulings, partial(admit, proposed, cell), fits)


async def measure_and_revise(epoch: int, study: Study) -> None:
    """Phase 2: no new cards. What each card is worth, and what the curator would change about it."""
    tree = study.tree
    settings = study.settings
    base = await study.run(
        StepName("refine", "base", epoch), study.train, tree, study.seed_of(epoch, BASE)
    )
    impact = await study.log.once(
        StepName("refine", "impact", epoch),
        Impact,
        partial(measure, epoch, tree, base, study),
    )
    every = (
        study.log.recall(StepName("refine", "impact", number), Impact)
        for number in range(1, epoch + 1)
    )
    impacts = [found for found in every if found]
    edits = credit(tree, impact, epoch=epoch)
    if settings.evidence == "posterior":
        edits = credit_posterior(tree, impacts, epoch=epoch, keep=settings.keep_above)
    credited = study.writer.commit(StepName("refine", "credit", epoch), edits)
    if settings.refine:
        await revise_domains(epoch, credited, base, impact, study)
    if settings.evidence == "posterior":
        unhelpful = idle(credited, study.tree, impacts, settings.retire_below)
        study.writer.commit(StepName("refine", "retire", epoch), unhelpful)


async def revise_domains(
    epoch: int, credited: EpistemicTree, base: Records, impact: Impact, study: Study
) -> None:
    """Put every domain's cards before its curator, and keep what reruns bear out."""
    shown = {card.card_id for card in credited.shown}
    seed = study.seed_of(epoch, BASE)
    if any(
        name not in shown
        for record in base
        for recall in record.recalls
        for name in recall.cards
    ):
        # The tree reads differently now, so a revision needs another base to be held against.
        base = await study.run(
            StepName("refine", "rebase", epoch), study.train, credited, seed
        )
    names = [
        name
        for name in (*credited.domain_names, UNIVERSAL)
        if cards_to_revise(name, credited)
    ]
    revised = await side_by_side(
        [revise_domain(name, epoch, base, impact, study) for name in names]
    )
    for name, accepted in zip(names, revised, strict=True):
        study.writer.commit(StepName("refine", "commit", epoch, name), accepted)


async def measure(
    epoch: int, tree: EpistemicTree, base: Records, study: Study
) -> Impact:
    """Fire statistics always; lifts by the method asked for."""
    seen = fires(base)
    settings = study.settings
    if settings.impact == "fires" or not seen:
        return Impact(fires=seen)
    if settings.impact == "leave_one_out":
        kit = study.session.kit
        placement = study.config.retrieval.placement
        return await leave_one_out(
            base,
            tree,
            study.by_id,
            kit,
            max_calls=settings.impact_calls,
            placement=placement,
        )
    gate = Relevance(
        tree, study.config.retrieval
    )  # a problem that no card is shown to says nothing of any
    readers = [
        problem for problem in study.train if gate.relevant(problem.text, tree.shown)
    ]

    async def hiding(number: int) -> Records:
        # The first run draws the base run's samples: its ES attempts are the same and cost nothing.
        seed = study.seed_of(epoch, BASE + number)
        step = StepName("refine", "dropout", epoch, number=number + 1)
        return await study.run(
            step, readers, tree, seed, Dropout(settings.dropout_rate, seed=seed)
        )

    runs = await side_by_side(map(hiding, range(settings.impact_runs)))
    records = [record for run in runs for record in run]
    return Impact(
        fires=seen,
        lifts=dropout_lifts(records, tree),
        calls=sum(record.paper_calls for record in records),
    )


async def revise_domain(
    name: str, epoch: int, base: Records, impact: Impact, study: Study
) -> tuple[Change, ...]:
    """The changes to a domain's cards that a rerun bore out; none where no candidate did."""
    tree = study.tree
    settings = study.settings
    keep = settings.keep_above if settings.evidence == "posterior" else None
    rule = CommitRule(settings.threshold, keep)
    own = (
        base
        if name == UNIVERSAL
        else tuple(record for record in base if name in record.domains)
    )
    # A card that is moved, or found by other words, is read elsewhere. What reads nothing new costs nothing anew.
    touched = base if settings.evidence == "posterior" else own
    problems = tuple(study.by_id[record.problem] for record in touched)
    domain = DomainRevision(
        name, cards_to_revise(name, tree), impact, still_wrong(own, name, study)
    )
    held = touched
    seed = study.seed_of(epoch, BASE)
    last = None

    def step(what: str, number: int = 0) -> StepName:
        return StepName("refine", what, epoch, name, number)

    def fits(card: Card) -> CardRefusal | None:
        """What code holds against a rewritten card, wherever it lives."""
        tier = TierName.HS if card.difficulty_tag is Difficulty.HARD else TierName.MS
        return screen(
            card, TreeCell(tier, card.domain_tags[0]), study.leaks, tree.domain_names
        )

    for number in range(1, settings.refine + 1):
        revisions = await study.ask(
            step("revise", number), Revisions, partial(revise, domain, last), fits
        )
        wanted = await demonstrated(
            changes(tree, revisions), step("illustrate", number), fits, study
        )
        if not wanted:
            return ()
        if number == 1 and any(
            recall.eligible > len(recall.cards) for r in touched for recall in r.recalls
        ):
            # A cut block gives each problem other cards, so a curator who goes by failures would pick which problems
            # are drawn anew, and chance would look like lift: hold tree and candidate against samples nobody has seen.
            seed = study.seed_of(epoch, UNSEEN)
            held = await study.run(step("unseen base"), problems, tree, seed)
        rerun = await study.run(
            step("verify", number), problems, applied(tree, Batch(wanted)), seed
        )
        found = analyse(
            held,
            rerun,
            domain=name,
            number=number,
            rule=rule,
            removes_only=removes_only(revisions),
        )
        study.log.write(step("look", number), found)
        if found.accepted:
            return wanted
        last = LastTry(revisions, found, still_wrong(rerun, name, study))
    return ()


async def demonstrated(
    wanted: tuple[Change, ...], step: StepName, fits: Screen, study: Study
) -> tuple[Change, ...]:
    """The changes, with demonstrations written anew for every card that was rewritten or moved.

    The solver reads a card's demonstrations, so a new rule under the old ones would change nothing. A card for which
    none could be written stays as it was.
    """
    cards = [rewritten(study.tree, change) for change in wanted]
    if not study.settings.examples or not any(cards):
        return wanted
    found = await demonstrations(tuple(filter(None, cards)), step, fits, study)
    after = {card.card_id: card for card in found.cards}
    made: list[Change] = []
    for change, card in zip(wanted, cards, strict=True):
        if card and after[card.card_id].examples != card.examples:
            made.append(Edit(after[card.card_id]))
        elif not isinstance(change, Edit):
            made.append(change)
    return tuple(made)


async def demonstrations(
    cards: tuple[Card, ...], step: StepName, fits: Screen, study: Study
) -> Demonstrations:
    """Cards with the worked examples that the teacher writes for them."""
    by_name = {one_line(problem.name): problem for problem in study.train}
    return await study.ask(
        step,
        Demonstrations,
        partial(demonstrate, cards, study.settings.examples, by_name),
        fits,
    )


def cards_to_revise(name: str, tree: EpistemicTree) -> tuple[Card, ...]:
    """The cards one revision may touch. A card of several domains belongs to the first, so that no two revise it."""
    return tuple(card for card in tree.shown if card.domain_tags[0] == name)


def still_wrong(
    records: Sequence[Solution], name: str, study: Study
) -> tuple[FailedProblem, ...]:
    """The problems of a domain that no tier delivered."""
    wrong = tuple(record for record in records if not record.correct)
    places = (
        sorted({domain for record in wrong for domain in record.domains})
        if name == UNIVERSAL
        else [name]
    )
    cells = [
        TreeCell(tier, place) for tier in (TierName.MS, TierName.HS) for place in places
    ]
    return tuple(
        {
            failure.problem.id: failure
            for cell in cells
            for failure in study.failed(wrong, cell)
        }.values()
    )
