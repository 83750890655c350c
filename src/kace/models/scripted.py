"""Models without weights, for tests and benchmarks. Every reply is a pure function of the request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl

from kace.errors import UsageError
from kace.models.base import Confidence, Finish, Reply, Request, Usage

Script = Callable[[Request], str]


class Scripted:
    """A model that says what its script says, after `latency` seconds."""

    def __init__(
        self, script: Script, *, name: str = "custom", latency: float = 0.0
    ) -> None:
        self.script = script
        self.latency = latency
        self.calls = 0  # requests that reached this model
        self.name = self.identity = f"scripted/{name}"
        self.confidence: Callable[[Request], Confidence | None] = lambda request: None

    async def complete(self, request: Request) -> Reply:
        """Play the script."""
        self.calls += 1
        await asyncio.sleep(self.latency)
        text = self.script(request)
        words = sum(len(m.content.split()) for m in request.messages)
        usage = Usage(input=words, output=len(text.split()))
        confidence = self.confidence(request) if request.logprobs else None
        return Reply(text, Finish.STOP, usage, self.latency, confidence=confidence)

    async def aclose(self) -> None:
        """Nothing is held."""


def steady(request: Request) -> str:
    """Always the same answer: every problem leaves at the first gate."""
    return "Every step agrees. \\boxed{42}"


def dice(sides: int) -> Script:
    """A fair die thrown anew for every attempt: problems leave at every exit."""
    return lambda request: (
        f"The die shows \\boxed{{{request.sampling.seed % sides + 1}}}"
    )


def open_scripted(spec: str) -> Scripted:
    """The model for `steady`, `silent` (never an answer), `dice` or `dice?sides=6&latency=0.1`."""
    name, _, query = spec.partition("?")
    try:
        options = {option: float(value) for option, value in parse_qsl(query)}
    except ValueError:
        raise UsageError(
            f"an option of scripted model '{spec}' is not a number",
            fix="e.g. dice?sides=6",
        ) from None
    throw = dice(int(options.get("sides", 6)))
    scripts: Mapping[str, Script] = {
        "steady": steady,
        "silent": lambda _: "I cannot tell.",
        "dice": throw,
    }
    if name not in scripts:
        raise UsageError(
            f"unknown model 'scripted/{name}'",
            fix=f"choose one of {', '.join(scripts)}",
        )
    return Scripted(scripts[name], name=spec, latency=options.get("latency", 0.0))
