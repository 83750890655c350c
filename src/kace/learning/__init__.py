"""The offline learner: from a solver's failures to a frozen tree."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class StepResult(BaseModel):
    """A value that a training writes to disk between steps."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @property
    def summary(self) -> str:
        """Return the result in a few words: how much each list holds."""
        parts = []
        for name, value in self:
            if isinstance(value, tuple):
                parts.append(f"{len(value)} {name}")
        return ", ".join(parts) or "done"
