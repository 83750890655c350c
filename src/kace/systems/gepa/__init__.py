"""GEPA: instructions evolved by the `gepa` package, an extra that only training needs."""

from kace.systems.gepa.artefact import open_gepa, open_tiered_gepa

__all__ = ["open_gepa", "open_tiered_gepa"]
