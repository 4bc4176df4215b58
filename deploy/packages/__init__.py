"""The parts of a release besides images and wheels: chart, bundle, catalog, alerts, dashboard, bill of materials.

A tool of the repository, not part of the product: `deploy/generate.py` writes the files from the product's builders.
"""
