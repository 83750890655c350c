"""Runs the cells of notebook.ipynb and writes what they show into it: python docs/generate_notebook.py."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import copy
import io
import json
import os
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "notebook.ipynb"


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs of a fresh run, inside a running event loop as notebooks have one."""
    fresh, names, here = copy.deepcopy(notebook), {"__name__": "__main__"}, Path.cwd()

    async def run() -> None:
        code = [cell for cell in fresh["cells"] if cell["cell_type"] == "code"]
        for number, cell in enumerate(code, 1):
            cell["execution_count"], cell["outputs"] = number, outputs("".join(cell["source"]), names, number)

    try:
        asyncio.run(run())
    finally:
        os.chdir(here)
    return fresh


def outputs(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """What a cell prints, and what its last expression is."""
    body, printed = ast.parse(source).body, io.StringIO()
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "<cell>", "exec"), names)  # noqa: S102 - our own page
        value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if last else None  # noqa: S307
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"name": "stdout", "output_type": "stream", "text": lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": lines(repr(value))}
        if html := getattr(value, "_repr_html_", None):
            data["text/html"] = lines(str(html()))
        result = {"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"}
        found.append(result)
    return found


def lines(text: str) -> list[str]:
    """Text as notebooks keep it."""
    return text.splitlines(keepends=True)


def page(notebook: dict[str, Any]) -> str:
    """The notebook as it is written."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(executed(json.loads(PAGE.read_text(encoding="utf-8")))), encoding="utf-8")
