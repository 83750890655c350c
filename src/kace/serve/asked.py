"""What a client asks, read at the border: a problem, and the settings of a chat that a ladder can honour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kace.errors import DataError
from kace.problem import Problem, check_problem_text
from kace.serve.allowance import NO_CAPS, Allowance, read_allowance
from kace.serve.body import NEUTRAL, ChatMessage, read_body, text_of
from kace.serve.fault import bad_request

MAX_STOPS = 16
HONOURED = frozenset(
    ("model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "seed", "stop", "kace")
)
IGNORED = frozenset(
    (
        *("temperature", "top_p", "presence_penalty", "frequency_penalty"),
        *("user", "safety_identifier", "metadata", "store", "service_tier", "prompt_cache_key"),
        *("prompt_cache_retention", "reasoning_effort", "verbosity", "parallel_tool_calls"),
    )
)
"""About one sample, or about the provider. An answer here is the vote of many samples, each drawn as the preset says;
a reply lists what of these was given."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request to solve."""

    problem: Problem
    model: str
    """As the client named it."""
    stream: bool = False
    include_usage: bool = False
    seed: int | None = None
    max_tokens: int | None = None
    """A cap on each attempt."""
    stops: tuple[str, ...] = ()
    allowance: Allowance = NO_CAPS
    ignored: tuple[str, ...] = ()
    """Parameters that were given and changed nothing."""


def read_asked(raw: Mapping[str, object], headers: Mapping[str, str]) -> Asked:
    """A request to solve. Raises `Fault` for what no ladder can do, by name."""
    given = {name: value for name, value in raw.items() if value is not None}
    body = read_body(given, HONOURED | IGNORED, NEUTRAL)
    stops = (body.stop,) if isinstance(body.stop, str) else tuple(body.stop or ())
    return Asked(
        problem=problem_of(body.messages),
        model=body.model,
        stream=bool(body.stream),
        include_usage=body.stream_options is not None and bool(body.stream_options.include_usage),
        seed=body.seed,
        max_tokens=body.max_completion_tokens or body.max_tokens,
        stops=tuple(stop for stop in stops[:MAX_STOPS] if stop),
        allowance=read_allowance(given.get("kace"), headers),
        ignored=tuple(sorted(given.keys() & IGNORED)),
    )


def problem_of(messages: Sequence[ChatMessage]) -> Problem:
    """The last user message, after whatever was said before it."""
    turns = [(message.role, text_of(message)) for message in messages]
    last = max((position for position, (role, _) in enumerate(turns) if role == "user"), default=None)
    if last is None or not turns[last][1].strip():
        raise bad_request("there is no problem: the last user message is it, and it must have text", param="messages")
    if any(role == "assistant" for role, _ in turns[last + 1 :]):
        raise bad_request("a reply cannot be begun for the solver: end with a user message", param="messages")
    system = [text for role, text in turns if role in ("system", "developer")]
    earlier = [f"{role.capitalize()}: {text}" for role, text in turns[:last] if role in ("user", "assistant")]
    said = ["Earlier in this conversation:", *earlier] if earlier else []
    text = "\n\n".join(part.strip() for part in (*system, *said, turns[last][1]) if part.strip())
    try:
        check_problem_text(text, "messages")
    except DataError as error:
        raise bad_request(error.message, param="messages") from None
    return Problem(text)
