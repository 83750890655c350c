"""Attempts that are programs: on the ladder, with repair, in the trace, and by every door."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import kace
from kace.answers.judge import Judge
from kace.answers.program import ProgramOutcome, Sandbox
from kace.cards.card import Card, Difficulty, Provenance, Status
from kace.cards.tree import Domain, EpistemicTree
from kace.cli.terminal import explanation
from kace.config import PROFILES, load_config
from kace.errors import UsageError
from kace.ladder.ladder import Kit, climb
from kace.ladder.programs import REPAIR, Programs
from kace.ladder.prompt import PromptContext, solver_prompt
from kace.ladder.record import Attempt, Outcome, Solution
from kace.ladder.retriever import Retriever
from kace.ladder.session import open_session
from kace.ladder.tiers import PROGRAM_LENSES, ExitPath, Lens
from kace.models.base import Failure, ModelError, Reply, Request
from kace.models.cache import CallStore
from kace.models.scripted import Scripted
from kace.problems import Problem
from kace.runs.manifest import hold_to, manifest_of
from tests.one_loop import LOOP

CONFIG = load_config({"profile": "paper", "prompts": "default"}, env={})
PROBLEM = Problem("What is six times seven?", "42", "p1")
GOOD = "```python\nprint(6 * 7)\n```"
BROKEN = "Here it is.\n```python\nprint(six * 7)\n```"
TREE = EpistemicTree.of(
    [Domain(name="sums", description="Sums.", share=1.0)],
    [
        Card(
            card_id=f"EXACT_{name}_CARD",
            payload=f"Useful when:\n- sums come up\n\nMultiply {name.lower()}.",
            routing_conditions=(),
            difficulty_tag=difficulty,
            domain_tags=("sums",),
            helpfulness_score=0.0,
            provenance=Provenance(source="test", promotion_status=Status.VALIDATED),
        )
        for name, difficulty in (("EASYISH", Difficulty.MEDIUM), ("HARDISH", Difficulty.HARD))
    ],
)


class Solver(Scripted):
    """Disagrees at ES; then says what the script says, and keeps what it was asked."""

    def __init__(self, script: Callable[[Request], str]) -> None:
        self.asked: list[Request] = []

        def said(request: Request) -> str:
            self.asked.append(request)
            at_es = request.attempt.tier == "ES"
            return f"\\boxed{{{request.attempt.index}}}" if at_es else script(request)

        super().__init__(said)


def repairs(request: Request) -> bool:
    return request.attempt.index >= REPAIR


def in_turn(replies: Sequence[str]) -> Callable[[Request], str]:
    """The reply for each attempt by its index; a repair gets the last one."""
    return lambda request: replies[-1 if repairs(request) else request.attempt.index]


def solve(solver: Scripted, policy: str = "ms", tree: EpistemicTree | None = None, **more: object) -> Solution:
    async def run() -> Solution:
        async with Judge() as judge, Sandbox(seconds=20, workers=1) as sandbox:
            programs = Programs(PROGRAM_LENSES[policy], sandbox)
            source = Retriever(tree, solver, CONFIG.retrieval) if tree else None
            kit = Kit(solver, judge, CONFIG.tier_sampling(), programs=programs, source=source, **more)  # type: ignore[arg-type]
            return await climb(PROBLEM, kit)

    return LOOP.run(run())


def ms(solution: Solution) -> list[Attempt]:
    return [attempt for attempt in solution.attempts if attempt.tier == "MS"]


def test_programs_vote_by_what_they_print():
    solution = solve(Solver(lambda request: GOOD))
    assert (solution.exit, solution.answer, solution.correct) == (ExitPath.MS_MAJORITY, "42", True)
    assert (solution.paper_calls, solution.real_calls) == (5, 5)
    assert [attempt.lens for attempt in ms(solution)] == ["program"] * 3
    (run,) = ms(solution)[0].programs
    assert (run.source, run.outcome, run.output, run.error) == ("print(6 * 7)", ProgramOutcome.RAN, "42\n", "")
    assert not any(attempt.programs for attempt in solution.attempts if attempt.tier == "ES")


def test_an_error_goes_back_once_and_both_calls_count():
    solver = Solver(in_turn([BROKEN, BROKEN, GOOD, GOOD]))
    solution = solve(solver)
    first, _, third = ms(solution)
    assert solution.answer == "42"
    assert (solution.paper_calls, solution.real_calls) == (5, 7)
    assert [run.outcome for run in first.programs] == [ProgramOutcome.ERROR, ProgramOutcome.RAN]
    assert "six" in first.programs[0].error
    assert (first.calls, third.calls) == (2, 1)
    repair = next(request for request in solver.asked if repairs(request))
    asked = next(request for request in solver.asked if request.attempt.tier == "MS")
    assert repair.messages[: len(asked.messages)] == asked.messages
    assert repair.messages[-2].content == "```python\nprint(six * 7)\n```"
    assert "name 'six' is not defined" in repair.messages[-1].content
    assert repair.sampling.seed != asked.sampling.seed
    assert first.usage.input > third.usage.input


@pytest.mark.parametrize("failing", [BROKEN, "```python\nx = 42\n```", "```python\nprint(None)\n```"])
def test_a_program_that_fails_twice_gives_no_answer(failing: str):
    solution = solve(Solver(lambda request: f"I think \\boxed{{42}}.\n{failing}"))
    assert all(attempt.answer is None for attempt in ms(solution))
    assert {attempt.outcome for attempt in ms(solution)} == {Outcome.NO_ANSWER}
    assert {len(attempt.programs) for attempt in ms(solution)} == {2}


def test_a_boxed_answer_without_a_program_counts_at_once_and_after_an_error():
    solution = solve(Solver(in_turn(["It is \\boxed{42}.", BROKEN, "no idea", "Then \\boxed{42}."])))
    boxed, repaired, prose = ms(solution)
    assert (boxed.answer, boxed.programs, boxed.calls) == ("42", (), 1)
    assert (repaired.answer, len(repaired.programs), repaired.calls) == ("42", 1, 2)
    assert (prose.answer, prose.programs, prose.calls) == ("42", (), 2)
    assert solution.exit is ExitPath.MS_MAJORITY


def test_prose_is_asked_for_a_program_once_and_may_stay_without_an_answer():
    solver = Solver(lambda request: "I cannot tell.")
    solution = solve(solver)
    assert {(a.outcome, a.calls, a.programs) for a in ms(solution)} == {(Outcome.NO_ANSWER, 2, ())}
    repair = next(request for request in solver.asked if repairs(request))
    assert "there is no program" in repair.messages[-1].content
    assert [message.content for message in repair.messages].count("I cannot tell.") == 1


def test_a_repair_is_asked_how_sure_it_is_as_the_attempt_was():
    solver = Solver(lambda request: BROKEN)
    solve(solver, logprobs=True)
    assert {request.logprobs for request in solver.asked if repairs(request)} == {True}


def test_an_empty_reply_is_not_asked_again():
    solution = solve(Solver(lambda request: " "))
    assert {(attempt.outcome, attempt.calls) for attempt in ms(solution)} == {(Outcome.NO_ANSWER, 1)}


def test_a_long_program_goes_back_cut():
    solver = Solver(lambda request: f"```python\nx = 1{'  # more' * 1000}\nprint(six)\n```")
    solve(solver)
    repair = next(request for request in solver.asked if repairs(request))
    assert len(repair.messages[-2].content) < 2_500


def test_a_repair_that_fails_leaves_a_failed_attempt():
    class Failing(Solver):
        async def complete(self, request: Request) -> Reply:
            if repairs(request):
                raise ModelError(Failure.PROVIDER_ERROR, "gone")
            return await super().complete(request)

    solution = solve(Failing(lambda request: BROKEN))
    assert {attempt.outcome for attempt in ms(solution)} == {Outcome.PROVIDER_ERROR}
    assert (ms(solution)[0].detail, ms(solution)[0].index, ms(solution)[0].calls) == ("gone", 0, 2)
    assert len(ms(solution)[0].programs) == 1
    assert solution.failed


@pytest.mark.parametrize(
    ("policy", "lenses"),
    [
        ("ms", ["program"] * 3 + [None] * 5),
        ("ms+hs", ["program"] * 3 + [None, "program", None, "program", None]),
    ],
)
def test_a_policy_names_the_attempts_that_are_programs(policy: str, lenses: list[str | None]):
    solution = solve(Solver(lambda r: f"```python\nprint('{r.attempt.tier} {r.attempt.index}')\n```"), policy)
    assert [attempt.lens for attempt in solution.attempts if attempt.tier != "ES"] == lenses
    assert [bool(attempt.programs) for attempt in solution.attempts[2:]] == [lens == "program" for lens in lenses]


def test_with_a_tree_cards_are_read_as_text_before_the_program_is_asked_for():
    solver = Solver(lambda request: GOOD)
    solution = solve(solver, tree=TREE)
    assert solution.recalls[0].cards == ("EXACT_EASYISH_CARD",)
    asked = next(request for request in solver.asked if request.attempt.tier == "MS")
    assert "Multiply easyish." in asked.messages[0].content
    assert asked.messages[-1].content.startswith(PROBLEM.text)


def test_the_prompt_is_known_by_its_templates():
    plain, other = (solver_prompt(text, Lens.PROGRAM) for text in ("1 + 1?", "2 + 2?"))
    noted = solver_prompt("1 + 1?", Lens.PROGRAM, PromptContext(notes="Check twice."))
    assert plain.hash == other.hash != noted.hash
    assert "Check twice." in noted.messages[0].content


def test_early_stop_with_programs_cancels_what_cannot_matter():
    class Slow(Solver):
        async def complete(self, request: Request) -> Reply:
            if request.attempt.tier == "MS" and request.attempt.index == 2:
                await asyncio.sleep(3600)
            return await super().complete(request)

    solution = solve(Slow(lambda request: GOOD), early_stop=True)
    assert solution.answer == "42"
    assert ms(solution)[2].outcome is Outcome.CANCELLED
    assert (solution.paper_calls, solution.real_calls) == (5, 4)


def test_a_trace_keeps_programs_and_one_without_them_is_written_as_before():
    solution = solve(Solver(in_turn([BROKEN, GOOD, GOOD, GOOD])))
    line = solution.model_dump_json()
    assert Solution.model_validate_json(line) == solution
    rows = json.loads(line)["attempts"]
    assert {"programs", "repair"}.isdisjoint(rows[0])
    assert rows[2]["programs"][0] == {
        "source": "print(six * 7)",
        "outcome": "error",
        "output": "",
        "error": "NameError: name 'six' is not defined in the line `print(six * 7)`",
    }
    assert "repair" not in rows[3]


def test_a_program_is_told_with_what_it_printed():
    told = explanation(solve(Solver(in_turn([BROKEN, GOOD, GOOD, GOOD]))), lambda attempt: attempt.text)
    assert "program: error, NameError: name 'six' is not defined" in told
    assert "program: ran, 42" in told


def test_a_second_run_reads_repairs_from_disk(tmp_path: Path):
    async def run() -> tuple[Solution, int]:
        solver = Solver(in_turn([BROKEN, GOOD, GOOD, GOOD]))
        config = load_config({"model": "scripted/custom", "programs": "ms"}, env={})
        calls = CallStore(tmp_path / "calls")
        async with open_session(config, calls=calls, model=solver) as session:
            found = await climb(PROBLEM, session.kit)
        calls.close()
        return found, solver.calls

    (first, paid), (second, free) = LOOP.run(run()), LOOP.run(run())
    assert (paid, free) == (6, 0)
    assert second.cached_calls == second.real_calls == 6
    assert [a.answer for a in first.attempts] == [a.answer for a in second.attempts]
    assert first.attempts[2].repair


def test_the_setting_is_off_by_default_and_named_by_the_manifest_where_it_is_on(tmp_path: Path):
    off, on = (load_config({"model": "scripted/steady", **more}, env={}) for more in ({}, {"programs": "ms+hs"}))
    for name in PROFILES:
        assert load_config({"profile": name}, env={}).programs == "none"
    assert "programs" not in manifest_of(off)["config"]  # type: ignore[operator]
    assert manifest_of(on)["config"]["programs"] == "ms+hs"  # type: ignore[index]
    assert {"program/solve", "program/repair"} <= set(manifest_of(on)["prompts"])  # type: ignore[call-overload]
    assert not any(name.startswith("program") for name in manifest_of(off)["prompts"])  # type: ignore[attr-defined]
    hold_to(tmp_path / "run.json", manifest_of(off), ("config",))
    with pytest.raises(UsageError, match="'programs' \\('none', now 'ms\\+hs'\\)"):
        hold_to(tmp_path / "run.json", manifest_of(on), ("config",))


def test_the_python_door_takes_the_setting():
    solver = Solver(lambda request: GOOD)
    assert kace.solve("What is six times seven?", solver, programs="ms").answer == "42"
    with pytest.raises(UsageError, match="programs"):
        kace.solve("What is six times seven?", solver, programs="all")


def test_a_missing_interpreter_is_one_line_with_the_fix(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="need pydantic-monty") as caught:
        kace.solve("What is six times seven?", Solver(lambda request: GOOD), programs="ms")
    assert caught.value.fix == "pip install 'kace[program]'"


def test_an_interpreter_that_does_not_start_is_known_before_anything_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    worker = tmp_path / "worker.py"
    worker.write_text("raise SystemExit(1)")
    monkeypatch.setattr("kace.answers.child.WORKER", worker)
    solver = Solver(lambda request: GOOD)
    with pytest.raises(UsageError, match="does not start"):
        kace.solve("What is six times seven?", solver, programs="ms")
    assert solver.calls == 0
