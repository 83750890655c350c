"""`kace doctor`: what works here, and the fix for what does not."""

from __future__ import annotations

import json
from dataclasses import asdict

import typer

from kace.cli.options import Typed, takes
from kace.cli.streams import plain


@takes("model", "base_url", "as_json")
def doctor(typed: Typed) -> None:
    """Check the model, its endpoint and key, the equivalence worker and write access."""
    from kace.doctor import examine

    checks = []
    for check in examine(typed.config()):
        checks.append(check)
        fix = f"\n      {'':16} fix: {plain(check.fix)}" if check.fix else ""
        told = f"{'ok  ' if check.ok else 'FAIL'}  {check.name:16} {plain(check.detail)}{fix}"
        print(json.dumps(asdict(check)) if typed.as_json else told)
    if not all(check.ok for check in checks):
        raise typer.Exit(1)
