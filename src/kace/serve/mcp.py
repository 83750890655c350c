"""Tools of the Model Context Protocol, over stdio: solve and search_cards.

Neither writes anything, and no path of a client is ever opened.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from importlib.metadata import version
from typing import Any, cast

import mcp.types as protocol
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kace.cards.card import Status
from kace.errors import KaceError, UsageError, one_line, redact
from kace.ladder.relevance import Relevance
from kace.serve.app import (
    SOLVER,
    ApiError,
    ChatBody,
    ServerOptions,
    SolveService,
    open_service,
    problem_of,
)

log = logging.getLogger(__name__)

MAX_ERROR = 1_000
INSTRUCTIONS = (
    "Solve a problem by a vote of sampled attempts, search the cards of a tree."
)
Result = Mapping[str, object]


class _Arguments(BaseModel):
    """The arguments of a tool; its docstring describes the tool to agents."""

    model_config = ConfigDict(extra="forbid")


class Solve(_Arguments):
    """Solve a problem: sampled attempts vote on the answer, and hard problems read cards of the tree.

    Gives the answer with its working, the votes, and the cards that were read. It may take minutes on a small machine.
    """

    problem: str = Field(
        pattern=r"\S", description="The whole text of the problem."
    )
    seed: int | None = Field(
        default=None,
        ge=-(2**63),
        lt=2**63,
        description="Draws other samples; the same seed repeats them.",
    )


class SearchCards(_Arguments):
    """Find the cards of the tree that are relevant to a problem or to a few words, the most relevant first."""

    query: str = Field(
        min_length=1,
        max_length=20_000,
        description="A problem's text, or a few words.",
    )
    limit: int = Field(default=5, ge=1, le=20)


TOOLS: Mapping[str, type[_Arguments]] = {
    "solve": Solve,
    "search_cards": SearchCards,
}


class Tools:
    """What the tools read, and a service that solves or why there is none."""

    def __init__(self, options: ServerOptions) -> None:
        self.options = options
        self.solver: SolveService | KaceError = UsageError("no model is open")

    async def call(
        self,
        name: str,
        arguments: Mapping[str, object],
        on_step: Callable[[str], None],
    ) -> Result:
        """Return what a tool finds.

        Raises `KaceError`, `ApiError` or `ValidationError` for what the client can mend.
        """
        if name not in TOOLS:
            raise UsageError(
                f"there is no tool '{name[:40]}'",
                fix=f"choose one of {', '.join(TOOLS)}",
            )
        given = TOOLS[name].model_validate(arguments)
        if isinstance(given, SearchCards):
            return await asyncio.to_thread(self.search_cards, given)
        assert isinstance(given, Solve)
        if isinstance(self.solver, KaceError):
            raise self.solver
        messages = [{"role": "user", "content": given.problem}]
        body = ChatBody(model=SOLVER, messages=messages, seed=given.seed)
        done = await self.solver.solve(problem_of(body), body, on_step)
        return {"working": done.content, **done.kace}

    def search_cards(self, given: SearchCards) -> Result:
        """Return cards by the score that decides what attempts are shown."""
        tree = self.options.tree
        if tree is None:
            raise UsageError(
                "no tree is open here", fix="start it as: kace mcp --tree TREE"
            )
        relevance = Relevance(tree, self.options.config.retrieval)
        scores = relevance.scores(given.query)
        cards = []
        for card_id in sorted(scores, key=lambda each: (-scores[each], each)):
            card = tree.card(card_id)
            if card.status is not Status.DEPRECATED:
                shown = {
                    "card_id": card_id,
                    "relevance": round(scores[card_id], 3),
                    "difficulty": card.difficulty_tag.value,
                    "domains": list(card.domain_tags),
                    "status": card.status.value,
                    "payload": card.payload,
                }
                cards.append(shown)
        return {
            "cards_in_tree": len(tree),
            "relevant": len(cards),
            "threshold": relevance.threshold,
            "cards": cards[: given.limit],
        }


async def serve_stdio(options: ServerOptions) -> None:
    """Answer a client until it closes standard input."""
    tools = Tools(options)

    async def list_tools(
        context: Any, params: object
    ) -> protocol.ListToolsResult:
        return protocol.ListToolsResult(
            tools=[_describe(name) for name in TOOLS]
        )

    async def call_tool(
        context: Any, params: protocol.CallToolRequestParams
    ) -> protocol.CallToolResult:
        steps: list[asyncio.Task[None]] = []

        def report(text: str) -> None:
            sending = context.session.report_progress(
                len(steps) + 1, message=text
            )
            steps.append(asyncio.create_task(sending))

        try:
            arguments = params.arguments or {}
            found = await tools.call(params.name, arguments, report)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            return _refuse(f"'{where}': {first['msg'].lower()}")
        except (KaceError, ApiError) as error:
            return _refuse(str(error))
        except Exception:
            log.error("%s", redact(traceback.format_exc()))
            return _refuse("something went wrong here; see the server's log")
        finally:
            if steps:
                await asyncio.wait(steps)
        # Files may hold half letters.
        text = json.dumps(found, ensure_ascii=False)
        text = text.encode("utf-8", "replace").decode()
        return protocol.CallToolResult(
            content=[protocol.TextContent(type="text", text=text)],
            structured_content=json.loads(text),
        )

    handlers: dict[str, Any] = {
        "on_list_tools": list_tools,
        "on_call_tool": call_tool,
    }
    server: Server[Any] = Server(
        "kace", version=version("kace"), instructions=INSTRUCTIONS, **handlers
    )
    async with AsyncExitStack() as stack:
        try:
            service = open_service(options)
            tools.solver = await stack.enter_async_context(service)
        except KaceError as error:  # the other tools work without a model
            tools.solver = error
        lines = cast("Any", _read_lines(0))
        async with stdio_server(stdin=lines) as (reading, writing):
            await server.run(
                reading, writing, server.create_initialization_options()
            )


async def _read_lines(descriptor: int) -> AsyncIterator[str]:
    """Yield lines as they come, read in a thread that a signal need not wait for."""
    lines: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def read() -> None:
        # A `RuntimeError` is raised once the loop is closed.
        with (
            os.fdopen(
                os.dup(descriptor), encoding="utf-8", errors="replace"
            ) as stream,
            suppress(RuntimeError),
        ):
            for line in stream:
                loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, "")

    threading.Thread(target=read, daemon=True).start()
    while line := await lines.get():
        yield _whole_characters(line)


def _whole_characters(line: str) -> str:
    """Return a line of JSON without half characters, which the library leaves unanswered."""
    if "\\ud" not in line.lower():
        return line
    with suppress(ValueError, RecursionError):
        line = json.dumps(json.loads(line), ensure_ascii=False)
    return line.encode("utf-8", "replace").decode()


def _describe(name: str) -> protocol.Tool:
    schema = TOOLS[name].model_json_schema()
    about = " ".join(schema.pop("description").split())
    reads_only = protocol.ToolAnnotations(
        read_only_hint=True, destructive_hint=False
    )
    return protocol.Tool(
        name=name,
        description=about,
        input_schema=schema,
        annotations=reads_only,
    )


def _refuse(message: str) -> protocol.CallToolResult:
    text = one_line(message, MAX_ERROR)
    content = protocol.TextContent(type="text", text=text)
    return protocol.CallToolResult(content=[content], is_error=True)
