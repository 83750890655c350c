"""Models: one protocol, many providers. `kace.models.provider` opens them, `kace.models.base` says what they are."""
