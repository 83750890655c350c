"""OpenTelemetry spans: what they hold and hang under, that they arrive, and that nobody pays for them who has none."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import kace
from kace.config import span_exporters
from kace.errors import BudgetExceeded, UsageError
from kace.models.base import Failure, ModelError, Reply, Request
from kace.models.scripted import Scripted, dice
from tests.command import OURS, run_kace
from tests.learning.world import World, problems
from tests.serve.running import Running, Watched, until

BUS = "A bus goes 30 km/h out and 70 km/h back. Average speed?"
KEY = "sk-canary-0123456789abcdef"
MODEL = ("--model", "scripted/dice?sides=3")


@pytest.fixture(scope="module")
def exporter() -> Iterator[InMemorySpanExporter]:
    """The spans of this process, by a provider of the program around kace."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    yield exporter
    provider.shutdown()


@pytest.fixture
def memory(exporter: InMemorySpanExporter) -> InMemorySpanExporter:
    exporter.clear()
    return exporter


def named(memory: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in memory.get_finished_spans() if span.name.split(" ")[0] == name]


def only(memory: InMemorySpanExporter, name: str) -> ReadableSpan:
    (found,) = named(memory, name)
    return found


def test_a_solve_is_a_span_and_each_of_its_calls_a_child(memory: InMemorySpanExporter):
    model = Scripted(dice(3), name="die")
    solution = kace.solve(BUS, model, tree="starter", otel=True)
    solve, calls = only(memory, "solve"), named(memory, "chat")
    assert len(calls) == solution.real_calls == model.calls > 2
    assert solve.parent is None and solve.context is not None
    assert {call.parent.span_id for call in calls if call.parent} == {solve.context.span_id}
    assert {call.context.trace_id for call in calls if call.context} == {solve.context.trace_id}
    assert dict(solve.attributes or {}) == {
        "kace.problems": solution.problem,
        "kace.seed": 0,
        "kace.exit": solution.exit_name,
        "kace.tier": solution.attempts[-1].tier.value,
        "kace.attempts": len(solution.attempts),
        "kace.calls.cached": 0,
        "kace.cards.shown": solution.recalls[0].cards,
        "kace.cards.abstained": False,
        "kace.failed": False,
    }
    first = next(call for call in calls if (call.attributes or {}).get("kace.tier") == "MS")
    attempt = next(each for each in solution.attempts if each.tier.value == "MS")
    assert first.kind is SpanKind.CLIENT and first.name == "chat die"
    told = dict(first.attributes or {})
    assert isinstance(told.pop("gen_ai.request.seed"), int)
    assert told == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "die",
        "gen_ai.request.temperature": 0.6,
        "gen_ai.request.max_tokens": 12_000,
        "kace.role": "solver",
        "kace.problems": solution.problem,
        "kace.tier": "MS",
        "kace.attempt": 0,
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": attempt.input,
        "gen_ai.usage.output_tokens": attempt.output,
        "gen_ai.usage.cache_read.input_tokens": 0,
        "gen_ai.usage.cache_creation.input_tokens": 0,
    }


def test_neither_questions_nor_replies_nor_answers_are_in_spans(memory: InMemorySpanExporter):
    kace.solve("How much is a zebra?", Scripted(lambda asked: r"It grazes: \boxed{4711}"), otel=True)
    everything = "".join(span.to_json() for span in memory.get_finished_spans())
    assert "solve" in everything
    assert not [word for word in ("zebra", "grazes", "4711", "boxed") if word in everything]


@pytest.mark.parametrize(("answer", "correct"), [("42", True), ("41", False), (None, None)])
def test_whether_it_is_right_is_told_where_it_is_known(memory: InMemorySpanExporter, answer: str, correct: bool):
    kace.solve(kace.Problem("6 times 7?", answer), "scripted/steady", otel=True, cache=False)
    assert (only(memory, "solve").attributes or {}).get("kace.correct") is correct


def test_a_call_that_is_read_from_disk_is_no_span(memory: InMemorySpanExporter, tmp_path: Path):
    for _ in range(2):
        kace.solve("6 times 7?", "scripted/steady", otel=True, cache_dir=tmp_path)
    assert len(named(memory, "chat")) == 2
    assert [(span.attributes or {})["kace.calls.cached"] for span in named(memory, "solve")] == [0, 2]


def test_many_solves_side_by_side_keep_their_calls_apart(memory: InMemorySpanExporter):
    kace.solve_many([f"{n}?" for n in range(30)], Scripted(dice(4), latency=0.01), otel=True)
    solves = {span.context.span_id: span.attributes for span in named(memory, "solve") if span.context}
    assert len(solves) == 30
    for call in named(memory, "chat"):
        assert (
            call.parent
            and (solves[call.parent.span_id] or {})["kace.problems"] == (call.attributes or {})["kace.problems"]
        )


