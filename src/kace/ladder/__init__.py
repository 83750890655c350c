"""Which cards an attempt reads, and the prompt they stand in."""
