"""A real model file, run by the real engine."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from kace.config import user_cache
from kace.errors import DataError, KaceError, UsageError
from kace.models.base import (
    AttemptKey,
    ChatModel,
    Failure,
    Finish,
    Message,
    ModelError,
    Reply,
    Request,
    Role,
    Sampling,
    Transient,
    chat,
)
from kace.models.local import LocalModel, _turn_of, find_weights, pull
from tests.one_loop import LOOP
from tests.serve.running import until

T = TypeVar("T")
NAME = "smollm2-135m"
CARDS = "You solve problems. " + " ".join(f"The square of {number} is {number**2}." for number in range(12))
model_test = pytest.mark.model


@pytest.fixture(scope="session")
def cache() -> Path:
    """The user's own cache, so that the weights are downloaded once per machine and not once per run."""
    folder = user_cache({}) / "models"
    try:
        pull(find_weights(NAME), cache=folder, hub="https://huggingface.co")
    except KaceError as error:
        pytest.skip(f"LOCAL ENGINE NOT TESTED: {error}")
    return folder


def ask(text: str, index: int = 0, **sampling: float) -> Request:
    key = AttemptKey("problem", 0, "ES", index)
    drawn = Sampling(
        temperature=sampling.get("temperature", 0.8),
        max_tokens=int(sampling.get("max_tokens", 24)),
        seed=key.sampling_seed(),
    )
    return Request(chat(CARDS, text), drawn, key)


def endless(text: str, index: int = 0) -> Request:
    """A request this model goes on answering for long enough to be interrupted."""
    return ask(f"{text} Write the numbers from 1 to 10000 in words, one a line.", index, max_tokens=3000, temperature=0)


@pytest.fixture(scope="module")
def model(cache: Path) -> Iterator[LocalModel]:
    """A model of two slots for the tests that ask nothing of its first state."""
    opened = LocalModel(NAME, cache=cache, slots=2)
    yield opened
    LOOP.run(opened.aclose())


def complete(model: LocalModel, *requests: Request) -> list[Reply]:
    """The replies to requests that are made side by side."""

    async def work() -> list[Reply]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(model.complete(request)) for request in requests]
        return [task.result() for task in tasks]

    return LOOP.run(work())


def using(cache: Path, work: Callable[[LocalModel], Awaitable[T]], **sizes: int) -> T:
    """What some work returns with a model of its own."""

    async def run() -> T:
        async with aclosing(LocalModel(NAME, cache=cache, **{"slots": 2, **sizes})) as model:
            return await work(model)

    return LOOP.run(run())


async def wait_for_tokens(model: LocalModel) -> None:
    """Until some slot is decoding."""
    while not any(slot["is_processing"] for slot in await slots(model)):
        await asyncio.sleep(0.02)


async def slots(model: LocalModel) -> list[dict[str, object]]:
    engine = await asyncio.to_thread(model._start)
    reader, writer = await asyncio.open_unix_connection(str(engine._socket))
    writer.write(b"GET /slots HTTP/1.1\r\nHost: kace\r\nConnection: close\r\n\r\n")
    body = (await reader.read()).partition(b"\r\n\r\n")[2]
    writer.close()
    return list(json.loads(body))


@model_test
def test_asking_how_sure_it_is_changes_nothing_in_what_it_says(model: LocalModel):
    asked = ask("Tell me about cats.")
    complete(model, asked)  # from now on the prompt is cached, and rounded the same
    (plain,) = complete(model, asked)
    (sure,) = complete(model, replace(asked, logprobs=True))
    assert plain.text == sure.text and plain.confidence is None and sure.confidence is not None
    assert sure.confidence.logprob < 0


@model_test
def test_more_attempts_than_slots_are_all_answered(model: LocalModel):
    assert isinstance(model, ChatModel) and model.name == f"local/{NAME}"
    assert find_weights(NAME).sha256 in model.identity
    replies = complete(model, *[ask("Tell me about cats.", index) for index in range(5)])
    assert len({reply.text for reply in replies}) == 5, "each attempt has its own seed"
    assert all(reply.finish is Finish.LENGTH and reply.usage.output == 24 for reply in replies)
    assert all(reply.seconds > 0 and not reply.cached for reply in replies)


