"""The bundled starter set: five domains of small technique families with exact answers.

Four domains are mathematics; the fifth, `house_conventions`, uses the terms of an invented trade without
defining them. Only the training split carries solutions, and only there are the conventions explained.
"""

from kace.datasets.starter.family import SPLITS, Split
from kace.datasets.starter.generate import generate_set, load_split, starter_domains

__all__ = ["SPLITS", "Split", "generate_set", "load_split", "starter_domains"]
