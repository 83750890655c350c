"""The ladder: attempts, votes, gates, and the run that records them."""
