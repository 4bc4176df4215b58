"""Reads manifests from files, directories, URLs and kustomizations, and sorts their objects."""
