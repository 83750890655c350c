"""Runs `kace` commands over one or more servers, a few side by side. A command that has finished is not run again."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path


@dataclass(frozen=True)
class Commands:
    """Where commands run: the servers they ask in turn, and what every command is given."""

    servers: Sequence[str]
    given: tuple[str, ...] = ()
    side_by_side: int = 3
    seconds: float = 600.0  # for one command; the same command resumes it
    _turn: cycle[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_turn", cycle(self.servers))

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
        words = [*map(str, command), "--model", "openai/solver", "--base-url", next(self._turn), *self.given]
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