def test_a_solve_hangs_under_the_span_of_the_program_around_it(memory: InMemorySpanExporter):
    async def cell() -> None:  # a notebook runs a loop already
        kace.solve("6 times 7?", Scripted(dice(1)), otel=True)

    for work in (lambda: kace.solve("6 times 7?", Scripted(dice(1)), otel=True), lambda: asyncio.run(cell())):
        memory.clear()
        with trace.get_tracer("notebook").start_as_current_span("cell") as outer:
            work()
        parent = only(memory, "solve").parent
        assert parent and parent.span_id == outer.get_span_context().span_id


def test_compared_systems_have_spans_too(memory: InMemorySpanExporter, tmp_path: Path):
    asked = [kace.Problem(f"{n}?", "3") for n in range(3)]
    kace.evaluate("best-of-3", asked, Scripted(dice(3)), seeds=2, out=tmp_path / "run", otel=True)
    solves = [span.attributes or {} for span in named(memory, "solve")]
    assert len(solves) == 6 and len(named(memory, "chat")) == 18
    assert all(each["kace.tier"] == "FLAT" and "kace.exit" not in each and "kace.correct" in each for each in solves)


def test_a_learner_has_spans_of_its_solves_and_of_what_its_teacher_says(memory: InMemorySpanExporter, tmp_path: Path):
    world = World()
    settings = {"epochs": 1, "profile": "paper", "impact_runs": 1, "otel": True}
    kace.learn(problems(2), tmp_path / "tree", world.teacher(), world.solver(), **settings)
    roles = Counter((span.attributes or {})["kace.role"] for span in named(memory, "chat"))
    assert roles["teacher"] and roles["solver"] and named(memory, "solve")
    teacher = next(span for span in named(memory, "chat") if (span.attributes or {})["kace.role"] == "teacher")
    assert teacher.parent is None and teacher.name == "chat world-teacher"


class Broken(Scripted):
    """A model whose provider repeats the key it was sent."""

    async def complete(self, request: Request) -> Reply:
        raise ModelError(Failure.PROVIDER_ERROR, f"no credit left for {KEY}\nand other words")


def test_a_call_that_fails_says_why_and_shows_no_key(memory: InMemorySpanExporter):
    solution = kace.solve("6 times 7?", Broken(dice(1)), otel=True)
    assert solution.failed
    for call in named(memory, "chat"):
        assert call.status.status_code is StatusCode.ERROR and not call.events
        assert (call.attributes or {})["error.type"] == "provider_error"
        assert call.status.description == "no credit left for [redacted] and other words"
    solve = only(memory, "solve")
    assert solve.status.status_code is StatusCode.UNSET and (solve.attributes or {})["kace.failed"] is True
    assert KEY not in "".join(span.to_json() for span in memory.get_finished_spans())


def test_a_solve_that_a_cap_ends_is_an_error(memory: InMemorySpanExporter):
    with pytest.raises(BudgetExceeded):
        kace.solve("6 times 7?", Scripted(dice(10**9)), otel=True, max_calls=3)
    solve = only(memory, "solve")
    assert solve.status.status_code is StatusCode.ERROR
    assert (solve.attributes or {})["error.type"] == "BudgetExceeded"
    assert "the cap of 3 calls is reached" in str(solve.status.description)


def test_a_served_solve_is_a_part_of_what_its_client_traces(memory: InMemorySpanExporter):
    body = json.dumps({"model": "kace", "messages": [{"role": "user", "content": BUS}]}).encode()
    with Running(Watched(dice(3)), otel=True) as server:
        for headers in ({}, {"traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01"}, {"traceparent": "nonsense"}):
            request = urllib.request.Request(f"{server.base_url}/chat/completions", data=body, headers=headers)
            urllib.request.urlopen(request).close()
    alone, traced, odd = named(memory, "solve")
    assert traced.parent and (traced.parent.trace_id, traced.parent.span_id) == (int("ab" * 16, 16), int("cd" * 8, 16))
    assert alone.parent is None and odd.parent is None
    assert len(named(memory, "chat")) == 3 * int((alone.attributes or {})["kace.attempts"])


def test_a_request_that_is_given_up_ends_its_spans(memory: InMemorySpanExporter):
    model = Watched(latency=60.0)
    with Running(model, otel=True) as server:
        with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2]))) as leaving:
            body = b'{"model": "kace", "messages": [{"role": "user", "content": "?"}]}'
            leaving.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(body)
            )
            leaving.sendall(body)
            assert until(lambda: model.under_way == 2)
        assert until(lambda: len(memory.get_finished_spans()) == 3)
    assert all((span.attributes or {}).get("kace.cancelled") is True for span in memory.get_finished_spans())
    assert all(span.status.status_code is StatusCode.UNSET for span in memory.get_finished_spans())


def test_where_spans_go_is_what_the_standard_variables_say():
    assert span_exporters({}) == ["otlp_proto_http"]
    assert span_exporters({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}) == ["otlp_proto_grpc"]
    assert span_exporters({"OTEL_TRACES_EXPORTER": "none"}) == []
    both = {"OTEL_TRACES_EXPORTER": "console, otlp", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}
    assert span_exporters({**both, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}) == ["console", "otlp_proto_http"]


