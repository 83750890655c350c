"""What `kill -9` makes a run pay for twice: `kace eval`, killed at a random moment and run again.

    python benchmarks/bench_kill.py [--kills N] [--problems N] [--seconds S]

400 problems x 5 attempts over 64 connections, 50 ms a call, against the server of `peers/mock_server.py`, which counts.
A call is repeated where it was under way, which nothing can help, or where its answer was there and not yet kept:
unread in the socket, or read and not on disk. A run of its own for every kill.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from bench_transport import ATTEMPTS, CONNECTIONS, SECONDS, mock_server, window


class Killed(NamedTuple):
    """One kill: calls answered before it, those under way, and all that were made again."""

    answered: int
    under_way: int
    repeated: int

    @property
    def lost(self) -> int:
        """Of those made again, the ones that were answered."""
        return self.repeated - self.under_way


def killed(command: list[str], server: str, folder: Path, after: float, calls: int) -> Killed | None:
    """Run the command, kill it so many seconds after its first call, and run it again; nothing where it had ended."""
    window(server)
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    sent = answered = 0
    began = None
    while began is None or time.perf_counter() < began + after:
        time.sleep(0.01)
        found = window(server)
        sent, answered = sent + int(found["count"]), answered + int(found["answered"])
        began = began or (time.perf_counter() if sent else None)
        if process.poll() is not None:
            return None
    process.kill()
    process.wait()
    found = window(server)
    sent, answered = sent + int(found["count"]), answered + int(found["answered"])
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    return Killed(answered, sent - answered, sent + int(window(server)["count"]) - calls)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--problems", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of a call")
    options = parser.parse_args()
    calls, seconds, chance = options.problems * ATTEMPTS, options.seconds, random.Random(1)
    print(f"{options.problems} problems x {ATTEMPTS}, {CONNECTIONS} connections, {seconds:g} s a call")
    print(f"load of this machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    kills: list[Killed] = []
    with mock_server(seconds) as server, tempfile.TemporaryDirectory() as place:
        file = Path(place) / "problems.jsonl"
        texts = ({"problem": f"What is {n} + {4 - n}?", "answer": "4"} for n in range(options.problems))
        file.write_text("".join(f"{json.dumps(text)}\n" for text in texts))
        solver = ["--model", "openai/m", "--base-url", f"{server}/v1", "--set", f"max_connections={CONNECTIONS}"]
        data = ["--data", str(file), "--seeds", "1", "--preset", "math-hard"]
        command = [sys.executable, "-m", "kace", "eval", "--system", "best-of-5", *data, *solver]
        longest = calls * seconds / CONNECTIONS
        while len(kills) < options.kills:
            folder = Path(tempfile.mkdtemp(dir=place))
            found = killed([*command, "--out", "run"], server, folder, chance.uniform(0.0, longest), calls)
            if found:
                kills.append(found)
                said = f"{found.repeated} calls repeated, {found.lost} of them answered"
                print(f"killed after {found.answered:5d} answers: {said}", flush=True)
    repeated, lost = sorted(each.repeated for each in kills), sorted(each.lost for each in kills)
    middle = len(kills) // 2
    print(f"of {calls:,} calls, {len(kills)} kills: repeated {repeated[middle]} in the median, {repeated[-1]} at most;")
    print(f"of them answered before the kill: {lost[middle]} in the median, {lost[-1]} at most, {sum(lost)} in all")


if __name__ == "__main__":
    main()
