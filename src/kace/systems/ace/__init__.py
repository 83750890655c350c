"""ACE: a playbook that grows from a solver's attempts, kept by a reflector and a curator."""

from kace.systems.ace.shelf import open_ace, open_domain_ace, open_tiered_ace

__all__ = ["open_ace", "open_domain_ace", "open_tiered_ace"]
