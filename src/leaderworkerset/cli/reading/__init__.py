"""Manifests as users give them: files, folders, addresses and kustomizations, and their order."""
