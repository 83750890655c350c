"""`kace mcp` through the official client, over stdio: tools that answer in JSON or in one line, and write nothing."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kace.cards.card import Provenance, Status
from kace.cards.store import TreeStore
from kace.cards.tree import Add
from kace.cli import app
from kace.cli import serve as verb
from kace.errors import UsageError
from tests.card_samples import card, small_tree
from tests.command import environment, run_kace
from tests.models.chat_server import Answer, ChatServer
from tests.recorded import recorded

anyio = pytest.importorskip("anyio", reason="the extra `mcp` is not installed")
pytest.importorskip("mcp", reason="the extra `mcp` is not installed")
from mcp.client.client import Client  # noqa: E402
from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SPEED = "A bus goes 30 km/h out and 70 km/h back on the same road. What is its average speed?"
CANARY = "sk-canary-0123456789abcdef"
Call = tuple[str, Mapping[str, object]] | Callable[[], object]  # a tool with its arguments, or something done between


class Heard(NamedTuple):
    """What a client heard of one call."""

    failed: bool
    text: str
    progress: Sequence[str]

    @property
    def found(self) -> Any:
        assert not self.failed, self.text
        return json.loads(self.text)


def asked(folder: Path, arguments: Sequence[str], *calls: Call, **env: str) -> list[Heard]:
    """Start `kace mcp` in a folder and call its tools, one after the other."""
    heard: list[Heard] = []
    path = os.pathsep.join(map(str, sys.path))
    own = {"PYTHONPATH": path, "KACE_CACHE_DIR": str(folder / "cache"), **env}
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "kace", "mcp", *arguments], env=own, cwd=str(folder)
    )

    async def talk() -> None:
        async with Client(stdio_client(server)) as client:
            for call in calls:
                if callable(call):
                    call()
                    continue
                steps: list[str] = []

                async def step(progress: float, total: float | None, message: str | None, steps=steps) -> None:
                    steps.append(message or "")

                result = await client.call_tool(call[0], dict(call[1]), progress_callback=step)
                (content,) = result.content
                assert result.is_error or result.structured_content == json.loads(content.text)
                heard.append(Heard(bool(result.is_error), content.text, steps))

    anyio.run(talk)
    return heard


def test_the_tools_say_what_they_take_and_that_they_only_read(tmp_path: Path):
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "kace", "mcp", "--model", "scripted/steady"],
        env={"PYTHONPATH": os.pathsep.join(map(str, sys.path)), "KACE_CACHE_DIR": str(tmp_path / "cache")},
    )

    async def listed() -> Any:
        async with Client(stdio_client(server)) as client:
            return (await client.list_tools()).tools

    tools = {tool.name: tool for tool in anyio.run(listed)}
    assert list(tools) == ["solve", "search_cards", "explain_run"]
    assert all(tool.annotations.read_only_hint and len(tool.description) > 60 for tool in tools.values())
    assert [tool.input_schema.get("required", []) for tool in tools.values()] == [["problem"], ["query"], []]


def test_a_problem_is_solved_with_the_tree_under_caps_of_its_own_and_its_steps_are_told(tmp_path: Path):
    settings = ["--model", "scripted/dice", "--tree", "starter", "--max-calls", "10"]
    first, again, other = asked(
        tmp_path,
        [*settings, "--set", "es_policy=skip"],
        ("solve", {"problem": SPEED}),
        ("solve", {"problem": SPEED}),
        ("solve", {"problem": SPEED, "seed": 7}),
    )
    found = first.found
    assert found["working"].endswith(f"\\boxed{{{found['answer']}}}")
    assert found["cards"][0] == "EXACT_AVERAGE_SPEED_ROUND_TRIP" and found["calls"]["solver"] == found["attempts"]
    assert first.progress[0] == "MS reads 1 card of rates_and_prices." and "MS 3/3" in first.progress[3]
    assert {**again.found, "seconds": 0} == {**found, "seconds": 0}
    assert other.found["seed"] == 7
    (refused,) = asked(tmp_path, ["--model", "scripted/dice", "--max-calls", "3"], ("solve", {"problem": "1 + 1?"}))
    assert refused.failed and refused.text == "the cap of 3 calls is reached"


def test_cards_are_found_by_the_score_that_shows_them_in_the_tree_as_it_is_now(tmp_path: Path):
    tree = small_tree()
    store = TreeStore.create(tmp_path / "mine", tree.domains, tree)
    ladder = card("MICRO_LADDER_ON_A_WALL", payload="Useful when:\n- ladder leans on wall\n\nUse Pythagoras.")
    old = Provenance(source="by hand", promotion_status=Status.DEPRECATED)
    gone = card("MICRO_OLD_LADDER_RULE", payload="Useful when:\n- ladder leans on wall\n\nGuess.", provenance=old)
    query = {"query": "A ladder leans on a wall. How high does it reach?", "tree": "mine"}
    before, after, shipped = asked(
        tmp_path,
        ["mine", "--model", "scripted/steady", "--tree", "starter"],
        ("search_cards", query),
        lambda: [store.apply(Add(each), author="test") for each in (ladder, gone)],
        ("search_cards", query),
        ("search_cards", {"query": SPEED, "tree": "starter", "limit": 1}),
    )
    assert "ladder" not in json.dumps(before.found["cards"]).lower()
    assert after.found["cards"][0]["card_id"] == "MICRO_LADDER_ON_A_WALL"
    assert "MICRO_OLD_LADDER_RULE" not in json.dumps(after.found["cards"])
    assert after.found["cards"][0]["payload"] == ladder.payload
    (best,) = shipped.found["cards"]
    assert "AVERAGE_SPEED" in best["card_id"]
    assert best["relevance"] > shipped.found["threshold"] and shipped.found["relevant"] > 1


def test_a_recorded_run_is_explained_by_its_solves_and_its_climbs(tmp_path: Path):
    group, one, named = asked(
        tmp_path,
        [str(recorded("runs") / "runs"), "--model", "scripted/steady"],
        ("explain_run", {"run": "kace", "limit": 2}),
        ("explain_run", {"run": "kace", "problem": "starter-test-1-00174"}),
        ("explain_run", {"run": "kace", "words": "card=EXACT_GRID_POLYGON_AREA", "show": "all"}),
    )
    found = group.found
    assert found["solves"] == 141 and 0.59 < found["accuracy"] < 0.6 and found["interval"][0] < found["accuracy"]
    assert len(found["listed"]) == 2 < found["in_group"]
    assert all(each["correct"] is False for each in found["listed"])
    climb = one.found
    assert climb["expected"] == "40" and climb["answer"] == "12" and not climb["correct"]
    assert [recall["cards"] for recall in climb["recalls"]] == [["EXACT_GRID_POLYGON_AREA"]]
    assert len(climb["attempts"]) == sum(vote["attempts"] for vote in climb["votes"]) == 5
    assert {card for each in named.found["listed"] for card in each["cards"]} == {"EXACT_GRID_POLYGON_AREA"}


def test_a_climb_has_what_attempts_wrote_and_no_tool_writes_to_what_it_reads(tmp_path: Path):
    (tmp_path / "p.jsonl").write_text('{"problem": "Six times seven?", "answer": "42", "id": "p-1"}\n')
    done = run_kace(tmp_path, "solve", "--file", "p.jsonl", "--model", "scripted/steady", "--out", "shelf/run")
    assert done.returncode == 0, done.stderr
    TreeStore.create(tmp_path / "shelf" / "tree", small_tree().domains, small_tree())

    def everything() -> dict[Path, tuple[int, bytes]]:
        files = (path for path in (tmp_path / "shelf").rglob("*") if path.is_file())
        return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    manifest = json.loads((tmp_path / "shelf" / "run" / "run.json").read_text())
    manifest["config"]["model"] = "half a letter \ud800"
    (tmp_path / "shelf" / "run" / "run.json").write_text(json.dumps(manifest))
    before = everything()
    whole, climb, _, _ = asked(
        tmp_path,
        ["shelf", "--model", "scripted/steady"],
        ("explain_run", {"show": "all"}),
        ("explain_run", {"problem": "p-1"}),
        ("search_cards", {"query": "sum of squares"}),
        ("solve", {"problem": "Six times seven?"}),
    )
    assert whole.found["model"] == "half a letter ?" and whole.found["in_group"] == 1
    assert climb.found["attempts"][0]["ends"] == "Every step agrees. \\boxed{42}"
    assert climb.found["text"] == "Six times seven?" and climb.found["correct"]
    assert everything() == before


def test_bad_input_is_one_line_and_nothing_outside_what_was_opened_is_read(tmp_path: Path):
    (tmp_path / "p.jsonl").write_text('{"problem": "Six times seven?", "answer": "42"}\n')
    for run in ("open/one", "open/two", "closed"):
        assert not run_kace(tmp_path, "solve", "--file", "p.jsonl", "--model", "scripted/dice", "--out", run).returncode
    (tmp_path / "open" / "link").symlink_to(tmp_path / "closed")
    bad: dict[str, tuple[str, Mapping[str, object]]] = {
        "'problem': field required": ("solve", {}),
        "'problem': input should be a valid string": ("solve", {"problem": ["1"]}),
        "'problem': string should match pattern": ("solve", {"problem": " \n"}),
        "'seed': input should be less than": ("explain_run", {"run": "one", "problem": "1", "seed": 10**30}),
        "'tier': extra inputs are not permitted": ("solve", {"problem": "1", "tier": "HS"}),
        "there is no tool 'learn'. Fix: choose one of solve, search_cards, explain_run": ("learn", {}),
        "no tree is open here. Fix: start it as: kace mcp TREE": ("search_cards", {"query": "x"}),
        "'limit': input should be less than or equal to 50": ("explain_run", {"limit": 51}),
        "several are open, so name the run. Fix: choose one of one, two": ("explain_run", {}),
        "no run called '../closed' is open. Fix: choose one of one, two": ("explain_run", {"run": "../closed"}),
        "no run called 'link' is open. Fix: choose one of one, two": ("explain_run", {"run": "link"}),
        "'show': input should be 'wrong', 'right' or 'all'": ("explain_run", {"run": "one", "show": "odd"}),
        "no single solve of 'zz' with seed 0": ("explain_run", {"run": "one", "problem": "zz"}),
        "no single solve of '1' with seed 99": ("explain_run", {"run": "one", "problem": "1", "seed": 99}),
    }
    heard = asked(tmp_path, ["open", "--model", "scripted/steady"], *bad.values())
    for wanted, each in zip(bad, heard, strict=True):
        assert each.failed and each.text.startswith(wanted) and "\n" not in each.text, each.text


HALF = "\ud800"


@pytest.mark.parametrize(
    ("tool", "given", "text"),
    [
        ("solve", {"problem": f"6 times 7? {HALF}"}, "42"),
        ("explain_run", {"run": HALF}, "no run is open here"),
        ("search_cards", {"query": f"{HALF}{HALF} x"}, "no tree is open here"),
        (f"none{HALF}", {}, "there is no tool 'none?'"),
    ],
)
def test_half_a_character_is_answered_like_any_other(tmp_path: Path, tool: str, given: Mapping[str, str], text: str):
    """JSON may hold half a character, which no client library sends."""
    start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    messages = [
        {"id": 1, "method": "initialize", "params": start},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": tool, "arguments": given}},
    ]
    env = {**environment(tmp_path), "PYTHONPATH": os.pathsep.join(map(str, sys.path))}
    command = [sys.executable, "-m", "kace", "mcp", "--model", "scripted/steady"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as server:
        assert server.stdin and server.stdout
        for message in messages:
            print(json.dumps({"jsonrpc": "2.0", **message}), file=server.stdin, flush=True)
            if "id" in message:
                there = select.select([server.stdout], [], [], 120)[0]
                reply = json.loads(server.stdout.readline()) if there else {}
        server.stdin.close()
    assert reply.get("id") == 2, "it is answered"
    assert text in reply["result"]["content"][0]["text"]


def test_a_model_that_cannot_be_opened_leaves_the_other_tools_and_no_key_reaches_the_client(tmp_path: Path):
    missing, search = asked(
        tmp_path, ["--tree", "starter"], ("solve", {"problem": "1 + 1?"}), ("search_cards", {"query": SPEED})
    )
    assert missing.failed and "kace models pull qwen2.5-coder-0.5b" in missing.text and "\n" not in missing.text
    assert search.found["cards"]
    echo = Answer(status=401, body=json.dumps({"error": {"message": f"bad key {CANARY}"}}).encode())
    with ChatServer([echo]) as server:
        arguments = ["--model", "openai/m", "--base-url", server.url]
        (told,) = asked(tmp_path, arguments, ("solve", {"problem": "1 + 1?"}), OPENAI_API_KEY=CANARY)
    assert told.failed and CANARY not in told.text and "401" in told.text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_while_its_client_is_still_there(tmp_path: Path, number: signal.Signals):
    command = [sys.executable, "-m", "kace", "mcp", "--model", "scripted/steady"]
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    ask = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin and server.stdout and server.stderr
        server.stdin.write(json.dumps(ask) + "\n")
        server.stdin.flush()
        assert json.loads(server.stdout.readline())["result"]["serverInfo"]["name"] == "kace"
        server.send_signal(number)
        assert server.wait() == 130 and server.stdout.read() == ""
        assert server.stderr.read() == "kace: interrupted\n"


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(verb, "find_spec", lambda name: None)
    with pytest.raises(UsageError) as caught:
        app(["mcp", "--model", "scripted/steady"], standalone_mode=False)
    assert caught.value.fix == "pip install 'kace[mcp]'"
