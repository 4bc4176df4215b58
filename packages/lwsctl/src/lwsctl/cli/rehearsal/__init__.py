"""Derives the cluster requirements of a manifest and simulates them. Pure."""
