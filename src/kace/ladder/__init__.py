"""Solve one problem: the ladder, its votes and records, and what its tiers read."""