ODD = ("geometry", "mixed: a, b", 'say "no"', "back\\slash", "two\nlines", "naïve [x] | (y)*", "😀")


@model_test
def test_a_reply_held_to_choices_is_always_one_of_them(model: LocalModel):
    requests = [ask("Which animal barks?", index, temperature=1.5, max_tokens=64) for index in range(6)]
    replies = complete(model, *[replace(request, choices=ODD) for request in requests])
    assert {reply.text for reply in replies} <= set(ODD)
    assert all(reply.finish is Finish.STOP for reply in replies)


@model_test
def test_a_killed_engine_fails_its_attempt_and_serves_the_next(model: LocalModel):
    async def work() -> None:
        task = asyncio.create_task(model.complete(endless("Please.")))
        await wait_for_tokens(model)
        os.kill((await asyncio.to_thread(model._start))._process.pid, signal.SIGKILL)
        with pytest.raises(Transient, match="the local engine ended"):
            await task

    LOOP.run(work())
    assert complete(model, ask("Hello."))[0].text


@model_test
def test_a_prefix_is_read_once_the_same_seed_repeats_a_sample_and_another_does_not(cache: Path):
    async def work(model: LocalModel) -> None:
        first = await model.complete(ask("What is the square of 7? Think of algebra.", 0))
        second = await model.complete(ask("What is the square of 7? Think of geometry.", 1))
        assert first.usage.cached == 0
        assert second.usage.cached > 0.8 * second.usage.input
        again = [await model.complete(ask("Tell me a story.", 3)) for _ in range(3)]
        # The first reply fills the prefix cache; those after it start from the same state.
        assert again[1].text == again[2].text
        other = await model.complete(ask("Tell me a story.", 4))
        assert other.text != again[2].text

    using(cache, work, slots=1)


@model_test
def test_cancelling_an_attempt_frees_its_slot_while_it_reads_and_while_it_writes(cache: Path):
    async def work(model: LocalModel) -> None:
        for request in (endless("Please."), ask("word " * 2500, max_tokens=900)):
            task = asyncio.create_task(model.complete(request))
            await wait_for_tokens(model)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while (await slots(model))[0]["is_processing"]:
                await asyncio.sleep(0.02)
            (slot,) = await slots(model)
            assert slot["n_prompt_tokens"] < 2500, "had it gone on, it would have read or written more"  # type: ignore[operator]
        assert (await model.complete(ask("Say hello."))).text

    using(cache, work, slots=1)


@model_test
def test_a_prompt_longer_than_the_context_is_a_failed_attempt(cache: Path):
    async def work(model: LocalModel) -> None:
        with pytest.raises(ModelError, match="exceeds the available context size") as caught:
            await model.complete(ask("word " * 400))
        assert caught.value.failure is Failure.PROVIDER_ERROR and not isinstance(caught.value, Transient)
        assert (await model.complete(replace(ask("Hello."), messages=chat("Be brief.", "Hello.")))).text
        filled = replace(ask("", max_tokens=5000), messages=chat("", endless("Now.").messages[1].content))
        assert (await model.complete(filled)).finish is Finish.LENGTH

    using(cache, work, slots=1, context=256)


@model_test
def test_closing_ends_what_is_under_way_and_what_comes_after(cache: Path):
    async def work(model: LocalModel) -> None:
        task = asyncio.create_task(model.complete(endless("Please.")))
        await wait_for_tokens(model)
        engine = await asyncio.to_thread(model._start)
        await model.aclose()
        await model.aclose()
        with pytest.raises(ModelError):
            await task
        with pytest.raises(ModelError, match="closed"):
            await model.complete(ask("Hello."))
        assert not engine.is_alive and not Path(engine._socket).parent.exists()

    using(cache, work)


@model_test
def test_two_models_of_one_file_and_two_event_loops_work(cache: Path):
    first = LocalModel(NAME, cache=cache, slots=1)
    second = LocalModel(str(cache / find_weights(NAME).file), cache=cache, slots=1)
    assert first.identity == second.identity and first.name != second.name

    async def both() -> list[Reply]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(model.complete(ask("Hello."))) for model in (first, first, second, second)]
        return [task.result() for task in tasks]

    for _ in range(2):
        assert all(reply.text for reply in asyncio.run(both()))
    for model in (first, second):
        asyncio.run(model.aclose())


