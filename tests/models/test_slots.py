"""Attempts that share a block of cards follow each other in one slot; everything else runs side by side."""

from __future__ import annotations

import asyncio

from kace.models.base import AttemptKey, Message, Request, Role, Sampling, chat
from kace.models.local import LONG_PREFIX, Slots

CARDS = "x" * LONG_PREFIX


def request(problem: str, index: int, system: str = CARDS, tier: str = "MS") -> Request:
    return Request(chat(system, "?"), Sampling(0.0, 1, 0), AttemptKey(problem, 0, tier, index))


def places(slots: Slots, requests: list[Request]) -> tuple[list[int], int]:
    """The slot each request got, and the most that ran at once."""
    running = peak = 0
    got: dict[int, int] = {}

    async def one(number: int, asked: Request) -> None:
        nonlocal running, peak
        async with slots.lease(asked) as slot:
            got[number] = slot
            running += 1
            peak = max(peak, running)
            await asyncio.sleep(0.001)
            running -= 1

    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            for number, asked in enumerate(requests):
                group.create_task(one(number, asked))

    asyncio.run(work())
    return [got[number] for number in range(len(requests))], peak


def test_attempts_of_a_problem_with_cards_share_one_slot():
    slots, peak = places(Slots(4), [request("p", index) for index in range(5)])
    assert len(set(slots)) == 1
    assert peak == 1


def test_attempts_after_the_same_demonstrations_share_one_slot():
    told = (Message(Role.SYSTEM, "Solve."), Message(Role.USER, "6 times 7?"), Message(Role.ASSISTANT, "42"))
    asked = [
        Request((*told, Message(Role.USER, "?")), Sampling(0.0, 1, 0), AttemptKey("p", 0, "MS", index))
        for index in range(3)
    ]
    slots, peak = places(Slots(4), asked)
    assert len(set(slots)) == 1
    assert peak == 1


def test_problems_with_cards_run_side_by_side():
    asked = [request(problem, index) for problem in "abcd" for index in range(3)]
    slots, peak = places(Slots(4), asked)
    assert peak == 4
    assert all(len(set(slots[start : start + 3])) == 1 for start in range(0, 12, 3))


def test_short_prompts_take_any_free_slot():
    slots, peak = places(Slots(4), [request("p", index, "short") for index in range(4)])
    assert sorted(slots) == [0, 1, 2, 3]
    assert peak == 4


def test_a_slot_that_holds_the_block_is_taken_again_and_spared_by_short_prompts():
    slots = Slots(2)
    (first,), _ = places(slots, [request("a", 0)])
    (short,), _ = places(slots, [request("b", 0, "short")])
    (again,), _ = places(slots, [request("c", 0)])
    assert first == again != short


def test_everybody_gets_a_turn_and_cancelling_gives_it_back():
    slots = Slots(2)

    async def work() -> None:
        async def hold(asked: Request, seconds: float) -> None:
            async with slots.lease(asked):
                await asyncio.sleep(seconds)

        tasks = [asyncio.create_task(hold(request("p", index), 10)) for index in range(3)]
        await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            for index in range(6):
                group.create_task(hold(request("qr"[index % 2], index), 0.001))

    asyncio.run(work())
