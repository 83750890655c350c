"""A server outlives what would end a run: the model is opened anew, and the old one is closed."""

from __future__ import annotations

import asyncio

import pytest

from kace.errors import KaceError
from kace.models.base import AttemptKey, Finish, Reply, Request, Sampling, Usage, chat
from kace.serve.app import ReconnectingModel

REQUEST = Request(chat("s", "u"), Sampling(0.0, 1, 1), AttemptKey("p", 0, "ES", 0))


class Fragile:
    """A model that refuses everything, for good, once its operator has to mend something."""

    name = identity = "scripted/fragile"

    def __init__(self, *, broken: bool) -> None:
        self.broken = broken
        self.closed = 0
        self.calls = 0
        self.hold: asyncio.Event | None = None

    async def complete(self, request: Request) -> Reply:
        self.calls += 1
        if self.hold is not None:
            await self.hold.wait()
        if self.broken:
            raise KaceError("the key is refused")
        return Reply("fine", Finish.STOP, Usage(), 0.0)

    async def aclose(self) -> None:
        self.closed += 1


def test_a_refused_model_is_opened_anew_after_a_pause_and_not_before():
    opened: list[Fragile] = []
    now = [0.0]

    def open_again() -> Fragile:
        opened.append(Fragile(broken=len(opened) < 2))
        return opened[-1]

    async def scenario() -> str:
        model = ReconnectingModel(open_again, pause=5.0, clock=lambda: now[0])
        for at in (0.0, 1.0, 4.9, 5.0):
            now[0] = at
            with pytest.raises(KaceError):
                await model.complete(REQUEST)
        assert [each.calls for each in opened] == [3, 1]
        assert [each.closed for each in opened] == [1, 0]
        now[0] = 10.0
        text = (await model.complete(REQUEST)).text
        await model.aclose()
        return text

    assert asyncio.run(scenario()) == "fine"
    assert [each.closed for each in opened] == [1, 1, 1]


def test_a_call_under_way_is_finished_before_its_model_is_closed():
    opened = [Fragile(broken=False), Fragile(broken=False)]
    waiting = iter(opened)
    now = [0.0]

    async def scenario() -> None:
        model = ReconnectingModel(lambda: next(waiting), pause=5.0, clock=lambda: now[0])
        hold = opened[0].hold = asyncio.Event()
        under_way = asyncio.create_task(model.complete(REQUEST))
        await asyncio.sleep(0)
        opened[0].hold, opened[0].broken = None, True
        with pytest.raises(KaceError):
            await model.complete(REQUEST)
        now[0] = 6.0
        assert (await model.complete(REQUEST)).text == "fine"
        assert opened[0].closed == 0
        opened[0].broken = False
        hold.set()
        assert (await under_way).text == "fine"
        assert opened[0].closed == 1
        await model.aclose()

    asyncio.run(scenario())
    assert [each.closed for each in opened] == [1, 1]
