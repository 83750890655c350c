"""Runs `kace` commands, a few side by side, over one or more servers. A command that has finished is not run again."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path


def parser_of(told: str | None) -> argparse.ArgumentParser:
    """What a study is given: where its problems are, where it works, and the servers of the solver."""
    parser = argparse.ArgumentParser(description=told)
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--server", action="append", required=True)
    return parser


@dataclass(frozen=True)
class Commands:
    """Where commands run: the servers that share their calls, and what every command is given."""

    servers: Sequence[str]
    given: tuple[str, ...] = ("--set", "max_connections=400", "--set", "cache=false")
    side_by_side: int = 3
    seconds: float = 600.0  # for one command; the same command resumes it

    def all(self, commands: Iterable[Sequence[object]]) -> None:
        """Run them, the last argument of each being the folder it makes."""
        with ThreadPoolExecutor(self.side_by_side) as pool:
            list(pool.map(self.one, list(commands)))

    def one(self, command: Sequence[object]) -> bool:
        """Run one, and say whether it finished; what it prints goes to a file beside its folder."""
        folder = Path(str(command[-1]))
        done = folder.with_name(folder.name + ".done")
        if done.exists():
            return True
        folder.parent.mkdir(parents=True, exist_ok=True)
        servers = [word for server in self.servers for word in ("--base-url", server)]
        words = [*map(str, command), "--model", "openai/solver", *servers, *self.given]
        began, printed = time.time(), folder.with_name(folder.name + ".txt")
        with printed.open("a", encoding="utf-8") as out:
            try:
                kace = [sys.executable, "-m", "kace", *words]
                code = subprocess.run(kace, stdout=out, stderr=out, timeout=self.seconds).returncode
            except subprocess.TimeoutExpired:
                code = 124
        if code == 0:
            done.touch()
        last = [line for line in printed.read_text(encoding="utf-8").splitlines() if line.strip()][-1:]
        print(f"{time.time() - began:5.0f} s, exit {code}: {folder}  {' '.join(last)}", flush=True)
        return code == 0
