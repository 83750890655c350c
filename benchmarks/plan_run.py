"""A plan for a large run: calls, tokens, money, GPUs, hours, and which part is full first.

    python benchmarks/plan_run.py [--problems N] [--cards N] [--processes N] [--work starter|techniques]

A small simulation: processes send calls at the rate they can, a problem goes on when a tier's last reply has come, and
servers share what they generate among the calls under way. Constants were measured; see the lines below. Prices are
examples: give your own.
"""

from __future__ import annotations

import argparse
import heapq
import random
from collections import deque
from typing import NamedTuple

SERVER = (
    20_000.0  # tokens/s of one vLLM 0.26 server of a 1.5B model on an H200 at 400 to 768 requests: 18,000 to 21,000
)
CARD = 65_000.0  # tokens/s of five such servers on the same card, which is then full
FULL = 400  # calls under way from where on a server generates that much
PROCESS = 1_222.0  # calls/s of one kace process on a slow core, calls of 50 ms: see bench_transport.py and --rate
MERGE, REPORT = 63e-6, 530e-6  # seconds a solve takes to merge and to report on, on the same core
TRACE = 2_200.0  # bytes of trace a problem


class Work(NamedTuple):
    """How problems leave the ladder and what a call reads and writes, as published runs recorded it."""

    es: float
    ms: float
    input: int
    output: int

    @property
    def calls(self) -> float:
        """A problem."""
        return 2 * self.es + 5 * self.ms + 10 * (1 - self.es - self.ms)


WORK = {
    "starter": Work(0.710, 0.140, 102, 273),  # experiments/starter/test-1.5b, tiered
    "techniques": Work(0.153, 0.218, 109, 384),  # experiments/techniques/learned, tiered
}


def simulate(work: Work, capacity: float, servers: int, rate: float) -> float:
    """Problems a second, without the beginning and the end of a run.

    Virtual time is tokens generated for each call under way, which all share alike.
    """
    connections, chance = servers * FULL + FULL, random.Random(1)
    problems, marks = 8 * connections, list[float]()
    waiting: deque[tuple[int, float]] = deque()  # calls to send: the problem, and its tokens
    left: dict[int, list[int]] = {}  # of each open problem: replies to come, tiers to climb
    under_way: list[tuple[float, int]] = []  # by the virtual time at which they end
    now = virtual = next_send = 0.0
    started = 0

    def climb(problem: int, attempts: int) -> None:
        left[problem][0] = attempts
        waiting.extend((problem, chance.lognormvariate(-0.18, 0.6) * work.output) for _ in range(attempts))

    while started < problems or waiting or under_way:
        while started < problems and len(left) < connections:
            exit_at = chance.choices((0, 1, 2), (work.es, work.ms, 1 - work.es - work.ms))[0]
            left[started] = [0, exit_at]
            climb(started, 2)
            started += 1
        speed = min(capacity / (len(under_way) or 1), capacity / (servers * FULL))
        ends = now + (under_way[0][0] - virtual) / speed if under_way else float("inf")
        sends = max(now, next_send) if waiting and len(under_way) < connections else float("inf")
        then = min(ends, sends)
        virtual += (then - now) * speed
        now = then
        if sends <= ends:
            problem, size = waiting.popleft()
            heapq.heappush(under_way, (virtual + size, problem))
            next_send = now + 1 / rate
            continue
        _, problem = heapq.heappop(under_way)
        left[problem][0] -= 1
        if left[problem][0]:
            continue
        if left[problem][1]:
            attempts = 5 if len(left[problem]) > 2 else 3
            left[problem] = [0, left[problem][1] - 1, 0]
            climb(problem, attempts)
        else:
            del left[problem]
            marks.append(now)
    return (problems // 2) / (marks[3 * problems // 4] - marks[problems // 4])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=1_000_000)
    parser.add_argument("--cards", type=int, nargs="+", default=[1, 2, 8], help="GPUs like an H200, five servers each")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4], help="kace processes: shards, workers")
    parser.add_argument("--rate", type=float, default=PROCESS, help="calls a second of one process")
    parser.add_argument("--work", choices=WORK, nargs="+", default=list(WORK))
    parser.add_argument("--hour", type=float, default=3.5, help="USD an hour of a card (an example)")
    parser.add_argument("--price", type=float, nargs=2, default=[0.15, 0.60], help="USD a million tokens in and out")
    options = parser.parse_args()
    for name in options.work:
        work: Work = WORK[name]
        calls = work.calls * options.problems
        read, written = calls * work.input / 1e6, calls * work.output / 1e6
        (cheap, dear), disk = options.price, TRACE * options.problems / 1e9
        money = read * cheap + written * dear
        print(f"{name}: {options.problems:,} problems, {work.calls:.2f} calls each, {calls / 1e6:.1f} million calls")
        print(f"  {read:,.0f} million tokens in, {written:,.0f} million out, {disk:.1f} GB of traces")
        print(
            f"  hosted, at {cheap:g} and {dear:g} USD: {money:,.0f} USD, in batches at half price {money / 2:,.0f} USD"
        )
        for cards in options.cards:
            for processes in options.processes:
                capacity, servers, sent = CARD * cards, 5 * cards, options.rate * processes
                rate = simulate(work, capacity, servers, sent)
                hours, made = options.problems / rate / 3600, rate * work.calls * work.output
                sending, generating = rate * work.calls / sent, made / capacity
                full = "processes" if sending > generating else "cards"
                print(
                    f"  {cards} cards, {servers:2} servers, {processes:2} processes: {hours:5.1f} h,"
                    f" {hours * cards * options.hour:4,.0f} USD of cards, {made:7,.0f} tokens/s,"
                    f" cards {generating:4.0%} and processes {sending:4.0%} busy: {full} are the limit"
                )
        after = options.problems * (MERGE + REPORT) / 60
        print(f"  then merging and the report: {after:.0f} minutes on one core")


if __name__ == "__main__":
    main()
