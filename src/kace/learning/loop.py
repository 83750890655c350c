"""The algorithm: grow the tree from failures, measure it, revise it, and freeze it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import product
from typing import TypeVar

from kace.cards.card import (
    MAX_LINE,
    MAX_WORDINGS,
    UNIVERSAL,
    Card,
    CardError,
    Difficulty,
)
from kace.cards.store import CALIBRATION, INDEX_FILE
from kace.cards.tree import Add, Change, Edit, EpistemicTree, applied
from kace.errors import one_line
from kace.files import write_atomic
from kace.ladder.record import Solution
from kace.ladder.relevance import TextTable, best_encoder
from kace.ladder.tiers import TierName
from kace.learning.admit import admit, consolidate, same_knowledge
from kace.learning.calibrate import calibrate
from kace.learning.measure import Impact, compare, credit, measure, retire
from kace.learning.propose import Proposals, find_knowledge, imagine, split
from kace.learning.revise import (
    WORDINGS_AT_ONCE,
    DomainCards,
    LastTry,
    Revisions,
    demonstrations,
    revise,
    revision_changes,
    wordings,
    write,
)
from kace.learning.study import (
    ADD,
    BASE,
    RunReading,
    StepName,
    Study,
    gather_all,
    results,
    write_profile,
)
from kace.learning.teacher import (
    FailedProblem,
    TreeCell,
)

T = TypeVar("T")
Records = tuple[Solution, ...]
Failures = Mapping[TreeCell, Sequence[FailedProblem]]
READERS = (TierName.MS, TierName.HS)
"""The tiers that read cards."""
FAILURES_AT_ONCE = 50
"""Failed problems of one request: as much as a teacher takes in, with room to reply."""
CARDS_AT_ONCE = 30
"""Cards of one request for examples and rulings: their examples must fit a reply."""
MOST_OWN_TEXTS = 4  # problems a card came from that it is found by


async def learn(study: Study) -> EpistemicTree:
    """Learn a tree and return it frozen. Steps done before are not done again."""
    settings = study.settings
    await plant(study)
    rounds: list[tuple[TierName, ...]] = [(TierName.MS,), (TierName.HS,)]
    if settings.add_runs == 1:
        rounds = [READERS]
    for epoch in range(1, settings.epochs + 1):
        for tiers in rounds:
            records = await first_run(tiers, epoch, study.tree, study)
            failed = study.failed(records, tiers)
            await grow(place_of(tiers), epoch, failed, study)
        await measure_and_revise(epoch, study)
        study.writer.snapshot(epoch)
    for number in range(1, settings.imagine + 1):
        await imagine_more(settings.epochs + number, study)
    if study.config.retrieval.relevance_threshold or settings.max_harm:
        await train_index(rounds[0], study)
    return study.writer.freeze()


async def train_index(tiers: Sequence[TierName], study: Study) -> None:
    """Train what finds the cards, and calibrate the thresholds for showing one."""
    folder = study.writer.store.folder
    table = TextTable(study.tree, study.train, best_encoder())
    table.index().save(folder / INDEX_FILE)
    harm = study.settings.max_harm
    if harm:
        # The first run had no cards to read.
        bare = EpistemicTree.of(study.tree.domains, ())
        alone = await first_run(tiers, 1, bare, study)
        found = calibrate(table, study.train, alone, harm)
        study.log.write(StepName("close", "calibrate"), found)
        retrieval = study.config.retrieval.model_copy(
            update={
                "relevance_threshold": found.threshold,
                "skip_threshold": found.skip_threshold,
            }
        )
        write_profile(folder, retrieval, study.settings)
        reasons = found.model_dump_json(indent=1)
        write_atomic(folder / CALIBRATION, f"{reasons}\n")


async def plant(study: Study) -> None:
    """Begin with the tree given, else with the domains of the training problems."""
    if study.start:
        study.writer.plant(study.start)
        return
    most = study.settings.partition_problems
    domains = await study.domains_of(study.train, most)
    study.writer.plant(EpistemicTree.of(domains, ()))


async def imagine_more(epoch: int, study: Study) -> None:
    """Ask for cards that no failure called for, beside those of every cell."""
    cells: dict[TreeCell, Sequence[FailedProblem]] = {}
    for tier, domain in product(READERS, study.tree.domain_names):
        if study.tree.project(tier, (domain,)):
            cells[TreeCell(tier, domain)] = ()
    await grow("MS+HS", epoch, cells, study)
    study.writer.snapshot(epoch)


async def grow(place: str, epoch: int, failed: Failures, study: Study) -> None:
    """Add new cards for the cells of a round to the tree, each rule once."""
    works = []
    for domain in study.tree.domain_names:
        works.append(new_cards(domain, place, epoch, failed, study))
    admitted = joined(await gather_all(works))
    wanted, merges = consolidate(study.tree, admitted)
    study.log.write(StepName("add", "merge", epoch, place), merges)
    study.writer.commit(StepName("add", "commit", epoch, place), wanted)
    if study.settings.wordings:
        await word(epoch, place, study)


def place_of(tiers: Sequence[TierName]) -> str:
    """Return how the steps of a round over these tiers are named."""
    return "+".join(tier.value for tier in tiers)


def joined(parts: Sequence[Sequence[T]]) -> list[T]:
    """Return the items of all parts."""
    return [item for part in parts for item in part]


def unite_tiers(cards: Sequence[Card]) -> list[Card]:
    """Return the cards, with a medium rule that is a hard one too as universal.

    Then both tiers read it, and what they show of it counts together. A medium card that
    is too long for that stays as it is.
    """
    hard = [card for card in cards if card.difficulty_tag is Difficulty.HARD]
    united = []
    for card in cards:
        if card.difficulty_tag is Difficulty.MEDIUM and any(
            card.card_id == other.card_id or same_knowledge(card, other)
            for other in hard
        ):
            with suppress(CardError):
                card = card.revised(difficulty_tag=Difficulty.UNIVERSAL)
        united.append(card)
    return united


async def first_run(
    tiers: Sequence[TierName], epoch: int, tree: EpistemicTree, study: Study
) -> Records:
    """Return the records of the run that new cards are written from."""
    step = StepName("add", "run", epoch, place_of(tiers))
    seed = study.seed_of(epoch, ADD)
    return await study.run(step, study.train, RunReading(tree), seed)


async def new_cards(
    domain: str, place: str, epoch: int, failed: Failures, study: Study
) -> list[Card]:
    """Return the cards that a domain gains: proposed, demonstrated, then admitted.

    Cards are proposed for each cell, and judged in one letter for all of them.
    """
    works = []
    for cell, own in failed.items():
        if cell.domain == domain:
            for number, part in enumerate(split(own, FAILURES_AT_ONCE)):
                works.append(proposed_cards(cell, epoch, part, number, study))
    cards = joined(await gather_all(works))
    where = f"{place} {domain}"
    if study.settings.evidence == "posterior":
        cards = unite_tiers(cards)
    # One letter on two cards of one id could not be read.
    none = EpistemicTree.of(study.tree.domains, ())
    changes, merges = consolidate(none, cards)
    study.log.write(StepName("add", "merge", epoch, where), merges)
    cards = [each.card for each in changes if isinstance(each, Add)]
    admissions = []
    for number, some in enumerate(split(cards, CARDS_AT_ONCE)):
        step = StepName("add", "admit", epoch, where, number)
        admissions.append(admitted_cards(tuple(some), step, domain, study))
    return joined(await gather_all(admissions))


async def admitted_cards(
    cards: tuple[Card, ...], step: StepName, domain: str, study: Study
) -> tuple[Card, ...]:
    """Return the cards that the teacher admits, with their demonstrations."""
    if study.settings.examples and cards:
        # Before the ruling: the solver reads the demonstrations, so they must be right.
        illustrate = step._replace(what="illustrate")
        cards = await demonstrate(cards, illustrate, study)
    if not cards:
        return ()
    judge = partial(admit, cards, domain, study.tree.domains)
    rulings = await study.teacher_step(step, Proposals, judge)
    return rulings.cards


async def proposed_cards(
    cell: TreeCell,
    epoch: int,
    failed: Sequence[FailedProblem],
    number: int,
    study: Study,
) -> tuple[Card, ...]:
    """Return the cards that the teacher writes from a part of a cell's failures.

    Without failures it is a round of imagination over the cards that are there.
    """
    known = study.tree.project(cell.tier, (cell.domain,))
    step = StepName("add", "propose", epoch, str(cell), number)
    gaps = gaps_of(cell.domain, epoch - 1, study)
    ask = partial(find_knowledge, cell, failed, known, gaps=gaps)
    if not failed:
        step = step._replace(what="imagine")
        ask = partial(imagine, cell, known)
    found = await study.teacher_step(step, Proposals, ask)
    return found.cards


def gaps_of(domain: str, epoch: int, study: Study) -> list[str]:
    """Return what the curator of a domain found in an epoch that no card covers."""
    gaps: list[str] = []
    for step, found in results(study.log.lines, Revisions, "revise"):
        if step.epoch == epoch and step.place in (domain, UNIVERSAL):
            gaps += found.gaps
    return list(dict.fromkeys(gaps))


async def measure_and_revise(epoch: int, study: Study) -> None:
    """Phase 2: no new cards. Measure each card, revise them, and retire what harms."""
    tree = study.tree
    settings = study.settings
    base: Records = ()
    if settings.needs_base:
        step = StepName("refine", "base", epoch)
        seed = study.seed_of(epoch, BASE)
        base = await study.run(step, study.train, RunReading(tree), seed)
    step = StepName("refine", "impact", epoch)
    work = partial(measure, epoch, tree, base, study)
    impact = await study.log.once(step, Impact, work)
    edits = credit(tree, impact, epoch, settings)
    credited = study.writer.commit(StepName("refine", "credit", epoch), edits)
    if settings.refine:
        names = (*credited.domain_names, UNIVERSAL)
        works = [
            revise_domain(name, epoch, base, impact, study) for name in names
        ]
        for name, accepted in zip(names, await gather_all(works), strict=True):
            commit = StepName("refine", "commit", epoch, name)
            study.writer.commit(commit, accepted)
    retired = retire(study.tree, credited, impact, settings)
    study.writer.commit(StepName("refine", "retire", epoch), retired)


async def revise_domain(
    name: str, epoch: int, base: Records, impact: Impact, study: Study
) -> tuple[Change, ...]:
    """Return the changes to a domain's cards that a rerun confirmed, or none."""
    tree = study.tree
    own = records_of({name}, base)
    wrong = still_wrong(own, study)
    # A card of several domains belongs to the first: no two curators change it.
    cards = tuple(card for card in tree.shown if card.domain_tags[0] == name)
    if not cards:
        return ()
    domain = DomainCards(name, cards, impact, wrong)
    last = None

    def step(what: str, number: int) -> StepName:
        return StepName("refine", what, epoch, name, number)

    for number in range(1, study.settings.refine + 1):
        ask = partial(revise, domain, last)
        curate = step("revise", number)
        revisions = await study.teacher_step(curate, Revisions, ask)
        illustrate = step("illustrate", number)
        wanted = await demonstrate_anew(
            revision_changes(revisions), illustrate, study
        )
        if not wanted:
            return ()
        places = {name}
        for each in wanted:
            if isinstance(each, Edit):  # a card that is moved is read elsewhere
                places.update(each.card.domain_tags)
        held = records_of(places, base)
        problems = tuple(study.by_id[record.problem] for record in held)
        reading = RunReading(applied(tree, *wanted))
        seed = study.seed_of(epoch, BASE)
        rerun = await study.run(step("verify", number), problems, reading, seed)
        found = compare(held, rerun, study.settings.threshold)
        study.log.write(step("compare", number), found)
        if found.accepted:
            return wanted
        last = LastTry(revisions, found, still_wrong(rerun, study))
    return ()


