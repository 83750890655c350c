"""`kace models`: the embedded models, by hash."""

from __future__ import annotations

import json

import typer

models_app = typer.Typer(help="List, fetch and find embedded models.", no_args_is_help=True, rich_markup_mode=None)


@models_app.command("list")
def list_(as_json: bool = typer.Option(False, "--json", help="One JSON object a model.")) -> None:
    """Show the embedded models and whether they are here."""
    from kace.config import load_config
    from kace.models.catalog import CATALOG, is_present
    from kace.models.provider import weights_folder

    cache = weights_folder(load_config())
    for weights in CATALOG:
        here = is_present(weights, cache)
        if as_json:
            row = {"name": f"local/{weights.name}", "bytes": weights.bytes, "sha256": weights.sha256, "here": here}
            print(json.dumps(row))
        else:
            state = "here" if here else "not here"
            print(f"local/{weights.name:22} {weights.bytes / 1e6:7,.0f} MB  {state:9} {weights.about}")
    if not as_json:
        print("any other: local/PATH.gguf, openai/NAME with --base-url, replay/RUN")


@models_app.command()
def pull(name: str = typer.Argument("qwen2.5-coder-0.5b", help="A name from `kace models list`.")) -> None:
    """Fetch a model from the hub or its mirror; accepted by SHA-256 only, resumed where it stopped."""
    from kace.cli.weights import ensure_weights
    from kace.config import load_config
    from kace.models.catalog import path_of
    from kace.models.provider import weights_folder

    name = name.removeprefix("local/")
    config = load_config({"model": f"local/{name}"})
    ensure_weights(config)
    print(path_of(name, weights_folder(config)))


@models_app.command()
def where(name: str = typer.Argument("qwen2.5-coder-0.5b", help="A name from `kace models list`.")) -> None:
    """Print the path of a model that is here; exit 1 when it is not."""
    from kace.config import load_config
    from kace.errors import KaceError
    from kace.models.catalog import find, is_present, path_of
    from kace.models.provider import weights_folder

    weights, cache = find(name.removeprefix("local/")), weights_folder(load_config())
    if not is_present(weights, cache):
        raise KaceError(f"local/{weights.name} is not in {cache}", fix=f"kace models pull {weights.name}")
    print(path_of(weights, cache))
