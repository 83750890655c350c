"""Domains: proposed by the teacher, counted and checked by code, sent back once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from kace.cards.tree import RESERVED, EpistemicTree
from kace.errors import KaceError
from kace.ladder.prompt import template
from kace.learning.teacher import EXAMPLE_DOMAIN, Partition, Teacher, partition, read_partition, shuffled
from kace.problems import Problem
from tests.learning.said import Said

PROBLEMS = tuple(Problem(f"What is {n} + {n}?", str(2 * n), f"p{n}") for n in range(40))
SIGNALS = "What is the sum?\n- How many are left?\n* Which is larger?"


def domain(name: str, problems: str, *, description: str = "sums of two numbers", signals: str = SIGNALS) -> str:
    return f"<domain>\nname: {name}\ndescription: {description}\nproblems: {problems}\nsignals:\n{signals}\n</domain>"


def reply(*members: str) -> str:
    return "\n".join(domain(f"part_{'abcdefghij'[n]}", numbers) for n, numbers in enumerate(members))


GOOD = reply("1-10", "11-20", "21-30")


def ask(model: Said, problems: Sequence[Problem] = PROBLEMS, seed: int = 0) -> Partition:
    return asyncio.run(partition(problems, Teacher(model, seed=seed), most=30))


def reasons(text: str, shown: int = 30) -> str:
    reading = read_partition(text, shown)
    assert not reading.found
    return "\n".join(bad.reason for bad in reading.bad)


# What is asked


def test_a_sample_is_drawn_by_content_and_seed_and_not_by_order():
    assert shuffled(PROBLEMS[::-1], 0) == shuffled(PROBLEMS, 0)
    assert shuffled(PROBLEMS, 1)[:30] != shuffled(PROBLEMS, 0)[:30]


def test_the_domains_are_chosen_from_all_problems():
    many = tuple(Problem(f"What is {n} + {n}? {'x' * 3_000}", str(2 * n), f"p{n}") for n in range(248))
    model = Said(reply("1-100", "101-150", "151-244"))
    found = asyncio.run(partition(many, Teacher(model)))
    letter = model.requests[0].messages[1].content
    assert letter.count("<problem>") == 248 and len(letter) < 400_000
    assert [round(d.share, 2) for d in found.domains] == [0.4, 0.2, 0.38], "four of 248 may be forgotten"


def test_the_teacher_sees_every_sampled_problem_with_its_answer_under_a_number():
    model = Said(GOOD)
    ask(model)
    user = model.requests[0].messages[1].content
    for number, problem in enumerate(shuffled(PROBLEMS, 0)[:30], 1):
        asked = f"## Problem {number}\n<problem>\n{problem.text}\n</problem>\nExpected answer: {problem.answer}\n"
        assert asked in user


# What is accepted


def test_a_partition_has_shares_counted_from_its_members():
    found = ask(Said(reply("1-15", "16-24", "25-27", "28, 29, 30")))
    assert {d.name: d.share for d in found.domains} == {"part_a": 0.5, "part_b": 0.3, "part_c": 0.1, "part_d": 0.1}
    assert found.domains[0].signals == ("What is the sum?", "How many are left?", "Which is larger?")
    EpistemicTree.of(found.domains, ())
    assert Partition.model_validate_json(found.model_dump_json()) == found


def test_blocks_of_no_use_cost_nothing_when_the_rest_is_a_partition():
    model = Said(f"{domain('universal', '1')}\n{domain(EXAMPLE_DOMAIN, '2, 5')}\n{GOOD}\n<domain>\nname: cut")
    assert [d.name for d in ask(model).domains] == ["part_a", "part_b", "part_c"]
    assert model.calls == 1


def test_the_example_of_the_prompt_is_refused_by_name():
    assert f"name: {EXAMPLE_DOMAIN}\n" in template("teacher/partition")
    assert "reserved" in reasons(f"{template('teacher/partition')}\n{GOOD.replace('part_a', EXAMPLE_DOMAIN)}")


def test_long_and_repeated_signals_are_left_out():
    text = reply("1", "2", "3").replace(SIGNALS, f"one?\n{'x' * 101}\none?\ntwo?")
    found = read_partition(text, 3).found["part_a"]
    assert found.signals == ("one?", "two?")


# What is sent back


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (reply("1-15", "16-30"), "2 usable domains; there must be 3 to 7"),
        (reply("1-3", "4-6", "7-9", "10-12", "13-15", "16-18", "19-21", "22-30"), "8 usable domains"),
        (reply("1-2", "3-20", "21-30"), "part_a holds 2 of 30 problems; at least one in 10 is needed"),
        (reply("1-10", "11-19", "22-30"), "no usable domain holds the problems 20, 21"),
        (reply("1-10", "11-20", "21-31"), "21 to 31 is not among the problems 1 to 30"),
        (reply("1-10", "11-20", "the rest"), "part_c holds 0 of 30 problems"),
        (GOOD.replace("part_a", "Part A"), "use snake_case"),
        (GOOD.replace("part_a", "mixed"), "reserved"),
        (GOOD.replace("part_a", "part_b"), "names must differ"),
        (GOOD.replace("sums of two numbers", "x" * 301, 1), "description"),
        (GOOD.replace(SIGNALS, "one only", 1), "1 signals"),
        (GOOD.removesuffix("</domain>"), "cut off"),
    ],
)
def test_what_is_no_partition_is_refused_with_the_reason(text: str, reason: str):
    assert reason in reasons(text)


def test_out_of_range_is_sent_back_once_with_the_reasons():
    model = Said(reply("1-15", "16-29"), GOOD)
    assert len(ask(model).domains) == 3
    said = model.requests[1].messages[-1].content
    assert "Accepted: nothing" in said
    assert "- 2 usable domains; there must be 3 to 7" in said


def test_out_of_range_twice_ends_the_run_with_the_later_reasons():
    model = Said(reply("1-15", "16-30"), reply("1-10", "11-19", "21-30"), GOOD)
    with pytest.raises(KaceError, match="in two tries: no usable domain holds the problems 20") as caught:
        ask(model)
    assert model.calls == 2
    assert caught.value.fix


def test_the_prompt_names_what_code_reserves():
    assert all(f"`{name}`" in template("teacher/partition") for name in RESERVED)
