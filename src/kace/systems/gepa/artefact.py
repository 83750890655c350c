"""What GEPA training leaves, prompt.json, and the systems that read it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from kace.errors import DataError
from kace.io import write_atomic
from kace.learner.verdicts import Kept
from kace.models.base import ChatModel
from kace.retrieval.fence import neutral
from kace.solver.tiers import TierName
from kace.systems.base import Bench
from kace.systems.flat import Flat
from kace.systems.learned import Learned, made
from kace.systems.measure import Measure
from kace.systems.tiered import Tiered

FILE = "prompt.json"
MAX_BYTES = 4_000_000
_FIX = "name what kace train gepa made"


class Candidate(Kept):
    """One prompt that entered the pool."""

    instructions: str
    score: float
    """The share of the problems it was chosen on that it got right."""
    parents: tuple[int, ...]
    metric_calls: int
    """Evaluations made before it was found."""


class GepaPrompt(Kept):
    """The instructions that did best, and every prompt of the pool."""

    v: Literal[1] = 1
    instructions: Annotated[str, Field(min_length=1)]
    best: int = 0
    """Its place among the candidates; 0 is the prompt that training began with."""
    metric_calls: int = 0
    candidates: tuple[Candidate, ...] = ()


def write_prompt(folder: Path, prompt: GepaPrompt) -> None:
    """Write the prompt into the folder that training makes."""
    write_atomic(folder / FILE, prompt.model_dump_json(indent=2) + "\n")


def read_prompt(path: Path) -> GepaPrompt:
    """The prompt of a file, or of the folder that training made. `{"instructions": "..."}` is enough."""
    file = path / FILE if path.is_dir() else path
    try:
        if file.stat().st_size > MAX_BYTES:
            raise DataError(f"{file}: larger than {MAX_BYTES // 1_000_000} MB", fix=_FIX)
        return GepaPrompt.model_validate_json(file.read_bytes())
    except OSError as error:
        raise DataError(f"{file}: {(error.strerror or str(error)).lower()}", fix=_FIX) from None
    except ValidationError as error:
        raise DataError(f"{file}: not a learned prompt ({error.errors()[0]['msg'].lower()})", fix=_FIX) from None


def shelf_of(instructions: str, tier: TierName, model: ChatModel) -> Learned:
    """The instructions in place of the solver's own, at one tier."""
    return Learned(tier, Measure(model), instructions=neutral(instructions))


def open_gepa(bench: Bench) -> Flat:
    """One attempt under the learned instructions."""
    return Flat("gepa", shelf=shelf_of(read_prompt(made(bench)).instructions, TierName.FLAT, bench.classifier))


def open_tiered_gepa(bench: Bench) -> Tiered:
    """The ladder, with the learned instructions at HS and nowhere else."""
    return Tiered("tiered-gepa", shelf_of(read_prompt(made(bench)).instructions, TierName.HS, bench.classifier))
