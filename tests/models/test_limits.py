"""The limiter and the retry policy in virtual time: hours pass in milliseconds, and every run is the same."""

import asyncio
import random
import selectors
from collections import Counter

import pytest

from kace.errors import KaceError
from kace.models.base import (
    AttemptKey,
    Failure,
    Finish,
    ModelError,
    RateLimited,
    Reply,
    Request,
    Sampling,
    Transient,
    Usage,
    chat,
)
from kace.models.limits import BROKEN_SECONDS, START, AdaptiveLimiter, Limited, RetryPolicy

REQUEST = Request(chat("s", "u"), Sampling(0.6, 100, 1), AttemptKey("p", 0, "ES", 0))
REPLY = Reply("4", Finish.STOP, Usage(1, 0, 1), 1.0)


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
        self.under_way = self.peak = 0

    async def complete(self, request):
        step = self.steps[min(len(self.calls), len(self.steps) - 1)]
        self.calls.append(now())
        self.under_way += 1
        self.peak = max(self.peak, self.under_way)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.under_way -= 1
        if isinstance(step, Exception):
            raise step
        return step

    async def aclose(self):
        pass


class TokenBucket(Server):
    """Admits `rate` calls a second and `burst` at once, like most providers; says 429 to the rest."""

    def __init__(self, rate, burst, seconds, refusal):
        super().__init__(REPLY, seconds=seconds)
        self.rate, self.burst, self.refusal = rate, burst, refusal
        self.tokens, self.filled = float(burst), 0.0
        self.admitted, self.refused = [], []

    async def complete(self, request):
        self.tokens = min(self.burst, self.tokens + (now() - self.filled) * self.rate)
        self.filled = now()
        if self.tokens < 1 - 1e-9:
            self.refused.append(now())
            await asyncio.sleep(0.01)
            raise self.refusal
        self.tokens -= 1
        self.admitted.append(now())
        return await super().complete(request)


def limited(server, limiter=None, **policy):
    return Limited(server, limiter or AdaptiveLimiter(), RetryPolicy(jitter=lambda: 1.0, **policy))


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


# The retry policy


def test_full_jitter_doubles_up_to_its_cap():
    policy = RetryPolicy(base=0.5, cap=4.0, jitter=lambda: 1.0)
    assert [policy.wait(n) for n in (1, 2, 3, 4, 5, 5000)] == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]
    assert RetryPolicy(jitter=lambda: 0.0).wait(7) == 0.0


def test_what_the_server_asks_for_is_never_undercut():
    draws = random.Random(1)
    policy = RetryPolicy(base=0.5, jitter=draws.random)
    assert all(7.0 <= policy.wait(1, requested=7.0) <= 7.5 for _ in range(100))


def test_a_transient_fault_is_tried_again_until_the_attempts_are_used_up():
    server = Server(Transient("503"))
    with pytest.raises(Transient):
        run(limited(server, attempts=3, base=1.0).complete(REQUEST))
    assert server.calls == [0.0, 1.0, 3.0]


def test_a_fault_that_passes_gives_the_reply():
    server = Server(Transient("reset"), RateLimited("429"), REPLY)
    assert run(limited(server).complete(REQUEST)) is REPLY
    assert len(server.calls) == 3


@pytest.mark.parametrize("failure", [Failure.TIMEOUT, Failure.REFUSED, Failure.PROVIDER_ERROR])
def test_what_another_try_cannot_mend_is_tried_once(failure):
    server = Server(ModelError(failure, "no"))
    with pytest.raises(ModelError) as caught:
        run(limited(server).complete(REQUEST))
    assert (caught.value.failure, len(server.calls)) == (failure, 1)


def test_retry_after_is_honoured():
    server = Server(RateLimited("429", retry_after=5.0), REPLY)
    run(limited(server, base=0.5).complete(REQUEST))
    assert server.calls == [0.0, 5.5]


def test_rate_limiting_is_sat_out_to_the_deadline_and_no_longer():
    async def scenario():
        with pytest.raises(ModelError) as caught:
            await limited(Server(RateLimited("429")), attempts=2, deadline=100.0).complete(REQUEST)
        return caught.value.failure, now()

    failure, seconds = run(scenario())
    assert failure in (Failure.PROVIDER_ERROR, Failure.TIMEOUT)
    assert 30 < seconds <= 100


def test_the_deadline_bounds_a_call_that_never_answers():
    async def scenario():
        with pytest.raises(ModelError) as caught:
            await limited(Server(REPLY, seconds=1e9), deadline=50.0).complete(REQUEST)
        return caught.value.failure, now()

    assert run(scenario()) == (Failure.TIMEOUT, 50.0)


