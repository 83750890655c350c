"""`kace mcp` through the official client: tools that answer in JSON or in one line, and write nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kace.cards.card import Provenance, Status
from kace.cards.store import TreeStore, open_tree
from kace.cards.tree import Add
from kace.cli import app
from kace.cli import serve as verb
from kace.config import load_config
from kace.errors import UsageError
from kace.serve.app import ServerOptions, open_service
from tests.card_samples import card, small_tree
from tests.command import environment, run_kace
from tests.models.chat_server import Answer, ChatServer

anyio = pytest.importorskip("anyio", reason="the extra `mcp` is not installed")
pytest.importorskip("mcp", reason="the extra `mcp` is not installed")
from mcp.client.client import Client  # noqa: E402
from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: E402

from kace.serve.mcp import create_server  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SPEED = "A bus goes 30 km/h out and 70 km/h back on the same road. What is its average speed?"
CANARY = "sk-canary-0123456789abcdef"
Call = tuple[str, Mapping[str, object]]  # a tool with its arguments


class Heard(NamedTuple):
    """What a client heard of one call."""

    failed: bool
    text: str
    progress: Sequence[str]

    @property
    def found(self) -> Any:
        assert not self.failed, self.text
        return json.loads(self.text)


def asked(folder: Path, *calls: Call, env: Mapping[str, str] | None = None, **settings: object) -> list[Heard]:
    """Call the tools of a server in this process, one after the other."""
    heard: list[Heard] = []
    given = {"model": "scripted/steady", "cache_dir": str(folder / "cache"), **settings}
    config = load_config(given, env=env or {})
    tree = open_tree(config.tree) if config.tree else None

    async def talk() -> None:
        async with open_service(ServerOptions(config, tree)) as service, Client(create_server(service)) as client:
            for name, arguments in calls:
                steps: list[str] = []

                async def step(progress: float, total: float | None, message: str | None, steps=steps) -> None:
                    steps.append(message or "")

                result = await client.call_tool(name, dict(arguments), progress_callback=step)
                (content,) = result.content
                assert result.is_error or result.structured_content == json.loads(content.text)
                heard.append(Heard(bool(result.is_error), content.text, steps))

    anyio.run(talk)
    return heard


def mcp_server(folder: Path) -> subprocess.Popen[str]:
    """`kace mcp` with pipes in place of a client."""
    env = {**environment(folder), "PYTHONPATH": os.pathsep.join(map(str, sys.path))}
    command = [sys.executable, "-m", "kace", "mcp", "--model", "scripted/steady"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def test_the_tools_say_what_they_take_and_that_they_only_read(tmp_path: Path):
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "kace", "mcp", "--model", "scripted/steady", "--tree", "starter"],
        env={"PYTHONPATH": os.pathsep.join(map(str, sys.path)), "KACE_CACHE_DIR": str(tmp_path / "cache")},
    )

    async def listed() -> Any:
        async with Client(stdio_client(server)) as client:
            return (await client.list_tools()).tools

    tools = {tool.name: tool for tool in anyio.run(listed)}
    assert list(tools) == ["solve", "search_cards"]
    assert all(tool.annotations.read_only_hint and len(tool.description) > 60 for tool in tools.values())
    assert [tool.input_schema.get("required", []) for tool in tools.values()] == [["problem"], ["query"]]


def test_a_problem_is_solved_with_the_tree_under_caps_of_its_own_and_its_steps_are_told(tmp_path: Path):
    solve, dice = ("solve", {"problem": SPEED}), "scripted/dice"
    first, again, other = asked(
        tmp_path,
        solve,
        solve,
        ("solve", {"problem": SPEED, "seed": 7}),
        model=dice,
        tree="starter",
        max_calls=10,
        es_policy="skip",
    )
    found = first.found
    assert found["working"].endswith(f"\\boxed{{{found['answer']}}}")
    assert found["cards"][0] == "EXACT_AVERAGE_SPEED_ROUND_TRIP" and found["calls"]["solver"] == found["attempts"]
    assert "MS attempt 3" in first.progress[2]
    assert {**again.found, "seconds": 0} == {**found, "seconds": 0}
    assert other.found["seed"] == 7
    (refused,) = asked(tmp_path, ("solve", {"problem": "1 + 1?"}), model=dice, max_calls=3)
    assert refused.failed and refused.text.endswith("the cap of 3 calls is reached")


def test_cards_are_found_by_the_score_that_shows_them_and_nothing_is_written(tmp_path: Path):
    tree = small_tree()
    store = TreeStore.create(tmp_path / "mine", tree.domains, tree)
    ladder = card("MICRO_LADDER_ON_A_WALL", payload="Useful when:\n- ladder leans on wall\n\nUse Pythagoras.")
    old = Provenance(source="by hand", promotion_status=Status.DEPRECATED)
    gone = card("MICRO_OLD_LADDER_RULE", payload="Useful when:\n- ladder leans on wall\n\nGuess.", provenance=old)
    for each in (ladder, gone):
        store.apply(Add(each), author="test")

    def everything() -> dict[Path, tuple[int, bytes]]:
        files = (path for path in (tmp_path / "mine").rglob("*") if path.is_file())
        return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    before = everything()
    query = {"query": "A ladder leans on a wall. How high does it reach?"}
    solve = ("solve", {"problem": "Six times seven?"})
    own, solved = asked(tmp_path, ("search_cards", query), solve, tree=str(tmp_path / "mine"))
    assert own.found["cards"][0]["card_id"] == "MICRO_LADDER_ON_A_WALL"
    assert own.found["cards"][0]["payload"] == ladder.payload
    assert "MICRO_OLD_LADDER_RULE" not in json.dumps(own.found["cards"])
    assert solved.found and everything() == before
    (shipped,) = asked(tmp_path, ("search_cards", {"query": SPEED, "limit": 1}), tree="starter")
    (best,) = shipped.found["cards"]
    assert "AVERAGE_SPEED" in best["card_id"]
    assert best["relevance"] > shipped.found["threshold"] and shipped.found["relevant"] > 1


def test_bad_input_is_refused_by_name(tmp_path: Path):
    bad: dict[str, Call] = {
        "problem\n  Field required": ("solve", {}),
        "problem\n  Input should be a valid string": ("solve", {"problem": ["1"]}),
        "problem\n  String should match pattern": ("solve", {"problem": " \n"}),
        "seed\n  Input should be less than": ("solve", {"problem": "1", "seed": 10**30}),
        "limit\n  Input should be less than or equal to 20": ("search_cards", {"query": "x", "limit": 21}),
    }
    heard = asked(tmp_path, *bad.values(), tree="starter")
    for wanted, each in zip(bad, heard, strict=True):
        assert each.failed and wanted in each.text, each.text


START = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": START}


def test_half_a_character_leaves_the_server_answering(tmp_path: Path):
    """JSON may hold half a character, which no client library sends."""
    half, whole = ({"name": "solve", "arguments": {"problem": f"6 times 7? {end}"}} for end in ("\ud800", ""))
    messages = [
        HELLO,
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": half},
        {"id": 3, "method": "tools/call", "params": whole},
    ]
    with mcp_server(tmp_path) as server:
        assert server.stdin and server.stdout and server.stderr
        for message in messages:
            print(json.dumps({"jsonrpc": "2.0", **message}), file=server.stdin, flush=True)
        replies = [json.loads(server.stdout.readline()) for _ in range(2)]
        server.stdin.close()
        assert "Traceback" not in server.stderr.read()
    assert [reply["id"] for reply in replies] == [1, 3]
    assert "42" in replies[1]["result"]["content"][0]["text"]


def test_a_model_that_cannot_be_opened_is_one_line_and_no_key_reaches_the_client(tmp_path: Path):
    done = run_kace(tmp_path, "mcp", "--tree", "starter")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "kace models pull qwen2.5-coder-0.5b" in done.stderr
    echo = Answer(status=401, body=json.dumps({"error": {"message": f"bad key {CANARY}"}}).encode())
    with ChatServer([echo]) as server:
        key = {"OPENAI_API_KEY": CANARY}
        (told,) = asked(tmp_path, ("solve", {"problem": "1?"}), env=key, model="openai/m", base_url=server.url)
    assert told.failed and CANARY not in told.text and "401" in told.text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_while_its_client_is_still_there(tmp_path: Path, number: signal.Signals):
    with mcp_server(tmp_path) as server:
        assert server.stdin and server.stdout and server.stderr
        print(json.dumps(HELLO), file=server.stdin, flush=True)
        assert json.loads(server.stdout.readline())["result"]["serverInfo"]["name"] == "kace"
        server.send_signal(number)
        assert server.wait() == 130 and server.stdout.read() == ""
        assert server.stderr.read() == "kace: interrupted\n"


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(verb, "find_spec", lambda name: None)
    with pytest.raises(UsageError) as caught:
        app(["mcp", "--model", "scripted/steady"], standalone_mode=False)
    assert caught.value.fix == "pip install 'kace[mcp]'"
