"""The page of one solve: the problem, the climb, what each attempt wrote, and the same problem elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from kace.errors import redact
from kace.ladder.record import Attempt, Outcome, RetrievedContext, Solution
from kace.ladder.tiers import FALLBACK_GATE, LOCKED, ExitPath, TierName
from kace.report.page import (
    HOME,
    Crumb,
    NotHere,
    Page,
    PageRequest,
    StillReading,
    solve_key,
)
from kace.report.pages.run import chosen_solves, opened_runs
from kace.report.related import tree_of
from kace.runs.calls import PATIENCE
from kace.runs.solves import RunIndex

SOON = 1.5  # seconds after which a page that could not be drawn yet looks again
ELSEWHERE = 60  # solves of the same problem in other runs that are listed
FALLBACKS = (ExitPath.FALLBACK_PLURALITY, ExitPath.FALLBACK_LAST_HS)


def problem_page(request: PageRequest) -> Page:
    """One solve; in a file, every solve of its problem that the export has, `with` the first of them."""
    name, problem, said = (request.parts[part] for part in ("run", "problem", "seed"))
    if (
        not said.removeprefix("-").isascii()
        or not said.removeprefix("-").isdigit()
        or len(said) > 18
    ):
        raise NotHere("a seed is a whole number")
    run, near = opened_runs(request)
    run.look()
    crumbs = (HOME,) if request.static else (HOME, Crumb(name, ("run", name)))
    try:
        solves = [_solve(request, name, run.record(problem, int(said)))]
    except StillReading:
        read, about = run.progress
        said = f"{read:,} of about {about:,} solves of this run are read, and {problem[:16]} is not among them yet."
        told = {
            "status": "Solve",
            "sentences": [said],
            "bars": [("Solves read", read, max(1, about))],
        }
        return Page("error.html", "Not read yet", told, crumbs, SOON)
    for other, _, seed in (
        each.rpartition("/")
        for each in request.query.get("with", "").split()
        if request.static
    ):
        solves.append(
            _solve(
                request, other, request.workspace.run(other).record(problem, int(seed))
            )
        )
    record = solves[0]["record"]
    label = record.name
    values = {
        "label": label,
        "solves": solves,
        "text": run.statement(problem, record.label),
        "plurality": FALLBACK_GATE.votes,
        "mark_of": mark_of,
        **_steps(request, run, near, record),
        **_elsewhere(request, run, near),
    }
    title = label if request.static else f"{label}, seed {said}"
    return Page(
        "problem.html",
        title,
        values,
        crumbs,
        None if solves[0]["texts_complete"] else SOON,
    )


def _solve(request: PageRequest, name: str, record: Solution) -> dict[str, Any]:
    """What a page shows of one solve."""
    if texts := request.workspace.run(name).texts:
        texts.look(PATIENCE)
    return {
        "run": name,
        "key": solve_key(name, str(record.seed)),
        "record": record,
        "mark": "nothing"
        if record.answer is None and record.correct is None
        else mark_of(record.correct),
        "climb": climb_of(record),
        "let_out": next((tier.name for tier in LOCKED if record.exit is tier.exit), ""),
        "texts": [texts and texts.text(attempt.call) for attempt in record.made],
        "whys": [redact(attempt.detail) for attempt in record.made],
        "keeps_texts": texts is not None,
        "texts_complete": texts is None or texts.complete,
        "cards": _card_links(request, name, record),
    }


def _card_links(
    request: PageRequest, name: str, record: Solution
) -> dict[str, tuple[str, str]]:
    """The address and the beginning of every card that the open tree has."""
    found = tree_of(request.workspace, name) if record.recalls else None
    if found is None:
        return {}
    wanted = {card for recall in record.recalls for card in recall.cards}
    wanted |= {card for attempt in record.made for card in attempt.hidden}
    links = {}
    for card in wanted if found.tree is None else found.tree.has(wanted):
        about = (
            ""
            if found.tree is None
            else " ".join(found.tree.card(card).payload.split())[:160]
        )
        changed = "" if found.exact else "The tree has changed since this run read it. "
        links[card] = (
            request.link("tree", found.name, "card", card),
            f"{changed}{about}".strip(),
        )
    return links


def _steps(
    request: PageRequest, run: RunIndex, near: Mapping[str, RunIndex], record: Solution
) -> dict[str, object]:
    """To the solve before and after, in the order and with the filters that the table had."""
    name = request.parts["run"]
    served = not request.static
    chosen = chosen_solves(request, run, near)
    all_open = served and request.query.get("open") == "all"

    def to(problem: str, seed: int, **more: str | None) -> str:
        return request.link(
            "run", name, "problem", problem, str(seed), **chosen.choice.query(), **more
        )

    number, beside = chosen.beside(record.problem, record.seed) if served else (0, [])
    fold = (
        to(record.problem, record.seed, open=None if all_open else "all") + "#attempts"
        if served
        else ""
    )
    found = {
        "choice": chosen.choice,
        "number": number,
        "total": len(chosen.positions),
        "near": beside,
    }
    return {**found, "to": to, "all_open": all_open, "fold": fold}


def _elsewhere(
    request: PageRequest, run: RunIndex, near: Mapping[str, RunIndex]
) -> dict[str, object]:
    """The same problem under other seeds and in other runs: pairs of a run's name and a row of its solves."""
    name = request.parts["run"]
    problem = request.parts["problem"]
    sql = "SELECT * FROM solves WHERE problem = ?"
    own = [(name, row) for row in run.rows(f"{sql} ORDER BY seed", problem)]
    others = [
        (other, row)
        for other, each in near.items()
        for row in each.rows(f"{sql} ORDER BY seed", problem)
    ]
    judged = [
        row["correct"] for _, row in (*own, *others) if row["correct"] is not None
    ]
    return {
        "own": own,
        "others": others[:ELSEWHERE],
        "all_others": len(others),
        "judged": judged,
    }


