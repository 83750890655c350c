"""The viewer: trees, runs and learners as pages, served on this machine or written as files."""
