"""The endpoint under load: what it adds to the model's own time, and what it leaves behind.

    python benchmarks/bench_serve.py [--quick] [--clients 200] [--seconds 60] [--latency 1.0]

A scripted model takes `latency` seconds a call and throws dice, so that problems leave at every exit. Clients (half of
them streaming) ask one problem after the other over real sockets; one request in twenty hangs up half-way. The overhead
of a request is its wall time less the model's: the tiers it climbed, times the latency.

Clients and server share the machine. Clients start spread over one latency and pause a little between requests, as
independent clients do; the burst at the end has all of them ask in the same instant.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from kace.config import load_config
from kace.report.server import Bind, listening
from kace.serve.app import ServerOptions, run, spare_collector

TIERS = {"es_unanimous": 1, "ms_majority": 2}
"""Every other exit is after the third."""
LEAVES = 0.05
PAUSE = 0.2
TARGET_MS = 20.0


@dataclass(slots=True)
class Heard:
    """What the clients saw."""

    overhead: list[float] = field(default_factory=list)
    exits: Counter[str] = field(default_factory=Counter)
    left: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Count:
    """What the server holds."""

    tasks: int
    descriptors: int
    megabytes: float
    seconds: float
    """Of processor time."""


class Server:
    """The endpoint in a process of its own, which counts itself when asked."""

    def __init__(self, latency: float) -> None:
        command = [sys.executable, __file__, "--serve", str(latency)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self._line())

    def count(self) -> Count:
        """What it holds now."""
        assert self._process.stdin is not None
        self._process.stdin.write("count\n")
        self._process.stdin.flush()
        return Count(**json.loads(self._line()))

    def stop(self) -> int:
        """End it, and say how it ended."""
        self._process.terminate()
        return self._process.wait(30)

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


def serve_here(latency: float) -> None:
    config = load_config({"model": f"scripted/dice?sides=6&latency={latency}", "max_connections": 2000})

    def answer(loop: asyncio.AbstractEventLoop) -> None:
        for _ in sys.stdin:
            asyncio.run_coroutine_threadsafe(tell(), loop).result()

    async def tell() -> None:
        held = Count(
            tasks=len(asyncio.all_tasks()) - 1,
            descriptors=len(list(Path("/proc/self/fd").iterdir())),
            megabytes=round(int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6, 1),
            seconds=time.process_time(),
        )
        print(json.dumps({name: getattr(held, name) for name in Count.__slots__}), flush=True)

    def ready(url: str) -> None:
        threading.Thread(target=answer, args=(asyncio.get_running_loop(),), daemon=True).start()
        print(url.rpartition(":")[2], flush=True)

    spare_collector()  # as the verb does
    with listening(Bind()) as port:
        asyncio.run(run(ServerOptions(config), port, ready=ready))


class Client:
    """One client with one connection, which it opens again after it has hung up."""

    def __init__(self, port: int, latency: float, *, stream: bool, seed: int) -> None:
        self._port = port
        self._latency = latency
        self._stream = stream
        self._chance = random.Random(seed)
        self._asked = 0
        self._seed = seed
        self._pipes: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def work(self, until: float, heard: Heard) -> None:
        """Ask until it is time to stop."""
        await asyncio.sleep(self._chance.random() * self._latency)
        while time.monotonic() < until:
            await self.ask(heard, leaves=self._chance.random() < LEAVES)
            await asyncio.sleep(self._chance.random() * PAUSE)
        await self.close()

    async def ask(self, heard: Heard, *, leaves: bool = False) -> None:
        """One request."""
        reader, writer = await self._connection()
        began = time.perf_counter()
        writer.write(self._request())
        if leaves:
            await asyncio.sleep(self._chance.random() * self._latency)
            await self.close()
            heard.left += 1
            return
        try:
            said = await self._reply(reader)
            took = time.perf_counter() - began
            path = json.loads(said)["kace"]["exit_path"]
        except (OSError, ValueError, KeyError, EOFError):
            heard.failed += 1
            await self.close()
            return
        heard.exits[path] += 1
        heard.overhead.append(took - TIERS.get(path, 3) * self._latency)

    async def open(self) -> None:
        """Connect ahead of a request."""
        await self._connection()

    async def close(self) -> None:
        """Hang up."""
        if self._pipes is not None:
            _, writer = self._pipes
            self._pipes = None
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._pipes is None:
            self._pipes = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 20)
        return self._pipes

    def _request(self) -> bytes:
        self._asked += 1
        text = f"Client {self._seed} asks problem {self._asked}."
        body = json.dumps(
            {"model": "kace", "stream": self._stream, "messages": [{"role": "user", "content": text}]}
        ).encode()
        lines = ("POST /v1/chat/completions HTTP/1.1", f"Host: 127.0.0.1:{self._port}", f"Content-Length: {len(body)}")
        return "\r\n".join([*lines, "", ""]).encode() + body

    async def _reply(self, reader: asyncio.StreamReader) -> bytes:
        """The JSON that carries `kace`: the whole reply, or the last event but one of a stream."""
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise ValueError(head)
        if not self._stream:
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            return await reader.readexactly(length)
        said = b""
        while size := int(await reader.readuntil(b"\r\n"), 16):
            said += (await reader.readexactly(size + 2))[:-2]
        await reader.readexactly(2)
        events = said.strip().split(b"\n\n")
        return events[-2].removeprefix(b"data: ")


def quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


async def load(port: int, latency: float, clients: int, seconds: float) -> Heard:
    heard = Heard()
    until = time.monotonic() + seconds
    async with asyncio.TaskGroup() as group:
        for number in range(clients):
            client = Client(port, latency, stream=number % 2 == 1, seed=number)
            group.create_task(client.work(until, heard))
    return heard


async def burst(port: int, latency: float, clients: int) -> Heard:
    heard = Heard()
    everyone = [Client(port, latency, stream=number % 2 == 1, seed=10_000 + number) for number in range(clients)]
    for client in everyone:
        await client.open()
    async with asyncio.TaskGroup() as group:
        for client in everyone:
            group.create_task(client.ask(heard))
    for client in everyone:
        await client.close()
    return heard


def report(name: str, heard: Heard) -> None:
    p50, p99 = (quantile(heard.overhead, share) * 1e3 for share in (0.5, 0.99))
    worst = max(heard.overhead, default=float("nan")) * 1e3
    exits = ", ".join(f"{path} {count}" for path, count in heard.exits.most_common())
    print(
        f"{name:10} n={len(heard.overhead):<6} overhead p50 {p50:7.1f} ms   p99 {p99:7.1f} ms   worst {worst:7.1f} ms"
    )
    print(f"{'':10} {exits}; {heard.left} hung up, {heard.failed} failed")


def settled(server: Server, before: Count) -> Count:
    """The server's count once its clients have gone, given some seconds to notice."""
    deadline = time.monotonic() + 10
    while True:
        held = server.count()
        if (held.tasks <= before.tasks and held.descriptors <= before.descriptors) or time.monotonic() > deadline:
            return held
        time.sleep(0.2)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--serve", type=float, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        serve_here(options.serve)
        return
    seconds = 8.0 if options.quick else options.seconds
    server = Server(options.latency)
    asyncio.run(load(server.port, 0.01 * options.latency, 10, 1.0))  # everything that is imported or opened once
    before = settled(server, server.count())
    heard = asyncio.run(load(server.port, options.latency, options.clients, seconds))
    used = server.count().seconds - before.seconds
    after = settled(server, before)
    report("steady", heard)
    requests = len(heard.overhead) + heard.left
    print(f"{'':10} {requests / seconds:.0f} requests/s, {used / max(1, requests) * 1e3:.2f} ms of processor a request")
    report("burst", asyncio.run(burst(server.port, options.latency, options.clients)))
    last = settled(server, before)
    tasks = max(0, after.tasks - before.tasks, last.tasks - before.tasks)
    descriptors = max(0, after.descriptors - before.descriptors, last.descriptors - before.descriptors)
    held = f"held when idle: {before.tasks} and {before.descriptors}"
    print(f"leaked     {tasks} tasks, {descriptors} descriptors ({held})")
    print(f"memory     {before.megabytes} MB before, {after.megabytes} MB after")
    ended = server.stop()
    met = quantile(heard.overhead, 0.99) * 1e3 < TARGET_MS
    loaded = f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    print(f"target     p99 under {TARGET_MS:g} ms: {'met' if met else 'NOT MET'} ({loaded})")
    if tasks or descriptors or heard.failed or ended != 0:
        sys.exit("something leaked, failed or did not end in order")


if __name__ == "__main__":
    main()
