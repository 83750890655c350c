"""Tools of the Model Context Protocol, over stdio: solve, search_cards and explain_run. None of them writes anything.

Clients name trees and runs by the names that the workspace gives them, so no path of theirs is ever opened.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from importlib.metadata import version
from typing import Annotated, Any, cast

import mcp.types as protocol
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kace.cards.card import Card, Status
from kace.cards.tree import EpistemicTree
from kace.config import Config, load_config
from kace.errors import KaceError, UsageError, one_line, redact
from kace.ladder.record import Attempt
from kace.ladder.relevance import Relevance
from kace.report.pages import AnswerGroup, Rung, climb_of
from kace.report.workspace import Workspace
from kace.runs.table import VIEWS, SolveFilter, SolveRow, Table
from kace.serve import chat
from kace.serve.app import SOLVER, ServerOptions, SolveService, open_service
from kace.serve.chat import ApiError

log = logging.getLogger(__name__)

MOST_LISTED = 50
MOST_CARDS = 20
MAX_ERROR = 1_000
# characters of a problem in a list, and of the end of what an attempt wrote
TEXT = 1_000
TAIL = 1_500
ALL = "all"
SOLVED = (
    "problem",
    "label",
    "seed",
    "answer",
    "expected",
    "correct",
    "real_calls",
)
READS_ONLY = protocol.ToolAnnotations(
    read_only_hint=True, destructive_hint=False
)
INSTRUCTIONS = "Solve a problem by a vote of sampled attempts, search the cards of a tree, explain a recorded run."
Context = ServerRequestContext[Any, Any]
Result = Mapping[str, object]


class _Arguments(BaseModel):
    """What a tool takes; its docstring describes the tool to agents."""

    model_config = ConfigDict(extra="forbid")


class Solve(_Arguments):
    """Solve a problem: sampled attempts vote on the answer, and hard problems read cards of the tree.

    Gives the answer with its working, the votes, and the cards that were read. It may take minutes on a small machine.
    """

    problem: str = Field(description="The whole text of the problem.")
    seed: int | None = Field(
        default=None,
        description="Draws other samples; the same seed repeats them.",
    )


class SearchCards(_Arguments):
    """Find the cards of a tree that are relevant to a problem or to a few words, the most relevant first.

    `passes_gate` says whether a card is relevant enough to be shown to attempts at this very text.
    """

    query: str = Field(
        min_length=1,
        max_length=20_000,
        description="A problem's text, or a few words.",
    )
    tree: str = Field(
        default="", description="The tree's name, where several are open."
    )
    limit: Annotated[int, Field(ge=1, le=MOST_CARDS)] = 5


class ExplainRun(_Arguments):
    """Tell how a recorded run went: its accuracy, what was wrong, what cards broke or repaired, and which problems.

    With `problem`, tell one climb: every tier's votes, the cards it read, and how each attempt ended.
    """

    run: str = Field(
        default="", description="The run's name, where several are open."
    )
    show: str = Field(
        default="wrong",
        description="The solves to list.",
        json_schema_extra={"enum": [ALL, *VIEWS]},
    )
    words: str = Field(
        default="",
        max_length=200,
        description="Only solves with these; also card=ID, tokens>800.",
    )
    against: str = Field(
        default="",
        description="The run to hold it against; left out, the ladder without cards.",
    )
    problem: str = Field(
        default="",
        description="A problem's label, or the beginning of its hash.",
    )
    seed: int | None = Field(
        default=None, description="Of the problem; left out, the first."
    )
    limit: Annotated[int, Field(ge=1, le=MOST_LISTED)] = 10


TOOLS: Mapping[str, type[Solve | SearchCards | ExplainRun]] = {
    "solve": Solve,
    "search_cards": SearchCards,
    "explain_run": ExplainRun,
}


class Tools:
    """What the tools read: the opened trees and runs, and a service that solves, or the reason why there is none."""

    def __init__(self, workspace: Workspace | None, config: Config) -> None:
        self.solver: SolveService | KaceError = UsageError("no model is open")
        self._workspace = workspace
        self._config = config
        self._gates: dict[str, tuple[EpistemicTree, Relevance]] = {}

    async def call(
        self,
        name: str,
        arguments: Mapping[str, object],
        tell: Callable[[str], None],
    ) -> Result:
        """What a tool finds. Raises `KaceError`, `ApiError` or `ValidationError` for what the client can mend."""
        if name not in TOOLS:
            raise UsageError(
                f"there is no tool '{name[:40]}'",
                fix=f"choose one of {', '.join(TOOLS)}",
            )
        asked = TOOLS[name].model_validate(arguments)
        if isinstance(asked, Solve):
            return await self.solve(asked, tell)
        if isinstance(asked, SearchCards):
            return await asyncio.to_thread(self.search_cards, asked)
        return await asyncio.to_thread(self.explain_run, asked)

    async def solve(self, asked: Solve, tell: Callable[[str], None]) -> Result:
        """The ladder's answer, as `kace serve` gives it."""
        if isinstance(self.solver, KaceError):
            raise self.solver
        if not asked.problem.strip():
            raise UsageError("the problem is empty", fix="give its whole text")
        messages = [{"role": "user", "content": asked.problem}]
        raw = {"model": SOLVER, "messages": messages, "seed": asked.seed}
        problem, body = chat.read_solve(raw)
        self.solver.check(body)
        done = await self.solver.solve(
            problem, body, lambda step: tell(step.text)
        )
        shown = {
            name: value
            for name, value in (done.kace or {}).items()
            if name != "ignored"
        }
        return {"answer": shown.pop("answer"), "working": done.content, **shown}

    def search_cards(self, asked: SearchCards) -> Result:
        """Cards by the score that decides what attempts are shown."""
        name, workspace = self._named("tree", asked.tree)
        opened = workspace.tree(name)
        tree = opened.tree
        known = self._gates.get(name)
        if known is None or known[0] is not tree:
            own = (
                self._config.tree and self._config.tree.resolve() == opened.path
            )
            config = self._config
            if not own:
                settings = {
                    "tree": opened.path,
                    "profile": self._config.profile,
                }
                config = load_config(settings)
            known = (tree, Relevance(tree, config.retrieval))
            self._gates[name] = known
        gate = known[1]
        scores = gate.scores(asked.query)
        cards = [
            card
            for card in map(tree.card, scores)
            if card.status is not Status.DEPRECATED
        ]
        best = sorted(
            cards, key=lambda card: (-scores[card.card_id], card.card_id)
        )[: asked.limit]
        found = {
            "tree": name,
            "cards_in_tree": len(tree),
            "relevant": len(cards),
            "threshold": gate.threshold,
        }
        passing = {card.card_id for card in gate.relevant(asked.query, best)}
        return {
            **found,
            "cards": [
                _card(card, scores[card.card_id], card.card_id in passing)
                for card in best
            ],
        }

    def explain_run(self, asked: ExplainRun) -> Result:
        """Return a run's figures and a group of its solves, or one climb."""
        name, workspace = self._named("run", asked.run)
        table = workspace.table(name)
        other = asked.against or workspace.base_of(name)
        base = workspace.table(other) if other else None
        if asked.problem:
            return {
                "run": name,
                **_climb(table, asked, {other: base} if base else {}),
            }
        if asked.show not in (ALL, *VIEWS):
            raise UsageError(
                f"there is no group '{asked.show[:40]}'",
                fix=f"choose one of {', '.join((ALL, *VIEWS))}",
            )
        where = VIEWS.get(asked.show, SolveFilter())
        if where.change and base is None:
            raise UsageError(
                f"{asked.show} needs a run of these problems without cards,"
                " and none is open",
                fix="open one too, or name another run as `against`",
            )
        where = replace(where, text=f"{where.text} {asked.words}".strip())
        metrics = table.metrics() if len(table) else None
        broken = [use for use in table.cards(base=base) if use.broken]
        broken.sort(key=lambda use: use.gained - use.broken)
        solves = table.solves(where, sort="", limit=asked.limit, base=base)
        accuracy = None
        if metrics and metrics.accuracy is not None and metrics.wilson:
            accuracy = {
                "share": metrics.accuracy,
                "interval": metrics.wilson._asdict(),
                "problems": metrics.problems,
            }
        return {
            "run": name,
            **table.manifest.facts(),
            "solves": len(table),
            "missing": table.missing,
            "damaged_lines": len(table.damage),
            "accuracy": accuracy,
            "against": other or None,
            "groups": table.views(base),
            "cards_that_broke": [use._asdict() for use in broken[:MOST_CARDS]]
            if base
            else None,
            "shown": asked.show,
            "in_group": table.count(where, base=base),
            "listed": [_solve(table, row) for row in solves],
        }

    def _named(self, kind: str, name: str) -> tuple[str, Workspace]:
        """The tree or run of a name, or the only one there is."""
        names = (
            [item.name for item in self._workspace.items(kind)]
            if self._workspace
            else []
        )
        if self._workspace is None or not names:
            raise UsageError(
                f"no {kind} is open here",
                fix=f"start it as: kace mcp {kind.upper()}",
            )
        if name in names or (not name and len(names) == 1):
            return name or names[0], self._workspace
        said = (
            f"no {kind} called '{name[:80]}' is open"
            if name
            else f"several are open, so name the {kind}"
        )
        raise UsageError(
            said, fix=f"choose one of {', '.join(names[:MOST_LISTED])}"
        )


