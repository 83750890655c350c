"""The sample application as a process of its own, for signals."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from kace.report.server import Guard, listening, serve
from tests.report.sample_site import sample_app

if __name__ == "__main__":
    with listening() as port:
        asyncio.run(serve(Guard(sample_app()), port, ready=lambda url: print(url, flush=True)))
    print("ended", flush=True)
