"""Tools of the Model Context Protocol, over stdio: solve and search_cards.

Neither writes anything, and no path of a client is ever opened.
"""

from __future__ import annotations

import asyncio
import json
from importlib.metadata import version
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from kace.cards.card import Status
from kace.errors import KaceError
from kace.ladder.retrieve import Retriever
from kace.problems import Problem
from kace.serve.app import (
    ApiError,
    ServerOptions,
    SolveService,
    as_denial,
    open_service,
)

INSTRUCTIONS = (
    "Solve a problem by a vote of sampled attempts, search the cards of a tree."
)
ProblemText = Annotated[
    str,
    Field(
        pattern=r"\S",
        max_length=100_000,
        description="The whole text of the problem.",
    ),
]
Seed = Annotated[
    int,
    Field(
        ge=-(2**63),
        lt=2**63,
        description="Draws other samples; the same seed repeats them.",
    ),
]
Query = Annotated[
    str,
    Field(
        min_length=1,
        max_length=20_000,
        description="A problem's text, or a few words.",
    ),
]
Limit = Annotated[int, Field(ge=1, le=20)]


async def serve_stdio(options: ServerOptions) -> None:
    """Answer a client until it closes standard input."""
    async with open_service(options) as service:
        server = create_server(service)
        await server.run_stdio_async()


def create_server(service: SolveService) -> MCPServer:
    """Return a server of the tools; without a tree, there is none to search in."""
    server = MCPServer(
        "kace",
        version=version("kace"),
        instructions=INSTRUCTIONS,
        log_level="ERROR",
    )
    read_only = ToolAnnotations(read_only_hint=True, destructive_hint=False)

    @server.tool(annotations=read_only)
    async def solve(
        problem: ProblemText,
        context: Context[Any, Any],
        seed: Seed | None = None,
    ) -> dict[str, Any]:
        """Solve a problem: sampled attempts vote on the answer, and hard problems read cards of the tree.

        Gives the answer with its working, the votes, and the cards that were read. It
        may take minutes on a small machine.
        """
        steps: list[asyncio.Task[None]] = []

        def report(text: str) -> None:
            sending = context.report_progress(len(steps) + 1, message=text)
            steps.append(asyncio.create_task(sending))

        try:
            done = await service.solve(Problem(problem), seed, report)
        except (ApiError, KaceError) as error:
            raise ToolError(as_denial(error).detail) from None
        finally:
            if steps:
                await asyncio.wait(steps)
        found = {"working": done.content, **done.kace, "usage": done.usage}
        # A model's reply may hold half letters.
        text = json.dumps(found, ensure_ascii=False).encode("utf-8", "replace")
        return dict(json.loads(text))

    source = service.session.kit.source
    if isinstance(source, Retriever):

        @server.tool(annotations=read_only)
        def search_cards(query: Query, limit: Limit = 5) -> dict[str, Any]:
            """Find the cards of the tree that are relevant to a problem or to a few words, the most relevant first."""
            cards: list[dict[str, Any]] = []
            for card_id, score in source.relevance.scores(query).items():
                card = source.tree.card(card_id)
                if card.status is not Status.DEPRECATED:
                    row = {
                        "card_id": card_id,
                        "relevance": round(score, 3),
                        "payload": card.payload,
                    }
                    cards.append(row)
            cards.sort(key=lambda row: -row["relevance"])
            return {
                "relevant": len(cards),
                "threshold": source.relevance.threshold,
                "cards": cards[:limit],
            }

    return server
