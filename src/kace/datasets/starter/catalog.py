"""All families of the starter set, domain by domain."""

from kace.datasets.starter import (
    combinatorics,
    geometry,
    house_conventions,
    number_theory,
    rates_and_sequences,
)
from kace.datasets.starter.family import Family

FAMILIES: tuple[Family, ...] = (
    *number_theory.FAMILIES,
    *combinatorics.FAMILIES,
    *geometry.FAMILIES,
    *rates_and_sequences.FAMILIES,
    *house_conventions.FAMILIES,
)