def records_of(domains: set[str], records: Records) -> Records:
    """Return the records of the problems that are of these domains."""
    if UNIVERSAL in domains:
        return records
    return tuple(r for r in records if not domains.isdisjoint(r.domains))


async def demonstrate_anew(
    wanted: tuple[Change, ...], step: StepName, study: Study
) -> tuple[Change, ...]:
    """Return the changes with new demonstrations for every rule that is rewritten.

    The solver reads a card's demonstrations, so a new rule under the old ones would
    change nothing. A card that gets none stays as it was.
    """
    if not study.settings.examples:
        return wanted
    made: list[Change] = []
    rewritten = []
    for each in wanted:
        if (
            isinstance(each, Edit)
            and each.card.rule != study.tree.card(each.card.card_id).rule
        ):
            rewritten.append(each.card)
        else:
            made.append(each)
    if rewritten:
        cards = await demonstrate(tuple(rewritten), step, study)
        made += map(Edit, cards)
    return tuple(made)


async def demonstrate(
    cards: tuple[Card, ...], step: StepName, study: Study
) -> tuple[Card, ...]:
    """Return those cards that the teacher wrote demonstrations for, with these."""
    count = study.settings.examples
    writing = demonstrations(count, study.by_name, study.screen)
    ask = partial(write, cards, writing)
    found = await study.teacher_step(step, Proposals, ask)
    return found.cards


