"""`kace doctor`: what works here, and the fix for what does not."""

from __future__ import annotations

import json

import typer


def doctor(
    model: str = typer.Option(None, "--model", "-m", help="The model to check; the default one without it."),
    base_url: str = typer.Option(None, help="An OpenAI-compatible server for openai/NAME."),
    as_json: bool = typer.Option(False, "--json", help="One JSON object a check."),
) -> None:
    """Check the model, its endpoint and key, the equivalence worker and write access."""
    from dataclasses import asdict

    from kace.cli.show import plain
    from kace.config import load_config
    from kace.doctor import examine

    failed = False
    for check in examine(load_config({"model": model, "base_url": base_url})):
        failed = failed or not check.ok
        if as_json:
            print(json.dumps(asdict(check)))
        else:
            print(f"{'ok  ' if check.ok else 'FAIL'}  {check.name:16} {plain(check.detail)}")
            if check.fix:
                print(f"      {'':16} fix: {plain(check.fix)}")
    if failed:
        raise typer.Exit(1)
