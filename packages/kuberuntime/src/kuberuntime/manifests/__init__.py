"""Manifests: reads YAML and JSON from any source safely."""