class AnswerGroup(NamedTuple):
    """Attempts of one vote that gave the same answer, or none of which gave any."""

    answer: str | None
    attempts: Mapping[int, Attempt]  # by their positions in the solve
    votes: int
    support: int  # attempts that gave it in this tier and before
    mark: str


class Rung(NamedTuple):
    """A tier that was reached."""

    name: str
    attempts: int
    groups: tuple[AnswerGroup, ...]  # the leader first; what has no answer last
    needed: (
        int | None
    )  # votes that open the gate; `None` for attempts that have no gate
    left: bool  # whether the solve left here
    recall: RetrievedContext | None

    @property
    def met(self) -> bool:
        """Whether enough attempts agree, wherever the solve left."""
        return (
            self.needed is not None
            and bool(self.groups)
            and self.groups[0].votes >= self.needed
        )


class ClimbView(NamedTuple):
    """A solve from the first tier to its answer."""

    rungs: tuple[Rung, ...]
    below: tuple[
        TierName, ...
    ]  # tiers of the ladder that were passed over: it began above them
    above: tuple[TierName, ...]  # tiers that were not needed
    fallback: tuple[
        AnswerGroup, ...
    ]  # the vote over all attempts, where no gate opened


def mark_of(correct: bool | None, outcome: Outcome = Outcome.ANSWERED) -> str:
    """What came of an attempt or a solve: `right`, `wrong`, `answered`, `nothing` or, by early stop, `stopped`."""
    if outcome is not Outcome.ANSWERED:
        return "stopped" if outcome is Outcome.CANCELLED else "nothing"
    return "answered" if correct is None else "right" if correct else "wrong"


def climb_of(record: Solution) -> ClimbView:
    """The climb that a record tells."""
    recalls = {recall.tier: recall for recall in record.recalls}
    tiers = {tier.name: tier for tier in LOCKED}
    rungs = []
    start = 0
    for name, count in Counter(attempt.tier for attempt in record.attempts).items():
        tier = tiers.get(name)
        groups = _groups(record, range(start, start + count))
        left = tier is not None and record.exit is tier.exit
        rungs.append(
            Rung(
                name.value,
                count,
                groups,
                tier.gate.votes if tier else None,
                left,
                recalls.get(name),
            )
        )
        start += count
    ladder = [*tiers] if record.exit is not None else []
    places = [
        place
        for place, name in enumerate(ladder)
        if name.value in {rung.name for rung in rungs}
    ]
    fallback = _groups(record, range(start)) if record.exit in FALLBACKS else ()
    below = ladder[: min(places, default=0)]
    above = ladder[max(places, default=-1) + 1 :]
    return ClimbView(tuple(rungs), tuple(below), tuple(above), fallback)


def _groups(record: Solution, span: range) -> tuple[AnswerGroup, ...]:
    """The vote of the attempts of a span, with all before its end as support."""
    groups = []
    for each in sorted(
        record.classes, key=lambda one: min(one.positions, default=0)
    ):  # of equals, the earliest first
        if here := {at: record.attempts[at] for at in each.positions if at in span}:
            support = sum(at < span.stop for at in each.positions)
            first = next(iter(here.values()))
            mark = mark_of(first.correct, first.outcome)
            groups.append(AnswerGroup(each.answer, here, len(here), support, mark))
    groups.sort(key=lambda group: (-group.votes, -group.support))
    voted = {at for group in groups for at in group.attempts}
    if rest := {at: record.attempts[at] for at in span if at not in voted}:
        groups.append(AnswerGroup(None, rest, 0, 0, "nothing"))
    return tuple(groups)


ROUTES = {"/run/{run}/problem/{problem}/{seed}": problem_page}
