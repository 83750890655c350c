"""Everything that can be evaluated: the method, its ablations and controls, and what it is compared with."""
