"""Derives the cluster requirements of a manifest, and adapts the manifest to simulated nodes. Pure."""
