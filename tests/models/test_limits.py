"""Retries and the limit on calls in virtual time: hours pass in milliseconds."""

import asyncio
import random
import selectors

import pytest

from kace.errors import KaceError
from kace.models.base import Failure, Finish, ModelError, RateLimited, Reply, Transient, Usage
from kace.models.limits import Limited
from tests.models.calling import REQUEST

REPLY = Reply("4", Finish.STOP, Usage(1, 0, 1), 1.0)
REFUSAL = RateLimited("429 from the provider: too many requests")


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer instead of waiting for it."""

    def __init__(self):
        self.now = 0.0
        super().__init__(self._selector_that_never_waits())

    def _selector_that_never_waits(loop):
        class Selector(selectors.DefaultSelector):
            def select(self, timeout=None):
                loop.now += timeout or 0.0
                return super().select(0)

        return Selector()

    def time(self):
        return self.now


@pytest.fixture(autouse=True)
def full_jitter(monkeypatch):
    monkeypatch.setattr("kace.models.limits.random.random", lambda: 1.0)


def run(coroutine):
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(coroutine)


def now():
    return asyncio.get_running_loop().time()


class Server:
    """A model that does what its script says, one step per call; the last step repeats."""

    name = identity = "scripted/server"

    def __init__(self, *steps, seconds=0.0):
        self.steps = steps
        self.seconds = seconds
        self.calls = []

    async def complete(self, request):
        step = self.steps[min(len(self.calls), len(self.steps) - 1)]
        self.calls.append(now())
        await asyncio.sleep(self.seconds)
        if isinstance(step, Exception):
            raise step
        return step

    async def aclose(self):
        pass


async def drive(model, workers, seconds):
    """Keep `workers` requests in hand for a while."""

    async def worker():
        while True:
            await model.complete(REQUEST)

    tasks = [asyncio.create_task(worker()) for _ in range(workers)]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def test_a_transient_fault_is_tried_again_until_the_attempts_are_used_up():
    server = Server(Transient("503"))
    with pytest.raises(Transient):
        run(Limited(server, base=1.0).complete(REQUEST))
    assert server.calls == [0.0, 1.0, 3.0, 7.0]


@pytest.mark.parametrize("failure", [Failure.TIMEOUT, Failure.REFUSED, Failure.PROVIDER_ERROR])
def test_what_another_try_cannot_mend_is_tried_once(failure):
    server = Server(ModelError(failure, "no"))
    with pytest.raises(ModelError) as caught:
        run(Limited(server).complete(REQUEST))
    assert (caught.value.failure, len(server.calls)) == (failure, 1)


def test_retry_after_holds_back_the_call_and_all_others():
    server = Server(*[REPLY] * 30, RateLimited("429", retry_after=30.0), REPLY, seconds=0.1)
    run(drive(Limited(server, base=0.5), workers=10, seconds=60.0))
    refused = server.calls[30]
    assert not [at for at in server.calls if refused + 0.11 < at < refused + 30.0]
    assert any(at == pytest.approx(refused + 30.6) for at in server.calls)


def test_rate_limiting_is_sat_out_to_the_deadline_and_no_longer():
    async def scenario():
        with pytest.raises(ModelError) as caught:
            await Limited(Server(RateLimited("429")), deadline=100.0).complete(REQUEST)
        return caught.value.failure, now()

    failure, seconds = run(scenario())
    assert failure is Failure.PROVIDER_ERROR and 30 < seconds <= 100


def test_the_deadline_bounds_a_call_that_never_answers():
    async def scenario():
        with pytest.raises(ModelError) as caught:
            await Limited(Server(REPLY, seconds=1e9), deadline=50.0).complete(REQUEST)
        return caught.value.failure, now()

    assert run(scenario()) == (Failure.TIMEOUT, 50.0)


def test_time_spent_in_the_queue_is_not_held_against_a_request():
    async def scenario():
        model = Limited(Server(REPLY, seconds=9.0), 1, deadline=10.0)
        async with asyncio.TaskGroup() as group:
            replies = [group.create_task(model.complete(REQUEST)) for _ in range(5)]
        return [task.result() for task in replies], now()

    assert run(scenario()) == ([REPLY] * 5, 45.0)


def test_a_wait_longer_than_any_call_may_take_stops_the_run():
    server = Server(RateLimited("daily quota", retry_after=86_400.0))
    with pytest.raises(KaceError, match=r"asks to wait 86400 s.*later"):
        run(Limited(server).complete(REQUEST))
    assert len(server.calls) == 1


def test_a_provider_that_refuses_for_minutes_warns_once_and_stops_the_run(caplog):
    """Four workers, a short deadline, and never a Retry-After."""
    server, ended = Server(REFUSAL), []

    async def worker(model):
        while not ended:
            try:
                await model.complete(REQUEST)
            except ModelError:
                pass
            except KaceError as error:
                ended.append(error)

    async def work():
        model = Limited(server, deadline=4.0)
        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(worker(model))
        return now()

    assert 180 <= run(work()) < 400
    assert "refused all calls for" in ended[0].message and "finished calls are kept" in ended[0].fix
    assert [record.message for record in caplog.records] == [
        "scripted/server is rate limited: calls pause (429 from the provider: too many requests)"
    ]


def test_a_limit_by_the_minute_stops_nothing_however_many_calls_it_refuses():
    class ByTheMinute(Server):
        async def complete(self, request):
            began = now()
            self.calls.append(began)
            await asyncio.sleep(0.5)
            if began % 60 >= 2:
                raise REFUSAL
            return REPLY

    server = ByTheMinute()
    run(drive(Limited(server, 50), workers=50, seconds=1800.0))
    assert sum(at % 60 >= 2 for at in server.calls) > 500


def test_cancelling_waiters_and_holders_loses_no_place_and_another_loop_begins_anew():
    draws = random.Random(3)
    model = Limited(Server(REPLY, seconds=1.0), 3)

    async def scenario():
        for _ in range(50):
            tasks = [asyncio.create_task(model.complete(REQUEST)) for _ in range(10)]
            await asyncio.sleep(draws.choice([0.0, 0.5, 1.0, 1.5]))
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        start = now()
        async with asyncio.TaskGroup() as group:
            for _ in range(9):
                group.create_task(model.complete(REQUEST))
        return now() - start

    assert run(scenario()) == 3.0
    assert run(scenario()) == 3.0
