"""Several servers of one model, on real sockets: where calls go, and what becomes of them when a server dies."""

import asyncio
import copy
import logging
from contextlib import aclosing
from dataclasses import replace

import pytest

from kace.cli.doctor import probes
from kace.config import Caps, base_urls, load_config
from kace.errors import KaceError, UsageError
from kace.models import open_model
from kace.models.base import AttemptKey, Failure, ModelError, RateLimited, Request, Sampling, Transient, chat
from kace.models.budget import Ledger, Metered
from kace.models.http import OpenAIModel, Servers
from kace.models.limits import Limited
from kace.runs.manifest import default_folder, manifest_of
from tests.models.chat_server import Answer, ChatServer, error, says

GONE = "http://127.0.0.1:9/v1"


def request(problem, index=0):
    return Request(chat("s", problem), Sampling(0.6, 100, index), AttemptKey(problem, 0, "ES", index))


def pool(*urls):
    return Servers([OpenAIModel("m", base_url=url, api_key=None, name="openai/m") for url in urls])


def limited(model, connections=16):
    return Limited(model, connections, base=0.01, deadline=20.0)


async def outcome(model, asked):
    try:
        return (await model.complete(asked)).text
    except (ModelError, KaceError) as failure:
        return failure


def ask(model, requests, *, together=True):
    """What became of each request."""

    async def calls():
        async with aclosing(model):
            if not together:
                return [await outcome(model, asked) for asked in requests]
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(outcome(model, asked)) for asked in requests]
            return [task.result() for task in tasks]

    return asyncio.run(calls())


def test_a_call_goes_to_the_server_with_the_fewest():
    def all_here():
        return len(a.requests) + len(b.requests) >= 20

    waiting = replace(says("4"), until=all_here)
    with ChatServer([waiting]) as a, ChatServer([waiting]) as b:
        assert ask(pool(a.url, b.url), [request("one problem", index) for index in range(20)]) == ["4"] * 20
        assert len(a.requests) == len(b.requests) == 10


# Servers that are down


def test_a_server_that_is_not_there_is_passed_over_and_costs_no_try(caplog):
    asked = [request(f"p{n}") for n in range(30)]
    with ChatServer([says("4")]) as server, caplog.at_level(logging.WARNING):
        assert ask(pool(GONE, server.url), asked, together=False) == ["4"] * 30
    assert len(server.requests) == 30
    assert 1 <= caplog.text.count(f"{GONE} m failed and rests") <= 5


def test_a_server_that_dies_loses_nothing_and_its_calls_move_on():
    asked = [request(f"p{n}", index) for n in range(60) for index in range(3)]

    async def calls(a, b):
        model = limited(pool(a.url, b.url))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(outcome(model, each)) for each in asked]
            while len(a.requests) < 20 or len(b.requests) < 20:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(a.__exit__, None, None, None)
        await model.aclose()
        return [task.result() for task in tasks]

    slow = replace(says("4"), delay=0.05)
    a = ChatServer([slow]).__enter__()
    with ChatServer([slow]) as b:
        assert asyncio.run(calls(a, b)) == ["4"] * 180
    assert len(a.requests) + len(b.requests) <= 180 + 16, "only what was under way is asked again"
    assert len(a.requests) < 90 < len(b.requests)


def test_a_server_that_comes_back_is_used_again(monkeypatch):
    monkeypatch.setattr("kace.models.http.REST_SECONDS", 0.0)
    with ChatServer([error(503), error(503), says("4")]) as a, ChatServer([says("4")]) as b:
        model = limited(pool(a.url, b.url), connections=1)
        assert ask(model, [request(f"p{n}") for n in range(40)], together=False) == ["4"] * 40
        assert len(a.requests) > 5


def test_a_server_that_refuses_calls_is_spared_and_others_take_them():
    with ChatServer([error(429, headers={"retry-after": "30"})]) as busy, ChatServer([says("4")]) as free:
        assert ask(pool(busy.url, free.url), [request(f"p{n}") for n in range(30)], together=False) == ["4"] * 30
    assert (len(busy.requests), len(free.requests)) == (1, 30)


def test_all_down_is_the_error_of_one_server_down():
    (never,) = ask(limited(pool(GONE, "http://127.0.0.1:10/v1")), [request("p")])
    assert isinstance(never, KaceError)
    assert "cannot reach" in never.message

    async def calls():
        with ChatServer([says("4")]) as server:
            model = limited(pool(server.url, GONE))
            first = await outcome(model, request("p"))
        later = await outcome(model, request("p"))
        await model.aclose()
        return first, later

    first, later = asyncio.run(calls())
    assert first == "4"
    assert isinstance(later, Transient), "it was there, so it may come back"


def test_a_wrong_key_at_one_server_stops_the_run_and_names_it():
    with ChatServer([error(401)]) as server:
        (failure,) = ask(pool(server.url), [request("p")])
    assert type(failure) is KaceError and server.url in failure.message


def test_every_request_that_moves_on_is_a_call_of_the_ledger():
    ledger = Ledger(Caps())
    with ChatServer([error(429)]) as a, ChatServer([error(429)]) as b:
        model = Metered(pool(a.url, b.url), ledger, "solver")
        (failure,) = ask(model, [request("p")])
    assert isinstance(failure, ModelError)
    assert (ledger.calls, ledger.roles["solver"].failed) == (2, 2) == (len(a.requests) + len(b.requests), 2)


# The setting


def test_addresses_are_repeated_listed_or_separated_by_commas(tmp_path):
    urls = ["http://a/v1", "http://u:p,w@b/v1"]
    (tmp_path / "kace.toml").write_text(f"base_url = {urls}")
    for config in (
        load_config({"base_url": urls}, env={}),
        load_config(env={"KACE_BASE_URL": " , ".join(urls)}),
        load_config(file=tmp_path / "kace.toml", env={}),
    ):
        assert base_urls(config.base_url) == tuple(urls)
    assert isinstance(open_model(load_config({"model": "openai/m", "base_url": urls}, env={})).model, Servers)


def test_the_doctor_asks_each_server():
    with ChatServer([Answer(b'{"data": [{"id": "m"}]}')]) as server:
        config = load_config({"model": "openai/m", "base_url": [server.url, GONE]}, env={})
        checks = dict(probes(config))
        assert server.url in checks["model endpoint 1"]()
        with pytest.raises(KaceError, match=GONE):
            checks["model endpoint 2"]()


def test_the_first_address_names_a_run_and_its_calls_so_that_others_may_be_added():
    def config(url):
        return load_config({"model": "openai/m", "base_url": url}, env={})

    one, two = config("http://a/v1"), config(["http://a/v1", "http://u:canary@b/v1"])
    assert open_model(one).identity == open_model(two).identity
    alone, many = manifest_of(one), manifest_of(two)
    assert alone["config"] == many["config"]
    assert default_folder("eval", alone, b"") == default_folder("eval", many, b"")


@pytest.mark.parametrize(
    "error",
    [RateLimited("429", 3.0), Transient("reset"), ModelError(Failure.TIMEOUT, "slow"), UsageError("no", fix="yes")],
)
def test_an_error_survives_the_way_from_a_worker(error):
    error.billed = False
    found = copy.copy(error)
    assert type(found) is type(error) and str(found) == str(error) and vars(found) == vars(error)
