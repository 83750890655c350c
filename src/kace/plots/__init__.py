"""Plots as data, drawn alike on a page, in an SVG file and as PDF. They know figures and words, not where from."""
