"""Builds tables of objects that `kubectl get` requests."""