def test_time_spent_in_the_queue_is_not_held_against_a_request():
    async def scenario():
        model = limited(Server(REPLY, seconds=9.0), AdaptiveLimiter(1, fixed=True), deadline=10.0)
        async with asyncio.TaskGroup() as group:
            replies = [group.create_task(model.complete(REQUEST)) for _ in range(5)]
        return [task.result() for task in replies], now()

    assert run(scenario()) == ([REPLY] * 5, 45.0)


def test_a_wait_longer_than_any_call_may_take_stops_the_run():
    server = Server(RateLimited("daily quota", retry_after=86_400.0))
    model = limited(server, deadline=600.0)
    for _ in range(3):
        with pytest.raises(KaceError, match="later"):
            run(model.complete(REQUEST))
    assert len(server.calls) == 1


# The stop


REFUSAL = RateLimited("429 from the provider: too many requests")


def test_a_provider_that_refuses_for_minutes_is_said_to_and_stops_the_run(caplog):
    """Four workers, a deadline as short as theirs was, and never a Retry-After."""
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
        model = limited(server, deadline=4.0)
        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(worker(model))
        return now()

    assert 180 <= run(work()) < 400
    assert "is rate limited" in ended[0].message and "finished calls are kept" in ended[0].fix
    assert [record.message for record in caplog.records] == [
        "scripted/server is rate limited: calls are sent more slowly (429 from the provider: too many requests)"
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

    async def work():
        await drive(limited(server, AdaptiveLimiter(50, fixed=True)), workers=50, seconds=1800.0)

    run(work())
    assert sum(at % 60 >= 2 for at in server.calls) > 500


def test_a_provider_that_answers_again_is_heard_again():
    server = Server(*[REFUSAL] * 5, REPLY)

    async def work():
        model = limited(server, refusals=5, patience=0.0)
        with pytest.raises(KaceError, match="is rate limited: 5 calls refused in a row"):
            await model.complete(REQUEST)
        return await model.complete(REQUEST)

    assert run(work()) == REPLY


def test_a_reply_ends_the_row_of_refusals():
    server = Server(*[*[REFUSAL] * 9, REPLY] * 40)

    async def work():
        model = limited(server, refusals=10, patience=0.0, deadline=10_000.0)
        return [await model.complete(REQUEST) for _ in range(40)]

    assert len(run(work())) == 40


def test_an_operator_error_stops_everything_within_one_request_per_worker():
    server = Server(KaceError("401", fix="set OPENAI_API_KEY"), seconds=1.0)
    model = limited(server, AdaptiveLimiter(4, fixed=True))

    async def scenario():
        tasks = [asyncio.create_task(model.complete(REQUEST)) for _ in range(100)]
        await asyncio.wait(tasks)
        return [task.exception() for task in tasks], now()

    errors, seconds = run(scenario())
    assert Counter(str(error) for error in errors) == {"401. Fix: set OPENAI_API_KEY": 100}
    assert (len(server.calls), seconds) == (4, 1.0)
    with pytest.raises(KaceError):
        run(model.complete(REQUEST))
    assert len(server.calls) == 4


# The limiter


def test_a_fixed_limiter_keeps_exactly_that_many_under_way_whatever_happens():
    server = Server(RateLimited("429"), REPLY, seconds=1.0)
    run(drive(limited(server, AdaptiveLimiter(7, fixed=True)), workers=50, seconds=20.0))
    assert server.peak == 7
    assert len(server.calls) == pytest.approx(7 * 20, abs=7)


def test_slow_start_begins_small_doubles_and_stops_at_the_cap():
    server = Server(REPLY, seconds=1.0)
    limiter = AdaptiveLimiter(max_connections=100)
    assert limiter.limit == START == 20
    run(drive(limited(server, limiter), workers=500, seconds=1.6))
    assert limiter.limit == 40
    run(drive(limited(server, limiter), workers=500, seconds=30.0))
    assert (limiter.limit, server.peak) == (100, 100)


def test_a_limit_that_nobody_reaches_is_not_raised():
    limiter = AdaptiveLimiter()
    run(drive(limited(Server(REPLY, seconds=1.0), limiter), workers=5, seconds=60.0))
    assert limiter.limit == START


def test_places_are_given_in_the_order_of_asking():
    order = []

    async def scenario():
        limiter = AdaptiveLimiter(2, fixed=True)

        async def call(number):
            async with limiter.slot():
                order.append(number)
                await asyncio.sleep(1.0)

        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(call(number))

    run(scenario())
    assert order == list(range(20))


def test_a_second_try_goes_before_those_that_have_not_begun():
    order = []

    async def scenario():
        limiter = AdaptiveLimiter(1, fixed=True)

        async def call(number, again):
            async with limiter.slot(again=again):
                order.append(number)
                await asyncio.sleep(1.0)

        async with asyncio.TaskGroup() as group:
            for number in range(4):
                group.create_task(call(number, again=number == 3))

    run(scenario())
    assert order == [0, 3, 1, 2]


def test_one_burst_of_429s_is_one_cut():
    async def scenario(refusals):
        limiter = AdaptiveLimiter()

        async def refused():
            async with limiter.slot():
                await asyncio.sleep(1.0)
                raise RateLimited("429")

        tasks = [asyncio.create_task(refused()) for _ in range(refusals)]
        await asyncio.wait(tasks)
        for task in tasks:
            task.exception()
        return limiter.limit

    assert run(scenario(1)) == run(scenario(15)) == 20  # ten calls a second, and twice that under way


def test_a_provider_that_refuses_everything_is_asked_ever_more_seldom_and_the_limit_never_falls_below_one():
    server = Server(RateLimited("429"))
    limiter = AdaptiveLimiter()
    run(drive(limited(server, limiter, cap=1.0, deadline=1e9), workers=50, seconds=3600.0))
    assert limiter.limit == 1
    assert len(server.calls) < 400
    assert sum(at > 1800 for at in server.calls) <= 45


def test_retry_after_holds_back_everybody():
    server = Server(*[REPLY] * 30, RateLimited("429", retry_after=30.0), REPLY, seconds=0.1)
    run(drive(limited(server), workers=10, seconds=60.0))
    refused = server.calls[30]
    assert not [at for at in server.calls if refused + 0.11 < at < refused + 30.0]


@pytest.mark.parametrize("seconds", [0.2, 1.0])
@pytest.mark.parametrize("burst", [5, 20, 60])
@pytest.mark.parametrize("retry_after", [None, 0.05])
def test_a_limit_of_20_calls_a_second_is_used_well_and_little_is_wasted(seconds, burst, retry_after):
    server = TokenBucket(20, burst, seconds, RateLimited("429", retry_after))
    draws = random.Random(7)
    run(drive(Limited(server, AdaptiveLimiter(), RetryPolicy(jitter=draws.random)), workers=200, seconds=30.0))
    assert len(server.admitted) >= 0.85 * 20 * 30
    assert len(server.refused) < 0.05 * (len(server.admitted) + len(server.refused))


def test_a_limit_that_is_lifted_is_found_again():
    server = TokenBucket(20, 20, 0.2, RateLimited("429"))
    model = limited(server)

    async def scenario():
        lifting = asyncio.get_running_loop().call_later(60.0, setattr, server, "rate", 100)
        await drive(model, workers=200, seconds=180.0)
        lifting.cancel()

    run(scenario())
    assert sum(at > 170 for at in server.admitted) > 0.85 * 100 * 10


def test_idle_time_does_not_earn_a_faster_pace():
    server = TokenBucket(20, 20, 0.2, RateLimited("429"))
    model = limited(server)

    async def scenario():
        await drive(model, workers=100, seconds=30.0)
        await asyncio.sleep(3600.0)
        before = len(server.refused)
        await drive(model, workers=100, seconds=30.0)
        return len(server.refused) - before

    assert run(scenario()) < 0.05 * 20 * 30


def test_cancelling_waiters_and_holders_loses_no_place():
    draws = random.Random(3)
    limiter = AdaptiveLimiter(3, fixed=True)
    server = Server(REPLY, seconds=1.0)
    model = limited(server, limiter)

    async def scenario():
        for _ in range(50):
            tasks = [asyncio.create_task(model.complete(REQUEST)) for _ in range(10)]
            await asyncio.sleep(draws.choice([0.0, 0.5, 1.0, 1.5]))  # at 1.0, turns are being handed over
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        start = now()
        async with asyncio.TaskGroup() as group:
            for _ in range(9):
                group.create_task(model.complete(REQUEST))
        return now() - start

    assert run(scenario()) == pytest.approx(3.0)
    assert server.peak == 3


def test_a_limiter_outlives_an_event_loop_that_was_torn_down_in_full_flow():
    server = TokenBucket(5, 1, 0.2, RateLimited("429"))
    model = limited(server)

    async def torn_down():
        for _ in range(50):
            asyncio.get_running_loop().create_task(model.complete(REQUEST))
        await asyncio.sleep(2.0)

    run(torn_down())

    async def later():
        asyncio.get_running_loop().now = 10.0  # clocks of real loops agree with each other
        await asyncio.wait_for(model.complete(REQUEST), 60.0)

    run(later())


def test_after_a_user_error_calls_fail_unsent_for_some_seconds_and_then_the_model_recovers():
    server = Server(KaceError("401", fix="set OPENAI_API_KEY"), KaceError("402"), REPLY)

    async def work():
        model, found = limited(server), []
        for pause in (0.0, 1.0, BROKEN_SECONDS, 1.0, BROKEN_SECONDS, 0.0):
            await asyncio.sleep(pause)
            try:
                found.append((await model.complete(REQUEST)).text)
            except KaceError as error:
                found.append(error.message)
        return found

    assert run(work()) == ["401", "401", "402", "402", "4", "4"]
    assert len(server.calls) == 4