async def word(epoch: int, place: str, study: Study) -> None:
    """Give every new card texts to find it by: wordings, and its own problems."""
    new = [card for card in study.tree.shown if not card.wordings]
    if not new:
        return
    count = study.settings.wordings
    writing = wordings(count, study.leaks.retells)
    works = []
    for number, some in enumerate(split(new, WORDINGS_AT_ONCE // count)):
        step = StepName("add", "wordings", epoch, place, number)
        ask = partial(write, some, writing)
        works.append(study.teacher_step(step, Proposals, ask))
    edits = []
    for found in await gather_all(works):
        for card in found.cards:
            sources = card.provenance.supporting_problems[:MOST_OWN_TEXTS]
            own = map(study.by_name.get, sources)
            texts = [one_line(each.text, MAX_LINE) for each in own if each]
            every = tuple(dict.fromkeys((*texts, *card.wordings)))
            edits.append(Edit(card.revised(wordings=every[:MAX_WORDINGS])))
    study.writer.commit(StepName("add", "word", epoch, place), edits)


def still_wrong(
    records: Sequence[Solution], study: Study
) -> tuple[FailedProblem, ...]:
    """Return the problems that reached a tier with cards and were not solved."""
    found = []
    for record in records:
        tier = record.attempts[-1].tier
        if not record.correct and tier is not TierName.ES:
            problem = study.by_id[record.problem]
            found.append(study.failure(record, problem, tier))
    return tuple(found)
