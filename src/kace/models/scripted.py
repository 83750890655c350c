"""Models without weights, for tests and benchmarks.

Every reply is a pure function of the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from urllib.parse import parse_qsl

from kace.errors import UsageError
from kace.models.base import Finish, Reply, Request, Usage

Script = Callable[[Request], str]


class Scripted:
    """A model that replies with what its script returns, after `latency` seconds."""

    def __init__(
        self, script: Script, *, name: str = "custom", latency: float = 0.0
    ) -> None:
        self.script = script
        self.latency = latency
        self.calls = 0
        self.name = f"scripted/{name}"
        self.identity = self.name

    async def complete(self, request: Request) -> Reply:
        """Run the script."""
        self.calls += 1
        await asyncio.sleep(self.latency)
        text = self.script(request)
        words = sum(len(m.content.split()) for m in request.messages)
        usage = Usage(input=words, output=len(text.split()))
        return Reply(text, Finish.STOP, usage, self.latency)

    async def aclose(self) -> None:
        """Do nothing: no resources are open."""


def steady(request: Request) -> str:
    """Return always the same answer: every problem exits at the first gate."""
    return "Every step agrees. \\boxed{42}"


def silent(request: Request) -> str:
    """Return a reply without an answer."""
    return "I cannot tell."


def dice(sides: int) -> Script:
    """Return a script that throws a die per attempt: problems leave at every exit."""

    def throw(request: Request) -> str:
        side = request.sampling.seed % sides + 1
        return f"The die shows \\boxed{{{side}}}"

    return throw


def open_scripted(spec: str) -> Scripted:
    """Open `steady`, `silent`, `dice` or `dice?sides=6&latency=0.1`."""
    name, _, query = spec.partition("?")
    options = {"sides": "6", "latency": "0", **dict(parse_qsl(query))}
    try:
        thrown = dice(int(options["sides"]))
        scripts = {"steady": steady, "silent": silent, "dice": thrown}
        latency = float(options["latency"])
        return Scripted(scripts[name], name=spec, latency=latency)
    except (KeyError, ValueError):
        raise UsageError(
            f"unknown model 'scripted/{spec}'",
            fix="choose one of scripted/steady, scripted/silent, scripted/dice?sides=6",
        ) from None
