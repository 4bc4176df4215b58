"""Pods that are stuck on lost nodes are released (`release-lost-pods-after`)."""
