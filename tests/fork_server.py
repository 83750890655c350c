"""Runs `kace` in forks of a process that has imported it: each a process of its own, without the time to start one.

A request is a line of JSON; the answer is a line with the exit code.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from typing import Any

from kace import cli


def serve() -> dict[str, Any] | None:
    """Fork for each request. In a fork, its request; in the server, none when there are no more."""
    for line in sys.stdin:
        if not (child := os.fork()):
            request: dict[str, Any] = json.loads(line)
            return request
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    return None


def become(request: dict[str, Any]) -> None:
    """Take the folder, the environment, the streams and the arguments of a request."""
    os.chdir(request["folder"])
    os.environ.clear()  # noqa: TID251
    os.environ.update(request["env"])  # noqa: TID251
    for number, path in enumerate(request["streams"]):
        os.dup2(os.open(path, os.O_WRONLY if number else os.O_RDONLY), number)
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.argv = ["kace", *request["arguments"]]


if __name__ == "__main__":
    for verbs in cli.VERBS.values():
        for verb in verbs:
            cli.app.get_command(None, verb)
    gc.freeze()
    if request := serve():
        become(request)
        cli.main()
