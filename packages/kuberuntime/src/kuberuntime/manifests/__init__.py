"""Manifests: reads YAML and JSON from untrusted sources."""
