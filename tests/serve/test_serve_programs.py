"""Attempts that are programs, behind the endpoint."""

from __future__ import annotations

from openai import OpenAI

from kace.ladder.programs import REPAIR
from kace.models.base import Request
from tests.serve.running import Running, Watched

WORKED = "```python\nprint(6 * 7)\n```\n\nThe answer is $\\boxed{42}$."


def script(request: Request) -> str:
    """Disagrees with itself at ES; then writes a program that fails, and repairs it."""
    if request.attempt.tier == "ES":
        return f"\\boxed{{{request.attempt.index}}}"
    return f"```python\nprint({'6' if request.attempt.index >= REPAIR else 'six'} * 7)\n```"


def test_the_answer_is_what_programs_print_and_repairs_are_paid():
    with (
        Running(Watched(script), programs="ms") as server,
        OpenAI(base_url=server.base_url, api_key="none", max_retries=0) as client,
    ):
        reply = client.chat.completions.create(model="kace", messages=[{"role": "user", "content": "6 times 7?"}])
    assert reply.choices[0].message.content == WORKED
    assert reply.kace["exit_path"] == "ms_majority"
    assert reply.kace["calls"] == {"solver": 8}
