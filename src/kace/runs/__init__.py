"""Evaluation: systems on data sets, what their runs add up to, and which is better."""
