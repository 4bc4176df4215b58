"""Builds the parts of a release except images and wheels: chart, bundle, catalog, alerts, dashboard, SBOM.

A tool of the repository, not part of the product: `deploy/generate.py` writes the files from the product's builders.
"""
