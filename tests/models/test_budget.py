"""The ledger: exact costs, caps that are never passed, nothing paid for lost."""

from __future__ import annotations

import asyncio

import pytest

from kace.config import Caps, Price
from kace.errors import BudgetExceeded, UsageError
from kace.models.base import AttemptKey, Failure, Finish, ModelError, Reply, Request, Sampling, Usage, chat
from kace.models.budget import Ledger, Metered, charge, worst_cost

USAGE = Usage(input=10, cached=4, output=5)
PRICE = Price(input=1000.0, output=2000.0, cached=100.0)


def request(index: int = 0) -> Request:
    return Request(chat("s", "u"), Sampling(0.0, 10, 0), AttemptKey("p", 0, "ES", index))


class Meter:
    """A model that knows how many calls are under way at once."""

    name = identity = "openai/metered"

    def __init__(self) -> None:
        self.calls = self.now = self.peak = 0

    async def complete(self, request: Request) -> Reply:
        self.calls += 1
        self.now += 1
        self.peak = max(self.peak, self.now)
        await asyncio.sleep(0.001)
        self.now -= 1
        return Reply("x", Finish.STOP, USAGE, 0.001)

    async def aclose(self) -> None: ...


def test_an_epoch_of_the_papers_teacher_costs_what_the_paper_says():
    epoch = Usage(input=1_300_000, cached=1_000_000, output=320_000, written=100_000)
    assert Price(input=3.00, output=15.00, cached=0.30, written=3.75).cost(epoch) == pytest.approx(6.08, abs=0.005)


def test_the_worst_case_counts_a_cache_that_is_dear_to_write():
    prompt, output = 64 + 2, 10
    dear, cheap = Price(1.0, 2.0, written=4.0), Price(1.0, 2.0, written=0.5)
    assert worst_cost(dear, request()) == pytest.approx((prompt * 4.0 + output * 2.0) / 1e6)
    assert worst_cost(cheap, request()) == pytest.approx((prompt * 1.0 + output * 2.0) / 1e6)


def spend(ledger: Ledger, n: int) -> tuple[Meter, list[Exception]]:
    model = Meter()
    errors: list[Exception] = []

    async def one(index: int) -> None:
        try:
            await Metered(model, ledger, "solver").complete(request(index))
        except BudgetExceeded as error:
            errors.append(error)

    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            for index in range(n):
                group.create_task(one(index))

    asyncio.run(work())
    return model, errors


def test_money_is_reserved_at_its_worst_case_so_the_cap_is_never_passed():
    worst = PRICE.cost(Usage(input=64 + 2, output=10))
    real = PRICE.cost(Usage(10, 4, 5))
    ledger = Ledger(Caps(usd=worst * 1.5), {"openai/metered": PRICE})
    model, errors = spend(ledger, 30)
    assert ledger.usd <= worst * 1.5
    assert model.peak == 1, "two worst cases do not fit side by side"
    assert model.calls == len([i for i in range(30) if i * real + worst <= worst * 1.5])
    assert errors


@pytest.mark.parametrize("text", ["3 7 1 " * 500, "\u6c42\u548c" * 400, "\u28ff" * 300])
def test_no_tokenizer_makes_more_tokens_than_are_reserved(text: str):
    asked = Request(chat("", text), Sampling(0.0, 0, 0), AttemptKey("p", 0, "ES", 0))
    assert worst_cost(Price(1.0, 1.0), asked) * 1e6 >= len(text.encode())


def test_fewer_tokens_than_a_text_can_have_are_charged_at_worst():
    reply = Reply("x" * 20_000, Finish.STOP, Usage(input=10, output=1), 0.0)
    assert charge(PRICE, request(), reply) == worst_cost(PRICE, request())
    sound = Reply("x" * 20_000, Finish.STOP, Usage(input=10, output=5_000), 0.0)
    assert charge(PRICE, request(), sound) == PRICE.cost(sound.usage)


def test_spending_is_kept_by_role_and_failures_are_counted():
    class Broken(Meter):
        async def complete(self, request: Request) -> Reply:
            raise ModelError(Failure.TIMEOUT, "slow")

    async def work() -> Ledger:
        ledger = Ledger(prices={"openai/metered": PRICE})
        await Metered(Meter(), ledger, "solver").complete(request())
        await Metered(Meter(), ledger, "teacher").complete(request())
        with pytest.raises(ModelError):
            await Metered(Broken(), ledger, "solver").complete(request())
        return ledger

    ledger = asyncio.run(work())
    assert (ledger.roles["solver"].calls, ledger.roles["solver"].failed) == (2, 1)
    assert ledger.roles["teacher"].usage == Usage(10, 4, 5)
    late = worst_cost(PRICE, request())
    assert ledger.usd == pytest.approx(2 * PRICE.cost(Usage(10, 4, 5)) + late), "who was too slow may send a bill"


def test_a_money_cap_without_a_price_is_refused():
    with pytest.raises(UsageError, match="needs a price"):
        Ledger(Caps(usd=1.0)).require_price("openai/unknown")
    for name in ("local/anything", "scripted/dice", "replay/runs/a", "exchange/letters"):
        Ledger(Caps(usd=1.0)).require_price(name)
