"""Systems that doubt an agreed ES where a card speaks of the problem, and their controls.

The controls climb at the same problems, one past empty shelves and one past another domain's: what they gain, the
climbing gained.
"""

from __future__ import annotations

from kace.retrieval.skip_es import from_ms, past_es
from kace.systems.base import Bench
from kace.systems.sham import placebo_of
from kace.systems.tiered import Tiered, library_of


def open_wary(bench: Bench) -> Tiered:
    """The method; past ES also where a card of MS shares enough telling words with the problem."""
    library = library_of(bench)
    return Tiered("kace-wary", library, rungs=past_es(library))


def open_direct(bench: Bench) -> Tiered:
    """The method; without ES where a card of MS shares enough telling words with the problem."""
    library = library_of(bench)
    return Tiered("kace-direct", library, rungs=from_ms(library))


def open_wary_bare(bench: Bench) -> Tiered:
    """Climbs as the wary ladder does, and reads nothing."""
    return Tiered("kace-wary-bare", rungs=past_es(library_of(bench)))


def open_wary_placebo(bench: Bench) -> Tiered:
    """Climbs as the wary ladder does, and reads another domain's block."""
    placebo = placebo_of(bench, "kace-wary-placebo")
    return Tiered("kace-wary-placebo", placebo, rungs=past_es(placebo))
