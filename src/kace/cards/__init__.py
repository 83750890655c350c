"""The epistemic tree: cards, the tree as a value, and its directory on disk."""