SCRIPT = """
import asyncio, os, signal, sys, time
from pathlib import Path
from kace.models.base import AttemptKey, Request, Sampling, chat
from kace.models.local import LocalModel

async def main():
    asyncio.get_running_loop().slow_callback_duration = 600  # on a busy machine everything is slow
    model = LocalModel("smollm2-135m", cache=Path(sys.argv[1]), slots=1)
    key = AttemptKey("p", 0, "ES", 0)
    await model.complete(Request(chat("", "Hello."), Sampling(0.0, 3, 1), key))
    task = asyncio.create_task(model.complete(Request(chat("", "Count to 10000."), Sampling(0.0, 3000, 1), key)))
    await asyncio.sleep(0.3)
    engine = await asyncio.to_thread(model._start)
    print(engine._process.pid, Path(engine._socket).parent, flush=True)
    if sys.argv[2] == "closes":
        task.cancel()
        await model.aclose()
    elif sys.argv[2] == "is killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif sys.argv[2] == "leaves":
        sys.exit(0)

asyncio.run(main())
"""


@model_test
@pytest.mark.parametrize("ending", ["closes", "forgets to close", "leaves", "is killed"])
def test_no_engine_outlives_a_program_that(cache: Path, ending: str):
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", SCRIPT, str(cache), ending],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == (-signal.SIGKILL if ending == "is killed" else 0), done.stderr
    assert done.stderr == "", "llama.cpp and the interpreter's exit are silent"
    pid, folder = done.stdout.split()
    assert until(lambda: not Path(f"/proc/{pid}").exists(), 10)
    assert not Path(folder).exists()


def test_a_file_llama_cpp_cannot_read_is_the_operators_to_mend(tmp_path: Path):
    pytest.importorskip("xllamacpp")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(100))
    model = LocalModel(str(broken), cache=tmp_path)
    with pytest.raises(KaceError, match=r"could not load .*broken\.gguf") as caught:
        asyncio.run(model.complete(ask("Hello.")))
    assert "\n" not in str(caught.value) and caught.value.fix


def test_weights_that_are_not_there_are_named_with_the_command_that_brings_them(tmp_path: Path):
    with pytest.raises(UsageError, match=f"kace models pull {NAME}"):
        LocalModel(NAME, cache=tmp_path)
    with pytest.raises(DataError, match="no such file"):
        LocalModel(str(tmp_path / "absent.gguf"), cache=tmp_path)


def test_without_the_engine_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'kace\[local\]'"):
        LocalModel("x.gguf", tmp_path)


def attempt_at(problem: str, index: int, *messages: str) -> Request:
    roles = (Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.USER)
    said = tuple(Message(role, text) for role, text in zip(roles, messages, strict=False))
    return Request(said, Sampling(0.0, 1, 0), AttemptKey(problem, 0, "MS", index))


@pytest.mark.parametrize(
    ("messages", "turns"),
    [(("x" * 1000, "?"), 2), (("Solve.", "6 times 7?", "42", "?"), 2), (("short", "?"), 6)],
    ids=["cards", "demonstrations", "short"],
)
def test_attempts_that_share_a_long_prompt_go_one_after_the_other(messages: tuple[str, ...], turns: int):
    asked = [attempt_at(problem, index, *messages) for problem in "ab" for index in range(3)]
    assert len({_turn_of(request) for request in asked}) == turns


def test_an_engine_that_dies_again_and_again_stops_the_run(tmp_path, monkeypatch):
    class Dead:
        is_alive = False

        def __init__(self, path, slots, context): ...

        def stop(self): ...

    monkeypatch.setattr("kace.models.local.Engine", Dead)
    path = tmp_path / "dead.gguf"
    path.write_bytes(b"GGUF")
    model = LocalModel(str(path), tmp_path)
    for _ in range(4):
        model._start()
    with pytest.raises(KaceError, match="died 4 times"):
        model._start()
