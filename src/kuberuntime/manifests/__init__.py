"""Manifests: YAML and JSON read safely, whatever a user wrote."""
