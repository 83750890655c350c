"""Another subject: what prompts say, how answers are counted, and what a manifest tells of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kace.answers.equal import Judge, Verdict
from kace.answers.kinds import Subject
from kace.cards.tree import Domain
from kace.config import Config, load_config
from kace.errors import UsageError
from kace.ladder.ladder import Kit
from kace.ladder.ladder import solve as solve_on_ladder
from kace.ladder.prompt import solver_prompt, template, template_hashes
from kace.ladder.record import Solution
from kace.ladder.retrieve import classifier_prompt
from kace.ladder.tiers import ExitPath, Lens
from kace.models.scripted import Scripted
from kace.problems import Problem
from kace.runs.manifest import hold_to, manifest_of
from tests.exits import says

CHEMISTRY = Subject("organic chemistry", "choice")
FROZEN_HASHES = {
    "classify": "8e2f21e1a003d484",
    "classify_retry": "5d6791cc52aa2e6c",
    "finish": "b5dd1bc3f303416a",
    "from_facts": "f6da33a7b1ece395",
    "knowledge": "7e9596a0d061e78c",
    "lens_computation_chain": "afa017d5c1c02964",
    "lens_domain_patterns": "f1b32346637c8dbb",
    "lens_problem_setup": "5e38facc16737647",
    "notes": "8f0d5a8661c99970",
    "reclassify": "28518e465fa03639",
    "solve": "d923ff586fbc4c4a",
    "synthesis": "7464af84d61735eb",
}


def solved(subject: Subject, answers: list[str], problem: Problem) -> Solution:
    async def run() -> Solution:
        async with Judge(workers=0) as judge:  # nothing but mathematics needs one
            sampling = load_config(env={}).tier_sampling()
            return await solve_on_ladder(problem, Kit(Scripted(says(answers)), judge, sampling, subject=subject))

    return asyncio.run(run())


def settings(**values: object) -> Config:
    return load_config(values, env={})


def test_an_anagram_neither_agrees_nor_is_right() -> None:
    found = solved(Subject("words", "text"), ["act", "cat", "Cat.", "tac", "cat"], Problem("Which pet?", "cat"))
    assert found.exit is ExitPath.MS_MAJORITY
    assert found.correct
    assert [attempt.correct for attempt in found.attempts] == [False, True, True, False, True]
    assert [c.positions for c in found.classes] == [(0,), (1, 2, 4), (3,)]


def test_options_by_letter_and_by_words_are_one_answer() -> None:
    problem = Problem("Which pet?\nA) Dog\nB) Cat\nC) Newt", "Cat")
    found = solved(CHEMISTRY, ["(B)", r"\text{cat}"], problem)
    assert found.exit is ExitPath.ES_UNANIMOUS
    assert (found.answer, found.verdict) == ("(B)", Verdict.SAME)


def test_numbers_agree_within_the_tolerance() -> None:
    problem = Problem("How fast?", "9.81 m/s^2")
    loose, strict = Subject("physics", "number", 0.01), Subject("physics", "number")
    answers = ["9.8", "9.81 m/s^2", "9.8", "9.81", "9.81"]
    assert solved(loose, answers, problem).exit is ExitPath.ES_UNANIMOUS
    found = solved(strict, answers, problem)
    assert (found.exit, found.correct) == (ExitPath.MS_MAJORITY, True)


def test_prompts_name_the_subject_and_ask_for_its_kind_of_answer() -> None:
    system, user = solver_prompt("Which?", Lens.COMPUTATION_CHAIN, subject=CHEMISTRY).messages
    assert system.content.startswith("You solve organic chemistry problems.")
    assert r"the final answer, the letter of one option, in \boxed{}" in system.content
    assert user.content.endswith(r"End with the final answer, the letter of one option, in \boxed{}.")
    registry = tuple(Domain(name=name, description=name) for name in ("acids", "sugars"))
    assert "organic chemistry" in classifier_prompt("Which?", registry, (), subject=CHEMISTRY)[0].content
    every = [name for part in ("", "teacher", "ace", "reflections", "systems") for name in template_hashes(part)]
    texts = [template(name, CHEMISTRY) for name in every]
    assert not any("mathematics" in text or "{answer}" in text for text in texts)
    assert any("an organic chemistry problem" in text for text in texts)


def test_no_word_of_the_prompts_of_mathematics_has_changed() -> None:
    assert template_hashes() == FROZEN_HASHES
    assert template("solve") == template("solve", Subject())


def test_a_manifest_names_the_subject_and_a_run_is_not_resumed_with_answers_of_another_kind(tmp_path: Path) -> None:
    plain = manifest_of(settings())
    assert manifest_of(settings(subject="mathematics", answers="math"))["config"] == plain["config"]
    other = manifest_of(settings(subject="organic chemistry", answers="choice"))
    assert (other["config"]["subject"], other["config"]["answers"]) == ("organic chemistry", "choice")  # type: ignore[index]
    hold_to(tmp_path / "run.json", plain, ("config", "prompts"))
    with pytest.raises(UsageError, match="'answers' \\('math', now 'choice'\\)"):
        hold_to(tmp_path / "run.json", other, ("config",))


@pytest.mark.parametrize("subject", ["", " x", "a\nb", "<b>", "x" * 81])
def test_a_subject_is_a_short_phrase(subject: str) -> None:
    with pytest.raises(UsageError, match="subject"):
        settings(subject=subject)
