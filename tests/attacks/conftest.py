"""How long to fuzz: a hundred examples a reader, or with `make fuzz` ten thousand."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("fuzz", max_examples=10_000, deadline=None)
