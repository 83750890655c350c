"""What every verb that learns shares: its problems, the wall around them, and what a bad setting is called."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError

    from kace.config import Config
    from kace.errors import UsageError
    from kace.problem import Problem


def training_problems(path: Path, field: list[str], limit: int | None, held_out: list[Path]) -> tuple[Problem, ...]:
    """The labelled problems of a file, none of which stands in an evaluation split that is named."""
    return training_data(path, field, limit, held_out)[0]


def training_data(
    path: Path, field: list[str], limit: int | None, held_out: list[Path]
) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """The problems to learn from, and all those of the evaluation splits that are named, which hold none of them."""
    from kace.cli.solve import field_map
    from kace.learner.opening import check_training, refuse_overlap
    from kace.problem import load_problems

    problems = load_problems(path, field_map(field))[:limit]
    check_training(problems)
    kept_out: list[Problem] = []
    for split in held_out:
        found = load_problems(split, field_map(field))
        refuse_overlap(problems, found, str(split))
        kept_out += found
    return problems, tuple(kept_out)


def wall_in(config: Config, train: Path, out: Path) -> None:
    """Let this process open the training file, its own folder, weights and calls, a teacher's folder, and no more."""
    from kace.learner.wall import raise_wall

    models = (config.model, config.teacher or "")
    folders = [Path(name.partition("/")[2]) for name in models if name.startswith(("exchange/", "replay/", "local/"))]
    raise_wall([train, out, config.cache_dir, *folders])


def bad_option(error: ValidationError, verb: str, unknown: str = "") -> UsageError:
    """The operator's line for a setting that is refused; `unknown` is what to say of one that does not exist."""
    from kace.errors import UsageError

    first = error.errors()[0]
    option = "--" + str(first["loc"][0]).replace("_", "-")
    reason = unknown if first["type"] == "extra_forbidden" else first["msg"].lower()
    return UsageError(f"{option} {first['input']}: {reason}", fix=f"see: kace {verb} --help")
