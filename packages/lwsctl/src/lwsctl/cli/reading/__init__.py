"""Reads manifests: files, folders, addresses and kustomizations, and their order."""