def _card(card: Card, score: float, passes: bool) -> Result:
    place = {
        "difficulty": card.difficulty_tag.value,
        "domains": list(card.domain_tags),
        "status": card.status.value,
    }
    known = {
        "lift": card.provenance.validated_lift or None,
        "payload": card.payload,
    }
    return {
        "card_id": card.card_id,
        "relevance": round(score, 3),
        "passes_gate": passes,
        **place,
        **known,
    }


def _solve(table: Table, row: SolveRow) -> Result:
    """Return a solve of a list."""
    text = table.problem_text(row.problem)
    return {
        **_row(row, *SOLVED, "exit", "was"),
        "cards": list(row.cards),
        "text": text and text[:TEXT],
    }


def _row(row: SolveRow, *names: str) -> Result:
    """Return some figures of a solve."""
    return {name: getattr(row, name) for name in names}


def _climb(
    table: Table, asked: ExplainRun, others: Mapping[str, Table]
) -> Result:
    """Return one problem from the first tier to its answer, and its other solves."""
    named = [row for row in table if row.label == asked.problem]
    begin = [row for row in table if row.problem.startswith(asked.problem)]
    found = named or begin
    if len({row.problem for row in found}) != 1:
        what = "more than one problem begins"
        if not found:
            what = "no problem is called so or begins"
        raise UsageError(
            f"{what} with '{asked.problem[:60]}' in this run",
            fix="take the `problem` of a listed solve",
        )
    problem = found[0].problem
    seed = asked.seed
    if seed is None:
        seed = min(row.seed for row in found)
    record = table.solution(problem, seed)
    if record is None:
        raise UsageError(
            f"no solve of problem '{problem[:40]}' with seed {seed}",
            fix="take another seed",
        )
    climb = climb_of(record)

    def solves(of: Table) -> list[Result]:
        rows = of.solves(SolveFilter(problem=problem), sort="seed")
        return [_row(row, "seed", "answer", "correct", "exit") for row in rows]

    return {
        **record.model_dump(mode="json", include={*SOLVED, "exit"}),
        "text": table.problem_text(problem),
        "tiers": [_tier(rung) for rung in climb.rungs],
        "fallback": _votes(climb.fallback),
        "attempts": [_attempt(table, each) for each in record.made],
        "all_seeds": solves(table),
        "elsewhere": {name: solves(other) for name, other in others.items()},
    }


