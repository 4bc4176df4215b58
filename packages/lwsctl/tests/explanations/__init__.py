"""Defines one situation for each cause in the catalogue, with its explanation.

`python -m tests.explanations` writes the texts.
"""
