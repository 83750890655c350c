"""Providers that answer with odd bills, unreadable bodies and our own key, on real sockets: caps and secrets hold."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from kace.config import Caps
from kace.errors import BudgetExceeded
from kace.models.base import ModelError
from kace.models.budget import Ledger, Metered, worst_cost
from kace.models.cache import Cached, CallStore
from kace.models.http import OpenAIModel
from kace.models.limits import Limited
from tests.attacks.given import KEY, PRICE, request
from tests.command import run_kace
from tests.models.chat_server import Answer, ChatServer, Seen, completion, error, says

GOOD = {"prompt_tokens": 20, "completion_tokens": 7}
HUGE = 10**12

ODD_USAGE: dict[str, object] = {
    "missing": None,
    "empty": {},
    "a number": 7,
    "a text": "20 tokens",
    "a list": [20, 7],
    "texts for numbers": {"prompt_tokens": "many", "completion_tokens": "few"},
    "zero": {"prompt_tokens": 0, "completion_tokens": 0},
    "no prompt": {"completion_tokens": 7},
    "no reply": {"prompt_tokens": 20},
    "negative": {"prompt_tokens": -20, "completion_tokens": -7},
    "negative prompt": {**GOOD, "prompt_tokens": -HUGE},
    "negative reply": {**GOOD, "completion_tokens": -HUGE},
    "true": {"prompt_tokens": True, "completion_tokens": True},
    "texts of numbers": {"prompt_tokens": "20", "completion_tokens": "7"},
    "half a token": {"prompt_tokens": 20.5, "completion_tokens": 7},
    "not a number": {"prompt_tokens": float("nan"), "completion_tokens": 7},
    "infinite": {"prompt_tokens": float("inf"), "completion_tokens": 7},
    "too large to be true": {**GOOD, "prompt_tokens": HUGE},
    "nested": {"prompt_tokens": {"total": 20}, "completion_tokens": [7]},
    "more cached than read": {**GOOD, "prompt_tokens_details": {"cached_tokens": 21}},
    "far more cached than read": {**GOOD, "prompt_tokens_details": {"cached_tokens": 900_000_000}},
    "negative cached": {**GOOD, "prompt_tokens_details": {"cached_tokens": -HUGE}},
    "more written than read": {**GOOD, "cache_creation_input_tokens": 1_000},
    "cached and written twice": {**GOOD, "cache_creation_input_tokens": 15, "cache_read_input_tokens": 15},
}


def billing(usage: object) -> Answer:
    return Answer(json.dumps({**completion({"content": r"\boxed{4}"}), "usage": usage}).encode())


WORST = worst_cost(PRICE, request(0))


def spent(script: list[Answer] | Callable[[Seen], Answer], caps: Caps, calls: int = 30) -> tuple[Ledger, int, int]:
    """The ledger after so many calls side by side, the requests the provider saw, and the calls that a cap refused."""

    async def work(url: str) -> tuple[Ledger, int]:
        ledger, capped = Ledger(caps, {"openai/m": PRICE}), 0
        model = OpenAIModel("m", base_url=url, api_key=KEY, name="openai/m")
        metered = Metered(Limited(model, 4, base=0.001, deadline=60.0), ledger, "solver")

        async def one(index: int) -> None:
            nonlocal capped
            try:
                await metered.complete(request(index))
            except BudgetExceeded:
                capped += 1
            except ModelError:
                pass

        async with asyncio.TaskGroup() as group:
            for index in range(calls):
                group.create_task(one(index))
        await metered.aclose()
        return ledger, capped

    with ChatServer(script) as server:
        ledger, capped = asyncio.run(work(server.url))
        return ledger, len(server.requests), capped


@pytest.mark.parametrize("usage", ODD_USAGE.values(), ids=ODD_USAGE)
def test_odd_token_counts_are_charged_at_their_worst(usage: object) -> None:
    ledger, requests, capped = spent([billing(usage)], Caps(usd=5.5 * WORST))
    assert (requests, capped) == (5, 25)
    assert ledger.usd == pytest.approx(5 * WORST)


def test_plausible_token_counts_are_charged_as_they_are() -> None:
    ledger, requests, _ = spent([billing(GOOD)], Caps(usd=10.0))
    assert requests == 30
    assert ledger.usd == pytest.approx(30 * (20 * 1.0 + 7 * 10.0) / 1e6)


UNREADABLE = {
    "empty": Answer(b""),
    "half": Answer(says("4").body[:40]),
    "HTML": Answer(b"<html>please log in</html>"),
    "no choices": Answer(b'{"usage": {"prompt_tokens": 0, "completion_tokens": 0}}'),
    "not packed as it says": Answer(says("4").body, headers={"content-encoding": "gzip"}),
    "cut off": Answer(says("4").body, reset=True),
}


@pytest.mark.parametrize(("caps", "most"), [(Caps(calls=10), 10), (Caps(usd=5.5 * WORST), 5)], ids=["calls", "money"])
@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE)
def test_every_request_sent_is_a_call_that_may_be_billed_and_passes_no_cap(body: Answer, caps: Caps, most: int) -> None:
    ledger, requests, capped = spent([body], caps)
    assert requests == ledger.calls == ledger.roles["solver"].failed == most
    assert capped >= 26
    assert ledger.usd == pytest.approx(most * WORST)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_refused_request_is_a_call_that_costs_nothing(status: int) -> None:
    ledger, requests, _ = spent([error(status)], Caps(calls=10, usd=5.5 * WORST))
    assert requests == ledger.calls == 10
    assert ledger.usd == 0


def test_requests_sent_again_without_a_parameter_are_calls_too() -> None:
    def picky(seen: Seen) -> Answer:
        refused = next((name for name in ("max_tokens", "seed", "temperature") if name in seen.body), None)
        return error(400, f"unknown parameter: {refused}", param=refused) if refused else says("4")

    ledger, requests, capped = spent(picky, Caps(calls=10))
    assert requests == ledger.calls == 10
    assert ledger.roles["solver"].failed == 10 - (30 - capped)


def test_a_request_that_is_mended_is_paid_once() -> None:
    ledger, requests, _ = spent([error(500), Answer(b""), says("4")], Caps(), calls=1)
    assert (requests, ledger.calls, ledger.roles["solver"].failed) == (3, 3, 2)
    real = (6 * PRICE.input + 5 * 0.1 + 7 * PRICE.output) / 1e6
    assert ledger.usd == pytest.approx(WORST + real), "the empty 200 may be billed; the 500 is not"


ECHOES = {
    "as it is": KEY,
    "in a header": f"Authorization: Bearer {KEY}",
    "percent-encoded": "canary%2Fkey%2B0123456789",
    "in base64": base64.b64encode(KEY.encode()).decode(),
}


@pytest.mark.parametrize("echo", ECHOES)
@pytest.mark.parametrize("field", ["content", "refusal"])
def test_a_key_inside_a_200_is_kept_nowhere(echo: str, field: str, tmp_path: Path) -> None:
    message: dict[str, Any] = {"content": None, field: f"Your key: {ECHOES[echo]}. \\boxed{{4}}"}

    async def work(url: str) -> str:
        model = OpenAIModel("m", base_url=url, api_key=KEY, name="openai/m")
        async with aclosing(Cached(model, CallStore(tmp_path))) as cached:
            return (await cached.complete(request(0))).text

    with ChatServer([Answer(json.dumps(completion(message)).encode())]) as server:
        text = asyncio.run(work(server.url))
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir()).decode()
    assert text.endswith(r"\boxed{4}") and "[redacted]" in text and "[redacted]" in kept
    assert not any(secret in text + kept for secret in ECHOES.values())


PROBLEMS = "".join(f'{{"problem": "What is {n} + {n}?", "answer": "{2 * n}"}}\n' for n in range(12))
PRICED = '[prices."openai/m"]\ninput = 1.0\noutput = 10.0\ncached = 0.1\n'


def solving(folder: Path, server: ChatServer, *options: str) -> tuple[int, str]:
    """The exit status of `kace solve` on twelve problems, and all that it showed."""
    (folder / "p.jsonl").write_text(PROBLEMS)
    (folder / "kace.toml").write_text(PRICED)
    shared = ("--model", "openai/m", "--base-url", server.url, "--set", "max_connections=4")
    done = run_kace(folder, "solve", "--file", "p.jsonl", *shared, *options, OPENAI_API_KEY=KEY)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


def test_a_run_sends_no_more_requests_than_its_cap(tmp_path: Path) -> None:
    with ChatServer([Answer(b"")]) as server:
        status, shown = solving(tmp_path, server, "--max-calls", "10")
        assert len(server.requests) == 10
    assert status == 1 and "the cap of 10 calls is reached" in shown
    assert "counts anew from each start" in shown


def test_a_run_spends_no_more_than_its_cap_whatever_the_bill_says(tmp_path: Path) -> None:
    with ChatServer([billing({**GOOD, "prompt_tokens_details": {"cached_tokens": HUGE}})]) as server:
        status, shown = solving(tmp_path, server, "--max-usd", "0.1", "--set", "max_tokens=1000")
        assert 0 < len(server.requests) < 10, "each may cost a cent and more"
    assert status == 1 and "might pass the cap of 0.10 USD" in shown
    assert shown.count("reports no usable token counts") == 1


def test_no_byte_of_a_run_holds_a_key_that_the_provider_returned(tmp_path: Path) -> None:
    echoed = " ".join(ECHOES.values())
    with ChatServer([says(rf"{echoed} \boxed{{{KEY}}}")]) as server:
        status, shown = solving(tmp_path, server, "--json", "--explain")
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()).decode("utf-8", "replace")
    assert status == 0 and "[redacted]" in shown and "[redacted]" in written
    assert not any(secret in shown + written for secret in ECHOES.values())
