"""Calls on disk: never paid twice, never collapsed, and damage costs only itself."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from kace.errors import DataError, KaceError
from kace.models.base import AttemptKey, Failure, Finish, ModelError, Reply, Request, Sampling, Usage, chat
from kace.models.cache import Cached, CallRecord, CallStore, Replay, read_calls
from kace.models.scripted import Scripted, dice


def request(index: int = 0, *, seed: int = 0, text: str = "2+2?", temperature: float = 0.6) -> Request:
    key = AttemptKey("p", seed, "HS", index)
    return Request(chat("solve", text), Sampling(temperature, 100, key.sampling_seed()), key)


def ask(model: Cached, *requests: Request) -> list[Reply]:
    async def work() -> list[Reply]:
        return [await model.complete(r) for r in requests]

    return asyncio.run(work())


def random_words(request: Request) -> str:
    return f"\\boxed{{{random.random()}}}"


def test_a_second_process_pays_nothing_and_reads_the_same(tmp_path: Path):
    first = Cached(Scripted(random_words), CallStore(tmp_path))
    before = ask(first, request(0), request(1))
    first.store.close()
    inner = Scripted(random_words)
    after = ask(Cached(inner, CallStore(tmp_path)), request(0), request(1))
    assert inner.calls == 0
    assert [r.text for r in after] == [r.text for r in before]
    assert all(r.cached for r in after)
    assert not any(r.cached for r in before)


def test_the_same_call_asked_side_by_side_is_made_once_and_again_where_it_failed(tmp_path: Path):
    def first_fails(asked: Request) -> str:
        if inner.calls == 1:
            raise ModelError(Failure.PROVIDER_ERROR, "502")
        return random_words(asked)

    inner = Scripted(first_fails)
    model = Cached(inner, CallStore(tmp_path))

    async def heard_by() -> Reply | ModelError:
        try:
            return await model.complete(request(0))
        except ModelError as error:
            return error

    async def work() -> list[Reply | ModelError]:
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(heard_by()) for _ in range(6)]
        return [task.result() for task in asked]

    failed, *heard = asyncio.run(work())
    assert isinstance(failed, ModelError) and inner.calls == 2
    assert len({reply.text for reply in heard if isinstance(reply, Reply)}) == 1 and len(heard) == 5
    assert not model._under_way


@pytest.mark.parametrize(
    "other",
    [request(1), request(0, seed=1), request(0, text="2+3?"), request(0, temperature=0.7)],
    ids=["index", "seed", "prompt", "temperature"],
)
def test_whatever_differs_is_another_call(tmp_path: Path, other: Request):
    inner = Scripted(random_words)
    ask(Cached(inner, CallStore(tmp_path)), request(0), other)
    assert inner.calls == 2


def test_two_processes_share_a_folder_without_a_lock(tmp_path: Path):
    left, right = (Cached(Scripted(random_words), CallStore(tmp_path)) for _ in range(2))
    for index in range(20):
        ask(left if index % 2 else right, request(index))
    left.store.close()
    right.store.close()
    assert len(list(read_calls(tmp_path))) == 20


def damage_middle(data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    lines[1] = lines[1][:80] + b"\x00" + lines[1][81:]
    return b"".join(lines)


@pytest.mark.parametrize(("harm", "lost"), [(lambda data: data[:-7], 1), (damage_middle, 1), (lambda data: b"", 3)])
def test_damage_costs_only_the_damaged_calls(tmp_path: Path, harm, lost: int):
    first = Cached(Scripted(dice(6)), CallStore(tmp_path))
    before = ask(first, *(request(i) for i in range(3)))
    first.store.close()
    (segment,) = tmp_path.glob("*.jsonl")
    segment.write_bytes(harm(segment.read_bytes()))
    inner = Scripted(dice(6))
    after = ask(Cached(inner, CallStore(tmp_path)), *(request(i) for i in range(3)))
    assert inner.calls == lost
    assert [r.text for r in after] == [r.text for r in before]


def test_latex_survives_the_disk_and_a_lone_surrogate_cannot_break_it(tmp_path: Path):
    text = "\\frac \\theta \\beta \\nabla \\rho \\u0041 \t \x0c \U0001f600 \x00"
    for index, said in enumerate((text, text + "\ud800")):
        first = Cached(Scripted(lambda _, said=said: said), CallStore(tmp_path))
        (before,) = ask(first, request(index))
        first.store.close()
        (after,) = ask(Cached(Scripted(lambda _: "other"), CallStore(tmp_path)), request(index))
        assert after.text == before.text
        assert after.text.startswith(text)


LINE = (
    '{"key":"k","v":1,"model":"m","problem":"p","seed":0,"tier":"HS","index":0,"text":"4","finish":"stop",'
    '"input":9,"cached":2,"output":3,"seconds":0.5}'
)


def test_a_record_without_cache_writes_is_the_line_it_always_was():
    reply = Reply("4", Finish.STOP, Usage(9, 2, 3), 0.5)
    assert CallRecord.of("k", "m", request().attempt, reply).model_dump_json(exclude_defaults=True) == LINE
    assert CallRecord.model_validate_json(LINE).reply().usage == Usage(9, 2, 3, written=0)


def test_a_prompt_is_kept_once_for_the_attempts_that_share_it(tmp_path: Path):
    model = Cached(Scripted(random_words), CallStore(tmp_path))
    ask(model, *(request(index) for index in range(3)))
    kept = list(read_calls(tmp_path))
    assert len({record.prompt for record in kept}) == 1
    assert [record.messages for record in kept if record.messages] == [request().messages]


def test_no_prompt_is_kept_in_a_run_without_texts(tmp_path: Path):
    store = CallStore(tmp_path)
    store.prompts = False
    ask(Cached(Scripted(random_words), store), request())
    assert [(record.prompt, record.messages) for record in read_calls(tmp_path)] == [("", ())]


def test_a_recorded_run_replays_and_refuses_what_it_never_saw(tmp_path: Path):
    model = Cached(Scripted(random_words, name="real"), CallStore(tmp_path / "run" / "calls"))
    before = ask(model, request(0), request(1))
    model.store.close()
    replay = Replay(tmp_path / "run")
    assert [asyncio.run(replay.complete(request(i))).text for i in range(2)] == [r.text for r in before]
    with pytest.raises(KaceError, match="no recording of problem p HS attempt 2"):
        asyncio.run(replay.complete(request(2)))


def test_an_empty_or_broken_recording_is_refused(tmp_path: Path):
    with pytest.raises(DataError, match="no recorded calls"):
        Replay(tmp_path)
    (tmp_path / "x.jsonl").write_text('{"key": "no"}\n')
    with pytest.raises(DataError, match=r"x\.jsonl:1: not a call record"):
        Replay(tmp_path / "x.jsonl")
    with pytest.raises(DataError, match=r"absent\.jsonl: no recorded calls"):
        Replay(tmp_path / "absent.jsonl")
