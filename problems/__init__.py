"""Generators of the starter and technique sets. `python -m problems` writes what the package ships."""