def _tier(rung: Rung) -> Result:
    shown = {
        "tier": rung.name,
        "votes": _votes(rung.groups),
        "votes_needed": rung.needed,
        "left_here": rung.left,
    }
    read = (
        rung.recall.model_dump(
            mode="json", include={"domains", "cards", "eligible"}
        )
        if rung.recall
        else {}
    )
    return {**shown, **read}


def _votes(groups: Sequence[AnswerGroup]) -> list[Result]:
    return [
        {
            "answer": group.answer,
            "attempts": len(group.attempts),
            "mark": group.mark,
        }
        for group in groups
    ]


def _attempt(table: Table, attempt: Attempt) -> Result:
    text = table.call_text(attempt.call)
    kept = {"tier", "answer", "outcome", "correct", "output"}
    shown = {
        "attempt": attempt.index + 1,
        **attempt.model_dump(mode="json", include=kept),
    }
    return {
        **shown,
        "ends": text[-TAIL:] if text else redact(attempt.detail) or None,
    }


async def serve_stdio(tools: Tools, options: ServerOptions) -> None:
    """Answer a client until it closes standard input. Where the model cannot be opened, `solve` says why."""

    async def list_tools(
        context: Context, params: object
    ) -> protocol.ListToolsResult:
        return protocol.ListToolsResult(
            tools=[_described(name) for name in TOOLS]
        )

    async def call_tool(
        context: Context, params: protocol.CallToolRequestParams
    ) -> protocol.CallToolResult:
        steps: list[asyncio.Task[None]] = []

        def tell(text: str) -> None:
            """A client that asked for progress hears of each step."""
            sending = context.session.report_progress(
                len(steps) + 1, message=text
            )
            steps.append(asyncio.create_task(sending))

        try:
            found = await tools.call(params.name, params.arguments or {}, tell)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            return _refused(
                f"'{'.'.join(map(str, first['loc']))}': {first['msg'].lower()}"
            )
        except (KaceError, ApiError) as error:
            return _refused(str(error))
        except Exception:
            log.error("%s", redact(traceback.format_exc()))
            return _refused(
                "something went wrong here; the server's log says what"
            )
        finally:
            if steps:
                await asyncio.wait(steps)
        text = (
            json.dumps(found, ensure_ascii=False)
            .encode("utf-8", "replace")
            .decode()
        )  # files may hold half letters
        said = protocol.TextContent(type="text", text=text)
        return protocol.CallToolResult(
            content=[said], structured_content=json.loads(text)
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
            tools.solver = await stack.enter_async_context(
                open_service(options)
            )
        except KaceError as error:
            tools.solver = error
        async with stdio_server(stdin=cast("Any", _lines_of(0))) as (
            reading,
            writing,
        ):
            await server.run(
                reading, writing, server.create_initialization_options()
            )


async def _lines_of(descriptor: int) -> AsyncIterator[str]:
    """Lines as they come, read in a thread that a signal need not wait for."""
    lines = asyncio.Queue[str]()
    loop = asyncio.get_running_loop()

    def read() -> None:
        with (
            os.fdopen(
                os.dup(descriptor), encoding="utf-8", errors="replace"
            ) as stream,
            suppress(RuntimeError),
        ):
            for line in stream:
                loop.call_soon_threadsafe(
                    lines.put_nowait, line
                )  # a `RuntimeError` once the loop is closed
            loop.call_soon_threadsafe(lines.put_nowait, "")

    threading.Thread(target=read, daemon=True).start()
    while line := await lines.get():
        yield line


def _described(name: str) -> protocol.Tool:
    schema = TOOLS[name].model_json_schema()
    about = " ".join(schema.pop("description").split())
    return protocol.Tool(
        name=name,
        description=about,
        input_schema=schema,
        annotations=READS_ONLY,
    )


def _refused(message: str) -> protocol.CallToolResult:
    said = protocol.TextContent(type="text", text=one_line(message, MAX_ERROR))
    return protocol.CallToolResult(content=[said], is_error=True)
