"""Answers: read from replies, normalised, valued exactly, and compared."""
