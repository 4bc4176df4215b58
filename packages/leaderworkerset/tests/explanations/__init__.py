"""One situation for each cause of the catalogue, and what is said of it; `python -m tests.explanations` writes the texts."""
