"""Endless bodies, compressed once and twice: memory stays bounded."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
import zlib

import pytest

from kace.models.base import AttemptKey, ModelError, Request, Sampling, chat
from kace.models.http import MAX_BODY, OpenAIModel
from tests.models.chat_server import JSON, Answer, ChatServer

GZIP = {"content-encoding": "gzip"}
MEMORY = 8 * MAX_BODY  # bytes that a body may take on its way
ZEROS = gzip.compress(bytes(1_000_000_000), 9)


def unended_gzip() -> bytes:
    """Many megabytes of spaces, and room for more."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return packer.compress(b" " * 200_000_000) + packer.flush(zlib.Z_SYNC_FLUSH)


BOTTOMLESS = {
    "endless": Answer(b" " * 100_000, endless=True),
    "a gigabyte in one megabyte": Answer(ZEROS, headers={**JSON, **GZIP}),
    "packed twice": Answer(gzip.compress(ZEROS), headers={**JSON, "content-encoding": "gzip, gzip"}),
    "packed, and never ended": Answer(unended_gzip(), headers={**JSON, **GZIP}),
    "another packing": Answer(zlib.compress(bytes(200_000_000)), headers={**JSON, "content-encoding": "deflate"}),
}


@pytest.mark.parametrize("body", BOTTOMLESS)
def test_a_solver_reads_no_more_than_it_can_hold(body: str) -> None:
    async def work(url: str) -> None:
        model = OpenAIModel("m", base_url=url, api_key=None, timeout=60.0, name="openai/m")
        request = Request(chat("s", "u"), Sampling(0.6, 100, 0), AttemptKey("p", 0, "ES", 0))
        try:
            await model.complete(request)
        finally:
            await model.aclose()

    with ChatServer([BOTTOMLESS[body]]) as server:
        tracemalloc.start()
        try:
            with pytest.raises(ModelError, match=r"larger than \d+ MB|compressed as"):
                asyncio.run(work(server.url))
            assert tracemalloc.get_traced_memory()[1] < MEMORY
        finally:
            tracemalloc.stop()
