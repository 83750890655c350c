"""Problem sets: the bundled starter set, and loaders for others."""
