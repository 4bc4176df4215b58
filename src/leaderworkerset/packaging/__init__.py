"""Packages of an installation and of the operator: Helm chart, OLM bundle, catalog; pure, from the same builders.

`deploy/generate.py` writes what is returned here. No template is kept by hand beside the objects.
"""