def test_without_the_extra_the_fix_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(UsageError, match=r"kace\[otel\]"):
        kace.solve("6 times 7?", "scripted/steady", otel=True)


def test_an_exporter_that_is_not_there_is_one_line(tmp_path: Path):
    done = run_kace(tmp_path, "solve", "1?", *MODEL, KACE_OTEL="true", OTEL_TRACES_EXPORTER="pigeons")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and "pigeons" in done.stderr


def test_off_it_imports_nothing_of_opentelemetry():
    code = "import sys, kace\nkace.solve('6 times 7?', 'scripted/steady', cache=False)\n"
    code += "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


class Collector:
    """An OTLP collector on a real socket."""

    def __init__(self, status: int = 200) -> None:
        self.requests = 0
        self.spans: list[tuple[str, dict[str, str], str, str]] = []  # name, texts among its attributes, id, parent
        self.service = ""
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                collector.requests += 1
                told = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"])))
                for resource in told.resource_spans:
                    names = {each.key: each.value.string_value for each in resource.resource.attributes}
                    collector.service = names["service.name"]
                    for span in (span for scope in resource.scope_spans for span in scope.spans):
                        texts = {each.key: each.value.string_value for each in span.attributes}
                        collector.spans.append((span.name, texts, span.span_id.hex(), span.parent_span_id.hex()))
                self.send_response(status)
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Collector:
        threading.Thread(target=self._server.serve_forever).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def test_every_span_of_a_run_arrives_before_it_ends(tmp_path: Path):
    rows = "".join(json.dumps({"problem": f"What is {n} + 1?", "answer": "1"}) + "\n" for n in range(150))
    (tmp_path / "p.jsonl").write_text(rows)
    arguments = ("eval", "--data", "p.jsonl", "--system", "tiered", "--seeds", "1", *MODEL, "--out", "run")
    with Collector() as collector:
        where = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_SERVICE_NAME": "night-shift"}
        done = run_kace(tmp_path, *arguments, "--set", "otel=true", **where, OTEL_BSP_MAX_QUEUE_SIZE="100000")
        assert done.returncode == 0, done.stderr
    made = kace.load_run(tmp_path / "run").rows()
    solves = {span_id: texts for name, texts, span_id, parent in collector.spans if name == "solve" and not parent}
    calls = [parent for name, _, _, parent in collector.spans if name.startswith("chat ")]
    assert len(solves) == 150 and len(calls) == sum(int(str(row["real_calls"])) for row in made)
    assert set(calls) == set(solves) and collector.service == "night-shift"
    assert {texts["kace.problems"] for texts in solves.values()} == {row["problem"] for row in made}


def test_an_interrupted_run_sends_what_it_did(tmp_path: Path):
    rows = "".join(json.dumps({"problem": f"What is {n} + 1?"}) + "\n" for n in range(400))
    (tmp_path / "p.jsonl").write_text(rows)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}  # noqa: TID251
    words = ("solve", "--file", "p.jsonl", "--model", "scripted/dice?sides=9&latency=0.1", "--set", "otel=true")
    with Collector() as collector:
        env = {**kept, "KACE_CACHE_DIR": str(tmp_path), "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        with subprocess.Popen(
            [sys.executable, "-m", "kace", *words, "--out", "run", "--set", "max_connections=8"],
            cwd=tmp_path,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=600)
            assert process.returncode == 130 and len(errors.splitlines()) == 1, errors
    done = {row["problem"] for row in kace.load_run(tmp_path / "run").rows()}
    assert done and done <= {texts.get("kace.problems") for name, texts, _, _ in collector.spans if name == "solve"}


@pytest.mark.parametrize("silent", [False, True])
def test_a_collector_that_is_away_neither_fails_nor_holds_up_a_run(tmp_path: Path, silent: bool):
    with socket.create_server(("127.0.0.1", 0)) as listener:  # takes connections, and never says a word
        port = listener.getsockname()[1]
        if not silent:
            listener.close()  # nobody is there
        where = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
        (tmp_path / "p.jsonl").write_text("".join(f'{{"problem": "{n}?"}}\n' for n in range(300)))
        words = ("solve", "--file", "p.jsonl", *MODEL, "--json")
        done = run_kace(tmp_path, *words, "--set", "otel=true", "--out", "with", **where)
    plain = run_kace(tmp_path, *words, "--out", "without")
    assert done.returncode == plain.returncode == 0
    assert len(done.stdout.splitlines()) == len(plain.stdout.splitlines()) == 300
    assert done.stderr.count("spans may be missing, and all else goes on") == 1 and "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == len(plain.stderr.splitlines()) + 1


def test_at_the_end_a_collector_that_fails_is_tried_once(tmp_path: Path):
    with Collector(status=503) as collector:
        where = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "3600000"}
        done = run_kace(tmp_path, "solve", "6 times 7?", *MODEL, "--set", "otel=true", **where)
    assert (done.returncode, collector.requests) == (0, 1)
    assert done.stderr.count("spans may be missing") == 1 and "Traceback" not in done.stderr
