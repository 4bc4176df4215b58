"""Reads YAML and JSON manifests from untrusted sources."""
