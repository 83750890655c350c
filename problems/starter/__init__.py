"""The starter set: five domains of small technique families with exact answers.

Four domains are mathematics; the fifth, `house_conventions`, uses the terms of an invented trade without defining them.
Only the training split carries solutions, and only there are the conventions explained.
"""
