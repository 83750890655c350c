"""Tools of the Model Context Protocol, over stdio: solve, search_cards, explain_run.

None of them writes anything. Clients name trees and runs by the names that the workspace
gives them, so no path of theirs is ever opened.
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
from typing import Any, Literal, cast

import mcp.types as protocol
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kace.cards.card import Status
from kace.config import Config, load_config
from kace.errors import KaceError, UsageError, one_line, redact
from kace.ladder.relevance import Relevance
from kace.report.workspace import Workspace
from kace.runs.table import SolveFilter, Table
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
# Characters of a problem in a list, and of the end of what an attempt wrote.
TEXT = 1_000
TAIL = 1_500
SOLVED = {
    "problem",
    "label",
    "seed",
    "answer",
    "expected",
    "correct",
    "real_calls",
    "exit",
}
INSTRUCTIONS = "Solve a problem by a vote of sampled attempts, search the cards of a tree, explain a recorded run."
Result = Mapping[str, object]
Tell = Callable[[str], None]


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
    """Find the cards of a tree that are relevant to a problem or to a few words, the most relevant first."""

    query: str = Field(
        min_length=1,
        max_length=20_000,
        description="A problem's text, or a few words.",
    )
    tree: str = Field(
        default="", description="The tree's name, where several are open."
    )
    limit: int = Field(default=5, ge=1, le=20)


class ExplainRun(_Arguments):
    """Give a recorded run's accuracy and a list of its solves.

    With `problem`, give one climb: every attempt, every vote and the cards that were read.
    """

    run: str = Field(
        default="", description="The run's name, where several are open."
    )
    show: Literal["wrong", "right", "all"] = "wrong"
    words: str = Field(
        default="",
        max_length=200,
        description="Only solves with these; also card=ID, tokens>800.",
    )
    problem: str = Field(
        default="",
        description="A problem's label, or the beginning of its hash.",
    )
    seed: int = Field(
        default=0, ge=0, lt=2**63, description="Of the problem's solve."
    )
    limit: int = Field(default=10, ge=1, le=50)


TOOLS: Mapping[str, type[_Arguments]] = {
    "solve": Solve,
    "search_cards": SearchCards,
    "explain_run": ExplainRun,
}


class Tools:
    """What the tools read, and a service that solves or why there is none."""

    def __init__(self, workspace: Workspace | None, config: Config) -> None:
        self.solver: SolveService | KaceError = UsageError("no model is open")
        self._workspace = workspace
        self._config = config

    async def call(
        self, name: str, arguments: Mapping[str, object], tell: Tell
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
        if isinstance(given, Solve):
            return await self.solve(given, tell)
        if isinstance(given, SearchCards):
            return await asyncio.to_thread(self.search_cards, given)
        assert isinstance(given, ExplainRun)
        return await asyncio.to_thread(self.explain_run, given)

    async def solve(self, given: Solve, tell: Tell) -> Result:
        """Return the ladder's answer, as `kace serve` gives it."""
        if isinstance(self.solver, KaceError):
            raise self.solver
        messages = [{"role": "user", "content": given.problem}]
        body = ChatBody(model=SOLVER, messages=messages, seed=given.seed)
        done = await self.solver.solve(
            problem_of(body), body, lambda step: tell(step.text)
        )
        return {"working": done.content, **done.kace}

    def search_cards(self, given: SearchCards) -> Result:
        """Return cards by the score that decides what attempts are shown."""
        name, workspace = self._find("tree", given.tree)
        opened = workspace.tree(name)
        config = self._config
        if config.tree is None or config.tree.resolve() != opened.path:
            settings = {"tree": opened.path, "profile": config.profile}
            config = load_config(settings)
        relevance = Relevance(opened.tree, config.retrieval)
        scores = relevance.scores(given.query)
        cards = []
        for card_id in sorted(scores, key=lambda each: (-scores[each], each)):
            card = opened.tree.card(card_id)
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
            "tree": name,
            "cards_in_tree": len(opened.tree),
            "relevant": len(cards),
            "threshold": relevance.threshold,
            "cards": cards[: given.limit],
        }

    def explain_run(self, given: ExplainRun) -> Result:
        """Return a run's figures and a list of its solves, or one climb."""
        name, workspace = self._find("run", given.run)
        table = workspace.table(name)
        if given.problem:
            return {"run": name, **_climb(table, given)}
        right = {"wrong": "no", "right": "yes", "all": ""}[given.show]
        where = SolveFilter(right=right, text=given.words)
        listed = []
        for row in table.solves(where, limit=given.limit):
            text = table.problem_text(row.problem)
            shown = {field: getattr(row, field) for field in SOLVED}
            shown |= {"cards": list(row.cards), "text": text and text[:TEXT]}
            listed.append(shown)
        metrics = table.metrics() if len(table) else None
        return {
            "run": name,
            "model": table.manifest.model,
            "solves": len(table),
            "accuracy": metrics.accuracy if metrics else None,
            "interval": list(metrics.wilson or ()) if metrics else None,
            "shown": given.show,
            "in_group": table.count(where),
            "listed": listed,
        }

    def _find(self, kind: str, name: str) -> tuple[str, Workspace]:
        """Return the tree or run of a name, or the only one there is."""
        names = []
        if self._workspace is not None:
            names = [item.name for item in self._workspace.items(kind)]
        if self._workspace is None or not names:
            raise UsageError(
                f"no {kind} is open here",
                fix=f"start it as: kace mcp {kind.upper()}",
            )
        if not name and len(names) == 1:
            name = names[0]
        if name not in names:
            what = f"no {kind} called '{name[:80]}' is open"
            if not name:
                what = f"several are open, so name the {kind}"
            raise UsageError(what, fix=f"choose one of {', '.join(names[:50])}")
        return name, self._workspace


def _climb(table: Table, given: ExplainRun) -> Result:
    """Return one problem from the first tier to its answer."""
    found = {row.problem for row in table if row.label == given.problem}
    if not found:
        for row in table:
            if row.problem.startswith(given.problem):
                found.add(row.problem)
    record = None
    if len(found) == 1:
        record = table.solution(found.pop(), given.seed)
    if record is None:
        raise UsageError(
            f"no single solve of '{given.problem[:60]}' with seed {given.seed}",
            fix="take `problem` and `seed` of a listed solve",
        )
    attempts = []
    kept = {"tier", "answer", "outcome", "correct", "output"}
    for attempt in record.made:
        ends = attempt.text[-TAIL:] or redact(attempt.detail) or None
        shown = attempt.model_dump(mode="json", include=kept)
        attempts.append({**shown, "ends": ends})
    return {
        **record.model_dump(mode="json", include={*SOLVED, "recalls"}),
        "text": table.problem_text(record.problem),
        "votes": [
            {"answer": group.answer, "attempts": len(group.positions)}
            for group in record.classes
        ],
        "attempts": attempts,
    }


async def serve_stdio(tools: Tools, options: ServerOptions) -> None:
    """Answer a client until it closes standard input."""

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

        def tell(text: str) -> None:
            sending = context.session.report_progress(
                len(steps) + 1, message=text
            )
            steps.append(asyncio.create_task(sending))

        try:
            found = await tools.call(params.name, params.arguments or {}, tell)
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
