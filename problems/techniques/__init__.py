"""Techniques from school to early competitions, and conventions that were invented: each file is a domain."""
