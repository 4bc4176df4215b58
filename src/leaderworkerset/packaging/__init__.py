"""Packages of the manager and of the operator: Helm chart, OLM bundle, catalog; pure, from the builders of objects.

`deploy/generate.py` writes the files. No template is edited by hand.
"""
