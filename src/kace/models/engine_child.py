"""The program that holds llama.cpp: `kace.models.local` runs this file by path, and it imports nothing of kace.

It writes one line, its socket or why it could not start, and lives until its standard input closes.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SOCKET_PATH_LIMIT = (
    66  # the kernel has room for about 100 characters; a deep TMPDIR does not fit
)


def main(settings: Mapping[str, Any]) -> None:
    """Load the model, say where it listens, and stay until standard input closes."""
    parent = os.fdopen(
        os.dup(1), "w", buffering=1
    )  # whatever a library prints goes to the log instead
    os.dup2(2, 1)
    deep = len(tempfile.gettempdir()) > SOCKET_PATH_LIMIT
    folder = Path(tempfile.mkdtemp(prefix="kace-", dir="/tmp" if deep else None))
    status = 1
    try:
        # The name keeps the server alive. Its destructor waits for every request in flight, so it never runs:
        # the process ends below and the kernel takes everything back at once.
        server = _server(settings, folder / "llama.sock")  # noqa: F841
        status = 0
        parent.write(
            json.dumps({"socket": str(folder / "llama.sock")}) + "\n"
        )  # line-buffered
        sys.stdin.buffer.read()
    except Exception as error:
        parent.write(json.dumps({"error": str(error)}) + "\n")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(status)


def _server(settings: Mapping[str, Any], socket: Path) -> Any:
    # llama.cpp's compute threads wait for each other in the OpenMP library (its own `poll` has no effect in this
    # build), which reads this variable when it is loaded: it must be set before llama.cpp is imported.
    os.putenv("GOMP_SPINCOUNT", str(settings["spin"]))
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.hostnames = [str(socket)]
    params.ui = False
    params.verbosity = -1  # silent
    params.n_parallel = settings["slots"]
    params.n_ctx = settings["slots"] * settings["context"]
    params.n_batch = params.n_ubatch = settings["batch"]
    params.cache_ram_mib = settings["cache_mib"]
    params.n_threads_http = settings["slots"] + 2
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
