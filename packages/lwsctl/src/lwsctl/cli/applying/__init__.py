"""Validates manifests, sends them to the API server as a dry run, and applies them."""
