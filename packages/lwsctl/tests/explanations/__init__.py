"""One situation for each cause of the catalogue, with its explanation.

`python -m tests.explanations` writes the texts.
"""
