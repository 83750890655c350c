"""`kace doctor`: what works here, and the fix for what does not."""

from __future__ import annotations

import json
from dataclasses import asdict

import typer

from kace.cli.options import Typed, command, new_app
from kace.cli.streams import plain
from kace.doctor import examine

app = new_app()


@command(app, "model", "base_url")
def doctor(typed: Typed, as_json: bool) -> None:
    """Check the model, its endpoint and key, the equivalence worker and write access."""
    healthy = True
    for check in examine(typed.config()):
        healthy = healthy and check.ok
        fix = f"\n      {'':16} fix: {plain(check.fix)}" if check.fix else ""
        told = f"{'ok  ' if check.ok else 'FAIL'}  {check.name:16} {plain(check.detail)}{fix}"
        print(json.dumps(asdict(check)) if as_json else told)
    if not healthy:
        raise typer.Exit(1)
