"""Manifests: reads YAML and JSON of any origin safely."""
