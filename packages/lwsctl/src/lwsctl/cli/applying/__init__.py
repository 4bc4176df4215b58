"""Manifests sent to the API server: checked, tried out, applied."""
