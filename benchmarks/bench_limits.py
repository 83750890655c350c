"""The client and the limiter against a real server on a socket.

    python benchmarks/bench_limits.py [--quick]

1. A provider that admits 20 calls a second: how much of that is used, and how many calls are wasted on 429s.
2. A provider without limits: wall time over the ideal, and processor time per call, at 100 and 1,000 connections.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from kace.models.base import AttemptKey, Request, Sampling, chat
from kace.models.http import OpenAIModel
from kace.models.limits import AdaptiveLimiter, Limited, RetryPolicy
from tests.models.chat_server import Answer, ChatServer, Seen, error, says

REQUEST = Request(chat("s" * 400, "u" * 400), Sampling(0.6, 100, 1), AttemptKey("p", 0, "ES", 0))
RATE = 20


class TokenBucket:
    """Admits `RATE` calls a second and `burst` at once."""

    def __init__(self, burst: int, reply_seconds: float, retry_after: float | None) -> None:
        self.burst = burst
        self.admitted = self.refused = 0
        self._tokens = float(burst)
        self._filled = time.monotonic()
        self._reply = replace(says("4"), delay=reply_seconds)
        headers = {} if retry_after is None else {"retry-after": str(retry_after)}
        self._refusal = error(429, "slow down", headers=headers)

    def __call__(self, seen: Seen) -> Answer:
        """Spend a token on a request, or refuse it."""
        self._tokens = min(self.burst, self._tokens + (seen.at - self._filled) * RATE)
        self._filled = seen.at
        if self._tokens < 1:
            self.refused += 1
            return self._refusal
        self._tokens -= 1
        self.admitted += 1
        return self._reply


def opened(url: str, limiter: AdaptiveLimiter) -> Limited:
    model = OpenAIModel("m", base_url=url, api_key=None, timeout=60.0, name="openai/m")
    return Limited(model, limiter, RetryPolicy(deadline=600.0))


async def drive(url: str, seconds: float) -> None:
    model = opened(url, AdaptiveLimiter())

    async def worker() -> None:
        while True:
            await model.complete(REQUEST)

    tasks = [asyncio.create_task(worker()) for _ in range(200)]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    await model.aclose()


def rate_limited(seconds: float) -> None:
    print(f"A limit of {RATE} calls/s, 200 workers, {seconds:.0f} s from a cold start")
    print(f"{'burst':>6} {'reply':>6} {'Retry-After':>12} {'calls':>6} {'used':>7} {'wasted':>7}")
    for burst, reply, asked in ((20, 1.0, None), (20, 0.2, None), (5, 1.0, None), (20, 1.0, 0.05), (20, 1.0, 1.0)):
        bucket = TokenBucket(burst, reply, asked)
        with ChatServer(bucket) as server:
            asyncio.run(drive(server.url, seconds))
        calls = bucket.admitted + bucket.refused
        used, wasted = bucket.admitted / (RATE * seconds), bucket.refused / calls
        print(f"{burst:>6} {reply:>5}s {asked or 'none':>12} {calls:>6} {used:>7.1%} {wasted:>7.1%}")


@contextmanager
def server_process(reply_seconds: float) -> Iterator[str]:
    """A server in a process of its own, so that its work is not counted as the client's."""
    command = [sys.executable, __file__, "--serve", str(reply_seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin and child.stdout
        yield child.stdout.readline().strip()
        child.stdin.close()


def serve(reply_seconds: float) -> None:
    reply = replace(says("4" * 300), delay=reply_seconds)
    with ChatServer([reply]) as server:
        print(server.url, flush=True)
        sys.stdin.read()


async def saturate(url: str, connections: int, calls: int) -> float:
    model = opened(url, AdaptiveLimiter(connections, fixed=True))
    await model.complete(REQUEST)  # loads the SDK
    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(calls):
            group.create_task(model.complete(REQUEST))
    seconds = time.perf_counter() - started
    await model.aclose()
    return seconds


def unlimited(rounds: int) -> None:
    print(f"\nNo limit, {rounds} calls per connection")
    print(f"{'connections':>11} {'reply':>6} {'calls':>6} {'wall':>7} {'over ideal':>10} {'cpu per call':>13}")
    for connections, reply in ((100, 1.0), (1000, 5.0)):
        calls = connections * rounds
        with server_process(reply) as url:
            cpu = time.process_time()
            seconds = asyncio.run(saturate(url, connections, calls))
            cost = (time.process_time() - cpu) / calls
        ratio = seconds / (rounds * reply)
        print(f"{connections:>11} {reply:>5}s {calls:>6} {seconds:>6.2f}s {ratio:>9.2f}x {cost * 1e3:>10.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10 s a row instead of 30")
    parser.add_argument("--serve", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        return serve(options.serve)
    rate_limited(10.0 if options.quick else 30.0)
    unlimited(3 if options.quick else 5)


if __name__ == "__main__":
    main()
